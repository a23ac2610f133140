"""``specs/CLAUSES.md`` names nothing that does not exist, rows of ``specs/DEVIATIONS.md`` included."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from fencepost.model.protocols.fencing import fencing

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Clause:
    """A row of the table: ``became`` and ``tests`` are the names in it."""

    number: str
    sentence: str
    became: tuple[str, ...]
    rows: tuple[str, ...]
    tests: tuple[str, ...]


def read_clauses(text: str) -> list[Clause]:
    """The rows whose number begins with R."""
    clauses = []
    for line in text.splitlines():
        if re.match(r"\| R\d+ \|", line):
            number, _, sentence, became, tests = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
            names = tuple(re.findall(r"`([^`]+)`", became))
            rows = tuple(re.findall(r"\b[SMDKT]\d+\b", re.sub(r"`[^`]+`", "", became)))
            clauses.append(Clause(number, sentence, names, rows, tuple(re.findall(r"`([^`]+)`", tests))))
    return clauses


@cache
def functions_of(path: str) -> frozenset[str]:
    """The test functions of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_"))


def faults(clause: Clause, deviations: str) -> list[str]:
    """What the row names that does not exist."""
    found = []
    for name in clause.became:
        variant, _, guard = name.rpartition(": ")
        action, dot, guard = guard.partition(".")
        traced = fencing.traced(variant or None)
        if dot:
            guards = {a.name: dict(a.guards) for a in traced.actions}.get(action, {})
            found += [] if guard in guards else [f"{clause.number}: no guard {name}"]
        elif name not in {*fencing.invariant_names, *fencing.liveness}:
            found.append(f"{clause.number}: no invariant or property {name}")
    found += [f"{clause.number}: no row {row}" for row in clause.rows if f"\n| {row} |" not in deviations]
    for test in clause.tests:
        path, _, function = test.partition("::")
        if not (ROOT / path).is_file() or function not in functions_of(path):
            found.append(f"{clause.number}: no test {test}")
    if not clause.tests or not clause.became + clause.rows:
        found.append(f"{clause.number}: a sentence that became nothing, or that no test holds")
    return found


def test_every_name_in_the_table_exists() -> None:
    clauses = read_clauses((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"))
    deviations = (ROOT / "specs" / "DEVIATIONS.md").read_text(encoding="utf-8")
    assert [c.number for c in clauses] == [f"R{n}" for n in range(1, len(clauses) + 1)]
    assert len({c.sentence for c in clauses}) == len(clauses) > 30
    assert [fault for clause in clauses for fault in faults(clause, deviations)] == []


def test_every_fence_of_kip_320_comes_from_a_sentence() -> None:
    """What kip-320 has and kip-279 has not must stand in the text, save what the KIP's model alone adds."""
    clauses = read_clauses((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"))
    before = {(a.name, guard) for a in fencing.traced("kip-279").actions for guard, _ in a.guards}
    added = {(a.name, guard) for a in fencing.traced("kip-320").actions for guard, _ in a.guards} - before
    assert added
    assert {f"{action}.{guard}" for action, guard in added} <= {name for clause in clauses for name in clause.became}


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| R1 | x | y | `follower_fetch.no_such` | `tests/specs/test_clauses.py::read_clauses` |", "no guard"),
        ("| R1 | x | y | `kip-279: follower_fetch.epoch_not_fenced` | `tests/specs/none.py::test_x` |", "no guard"),
        ("| R1 | x | y | `no_such_isr` | `tests/specs/none.py::test_x` |", "no invariant"),
        ("| R1 | x | y | `weak_isr` | `tests/specs/test_clauses.py::test_no_such` |", "no test"),
        ("| R1 | x | y | M99 | `tests/specs/test_clauses.py::test_every_name_in_the_table_exists` |", "no row M99"),
        ("| R1 | x | y | `weak_isr` | |", "became nothing"),
    ],
)
def test_a_name_that_does_not_exist_is_found(row: str, fault: str) -> None:
    (clause,) = read_clauses(row)
    assert any(fault in found for found in faults(clause, "\n| M4 | ..."))


def test_a_clean_row_has_no_fault() -> None:
    (clause,) = read_clauses(
        "| R1 | x | y | `kip-320-first-try: follower_truncate.diverges`, `weak_isr`, M4 "
        "| `tests/specs/test_clauses.py::test_a_clean_row_has_no_fault` |"
    )
    assert faults(clause, "\n| M4 | ...") == []
