"""``benchmarks/compaction.py``: KIP-630's read volumes, in small, from the real cleaner and the real snapshots."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module("compaction")


@pytest.mark.parametrize(("ratio", "copied"), [(0.5, 2.0), (1 / 3, 3.0)])
def test_what_compaction_reads_of_a_log(program: Any, tmp_path: Path, ratio: float, copied: float) -> None:
    """By Kafka's definition of the ratio a half costs 2 MB/s to copy; the text's 3 MB/s are those of a third."""
    read, seconds, done = program.compaction_volumes(str(tmp_path), 10 * program.MB, 2, ratio)
    per_second = [
        sum(getattr(each.counts, name) for each in done) / seconds / program.MB
        for name in ("mapped_bytes", "copied_bytes")
    ]
    assert per_second == pytest.approx([1, copied], rel=0.1)
    assert read["head"] / seconds / program.MB == pytest.approx(1, rel=0.1)
    counted = sum(each.counts.mapped_bytes + each.counts.copied_bytes for each in done)
    assert counted <= read["cleaning"] <= 1.05 * counted and read["looking for what to clean"] < 0.05 * counted


def test_what_snapshots_read_of_a_log(program: Any, tmp_path: Path) -> None:
    """The head once, and nothing for the snapshot: it is written from memory."""
    read, seconds = program.snapshot_volumes(str(tmp_path), 3 * program.MB, 2)
    assert read["head"] / seconds / program.MB == pytest.approx(1, rel=0.1) and not read["snapshot"]
