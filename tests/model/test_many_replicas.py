"""The batch engine where cells have large domains and a state has many successors."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore import Limits, Query, explore
from fencepost.model.explore import batch as explorer
from fencepost.model.interpret import batch as interpreter

CONSTANTS = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 1}


def answer(**constants: int) -> dict[str, object]:
    system = ground(PROTOCOLS["fencing"].traced(None), CONSTANTS | constants)
    found = explore(Query.of(system, limits=Limits(max_states=20_000)), "batch")
    return {"distinct": found.distinct, "depth": found.depth, "transitions": found.transitions, "seen": found.witnesses}


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int16, np.int32, np.int64])
def test_choosing_by_bits_is_choosing(dtype: type) -> None:
    draw = np.random.default_rng(11)
    low, high = (0, 2) if dtype is bool else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    values = [draw.integers(low, high, size=500, endpoint=dtype is not bool).astype(dtype) for _ in range(2)]
    for condition in (draw.integers(0, 2, size=500).astype(bool), np.asarray(True), np.asarray(False)):
        for then, otherwise in product((values[0], values[0][0], np.asarray(values[0][1])), (values[1], values[1][0])):
            found = interpreter._chosen(condition, np.asarray(then), np.asarray(otherwise))
            assert np.array_equal(found, np.where(condition, then, otherwise)) and found.dtype == dtype


def test_blocks_of_any_size_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answer()
    for rows in (1, 7, 100):
        monkeypatch.setattr(explorer, "BLOCK", rows)
        assert answer() == whole
