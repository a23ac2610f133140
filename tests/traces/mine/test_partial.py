"""What is told of states with holes is so, whatever the holes hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from fencepost.model.core import terms
from fencepost.model.core.terms import Sort
from fencepost.model.interpret.batch import Block
from fencepost.traces.corpus.convert import events_of
from fencepost.traces.corpus.layout import CorpusHeader, CorpusLayout
from fencepost.traces.mine.partial import PartialBlock
from fencepost.traces.mine.promises import Promises
from fencepost.traces.record import record
from hypothesis import given, settings
from hypothesis import strategies as st

ROWS = 400


def columns_of(system: Any, draw: np.random.Generator) -> np.ndarray[Any, Any]:
    """Any values of their domains: reachable or not is no matter here."""
    cells = system.layout.cells
    return np.array([draw.integers(cell.low, cell.high + 1, ROWS) for cell in cells], dtype=np.int8)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.0, 0.3, 0.7, 0.95, 1.0]))
def test_what_is_told_does_not_depend_on_what_was_not_observed(model: Any, seed: int, share: float) -> None:
    system = model("kip-320", 2, 2, 2, 2).system
    draw = np.random.default_rng(seed)
    columns = columns_of(system, draw)
    seen = draw.random(columns.shape) < share
    conditions = [part for parts in Promises.of(system).conditions.values() for part in parts]
    conditions += [guard for instance in system.instances for _, guard in instance.guards]
    partial, value = PartialBlock(columns, seen), Block(columns)
    for _ in range(4):
        other = Block(np.where(seen, columns, columns_of(system, draw)))
        for condition in conditions:
            told = np.broadcast_to(partial.told(condition), (ROWS,))
            assert (np.broadcast_to(value(condition) == other(condition), (ROWS,)) | ~told).all()
            if share == 1.0:
                assert told.all()


def test_a_value_is_told_where_one_operand_decides() -> None:
    a, b, c = (terms.node("cell", (), Sort.INT, number) for number in range(3))
    columns = np.array([[1], [2], [3]], dtype=np.int8)
    seen = np.array([[True], [False], [True]])
    partial = PartialBlock(columns, seen)

    def told(term: Any) -> bool:
        return bool(np.broadcast_to(partial.told(term), (1,))[0])

    assert told(terms.conjunction(a == 2, b == 2)) and not told(terms.conjunction(a == 1, b == 2))
    assert told(terms.disjunction(a == 1, b == 2)) and not told(terms.disjunction(a == 2, b == 2))
    assert told(terms.choose(a == 1, c, b)) and not told(terms.choose(a == 2, c, b))
    assert told(terms.choose(b == 1, c, c + 0)) and not told(b + 1)
    assert partial.broken(terms.conjunction(a == 2, b == 2)).tolist() == [True]
    assert partial.broken(terms.conjunction(a == 1, b == 9)).tolist() == [False]


def test_a_promise_counts_as_broken_only_where_that_is_certain(model: Any, counterexample: Any) -> None:
    """The last state of a counterexample breaks its promise; without the high watermarks nobody can know."""
    system = model("truncate-to-hw").system
    trace = record(system, counterexample("truncate-to-hw"))
    layout = CorpusLayout.of(CorpusHeader("fencing", "truncate-to-hw", system.constants))
    events = events_of(layout, [(0, trace)])
    promises = Promises.of(system)
    found = {name: rows.tolist() for name, rows in promises.broken(events).items()}
    assert found and set(map(tuple, found.values())) == {(len(trace) - 1,)}
    seen = np.ones(events.cells.shape, dtype=np.bool_)
    assert {name: rows.tolist() for name, rows in promises.broken(replace(events, seen=seen)).items()} == found
    for cell in layout.cells:
        seen[cell.number] = cell.variable.name not in ("hw", "record_id")
    assert promises.broken(replace(events, seen=seen)) == {}
