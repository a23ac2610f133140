"""Packed keys: exact, of any number of words, at the bounds of every domain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fencepost.model.core.domains import Index, Values, Variable
from fencepost.model.core.ground import Layout, State, System
from fencepost.model.core.terms import Sort, const
from fencepost.model.interpret.batch import _Computed
from fencepost.model.interpret.packing import Packing
from fencepost.model.protocols.fencing import fencing
from hypothesis import given
from hypothesis import strategies as st

At = Callable[..., System]


def layout(*domains: tuple[int, int]) -> Layout:
    """One scalar cell per domain."""
    variables = {}
    for number, (low, high) in enumerate(domains):
        values = Values(Sort.INT, lambda _, low=low: low, lambda _, high=high: high)
        variables[f"v{number}"] = Variable(f"v{number}", (), values, lambda _, low=low: low, "a cell")
    return Layout(variables, {})


DOMAIN = st.tuples(st.integers(-120, 120), st.sampled_from([0, 1, 3, 127, 128, 250, 1 << 16])).map(
    lambda d: (d[0], d[0] + d[1])
)


@st.composite
def domains_and_states(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[State]]:
    domains = draw(st.lists(DOMAIN, min_size=1, max_size=15))
    # The bounds themselves are the likely places for an error.
    cells = [st.one_of(st.just(low), st.just(high), st.integers(low, high)) for low, high in domains]
    return domains, draw(st.lists(st.tuples(*cells), min_size=1, max_size=5))


@given(domains_and_states())
def test_states_come_back_from_their_keys(case: tuple[list[tuple[int, int]], list[State]]) -> None:
    domains, states = case
    packing = Packing(layout(*domains))
    columns = np.array(states, dtype=packing.dtype).T
    keys = packing.pack(columns)
    assert keys.dtype == np.uint64 and keys.shape == (packing.words, len(states))
    assert np.array_equal(packing.unpack(keys), columns)
    for number, state in enumerate(states):
        assert packing.key(state).tolist() == keys[:, number].tolist()
        assert packing.state(keys[:, number]) == state
    assert len(set(map(tuple, keys.T.tolist()))) == len(set(states))


@given(st.lists(DOMAIN, min_size=1, max_size=60))
def test_fields_do_not_overlap_and_none_crosses_a_word(domains: list[tuple[int, int]]) -> None:
    packing = Packing(layout(*domains))
    used: set[tuple[int, int]] = set()
    for field, (low, high) in zip(packing.fields, domains, strict=True):
        assert (field.low, field.high) == (low, high) and high - low < 1 << field.bits
        assert field.bits == 0 or high - low >= 1 << field.bits - 1
        bits = {(field.word, bit) for bit in range(field.shift, field.shift + field.bits)}
        assert not bits & used and all(bit < 64 for _, bit in bits) and field.word < packing.words
        used |= bits


def test_a_full_word_and_the_bit_after_it() -> None:
    """64 bits are one word, and one bit more starts another; its first bit is used up to the sign of a 64-bit int."""
    assert Packing(layout(*[(0, 255)] * 8)).words == 1
    packing = Packing(layout(*[(0, 255)] * 8, (0, 1)))
    assert packing.words == 2
    top = (255,) * 8 + (1,)
    assert packing.key(top).tolist() == [(1 << 64) - 1, 1]
    assert packing.state(packing.key(top)) == top
    assert packing.unpack(packing.key(top)[:, None])[:, 0].tolist() == list(top)


def test_a_cell_with_one_value_takes_no_room() -> None:
    packing = Packing(layout((5, 5), (-1, -1), (0, 3)))
    assert [f.bits for f in packing.fields] == [0, 0, 2]
    assert packing.state(packing.key((5, -1, 3))) == (5, -1, 3)


@pytest.mark.parametrize(
    ("domain", "dtype"), [((0, 125), np.int8), ((0, 126), np.int16), ((-100, 25), np.int8), ((-100, 26), np.int16)]
)
def test_the_columns_have_room_for_one_more_than_the_domain(domain: tuple[int, int], dtype: type) -> None:
    packing = Packing(layout(domain))
    assert packing.dtype is dtype
    low, high = domain
    assert np.array([low - 1, high + 1], dtype=packing.dtype).tolist() == [low - 1, high + 1]


@pytest.mark.parametrize(("constants", "words"), [("2/2/2/2", 1), ("3/2/2/2", 2), ("3/6/6/3", 3)])
def test_fencing_takes_as_few_words_as_its_domains_allow(at: At, constants: str, words: int) -> None:
    system = at(constants)
    packing = Packing(system.layout)
    bits = sum(f.bits for f in packing.fields)
    assert packing.words == words and 64 * (words - 1) < bits <= 64 * words
    assert packing.state(packing.key(system.initial)) == system.initial


def test_an_index_without_cells_takes_none() -> None:
    nowhere = Index("nowhere", Sort.INT, lambda _: 0)
    values = Values(Sort.INT, lambda _: 0, lambda _: 1)
    variables = {
        "none": Variable("none", (nowhere,), values, lambda _: 0, "no cells"),
        "one": Variable("one", (), values, lambda _: 0, "one cell"),
    }
    packing = Packing(Layout(variables, {}))
    assert (len(packing.fields), packing.state(packing.key((1,)))) == (1, (1,))


def test_a_set_of_many_replicas_fits_its_column() -> None:
    """Sixteen replicas are sixteen bits: one more than a signed 16-bit column has for its values."""
    wide = Layout(fencing.traced().variables, {"replicas": 16, "log_size": 1, "max_records": 1, "max_leader_epoch": 0})
    packing = Packing(wide)
    isr = wide.by_name["quorum_isr"]
    assert packing.unpack(packing.key(wide.initial)[:, None])[isr, 0] == (1 << 16) - 1


@pytest.mark.parametrize("domain", [(0, 1), (-1, 2), (0, 126), (-3, 120), (-40, 300), (0, 1 << 31), (-5, 1 << 61)])
def test_a_computed_cell_of_any_domain_is_placed_as_it_is_packed(domain: tuple[int, int]) -> None:
    packing = Packing(layout(domain, domain))
    columns = np.random.default_rng(3).integers(*domain, size=(2, 100), endpoint=True).astype(packing.dtype)
    columns[:, :2] = domain
    placed = np.zeros((packing.words, 100), dtype=np.uint64)
    for field, column in zip(packing.fields, columns, strict=True):
        placed[field.word] |= _Computed(const(0), field, True).placed(column)
    assert np.array_equal(placed, packing.pack(columns)) and np.array_equal(packing.unpack(placed), columns)
