"""A second opinion: cvc5 refutes the very SMT-LIB texts that z3 refuted. Skips where cvc5 is missing.

Asked are five proofs of three protocols, but for ``BEYOND``, for which cvc5's budget is not enough. Not asked: those of
kip-630-votes, and of the protocols whose proofs take z3 minutes (kip-631-safe, kip-280-safe, kip-1023-safe).
"""

from __future__ import annotations

import copy
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from fencepost.model.core.registry import REGISTRY
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.proof import kip_320
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.protocols.snapshots.proof import kip_630
from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.proof import kip_320_mended
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.solve import ask

cvc5: Any = None
with suppress(ImportError):
    import cvc5

# Of each test, as workers do not tell of a whole file that is skipped.
pytestmark = pytest.mark.skipif(cvc5 is None, reason="absent: cvc5")

RLIMIT = 1_000_000
"""Of cvc5's resource units, for one obligation."""


BEYOND = {
    "kip-320-brokers": {("leader_inc_high_watermark", "later_isrs_hold_the_committed")},
    "kip-497": {("leader_inc_high_watermark", "later_isrs_hold_the_committed")},
    "kip-630-safe": {("follower_fetch", "logs_match")},
}
"""By variant, obligations that cvc5 leaves open within that."""


def answer(smt: str) -> str:
    """What cvc5 says: ``unsat`` where it refutes the text as well, else ``sat`` or ``unknown``; of nothing else."""
    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("rlimit-per", str(RLIMIT))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, smt, "obligation")
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said = str(command.invoke(solver, parser.getSymbolManager())).strip() or said
    verdict = said.partition(" ")[0]
    assert verdict in ("unsat", "sat", "unknown"), f"cvc5 answers {said!r}"
    return verdict


PARTS = range(8)


@cache
def obligations_of(variant: str) -> Obligations:
    (proof,) = (
        each for each in (*REGISTRY["fencing"].find_proofs(), kip_630, kip_320_mended) if each.variant == variant
    )
    return Obligations(attach(proof, proof.protocol.traced(variant)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("variant", "least"),
    [("kip-320", 200), ("kip-320-brokers", 350), ("kip-497", 500), ("kip-630-safe", 1000), ("kip-320-mended", 400)],
)
def test_cvc5_proves_every_obligation(variant: str, least: int, part: int) -> None:
    obligations, beyond = obligations_of(variant), BEYOND.get(variant, set())
    names = [name for name in obligations.names() if name not in beyond]
    assert len(names) > least and len(names) == len(obligations.names()) - len(beyond)
    answers = {name: answer(obligations.obligation(*name).smt) for name in names[part :: len(PARTS)]}
    assert {name: said for name, said in answers.items() if said != "unsat"} == {}


def test_cvc5_needs_a_lemma_that_z3_does_without() -> None:
    """That no high watermark is past its log follows from the range of offsets; it is a lemma for cvc5's sake."""
    without = copy.copy(kip_320)
    without.lemmas = {name: lemma for name, lemma in kip_320.lemmas.items() if name != "hw_within_log"}
    for proof, proved in ((kip_320, True), (without, False)):
        smt = Obligations(attach(proof, fencing.traced())).obligation("become_leader", "weak_isr").smt
        assert ask(smt).proved
        assert (answer(smt) == "unsat") is proved


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("variant", "obligation"),
    [
        ("kip-320", ("consumer_fetch", "no_silent_gap")),
        ("epoch-ignored", ("answer_out_of_range", "out_of_range_only_unchecked")),
        ("reset-latest", ("find_divergence", "reported_divergence")),
    ],
)
def test_cvc5_does_not_prove_a_hole_of_truncation(variant: str, obligation: tuple[str, str]) -> None:
    obligations = Obligations(attach(kip_320_mended, truncation.traced(variant)))
    assert answer(obligations.obligation(*obligation).smt) != "unsat"


def test_what_cvc5_cannot_read_is_no_answer() -> None:
    """The tests below want something else than a proof; a text that is none at all must not do."""
    smt = obligations_of("kip-320").obligation("leader_write", "log_matching").smt
    assert answer(smt) == "unsat"
    with pytest.raises((AssertionError, RuntimeError)):
        answer(smt.replace("(assert", "(asserted"))
    with pytest.raises((AssertionError, RuntimeError)):
        answer(smt.replace("(check-sat)", ""))


def test_cvc5_does_not_prove_half_a_snapshot_s_vote() -> None:
    obligations = Obligations(attach(kip_630, snapshots.traced("vote-half-fetched")))
    assert answer(obligations.obligation("grant_vote", "no_committed_record_lost").smt) != "unsat"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("guard", "conjunct"),
    [
        ("follower_fetch.epoch_not_fenced", "log_matching"),
        ("leader_expand_isr.hw_reached_epoch", "committed_never_lost"),
        ("become_follower.leader_epoch_matches", "leader_as_requested"),
    ],
)
def test_cvc5_does_not_prove_what_is_not_so(guard: str, conjunct: str) -> None:
    obligations = Obligations(attach(kip_320, fencing.traced().drop(guard)))
    assert answer(obligations.obligation(guard.partition(".")[0], conjunct).smt) != "unsat"
