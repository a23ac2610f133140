"""Terms: folding never changes a value, equal terms are one object, and a wrong text is refused by name."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fencepost.model.core import terms
from fencepost.model.core.algebra import Algebra
from fencepost.model.core.errors import ProtocolError
from fencepost.model.core.ground import substitute
from fencepost.model.core.pretty import show
from fencepost.model.core.terms import FALSE, NONE, TRUE, Sort, Term, const, node
from fencepost.model.core.tracer import Tracer
from fencepost.model.interpret import batch
from fencepost.model.interpret.reference import Ints
from fencepost.model.interpret.staged import expression
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

REPLICAS = 3

# Cells that random texts read: two ints, two replicas of which one may be NONE, two sets.
CELLS = {
    "i": node("cell", (), Sort.INT, 0),
    "j": node("cell", (), Sort.INT, 1),
    "r": node("cell", (), Sort.REPLICA, 2),
    "maybe": node("cell", (), Sort.REPLICA, 3),
    "a": node("cell", (), Sort.SET, 4),
    "b": node("cell", (), Sort.SET, 5),
}
VALUES = st.fixed_dictionaries(
    {
        "i": st.integers(-3, 5),
        "j": st.integers(-3, 5),
        "r": st.integers(0, REPLICAS - 1),
        "maybe": st.integers(NONE, REPLICAS - 1),
        "a": st.integers(0, (1 << REPLICAS) - 1),
        "b": st.integers(0, (1 << REPLICAS) - 1),
    }
)

Text = Callable[[Algebra, dict[str, Any]], Any]
"""A random text: from the algebra and the cells to a value, as the text of a protocol is."""


def _cell(name: str) -> Text:
    return lambda k, cells: cells[name]


def _literal(value: int | bool, sort: Sort) -> Text:
    # Literals of a text are plain; lifted here, because a random text may have one as the left operand.
    return lambda k, cells: const(value, sort) if isinstance(k, Tracer) else value


def _apply(build: Callable[..., Any], *parts: Text) -> Text:
    return lambda k, cells: build(k, *(part(k, cells) for part in parts))


def _grow(sizes: int) -> tuple[st.SearchStrategy[Text], ...]:
    """Random texts of the sorts INT, BOOL, REPLICA (never NONE, maybe NONE) and SET, nested so many times."""
    if sizes == 0:
        return (
            st.one_of(
                st.sampled_from([_cell("i"), _cell("j")]), st.integers(-2, 3).map(lambda n: _literal(n, Sort.INT))
            ),
            st.booleans().map(lambda b: _literal(b, Sort.BOOL)),
            st.one_of(st.just(_cell("r")), st.integers(0, REPLICAS - 1).map(lambda n: _literal(n, Sort.REPLICA))),
            st.one_of(st.just(_cell("maybe")), st.just(_literal(NONE, Sort.REPLICA))),
            st.one_of(
                st.sampled_from([_cell("a"), _cell("b")]), st.integers(0, 7).map(lambda n: _literal(n, Sort.SET))
            ),
        )
    ints, bools, some, maybe, sets = _grow(sizes - 1)

    def ops(operands: st.SearchStrategy[Text], *builds: Callable[..., Any], arity: int = 2) -> st.SearchStrategy[Text]:
        return st.builds(_apply, st.sampled_from(builds), *[operands] * arity)

    def chosen(of: st.SearchStrategy[Text]) -> st.SearchStrategy[Text]:
        return st.builds(_apply, st.just(lambda k, test, yes, no: k.ite(test, yes, no)), bools, of, of)

    more_ints = ops(
        ints,
        lambda k, x, y: x + y,
        lambda k, x, y: x - y,
        lambda k, x, y: k.min(x, y),
        lambda k, x, y: k.max(x, y),
        lambda k, x, y: x + 1 - 1,
    )
    comparisons = ops(
        ints,
        lambda k, x, y: x < y,
        lambda k, x, y: x <= y,
        lambda k, x, y: x > y,
        lambda k, x, y: x >= y,
        lambda k, x, y: x == y,
        lambda k, x, y: x != y,
        lambda k, x, y: x < 2,
        lambda k, x, y: 0 <= y,
    )
    junctions = ops(
        bools,
        lambda k, x, y, z: k.all(x, y, z),
        lambda k, x, y, z: k.any(x, y, z),
        lambda k, x, y, z: k.all(x, k.negate(y), True),
        lambda k, x, y, z: k.any(k.negate(k.negate(x)), y, False),
        lambda k, x, y, z: k.implies(x, y),
        lambda k, x, y, z: x == y,
        lambda k, x, y, z: k.ite(x, y, z),
        arity=3,
    )
    replicas = st.one_of(some, maybe)
    return (
        st.one_of(ints, more_ints, chosen(ints)),
        st.one_of(
            comparisons,
            junctions,
            ops(replicas, lambda k, x, y: x == y, lambda k, x, y: x != k.NONE),
            ops(sets, lambda k, x, y: x == y, lambda k, x, y: k.majority(x, y)),
            st.builds(_apply, st.just(lambda k, r, s: k.member(r, s)), replicas, sets),
        ),
        st.one_of(some, chosen(some)),
        st.one_of(maybe, chosen(replicas)),
        st.one_of(
            sets,
            chosen(sets),
            st.builds(_apply, st.just(lambda k, s, r: k.with_member(s, r)), sets, some),
            st.builds(_apply, st.just(lambda k, s, r: k.without_member(s, r)), sets, some),
            st.builds(_apply, st.just(lambda k, r: k.only(r)), some),
        ),
    )


_INTS, _BOOLS, _SOME, _MAYBE, _SETS = _grow(3)
TEXTS = st.one_of(_INTS, _BOOLS, _MAYBE, _SETS)


def _plain(text: Text, values: dict[str, int]) -> int:
    return int(text(Ints(None, {"replicas": REPLICAS}), values))


def agrees_with_plain_ints(text: Text, rows: list[dict[str, int]]) -> None:
    """The text on plain ints, its term with literals put in, its staged expression and its columns: one value."""
    expected = [_plain(text, row) for row in rows]
    term = terms.lift(text(Tracer(None), dict(CELLS)))
    columns = np.array([[row[name] for row in rows] for name in CELLS], dtype=np.int16)
    assert np.broadcast_to(batch.Block(columns)(term), (len(rows),)).astype(int).tolist() == expected
    for row, value in zip(rows, expected, strict=True):
        literals = {cell: const(row[name], cell.sort) for name, cell in CELLS.items()}
        folded = substitute(term, literals)
        assert folded.sort is term.sort and terms.is_const(folded) and terms.literal(folded) == value
        scope = {f"c{number}": row[name] for number, name in enumerate(CELLS)}
        assert int(eval(expression(term), scope)) == value
    assert substitute(term, {}) is term


ROWS = st.lists(VALUES, min_size=1, max_size=4)


@settings(max_examples=3 * settings.default.max_examples)
@given(TEXTS, ROWS)
def test_a_random_text_means_the_same_to_every_engine(text: Text, rows: list[dict[str, int]]) -> None:
    agrees_with_plain_ints(text, rows)


def is_found() -> None:
    """Whatever is now wrong in an engine is found by random texts (it is of no interest which is the smallest)."""
    planted = settings(max_examples=3000, phases=[Phase.generate], report_multiple_bugs=False, print_blob=False)
    with pytest.raises(AssertionError):
        planted(given(TEXTS, ROWS)(agrees_with_plain_ints))()


@pytest.mark.parametrize(
    ("op", "wrong"),
    [
        ("min", np.maximum),
        ("lt", np.less_equal),
        ("with", lambda replicas, replica: replicas),
        ("majority", lambda replicas, of: 2 * np.bitwise_count(replicas & of) >= np.bitwise_count(of)),
    ],
    ids=["min is max", "lt is le", "with does nothing", "half is a majority"],
)
def test_a_wrong_operation_in_one_engine_is_found(
    op: str, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(batch._OPERATIONS, op, wrong)
    is_found()


def test_a_wrong_folding_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = terms._compare
    monkeypatch.setattr(terms, "_compare", lambda op, x, y: FALSE if x is y else real(op, x, y))
    is_found()


@given(st.permutations([1, -1, 2, -2, 3, -4]))
def test_a_sum_is_kept_as_one_addition(steps: list[int]) -> None:
    i = CELLS["i"]
    term = i
    for step in steps:
        term = term + step if step > 0 else term - -step
    assert term is i - 1
    assert (i + 0) is i and (i + 2 - 2) is i


def test_equal_terms_are_one_object_whatever_the_way_that_they_were_built() -> None:
    i, j = CELLS["i"], CELLS["j"]
    assert (i < j) is (j > i)
    assert (i <= j) is (j >= i)
    assert (i == 2) is terms.equal(const(2), i)
    condition = i < j
    assert terms.negate(terms.negate(condition)) is condition
    assert terms.conjunction(condition, True, condition) is condition
    assert terms.conjunction(terms.conjunction(condition, i == j), i < 3) is terms.conjunction(condition, i == j, i < 3)
    assert terms.conjunction() is TRUE and terms.disjunction() is FALSE
    assert terms.conjunction(condition, False) is FALSE and terms.disjunction(condition, True) is TRUE
    assert terms.choose(condition, i, i) is i
    assert terms.minimum(i, i) is i and terms.maximum(j, j) is j
    assert (condition == True) is condition and (condition == False) is terms.negate(condition)  # noqa: E712
    assert const(1) is not const(True) and const(1) is not const(1, Sort.REPLICA)


def test_terms_that_nobody_holds_are_let_go() -> None:
    before = len(terms._interned)
    kept = [node("cell", (), Sort.INT, 1000 + n) + 1 for n in range(100)]
    assert len(terms._interned) >= before + 200
    kept.clear()
    gc.collect()
    assert len(terms._interned) < before + 100


def test_a_term_has_no_truth_value() -> None:
    i, j = CELLS["i"], CELLS["j"]
    with pytest.raises(ProtocolError, match=r"cell 0 < cell 1 was used as a Python truth value; write k\.all, k\.any"):
        assert i < j
    with pytest.raises(ProtocolError, match="truth value"):
        assert (i < j) and (j < 3)
    with pytest.raises(ProtocolError, match="truth value"):
        sorted([i, j])
    with pytest.raises(ProtocolError, match="truth value"):
        assert 0 < i < 3


N, R, S, B = CELLS["i"], CELLS["r"], CELLS["a"], CELLS["i"] < CELLS["j"]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: N + R, "cell 2 is a replica, wanted int"),
        (lambda: N + B, "is a bool, wanted int"),
        (lambda: N + True, "True is a bool, wanted int"),
        (lambda: S - 1, "is a set of replicas, wanted int"),
        (lambda: R < 1, "is a replica, wanted int"),
        (lambda: S <= S, "is a set of replicas, wanted int"),
        (lambda: N == R, r"cell 0 \(int\) is compared with cell 2 \(replica\)"),
        (lambda: R == S, r"cell 2 \(replica\) is compared with cell 4 \(set of replicas\)"),
        (lambda: N == "leader", "'leader' is neither a term nor a literal"),
        (lambda: N == 1.5, "1.5 is neither a term nor a literal"),
        (lambda: N != B, r"cell 0 \(int\) is compared"),
        (lambda: R == True, r"\(replica\) is compared with True \(bool\)"),  # noqa: E712
        (lambda: terms.negate(N), "cell 0 is a int, wanted bool"),
        (lambda: terms.conjunction(B, N), "cell 0 is a int, wanted bool"),
        (lambda: terms.disjunction(R), "cell 2 is a replica, wanted bool"),
        (lambda: terms.choose(N, N, N), "cell 0 is a int, wanted bool"),
        (lambda: terms.choose(B, N, R), "the branches cell 0 and cell 2 have different sorts"),
        (lambda: terms.choose(B, N, B), "have different sorts"),
        (lambda: terms.minimum(R, 1), "cell 2 is a replica, wanted int"),
        (lambda: terms.maximum(N, S), "cell 4 is a set of replicas, wanted int"),
        (lambda: terms.member(N, S), "cell 0 is a int, wanted replica"),
        (lambda: terms.member(R, N), "cell 0 is a int, wanted set of replicas"),
        (lambda: terms.with_member(R, R), "cell 2 is a replica, wanted set of replicas"),
        (lambda: terms.without_member(S, N), "cell 0 is a int, wanted replica"),
    ],
)
def test_a_wrong_sort_is_refused_and_named(build: Callable[[], Term], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        build()


def test_none_is_in_no_set_and_equals_itself() -> None:
    none = const(NONE, Sort.REPLICA)
    assert terms.member(none, S) is FALSE
    assert terms.equal(none, const(NONE, Sort.REPLICA)) is TRUE
    k = Ints(None, {"replicas": REPLICAS})
    assert not any(k.member(NONE, mask) for mask in range(8))


def test_leaves_are_the_cells_read_each_once_in_reading_order() -> None:
    j, i = CELLS["j"], CELLS["i"]
    assert terms.leaves(terms.conjunction(j < i, i < 3, j == 1)) == [j, i]
    assert terms.leaves(const(3)) == []


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (N + 1, "cell 0 + 1"),
        (N - 1, "cell 0 - 1"),
        (terms.negate(N == 3), "cell 0 != 3"),
        (terms.negate(N < 3), "cell 0 >= 3"),
        (terms.negate(N <= 3), "cell 0 > 3"),
        (R == const(NONE, Sort.REPLICA), "cell 2 == NONE"),
        (S == const(5, Sort.SET), "cell 4 == {0, 2}"),
        (terms.member(R, S), "cell 2 in cell 4"),
        (terms.with_member(S, R), "cell 4 with cell 2"),
        (terms.negate(terms.member(R, S)), "not (cell 2 in cell 4)"),
        (terms.choose(N < 3, N, 0), "if (cell 0 < 3) then cell 0 else 0"),
        (terms.minimum(N, 2), "min(cell 0, 2)"),
        (terms.conjunction(N < 3, R == const(1, Sort.REPLICA)), "(cell 0 < 3) and (cell 2 == 1)"),
    ],
)
def test_a_term_reads_like_the_text(term: Term, text: str) -> None:
    assert show(term) == repr(term) == text


@pytest.mark.parametrize(("replicas", "of", "expected"), [(0b011, 0b111, True), (0b001, 0b011, False), (0, 0, False)])
def test_a_majority_is_more_than_half(replicas: int, of: int, expected: bool) -> None:
    """Of two, one is not: two majorities always meet."""
    k = Ints(None, {})
    assert k.majority(replicas, of) is expected
    assert terms.majority(const(replicas, Sort.SET), const(of, Sort.SET)) is (TRUE if expected else FALSE)
    assert show(terms.majority(CELLS["a"], CELLS["b"])) == "cell 4 has a majority of cell 5"
