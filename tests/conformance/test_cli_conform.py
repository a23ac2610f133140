"""``fencepost conform``: verdicts and exit codes, what a divergence leaves, and every kind of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fencepost.conformance.lockstep.adapter import Adapter
from fencepost.conformance.lockstep.registry import adapter_names, make_adapter

from .conftest import Fencepost

SMALL = ("--replicas", 2, "--log-size", 2, "--max-records", 2, "--max-leader-epoch", 2)

BROKEN = """
from fencepost.conformance.lockstep.model_adapter import ModelAdapter

def unfenced(protocol, variant):
    return ModelAdapter(protocol, variant, ["leader_shrink_isr.true_leader"])

class Lying(ModelAdapter):
    name = "lying"
    def observe(self):
        seen = dict(super().observe())
        return seen | {"leo[1]": 0} if seen["leo[1]"] == 1 else seen

class Blind(ModelAdapter):
    def observe(self):
        return {}

def nothing(protocol, variant):
    return object()

def raises(protocol, variant):
    raise OSError("no route to host")

number = 7
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with adapters, and an empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "broken.py"
    path.write_text(BROKEN)
    return path


def test_a_system_that_conforms_holds(fencepost: Fencepost, broken: Path) -> None:
    said = fencepost(
        "conform", "--way", "lockstep", "--impl", "model", "--examples", 120, "--seed", 9, *SMALL, "--json"
    )
    assert said.code == 0
    answer = said.json
    assert (answer["verdict"], answer["adapter"], answer["variant"]) == ("holds", "model", "kip-320")
    assert answer["reachable"] == 5_973 and 0 < answer["states"] < 5_973
    assert answer["steps"] > 1_000 and answer["seed"] == 9 and answer["disagreement"] is None
    assert all(count["enabled"] for count in answer["actions"].values())
    assert answer["faults"]["isolate"] > 0 and answer["cells_never_observed"] == []
    assert list(Path.cwd().iterdir()) == [broken], "nothing is written"


def test_the_text_says_seed_coverage_and_what_was_not_met(fencepost: Fencepost, broken: Path) -> None:
    said = fencepost(
        "conform", "--way", "lockstep", "--impl", "model", "--examples", 2, "--no-faults", "--seed", 4, *SMALL
    )
    assert said.code == 0
    text = " ".join(said.out.split())
    assert (
        "model in lockstep against fencing kip-320 (replicas 2, log_size 2, max_records 2, max_leader_epoch 2): holds"
        in text
    )
    assert "seed 4:" in text and "of 5,973 states of the model" in text and "faults: none" in text
    assert "guards that never refused a step (" in text and "hw_reached_epoch" in text


def test_a_divergence_leaves_a_trace_a_page_and_the_command_that_repeats_it(
    fencepost: Fencepost, broken: Path, tmp_path: Path
) -> None:
    page = tmp_path / "why.html"
    said = fencepost("conform", "--impl", "broken.py:unfenced", "--examples", 500, "--html", page, *SMALL)
    assert said.code == 1
    assert "Fencepost" not in said.err.splitlines()[0] and "wrote disagreement.trace.jsonl" in said.err
    text = " ".join(said.out.split())
    assert "the model's guard: leader_shrink_isr(" in text and "guard true_leader wants" in text
    assert "leader_shrink_isr" in page.read_text() and "does not conform" in page.read_text()
    command = next(line.split() for line in said.out.splitlines() if line.strip().startswith("fencepost conform"))
    assert command[1:] == ["conform", "--impl", "broken.py:unfenced", "--replay", "disagreement.trace.jsonl"]
    again = fencepost(*command[1:], "--json")
    assert again.code == 1
    assert again.json["disagreement"]["refusal"]["guard"] == "true_leader"
    assert fencepost("replay", "disagreement.trace.jsonl").code == 1
    right = fencepost("conform", "--impl", "model", "--replay", "disagreement.trace.jsonl")
    assert right.code == 0 and "as the model has them" in " ".join(right.out.split())
    own = fencepost("conform", "--replay", "disagreement.trace.jsonl", "--trace-out", "again.jsonl", "--html", page)
    assert own.code == 1, "the file names the adapter too"
    assert (
        Path("again.jsonl").read_text().splitlines()[1:]
        == (Path("disagreement.trace.jsonl").read_text().splitlines()[1:])
    )


@pytest.mark.parametrize("draw", ["hypothesis", "random"])
def test_the_first_differing_observable_is_told_and_one_seed_gives_one_answer(
    fencepost: Fencepost, broken: Path, draw: str
) -> None:
    run = ("conform", "--impl", "broken.py:Lying", "--draw", draw, "--seed", 3, *SMALL, "--json")
    first, second = fencepost(*run), fencepost(*run)
    assert first.code == second.code == 1
    found = first.json["disagreement"]
    assert found["kind"] == "cells"
    assert found["cells"][0] == {"cell": "leo[1]", "model": 1, "implementation": 0}
    assert found["asked"]["action"] in ("follower_fetch", "leader_write")
    same = ("disagreement", "tries", "steps", "found_after")
    assert [first.json[name] for name in same] == [second.json[name] for name in same]
    assert len(first.json["tries"]) <= 5


def test_a_broken_promise_is_replayed_with_the_promises_that_were_asked_for(fencepost: Fencepost, broken: Path) -> None:
    unsafe = (
        "--way",
        "lockstep",
        "--impl",
        "model",
        "--variant",
        "truncate-to-hw",
        "--invariant",
        "strong_isr",
        "--draw",
        "random",
    )
    said = fencepost("conform", *unsafe, "--examples", 4_000, *SMALL, "--json")
    assert said.code == 1 and said.json["disagreement"]["kind"] == "promise"
    command = said.json["replay"].split()
    assert command[-2:] == ["--invariant", "strong_isr"]
    again = fencepost(*command[1:], "--json")
    assert again.code == 1 and again.json["disagreement"] == said.json["disagreement"]
    assert fencepost(*command[1:-2], "--invariant", "type_ok").code == 0


def test_nothing_to_compare_is_no_verdict(fencepost: Fencepost, broken: Path) -> None:
    said = fencepost("conform", "--impl", "broken.py:Blind", "--examples", 5, *SMALL, "--json")
    assert said.code == 3 and said.json["verdict"] == "unknown" and "showed no cell" in said.json["reason"]


def test_a_budget_of_seconds_that_runs_out_is_no_verdict(fencepost: Fencepost, broken: Path) -> None:
    said = fencepost(
        "conform",
        "--way",
        "lockstep",
        "--impl",
        "model",
        "--examples",
        100_000,
        "--max-seconds",
        0.2,
        "--html",
        "x.html",
        *SMALL,
    )
    assert said.code == 3 and "0.2 s ran out after" in " ".join(said.out.split())
    assert "x.html is not written: there is no divergence" in said.err


def test_only_the_named_faults_are_drawn(fencepost: Fencepost, broken: Path) -> None:
    run = ("--variant", "kip-320-restarts", "--fault", "crash", "--fault", "isolate", "--examples", 60)
    said = fencepost("conform", "--way", "lockstep", "--impl", "model", *run, "--draw", "random", *SMALL, "--json")
    assert said.code == 0 and set(said.json["faults"]) == {"crash", "isolate"}
    assert all(said.json["faults"].values())


BAD = [
    (("--impl", "nobody"), "there is no adapter 'nobody'"),
    (("--impl", "broken.py:number"), "nothing to call named 'number'"),
    (("--impl", "broken.py:missing"), "nothing to call named 'missing'"),
    (("--impl", "absent.py:Adapter"), "there is no file absent.py"),
    (("--impl", "no.such.module:Adapter"), "importing it raised ModuleNotFoundError"),
    (("--impl", "broken.py:nothing"), "what it makes has no name, protocol"),
    (("--impl", "broken.py:raises"), "raised OSError: no route to host"),
    (("--impl", "model", "--protocol", "paxos"), "there is no protocol 'paxos'"),
    (("--impl", "model", "--variant", "kip-1"), "has no variant 'kip-1'"),
    (("--impl", "template", "--protocol", "truncation"), "there is no adapter 'template'"),
    (("--impl", "model", "--fault", "earthquake"), "there is no fault 'earthquake'"),
    (("--impl", "model", "--invariant", "nothing"), "has no invariant 'nothing'"),
    (("--impl", "model", "--replicas", 0), "replicas is 0"),
    (("--impl", "model", "--brokers", 2), "unknown option --brokers; see fencepost conform --help"),
    (("--impl", "model", "--examples", 0), "must be at least 1"),
    (("--impl", "model", "--trace-out", "no/folder/t.jsonl"), "there is no such folder"),
    (("--replay", "absent.jsonl"), "absent.jsonl"),
]


@pytest.mark.parametrize(("options", "words"), BAD, ids=[" ".join(map(str, row[0][-2:])) for row in BAD])
def test_bad_input_ends_in_one_line(
    fencepost: Fencepost, broken: Path, options: tuple[object, ...], words: str
) -> None:
    assert words in fencepost("conform", *options).complaint


def test_a_trace_that_is_no_lockstep_run_cannot_be_replayed(fencepost: Fencepost, broken: Path) -> None:
    header = {
        "format": "fencepost-trace",
        "version": 1,
        "protocol": "fencing",
        "variant": "kip-320",
        "constants": {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2},
    }
    Path("other.jsonl").write_text(json.dumps(header) + "\n")
    assert "not of a lockstep run" in fencepost("conform", "--replay", "other.jsonl").complaint


def test_a_user_who_names_a_module_in_the_folder_finds_it(process: Fencepost, broken: Path, tmp_path: Path) -> None:
    said = process("conform", "--impl", "broken:Lying", "--examples", 30, *SMALL, "--json", cwd=tmp_path)
    assert said.code == 1 and said.json["adapter"] == "lying"
    assert (tmp_path / "disagreement.trace.jsonl").is_file()


@pytest.mark.parametrize("name", adapter_names("fencing"))
def test_every_built_in_adapter_can_be_made_and_reset(name: str) -> None:
    adapter: Adapter = make_adapter(name, None, None)
    try:
        adapter.reset({"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}, 1)
        assert adapter.observe()
    finally:
        adapter.close()
