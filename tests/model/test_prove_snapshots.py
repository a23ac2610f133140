"""Towards the proof of kip-630-safe with no bound: what is proved, what is not yet, and that neither is by accident.

Proved here: exchanges between a leader and a follower are atomic (no response is held back, no late one arrives).
``HYPOTHESIS_PROFILE=long`` asks every obligation of these actions; else every promise, and each third of the rest.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from fencepost.model.core.protocol import TracedProtocol
from fencepost.model.fencing import fencing
from fencepost.model.interpret.symbolic_unbounded import Unbounded
from fencepost.model.prove.attached import attach
from fencepost.model.prove.finite import Concrete
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proofs import PROOFS
from fencepost.model.prove.snapshots_lemmas import kip_630
from fencepost.model.prove.solve import ask
from fencepost.model.snapshots import snapshots

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
SEED = 630

HARD = {
    ("follower_fetch", "acknowledged_is_held"),
    ("follower_fetch", "log_is_of_its_last_epoch"),
    ("follower_truncate", "latest_is_there"),
    ("follower_truncate", "log_is_of_its_last_epoch"),
    ("follower_truncate", "snapshot_in_between"),
    ("leader_inc_high_watermark", "later_histories_hold_the_chosen"),
    ("leader_inc_high_watermark", "no_committed_record_lost"),
}
"""Proved too, but only with ten times the usual resources: asked in the long profile."""

NEEDED = {
    "lbo-past-snapshot": "leader_advance_lbo.latest_is_there",
    "snapshot-past-hw": "generate_snapshot.latest_is_there",
    "delete-at-lbo": "delete_snapshot.latest_is_there",
    "boot-by-hw": "restart_empty.choosers_keep_the_chosen",
    "lbo-misread": "restart_empty.choosers_keep_the_chosen",
    "mixed-chunks": "become_follower.fetching_begins_anew",
    "fetch-at-lbo": "follower_fetch.log_matches_history",
}
"""For a variant with a hole an obligation that is proved of the safe one, and not of it."""

DROPPED = {
    "grant_vote.up_to_date": "votes_are_for_better_logs",
    "leader_write.presumes_leadership": "record_in_its_history",
    "leader_inc_high_watermark.majority_acknowledges": "chosen_last_of_its_epoch",
    "generate_snapshot.below_high_watermark": "latest_is_there",
    "delete_snapshot.below_lbo": "latest_is_there",
    "leader_advance_lbo.snapshot_includes": "latest_is_there",
    "restart_empty.log_not_valid": "choosers_keep_the_chosen",
}


def is_late(action: str) -> bool:
    return action.startswith(("hold_", "late_"))


def proved(traced: TracedProtocol, action: str, conjunct: str) -> bool:
    return ask(Obligations(attach(kip_630, traced)).obligation(action, conjunct).smt, rlimit=1_000_000).proved


def test_what_is_proved_with_atomic_exchanges() -> None:
    attached = attach(kip_630, snapshots.traced())
    obligations = Obligations(attached)
    asked = 0
    for number, (action, conjunct) in enumerate(obligations.names()):
        if is_late(action):
            continue
        hard = (action, conjunct) in HARD
        if not LONG and (hard or not (attached.conjuncts[conjunct].promise or number % 3 == 0)):
            continue
        asked += 1
        answer = ask(obligations.obligation(action, conjunct).smt, rlimit=20_000_000 if hard else 4_000_000)
        assert answer.proved, (action, conjunct, answer)
    assert asked > 300


def test_it_is_no_proof_yet() -> None:
    """Late responses are not proved, so ``fencepost prove`` must not say that the protocol is."""
    assert "snapshots" not in PROOFS
    names = set(Obligations(attach(kip_630, snapshots.traced())).names())
    assert names >= HARD


@pytest.mark.parametrize("variant", NEEDED)
def test_a_hole_is_noticed(variant: str) -> None:
    action, _, conjunct = NEEDED[variant].partition(".")
    assert proved(snapshots.traced(), action, conjunct)
    assert not proved(snapshots.traced(variant), action, conjunct)


@pytest.mark.parametrize("guard", DROPPED)
def test_a_dropped_guard_is_noticed(guard: str) -> None:
    action, conjunct = guard.partition(".")[0], DROPPED[guard]
    assert proved(snapshots.traced(), action, conjunct)
    assert not proved(snapshots.traced().drop(guard), action, conjunct)


STORY = [
    ("become_candidate", 0),
    ("grant_vote", 1),
    ("leader_write", 0),
    ("follower_fetch", 0, 1),
    ("follower_fetch", 0, 1),
    ("leader_inc_high_watermark", 0, 0),
    ("generate_snapshot", 0, 0, 1),
    ("leader_advance_lbo", 0, 1),
    ("become_follower", 2, 0),
    ("follower_start_over", 0, 2),
    ("leader_write", 0),
    ("follower_fetch", 0, 2),
    ("fetch_snapshot", 0, 2),
    ("become_candidate", 1),
]
"""Replica 2 has half a snapshot and the log behind it."""


@pytest.mark.parametrize("begun", [0, 6, 10, 13])
def test_all_conjuncts_hold_along_walks(begun: int) -> None:
    """Ghosts and lemmas are what they are said to be: on runs that begin with a part of the story."""
    concrete = Concrete(
        attach(kip_630, snapshots.traced()), {**kip_630.sizes[1], "late_responses": 0, "max_leader_epoch": 1}
    )
    random, taken = Random(SEED), set()
    for _ in range(60 if LONG else 2):
        state = concrete.system.initial
        for action, *values in STORY[:begun]:
            params = tuple(zip(snapshots.actions[str(action)].params, map(int, values), strict=True))
            after = concrete.step(state, str(action), params)
            assert after is not None, action
            assert concrete.broken(after) == [], (action, params, concrete.shown(after))
            state = after
            taken.add(action)
        for _ in range(15 if LONG else 6):
            steps = random.sample(list(concrete.base.by_step), len(concrete.base.by_step))
            order = random.sample(concrete.base.actions, len(concrete.base.actions))
            steps.sort(key=lambda step: order.index(step[0]))
            found = (after for action, params in steps if (after := concrete.step(state, action, params)) is not None)
            state = next(found)
            assert concrete.broken(state) == [], concrete.shown(state)
    print(f"seed {SEED}: {sorted(map(str, taken))}")


def test_a_wrong_lemma_is_seen_on_a_run() -> None:
    """The walks above can fail: a leader that wrote has more than a history that was not told of it."""
    concrete = Concrete(attach(kip_630, snapshots.traced()), kip_630.sizes[0])
    state = concrete.system.initial
    for action, replica in (("become_candidate", 0), ("grant_vote", 1), ("leader_write", 0)):
        param = next(iter(snapshots.actions[action].params))
        after = concrete.step(state, action, ((param, replica),))
        assert after is not None
        before, state = state, after
    ghosts = len(concrete.own(state))
    assert concrete.broken(state) == []
    assert {"leader_is_whole", "record_in_its_history"} <= set(concrete.broken(state[:ghosts] + before[ghosts:]))


def test_two_quorums_have_a_member_in_common() -> None:
    """Of one set: the axiom is there where the text has majorities, and only there."""
    assert len(Unbounded(snapshots.traced()).constant_axioms) == len(snapshots.constants) + 1
    assert len(Unbounded(fencing.traced()).constant_axioms) == len(fencing.constants)
