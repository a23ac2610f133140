"""A second opinion: cvc5 refutes the very SMT-LIB texts that z3 refuted. Skips where cvc5 is missing (tox -e cvc5).

Of ``fencing`` all; of ``snapshots`` all but those of ``BEYOND``, for which cvc5's budget is not enough. Of
``truncation`` every fourth, and with ``FENCEPOST_SEEDS_ALL=1`` all, which take half a minute.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.proof import kip_320
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.protocols.snapshots.proof import kip_630
from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.proof import kip_320_mended
from fencepost.model.prove.attached import attach
from fencepost.model.prove.obligations import Obligations

cvc5: Any = pytest.importorskip("cvc5", reason="cvc5 is not installed; tox -e cvc5 has it")

RLIMIT = 1_000_000
"""Of cvc5's resource units, for one obligation."""


BEYOND = {
    ("follower_fetch", "logs_match"),
}
"""Obligations of ``snapshots`` that cvc5 leaves open within that."""


def answer(smt: str) -> str:
    """What cvc5 says: ``unsat`` where it refutes the text as well."""
    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("rlimit-per", str(RLIMIT))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, smt, "obligation")
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said = str(command.invoke(solver, parser.getSymbolManager())).strip() or said
    return said


def test_cvc5_proves_every_obligation() -> None:
    obligations = Obligations(attach(kip_320, fencing.traced()))
    answers = {names: answer(obligations.obligation(*names).smt) for names in obligations.names()}
    assert {names: said for names, said in answers.items() if said != "unsat"} == {}
    assert len(answers) == len(obligations.names()) > 200


def test_cvc5_proves_snapshots_too() -> None:
    obligations = Obligations(attach(kip_630, snapshots.traced()))
    names = [name for name in obligations.names() if name not in BEYOND]
    assert len(names) == len(obligations.names()) - len(BEYOND) > 1000
    answers = {name: answer(obligations.obligation(*name).smt) for name in names}
    assert {name: said for name, said in answers.items() if said != "unsat"} == {}


def test_cvc5_proves_truncation_too() -> None:
    obligations = Obligations(attach(kip_320_mended, truncation.traced()))
    names = obligations.names()[:: 1 if os.environ.get("FENCEPOST_SEEDS_ALL") else 4]
    answers = {name: answer(obligations.obligation(*name).smt) for name in names}
    assert {name: said for name, said in answers.items() if said != "unsat"} == {}
    assert len(answers) > 100


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
    # Not only no "unsat": a text that cvc5 cannot read would be none either.
    assert answer(obligations.obligation(*obligation).smt).startswith("unknown")


def test_cvc5_does_not_prove_half_a_snapshot_s_vote() -> None:
    obligations = Obligations(attach(kip_630, snapshots.traced("vote-half-fetched")))
    assert answer(obligations.obligation("grant_vote", "no_committed_record_lost").smt) != "unsat"


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
