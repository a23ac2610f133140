"""Grounding: one variant at finite constants, as conditions and updates over numbered cells.

Every finite engine reads a ``System``: the staged reference and the batch engine compile it, liveness and replay
walk it. Parameters are bound, quantifiers expanded, reads at computed indices turned into choices over cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TypeAlias

from . import terms
from .change_guards import repetition
from .domains import Constants, Variable
from .errors import BadText
from .protocol import TracedAction, TracedProtocol
from .terms import FALSE, TRUE, Sort, Term

State: TypeAlias = tuple[int, ...]
"""A state: the value of every cell, in the layout's order."""

Params: TypeAlias = tuple[tuple[str, int], ...]
"""The parameters of a step, by name, in the order of the action's text."""


@dataclass(frozen=True)
class Cell:
    """One integer of the state: ``variable[index...]``, holding ``low .. high``."""

    number: int
    variable: Variable
    index: tuple[int, ...]
    low: int
    high: int
    initial: int

    @cached_property
    def name(self) -> str:
        """The cell's name in traces and reports: ``leo[1]``, ``record_epoch[0][2]``."""
        places = (per.names[i] if per.names else i for per, i in zip(self.variable.per, self.index, strict=True))
        return self.variable.name + "".join(f"[{place}]" for place in places)


@dataclass(frozen=True)
class Instance:
    """An action with its parameters bound: guards in the order written, and the new term of each changed cell."""

    action: str
    params: Params
    guards: tuple[tuple[str, Term], ...]
    effect: Mapping[int, Term]

    def __str__(self) -> str:
        return f"{self.action}({', '.join(f'{k}={v}' for k, v in self.params)})"

    def repetition(self, traced: TracedAction) -> Term:
        """The condition under which the step is refused only because it changes nothing; of this action."""
        cells = [(terms.node("cell", (), value.sort, number), value) for number, value in self.effect.items()]
        return repetition(self.guards, traced.change_guards, cells)


class Layout:
    """Which number each cell of the state has."""

    def __init__(self, variables: Mapping[str, Variable], constants: Constants) -> None:
        self.cells: list[Cell] = []
        self.by_variable: dict[str, dict[tuple[int, ...], int]] = {}
        for variable in variables.values():
            low, high = variable.values.low(constants), variable.values.high(constants)
            initial = variable.initially(constants)
            numbers = self.by_variable[variable.name] = {}
            for index in product(*(range(n) for n in variable.shape(constants))):
                numbers[index] = len(self.cells)
                self.cells.append(Cell(len(self.cells), variable, index, low, high, initial))
        self.by_name = {cell.name: cell.number for cell in self.cells}

    @property
    def initial(self) -> State:
        """The initial state."""
        return tuple(cell.initial for cell in self.cells)


@dataclass
class System:
    """One variant of a protocol at finite constants."""

    traced: TracedProtocol
    constants: dict[str, int]
    layout: Layout
    instances: list[Instance]
    invariants: dict[str, Term]
    witnesses: dict[str, Term]
    """Only the witnesses that are relevant at these constants."""
    by_step: dict[tuple[str, Params], Instance] = field(default_factory=dict)
    """Every instance by action and parameters, those that can never happen too."""
    constraint: Term = TRUE
    """States in which this does not hold are counted and checked, but not expanded (TLC's CONSTRAINT)."""
    grounder: Grounder | None = field(default=None, repr=False, compare=False)
    """What grounds mutants of this system, once there is one."""

    @property
    def name(self) -> str:
        """The protocol's name."""
        return self.traced.protocol.name

    @cached_property
    def actions(self) -> list[str]:
        """The names of the variant's actions."""
        return [action.name for action in self.traced.actions]

    @property
    def initial(self) -> State:
        """The initial state."""
        return self.layout.initial


_Known: TypeAlias = tuple[tuple[Term, ...], dict[tuple[bool | int | str | None, ...], Term]]


class Grounder:
    """Turns terms over parameters and quantifiers into terms over cells."""

    def __init__(self, traced: TracedProtocol, constants: Constants, layout: Layout) -> None:
        self.traced = traced
        self.constants = constants
        self.layout = layout
        self.indices = traced.protocol.indices
        self._cells = [terms.node("cell", (), c.variable.values.sort, c.number) for c in layout.cells]
        self._memo: dict[Term, _Known] = {}

    def cell(self, number: int) -> Term:
        """The term that reads a cell."""
        return self._cells[number]

    def ground(self, term: Term, binding: Mapping[Term, Term]) -> Term:
        """The term with constants, parameters and bound variables replaced, each by a literal, in simplest form.

        What a part of the term came to for the same values of what is open in it is remembered: instances of an action
        share most of their parts, and a mutant's most of the model's.
        """
        if term.op == "const":
            return term
        free, known = self._known(term)
        values = tuple([binding[open_].value for open_ in free])
        found = known.get(values)
        if found is None:
            found = known[values] = self._ground(term, binding)
        return found

    def _known(self, term: Term) -> _Known:
        """The parameters and bound variables that are open in a term, and what it came to for their values."""
        found = self._memo.get(term)
        if found is None:
            if term.op in ("param", "bound"):
                free: tuple[Term, ...] = (term,)
            else:
                merged = [each for a in term.args for each in self._known(a)[0]]
                if term.op in terms.BINDERS:
                    bound, body, *otherwise = term.args
                    merged = [each for each in self._known(body)[0] if each is not bound]
                    merged += [each for a in otherwise for each in self._known(a)[0]]
                free = tuple(dict.fromkeys(merged))
            found = self._memo[term] = (free, {})
        return found

    def _ground(self, t: Term, binding: Mapping[Term, Term]) -> Term:
        if t.op == "constant":
            return terms.const(self.constants[str(t.value)])
        if t.op in ("param", "bound"):
            return binding[t]
        args = t.args[2:] if t.op in terms.BINDERS else t.args
        grounded = tuple([self.ground(a, binding) for a in args])
        if t.op == "var":
            return self.read(str(t.value), grounded)
        if t.op in terms.BINDERS:
            return self._expand(t, binding, grounded)
        return terms.rebuild(t, grounded)

    def _expand(self, t: Term, binding: Mapping[Term, Term], otherwise: tuple[Term, ...]) -> Term:
        index = self.indices[str(t.value)]
        values = [terms.of_sort(i, index.sort) for i in range(index.size(self.constants))]
        bodies = [self.ground(t.args[1], {**binding, t.args[0]: value}) for value in values]
        if t.op == "forall":
            return terms.conjunction(*bodies)
        if t.op == "exists":
            return terms.disjunction(*bodies)
        (chosen,) = otherwise
        # Built from the least preferred value outwards, so that the preferred one is asked first.
        pairs = list(zip(values, bodies, strict=True))
        for value, body in reversed(pairs) if t.op == "first" else pairs:
            chosen = terms.choose(body, value, chosen)
        return chosen

    def read(self, name: str, indices: tuple[Term, ...]) -> Term:
        """A cell at indices that may be computed. An index out of range reads the variable's ``dead`` value."""
        variable = self.traced.variables[name]
        numbers = self.layout.by_variable[name]
        sort = variable.values.sort
        default = terms.of_sort(variable.dead, sort)
        if all(term.op == "const" for term in indices):
            # The usual case, once parameters are bound.
            number = numbers.get(tuple([terms.literal(term) for term in indices]))
            return default if number is None else self._cells[number]
        value = default
        for test, number in reversed(self._places(name, indices)):
            value = terms.choose(test, self._cells[number], value)
        return value

    def _places(self, name: str, indices: tuple[Term, ...]) -> list[tuple[Term, int]]:
        """The cells of a variable that these indices may mean, each with the condition that they mean it."""
        shape = self.traced.variables[name].shape(self.constants)
        covered = [[terms.covers(term, i) for i in range(n)] for term, n in zip(indices, shape, strict=True)]
        found = []
        for index, number in self.layout.by_variable[name].items():
            test = terms.conjunction(*[along[i] for along, i in zip(covered, index, strict=True)])
            if test is not FALSE:
                found.append((test, number))
        return found

    def effect(self, writes: tuple[tuple[Term, Term], ...], binding: Mapping[Term, Term]) -> dict[int, Term]:
        """The changed cells of an update, dead cells put in canonical form."""
        after: dict[int, Term] = {}
        for target, value in writes:
            name = str(target.value)
            for here in self._along(target, binding):
                new = self.ground(value, here)
                for test, number in self._places(name, tuple([self.ground(a, here) for a in target.args])):
                    after[number] = terms.choose(test, new, after.get(number, self._cells[number]))
        self._canonical(after)
        return {n: term for n, term in sorted(after.items()) if term is not self._cells[n]}

    def _along(self, target: Term, binding: Mapping[Term, Term]) -> Iterator[Mapping[Term, Term]]:
        """The binding, once for each choice of the indices along which a row is written."""
        row = terms.row(target)
        if not row:
            yield binding
            return
        indices = [self.traced.variables[str(target.value)].per[place] for place, _ in row]
        for values in product(*(range(index.size(self.constants)) for index in indices)):
            at = (terms.of_sort(value, index.sort) for value, index in zip(values, indices, strict=True))
            yield {**binding, **dict(zip((bound for _, bound in row), at, strict=True))}

    def _canonical(self, after: dict[int, Term]) -> None:
        """A cell that the update leaves dead takes its variable's dead value."""
        written = {self._cells[n]: term for n, term in after.items()}
        for number, live, read, dead in self._live:
            untouched = read.isdisjoint(written)
            if untouched and number not in after:
                continue
            now = live if untouched else substitute(live, written)
            if now is not live or number in after:
                after[number] = terms.choose(now, after.get(number, self._cells[number]), dead)

    def live(self) -> dict[int, Term]:
        """By number of each cell that can be dead: when it is live."""
        return {number: when for number, when, _, _ in self._live}

    @cached_property
    def _live(self) -> list[tuple[int, Term, frozenset[Term], Term]]:
        """Each cell that can be dead: when it is live, the cells that this reads, and the dead value."""
        found = []
        for name, (bound, live) in self.traced.live.items():
            variable = self.traced.variables[name]
            sort = variable.values.sort
            dead = terms.of_sort(variable.dead, sort)
            for index, number in self.layout.by_variable[name].items():
                values = (terms.of_sort(i, b.sort) for i, b in zip(index, bound, strict=True))
                when = self.ground(live, dict(zip(bound, values, strict=True)))
                found.append((number, when, frozenset(terms.leaves(when)), dead))
        return found


def substitute(term: Term, replacement: Mapping[Term, Term]) -> Term:
    """A ground term with cells replaced."""
    found = replacement.get(term)
    if found is not None or not term.args:
        return term if found is None else found
    return terms.rebuild(term, tuple([substitute(a, replacement) for a in term.args]))


def bindings(action: TracedAction, constants: Constants) -> Iterator[tuple[Params, dict[Term, Term]]]:
    """Every choice of an action's parameters, with the terms that they bind."""
    ranges = [index.values(constants) for index in action.params.values()]
    for values in product(*ranges):
        binding = {}
        for (name, index), value in zip(action.params.items(), values, strict=True):
            param = terms.node("param", (), index.sort, name)
            binding[param] = terms.of_sort(int(value), index.sort)
        yield tuple(zip(action.params, values, strict=True)), binding


def _type_ok(grounder: Grounder) -> Term:
    """Every cell holds a value of its domain; a dead cell holds the dead value, a live one only where it may."""
    parts: list[Term] = []
    for cell in grounder.layout.cells:
        variable = cell.variable
        term = grounder.cell(cell.number)
        if variable.values.sort is Sort.INT:
            parts += [terms.const(cell.low) <= term, term <= cell.high]
        if variable.live is None:
            continue
        bound, live = grounder.traced.live[variable.name]
        values = (terms.of_sort(i, b.sort) for i, b in zip(cell.index, bound, strict=True))
        is_live = grounder.ground(live, dict(zip(bound, values, strict=True)))
        dead = terms.of_sort(variable.dead, variable.values.sort)
        if variable.values.sort is Sort.INT and not variable.unset:
            parts.append(terms.equal(is_live, terms.negate(terms.equal(term, dead))))
        else:
            parts.append(terms.disjunction(is_live, terms.equal(term, dead)))
    return terms.conjunction(*parts)


def check_initial_state(protocol: str, layout: Layout) -> None:
    """Refuse a variable that begins outside of its domain: there is no initial state."""
    for cell in layout.cells:
        if not cell.low <= cell.initial <= cell.high:
            domain = f"its values are {cell.low} to {cell.high}" if cell.low <= cell.high else "it has no values at all"
            raise BadText(
                f"{cell.variable.name} of {protocol} begins as {cell.initial}, and {domain}: there is no initial state",
                cell.variable.where,
                "give another initially= or other values",
            )


def ground(traced: TracedProtocol, constants: Constants) -> System:
    """One variant at these constants.

    Raises BadInput for constants that the protocol does not have, BadText where there is no initial state or no action
    that can happen.
    """
    protocol = traced.protocol
    values = protocol.check_constants(constants)
    layout = Layout(traced.variables, values)
    check_initial_state(protocol.name, layout)
    grounder = Grounder(traced, values, layout)
    by_step: dict[tuple[str, Params], Instance] = {}
    for action in traced.actions:
        by_step |= _instances(grounder, action)
    instances = _possible(by_step)
    if not instances:
        told = ", ".join(f"{name}={value}" for name, value in values.items())
        raise BadText(
            f"no action of {protocol.name} can ever happen at {told}", protocol.where, "mend a guard, or a constant"
        )
    invariants = {"type_ok": _type_ok(grounder)}
    invariants |= {name: grounder.ground(term, {}) for name, term in traced.invariants.items()}
    witnesses = {
        name: grounder.ground(term, {})
        for name, term in traced.witnesses.items()
        if protocol.witnesses[name].relevant(values)
    }
    return System(traced, values, layout, instances, invariants, witnesses, by_step)


def ground_mutant(system: System, mutant: TracedProtocol, action: str) -> System:
    """A mutant at the constants of a system that it differs from in one action: the others are not grounded again.

    What the system itself holds is the same, its constraint too. So is all that a grounder goes by, which therefore
    remembers from one mutant to the next.
    """
    if system.grounder is None:
        system.grounder = Grounder(system.traced, system.constants, system.layout)
    changed = _instances(system.grounder, mutant.action(action))
    by_step = {step: changed.get(step, instance) for step, instance in system.by_step.items()}
    return replace(system, traced=mutant, instances=_possible(by_step), by_step=by_step)


def _instances(grounder: Grounder, action: TracedAction) -> dict[tuple[str, Params], Instance]:
    """An action with all its parameters, in order."""
    found = {}
    for params, binding in bindings(action, grounder.constants):
        guards = tuple((name, grounder.ground(guard, binding)) for name, guard in action.guards)
        found[action.name, params] = Instance(action.name, params, guards, grounder.effect(action.writes, binding))
    return found


def _possible(by_step: Mapping[tuple[str, Params], Instance]) -> list[Instance]:
    """The instances but for those that a guard refuses in every state."""
    return [i for i in by_step.values() if all(guard is not FALSE for _, guard in i.guards)]
