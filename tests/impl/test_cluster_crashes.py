"""Crashes at random points of a cluster at work, and the defects that they find."""

from __future__ import annotations

import os

import pytest
from fencepost.conformance.mutants.patched import patched

from .cluster_crashes import PARTITIONS, CrashFailure, Story, main, play_many
from .cluster_faults import FAULTS
from .ledger import Violation
from .rack import Parts

pytestmark = pytest.mark.draws

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
STORIES = 200
"""Stories of ten crash points each, searched if a recorded story finds nothing: the 2,000 points of the command."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(2, 22) if LONG else [2])
def test_every_promise_survives_every_crash(seed: int) -> None:
    crashes = play_many(2000 if LONG else 150, seed)
    assert min(crashes["broker"], crashes["controller"], crashes["rack"]) > 10


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(20, 1)
    assert capsys.readouterr().out.startswith("seed 1: 20 crashes (")


def test_same_seed_same_story() -> None:
    def told(seed: int) -> object:
        story = Story(seed)
        story.play()
        return story.rack.operations, story.rack.net.counts, story.ledger.committed, story.reader.acknowledged

    assert told(5) == told(5)
    assert told(5) != told(6)


def test_a_story_is_more_than_its_crashes() -> None:
    """Both kinds of acks, commits that are acknowledged, elections: or the checks would check nothing."""
    story = Story(4)
    story.play()
    rows = [value for partition in PARTITIONS for _, value in story.ledger.committed[partition]]
    assert sum(value.startswith(b"p") for value in rows) > 50 and sum(value.startswith(b"s") for value in rows) > 2
    assert story.reader.acknowledged.keys() == set(PARTITIONS) and story.reader.lives > 1
    assert min(story.rack.controller.partition(partition).leader_epoch for partition in PARTITIONS) > 5


@pytest.mark.parametrize("name", FAULTS)
def test_recorded_story_finds_each_defect(name: str) -> None:
    """Replay the recorded seed with the defect and without it. A stale seed fails with one that finds the defect."""
    fault = FAULTS[name]
    with patched(*fault.patches) as copy:
        parts = Parts.of(copy.__name__)
        cause = cause_in(fault.story, parts)
        if cause is None:
            finds = next((seed for seed in range(STORIES) if cause_in(seed, parts) is not None), None)
            pytest.fail(f"story {fault.story} did not find it; of {STORIES} stories the first that does: {finds}")
        kinds = Violation, parts.log.LogError, parts.zk_controller.ControllerError
        assert isinstance(cause, kinds), f"an accident of the patch itself: {cause!r}"
    Story(fault.story).play()


def cause_in(seed: int, parts: Parts) -> BaseException | None:
    """Return the cause of the failure with this seed, or None if the run is clean."""
    try:
        Story(seed, parts).play()
    except CrashFailure as failure:
        return failure.__cause__
    return None
