"""Abstract states: what can happen in a state and which of the model's witnesses it shows, and nothing else.

Two states are one abstract state where the same actions can happen in them (with some parameters), and the same
witnesses hold. That forgets which replica is which, and how far offsets and epochs have come, so abstract states of
different constants are the same things: a corpus at large constants is compared with the whole graph at small ones.

A guard *decides* in a state where some step of its action is refused by it alone: all other guards hold. A corpus that
never visits such a state says nothing about the guard: without it, every step taken there would be just as possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from ...model.core import terms
from ...model.core.ground import Instance, System
from ...model.core.terms import Term
from ...model.interpret.batch import Block
from ...model.interpret.packing import Columns
from .partial import Mask

Marks = npt.NDArray[np.int64]
"""Abstract states, shape (n,): bit ``i`` is the ``i``-th condition of ``Abstraction``."""


class Abstraction:
    """The conditions that make up an abstract state of a variant: its actions, then its witnesses."""

    def __init__(self, system: System) -> None:
        self.actions: Final = tuple(system.actions)
        # At small constants some witnesses are not to be expected; their bit is there all the same.
        self.witnesses: Final = tuple(system.traced.protocol.witnesses)
        enabled: dict[str, list[Term]] = {name: [] for name in self.actions}
        alone: dict[str, list[Term]] = {
            f"{action.name}.{guard}": [] for action in system.traced.actions for guard, _ in action.guards
        }
        for instance in system.by_step.values():
            enabled[instance.action].append(_all(instance))
            for guard, condition in decides(instance).items():
                alone[f"{instance.action}.{guard}"].append(condition)
        self._bits = [terms.disjunction(*enabled[name]) for name in self.actions]
        self._bits += [system.witnesses.get(name, terms.FALSE) for name in self.witnesses]
        self.deciding: Final[Mapping[str, Term]] = {name: terms.disjunction(*each) for name, each in alone.items()}

    def __call__(self, columns: Columns) -> tuple[Marks, Block]:
        """The abstract states of columns, shape (cells, n); and the block, for whoever asks more of them."""
        block = Block(columns)
        marks = np.zeros(columns.shape[1], dtype=np.int64)
        for bit, condition in enumerate(self._bits):
            marks |= np.left_shift(block(condition).astype(np.int64), bit)
        return marks, block

    def enabled(self, mark: int) -> list[str]:
        """The actions that can happen in an abstract state."""
        return [name for bit, name in enumerate(self.actions) if mark >> bit & 1]

    def told(self, mark: int) -> str:
        """An abstract state in words."""
        can = ", ".join(self.enabled(mark)) or "nothing"
        shows = [name for bit, name in enumerate(self.witnesses, len(self.actions)) if mark >> bit & 1]
        return f"can happen: {can}" + (f"; shows {', '.join(shows)}" if shows else "")


def decides(instance: Instance) -> dict[str, Term]:
    """For each guard of an instance the condition that it alone refuses the step."""
    return {
        name: terms.conjunction(terms.negate(condition), *(other for each, other in instance.guards if each != name))
        for name, condition in instance.guards
    }


def _all(instance: Instance) -> Term:
    return terms.conjunction(*(condition for _, condition in instance.guards))


def true_of(block: Block, condition: Term, count: int) -> Mask:
    """Where a condition holds, shape (count,)."""
    return np.broadcast_to(block(condition), (count,))
