"""The proof of kip-1023-safe where there are no transactions: every promise, and that none ever ends."""

from __future__ import annotations

import copy

import pytest
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import Verdict
from fencepost.model.protocols.tiering.proof import kip_1023
from fencepost.model.protocols.tiering.proof_stable import kip_1023_stable
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import prove
from fencepost.model.prove.solve import RLIMIT, ask

SAFE = kip_1023_stable.protocol.traced()
MOST = RLIMIT // 8
"""Of z3's resource units, for one obligation: about a second."""


def test_it_is_the_other_half_of_one_proof() -> None:
    registered = REGISTRY["tiering"]
    assert registered.require_proofs() == (kip_1023, kip_1023_stable)
    assert [proof.told for proof in registered.require_proofs()] == ["at transactions 1", "at transactions 0"]
    assert set(kip_1023_stable.lemmas) == {*kip_1023.lemmas, "all_is_stable"}
    assert kip_1023_stable.follows == kip_1023.follows
    assert kip_1023_stable.hint_texts.keys() == kip_1023.hint_texts.keys()


@pytest.mark.nightly(seconds=30)
@pytest.mark.parametrize("seed", range(10))
def test_every_promise_is_proved(seed: int) -> None:
    attached = attach(kip_1023_stable, SAFE)
    run = prove(attached, seed=seed, shuffle=seed or None, witnesses=False)
    assert [result.obligation.name for result in run.failed] == []
    assert max(result.answer.resources for result in run.results) <= MOST
    assert {result.obligation.conjunct for result in run.results} == set(attached.conjuncts)


def test_every_action_can_happen_but_for_one_that_is_proved_not_to() -> None:
    run = prove(attach(kip_1023_stable, SAFE), conjuncts=["all_is_stable"])
    assert [w.action for w in run.witnesses if not w.right] == []
    assert [w.action for w in run.witnesses if w.never] == ["end_transaction"]


def test_without_its_lemma_a_transaction_may_end() -> None:
    less = copy.copy(kip_1023_stable)
    less.lemmas = {name: each for name, each in kip_1023_stable.lemmas.items() if name != "all_is_stable"}
    assert ask(Obligations(attach(kip_1023_stable, SAFE)).impossible("end_transaction")).proved
    assert not ask(Obligations(attach(less, SAFE)).impossible("end_transaction")).proved


def test_no_variant_that_deletes_too_soon_is_proved() -> None:
    """The planted fault: local records go before the metadata of their copy are committed."""
    attached = attach(kip_1023_stable, kip_1023_stable.protocol.traced("deletes-uncommitted"))
    run = prove(attached, actions=["delete_local"], witnesses=False)
    assert run.verdict is Verdict.VIOLATED
