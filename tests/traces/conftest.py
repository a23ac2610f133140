"""Models and runs that the tests of traces share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import count

import pytest
from fencepost.model.core.ground import State, ground
from fencepost.model.fencing import fencing
from fencepost.traces.stepper import CompiledStepper, Happened, Stepper

Model = Callable[..., CompiledStepper]
Walk = Callable[[Stepper, Sequence[int]], list[Happened]]
Shortest = Callable[[Stepper, Callable[[State], bool]], list[Happened]]


@cache
def _model(variant: str, replicas: int, log_size: int, max_records: int, max_leader_epoch: int, drop: str) -> object:
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
        found = _model(variant, *(constants or (3, 2, 2, 2)), drop)
        assert isinstance(found, CompiledStepper)
        return found

    return build


@pytest.fixture(scope="session")
def walk() -> Walk:
    """A walk through a model: the n-th number chooses among the steps that can happen in the n-th state."""

    def go(stepper: Stepper, choices: Sequence[int]) -> list[Happened]:
        state, run = stepper.system.initial, []
        for choice in choices:
            steps = stepper.every(state)
            if not steps:
                break
            run.append(steps[choice % len(steps)])
            state = run[-1].state
        return run

    return go


@pytest.fixture(scope="session")
def shortest() -> Shortest:
    """A shortest run to a state with some property, by breadth-first search."""

    def search(stepper: Stepper, wanted: Callable[[State], bool]) -> list[Happened]:
        initial = stepper.system.initial
        came: dict[State, tuple[State, Happened] | None] = {initial: None}
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
