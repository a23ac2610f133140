"""Compiled conditions give what the batch interpreter gives, for every kind of term and any number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fencepost.model.core import terms
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.core.terms import Sort, Term
from fencepost.model.interpret.batch import Block
from fencepost.traces.mine.kernel import Kernel
from fencepost.traces.mine.promises import Promises
from hypothesis import given, settings
from hypothesis import strategies as st

ROWS = 300


def columns_of(system: Any, seed: int, dtype: Any) -> np.ndarray[Any, Any]:
    draw = np.random.default_rng(seed)
    return np.array([draw.integers(cell.low, cell.high + 1, ROWS) for cell in system.layout.cells], dtype=dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_invariant_and_guard_is_as_in_the_batch_interpreter(name: str, dtype: Any) -> None:
    system = ground(PROTOCOLS[name].traced(), {"replicas": 2})
    columns = columns_of(system, 1, dtype)
    conditions = [*system.invariants.values(), *system.witnesses.values()]
    conditions += [guard for instance in system.instances for _, guard in instance.guards]
    block = Block(columns)
    for condition in dict.fromkeys(conditions):
        kernel = Kernel(condition, dtype, 256)
        for low, high in ((0, 256), (256, ROWS), (7, 7)):
            wanted = np.broadcast_to(block(condition), (ROWS,))[low:high]
            assert (kernel(columns[:, low:high]) == wanted).all(), condition


CELLS = [terms.node("cell", (), Sort.INT, number) for number in range(3)]
REPLICA = terms.node("cell", (), Sort.REPLICA, 3)
REPLICAS = [terms.node("cell", (), Sort.SET, number) for number in (4, 5)]
CONDITIONS = st.one_of(
    st.builds(lambda a, b: a <= b, st.sampled_from(CELLS), st.sampled_from(CELLS)),
    st.builds(lambda a, n: a == n, st.sampled_from(CELLS), st.integers(-1, 3)),
    st.builds(terms.member, st.sampled_from([REPLICA, terms.const(2, Sort.REPLICA)]), st.sampled_from(REPLICAS)),
    st.just(terms.majority(*REPLICAS)),
    st.builds(
        lambda replica, both: terms.equal(terms.without_member(both, replica), terms.with_member(REPLICAS[0], replica)),
        st.sampled_from([REPLICA, terms.const(1, Sort.REPLICA)]),
        st.sampled_from(REPLICAS),
    ),
)


def combined(inner: Any) -> Any:
    numbers = st.builds(
        lambda test, a, b, op: op(terms.choose(test, a, b), a),
        inner,
        st.sampled_from([*CELLS, terms.const(-1)]),
        st.sampled_from(CELLS),
        st.sampled_from([terms.minimum, terms.maximum, lambda a, b: a + b, lambda a, b: a - b]),
    )
    return st.one_of(
        st.builds(terms.negate, inner),
        st.builds(terms.conjunction, inner, inner, inner),
        st.builds(terms.disjunction, inner, inner),
        st.builds(lambda a, b: a < b, numbers, numbers),
    )


@settings(deadline=None, max_examples=150)
@given(condition=st.recursive(CONDITIONS, combined, max_leaves=12), dtype=st.sampled_from([np.int8, np.int16]))
def test_any_condition_is_as_in_the_batch_interpreter(condition: Term, dtype: Any) -> None:
    draw = np.random.default_rng(3)
    bounds = [(-1, 3)] * 3 + [(-1, 2), (0, 7), (0, 7)]
    columns = np.array([draw.integers(low, high + 1, ROWS) for low, high in bounds], dtype=dtype)
    kernel = Kernel(condition, dtype, ROWS)
    wanted = np.broadcast_to(Block(columns)(condition), (ROWS,))
    assert (kernel(columns) == wanted).all()
    assert (kernel(columns[:, ::-1].copy()) == wanted[::-1]).all()


def test_each_term_is_computed_once_in_few_buffers(model: Any) -> None:
    system = model("kip-320").system
    every = terms.conjunction(*(part for parts in Promises.of(system).conditions.values() for part in parts))
    source = Kernel(every, np.int8, 8).source
    calls = [line.rpartition(", out=")[0] for line in source.splitlines()[1:-1]]
    assert len(calls) < 300
    assert len({line.rpartition("out=")[2] for line in source.splitlines()[1:-1]}) < 32
