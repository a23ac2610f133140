"""The matrix: a row for each mutant, a cell for each judge, and what follows from a row.

Rows are of two kinds, mutants of a model and of an implementation; both have the same columns. What makes the rows of
a kind gives ``Row`` objects and need know nothing of the table or of the command line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from ...model.core.exit_code import ExitCode
from ...model.explore.compare import Change
from ...model.prove.implied import Relation
from .arguments import Argument

COLUMNS = ("explorer", "proof", "hypothesis", "free", "replay")
"""The judges, in the order of the table."""


class Kind(Enum):
    """What a mutant is a mutant of."""

    MODEL = "model"
    IMPLEMENTATION = "implementation"


class Outcome(Enum):
    """What one judge says of one mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"
    """There is nothing that this judge could see."""
    LOST = "lost"
    """The proof no longer goes through. That is no run to a broken promise, and kills nothing by itself."""
    UNKNOWN = "unknown"
    """A budget ran out."""
    NONE = "none"
    """There is no such judge for this mutant."""


@dataclass(frozen=True)
class Cell:
    """A judge's answer. ``length``: steps of the minimal trace, where a trace is what kills. ``detail``: one line.

    ``relation``: how the mutant's steps are proved to be beside the model's, where they are. ``at``: the values of
    constants that a proof speaks of, where it does not speak of all; ``unproved``: the promises that it leaves out.
    """

    outcome: Outcome
    detail: str = ""
    length: int | None = None
    seconds: float = 0.0
    relation: Relation | None = None
    at: tuple[Mapping[str, int], ...] = ({},)
    unproved: frozenset[str] = frozenset()

    def speaks_of(self, constants: Mapping[str, int]) -> bool:
        """Whether what is proved is about these constants, too."""
        return any(all(constants[name] == value for name, value in fixed.items()) for fixed in self.at)

    def to_json(self) -> dict[str, object]:
        """As a JSON object."""
        return {
            "outcome": self.outcome.value,
            "length": self.length,
            "detail": self.detail,
            "seconds": round(self.seconds, 3),
        }


NO_JUDGE = Cell(Outcome.NONE)


class Verdict(Enum):
    """What becomes of a mutant."""

    KILLED = "killed"
    EQUIVALENT = "equivalent"
    """It has the same runs, or the same but for steps that change nothing, and there is a reason (``Reason``)."""
    HARMLESS = "harmless"
    """It has other runs, which trace replay tells apart; no promise breaks in them, and there is a reason."""
    FAILED = "failed"
    """Nobody kills it and there is no reason, or what is proved or argued is not so."""
    UNKNOWN = "unknown"


class Reason(Enum):
    """Why a mutant that nobody kills is none the worse at constants that nobody tried."""

    IMPLIED = "implied"
    """z3 shows that it takes the model's steps wherever the proved invariant holds, but for some that change nothing"""
    PROVED = "proved"
    """z3 shows that it keeps every promise of safety: it has only steps of the model, or the induction goes through"""
    ARGUED = "argued"
    """Somebody says why, in words."""


_PROVED = {Outcome.EQUIVALENT: Reason.IMPLIED, Outcome.SURVIVED: Reason.PROVED}


@dataclass(frozen=True)
class Row:
    """One mutant. ``change``: how its steps differ from the model's where nothing kills it; None where not compared.

    ``faults``: what is wrong with the argument, or with a judge, each in a line.
    """

    name: str
    kind: Kind
    of: str
    cells: Mapping[str, Cell]
    change: Change | None = None
    argument: Argument | None = None
    faults: tuple[str, ...] = ()

    def cell(self, column: str) -> Cell:
        """The answer of a judge."""
        return self.cells.get(column, NO_JUDGE)

    @property
    def killed(self) -> bool:
        """Whether a judge of promises kills it, or for an implementation any judge at all.

        That the model refuses a run of a mutant (trace replay) does not say that the run is wrong.
        """
        return any(self.cell(column).outcome is Outcome.KILLED for column in self._judges)

    @property
    def _judges(self) -> tuple[str, ...]:
        return COLUMNS if self.kind is Kind.IMPLEMENTATION else ("explorer", "hypothesis")

    @property
    def reason(self) -> Reason | None:
        """Why it is none the worse. None where it is killed, and where there is no reason."""
        if self.killed:
            return None
        proved = _PROVED.get(self.cell("proof").outcome) if self.kind is Kind.MODEL else None
        return proved or (None if self.argument is None else Reason.ARGUED)

    @property
    def complaints(self) -> tuple[str, ...]:
        """Why the row fails; empty where it does not."""
        found = list(self.faults)
        if self.killed and self.argument is not None:
            found.append(f"it is claimed to be harmless ({self.argument.change.name}), and yet it is killed")
        elif not self.killed and self.reason is None:
            found.append("nobody kills it, and nothing argues that it is equivalent")
        elif self.argument is not None and self.reason is not Reason.ARGUED:
            found.append(f"it is {self.reason.value if self.reason else 'killed'}, so the argument has nothing to say")
        if not self.killed and self.argument is not None and self.argument.change is not self.change:
            is_so = "not compared" if self.change is None else self.change.value
            found.append(f"the argument is for {self.argument.change.value}; it has {is_so}")
        return tuple(found)

    @property
    def verdict(self) -> Verdict:
        """What follows from the cells and the argument."""
        if not self.killed and any(self.cell(column).outcome is Outcome.UNKNOWN for column in self._judges):
            return Verdict.UNKNOWN
        if self.complaints:
            return Verdict.FAILED
        if self.killed:
            return Verdict.KILLED
        return Verdict.EQUIVALENT if self.change in (Change.NONE, Change.STUTTERS) else Verdict.HARMLESS

    def to_json(self) -> dict[str, object]:
        """As a JSON object."""
        return {
            "name": self.name,
            "kind": self.kind.value,
            "of": self.of,
            "verdict": self.verdict.value,
            **{column: self.cell(column).to_json() for column in COLUMNS},
            "change": None if self.change is None else self.change.name.lower(),
            "reason": None if self.reason is None else self.reason.value,
            "argument": None if self.argument is None else self.argument.text,
            "complaints": list(self.complaints),
        }


@dataclass(frozen=True)
class Matrix:
    """All rows. ``complaints`` are about no row: an argument for a mutant that is not there."""

    rows: tuple[Row, ...]
    complaints: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, rows: Iterable[Row], complaints: Sequence[str] = ()) -> Matrix:
        """The matrix of these rows."""
        return cls(tuple(rows), tuple(complaints))

    @property
    def counts(self) -> Counter[Verdict]:
        """How many rows there are of each verdict."""
        return Counter(row.verdict for row in self.rows)

    @property
    def reasons(self) -> Counter[Reason]:
        """How many rows there are of each reason."""
        return Counter(row.reason for row in self.rows if row.reason is not None)

    @property
    def exit_code(self) -> ExitCode:
        """0: every mutant is killed, or equivalent or harmless with a reason; 1: one is not; 3: a budget ran out."""
        if self.complaints or self.counts[Verdict.FAILED]:
            return ExitCode.VIOLATED
        return ExitCode.UNKNOWN if self.counts[Verdict.UNKNOWN] else ExitCode.HOLDS

    def to_json(self) -> dict[str, object]:
        """The object that ``fencepost mutants --json`` prints."""
        return {
            "verdict": self.exit_code.name.lower(),
            "counts": {verdict.value: self.counts[verdict] for verdict in Verdict},
            "reasons": {reason.value: self.reasons[reason] for reason in Reason},
            "complaints": list(self.complaints),
            "rows": [row.to_json() for row in self.rows],
        }
