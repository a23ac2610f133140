"""How short a run shows each planned defect of the implementation: ``python benchmarks/defects.py``.

For each defect the calls of the minimal run that lockstep finds (what ``tests/conformance/test_mutants_defects.py``
holds below a bound), and the steps that were taken until a run showed it. Nothing pins these lengths: a search that
draws otherwise finds other runs, and two tables, of before and after, say what became of them. The same seed gives the
same table; ``fencepost mutants --impl`` may tell another run of the same seed, as Hypothesis draws from the constants
of whatever modules are imported, too.
"""

from __future__ import annotations

import sys
from statistics import mean, median
from typing import Annotated

from cyclopts import App, Parameter
from fencepost.conformance.harness import all_defects
from fencepost.conformance.mutants.defect_rows import Judge
from rich.console import Console
from rich.table import Table

app = App(name="defects", help=__doc__)


@app.default
def main(*, only: Annotated[tuple[str, ...], Parameter(negative=())] = (), protocol: str = "", seed: int = 0) -> int:
    """Drive each defect and print the table. Exit code 1 where one is not shown.

    Parameters
    ----------
    only
        These defects alone, by name.
    protocol
        Those of this protocol alone.
    seed
        Of every search.
    """
    table = Table("protocol", "defect", "calls", "steps until then", title=f"seed {seed}")
    judge = Judge()
    lengths: list[int] = []
    missed = 0
    for each in all_defects():
        if (only and each.name not in only) or protocol not in ("", each.protocol):
            continue
        answer = judge.drive(each, seed)
        told = "none"
        if answer.failure is None:
            missed += 1
        else:
            lengths.append(len(answer.failure.tries))
            told = str(lengths[-1])
        table.add_row(each.protocol, each.name, told, f"{answer.coverage.steps:,}")
    console = Console(width=100)
    console.print(table)
    if lengths:
        told = f"mean {mean(lengths):.2f}, median {median(lengths):g}, longest {max(lengths)}"
        console.print(f"{len(lengths)} shown, {missed} not; calls of a minimal run: {told}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(app())
