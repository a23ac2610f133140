"""How short a run shows each planned defect of the implementation: ``python benchmarks/defects.py``.

For each defect the calls of the minimal run that lockstep finds, or its events where systems run freely and are in no
lockstep; a * says that there was no time to make it minimal (what ``tests/conformance/test_mutants_defects.py``
holds below a bound). And the steps that were taken until a run showed it. Nothing pins these lengths: a search that
draws otherwise finds other runs, and two tables, of before and after, say what became of them. The same seed gives the
same table.
"""

from __future__ import annotations

import sys
from statistics import mean, median
from typing import Annotated

from cyclopts import App, Parameter
from fencepost.conformance.harness import all_defects
from fencepost.conformance.mutants.defect_rows import Judge
from fencepost.conformance.mutants.defects import Defect
from fencepost.conformance.mutants.free_rows import FreeJudge, is_free_only
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
    judges = Judge(), FreeJudge()
    lengths: list[int] = []
    missed = 0
    for each in all_defects():
        if (only and each.name not in only) or protocol not in ("", each.protocol):
            continue
        length, minimal, steps = _shown(judges, each, seed)
        if length is None:
            missed += 1
        else:
            lengths.append(length)
        told = "none" if length is None else f"{length}{'' if minimal else '*'}"
        table.add_row(each.protocol, each.name, told, f"{steps:,}")
    console = Console(width=100)
    console.print(table)
    if lengths:
        told = f"mean {mean(lengths):.2f}, median {median(lengths):g}, longest {max(lengths)}"
        console.print(f"{len(lengths)} shown, {missed} not; calls of a minimal run: {told}")
    return 1 if missed else 0


def _shown(judges: tuple[Judge, FreeJudge], defect: Defect, seed: int) -> tuple[int | None, bool, int]:
    """The length of the run that shows a defect, None where none does; whether it is minimal; steps until then."""
    if is_free_only(defect.protocol):
        free = judges[1].drive(defect, seed)
        return None if free.failure is None else len(free.failure.events), free.minimal, free.met.events
    answer = judges[0].drive(defect, seed)
    return None if answer.failure is None else len(answer.failure.tries), True, answer.coverage.steps


if __name__ == "__main__":
    sys.exit(app())
