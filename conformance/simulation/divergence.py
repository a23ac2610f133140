"""Where a freely running system and the model part: what happened last, what was seen, and why no path leads there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ...model.interpret.explain import Refusal
from ...traces.run_report import Json
from ..lockstep.divergence import CellDifference
from ..lockstep.traceback import Raised
from .events import Event


class Sort(Enum):
    """How the two can part."""

    CELLS = "no path of the model leads to what is seen"
    ERROR = "a request was answered otherwise than the model has it"
    MISSING = "what was answered as done was not done"
    SAID = "a message says what is not so of whoever sent it"
    PROMISE = "a promise of the protocol is broken, in the model as in the implementation"
    NEVER = "what must come in the end does not come"
    UNKNOWN = "the system showed, or told, what the model has no word for"
    CONTRADICTED = "what is seen, or answered, contradicts what is known"
    RAISED = "the implementation raised an exception"
    HUNG = "the implementation did not come back"


@dataclass(frozen=True)
class Divergence:
    """One disagreement. ``event``: the last one, None for the start. ``detail``: a sentence.

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
