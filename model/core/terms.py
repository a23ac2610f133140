"""Terms: what the text of an action is made of once it has been traced.

A protocol's text is written against an algebra ``k`` and a state ``s`` (see ``protocol.py``). Tracing it yields
terms: immutable, interned expressions over state cells, parameters, constants and quantifiers. Every engine reads
terms: ``ground.py`` binds them to finite constants, ``interpret/symbolic.py`` turns them into z3 expressions.

Four sorts exist. ``REPLICA`` allows only equality and indexing: that is what makes symmetry over replicas sound.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias
from weakref import WeakValueDictionary

from .enum_value import Member
from .errors import ProtocolError
from .unsupported_operators import NoTerm, refuse_operators

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Sort(Enum):
    """The sort of a term."""

    BOOL = "bool"
    INT = "int"
    REPLICA = "replica"
    SET = "set of replicas"


NONE = -1
"""The value of a REPLICA cell that names no replica (TLA+ ``None``, JSON ``null``)."""

Literal: TypeAlias = "bool | int"
Operand: TypeAlias = "Term | bool | int"


class Term:
    """One interned expression node; equal terms are the same object.

    ``op`` names the operation, ``args`` are its operands and ``value`` its payload: a literal for ``const``; a
    name for ``constant``, ``param``, ``bound``; a variable's name for ``var`` (operands: the indices); an int for
    ``cell`` (ground terms only); an index domain's name for ``forall``, ``exists``, ``first`` and ``last``. ``every``
    has no payload, and stands only among the operands of a ``var`` that is written. So may a ``bound`` term there: all
    values of that index too, and the value that is written depends on it (a row).

    Comparison operators build terms. A term has no truth value: ``if`` and ``and`` in the text of an action are
    refused with ProtocolError.
    """

    __slots__ = ("__weakref__", "args", "cost", "op", "sort", "value")

    op: str
    args: tuple[Term, ...]
    sort: Sort
    value: bool | int | str | None
    cost: int
    """The number of operations in it; a part that stands in it twice counts twice."""

    def __add__(self, other: Operand) -> Term:
        return _arith("add", self, lift(other))

    def __radd__(self, other: Operand) -> Term:
        return _arith("add", lift(other), self)

    def __sub__(self, other: Operand) -> Term:
        return _arith("sub", self, lift(other))

    def __rsub__(self, other: Operand) -> Term:
        return _arith("sub", lift(other), self)

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return equal(self, _operand(other, self.sort))

    def __ne__(self, other: object) -> Term:  # type: ignore[override]
        return negate(equal(self, _operand(other, self.sort)))

    def __lt__(self, other: Operand) -> Term:
        return _compare("lt", self, lift(other))

    def __le__(self, other: Operand) -> Term:
        return _compare("le", self, lift(other))

    def __gt__(self, other: Operand) -> Term:
        return _compare("lt", lift(other), self)

    def __ge__(self, other: Operand) -> Term:
        return _compare("le", lift(other), self)

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise ProtocolError(
            f"the {'condition' if self.sort is Sort.BOOL else 'term'} {self} was used as a Python truth value",
            "write k.all, k.any, k.negate, k.ite instead of and, or, not, if and a < b < c, and k.min, k.max instead "
            "of min, max",
        )

    def __getitem__(self, index: object) -> NoReturn:
        if self.op == "var" and not self.args:
            raise ProtocolError(f"{self.value} is one value and takes no index", f"write s.{self.value}")
        if self.op == "var":
            place = "index" if len(self.args) == 1 else "indices"
            raise ProtocolError(
                f"{self.value} has its {place} already, in {self}",
                f"write all indices in one pair of brackets: s.{self.value}[i, j]",
            )
        raise ProtocolError(f"{self} takes no index", "index a variable of the state")

    def __repr__(self) -> str:
        from .pretty import show

        return show(self)


refuse_operators(Term)


_interned: WeakValueDictionary[tuple[object, ...], Term] = WeakValueDictionary()


def node(op: str, args: tuple[Term, ...], sort: Sort, value: bool | int | str | None = None) -> Term:
    """The interned node of these parts, without any simplification."""
    # 1, True and the members of enumerations are equal to Python, and are not the same to a person.
    kind = value.kind if type(value) is Member else type(value)
    key = (op, tuple(map(id, args)), sort, kind, value)
    found = _interned.get(key)
    if found is None:
        found = Term.__new__(Term)
        found.op, found.args, found.sort, found.value = op, args, sort, value
        found.cost = 1 + sum([a.cost for a in args])
        _interned[key] = found
    return found


def const(value: Literal, sort: Sort | None = None) -> Term:
    """A literal; a bool is BOOL, an int is INT unless ``sort`` says REPLICA or SET (a bit mask)."""
    if sort is None:
        sort = Sort.BOOL if isinstance(value, bool) else Sort.INT
    return node("const", (), sort, value)


def of_sort(value: Operand, sort: Sort) -> Term:
    """A term as it is; an int as a literal of this sort, as an engine has it: a replica's number, a set's bit mask."""
    return value if isinstance(value, Term) else const(value, None if sort is Sort.INT else sort)


TRUE = const(True)
FALSE = const(False)


def lift(value: Operand) -> Term:
    """A term as it is; a Python literal as a constant. Raises ProtocolError for anything else."""
    if isinstance(value, Term):
        return value
    if isinstance(value, NoTerm):
        value.refuse()
    if isinstance(value, Member):
        raise ProtocolError(
            f"{value.label} is a value of the enumeration {value.of}, and no number",
            f"use it only where a {value.of} is wanted",
        )
    if not isinstance(value, int):
        raise ProtocolError(f"{_told(value)} is neither a term nor a literal", _how_to_lift(value))
    return const(value)


def _told(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"a {type(value).__name__}"


def _how_to_lift(value: object) -> str:
    if value is None:
        return "give a value; a function without return gives None"
    if isinstance(value, list | tuple | set | dict) or hasattr(value, "gi_frame"):
        return "give the parts one by one, as in k.all(*conditions)"
    return "give a variable of the state, a parameter, a constant of k.c, a number or a truth value"


def _operand(value: object, sort: Sort) -> Term:
    """The other side of a comparison or a choice. A replica has no number and a set no bit mask in a text."""
    term = lift(value)  # type: ignore[arg-type]
    if term is not value and term.sort is Sort.INT and sort in (Sort.REPLICA, Sort.SET):
        raise ProtocolError(f"the number {value} stands where a {sort.value} is wanted", HOW_TO_WRITE[sort])
    return term


HOW_TO_WRITE: Final = {
    Sort.BOOL: "give a condition",
    Sort.INT: "give an integer",
    Sort.REPLICA: "replicas are alike and have no numbers: give one of an index or a variable, or k.NONE",
    Sort.SET: "give a variable, k.only(replica), k.with_member(set, replica), or k.EMPTY",
}
"""What a person may write where a value of a sort is wanted."""


def _want(term: Term, *sorts: Sort) -> None:
    if term.sort not in sorts:
        raise ProtocolError(
            f"{term} is a {term.sort.value}, wanted {' or '.join(s.value for s in sorts)}", HOW_TO_WRITE[sorts[0]]
        )


def is_const(term: Term) -> bool:
    """Whether the term is a literal."""
    return term.op == "const"


def literal(term: Term) -> int:
    """The value of a literal (a bool counts as 0 or 1)."""
    assert term.op == "const" and isinstance(term.value, int)
    return int(term.value)


def _arith(op: str, left: Term, right: Term) -> Term:
    _want(left, Sort.INT)
    _want(right, Sort.INT)
    if is_const(left) and is_const(right):
        a, b = literal(left), literal(right)
        return const({"add": a + b, "sub": a - b, "min": min(a, b), "max": max(a, b)}[op])
    if op in ("add", "sub") and is_const(right):
        offset = literal(right) if op == "add" else -literal(right)
        # x + a + b is kept as one addition, so that equal positions are the same term.
        if left.op == "add" and is_const(left.args[1]):
            offset += literal(left.args[1])
            left = left.args[0]
        return left if offset == 0 else node("add", (left, const(offset)), Sort.INT)
    if op in ("min", "max") and left is right:
        return left
    return node(op, (left, right), Sort.INT)


def minimum(left: Operand, right: Operand) -> Term:
    """The smaller of two INT terms."""
    return _arith("min", lift(left), lift(right))


def maximum(left: Operand, right: Operand) -> Term:
    """The larger of two INT terms."""
    return _arith("max", lift(left), lift(right))


def _compare(op: str, left: Term, right: Term) -> Term:
    _want(left, Sort.INT)
    _want(right, Sort.INT)
    if is_const(left) and is_const(right):
        a, b = literal(left), literal(right)
        return const(a < b if op == "lt" else a <= b)
    if left is right:
        return const(op == "le")
    return node(op, (left, right), Sort.BOOL)


def equal(left: Term, right: Term) -> Term:
    """Equality of two terms of one sort."""
    if left.sort is not right.sort:
        raise ProtocolError(
            f"{left} ({left.sort.value}) is compared with {right} ({right.sort.value})", HOW_TO_WRITE[left.sort]
        )
    if left is right:
        return TRUE
    if is_const(left) and is_const(right):
        return const(left.value == right.value)
    if left.sort is Sort.BOOL:
        for this, other in ((left, right), (right, left)):
            if is_const(this):
                return other if this.value else negate(other)
    if is_const(left):
        left, right = right, left
    return node("eq", (left, right), Sort.BOOL)


def every(sort: Sort) -> Term:
    """All values of an index of this sort: only in the place of an index, and only where cells are written."""
    return node("every", (), sort)


def covers(written: Term, index: Operand) -> Term:
    """Whether the place of an index, where cells are written, covers this one."""
    return TRUE if written.op == "every" else equal(written, of_sort(index, written.sort))


def is_along(index: Term) -> bool:
    """Whether the place of an index, where cells are written, is all values of that index."""
    return index.op in ("every", "bound")


def row(written: Term) -> list[tuple[int, Term]]:
    """The indices along which the value that is written differs: the place of each, and its term in the value."""
    return [(place, index) for place, index in enumerate(written.args) if index.op == "bound"]


def negate(condition: Operand) -> Term:
    """Not."""
    term = lift(condition)
    _want(term, Sort.BOOL)
    if is_const(term):
        return const(not term.value)
    if term.op == "not":
        return term.args[0]
    return node("not", (term,), Sort.BOOL)


def _junction(op: str, conditions: Iterator[Operand]) -> Term:
    absorbing = op == "or"
    parts: dict[Term, None] = {}
    for condition in conditions:
        term = lift(condition)
        _want(term, Sort.BOOL)
        if is_const(term):
            if bool(term.value) is absorbing:
                return term
            continue
        for part in term.args if term.op == op else (term,):
            parts[part] = None
    if not parts:
        return const(not absorbing)
    if len(parts) == 1:
        return next(iter(parts))
    return node(op, tuple(parts), Sort.BOOL)


def conjunction(*conditions: Operand) -> Term:
    """All of them."""
    return _junction("and", iter(conditions))


def disjunction(*conditions: Operand) -> Term:
    """At least one of them."""
    return _junction("or", iter(conditions))


def choose(condition: Operand, then: Operand, otherwise: Operand) -> Term:
    """If-then-else over two terms of one sort."""
    test = lift(condition)
    _want(test, Sort.BOOL)
    yes = lift(then)
    no = _operand(otherwise, yes.sort)
    yes = _operand(then, no.sort)
    if yes.sort is not no.sort:
        raise ProtocolError(f"the branches {yes} and {no} have different sorts", HOW_TO_WRITE[yes.sort])
    if is_const(test):
        return yes if test.value else no
    if yes is no:
        return yes
    if yes.sort is Sort.BOOL:
        return disjunction(conjunction(test, yes), conjunction(negate(test), no))
    return node("ite", (test, yes, no), yes.sort)


def member(replica: Term, replicas: Term) -> Term:
    """Whether a replica is in a set. NONE is in no set."""
    _want(replica, Sort.REPLICA)
    _want(replicas, Sort.SET)
    if is_const(replica):
        number = literal(replica)
        if number < 0:
            return FALSE
        if is_const(replicas):
            return const(bool(literal(replicas) >> number & 1))
    return node("member", (replica, replicas), Sort.BOOL)


def with_member(replicas: Term, replica: Term) -> Term:
    """The set and this replica. NONE adds nothing."""
    _want(replicas, Sort.SET)
    _want(replica, Sort.REPLICA)
    if is_const(replica) and literal(replica) == NONE:
        return replicas
    if is_const(replicas) and is_const(replica):
        return const(literal(replicas) | 1 << literal(replica), Sort.SET)
    return node("with", (replicas, replica), Sort.SET)


def without_member(replicas: Term, replica: Term) -> Term:
    """The set less this replica. NONE takes nothing away."""
    _want(replicas, Sort.SET)
    _want(replica, Sort.REPLICA)
    if is_const(replica) and literal(replica) == NONE:
        return replicas
    if is_const(replicas) and is_const(replica):
        return const(literal(replicas) & ~(1 << literal(replica)), Sort.SET)
    return node("without", (replicas, replica), Sort.SET)


def majority(replicas: Term, of: Term) -> Term:
    """Whether more than half of the members of ``of`` are in the set."""
    _want(replicas, Sort.SET)
    _want(of, Sort.SET)
    if is_const(replicas) and is_const(of):
        return const(2 * (literal(replicas) & literal(of)).bit_count() > literal(of).bit_count())
    return node("majority", (replicas, of), Sort.BOOL)


def rebuild(term: Term, args: tuple[Term, ...]) -> Term:
    """The term's operation over other operands, simplified again. Not for binders."""
    op = term.op
    if args == () or all(a is b for a, b in zip(args, term.args, strict=True)):
        return term
    if op in ("add", "sub", "min", "max"):
        return _arith(op, *args)
    if op in ("lt", "le"):
        return _compare(op, *args)
    if op in ("and", "or"):
        return _junction(op, iter(args))
    simple: dict[str, Callable[..., Term]] = {
        "eq": equal,
        "not": negate,
        "ite": choose,
        "member": member,
        "with": with_member,
        "without": without_member,
        "majority": majority,
    }
    if op in simple:
        return simple[op](*args)
    return node(op, args, term.sort, term.value)


BINDERS = frozenset({"forall", "exists", "first", "last"})
"""Operations whose first operand is a ``bound`` term and whose second is the body over it."""


def leaves(term: Term) -> list[Term]:
    """The state reads (``var`` and ``cell`` nodes) below a term, each once, in reading order."""
    found: dict[Term, None] = {}

    def walk(t: Term) -> None:
        if t.op in ("var", "cell"):
            found[t] = None
        for a in t.args:
            walk(a)

    walk(term)
    return list(found)


def parts(term: Term) -> Iterator[Term]:
    """A term and all that it is made of, each once."""
    seen, todo = {term}, [term]
    while todo:
        part = todo.pop()
        yield part
        todo += [a for a in part.args if a not in seen]
        seen.update(part.args)


def free(term: Term) -> frozenset[Term]:
    """The parameters and bound terms that are open in a term."""
    known: dict[Term, frozenset[Term]] = {}

    def of(t: Term) -> frozenset[Term]:
        if t not in known:
            if t.op in ("param", "bound"):
                known[t] = frozenset((t,))
            elif t.op in BINDERS:
                bound, body, *rest = t.args
                known[t] = (of(body) - {bound}).union(*map(of, rest))
            else:
                known[t] = frozenset[Term]().union(*map(of, t.args))
        return known[t]

    return of(term)


def variables_in(term: Term) -> set[str]:
    """The names of the variables that a term reads."""
    return {str(part.value) for part in parts(term) if part.op == "var"}


def alike(left: Term, right: Term) -> bool:
    """Whether two terms are the same but for the names of what their binders bind."""
    return _alike(left, right, {})


def _alike(left: Term, right: Term, renamed: dict[Term, Term]) -> bool:
    if left is right and not renamed:
        return True
    if left.op == "bound":
        return renamed.get(left) is right
    if (left.op, left.sort, left.value, len(left.args)) != (right.op, right.sort, right.value, len(right.args)):
        return False
    if left.op in BINDERS:
        renamed = {**renamed, left.args[0]: right.args[0]}
    return all(_alike(a, b, renamed) for a, b in zip(left.args, right.args, strict=True))
