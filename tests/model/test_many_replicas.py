"""The batch engine where cells have large domains and a state has many successors."""

from __future__ import annotations

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


def test_a_cell_whose_domain_has_no_table_is_computed_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = answer()
    monkeypatch.setattr(interpreter, "TABLE", 1)
    assert answer() == looked_up


def test_blocks_of_any_size_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answer()
    for rows in (1, 7, 100):
        monkeypatch.setattr(explorer, "BLOCK", rows)
        assert answer() == whole
