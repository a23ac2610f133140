"""The algebra and the state that record terms: what they compute is the text itself.

Whatever a text may not say is refused here or in ``terms.py``, as a ``ProtocolError``; ``places.Reading`` adds the
line. Two things stand for terms without being any: ``Unindexed``, a variable whose index is missing, and ``Named``, a
value of an enumeration, which is told apart from numbers and from other enumerations.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import NoReturn

from . import terms
from .algebra import EVERY, Algebra, RowValue, Update, Value, View
from .domains import Index, Values, Variable
from .enum_value import Kind, Member
from .enumeration import Enumeration
from .errors import ProtocolError
from .source_lint import as_many_cells_as_keys
from .source_location import Reading, near
from .terms import HOW_TO_WRITE, NONE, Sort, Term
from .unsupported_operators import NoTerm, refuse_operators


class Unindexed(NoTerm):
    """``s.leo`` while tracing: indexing it gives a term, and there is nothing else that it can be used for."""

    def __init__(self, variable: Variable) -> None:
        self._variable = variable

    def __getitem__(self, index: Value) -> Term | Named:
        return _said(self._variable.values, read_term(self._variable, _indices(self._variable, index)))

    def refuse(self) -> NoReturn:
        name, per = self._variable.name, self._variable.per
        domains = " and ".join(each.name for each in per)
        missing = "index is" if len(per) == 1 else "indices are"
        raise ProtocolError(
            f"{name} is a variable per {domains}, and its {missing} missing",
            f"write s.{name}[{_example(self._variable)}]",
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()

    def _no(self, *_others: object) -> NoReturn:
        self.refuse()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __hash__ = _no
    __add__ = __radd__ = __sub__ = __rsub__ = _no


class Named(NoTerm):
    """A value of an enumeration while tracing: equal to another one of the same enumeration, or not."""

    def __init__(self, kind: Kind, term: Term) -> None:
        self.kind = kind
        self.term = term

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return terms.equal(self.term, self.other(other))

    def __ne__(self, other: object) -> Term:  # type: ignore[override]
        return terms.negate(terms.equal(self.term, self.other(other)))

    __hash__ = object.__hash__

    def other(self, value: object) -> Term:
        """Another value of the same enumeration, as a term. Raises ProtocolError for anything else."""
        return named(self.kind, value, f"{self.term} meets")

    def refuse(self) -> NoReturn:
        raise ProtocolError(
            f"{self.term} is a {self.kind[0]} ({', '.join(self.kind[1])}), with which one cannot compute or order",
            f"compare it by == or != with a value such as {_written(self.kind)}",
        )

    def _no(self, *_others: object) -> NoReturn:
        self.refuse()

    __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __add__ = __radd__ = __sub__ = __rsub__ = __getitem__ = _no


refuse_operators(Unindexed)
refuse_operators(Named)


def _written(kind: Kind) -> str:
    return f"{kind[0].capitalize()}.{kind[1][0]}"


def named(kind: Kind, value: object, where: str) -> Term:
    """A value of an enumeration as a term; ``where`` begins the sentence that refuses anything else."""
    if isinstance(value, Member):
        if value.kind == kind:
            return terms.const(value)
        told = f"{value.label}, a value of {value.of}"
    elif isinstance(value, Named):
        if value.kind == kind:
            return value.term
        told = f"{value.term}, a {value.kind[0]}"
    elif isinstance(value, Term):
        told = f"{value}, of sort {value.sort.value}"
    else:
        if isinstance(value, NoTerm):
            value.refuse()
        told = repr(value)
    raise ProtocolError(
        f"{where} {told}, where a {kind[0]} is wanted", f"its values are {', '.join(kind[1])}; write {_written(kind)}"
    )


def _said(domain: Values | Index, term: Term) -> Term | Named:
    """A term as the text sees it."""
    return Named(domain.kind, term) if isinstance(domain, Enumeration) else term


def param(name: str, index: Index) -> Term | Named:
    """What stands for a parameter while a text is traced."""
    return _said(index, terms.node("param", (), index.sort, name))


def bound(name: str, index: Index) -> Term | Named:
    """What stands for a value that a quantifier, or a lemma, binds."""
    return _said(index, terms.node("bound", (), index.sort, name))


def term_of(value: Value) -> Term:
    """The term of what a text gave, where a value of an enumeration is as good as any other (a hint)."""
    if isinstance(value, Named):
        return value.term
    return terms.const(value) if isinstance(value, Member) else terms.lift(value)


class Tracer(Algebra):
    """The algebra of terms. ``constants``: the names that the protocol declares; None: any name will do."""

    NONE = terms.const(NONE, Sort.REPLICA)
    EMPTY = terms.const(0, Sort.SET)

    def __init__(self, rules: object, constants: Collection[str] | None = None) -> None:
        def read(name: str) -> Term:
            if constants is not None and name not in constants:
                raise ProtocolError(f"there is no constant {name!r}", near(name, list(constants)))
            return terms.node("constant", (), Sort.INT, name)

        super().__init__(rules, read)
        self._fresh = count()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        known = [each for each in dir(Algebra) if not each.startswith("_")]
        raise ProtocolError(f"k has no {name!r}", near(name, ["NONE", "EMPTY", "c", "rules", *known]))

    def all(self, *conditions: Value) -> Value:
        return terms.conjunction(*conditions)

    def any(self, *conditions: Value) -> Value:
        return terms.disjunction(*conditions)

    def negate(self, condition: Value) -> Value:
        return terms.negate(condition)

    def ite(self, condition: Value, then: Value, otherwise: Value) -> Value:
        kind = next((each.kind for each in (then, otherwise) if isinstance(each, Named | Member)), None)
        if kind is None:
            return terms.choose(condition, then, otherwise)
        yes, no = (named(kind, each, "a branch of k.ite is") for each in (then, otherwise))
        return Named(kind, terms.choose(condition, yes, no))

    def min(self, left: Value, right: Value) -> Value:
        return terms.minimum(left, right)

    def max(self, left: Value, right: Value) -> Value:
        return terms.maximum(left, right)

    def member(self, replica: Value, replicas: Value) -> Value:
        return terms.member(terms.lift(replica), terms.lift(replicas))

    def with_member(self, replicas: Value, replica: Value) -> Value:
        return terms.with_member(terms.lift(replicas), terms.lift(replica))

    def without_member(self, replicas: Value, replica: Value) -> Value:
        return terms.without_member(terms.lift(replicas), terms.lift(replica))

    def only(self, replica: Value) -> Value:
        return terms.with_member(self.EMPTY, terms.lift(replica))

    def majority(self, replicas: Value, of: Value) -> Value:
        return terms.majority(terms.lift(replicas), terms.lift(of))

    def _bind(self, op: str, index: Index, body: Callable[[Value], Value], *rest: Term) -> Term:
        if not isinstance(index, Index):
            raise ProtocolError(f"k.{op} runs over {index!r}, which is no index", "give REPLICA or another Index")
        if rest and isinstance(index, Enumeration):
            raise ProtocolError(f"the values of {index.name} have no order, so none is {op}", "write k.ite over them")
        variable = bound(f"{index.name}#{next(self._fresh)}", index)
        inner = terms.lift(body(variable))
        if inner.sort is not Sort.BOOL:
            raise ProtocolError(f"the body {inner} of {op} over {index.name} is not a condition", "compare it")
        sort = Sort.INT if rest else Sort.BOOL
        return terms.node(op, (term_of(variable), inner, *rest), sort, index.name)

    def forall(self, index: Index, body: Callable[[Value], Value]) -> Value:
        return self._bind("forall", index, body)

    def exists(self, index: Index, body: Callable[[Value], Value]) -> Value:
        return self._bind("exists", index, body)

    def first(self, index: Index, body: Callable[[Value], Value], default: Value) -> Value:
        return self._bind("first", index, body, terms.lift(default))

    def last(self, index: Index, body: Callable[[Value], Value], default: Value) -> Value:
        return self._bind("last", index, body, terms.lift(default))


def _indices(variable: Variable, index: Value) -> tuple[Value, ...]:
    """The indices of a cell, as a text gives them, each as a term or ``EVERY``; their number and enumerations hold."""
    given = index if isinstance(index, tuple) else (index,)
    if len(given) != len(variable.per):
        raise _wrong_number(variable, len(given))
    found: list[Value] = []
    for each, domain in zip(given, variable.per, strict=True):
        if each is EVERY:
            found.append(each)
        elif isinstance(domain, Enumeration):
            found.append(named(domain.kind, each, f"an index of {variable.name} is"))
        else:
            found.append(terms.lift(each))
    return tuple(found)


def _example(variable: Variable) -> str:
    return ", ".join(each.name for each in variable.per)


def _wrong_number(variable: Variable, given: int) -> ProtocolError:
    wanted = len(variable.per)
    mend = f"write s.{variable.name}[{_example(variable)}]" if wanted else f"{variable.name} is one value"
    return ProtocolError(f"{variable.name} takes {_indices_wanted(wanted)}, not {given}", mend)


def _indices_wanted(count: int) -> str:
    return "1 index" if count == 1 else f"{count} indices"


def read_term(variable: Variable, indices: tuple[Term, ...]) -> Term:
    """The term that reads one cell of a variable.

    Raises ProtocolError where the number or the sorts of the indices are not the variable's.
    """
    if len(indices) != len(variable.per):
        raise _wrong_number(variable, len(indices))
    for index, term in zip(variable.per, indices, strict=True):
        if not isinstance(term, Term):
            raise ProtocolError(f"{term!r} is neither a term nor a literal", "EVERY is for cells that are written")
        if term.sort is not index.sort:
            raise ProtocolError(
                f"{variable.name} is indexed by {index.name}, not by the {term.sort.value} {term}",
                f"give a {index.name}: {HOW_TO_WRITE[index.sort]}",
            )
    return terms.node("var", indices, variable.values.sort, variable.name)


def written_term(variable: Variable, indices: tuple[Value, ...]) -> Term:
    """The term that names the cells that an update writes: one cell, or all along an index that is ``EVERY``.

    Raises ProtocolError as ``read_term`` does.
    """
    given = _indices(variable, indices)
    every = (terms.every(i.sort) if g is EVERY else g for g, i in zip(given, variable.per, strict=True))
    return read_term(variable, tuple(every))


def value_term(variable: Variable, value: Value, who: str) -> Term:
    """The term of a value that is written to a variable. Raises ProtocolError for one of another sort."""
    if isinstance(variable.values, Enumeration):
        return named(variable.values.kind, value, f"{who} writes to {variable.name}")
    sort = variable.values.sort
    term = terms.lift(value)
    if term.sort is not sort:
        raise ProtocolError(
            f"{who} writes the {term.sort.value} {term} to {variable.name}, a {sort.value}", HOW_TO_WRITE[sort]
        )
    return term


def _is_function(value: Value) -> bool:
    # Terms, and what stands for them, have a call that refuses.
    return callable(value) and not isinstance(value, Term | NoTerm)


def _cells_written(variable: Variable, indices: tuple[Value, ...], value: Value) -> tuple[Term, Term]:
    """What an update writes: the term that names the cells, and that of their value.

    Where the value is a function of indices that are ``EVERY``, one ``bound`` term stands for each of them in both. It
    is named by its place, so that two actions that write the same row write the same terms. An index that the value
    does not depend on stays ``every``. Raises ProtocolError, or BadText with the line of the function.
    """
    if not _is_function(value):
        return written_term(variable, indices), value_term(variable, value, "the update")
    cells = written_term(variable, indices)
    along = [place for place, index in enumerate(indices) if index is EVERY]
    _takes_indices(variable, value, len(along))
    row: dict[int, Value] = {}
    for place in along:
        index = variable.per[place]
        before = sum(variable.per[other] is index for other in row)
        # No quantifier's: these have numbers.
        row[place] = bound(f"{index.name}#{'*' * (before + 1)}", index)
    with Reading(value):
        term = value_term(variable, value(*row.values()), "the update")
    read = set(terms.parts(term))
    args = list(cells.args)
    for place, given in row.items():
        if term_of(given) in read:
            args[place] = term_of(given)
    return read_term(variable, tuple(args)), term


def _takes_indices(variable: Variable, value: RowValue, wanted: int) -> None:
    """Refuse a function of another number of indices than are ``EVERY``."""
    if not wanted:
        every = ", ".join("EVERY" for _ in variable.per)
        every = f"({every})" if len(variable.per) > 1 else every
        mend = f"write {variable.name}={{{every}: ...}} for a row of them" if every else "call it"
        raise ProtocolError(
            f"the update writes a function to one cell of {variable.name}", f"give the value, or {mend}"
        )
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return
    open_ = [each for each in parameters if each.default is each.empty and each.kind is not each.KEYWORD_ONLY]
    if len(open_) != wanted and not any(each.kind is each.VAR_POSITIONAL for each in parameters):
        raise ProtocolError(
            f"the update writes to {variable.name} a function of {_indices_wanted(len(open_))}, where "
            f"{_indices_wanted(wanted)} {'is' if wanted == 1 else 'are'} EVERY",
            "give it one parameter for each EVERY",
        )


class TracedUpdate(Update):
    """An update whose cells and values are terms. ``pairs``: ``var`` term that names the cells, value term."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[Term, Term]]) -> None:
        super().__init__([(str(cell.value), cell.args, value) for cell, value in pairs])
        self.pairs = pairs


class TracedState(View):
    """The state of terms. ``elsewhere``: variables that other variants have."""

    def __init__(self, variables: Mapping[str, Variable], elsewhere: Collection[str] = ()) -> None:
        object.__setattr__(self, "_variables", variables)
        object.__setattr__(self, "_elsewhere", elsewhere)

    def _find(self, name: str, *, written: bool = False) -> Variable:
        variables: Mapping[str, Variable] = object.__getattribute__(self, "_variables")
        if name in variables:
            return variables[name]
        what = f"the update writes {name!r}, which is no variable" if written else f"the state has no variable {name!r}"
        if name in object.__getattribute__(self, "_elsewhere"):
            raise ProtocolError(f"{what} of this variant", "use it only where k.rules say that the variant has it")
        raise ProtocolError(f"{what}; it has {', '.join(variables)}", near(name, list(variables)))

    def __getattr__(self, name: str) -> Value:
        if name.startswith("__"):
            raise AttributeError(name)
        variable = self._find(name)
        return Unindexed(variable) if variable.per else _said(variable.values, read_term(variable, ()))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise ProtocolError(f"the state's {name} is assigned", f"yield s.update({name}=...) instead")

    def update(self, **writes: Value) -> Update:
        as_many_cells_as_keys(sys._getframe(1), writes)
        for name, what in writes.items():
            variable = self._find(name, written=True)
            if variable.per and not isinstance(what, Mapping):
                raise ProtocolError(
                    f"{name} takes {_indices_wanted(len(variable.per))}, not 0",
                    f"give the cells to write: {name}={{({_example(variable)}): value}}",
                )
        return self.traced(super().update(**writes))

    def traced(self, update: Update) -> TracedUpdate:
        """An update as terms. Raises ProtocolError for cells and values that are not those of the variables."""
        if isinstance(update, TracedUpdate):
            return update
        pairs = []
        for name, indices, value in update.writes:
            pairs.append(_cells_written(self._find(name, written=True), indices, value))
        return TracedUpdate(pairs)
