"""The brokers that a running consumer reads from, their controller, the producer and the coordinator's process.

Everything is real but time, network and disks. A record is known by its offset, its leader epoch and what is in it: no
two that were ever appended have the same. The coordinator has a node of its own, the last, which holds no replica.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, cast

from ....impl.files.simulated import SimulatedFiles
from ....impl.log.batch import encode_batch
from ....impl.log.records import Record, StoredRecord
from ....impl.offsets import OFFSETS_TOPIC, GroupCoordinator
from ....impl.replica.broker import Broker
from ....impl.replica.partition import PartitionState, Role
from ....impl.replica.timers import Key
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    FIRST_CLIENT,
    NO_EPOCH,
    NO_LEADER,
    NO_OFFSET,
    Envelope,
    FetchResponse,
    LeaderAndIsrResponse,
    OffsetFetchRequest,
    ProduceRequest,
    TopicPartition,
)
from ....traces.format import Value
from ...adapters.cluster import PARTITION, shown_leader
from ...adapters.endpoints import Mailbox, Node
from ...adapters.events import MENDED, is_response, kind_of
from ...adapters.nodes import DUE
from ...adapters.stores import SegmentReader
from ...adapters.topic_ids import topic_ids
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent, StepResult
from .binding_client import coordinator_of
from .durability import in_order
from .stale_leader import FROM_CONTROLLER, SeveredNodes
from .workload import Workload

PRODUCER: Final = FIRST_CLIENT
READER: Final = FIRST_CLIENT - 1
NOBODY: Final = FIRST_CLIENT - 2
"""An address at which nobody is."""
GROUP: Final = "g"
BESIDE: Final = TopicPartition(PARTITION.topic, 1)
"""Another partition, that the consumer reads in some runs."""
ELSEWHERE: Final = TopicPartition(PARTITION.topic, 2)
"""One of which the coordinator alone knows."""
LEADER, OFFLINE, TRUNCATING = Role.LEADER.value, Role.OFFLINE.value, Role.TRUNCATING.value
"""Roles are told apart by their names: those of a copy of ``impl`` are other objects."""
TIMEOUT_MS: Final = 150
_RETRY_MS: Final = 300
_LAG_MS: Final = 100
_UNBORN: Final = 2
"""So many batches may be on their way."""
_LARGEST_BATCH: Final = 2
_AT_ONCE: Final = 12
"""So many messages arrive at once in one event."""
_ELECTS: Final = frozenset({"elect", "elect_unclean"})
_SOON: Final = 8.0
"""How likely another is elected, beside any other call, where the leader cannot be reached."""
_WHEN_IT_IS_TIME: Final = frozenset(
    {EventKind.CRASH, EventKind.DISK, EventKind.CUT, EventKind.HEAL, EventKind.TIMER, EventKind.TIME}
)
"""What happens only when the run's pace has it."""
_EPOCHS_LEFT: Final = 2
"""Who crashes needs two leader epochs to be of use again: with fewer left no broker does."""

Row = tuple[int, int, bytes]
"""Offset, leader epoch, and what a producer wrote."""
Triple = tuple[int, int, int]
"""Offset, epoch and serving epoch of a commit."""
NO_COMMIT: Final[Triple] = (NO_OFFSET, NO_EPOCH, NO_EPOCH)


class RunningPartition(SeveredNodes):
    """What a consumer talks to. The controller never fails; ways to it may."""

    protocol = "truncation"
    implemented = "kip-320-client"
    sets_clocks = True
    times = (1, 60, TIMEOUT_MS + 1, _RETRY_MS + 1)
    partitions = (PARTITION, BESIDE, ELSEWHERE)

    # -- the start --------------------------------------------------------------------------------------------------

    def _set_up(self, constants: Mapping[str, int]) -> range:
        self.chance = chance = random.Random(self.seed)  # noqa: S311 - repeatable on purpose
        self._config = self._parts.broker_config(
            log=self._parts.log_config(segment_bytes=chance.choice((100, 200, 1 << 20))),
            replica_lag_time_max_ms=_LAG_MS,
            isr_interval_ms=_LAG_MS // 2,
            replica_fetch_max_bytes=chance.choice((1, 1 << 20)),
            request_timeout_ms=2 * _LAG_MS,
            flush_each_append=chance.random() < 0.2,
        )
        # A commit does not fit into the smallest of the brokers' segments.
        self._coordinators = self._parts.broker_config(
            log=self._parts.log_config(segment_bytes=chance.choice((300, 1 << 20)))
        )
        self.pace = Workload(chance)
        self._acks = chance.choice((1, -1))
        self.brokers = range(constants["replicas"])
        self.coordinator = coordinator_of(constants)
        make, files, ids = self._parts.controller, SimulatedFiles(self.seed), topic_ids(self.seed)
        self.controller = make(self.network, self.clock, files, unclean=True, retry=_RETRY_MS, new_id=ids)
        self.network.attach(self.controller)
        self.network.attach(Mailbox(PRODUCER, lambda _answer: None))
        self._incarnations = dict.fromkeys(range(len(self.brokers) + 1), 0)
        self._correlation = 0
        self._batches = 0
        self.ids: dict[Row, int] = {}
        """The records that are, or were, in some log."""
        self._reader = SegmentReader(PARTITION, row_of, torn=True)
        self._states: dict[int, PartitionState | None] = {}
        """While it is named what may happen next, what the replicas go by: nothing changes in between."""
        self._cells: dict[int, dict[str, Value]] = {}
        self._leaders: list[tuple[int, int]] = []
        """Of each leader epoch, the leader and whether it was elected from outside of the ISR."""
        self._isr: frozenset[int] = frozenset()
        self.acknowledged = NO_COMMIT
        return range(len(self.brokers) + 1)

    def _begin(self, node: int, first_correlation: int) -> Node:
        self._incarnations[node] += 1
        clock = self.clock.at(node)
        config = self._coordinators if node == self.coordinator else self._config
        broker = self._parts.broker(
            node, self.store.files(node), self.wire(), clock, config, first_correlation=first_correlation
        )
        if node == self.coordinator:
            log = broker.directory.log(OFFSETS_TOPIC, 0)
            broker.coordinator = self._parts.coordinator(log, clock, known=self.partitions.__contains__)
        return broker

    def _settle(self) -> None:
        for node in self.brokers:
            self.controller.broker_started(node, self._incarnations[node])
        self.controller.create_partition(PARTITION, list(self.brokers), elect=False)
        for node in self.replicas:
            self._look(node)
        self._note_elections()

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new nodes, and a first leader."""
        begun = super().reset(constants, seed)
        elect = self.controller.elect_unclean if self.pace.alone else self.controller.elect_leader
        elect(PARTITION, seed % len(self.brokers))
        return StepResult((*begun.sent, *self._sent()), steps=tuple(self._note_elections()))

    # -- looking ----------------------------------------------------------------------------------------------------

    def _broker(self, node: int) -> Broker:
        return cast(Broker, self.nodes[node])

    def _state(self, node: int) -> PartitionState | None:
        """What a replica goes by; None before its broker was told of the partition."""
        if node in self._states:
            return self._states[node]
        partition = self._broker(node).partitions.get(PARTITION)
        return None if partition is None else partition.state()

    def _is_lost(self, node: int) -> bool:
        broker = self._broker(node)
        if node == self.coordinator:
            return broker.directory.log(OFFSETS_TOPIC, 0).offline is not None
        partition = broker.partitions.get(PARTITION)
        return partition is not None and partition.role.value == OFFLINE

    def _look(self, node: int) -> None:
        """Read a node's log past the node, and take its cells anew."""
        if node == self.coordinator:
            self._cells[node] = {} if node in self.down else self._commit_cells()
            return
        rows = in_order(self._reader.read(self.store.files(node)))
        for row in rows:
            self.ids.setdefault(row, len(self.ids))
        self._cells[node] = {} if node in self.down else self._replica_cells(node, rows)

    def _replica_cells(self, node: int, rows: Iterable[Row]) -> dict[str, Value]:
        state = self._state(node)
        leads = state is not None and state.role.value == LEADER
        start, end = (0, 0) if state is None else (state.log_start, state.end)
        cells: dict[str, Value] = {
            f"leo[{node}]": end,
            f"log_start[{node}]": start,
            f"leading[{node}]": int(leads),
            f"leader_epoch[{node}]": NO_EPOCH if state is None else state.leader_epoch,
            f"hw[{node}]": state.high_watermark if state is not None and leads else 0,
        }
        kept = {row[0]: row for row in rows if start <= row[0] < end}
        for offset in range(self.constants["log_size"]):
            found = kept.get(offset)
            cells[f"record_id[{node}][{offset}]"] = -1 if found is None else self.ids[found]
            cells[f"record_epoch[{node}][{offset}]"] = NO_EPOCH if found is None else found[1]
        return cells

    def _commit_cells(self) -> dict[str, Value]:
        """What the coordinator would answer now."""
        here = cast(GroupCoordinator, self._broker(self.coordinator).coordinator)
        answer = here.fetch(OffsetFetchRequest(GROUP, PARTITION))
        committed = (answer.offset, answer.leader_epoch, answer.serving_epoch)
        return {
            **_triple("committed", committed),
            **_triple("refused", NO_COMMIT),
            "found_again": int(committed != self.acknowledged),
        }

    def partition_cells(self) -> dict[str, Value]:
        """All that is not the consumer's, but of nodes that are down."""
        cells: dict[str, Value] = {
            "next_record_id": len(self.ids),
            "quorum_leader_epoch": len(self._leaders) - 1,
            **_triple("acknowledged", self.acknowledged),
        }
        for epoch in range(self.constants["max_leader_epoch"] + 1):
            leader, unclean = self._leaders[epoch] if epoch < len(self._leaders) else (NO_LEADER, 0)
            cells[f"epoch_leader[{epoch}]"] = shown_leader(leader)
            cells[f"epoch_unclean[{epoch}]"] = unclean
        for node in self.replicas:
            cells |= self._cells.get(node, {})
        return cells

    # -- what may happen --------------------------------------------------------------------------------------------

    def _timers(self, node: int) -> Iterable[Key]:
        """When a follower asks again is drawn, as long as there is anything to ask; all else goes by its time."""
        calm = self.pace.is_time("fetch", node)
        if node == self.coordinator or not calm or not self._is_behind(node):
            return ()
        return [key for key in self._broker(node).timers() if key[0] == "fetch"]

    def _is_behind(self, node: int) -> bool:
        """Whether a follower's next request would change anything."""
        state = self._state(node)
        if state is None or state.leader in self.down or state.leader not in self.brokers:
            return False
        leads = self._state(state.leader)
        if state.role.value == TRUNCATING or leads is None:
            return True
        waits = dict(leads.progress).get(node, -1) < leads.end or leads.log_start > state.log_start
        return state.end < leads.end or waits

    def pending(self) -> Sequence[EnabledEvent]:
        """What may happen: of failures those that the run has, by turns, and none that no leader epoch is left for."""
        self._states = {node: self._state(node) for node in self.brokers if node not in self.down}
        try:
            everything = super().pending()
            found = [
                each for each in everything if each.event.what not in _WHEN_IT_IS_TIME or self._may_fail(each.event)
            ]
            if self._has_zombie():
                found = [each.weighing(_SOON) if each.event.name in _ELECTS else each for each in found]
            elif self._severed is not None:
                weight = self._astray()
                found = [_weighed(each, weight(each.event)) for each in found]
            if not self.pace.peace:
                # Where all else is kept waiting, time passes.
                return found or [each for each in everything if each.event.what is EventKind.TIME]
            urgent = set(self._urgent())
        finally:
            self._states = {}
        return [replace(each, due=True) if each.event in urgent else each for each in found]

    def peace(self, *, on: bool) -> None:
        """While nothing goes wrong whoever has something to do is not kept waiting."""
        self.pace.peace = on

    def _urgent(self) -> Iterator[Event]:
        """What somebody does in the end who only wants to go on."""
        for event in self._operations():
            if event.name in ("register", "resend"):
                yield event

    def _may_fail(self, event: Event) -> bool:
        coordinates = event.node == self.coordinator
        match event.what:
            case EventKind.CRASH:
                kind = "coordinator" if coordinates else "broker"
            case EventKind.DISK if event.name != MENDED:
                if self.pace.fragile and not coordinates:
                    return False
                kind = "disk"
            case EventKind.HEAL:
                return event.name != FROM_CONTROLLER or self.pace.is_time("rejoin")
            case EventKind.CUT:
                kind = "zombie" if event.name == FROM_CONTROLLER else "cut"
            case EventKind.TIMER if event.name == DUE and event.node is not None:
                return self.pace.is_time("fetch", event.node)
            case EventKind.TIME:
                return self.pace.is_time("time") or (self._waits_a_little() and event.arg("ms") == 1)
            case _:
                return True
        left = self.constants["max_leader_epoch"] - self.controller.partition(PARTITION).leader_epoch
        affordable = coordinates or kind in ("cut", "zombie") or left > _EPOCHS_LEFT
        return kind in self.pace.failures and self.pace.is_time("failure") and affordable

    def _waits_a_little(self) -> bool:
        """Whether a client does nothing but wait for a moment."""
        return False

    def _astray(self) -> Callable[[Event], float]:
        """How likely each event is where a zombie may lead on, beside any other of its class."""
        return lambda _event: 1.0

    def _may_elect(self) -> bool:
        """Whether an election may come now, for what it would take from clients."""
        return True

    def _writings(self) -> Iterator[Event]:
        left = self.constants["max_records"] - len(self.ids)
        if len(self.network.in_flight(source=PRODUCER)) >= _UNBORN or not self.pace.is_time("produce"):
            left = 0
        for node in self.brokers:
            if node in self.down:
                continue
            state = self._state(node)
            leads = state is not None and state.role.value == LEADER
            room = min(left, _LARGEST_BATCH, self.constants["log_size"] - (0 if state is None else state.end))
            if leads:
                for records in range(1, room + 1):
                    yield call("produce", to=node, records=records)
            elif room > 0:
                yield Event(EventKind.PROBE, "produce", args=(("records", 1), ("to", node)))
            deletes = self.pace.retention and self.pace.is_time("delete")
            # Retention is each replica's own affair.
            begun = leads or (state is not None and state.role.value == "follower")
            if state is not None and begun and deletes and state.log_start < state.high_watermark:
                yield call("delete", at=node, offset=state.log_start + 1)
                yield call("delete", at=node, offset=state.high_watermark)

    def _operations(self) -> Iterator[Event]:
        quorum = self.controller.partition(PARTITION)
        left = self.constants["max_leader_epoch"] - quorum.leader_epoch
        deposed = self._has_zombie()
        for node in self.brokers:
            timely = deposed or (self.pace.is_time("election") and self._may_elect())
            if left > 0 and node not in quorum.offline and timely and not (deposed and node == quorum.leader):
                if node in quorum.isr and node != quorum.leader and "elect" in self.pace.elections:
                    yield call("elect", replica=node)
                yield call("elect_unclean", replica=node)
            # One that was restarted unnoticed fails first, and then leads or is left without an epoch of its own.
            restarted = self.controller.brokers[node].incarnation < self._incarnations[node]
            if restarted and node not in self.down and left > 1:
                yield call("register", replica=node)
        deadline = self.controller.deadline()
        if deadline is not None and deadline <= self.clock.now():
            yield call("resend")

    # -- what happens -----------------------------------------------------------------------------------------------

    def _produce(self, node: int, records: int) -> None:
        number = self._batches
        self._batches += records
        batch = [Record(f"{number + each}".encode(), timestamp=0) for each in range(records)]
        data = encode_batch(batch, producer_id=number, producer_epoch=0, base_sequence=0)
        self._produced(data)
        self._send_batch(node, data)

    def _produced(self, data: bytes) -> None:
        """A new batch is about to be sent."""

    def _send_batch(self, node: int, data: bytes) -> None:
        self._correlation += 1
        body = ProduceRequest(PARTITION, self._acks, data)
        self.network.send(Envelope(PRODUCER, node, self._correlation, body, "User:client"))

    def _delete(self, node: int, offset: int) -> None:
        """Retention, or DeleteRecords."""
        partition = self._broker(node).partitions[PARTITION]
        with partition.storage():
            partition.log.delete_before(offset)

    def _operate(self, event: Event) -> Sequence[ModelStep]:
        """What a producer, an operator, or a broker that has started asks for; the model's steps that it may be."""
        controller = self.controller
        match event.name:
            case "produce":
                self._produce(int(event.arg("to")), int(event.arg("records")))
            case "delete":
                node, offset = int(event.arg("at")), int(event.arg("offset"))
                self._delete(node, offset)
                return (("delete_records", {"replica": node, "offset": offset}),)
            case "elect":
                controller.elect_leader(PARTITION, int(event.arg("replica")))
            case "elect_unclean":
                controller.elect_unclean(PARTITION, int(event.arg("replica")))
            case "register":
                node = int(event.arg("replica"))
                controller.broker_started(node, self._incarnations[node])
            case "resend":
                controller.wake()
        return ()

    def _took(self, event: Event) -> Sequence[ModelStep]:
        self.pace.after(event)
        touched = {event.node} if event.node is not None else set[int]()
        if event.name == "delete":
            touched.add(int(event.arg("at")))
        steps = self._let_arrive(touched) + self._note_elections()
        if event.what is EventKind.START and event.node == self.coordinator:
            steps += [("find_commit", {}), ("miss_commit", {})]
        for node in sorted(touched):
            self._look(node)
            if node not in self.down:
                self._look_for_losses(node)
        for flight in self.network.in_flight():
            if not self._may_arrive(flight.envelope):
                self.network.drop(flight)
        return steps

    def _let_arrive(self, touched: set[int]) -> list[ModelStep]:
        """Let what arrives at once arrive; what it is in the model."""
        steps: list[ModelStep] = []
        for _ in range(_AT_ONCE if self.pace.at_once else 0):
            flight = next((each for each in self.network.in_flight() if self._is_prompt(each.envelope)), None)
            if flight is None:
                break
            envelope = flight.envelope
            request: tuple[int, Envelope] | None = None
            if is_response(envelope):
                request = self._requested.get((envelope.destination, envelope.correlation))
            else:
                self._requested[envelope.source, envelope.correlation] = flight.number, envelope
            steps += self._steps(envelope, None if request is None else request[1])
            if envelope.destination >= 0:
                touched.add(envelope.destination)
            self.network.deliver(flight)
        return steps

    def _is_prompt(self, envelope: Envelope) -> bool:
        """Whether a message arrives at once: not at a node whose disk may fail it, as that is an event of its own."""
        ends = {envelope.source, envelope.destination}
        prompt = self.pace.is_prompt(kind_of(envelope), of_client=READER in ends)
        return prompt and ends.isdisjoint(self.down | self.bad.keys()) and self._may_arrive(envelope)

    def _note_elections(self) -> list[ModelStep]:
        """What the controller has decided since: epochs that began and ended in one decision had no leader."""
        quorum = self.controller.partition(PARTITION)
        steps: list[ModelStep] = []
        while len(self._leaders) <= quorum.leader_epoch:
            self._leaders.append((NO_LEADER, 0))
            self.pace.happened("election")
            self.pace.happened("patience")
            if len(self._leaders) > quorum.leader_epoch:
                outsider = quorum.leader != NO_LEADER and quorum.leader not in self._isr
                self._leaders[-1] = quorum.leader, int(outsider)
            leader, unclean = self._leaders[-1]
            elected = "elect_outsider" if unclean else "elect_member"
            steps.append(("elect_nobody", {}) if leader == NO_LEADER else (elected, {"new_leader": leader}))
        self._isr = quorum.isr
        return steps

    def _may_arrive(self, envelope: Envelope) -> bool:
        """Not what would go beyond the model's records, log size and leader epochs, nor what no follower is to get.

        That is lost.
        """
        body, node = envelope.body, envelope.destination
        if isinstance(body, ProduceRequest) and node not in self.down:
            rows, state = self._reader.decode(body.records), self._state(node)
            records, end = len(self.ids) + len(rows), (0 if state is None else state.end) + len(rows)
            return records <= self.constants["max_records"] and end <= self.constants["log_size"]
        if isinstance(body, LeaderAndIsrResponse) and body.error is ErrorCode.KAFKA_STORAGE_ERROR:
            return self.controller.partition(PARTITION).leader_epoch + 1 < self.constants["max_leader_epoch"]
        if isinstance(body, FetchResponse) and body.records and node in self.replicas:
            late = self._is_copied_late(envelope.source, node, body.leader_epoch)
            free = not self.pace.secluded or self.pace.peace
            return not late and (free or self._reader.decode(body.records)[-1][1] < body.leader_epoch)
        return True

    def _room_for(self, name: str) -> int:
        return 1 if name.startswith("UpdateMetadata") else super()._room_for(name)


@lru_cache(4_096)
def call(name: str, **args: int) -> Event:
    """What somebody asks for."""
    return Event(EventKind.CALL, name, args=tuple(sorted(args.items())))


def _weighed(pending: EnabledEvent, weight: float) -> EnabledEvent:
    return pending if weight == 1.0 else pending.weighing(weight)


def _triple(name: str, commit: Triple) -> dict[str, Value]:
    return dict(zip((name, f"{name}_epoch", f"{name}_seen"), commit, strict=True))


def row_of(record: StoredRecord) -> Row:
    """A record as it is told apart."""
    return record.offset, record.leader_epoch, record.value or b""
