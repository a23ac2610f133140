"""How large a variant becomes when it is grounded, counted before that is done.

Constants as small as 20 make more instances, and larger terms, than any machine takes in: a read at a computed index is
a choice over all cells of its variable, and a quantifier its body once for each value. All of that follows from the
traced text and the constants alone, by multiplication, so whoever has a budget can hold to it before ``ground`` runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from .domains import Constants, Variable
from .protocol import TracedAction, TracedProtocol
from .terms import BINDERS, Term, row

MAX_WORK: Final = 15_000_000
"""As much work as a command takes on unasked: two microseconds each, so half a minute; and some 40 MB."""


@dataclass(frozen=True)
class GroundSize:
    """What grounding comes to: cells of a state, instances of actions, and steps of work.

    ``work`` counts the terms that ``ground`` visits, a cell that a read or a write chooses from as one more.
    """

    cells: int
    instances: int
    work: int


def ground_size(traced: TracedProtocol, constants: Constants) -> GroundSize:
    """The size of a variant at these constants. Raises BadInput for constants that the protocol does not have."""
    counting = _Counting(traced, traced.protocol.check_constants(constants))
    instances = {action.name: counting.instances(action) for action in traced.actions}
    work = sum(instances[action.name] * counting.of_action(action) for action in traced.actions)
    work += counting.of_types() + sum(map(counting.of, (*traced.invariants.values(), *traced.witnesses.values())))
    return GroundSize(sum(counting.cells.values()), sum(instances.values()), work)


def too_large(traced: TracedProtocol, constants: Constants, max_work: int = MAX_WORK) -> str | None:
    """Why a variant is not to be grounded at these constants, as the reason of an ``unknown``; None where it may be."""
    size = ground_size(traced, constants)
    if size.work <= max_work:
        return None
    return (
        f"grounding {size.instances:,} instances of actions over {size.cells:,} cells takes {size.work:,} terms, "
        f"more than {max_work:,}"
    )


class _Counting:
    """Counts at some constants. ``cells``: of each variable."""

    def __init__(self, traced: TracedProtocol, constants: Mapping[str, int]) -> None:
        self._traced = traced
        self._constants = constants
        self._variables: Mapping[str, Variable] = traced.variables
        self._works: dict[Term, int] = {}
        self.cells = {name: prod(each.shape(constants)) for name, each in self._variables.items()}
        # After an update each cell that may be dead is looked at: its condition grounded, and cells replaced in it.
        self._canonical = sum(self.cells[name] * (2 * self.of(live) + 1) for name, (_, live) in traced.live.items())

    def instances(self, action: TracedAction) -> int:
        return prod(index.size(self._constants) for index in action.params.values())

    def of_action(self, action: TracedAction) -> int:
        """The work on one instance: any takes as much."""
        guards = sum(self.of(guard) for _, guard in action.guards)
        writes = sum(
            self._row(target) * (self.of(value) + sum(map(self.of, target.args)) + self.cells[str(target.value)])
            for target, value in action.writes
        )
        return guards + writes + self._canonical + 1

    def _row(self, target: Term) -> int:
        """How often a value is grounded: once, or once for each place of a row."""
        per = self._variables[str(target.value)].per
        return prod(per[place].size(self._constants) for place, _ in row(target))

    def of_types(self) -> int:
        live = {name: self.of(condition) for name, (_, condition) in self._traced.live.items()}
        return sum(count * (1 + live.get(name, 0)) for name, count in self.cells.items())

    def of(self, term: Term) -> int:
        """The work on one term, what occurs twice in it done twice.

        Each term is counted once, below whatever quantifiers it stands: all its terms are no more than the text has.
        """
        known = self._works.get(term)
        if known is None:
            args = term.args
            known = 1
            if term.op == "var":
                known += self.cells[str(term.value)]
            if term.op in BINDERS:
                known += self._traced.protocol.indices[str(term.value)].size(self._constants) * self.of(args[1])
                args = args[2:]
            known = self._works[term] = known + sum(map(self.of, args))
        return known
