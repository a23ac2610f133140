"""Why a step is refused: the guard, and what its operands were."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.ground import Params, State
from ..core.pretty import show
from .reader import Reader, bound
from .reference import Reference


@dataclass(frozen=True)
class Refusal:
    """A step that a guard refuses. ``operands`` are the cells that the guard read, with their values."""

    action: str
    params: Params
    guard: str
    condition: str
    operands: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        step = f"{self.action}({', '.join(f'{k}={v}' for k, v in self.params)})"
        values = ", ".join(f"{name} is {value}" for name, value in self.operands)
        return f"{step}: guard {self.guard} wants {self.condition}" + (f"; {values}" if values else "")


def refusal(reference: Reference, state: State, action: str, params: Params) -> Refusal | None:
    """The first guard that refuses a step, with its operands; None where the step is enabled.

    Raises KeyError for an action that the variant does not have.
    """
    name = reference.refused_by(state, action, params)
    if name is None:
        return None
    traced = reference.system.traced.action(action)
    guard = dict(traced.guards)[name]
    reader = Reader(reference.system, state, bound(traced, params))
    reader(guard)
    operands = tuple((cell, values.told(value)) for cell, (values, value) in reader.read.items())
    return Refusal(action, params, name, show(guard), operands)
