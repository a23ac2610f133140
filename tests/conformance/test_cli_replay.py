"""``fencepost replay``: verdicts, exit codes, what refuses a trace, and traces that are damaged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fencepost.conformance.cli import replay_on
from fencepost.conformance.kafka.cluster.trace_executor import CarriedOut
from fencepost.model.explore.result import Verdict

from .conftest import Fencepost

SMALL = ("--replicas", 2, "--log-size", 2, "--max-records", 2, "--max-leader-epoch", 2)

Edit = Callable[[list[dict[str, Any]]], None]


@pytest.fixture
def lost(fencepost: Fencepost, tmp_path: Path) -> Path:
    """The shortest counterexample of truncate-to-hw with two replicas: eight events."""
    path = tmp_path / "lost.trace.jsonl"
    assert fencepost("explore", "fencing", "--variant", "truncate-to-hw", *SMALL, "--trace-out", path).code == 1
    return path


def edited(path: Path, edit: Edit) -> Path:
    """A copy of a trace, changed."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    edit(lines)
    copy = path.with_name("edited.trace.jsonl")
    copy.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return copy


def test_a_run_that_keeps_the_promises_holds(process: Fencepost, lost: Path) -> None:
    said = process("replay", lost, "--invariant", "type_ok", "--json")
    assert (said.code, said.err) == (0, "")
    answer = said.json
    assert (answer["verdict"], answer["variant"], answer["events"], answer["explained"]) == (
        "holds",
        "truncate-to-hw",
        8,
        8,
    )
    assert answer["trace"] == str(lost)


def test_a_run_that_breaks_an_invariant_is_violated(fencepost: Fencepost, lost: Path) -> None:
    said = fencepost("replay", lost, "--json")
    assert said.code == 1
    assert (said.json["violated"], said.json["cause"], said.json["line"]) == ("weak_isr", "invariant", 9)
    assert fencepost("replay", lost, "--invariant", "leader_in_isr", "--invariant", "type_ok").code == 0


def test_the_refusal_names_the_guard_and_its_operands(fencepost: Fencepost, lost: Path) -> None:
    said = fencepost("replay", lost, "--variant", "kip-320")
    assert said.code == 1
    told = " ".join(said.out.split())
    # A long path is folded at the terminal's width, so it is looked for without any blanks.
    assert f"violated{lost},line9Norunofthemodelexplainsevent8,become_follower(" in "".join(said.out.split())
    assert "guard leader_epoch_matches wants leader_epoch[leader] == epoch; leader_epoch[0] is 0" in told
    answer = fencepost("replay", lost, "--variant", "kip-320", "--json").json
    assert (answer["violated"], answer["cause"], answer["step"]) == ("explained", "guard", 8)
    assert answer["frontier_size"] == len(answer["frontier"]) == 1
    # Without the guard that refused it, and the one that truncates to the epoch's end, only the log differs.
    dropped = fencepost(
        "replay", lost, "--variant", "kip-320", "--drop", "become_follower.leader_epoch_matches", "--json"
    )
    assert dropped.json["cause"] == "observation"


def test_what_a_budget_did_not_decide_is_unknown(fencepost: Fencepost, lost: Path) -> None:
    def lossy(lines: list[dict[str, Any]]) -> None:
        lines[0]["complete"] = False
        del lines[3:5]

    gapped = edited(lost, lossy)
    said = fencepost("replay", gapped, "--json")
    assert said.code == 3
    assert (said.json["verdict"], said.json["reason"].split(":")[0]) == ("unknown", "max_skipped")
    found = fencepost("replay", gapped, "--max-skipped", 2, "--invariant", "type_ok", "--json")
    assert (found.code, found.json["skipped"]) == (0, 2)
    small = fencepost("replay", gapped, "--max-skipped", 2, "--max-frontier", 1, "--json")
    assert (small.code, small.json["reason"].split(":")[0]) == (3, "max_frontier")


def test_the_page_of_a_replay_is_written(fencepost: Fencepost, lost: Path, tmp_path: Path) -> None:
    page = tmp_path / "replay.html"
    said = fencepost("replay", lost, "--html", page, "--json")
    assert (said.code, said.lines) == (1, [f"wrote {page}"])
    assert said.json["violated"] == "weak_isr"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def drop_header(lines: list[dict[str, Any]]) -> None:
    del lines[0]


def unknown_action(lines: list[dict[str, Any]]) -> None:
    lines[4]["action"] = "fly"


def wrong_type(lines: list[dict[str, Any]]) -> None:
    lines[4]["params"]["follower"] = "one"


def wrong_value(lines: list[dict[str, Any]]) -> None:
    lines[4]["observed"]["leo[0]"] = [1]


def unknown_variant(lines: list[dict[str, Any]]) -> None:
    lines[0]["variant"] = "kip-1"


def small_constant(lines: list[dict[str, Any]]) -> None:
    lines[0]["constants"]["replicas"] = 0


DAMAGE: list[tuple[Edit, int, str, int | None]] = [
    (drop_header, 1, "the header is missing; begin the file with", None),
    (unknown_variant, 1, "", None),
    (small_constant, 1, "", None),
    (unknown_action, 5, 'fencing truncate-to-hw has no action "fly"; use one of', 3),
    (wrong_type, 5, 'follower of become_follower is "one"; give an integer from 0 to 1', 3),
    (wrong_value, 5, "leo[0]", 3),
]


@pytest.mark.parametrize(("edit", "line", "told", "replayed"), DAMAGE, ids=[case[0].__name__ for case in DAMAGE])
def test_a_fault_is_one_line_with_its_place_and_the_rest_is_reported(
    fencepost: Fencepost, lost: Path, edit: Edit, line: int, told: str, replayed: int | None
) -> None:
    bad = edited(lost, edit)
    said = fencepost("replay", bad, "--invariant", "type_ok", "--json")
    assert said.code == 2
    fault, rest = said.lines[0], said.lines[1:]
    assert fault.startswith(f"fencepost: {bad}, line {line}: ") and told in fault
    answer = said.json
    (problem,) = answer["problems"]
    assert problem["where"] == f"{bad}, line {line}"
    if replayed is None:
        assert answer["verdict"] is None
        assert rest == [f"8 events of {bad} have an event's form, and no header says what they mean"]
        assert answer["readable"] == 8
    else:
        assert (answer["verdict"], answer["explained"]) == ("unknown", replayed), "the events before the fault"
        assert answer["readable"] == 7 and "could not be read" in answer["reason"]
        text = fencepost("replay", bad, "--invariant", "type_ok")
        assert (text.code, text.lines[1]) == (2, f"of {bad} the 3 events before the first fault are replayed")
        assert "holds" not in text.out and f"could not be read ({bad}, line {line})" in " ".join(text.out.split())


def test_a_violation_before_damage_is_violated(fencepost: Fencepost, lost: Path) -> None:
    whole = fencepost("replay", lost, "--json").json
    assert whole["verdict"] == "violated"
    lost.write_bytes(lost.read_bytes() + b"{\n")
    said = fencepost("replay", lost, "--json")
    assert (said.code, said.json["verdict"], said.json["violated"]) == (1, "violated", whole["violated"])


def test_a_line_cut_off_is_named(fencepost: Fencepost, lost: Path) -> None:
    lost.write_bytes(lost.read_bytes()[:-20])
    said = fencepost("replay", lost, "--json")
    assert said.code == 2
    assert said.lines[0].startswith(f"fencepost: {lost}, line 9, column ")
    assert "(the file ends in the middle of this line)" in said.lines[0]
    assert said.json["explained"] == 7


def test_damaged_gzip_is_bad_input(fencepost: Fencepost, lost: Path, tmp_path: Path) -> None:
    packed = tmp_path / "trace.jsonl.gz"
    data = gzip.compress(lost.read_bytes())
    packed.write_bytes(data)
    assert fencepost("replay", packed, "--json").json["verdict"] == fencepost("replay", lost, "--json").json["verdict"]
    for damaged in (data[:-9], data[:40] + bytes([data[40] ^ 1]) + data[41:], data[:-5] + b"\0" + data[-4:]):
        packed.write_bytes(damaged)
        assert f"{packed}: the compressed data is damaged: " in fencepost("replay", packed).complaint


def test_what_is_no_trace_file_gets_one_line(fencepost: Fencepost, lost: Path, tmp_path: Path) -> None:
    missing = tmp_path / "none.jsonl"
    assert fencepost("replay", missing).complaint.startswith(f"{missing}: cannot be read: No such file or directory;")
    assert fencepost("replay", tmp_path).complaint.startswith(f"{tmp_path}: cannot be read: Is a directory;")
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert fencepost("replay", empty).lines[0].startswith(f"fencepost: {empty}, line 1: the file is empty; begin")
    for arguments, told in [
        (("--variant", "kip-1"), "--variant: fencing has no variant 'kip-1'; choose one of"),
        (("--invariant", "tidy"), "--invariant: fencing has no invariant 'tidy'; choose of"),
        (("--drop", "leader_write.fly"), "--drop: leader_write has no guard 'fly'; choose one of"),
        (("--max-skipped", "-1"), 'Invalid value "-1" for --max-skipped.'),
        (("--max-seconds", "nan"), 'Invalid value "nan" for --max-seconds.'),
        (("--html", tmp_path), f"{tmp_path}: cannot write: it is a folder;"),
    ]:
        assert fencepost("replay", lost, *arguments).complaint.startswith(told)


def test_replay_reports_once_why_a_partial_trace_is_unknown(fencepost: Fencepost, lost: Path, tmp_path: Path) -> None:
    partial = edited(lost, lambda lines: lines[0].update(partial="the log of node 2 ends early"))
    said = fencepost("replay", partial, "--invariant", "type_ok", "--html", tmp_path / "page.html")
    told = " ".join(said.out.split())
    assert said.code == 3 and told.count("the trace is partial: the log of node 2 ends early") == 1
    assert "No verdict: the trace is partial: the log of node 2 ends early." in (tmp_path / "page.html").read_text()
    assert fencepost("replay", partial).code == 1


@pytest.mark.parametrize(
    ("partial", "verdict", "code"),
    [(None, Verdict.HOLDS, 0), ("it ends", Verdict.HOLDS, 3), ("it ends", Verdict.VIOLATED, 1)],
)
def test_replay_on_a_cluster_answers_unknown_for_a_partial_trace(
    partial: str | None,
    verdict: Verdict,
    code: int,
    fencepost: Fencepost,
    lost: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay_on, "carry", lambda *_: CarriedOut(verdict, "" if code == 0 else "it breaks"))
    trace = lost if partial is None else edited(lost, lambda lines: lines[0].update(partial=partial))
    said = fencepost("replay", trace, "--on", "kafka-cluster", "--json")
    assert said.code == code
    assert said.json["reason"] == {0: None, 3: "the trace is partial: it ends", 1: "it breaks"}[code]
