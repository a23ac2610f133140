"""The controller of freely running brokers: a process that fails like theirs, and what operators ask of it.

Events mean it by naming no node. It is no replica, so its state is shown even while it is down: what its checkpoint
holds then. The next controller begins with that, in a controller epoch of its own, while requests of the one before may
still be on their way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, cast
from uuid import UUID

from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONTROLLER,
    NO_LEADER,
    Envelope,
    LeaderAndIsrResponse,
    StopReplicaResponse,
    TopicPartition,
)
from ....impl.zk_controller import CHECKPOINT, Controller, PartitionState
from ....impl.zk_controller.store import Contents, Deleted, read_store
from ...adapters.endpoints import Node
from ...adapters.events import kind_of
from ...checks.crash_image import CopiedNodes
from ...checks.file_inventory import AccountedNodes
from ...checks.timers import TimedNodes
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent, RequestOutcome, StepResult
from .response_rules import WrongAnswer
from .topic_deletion import CREATE_TOPIC, DELETE_TOPIC, Topics, is_of_topic, request_name, stop_name

PARTITION: Final = TopicPartition("t", 0)

RESEND: Final = "resend"
"""The controller's timer: it sends again what nobody has answered."""
RETRY_MS: Final = 300
_SPARE: Final = 3
"""So many leader epochs are left to bring a leader about in the end."""
_CODES: Final = {"NotEligible": "ELIGIBLE_LEADERS_NOT_AVAILABLE", "ElectionNotNeeded": None, "NotInIsr": None}
"""How the controller refuses an operator, as the binding has it."""


class ControlledNodes(CopiedNodes, AccountedNodes, TimedNodes):
    """Nodes with a controller."""

    unnumbered = CONTROLLER
    _topics: Topics

    # -- the process ------------------------------------------------------------------------------------------------

    def _start_controller(self, replicas: Sequence[int]) -> None:
        self._incarnations = dict.fromkeys(replicas, 0)
        self._contents = Contents()
        """What the controller goes by, or what its checkpoint holds while it is down."""
        self._open: dict[tuple[int, str], tuple[int, int]] = {}
        """By broker and kind: the controller's request that is sent until it is answered: its correlation, and when."""
        self._stored = -1
        """The partition epoch that is known to be stored."""
        self._controllers = 0
        """The latest controller epoch."""
        self._resumes = True
        """Whether the controller has begun, and was not woken yet: it sends what nobody knows to be answered."""
        self._waited = self._open.copy()
        """The same as ``_open``, before this event."""
        self._start(CONTROLLER)

    def _begin_controller(self) -> Node:
        made = self._parts.controller(
            self.wire(),
            self.clock.at(CONTROLLER),
            self.store.files(CONTROLLER),
            retry=RETRY_MS,
            new_id=self._topics.new_id,
        )
        if made.controller_epoch <= self._controllers:
            raise WrongAnswer(f"a new controller is in epoch {made.controller_epoch}, as the one before it")
        self._controllers = made.controller_epoch
        self._open.clear()
        self._resumes = True
        return cast(Node, made)

    @property
    def controller(self) -> Controller | None:
        """The controller, None while it is down."""
        return None if CONTROLLER in self.down else cast(Controller, self.nodes[CONTROLLER])

    @property
    def quorum(self) -> PartitionState:
        """What the controller has of the partition; while it is down, what the next one will begin with.

        While the topic is deleted that of one which nobody was elected for.
        """
        found = self._contents.partitions.get(PARTITION)
        return found if found is not None else PartitionState.unled(self.replicas, frozenset())

    def _look_at_controller(self, event: Event | None = None) -> None:
        """Take note of its state, after an event. Raises WrongAnswer for one that no controller may come to."""
        controller, before = self.controller, self._contents
        if controller is None:
            self._contents = read_store(self.store.files(CONTROLLER), CHECKPOINT)
        else:
            partitions = {name: _copied(state) for name, state in controller.partitions.items()}
            known = dict(controller.brokers), partitions, dict(controller.deleted)
            self._contents = Contents(controller.controller_epoch, *known)
        old, new = before.partitions.get(PARTITION), self._contents.partitions.get(PARTITION)
        if old is not None and new is not None and old.topic_id == new.topic_id:
            shrinks = event is not None and event.what is EventKind.OPERATE and ("what", "shrink") in event.args
            check_partition(old, new, shrinks=shrinks)

    def _is_stored(self, partition_epoch: int) -> None:
        """Whatever the controller tells of is stored before, or the next one would begin with less. WrongAnswer."""
        if partition_epoch > self._stored:
            stored = read_store(self.store.files(CONTROLLER), CHECKPOINT).partitions.get(PARTITION)
            self._stored = -1 if stored is None else stored.partition_epoch
            if partition_epoch > self._stored:
                raise WrongAnswer(f"partition epoch {partition_epoch} is told of, and {self._stored} is stored")

    def _is_stopped_for_good(self, topic_id: UUID, broker: int) -> None:
        """A broker is told to stop a replica: the next controller would begin without it, and tell so. WrongAnswer."""
        stored = read_store(self.store.files(CONTROLLER), CHECKPOINT)
        there = stored.partitions.get(PARTITION)
        if there is not None and there.topic_id == topic_id:
            raise WrongAnswer(f"broker {broker} is to remove its replica of topic {topic_id}, which is stored still")
        if broker not in stored.deleted.get(Deleted(PARTITION, topic_id), ()):
            raise WrongAnswer(f"broker {broker} is to remove its replica of topic {topic_id}, and that is not stored")

    def _answered(self, arrived: Envelope, before: PartitionState) -> None:
        """An answer has reached the controller; unless it is one to try again on, it ends its request.

        ``before``: what it had of the partition. Raises WrongAnswer for what it does about a replica that has failed.
        """
        body: Any = arrived.body
        asked = self._requested.get((CONTROLLER, arrived.correlation))
        name = kind_of(arrived).removesuffix("Response") if asked is None else request_name(asked[1])
        key = arrived.source, name
        failed = body.error is ErrorCode.KAFKA_STORAGE_ERROR and isinstance(body, LeaderAndIsrResponse)
        waits = self._waited.get(key, (-1, 0))[0] == arrived.correlation
        other = isinstance(body, StopReplicaResponse) and body.error is ErrorCode.INCONSISTENT_TOPIC_ID
        if waits and (failed or other or not body.error.retriable):
            if self._open.get(key) == self._waited[key]:
                del self._open[key]  # else it was told anew in this event
            if failed:
                after = self.quorum
                check_failed(before, after, arrived.source)
                if after != before and after.leader != NO_LEADER and self._contents.brokers[after.leader].online:
                    told = {(after.leader, name) for name in ("LeaderAndIsr", "OfflineReplicas")}
                    if told.isdisjoint(self._open):
                        raise WrongAnswer(f"replica {arrived.source} has failed, and its leader is not told")

    def _sent_again(self, sent: Sequence[Envelope]) -> None:
        """The controller was woken: all that is due was sent again, and nothing that was answered. WrongAnswer."""
        again = {(each.destination, request_name(each)) for each in sent if each.source == CONTROLLER}
        answered = sorted(again - self._waited.keys()) if not self._resumes else []
        self._resumes = False
        for broker, name in answered:
            raise WrongAnswer(f"{name} to {broker} is answered, and sent again")
        for (broker, name), (_, sent_at) in self._open.items():
            if sent_at + RETRY_MS <= self.clock.now():
                raise WrongAnswer(f"{name} to {broker} is not answered, and not sent again")

    def _is_told_of_all(self, broker: int, *, told: bool) -> None:
        """A broker that is back knows nothing, and is told of all that it is to know. Raises WrongAnswer."""
        there = set() if self._topics.current is None else {"UpdateMetadata"}
        wanted = there | ({"LeaderAndIsr"} if self._leads_somewhere() else set())
        gone = self._contents.deleted.items()
        wanted |= {stop_name(topic_id) for (_, topic_id), brokers in gone if broker in brokers}
        missing = sorted(name for name in wanted if (broker, name) not in self._open) if told else []
        if missing:
            raise WrongAnswer(f"broker {broker} is back, and is not sent {', '.join(missing)}")

    def _are_told_of_deletion(self, gone: PartitionState) -> None:
        """Every broker forgets who led a topic that is deleted, and who has a replica removes it. WrongAnswer."""
        for broker, known in self._contents.brokers.items():
            wanted = {f"UpdateMetadata {gone.topic_id}"}
            wanted |= {stop_name(gone.topic_id)} if broker in gone.replicas else set()
            missing = sorted(name for name in wanted if known.online and (broker, name) not in self._open)
            if missing:
                raise WrongAnswer(f"a topic is deleted, and broker {broker} is not sent {', '.join(missing)}")

    def _leads_somewhere(self) -> bool:
        """Whether the partition has had a leader epoch."""
        controller = self.controller
        return controller is not None and self._topics.current is not None and self.quorum.leader_epoch >= 0

    def _gave_up(self) -> bool:
        """Whether the controller has stopped by itself: its disk failed, or a broker knows a later one."""
        controller = self.controller
        return controller is not None and controller.stopped is not None

    def _lose(self, address: int, event: Event) -> None:
        if address == CONTROLLER:
            self._stop(address, self._crash_seed(event))  # its process ends: what its disk has is settled
        else:
            super()._lose(address, event)

    def step(self, event: Event) -> StepResult:
        """One event."""
        self._waited = self._open.copy()
        return super().step(event)

    # -- what it is asked for ---------------------------------------------------------------------------------------

    def pending(self) -> Sequence[EnabledEvent]:
        """What may happen to nodes and clients, and what the controller sends again."""
        up = [node for node in self.replicas if node not in self.down]
        urgent = set(self._urgent(up))
        found = super().pending()
        if urgent:
            found = [EnabledEvent(each.event, due=True) if each.event in urgent else each for each in found]
        deadline = None if self.controller is None else self.controller.deadline()
        due = deadline is not None and deadline <= self.clock.now()
        return [*found, EnabledEvent(Event(EventKind.TIMER, RESEND), due=True)] if due else found

    def _fire(self, event: Event) -> None:
        if event.name == RESEND:
            self.nodes[CONTROLLER].wake()
        else:
            super()._fire(event)

    def _operations(self, up: Sequence[int]) -> Iterator[Event]:
        """What operators may want, while there are leader epochs to spare."""
        if self.controller is None:
            return
        quorum, left = self.quorum, self._epochs_left()
        yield from self._urgent(up)
        if self._topics.current is None:
            return
        unregistered = any(map(self._is_unregistered, self.replicas))
        yield from self._topics.calls(quorum, all_registered=not unregistered)
        if left <= _SPARE:
            return
        for node in self.replicas:
            if quorum.leader == NO_LEADER and node in quorum.isr:
                yield elect(node)
            # Who is fit to lead is elected as often as all else is asked for: logs part where the leader changes.
            fit = node in quorum.isr - quorum.offline - {quorum.leader}
            yield operation("elect", node, "elect" if fit else "operate")
            yield operation("shrink", node)
            if node not in quorum.isr or quorum.isr - {quorum.leader} == {node} != {quorum.leader}:
                # The model has no election that leaves several members out; whoever is outside is refused.
                yield operation("elect_unclean", node)
            if node not in quorum.offline:
                yield operation("mark_offline", node)
            if node in up and not self._is_unregistered(node):
                yield operation("register", node)
        yield operation("prefer", quorum.replicas[0])

    def _urgent(self, up: Sequence[int]) -> Iterator[Event]:
        """What whoever watches the brokers does as soon as it can: tell of those that are there, and have one lead."""
        if self.controller is None:
            return
        quorum, left = self.quorum, self._epochs_left()
        if self._topics.current is None:
            yield CREATE_TOPIC
            yield from (operation("register", node) for node in up if self._is_unregistered(node))
            return
        for node in up:
            # One that was restarted unnoticed fails first, and may lead again after.
            if self._is_unregistered(node):
                if left > 1:
                    yield operation("register", node)
            elif node in quorum.offline and node not in self.bad and left > 0:
                # A replica whose disk has failed is offline, whatever its broker is, until that broker registers anew.
                online = self.controller.brokers[node].online
                yield operation("register" if online else "mark_online", node)
        if quorum.leader == NO_LEADER and left > 0:
            able = [node for node in up if node in quorum.isr and node not in quorum.offline]
            yield from (elect(node) for node in able[:1])

    def _epochs_left(self) -> int:
        return self.constants["max_leader_epoch"] - self.quorum.leader_epoch

    def _is_unregistered(self, node: int) -> bool:
        return self._contents.brokers[node].incarnation < self._incarnations[node]

    def _change_topics(self, event: Event) -> None:
        """The topic is deleted, or made anew under its name."""
        controller = cast(Controller, self.nodes[CONTROLLER])
        try:
            if event == DELETE_TOPIC:
                gone = self._contents.partitions[PARTITION]
                controller.delete_topic(PARTITION.topic)
                # What was said of it is over.
                self._open = {key: number for key, number in self._open.items() if not is_of_topic(key[1])}
                self._are_told_of_deletion(gone)
            else:
                controller.create_partition(PARTITION, list(self.replicas), elect=False)
        except self._parts.controller_error:
            if controller.stopped is None:
                raise

    def _operate(self, what: str, replica: int) -> None:
        """An operator, or whatever watches brokers, speaks to the controller."""
        controller = cast(Controller, self.nodes[CONTROLLER])
        if what in ("mark_offline", "mark_online", "register"):
            # What it was told before is over: it is told of all anew, or of nothing.
            self._open = {key: number for key, number in self._open.items() if key[0] != replica}
        steps: tuple[ModelStep, ...] = ()
        error: str | None = None
        try:
            match what:
                case "elect":
                    steps = (("controller_elect_leader", {"new_leader": replica}),)
                    controller.elect_leader(PARTITION, replica)
                case "shrink":
                    steps = (("controller_shrink_isr", {"replica": replica}),)
                    controller.shrink_isr(PARTITION, replica)
                case "elect_unclean":
                    controller.elect_unclean(PARTITION, replica)
                case "mark_offline":
                    controller.mark_offline(replica)
                case "mark_online":
                    back = not controller.brokers[replica].online
                    controller.mark_online(replica)
                    self._is_told_of_all(replica, told=back)
                case "register":
                    controller.broker_started(replica, self._incarnations[replica])
                    self._is_told_of_all(replica, told=True)
                case "prefer":
                    controller.elect_preferred(PARTITION)
        except self._parts.controller_error as refused:
            if controller.stopped is not None:
                return  # whether it was done, nobody knows before the next controller
            error = _CODES[type(refused).__name__]
        # That a replica is marked offline is nothing that the model knows of.
        if steps and not controller.partition(PARTITION).offline:
            self.decided.append(RequestOutcome(steps, error))


def _copied(state: PartitionState) -> PartitionState:
    """The same as one of our own classes: a copy of ``impl`` with a defect has its own."""
    leader = state.leader, state.leader_epoch, state.isr
    return PartitionState(state.replicas, *leader, state.partition_epoch, state.offline, state.topic_id)


def check_failed(before: PartitionState, after: PartitionState, replica: int) -> None:
    """What comes of a replica whose broker is up, and cannot use its log. Raises WrongAnswer.

    It is offline from then on, as KIP-112 has it, and out of the ISR unless it is the last member. Where it led, the
    first member of the ISR that is not offline leads, in the order of the replicas, and nobody where there is none.
    All else stays as it was: a new leader epoch begins with another leader, or another ISR.
    """
    offline = before.offline | {replica}
    isr = before.isr if before.isr == {replica} else before.isr - {replica}
    leader = before.leader
    if leader == replica:
        able = [each for each in before.replicas if each in isr - offline]
        leader, isr = (able[0], isr - offline) if able else (NO_LEADER, isr)
    epoch = before.leader_epoch + ((leader, isr) != (before.leader, before.isr))
    wanted = leader, epoch, isr, offline
    if (after.leader, after.leader_epoch, after.isr, after.offline) != wanted:
        told = f"leader {leader} in epoch {epoch}, ISR {sorted(isr)}, offline {sorted(offline)}"
        raise WrongAnswer(f"replica {replica} has failed, and the partition is {after}, not with {told}")


def check_partition(old: PartitionState, new: PartitionState, *, shrinks: bool = False) -> None:
    """Raises WrongAnswer for a state that may not follow another.

    Each change raises the partition epoch, by which leaders and marks tell what is newer (KIP-497's ``zkVersion``); and
    whoever is marked offline neither begins to lead nor joins the ISR (KIP-320, "Leader Fetch Handling"). The last
    member stays in the ISR: else nobody could be elected cleanly ever again. ``shrinks``: an operator took it out.
    """
    if new == old:
        return
    if new.partition_epoch <= old.partition_epoch:
        raise WrongAnswer(f"the partition changed in partition epoch {new.partition_epoch}, which was over")
    if new.leader != NO_LEADER and new.leader in new.offline:
        raise WrongAnswer(f"replica {new.leader} leads, and is marked offline")
    if not new.isr and old.isr and not shrinks:
        raise WrongAnswer(f"replica {min(old.isr)} was the last of the ISR, and is taken out")
    joined = (new.isr - old.isr) & new.offline
    if joined:
        raise WrongAnswer(f"replica {min(joined)} joins the ISR, and is marked offline")


@lru_cache(4_096)
def elect(replica: int) -> Event:
    """An election where nobody leads: no disruption."""
    return Event(EventKind.CALL, "elect", args=(("replica", replica),))


@lru_cache(4_096)
def operation(what: str, replica: int, name: str = "operate") -> Event:
    """One of few kinds of call: the leader epochs that they use up are rare beside what happens in one."""
    return Event(EventKind.OPERATE, name, args=(("replica", replica), ("what", what)))
