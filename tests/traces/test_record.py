"""Recording runs: what is observed, and that nothing but a run of the model is recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fencepost.model.core.errors import BadInput, ProtocolError
from fencepost.model.explore.reference import explore_reference
from fencepost.model.explore.result import Query
from fencepost.traces.observe import decode, encode, observe
from fencepost.traces.record import record
from hypothesis import given, settings
from hypothesis import strategies as st

Model = Any
Walk = Any


@pytest.mark.parametrize("constants", [(2, 2, 2, 2), (3, 2, 2, 2)])
def test_every_value_of_every_cell_is_written_and_read_back(model: Model, constants: tuple[int, ...]) -> None:
    for cell in model("kip-320", *constants).layout.cells:
        for value in range(cell.low, cell.high + 1):
            told = decode(cell, value)
            assert encode(cell, told) == value
            if isinstance(told, tuple):
                assert encode(cell, list(told)) == value
        for value in (cell.low - 1, cell.high + 1, True, "0", 0.0, [0.0], [True], [-1], {}):
            if value == -1 and cell.low == -1 and cell.variable.values.sort.value == "int":
                continue
            with pytest.raises(ValueError, match="holds"):
                encode(cell, value)


def test_a_record_observes_what_it_is_told_to(model: Model, walk: Walk) -> None:
    stepper = model()
    run = walk(stepper, range(9))
    full = record(stepper.system, run)
    assert full.header.complete
    assert full.header.constants == stepper.system.constants
    assert all(len(event.observed) == len(stepper.layout.cells) for event in full.events)
    assert [event.call for event in full.events] == [step.call for step in run]
    assert full.events[-1].observed == observe(stepper.layout, run[-1].state)
    part = record(stepper.system, run, variables=["leo", "quorum_isr"], replicas=[1])
    assert {tuple(event.observed) for event in part.events} == {("leo[1]", "quorum_isr")}
    bare = record(stepper.system, run, variables=[])
    assert all(not event.observed for event in bare.events)


def test_an_explorer_path_is_recorded_as_it_is(model: Model) -> None:
    system = model("truncate-to-hw").system
    found = explore_reference(Query.of(system))
    assert found.path is not None
    trace = record(system, found.path)
    assert [event.action for event in trace.events] == [step.instance.action for step in found.path]


@pytest.mark.parametrize(("keywords", "words"), [({"variables": ["lso"]}, "lso"), ({"replicas": [3]}, "replica 3")])
def test_observing_what_is_not_there(model: Model, keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        record(model().system, [], **keywords)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20), st.data())
def test_what_is_no_run_is_not_recorded(model: Model, walk: Walk, choices: list[int], data: st.DataObject) -> None:
    stepper = model()
    run = walk(stepper, choices)
    record(stepper.system, run)
    at = data.draw(st.integers(0, len(run) - 1))
    number = data.draw(st.sampled_from(range(len(stepper.layout.cells))))
    state = list(run[at].state)
    state[number] += 1
    run[at] = replace(run[at], state=tuple(state))
    with pytest.raises(ProtocolError, match=f"step {at + 1} of the run.*{stepper.layout.cells[number].variable.name}"):
        record(stepper.system, run)


def test_a_refused_and_an_unknown_step_are_not_recorded(model: Model, walk: Walk) -> None:
    stepper = model()
    run = walk(stepper, range(4))
    with pytest.raises(ProtocolError, match=r"step 1 of the run, leader_write.*presumes_leadership"):
        record(stepper.system, [replace(run[0], action="leader_write", params=(("leader", 0),)), *run[1:]])
    with pytest.raises(ProtocolError, match=r"step 1 of the run, follower_truncate.*no such action"):
        record(stepper.system, [replace(run[0], action="follower_truncate"), *run[1:]])
