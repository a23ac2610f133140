"""Controllers and brokers of ``impl/kraft`` that run freely, held against ``impl_spec.py``: every message an event.

The model is shown what the newest leader's log comes to, and takes each of its records for a step of the active
controller, which a request, a timer or a client has led to. What everyone else holds is compared with the log itself
(``metadata_log.py``): images, snapshots, and what is told to whoever asked. A decision is judged where it is made,
though its answer waits until it is stable. In most runs controllers and brokers know each other when they begin.

``client_ops.py`` has what clients and operators ask for, ``negative_requests.py`` what must be refused whatever the
state is, and ``workload.py`` how likely each event is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from ....impl.kraft.node import ControllerNode
from ....impl.metadata import changes
from ....impl.wire.controller import (
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRequest,
    ControllerResponse,
)
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import Envelope
from ....model.core.errors import BadInput
from ....model.protocols.controller.impl_state import OF_LOG, PARTITIONS, PROGRESS, TOLD
from ....traces.format import Value
from ...adapters.carrier import CLIENT
from ...checks.crash_image import check_awake
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent, RequestOutcome, StepResult, changed
from .client_ops import Clients
from .liveness import not_come
from .members import Members
from .metadata_log import MetadataLog, check_active, leaves
from .nodes import REPLICA_MESSAGES, STOP, KraftNodes, fetch_all
from .observation import NAMES, Topics, cells_of_controller, cells_of_log, cells_of_request, nothing_said
from .produced import MESSAGES, PRODUCE, RETRY, WRITE, Produced
from .responses import Answers, check_broker
from .workload import Workload

_COLD: Final = 6
"""One of so many runs begins before anybody has heard of anybody."""
_TAKEN: Final = frozenset({*PROGRESS, *TOLD})
_CHANGES: Final = (EventKind.DELIVER, EventKind.REPEAT, EventKind.TIMER, EventKind.SYNC)


class FreeControllers(KraftNodes):
    """Brokers ``0`` to ``replicas - 1``, and the controllers."""

    def _set_up(self, constants: Mapping[str, int]) -> range:
        if constants["partitions"] > len(PARTITIONS):
            raise BadInput("a run has two partitions at most", "--partitions", "give 1 or 2")
        there = super()._set_up(constants)
        self._partitions = dict(zip(NAMES, range(constants["partitions"]), strict=False))
        self.log = MetadataLog()
        self.topics = Topics()
        self._newest = (-1, -1)
        """The newest epoch of the quorum that somebody leads or has led, and who."""
        self._last_said = nothing_said(self.brokers, len(self._partitions))
        self._reached: dict[tuple[int, int], int] = {}
        """By broker and broker epoch, the end of what that process has said to have replayed."""
        self._cells: dict[str, Value] = {}
        """What was seen after the last event."""
        self._of_log: dict[str, Value] = {}
        self._own = dict.fromkeys(self.brokers, -1)
        self._views = dict.fromkeys(self.brokers, 0)
        self.answers = Answers(self.log, self.kraft.session_timeout_ms)
        self.members = Members()
        self.clients = Clients(self)
        self.produced = Produced(self)
        self.probed = -1_000_000
        """The correlation id of the last request that had to be refused."""
        self._pace = Workload(self.seed)
        self._calm = False
        return there

    def _settle(self) -> None:
        if self.seed % _COLD:
            self.run_until(lambda: self.active is not None and len(self._unfenced()) == len(self.brokers))
            self.clients.prepare()
            self.produced.begin()

    def _unfenced(self) -> list[int]:
        active = self.active
        image = None if active is None or active.active is None else active.active.image
        return [] if image is None else [broker for broker in self.brokers if image.alive(broker)]

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new nodes."""
        happened = super().reset(constants, seed)
        self._look(self.replicas)
        self.answers.forget()
        return replace(happened, inputs=frozenset(self.observe()))

    def peace(self, *, on: bool) -> None:
        """Nothing is kept waiting in peace."""
        self._calm = on

    def unsettled(self, but: int | None) -> str | None:
        """What has not come of snapshots at nodes that are well, where there is an active controller among them."""
        well = [each for each in self.up() if each != but and each not in self.cut | self.bad.keys()]
        active = self.active
        if active is None or active.address not in well:
            return None
        # Who has been told that it may stop tells nobody anything any more.
        ended = {each for each in well if each in self.brokers and self.broker(each).lifecycle.may_shut_down}
        heard = {each: self.quorum(each) for each in well if each not in ended}
        return not_come(heard, self.kraft.degraded_snapshot_minimum_records)

    # -- what may happen --------------------------------------------------------------------------------------------

    def pending(self) -> Sequence[EnabledEvent]:
        """What may happen, each with how likely it is now."""
        found = super().pending()
        return found if self._calm else self._pace.weighed(found, self)

    def sends(self, envelope: Envelope) -> None:
        """A node sends a message."""
        super().sends(envelope)
        self.members.sent(envelope)

    def _calls(self) -> Iterator[Event]:
        yield from self.clients.offers()
        yield from self.produced.offers()

    def _call(self, event: Event) -> Sequence[ModelStep]:
        if event.name in (WRITE, RETRY):
            self.produced.ask(event)
            return ()
        return self.clients.ask(event)

    def _fire(self, event: Event) -> None:
        if event.name == PRODUCE:
            self.produced.wake()
            self._converse(MESSAGES, lambda _node: None)
            self._converse(REPLICA_MESSAGES, fetch_all)
            return
        super()._fire(event)

    # -- what happens -----------------------------------------------------------------------------------------------

    def step(self, event: Event) -> StepResult:
        """One event. Raises what a node does, ``WrongState`` and ``WrongAnswer``."""
        flight = self._flight(event) if event.what in (EventKind.DELIVER, EventKind.REPEAT) else None
        request = None if flight is None or not self._reaches(flight.envelope) else flight.envelope
        leaders = self._newest
        images = self._images()
        if request is not None and request.destination in images:
            self.answers.arrives(self.controller(request.destination), request.body, self.clock.now())
        if event.what is EventKind.CRASH and event.name == STOP and event.node is not None:
            self._stop_in_order(event.node)
        self.produced.look()
        self.members.event()
        happened = super().step(event)
        if event.what is EventKind.TIMER and event.node in images and event.node not in self.down:
            self.answers.fenced(self.controller(event.node), images[event.node], self.clock.now())
        touched = {node for node in (event.node, None if request is None else request.destination) if node is not None}
        touched |= {node for node in self.clients.touched if node not in self.down}
        for client in self.network.in_flight(destination=CLIENT):
            self.network.drop(client)
        self._look(self.replicas if event.what is EventKind.SYNC else sorted(touched))
        judged = list(happened.judged)
        if request is not None and flight is not None and isinstance(request.body, ControllerRequest):
            judged += self._judge(request, flight.number)
        judged += self.clients.judged()
        self.answers.check(self.down)
        running = {node: self.controller(node) for node in self.voters if node not in self.down}
        self.answers.check_waiting(running, self.down | self.cut)
        self.produced.check()
        before = self._cells
        cells = self.observe()
        self._pace.happened(event, int(str(cells["end"])))
        of_log = self._newest != leaders
        new = ((name, name.partition("[")[0]) for name in changed(before, cells))
        given = {name for name, kind in new if kind in _TAKEN or (of_log and kind in OF_LOG)}
        steps = (*happened.steps, *self._appended(event, int(str(before["end"]))))
        return replace(happened, judged=tuple(judged), steps=steps, inputs=frozenset(given))

    def _stop_in_order(self, number: int) -> None:
        """A broker ends by itself; on a disk that fails it ends as it can."""
        try:
            self.broker(number).close()
        except Exception:
            if number not in self.bad:
                raise

    def _images(self) -> dict[int, Any]:
        """What each active controller has in mind, as it is now."""
        there = [(number, self.controller(number).active) for number in self.voters if number not in self.down]
        return {number: active.image.fork() for number, active in there if active is not None}

    def _judge(self, request: Envelope, flight: int) -> Iterator[RequestOutcome]:
        """What a controller has decided of a broker's request that has arrived."""
        number, body = request.destination, request.body
        if number not in self.voters or number in self.down:
            return
        node = self.controller(number)
        error = self.answers.error_of(node, request, self.clock.now())
        if error is None or (error is not ErrorCode.NOT_CONTROLLER and self._newest[1] != number):
            return  # who is deposed, and has not heard of it, never says what it has decided
        if error in (ErrorCode.KAFKA_STORAGE_ERROR,):
            return
        told = None if error is ErrorCode.NONE else error.name
        for step in self._asked_for(body, number):
            yield RequestOutcome((step,), told, flight)
            break

    # -- messages ---------------------------------------------------------------------------------------------------

    def _asked_for(self, body: Any, controller: int) -> tuple[ModelStep, ...]:
        """The steps that a request asks for; the first is the one by which its answer is judged."""
        node = controller - len(self.brokers)
        if isinstance(body, BrokerRegistrationRequest):
            return (("register_broker", {"node": node, "broker": body.broker}),)
        if isinstance(body, BrokerHeartbeatRequest):
            who = {"node": node, "broker": body.broker}
            return tuple((name, who) for name in ("unfence_broker", "shut_down", "fence_as_asked"))
        if isinstance(body, AlterPartitionRequest):
            partition = self._partitions.get(body.partition.topic)
            if partition is not None:
                return (("alter_partition", {"node": node, "leader": body.broker, "partition": partition}),)
        return ()

    def _steps(self, envelope: Envelope, asked: Envelope | None) -> tuple[ModelStep, ...]:
        body = envelope.body
        self.produced.answered(envelope, asked)
        if isinstance(body, ControllerResponse):
            self.answers.sent(envelope)
        if isinstance(body, BrokerRegistrationResponse) and body.error is ErrorCode.NONE and envelope.destination >= 0:
            return (("hear_registration", {"broker": envelope.destination}),)
        if isinstance(body, ControllerRequest) and envelope.source in self.brokers:
            self._last_said |= cells_of_request(body, self._partitions, self.topics, self.brokers)
            if isinstance(body, BrokerHeartbeatRequest):
                key = body.broker, body.broker_epoch
                self._reached[key] = max(self._reached.get(key, 0), body.metadata_offset + 1)
            if envelope.destination in self.voters:
                return self._asked_for(body, envelope.destination)
        return ()

    def _judged(self, request: Envelope, answer: Envelope) -> Iterable[RequestOutcome]:  # noqa: ARG002 - see _judge
        return ()

    def _took(self, event: Event) -> Sequence[ModelStep]:  # noqa: ARG002 - see _appended
        return ()

    def _appended(self, event: Event, end: int) -> Iterator[ModelStep]:
        """The steps that records may be which the active controller has appended in an event, and nobody asked for.

        ``end``: that of the newest log before.
        """
        leader = self.newest_leader
        if leader is None or event.what not in _CHANGES or end >= leader.quorum.replica.end:
            return
        by_itself = event.what is EventKind.TIMER or event.name == "BrokerRegistration"
        node = {"node": leader.address - len(self.brokers)}
        records = self.log.records(leader.quorum, end)
        gone = [number for record in records if (number := leaves(record)) is not None]
        for record in records:
            partition = None if record.type != changes.ISR else self._partition_of(record.fields["TopicId"])
            if record.type == changes.FEATURE:
                yield "append_other", node
            elif record.type == changes.FENCE and by_itself:
                yield "fence_broker", {**node, "broker": record.fields["Id"]}
            elif partition is not None:
                chosen, where = record.fields["Leader"], {**node, "partition": partition}
                elected = {"elected": chosen} if chosen >= 0 else {}
                yield from (("move_partition", {**where, **elected, "broker": each}) for each in gone)
                if chosen >= 0 and event.name == "BrokerHeartbeat":
                    yield "elect_leader", {**where, "broker": chosen}

    def _partition_of(self, topic: UUID) -> int | None:
        """The number of a topic's partition, as the newest log has it."""
        number = self.topics.known(topic)
        return next((p for p in self._partitions.values() if self._of_log.get(f"topic[{p}]") == number), None)

    # -- looking ----------------------------------------------------------------------------------------------------

    def _look(self, numbers: Iterable[int]) -> None:
        """Hold whoever something has happened to, to the log. Raises ``WrongState``."""
        for number in numbers:
            if number in self.down or number not in self.nodes:
                continue
            node: Any = self.nodes[number]
            self.log.look(node.quorum, node.machine.image)
            self.account(number)
            if number in self.voters:
                if node.quorum.is_leader and node.quorum.epoch > self._newest[0]:
                    self._newest = node.quorum.epoch, number
                if node.active is not None:
                    self.answers.active_now(node, self.clock.now())
                    check_active(node.quorum, self.log, node.active.image)
            else:
                check_broker(node, self.log)
                for partition in node.broker.partitions:
                    check_awake(number, node.broker, partition)

    def observe(self) -> Mapping[str, Value]:
        """Everything: of who is down what it was last."""
        epoch, leads = self._newest
        leader = self.nodes.get(leads) if leads not in self.down else None
        if isinstance(leader, self._parts.controller_node) and leader.quorum.is_leader and leader.quorum.epoch == epoch:
            prefix = self.log.whole(leader.quorum)
            self._of_log = cells_of_log(prefix, self.brokers, len(self._partitions), self.topics)
            self._of_log["end"] = leader.quorum.replica.end
        elif not self._of_log:
            self._of_log = cells_of_log(self.log.prefix(0), self.brokers, len(self._partitions), self.topics)
            self._of_log["end"] = 0
        first = len(self.brokers)
        cells: dict[str, Value] = {"newest_epoch": epoch, "leads": -1 if leads < 0 else leads - first}
        cells["stable"] = self.log.end
        cells |= self._of_log
        for number in self.voters:
            node = None if number in self.down else self.controller(number)
            cells |= cells_of_controller(number - first, node)
        for broker in self.brokers:
            runs = broker not in self.down
            if runs:
                self._own[broker] = self.broker(broker).lifecycle.broker_epoch
            cells[f"run[{broker}]"] = "running" if runs else "down"
            cells[f"own_epoch[{broker}]"] = self._own[broker]
            # Until its own registration is there a broker takes nothing up, and only this shows that it gets on.
            cells[f"view_end[{broker}]"] = self.quorum(broker).replica.end if runs else 0
            cells[f"view_applied[{broker}]"] = self.broker(broker).publisher.published if runs else 0
            registered = int(str(cells[f"broker_epoch[{broker}]"]))
            cells[f"has_told[{broker}]"] = self._reached.get((broker, registered), 0)
        cells |= self._last_said
        self._cells = cells
        return cells

    @property
    def newest_leader(self) -> ControllerNode | None:
        """Who leads the newest epoch, if it is up and leads still."""
        epoch, leads = self._newest
        if leads < 0 or leads in self.down:
            return None
        node = self.controller(leads)
        return node if node.quorum.is_leader and node.quorum.epoch == epoch else None

    @property
    def next_controllers(self) -> list[ControllerNode]:
        """Who leads the newest epoch, and who of those that are up would be elected by a majority of them (KIP-595).

        A deposed one may be among them, with records that its successor lacks: they are back when it is elected.
        """
        up = [self.controller(each) for each in self.voters if each not in self.down]
        ends = sorted(each.quorum.replica.vote_position for each in up)
        if len(ends) <= len(self.voters) // 2:
            return [each for each in up if each is self.newest_leader]
        enough = ends[len(self.voters) // 2]
        return [each for each in up if each.quorum.replica.vote_position >= enough or each is self.newest_leader]
