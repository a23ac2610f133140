"""The cleaner against a naive table: each survivor is its key's winner, and readers end in the same state."""

from __future__ import annotations

import random

import pytest
from fencepost.impl.compaction import Strategy
from fencepost.impl.files import SimulatedFiles

from .compacted import STRATEGIES, Place, fill, naive, settings, stored


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda each: each.kind.value)
@pytest.mark.parametrize("memory", [80, 4096])
def test_survivors_are_the_winners_and_a_reader_ends_in_the_same_state(strategy: Strategy, memory: int) -> None:
    """Logs cleaned again and again while they grow; small maps need several passes."""
    for seed in range(10):
        chance = random.Random(seed)
        place = Place(SimulatedFiles(seed), settings(strategy), memory=memory)
        log, passes = place.log, 0
        for _ in range(6):
            fill(log, chance, chance.randrange(1, 8), place.now)
            before, table, end = stored(log), place.table(strategy), log.end
            winners = naive(before, strategy)
            assert table == {key: each.value for key, each in winners.items() if each.value is not None}
            passes += len(place.clean())
            after = stored(log)
            assert log.end == end and place.table(strategy) == table, (seed, strategy)
            assert set(after) <= set(before)
            kept = {each.key: each for each in after}
            assert len(kept) == len(after)
            for key, each in kept.items():
                assert winners[key] == each, (seed, strategy)
            lost = set(winners) - set(kept)
            assert all(winners[key].value is None for key in lost)
            place.now += chance.choice((0, 50, 200))
        assert passes >= 6 if memory > 100 else passes > 6
