"""One replica's log, snapshots and state machine, and what may be done to them in which order (KIP-630).

Whoever leads or follows, these hold, also after a crash at any point:

- a log that does not begin at 0 has a whole snapshot that reaches its LBO or further, or is fetching one, or counts as
  empty when it is opened ("Validation of Snapshot and Log", mended: the high watermark is not asked, and begins as the
  latest snapshot's end);
- no snapshot reaches past what is committed, nor past what is synced of the log;
- what the machine has applied is its latest snapshot and the log behind it up to the high watermark.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..files.interface import File
from ..log.errors import CorruptBatch, CorruptLog
from ..log.log import Log
from ..log.records import Record
from ..net.interface import Clock
from ..wire.messages import NO_EPOCH
from .machine import StateMachine
from .metrics import QuorumMetrics
from .snapshots import PartialSnapshot, SnapshotId, SnapshotStore

_APPLY_RECORDS = 1_000


class Replica:
    """The replicated state. Offsets are exclusive ends. What writes raises ``LogOffline`` and ``OSError``."""

    def __init__(
        self, log: Log, snapshots: SnapshotStore, machine: StateMachine, clock: Clock, metrics: QuorumMetrics
    ) -> None:
        """Validate what is on disk and load it. Raises ``CorruptLog`` for a snapshot that the machine cannot load."""
        self.log = log
        self.snapshots = snapshots
        self.machine = machine
        self.metrics = metrics
        self.fetching: PartialSnapshot | None = None
        """The snapshot that is being fetched: as long as there is one, the log before it is missing."""
        self.high_watermark = 0
        self.applied = 0
        """The end of what the machine has applied."""
        self.counted_empty = False
        """Whether boot validation found a log that had to count as empty."""
        self._clock = clock
        self._validate()

    def _validate(self) -> None:
        latest = self.snapshots.latest
        if self.log.log_start > self.snapshots.latest_end:
            self.counted_empty = True
            self.reset_to_empty()
            return
        if latest is None:
            return
        if self.log.end < latest.end_offset:
            # All of it is in the snapshot, so nothing is lost (KafkaMetadataLog.truncateToLatestSnapshot).
            self.log.truncate_fully_and_start_at(latest.end_offset)
        try:
            with self.snapshots.opened(latest) as file:
                self._load(latest, file)
        except CorruptBatch as error:
            mend = "delete the file, and start the replica with an empty folder if no older snapshot reaches its log"
            raise CorruptLog(error.what, self.snapshots.path(latest), error.byte, mend) from None
        self.high_watermark = latest.end_offset

    # -- what there is ----------------------------------------------------------------------------------------------

    @property
    def begin(self) -> int:
        """The log begin offset (LBO)."""
        return self.log.log_start

    @property
    def end(self) -> int:
        """The log end offset (LEO)."""
        return self.log.end

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, in the log or in a snapshot; -1 where there is none."""
        return self.epoch_at(self.end - 1)

    @property
    def vote_position(self) -> tuple[int, int]:
        """(last epoch, last offset) for an election; (-1, -1) for an empty log, and while a snapshot is incomplete."""
        return (NO_EPOCH, -1) if self.fetching is not None else (self.last_epoch, self.end - 1)

    def epoch_at(self, offset: int) -> int:
        """The epoch at an offset, by the log or by a snapshot that ends there; -1 where it cannot be known."""
        if self.begin <= offset < self.end:
            return self.log.epoch_for(offset)
        if self.fetching is not None and self.fetching.id.end_offset == offset + 1:
            return self.fetching.id.epoch
        return self.snapshots.epoch_at_end(offset + 1)

    def _larger_epoch_start(self, epoch: int) -> int:
        """Where the first epoch begins in the log that is larger than this one; the LEO where none does."""
        starts = (entry.start_offset for entry in self.log.epochs.entries if entry.epoch > epoch)
        return min(max(next(starts, self.end), self.begin), self.end)

    def known_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one that is known here, or -1, and where it ends."""
        end = self._larger_epoch_start(epoch)
        return self.epoch_at(end - 1), end

    def is_below(self, fetch_offset: int, last_epoch: int) -> bool:
        """Whether a fetch has to be answered with a snapshot.

        It is below the LBO, or the record before it is and, by its epoch, is not this log's, or nobody can tell: a
        fetch at the LBO is served only if a snapshot tells the epoch before (mend of the text's "less than").
        """
        known, end = self.known_epoch(last_epoch)
        return fetch_offset < self.begin or (0 < end == self.begin and (known == NO_EPOCH or last_epoch < known))

    def matches(self, fetch_offset: int, last_epoch: int) -> bool:
        """Whether the record before ``fetch_offset``, of ``last_epoch``, is in this log (KIP-595)."""
        known, end = self.known_epoch(last_epoch)
        return known == last_epoch and fetch_offset <= end

    # -- the log ----------------------------------------------------------------------------------------------------

    def append(self, records: Sequence[Record], epoch: int, *, control: bool = False) -> int:
        """Append as the leader; gives the offset of the first record. Raises ``InvalidAppend``."""
        return self.log.append_as_leader(records, epoch, control=control).first_offset

    def flush(self) -> None:
        """Sync the log: only then may any of it be acknowledged."""
        if self.log.recovery_point < self.log.end:
            self.log.flush()

    def truncate(self, epoch: int, leader_end: int) -> bool:
        """Cut to where the leader's log, whose ``epoch`` ends at ``leader_end``, and this one part.

        ``False``, and nothing is cut, where that is below the high watermark: no leader that was elected says so.
        """
        end = min(leader_end, self._larger_epoch_start(epoch))
        if end < self.high_watermark:
            return False
        self.log.truncate_to(end)
        return True

    def raise_high_watermark(self, offset: int) -> bool:
        """Raise it to ``offset``, or the LEO where that is smaller, and apply; gives whether it rose."""
        offset = min(offset, self.end)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self._apply()
        return True

    def _apply(self) -> None:
        """Apply what is committed, in whole batches; while the snapshot before it is missing, nothing.

        A batch that the high watermark lies inside of waits until all of it is committed, as in Kafka: a snapshot that
        ends within a batch leaves no offset to fetch from behind it (KAFKA-14619).
        """
        if self.fetching is not None:
            return
        while self.applied < self.high_watermark:
            batches = self.log.read(self.applied, up_to=self.high_watermark)
            if not batches:
                return
            for batch in batches:
                if not batch.is_control:
                    records = [record for record in batch.records() if record.offset >= self.applied]
                    for first in range(0, len(records), _APPLY_RECORDS):
                        self.machine.apply(records[first : first + _APPLY_RECORDS])
                self.applied = batch.next_offset

    # -- snapshots --------------------------------------------------------------------------------------------------

    def _load(self, snapshot: SnapshotId, file: File) -> None:
        """Raises ``CorruptBatch`` with nothing changed."""
        start = self._clock.now()
        self.machine.load(snapshot, file)
        self.applied = snapshot.end_offset
        self.metrics.loaded.observe(self._clock.now() - start)
        self.metrics.snapshot_bytes = file.size

    def wants_snapshot(self, minimum_records: int) -> bool:
        """Whether there are more records than this between the latest snapshot and the high watermark."""
        return self.fetching is None and self.applied - self.snapshots.latest_end > minimum_records

    def generate_snapshot(self) -> None:
        """Have the machine write what it has applied."""
        snapshot = SnapshotId(self.applied, self.epoch_at(self.applied - 1))
        # Nothing keeps a follower from applying what it has not synced; a snapshot may not reach past its log.
        self.flush()
        partial = self.snapshots.begin(snapshot)
        try:
            self.machine.snapshot(_Writer(self, partial))
        except BaseException:
            partial.abandon()
            raise

    def snapshot_finished(self, partial: PartialSnapshot, started: int) -> None:
        """The machine has finished a snapshot ("From the Kafka Controller to Kafka Raft")."""
        size = partial.size
        self.snapshots.add(partial)
        self.metrics.generated.observe(self._clock.now() - started)
        self.metrics.snapshot_bytes = size

    def now(self) -> int:
        """The clock's milliseconds."""
        return self._clock.now()

    def advance_begin(self, offset: int) -> bool:
        """Raise the LBO to ``offset`` if a whole snapshot reaches it; gives whether it rose."""
        if not self.begin < offset <= min(self.snapshots.latest_end, self.high_watermark):
            return False
        self.log.delete_before(offset)
        return True

    def delete_old_snapshots(self) -> tuple[SnapshotId, ...]:
        """Delete those whose last offset is below LBO - 1 ("When to Delete Snapshots"); gives them."""
        old = tuple(each for each in self.snapshots.ids if each.end_offset < self.begin)
        self.snapshots.delete(old)
        return old

    def abandon(self) -> None:
        """Close the snapshot that is being fetched, as it is; the log is the data directory's to close."""
        if self.fetching is not None:
            self.fetching.abandon()

    # -- starting over ----------------------------------------------------------------------------------------------

    def _wipe(self, offset: int) -> None:
        """Nothing is left, and the log begins at ``offset``.

        A crash in between leaves the log as it was or a beginning of it, if it needs no snapshot, or one that counts as
        empty.
        """
        if self.fetching is not None:
            self.fetching.discard()
            self.fetching = None
        self.snapshots.delete(self.snapshots.ids)
        self.log.truncate_fully_and_start_at(offset)
        self.high_watermark = offset

    def start_over(self, snapshot: SnapshotId) -> None:
        """Delete the log and all snapshots, and begin to fetch both ("Handling Fetch Response")."""
        self._wipe(snapshot.end_offset)
        self.fetching = self.snapshots.begin(snapshot)

    def reset_to_empty(self) -> None:
        """Begin again with an empty log: at boot, or where a snapshot cannot be fetched any more."""
        self._wipe(0)
        self.machine.clear()
        self.applied = 0

    def entered_epoch(self) -> None:
        """An incomplete snapshot of an older leader is fetched from its first byte again: bytes may differ."""
        if self.fetching is not None:
            self.fetching.restart()

    def take_chunk(self, position: int, data: bytes, *, more: bool) -> bool:
        """Write the next bytes of the snapshot that is being fetched; the last ones make it whole, and load it.

        Gives whether it is whole now. One that the machine cannot load is fetched from its first byte again.
        """
        partial = self.fetching
        if partial is None or position != partial.size:
            return False
        if data:
            partial.append(data)
        if more:
            return False
        try:
            self._load(partial.id, partial.file)
        except CorruptBatch:
            partial.restart()
            return False
        self.snapshots.add(partial)
        self.fetching = None
        self._apply()
        return True


class _Writer:
    """Where the machine writes one snapshot."""

    def __init__(self, replica: Replica, partial: PartialSnapshot) -> None:
        self._replica = replica
        self._partial = partial
        self._started = replica.now()

    @property
    def id(self) -> SnapshotId:
        """The end offset and epoch of what the machine has applied."""
        return self._partial.id

    def append(self, data: bytes) -> None:
        """Write the next bytes."""
        self._partial.append(data)

    def finished(self) -> None:
        """The snapshot is complete."""
        self._replica.snapshot_finished(self._partial, self._started)
