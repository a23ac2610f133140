"""The step at which a trace is refused, as something that can be asked for again in other states.

A bug is more than one step of one trace: in which states does it show, and what comes of it there? Where a guard
refuses the step, what the model would do without that guard; where the outcome is another, what a mutant of the action
does that has the same outcome here; where no mutant has, the very values that were observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TypeAlias

from ...model.core import terms
from ...model.core.domains import Constants
from ...model.core.ground import Instance, Layout, Params, State, System, ground_mutant
from ...model.core.protocol import TracedProtocol
from ...model.core.terms import Sort, Term
from ...model.interpret.reference import Reference
from ..corpus.faults import ALL, Fault, fault_named, faults_named
from .answer import Bug
from .signature import variables_of

Call: TypeAlias = "tuple[str | None, Params]"
"""An action with all its parameters; None is a look at the state."""


def reference_of(traced: TracedProtocol, constants: Constants) -> Reference:
    """The reference interpreter of a variant or mutant; it reads the text, and needs nothing grounded."""
    values = traced.protocol.check_constants(constants)
    return Reference(System(traced, values, Layout(traced.variables, values), [], {}, {}))


@dataclass(frozen=True)
class BadStep:
    """The step that showed a bug: the state before it, and the cells observed after it, by number (perhaps none)."""

    bug: Bug
    before: State
    call: Call
    observed: Mapping[int, int]


def explaining(traced: TracedProtocol, constants: Constants, bad: BadStep) -> list[Fault]:
    """The changes of the variant that allow a bad step, with what was observed after it: mutants, other variants."""
    found = []
    action, params = bad.call
    for name in faults_named(traced, (ALL,)):
        fault = fault_named(traced, name)
        if action is None or action not in fault.actions or action not in {a.name for a in fault.traced.actions}:
            continue
        after = reference_of(fault.traced, constants).step(bad.before, action, params)
        if after is not None and all(after[number] == value for number, value in bad.observed.items()):
            found.append(fault)
    return found


class Oracle:
    """Tells in which states a bug shows, and what comes of it there.

    ``changed``: the model with the one change that explains the bug, None where no such change is known.
    """

    def __init__(self, traced: TracedProtocol, constants: Constants, bad: BadStep, fault: Fault | None) -> None:
        self.bug = bad.bug
        self.bad = bad
        self.traced = traced
        self.reference = reference_of(traced, constants)
        self._change = fault.traced if fault is not None else self._without_guard()
        self.changed = None if self._change is None else reference_of(self._change, constants)
        if self.changed is not None and step_of(self.changed, bad.before, bad.call) is None:
            # Other guards refuse the step as well: it is bad by the first of them, and nothing is known to come of it.
            self.changed = self._change = None
        after = outcome_of(self.reference, bad.before, bad.call)
        # The cells that were observed otherwise than the model has them.
        self._apart = set() if after is None else {n for n, value in bad.observed.items() if value != after[n]}

    def at(self, constants: Constants) -> Oracle:
        """The same question at other constants."""
        other = copy(self)
        other.reference = reference_of(self.traced, constants)
        other.changed = None if self._change is None else reference_of(self._change, constants)
        if self._change is None:
            # Cells have other numbers there.
            other._apart = set()
        return other

    def _without_guard(self) -> TracedProtocol | None:
        return self.traced.drop(f"{self.bug.action}.{self.bug.guard}") if self.bug.guard else None

    def shows(self, state: State, call: Call) -> tuple[bool, Mapping[int, int]]:
        """Whether a step in a state shows the bug, and what is observed after it then, by cell."""
        action, params = call
        if action != self.bad.call[0]:
            return False, {}
        if self.bug.kind == "guard" and self.bug.guard is None:
            return True, {}
        expected = outcome_of(self.reference, state, call)
        if self.bug.kind == "effect":
            return (False, {}) if expected is None else self._outcome(state, call, expected)
        refused = action is not None and self.reference.refused_by(state, action, params) == self.bug.guard
        return self._outcome(state, call, None) if refused and expected is None else (False, {})

    def _outcome(self, state: State, call: Call, expected: State | None) -> tuple[bool, Mapping[int, int]]:
        """What comes of the step without the guard, or with the wrong effect; False where nothing is wrong with it."""
        layout = self.reference.system.layout
        if self.changed is not None:
            after = step_of(self.changed, state, call)
            if after is None or after == expected:
                return False, {}
            # A value outside its domain cannot be said in a trace.
            said = {c.number: after[c.number] for c in layout.cells if c.low <= after[c.number] <= c.high}
            return expected is None or any(expected[n] != value for n, value in said.items()), said
        if expected is None:
            return True, {}
        observed = self.bad.observed
        apart = {n: observed[n] - expected[n] for n in self._apart if observed[n] != expected[n]}
        return variables_of(layout, apart) == self.bug.variables, {n: observed[n] for n in sorted(apart)}

    def condition(self, system: System) -> Term | None:
        """Where the bug shows in some step, over the cells of the variant grounded at any constants.

        None where that cannot be said: no change of the model explains what was observed.
        """
        instances = {step: each for step, each in system.by_step.items() if each.action == self.bug.action}
        guard = self.bug.guard
        if self.bug.kind == "guard" and guard is None:
            return terms.TRUE
        if self.changed is None:
            if guard is None:
                return None
            return terms.disjunction(*(_first(each.guards, guard) for each in instances.values()))
        assert self.bug.action is not None
        other = ground_mutant(system, self.changed.system.traced, self.bug.action)
        parts = []
        for step, instance in instances.items():
            theirs = other.by_step[step]
            allowed = terms.conjunction(*(condition for _, condition in theirs.guards))
            wrong = _first(instance.guards, guard) if guard is not None else _apart(system, instance, theirs)
            parts.append(terms.conjunction(allowed, wrong))
        return terms.disjunction(*parts)


def step_of(reference: Reference, state: State, call: Call) -> State | None:
    """The state after a call; None where a guard refuses it, or there is no such action. A look changes nothing."""
    action, params = call
    if action is None:
        return state
    return reference.step(state, action, params) if action in reference.system.actions else None


def outcome_of(reference: Reference, state: State, call: Call) -> State | None:
    """The state after a call as replay has it: of a step that only repeats, the same state."""
    after = step_of(reference, state, call)
    if after is None and call[0] is not None and reference.repeats(state, call[0], call[1]):
        return state
    return after


def _apart(system: System, ours: Instance, theirs: Instance) -> Term:
    """That a step is allowed, and has another outcome by theirs, in a cell whose value a trace can tell."""
    differ = []
    for number in sorted({*ours.effect, *theirs.effect}):
        cell = system.layout.cells[number]
        read = terms.node("cell", (), cell.variable.values.sort, number)
        said = theirs.effect.get(number, read)
        inside = terms.TRUE
        if said.sort is Sort.INT:
            inside = terms.conjunction(terms.const(cell.low) <= said, said <= cell.high)
        differ.append(terms.conjunction(inside, terms.negate(terms.equal(ours.effect.get(number, read), said))))
    return terms.conjunction(*(condition for _, condition in ours.guards), terms.disjunction(*differ))


def _first(guards: Iterable[tuple[str, Term]], name: str) -> Term:
    """That a guard is the first to refuse."""
    passed: list[Term] = []
    for each, condition in guards:
        if each == name:
            return terms.conjunction(*passed, terms.negate(condition))
        passed.append(condition)
    raise KeyError(name)
