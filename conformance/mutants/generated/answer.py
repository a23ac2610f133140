"""The measure in the terminal: a line a mutant, the diffs of those that were missed, the counts."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ....traces.words import counted
from .measure import Fate, Measure, Row, missed

_STYLES = {
    Fate.KILLED: "green",
    Fate.MISSED: "bold red",
    Fate.UNOBSERVABLE: "yellow",
    Fate.NOT_DRIVEN: "yellow",
    Fate.EQUIVALENT: "green",
    Fate.UNKNOWN: "bold yellow",
}


def measure_table(rows: Sequence[Row]) -> Table:
    """Mutant, function, what becomes of it, by what it is driven when it is killed, seconds, and why."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("mutant", overflow="fold", min_width=24)
    table.add_column("fate", no_wrap=True)
    table.add_column("by", overflow="fold")
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("what was seen", overflow="fold", min_width=20)
    for row in rows:
        table.add_row(
            Text(f"{row.mutant.name}\n  {row.mutant.function}"),
            Text(row.fate.value, style=_STYLES[row.fate]),
            Text(row.judged.drive if row.fate is Fate.KILLED else ""),
            Text(f"{row.judged.seconds:.1f}"),
            Text(row.why),
        )
    return table


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
    """The table, what was missed as diffs, refuted arguments, the counts."""
    console.print(measure_table(measure.rows))
    for row in missed(measure):
        console.print(Text(f"missed: {row.mutant.name}, {row.why}", style="bold"))
        console.print(Text(row.mutant.diff))
    for complaint in measure.complaints:
        console.print(Text(f"! {complaint}"))
    if measure.passed_over:
        console.print(Text(f"Passed over with the same code as the source: {measure.passed_over}"))
    console.print(Text(summary(measure)))
