"""Bounded search beside the explorer: ``python benchmarks/bounded.py [--nightly] [--only WORD]``.

The same shortest counterexample by both engines, and the seconds of processor time that each took: how many times
longer the solver needs, which visits no state and whose formulas are those of the proofs. The cases, with the lengths
that must come out, are those of the tests (``tests/model/bounded_cases.txt``).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from fencepost.model.core.ground import System, ground
from fencepost.model.core.protocol import Protocol
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore import Exploration, Limits, Query, explore
from rich.console import Console
from rich.table import Table

CASES = Path(__file__).parent.parent / "tests" / "model" / "bounded_cases.txt"
EFFORT = 4_000_000_000

app = App(help_format="plaintext")


def _constants(protocol: Protocol, text: str) -> dict[str, int]:
    return dict(zip(protocol.constants, map(int, text.split("/")), strict=True))


def _timed(system: System, engine: str) -> tuple[Exploration, float]:
    start = time.process_time()
    found = explore(Query.of(system, limits=Limits(max_effort=EFFORT)), engine)
    return found, time.process_time() - start


@app.default
def main(*, nightly: Annotated[bool, Parameter(negative=())] = False, only: str = "") -> None:
    """Print the table.

    Parameters
    ----------
    nightly
        The long cases too.
    only
        Cases whose line has this in it.
    """
    table = Table("system", "breaks", "steps", "explorer s", "bounded s", "ratio", box=None, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    for line in CASES.read_text().splitlines():
        if line.startswith("#") or only not in line or (line.startswith("nightly") and not nightly):
            continue
        _, name, variant, constants, broken, length, *dropped = line.split()
        protocol = PROTOCOLS[name]
        system = ground(protocol.traced(variant).drop(*dropped), _constants(protocol, constants))
        (batch, first), (symbolic, second) = (_timed(system, engine) for engine in ("batch", "symbolic"))
        steps = [len(found.path) if found.path else found.verdict.value for found in (batch, symbolic)]
        assert steps[0] == int(length), f"{line}: the explorer says {steps[0]}"
        told = str(steps[0]) if steps[0] == steps[1] else f"{steps[0]}, {steps[1]} up to {symbolic.depth - 1}"
        without = f" without {dropped[0]}" if dropped else ""
        what = f"{name} {variant} {constants}{without}"
        table.add_row(what, broken, told, f"{first:.2f}", f"{second:.1f}", f"{second / first:,.0f}")
    Console(width=180).print(table)


if __name__ == "__main__":
    app()
