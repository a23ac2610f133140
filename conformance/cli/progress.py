"""Progress displays, on standard error: loaded by the commands that have one."""

from __future__ import annotations

from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TimeElapsedColumn
from rich.text import Text

from ...traces.report.terminal import Terminal
from ...traces.text import printable

__all__ = ["BarColumn", "progress_bar"]


class _Count(ProgressColumn):
    """``12,345 states, depth 9``."""

    def render(self, task: Task) -> Text:
        return Text(printable(str(task.fields.get("detail", ""))))


class _Description(ProgressColumn):
    """What is going on, as it is written: a file's name may look like markup."""

    def render(self, task: Task) -> Text:
        return Text(printable(task.description))


def progress_bar(*columns: ProgressColumn) -> Progress:
    """A progress display on standard error, silent where that is no terminal."""
    console = Terminal(stderr=True)
    return Progress(
        SpinnerColumn(),
        _Description(),
        *columns,
        _Count(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
