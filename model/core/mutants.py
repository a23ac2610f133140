"""Mutants of a protocol's variant: each named guard dropped, each bound shifted by one. Derived, never listed by hand.

What counts as a bound, in the guards of an action and in the values that it writes, wherever it stands (under
quantifiers, in an alternative, in an index):

- an order, ``a < b`` or ``a <= b``: its right side is one more, or one less;
- an equality of two quantities (two leader epochs, two offsets): it is two bounds, ``a <= b`` and ``b <= a``. One of
  them is loosened by one: ``a`` may be ``b + 1`` too, or ``b - 1`` too. Tightened, it would never hold;
- a limit, ``min(a, b)`` or ``max(a, b)``, and a position, ``a + 1`` or ``a - 1``: one more, or one less.

What does not: an equality with a literal, which asks for a sentinel, the start of the log or one of a list of
outcomes; an equality of names, that is of integers that the variant nowhere puts in an order, such as record ids;
equalities of replicas and sets; a literal or a plain copy that is written. A limit or a position that is itself a side
of an order is shifted with the order. An expression that stands in several places of one action is one bound, as the
protocol's text mostly says it once (where the truncation ends, say), and is shifted in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from . import terms
from .enum_value import Member
from .errors import BadInput
from .protocol import TracedAction, TracedProtocol
from .terms import Sort, Term, is_const

DROPPED = "dropped"

_ORDERS = frozenset({"lt", "le"})


@dataclass(frozen=True)
class Mutant:
    """One changed place of a traced variant.

    ``place`` is the name of the guard that is dropped, or of the one in which the shifted bound stands first; the name
    of a written variable with a prime (``hw'``) where it stands in no guard. ``change`` is ``dropped`` or, for a bound,
    ``bound +1``, with the bound's number where the place has several: ``bound 2 -1``.
    """

    action: str
    place: str
    change: str
    traced: TracedProtocol

    @property
    def name(self) -> str:
        """``follower_fetch.epoch_not_fenced dropped``."""
        return f"{self.spot} {self.change}"

    @property
    def spot(self) -> str:
        """``follower_fetch.epoch_not_fenced``: what is changed."""
        return f"{self.action}.{self.place}"


def mutants(traced: TracedProtocol) -> list[Mutant]:
    """Every mutant, action by action and place by place as written."""
    quantities = _quantities(traced)
    return [mutant for action in traced.actions for mutant in _of_action(traced, action, quantities)]


def mutant_named(traced: TracedProtocol, name: str) -> Mutant:
    """The mutant of that name. Raises BadInput for an unknown one."""
    for mutant in mutants(traced):
        if mutant.name == name:
            return mutant
    variant = f"{traced.protocol.name} ({traced.variant.name})"
    raise BadInput(f"{variant} has no mutant {name!r}", "--only", "fencepost mutants prints their names")


def _of_action(traced: TracedProtocol, action: TracedAction, quantities: frozenset[str]) -> Iterator[Mutant]:
    seen: set[Term] = set()
    named = _named(traced, action)
    guards = set(dict(action.guards))
    for place, term in _places(action):
        if place in guards:
            yield Mutant(action.name, place, DROPPED, traced.drop(f"{action.name}.{place}"))
        bounds = [(t, shift) for t in _subterms(term) if (shift := _bound(t, quantities, named)) and t not in seen]
        seen.update(bound for bound, _ in bounds)
        for number, (bound, shift) in enumerate(bounds, 1):
            which = f"bound {number}" if len(bounds) > 1 else "bound"
            for by in (1, -1):
                changed = _replaced(action, bound, shift(by))
                actions = tuple(changed if a is action else a for a in traced.actions)
                yield Mutant(action.name, place, f"{which} {by:+d}", replace(traced, actions=actions))


def _places(action: TracedAction) -> Iterator[tuple[str, Term]]:
    """The guards and the written values, by name; cells of one variable are told apart by numbers."""
    yield from action.guards
    names = [str(target.value) for target, _ in action.writes]
    for number, (name, (_, value)) in enumerate(zip(names, action.writes, strict=True)):
        which = str(names[: number + 1].count(name)) if names.count(name) > 1 else ""
        yield f"{name}{which}'", value


def _named(traced: TracedProtocol, action: TracedAction) -> Callable[[Term], bool]:
    """Whether a term is a value of an enumeration: these have no order, and so no next one."""

    def named(term: Term) -> bool:
        match term.op:
            case "var":
                return bool(traced.variables[str(term.value)].values.names)
            case "param":
                param = action.params.get(str(term.value))
                return param is not None and bool(param.names)
            case "bound":
                index = traced.protocol.indices.get(str(term.value).partition("#")[0])
                return index is not None and bool(index.names)
            case "ite":
                return named(term.args[1])
        return isinstance(term.value, Member)

    return named


def _quantities(traced: TracedProtocol) -> frozenset[str]:
    """The variables that some action puts in an order with something, directly or by a limit or position."""
    found: set[str] = set()

    def heads(term: Term) -> Iterable[Term]:
        return (t for a in term.args for t in heads(a)) if term.op in ("min", "max", "add") else (term,)

    for action in traced.actions:
        for _, place in _places(action):
            for term in _subterms(place):
                if term.op in _ORDERS:
                    found.update(str(t.value) for side in term.args for t in heads(side) if t.op == "var")
    return frozenset(found)


def _bound(term: Term, quantities: frozenset[str], named: Callable[[Term], bool]) -> Callable[[int], Term] | None:
    """How to shift a term that is a bound; None for one that is none."""
    op, args = term.op, term.args
    if op == "lt":
        return lambda by: args[0] < args[1] + by
    if op == "le":
        return lambda by: args[0] <= args[1] + by
    if op == "eq" and args[0].sort is Sort.INT and not any(map(is_const, args)):
        if any(t.op != "var" or t.value in quantities for t in args) and not any(map(named, args)):
            return lambda by: terms.disjunction(term, args[0] == args[1] + by)
    elif op in ("min", "max", "add"):
        return lambda by: term + by
    return None


def _subterms(term: Term) -> list[Term]:
    """Every term below this one and itself, in reading order, each once; but no side of an order by itself."""
    found: dict[Term, None] = {}
    seen: set[tuple[Term, bool]] = set()

    def walk(t: Term, side: bool) -> None:
        if (t, side) in seen:
            return
        seen.add((t, side))
        if not side:
            found[t] = None
        for a in t.args:
            walk(a, t.op in _ORDERS)

    walk(term, False)
    return list(found)


def _replaced(action: TracedAction, old: Term, new: Term) -> TracedAction:
    """The action with another term in place of one, wherever that stands; not in which cells it writes."""
    memo: dict[Term, Term] = {old: new}

    def walk(t: Term) -> Term:
        known = memo.get(t)
        if known is None:
            args = tuple(walk(a) for a in t.args)
            known = terms.node(t.op, args, t.sort, t.value) if t.op in terms.BINDERS else terms.rebuild(t, args)
            memo[t] = known
        return known

    guards = tuple((name, walk(condition)) for name, condition in action.guards)
    writes = tuple((target, walk(value)) for target, value in action.writes)
    return replace(action, guards=guards, writes=writes)
