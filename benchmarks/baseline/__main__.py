"""``python -m benchmarks.baseline record FILE`` and ``python -m benchmarks.baseline compare OLD NEW``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from cyclopts import App

from .compare import compare
from .counts import count_items
from .invocations import invocation_items
from .item import Item
from .kills import kill_items
from .record import Record
from .recorder import record
from .simulation import simulation_items

Part = Literal["counts", "kills", "invocations", "simulation"]

app = App(name="python -m benchmarks.baseline", help="Record what Fencepost computes, and compare two records.")


@app.command(name="record")
def record_parts(
    file: Path,
    *,
    part: list[Part] | None = None,
    shard: str = "1/1",
    sample: int | None = None,
    only: str = "",
    seeds: int = 500,
) -> None:
    """Append to a record what it does not have yet.

    Parameters
    ----------
    file
        Record to write (JSON Lines). Several shards may append to one file.
    part
        Part to record (repeatable; default all).
    shard
        Part of the items to measure, as i/n.
    sample
        Number of items of the shard to measure, spread evenly.
    only
        Beginning of the keys to measure, as in planned/fencing/.
    seeds
        Number of seeds of the simulation.
    """
    first, _, of = shard.partition("/")
    if not (first.isdecimal() and of.isdecimal() and 1 <= int(first) <= int(of)):
        sys.exit(f"--shard: {shard!r} is no shard; write i/n, as in 1/4")
    items = [each for name in part or ("counts", "invocations", "kills", "simulation") for each in _items(name, seeds)]
    items = [each for each in items if each.key.startswith(only)]
    if not items:
        sys.exit(f"--only: no item's key begins with {only!r}; leave --only out")
    new = record(items, file, (int(first), int(of)), sample)
    print(f"{file}: {new} new items of {len(items)}")


@app.command(name="compare")
def compare_files(old: Path, new: Path, *, ignore_prose: bool = False) -> None:
    """Print every difference between two records; the exit code is 1 if there is one.

    Parameters
    ----------
    old
        Earlier record.
    new
        Later record.
    ignore_prose
        Ignore sentences that were rewritten, such as help texts and messages.
    """
    for file in (old, new):
        if not file.is_file():
            sys.exit(f"{file}: there is no such file; record it first")
    found = compare(Record(old).parts, Record(new).parts)
    shown = [each for each in found if not (ignore_prose and each.is_prose)]
    for each in shown:
        print(each)
    print(f"{len(shown)} differences" + (f", and {len(found) - len(shown)} of prose" if ignore_prose else ""))
    sys.exit(1 if shown else 0)


def _items(part: Part, seeds: int) -> Iterator[Item]:
    if part == "counts":
        yield from count_items()
    elif part == "kills":
        yield from kill_items()
    elif part == "invocations":
        yield from invocation_items()
    else:
        yield from simulation_items(seeds)


if __name__ == "__main__":
    app()
