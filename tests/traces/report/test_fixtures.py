"""The two stories that these tests are made on are runs of the fencing model, cell by cell."""

from __future__ import annotations

import pytest
from fencepost.model.protocols.fencing import fencing
from fencepost.traces.observe import observe
from fencepost.traces.run_report import Call, Moment, Story
from fencepost.traces.stepper import DirectStepper


@pytest.mark.parametrize("name", ["lost_record", "lasso"])
def test_every_moment_is_what_the_reference_gives(name: str, request: pytest.FixtureRequest) -> None:
    story: Story = request.getfixturevalue(name)
    stepper = DirectStepper(fencing.traced(story.variant), {key: int(str(n)) for key, n in story.constants.items()})
    state = stepper.layout.initial
    for moment in story.moments:
        if moment.action is not None:
            order = fencing.actions[moment.action].params
            after = stepper.reference.step(state, moment.action, tuple((key, moment.params[key]) for key in order))  # type: ignore[misc]
            assert after is not None, f"step {moment.step} is refused"
            state = after
        assert moment.state == Moment(moment.step, None, {}, observe(stepper.layout, state)).state
        enabled = [Call(step.action, dict(step.params)) for step in stepper.every(state)]
        assert sorted(map(repr, moment.enabled)) == sorted(map(repr, enabled))
        assert {breach.invariant for breach in moment.broken} == set(stepper.broken(state))
