"""``specs/FILES.md`` says what is asked of brokers' files: each check that runs has its row, and each row its check."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import NamedTuple

from fencepost.conformance.check.files import bundled_clusters
from fencepost.model.core.registry import REGISTRY


class FileCheck(NamedTuple):
    """A row. ``protocols``: none where the check is of no text."""

    name: str
    protocols: frozenset[str]
    told: str


def _checks() -> tuple[FileCheck, ...]:
    text = files("fencepost.specs").joinpath("FILES.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:3] == "| `"]
    return tuple(FileCheck(name.strip("`"), frozenset(re.findall(r"`(\w+)`", of)), told) for name, of, told in rows)


CHECKS = _checks()

ONLY_WHERE_WRONG = {
    "stored_objects_have_a_segment",
    "controller_log_present",
    "folders_of_one_topic",
    "brokers_registered",
}
"""Checks without a result where nothing is wrong."""


def test_each_check_of_the_recorded_files_has_its_row_and_holds_somewhere() -> None:
    names = [each.name for each in CHECKS]
    assert len(set(names)) == len(names)
    results = [result for cluster in bundled_clusters() for result in cluster.report.checks]
    assert {result.check for result in results} == set(names) - ONLY_WHERE_WRONG
    assert {result.check for result in results if result.verdict == "holds"} == set(names) - ONLY_WHERE_WRONG


def test_each_row_is_of_a_check_and_of_protocols_that_there_are() -> None:
    folder = files("fencepost.traces").joinpath("kafka")
    sources = "".join(each.read_text(encoding="utf-8") for each in folder.iterdir() if each.name.endswith(".py"))
    ours = {name for name in REGISTRY if REGISTRY[name].package.startswith("fencepost.")}
    assert all(f'"{each.name}"' in sources and each.told for each in CHECKS)
    assert all(each.protocols <= ours for each in CHECKS)
    assert {name for each in CHECKS for name in each.protocols} == ours
    assert [each.name for each in CHECKS if not each.protocols] == ["copies_of_one_time", "controller_log_present"]


def test_no_name_of_a_check_is_written_twice() -> None:
    """Else a row could be of another check than the one that runs."""
    folder = files("fencepost.traces").joinpath("kafka")
    sources = "".join(each.read_text(encoding="utf-8") for each in folder.iterdir() if each.name.endswith(".py"))
    for each in CHECKS:
        assert len(re.findall(rf'"{each.name}"', sources)) == 1, each.name
