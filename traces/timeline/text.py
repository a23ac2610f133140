"""Timelines in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..report.terminal import VERDICT_STYLES
from ..text import counted, printable
from .checkers import TimelineReport
from .contradiction import Contradiction
from .describe import ids, time_text
from .replica_state import ReplicaState
from .rows import PartitionRows, Row

MAX_ROWS: Final = 40
"""Rows of one partition: the last ones, and all evidence before them."""


def print_partition(out: Console, rows: PartitionRows, *, everything: bool = False) -> None:
    """Print one partition's events and the last state of each broker."""
    shown, hidden = _shown(rows.rows, everything)
    out.print(Text(f"{printable(rows.partition)}: events, and the state of their node after them", style="bold"))
    if shown:
        out.print(_events(shown))
    left = hidden + rows.left_out
    if left:
        out.print(f"{counted(left, 'more event')}; --verbose prints all", style="dim", highlight=False)
    if rows.states:
        out.print(_states(rows.states))
    out.print()


def _shown(rows: Sequence[Row], everything: bool) -> tuple[list[Row], int]:
    if everything or len(rows) <= MAX_ROWS:
        return list(rows), 0
    cut = len(rows) - MAX_ROWS
    kept = [row for row in rows[:cut] if row.marked]
    return [*kept, *rows[cut:]], cut - len(kept)


def _events(rows: Sequence[Row]) -> Table:
    times = [row.seen.time for row in rows if row.seen.time is not None and not row.seen.relative]
    several_days = bool(times) and time_text(min(times), date=True)[:10] != time_text(max(times), date=True)[:10]
    starts = any(row.state.log_start for row in rows)
    table = _table()
    table.add_column("time", no_wrap=not several_days)
    table.add_column("node", overflow="fold")
    table.add_column("event", overflow="fold", min_width=16)
    for name in ("epoch", "leader", "ISR", *(("start",) if starts else ()), "HW", "LEO"):
        table.add_column(name, justify="left" if name == "ISR" else "right", overflow="fold")
    for row in rows:
        cells = state_cells(row.state)
        if not starts:
            del cells[3]
        table.add_row(
            time_text(row.seen.time, date=several_days and not row.seen.relative),
            Text(printable(row.who)),
            Text(printable(("! " if row.marked else "") + row.text), style="bold red" if row.marked else ""),
            *cells,
        )
    return table


def _table() -> Table:
    """Columns one space apart, so that a row fits 80 columns."""
    return Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))


def _states(states: dict[int, ReplicaState]) -> Table:
    table = _table()
    table.add_column("last state of broker", justify="right")
    for name in ("epoch", "leader", "ISR", "log start", "HW", "LEO"):
        table.add_column(name, justify="left" if name == "ISR" else "right", overflow="fold")
    for node, state in states.items():
        table.add_row(str(node), *state_cells(state))
    return table


def state_cells(state: ReplicaState) -> list[str]:
    """Epoch, leader, ISR, log start, high watermark and log end; empty if unknown."""

    def number(value: int | None) -> str:
        return "" if value is None else str(value)

    return [
        number(state.leader_epoch),
        "none" if state.leader == -1 else number(state.leader),
        "" if state.isr is None else ids(state.isr),
        number(state.log_start),
        number(state.high_watermark),
        number(state.log_end),
    ]


def print_verdict(out: Console, report: TimelineReport, unread: int) -> None:
    """Print the contradictions, and the verdict last."""
    for each in report.contradictions:
        out.print(Text(contradiction_text(each)), soft_wrap=not out.is_terminal)
    verdict = verdict_of(report, unread)
    out.print(Text.assemble((verdict, VERDICT_STYLES[verdict]), f": {summary(report, unread)}"))


def contradiction_text(each: Contradiction) -> str:
    """``! violated: MESSAGE``."""
    return printable(f"{'!' if each.verdict == 'violated' else '?'} {each.verdict}: {each.message}")


def verdict_of(report: TimelineReport, unread: int) -> str:
    """The verdict on the input: files that could not be read may hold a contradiction."""
    return "unknown" if unread and report.verdict == "holds" else report.verdict


def summary(report: TimelineReport, unread: int) -> str:
    """What the verdict rests on."""
    compared = sum(report.comparisons.values())
    violated = sum(each.verdict == "violated" for each in report.contradictions)
    undecided = len(report.contradictions) - violated
    parts = []
    if violated:
        parts.append(counted(violated, "contradiction"))
    if undecided:
        parts.append(f"{undecided} undecided")
    if not parts:
        parts.append("no contradiction" if compared else "the lines report too little to compare")
    if compared:
        parts.append(f"{counted(compared, 'pair')} of reports compared")
    if unread:
        parts.append(f"{counted(unread, 'file')} not read")
    return ", ".join(parts)
