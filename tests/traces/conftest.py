"""Models and runs that the tests of traces share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import count

import pytest
from fencepost.model.core.ground import State, ground
from fencepost.model.explore import explore
from fencepost.model.explore.result import Query
from fencepost.model.protocols.fencing import fencing
from fencepost.traces.record import run_of
from fencepost.traces.stepper import CompiledStepper, Stepper, TakenStep

Model = Callable[..., CompiledStepper]
Walk = Callable[[Stepper, Sequence[int]], list[TakenStep]]
Counterexample = Callable[[str], tuple[TakenStep, ...]]
Shortest = Callable[[Stepper, Callable[[State], bool]], list[TakenStep]]


@cache
def _model(
    variant: str, replicas: int, log_size: int, max_records: int, max_leader_epoch: int, drop: str
) -> CompiledStepper:
    traced = fencing.traced(variant)
    constants = {
        "replicas": replicas,
        "log_size": log_size,
        "max_records": max_records,
        "max_leader_epoch": max_leader_epoch,
    }
    return CompiledStepper(ground(traced.drop(drop) if drop else traced, constants))


@pytest.fixture(scope="session")
def model() -> Model:
    """A variant at constants (replicas, log size, records, leader epoch), compiled once; ``drop``: less a guard."""

    def build(variant: str = "kip-320", *constants: int, drop: str = "") -> CompiledStepper:
        replicas, log_size, max_records, max_leader_epoch = constants or (3, 2, 2, 2)
        return _model(variant, replicas, log_size, max_records, max_leader_epoch, drop)

    return build


@pytest.fixture(scope="session")
def walk() -> Walk:
    """A walk through a model: the n-th number chooses among the steps that can happen in the n-th state."""

    def go(stepper: Stepper, choices: Sequence[int]) -> list[TakenStep]:
        state, run = stepper.system.initial, []
        for choice in choices:
            steps = stepper.every(state)
            if not steps:
                break
            run.append(steps[choice % len(steps)])
            state = run[-1].state
        return run

    return go


@cache
def _counterexample(variant: str) -> tuple[TakenStep, ...]:
    answer = explore(Query.of(_model(variant, 3, 2, 2, 2, "").system))
    assert answer.path is not None
    return run_of(answer.path)


@pytest.fixture(scope="session")
def counterexample() -> Counterexample:
    """The explorer's shortest run of an old variant at 3/2/2/2 to a state that breaks an invariant."""
    return _counterexample


@pytest.fixture(scope="session")
def shortest() -> Shortest:
    """A shortest run to a state with some property, by breadth-first search."""

    def search(stepper: Stepper, wanted: Callable[[State], bool]) -> list[TakenStep]:
        initial = stepper.system.initial
        came: dict[State, tuple[State, TakenStep] | None] = {initial: None}
        level = [initial]
        for _ in count():
            following = []
            for state in level:
                if wanted(state):
                    run = []
                    while (link := came[state]) is not None:
                        run.append(link[1])
                        state = link[0]
                    return run[::-1]
                for step in stepper.every(state):
                    if step.state not in came:
                        came[step.state] = (state, step)
                        following.append(step.state)
            assert following, "no state has the property"
            level = following
        raise AssertionError

    return search
