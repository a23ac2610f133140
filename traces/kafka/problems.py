"""What is wrong with a file of a broker, where, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ...model.core.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path

Severity = Literal["error", "note"]

MAX_PROBLEMS_PER_FILE = 50
"""A file of garbage yields at most this many problems and one line that says how many more there were."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of one file: a ``BadInput`` that did not stop the reading of everything else.

    ``kind`` is a stable word for scripts (``truncated-segment``, ``crc-mismatch``, ``unknown-magic``, …).
    ``severity`` is ``note`` where Kafka itself leaves such files behind (a zero-filled tail, a ``.swap`` file).
    ``byte`` counts from 0, ``line`` from 1; at most one of them is set.
    """

    kind: str
    what: str
    path: Path
    mend: str
    byte: int | None = None
    line: int | None = None
    severity: Severity = "error"

    @property
    def where(self) -> str:
        """``PATH, byte 1234``, ``PATH, line 3`` or ``PATH``."""
        if self.byte is not None:
            return f"{self.path}, byte {self.byte}"
        if self.line is not None:
            return f"{self.path}, line {self.line}"
        return str(self.path)

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.mend}"

    def as_bad_input(self) -> BadInput:
        """The same line as the exception that the command line turns into exit code 2."""
        return BadInput(self.what, self.where, self.mend)

    def to_json(self) -> dict[str, Any]:
        """A JSON object with ``path`` as text."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "what": self.what,
            "path": str(self.path),
            "byte": self.byte,
            "line": self.line,
            "mend": self.mend,
        }


class ProblemLog:
    """Collects the problems of one file, up to ``MAX_PROBLEMS_PER_FILE``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._problems: list[Problem] = []
        self._dropped = 0

    def add(
        self,
        kind: str,
        what: str,
        mend: str,
        *,
        byte: int | None = None,
        line: int | None = None,
        severity: Severity = "error",
    ) -> None:
        """Note one problem at ``byte`` or ``line`` of this file."""
        if len(self._problems) >= MAX_PROBLEMS_PER_FILE:
            self._dropped += 1
            return
        self._problems.append(Problem(kind, what, self.path, mend, byte, line, severity))

    def result(self) -> list[Problem]:
        """All problems so far, with a closing line where some were dropped."""
        if not self._dropped:
            return list(self._problems)
        more = Problem(
            "more-problems",
            f"{self._dropped} more problems in this file are not listed",
            self.path,
            "mend the first ones and read the file again",
        )
        return [*self._problems, more]


RESTORE_MEND = "take a fresh copy of the broker's directory"
