"""``specs/CLAUSES.md`` names nothing that does not exist, rows of ``specs/DEVIATIONS.md`` included."""

from __future__ import annotations

import pytest
from fencepost.model.protocols.fencing import fencing

from .clauses import ROOT, faults, read_rows


def test_every_name_in_the_table_exists() -> None:
    clauses, outside = read_rows((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"), "R", "SMDKT")
    assert outside == []
    deviations = (ROOT / "specs" / "DEVIATIONS.md").read_text(encoding="utf-8")
    assert [c.number for c in clauses] == [f"R{n}" for n in range(1, len(clauses) + 1)]
    assert len({c.sentence for c in clauses}) == len(clauses) > 30
    assert [fault for clause in clauses for fault in faults(fencing, clause, deviations, rows_suffice=True)] == []


def test_every_fence_of_kip_320_comes_from_a_sentence() -> None:
    """What kip-320 has and kip-279 has not must stand in the text, save what the KIP's model alone adds."""
    clauses = read_rows((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"), "R", "SMDKT")[0]
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
    (clause,) = read_rows(row, "R", "SMDKT")[0]
    assert any(fault in found for found in faults(fencing, clause, "\n| M4 | ...", rows_suffice=True))


def test_a_clean_row_has_no_fault() -> None:
    (clause,) = read_rows(
        "| R1 | x | y | `kip-320-first-try: follower_truncate.diverges`, `weak_isr`, M4 "
        "| `tests/specs/test_clauses.py::test_a_clean_row_has_no_fault` |",
        "R",
        "SMDKT",
    )[0]
    assert faults(fencing, clause, "\n| M4 | ...", rows_suffice=True) == []
