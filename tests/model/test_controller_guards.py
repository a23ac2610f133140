"""Without which guards of KIP-631 a run breaks a promise, how soon, and at which small constants.

All guards of kip-631-safe are accounted for by its proof (``test_prove_controller_guards.py``). Of those that it needs
nearly all are needed for a promise, and here is a shortest run to that; ``NO_RUN`` has the others.

Constants: replicas/nodes/partitions/log size/controller epoch/bootstrapped/snapshots/removals.
"""

from __future__ import annotations

import pytest
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.protocols.controller import controller
from fencepost.model.protocols.controller.expected import WITHOUT_GUARD

from .guards import run_without
from .pinned import breaches_by_guard
from .test_controller import DATA, SMALL, THREE_EPOCHS, at
from .test_prove_controller_guards import NEEDED

BREAKS = breaches_by_guard(controller, WITHOUT_GUARD, "kip-631-safe")

NO_RUN = {
    "hear_of_epoch.epoch_elected": "the lemmas say that an epoch of which a node has heard has begun",
    "replay_record.not_active": "what a deposed controller replays in vain is gone when it loads its state anew",
    "acknowledge.written": "what all of the ISR have of an older epoch is kept as well; the lemmas say of which it is",
    "heartbeat.none_active_since": "the lemmas say of which epoch it is what was heard",
    "order_snapshot.is_active": "the lemmas say that a leader has no order of its own epoch",
}
"""The proof needs it, and no run breaks a promise without it at ``EXPLORED``; and why the proof does."""

EXPLORED = (SMALL, THREE_EPOCHS, DATA, "1/3/1/1/1/1/1/1")

LARGE = {
    "acknowledge.presumes_leadership": 20,
    "propose_expand.nothing_proposed": 40,
    "refuse_member.is_active": 15,
    "refuse_member.none_active_since": 120,
}
"""What takes more than a million states, and seconds."""


def test_every_guard_that_the_proof_needs_is_accounted_for_once() -> None:
    assert sorted([*BREAKS, *NO_RUN]) == sorted(NEEDED)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "guard",
    [pytest.param(each, marks=pytest.mark.nightly(seconds=LARGE[each])) if each in LARGE else each for each in BREAKS],
)
def test_without_it_a_promise_breaks(guard: str) -> None:
    promise, steps, constants = BREAKS[guard]
    assert run_without(at(constants), at(constants, "kip-631-safe", guard), guard) == (promise, steps)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", NO_RUN)
def test_without_it_no_run_breaks_a_promise_at_small_constants(guard: str) -> None:
    found = [explore(Query.of(at(constants, "kip-631-safe", guard))) for constants in EXPLORED]
    assert {answer.verdict for answer in found} == {Verdict.HOLDS}
