"""The answer of a check over brokers' files in the terminal: on one screen, in the order of ``Answer``."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from ..text import counted, printable
from .replicas import COLUMNS, MARK, NUMBERS
from .terminal import UNBOUNDED, VERDICT_STYLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from .answer import Answer, Finding
    from .replicas import ReplicaRow, ReplicaTable

MAX_ROWS: Final = 12
"""Replicas that the table shows at most, unless all are wanted."""

MAX_FINDINGS: Final = 6
MAX_DETAILS: Final = 2
MAX_NAMES: Final = 3


def print_replicas(table: ReplicaTable, console: Console, *, everything: bool = False) -> None:
    """Print the partitions with a finding or a difference, and count the others.

    ``everything``: print every partition.
    """
    rows = table.rows if everything else table.rows[: _cut(table)]
    if rows:
        console.print(_table(rows, console))
    hidden = list(dict.fromkeys(row.partition for row in table.rows[len(rows) : table.shown]))
    if hidden:
        console.print(f"{counted(len(hidden), 'more partition')} with differences (--verbose shows them)", markup=False)
    if table.equal and not everything:
        names = f": {', '.join(table.equal)}" if len(table.equal) <= MAX_NAMES else ""
        _print(console, f"{counted(len(table.equal), 'partition')} with equal replicas{names}")


def _cut(table: ReplicaTable) -> int:
    """So many rows that whole partitions are shown, at most ``MAX_ROWS`` but at least the first one."""
    ends = [n for n in range(1, table.shown + 1) if n == table.shown or table.rows[n].first]
    fitting = [end for end in ends if end <= MAX_ROWS]
    return max(fitting, default=min(ends, default=0))


def _table(rows: Sequence[ReplicaRow], console: Console) -> Table:
    """The rows without columns that are empty in all of them: leader and ISR, if no metadata log is at hand."""
    cells = [row.cells for row in rows]
    used = [n for n in range(len(COLUMNS)) if any(row[n] for row in cells)]
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for number in used:
        lines = COLUMNS[number].split()
        width = max(map(len, (*lines, *(row[number] for row in cells))))
        table.add_column(
            "\n".join(lines) if console.width < UNBOUNDED else COLUMNS[number],
            justify="right" if number in NUMBERS else "left",
            vertical="bottom",
            overflow="fold",
            min_width=width if number in NUMBERS else min(width, 12),
        )
    for row in cells:
        table.add_row(*(Text(printable(row[n]), style="bold yellow" if MARK in row[n] else "") for n in used))
    return table


def print_answer(answer: Answer, console: Console, *, everything: bool = False, strip: str = "") -> None:
    """Print the verdict, the problems and what to do next.

    Args:
        answer: The answer.
        console: Where to.
        everything: Print all findings with all details.
        strip: The folder of all directories, which paths on the screen leave out.
    """
    print_verdict(answer, console)
    findings = answer.findings if everything else answer.findings[:MAX_FINDINGS]
    most = MAX_DETAILS if sum(finding.verdict == "violated" for finding in findings) == 1 else 1
    for finding in findings:
        print_finding(finding, console, most, everything=everything, strip=strip)
    if len(findings) < len(answer.findings):
        _print(console, f"  {len(answer.findings) - len(findings)} more (--verbose shows them)")
    for note in answer.notes:
        _print(console, f"note: {_short(note, strip)}", "  ")
    if answer.remarks and not everything:
        _print(console, f"{counted(len(answer.remarks), 'remark')} that no verdict depends on (--verbose)")
    for step in answer.next_steps:
        _print(console, f"next: {_short(step, strip)}", "  ")


def print_verdict(answer: Answer, console: Console) -> None:
    """Print ``violated: 2 problems in payments-0``."""
    console.print(Text.assemble((answer.verdict, VERDICT_STYLES[answer.verdict]), f": {printable(answer.headline)}"))


def print_finding(
    finding: Finding, console: Console, most: int = MAX_DETAILS, *, everything: bool = False, strip: str = ""
) -> None:
    """Print one problem and at most ``most`` of the lines that locate it; an open question has none."""
    mark = "!" if finding.verdict == "violated" else "?"
    _print(console, f"{mark} {_short(finding.subject, strip)}: {_short(finding.text, strip)}", "  ")
    most = most if finding.verdict == "violated" else 0
    details = finding.details if everything else finding.details[:most]
    for line in details:
        _print(console, f"  {_short(line, strip)}", "    ")
    if 0 < len(details) < len(finding.details):
        _print(console, f"  and {len(finding.details) - len(details)} more in the report")


def _short(text: str, strip: str) -> str:
    return text.replace(strip, "") if strip else text


def _print(console: Console, text: str, indent: str = "") -> None:
    """Print a line, wrapped on a terminal with the next lines indented; elsewhere as it is."""
    text = printable(text)
    if console.width >= UNBOUNDED:
        console.print(Text(text), soft_wrap=True)
        return
    for line in textwrap.wrap(text, console.width, subsequent_indent=indent, break_on_hyphens=False):
        console.print(Text(line))
