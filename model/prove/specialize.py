"""A protocol with some of its constants fixed, for a proof that is about those values alone.

A proof takes every constant as an unknown integer of which only the smallest value is known. Where a constant is a
switch, or a text is right up to some number of something only, it is proved at each of its values apart: that constant
is no constant any more, and the text reads the number. All others stay unknown. The protocol itself is left as it is,
with all of its constants; what is fixed is a copy under the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

from ..core.algebra import Algebra, Constant, Value, View
from ..core.domains import REPLICA, Constants, Index, Size, Values, Variable
from ..core.enumeration import Enumeration
from ..core.errors import ProtocolError
from ..core.protocol import Protocol, TracedAction, TracedProtocol
from ..core.terms import BINDERS, Sort, Term, const, node, rebuild
from .proof import Proof

ONCE = Index("once", Sort.INT, lambda _: 1)
"""An index with one value."""


def _zero(_constants: Constants) -> int:
    return 0


_ZERO = Values(Sort.INT, _zero, _zero)


_NAMES: dict[Term, Term] = {}


class _Fixed:
    """An algebra in which these constants are numbers; all else is that of another one.

    Whether two sets are equal is asked of all brokers. Inside a chosen value that question is in no formula of which
    z3 could say that it does not hold: it would look for no broker in which they differ. So there it has a name: the
    first value of an index with one, at which they are equal. What defines a first value is a formula of its own, and
    ``once``, which is 0 for ever, is what E-matching finds it by.
    """

    def __init__(self, k: Algebra, s: View, constants: Constants, *, names: bool) -> None:
        self._k = k
        self._s = s
        self._names = names
        self._constants = constants
        self.c = Constant(lambda name: constants[name] if name in constants else getattr(k.c, name))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._k, name)

    def ite(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """One of two values."""
        return self._k.ite(self._named(condition) if self._names else condition, then, otherwise)

    def forall(self, index: Index, body: Callable[[Value], Value]) -> Value:
        """The body holds for every value of the index."""
        return self._k.forall(_index(index, self._constants), body)

    def exists(self, index: Index, body: Callable[[Value], Value]) -> Value:
        """The body holds for some value of the index."""
        return self._k.exists(_index(index, self._constants), body)

    def first(self, index: Index, body: Callable[[Value], Value], default: Value) -> Value:
        """The smallest value of an INT index for which the body holds, else ``default``."""
        return self._k.first(_index(index, self._constants), body, default)

    def last(self, index: Index, body: Callable[[Value], Value], default: Value) -> Value:
        """The largest value of an INT index for which the body holds, else ``default``."""
        return self._k.last(_index(index, self._constants), body, default)

    def _named(self, condition: Value) -> Value:
        if not isinstance(condition, Term) or condition.op in BINDERS:
            return condition
        if condition.op == "eq" and condition.args[0].sort is Sort.SET:
            # The same for the same question: there is then one thing to find out.
            if condition not in _NAMES:
                known = self._s.once
                first = self._k.first(ONCE, lambda x: self._k.all(condition, known[x] == 0), -1)
                _NAMES[condition] = first == 0
            return _NAMES[condition]
        if condition.sort is not Sort.BOOL or not condition.args:
            return condition
        return rebuild(condition, tuple(map(self._named, condition.args)))


def _text(text: Callable[..., Any], constants: Constants, *, names: bool = False) -> Callable[..., Any]:
    """A text that reads these constants as numbers. Its source is still that of the text (``__wrapped__``)."""

    @wraps(text)
    def fixed_text(k: Algebra, s: View, *given: Value, **named: Value) -> Any:
        return text(_Fixed(k, s, constants, names=names), s, *given, **named)

    return fixed_text


def _size(size: Size, constants: Constants) -> Size:
    return lambda others: size({**others, **constants})


def _index(index: Index, constants: Constants) -> Index:
    """An index whose size is what it is at these constants. Replicas, and what has names, are as they are."""
    if index is REPLICA or isinstance(index, Enumeration):
        return index
    return replace(index, size=_size(index.size, constants))


def _values(values: Values, constants: Constants) -> Values:
    if isinstance(values, Enumeration):
        return values
    return replace(values, low=_size(values.low, constants), high=_size(values.high, constants))


def fixed(protocol: Protocol, constants: Constants, without: Collection[str] = ()) -> Protocol:
    """A copy of a protocol in which these constants have these values, and that lacks these promises.

    What else it promises and does is the same there. Its indices are its own: whoever writes of it takes them by their
    names (``indices``). Liveness is left out. Raises ProtocolError for a constant or a promise that there is not, or a
    value that it may not have.
    """
    if unknown := set(without) - set(protocol.invariants):
        raise ProtocolError(f"{protocol.name} has no promise {', '.join(sorted(unknown))}")
    for name, value in constants.items():
        spec = protocol.constants.get(name)
        if spec is None or not spec.minimum <= value <= spec.largest:
            raise ProtocolError(f"{protocol.name} has no constant {name} that may be {value}")
    copy = Protocol(
        protocol.name,
        protocol.source,
        constants=tuple(spec for name, spec in protocol.constants.items() if name not in constants),
    )
    indices: dict[str, Index] = {}

    def own(index: Index) -> Index:
        return indices.setdefault(index.name, _index(index, constants))

    copy.indices = {name: own(index) for name, index in protocol.indices.items()} | {ONCE.name: ONCE}
    copy.variables = {
        name: replace(
            variable,
            per=tuple(own(index) for index in variable.per),
            values=_values(variable.values, constants),
            initially=_size(variable.initially, constants),
            live=None if variable.live is None else _text(variable.live, constants),
        )
        for name, variable in protocol.variables.items()
    }
    copy.variables |= {each.name: each for each in (Variable(ONCE.name, (ONCE,), _ZERO, _zero, "0 for ever"),)}
    copy.actions = {
        name: replace(
            action,
            params={param: own(index) for param, index in action.params.items()},
            text=_text(action.text, constants, names=True),
        )
        for name, action in protocol.actions.items()
    }
    for kind in ("invariants", "witnesses"):
        specs = {
            name: replace(
                spec,
                text=_text(spec.text, constants),
                relevant=lambda others, relevant=spec.relevant: relevant({**others, **constants}),
            )
            for name, spec in getattr(protocol, kind).items()
        }
        setattr(copy, kind, specs)
    copy.invariants = {name: spec for name, spec in copy.invariants.items() if name not in without}
    copy.variants = dict(protocol.variants)
    return copy


def _put_in(action: TracedAction, constants: Constants, indices: Mapping[str, Index]) -> TracedAction:
    """An action with numbers for these constants, and with the names that ``_Fixed`` gives to questions of sets."""
    read: dict[Term, Term] = {}

    def put(term: Term) -> Term:
        if term not in read:
            args = tuple(map(put, term.args))
            if term.op == "constant" and term.value in constants:
                read[term] = const(constants[str(term.value)])
            elif term.op in BINDERS:
                read[term] = node(term.op, args, term.sort, term.value)
            elif term.op == "ite":
                read[term] = rebuild(term, (_with_names(args[0]), *args[1:]))
            else:
                read[term] = rebuild(term, args)
        return read[term]

    return replace(
        action,
        params={name: indices.get(index.name, index) for name, index in action.params.items()},
        guards=tuple((name, put(condition)) for name, condition in action.guards),
        writes=tuple((put(target), put(value)) for target, value in action.writes),
    )


def _with_names(condition: Term) -> Term:
    """The name of a question that has one; it has where a text was read that asks it."""
    if condition.op in BINDERS:
        return condition
    if condition in _NAMES:
        return _NAMES[condition]
    if condition.sort is not Sort.BOOL or not condition.args or condition.op == "eq":
        return condition
    return rebuild(condition, tuple(map(_with_names, condition.args)))


def _alike(action: TracedAction, other: TracedAction) -> bool:
    """Whether two actions are the same but for the names of bound variables."""
    if [name for name, _ in action.guards] != [name for name, _ in other.guards]:
        return False
    sides = ([*(g for _, g in each.guards), *(t for w in each.writes for t in w)] for each in (action, other))
    left, right = sides
    names: dict[Term, Term] = {}
    seen: set[tuple[Term, Term]] = set()

    def same(one: Term, two: Term) -> bool:
        if one.op == "bound" and two.op == "bound" and one.sort is two.sort:
            return names.setdefault(one, two) is two
        if (one.op, one.value, one.sort, len(one.args)) != (two.op, two.value, two.sort, len(two.args)):
            return False
        if (one, two) not in seen:
            seen.add((one, two))
            return all(map(same, one.args, two.args))
        return True

    return len(left) == len(right) and all(map(same, left, right)) and len(set(names.values())) == len(names)


def once_is_zero(_k: Algebra, s: View) -> Value:
    """What is 0 for ever is 0: by this z3 finds out of two sets whether they differ."""
    return s.once[0] == 0


class FixedProof(Proof):
    """A proof of a protocol with some of its constants fixed. Its texts read those constants as numbers, too.

    Lemmas and hints name the protocol's own indices; here they are over the copy's. ``without``: promises that it does
    not prove, and does not assume.
    """

    def __init__(
        self, protocol: Protocol, variant: str, constants: Constants, without: Collection[str] = (), **more: Any
    ) -> None:
        super().__init__(fixed(protocol, constants, without), variant, **more)
        self._text = protocol
        self._copies: dict[str, TracedProtocol] = {}
        self.constants = dict(constants)
        self.without = tuple(without)
        self.lemma()(once_is_zero)

    @property
    def told(self) -> str:
        """What it is about, and what it leaves out, in a line."""
        at = ", ".join(f"{name} {value}" for name, value in self.constants.items())
        return f"at {at}" + (f"; not proved: {', '.join(self.without)}" if self.without else "")

    @property
    def text(self) -> Protocol:
        """The protocol with all of its constants."""
        return self._text

    @property
    def at(self) -> Constants:
        """The fixed constants."""
        return self.constants

    def reads(self, traced: TracedProtocol) -> TracedProtocol:
        """A variant of the text, or a mutant of one, with numbers for the fixed constants in its terms.

        A mutant is made of terms, and has no text that could be read once more. So what becomes of the variant's own
        terms is held against what its text reads as: the two have to be alike, but for the names of bound variables.
        Raises ProtocolError where they are not.
        """
        if traced.protocol is not self._text:
            raise ProtocolError(f"this is a proof of {self._text.name}, as it stands in {self._text.where}")
        name = traced.variant.name
        if name not in self._copies:
            copy = self.protocol.traced(name)
            for action, read in zip(copy.actions, self._actions(self._text.traced(name).actions), strict=True):
                if not _alike(action, read):
                    raise ProtocolError(f"{action.name} {self.told} is not what its terms come to")
            self._copies[name] = copy
        return replace(self._copies[name], actions=self._actions(traced.actions))

    def _actions(self, actions: Sequence[TracedAction]) -> tuple[TracedAction, ...]:
        return tuple(_put_in(action, self.constants, self.protocol.indices) for action in actions)

    def _own(self, params: Mapping[str, Index]) -> dict[str, Index]:
        return {name: self.protocol.indices.get(index.name, index) for name, index in params.items()}

    def _reading(self, register: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def registered(text: Any) -> Any:
            # One that is taken from another proof has that one's constants around it.
            own = getattr(text, "__wrapped__", text)
            register(_text(own, self.constants))
            return own

        return registered

    def ghost(self, name: str, doc: str, values: Values, *, per: tuple[Index, ...] = (), initially: Any = 0) -> None:
        """Declare a ghost variable, as ``Proof.ghost`` does."""
        own = tuple(self._own(dict(enumerate(per))).values())  # type: ignore[arg-type]
        super().ghost(name, doc, values, per=own, initially=initially)

    def updates(self, action: str) -> Callable[[Any], Any]:
        """Register how an action changes ghosts, as ``Proof.updates`` does."""
        return self._reading(super().updates(action))

    def lemma(self, *, promise: bool = False, layer: int = 0, **params: Index) -> Callable[[Any], Any]:
        """Register a lemma, as ``Proof.lemma`` does."""
        return self._reading(super().lemma(promise=promise, layer=layer, **self._own(params)))

    def hints(self, *actions: str, **goal: Index) -> Callable[[Any], Any]:
        """Register terms that z3 shall know, as ``Proof.hints`` does."""
        return self._reading(super().hints(*actions, **self._own(goal)))
