"""How fast the explorer is, as ratios within one run: ``python benchmarks/explore.py``.

At 3/2/2/2 (replicas/log size/records/leader epoch) of kip-320: the batch engine against the reference engine, and the
reference engine against a hand-written tuple search (``handwritten.py``). Then the batch engine at 3/3/3/2, with its
memory. Each program runs alone in a fresh process; the best of ``--repeat`` runs counts, in turns, because
machines are shared. All check every invariant, and must find the same number of states.
"""

from __future__ import annotations

import json
import subprocess
import sys
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


def run(program: str, **values: object) -> dict[str, float]:
    """Run a program in a fresh interpreter; it prints one JSON object."""
    folder = __file__.rpartition("/")[0] or "."
    text = program.format(folder=folder, **values)
    done = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def best(results: list[dict[str, float]]) -> dict[str, float]:
    """The fastest run."""
    return min(results, key=lambda result: result["seconds"])


@app.default
def main(*, repeat: int = 3, large: Annotated[bool, Parameter(negative="--no-large")] = True) -> None:
    """Measure and print.

    Parameters
    ----------
    repeat
        Runs of each program; the best counts.
    large
        Also explore 3/3/3/2 (4.1 million states).
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
    console = Console()
    console.print(table)
    console.print(f"batch is {reference['seconds'] / batch['seconds']:.1f} times as fast as the reference")
    console.print(f"the reference is {handwritten['seconds'] / reference['seconds']:.2f} times as fast as hand-written")


if __name__ == "__main__":
    app()
