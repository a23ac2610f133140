"""Faults that can be planted: mutants of a variant, and whole variants of which it is a mended form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from itertools import chain

from ...model.core.errors import BadInput
from ...model.core.ground import System, ground, ground_mutant
from ...model.core.mutants import Mutant, mutants
from ...model.core.protocol import Protocol, TracedAction, TracedProtocol
from ...model.interpret.batch import Batch

ALL = "all"
"""In place of a name: every mutant of the variant, and every other variant with the same state."""


@dataclass(frozen=True)
class Fault:
    """A mutant, by its name in ``fencepost mutants``, or another variant, by its name.

    ``actions``: those of the variant at hand that the fault has otherwise, or lacks. What the other variant has besides
    is left out: a trace of the variant at hand could not tell it.
    """

    name: str
    traced: TracedProtocol
    actions: frozenset[str]
    mutant: bool


def faults_named(traced: TracedProtocol, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each once, with ``all`` spelt out. Raises BadInput for one that there is not."""
    found: dict[str, None] = {}
    for name in names:
        if name != ALL:
            found[fault_named(traced, name).name] = None
            continue
        found |= dict.fromkeys(mutants_of(traced.protocol, traced.variant.name))
        found |= {
            other: None for other in traced.protocol.variants if other != traced.variant.name and _alike(traced, other)
        }
    return tuple(found)


def fault_named(traced: TracedProtocol, name: str) -> Fault:
    """The fault of a name; ``ACTION.GUARD`` alone is the guard dropped, as in fencepost explore.

    Raises BadInput where there is none, or it has another state than the variant.
    """
    variant = traced.variant.name
    known = mutants_of(traced.protocol, variant)
    mutant = known.get(name) or known.get(f"{name} dropped")
    if mutant is not None:
        return Fault(mutant.name, mutant.traced, frozenset({mutant.action}), True)
    if name not in traced.protocol.variants or name == variant:
        what = f"{traced.protocol.name} ({variant}) has no mutant and no other variant {name!r}"
        near = get_close_matches(name, [*known, *traced.protocol.variants], n=3)
        mend = f"perhaps {' or '.join(map(repr, near))}; " if near else ""
        raise BadInput(what, "--faults", f"{mend}fencepost mutants prints the mutants' names")
    if not _alike(traced, name):
        what = f"{name} has other variables than {variant}, so that a trace cannot go from one to the other"
        raise BadInput(what, "--faults", "simulate that variant alone")
    other = traced.protocol.traced(name)
    theirs = {action.name: action for action in other.actions}
    changed = frozenset(action.name for action in traced.actions if not _same(action, theirs.get(action.name)))
    return Fault(name, other, changed, False)


@lru_cache(maxsize=4)
def mutants_of(protocol: Protocol, variant: str) -> Mapping[str, Mutant]:
    """The mutants of a variant, by name."""
    return {mutant.name: mutant for mutant in mutants(protocol.traced(variant))}


def _alike(traced: TracedProtocol, other: str) -> bool:
    """Whether another variant has the same variables."""
    return list(traced.variables.items()) == list(traced.protocol.variables_of(other).items())


def _same(ours: TracedAction, theirs: TracedAction | None) -> bool:
    """Whether two variants have an action alike. Terms are interned, and ``==`` of two of them is a term."""
    if theirs is None or list(ours.params.items()) != list(theirs.params.items()):
        return False
    if [name for name, _ in ours.guards] != [name for name, _ in theirs.guards]:
        return False
    terms, others = ([*(guard for _, guard in a.guards), *chain(*a.writes)] for a in (ours, theirs))
    return len(terms) == len(others) and all(term is other for term, other in zip(terms, others, strict=True))


def rules_of(fault: Fault, system: System) -> tuple[Batch, frozenset[str]]:
    """The fault's own instances of the actions in which it differs, at a system's constants; and these actions."""
    if fault.mutant:
        (action,) = fault.actions
        whole = ground_mutant(system, fault.traced, action)
    else:
        whole = ground(fault.traced, system.constants)
    theirs = [i for i in whole.instances if i.action in fault.actions and (i.action, i.params) in system.by_step]
    return Batch(replace(whole, instances=theirs)), fault.actions
