"""The closing table of a check in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..words import printable
from .obligation import Obligation, grouped, overall, summary
from .terminal import Terminal

_STYLES = {"holds": "bold green", "violated": "bold red", "unknown": "bold yellow"}


def closing_table(results: Sequence[Obligation]) -> Table:
    """Obligation, verdict, states or events, seconds; one section per group. Fits 80 columns.

    What is not met has a ``!`` before its name, so that the table reads the same without colour.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("obligation", overflow="fold", min_width=24)
    table.add_column("verdict", overflow="fold", min_width=9)
    table.add_column("counted", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    for group, members in grouped(results).items():
        table.add_section()
        table.add_row(Text(printable(group), style="bold"))
        for each in members:
            style = "green" if each.met else _STYLES["unknown" if each.verdict == "unknown" else "violated"]
            table.add_row(
                Padding(Text(("" if each.met else "! ") + printable(each.name)), (0, 0, 0, 2)),
                Text(each.outcome, style=style),
                f"{each.count:,} {printable(each.unit)}",
                f"{each.seconds:.2f}",
            )
    return table


def print_table(results: Sequence[Obligation], console: Console | None = None) -> None:
    """Print the table, then what was not met and why, then the verdict on all of it."""
    out = console or Terminal()
    out.print(closing_table(results))
    for each in results:
        if not each.met:
            said = f"! {each.name}: {each.outcome}" + (f". {each.detail}" if each.detail else "")
            out.print(Text(printable(said)))
    verdict = overall(results)
    out.print(Text.assemble((verdict, _STYLES[verdict]), f": {summary(results)}"))
