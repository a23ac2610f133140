"""The follower's role: truncation by the leader's epochs, then fetching (``ReplicaFetcherThread`` in Kafka)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..log.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET
from ..log.errors import InvalidAppend
from ..wire.errors import ErrorCode
from ..wire.messages import (
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    Response,
)

if TYPE_CHECKING:
    from .partition import Partition


class Follower:
    """One leader epoch of a replica that follows. Its one timer, ``("fetch", partition)``, sends its next request.

    While it is ``truncating`` that is an OffsetsForLeaderEpoch, afterwards a Fetch. It never stops: whatever an answer
    says, and if none comes, the timer is set again.
    """

    def __init__(self, partition: Partition, request: LeaderAndIsrRequest) -> None:
        self._partition = partition
        self._runtime = partition.runtime
        self._log = partition.log
        self.leader = request.leader
        self.epoch = request.leader_epoch
        self.truncating = True
        self._correlation: int | None = None
        self._next_in(0)

    def close(self) -> None:
        """The leader epoch is over."""
        self._runtime.forget(self._correlation)
        self._runtime.timers.cancel(("fetch", self._partition.key))

    def _next_in(self, milliseconds: int) -> None:
        self._runtime.timers.set(("fetch", self._partition.key), self._runtime.clock.now() + milliseconds)

    def _wait(self) -> None:
        """Send nothing until ``go_on``: what comes before this log, or its cut, is looked for in remote storage."""
        self._runtime.timers.cancel(("fetch", self._partition.key))

    def go_on(self, milliseconds: int) -> None:
        """Go on as before, after so long: from the log's end, or asking where to cut."""
        self._next_in(milliseconds)

    def _back_off(self) -> None:
        self._next_in(self._runtime.config.replica_fetch_backoff_ms)

    def send(self) -> None:
        """Send the next request; one that is not answered yet counts as lost."""
        runtime, log = self._runtime, self._log
        runtime.forget(self._correlation)
        partition = self._partition.key
        if self.truncating:
            # Fenced (KIP-320, "Replica Handling"): only the leader of this very epoch may say where to cut. It is
            # asked even where this log knows no epoch and is cut to the high watermark.
            topic = self._partition.topic_id
            ask = OffsetsForLeaderEpochRequest(runtime.node_id, partition, self.epoch, log.latest_epoch, topic)
            self._correlation = runtime.request(self.leader, ask, self._epoch_end)
        else:
            # The fetch offset acknowledges everything below it, so it has to outlive a crash.
            if log.recovery_point < log.end:
                log.flush()
            fetch = FetchRequest(
                runtime.node_id,
                partition,
                log.end,
                runtime.config.replica_fetch_max_bytes,
                self.epoch,
                log_start_offset=log.log_start,
                topic_id=self._partition.topic_id,
            )
            self._correlation = runtime.request(self.leader, fetch, self._fetched)
        self._next_in(runtime.config.request_timeout_ms)

    # -- truncation -------------------------------------------------------------------------------------------------

    def _epoch_end(self, body: Response) -> None:
        self._correlation = None
        if (
            not isinstance(body, OffsetsForLeaderEpochResponse)
            or body.error is not ErrorCode.NONE
            or body.answering_epoch != self.epoch
        ):
            # FENCED_REPLICA and UNKNOWN_LEADER_EPOCH may be transient: leader or follower has not heard yet.
            self._back_off()
            return
        with self._partition.storage():
            offset, done = self._truncation_offset(body.leader_epoch, body.end_offset)
            remote = self._partition.remote
            if remote is not None and self._log.log_start < offset < self._log.local_start:
                self._wait()
                remote.cut(offset)
                return
            self._partition.truncate_to(offset)
            self.truncating = not done
            self._next_in(0)

    def _truncation_offset(self, epoch: int, end_offset: int) -> tuple[int, bool]:
        """Where to cut, and whether that is the end of it (``AbstractFetcherThread.getOffsetTruncationState``).

        The leader's largest epoch that is at most this log's latest is ``epoch``, and ends at ``end_offset`` there. If
        this log knows that epoch too, the logs agree up to the smaller of its two ends. If it does not (KIP-279), the
        records after its last smaller epoch are none of the leader's; what comes before is the next round's question.
        """
        if end_offset == UNDEFINED_OFFSET:
            # Epochs are known to neither or to one only: Kafka before KIP-101.
            return self._partition.high_watermark, True
        here, end_here = self._log.end_offset_for(epoch)
        if epoch == UNDEFINED_EPOCH or end_here == UNDEFINED_OFFSET:
            return end_offset, True
        if here != epoch:
            return end_here, False
        return min(end_here, end_offset), True

    # -- fetching ---------------------------------------------------------------------------------------------------

    def _fetched(self, body: Response) -> None:
        self._correlation = None
        if not isinstance(body, FetchResponse) or body.leader_epoch != self.epoch:
            self._back_off()
        elif body.error is ErrorCode.NONE:
            with self._partition.storage():
                self._take(body)
        elif body.error is ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE and self._partition.remote is not None:
            self._wait()
            self._partition.remote.moved(body.log_start_offset)
        elif body.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            with self._partition.storage():
                self._out_of_range(body.log_start_offset)
        else:
            self._back_off()

    def _take(self, body: FetchResponse) -> None:
        partition, log = self._partition, self._log
        if body.records:
            try:
                base = log.straddled_by(body.records, body.log_start_offset)
                if base is not None:  # in Kafka ``Partition.appendRecordsToFollowerOrFutureReplica``
                    partition.start_at(base)
                log.append_as_follower(body.records, self.epoch)
            except InvalidAppend:  # damaged on its way: nothing was written
                self._back_off()
                return
            if self._runtime.config.flush_each_append:
                log.flush()
        # Never beyond what this log holds. It may fall: a new leader's is typically behind the true one.
        partition.set_high_watermark(max(min(body.high_watermark, log.end), log.local_start))
        if body.log_start_offset > log.log_start:
            log.delete_before(min(body.log_start_offset, partition.high_watermark))
        self._next_in(0 if body.records else self._runtime.config.replica_fetch_wait_ms)

    def _out_of_range(self, leader_start: int) -> None:
        """The leader, in this epoch, has nothing at this log's end (``handleOutOfRangeError`` in Kafka).

        Where this log ends before the leader's begins, it begins anew there; and where it has no record, all of them
        being deleted, which leaves no epoch to ask by. Else the leader's is shorter: where to cut is asked again,
        fenced, and not taken from the end that the leader happens to have.
        """
        remote = self._partition.remote
        if remote is not None and remote.begins_after_tiered():
            self._wait()
            remote.moved(leader_start)
        elif leader_start > self._log.end or self._log.log_start == self._log.end != leader_start:
            self._partition.start_at(leader_start)
            self._next_in(0)
        else:
            self.truncating = True
            self._back_off()
