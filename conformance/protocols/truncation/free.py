"""A consumer, its coordinator and the brokers that it reads from, running freely; held to ``kip-320-client``.

Everything is real but time, network and disks. A record is known by its offset, its leader epoch and what is in it: no
two that were ever appended have the same. The coordinator has a node of its own, the last, which holds no replica.
What the application was told is noted where it is told: records by ``poll``, divergences by what it raises,
acknowledgements by the answers.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from ....impl.consumer import Consumer, ConsumerRecord, OffsetAndMetadata, Outcome
from ....impl.consumer import PartitionState as Reading
from ....impl.files.interface import read_file
from ....impl.files.simulated import SimulatedFiles
from ....impl.log.batch import encode_batch, read_batches
from ....impl.log.errors import CorruptBatch
from ....impl.log.records import Record
from ....impl.offsets import OFFSETS_TOPIC, GroupCoordinator
from ....impl.replica.broker import Broker
from ....impl.replica.partition import PartitionState, Role
from ....impl.replica.timers import Key
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONSUMER,
    FIRST_CLIENT,
    NO_EPOCH,
    NO_LEADER,
    NO_OFFSET,
    Envelope,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    Response,
)
from ....model.protocols.truncation.state import Asking
from ....traces.format import Value
from ...adapters.carrier import LIFE, error_name
from ...adapters.cluster import PARTITION, shown_leader
from ...adapters.nodes import DUE, MENDED, Mailbox, Node, RunningNodes, is_response, kind_of
from ...free.events import Event, What
from ...free.system import Happened, Judged, Pending
from ...lockstep.adapter import ModelStep
from .binding_client import coordinator_of

PRODUCER: Final = FIRST_CLIENT
READER: Final = FIRST_CLIENT - 1
LEADER, OFFLINE, TRUNCATING = Role.LEADER.value, Role.OFFLINE.value, Role.TRUNCATING.value
"""Roles are told apart by their names: those of a copy of ``impl`` are other objects."""
_GROUP: Final = "g"
_RETRY_MS: Final = 300
_LAG_MS: Final = 100
_TIMEOUT_MS: Final = 150
_UNBORN: Final = 2
"""So many batches may be on their way."""
_LARGEST_BATCH: Final = 2

_JUMPS: Final = ("seek", "seek_to_committed", "seek_to_beginning", "seek_to_end", "restart")
"""How an application leaves its position."""
_FAILURES: Final = ("broker", "coordinator", "disk", "cut")
"""What fails in a run: processes of brokers, that of the coordinator, disks, the network."""
_REPLICATION: Final = frozenset(
    {
        *("LeaderAndIsr", "LeaderAndIsrResponse", "AlterIsr", "AlterIsrResponse", "UpdateMetadataResponse"),
        *("Produce", "ProduceResponse"),
    }
)
_LOOKUPS: Final = frozenset({"OffsetFetch", "ListOffsets", "Metadata"})
_FETCHES: Final = frozenset({"Fetch", "OffsetsForLeaderEpoch"})
"""What may arrive at once: of brokers and their controller, of whoever looks for a position, and followers' fetches."""
_AT_ONCE: Final = 12
"""So many messages arrive at once in one event."""
_BETWEEN_TIMES: Final = 4
"""So many events, at least, between two moves of the clock."""
_EPOCHS_LEFT: Final = 2
"""Who crashes needs two leader epochs to be of use again: with fewer left no broker does."""

_AWAITED: Final = {
    FetchRequest: "fetch",
    OffsetsForLeaderEpochRequest: "search",
    ListOffsetsRequest: "list",
    OffsetFetchRequest: "committed",
    MetadataRequest: "metadata",
}
_REFUSALS: Final = ("refuse_unknown_epoch", "refuse_truncated", "refuse_out_of_range")
_JUDGED: Final = frozenset(
    {None, "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_LEADER_EPOCH", "LOG_TRUNCATION", "OFFSET_OUT_OF_RANGE"}
)
"""The codes that the model has a word for; others are of disks, of authorization, of what was damaged."""

Row = tuple[int, int, bytes]
"""Offset, leader epoch, and what a producer wrote."""
Triple = tuple[int, int, int]
"""Offset, epoch and serving epoch of a commit."""
_NO_COMMIT: Final[Triple] = (NO_OFFSET, NO_EPOCH, NO_EPOCH)


class RunningConsumer(RunningNodes):
    """A consumer of ``impl`` and all that it talks to. The controller and the clients never fail but by restarts."""

    protocol = "truncation"
    implemented = "kip-320-client"
    times = (1, 60, _TIMEOUT_MS + 1, _RETRY_MS + 1)

    # -- the start --------------------------------------------------------------------------------------------------

    def _set_up(self, constants: Mapping[str, int]) -> range:
        chance = random.Random(self.seed)  # noqa: S311 - repeatable on purpose
        self._config = self._parts.broker_config(
            log=self._parts.log_config(segment_bytes=chance.choice((100, 200, 1 << 20))),
            replica_lag_time_max_ms=_LAG_MS,
            isr_interval_ms=_LAG_MS // 2,
            replica_fetch_max_bytes=chance.choice((1, 1 << 20)),
            request_timeout_ms=2 * _LAG_MS,
            flush_each_append=chance.random() < 0.2,
        )
        self._brokers = range(constants["replicas"])
        self._coordinator = coordinator_of(constants)
        self._policy = chance.choice(list(self._parts.reset_policy))
        self._max_bytes = chance.choice((1, 1 << 20, 1 << 20))
        self.controller = self._parts.controller(
            self.network, self.clock, SimulatedFiles(self.seed), unclean=True, retry=_RETRY_MS
        )
        self.network.attach(self.controller)
        self.network.attach(Mailbox(PRODUCER, lambda _answer: None))
        self.network.observer = self._notice
        known = _LOOKUPS | {"UpdateMetadata"}
        self._at_once = chance.choice(
            (frozenset[str](), _REPLICATION, _REPLICATION | _LOOKUPS, _REPLICATION | known, _REPLICATION | known)
        )
        self._retention = chance.random() < 0.4
        self._alone = chance.random() < 0.6
        """Whether the first leader is the whole ISR, and commits what it writes by itself."""
        self._patience = chance.choice((20, 60, 200))
        """So many events, at least, before the application leaves its position again."""
        self._calm = chance.choice((0, 0, 15, 40))
        """So many events, at least, between two requests of a follower."""
        self._pace = chance.choice((3, 8, 20))
        """So many events, at least, between two batches of the producer."""
        self._elections = chance.choice((("elect", "elect_unclean"), ("elect_unclean",)))
        self._term = chance.choice((15, 30, 60))
        """So many events, at least, between two events that cost a leader epoch, or two failures of a node."""
        self._failures = frozenset(chance.sample(_FAILURES, chance.randint(0, 2)))
        self._events = 0
        self._last: dict[str, int] = {}
        """By what happens not too often: the number of the event in which it happened last."""
        self._jumps = frozenset(chance.sample(_JUMPS, chance.randint(1, 3)))
        self._can_commit = False
        self._incarnations = dict.fromkeys(range(len(self._brokers) + 1), 0)
        self._correlation = 0
        self._batches = 0
        self._ids: dict[Row, int] = {}
        """The records that are, or were, in some log."""
        self._decoded: dict[bytes, tuple[Row, ...]] = {}
        self._cells: dict[int, dict[str, Value]] = {}
        self._leaders: list[tuple[int, int]] = []
        """Of each leader epoch, the leader and whether it was elected from outside of the ISR."""
        self._isr: frozenset[int] = frozenset()
        self._acknowledged = _NO_COMMIT
        self._readers = 0
        self._start_reader()
        return range(len(self._brokers) + 1)

    def _start_reader(self) -> None:
        """A consumer's process begins, in the place of the former one."""
        if self._readers:
            self.network.detach(READER)
        config = self._parts.consumer_config(
            tuple(self._brokers),
            group=_GROUP,
            coordinator=self._coordinator,
            reset_policy=self._policy,
            max_bytes=self._max_bytes,
            address=READER,
            request_timeout_ms=_TIMEOUT_MS,
            retry_backoff_ms=1,
            first_correlation=self._readers * LIFE,
        )
        self._readers += 1
        self._consumer: Consumer = self._parts.consumer(self.network, self.clock, config)
        self.network.attach(self._consumer)
        self._consumer.assign([PARTITION])
        self._awaited = "nothing"
        self._read: dict[int, ConsumerRecord] = {}
        self._told: OffsetAndMetadata | None = None

    def _begin(self, node: int, first_correlation: int) -> Node:
        self._incarnations[node] += 1
        clock = self.clock.at(node)
        broker = self._parts.broker(
            node, self.store.files(node), self.wire(), clock, self._config, first_correlation=first_correlation
        )
        if node == self._coordinator:
            log = broker.directory.log(OFFSETS_TOPIC, 0)
            broker.coordinator = self._parts.coordinator(log, clock, known=lambda partition: partition == PARTITION)
        return broker

    def _settle(self) -> None:
        for node in self._brokers:
            self.controller.broker_started(node, self._incarnations[node])
        self.controller.create_partition(PARTITION, list(self._brokers), elect=False)
        for node in self.replicas:
            self._look(node)
        self._note_elections()

    def reset(self, constants: Mapping[str, int], seed: int) -> Happened:
        """New disks, new nodes, and a first leader."""
        begun = super().reset(constants, seed)
        elect = self.controller.elect_unclean if self._alone else self.controller.elect_leader
        elect(PARTITION, seed % len(self._brokers))
        return Happened((*begun.sent, *self._sent()), steps=tuple(self._note_elections()))

    # -- looking ----------------------------------------------------------------------------------------------------

    def _broker(self, node: int) -> Broker:
        return cast(Broker, self.nodes[node])

    def _state(self, node: int) -> PartitionState | None:
        """What a replica goes by; None before its broker was told of the partition."""
        partition = self._broker(node).partitions.get(PARTITION)
        return None if partition is None else partition.state()

    def _is_lost(self, node: int) -> bool:
        broker = self._broker(node)
        if node == self._coordinator:
            return broker.directory.log(OFFSETS_TOPIC, 0).offline is not None
        partition = broker.partitions.get(PARTITION)
        return partition is not None and partition.role.value == OFFLINE

    @property
    def _reading(self) -> Reading:
        return self._consumer.state(PARTITION)

    def _look(self, node: int) -> None:
        """Read a node's log past the node, and take its cells anew."""
        if node == self._coordinator:
            self._cells[node] = {} if node in self.down else self._commit_cells()
            return
        rows = tuple(self._log(node))
        for row in rows:
            self._ids.setdefault(row, len(self._ids))
        self._cells[node] = {} if node in self.down else self._replica_cells(node, rows)

    def _log(self, node: int) -> Iterator[Row]:
        """The records in a node's segments, up to where one is torn."""
        files, folder = self.store.files(node), str(PARTITION)
        if not files.exists(folder):
            return
        for name in files.list(folder):
            if name.endswith(".log"):
                yield from self._decode(read_file(files, f"{folder}/{name}"))

    def _decode(self, data: bytes) -> tuple[Row, ...]:
        found = self._decoded.get(data)
        if found is None:
            rows = []
            try:
                for batch in read_batches(data):
                    rows += [(each.offset, each.leader_epoch, each.value or b"") for each in batch.records()]
            except CorruptBatch:
                pass  # what a crash left, and recovery will cut off
            found = self._decoded[data] = tuple(rows)
        return found

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
            cells[f"record_id[{node}][{offset}]"] = -1 if found is None else self._ids[found]
            cells[f"record_epoch[{node}][{offset}]"] = NO_EPOCH if found is None else found[1]
        return cells

    def _commit_cells(self) -> dict[str, Value]:
        """What the coordinator would answer now."""
        here = cast(GroupCoordinator, self._broker(self._coordinator).coordinator)
        answer = here.fetch(OffsetFetchRequest(_GROUP, PARTITION))
        committed = (answer.offset, answer.leader_epoch, answer.serving_epoch)
        return {
            **_triple("committed", committed),
            **_triple("refused", _NO_COMMIT),
            "found_again": int(committed != self._acknowledged),
        }

    def observe(self) -> Mapping[str, Value]:
        """Everything that the model has, but of nodes that are down."""
        cells: dict[str, Value] = {
            "next_record_id": len(self._ids),
            "quorum_leader_epoch": len(self._leaders) - 1,
            **_triple("acknowledged", self._acknowledged),
        }
        for epoch in range(self.constants["max_leader_epoch"] + 1):
            leader, unclean = self._leaders[epoch] if epoch < len(self._leaders) else (NO_LEADER, 0)
            cells[f"epoch_leader[{epoch}]"] = shown_leader(leader)
            cells[f"epoch_unclean[{epoch}]"] = unclean
        for node in self.replicas:
            cells |= self._cells.get(node, {})
        return cells | self._reader_cells()

    def _reader_cells(self) -> dict[str, Value]:
        reading = self._reading
        position, found = reading.position, reading.divergence
        at = position or OffsetAndMetadata(0)
        diverged = reading.outcome == Outcome.DIVERGENCE_FOUND
        begin = reading.consumed_from if position is not None else 0
        end = at.offset + len(reading.fetched)
        cells: dict[str, Value] = {
            "metadata_leader": shown_leader(reading.leader),
            "metadata_epoch": reading.leader_epoch,
            "placed": int(position is not None),
            "position": at.offset,
            "last_epoch": at.leader_epoch,
            "seen_epoch": at.serving_epoch,
            "consumed_from": begin,
            "outcome": reading.outcome.value,
            "answered_epoch": reading.answered_epoch,
            "reported": NO_OFFSET if found is None else found.offset,
            "reported_epoch": NO_EPOCH if found is None else found.leader_epoch,
            "told": self._told.offset if self._told is not None and diverged else NO_OFFSET,
            "awaited": self._awaited if reading.in_flight else "nothing",
            "asking": self._asking(),
            "fetched_end": end,
            "fetched_seen": reading.served_by,
            "known": NO_OFFSET if reading.committed is None else reading.committed.offset,
        }
        fetched = {at.offset + number: record for number, record in enumerate(reading.fetched)}
        for offset in range(self.constants["log_size"]):
            read = self._read.get(offset) if begin <= offset < at.offset else None
            for name, record in (("consumed", read), ("fetched", fetched.get(offset))):
                cells[f"{name}_id[{offset}]"] = -1 if record is None else self._id(offset, record)
                cells[f"{name}_epoch[{offset}]"] = NO_EPOCH if record is None else record.leader_epoch
        return cells

    def _id(self, offset: int, record: ConsumerRecord) -> int:
        """The model's id of a record that the consumer has at an offset; one that nobody wrote has none."""
        row = record.offset, record.leader_epoch, record.value or b""
        return self._ids.get(row, -1) if record.offset == offset else -1

    def _asking(self) -> str:
        """Which new position the consumer asks for."""
        target = self._reading.asks_for
        return "nothing" if target is None else target.value

    # -- what clients and operators do ------------------------------------------------------------------------------

    def _timers(self, node: int) -> Iterable[Key]:
        """When a follower asks again is drawn, as long as there is anything to ask; all else goes by its time."""
        calm = self._is_time(f"fetch {node}", self._calm)
        if node == self._coordinator or not calm or not self._is_behind(node):
            return ()
        return [key for key in self._broker(node).timers() if key[0] == "fetch"]

    def _is_behind(self, node: int) -> bool:
        """Whether a follower's next request would change anything."""
        state = self._state(node)
        if state is None or state.leader in self.down or state.leader not in self._brokers:
            return False
        leads = self._state(state.leader)
        if state.role.value == TRUNCATING or leads is None:
            return True
        waits = dict(leads.progress).get(node, -1) < leads.end or leads.log_start > state.log_start
        return state.end < leads.end or waits

    def pending(self) -> Sequence[Pending]:
        """What may happen: of failures those that the run has, by turns, and none that no leader epoch is left for."""
        return [each for each in super().pending() if self._may_fail(each.event)]

    def _may_fail(self, event: Event) -> bool:
        coordinates = event.node == self._coordinator
        match event.what:
            case What.CRASH:
                kind = "coordinator" if coordinates else "broker"
            case What.DISK if event.name != MENDED:
                kind = "disk"
            case What.CUT:
                kind = "cut"
            case What.TIMER if event.name == DUE and event.node is not None:
                return self._is_time(f"fetch {event.node}", self._calm)
            case What.TIME:
                return self._is_time("time", _BETWEEN_TIMES)
            case _:
                return True
        left = self.constants["max_leader_epoch"] - self.controller.partition(PARTITION).leader_epoch
        affordable = coordinates or kind == "cut" or left > _EPOCHS_LEFT
        return kind in self._failures and self._is_time("failure", self._term) and affordable

    def _is_time(self, what: str, pause: int) -> bool:
        """Whether what happens not too often may happen again."""
        return self._events - self._last.get(what, -pause) >= pause

    def _calls(self) -> Iterator[Event]:
        yield from self._readings()
        yield from self._writings()
        yield from self._operations()
        for name, deadline in (("resend", self.controller.deadline()), ("wake", self._consumer.deadline())):
            if deadline is not None and deadline <= self.clock.now():
                yield _call(name)

    def _readings(self) -> Iterator[Event]:
        reading = self._reading
        for records in (1, 2, 500):
            yield _call("poll", records=records)
        if reading.position is not None and self._can_commit:
            yield _call("commit")
        if self._told is not None and reading.outcome == Outcome.DIVERGENCE_FOUND:
            yield _call("seek_to_told")
        if reading.outcome == Outcome.DIVERGENCE_FOUND:
            yield _call("reset_to_divergence")
        stuck = self._policy.value == "none" and not reading.looking_up
        lost = reading.position is None or reading.outcome == Outcome.OFFSET_OUT_OF_RANGE
        if self._is_time("jump", self._patience) or (stuck and lost):
            for name in _JUMPS:
                if name in self._jumps and name != "seek":
                    yield _call(name)
            if "seek" in self._jumps:
                for offset in range(self.constants["log_size"] + 1):
                    yield _call("seek", offset=offset)

    def _writings(self) -> Iterator[Event]:
        left = self.constants["max_records"] - len(self._ids)
        if len(self.network.in_flight(source=PRODUCER)) >= _UNBORN or not self._is_time("produce", self._pace):
            left = 0
        for node in self._brokers:
            if node in self.down:
                continue
            state = self._state(node)
            leads = state is not None and state.role.value == LEADER
            room = min(left, _LARGEST_BATCH, self.constants["log_size"] - (0 if state is None else state.end))
            if leads:
                for records in range(1, room + 1):
                    yield _call("produce", to=node, records=records)
            elif room > 0:
                yield Event(What.PROBE, "produce", args=(("records", 1), ("to", node)))
            deletes = self._retention and self._is_time("delete", self._term)
            if state is not None and leads and deletes and state.log_start < state.high_watermark:
                yield _call("delete", at=node, offset=state.log_start + 1)
                yield _call("delete", at=node, offset=state.high_watermark)

    def _operations(self) -> Iterator[Event]:
        quorum = self.controller.partition(PARTITION)
        left = self.constants["max_leader_epoch"] - quorum.leader_epoch
        for node in self._brokers:
            if left > 0 and node not in quorum.offline and self._is_time("election", self._term):
                if node in quorum.isr and node != quorum.leader and "elect" in self._elections:
                    yield _call("elect", replica=node)
                yield _call("elect_unclean", replica=node)
            # One that was restarted unnoticed fails first, and then leads or is left without an epoch of its own.
            restarted = self.controller.brokers[node].incarnation < self._incarnations[node]
            if restarted and node not in self.down and left > 1:
                yield _call("register", replica=node)

    def _call(self, event: Event) -> Sequence[ModelStep]:
        name = event.name
        if name in _JUMPS:
            self._last["jump"] = self._events
            return self._jump(event)
        match name:
            case "poll":
                return self._poll(int(event.arg("records")))
            case "commit":
                self._can_commit = False
                self._consumer.commit()
            case "seek_to_told":
                assert self._told is not None
                self._consumer.seek(PARTITION, self._told)
                return (("seek_to_told", {}),)
            case "reset_to_divergence":
                self._consumer.reset_to_divergence(PARTITION)
                return (("go_to_divergence", {}),)
            case "wake":
                self._consumer.wake()
            case "produce":
                self._produce(int(event.arg("to")), int(event.arg("records")))
            case "delete":
                node, offset = int(event.arg("at")), int(event.arg("offset"))
                self._delete(node, offset)
                return (("delete_records", {"replica": node, "offset": offset}),)
            case _:
                self._operate(event)
        return ()

    def _jump(self, event: Event) -> Sequence[ModelStep]:
        """The application leaves its position."""
        consumer = self._consumer
        match event.name:
            case "seek":
                offset = int(event.arg("offset"))
                consumer.seek(PARTITION, offset)
                return (("seek_to", {"offset": offset}),)
            case "seek_to_committed":
                consumer.seek_to_committed(PARTITION)
            case "seek_to_beginning":
                consumer.seek_to_beginning(PARTITION)
            case "seek_to_end":
                consumer.seek_to_end(PARTITION)
            case "restart":
                self._start_reader()
                return (("restart_consumer", {}),)
        return (("ask_for", {"target": Asking.names.index(event.name.removeprefix("seek_to_"))}),)

    def _poll(self, records: int) -> Sequence[ModelStep]:
        self._can_commit = True
        steps: list[ModelStep] = [("take_record", {}), ("send", {}), ("tell_divergence", {})]
        if self._policy.value != "none":
            target = Asking.beginning if self._policy.value == "earliest" else Asking.end
            steps = [*steps[:2], ("go_to_divergence", {}), ("reset_by_policy", {"target": target})]
        try:
            for record in self._consumer.poll(records):
                self._read[record.offset] = record
        except self._parts.log_truncation_error as truncated:
            self._told = truncated.divergent_offsets.get(PARTITION)
        except self._parts.consumer_error:
            pass  # what was told besides is in the state
        return steps

    def _produce(self, node: int, records: int) -> None:
        number = self._batches
        self._batches += records
        batch = [Record(f"{number + each}".encode(), timestamp=0) for each in range(records)]
        data = encode_batch(batch, producer_id=number, producer_epoch=0, base_sequence=0)
        self._correlation += 1
        body = ProduceRequest(PARTITION, 1, data)
        self.network.send(Envelope(PRODUCER, node, self._correlation, body, "User:client"))

    def _delete(self, node: int, offset: int) -> None:
        """Retention, or DeleteRecords."""
        partition = self._broker(node).partitions[PARTITION]
        with partition.storage():
            partition.log.delete_before(offset)

    def _operate(self, event: Event) -> None:
        """An operator speaks to the controller, or a broker that has started."""
        controller = self.controller
        match event.name:
            case "elect":
                controller.elect_leader(PARTITION, int(event.arg("replica")))
            case "elect_unclean":
                controller.elect_unclean(PARTITION, int(event.arg("replica")))
            case "register":
                node = int(event.arg("replica"))
                controller.broker_started(node, self._incarnations[node])
            case "resend":
                controller.wake()

    # -- what messages say ------------------------------------------------------------------------------------------

    def _notice(self, what: str, _moment: int, envelope: Envelope) -> None:
        """Told of every message that is sent, whether it can reach anybody or not."""
        if what == "sent" and envelope.source == READER:
            self._awaited = _AWAITED.get(type(envelope.body), self._awaited)

    def _steps(self, envelope: Envelope, asked: Envelope | None) -> tuple[ModelStep, ...]:
        source, destination, body = envelope.source, envelope.destination, envelope.body
        match body:
            case LeaderAndIsrRequest() if body.leader != NO_LEADER:
                return (("take_up", {"replica": destination, "epoch": body.leader_epoch}),)
            case ProduceRequest():
                return (("leader_append", {"leader": destination}),)
            case OffsetCommitRequest():
                return ("store_commit", {}), ("refuse_commit", {})
        if asked is None:
            return ()
        leader = {"leader": source}
        match body:
            case FetchResponse() if destination != READER:
                copies = (("follower_copy", {"follower": destination, **leader}),) if body.records else ()
                return *copies, ("begin_log_at", {"replica": destination}), ("delete_records", {"replica": destination})
            case OffsetsForLeaderEpochResponse() if destination != READER:
                return (("truncate_log", {"replica": destination}),)
            case FetchResponse():
                names = ("fetch_record", "end_fetch") if body.error is ErrorCode.NONE else _REFUSALS
                return tuple((name, leader) for name in names)
            case OffsetsForLeaderEpochResponse():
                return (("learn_divergence", leader),)
            case ListOffsetsResponse():
                return ("learn_beginning", leader), ("learn_end", leader)
            case MetadataResponse() if body.error is ErrorCode.NONE:
                return (("learn_leader", {"epoch": body.leader_epoch}),)
            case OffsetCommitResponse() if body.error is ErrorCode.NONE:
                return (("hear_commit", {}),)
            case OffsetFetchResponse() if body.error is ErrorCode.NONE:
                return ("learn_commit", {}), ("learn_no_commit", {})
        return ()

    def _judged(self, request: Envelope, answer: Envelope) -> Iterable[Judged]:
        body, error = request.body, error_name(cast(Response, answer.body))
        if isinstance(body, OffsetCommitRequest) and error is None:
            self._acknowledged = body.offset, body.leader_epoch, body.serving_epoch
            self._look(self._coordinator)
        if error not in _JUDGED:
            return ()
        leader = {"leader": request.destination}
        match body:
            case FetchRequest() if body.replica_id == CONSUMER:
                return (Judged((("fetch_record", leader),), error),)
            case OffsetsForLeaderEpochRequest() if body.replica_id == CONSUMER:
                return (Judged((("learn_divergence", leader),), error),)
            case ListOffsetsRequest():
                return (Judged((("learn_beginning", leader), ("learn_end", leader)), error),)
            case OffsetCommitRequest():
                return (Judged((("store_commit", {}),), error),)
            case ProduceRequest():
                return (Judged((("leader_append", leader),), error),)
        return ()

    def _took(self, event: Event) -> Sequence[ModelStep]:
        self._note(event)
        touched = {event.node} if event.node is not None else set[int]()
        if event.name == "delete":
            touched.add(int(event.arg("at")))
        steps = self._let_arrive(touched) + self._note_elections()
        if event.what is What.START and event.node == self._coordinator:
            steps += [("find_commit", {}), ("miss_commit", {})]
        for node in sorted(touched):
            self._look(node)
        for flight in self.network.in_flight():
            if not self._may_arrive(flight.envelope):
                self.network.drop(flight)
        return steps

    def _note(self, event: Event) -> None:
        """When what happens not too often has happened."""
        self._events += 1
        if event.what is What.TIMER:
            self._last[f"fetch {event.node}"] = self._events
        elif event.what is What.TIME:
            self._last["time"] = self._events
        elif event.name in ("delete", "produce"):
            self._last[event.name] = self._events
        if event.what in (What.CRASH, What.DISK, What.CUT) or event.crash is not None:
            self._last["failure"] = self._events

    def _let_arrive(self, touched: set[int]) -> list[ModelStep]:
        """Let what arrives at once arrive; what it is in the model."""
        steps: list[ModelStep] = []
        for _ in range(_AT_ONCE if self._at_once else 0):
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
        name = kind_of(envelope)
        kind = name.removesuffix("Response")
        prompt = name in self._at_once
        if kind in _FETCHES and self._at_once:
            prompt = READER not in ends
        return prompt and ends.isdisjoint(self.down | self.bad.keys()) and self._may_arrive(envelope)

    def _note_elections(self) -> list[ModelStep]:
        """What the controller has decided since: epochs that began and ended in one decision had no leader."""
        quorum = self.controller.partition(PARTITION)
        steps: list[ModelStep] = []
        while len(self._leaders) <= quorum.leader_epoch:
            self._leaders.append((NO_LEADER, 0))
            self._last["election"] = self._events
            if len(self._leaders) > quorum.leader_epoch:
                outsider = quorum.leader != NO_LEADER and quorum.leader not in self._isr
                self._leaders[-1] = quorum.leader, int(outsider)
            leader, unclean = self._leaders[-1]
            elected = "elect_outsider" if unclean else "elect_member"
            steps.append(("elect_nobody", {}) if leader == NO_LEADER else (elected, {"new_leader": leader}))
        self._isr = quorum.isr
        return steps

    def _may_arrive(self, envelope: Envelope) -> bool:
        """Not what would go beyond the model's records, log size and leader epochs: that is lost."""
        body, node = envelope.body, envelope.destination
        if isinstance(body, ProduceRequest) and node not in self.down:
            rows, state = self._decode(body.records), self._state(node)
            end = 0 if state is None else state.end
            return (
                len(self._ids) + len(rows) <= self.constants["max_records"]
                and end + len(rows) <= self.constants["log_size"]
            )
        if isinstance(body, LeaderAndIsrResponse) and body.error is ErrorCode.KAFKA_STORAGE_ERROR:
            return self.controller.partition(PARTITION).leader_epoch + 1 < self.constants["max_leader_epoch"]
        return True

    def _room_for(self, name: str) -> int:
        return 1 if name.startswith("UpdateMetadata") else super()._room_for(name)


def _call(name: str, **args: int) -> Event:
    return Event(What.CALL, name, args=tuple(sorted(args.items())))


def _triple(name: str, commit: Triple) -> dict[str, Value]:
    return dict(zip((name, f"{name}_epoch", f"{name}_seen"), commit, strict=True))
