"""The matrix in the terminal: one line a mutant, then what fails, then the counts."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...traces.text import counted
from .matrix import COLUMNS, Cell, Matrix, Outcome, Reason, Row, Verdict

_STYLES = {
    Verdict.KILLED: "green",
    Verdict.EQUIVALENT: "green",
    Verdict.HARMLESS: "cyan",
    Verdict.FAILED: "bold red",
    Verdict.UNKNOWN: "bold yellow",
}
NARROW = 120
"""Columns of a terminal below which the judges share a column."""

_DASH = {Outcome.NONE: "-", Outcome.EQUIVALENT: "="}


def told(cell: Cell) -> str:
    """A cell in a word or two: ``killed 12``, ``survived``, ``=`` where there is nothing to see, ``-`` for no judge."""
    word = _DASH.get(cell.outcome, cell.outcome.value)
    return word if cell.length is None else f"{word} {cell.length}"


def why(row: Row) -> str:
    """What the line says at its end: what breaks; or whether it is implied, proved or argued that nothing does."""
    if row.reason is not None:
        argued = row.argument if row.reason is Reason.ARGUED else None
        return f"{row.reason.value}: {row.cell('proof').detail if argued is None else argued.text}"
    if row.argument is not None:
        return row.argument.text
    killer = next((row.cell(c) for c in COLUMNS if row.cell(c).outcome is Outcome.KILLED), None)
    return killer.detail if killer is not None else row.cell("explorer").detail


def matrix_table(rows: Sequence[Row], *, narrow: bool = False) -> Table:
    """Mutant, verdict, the judges, seconds, what breaks or why not. What fails has a ``!`` before its name.

    ``narrow``: for a terminal without room for a column a judge. They share one then, and the seconds are left out.
    """
    used = [c for c in COLUMNS if any(row.cell(c).outcome is not Outcome.NONE for row in rows)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("mutant", overflow="fold", min_width=24)
    table.add_column("verdict", no_wrap=True)
    if narrow:
        table.add_column("judges", no_wrap=True)
    else:
        for column in used:
            table.add_column(column, no_wrap=True)
        table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("what breaks, or why not", overflow="fold", min_width=20)
    of = None
    for row in rows:
        if row.of != of:
            of = row.of
            table.add_section()
            table.add_row(Text(of, style="bold"))
        mark = "! " if row.verdict in (Verdict.FAILED, Verdict.UNKNOWN) else ""
        asked = [Text(told(row.cell(column))) for column in used]
        if narrow:
            judges = [Text(f"{column} ").append(word) for column, word in zip(used, asked, strict=True)]
            cells = [Text("\n").join(judges)]
        else:
            cells = [*asked, Text(f"{sum(row.cell(column).seconds for column in COLUMNS):.2f}")]
        table.add_row(
            Text(mark + row.name), Text(row.verdict.value, style=_STYLES[row.verdict]), *cells, Text(why(row))
        )
    return table


def summary(matrix: Matrix) -> str:
    """``105 mutants: 61 killed, 30 equivalent, 14 harmless; 22 implied, 10 proved, 12 argued``."""
    verdicts = ", ".join(f"{matrix.counts[each]} {each.value}" for each in Verdict if matrix.counts[each])
    reasons = ", ".join(f"{matrix.reasons[each]} {each.value}" for each in Reason if matrix.reasons[each])
    return f"{counted(len(matrix.rows), 'mutant')}: {verdicts}" + (f"; {reasons}" if reasons else "")


def print_matrix(matrix: Matrix, console: Console) -> None:
    """The table, what fails and why, and the counts."""
    narrow = console.width < NARROW
    console.print(matrix_table(matrix.rows, narrow=narrow))
    if narrow:
        console.print(Text("The seconds are left out at this width; --json has them."))
    for row in matrix.rows:
        for complaint in row.complaints:
            console.print(Text(f"! {row.name}: {complaint}"))
    for complaint in matrix.complaints:
        console.print(Text(f"! {complaint}"))
    console.print(Text(summary(matrix)))
