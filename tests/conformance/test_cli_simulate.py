"""``fencepost simulate``: what it writes and says, and the one line for each thing that is wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fencepost.model.core.ground import ground
from fencepost.model.core.mutants import mutants
from fencepost.model.protocols.fencing import fencing
from fencepost.traces.corpus.convert import trace_of
from fencepost.traces.corpus.layout import Events
from fencepost.traces.corpus.manifest import PLANTED, read_corpus
from fencepost.traces.replay import replay
from fencepost.traces.stepper import CompiledStepper

Run = Callable[..., Any]

FAULT = "follower_fetch.epoch_not_fenced dropped"
SERIAL = ("--master", "serial")
SAME = "become_leader.request_sent dropped"
SMALL = ("fencing", "--replicas", "2", "--traces", "50", "--events", "20", "--master", "serial")


def test_a_corpus_is_written_and_told(fencepost: Run, tmp_path: Path) -> None:
    few = ("fencing", "--replicas", "2", "--traces", "50", "--events", "12", "--master", "serial")
    said = fencepost("simulate", *few, "--seed", "7", "--files", "3", "--out", str(tmp_path / "c"), "--json")
    assert said.code == 0
    told = said.json
    seconds = told.pop("seconds")
    assert seconds >= 0
    corpus = read_corpus(tmp_path / "c")
    lengths: list[int] = []
    for file in corpus.files:
        with file.open() as opened:
            lengths += [int(length) for events in opened for length in events.ends - events.starts]
    early = sum(length < 12 for length in lengths)
    assert 0 < early < 50
    assert told == {
        "protocol": "fencing",
        "variant": "kip-320",
        "constants": {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2},
        "simulated": "model",
        "seed": 7,
        "out": str(tmp_path / "c"),
        "files": 3,
        "traces": 50,
        "events": corpus.events,
        "ended_early": early,
        "planted": {},
        "not_planted": {},
    }
    assert f"wrote {tmp_path / 'c'}" in said.err
    text = fencepost("simulate", *few, "--seed", "7", "--out", str(tmp_path / "d"))
    assert text.code == 0
    assert f"50 traces with {corpus.events:,} events in 1 file" in text.out
    assert f"{early} traces ended before step 12: nothing more could happen" in text.out


def test_faults_are_planted_at_the_rate_asked_for(fencepost: Run, tmp_path: Path) -> None:
    out = tmp_path / "c"
    said = fencepost(
        "simulate", *SMALL, "--faults", FAULT, "--faults", "kip-101", "--rate", "0.1", "--out", str(out), "--json"
    )
    assert said.code == 0
    assert sum(said.json["planted"].values()) == 5 and set(said.json["planted"]) == {FAULT, "kip-101"}
    assert len((out / PLANTED).read_text().splitlines()) == 5
    text = fencepost("simulate", *SMALL, "--faults", FAULT, "--rate", "0.1", "--out", str(tmp_path / "d"))
    assert f"5 traces with one of 1 fault, see {tmp_path / 'd' / PLANTED}" in text.out


def test_faults_that_show_nowhere_are_named_where_all_were_asked_for(fencepost: Run, tmp_path: Path) -> None:
    many = ("--traces", 60, "--faults", "all", "--rate", 1)
    said = fencepost(
        "simulate", "fencing", "--replicas", 2, "--events", 20, *SERIAL, *many, "--out", tmp_path / "c", "--json"
    )
    assert said.code == 0
    planted, skipped = said.json["planted"], said.json["not_planted"]
    assert FAULT in planted and SAME in skipped and not set(planted) & set(skipped)
    assert set(skipped[SAME].split()) >= {"no", "step", "of", "its", "own"}
    (line,) = [line for line in said.lines if SAME in line]
    assert line.startswith(f"not planted, as {skipped[SAME]}: ")
    names = {*planted, *skipped}
    traced = fencing.traced(None)
    assert {mutant.name for mutant in mutants(traced)} < names and {"kip-101", "truncate-to-hw"} < names


def test_an_implementation_is_walked_too_and_the_model_explains_what_it_did(fencepost: Run, tmp_path: Path) -> None:
    arguments = ("fencing", "--impl", "memory", "--traces", 12, "--events", 15, "--master", "serial", "--seed", 3)
    said = fencepost("simulate", *arguments, "--files", 3, "--out", tmp_path / "c", "--json")
    assert said.code == 0
    assert (said.json["simulated"], said.json["variant"]) == ("memory", "kip-320-brokers")
    fencepost("simulate", *arguments, "--out", tmp_path / "d")
    runs: dict[str, list[Events]] = {}
    for name in ("c", "d"):
        for file in read_corpus(tmp_path / name).files:
            with file.open() as opened:
                runs.setdefault(name, []).extend(opened)
    three, one = (Events.joined(each) for each in runs.values())
    assert np.array_equal(three.cells, one.cells) and np.array_equal(three.action, one.action)
    assert three.starts.size == 12 and (three.ends - three.starts).max() == 15
    stepper = CompiledStepper(ground(fencing.traced("kip-320-brokers"), three.layout.header.constants))
    for place in range(12):
        assert replay(trace_of(three, place), stepper).verdict.value == "holds"
    both = fencepost("simulate", *arguments, "--faults", FAULT, "--out", tmp_path / "e")
    assert both.complaint.startswith("--faults: faults are planted in walks of the model alone")
    none = fencepost("simulate", "fencing", "--impl", "x", "--out", tmp_path / "e")
    assert none.complaint.startswith("--impl: there is no adapter 'x'")


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "protocol": (("paxos",), "PROTOCOL: there is no protocol 'paxos'"),
    "variant": (("fencing", "--variant", "x"), "--variant: fencing has no variant 'x'"),
    "constant": (("fencing", "--chunks", "2"), "unknown option --chunks; did you mean --max-chunks?"),
    "rate": ((*SMALL, "--faults", FAULT, "--rate", "0"), "--rate: 0 is no share of the traces"),
    "not a number": ((*SMALL, "--faults", FAULT, "--rate", "nan"), "--rate: nan is no share of the traces"),
    "fault": ((*SMALL, "--faults", "x"), "--faults: fencing (kip-320) has no mutant and no other variant 'x'"),
    "same": (
        (*SMALL, "--faults", "become_leader.request_sent dropped", "--rate", "0.1"),
        "--faults: become_leader.request_sent dropped",
    ),
    "master": (("fencing", "--faults", FAULT, "--master", "yarn"), "--master yarn: no master that this runs on"),
    "too large": (
        ("fencing", "--replicas", "63", "--log-size", "63"),
        "fencing at 63/63/2/2: grounding ",
    ),
    "too few": ((*SMALL, "--faults", FAULT, "--rate", "0.001"), "--rate: 0 of 50 traces are too few for 1 fault;"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_said_in_one_line(fencepost: Run, tmp_path: Path, kind: str) -> None:
    arguments, told = WRONG[kind]
    said = fencepost("simulate", *arguments, "--out", str(tmp_path / "c"))
    assert said.complaint.startswith(told)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_refused_before_any_work(fencepost: Run, tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    said = fencepost("simulate", *SMALL, "--out", str(tmp_path))
    assert "the folder is there already, and not empty" in said.complaint


@pytest.mark.parametrize("kind", ["rate", "not a number", "fault", "too few", "master"])
def test_what_is_wrong_is_said_before_the_model_is_explored(
    fencepost: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def explored(*_: object) -> None:
        raise AssertionError("the model is explored")

    monkeypatch.setattr(sys.modules["fencepost.traces.corpus.plan"], "search_batch", explored)
    arguments, told = WRONG[kind]
    assert fencepost("simulate", *arguments, "--out", str(tmp_path / "c")).complaint.startswith(told)
    taken = fencepost("simulate", *SMALL, "--faults", FAULT, "--rate", "0.1", "--out", str(tmp_path.parent))
    assert "the folder is there already, and not empty" in taken.complaint


def test_the_ground_truth_is_one_object_a_line(fencepost: Run, tmp_path: Path) -> None:
    fencepost("simulate", *SMALL, "--faults", FAULT, "--rate", "0.06", "--out", str(tmp_path / "c"))
    rows = [json.loads(line) for line in (tmp_path / "c" / PLANTED).read_text().splitlines()]
    assert len(rows) == 3 and [row["trace"] for row in rows] == sorted(row["trace"] for row in rows)
    for row in rows:
        assert list(row) == ["trace", "fault", "step", "action", "params", "guard", "variables"]
        assert (row["fault"], row["action"], row["guard"]) == (FAULT, "follower_fetch", "epoch_not_fenced")
