"""A log and a plain list that says what it must hold, now and after a crash at any moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fencepost.impl.files import Files, SimulatedFiles
from fencepost.impl.log import Codec, DataDirectory, Log, LogConfig, Record, encode_batch

KEY = "orders", 0
CONFIG = LogConfig(segment_bytes=420, index_interval_bytes=100)

Row = tuple[int, int, bytes]
"""Offset, leader epoch, value."""


def open_directory(files: Files, config: LogConfig = CONFIG) -> DataDirectory:
    """The data directory of node 1."""
    return DataDirectory(files, node_id=1, cluster_id="Rj_brD27af2db7ETxjjJIw", config=config)


@dataclass(frozen=True)
class State:
    """What the log holds: batches ``(base offset, epoch, values)`` one after another up to ``end``."""

    start: int = 0
    end: int = 0
    batches: tuple[tuple[int, int, tuple[bytes, ...]], ...] = ()
    synced: int = 0
    high_watermark: int = 0

    def rows(self) -> list[Row]:
        """All records, those below the log start as well while their batch is there."""
        return [(base + n, epoch, value) for base, epoch, values in self.batches for n, value in enumerate(values)]

    def appended(self, epoch: int, values: Sequence[bytes]) -> State:
        """With one more batch."""
        batch = self.end, epoch, tuple(values)
        return replace(self, batches=(*self.batches, batch), end=self.end + len(values))

    def truncated(self, offset: int) -> State:
        """Cut to whole batches that end at or below ``offset``."""
        kept = tuple(batch for batch in self.batches if batch[0] + len(batch[2]) <= offset)
        cut = self.batches[len(kept) :]
        end = min(self.end, offset, *[base for base, _, _ in cut[:1]])
        if offset >= self.end:
            return self
        return replace(self, batches=kept, end=end, synced=end, start=min(self.start, end))


@dataclass(frozen=True)
class Seen:
    """What a log shows after it was opened."""

    start: int
    end: int
    rows: tuple[Row, ...]
    epochs: tuple[tuple[int, int], ...]
    high_watermark: int
    size: int


def look(log: Log, high_watermark: int = 0) -> Seen:
    """Everything that can be read from the log, in one go and by looking up every third offset."""
    rows = tuple((r.offset, r.leader_epoch, r.value or b"") for r in log.records(log.log_start))
    for offset in range(log.log_start, log.end, 3):
        first, *_ = log.read(offset, 1)
        assert first.base_offset <= offset <= first.last_offset, f"offset {offset} is not found"
    epochs = tuple((entry.epoch, entry.start_offset) for entry in log.epochs.entries)
    return Seen(log.log_start, log.end, rows, epochs, high_watermark, log.size)


def epochs_of(rows: Iterable[Row]) -> tuple[tuple[int, int], ...]:
    """The epoch cache that the records alone imply."""
    entries: list[tuple[int, int]] = []
    for offset, epoch, _ in rows:
        if not entries or entries[-1][0] != epoch:
            entries.append((epoch, offset))
    return tuple(entries)


class Twin:
    """The log in ``files`` and what it must hold. While an operation runs, ``before`` and ``after`` differ."""

    def __init__(self, files: SimulatedFiles) -> None:
        self.files = files
        self.before = self.after = State()
        self.wiping: frozenset[int] = frozenset()
        """While everything is removed: where an empty log may stand after a crash."""
        self.directory = open_directory(files)
        self.log = self.directory.log(*KEY)

    # -- operations -------------------------------------------------------------------------------------------------

    def lead(self, epoch: int, values: Sequence[bytes], codec: Codec = Codec.NONE) -> None:
        """Append as leader."""
        self.after = self.before.appended(epoch, values)
        self.log.append_as_leader([Record(value, timestamp=7) for value in values], epoch, codec=codec)
        self._done()

    def follow(self, epoch: int, batches: Sequence[Sequence[bytes]]) -> None:
        """Append batches that a leader of this epoch made."""
        data = b""
        for values in batches:
            data += encode_batch([Record(value) for value in values], base_offset=self.after.end, leader_epoch=epoch)
            self.after = self.after.appended(epoch, values)
        self.log.append_as_follower(data)
        self._done()

    def become_leader(self, epoch: int) -> None:
        """Take an epoch with no record yet."""
        self.log.assign_epoch(epoch)

    def flush(self) -> None:
        """Sync the log."""
        self.after = replace(self.before, synced=max(self.before.end, self.before.synced))
        self.log.flush()
        self._done()

    def checkpoint(self) -> None:
        """Store the recovery point, which changes nothing that can be seen."""
        self.directory.store_recovery_points()

    def advance(self, high_watermark: int) -> None:
        """Store a high watermark."""
        self.after = replace(self.before, high_watermark=high_watermark)
        self.directory.store_high_watermarks({KEY: high_watermark})
        self._done()

    def truncate(self, offset: int) -> None:
        """Truncate to an offset."""
        if offset < self.log.segment_bases[0]:
            self.wipe(offset, self.log.truncate_to)
            return
        self.after = self.before.truncated(offset)
        assert self.log.truncate_to(offset) == self.after.end
        self._done()

    def wipe(self, offset: int, how: object = None) -> None:
        """Truncate fully and start at an offset."""
        self.wiping = frozenset((offset, self.before.start, self.log.segment_bases[0]))
        self.after = State(offset, offset, (), offset, self.before.high_watermark)
        call = how or self.log.truncate_fully_and_start_at
        assert callable(call)
        call(offset)
        self.wiping = frozenset()
        self._done()

    def delete_before(self, offset: int) -> None:
        """Raise the log start."""
        self.after = replace(self.before, start=max(self.before.start, offset))
        self.log.delete_before(offset)
        self._done()

    def restart(self) -> None:
        """A clean stop and start."""
        self.after = replace(self.before, synced=self.before.end)
        self.directory.close()
        self._done()
        self._open()

    def crash(self, seed: int) -> None:
        """Lose power, and go on with what is left; that must be what ``check`` allows."""
        self.files.crash(seed)
        seen = self.check(self.files.crashed_copy(0))  # nothing is pending, so this is an exact copy
        longer = max(self.before, self.after, key=lambda state: state.end)
        kept = tuple(b for b in longer.batches if b[0] + len(b[2]) <= seen.end) if seen.size else ()
        self.before = self.after = State(seen.start, seen.end, kept, seen.end, seen.high_watermark)
        self.wiping = frozenset()
        self._open()

    def _open(self) -> None:
        self.directory = open_directory(self.files)
        self.log = self.directory.log(*KEY)

    def _done(self) -> None:
        self.before = self.after

    # -- what must hold ---------------------------------------------------------------------------------------------

    def compare(self) -> None:
        """The running log against the list."""
        seen = look(self.log)
        state = self.before
        assert (seen.start, seen.end) == (state.start, state.end)
        assert list(seen.rows) == [row for row in state.rows() if row[0] >= state.start]
        claimed = [entry for entry in seen.epochs if entry[1] < state.end]
        assert claimed == list(epochs_of(seen.rows)) or not seen.rows

    def check(self, files: SimulatedFiles) -> Seen:
        """Open what a crash has left: it must open, lose nothing that was synced, and serve nothing else."""
        directory = open_directory(files)
        seen = look(directory.log(*KEY), directory.high_watermark(*KEY))
        states = self.before, self.after
        assert seen.high_watermark in [state.high_watermark for state in states]
        if self.wiping:
            assert seen.start in self.wiping
            assert seen.rows or seen.start == seen.end
            source = self.before.rows()
        else:
            assert seen.start in [state.start for state in states]
            floor = min(state.synced for state in states)
            assert seen.end >= floor, f"synced up to {floor}, the log ends at {seen.end}"
            assert seen.end <= max(state.end for state in states) or seen.end == seen.start
            source = max(states, key=lambda state: state.end).rows()
        assert list(seen.rows) == [row for row in source if seen.start <= row[0] < seen.end], "other records"
        if seen.rows:
            assert seen.epochs == epochs_of(seen.rows), "the epoch cache and the records differ"
        else:
            assert all(start == seen.end for _, start in seen.epochs)
        again = files.crashed_copy(len(seen.rows))
        directory = open_directory(again)
        twice = look(directory.log(*KEY), directory.high_watermark(*KEY))
        assert twice.rows == seen.rows and (twice.start, twice.end) == (seen.start, seen.end), "a second crash differs"
        if seen.rows:
            assert twice.epochs == seen.epochs
        self._go_on(directory, again)
        return seen

    def _go_on(self, directory: DataDirectory, files: SimulatedFiles) -> None:
        """A log that was recovered takes records and keeps them."""
        log = directory.log(*KEY)
        end, epoch = log.end, max(log.latest_epoch, 0) + 1000
        log.append_as_leader([Record(b"after")], epoch)
        log.flush()
        last = look(open_directory(files.crashed_copy(1)).log(*KEY))
        assert last.rows and last.rows[-1] == (end, epoch, b"after")
        assert last.epochs and last.epochs[-1] == (epoch, end)
