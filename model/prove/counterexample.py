"""A counterexample to induction as a person reads it: state, action, broken conjunct, and a path to it if there is one.

Most such states are reached by no run: they satisfy all that the proof knows, and that is too little. Where one is
reached at its own constants, the explorer's shortest path to it makes it a counterexample to the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..core import terms
from ..core.enum_value import plain_params
from ..core.ground import State, System, ground
from ..core.terms import Sort, Term
from ..explore import Exploration, Limits, Query, explore
from ..explore.result import Step
from .finite import Concrete, Counterexample
from .proof_for_variant import AttachedProof

ELSEWHERE = "elsewhere"
"""The invariant whose shortest counterexample is the path that is looked for."""

LIMITS = Limits(max_states=2_000_000)
"""Of a search for a run that breaks a promise."""

NEAR = Limits(max_states=200_000)
"""Of a search for a path to a state: most such states are reached by no run."""


@dataclass(frozen=True)
class Shown:
    """A counterexample in words. ``state`` and ``ghosts``: the cells that are not as in the initial state.

    ``path``: the steps of a shortest run to the state, or None where there is none; ``searched``: how many states the
    explorer visited, and ``complete`` whether these were all.
    """

    found: Counterexample
    doc: str
    state: Mapping[str, str]
    ghosts: Mapping[str, str]
    changes: Mapping[str, tuple[str, str]]
    path: list[Step] | None
    searched: int
    complete: bool

    @property
    def step(self) -> str:
        """``become_follower(leader=0, follower=1, epoch=1)``."""
        return f"{self.found.action}({', '.join(f'{name}={value}' for name, value in self.found.params)})"

    @property
    def broken(self) -> str:
        """``log_matching for left=0, right=1, lower=0, upper=0``."""
        values = ", ".join(f"{name}={value}" for name, value in self.found.values)
        return self.found.conjunct + (f" for {values}" if values else "")

    @property
    def reached(self) -> str:
        """Whether a run reaches the state, in words."""
        at = "/".join(map(str, self.found.constants.values()))
        if self.path is not None:
            return f"reached by {len(self.path)} step{'' if len(self.path) == 1 else 's'} at {at}"
        return f"not reached at {at} ({self.searched:,} states{'' if self.complete else ', not all'})"

    def to_json(self) -> dict[str, object]:
        """The object that ``fencepost prove --json`` prints."""
        path = self.path
        return {
            "constants": dict(self.found.constants),
            "state": dict(self.state),
            "ghosts": dict(self.ghosts),
            "action": self.found.action,
            "params": plain_params(self.found.params),
            "changes": {name: list(pair) for name, pair in self.changes.items()},
            "conjunct": self.found.conjunct,
            "values": dict(self.found.values),
            "reachable": path is not None,
            "path": path and [{"action": s.instance.action, "params": plain_params(s.instance.params)} for s in path],
        }


def shown(attached: AttachedProof, found: Counterexample) -> Shown:
    """A counterexample with what belongs beside it; of the ghosts those that the broken conjunct reads."""
    concrete = Concrete(attached, found.constants)
    conjunct = attached.conjuncts[found.conjunct]
    ghosts = attached.proof.ghosts
    read = {name for clause in conjunct.clauses for name in terms.variables_in(clause.body)} & set(ghosts)
    cells = concrete.shown(found.state)
    after = found.state if found.after is None else found.after
    path, searched, complete = path_to(concrete.base, concrete.own(found.state))
    return Shown(
        found,
        conjunct.doc,
        {name: value for name, value in cells.items() if _variable(name) not in ghosts},
        {name: value for name, value in cells.items() if _variable(name) in read},
        {
            name: pair
            for name, pair in concrete.changes(found.state, after).items()
            if _variable(name) not in ghosts or _variable(name) in read
        },
        path,
        searched,
        complete,
    )


def path_to(system: System, state: State, limits: Limits = NEAR) -> tuple[list[Step] | None, int, bool]:
    """A shortest run to a state, or None; how many states were visited; and whether these were all."""
    if state == system.initial:
        return [], 1, True
    here = terms.conjunction(
        *(
            terms.node("cell", (), cell.variable.values.sort, cell.number) == _literal(cell.variable.values.sort, value)
            for cell, value in zip(system.layout.cells, state, strict=True)
        )
    )
    wanted = {"type_ok": system.invariants["type_ok"], ELSEWHERE: terms.negate(here)}
    search = explore(Query(replace(system, invariants=wanted, witnesses={}), tuple(wanted), limits=limits))
    path = search.path if search.violated == ELSEWHERE else None
    return path, search.distinct, search.reason is None and search.violated is None


def _literal(sort: Sort, value: int) -> Term:
    return terms.const(value, None if sort is Sort.INT else sort)


def _variable(cell: str) -> str:
    return cell.partition("[")[0]


def breaking_run(attached: AttachedProof, limits: Limits = LIMITS) -> Exploration | None:
    """A shortest run that breaks an invariant of the protocol's text, at the first of the proof's ``runs`` with one.

    None where none has, within the limits.
    """
    for constants in attached.proof.runs:
        found = explore(Query.of(ground(attached.base, constants), limits=limits))
        if found.path is not None:
            return found
    return None
