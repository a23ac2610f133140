"""Random crash points over a fixed workload: ``python -m tests.impl.crashes [POINTS] [SEED]`` at the root.

The workload runs once on a simulated disk. Before each of its operations on files (writes, cuts, syncs, renames, those
of recovery too) copies are taken of what a crash at this moment leaves, and each is opened and checked.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable

from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import Codec

from .twin import Twin

STEPS = 120
WORKLOAD_SEED = 320
_CHANGES = frozenset(("append", "truncate", "fsync", "rename", "remove", "fsync_dir", "make_dir"))


class CrashFailure(AssertionError):
    """What was found after a crash, and the numbers that bring it back."""


def run_workload(twin: Twin, seed: int, steps: int = STEPS) -> None:
    """The workload: leaders change, followers truncate, logs are trimmed and emptied, the machine crashes."""
    chance = random.Random(seed)
    epoch, serial = 0, 0

    def values() -> list[bytes]:
        nonlocal serial
        serial += 1
        return [b"%d.%d" % (serial, n) + b"x" * chance.randrange(40) for n in range(chance.randint(1, 4))]

    for _ in range(steps):
        state = twin.before
        step = chance.random()
        if step < 0.30:
            twin.lead(epoch, values(), Codec(chance.randrange(5)))
        elif step < 0.42:
            twin.follow(epoch, [values() for _ in range(chance.randint(1, 4))])
        elif step < 0.54:
            # An epoch above 256 has bytes of its own that a tear can take away.
            epoch += chance.choice((1, 1, 255, 256))
            twin.become_leader(epoch)
        elif step < 0.66:
            twin.flush()
        elif step < 0.74:
            twin.checkpoint()
        elif step < 0.78:
            twin.advance(chance.randint(0, state.end))
        elif step < 0.88:
            twin.truncate(chance.randint(max(0, state.end - 12), state.end))
            epoch += 1
        elif step < 0.93:
            twin.delete_before(chance.randint(state.start, state.end))
        elif step < 0.95:
            twin.wipe(chance.randint(0, state.end + 10))
        elif step < 0.97:
            twin.restart()
            epoch = max(epoch, twin.log.latest_epoch)
        else:
            twin.crash(chance.randrange(1 << 32))
            epoch = max(epoch, twin.log.latest_epoch) + 1
        twin.compare()


def _at_each_change(workload_seed: int, called: Callable[[Twin, str, str], None]) -> None:
    files = SimulatedFiles(workload_seed)
    twin = Twin(files)

    def hook(operation: str, path: str) -> None:
        if operation in _CHANGES:
            called(twin, operation, path)

    files.hook = hook
    run_workload(twin, workload_seed)


def crash_points(points: int, seed: int, workload_seed: int = WORKLOAD_SEED) -> int:
    """Check ``points`` crashes drawn by ``seed``, spread over all changes; gives the number of changes.

    Raises ``CrashFailure`` that names the change and the seed of the crash.
    """
    count = 0

    def counted(_twin: Twin, _operation: str, _path: str) -> None:
        nonlocal count
        count += 1

    _at_each_change(workload_seed, counted)
    chance = random.Random(seed)
    whole, rest = divmod(points, count)
    extra = frozenset(chance.sample(range(count), rest))
    at = 0

    def crash_here(twin: Twin, operation: str, path: str) -> None:
        nonlocal at
        here, at = at, at + 1
        for _ in range(whole + (here in extra)):
            crash_seed = chance.randrange(1 << 32)
            try:
                twin.check(twin.files.crashed_copy(crash_seed))
            except Exception as error:
                where = f"change {here} ({operation} {path}), crash seed {crash_seed}, workload seed {workload_seed}"
                raise CrashFailure(f"{where}: {type(error).__name__}: {error}") from error

    _at_each_change(workload_seed, crash_here)
    return count


def main(points: int = 2000, seed: int = 1) -> None:
    """Run and print."""
    start = time.perf_counter()
    count = crash_points(points, seed)
    seconds = time.perf_counter() - start
    print(f"seed {seed}: {points} crashes at {count} changes of files: all recovered, {points / seconds:.0f} a second")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
