"""How fast the explorer is with its states on disk: ``python benchmarks/explore_disk.py``.

At spaces of one variant of fencing, by default kip-320-brokers, given as replicas/log size/records/leader epoch: the
search on disk (by C, and by NumPy with ``--numpy``) with so much memory granted, and NumPy in memory where there are no
more states than ``--in-memory``. Each runs alone in a fresh process, in a directory below ``--folder`` that goes
afterwards. Seconds are wall clock, and processor time of the process and of the kernel for it, without the compiler's.
All check every invariant, and must find the same states, transitions and witnesses.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

_PROGRAM = """
import json, resource, sys
from pathlib import Path
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore import Limits, Query, explore
from fencepost.model.explore.disk.search import explore_on_disk
variant, constants, engine, granted, folder = sys.argv[1:]
spec = PROTOCOLS["fencing"]
system = ground(spec.traced(variant), dict(zip(spec.constants, map(int, constants.split("/")))))
limits = Limits(sys.maxsize, int(granted) << 20)
before = resource.getrusage(resource.RUSAGE_SELF)
if engine == "memory":
    found = explore(Query.of(system), "batch")
else:
    found = explore_on_disk(Query.of(system, limits=limits), Path(folder), None if engine == "auto" else engine)
after = resource.getrusage(resource.RUSAGE_SELF)
cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
size = sum(path.stat().st_size for path in Path(folder).iterdir())
print(json.dumps(found.to_json() | dict(seconds=found.seconds, cpu=cpu, size=size, transitions=found.transitions)))
"""

app = App(name="explore_disk", help=__doc__)


def run(variant: str, constants: str, engine: str, granted: int, below: Path) -> dict[str, float]:
    """Explore in a fresh process."""
    with TemporaryDirectory(dir=below) as folder:
        command = [sys.executable, "-c", _PROGRAM, variant, constants, engine, str(granted), folder]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    assert answer["verdict"] == "holds", answer["reason"]
    return answer


@app.default
def main(
    *spaces: str,
    variant: str = "kip-320-brokers",
    granted: int = 1024,
    in_memory: int = 20_000_000,
    numpy: Annotated[bool, Parameter(negative=())] = False,
    folder: Path = Path(),
) -> None:
    """Measure and print.

    Parameters
    ----------
    spaces
        Constants, as 3/2/2/2; by default 3/2/2/1 and 3/2/2/2.
    variant
        The variant of fencing.
    granted
        MiB of memory for the search on disk.
    in_memory
        Look in memory, too, at a space of at most so many states.
    numpy
        Measure the search on disk without a compiler, too.
    folder
        Where the directories are made.
    """
    columns = (
        "space",
        "engine",
        "states",
        "depth",
        "seconds",
        "CPU s",
        "to NumPy",
        "MiB",
        "bytes on disk",
        "us a state",
    )
    table = Table(*columns, title=f"{variant}, {granted} MiB granted")
    for space in spaces or ("3/2/2/1", "3/2/2/2"):
        engines = ["auto", *(["batch"] if numpy else [])]
        rows = {engine: run(variant, space, engine, granted, folder) for engine in engines}
        memory = run(variant, space, "memory", granted, folder) if rows["auto"]["distinct"] <= in_memory else None
        for engine, found in [*rows.items(), *([("memory", memory)] if memory else [])]:
            first = rows["auto"]
            assert all(found[name] == first[name] for name in ("distinct", "depth", "transitions", "witnesses"))
            table.add_row(
                space,
                {"auto": "on disk", "batch": "on disk, NumPy", "memory": "in memory, NumPy"}[engine],
                f"{found['distinct']:,}",
                str(found["depth"]),
                f"{found['seconds']:.1f}",
                f"{found['cpu']:.1f}",
                f"{found['cpu'] / memory['cpu']:.2f}" if memory else "",
                f"{found['memory_bytes'] / (1 << 20):,.0f}",
                f"{found['size'] / found['distinct']:.1f} a state" if found["size"] else "",
                f"{1e6 * found['cpu'] / found['distinct']:.2f}",
            )
    Console(width=140).print(table)


if __name__ == "__main__":
    app()
