"""The problems of a check over brokers' files: one for each fact, whatever the number of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.conformance.check.files import read_cluster
from fencepost.conformance.check.judge import add_search, file_answer
from fencepost.traces.report.obligation import Obligation

from .encoder import partition, write_broker

if TYPE_CHECKING:
    from pathlib import Path


def test_search_repeats_no_finding_of_many_partitions(tmp_path: Path) -> None:
    folders = [f"orders-{number}" for number in range(8)]
    paths = [
        write_broker(tmp_path / f"b{node}", node, {name: partition(0, node, hw=2) for name in folders})
        for node in (1, 2)
    ]
    answer = file_answer(read_cluster("", paths))
    (problem,) = (each for each in answer.findings if each.verdict == "violated")
    assert problem.subject.endswith(" and 2 more") and problem.names == tuple(folders)
    searched = [
        Obligation(f"{name}: reachable", "search", "violated", "holds", "ruled out", 7, "states", 0.1, optional=True)
        for name in folders
    ]
    assert add_search(answer, searched).findings == answer.findings
