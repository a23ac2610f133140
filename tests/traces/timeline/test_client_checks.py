"""Checks of client histories: for each a planted fault, in both formats, and clean cases that look alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from fencepost.traces.timeline.checkers import TimelineReport, check_timeline
from fencepost.traces.timeline.sources import read_sources
from fencepost.traces.timeline.timeline import Timeline

HEADER = {"format": "fencepost-client-history", "version": 1, "acks": "all"}
Check = Callable[..., TimelineReport]


def ok(value: str, offset: int, client: str = "p", **more: object) -> dict[str, Any]:
    return _send(client, "ok", value, offset=offset, **more)


def failed(value: str, client: str = "p", **more: object) -> dict[str, Any]:
    return _send(client, "failed", value, **more)


def unknown(value: str, client: str = "p", **more: object) -> dict[str, Any]:
    return _send(client, "unknown", value, **more)


def _send(client: str, outcome: str, value: str, **more: object) -> dict[str, Any]:
    return {"client": client, "op": "produce", "partition": "a-0", "outcome": outcome, "value": value, **more}


def poll(*records: tuple[int, str], client: str = "c") -> dict[str, Any]:
    rows = [{"offset": offset, "value": value} for offset, value in records]
    return {"client": client, "op": "poll", "partition": "a-0", "records": rows}


def seek(offset: int | None = None, client: str = "c") -> dict[str, Any]:
    body = {"client": client, "op": "seek", "partition": "a-0"}
    return body if offset is None else {**body, "offset": offset}


def moved(op: str, client: str = "c", **more: object) -> dict[str, Any]:
    return {"client": client, "op": op, **more}


def checked(path: Path, *others: Path) -> TimelineReport:
    read = read_sources([path, *others])
    assert not read.problems, [str(each) for each in read.problems]
    return check_timeline(Timeline.of(read.observations))


@pytest.fixture
def history(tmp_path: Path) -> Check:
    """Check a history in Fencepost's format."""

    def check(*operations: dict[str, Any], **header: object) -> TimelineReport:
        path = tmp_path / "history.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in ({**HEADER, **header}, *operations)))
        return checked(path)

    return check


def as_edn(operations: Sequence[dict[str, Any]]) -> str:
    """The same history as Jepsen writes it: an invocation and a completion for each operation."""
    lines = []
    processes: dict[str, int] = {}

    def number(value: object) -> int:
        return sum(ord(char) * 256**place for place, char in enumerate(str(value)))

    for each in operations:
        process = processes.setdefault(each["client"], len(processes))
        kind = {"ok": "ok", "failed": "fail", "unknown": "info"}[each.get("outcome", "ok")]
        if each["op"] == "produce":
            f = "send"
            asked = f"[[:send 0 {number(each['value'])}]]"
            done = f"[[:send 0 [{each['offset']} {number(each['value'])}]]]" if "offset" in each else asked
        elif each["op"] == "poll":
            f, asked = "poll", "[[:poll]]"
            pairs = " ".join(f"[{record['offset']} {number(record['value'])}]" for record in each["records"])
            done = f"[[:poll {{0 [{pairs}]}}]]"
        else:
            f = {"assign": "assign", "seek": "assign", "restart": "crash"}.get(each["op"], "subscribe")
            asked = done = "nil" if f == "crash" else "[0]"
            if each.get("offset") == 0:
                done += ", :seek-to-beginning? true"
        lines.append(f"{{:type :invoke, :f :{f}, :value {asked}, :process {process}}}")
        lines.append(f"{{:type :{kind}, :f :{f}, :value {done}, :process {process}}}")
    return "\n".join(lines) + "\n"


def names(report: TimelineReport) -> set[str]:
    return {each.check for each in report.contradictions if each.verdict == "violated"}


FAULTS = {
    "two reads of one offset": ("two_values_at_one_offset", [poll((0, "x")), seek(), poll((0, "y"))], {2, 4}),
    "read differs from acknowledgement": ("two_values_at_one_offset", [ok("x", 0), poll((0, "y"))], {2, 3}),
    "two acknowledgements": ("two_values_at_one_offset", [ok("x", 4), ok("y", 4, client="q")], {2, 3}),
    "read twice": ("acknowledged_value_at_two_offsets", [ok("x", 0), poll((0, "x"), (1, "x"))], {2, 3}),
    "read elsewhere": ("acknowledged_value_at_two_offsets", [ok("x", 0), poll((3, "x"))], {2, 3}),
    "read by another": (
        "acknowledged_value_at_two_offsets",
        [ok("x", 1), poll((1, "x")), poll((2, "x"), client="d")],
        {2, 4},
    ),
    "lost": ("acknowledged_record_skipped", [ok("x", 0), ok("y", 1), ok("z", 2), poll((0, "x"), (2, "z"))], {3, 5}),
    "lost between polls": (
        "acknowledged_record_skipped",
        [ok("x", 0), ok("y", 1), ok("z", 2), poll((0, "x")), poll((2, "z"))],
        {3, 5, 6},
    ),
    "lost and acknowledged later": (
        "acknowledged_record_skipped",
        [poll((0, "x"), (2, "z")), ok("y", 1)],
        {2, 3},
    ),
    "backward": ("poll_goes_backward", [poll((4, "x")), poll((3, "y"))], {2, 3}),
    "backward in one poll": ("poll_goes_backward", [poll((4, "x"), (3, "y"))], {2}),
    "the same again": ("poll_goes_backward", [poll((4, "x"), (5, "y")), poll((5, "y"))], {2, 3}),
    "failed send": ("read_of_failed_send", [failed("x"), poll((0, "x"))], {2, 3}),
    "failed send read first": ("read_of_failed_send", [poll((0, "x")), failed("x")], {2, 3}),
    "failed twice": ("read_of_failed_send", [failed("x"), failed("x"), poll((5, "x"))], {2, 4}),
}


@pytest.mark.parametrize("case", FAULTS)
def test_fault_is_found_in_a_client_history(case: str, history: Check) -> None:
    check, operations, lines = FAULTS[case]
    report = history(*operations)
    assert names(report) == {check}
    evidence = {each.line for found in report.contradictions for each in found.evidence if found.check == check}
    assert evidence == lines
    assert report.verdict == "violated"


@pytest.mark.parametrize("case", FAULTS)
def test_fault_is_found_in_a_jepsen_history(case: str, tmp_path: Path) -> None:
    check, operations, lines = FAULTS[case]
    path = tmp_path / "history.edn"
    path.write_text(as_edn(operations))
    report = checked(path)
    assert check in names(report)
    evidence = {each.line for found in report.contradictions for each in found.evidence if found.check == check}
    # Operation n of the file, whose first line was the header, completes on line 2 * (n - 1).
    assert evidence == {2 * (line - 1) for line in lines}


CLEAN = {
    "agreement": [ok("x", 0), ok("y", 1), poll((0, "x"), (1, "y")), poll((0, "x"), client="d")],
    "holes of transactions": [ok("x", 0), ok("y", 3), poll((0, "x"), (3, "y"), (7, "z"))],
    "seek back": [poll((4, "x")), seek(0), poll((0, "w"), (4, "x"))],
    "rebalance": [ok("y", 5), poll((4, "x")), moved("rebalance"), poll((9, "z"))],
    "restart": [ok("y", 5), poll((4, "x")), moved("restart"), poll((4, "x"), (5, "y"))],
    "unknown send read": [unknown("x"), poll((0, "x"))],
    "unknown send read twice": [unknown("x"), poll((0, "x"), (1, "x"))],
    "failed and sent again": [failed("x"), ok("x", 2), poll((2, "x"))],
    "unread tail": [ok("x", 0), ok("y", 1), poll((0, "x"))],
    "starts late": [ok("x", 0), ok("y", 1), poll((1, "y"))],
    "commit": [poll((0, "x")), {"client": "c", "op": "commit", "partition": "a-0", "offset": 1}, poll((1, "y"))],
}


@pytest.mark.parametrize("case", CLEAN)
def test_clean_history_is_not_violated(case: str, history: Check, tmp_path: Path) -> None:
    report = history(*CLEAN[case])
    assert report.contradictions == ()
    edn = tmp_path / "history.edn"
    edn.write_text(as_edn([each for each in CLEAN[case] if each["op"] != "commit"]))
    assert checked(edn).contradictions == ()


def test_history_that_compares_something_holds(history: Check) -> None:
    assert history(*CLEAN["agreement"]).verdict == "holds"
    assert history(ok("x", 0)).verdict == "unknown"


@pytest.mark.parametrize("acks", [0, 1])
def test_acknowledgement_without_replicas_promises_nothing(acks: int, history: Check) -> None:
    for case in ("read differs from acknowledgement", "lost"):
        assert names(history(*FAULTS[case][1], acks=acks)) == set()


@pytest.mark.parametrize("case", ["read differs from acknowledgement", "lost"])
def test_unknown_acks_leave_the_verdict_unknown(case: str, tmp_path: Path) -> None:
    header = {key: value for key, value in HEADER.items() if key != "acks"}
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (header, *FAULTS[case][1])))
    report = checked(path)
    assert report.verdict == "unknown" and "acks=all" in report.contradictions[0].message


def test_compacted_topic_may_lack_records(history: Check) -> None:
    assert history(*FAULTS["lost"][1], compacted=True).contradictions == ()


def test_producer_without_idempotence_may_write_twice(history: Check) -> None:
    operations = FAULTS["read twice"][1]
    assert names(history(*operations, idempotent=True)) == {"acknowledged_value_at_two_offsets"}
    assert history(*operations, idempotent=False).contradictions == ()


def test_idempotent_send_with_unknown_outcome_is_written_once(history: Check) -> None:
    operations = CLEAN["unknown send read twice"]
    assert names(history(*operations, idempotent=True)) == {"acknowledged_value_at_two_offsets"}


def test_two_sends_of_one_value_are_two_records(history: Check) -> None:
    operations = [ok("x", 0), ok("x", 1), poll((0, "x"), (1, "x"))]
    report = history(*operations)
    assert report.verdict == "unknown" and "each value once" in report.contradictions[0].message
    assert names(history(*operations, unique_values=True)) == {"acknowledged_value_at_two_offsets"}


def test_record_that_only_another_consumer_read_is_unknown(history: Check) -> None:
    operations = [poll((0, "x"), (1, "y"), (2, "z")), poll((0, "x"), (2, "z"), client="d")]
    report = history(*operations)
    assert report.verdict == "unknown" and "isolation level" in report.contradictions[0].message


def test_later_record_at_a_smaller_offset_is_out_of_order(history: Check) -> None:
    first, second = ok("x", 5, began=1000, time=1010), ok("y", 3, began=1020, time=1030)
    report = history(first, second)
    assert names(report) == {"acknowledgements_out_of_order"}
    assert [each.line for each in report.contradictions[0].evidence] == [2, 3]
    # In flight together, by different producers, and without times.
    assert names(history(first, {**second, "began": 1005})) == set()
    assert names(history(first, {**second, "client": "q"})) == set()
    assert names(history(ok("x", 5), ok("y", 3))) == set()


def test_jepsen_sends_out_of_order_are_found(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text(as_edn([ok("x", 5), ok("y", 3)]))
    assert names(checked(path)) == {"acknowledgements_out_of_order"}
    path.write_text(as_edn([ok("x", 5), ok("y", 3, client="q")]))
    assert names(checked(path)) == set()


def test_start_at_the_beginning_reads_the_first_record(history: Check, tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text(as_edn([ok("x", 0), ok("y", 1), seek(0), poll((1, "y"))]))
    assert names(checked(path)) == {"acknowledged_record_skipped"}
    assert names(history(ok("x", 0), ok("y", 1), seek(0), poll((1, "y")))) == {"acknowledged_record_skipped"}
    assert names(history(ok("x", 0), ok("y", 1), seek(1), poll((1, "y")))) == set()


def test_subscribed_jepsen_consumer_may_be_rebalanced(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    operations = [moved("subscribe"), poll((4, "x")), poll((3, "y"))]
    path.write_text(as_edn(operations))
    assert names(checked(path)) == set()
    # With a log of rebalances that is empty, none happened.
    path.write_text(as_edn(operations).replace(":f :poll", ":rebalance-log [], :f :poll"))
    assert names(checked(path)) == {"poll_goes_backward"}
    path.write_text(as_edn(operations).replace(":f :poll", ":rebalance-log [{:keys [0]}], :f :poll"))
    assert names(checked(path)) == set()
