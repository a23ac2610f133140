"""What every command does alike: one JSON object or text, notes about the files written, how far it is."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...model.core.errors import BadInput
from ...traces.report.terminal import Terminal
from ...traces.text import counted, printable
from ...traces.write import write_whole

if TYPE_CHECKING:
    # With it comes NumPy, which takes longer than all else here, and which not every command uses.
    from ...model.explore.result import OnProgress
    from ...model.explore.result import Progress as Explored


def print_json(value: object, stream: TextIO | None = None) -> None:
    """One object in a line of its own, at once.

    ``stream``: what standard output was before a progress display took its place.
    """
    stream = sys.stdout if stream is None else stream
    stream.write(json.dumps(value, ensure_ascii=True) + "\n")
    stream.flush()


def stdout() -> Terminal:
    """The console of results."""
    return Terminal()


def table(*columns: str, right: Iterable[int] = ()) -> Table:
    """A table without lines, of which nothing is cut: what does not fit is folded. ``right``: columns of numbers."""
    made = Table(box=None, pad_edge=False)
    for number, name in enumerate(columns):
        made.add_column(name, overflow="fold", justify="right" if number in right else "left")
    return made


def print_verdict(out: Console, of: str, verdict: str) -> None:
    """``fencing kip-320 (replicas 3, ...): holds``, on one line; ``of`` may hold names from outside."""
    out.print(Text.assemble(f"{printable(of)}: ", (printable(verdict), "bold")), soft_wrap=True)


def note(text: str) -> None:
    """A line for the person at the terminal, on standard error."""
    Terminal(stderr=True, soft_wrap=True, markup=False).print(printable(text))


def written(path: Path) -> None:
    """Name a file that was written."""
    note(f"wrote {path}")


@contextmanager
def exploring(description: str) -> Iterator[OnProgress]:
    """Progress of one exploration."""
    if not Terminal(stderr=True).is_terminal:
        yield lambda _: None
        return
    # Not loaded where nobody sees it.
    from .progress import progress_bar

    with progress_bar() as bar:
        task = bar.add_task(description, total=None)

        def told(at: Explored) -> None:
            detail = f"{at.distinct:,} states, depth {at.depth}, {at.frontier:,} to expand"
            bar.update(task, detail=detail)

        yield told


@contextmanager
def files_done(description: str) -> Iterator[Callable[[int, int], None]]:
    """Progress of work file by file."""
    from .progress import BarColumn, progress_bar

    with progress_bar(BarColumn()) as bar:
        task = bar.add_task(description, total=None)

        def told(done: int, of: int) -> None:
            bar.update(task, completed=done, total=of, detail=f"{done:,} of {of:,} files")

        yield told


def laid_out(traces: int, events: int, files: int) -> str:
    """What a new corpus has."""
    return f"{counted(traces, 'trace')} with {counted(events, 'event')} in {counted(files, 'file')}"


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: under a temporary name, then renamed. Raises BadInput where it cannot."""
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def refuse_same(**targets: Path | None) -> None:
    """Raise BadInput where two options name one file: the second would overwrite the first. By parameters' names."""
    seen: dict[Path, str] = {}
    for name, path in targets.items():
        if path is None:
            continue
        option = f"--{name.replace('_', '-')}"
        other = seen.setdefault(path.absolute(), option)
        if other != option:
            raise BadInput(f"{path} is the file of {other} too", option, "name another one")


def refuse_unwritable(path: Path | None) -> None:
    """Raise BadInput where a file cannot be written, before any work is done for it. None is no file."""
    if path is None:
        return
    mend = "name a file in a folder that is there and writable"
    if path.is_dir():
        raise BadInput("cannot write: it is a folder", str(path), mend)
    if not path.parent.is_dir():
        raise BadInput("cannot write: there is no such folder", str(path), mend)
    if not os.access(path.parent, os.W_OK):
        raise BadInput("cannot write: the folder is not writable", str(path), mend)
