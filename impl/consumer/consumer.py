"""The consumer client (KIP-320, "Consumer Handling"): sends by a transport, is handed the answers, waits for nothing.

``poll`` is all that an application needs: it gives the records that have arrived, raises what the application has to
decide, and sends what is due. Nothing is sent behind the application's back, but by the calls that say so.

A harness goes step by step instead: ``advance`` sends the one request that is due for a partition, ``receive`` takes
the answer, ``state`` shows what became of it, and ``take`` or ``reset_to_divergence`` does what ``poll`` would do next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..net.interface import Clock, Transport
from ..wire.errors import ErrorCode
from ..wire.messages import (
    NO_EPOCH,
    NO_LEADER,
    Envelope,
    FetchRequest,
    FetchResponse,
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
    TopicPartition,
)
from .errors import ConsumerError, LogTruncationError, NotAssignedError, OffsetOutOfRangeError
from .partition import Partition, PartitionRequest
from .position import ConsumerConfig, ConsumerRecord, OffsetAndMetadata, Outcome, PartitionState, Target

_ANSWERS: dict[type, type] = {
    FetchRequest: FetchResponse,
    ListOffsetsRequest: ListOffsetsResponse,
    MetadataRequest: MetadataResponse,
    OffsetCommitRequest: OffsetCommitResponse,
    OffsetFetchRequest: OffsetFetchResponse,
    OffsetsForLeaderEpochRequest: OffsetsForLeaderEpochResponse,
}


@dataclass(slots=True, eq=False)
class Commit:
    """A commit on its way. ``error`` is ``None`` until it is answered; REQUEST_TIMED_OUT says that nobody knows."""

    partition: TopicPartition
    offset: OffsetAndMetadata
    error: ErrorCode | None = None

    @property
    def done(self) -> bool:
        """Whether it was answered, or given up."""
        return self.error is not None


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request that awaits its answer."""

    request: PartitionRequest | OffsetCommitRequest
    destination: int
    expires: int
    commit: Commit | None = None


class Consumer:
    """One consumer, an ``Endpoint``. Partitions are read in the order in which they were assigned, by turns.

    Commits that a transport delivers out of order leave the older one committed: then records are read again.
    """

    def __init__(self, transport: Transport, clock: Clock, config: ConsumerConfig) -> None:
        self.config = config
        self._transport = transport
        self._clock = clock
        self._partitions: dict[TopicPartition, Partition] = {}
        self._sent: dict[int, _Sent] = {}
        self._correlation = config.first_correlation
        self._broker = 0
        self._coordinator = config.brokers[0] if config.coordinator == NO_LEADER else config.coordinator

    # -- endpoint ---------------------------------------------------------------------------------------------------

    @property
    def address(self) -> int:
        """Where answers reach it."""
        return self.config.address

    def receive(self, envelope: Envelope) -> None:
        """Take an answer. One that is late, repeated, of another sender or to a request that a seek overtook changes
        nothing."""
        sent = self._sent.get(envelope.correlation)
        if sent is None or sent.destination != envelope.source:
            return
        response = envelope.body
        if not isinstance(response, _ANSWERS[type(sent.request)]):
            return
        del self._sent[envelope.correlation]
        partition = self._partitions.get(sent.request.partition)
        if isinstance(response, OffsetCommitResponse):
            if sent.commit is not None:
                sent.commit.error = response.error
                if response.error is ErrorCode.NONE and partition is not None:
                    partition.committed = sent.commit.offset
        elif partition is not None and partition.in_flight == envelope.correlation:
            assert isinstance(
                response,
                FetchResponse
                | ListOffsetsResponse
                | MetadataResponse
                | OffsetFetchResponse
                | OffsetsForLeaderEpochResponse,
            )
            partition.answered(response, self._clock.now())

    def deadline(self) -> int | None:
        """When the first request that is not answered times out."""
        return min((sent.expires for sent in self._sent.values()), default=None)

    def wake(self) -> None:
        """Give up what has timed out."""
        now = self._clock.now()
        for correlation, sent in [item for item in self._sent.items() if item[1].expires <= now]:
            del self._sent[correlation]
            partition = self._partitions.get(sent.request.partition)
            if sent.commit is not None:
                sent.commit.error = ErrorCode.REQUEST_TIMED_OUT
            elif partition is not None and partition.in_flight == correlation:
                partition.timed_out(now)

    # -- reading ----------------------------------------------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these. Those that are new begin at the group's committed offset, or by the reset policy."""
        kept = self._partitions
        wanted = dict.fromkeys(partitions)
        self._partitions = {name: kept.get(name) or Partition(name, self.config) for name in wanted}

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """What is read, those first whose turn is next."""
        return tuple(self._partitions)

    def poll(self, max_records: int | None = None) -> list[ConsumerRecord]:
        """The records that have arrived, at most ``max_records``; then send what is due.

        Raises, before anything is given or sent, ``LogTruncationError`` and ``OffsetOutOfRangeError`` (with the policy
        ``none``, until the application seeks), ``NoOffsetForPartitionError``, ``CorruptRecordError``, ``BrokerError``.
        """
        self.wake()
        self._raise()
        limit = self.config.max_poll_records if max_records is None else max_records
        records: list[ConsumerRecord] = []
        for name, partition in list(self._partitions.items()):
            given = partition.take(limit - len(records))
            if given:  # to the end of the queue
                records += given
                self._partitions[name] = self._partitions.pop(name)
        now = self._clock.now()
        for partition in self._partitions.values():
            if partition.lookup is None:  # with the policy none, it was raised
                partition.reset_to_divergence()
            if partition.retry_at <= now:
                self._advance(partition, self.config.max_bytes)
        return records

    def _raise(self) -> None:
        alone = next((error for partition in self._partitions.values() if (error := partition.raised())), None)
        if alone is not None:
            raise alone
        waiting = {name: there for name, there in self._partitions.items() if there.needs_application}
        truncated = {name: there for name, there in waiting.items() if there.outcome is Outcome.DIVERGENCE_FOUND}
        chosen = truncated or waiting
        offsets = {name: there.position.offset for name, there in chosen.items() if there.position is not None}
        if truncated:
            found = {name: there.divergence for name, there in truncated.items() if there.divergence is not None}
            raise LogTruncationError(offsets, found)
        if waiting:
            raise OffsetOutOfRangeError(offsets)

    # -- where to read ----------------------------------------------------------------------------------------------

    def position(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        """The next offset that ``poll`` gives, with its epochs; ``None`` while it is being asked for."""
        there = self._at(partition)
        return None if there.lookup is not None else there.position

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Go on from an offset. A plain number is not checked by the leader (epoch -1); one with an epoch is.

        Raises ``ValueError`` for a negative offset.
        """
        target = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        self._at(partition).move(target, target.offset)

    def seek_to_nearest(self, partition: TopicPartition, offset: OffsetAndMetadata) -> None:
        """Go on from an offset if its epoch is still there, else from the first offset of the next larger epoch.

        Asks the leader at once (KIP-320, ``seekToNearest``). Without an epoch it is ``seek``.
        """
        there = self._at(partition)
        if offset.leader_epoch == NO_EPOCH:
            there.move(offset, offset.offset)
        else:
            there.look_up(Target.NEAREST, offset)
            self._advance(there, self.config.max_bytes)

    def seek_to_beginning(self, partition: TopicPartition) -> None:
        """Go on from the log start offset; the next ``poll`` asks for it."""
        self._at(partition).look_up(Target.BEGINNING)

    def seek_to_end(self, partition: TopicPartition) -> None:
        """Go on from the high watermark; the next ``poll`` asks for it."""
        self._at(partition).look_up(Target.END)

    def seek_to_committed(self, partition: TopicPartition) -> None:
        """Go on from the group's committed offset, as after a restart; the next ``poll`` asks for it."""
        self._require_group()
        self._at(partition).look_up(Target.COMMITTED)

    # -- commits ----------------------------------------------------------------------------------------------------

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None, metadata: str = ""
    ) -> list[Commit]:
        """Send commits: those given or, with ``metadata``, every position that is not in doubt.

        No commit is sent twice. Raises ``ConsumerError`` where there is no group.
        """
        self._require_group()
        if offsets is None:
            offsets = {
                name: OffsetAndMetadata(at.offset, at.leader_epoch, at.serving_epoch, metadata)
                for name, there in self._partitions.items()
                if there.settled and (at := there.position) is not None
            }
        commits = [Commit(name, offset) for name, offset in offsets.items()]
        for commit in commits:
            at = commit.offset
            request = OffsetCommitRequest(
                self.config.group, commit.partition, at.offset, at.leader_epoch, at.serving_epoch, at.metadata
            )
            self._send(request, self._coordinator, commit)
        return commits

    def committed(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        """What was committed last, as far as this consumer was told: by an answer to its commit or OffsetFetch."""
        return self._at(partition).committed

    def _require_group(self) -> None:
        if not self.config.group:
            raise ConsumerError("group.id", "this consumer is in no group", "name a group")

    # -- step by step -----------------------------------------------------------------------------------------------

    def state(self, partition: TopicPartition) -> PartitionState:
        """A look at a partition."""
        return self._at(partition).view()

    def advance(self, partition: TopicPartition, max_bytes: int | None = None) -> PartitionRequest | None:
        """Send the one request that is due now, whether or not a backoff is over; gives it, ``None`` if none is due.

        None is due while an answer is awaited, records wait for ``take``, or a divergence for ``reset_to_divergence``
        or a seek. ``max_bytes`` of 1 lets a fetch bring one batch.
        """
        return self._advance(self._at(partition), self.config.max_bytes if max_bytes is None else max_bytes)

    def take(self, partition: TopicPartition, max_records: int | None = None) -> list[ConsumerRecord]:
        """The records of one partition that have arrived; the position moves behind them."""
        return self._at(partition).take(self.config.max_poll_records if max_records is None else max_records)

    def reset_to_divergence(self, partition: TopicPartition) -> bool:
        """Go on from the divergence that was found, whatever the policy; ``False`` where none was."""
        return self._at(partition).reset_to_divergence()

    def update_metadata(self, partition: TopicPartition, response: MetadataResponse) -> None:
        """Take metadata from elsewhere, as if it had been answered, however old.

        Metadata that is no news still lets the next request go to the leader, and not ask for metadata first.
        """
        self._at(partition).take_metadata(response)

    def abandon(self, partition: TopicPartition) -> None:
        """Drop what is being asked and what has arrived; the position stays."""
        self._at(partition).abandon()

    def _at(self, partition: TopicPartition) -> Partition:
        there = self._partitions.get(partition)
        if there is None:
            raise NotAssignedError(partition)
        return there

    def _advance(self, partition: Partition, max_bytes: int) -> PartitionRequest | None:
        request = partition.due(max_bytes)
        if request is None:
            return None
        match request:
            case MetadataRequest():
                destination = self.config.brokers[self._broker]
                self._broker = (self._broker + 1) % len(self.config.brokers)
            case OffsetFetchRequest():
                destination = self._coordinator
            case _:
                destination = partition.leader
        partition.in_flight = self._send(request, destination)
        return request

    def _send(
        self, request: PartitionRequest | OffsetCommitRequest, destination: int, commit: Commit | None = None
    ) -> int:
        correlation = self._correlation
        self._correlation += 1
        self._sent[correlation] = _Sent(
            request, destination, self._clock.now() + self.config.request_timeout_ms, commit
        )
        self._transport.send(Envelope(self.address, destination, correlation, request, self.config.principal))
        return correlation
