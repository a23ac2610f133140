"""How much quicker two of Spark's executors are than one, with states on disk: ``python benchmarks/explore_spread.py``.

One process explores the space up to its two largest levels. From a copy of its directory each goes on for those two
levels, ``local[1]`` and ``local[2]`` in turns, each in a fresh process whose session has done the level before, so that
nothing is loaded any more. Seconds are wall clock. Where others share the cores they tell little: beside them stand the
processor time of the tasks and of the driver, and what two executors take by it: what the driver has, and of the tasks,
given out in their order to whoever is free, what the later of both has. All must come to the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cyclopts import App
from rich.console import Console
from rich.table import Table

_BEFORE = """
import json, sys
from pathlib import Path
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore import Limits, Query
from fencepost.model.explore.disk.search import explore_on_disk
variant, constants, granted, folder, depth = sys.argv[1:]
spec = PROTOCOLS["fencing"]
system = ground(spec.traced(variant), dict(zip(spec.constants, map(int, constants.split("/")))))
limits = Limits(sys.maxsize, int(granted) << 20, int(depth) if int(depth) else None)
found = explore_on_disk(Query.of(system, limits=limits), Path(folder))
levels = json.loads((Path(folder) / "manifest.json").read_text())["levels"]
print(json.dumps([each["states"] for each in levels]))
"""

_TWO_LEVELS = """
import json, sys, time
from pathlib import Path
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore import Limits, Query
from fencepost.model.explore.disk.spread import SpreadSearch, explore_spread
from fencepost.traces.corpus.spread import spread
from fencepost.traces.spark import spark_session
variant, constants, granted, folder, depth, executors = sys.argv[1:]
master = f"local[{executors}]"
spark_session("fencepost", master)
spec = PROTOCOLS["fencing"]
system = ground(spec.traced(variant), dict(zip(spec.constants, map(int, constants.split("/")))))
told, level = [], SpreadSearch._level
jobs = []

def timed(pieces, work):
    def task(piece):
        import time
        start = time.process_time()
        result = work(piece)
        return result, time.process_time() - start
    done = spread(pieces, task, master)
    jobs.append([seconds for _, seconds in done])
    return [result for result, _ in done]

def measured(self):
    jobs.clear()
    before, cpu, states = time.perf_counter(), time.process_time(), self.content.levels[-1].states
    level(self)
    told.append([states, time.perf_counter() - before, time.process_time() - cpu, list(jobs)])

SpreadSearch._level = measured
limits = Limits(sys.maxsize, int(granted) << 20, int(depth))
explore_spread(Query.of(system, limits=limits), Path(folder), timed)
print(json.dumps(told[-2:]))
"""

app = App(name="explore_spread", help=__doc__)


def _run(program: str, *values: object) -> Any:
    command = [sys.executable, "-c", program, *map(str, values)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def _makespan(seconds: list[float], workers: int) -> float:
    """When the last of these tasks ends that are given out in their order to whoever is free."""
    free = [0.0] * workers
    for each in seconds:
        free[free.index(min(free))] += each
    return max(free)


def _digest(folder: Path) -> str:
    whole = hashlib.blake2b()
    for path in sorted(folder.glob("level-*.keys")):
        whole.update(path.read_bytes())
    return whole.hexdigest()


@app.default
def main(
    space: str = "3/3/3/2",
    *,
    variant: str = "kip-320-brokers",
    granted: int = 1024,
    repeat: int = 2,
    depth: int | None = None,
    folder: Path = Path(),
) -> None:
    """Measure and print.

    Parameters
    ----------
    space
        Constants: replicas/log size/records/leader epoch.
    variant
        The variant of fencing.
    granted
        MiB of memory for each process.
    repeat
        Runs of each; the best counts.
    depth
        The number of the first of the two levels, the initial state's being 0; by default all is explored to find it.
    folder
        Where the directories are made.
    """
    with TemporaryDirectory(dir=folder) as name:
        if depth is None:
            sizes = _run(_BEFORE, variant, space, granted, Path(name) / "whole", 0)
            shutil.rmtree(Path(name) / "whole")
            depth = max(range(len(sizes) - 1), key=lambda at: sizes[at] + sizes[at + 1])
        # The level before is expanded by each, so that its workers have read the protocol.
        begun = Path(name) / "begun"
        _run(_BEFORE, variant, space, granted, begun, depth - 2)
        rows: dict[int, list[list[list[Any]]]] = {1: [], 2: []}
        digests = set()
        for _ in range(repeat):
            for executors in rows:
                copy = Path(name) / "copy"
                shutil.copytree(begun, copy)
                rows[executors].append(_run(_TWO_LEVELS, variant, space, granted, copy, depth + 1, executors))
                digests.add(_digest(copy))
                shutil.rmtree(copy)
        assert len(digests) == 1, "the files differ"
    table = Table("states", "executors", "seconds", "of one", "CPU s tasks", "driver", "by CPU, of one")
    for at in range(2):
        best = {executors: min((run[at] for run in runs), key=lambda row: row[1]) for executors, runs in rows.items()}
        for executors, (states, seconds, driver, jobs) in best.items():
            alone, shared = (driver + sum(_makespan(job, workers) for job in jobs) for workers in (1, executors))
            table.add_row(
                f"{states:,}",
                str(executors),
                f"{seconds:.1f}",
                f"{seconds / best[1][1]:.2f}",
                f"{sum(map(sum, jobs)):.1f}",
                f"{driver:.1f}",
                f"{shared / alone:.2f}",
            )
    console = Console(width=140)
    console.print(f"{variant} {space}, levels {depth} and {depth + 1}, {granted} MiB granted to each process")
    console.print(table)


if __name__ == "__main__":
    app()
