"""The rows of ``specs/CLAUSES.md`` about KIP-631 name nothing that does not exist, and leave no rule unexplained."""

from __future__ import annotations

import re

import pytest
from fencepost.model.protocols.controller import controller

from .clauses import ROOT, faults, read_rows

# What KIP-595 has of elections, the data plane that hangs on it all, failures, and the removal of a topic: no sentence
# has a record for it (W9, a topic's removal has no record in the text).
NOT_ITS_OWN = {
    "remove_topic",
    *("elect_controller", "hear_of_epoch", "activate", "commit"),
    *("propose_expand", "propose_shrink", "refuse_member", "leader_write", "follower_fetch", "acknowledge"),
    *("crash_broker", "request_shutdown", "hear_registration", "drop_order"),
}


def text_of(name: str) -> str:
    return (ROOT / "specs" / name).read_text(encoding="utf-8")


def test_every_name_in_the_table_exists() -> None:
    clauses, outside = read_rows(text_of("CLAUSES.md"), "P", "GJIOW")
    # What was added later stands in the table that it belongs to.
    numbers = sorted([int(clause.number[1:]) for clause in clauses] + [number for number, _ in outside])
    assert numbers == list(range(1, len(numbers) + 1))
    assert len({clause.sentence for clause in clauses}) == len(clauses) >= 30
    assert [fault for clause in clauses for fault in faults(controller, clause, text_of("DEVIATIONS.md"))] == []


def test_every_action_and_promise_of_the_kip_comes_from_a_sentence() -> None:
    clauses, _ = read_rows(text_of("CLAUSES.md"), "P", "GJIOW")
    named = {name.rpartition(": ")[2].partition(".")[0] for clause in clauses for name in clause.became}
    assert set(controller.actions) - NOT_ITS_OWN - {"replay_metadata"} <= named
    # The quorum promises the one, and no sentence.
    assert set(controller.invariants) - {"one_leader_per_controller_epoch"} <= named


STRUCK = "### What the comparison strikes out"


def test_what_is_struck_out_is_in_no_row_and_has_rows_in_its_place() -> None:
    rows = re.findall(r"^\| (P\d+) \|[^|]*\| (.*?) \|", text_of("CLAUSES.md"), flags=re.MULTILINE)
    sentences = dict(rows)
    assert len(sentences) == len(set(sentences.values()))
    _, _, section = text_of("CLAUSES.md").partition(STRUCK)
    section, _, _ = section.partition("\n## ")
    struck = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(struck) > 15
    for _, line, instead in struck:
        assert line not in sentences.values()
        places = instead.rstrip(" |").split(", ")
        assert places and set(places) <= set(sentences), line


def test_every_hole_is_in_the_rows() -> None:
    """Each of the five holes stands beside the sentence that has it."""
    clauses, _ = read_rows(text_of("CLAUSES.md"), "P", "GJIOW")
    told = set(re.findall(r"^\| (G\d) \|", text_of("DEVIATIONS.md"), flags=re.MULTILINE))
    beside = {row for clause in clauses for row in clause.rows if row.startswith("G")}
    assert told == beside == {f"G{number}" for number in range(1, 6)}


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| P1 | x | y | `fence_broker.no_such` | `tests/specs/none.py::test_x` |", "no guard"),
        ("| P1 | x | y | `kip-631: begin_snapshot.of_own_epoch` | `tests/specs/none.py::test_x` |", "no guard"),
        ("| P1 | x | y | `no_isr` | `tests/specs/none.py::test_x` |", "no invariant"),
        ("| P1 | x | y | `isr_is_never_empty`, G99 | `tests/specs/none.py::test_x` |", "no row G99"),
        ("| P1 | x | y | `isr_is_never_empty` | `tests/model/test_controller.py::test_none` |", "no test"),
        ("| P1 | x | y | G1 | |", "became nothing"),
    ],
)
def test_a_name_that_does_not_exist_is_found(row: str, fault: str) -> None:
    (clause,), _ = read_rows(row, "P", "GJIOW")
    assert any(fault in found for found in faults(controller, clause, "\n| G1 | ..."))


def test_a_clean_row_has_no_fault() -> None:
    row = (
        "| P1 | x | y | `isr_is_never_empty`, G1 "
        "| `tests/specs/test_controller_clauses.py::test_a_clean_row_has_no_fault` |"
    )
    (clause,), _ = read_rows(row, "P", "GJIOW")
    assert faults(controller, clause, "\n| G1 | ...") == []
