"""``specs/CLAUSES.md`` names nothing that does not exist, rows of ``specs/DEVIATIONS.md`` included."""

from __future__ import annotations

import json

import pytest
from fencepost.model.protocols.fencing import fencing

from .clauses import ROOT, absent_places, faults, read_rows
from .quotations import COMPARISON, FILE, compare, digest, read_quotations, uncompared

TABLES = (("R", ""), ("C", ""), ("Q", ""), ("P", ""), ("L", ""), ("TS", "T"))
"""The letters of the rows in each table, and the prefix of the deviations that they name."""


def test_every_name_in_the_table_exists() -> None:
    clauses, outside = read_rows((ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8"), "R", "SMDKT")
    deviations = (ROOT / "specs" / "DEVIATIONS.md").read_text(encoding="utf-8")
    numbers = [int(clause.number[1:]) for clause in clauses] + [number for number, _ in outside]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert len({c.sentence for c in clauses}) == len(clauses) > 30
    assert [fault for clause in clauses for fault in faults(fencing, clause, deviations, rows_suffice=True)] == []


@pytest.mark.parametrize(("letters", "prefix"), TABLES, ids=[letters for letters, _ in TABLES])
def test_rows_without_a_guard_name_a_place_or_a_reason(letters: str, prefix: str) -> None:
    text = (ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8")
    deviations = (ROOT / "specs" / "DEVIATIONS.md").read_text(encoding="utf-8")
    _, outside = read_rows(text, letters, "A-Z", prefix)
    assert outside
    assert [fault for _, where in outside for fault in absent_places(where, text + deviations)] == []


@pytest.mark.parametrize(
    ("where", "fault"),
    [
        ("", "no place and no reason"),
        ("`impl/none.py`", "no file impl/none.py"),
        ("`tests/specs/test_clauses.py::test_none`", "no test tests/specs/test_clauses.py::test_none"),
        ("`impl/wire/errors.py`, W99", "no row W99"),
        ("nothing:", "no place and no reason"),
    ],
)
def test_a_place_that_does_not_exist_is_found(where: str, fault: str) -> None:
    assert absent_places(where, "\n| W1 | ...") == [fault]


def test_a_place_or_a_reason_has_no_fault() -> None:
    for where in (
        "`impl/wire/errors.py`, W1",
        "nothing: W1",
        "nothing: a rejected alternative",
        "not implemented: no such field",
    ):
        assert absent_places(where, "\n| W1 | ...") == []


def test_every_quotation_was_compared_with_its_kip() -> None:
    table = (ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8")
    hashes = json.loads(FILE.read_text(encoding="utf-8"))
    assert uncompared(table, hashes) == []
    quotations = read_quotations(table)
    assert COMPARISON < {row for row, _, _ in quotations} and len(quotations) > 430
    used = {(kip, digest(sentence)) for _, kip, sentence in quotations}
    assert [found for kip, found in hashes.items() if not {(kip, one) for one in found} <= used] == []


def test_a_changed_quotation_is_found() -> None:
    text = {"KIP-320": "The leader\u2019s epoch\n is `larger` than 3. It is fenced."}
    table = "| R1 | x | The leader's epoch is larger than 3. | y |"
    hashes, missing = compare(table, text)
    assert missing == [] and uncompared(table, hashes) == []
    for wrong in (table.replace("3", "4"), table.replace("is larger", "larger"), table.replace("R1", "Q1")):
        assert uncompared(wrong, hashes) == [wrong[2:4]]
    assert compare(table.replace("3", "4"), text)[1] == ["R1"]


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
