"""The rows of ``specs/CLAUSES.md`` about KIP-630 name nothing that does not exist, and leave no rule unexplained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fencepost.model.protocols.snapshots import snapshots

from .test_clauses import Clause, functions_of

ROOT = Path(__file__).parents[2]
# What KIP-595 has of elections and replication, on which the KIP builds, and the network's part.
NOT_ITS_OWN = {"become_candidate", "become_follower", "leader_write", "leader_inc_high_watermark", "follower_truncate"}
FINER_STEPS = {"refuse_vote", "hear_vote", "follower_acknowledge"}


def read_rows(text: str) -> tuple[list[Clause], list[int]]:
    """The rows whose number begins with Q: those that became something, and the numbers of those left outside."""
    clauses, outside = [], []
    for line in text.splitlines():
        if not re.match(r"\| Q\d+ \|", line):
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3:
            outside.append(int(cells[0][1:]))
            continue
        number, _, sentence, became, tests = cells
        names = tuple(re.findall(r"`([^`]+)`", became))
        rows = tuple(re.findall(r"\b[ABEF]\d+\b", re.sub(r"`[^`]+`", "", became)))
        clauses.append(Clause(number, sentence, names, rows, tuple(re.findall(r"`([^`]+)`", tests))))
    return clauses, outside


def faults(clause: Clause, deviations: str) -> list[str]:
    """What the row names that does not exist."""
    found = []
    guards = {a.name: dict(a.guards) for a in snapshots.traced().actions}
    for name in clause.became:
        action, dot, guard = name.partition(".")
        if dot and guard not in guards.get(action, {}):
            found.append(f"{clause.number}: no guard {name}")
        elif not dot and name not in snapshots.invariant_names:
            found.append(f"{clause.number}: no invariant {name}")
    found += [f"{clause.number}: no row {row}" for row in clause.rows if f"\n| {row} |" not in deviations]
    for test in clause.tests:
        path, _, function = test.partition("::")
        if not (ROOT / path).is_file() or function not in functions_of(path):
            found.append(f"{clause.number}: no test {test}")
    if not clause.tests or not clause.became:
        found.append(f"{clause.number}: a sentence that became nothing, or that no test holds")
    return found


def test_every_name_in_the_table_exists() -> None:
    clauses, outside = read_rows((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"))
    deviations = (ROOT / "specs" / "DEVIATIONS.md").read_text(encoding="utf-8")
    numbers = [int(clause.number[1:]) for clause in clauses] + outside
    assert numbers == list(range(1, len(numbers) + 1))
    assert len({clause.sentence for clause in clauses}) == len(clauses) > 35
    assert [fault for clause in clauses for fault in faults(clause, deviations)] == []


def test_every_action_and_promise_of_the_kip_comes_from_a_sentence() -> None:
    clauses, _ = read_rows((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"))
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
    clauses, _ = read_rows((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"))
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
    (clause,), _ = read_rows(row)
    assert any(fault in found for found in faults(clause, "\n| A1 | ..."))


def test_a_clean_row_has_no_fault() -> None:
    row = "| Q1 | x | y | `logs_match`, A1 | `tests/specs/test_snapshots_clauses.py::test_a_clean_row_has_no_fault` |"
    (clause,), _ = read_rows(row)
    assert faults(clause, "\n| A1 | ...") == []
