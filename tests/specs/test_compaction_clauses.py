"""The rows of ``specs/CLAUSES.md`` about KIP-280 name nothing that does not exist, and leave no rule unexplained."""

from __future__ import annotations

import re

import pytest
from fencepost.model.protocols.compaction import compaction

from .clauses import ROOT, faults, read_rows, told_of_proofs

# Replication is what it hangs on, and the rest is a consumer's or a segment's that no sentence is about.
NOT_ITS_OWN = {
    *("become_follower", "leader_inc_high_watermark", "leader_shrink_isr"),
    *("roll_segment", "consumer_start_over"),
}


def text_of(name: str) -> str:
    return (ROOT / "specs" / name).read_text(encoding="utf-8")


def test_every_name_in_the_table_exists() -> None:
    clauses, outside = read_rows(text_of("CLAUSES.md"), "L", "XYZL")
    numbers = [int(clause.number[1:]) for clause in clauses] + [number for number, _ in outside]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len({clause.sentence for clause in clauses}) == len(clauses) >= 30
    assert [fault for clause in clauses for fault in faults(compaction, clause, text_of("DEVIATIONS.md"))] == []


def test_every_action_and_promise_of_the_kip_comes_from_a_sentence() -> None:
    clauses, _ = read_rows(text_of("CLAUSES.md"), "L", "XYZL")
    named = {name.rpartition(": ")[2].partition(".")[0] for clause in clauses for name in clause.became}
    assert set(compaction.actions) - NOT_ITS_OWN <= named
    assert set(compaction.invariants) | set(compaction.liveness) <= named


def test_it_is_told_of_every_promise_whether_it_is_proved() -> None:
    proved, bounded = told_of_proofs(text_of("DEVIATIONS.md"), "What is proved of compaction, and what is bounded")
    assert (proved, bounded) == (set(compaction.invariants), set(compaction.liveness))


def test_every_hole_is_in_the_rows() -> None:
    """Each of the eight holes stands beside the sentence that has it."""
    clauses, _ = read_rows(text_of("CLAUSES.md"), "L", "XYZL")
    told = set(re.findall(r"^\| (X\d) \|", text_of("DEVIATIONS.md"), flags=re.MULTILINE))
    beside = {row for clause in clauses for row in clause.rows if row.startswith("X")}
    assert told == beside == {f"X{number}" for number in range(1, 9)}


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| L1 | x | y | `remove_record.no_such` | `tests/specs/none.py::test_x` |", "no guard"),
        ("| L1 | x | y | `kip-280: remove_tombstone.readers_in_time` | `tests/specs/none.py::test_x` |", "no guard"),
        ("| L1 | x | y | `no_isr` | `tests/specs/none.py::test_x` |", "no invariant"),
        ("| L1 | x | y | `winner_is_kept`, X99 | `tests/specs/none.py::test_x` |", "no row X99"),
        ("| L1 | x | y | `winner_is_kept` | `tests/model/test_compaction.py::test_none` |", "no test"),
        ("| L1 | x | y | X1 | |", "became nothing"),
    ],
)
def test_a_name_that_does_not_exist_is_found(row: str, fault: str) -> None:
    (clause,), _ = read_rows(row, "L", "XYZL")
    assert any(fault in found for found in faults(compaction, clause, "\n| X1 | ..."))


def test_a_clean_row_has_no_fault() -> None:
    row = (
        "| L1 | x | y | `winner_is_kept`, X1 "
        "| `tests/specs/test_compaction_clauses.py::test_a_clean_row_has_no_fault` |"
    )
    (clause,), _ = read_rows(row, "L", "XYZL")
    assert faults(compaction, clause, "\n| X1 | ...") == []
