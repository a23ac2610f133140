"""One command line of ``invocations.toml``, and what it returns."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .command import CHECKOUT, Outcome, run
from .normalise import normalise


@dataclass(frozen=True)
class Invocation:
    """A command line, run in an empty folder.

    Args:
        name: Key in the record.
        args: Arguments of ``fencepost``; ``{inputs}`` and wildcards are expanded.
        before: Commands whose output the command reads.
        files: Text of files, by their names.
        json: Whether the command takes ``--json``.
    """

    name: str
    args: Sequence[str]
    before: Sequence[Sequence[str]] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    json: bool = True

    def measure(self, inputs: Path) -> Any:
        """Run the command; return its exit code, output, error lines and the files that it wrote."""
        with tempfile.TemporaryDirectory(prefix="baseline-") as folder:
            scratch = Path(folder).resolve()
            for name, text in self.files.items():
                (scratch / name).parent.mkdir(parents=True, exist_ok=True)
                (scratch / name).write_text(text, encoding="utf-8")
            for args in self.before:
                run(_expanded(args, inputs), scratch)
            there = _files_in(scratch)
            done = run([*_expanded(self.args, inputs), *(["--json"] if self.json else [])], scratch)
            written = sorted(_files_in(scratch) - there)
            return _as_json(done, written, [(inputs, "{inputs}"), (scratch, "{scratch}"), (CHECKOUT, "{checkout}")])


def _expanded(args: Sequence[str], inputs: Path) -> list[str]:
    found: list[str] = []
    for arg in args:
        path = arg.replace("{inputs}", str(inputs))
        found += sorted(map(str, Path("/").glob(path[1:]))) if any(each in path for each in "*[") else [path]
    return found


def _files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def _as_json(done: Outcome, written: list[str], folders: list[tuple[Path, str]]) -> Any:
    # Progress and warnings of libraries go to standard error too: only a failed command's lines count.
    errors = done.errors.strip().splitlines()[-5:] if done.exit_code in (2, 4) else []
    value = {"exit_code": done.exit_code, "output": done.value, "errors": errors, "written": written}
    return normalise(value, folders)
