"""The rows of ``specs/CLAUSES.md`` about KIP-630 name nothing that does not exist, and leave no rule unexplained."""

from __future__ import annotations

import re

import pytest
from fencepost.model.protocols.snapshots import snapshots

from .clauses import ROOT, faults, read_rows

# What KIP-595 has of elections and replication, on which the KIP builds, and the network's part.
NOT_ITS_OWN = {"become_candidate", "become_follower", "leader_write", "leader_inc_high_watermark", "follower_truncate"}
FINER_STEPS = {"refuse_vote", "hear_vote", "follower_acknowledge"}


def test_every_name_in_the_table_exists() -> None:
    clauses, outside = read_rows((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"), "Q", "ABEF")
    deviations = (ROOT / "specs" / "DEVIATIONS.md").read_text(encoding="utf-8")
    numbers = [int(clause.number[1:]) for clause in clauses] + [number for number, _ in outside]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len({clause.sentence for clause in clauses}) == len(clauses) > 35
    assert [fault for clause in clauses for fault in faults(snapshots, clause, deviations)] == []


def test_every_action_and_promise_of_the_kip_comes_from_a_sentence() -> None:
    clauses, _ = read_rows((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"), "Q", "ABEF")
    named = {name.partition(".")[0] for clause in clauses for name in clause.became}
    network = {name for name in snapshots.actions if name.startswith(("hold_", "late_"))}
    # Whoever boots with a valid log does what the text has nothing to say of.
    running = {action.name for action in snapshots.traced("kip-630-quorum").actions}
    finer = FINER_STEPS | running - {action.name for action in snapshots.traced("kip-630-safe").actions}
    assert set(snapshots.actions) - NOT_ITS_OWN - finer - network - {"restart"} <= named
    # KIP-595 promises it, and every promise of KIP-630 rests on it.
    assert set(snapshots.invariants) - {"committed_below_high_watermark"} <= named


def test_every_hole_is_in_the_rows() -> None:
    """Each of the five holes stands beside the sentence that has it."""
    clauses, _ = read_rows((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"), "Q", "ABEF")
    deviations = (ROOT / "specs" / "DEVIATIONS.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| (A\d) \|", deviations, flags=re.MULTILINE))
    beside = {row for clause in clauses for row in clause.rows if row.startswith("A")}
    assert told == beside == {f"A{number}" for number in range(1, 6)}


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| Q1 | x | y | `follower_fetch.no_such` | `tests/specs/none.py::test_x` |", "no guard"),
        ("| Q1 | x | y | `no_lbo` | `tests/specs/none.py::test_x` |", "no invariant"),
        ("| Q1 | x | y | `logs_match`, A99 | `tests/specs/none.py::test_x` |", "no row A99"),
        ("| Q1 | x | y | `logs_match` | `tests/model/test_snapshots.py::test_none` |", "no test"),
        ("| Q1 | x | y | A1 | |", "became nothing"),
    ],
)
def test_a_name_that_does_not_exist_is_found(row: str, fault: str) -> None:
    (clause,), _ = read_rows(row, "Q", "ABEF")
    assert any(fault in found for found in faults(snapshots, clause, "\n| A1 | ..."))


def test_a_clean_row_has_no_fault() -> None:
    row = "| Q1 | x | y | `logs_match`, A1 | `tests/specs/test_snapshots_clauses.py::test_a_clean_row_has_no_fault` |"
    (clause,), _ = read_rows(row, "Q", "ABEF")
    assert faults(snapshots, clause, "\n| A1 | ...") == []
