"""How fast the explorer is, as ratios within one run: ``python benchmarks/explore.py``.

At 3/2/2/2 (replicas/log size/records/leader epoch) of kip-320: the batch engine against the reference engine, and the
reference engine against a hand-written tuple search (``handwritten.py``). Then the batch engine at 3/3/3/2, with its
memory. Then the compiled engine against the batch engine, with one thread and with two: at 3/2/2/2, 3/3/3/2, 3/4/4/2,
and at what `snapshots`, `tiering` and `compaction` have by default; in wall-clock time and in CPU time, as a machine
that others share tells more by the second. Beside it stands what the first use takes longer, and the compiler's CPU.
Each program runs alone in a fresh process; the best of ``--repeat`` runs counts, in turns, because
machines are shared. All check every invariant, and must find the same number of states.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from tempfile import TemporaryDirectory
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

SMALL = (3, 2, 2, 2)
LARGE = (3, 3, 3, 2)

_HANDWRITTEN = """
import json, sys, time
sys.path.insert(0, {folder!r})
from handwritten import search
start = time.perf_counter()
distinct, depth = search(*{constants})
print(json.dumps(dict(distinct=distinct, depth=depth, seconds=time.perf_counter() - start)))
"""

HUGE = (3, 4, 4, 2)
OTHERS = ("snapshots", "tiering", "compaction")

_COMPILED = """
import json, resource, time
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore import Query, explore, memory
spec = PROTOCOLS[{protocol!r}]
system = ground(spec.traced(None), dict(zip(spec.constants, {constants})))
before, peak = resource.getrusage(resource.RUSAGE_SELF), memory.peak()
found = explore(Query.of(system), {engine!r}, threads={threads})
after, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
compiling = children.ru_utime + children.ru_stime
each = (memory.peak() - peak) / found.distinct
print(json.dumps(found.to_json() | dict(seconds=found.seconds, cpu=cpu, compiling=compiling, each=each)))
"""

_ENGINE = """
import json, resource
from fencepost.model.core.ground import ground
from fencepost.model.explore import Query, explore
from fencepost.model.protocols.fencing import fencing
system = ground(fencing.traced("kip-320"), dict(zip(fencing.constants, {constants})))
found = explore(Query.of(system), {engine!r})
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps(found.to_json() | dict(seconds=found.seconds, peak_kib=peak)))
"""

app = App(name="explore", help=__doc__)


def run(program: str, environment: dict[str, str] | None = None, /, **values: object) -> dict[str, float]:
    """Run a program in a fresh interpreter; it prints one JSON object."""
    folder = __file__.rpartition("/")[0] or "."
    text = program.format(folder=folder, **values)
    done = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True, env=environment)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def best(results: list[dict[str, float]]) -> dict[str, float]:
    """The fastest run."""
    return min(results, key=lambda result: result["seconds"])


def _measured(protocol: str, constants: tuple[int, ...], repeat: int) -> list[str]:
    """A row: one first use of the compiled engine, then NumPy, one thread and two in turns."""
    turns = [("compiled", 2), *[("batch", 1), ("compiled", 1), ("compiled", 2)] * repeat]
    with TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        first, *found = [
            run(_COMPILED, environment, protocol=protocol, constants=constants, engine=engine, threads=threads)
            for engine, threads in turns
        ]
    batch, single, double = found[::3], found[1::3], found[2::3]
    assert all(each[name] == first[name] for name in ("distinct", "depth", "witnesses") for each in found)
    assert all(each["coverage"] == first["coverage"] for each in single + double)
    seconds = best(batch)["seconds"]
    cpu = min(each["cpu"] for each in batch)
    return [
        f"{protocol} {'/'.join(map(str, constants)) or 'by default'}",
        f"{first['distinct']:,}",
        f"{seconds:.2f}",
        *(f"{best(each)['seconds'] / seconds:.2f}" for each in (single, double)),
        f"{cpu:.2f}",
        *(f"{min(run['cpu'] for run in each) / cpu:.2f}" for each in (single, double)),
        *(f"{max(run['each'] for run in each):.1f}" for each in (batch, double)),
        f"{first['seconds'] - best(double)['seconds']:.2f}",
        f"{first['compiling']:.2f}",
    ]


def _compiled(console: Console, repeat: int, large: bool) -> None:
    """The compiled engine against NumPy."""
    columns = ("space", "states", "batch s", "1 thread", "2 threads", "CPU s", "1 thread", "2 threads")
    table = Table(*columns, "batch B/state", "compiled", "first s", "cc CPU s", title="compiled, as ratios to batch")
    spaces = [("fencing", constants) for constants in ((SMALL, LARGE, HUGE) if large else (SMALL,))]
    for protocol, constants in [*spaces, *((name, ()) for name in OTHERS)]:
        table.add_row(*_measured(protocol, constants, repeat))
    console.print(table)


@app.default
def main(*, repeat: int = 3, large: Annotated[bool, Parameter(negative="--no-large")] = True) -> None:
    """Measure and print.

    Parameters
    ----------
    repeat
        Runs of each program; the best counts.
    large
        Also explore 3/3/3/2 (4.1 million states) and, compiled, 3/4/4/2 (18.7 million).
    """
    rounds = [
        (
            run(_ENGINE, constants=SMALL, engine="batch"),
            run(_ENGINE, constants=SMALL, engine="reference"),
            run(_HANDWRITTEN, constants=SMALL),
        )
        for _ in range(repeat)
    ]
    batch, reference, handwritten = (best(list(column)) for column in zip(*rounds, strict=True))
    assert batch["distinct"] == reference["distinct"] == handwritten["distinct"]
    table = Table("kip-320", "states", "seconds", "MiB", title="best of " + str(repeat))
    for name, found in (("batch 3/2/2/2", batch), ("reference 3/2/2/2", reference), ("hand-written", handwritten)):
        memory = f"{found['peak_kib'] / 1024:,.0f}" if "peak_kib" in found else ""
        table.add_row(name, f"{found['distinct']:,}", f"{found['seconds']:.2f}", memory)
    if large:
        big = best([run(_ENGINE, constants=LARGE, engine="batch") for _ in range(repeat)])
        table.add_row(
            "batch 3/3/3/2", f"{big['distinct']:,}", f"{big['seconds']:.2f}", f"{big['peak_kib'] / 1024:,.0f}"
        )
    console = Console(width=140)
    console.print(table)
    _compiled(console, repeat, large)
    console.print(f"batch is {reference['seconds'] / batch['seconds']:.1f} times as fast as the reference")
    console.print(f"the reference is {handwritten['seconds'] / reference['seconds']:.2f} times as fast as hand-written")


if __name__ == "__main__":
    app()
