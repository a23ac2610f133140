"""Histories of Jepsen's kafka workload: what a correct cluster may do, and what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.traces.timeline.checkers import check_timeline
from fencepost.traces.timeline.sources import read_sources
from fencepost.traces.timeline.timeline import Timeline


def op(kind: str, process: int, name: str, value: str, more: str = "") -> str:
    return f"{{:type :{kind}, :process {process}, :f :{name}, :value {value} {more}}}"


def send(offset: int, value: int, kind: str = "ok", process: int = 0) -> list[str]:
    result = f"[{offset} {value}]" if kind == "ok" else str(value)
    return [
        op("invoke", process, "send", f"[[:send 5 {value}]]"),
        op(kind, process, "send", f"[[:send 5 {result}]]"),
    ]


def poll(records: str, more: str = "", process: int = 1) -> list[str]:
    return [op("invoke", process, "poll", "[[:poll]]"), op("ok", process, "poll", f"[[:poll {{5 {records}}}]]", more)]


def assign(more: str = "", process: int = 1) -> list[str]:
    return [op("invoke", process, "assign", "[5]"), op("ok", process, "assign", "[5]", more)]


THREE = [*send(0, 1), *send(1, 2), *send(2, 3)]
TXN = "[[:poll] [:send 6 9]]"
LAWFUL = {
    "indeterminate send was written": [*send(0, 1), *send(1, 2, "info"), *assign(), *poll("[[0 1] [1 2]]")],
    "indeterminate send was written twice": [*send(0, 1), *send(1, 2, "info"), *assign(), *poll("[[0 1] [1 2] [2 2]]")],
    "indeterminate send was lost": [*send(0, 1), *send(1, 2, "info"), *send(2, 3), *assign(), *poll("[[0 1] [2 3]]")],
    "failed send is absent": [*send(0, 1, "fail"), *send(0, 2), *assign(), *poll("[[0 2]]")],
    "markers of transactions leave holes": [*send(0, 1), *send(3, 2), *assign(), *poll("[[0 1] [3 2]]")],
    "assignment goes back": [*THREE, *assign(), *poll("[[0 1] [1 2]]"), *assign(), *poll("[[0 1]]")],
    "crash goes back": [*THREE, *assign(), *poll("[[0 1] [1 2]]"), op("info", 1, "crash", "nil"), *poll("[[0 1]]")],
    "rebalance goes back": [
        *THREE,
        op("ok", 1, "subscribe", "[5]"),
        *poll("[[0 1] [1 2]]"),
        *poll("[[0 1]]", ":rebalance-log [{:keys [5]}]"),
    ],
    "indeterminate poll moves on": [
        *THREE,
        *assign(),
        *poll("[[0 1]]"),
        op("info", 1, "txn", "[[:poll]]"),
        *poll("[[2 3]]"),
    ],
    "aborted transaction moves on": [
        *THREE,
        *assign(),
        *poll("[[0 1]]"),
        op("fail", 1, "txn", TXN),
        *poll("[[2 3]]"),
    ],
    "aborted transaction goes back": [
        *THREE,
        *assign(),
        *poll("[[0 1] [1 2]]"),
        op("fail", 1, "txn", TXN),
        *poll("[[0 1] [1 2]]"),
    ],
    "concurrent sends in either order": [
        op("invoke", 0, "send", "[[:send 5 1]]"),
        op("invoke", 1, "send", "[[:send 5 2]]"),
        op("ok", 1, "send", "[[:send 5 [0 2]]]"),
        op("ok", 0, "send", "[[:send 5 [1 1]]]"),
    ],
}
FAULTS = {
    "acknowledged_record_skipped": [*THREE, *assign(), *poll("[[0 1]]"), *poll("[[2 3]]")],
    "poll_goes_backward": [*THREE, *assign(), *poll("[[0 1] [1 2]]"), *poll("[[0 1]]")],
    "read_of_failed_send": [*send(0, 1, "fail"), *assign(), *poll("[[0 1]]")],
    "two_values_at_one_offset": [*THREE, *assign(), *poll("[[0 1] [1 7]]")],
    "acknowledged_value_at_two_offsets": [*send(0, 1), *assign(), *poll("[[0 1] [1 1]]")],
    "acknowledgements_out_of_order": [*send(5, 1), *send(3, 2)],
}


def violated_checks(path: Path, operations: list[str]) -> set[str]:
    path.write_text("\n".join(operations))
    read = read_sources([path])
    assert not read.problems
    timeline = Timeline.of(read.observations)
    assert {each.partition for each in timeline.partitions} <= {"key 5", "key 6"}
    return {each.check for each in check_timeline(timeline).contradictions if each.verdict == "violated"}


@pytest.mark.parametrize("name", LAWFUL)
def test_lawful_history_is_not_violated(name: str, tmp_path: Path) -> None:
    assert violated_checks(tmp_path / "history.edn", LAWFUL[name]) == set()


@pytest.mark.parametrize("check", FAULTS)
def test_fault_in_a_history_is_violated(check: str, tmp_path: Path) -> None:
    assert violated_checks(tmp_path / "history.edn", FAULTS[check]) == {check}
