"""The closing table in the terminal."""

from __future__ import annotations

import io

from fencepost.traces.report.obligation import Obligation
from fencepost.traces.report.table import print_table
from rich.console import Console

RESULTS = [
    Obligation("kip-320 keeps its promises at 3/3/3/2", "safety", "holds", "holds", "", 4_100_000, "states", 12.5),
    Obligation("truncate-to-hw", "safety", "violated", "violated", "8 steps", 3869, "states", 0.4),
    Obligation("kip-279", "safety", "holds", "violated", "no counterexample", 60106, "states", 2.0),
    Obligation(
        "[red]a name that is much too long for its column[/red] \x1b[31m",
        "odd",
        "unknown",
        "holds",
        "--max-states was spent",
        5,
        "states",
        99.0,
    ),
]


def printed(results: list[Obligation], width: int = 80) -> str:
    out = io.StringIO()
    print_table(results, Console(file=out, width=width, color_system=None))
    return out.getvalue()


def test_it_fits_eighty_columns_and_loses_nothing() -> None:
    text = printed(RESULTS)
    assert max(map(len, text.splitlines())) <= 80
    flat = " ".join(text.split())
    for said in ("obligation verdict counted seconds", "4,100,000 states", "12.50", "violated (expected)"):
        assert said in flat
    assert "\u2026" not in text


def test_what_is_not_met_is_marked_and_explained_without_colour() -> None:
    lines = printed(RESULTS, width=160).splitlines()
    assert any(line.strip().startswith("! kip-279 ") and "holds, not violated" in line for line in lines)
    assert not any("! truncate-to-hw" in line or "! kip-320" in line for line in lines)
    assert "! kip-279: holds, not violated. no counterexample" in lines
    assert lines[-1] == "violated: 4 obligations: 2 met, 2 not met; 1 of 2 must-fail twins caught"


def test_names_are_text_and_not_markup() -> None:
    text = printed(RESULTS, width=160)
    assert "[red]a name that is much too long for its column[/red] \\x1b[31m" in text
    assert "\x1b" not in text


def test_all_met() -> None:
    assert printed(RESULTS[:2]).splitlines()[-1] == "holds: 2 obligations: 2 met; 1 of 1 must-fail twins caught"
