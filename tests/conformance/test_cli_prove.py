"""``fencepost prove`` as scripts rely on it: keys, verdicts, exit codes, files."""

from __future__ import annotations

import copy
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import z3
from fencepost.conformance.scaffold import write_new
from fencepost.model.core.registry import REGISTRY
from fencepost.model.protocols.compaction import compaction
from fencepost.model.protocols.compaction.proof import kip_280
from fencepost.model.protocols.controller import controller
from fencepost.model.protocols.controller.proof import kip_631
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.proof import kip_320
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.protocols.tiering import tiering
from fencepost.model.protocols.tiering.proof import kip_1023
from fencepost.model.protocols.truncation import truncation
from fencepost.model.prove.cores import read_cores
from fencepost.model.prove.solve import RLIMIT

from .conftest import Fencepost

PROMISES = ["type_ok", *fencing.traced().invariants, "log_matching", "committed_never_lost", "consumers_agree"]
FENCED = "follower_fetch.epoch_not_fenced"


PROVED = {
    "kip-280-safe": (kip_280.protocol, compaction.invariant_names),
    "kip-631-safe": (controller, tuple(name for name in controller.invariant_names if name not in kip_631.without)),
    "kip-320": (fencing, PROMISES),
    "kip-320-brokers": (fencing, PROMISES),
    "kip-497": (fencing, PROMISES),
    "kip-630-safe": (snapshots, snapshots.invariant_names),
    "kip-630-votes": (snapshots, snapshots.invariant_names),
    "kip-1023-safe": (kip_1023.protocol, tiering.invariant_names),
    "kip-320-mended": (truncation, ("type_ok", *truncation.traced().invariants)),
}

FOLLOWS = {"kip-280-safe": kip_280.follows, "kip-631-safe": kip_631.follows, "kip-1023-safe": kip_1023.follows}
"""Promises that are no part of the induction: each has one obligation."""
TWICE = frozenset({"kip-631-safe", "kip-1023-safe"})
"""Proved at each of two values of a constant."""
ALL = [variant for variant in PROVED for _ in range(1 + (variant in TWICE))]
"""The variants of the proofs that there are, in their order."""
ALONE = {"fencing": ["kip-320"], "compaction": ["kip-280-safe"]}


# By day ``fencepost check`` proves that of truncation and the first of snapshots, beside these tests (tox -e check).
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "chosen", ["fencing", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("compaction", ""))]
)
def test_everything_is_proved_in_a_process_of_its_own(process: Fencepost, chosen: str) -> None:
    said = process("prove", *([chosen] if chosen else []), "--json", seconds=1200)
    assert said.code == 0
    assert said.err == "", "no progress where standard error is no terminal"
    answer = said.json
    assert (answer["verdict"], answer["seed"], answer["z3"]) == ("holds", 0, z3.get_version_string())
    assert [proof["variant"] for proof in answer["proofs"]] == ALONE.get(chosen, ALL)
    for proof in answer["proofs"]:
        protocol, promised = PROVED[proof["variant"]]
        assert proof["protocol"] == protocol.name
        assert proof["verdict"] == "holds"
        assert [promise["name"] for promise in proof["promises"]] == list(promised)
        conjuncts = [each["name"] for each in proof["promises"] + proof["lemmas"]]
        assert all(each["says"] for each in proof["promises"] + proof["lemmas"])
        actions = [action.name for action in protocol.traced(proof["variant"]).actions]
        asked = {(each["action"], each["conjunct"]) for each in proof["obligations"]}
        follows = FOLLOWS.get(proof["variant"], frozenset())
        inductive = [conjunct for conjunct in conjuncts if conjunct not in follows]
        stepwise = {(action, conjunct) for action in ("initial", *actions) for conjunct in inductive}
        assert asked == stepwise | {("follows", conjunct) for conjunct in follows}
        assert len(proof["obligations"]) == len(asked)
        assert all(each["verdict"] == "holds" and each["counterexample"] is None for each in proof["obligations"])
        # Each is far from the bound at which z3 would give up, and no action is out of reach.
        assert max(each["resources"] for each in proof["obligations"]) < RLIMIT / 2
        assert list(proof["witnesses"]) == actions and all(proof["witnesses"].values())
        assert proof["run"] is None


def test_the_table(fencepost: Fencepost) -> None:
    said = fencepost("prove", "fencing", "--action", "leader_write", "--conjunct", "log_matching", "--seed", 7)
    assert said.code == 0
    assert "fencing kip-320, with no bound: holds" in said.out
    assert "1 of 1 obligations proved, of 1 promise and 0 lemmas; Z3 5.4" in said.out
    assert "seed 7" in said.out
    (row,) = [line.split() for line in said.out.splitlines() if line.startswith("leader_write")]
    assert (row[1], row[2], row[-2], row[-1]) == ("1", "1", "2/1/1/1", "holds")


def test_without_a_guard_there_is_a_counterexample(fencepost: Fencepost) -> None:
    said = fencepost("prove", "fencing", "--drop", FENCED, "--action", "follower_fetch")
    assert said.code == 1
    first, state, after, reached, *_ = said.out.splitlines()
    assert first.startswith("follower_fetch(leader=") and " breaks log_matching for left=" in first
    assert state.startswith("  state   ") and "leo[0]" in state
    assert after.startswith("  after   leo[")
    assert reached == "  not reached at 2/2/2/2 (6,345 states)"
    assert "follower_fetch also breaks consumers_agree" in said.out
    assert "a run of 12 steps at 3/2/2/2 breaks weak_isr:" in said.out
    assert "fencing kip-320, with no bound: violated" in said.out


def test_a_counterexample_as_json(fencepost: Fencepost) -> None:
    chosen = ("--action", "follower_fetch", "--conjunct", "log_is_a_prefix")
    said = fencepost("prove", "fencing", "--drop", FENCED, *chosen, "--json")
    assert said.code == 1
    (proof,) = said.json["proofs"]
    assert (proof["dropped"], proof["verdict"]) == ([FENCED], "violated")
    (obligation,) = proof["obligations"]
    case = obligation["counterexample"]
    assert (case["action"], case["conjunct"], case["reachable"], case["path"]) == (
        "follower_fetch",
        "log_is_a_prefix",
        False,
        None,
    )
    assert case["constants"]["replicas"] == 2 and case["params"].keys() == {"leader", "follower"}
    assert case["values"].keys() == {"replica", "offset"}
    assert any(name.startswith("history_") for name in case["ghosts"])
    assert not any(name.startswith("history_") for name in case["state"])
    assert (proof["run"]["violated"], len(proof["run"]["steps"])) == ("weak_isr", 12)


def test_another_variant_is_not_proved(fencepost: Fencepost) -> None:
    said = fencepost("prove", "fencing", "--variant", "kip-279", "--conjunct", "weak_isr", "--json")
    assert said.code == 1
    (proof,) = said.json["proofs"]
    assert {o["action"] for o in proof["obligations"] if o["verdict"] == "violated"} >= {"become_follower"}


def test_a_variant_has_the_proof_that_is_for_it_or_its_twins(fencepost: Fencepost) -> None:
    chosen = ("--action", "leader_take_isr", "--conjunct", "leader_counts_proposals")
    said = fencepost("prove", "fencing", "--variant", "kip-497", *chosen)
    assert said.code == 0 and "fencing kip-497, with no bound: holds" in said.out
    forgets = ("--action", "leader_forget_proposal", "--conjunct", "leader_counts_proposals")
    said = fencepost("prove", "fencing", "--variant", "kip-497-forgets", *forgets)
    assert said.code == 1 and "a run of 9 steps at 2/1/1/1 breaks strong_isr:" in said.out


def test_obligations_are_written_for_other_solvers(fencepost: Fencepost, tmp_path: Path) -> None:
    folder = tmp_path / "smt"
    said = fencepost("prove", "fencing", "--action", "leader_write", "--smt-out", folder)
    assert said.code == 0 and said.lines == [f"wrote {folder}"]
    files = sorted(folder.iterdir())
    assert len(files) == len(PROMISES) + sum(not lemma.promise for lemma in kip_320.lemmas.values())
    text = (folder / "leader_write.log_matching.smt2").read_text(encoding="utf-8")
    solver = z3.SimpleSolver(ctx=z3.Context())
    solver.set(auto_config=False, mbqi=False)
    solver.from_string(text)
    assert solver.check() == z3.unsat


def test_what_z3_leaves_open_is_unknown_and_kept(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = copy.copy(kip_320)
    bare.hint_texts = {}
    monkeypatch.setitem(REGISTRY._loaded, "fencing", replace(REGISTRY["fencing"], proof=bare))
    monkeypatch.chdir(tmp_path)
    chosen = ("--action", "leader_inc_high_watermark", "--conjunct", "committed_never_lost")
    said = fencepost("prove", "fencing", *chosen)
    assert said.code == 3
    name = "leader_inc_high_watermark.committed_never_lost"
    assert said.lines == [f"wrote unproved/{name}.smt2"]
    assert (tmp_path / "unproved" / f"{name}.smt2").read_text(encoding="utf-8").startswith("; fencing kip-320")
    assert f"{name} is not proved: (incomplete quantifiers); no counterexample at 2/1/1/1" in said.out
    assert "with no bound: unknown" in said.out
    again = fencepost("prove", "fencing", *chosen, "--json")
    (proof,) = again.json["proofs"]
    assert (again.code, proof["verdict"], proof["obligations"][0]["verdict"]) == (3, "unknown", "unknown")


def test_cores_are_written_for_ones_own_proof_and_used(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(REGISTRY, "_loaded", dict(REGISTRY._loaded))
    monkeypatch.setattr(sys, "path", list(sys.path))
    write_new("agreement", tmp_path)
    name, proof = f"{tmp_path / 'agreement.py'}:agreement", tmp_path / "agreement_proof.py"
    assert "names no file; give it one: Proof(cores=...)" in fencepost("prove", name, "--write-cores").complaint
    for module in [each for each in sys.modules if each.startswith("agreement")]:
        monkeypatch.delitem(sys.modules, module)
    text = proof.read_text(encoding="utf-8")
    assert 'variant="two-phase",' in text
    own = 'variant="two-phase", cores=__import__("pathlib").Path(__file__).with_name("cores-two-phase.json"),'
    proof.write_text(text.replace('variant="two-phase",', own), encoding="utf-8")
    monkeypatch.setattr("fencepost.model.prove.cores.WORTH", 0)
    said = fencepost("prove", name, "--write-cores", "--json")
    file = tmp_path / "cores-two-phase.json"
    assert said.code == 0 and said.lines == [f"wrote {file}"] and read_cores(file, "two-phase")
    (found,) = said.json["proofs"]
    (whole,) = fencepost("prove", name, "--smt-out", tmp_path / "smt", "--json").json["proofs"]
    assert found["verdict"] == whole["verdict"] == "holds"
    effort = [sum(each["resources"] for each in proof["obligations"]) for proof in (found, whole)]
    assert 2 * effort[0] < effort[1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ("truncations",),
            f"PROTOCOL: there is no protocol 'truncations'; choose one of {', '.join(REGISTRY)}",
        ),
        (("fencing", "--variant", "kip-1"), "--variant: fencing has no variant 'kip-1'; choose one of truncate-to-hw"),
        (("fencing", "--drop", "a.b"), "--drop: 'a.b' names no guard of fencing (kip-320); write ACTION.GUARD"),
        (("fencing", "--action", "x"), "--action: the proof has no action 'x'; choose of initial, controller_elect"),
        (("fencing", "--conjunct", "x"), "--conjunct: the proof has no conjunct 'x'; choose of type_ok, weak_isr"),
        (
            ("fencing", "--write-cores", "--action", "leader_write"),
            "--write-cores: cores are of a whole proof, on its own variant; leave out the other options",
        ),
        (
            ("fencing", "--write-cores", "--variant", "kip-320-stale-acks"),
            "--write-cores: cores are of a whole proof, on its own variant; leave out the other options",
        ),
        (("--drop", FENCED), "PROTOCOL: --variant, --drop, --action and --conjunct are about one protocol; name it"),
    ],
)
def test_a_wrong_command_line_is_one_line(fencepost: Fencepost, arguments: tuple[str, ...], complaint: str) -> None:
    assert fencepost("prove", *arguments).complaint.startswith(complaint)


def test_a_protocol_without_a_proof_is_said_to_have_none(fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY._loaded, "truncation", replace(REGISTRY["truncation"], proof=None))
    complaint = fencepost("prove", "truncation").complaint
    assert complaint.startswith("PROTOCOL: there is no proof of 'truncation'; name one that has a proof, or write it")


def test_a_folder_that_cannot_be_made(fencepost: Fencepost, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    said = fencepost("prove", "fencing", "--action", "initial", "--smt-out", tmp_path / "file" / "smt")
    assert said.code == 2 and "with no bound: holds" in said.out
    assert f"fencepost: {tmp_path / 'file' / 'smt'}: cannot write: Not a directory; " in said.err
