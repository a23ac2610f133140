"""The rows of ``specs/CLAUSES.md`` about consumers name nothing that does not exist, and leave no guard unexplained."""

from __future__ import annotations

import pytest
from fencepost.model.protocols.truncation import truncation

from .clauses import ROOT, faults, read_rows


def test_every_name_in_the_table_exists() -> None:
    clauses, outside = read_rows((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"), "C", "HU")
    deviations = (ROOT / "specs" / "DEVIATIONS.md").read_text(encoding="utf-8")
    numbers = [int(clause.number[1:]) for clause in clauses] + [number for number, _ in outside]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert len({clause.sentence for clause in clauses}) == len(clauses) > 35
    assert [fault for clause in clauses for fault in faults(truncation, clause, deviations)] == []


def test_every_rule_about_consumers_comes_from_a_sentence() -> None:
    """What kip-320 has of the consumer and no-epoch has not, and every promise that is not about the partition."""
    clauses, _ = read_rows((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"), "C", "HU")
    named = {name.rpartition(": ")[2].partition(".")[0] for clause in clauses for name in clause.became}
    added = {a.name for a in truncation.traced("kip-320").actions} - {
        a.name for a in truncation.traced("no-epoch").actions
    }
    assert added
    assert added <= named
    assert set(truncation.traced().invariants) - {"logs_match", "hw_at_leaders"} <= named


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| C1 | x | y | `consumer_fetch.no_such` | `tests/specs/none.py::test_x` |", "no guard"),
        ("| C1 | x | y | `no-epoch: find_divergence.asks_leader` | `tests/specs/none.py::test_x` |", "no guard"),
        ("| C1 | x | y | `no_gap` | `tests/specs/none.py::test_x` |", "no invariant"),
        ("| C1 | x | y | `no_silent_gap`, H99 | `tests/specs/none.py::test_x` |", "no row H99"),
        ("| C1 | x | y | `no_silent_gap` | `tests/model/test_truncation.py::test_none` |", "no test"),
        ("| C1 | x | y | H1 | |", "became nothing"),
    ],
)
def test_a_name_that_does_not_exist_is_found(row: str, fault: str) -> None:
    (clause,), _ = read_rows(row, "C", "HU")
    assert any(fault in found for found in faults(truncation, clause, "\n| H1 | ..."))
