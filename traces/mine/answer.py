"""What mining answers: verdict, bugs as groups of traces, what was not seen, what could not be read.

All but ``seconds`` is the same, byte for byte, for the same corpus, however it is cut into files and whoever computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from ...model.core.errors import BadInput
from ...model.explore.result import Verdict
from ..format import Trace
from ..run_report import Json

Kind: TypeAlias = Literal["guard", "effect", "promise"]
"""What was wrong first: a guard refuses the step, its outcome is another, or allowed steps break a promise."""

TIMES: Final = ("seconds", "events_per_second")
"""The fields of the JSON that differ from run to run."""


@dataclass(frozen=True, order=True)
class Bug:
    """What the traces of a group have in common; ``groups.py`` says what counts as one bug.

    ``guard``: the first guard of ``action`` that refuses the step; None for ``effect`` and ``promise``, and where the
    variant lacks the action. ``variables``: for ``effect``, those that were observed otherwise than the model has them,
    each with the direction: ``leo+`` is too high, ``leo-`` too low, ``isr`` neither. ``invariant``: the promise broken.
    ``changes``: for ``effect``, the mutants of the action that have this very outcome.
    """

    protocol: str
    kind: Kind
    action: str | None = None
    guard: str | None = None
    variables: tuple[str, ...] = ()
    invariant: str | None = None
    changes: tuple[str, ...] = ()

    @property
    def seen(self) -> Bug:
        """The bug as it can be seen, whatever would explain it."""
        return replace(self, changes=())

    def __str__(self) -> str:
        if self.kind == "promise":
            return f"breaks {self.invariant}"
        action = self.action or "a look at the state"
        if self.kind == "guard":
            return f"{action} against {self.guard}" if self.guard else f"{action}, which the variant does not have"
        return f"{action} with {', '.join(map(_wrong, self.variables))}"

    def to_json(self) -> dict[str, Json]:
        """As a JSON object, without ``changes``: a group has those that all of its traces have in common."""
        return {
            "protocol": self.protocol,
            "kind": self.kind,
            "action": self.action,
            "guard": self.guard,
            "variables": list(self.variables),
            "invariant": self.invariant,
        }


def _wrong(variable: str) -> str:
    name = variable.rstrip("+-")
    return name + {"+": " too high", "-": " too low"}.get(variable[len(name) :], " wrong")


@dataclass(frozen=True)
class Group:
    """The traces that show one bug.

    ``count`` traces; ``first``: the smallest trace id; ``shortest``: the id of the one that shows it soonest, at its
    event number ``prefix`` (counted from 1). ``shape``: the last steps of the minimal trace, replicas and offsets
    renamed in the order in which they appear. ``signatures``: how many shapes of last steps were seen in the corpus.
    ``then``: promises that broke at the refused step or later, each with the number of traces and the fewest steps
    after it. ``mutants``: the single changes of the model that allow what was seen (their names), so that a person
    knows where to look. ``minimal``: None where the group was left out of minimising (see ``note``). ``minimised``:
    nothing can be left out of it. ``file`` and ``test``: the names of the files written in the output folder.
    """

    bug: Bug
    count: int
    first: int
    shortest: int
    prefix: int
    constants: Mapping[str, int]
    variant: str
    shape: tuple[str, ...] = ()
    signatures: int = 1
    then: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    mutants: tuple[str, ...] = ()
    minimal: Trace | None = None
    minimised: bool = False
    note: str | None = None
    file: str | None = None
    test: str | None = None

    def to_json(self) -> dict[str, Json]:
        """As a JSON object; ``minimal_trace`` is the lines of a trace file as objects, the header first."""
        lines: Json = None
        if self.minimal is not None:
            lines = [self.minimal.header.to_json(), *(event.to_json() for event in self.minimal.events)]
        return {
            "signature": {**self.bug.to_json(), "shape": list(self.shape), "text": str(self.bug)},
            "count": self.count,
            "first": self.first,
            "shortest": self.shortest,
            "prefix": self.prefix,
            "variant": self.variant,
            "constants": dict(self.constants),
            "signatures": self.signatures,
            "then": {name: {"traces": n, "after": after} for name, (n, after) in self.then.items()},
            "mutants": list(self.mutants),
            "minimal_trace": lines,
            "minimised": self.minimised,
            "note": self.note,
            "file": self.file,
            "test": self.test,
        }


@dataclass(frozen=True)
class Rare:
    """A transition between abstract states that the corpus takes seldom: ``action`` in an abstract state.

    ``state``: that abstract state in words (``abstract.py`` says what they are). ``count`` events, the first of them in
    the trace ``first``.
    """

    action: str
    state: str
    count: int
    first: int

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {"action": self.action, "state": self.state, "count": self.count, "first": self.first}


@dataclass(frozen=True)
class Unvisited:
    """An abstract state that the model reaches and the corpus does not: in words, and after how many steps at least."""

    state: str
    steps: int

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {"state": self.state, "steps": self.steps}


@dataclass(frozen=True)
class Share:
    """How many of all there are were visited. ``of`` None: how many there are is not known.

    ``visited`` None: not counted. ``estimated``: of a sample of both, so that the fraction is an estimate.
    """

    visited: int | None
    of: int | None
    estimated: bool = False

    @property
    def fraction(self) -> float | None:
        """The share that was visited."""
        return None if self.visited is None or not self.of else self.visited / self.of

    def to_json(self) -> dict[str, Json]:
        """As a JSON object, with the fraction."""
        fraction = None if self.fraction is None else round(self.fraction, 6)
        return {"visited": self.visited, "of": self.of, "fraction": fraction, "estimated": self.estimated}


@dataclass(frozen=True)
class Coverage:
    """What was seen and what was not of one model: the variant held against, at the constants of some files.

    ``actions``: how many events each was. ``guards``: for each ``ACTION.GUARD`` the smallest id of a trace that visits
    a state in which it alone refuses some step; None: it decides nowhere, so that the corpus says nothing about it.
    ``states`` and ``steps`` (a step is an action with parameters in a state): of all that the model reaches at the
    corpus' ``constants``, where that could be explored. ``abstract`` states and ``moves`` (actions in them): of all
    that the model reaches at ``small`` constants. ``idle``: guards that decide nothing there either: others refuse
    whatever they refuse. ``unvisited``: the nearest abstract states that were not visited, ``unvisited_left_out`` how
    many more. ``rarest``: the moves that the corpus takes least often. ``notes`` say which budget applied, if one did.
    """

    protocol: str
    variant: str
    constants: Mapping[str, int]
    events: int
    actions: Mapping[str, int]
    guards: Mapping[str, int | None]
    states: Share
    steps: Share
    small: Mapping[str, int]
    abstract: Share
    moves: Share
    unvisited: tuple[Unvisited, ...]
    unvisited_left_out: int
    rarest: tuple[Rare, ...]
    idle: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def actions_unseen(self) -> tuple[str, ...]:
        """Actions that never happened."""
        return tuple(name for name, count in self.actions.items() if not count)

    @property
    def guards_unseen(self) -> tuple[str, ...]:
        """Guards that never decided anything, but for those that are idle."""
        return tuple(name for name, first in self.guards.items() if first is None and name not in self.idle)

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {
            "protocol": self.protocol,
            "variant": self.variant,
            "constants": dict(self.constants),
            "events": self.events,
            "actions": dict(self.actions),
            "actions_unseen": list(self.actions_unseen),
            "guards": dict(self.guards),
            "guards_unseen": list(self.guards_unseen),
            "states": self.states.to_json(),
            "steps": self.steps.to_json(),
            "small": dict(self.small),
            "abstract": self.abstract.to_json(),
            "moves": self.moves.to_json(),
            "idle": list(self.idle),
            "unvisited": [each.to_json() for each in self.unvisited],
            "unvisited_left_out": self.unvisited_left_out,
            "rarest": [each.to_json() for each in self.rarest],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Unknown:
    """Traces about which nothing is certain: how many for each reason, and the smallest trace id of each."""

    reason: str
    count: int
    first: int

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {"reason": self.reason, "count": self.count, "first": self.first}


@dataclass(frozen=True)
class Problem:
    """A file (or part of one) that could not be mined, on one line, as `BadInput` has it."""

    what: str
    where: str
    mend: str

    @classmethod
    def of(cls, error: BadInput) -> Problem:
        """What an error says."""
        return cls(error.what, error.where, error.mend)

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.mend}"

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {"what": self.what, "where": self.where, "mend": self.mend}


@dataclass(frozen=True)
class Answer:
    """The answer. ``variants``: what the traces were held against. ``groups`` are sorted by count, the largest first.

    ``seconds``: wall time of the mining, without the start of a session.
    """

    variants: tuple[str, ...]
    traces: int
    events: int
    violating_traces: int
    groups: tuple[Group, ...]
    groups_left_off: int
    unknown: tuple[Unknown, ...]
    coverage: tuple[Coverage, ...]
    problems: tuple[Problem, ...]
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """Violated where any trace is; else unknown where anything could not be read or decided."""
        if self.violating_traces:
            return Verdict.VIOLATED
        return Verdict.UNKNOWN if self.problems or self.unknown else Verdict.HOLDS

    @property
    def events_per_second(self) -> float:
        """Events mined in a second."""
        return self.events / self.seconds if self.seconds else 0.0

    def to_json(self) -> dict[str, Json]:
        """The object that ``fencepost mine --json`` prints."""
        return {
            "verdict": self.verdict.value,
            "variants": list(self.variants),
            "traces": self.traces,
            "events": self.events,
            "violating_traces": self.violating_traces,
            "groups": [group.to_json() for group in self.groups],
            "groups_left_off": self.groups_left_off,
            "unknown": [each.to_json() for each in self.unknown],
            "coverage": [each.to_json() for each in self.coverage],
            "problems": [each.to_json() for each in self.problems],
            "seconds": round(self.seconds, 3),
            "events_per_second": round(self.events_per_second),
        }
