"""From which size on Spark is worth its start: ``python benchmarks/masters.py [--cores N] [--repeat N] [EVENTS ...]``.

For each number of events a corpus of 100-step walks of consumers (truncation, 3/2/2/2) is simulated and mined, by the
command line in processes of their own, with ``--master serial`` and with ``--master local[N]`` by turns; the best of so
many runs counts. The ratio is that of Spark's seconds to those of one process: below 1, Spark is the faster one. The
load of the machine is printed: under load, the ratio is that of a machine with fewer cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cyclopts import App
from rich.console import Console
from rich.table import Table

STEPS = 100
CONSTANTS = ("--replicas", "3", "--log-size", "2", "--max-records", "2", "--max-leader-epoch", "2")

app = App(help=__doc__, help_format="plaintext")


def seconds(*arguments: str) -> float:
    """The wall time of one command."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", "from fencepost.conformance.cli import run; run()", *arguments],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return time.perf_counter() - start


@app.default
def compare(*events: int, cores: int = 2, repeat: int = 3) -> None:
    """Print a line for each size and command."""
    masters = ("serial", f"local[{cores}]")
    table = Table("events", "command", *(f"{each}, s" for each in masters), "ratio", box=None, pad_edge=False)
    with tempfile.TemporaryDirectory(prefix="fencepost-masters-") as folder:
        for size in events or (250_000, 1_000_000, 4_000_000, 16_000_000):
            traces = str(max(1, size // STEPS))
            best: dict[tuple[str, str], float] = {}
            for run in range(repeat):
                for master in masters:
                    out = Path(folder) / f"{size}-{run}-{master}"
                    asked = ("truncation", *CONSTANTS, "--traces", traces, "--events", str(STEPS), "--out", str(out))
                    for command, took in (
                        ("simulate", seconds("simulate", *asked, "--master", master)),
                        ("mine", seconds("mine", str(out), "--master", master)),
                    ):
                        best[command, master] = min(took, best.get((command, master), took))
            for command in ("simulate", "mine"):
                one, many = (best[command, master] for master in masters)
                table.add_row(f"{size:,}", command, f"{one:.1f}", f"{many:.1f}", f"{many / one:.2f}")
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    Console().print(table)
    print(f"best of {repeat} runs; load of the machine {load} over 1, 5 and 15 minutes, {os.cpu_count()} processors")


if __name__ == "__main__":
    app()
