"""What becomes of generated mutants: killed or not, and those that nobody killed sorted by why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from ....model.core.exit_code import ExitCode
from ....traces.run_report import Json
from .drawing import Mutant
from .judging import Judgement, Killer


class Fate(Enum):
    """What becomes of a mutant."""

    KILLED = "killed"
    MISSED = "missed"
    """A difference was seen in what it shows, answers, sends or writes, and nobody complained. This is the work list"""
    UNOBSERVABLE = "unobservable"
    """It ran, and nothing differed in any step that was compared: perhaps it is equivalent, perhaps not driven far"""
    NOT_DRIVEN = "not driven"
    """No line of it ran in the runs that were compared"""
    EQUIVALENT = "equivalent"
    """It is argued that no run can show a difference"""
    UNKNOWN = "unknown"
    """The source as it is parts from the model in the run that would kill it, so the run says nothing"""


@dataclass(frozen=True)
class Row:
    """A mutant, and what became of it. ``why``: in a line, for one that survived."""

    mutant: Mutant
    judged: Judgement
    fate: Fate
    why: str
    complaint: str | None = None

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {
            "name": self.mutant.name,
            "file": self.mutant.file,
            "line": self.mutant.lines[0],
            "function": self.mutant.function,
            "operator": self.mutant.operator,
            "fate": self.fate.value,
            "why": self.why,
            "complaint": self.complaint,
            "diff": self.mutant.diff,
            **{name: value for name, value in self.judged.to_json().items() if name not in ("detail", "run")},
        }


@dataclass(frozen=True)
class Measure:
    """The answer. ``lines``: those of the source for which there is a mutant. ``passed_over``: with the same code.

    ``compared``: steps of the source as it is with which survivors were compared.
    """

    seed: int
    files: tuple[str, ...]
    lines: int
    passed_over: int
    compared: int
    rows: tuple[Row, ...]
    counts: Mapping[Fate, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", Counter(row.fate for row in self.rows))

    @property
    def killers(self) -> Mapping[Killer, int]:
        """How many each kind of evidence killed."""
        return Counter(row.judged.by for row in self.rows if row.fate is Fate.KILLED and row.judged.by is not None)

    @property
    def counted(self) -> int:
        """The mutants that are not argued to be equivalent."""
        return len(self.rows) - self.counts.get(Fate.EQUIVALENT, 0)

    @property
    def share(self) -> float | None:
        """Per cent of those that are killed; None where there are none."""
        return 100 * self.counts.get(Fate.KILLED, 0) / self.counted if self.counted else None

    @property
    def complaints(self) -> tuple[str, ...]:
        """Arguments that are refuted, each in a line."""
        return tuple(f"{row.mutant.name}: {row.complaint}" for row in self.rows if row.complaint is not None)

    def exit_code(self, at_least: float | None) -> ExitCode:
        """0: it measures; 1: less is killed than is demanded, or an argument is refuted."""
        too_few = at_least is not None and (self.share is None or self.share < at_least)
        return ExitCode.VIOLATED if too_few or self.complaints else ExitCode.HOLDS

    def to_json(self) -> dict[str, Json]:
        """The object that ``fencepost mutants --generated --json`` prints."""
        return {**self.counts_to_json(), "rows": [row.to_json() for row in self.rows]}

    def counts_to_json(self) -> dict[str, Json]:
        """The same without the rows: the last line of ``--json-lines``."""
        return {
            "seed": self.seed,
            "files": list(self.files),
            "lines": self.lines,
            "passed over": self.passed_over,
            "compared": self.compared,
            "counts": {fate.value: self.counts.get(fate, 0) for fate in Fate},
            "killed by": {killer.value: self.killers.get(killer, 0) for killer in Killer},
            "share": None if self.share is None else round(self.share, 1),
            "complaints": list(self.complaints),
        }


def missed(measure: Measure) -> Sequence[Row]:
    """The work list."""
    return [row for row in measure.rows if row.fate is Fate.MISSED]
