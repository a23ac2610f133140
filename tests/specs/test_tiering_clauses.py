"""The rows of ``specs/CLAUSES.md`` about KIP-1023 name nothing that does not exist, and leave no rule unexplained."""

from __future__ import annotations

import re

import pytest
from fencepost.model.protocols.tiering import tiering

from .clauses import ROOT, Clause, faults, read_rows, told_of_proofs

# What KIP-405 and KIP-950 have, how replicas agree, and failures.
NOT_ITS_OWN = {
    *("elect_leader", "elect_unclean_leader", "become_follower", "leader_write", "leader_inc_high_watermark"),
    *("leader_shrink_isr", "replace_replica", "end_transaction"),
    *("copy_segment", "increment_log_start", "delete_segment"),
    *("crash_while_building", "copy_anew"),
}
HOLES = {f"TH{number}" for number in range(1, 7)}


def text_of(name: str) -> str:
    return (ROOT / "specs" / name).read_text(encoding="utf-8")


def rows_of(text: str) -> tuple[list[Clause], list[tuple[int, str]]]:
    return read_rows(text, "TS", "HLMK", "T")


def test_every_name_in_the_table_exists() -> None:
    clauses, outside = rows_of(text_of("CLAUSES.md"))
    numbers = [int(clause.number[2:]) for clause in clauses] + [number for number, _ in outside]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len({clause.sentence for clause in clauses}) == len(clauses) >= 40
    assert [fault for clause in clauses for fault in faults(tiering, clause, text_of("DEVIATIONS.md"))] == []


def test_every_action_and_promise_comes_from_a_sentence() -> None:
    clauses, _ = rows_of(text_of("CLAUSES.md"))
    named = {name.rpartition(": ")[2].partition(".")[0] for clause in clauses for name in clause.became}
    assert set(tiering.actions) - NOT_ITS_OWN <= named
    # KIP-405 promises the one.
    assert {*tiering.invariants, *tiering.liveness} - {"segments_agree"} <= named


def test_every_hole_that_is_of_a_sentence_stands_beside_it() -> None:
    """TH1 and TH4 are holes where the text says nothing."""
    clauses, _ = rows_of(text_of("CLAUSES.md"))
    told = set(re.findall(r"^\| (TH\d) \|", text_of("DEVIATIONS.md"), flags=re.MULTILINE))
    assert told == HOLES
    assert {row for clause in clauses for row in clause.rows if row.startswith("TH")} == HOLES - {"TH1", "TH4"}


def test_it_is_told_of_every_promise_whether_it_is_proved() -> None:
    proved, bounded = told_of_proofs(text_of("DEVIATIONS.md"), "What is proved of tiering, and what is bounded")
    assert (proved, bounded) == (set(tiering.invariants), set(tiering.liveness))
    table = "\n### Here\n| `a`, `b` | proved |\n| `c` | **bounded** |\n\n### There\n| `d` | proved |"
    assert told_of_proofs(table, "Here") == ({"a", "b"}, {"c"})


def test_every_variant_is_in_the_deviations() -> None:
    section = text_of("DEVIATIONS.md").partition("## tiering (KIP-1023)")[2]
    assert [name for name in tiering.variants if f"`{name}`" not in section] == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| TS1 | x | y | `delete_local.no_such` | `tests/specs/none.py::test_x` |", "no guard"),
        ("| TS1 | x | y | `kip-1023: delete_segment.epoch_is_newest` | `tests/specs/none.py::test_x` |", "no guard"),
        ("| TS1 | x | y | `no_gap` | `tests/specs/none.py::test_x` |", "no invariant"),
        ("| TS1 | x | y | `offsets_in_order`, TH99 | `tests/specs/none.py::test_x` |", "no row TH99"),
        ("| TS1 | x | y | `offsets_in_order` | `tests/model/test_tiering.py::test_none` |", "no test"),
        ("| TS1 | x | y | TH1 | |", "became nothing"),
    ],
)
def test_a_name_that_does_not_exist_is_found(row: str, fault: str) -> None:
    (clause,), _ = rows_of(row)
    assert any(fault in found for found in faults(tiering, clause, "\n| TH1 | ..."))


def test_a_clean_row_has_no_fault() -> None:
    row = (
        "| TS1 | x | y | `offsets_in_order`, TH1 "
        "| `tests/specs/test_tiering_clauses.py::test_a_clean_row_has_no_fault` |"
    )
    (clause,), _ = rows_of(row)
    assert faults(tiering, clause, "\n| TH1 | ...") == []
