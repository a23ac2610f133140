"""Random crash points of cleaning: ``python -m tests.impl.compaction_crashes [POINTS] [SEED]`` at the root.

A story is a workload over one compacted log, decided by its seed: records come, are flushed and committed, the log is
cleaned with a map that may be too small, cut above and below what is clean, trimmed, opened again. Some are logs of
followers, whose records come from a leader that cleans its own log, and so with holes. Before random changes of files,
those of recovery too, a copy is taken of what a crash at that moment leaves. It is opened, now and then after another
crash while that goes on. Of each record that was synced it must serve the record or its key's winner, nothing twice,
and nothing else; and cleaning it once more must end with the same state.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise

from fencepost.impl.compaction import Strategy
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import Codec, LogError, StoredRecord
from fencepost.impl.log.checkpoints import CLEANED_OFFSETS

from .compacted import KEY, STRATEGIES, Place, draw, fill, naive, settings, stored, table_of

STEPS = 40
MAPS = (64, 300, 4096)
"""Bytes: two keys, ten, all."""
_CHANGES = frozenset(("append", "truncate", "fsync", "rename", "remove", "fsync_dir", "make_dir"))


class CrashFailure(AssertionError):
    """What was found, and the numbers that bring it back."""


class _Lost(Exception):
    """The power fails while a copy is opened."""


def demand(holds: bool, what: str) -> None:
    """Raises ``AssertionError``."""
    if not holds:
        raise AssertionError(what)


class Story:
    """One workload; crash points are taken at each change with probability ``often``."""

    def __init__(self, seed: int, often: float, limit: int = 1 << 30) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.crashing = random.Random(f"crashes {seed}")
        self.often = often
        self.limit = limit
        self.strategy: Strategy = self.chance.choice(STRATEGIES)
        self.memory = self.chance.choice(MAPS)
        self.points: Counter[str] = Counter()
        """Crash points by operation and kind of file."""
        self.files = SimulatedFiles(seed)
        self.now = 0
        self.epoch = 0
        self.high_watermark = 0
        self.durable = 0
        """The log survives a crash up to here."""
        self.untouched = 0
        """From here on nothing may have been cleaned."""
        self.before: list[StoredRecord] = []
        """What the log served before the step that is going on."""
        self.coming: list[StoredRecord] = []
        """What this step appends."""
        self.leader: Place | None = None
        """Whom this log copies, holes and all, where it is a follower's."""
        if self.chance.random() < 0.4:
            self.leader = self._open(SimulatedFiles(seed))
        self.place = self._open(self.files)
        self.files.hook = self._hook

    def _open(self, files: SimulatedFiles) -> Place:
        config = settings(self.strategy, max_compaction_lag_ms=1 << 40)
        return Place(files, config, memory=self.memory, now=self.now)

    # -- crashes ----------------------------------------------------------------------------------------------------

    def _hook(self, operation: str, path: str) -> None:
        if operation not in _CHANGES or self.crashing.random() >= self.often:
            return
        if sum(self.points.values()) >= self.limit:
            return
        kind = path.rpartition("/")[2].lstrip("0123456789") or path
        self.points[f"{operation} {kind}"] += 1
        seed = self.crashing.randrange(1 << 32)
        try:
            self._check(self.files.crashed_copy(seed))
        except (AssertionError, LogError, KeyError, ValueError, OSError) as error:
            what = f"{type(error).__name__}: {error}"
            raise CrashFailure(f"seed {self.seed}, {operation} {path}, crash {seed}: {what}") from error

    def _check(self, files: SimulatedFiles) -> None:
        if self.crashing.random() < 0.3:
            files = self._crash_while_opening(files)
        place = self._open(files)
        records, log = stored(place.log), place.log
        self.compare(place, records)
        cleaned = place.directory.cleaned(*KEY)
        demand(cleaned <= max(log.end, log.log_start), f"clean up to {cleaned}, and the log ends at {log.end}")
        keys = Counter(each.key for each in records if each.offset < cleaned)
        demand(not keys or max(keys.values()) == 1, f"two records of a key in the clean part, below {cleaned}")
        if self.crashing.random() < 0.25:
            table, untouched = table_of(records, self.strategy), self.untouched
            place.clean(min(self.high_watermark, log.end))
            self.untouched = max(untouched, self.high_watermark)
            again = stored(place.log)
            self.compare(place, again)
            self.untouched = untouched
            demand(table_of(again, self.strategy) == table, "cleaning after the crash has changed the state")
        place.directory.abandon()

    def _crash_while_opening(self, files: SimulatedFiles) -> SimulatedFiles:
        left = self.crashing.randrange(12)

        def hook(operation: str, _path: str) -> None:
            nonlocal left
            if operation in _CHANGES:
                left -= 1
                if left < 0:
                    raise _Lost

        files.hook = hook
        with suppress(_Lost):
            self._open(files)
        files.hook = None
        files.crash(self.crashing.randrange(1 << 32))
        return files

    def compare(self, place: Place, found: list[StoredRecord]) -> None:
        """``found`` is what may be left of what was there, and what came, in the log of this place."""
        end, start = place.log.end, place.log.log_start
        demand(end >= self.durable, f"the log ends at {end}, and was synced up to {self.durable}")
        offsets = [each.offset for each in found]
        demand(all(a < b for a, b in pairwise(offsets)), f"served twice or back: {offsets}")
        known = {each.offset: each for each in (*self.before, *self.coming)}
        for each in found:
            demand(known.get(each.offset) == each, f"offset {each.offset} has {each}, which nobody wrote")
        there = [each for each in known.values() if start <= each.offset < end]
        missing = [each for each in there if each.offset >= self.untouched and each not in found]
        demand(not missing, f"lost above what was cleaned: {missing[:3]}")
        winners = naive([*there, *(each for each in found if each.offset not in known)], self.strategy)
        state = {key: each.value for key, each in winners.items() if each.value is not None}
        got = table_of(found, self.strategy)
        demand(got == state, f"a reader has {got}, it should be {state}")

    # -- the workload -----------------------------------------------------------------------------------------------

    @contextmanager
    def _step(self) -> Iterator[None]:
        self.before = stored(self.place.log)
        self.coming = []
        yield
        self.compare(self.place, stored(self.place.log))

    def run(self) -> int:
        """The whole story; gives the number of crash points. Raises ``CrashFailure``, ``AssertionError``."""
        for _ in range(STEPS):
            with self._step():
                self._act()
            self.now += self.chance.choice((0, 0, 1, 60, 200))
            self.place.now = self.now
        return sum(self.points.values())

    def _act(self) -> None:
        chance, log = self.chance, self.place.log
        move = chance.random()
        if move < 0.34:
            for _ in range(chance.randint(1, 5)):
                self._append()
        elif move < 0.46:
            self.durable = log.flush()
            self.high_watermark = chance.randint(self.high_watermark, log.end)
        elif move < 0.74:
            self._clean()
        elif move < 0.80:
            self._truncate(chance.randint(min(self.high_watermark, log.end), log.end))
        elif move < 0.84:
            self._truncate(chance.randint(log.log_start, log.end))
        elif move < 0.88:
            log.delete_before(chance.randint(log.log_start, max(log.log_start, min(self.high_watermark, log.end))))
        elif move < 0.90:
            self.place.directory.store_recovery_points()
        elif move < 0.95:
            self.durable = log.flush()
            self.place.directory.close()
            self.place = self._open(self.files)
        else:
            self.files.hook = None
            self.files.crash(chance.randrange(1 << 32))
            self.place = self._open(self.files)
            self.files.hook = self._hook
            self.durable = self.place.log.end
            self.high_watermark = min(self.high_watermark, self.place.log.end)

    def _append(self) -> None:
        chance, log = self.chance, self.place.log
        if self.leader is not None:
            self._copy(self.leader)
            return
        if chance.random() < 0.2:
            self.epoch = max(self.epoch, log.latest_epoch) + chance.choice((1, 255))
        self.epoch = max(self.epoch, log.latest_epoch)
        records = [draw(chance, log.end + n, self.now) for n in range(chance.randint(1, 4))]
        self.coming += [
            StoredRecord(log.end + n, self.epoch, each.value, each.key, each.timestamp, each.headers)
            for n, each in enumerate(records)
        ]
        log.append_as_leader(records, self.epoch, codec=Codec(chance.randrange(5)))

    def _copy(self, leader: Place) -> None:
        """What a follower fetches at once, of a leader that cleans its own log."""
        chance, log = self.chance, self.place.log
        if chance.random() < 0.5:
            self.epoch += chance.choice((0, 0, 1, 255))
            fill(leader.log, chance, chance.randint(1, 12), self.now, epoch=self.epoch)
            leader.now = self.now
            leader.clean()
        batches = leader.log.read(log.end, chance.choice((1, 200, 2000))) if log.end < leader.log.end else []
        if batches:
            self.coming += [record for batch in batches for record in batch.records()]
            log.append_as_follower(b"".join(batch.data for batch in batches), self.epoch)

    def _clean(self) -> None:
        roll = self.chance.random() < 0.7
        if roll:
            self.place.log.roll()
        self.durable = max(self.durable, self.place.log.recovery_point)
        self.untouched = max(self.untouched, self.high_watermark)
        done = self.place.clean(self.high_watermark, roll=False)
        demand(all(each.end <= self.high_watermark for each in done), "cleaned above the high watermark")

    def _truncate(self, offset: int) -> None:
        """Cut; what lies above may be there or not when the power fails meanwhile."""
        self.before = [each for each in self.before if each.offset < offset]
        log = self.place.log
        self.coming = [each for each in stored(log) if each.offset >= offset]
        self.durable = min(self.durable, self._end_below(offset))
        self.high_watermark = min(self.high_watermark, self.durable)
        self.untouched = min(self.untouched, offset)
        log.truncate_to(offset)
        self.high_watermark = min(self.high_watermark, log.end)
        self.coming = []

    def _end_below(self, offset: int) -> int:
        """Where the last batch ends that lies below ``offset``."""
        log = self.place.log
        ends = [each.next_offset for each in log.read(log.log_start, 1 << 30) if each.next_offset <= offset]
        return max(ends, default=min(log.log_start, log.segment_bases[0]))


def run(points: int, seed: int, often: float = 0.25, told: Callable[[str], None] = lambda _: None) -> Counter[str]:
    """Stories until there are so many points; gives how many of each kind. Raises ``CrashFailure``."""
    found: Counter[str] = Counter()
    number = 0
    while sum(found.values()) < points:
        story = Story(seed * 100_000 + number, often, points - sum(found.values()))
        try:
            story.run()
        except CrashFailure:
            raise
        except (AssertionError, LogError) as error:
            raise CrashFailure(f"seed {story.seed}: {type(error).__name__}: {error}") from error
        found += story.points
        number += 1
    told(f"{number} stories")
    return found


def main(points: int = 3000, seed: int = 1) -> None:
    """Run and print."""
    start = time.perf_counter()
    found = run(points, seed, told=print)
    seconds = time.perf_counter() - start
    swaps = sum(count for kind, count in found.items() if any(word in kind for word in ("swap", "cleaned", "deleted")))
    checkpoint = sum(count for kind, count in found.items() if CLEANED_OFFSETS in kind)
    print(f"seed {seed}: {points} crash points, {swaps} at files of a cleaning, {checkpoint} at its checkpoint")
    print(f"all recovered, {points / seconds:.0f} a second")
    for kind, count in found.most_common():
        print(f"  {count:>6} {kind}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
