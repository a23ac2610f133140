"""One partition of a consumer: its position, what is due next, and what each answer changes. No input or output.

The rules are those of KIP-320, "Consumer Handling", with the two that ``specs/DEVIATIONS.md`` adds to them: a position
carries the epoch of the leader that served it, and no leader in a lower one may answer a fetch or a search.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from ..log import CorruptBatch
from ..wire.errors import ErrorCode
from ..wire.messages import (
    CONSUMER,
    EARLIEST,
    LATEST,
    NO_EPOCH,
    NO_LEADER,
    NO_OFFSET,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    TopicPartition,
)
from .errors import BrokerError, ConsumerError, CorruptRecordError, NoOffsetForPartitionError
from .fetched import Step, read_steps
from .position import (
    ConsumerConfig,
    ConsumerRecord,
    OffsetAndMetadata,
    Outcome,
    PartitionState,
    ResetPolicy,
    Target,
    nearest,
)

PartitionRequest = (
    FetchRequest | OffsetsForLeaderEpochRequest | ListOffsetsRequest | OffsetFetchRequest | MetadataRequest
)
PartitionResponse = (
    FetchResponse | OffsetsForLeaderEpochResponse | ListOffsetsResponse | OffsetFetchResponse | MetadataResponse
)


class Lookup(NamedTuple):
    """A new position is being asked for; with ``NEAREST``, of which old one."""

    target: Target
    near: OffsetAndMetadata | None = None


class Partition:
    """The state of one assigned partition."""

    def __init__(self, partition: TopicPartition, config: ConsumerConfig) -> None:
        self.partition = partition
        self.config = config
        self.position: OffsetAndMetadata | None = None
        self.consumed_from = -1
        self._read: list[tuple[int, int]] = []
        """Of what was read from ``consumed_from`` on: the leader epochs, and where each begins."""
        self.outcome = Outcome.FETCHING
        self.answered_epoch = NO_EPOCH
        self.divergence: OffsetAndMetadata | None = None
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.stale = True
        """Whether the metadata is missing, or known to be wrong."""
        self.lookup: Lookup | None = Lookup(Target.COMMITTED) if config.group else self._by_policy()
        self.buffer: deque[Step] = deque()
        self.served_by = NO_EPOCH
        """The epoch of the leader that sent what is in the buffer."""
        self.in_flight: int | None = None
        """The correlation id of the request that an answer is awaited to."""
        self.retry_at = 0
        self.error: ConsumerError | None = None
        self.last_error = ErrorCode.NONE
        self.committed: OffsetAndMetadata | None = None

    def _by_policy(self) -> Lookup | None:
        match self.config.reset_policy:
            case ResetPolicy.EARLIEST:
                return Lookup(Target.BEGINNING)
            case ResetPolicy.LATEST:
                return Lookup(Target.END)
            case ResetPolicy.NONE:
                return None

    def view(self) -> PartitionState:
        """A look at it."""
        return PartitionState(
            self.partition,
            self.position,
            self.consumed_from,
            self.outcome,
            self.answered_epoch,
            self.divergence,
            self.leader,
            self.leader_epoch,
            None if self.lookup is None else self.lookup.target,
            self.in_flight is not None,
            tuple(step.record for step in self.buffer if step.record is not None),
            self.served_by if self.buffer else NO_EPOCH,
            self.committed,
            self.last_error,
        )

    @property
    def settled(self) -> bool:
        """Whether the position is one to commit: not in doubt, and not about to be another."""
        in_doubt = self.outcome not in (Outcome.FETCHING, Outcome.UNKNOWN_LEADER_EPOCH)
        return self.position is not None and self.lookup is None and not in_doubt

    @property
    def needs_application(self) -> bool:
        """Whether only a seek can help: the policy is ``NONE``, and there is no position to fetch from."""
        if self.config.reset_policy is not ResetPolicy.NONE or self.lookup is not None:
            return False
        return self.position is None or self.outcome in (Outcome.OFFSET_OUT_OF_RANGE, Outcome.DIVERGENCE_FOUND)

    # -- moving -----------------------------------------------------------------------------------------------------

    def move(self, position: OffsetAndMetadata, consumed_from: int) -> None:
        """Go on from ``position``, fetching; what was asked and what has arrived for the old one is dropped."""
        self._read = [(start, epoch) for start, epoch in self._read if consumed_from < position.offset > start]
        self.position = position
        self.consumed_from = consumed_from
        self.outcome = Outcome.FETCHING
        self.answered_epoch = NO_EPOCH
        self.divergence = None
        self.abandon()

    def abandon(self) -> None:
        """Drop what was asked and what has arrived."""
        self.lookup = None
        self.buffer.clear()
        self.in_flight = None
        self.retry_at = 0
        self.error = None

    def look_up(self, target: Target, near: OffsetAndMetadata | None = None) -> None:
        """Ask for another position."""
        self.abandon()
        self.lookup = Lookup(target, near)

    def reset_to_divergence(self) -> bool:
        """Go on from the divergence that was found; ``False`` where none was.

        Below an offset that is only a bound nothing is known: there reading begins anew.
        """
        position, there = self.position, self.divergence
        if self.outcome is not Outcome.DIVERGENCE_FOUND or position is None:
            return False
        if there is None:
            return False
        exact = there.leader_epoch == position.leader_epoch
        self.move(there, self._unbroken_from(there) if exact else there.offset)
        return True

    def _unbroken_from(self, there: OffsetAndMetadata) -> int:
        """From where on reading goes on without a break at ``there``.

        That is where it began, if the record before ``there`` is the one that was read at that offset: no two records
        have both offset and epoch. Else it begins anew.
        """
        position = self.position
        if position is None or not self.consumed_from < there.offset <= position.offset:
            return there.offset
        read = next((epoch for start, epoch in reversed(self._read) if start < there.offset), NO_EPOCH)
        return self.consumed_from if read == there.leader_epoch != NO_EPOCH else there.offset

    def take(self, limit: int) -> list[ConsumerRecord]:
        """At most ``limit`` of the records that have arrived; the position moves behind them."""
        records: list[ConsumerRecord] = []
        last: Step | None = None
        while self.buffer and (self.buffer[0].record is None or len(records) < limit):
            last = self.buffer.popleft()
            if last.record is not None:
                records.append(last.record)
            if not self._read or self._read[-1][1] != last.epoch:
                self._read.append((last.next_offset - 1, last.epoch))
        if last is not None:
            self.position = OffsetAndMetadata(last.next_offset, last.epoch, self.served_by)
        return records

    # -- asking -----------------------------------------------------------------------------------------------------

    def due(self, max_bytes: int) -> PartitionRequest | None:
        """The one request that is due, if any is, whoever gets it."""
        if self.in_flight is not None or self.buffer:
            return None
        # A leader whose log has no epochs (an old message format) finds no divergence: the policy is all there is.
        lost = self.outcome is Outcome.DIVERGENCE_FOUND and self.divergence is None
        if self.lookup is None and (lost or self.outcome is Outcome.OFFSET_OUT_OF_RANGE):
            self.lookup = self._by_policy()
        if self.lookup is not None and self.lookup.target is Target.COMMITTED:
            return OffsetFetchRequest(self.config.group, self.partition)
        if self.needs_application or (self.lookup is None and self.outcome is Outcome.DIVERGENCE_FOUND):
            return None
        if self.stale:
            return MetadataRequest(self.partition)
        if self.lookup is not None:
            return self._lookup_request(self.lookup)
        assert self.position is not None
        if self.outcome is Outcome.LOG_TRUNCATION:
            return self._search(self.position)
        position = self.position
        return FetchRequest(
            CONSUMER, self.partition, position.offset, max_bytes, position.least_epoch, position.leader_epoch
        )

    def _lookup_request(self, lookup: Lookup) -> ListOffsetsRequest | OffsetsForLeaderEpochRequest:
        if lookup.near is not None:
            return self._search(lookup.near)
        return ListOffsetsRequest(self.partition, EARLIEST if lookup.target is Target.BEGINNING else LATEST)

    def _search(self, position: OffsetAndMetadata) -> OffsetsForLeaderEpochRequest:
        # KIP-320 sends -1 for the current epoch here: then a leader that was replaced gives the end of its own log.
        return OffsetsForLeaderEpochRequest(CONSUMER, self.partition, position.least_epoch, position.leader_epoch)

    # -- answers ----------------------------------------------------------------------------------------------------

    def answered(self, response: PartitionResponse, now: int) -> None:
        """Take the answer to the request in flight."""
        self.in_flight = None
        self.last_error = response.error
        if response.error is ErrorCode.NONE:
            try:
                self._succeeded(response, now)
            except ValueError:  # an offset or epoch that there is not
                self._fail(response, ErrorCode.UNKNOWN_SERVER_ERROR, now)
        elif isinstance(response, FetchResponse):
            self._fetch_refused(response, now)
        else:
            self._refused(response, now)

    def timed_out(self, now: int) -> None:
        """No answer came: ask another broker, after a pause, whether the leader has changed."""
        self.in_flight = None
        self.last_error = ErrorCode.REQUEST_TIMED_OUT
        self._retry(now)

    def take_metadata(self, response: MetadataResponse) -> None:
        """Believe it, however old it is: the epochs in the requests see to it that an old leader does no harm."""
        news = (self.leader, self.leader_epoch) != (response.leader, response.leader_epoch)
        self.leader = response.leader
        self.leader_epoch = response.leader_epoch
        self.stale = response.leader == NO_LEADER
        if news and not self.stale:
            self._known_again()

    def _known_again(self) -> None:
        """The leader is no longer known to be too old."""
        if self.outcome is Outcome.UNKNOWN_LEADER_EPOCH:
            self.outcome = Outcome.FETCHING
            self.answered_epoch = NO_EPOCH

    def _succeeded(self, response: PartitionResponse, now: int) -> None:
        match response:
            case FetchResponse():
                self._fetched(response)
            case MetadataResponse():
                self.take_metadata(response)
                if self.stale:
                    self._retry(now)
            case ListOffsetsResponse():
                there = OffsetAndMetadata(response.offset, response.leader_epoch, response.answering_epoch)
                self.move(there, there.offset)
            case OffsetFetchResponse():
                self._restored(response)
            case OffsetsForLeaderEpochResponse():
                self._searched(response)

    def _fetched(self, response: FetchResponse) -> None:
        position = self.position
        assert position is not None
        self._known_again()
        try:
            steps = read_steps(self.partition, response.records, position.offset)
        except CorruptBatch as error:
            self.error = CorruptRecordError(self.partition, position.offset, error.what)
            return
        self.served_by = OffsetAndMetadata(position.offset, serving_epoch=response.leader_epoch).serving_epoch
        self.buffer.extend(steps)

    def _restored(self, response: OffsetFetchResponse) -> None:
        if response.offset == NO_OFFSET:
            self.lookup = self._by_policy()
            return
        there = OffsetAndMetadata(
            response.offset, response.leader_epoch, response.serving_epoch, metadata=response.metadata
        )
        self.committed = there
        self.move(there, self._unbroken_from(there))

    def _searched(self, response: OffsetsForLeaderEpochResponse) -> None:
        near = self.position if self.lookup is None else self.lookup.near
        assert near is not None
        found: OffsetAndMetadata | None = None
        if response.end_offset != NO_OFFSET:
            offset, epoch = nearest(response.end_offset, response.leader_epoch, near)
            found = OffsetAndMetadata(offset, epoch, response.answering_epoch)
        if self.lookup is None:
            self.outcome = Outcome.DIVERGENCE_FOUND
            self.answered_epoch = response.answering_epoch
            self.divergence = found
        elif found is None:
            self.move(near, near.offset)  # the leader's log has no epochs, and checks none
        else:
            exact = found.leader_epoch == near.leader_epoch
            self.move(found, self._unbroken_from(found) if exact else found.offset)

    def _fetch_refused(self, response: FetchResponse, now: int) -> None:
        assert self.position is not None
        match response.error:
            case ErrorCode.LOG_TRUNCATION:
                self.outcome = Outcome.LOG_TRUNCATION
                self.answered_epoch = response.leader_epoch
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                self.outcome = Outcome.OFFSET_OUT_OF_RANGE
                self.answered_epoch = NO_EPOCH
            case ErrorCode.CORRUPT_MESSAGE:
                what = "the leader's log is corrupt"
                self.error = CorruptRecordError(self.partition, self.position.offset, what)
                self._retry(now)
            case ErrorCode.UNKNOWN_LEADER_EPOCH:
                self.outcome = Outcome.UNKNOWN_LEADER_EPOCH
                self.answered_epoch = response.leader_epoch
                self._retry(now)
            case _:
                self._refused(response, now)

    def _refused(self, response: PartitionResponse, now: int) -> None:
        if response.error.retriable:
            self._retry(now)
        else:
            self._fail(response, response.error, now)

    def _fail(self, response: PartitionResponse, code: ErrorCode, now: int) -> None:
        self.error = BrokerError(self.partition, code, type(response).__name__.removesuffix("Response"))
        self._retry(now)

    def _retry(self, now: int) -> None:
        self.stale = True
        self.retry_at = now + self.config.retry_backoff_ms

    def raised(self) -> ConsumerError | None:
        """What ``poll`` has to raise for this partition alone, once."""
        error, self.error = self.error, None
        if error is None and self.position is None and self.needs_application:
            return NoOffsetForPartitionError(self.partition)
        return error
