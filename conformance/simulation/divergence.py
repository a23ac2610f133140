"""The divergence of a simulated system from the model: last event, observed state, and why the model forbids it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ...model.interpret.explain import Refusal
from ...traces.run_report import Json
from ..lockstep.divergence import CellDifference
from ..lockstep.traceback import Raised
from .events import Event


class Sort(Enum):
    """Kinds of divergence."""

    CELLS = "no path of the model reaches the observed state"
    ERROR = "a request got an answer that the model does not allow"
    MISSING = "a request was answered as successful, but had no effect"
    SAID = "a message claims something that is false of its sender"
    PROMISE = "an invariant is violated, in the model and in the implementation"
    NEVER = "a required event did not happen by quiescence"
    UNKNOWN = "the system reported something that the model does not have"
    CONTRADICTED = "an observation or an answer contradicts established facts"
    RAISED = "the implementation raised an exception"
    HUNG = "the implementation hung"


@dataclass(frozen=True)
class Divergence:
    """One divergence. ``event``: the last one, None for the start. ``detail``: a sentence.

    ``frontier``: how many states of the model explained everything before. ``cells``: in which cells what is seen
    differs from the nearest state that the model could come to. ``refusals``: the guards that refuse what the event's
    message stands for. ``steps``: the model's steps of the nearest path, or of the path that breaks the promise.
    """

    sort: Sort
    event: Event | None
    detail: str
    frontier: int = 1
    cells: tuple[CellDifference, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    steps: tuple[str, ...] = ()
    at: Raised | None = None
    broken: str | None = None

    @property
    def headline(self) -> str:
        """The event, and what came of it."""
        return f"{'the start' if self.event is None else self.event}: {self.detail}"

    @property
    def lines(self) -> tuple[str, ...]:
        """What differs, a line each."""
        found = [] if self.at is None else [f"at {self.at}"]
        found += [f"the model's guard: {each}" for each in self.refusals]
        found += [str(each) for each in self.cells]
        if self.steps:
            found.append(f"the model's nearest path: {', '.join(self.steps)}")
        return tuple(found)

    def alike(self, other: Divergence) -> bool:
        """Whether another is the same finding: what a shorter run must end in."""
        return (self.sort, self.broken) == (other.sort, other.broken)

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {
            "kind": self.sort.name.lower(),
            "event": None if self.event is None else self.event.to_json(),
            "detail": self.detail,
            "frontier": self.frontier,
            "cells": [each.to_json() for each in self.cells],
            "refusals": [
                {
                    "action": each.action,
                    "params": dict(each.params),
                    "guard": each.guard,
                    "condition": each.condition,
                    "operands": dict(each.operands),
                }
                for each in self.refusals
            ],
            "steps": list(self.steps),
            "at": None if self.at is None else {"file": self.at.file, "line": self.at.line},
            "broken": self.broken,
        }
