"""The obligations of ``fencepost check`` about systems that run freely."""

from __future__ import annotations

import pytest
from fencepost.conformance.check.running import RUNS, running_tasks
from fencepost.conformance.check.task import Task
from fencepost.conformance.harness import bound_protocols, held_to
from fencepost.conformance.simulation.model_system import ModelSystem
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore.result import Verdict


def tasks(protocol: str) -> list[Task]:
    return running_tasks(REGISTRY[protocol])


@pytest.mark.parametrize("number", range(len(tasks("fencing"))))
def test_what_comes_along_is_followed_and_a_system_without_a_guard_is_not(number: int) -> None:
    task = tasks("fencing")[number]
    found = task.run(lambda _: None)
    assert found.verdict is task.expected and found.count > RUNS and found.unit == "events"
    if task.expected is Verdict.VIOLATED:
        assert "FENCED_REPLICA" in found.detail or "is" in found.detail


def test_there_is_a_must_fail_twin_and_an_idle_system_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {task.expected for task in tasks("fencing")} == {Verdict.HOLDS, Verdict.VIOLATED}
    monkeypatch.setattr(ModelSystem, "pending", lambda _: ())
    (twin,) = [task for task in tasks("fencing") if task.expected is Verdict.VIOLATED]
    assert twin.run(lambda _: None).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("protocol", list(bound_protocols()))
def test_what_is_taken_away_is_of_the_text_that_systems_are_held_to(protocol: str) -> None:
    """The plan's guards are the protocol's, and running systems may be held to another text."""
    guards = {f"{action.name}.{guard}" for action in held_to(protocol).traced().actions for guard, _ in action.guards}
    gone = [
        task.name.removeprefix("a system without ") for task in tasks(protocol) if task.expected is Verdict.VIOLATED
    ]
    assert set(gone) <= guards
