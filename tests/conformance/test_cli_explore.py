"""``fencepost explore`` as scripts rely on it: keys, counts, verdicts, exit codes, files."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import psutil
import pytest
from fencepost.model.core.registry import REGISTRY
from fencepost.model.interpret.compiler import find_compiler
from fencepost.model.protocols.fencing import fencing

from .conftest import Fencepost

SMALL = ("--replicas", 2, "--log-size", 2, "--max-records", 2, "--max-leader-epoch", 2)
TINY = ("--replicas", 2, "--log-size", 1, "--max-records", 1, "--max-leader-epoch", 1)

KEYS = {
    "protocol",
    "variant",
    "engine",
    "verdict",
    "distinct",
    "depth",
    "violated",
    "trace",
    "seconds",
    "states_per_second",
}


def test_the_contract_in_a_process_of_its_own(process: Fencepost) -> None:
    said = process("explore", "fencing", "--variant", "kip-320", *SMALL, "--engine", "batch", "--json")
    assert said.code == 0
    assert said.err == "", "no progress where standard error is no terminal"
    answer = said.json
    assert answer.keys() >= KEYS
    timed = {"seconds", "states_per_second"}
    assert {key: answer[key] for key in KEYS - timed} == {
        "protocol": "fencing",
        "variant": "kip-320",
        "engine": "batch",
        "verdict": "holds",
        "distinct": 5973,
        "depth": 18,
        "violated": None,
        "trace": None,
    }
    assert all(answer[key] > 0 for key in timed)


def test_both_engines_give_one_answer(fencepost: Fencepost) -> None:
    batch, reference = (
        fencepost("explore", "fencing", *SMALL, "--engine", engine, "--json").json for engine in ("batch", "reference")
    )
    assert (reference["engine"], reference["distinct"], reference["depth"]) == ("reference", 5973, 18)
    assert batch["witnesses"] == reference["witnesses"]
    assert {n: c["transitions"] for n, c in batch["coverage"].items()} == {
        n: c["transitions"] for n, c in reference["coverage"].items()
    }


@pytest.mark.parametrize("engine", ["batch", "reference"])
def test_a_violation_gives_exit_1_and_the_steps(fencepost: Fencepost, engine: str) -> None:
    arguments = ("--variant", "truncate-to-hw", *SMALL, "--engine", engine, "--json")
    said = fencepost("explore", "fencing", *arguments)
    assert said.code == 1
    answer = said.json
    assert (answer["verdict"], answer["violated"]) == ("violated", "weak_isr")
    assert len(answer["trace"]) == 8, "the shortest, after the initial state"
    for step in answer["trace"]:
        assert step.keys() == {"action", "params"}
    assert answer["trace"][-1]["action"] == "become_follower"
    assert fencepost("explore", "fencing", *arguments).json["trace"] == answer["trace"], "the same each time"


def test_a_spent_budget_is_exit_3_and_says_which(fencepost: Fencepost) -> None:
    said = fencepost("explore", "fencing", *SMALL, "--max-states", 100, "--json")
    assert said.code == 3
    answer = said.json
    assert (answer["verdict"], answer["violated"], answer["trace"]) == ("unknown", None, None)
    assert answer["reason"] == "more than 100 states (--max-states)"
    assert fencepost("explore", "fencing", *SMALL, "--max-states", 5973).code == 0, "just enough is enough"
    small = fencepost("explore", "fencing", *SMALL, "--max-memory", 1, "--json")
    assert (small.code, small.json["reason"]) == (3, "more than 1 MiB of memory (--max-memory)")


def test_a_dropped_guard_changes_the_model(fencepost: Fencepost) -> None:
    guard = "become_follower.leader_epoch_matches"
    said = fencepost("explore", "fencing", *SMALL, "--drop", guard, "--json")
    assert said.json["dropped"] == [guard]
    assert said.json["distinct"] != 5973
    both = fencepost(
        "explore", "fencing", *SMALL, "--drop", guard, "--drop", "leader_inc_high_watermark.isr_acknowledges", "--json"
    )
    assert (both.code, both.json["verdict"]) == (1, "violated")


def test_symmetry_counts_orbits(fencepost: Fencepost) -> None:
    answer = fencepost("explore", "fencing", *SMALL, "--symmetry", "--json").json
    assert answer["symmetry"] is True
    assert 5973 / 2 <= answer["distinct"] < 5973, "two replicas, so at most two states to an orbit"
    assert answer["depth"] == 18


def test_only_the_invariants_asked_for_are_checked(fencepost: Fencepost) -> None:
    base = ("explore", "fencing", "--variant", "truncate-to-hw", *SMALL, "--json")
    one = fencepost(*base, "--invariant", "leader_in_isr")
    assert (one.code, one.json["invariants"]) == (0, ["type_ok", "leader_in_isr"])
    two = fencepost(*base, "--invariant", "leader_in_isr", "--invariant", "strong_isr")
    assert (two.code, two.json["violated"]) == (1, "strong_isr")
    assert two.json["invariants"] == ["type_ok", "strong_isr", "leader_in_isr"]


def test_liveness_is_told_as_a_lasso(fencepost: Fencepost, tmp_path: Path) -> None:
    said = fencepost("explore", "fencing", *SMALL, "--liveness", "--html", tmp_path / "lasso.html", "--json")
    assert said.code == 1
    answer = said.json
    assert answer["violated"] == "final_leader_commits_record"
    verdicts = {(each["property"], each["fairness"]): each["verdict"] for each in answer["liveness"]}
    assert verdicts == {
        ("final_leader_adopts_epoch", "kip"): "holds",
        ("final_leader_commits_record", "kip"): "violated",
        ("final_leader_adopts_epoch", "fair-fetches"): "holds",
        ("final_leader_commits_record", "fair-fetches"): "holds",
    }
    (lasso,) = [each["lasso"] for each in answer["liveness"] if each["lasso"]]
    assert answer["trace"] == lasso["stem"] + lasso["loop"]
    assert (tmp_path / "lasso.html").is_file()
    fair = fencepost("explore", "fencing", *SMALL, "--liveness", "--fairness", "fair-fetches", "--json")
    assert (fair.code, fair.json["violated"]) == (0, None)


def test_the_counterexample_as_a_trace_is_replayed_and_as_a_page_needs_no_network(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    trace, page = tmp_path / "lost.trace.jsonl", tmp_path / "lost.html"
    base = ("explore", "fencing", "--variant", "truncate-to-hw", *SMALL)
    said = fencepost(*base, "--trace-out", trace, "--html", page, "--json")
    assert said.json["violated"] == "weak_isr"
    assert said.lines == [f"wrote {trace}", f"wrote {page}"]

    header, *events = (json.loads(line) for line in trace.read_text().splitlines())
    assert (header["format"], header["version"], header["variant"]) == ("fencepost-trace", 1, "truncate-to-hw")
    assert [{"action": e["action"], "params": e["params"]} for e in events] == said.json["trace"]
    assert fencepost("replay", trace, "--json").json["violated"] == "weak_isr"

    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "weak_isr" in text
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?!#|data:)[^"'\s>]+""", text), "nothing is loaded"
    assert not re.search(r"url\((?!['\"]?data:)", text)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lost.html", "lost.trace.jsonl"], "no partial file is left"


def test_no_counterexample_leaves_no_file(fencepost: Fencepost, tmp_path: Path) -> None:
    trace, page = tmp_path / "a.jsonl", tmp_path / "a.html"
    said = fencepost("explore", "fencing", *TINY, "--trace-out", trace, "--html", page)
    assert said.code == 0
    assert said.lines == [f"{path} is not written: there is no counterexample" for path in (trace, page)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["graphml", "dot"])
def test_the_state_graph_is_written(fencepost: Fencepost, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"states.{suffix}"
    said = fencepost("explore", "fencing", *TINY, "--graph", path, "--json")
    assert (said.code, said.lines) == (0, [f"wrote {path}"])
    text = path.read_text()
    if suffix == "graphml":
        nodes = ET.fromstring(text).findall(".//{http://graphml.graphdrawing.org/xmlns}node")
        assert len(nodes) == said.json["distinct"]
    else:
        assert len(re.findall(r"^  \d+ \[", text, re.MULTILINE)) == said.json["distinct"]


def test_a_graph_too_large_to_write_is_unknown(fencepost: Fencepost, tmp_path: Path) -> None:
    # The exploration fits a budget that counts what is new; the graph is cut off by the same number.
    path = tmp_path / "states.dot"
    said = fencepost("explore", "fencing", *SMALL, "--graph", path, "--max-states", 50)
    assert said.code == 3
    assert said.lines == [f"{path} is not written: more than 50 states (--max-states)"]
    assert list(tmp_path.iterdir()) == []


def test_the_text_says_the_verdict_and_the_counts(fencepost: Fencepost) -> None:
    said = fencepost("explore", "fencing", *SMALL)
    assert said.code == 0
    told = " ".join(said.out.split())
    assert "fencing kip-320 (replicas 2, log_size 2, max_records 2, max_leader_epoch 2): holds" in told
    assert "5,973 distinct states, depth 18, batch engine" in told


BAD = [
    (("nonesuch",), f"PROTOCOL: there is no protocol 'nonesuch'; choose one of {', '.join(REGISTRY)}"),
    (
        ("fencing", "--variant", "kip-1"),
        f"--variant: fencing has no variant 'kip-1'; choose one of {', '.join(fencing.variants)}",
    ),
    (
        ("fencing", "--engine", "quantum"),
        'Invalid value "quantum" for --engine. Choose from: "batch", "compiled", "reference", "symbolic".',
    ),
    (
        ("fencing", "--invariant", "tidy"),
        "--invariant: fencing has no invariant 'tidy'; choose of type_ok, weak_isr, strong_isr, leader_in_isr",
    ),
    (
        ("fencing", "--liveness", *TINY, "--fairness", "luck"),
        "--fairness: fencing has no set of fairness conditions 'luck'; choose of kip, fair-fetches",
    ),
    (("fencing", "--drop", "fly"), "--drop: 'fly' names no guard of fencing (kip-320); write ACTION.GUARD"),
    (("fencing", "--drop", "leader_write.fly"), "--drop: leader_write has no guard 'fly'; choose one of"),
    (("fencing", "--replicas", "0"), "--replicas: replicas is 0; give an integer from 1 to 63"),
    (("fencing", "--log-size", "-1"), "--log-size: log_size is -1; give an integer from 1 to 63"),
    (("fencing", "--max-records", "64"), "--max-records: max_records is 64; give an integer from 1 to 63"),
    (("fencing", "--replicas", "two"), "Invalid value for --replicas: 'two' is no whole number in decimal digits"),
    (("fencing", "--replicas", "1.5"), "Invalid value for --replicas: '1.5' is no whole number in decimal digits"),
    (("fencing", "--max-states", "1e6"), "Invalid value for --max-states: '1e6' is no whole number in decimal digits"),
    (("fencing", "--max-states", "0"), 'Invalid value "0" for --max-states. must be at least 1, and is 0'),
    (("fencing", "--frobnicate", "3"), "unknown option --frobnicate; see fencepost explore --help"),
    (("fencing", "--frobnicate"), "unknown option --frobnicate; see fencepost explore --help"),
    (("fencing", "more"), "Unused Tokens: ['more']."),
    ((), 'Command "explore" parameter --protocol requires an argument.'),
]


@pytest.mark.parametrize(("arguments", "told"), BAD, ids=[" ".join(map(str, a)) or "nothing" for a, _ in BAD])
def test_a_wrong_command_line_gets_one_line(fencepost: Fencepost, arguments: tuple[object, ...], told: str) -> None:
    assert fencepost("explore", *arguments, "--json").complaint.startswith(told)


@pytest.mark.parametrize("option", ["--trace-out", "--html", "--graph"])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    fencepost: Fencepost, tmp_path: Path, option: str
) -> None:
    nowhere = tmp_path / "none" / "x.dot"
    # These constants would keep the machine busy for hours.
    huge = ("--replicas", 5, "--log-size", 5, "--max-records", 5, "--max-leader-epoch", 5)
    told = fencepost("explore", "fencing", *huge, option, nowhere).complaint
    assert told.startswith(f"{nowhere}: cannot write: there is no such folder; name a file")
    assert fencepost("explore", "fencing", *huge, option, tmp_path).complaint.startswith(f"{tmp_path}: cannot write")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_of_an_unknown_format_is_refused(fencepost: Fencepost, tmp_path: Path) -> None:
    told = fencepost("explore", "fencing", *TINY, "--graph", tmp_path / "states.png").complaint
    assert told.endswith(".png is no graph format; end the name in .graphml, .dot or .gv")


def test_an_unknown_command_is_refused_in_a_process_of_its_own(process: Fencepost) -> None:
    assert process("frobnicate").complaint.startswith('Unknown command "frobnicate".')


def test_a_hole_of_kip_630_is_found_by_its_name(fencepost: Fencepost, tmp_path: Path) -> None:
    """The protocol of the quorum log, with constants of its own, as a trace that the safe variant refuses."""
    trace = tmp_path / "hole.jsonl"
    arguments = ("snapshots", "--log-size", 1, "--max-chunks", 2, "--json")
    said = fencepost("explore", *arguments, "--variant", "mixed-chunks", "--trace-out", trace)
    assert (said.code, said.json["violated"], len(said.json["trace"])) == (1, "snapshot_is_committed_prefix", 16)
    assert fencepost("replay", trace).code == 1
    assert fencepost("replay", trace, "--variant", "kip-630-safe").code == 1
    assert fencepost("explore", "snapshots", "--log-size", 1, "--replicas", 2, "--observers", 1, "--json").code == 0


BREAKS = ("snapshots", "--variant", "lbo-past-snapshot", "--replicas", 2, "--observers", 1, "--max-leader-epoch", 0)


def test_bounded_search_finds_the_explorers_length(fencepost: Fencepost, tmp_path: Path) -> None:
    trace, page = tmp_path / "trace.jsonl", tmp_path / "page.html"
    said = fencepost("explore", *BREAKS, "--engine", "symbolic", "--json", "--trace-out", trace, "--html", page)
    batch = fencepost("explore", *BREAKS, "--json").json
    assert said.code == 1
    answer = said.json
    assert (answer["engine"], answer["verdict"], answer["violated"]) == ("symbolic", "violated", batch["violated"])
    assert len(answer["trace"]) == len(batch["trace"]) == 4 and answer["depth"] == 5
    assert "snapshot_in_between" in page.read_text(encoding="utf-8")
    assert fencepost("replay", trace, "--variant", "lbo-past-snapshot", "--json").json["verdict"] == "violated"
    text = fencepost("explore", *BREAKS, "--engine", "symbolic")
    assert "runs of up to 4 steps, symbolic engine" in " ".join(text.out.split())


def test_bounded_search_says_how_far_it_looked(fencepost: Fencepost) -> None:
    for engine, reason in (
        ("symbolic", "no run of up to 3 steps breaks a promise; longer ones were not looked at (--max-depth)"),
        ("batch", "runs of more than 3 steps (--max-depth)"),
    ):
        said = fencepost("explore", *BREAKS, "--engine", engine, "--max-depth", 3, "--json")
        assert said.code == 3
        assert (said.json["verdict"], said.json["reason"], said.json["depth"]) == ("unknown", reason, 4)
        assert reason in " ".join(fencepost("explore", *BREAKS, "--engine", engine, "--max-depth", 3).out.split())
    spent = fencepost("explore", *BREAKS, "--engine", "symbolic", "--max-effort", 1, "--json")
    assert spent.code == 3 and "(--max-effort)" in spent.json["reason"]


def test_what_bounded_search_cannot_be_asked(fencepost: Fencepost) -> None:
    told = fencepost("explore", *BREAKS, "--engine", "symbolic", "--liveness").complaint
    assert told == "--liveness: a run without end is no run of so many steps; leave it out, or take batch"
    told = fencepost("explore", *BREAKS, "--engine", "symbolic", "--max-effort", 1 << 32).complaint
    assert told.startswith("--max-effort: 4,294,967,296 is more than z3 counts; ")
    assert "--max-depth" in fencepost("explore", *BREAKS, "--max-depth", -1).complaint


def test_the_compiled_engine_says_by_what_it_was_compiled(fencepost: Fencepost) -> None:
    if find_compiler() is None:
        pytest.skip("absent: a C compiler (CC, cc, gcc, clang, ziglang)")
    said = fencepost("explore", "fencing", *SMALL, "--engine", "compiled", "--threads", 2)
    told = " ".join(said.out.split())
    assert said.code == 0 and "5,973 distinct states, depth 18, compiled engine, " in told and "2 threads" in told
    answer = fencepost("explore", "fencing", *SMALL, "--engine", "compiled", "--json").json
    assert (answer["engine"], answer["distinct"]) == ("compiled", 5973) and "compiled by" in answer["engine_note"]
    refused = fencepost("explore", "fencing", *SMALL, "--engine", "compiled", "--symmetry").complaint
    assert refused == "--symmetry: the compiled engine counts states, no orbits; leave it out, or take batch"
    # Liveness is checked on the whole graph, whoever explored.
    asked = ("explore", "fencing", *TINY, "--liveness", "--fairness", "kip", "--json", "--engine")
    one, other = (fencepost(*asked, engine).json["liveness"] for engine in ("compiled", "batch"))
    assert one and [each | {"seconds": 0} for each in one] == [each | {"seconds": 0} for each in other]


def test_threads_are_the_compiled_engines(fencepost: Fencepost) -> None:
    told = fencepost("explore", "fencing", *SMALL, "--engine", "batch", "--threads", 2).complaint
    assert told == "--threads: the batch engine has one of its own; leave it out, or take compiled"
    assert fencepost("explore", "fencing", *SMALL, "--threads", 2).code == 0


def test_an_interrupted_compiled_search_ends(tmp_path: Path) -> None:
    if find_compiler() is None:
        pytest.skip("absent: a C compiler (CC, cc, gcc, clang, ziglang)")
    # One that would take hours; it writes its progress to a terminal alone, so its memory says that it is on its way.
    large = ("--log-size", "5", "--max-records", "5", "--max-leader-epoch", "4", "--engine", "compiled")
    program = "from fencepost.conformance.entry import run; run()"
    command = [sys.executable, "-c", program, "explore", "fencing", *large]
    # Tests that run in the background are started with SIGINT ignored, which a process hands on to its children.
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as child:
        process = psutil.Process(child.pid)
        while child.poll() is None and process.memory_info().rss < 300 << 20:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, "") and err == "fencepost: interrupted\n"
