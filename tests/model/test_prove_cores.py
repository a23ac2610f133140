"""Unsat cores: an obligation is asked with what it needs first, and no file can make more of it than there is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import Verdict
from fencepost.model.protocols.controller.proof import kip_631
from fencepost.model.protocols.controller.proof_bootstrapped import kip_631_bootstrapped
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.proof import kip_320
from fencepost.model.prove import cores as cores_module
from fencepost.model.prove import run as run_module
from fencepost.model.prove.cores import CORE_RLIMIT, find_cores, read_cores, written_cores
from fencepost.model.prove.obligations import INITIAL, Obligations
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.proof_for_variant import AttachedProof, attach
from fencepost.model.prove.run import judge, prove
from fencepost.model.prove.solve import ask

PROOFS = {
    proof.cores.stem.removeprefix("cores-"): proof
    for each in REGISTRY.values()
    for proof in each.find_proofs()
    if proof.cores
}
"""By the names of their files."""
NAME = ("leader_expand_isr", "strong_isr")


@pytest.fixture
def attached() -> AttachedProof:
    return attach(kip_320, fencing.traced())


def with_cores(monkeypatch: pytest.MonkeyPatch, folder: Path, cores: Mapping[tuple[str, str], tuple[str, ...]]) -> None:
    file = folder / "cores.json"
    file.write_text(written_cores(cores, kip_320.variant), encoding="utf-8")
    monkeypatch.setattr(kip_320, "cores", file)


def test_a_core_is_found_and_is_enough(attached: AttachedProof) -> None:
    obligations = Obligations(attached)
    (found,) = find_cores(obligations, [NAME])
    assert set(found.core) < set(obligations.hypotheses) and 2 * len(found.core) < len(obligations.hypotheses)
    assert 4 * found.after < 3 * found.before
    assert ask(obligations.obligation(*NAME, found.core).smt).resources == found.after
    assert ask(obligations.obligation(*NAME).smt).resources == found.before
    # Each of them in its turn is needed, or at least brings a term: without half of them z3 gives up.
    assert not ask(obligations.obligation(*NAME, found.core[::2]).smt).proved


def test_another_order_is_tried_where_the_first_leads_to_no_core_that_is_good_enough(
    attached: AttachedProof, monkeypatch: pytest.MonkeyPatch
) -> None:
    obligations = Obligations(attached)
    (first,) = find_cores(obligations, [NAME])
    # Whoever asks for less effort than that gets it of another refutation, which begins with other hypotheses.
    monkeypatch.setattr(cores_module, "CORE_RLIMIT", first.after)
    (other,) = find_cores(obligations, [NAME])
    assert other.after < first.after and set(other.core) != set(first.core)
    assert ask(obligations.obligation(*NAME, other.core).smt).resources == other.after
    assert list(find_cores(obligations, [NAME])) == [other], "the orders are the same in each run"
    monkeypatch.setattr(cores_module, "_ORDERS", 1)
    assert list(find_cores(obligations, [NAME])) == []


def test_what_is_cheap_has_no_core(attached: AttachedProof) -> None:
    assert list(find_cores(Obligations(attached), [(INITIAL, "type_ok")])) == []


def test_it_is_asked_first_and_with_all_that_there_is_where_it_is_not_enough(
    attached: AttachedProof, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    action, conjunct = NAME
    whole = prove(attached, actions=[action], conjuncts=[conjunct], witnesses=False, cores=False).results[0]
    enough = next(find_cores(Obligations(attached), [NAME])).core
    # Nothing; something that has no such hypothesis; what is enough.
    for core, asked_again in (((), True), (("no_such_lemma.0",), True), (enough, False)):
        with_cores(monkeypatch, tmp_path, {NAME: core})
        for workers in (1, 3):
            run = prove(attached, actions=[action], conjuncts=[conjunct], witnesses=False, workers=workers)
            (result,) = run.results
            assert result.verdict is Verdict.HOLDS
            hypotheses = result.obligation.smt.count("(assert")
            assert (hypotheses == whole.obligation.smt.count("(assert")) is asked_again
            assert (result.answer.resources > whole.answer.resources) is asked_again


IN_ITS_ORDER = {
    "replay_metadata.view_is_of_stable_prefix": (kip_631, 4),
    "replay_record.state_is_of_stable_prefix": (kip_631_bootstrapped, 9),
}
"""Obligations whose core is not enough in its own order with one seed, and is in another."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", IN_ITS_ORDER)
def test_it_is_asked_in_another_order_where_z3_gives_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    proof, seed = IN_ITS_ORDER[name]
    action, conjunct = name.split(".")

    def effort() -> int:
        run = prove(
            attach(proof, proof.protocol.traced()), actions=[action], conjuncts=[conjunct], seed=seed, witnesses=False
        )
        assert run.verdict is Verdict.HOLDS
        return run.results[0].answer.resources

    assert effort() < CORE_RLIMIT
    monkeypatch.setattr(run_module, "CORE_ORDERS", ())
    assert effort() > 2 * CORE_RLIMIT


def test_no_core_proves_what_is_not_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A leader that expands the ISR by a follower without its records.
    mutant = fencing.traced().drop("leader_expand_isr.reached_high_watermark")
    plain = judge(kip_320, mutant)
    assert plain.verdict is Verdict.VIOLATED
    everything = tuple(Obligations(attach(kip_320, mutant)).hypotheses)
    for core in ((), everything):
        with_cores(monkeypatch, tmp_path, dict.fromkeys(Obligations(attach(kip_320, mutant)).names(), core))
        run = judge(kip_320, mutant)
        assert run.verdict is Verdict.VIOLATED
        assert run.failed[-1].obligation.name == plain.failed[-1].obligation.name


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    cores = {("b", "y"): ("q.1", "p.0"), ("a", "x"): (), ("b", "x"): ("p.0",)}
    text = written_cores(cores, "safe")
    (tmp_path / "cores.json").write_text(text, encoding="utf-8")
    read = read_cores(tmp_path / "cores.json", "safe")
    assert {name: set(core) for name, core in read.items()} == {name: set(core) for name, core in cores.items()}
    assert text == written_cores(dict(reversed(cores.items())), "safe")
    assert read_cores(tmp_path / "none.json", "safe") == {}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("no JSON", "Expecting value"),
        ("[]", "list indices"),
        ('{"format": "fencepost-cores", "version": 1, "variant": "other"}', "1 for safe"),
        (
            json.dumps(
                {
                    "format": "fencepost-cores",
                    "version": 1,
                    "variant": "safe",
                    "hypotheses": ["p.0"],
                    "cores": {"a": {"x": [1]}},
                }
            ),
            "out of range",
        ),
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "cores.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=complaint) as refused:
        read_cores(file, "safe")
    assert str(file) in str(refused.value) and "--write-cores" in str(refused.value)


def cores_of(proof: Proof) -> Mapping[tuple[str, str], tuple[str, ...]]:
    assert proof.cores is not None
    return {name: tuple(core) for name, core in read_cores(proof.cores, proof.variant).items()}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", list(PROOFS))
def test_the_files_are_of_the_proofs_as_they_are(name: str) -> None:
    """Who changes a lemma writes them anew: what is asked twice takes longer than what is asked once."""
    proof = PROOFS[name]
    obligations = Obligations(attach(proof, proof.protocol.traced(proof.variant)))
    cores = cores_of(proof)
    assert set(cores) <= set(obligations.names())
    assert {name for core in cores.values() for name in core} <= set(obligations.hypotheses)
    # A sample, spread over all of them.
    names = sorted(cores)[:: max(1, len(cores) // 12)]
    enough = [ask(obligations.obligation(*each, cores[each]).smt, rlimit=CORE_RLIMIT).proved for each in names]
    assert len(names) >= 12 and all(enough), dict(zip(names, enough, strict=True))
