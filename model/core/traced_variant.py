"""Tracing: one variant of a protocol as terms, and everything wrong with its texts refused, with file and line.

A mistake that Python would let pass becomes one of ``BadText``: nothing that is wrong here reaches an engine.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import terms
from .algebra import Update, Value
from .domains import Variable
from .errors import BadText, ProtocolError
from .lint import python_decides_nothing
from .source_lint import MEND, one_key_once
from .source_location import Reading
from .terms import Sort, Term
from .tracer import TracedState, Tracer, bound, param, term_of
from .unsupported_operators import NoTerm

if TYPE_CHECKING:
    from .protocol import ActionSpec, LivenessSpec, Protocol, Variant


class Text:
    """The texts of one variant of a protocol, ready to be traced: its algebra and its state.

    ``variables``: those of the state, where they are not the variant's own (ghosts beside them).
    """

    def __init__(self, protocol: Protocol, variant: Variant, variables: Mapping[str, Variable] | None = None) -> None:
        self.protocol = protocol
        self.variables = protocol.variables_of(variant.name) if variables is None else variables
        self.k = Tracer(variant.rules, protocol.constants)
        self.s = TracedState(self.variables, protocol.variables)

    def live(self) -> dict[str, tuple[tuple[Term, ...], Term]]:
        """For each variable with dead cells: its index terms, and the condition of being live."""
        found = {}
        for variable in self.variables.values():
            if variable.live is not None:
                with Reading(variable.live):
                    given = tuple(bound(f"{variable.name}.{i}", index) for i, index in enumerate(variable.per))
                    condition = _condition(variable.live(self.k, self.s, *given), f"live of {variable.name}")
                found[variable.name] = (tuple(map(term_of, given)), condition)
        return found

    def action(self, spec: ActionSpec) -> tuple[tuple[tuple[str, Term], ...], tuple[tuple[Term, Term], ...]]:
        """An action's guards, in the order written, and the cells that it writes with their values."""
        params = {name: param(name, index) for name, index in spec.params.items()}
        guards: dict[str, Term] = {}
        writes: dict[Term, Term] | None = None
        with Reading(spec.text) as reading:
            one_key_once(spec.text)
            steps = reading.generator = spec.text(self.k, self.s, **params)
            if not inspect.isgenerator(steps):
                raise ProtocolError(
                    f"{spec.name} yields nothing", 'write yield "name", condition for a guard, and yield s.update(...)'
                )
            ended: object = None
            while True:
                try:
                    step = next(steps)
                except StopIteration as end:
                    ended = end.value
                    break
                if writes is not None:
                    raise ProtocolError(f"{spec.name} yields after its update", "yield all guards before it")
                if isinstance(step, Update):
                    writes = self._writes(spec.name, step, guards)
                    continue
                name, condition = _guard(spec.name, step)
                if name in guards:
                    raise ProtocolError(f"{spec.name} has two guards named {name}", "name each by what it asks")
                guards[name] = _condition(condition, f"the guard {name} of {spec.name}")
                if guards[name] is terms.FALSE:
                    python_decides_nothing(spec.text)
                    raise ProtocolError(
                        f"the guard {name} of {spec.name} never holds",
                        "give a variant that lacks the action present=, in its decorator",
                    )
            if writes is None:
                returned = ", but returns one" if isinstance(ended, Update) else ""
                raise ProtocolError(f"{spec.name} yields no update{returned}", "end it by yield s.update(...)")
            python_decides_nothing(spec.text)
        return tuple(guards.items()), tuple(writes.items())

    def _writes(self, action: str, update: Update, guards: Mapping[str, Term]) -> dict[Term, Term]:
        writes: dict[Term, Term] = {}
        same = _Same(guards.values())
        cells: dict[Term, Term] = {}
        for target, value in self.s.traced(update).pairs:
            cell = same.cells(target)
            if cell in cells:
                other = "" if cells[cell] is target else f", as {cells[cell]} and as {target}"
                raise ProtocolError(f"{action} writes {cell} twice{other}", MEND)
            for earlier, written in cells.items():
                if _is_among(earlier, cell):
                    raise ProtocolError(
                        f"{action} writes {written}, and then {target}, in which it is lost",
                        "write the row first: a cell of it that is written later counts",
                    )
            cells[cell] = target
            writes[target] = value
        return writes

    def promise(self, name: str, kind: str, text: Callable[..., Any]) -> Term:
        """An invariant or a witness. It must say something of the state."""
        with Reading(text):
            condition = _condition(text(self.k, self.s), name)
            python_decides_nothing(text)
            _says_something(condition, f"the {kind} {name}")
        return condition

    def liveness(self, spec: LivenessSpec) -> tuple[Term, ...]:
        """The conditions of a liveness property, over its parameters: P and Q of ``P ~> Q``, P alone of the others."""
        with Reading(spec.text):
            given = {name: param(name, index) for name, index in spec.params.items()}
            text = spec.text(self.k, self.s, **given)
            conditions = text if isinstance(text, tuple) else (text,)
            if len(conditions) != spec.form.conditions:
                wanted = "return P, Q" if spec.form.conditions == 2 else "return one condition"
                raise ProtocolError(
                    f"{spec.name} gives {len(conditions)} conditions; its form is {spec.form.value}", wanted
                )
            found = tuple(_condition(each, spec.name) for each in conditions)
            python_decides_nothing(spec.text)
            _says_something(found[-1], f"the liveness property {spec.name}")
        return found


def _is_among(cells: Term, others: Term) -> bool:
    """Whether the others are all of these cells, and more."""
    if cells.value != others.value:
        return False
    return all(other is one or terms.is_along(other) for one, other in zip(cells.args, others.args, strict=True))


def _guard(action: str, step: object) -> tuple[str, Value]:
    mend = 'write yield "name", condition for a guard, and yield s.update(...)'
    if not isinstance(step, tuple) or len(step) != 2:
        told = f"a tuple of {len(step)}" if isinstance(step, tuple) else _told(step)
        raise ProtocolError(f"{action} yields {told}, which is neither a guard nor an update", mend)
    name, condition = step
    if not isinstance(name, str) or not name.isidentifier():
        raise ProtocolError(f"{action} has a guard whose name is {_told(name)}", "use letters, digits and _ for a name")
    return name, condition


def _told(value: object) -> str:
    if isinstance(value, NoTerm):
        value.refuse()
    return " ".join(repr(value).split())[:60]


def _condition(value: Value, who: str) -> Term:
    if inspect.isgenerator(value):
        raise ProtocolError(f"{who} is not a condition: it yields", "return the condition")
    term = terms.lift(value)
    if term.sort is not Sort.BOOL:
        raise ProtocolError(f"{who} is not a condition: {term}", "compare it, as in s.x == y or s.x < y")
    return term


def _says_something(condition: Term, who: str) -> None:
    if not terms.variables_in(condition):
        told = f"is the constant {str(bool(condition.value)).lower()}" if terms.is_const(condition) else "is constant"
        raise ProtocolError(
            f"{who} {told}: it reads no variable of the state", "compare what the state has, as in s.x[r] == y"
        )


class _Same:
    """Terms with whatever the guards say is equal put for each other: what gives one value is then one term."""

    def __init__(self, guards: Any) -> None:
        self._of: dict[Term, Term] = {}
        for guard in guards:
            for part in guard.args if guard.op == "and" else (guard,):
                if part.op == "eq" and part.args[0].sort is not Sort.BOOL:
                    left, right = self(part.args[0]), self(part.args[1])
                    if left is not right and not (terms.is_const(left) and terms.is_const(right)):
                        # A literal stands for what equals it, not the other way round.
                        old, new = (right, left) if terms.is_const(left) else (left, right)
                        self._of = {a: new if b is old else b for a, b in self._of.items()} | {old: new}

    def __call__(self, term: Term) -> Term:
        known = self._of.get(term)
        if known is not None:
            return known
        if term.op in terms.BINDERS or not term.args:
            return term
        again = terms.rebuild(term, tuple(map(self, term.args)))
        return self._of.get(again, again)

    def cells(self, target: Term) -> Term:
        """Which cells are written, whatever is written to them. What they hold before the step is not asked."""
        args = tuple(terms.every(each.sort) if terms.is_along(each) else self(each) for each in target.args)
        return terms.node(target.op, args, target.sort, target.value)


def declared(protocol: Protocol, variant: str) -> None:
    """Refuse a variant of a protocol that has no state or no action. Raises BadText."""
    rules = protocol.variants[variant].rules
    if not protocol.variables_of(variant):
        raise BadText(
            f"{protocol.name} ({variant}) has no variable, and so no initial state",
            protocol.where,
            f'declare one: {protocol.name}.variable("count", "what it means", integers(0, ...))',
        )
    if not any(action.present(rules) for action in protocol.actions.values()):
        raise BadText(
            f"{protocol.name} ({variant}) has no action",
            protocol.where,
            f"write one: a generator below @{protocol.name}.action()",
        )
