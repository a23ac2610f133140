"""Crashes at random points of tiered storage, and the planted defects that they find."""

from __future__ import annotations

import os

import pytest

from .tiering_crashes import CrashFailure, Story, main, play_many
from .tiering_faults import CRASH_FAULTS

pytestmark = pytest.mark.draws
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
STORIES = 40
"""Stories that a defect may survive at most."""


def test_everything_acknowledged_is_served_by_every_broker() -> None:
    crashes, acknowledged, emptied = play_many(60, seed=1)
    assert min(crashes["broker"], crashes["store"], crashes["store's disk"]) > 5
    assert acknowledged > 300 and emptied > 5


@pytest.mark.nightly(seconds=400)
@pytest.mark.parametrize("seed", range(2, 6) if LONG else [2])
def test_everything_acknowledged_is_served_after_3_000_crashes(seed: int) -> None:
    crashes, _, _ = play_many(3_000, seed)
    assert min(crashes["broker"], crashes["store"], crashes["store's disk"]) > 400


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(10, 3)
    assert capsys.readouterr().out.startswith("seed 3: ")


def test_same_seed_same_story() -> None:
    def told(seed: int) -> object:
        story = Story(seed)
        story.play(3)
        return story.rack.network.counts, story.acknowledged, story.last_operation, story.rack.objects()

    assert told(5) == told(5)
    assert told(5) != told(6)


def play_stories() -> None:
    for seed in range(STORIES):
        Story(seed).play(4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CRASH_FAULTS)
def test_each_defect_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stories of ``play_many`` without it are clean."""
    CRASH_FAULTS[name](monkeypatch)
    with pytest.raises(CrashFailure):
        play_stories()
