"""Where an implementation and the model part: what happened last, and how the two differ."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ...model.core.enum_value import plain_params
from ...model.core.ground import State
from ...model.interpret.explain import Refusal
from ...traces.diagnose import value_words
from ...traces.format import Value, value_json
from ...traces.run_report import Json
from .expect import Expectation, Try
from .space import Call
from .traceback import Raised


class Sort(Enum):
    """How the two can differ."""

    REFUSED = "the implementation did what the model refuses"
    MISSING = "the implementation did not do what the model does"
    ERROR = "the implementation answered with the wrong error code"
    CHANGED = "the implementation changed its state where nothing may change"
    CELLS = "the implementation's state differs from the model's"
    PROMISE = "a promise of the protocol is broken, in the model as in the implementation"
    UNKNOWN = "the adapter reported what the model has no word for"
    CONTRADICTED = "what is seen, or answered, contradicts what is known"
    RAISED = "the implementation, or its adapter, raised an exception"
    HUNG = "the implementation, or its adapter, did not come back"


@dataclass(frozen=True)
class CellDifference:
    """A cell that the two have otherwise."""

    cell: str
    model: object
    implementation: object

    @property
    def words(self) -> tuple[str, str]:
        """The model's value and the implementation's."""
        return _words(self.model), _words(self.implementation)

    def __str__(self) -> str:
        model, implementation = self.words
        return f"{self.cell} is {model} in the model, {implementation} in the implementation"

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {"cell": self.cell, "model": _json(self.model), "implementation": _json(self.implementation)}


def _words(value: object) -> str:
    return value_words(value) if value is None or isinstance(value, int | tuple) else repr(value)


def _json(value: object) -> Json:
    return value_json(value) if value is None or isinstance(value, int | tuple) else repr(value)


@dataclass(frozen=True)
class LockstepDivergence:
    """One divergence. ``asked`` is what the harness asked for last, ``detail`` says in a sentence what came of it.

    ``refusal``: the model's guard that refuses what was asked, or what the implementation did instead, with its
    operands. ``cells``: the cells that differ, in the model's order; the first is the first differing observable.
    ``at``: where an exception was raised, or where the call hung. ``broken``: the promise that does not hold.
    """

    sort: Sort
    asked: Try
    detail: str
    refusal: Refusal | None = None
    cells: tuple[CellDifference, ...] = ()
    at: Raised | None = None
    broken: str | None = None

    @property
    def headline(self) -> str:
        """Everything that matters, in one or two sentences."""
        return f"{self.asked}: {self.detail}"

    @property
    def lines(self) -> tuple[str, ...]:
        """What differs, a line each: the guard, then the cells."""
        guard = () if self.refusal is None else (f"the model's guard: {self.refusal}",)
        place = () if self.at is None else (f"at {self.at}",)
        return (*place, *guard, *(str(each) for each in self.cells))

    def is_like(self, other: LockstepDivergence) -> bool:
        """Whether a run that is repeated ends as before: with the same words, but for addresses of objects in memory.

        Of a call that hung it is not told where it was when the time was over.
        """
        if self.sort is not other.sort or self.asked != other.asked:
            return False
        return self.sort is Sort.HUNG or _without_addresses(self) == _without_addresses(other)

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        guard: dict[str, Json] | None = None
        if self.refusal is not None:
            guard = {
                "action": self.refusal.action,
                "params": plain_params(self.refusal.params),
                "guard": self.refusal.guard,
                "condition": self.refusal.condition,
                "operands": dict(self.refusal.operands),
            }
        return {
            "kind": self.sort.name.lower(),
            "asked": self.asked.to_json(),
            "detail": self.detail,
            "refusal": guard,
            "cells": [each.to_json() for each in self.cells],
            "at": None if self.at is None else {"file": self.at.file, "line": self.at.line},
        }


def _without_addresses(divergence: LockstepDivergence) -> list[str]:
    """The sentence and the lines of a divergence."""
    return [re.sub(r"\b0x[0-9a-fA-F]+", "0x", told) for told in (divergence.detail, *divergence.lines)]


@dataclass(frozen=True)
class Done:
    """One try that was carried out, for the trace: what was asked, what happened, and what was seen after it.

    ``run``: each model step with the state after it. ``refused``: the step after these that the model refuses, if that
    is how the two part. ``observed`` holds what the adapter showed, None where it did not come to that.
    """

    asked: Try
    run: tuple[tuple[Call, State], ...]
    error: str | None
    observed: Mapping[str, Value] | None
    refused: Call | None = None


def error_words(error: str | None) -> str:
    """``no error`` or the code."""
    return error or "no error"


def expected_words(expected: Expectation) -> str:
    """What should have come of a try."""
    codes = " or ".join(sorted(error_words(each) for each in expected.errors))
    because = f", as {expected.why}" if expected.why else ""
    match expected.happens:
        case True:
            return f"by the model it happens, with {codes}{because}"
        case False:
            return f"by the model it does not happen, with {codes}{because}"
        case None:
            return f"by the model it happens with no error or does not happen, with {codes}{because}"
