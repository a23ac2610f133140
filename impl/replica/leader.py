"""The leader's role: appends, followers' progress, the high watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..log.batch import Batch, read_batches
from ..log.errors import CorruptBatch, InvalidAppend
from ..wire.errors import ErrorCode
from ..wire.messages import (
    NO_OFFSET,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    Envelope,
    LeaderAndIsrRequest,
    ProduceRequest,
    ProduceResponse,
)
from .isr import Isr
from .producers import Sent
from .progress import Progress

if TYPE_CHECKING:
    from .partition import Partition


class Leader:
    """One leader epoch of a replica that leads. ``epoch_start`` is where the epoch begins in its log."""

    def __init__(self, partition: Partition, request: LeaderAndIsrRequest) -> None:
        self._partition = partition
        self._runtime = runtime = partition.runtime
        self._log = partition.log
        self.epoch = request.leader_epoch
        self.epoch_start = partition.log.end
        self.isr = Isr(runtime, request, self.isr_changed)
        now = runtime.clock.now()
        # Nobody's progress is known: what a follower fetched in another epoch, it may have cut off since.
        self.progress = {replica: Progress(replica, now) for replica in request.replicas if replica != runtime.node_id}
        self._counted: list[Progress] = []
        self._count()

    def close(self) -> None:
        """The leader epoch is over."""
        self.isr.close()
        self._runtime.timers.cancel(("isr", self._partition.key))

    # -- the high watermark -----------------------------------------------------------------------------------------

    def _count(self) -> None:
        """Whose progress the high watermark waits for."""
        maximal = self.isr.maximal
        self._counted = [each for each in self.progress.values() if each.replica in maximal]

    def advance(self) -> None:
        """Raise the high watermark to what every member of the maximal ISR, this replica included, has synced.

        It never falls: as long as a follower's progress is not known, it stays.
        """
        partition, log = self._partition, self._log
        end = log.end
        for each in self._counted:
            if each.end < end:
                end = each.end
        if end <= partition.high_watermark:
            return
        if log.recovery_point < end:
            log.flush()
        partition.set_high_watermark(end)
        self._complete()

    def fetched(self, replica: int, offset: int, log_start: int) -> None:
        """A follower in this epoch has fetched: it has synced everything from ``log_start`` to below ``offset``."""
        self.progress[replica].fetched(offset, self._log.end, self._runtime.clock.now(), log_start=log_start)
        self.advance()
        if self._partition.deletions:
            self._partition.deletions.reached(self.low_watermark())

    # -- the ISR ----------------------------------------------------------------------------------------------------

    def look_at_isr(self) -> None:
        """Ask the controller for another ISR where it is time for one.

        Kafka lets a follower in when it fetches, and out by a timer. Here both are found at once, so that one AlterIsr
        with one partition epoch serves for both, and a fetch never waits for the controller.
        """
        wanted = self.isr.wanted(
            list(self.progress.values()), self._log, self._partition.high_watermark, self.epoch_start
        )
        if self.isr.propose(wanted):
            self._count()

    def isr_changed(self) -> None:
        """The controller has another ISR in this leader epoch."""
        with self._partition.storage():
            self._count()
            self.advance()
            self._complete()

    # -- producing --------------------------------------------------------------------------------------------------

    def produce(self, envelope: Envelope, request: ProduceRequest) -> ProduceResponse | None:
        """Append; the answer, or ``None`` where it waits for the high watermark."""
        if request.acks == -1 and not self._is_enough():
            return ProduceResponse(ErrorCode.NOT_ENOUGH_REPLICAS)
        batches = self._parsed(request.records)
        if isinstance(batches, ErrorCode):
            return ProduceResponse(batches)
        if self._log.config.compacted and self._partition.refused(batches) is not None:
            return ProduceResponse(ErrorCode.INVALID_RECORD)
        sent = self._repeated(batches[0])
        if isinstance(sent, ErrorCode):
            return ProduceResponse(sent)
        if sent is None:
            base_offset = self._log.end
            try:
                last_offset = self._log.append_parsed_as_leader(batches, self.epoch).last_offset
            except InvalidAppend:
                return ProduceResponse(ErrorCode.INVALID_RECORD)
            self._partition.producers.appended(batches, base_offset)
            if self._runtime.config.flush_each_append:
                self._log.flush()
        else:
            base_offset, last_offset = sent.base_offset, sent.last_offset
        if not self._counted:
            self.advance()
        if request.acks == 1 and self._log.recovery_point <= last_offset:
            self._log.flush()
        if request.acks == -1 and self._partition.high_watermark <= last_offset:
            self._partition.purgatory.add(envelope, base_offset, last_offset + 1)
            return None
        return ProduceResponse(ErrorCode.NONE, base_offset, self._log.log_start)

    def _is_enough(self) -> bool:
        """Whether the ISR is as large as acks=-1 takes it to be now (``min.insync.replicas``)."""
        return len(self.isr.members) >= self._runtime.min_insync_replicas(self._partition.key.topic)

    def _parsed(self, data: bytes) -> list[Batch] | ErrorCode:
        """The batches of a produce, as far as they can be judged by their headers."""
        try:
            batches = list(read_batches(data))
        except CorruptBatch:
            return ErrorCode.CORRUPT_MESSAGE
        if not batches:
            return ErrorCode.INVALID_REQUEST
        config = self._log.config
        limit = min(config.max_message_bytes, config.segment_bytes)
        if any(batch.size > limit for batch in batches):
            return ErrorCode.MESSAGE_TOO_LARGE
        for batch in batches:
            if batch.magic < 2 or batch.producer_id < -1 or batch.is_control:
                return ErrorCode.INVALID_RECORD
            # Kafka, too, takes one batch at a time from a producer with an id: it is taken or refused as a whole.
            numbered = len(batches) == 1 and batch.producer_epoch >= 0 and batch.base_sequence >= 0
            if batch.producer_id >= 0 and not numbered:
                return ErrorCode.INVALID_RECORD
        return batches

    def _repeated(self, batch: Batch) -> Sent | ErrorCode | None:
        """Where the batch is in the log already; ``None`` where it is new, or its producer has no id."""
        if batch.producer_id < 0:
            return None
        producers = self._partition.producers
        producers.catch_up(self._log)
        found = producers.check(batch, self._log.log_start)
        return None if found is ErrorCode.NONE else found

    def _complete(self) -> None:
        """Answer what the high watermark has passed."""
        if self._partition.purgatory:
            error = ErrorCode.NONE if self._is_enough() else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            self._partition.purgatory.reached(self._partition.high_watermark, error, self._log.log_start)

    # -- deleting ---------------------------------------------------------------------------------------------------

    def low_watermark(self) -> int:
        """The smallest offset at which a live replica's log begins (KIP-107): 0 where one was not heard of yet."""
        live = [each.log_start for each in self.progress.values() if each.replica not in self.isr.offline]
        return min([self._log.log_start, *live])

    def delete_records(self, envelope: Envelope, request: DeleteRecordsRequest) -> DeleteRecordsResponse | None:
        """Let the log begin later; the answer, or ``None`` where it waits until the followers' do. Raises like ``Log``.

        Nothing at or above the high watermark is deleted: nobody knows yet that it stays. A topic that is compacted and
        nothing else keeps the latest record of each key, so nothing is deleted from its front.
        """
        log = self._log
        if log.config.cleanup_policy == "compact":
            return DeleteRecordsResponse(ErrorCode.POLICY_VIOLATION)
        high_watermark = self._partition.high_watermark
        offset = high_watermark if request.offset == NO_OFFSET else request.offset
        if not 0 <= offset <= high_watermark:
            return DeleteRecordsResponse(ErrorCode.OFFSET_OUT_OF_RANGE)
        log.delete_before(offset)
        low_watermark = self.low_watermark()
        if low_watermark < offset:
            self._partition.deletions.add(envelope, offset)
            return None
        return DeleteRecordsResponse(ErrorCode.NONE, low_watermark)
