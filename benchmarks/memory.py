"""Whether ``--max-memory`` holds: ``python benchmarks/memory.py``.

``fencepost explore`` with rising budgets, each in a process of its own, of which the kernel tells the peak of resident
memory. Prints the peak as a share of the budget, and what the answer told. Exit code 1 where a peak is more than 5 %
above its budget, or the figure told is not the peak.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

BUDGETS = (200, 250, 300, 400, 500, 700, 900, 1200, 1600, 2000)
"""In MiB. The command itself takes some 50."""

CASES = {
    "fencing 12 replicas": ("fencing", "--replicas", "12"),
    "fencing 3/3/3/3": ("fencing", "--log-size", "3", "--max-records", "3", "--max-leader-epoch", "3"),
}

app = App(name="memory", help=__doc__)


def explored(arguments: tuple[str, ...], budget: int) -> tuple[dict[str, object], float]:
    """What a run answers, and its peak in MiB."""
    text = "from fencepost.conformance.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", text, "explore", *arguments, "--max-memory", str(budget), "--json"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    said = run.stdout.read()
    _, _, used = os.wait4(run.pid, 0)
    answer: dict[str, object] = json.loads(said)
    return answer, used.ru_maxrss / 1024


@app.default
def main(*, budgets: Annotated[tuple[int, ...], Parameter(negative=())] = BUDGETS, case: str = "") -> int:
    """Measure and print.

    Parameters
    ----------
    budgets
        In MiB.
    case
        Only the cases whose name has this in it.
    """
    table = Table("case", "MiB", "verdict", "states", "seconds", "peak MiB", "of the budget", "told MiB")
    held = True
    for name, arguments in CASES.items():
        for budget in budgets if case in name else ():
            answer, peak = explored(arguments, budget)
            told = int(str(answer["memory_bytes"])) / (1 << 20)
            held = held and peak <= 1.05 * budget and abs(told - peak) <= 0.02 * peak
            row = (f"{answer['distinct']:,}", str(answer.get("seconds", "")), f"{peak:,.0f}", f"{peak / budget:.1%}")
            table.add_row(name, str(budget), str(answer["verdict"]), *row, f"{told:,.0f}")
    Console(width=120).print(table)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(app())
