"""A consumer, its coordinator and the brokers that it reads from, running freely; held to ``kip-320-client``.

What the application was told is noted where it is told: records by ``poll``, divergences by what it raises,
acknowledgements by the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from ....impl.consumer import Consumer, ConsumerRecord, OffsetAndMetadata, Outcome
from ....impl.consumer import PartitionState as Reading
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONSUMER,
    NO_EPOCH,
    NO_LEADER,
    NO_OFFSET,
    Envelope,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
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
from ...free.events import Event
from ...free.system import Judged
from ...lockstep.adapter import ModelStep
from .free_partition import GROUP, READER, TIMEOUT_MS, RunningPartition, call
from .pace import JUMPS

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


class RunningConsumer(RunningPartition):
    """A consumer of ``impl`` and all that it talks to. Its process ends where its application restarts it."""

    # -- the start --------------------------------------------------------------------------------------------------

    def _set_up(self, constants: Mapping[str, int]) -> range:
        nodes = super()._set_up(constants)
        self._policy = self.chance.choice(list(self._parts.reset_policy))
        self._max_bytes = self.chance.choice((1, 1 << 20, 1 << 20))
        self.network.observer = self._notice
        self._can_commit = False
        self._readers = 0
        self._start_reader()
        return nodes

    def _start_reader(self) -> None:
        """A consumer's process begins, in the place of the former one."""
        if self._readers:
            self.network.detach(READER)
        config = self._parts.consumer_config(
            tuple(self.brokers),
            group=GROUP,
            coordinator=self.coordinator,
            reset_policy=self._policy,
            max_bytes=self._max_bytes,
            address=READER,
            request_timeout_ms=TIMEOUT_MS,
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

    # -- looking ----------------------------------------------------------------------------------------------------

    @property
    def _reading(self) -> Reading:
        return self._consumer.state(PARTITION)

    def observe(self) -> Mapping[str, Value]:
        """Everything that the model has, but of nodes that are down."""
        return self.partition_cells() | self._reader_cells()

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
        return self.ids.get(row, -1) if record.offset == offset else -1

    def _asking(self) -> str:
        """Which new position the consumer asks for."""
        target = self._reading.asks_for
        return "nothing" if target is None else target.value

    # -- what the application does ----------------------------------------------------------------------------------

    def _calls(self) -> Iterator[Event]:
        yield from self._readings()
        yield from self._writings()
        yield from self._operations()
        deadline = self._consumer.deadline()
        if deadline is not None and deadline <= self.clock.now():
            yield call("wake")

    def _readings(self) -> Iterator[Event]:
        reading = self._reading
        for records in (1, 2, 500):
            yield call("poll", records=records)
        if reading.position is not None and self._can_commit:
            yield call("commit")
        if self._told is not None and reading.outcome == Outcome.DIVERGENCE_FOUND:
            yield call("seek_to_told")
        if reading.outcome == Outcome.DIVERGENCE_FOUND:
            yield call("reset_to_divergence")
        stuck = self._policy.value == "none" and not reading.looking_up
        lost = reading.position is None or reading.outcome == Outcome.OFFSET_OUT_OF_RANGE
        if self.pace.is_time("jump") or (stuck and lost):
            for name in JUMPS:
                if name in self.pace.jumps and name != "seek":
                    yield call(name)
            if "seek" in self.pace.jumps:
                for offset in range(self.constants["log_size"] + 1):
                    yield call("seek", offset=offset)

    def _call(self, event: Event) -> Sequence[ModelStep]:
        if event.name in JUMPS:
            return self._jump(event)
        match event.name:
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
            case _:
                return self._operate(event)
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
            self.acknowledged = body.offset, body.leader_epoch, body.serving_epoch
            self._look(self.coordinator)
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
