"""The measure in the terminal: each mutant as soon as it is judged, then the diffs of those missed, and the counts."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ....traces.text import counted
from .measure import Fate, Measure, Row, missed

_INDENT: Final = 13

_STYLES: Final = {
    Fate.KILLED: "green",
    Fate.MISSED: "bold red",
    Fate.UNOBSERVABLE: "yellow",
    Fate.NOT_DRIVEN: "yellow",
    Fate.EQUIVALENT: "green",
    Fate.UNKNOWN: "bold yellow",
}


def print_row(row: Row, console: Console) -> None:
    """Fate, mutant and seconds in one line, and below it the function, by what it is driven, and what was seen."""
    fate = (f"{row.fate.value:<12}", _STYLES[row.fate])
    console.print(Text.assemble(fate, f" {row.mutant.name} ({row.judged.seconds:.1f} s)"), soft_wrap=True)
    by = f"{row.judged.drive}: " if row.fate is Fate.KILLED and row.judged.drive else ""
    console.print(Padding(Text(f"{row.mutant.function}: {by}{row.why}"), (0, 0, 0, _INDENT)))


def summary(measure: Measure) -> str:
    """``20 mutants of 612 lines, seed 7: 14 killed (12 conform, 2 raised), 3 missed, ...; 70 % of 20 killed``."""
    parts = []
    for fate in Fate:
        number = measure.counts.get(fate, 0)
        if number:
            by = ", ".join(f"{count} {killer.value}" for killer, count in sorted(measure.killers.items(), key=str))
            parts.append(f"{number} {fate.value}" + (f" ({by})" if fate is Fate.KILLED else ""))
    of = f"{counted(len(measure.rows), 'mutant')} of {counted(measure.lines, 'line')}, seed {measure.seed}"
    share = "" if measure.share is None else f"; {measure.share:.0f} % of {measure.counted} not equivalent are killed"
    return f"{of}: {', '.join(parts)}{share}"


def print_measure(measure: Measure, console: Console) -> None:
    """What is said after all rows: what was missed as diffs, refuted arguments, the counts."""
    for row in missed(measure):
        console.print(Text(f"missed: {row.mutant.name}, {row.why}", style="bold"))
        console.print(Text(row.mutant.diff))
    for complaint in measure.complaints:
        console.print(Text(f"! {complaint}"))
    if measure.passed_over:
        console.print(Text(f"Passed over with the same code as the source: {measure.passed_over}"))
    console.print(Text(summary(measure)))
