"""A quorum of ``impl`` that runs freely, held against ``snapshots``: voters and observers, every message an event.

An election timer fires when it has run off, any other whenever it is set. Batches have one to three records, a fetch
brings one batch or about two, and a chunk of a snapshot is small. A process may also end by itself, as one that is
shut down does. Of a node that is down its disk tells the epoch and the vote. Records are told by their content too: one
that no client has appended at that offset in that epoch is seen as none. What clients were told is noted at the leader
that took their records, as long as it leads that epoch.
``quorum_knowledge.py`` has what is known of the whole, ``negative_requests.py`` what must be refused, and
``workload.py`` how likely each event is.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from ....impl.quorum.node import QuorumNode
from ....impl.quorum.timers import ELECTION
from ....impl.replica.timers import Key
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import NO_EPOCH, NO_LEADER, Envelope
from ....impl.wire.quorum import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    QuorumRequest,
    QuorumResponse,
    VoteRequest,
    VoteResponse,
)
from ....model.core.errors import BadInput
from ....traces.format import Value
from ...adapters.carrier import CLIENT, error_name
from ...adapters.endpoints import Node
from ...adapters.events import kind_of, offered
from ...adapters.nodes import DUE
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent, RequestOutcome, SenderClaim, StepResult
from .counting import CHUNK
from .liveness import not_come
from .machines import BothMachines
from .message_steps import TIMED, brings, decided, says_of, steps_of
from .negative_requests import check_again, probe, probes
from .quorum import PARTITION, ballot_of, cells_of, snapshots_in
from .quorum_knowledge import KnownQuorum, WrongState
from .workload import Workload, course_of

_MAX_VOTERS: Final = 5
"""The model counts no larger majorities than those of so many."""
_MAX_RECORDS: Final = 14
"""So many offsets fit into the last chunk of a snapshot."""
_ACTS: Final = (
    EventKind.DELIVER,
    EventKind.REPEAT,
    EventKind.TIMER,
    EventKind.SYNC,
    EventKind.CALL,
    EventKind.OPERATE,
    EventKind.CRASH,
)
"""The events in which a node does something itself."""
_BATCHES: Final = {"append": 1, "append-two": 2, "append-three": 3}
"""How many records a client appends at once."""
_SELDOM: Final = 7
"""At one of so many moments somebody may have a leader resign."""
_IN_A_BATCH: Final = (1, 2, 1_000)
"""How many records of a snapshot are one batch: one of these at each node."""
_SHUT_DOWN: Final = "shut-down"


class FreeQuorum(KnownQuorum):
    """Nodes ``0`` to ``replicas - 1``, the last ``observers`` of which are no voters."""

    protocol = "snapshots"
    implemented = "kip-630-quorum"
    sets_clocks = True
    times = (10, 100, 1_000)

    # -- the nodes --------------------------------------------------------------------------------------------------

    def _set_up(self, constants: Mapping[str, int]) -> range:
        voters = constants["replicas"] - constants["observers"]
        if not 0 < voters <= _MAX_VOTERS:
            mend = f"give one to {_MAX_VOTERS} more than --observers"
            raise BadInput(f"a quorum of {voters} voters cannot be followed", "--replicas", mend)
        if constants["log_size"] > _MAX_RECORDS:
            raise BadInput("a snapshot cannot name so many records", "--log-size", f"give at most {_MAX_RECORDS}")
        self.voters = tuple(range(voters))
        self._offsets = range(constants["log_size"])
        self._epochs = range(constants["max_leader_epoch"] + 1)
        chosen = self.seed
        self._config = self._parts.quorum_config(
            self.voters,
            log=self._parts.log_config(segment_bytes=1 << 20 if chosen % 2 else 200),
            snapshot_minimum_records=constants["minimum_records"],
            max_replication_lag_ms=(0, 0, 2_000)[chosen % 3],
            fetch_max_bytes=(1, 160)[chosen // 2 % 2],
            snapshot_max_bytes=CHUNK,
            leader_change_record=False,
        )
        self._correlation = 0
        self._left: dict[int, dict[str, Value]] = {}
        """What can be seen of the nodes that are down."""
        self._said: list[RequestOutcome] = []
        self._was_in = -1
        """The epoch of the node whose timer fires."""
        self._pace = Workload(chosen)
        self._weighed: dict[Hashable, dict[int, tuple[tuple[EnabledEvent, ...], tuple[EnabledEvent, ...]]]] = {}
        """By mood of the pace: what is offered, as it is and with how likely it is."""
        self._offered: dict[Hashable, tuple[EnabledEvent, ...]] = {}
        """By all that decides what may be asked of a node: what is offered there."""
        self._cells: dict[int, dict[str, Value]] = {}
        """The cells of each node that is up."""
        self._happened = 0
        return range(constants["replicas"])

    def _begin(self, node: int, first_correlation: int) -> QuorumNode:
        # A snapshot's bytes may differ from node to node, and its content may not.
        real = self._parts.key_value_machine(batch_records=_IN_A_BATCH[(self.seed + node) % len(_IN_A_BATCH)])
        machine = self._machines[node] = BothMachines(real)
        self._holds.pop(node, None)
        return self._parts.quorum_node(
            node,
            self.store.files(node),
            self.wire(),
            self.clock.at(node),
            machine,
            self._config,
            seed=self.seed,
            first_correlation=first_correlation,
        )

    def _receiver(self, event: Event) -> QuorumNode | None:
        return None if event.node is None or event.node in self.down else self.node(event.node)

    def _is_lost(self, node: int) -> bool:
        return self.node(node).failure is not None

    # -- what may happen --------------------------------------------------------------------------------------------

    def _timers(self, node: int) -> Iterable[Key]:
        """Those that are set; of the election only once it has run off."""
        due = self._due(node)
        for key in self.node(node).timers.keys():  # noqa: SIM118 - it is no dict
            if key != ELECTION or key in due:
                yield key

    def _due(self, node: int) -> list[Key]:
        """Those that have run off, in order, but for an election in an epoch that the model does not have."""
        timers, now = self.node(node).timers, self.clock.now()
        first = timers.deadline()
        if first is None or first > now:
            return []
        deadlines = [(timers.get(key), key) for key in timers.keys()]  # noqa: SIM118 - it is no dict
        due = sorted([(at, key) for at, key in deadlines if at is not None and at <= now])
        last = bool(due) and node in self.voters and self.node(node).epoch >= self._epochs[-1]
        return [key for _, key in due if key != ELECTION or not last]

    def _is_due(self, node: Node) -> bool:
        return bool(self._due(node.address))

    def _fire(self, event: Event) -> None:
        """A timer that fires is set no more; the next snapshot of a node has a length of its own."""
        assert event.node is not None
        node = self.node(event.node)
        self._was_in = node.epoch
        told = f"{self.seed} {event.node} {node.replica.applied}"
        most = self.constants["max_chunks"]
        self._machines[event.node].counting.chunks = max(1, (most, most, most - 1, 1)[zlib.crc32(told.encode()) % 4])
        for key in self._due(event.node) if event.name == DUE else (cast(Key, (event.name,)),):
            node.timers.cancel(key)
            node.fire(key)

    def pending(self) -> Sequence[EnabledEvent]:
        """What may happen, each with how likely it is now, and of answers what they bring."""
        bodies = {flight.number: flight.envelope.body for flight in self.network.in_flight()}
        voting = any(isinstance(body, VoteRequest | VoteResponse) for body in bodies.values())
        there = {number: node for number, node in self._up() if number not in self.cut}
        course = course_of(self._happened, there, self.voters, self._ends, voting=voting)
        weight = self._pace.at(course)
        weighed = self._weighed.setdefault(self._pace.mood(course), {})
        found: list[EnabledEvent] = []
        for group in self._groups():
            if not isinstance(group, tuple):
                found += [
                    EnabledEvent(
                        each.event,
                        each.message,
                        each.due,
                        weight(each.event),
                        "" if each.message is None else brings(bodies[each.message], self._receiver(each.event)),
                    )
                    for each in group
                ]
                continue
            known = weighed.get(id(group))
            # Whoever is kept here has its number to itself.
            if known is None or known[0] is not group:
                heavy = tuple(EnabledEvent(each.event, None, each.due, weight(each.event)) for each in group)
                known = weighed[id(group)] = group, heavy
            found += known[1]
        return found

    def _offers(self) -> Iterable[tuple[EnabledEvent, ...]]:
        resigns = self.clock.now() // self.times[0] % _SELDOM == 0
        for number, node in self._up():
            replica, cut = node.replica, number in self.cut
            latest = replica.snapshots.latest
            decides = (
                (number, cut, node.is_leader, node.leader_id, min(node.epoch, 1), resigns),
                (replica.begin, replica.end, replica.high_watermark, latest and latest.end_offset),
            )
            found = self._offered.get(decides)
            if found is None:
                found = self._offered[decides] = tuple(map(offered, self._calls_at(number, node, resigns=resigns)))
            yield found

    def _calls(self) -> Iterator[Event]:
        return (each.event for group in self._offers() for each in group)

    def _calls_at(self, number: int, node: QuorumNode, *, resigns: bool) -> Iterator[Event]:
        if node.is_leader:
            replica = node.replica
            for name, records in _BATCHES.items():
                if replica.end + records <= self.constants["log_size"]:
                    yield Event(EventKind.CALL, name, number)
            if resigns:
                yield Event(EventKind.OPERATE, "resign", number)
            if number not in self.cut:
                for lbo in sorted({replica.begin + 1, replica.snapshots.latest_end, replica.high_watermark}):
                    if replica.begin < lbo <= self.constants["log_size"]:
                        yield Event(EventKind.CALL, "delete-records", number, args=(("lbo", lbo),))
        yield Event(EventKind.CRASH, _SHUT_DOWN, number)
        if number not in self.cut:
            yield from probes(number, node, self.voters)

    def unsettled(self, but: int | None) -> str | None:
        """What has not come of snapshots and the LBO at nodes that are well."""
        well = {
            number: node for number, node in self._up() if number != but and number not in self.cut | self.bad.keys()
        }
        return not_come(well, self.constants["minimum_records"])

    # -- what happens -----------------------------------------------------------------------------------------------

    def step(self, event: Event) -> StepResult:
        """One event. Raises what a node does, ``WrongAnswer`` where a probe is not refused, and ``WrongState``."""
        self._said = []
        self._happened += 1
        closed: dict[str, Value] = {}
        if event.what is EventKind.CRASH and event.name == _SHUT_DOWN and event.node is not None:
            closed = self._shut_down(self.node(event.node))
        brought = self._flight(event).envelope.body if event.what in (EventKind.DELIVER, EventKind.REPEAT) else None
        log = self.node(event.node).replica if event.node is not None and event.node in self.nodes else None
        begin, end = (0, 0) if log is None else (log.begin, log.end)
        happened = super().step(event)
        self._touched |= happened.crashed | happened.started
        if event.node is not None:
            self._touched.add(event.node)
        if self.arrived is not None:
            self._touched.add(self.arrived.destination)
        for number in happened.started:
            self._left.pop(number, None)
        for number in happened.crashed:
            if number in self.nodes:
                # Its disk has failed it, and it writes no more: what is left there is as well decided now.
                self.store.crash(number, self._crash_seed(event))
            self._left[number] = ballot_of(self.store.files(number), number) | closed
            if number == event.node and isinstance(brought, QuorumFetchResponse) and brought.records:
                # Of what it has appended no more will be found than is there now. It may have appended more, and lost
                # it: that makes a difference only where an LBO came after it.
                written = max((offset + 1 for offset, _, _ in self._remains.read(self.store.files(number))), default=0)
                if written > end or brought.log_begin_offset <= begin:
                    self._left[number][f"leo[{number}]"] = max(end, written)
            self._lasting.pop(number, None)
        self._note()
        if event.node is not None and event.node not in self.down:
            self._look_for_losses(event.node, self.node(event.node))
        return replace(happened, judged=(*happened.judged, *self._said))

    def _call(self, event: Event) -> Sequence[ModelStep]:
        assert event.node is not None
        number, node = event.node, self.node(event.node)
        if event.what is EventKind.PROBE:
            probe(event, node, self.voters, lambda body: self._ask(number, body))
            return ()
        leads = {"leader": number}
        if event.name in _BATCHES:
            return self._append(number, node, _BATCHES[event.name])
        match event.name:
            case "delete-records":
                step = ("delete_records", {**leads, "lbo": int(event.arg("lbo"))})
                answer = self._ask(number, DeleteRecordsRequest(PARTITION, int(event.arg("lbo"))))
                check_again(answer, int(event.arg("lbo")), node.replica.snapshots.latest_end)
                self._said.append(RequestOutcome((step,), error_name(answer)))
                return (step,)
            case _:
                node.resign()
                return (("resign", leads),)

    def _append(self, number: int, node: QuorumNode, records: int) -> Sequence[ModelStep]:
        epoch, end = node.epoch, node.replica.end
        sent = self._appended.append(epoch, end, records, self._epoch_before(number, end))
        self._batches[epoch, end] = records
        step = ("client_append", {"leader": number})
        try:
            first = node.append(sent)
        except Exception:
            if node.failure is None:
                raise
            return (step,)
        self._awaited += ((number, epoch, first + each) for each in range(records))
        self._said.append(RequestOutcome((step,), None))
        return (step,)

    def _shut_down(self, node: QuorumNode) -> dict[str, Value]:
        """Let a process end by itself; on a disk that fails it ends as it can. Gives what it has come to."""
        number, led, log = node.address, node.is_leader, node.replica.log
        try:
            node.close()
        except Exception:
            if number not in self.bad:
                raise
            return {}
        if log.recovery_point < log.end:
            raise WrongState(f"{number} was shut down in order, and has synced {log.recovery_point} of {log.end}")
        found: dict[str, Value] = {f"synced[{number}]": log.end}
        return found | {f"leader[{number}]": None} if led else found

    def _ask(self, number: int, body: QuorumRequest) -> QuorumResponse:
        """A client's request, which is answered at once."""
        self._correlation -= 1
        asked = Envelope(CLIENT, number, self._correlation, body)
        self.node(number).receive(asked)
        (answer,) = self.network.in_flight(source=number, destination=CLIENT)
        self.network.drop(answer)
        node, said = self.node(number), cast(QuorumResponse, answer.envelope.body)
        has = node.epoch, node.leader_id, node.replica.begin
        begins = said.low_watermark if isinstance(said, DeleteRecordsResponse) else has[2]
        if node.failure is None and (said.epoch, said.leader, begins) != has:
            raise WrongState(f"{number} answers {said}, and its epoch, leader and LBO are {has}")
        return said

    def _took(self, event: Event) -> Sequence[ModelStep]:
        node = event.node
        if node is None or event.what not in _ACTS:
            return ()
        if event.what is EventKind.CRASH:
            return (("resign", {"leader": node}), ("sync", {"replica": node})) if event.name == _SHUT_DOWN else ()
        steps: list[ModelStep] = [("sync", {"replica": node})]
        if event.what is EventKind.CALL and event.crash is not None:
            # Whoever asked for it got no answer, and yet it may have happened.
            if event.name in _BATCHES:
                steps.append(("client_append", {"leader": node}))
            else:
                steps.append(("delete_records", {"leader": node, "lbo": int(event.arg("lbo"))}))
        if event.what in (EventKind.TIMER, EventKind.SYNC):
            steps += ((step, {name: node}) for key, (step, name) in TIMED.items() if event.name in (key[0], DUE))
            if event.name in (ELECTION[0], DUE) and self._was_in < self._epochs[-1]:
                steps.append(("stand", {"replica": node, "epoch": self._was_in + 1}))
        return steps

    # -- messages ---------------------------------------------------------------------------------------------------

    def _steps(self, envelope: Envelope, asked: Envelope | None) -> tuple[ModelStep, ...]:
        self._overhear(envelope.source, envelope.body)
        return steps_of(envelope, asked)

    def _says(self, envelope: Envelope, asked: Envelope | None) -> tuple[SenderClaim, ...]:  # noqa: ARG002 - it says so itself
        return says_of(envelope)

    def _judged(self, request: Envelope, answer: Envelope) -> Iterable[RequestOutcome]:
        if request.source >= 0:
            self._check_answer(request, answer)
            steps = decided(request.body, request.source, request.destination)
            yield RequestOutcome(steps, error_name(cast(QuorumResponse, answer.body)))

    def _check_answer(self, request: Envelope, answer: Envelope) -> None:
        """Whoever answers names its epoch, who leads it, and what it was asked, also as it refuses.

        By that the asker finds the leader, and knows what the answer is of. Whoever is offline names neither: its disk
        may hold a later epoch than it knows of. Raises WrongState.
        """
        number, said = request.destination, cast(QuorumResponse, answer.body)
        told: tuple[object, ...] = said.epoch, said.leader
        node = None if number in self.down else self.node(number)
        if node is None or node.failure is not None:
            if said.error is ErrorCode.KAFKA_STORAGE_ERROR and told != (NO_EPOCH, NO_LEADER):
                raise WrongState(f"{number} is offline, and answers {kind_of(request)} with epoch and leader {told}")
            return
        has: tuple[object, ...] = node.epoch, node.leader_id
        match request.body, said:
            case QuorumFetchRequest() as asked, QuorumFetchResponse():
                told = (*told, said.fetch_offset, said.last_fetched_epoch)
                has = (*has, asked.fetch_offset, asked.last_fetched_epoch)
            case FetchSnapshotRequest() as wanted, FetchSnapshotResponse():
                told, has = (*told, said.snapshot, said.position), (*has, wanted.snapshot, wanted.position)
        if told != has:
            what = f"{kind_of(request)} of {request.source} with {said.error.name}, {told}"
            raise WrongState(f"{number} answers {what}, and its epoch, its leader and what was asked are {has}")

    # -- looking ----------------------------------------------------------------------------------------------------

    def observe(self) -> Mapping[str, Value]:
        """All cells of the nodes that are up, what is left of the others, and what is known of the whole."""
        cells: dict[str, Value] = {"voters": self.voters}
        for epoch in self._epochs:
            cells[f"epoch_leader[{epoch}]"] = self._elected.get(epoch)
        for offset in self._offsets:
            cells[f"committed[{offset}]"] = self._committed.get(offset, -1)
            cells[f"told[{offset}]"] = self._told.get(offset, -1)
        for left in self._left.values():
            cells |= left
        for number, node in self._up():
            if number in self._touched:
                self._cells[number] = self._look(number, node)
            cells |= self._cells[number]
        self._touched.clear()
        return cells

    def _look(self, number: int, node: QuorumNode) -> dict[str, Value]:
        found = snapshots_in(self.store.files(number), node, self._checkpoints)
        return cells_of(node, self.replicas, self._offsets, self._logs[number], found)
