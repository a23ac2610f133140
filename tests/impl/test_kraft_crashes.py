"""Crashes at random points of a KIP-631 cluster, and the planted defects that they find."""

from __future__ import annotations

import os

import pytest

from .kraft_crashes import CrashFailure, Story, main, play_many
from .kraft_faults import CRASH_FAULTS

pytestmark = pytest.mark.draws

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
STORIES = 30
"""Stories that a defect may survive at most."""


def test_every_acknowledged_change_survives_and_every_image_is_equal() -> None:
    crashes, acknowledged, snapshots = play_many(40, seed=1)
    assert min(crashes["controller"], crashes["broker"], crashes["rack"]) > 1 and snapshots > 30
    kinds = {"CreateTopics", "DeleteTopics", "IncrementalAlterConfigs", "Produce", "shutdown"}
    assert acknowledged.keys() >= kinds


@pytest.mark.nightly(seconds=900)
@pytest.mark.parametrize("seed", range(2, 7) if LONG else [2])
def test_every_acknowledged_change_survives_5_000_crashes(seed: int) -> None:
    crashes, _, _ = play_many(5_000, seed)
    assert min(crashes.values()) > 500


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(10, 3)
    assert capsys.readouterr().out.startswith("seed 3: ")


def test_same_seed_same_story() -> None:
    def told(seed: int) -> object:
        story = Story(seed)
        story.play(3)
        return story.rack.operations, story.rack.net.counts, story.rack.ledger.entries, story.acknowledged

    assert told(5) == told(5)
    assert told(5) != told(6)


def play_stories() -> None:
    for seed in range(STORIES):
        Story(seed).play()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CRASH_FAULTS)
def test_each_defect_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stories of ``play_many`` without it are clean."""
    CRASH_FAULTS[name](monkeypatch)
    with pytest.raises(CrashFailure):
        play_stories()
