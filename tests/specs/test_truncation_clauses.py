"""The rows of ``specs/CLAUSES.md`` about consumers name nothing that does not exist, and leave no guard unexplained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fencepost.model.protocols.truncation import truncation

from .test_clauses import Clause, functions_of

ROOT = Path(__file__).parents[2]


def read_rows(text: str) -> tuple[list[Clause], list[int]]:
    """The rows whose number begins with C: those that became something, and the numbers of those left outside."""
    clauses, outside = [], []
    for line in text.splitlines():
        if not re.match(r"\| C\d+ \|", line):
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3:
            outside.append(int(cells[0][1:]))
            continue
        number, _, sentence, became, tests = cells
        names = tuple(re.findall(r"`([^`]+)`", became))
        rows = tuple(re.findall(r"\b[HU]\d+\b", re.sub(r"`[^`]+`", "", became)))
        clauses.append(Clause(number, sentence, names, rows, tuple(re.findall(r"`([^`]+)`", tests))))
    return clauses, outside


def faults(clause: Clause, deviations: str) -> list[str]:
    """What the row names that does not exist."""
    found = []
    for name in clause.became:
        variant, _, guard = name.rpartition(": ")
        action, dot, guard = guard.partition(".")
        guards = {a.name: dict(a.guards) for a in truncation.traced(variant or None).actions}
        if dot and guard not in guards.get(action, {}):
            found.append(f"{clause.number}: no guard {name}")
        elif not dot and name not in truncation.invariant_names:
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
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert len({clause.sentence for clause in clauses}) == len(clauses) > 35
    assert [fault for clause in clauses for fault in faults(clause, deviations)] == []


def test_every_rule_about_consumers_comes_from_a_sentence() -> None:
    """What kip-320 has of the consumer and no-epoch has not, and every promise that is not about the partition."""
    clauses, _ = read_rows((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"))
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
    (clause,), _ = read_rows(row)
    assert any(fault in found for found in faults(clause, "\n| H1 | ..."))
