"""Guards that only demand that a step changes something, and the steps that they alone refuse.

A model leaves out steps that change nothing. Real systems log them: a commit of the committed offset, metadata with
the same leader, a truncation to the log end. Such an event is a **repetition**: its effect leaves every cell as it is,
and every guard holds but those that compare a written cell with the value that the step writes to it.

The other guards still refuse. A repeated answer of a leader that does not lead, or a change that did not happen, is no
repetition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from . import terms
from .terms import Term


def change_guards(guards: Iterable[tuple[str, Term]], writes: Iterable[tuple[Term, Term]]) -> frozenset[str]:
    """Return the names of the guards that only demand a change.

    Such a guard compares a written cell strictly (``!=``, ``<``, ``>``) with its new value, or demands that a member is
    not yet added to a written set or not yet removed from it. It may be a disjunction of these.

    A new value that is a literal does not count by itself: ``awaited != nothing`` with ``awaited := nothing`` demands
    that there is an answer to await. In a disjunction it may stand beside a part that counts.

    Args:
        guards: Names and traced conditions.
        writes: Pairs of the cell that is written and its new value, as traced terms.
    """
    pairs = tuple(writes)
    return frozenset(name for name, condition in guards if _demands_change(condition, pairs))


def _demands_change(condition: Term, writes: tuple[tuple[Term, Term], ...]) -> bool:
    parts = condition.args if condition.op == "or" else (condition,)
    counting = [_compares(each, writes) for each in parts]
    return any(counting) and all(
        counts or _sets_literal(each, writes) for each, counts in zip(parts, counting, strict=True)
    )


def _compares(condition: Term, writes: tuple[tuple[Term, Term], ...]) -> bool:
    """Whether a condition compares a written cell with a new value that is no literal."""
    writes = tuple(write for write in writes if not terms.is_const(write[1]))
    op, args = condition.op, condition.args
    if op == "not":
        (inner,) = args
        if inner.op == "eq":
            return any(_is_pair(inner.args, write) for write in writes)
        return inner.op == "member" and _changes_set("with", inner, writes)
    if op == "member":
        return _changes_set("without", condition, writes)
    return op == "lt" and any(_is_pair(args, write) or _is_bound(args, write) for write in writes)


def _sets_literal(condition: Term, writes: tuple[tuple[Term, Term], ...]) -> bool:
    """Whether a condition holds only if a cell that the step sets to a literal has another value."""
    differs = condition.op == "not"
    inner = condition.args[0] if differs else condition
    if inner.op != "eq":
        return False
    cell, value = inner.args
    return any(
        target is cell and terms.is_const(new) and terms.is_const(value) and (value is new) is differs
        for target, new in writes
    )


def _is_pair(sides: tuple[Term, ...], write: tuple[Term, Term]) -> bool:
    left, right = sides
    target, value = write
    return (left is target and right is value) or (left is value and right is target)


def _is_bound(sides: tuple[Term, ...], write: tuple[Term, Term]) -> bool:
    """Whether ``x < y`` is the condition under which ``x := max(x, y)``, or ``y := min(x, y)``, changes its cell."""
    left, right = sides
    target, value = write
    if value.op == "max":
        return target is left and set(value.args) == {left, right}
    return value.op == "min" and target is right and set(value.args) == {left, right}


def _changes_set(op: str, member: Term, writes: tuple[tuple[Term, Term], ...]) -> bool:
    replica, replicas = member.args
    return any(
        target is replicas and value.op == op and value.args[0] is replicas and value.args[1] is replica
        for target, value in writes
    )


def repetition(
    guards: Iterable[tuple[str, Term]], names: frozenset[str], unchanged: Iterable[tuple[Term, Term]]
) -> Term:
    """Return the condition under which a step is a repetition.

    Args:
        guards: Names and ground conditions of the step.
        names: The guards that only demand a change.
        unchanged: Pairs of each cell that the step writes and its new value, as ground terms.
    """
    demands: Mapping[bool, list[Term]] = {True: [], False: []}
    for name, condition in guards:
        demands[name in names].append(condition)
    if not demands[True]:
        return terms.FALSE
    same = [terms.equal(cell, value) for cell, value in unchanged]
    return terms.conjunction(*demands[False], terms.negate(terms.conjunction(*demands[True])), *same)
