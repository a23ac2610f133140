"""Crashes at random points of cleaning, and the defects that they find. 3,000 points and more at night."""

from __future__ import annotations

import pytest

from .compaction_crashes import CrashFailure, run
from .compaction_faults import FAULTS


@pytest.mark.parametrize("seed", range(2))
def test_every_crash_is_recovered_from(seed: int) -> None:
    found = run(150, seed)
    assert sum(found.values()) == 150
    assert any("cleaned" in kind for kind in found) and any("swap" in kind for kind in found)


@pytest.mark.nightly(seconds=150)
def test_many_crashes_are_recovered_from() -> None:
    found = run(8_000, 280)
    assert sum(found.values()) == 8_000
    assert sum(count for kind, count in found.items() if "swap" in kind) > 400


@pytest.mark.parametrize("name", FAULTS)
def test_each_defect_of_the_cleaner_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    with pytest.raises(CrashFailure):
        run(2500, 1)
