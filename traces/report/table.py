"""The closing table of a check in the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..text import printable
from .obligation import Obligation, grouped, overall, summary
from .terminal import VERDICT_STYLES, Terminal


class _Name:
    """A name of the check's, which goes on in the next line behind a space or a dot alone, as it is looked for whole.

    What is longer than the column is broken all the same. ``longest``: the width of the longest piece.
    """

    def __init__(self, name: str, style: str = "") -> None:
        self._pieces = re.findall(r"[^\s.]*(?:[\s.]+|$)", name)
        self._style = style
        self.longest = max(len(piece.rstrip()) for piece in self._pieces)

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [""]
        for piece in self._pieces:
            if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > options.max_width:
                lines.append("")
            lines[-1] += piece
        yield Text("\n".join(line.rstrip() for line in lines), style=self._style, overflow="fold")

    def __rich_measure__(self, _console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(self.longest, sum(map(len, self._pieces))).with_maximum(options.max_width)


def closing_table(results: Sequence[Obligation]) -> Table:
    """Obligation, verdict, states or events, seconds; one section per group. Fits 80 columns.

    What is not met has a ``!`` before its name, so that the table reads the same without colour.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    longest = max((2 + _Name(printable(each.name)).longest for each in results), default=0)
    table.add_column("obligation", overflow="fold", min_width=min(max(24, longest), 40))
    table.add_column("verdict", overflow="fold", min_width=9)
    table.add_column("counted", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    for group, members in grouped(results).items():
        table.add_section()
        table.add_row(_Name(printable(group), style="bold"))
        for each in members:
            style = "green" if each.met else VERDICT_STYLES["unknown" if each.verdict == "unknown" else "violated"]
            table.add_row(
                Padding(_Name(("" if each.met else "! ") + printable(each.name)), (0, 0, 0, 2)),
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
    out.print(Text.assemble((verdict, VERDICT_STYLES[verdict]), f": {summary(results)}"))
