"""What the proof of kip-630-safe needs of the text: each guard is dropped alone, and the other variants are tried.

``NEEDED``: the conjunct that a first counterexample to induction breaks. ``REDUNDANT``: every promise is still proved
without the guard, for any number of replicas, offsets, epochs and chunks; and why that is so. By day some of
them are asked where nothing has changed (``tests/conftest.py``).
"""

from __future__ import annotations

import copy

import pytest
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.protocols.snapshots.proof import kip_630
from fencepost.model.prove.counterexample import breaking_run, shown
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import judge

from .guards import confirmed, counterexample_without, first_counterexample, guards_of, proved_without

NEEDED = {
    "become_candidate.not_leading": "acknowledged_is_held",
    "become_candidate.epoch_available": "type_ok",
    "grant_vote.up_to_date": "no_committed_record_lost",
    "become_follower.leader_elected": "candidate_stands_in_newest",
    "become_follower.epoch_newer": "candidate_stands_in_newest",
    "leader_write.presumes_leadership": "type_ok",
    "leader_write.log_not_full": "type_ok",
    "leader_inc_high_watermark.presumes_leadership": "offsets_in_order",
    "leader_inc_high_watermark.above_high_watermark": "type_ok",
    "leader_inc_high_watermark.of_own_epoch": "offsets_in_order",
    "leader_inc_high_watermark.majority_acknowledges": "no_committed_record_lost",
    "follower_fetch.presumes_leadership": "votes_are_for_better_logs",
    "follower_fetch.epoch_not_fenced": "votes_are_for_better_logs",
    "follower_fetch.reaches_back": "type_ok",
    "follower_fetch.last_record_matches": "logs_match",
    "follower_truncate.presumes_leadership": "snapshot_in_between",
    "follower_truncate.epoch_not_fenced": "snapshot_in_between",
    "follower_truncate.reaches_back": "latest_is_there",
    "follower_start_over.presumes_leadership": "votes_are_for_better_logs",
    "follower_start_over.epoch_not_fenced": "votes_are_for_better_logs",
    "follower_start_over.begins_later": "choosers_keep_the_chosen",
    "fetch_snapshot.presumes_leadership": "snapshot_is_committed_prefix",
    "fetch_snapshot.epoch_not_fenced": "snapshot_is_committed_prefix",
    "fetch_snapshot.snapshot_found": "snapshot_in_between",
    "rediscover_snapshot.is_fetching": "no_committed_record_lost",
    "hold_records.not_leader_itself": "held_for_a_follower",
    "hold_records.presumes_leadership": "held_for_a_follower",
    "hold_records.epoch_not_fenced": "blocked_without_acknowledgement",
    "hold_records.reaches_back": "held_records_are_next",
    "hold_records.last_record_matches": "held_records_are_next",
    "hold_divergence.presumes_leadership": "held_for_a_follower",
    "hold_divergence.epoch_not_fenced": "held_divergence_is_right",
    "hold_divergence.reaches_back": "held_divergence_is_right",
    "hold_divergence.diverges": "held_divergence_is_right",
    "hold_snapshot.presumes_leadership": "held_for_a_follower",
    "hold_snapshot.begins_later": "held_snapshot_is_ahead",
    "hold_chunk.presumes_leadership": "held_for_a_follower",
    "hold_chunk.snapshot_found": "held_chunk_is_of_the_file",
    "late_records.addressed_to": "type_ok",
    "late_records.epoch_not_fenced": "votes_are_for_better_logs",
    "late_records.answers_request": "type_ok",
    "late_divergence.addressed_to": "type_ok",
    "late_divergence.epoch_not_fenced": "snapshot_in_between",
    "late_divergence.answers_request": "snapshot_in_between",
    "late_snapshot.addressed_to": "type_ok",
    "late_snapshot.epoch_not_fenced": "votes_are_for_better_logs",
    "late_snapshot.answers_request": "choosers_keep_the_chosen",
    "late_chunk.addressed_to": "type_ok",
    "late_chunk.epoch_not_fenced": "snapshot_is_committed_prefix",
    "late_chunk.answers_request": "snapshot_is_committed_prefix",
    "generate_snapshot.state_loaded": "type_ok",
    "generate_snapshot.below_high_watermark": "snapshot_is_committed_prefix",
    "generate_snapshot.later_than_latest": "type_ok",
    "leader_advance_lbo.increases": "type_ok",
    "leader_advance_lbo.snapshot_includes": "snapshot_in_between",
    "delete_records.increases": "type_ok",
    "delete_records.snapshot_includes": "snapshot_in_between",
    "delete_snapshot.below_lbo": "snapshot_in_between",
    "restart.was_known": "offsets_in_order",
    "restart.log_valid": "offsets_in_order",
    "restart_empty.log_not_valid": "choosers_keep_the_chosen",
}

REDUNDANT = {
    "become_candidate.is_voter": "an observer that leads was voted for by as many voters, and commits by voters too",
    "grant_vote.candidate_stands": "one vote for nobody is a majority of one voter alone, whose log is then empty",
    "grant_vote.is_voter": "a majority is one of voters",
    "grant_vote.epoch_newer": "a vote that is given twice is one vote",
    "follower_fetch.not_leader_itself": "a leader has all that it could fetch from itself",
    "follower_truncate.not_leader_itself": "no log diverges from itself",
    "follower_truncate.diverges": "a log that matches is truncated to its own end",
    "follower_start_over.not_leader_itself": "no log ends before it begins",
    "follower_start_over.snapshot_exists": "a leader whose log does not begin at 0 has a snapshot",
    "fetch_snapshot.is_fetching": "no leader has a snapshot that ends at -1",
    "fetch_snapshot.not_leader_itself": "a leader fetches no snapshot",
    "fetch_snapshot.position_in_range": "what was fetched in an epoch is of the leader's one file",
    "rediscover_snapshot.fetch_refused": "whoever fetches a snapshot counts for nothing, and may always begin again",
    "hold_divergence.not_leader_itself": "no log diverges from itself",
    "hold_snapshot.not_leader_itself": "no log ends before it begins",
    "hold_snapshot.epoch_not_fenced": "what the response says of its own epoch is true, whoever asked",
    "hold_snapshot.snapshot_exists": "a leader whose log does not begin at 0 has a snapshot",
    "hold_chunk.is_fetching": "no leader has a snapshot that ends at -1",
    "hold_chunk.not_leader_itself": "a leader fetches no snapshot",
    "hold_chunk.epoch_not_fenced": "what the response says of its own epoch is true, whoever asked",
    "hold_chunk.position_in_range": "what was fetched in an epoch is of the leader's one file",
    "late_chunk.is_fetching": "no held chunk is of a snapshot that ends at -1",
    "generate_snapshot.enough_records": "a snapshot of fewer records is as right as one of many",
    "leader_advance_lbo.presumes_leadership": "what a replica's own snapshot has, its log may lose",
    "leader_advance_lbo.replicated_or_old": "it spares a follower the snapshot; nothing is lost with it",
    "delete_records.presumes_leadership": "what a replica's own snapshot has, its log may lose",
    "delete_records.replicated_or_old": "it spares a follower the snapshot; nothing is lost with it",
    "delete_snapshot.is_complete": "an incomplete one is right below the LBO, where nothing is deleted",
    "restart_empty.was_known": "by the safe rule at boot the high watermark on disk does not matter",
}

TWINS = {
    "kip-630": ("fetching_begins_anew", "snapshot_is_committed_prefix", 14),
    "lbo-past-snapshot": ("snapshot_in_between", "snapshot_in_between", 4),
    "lbo-misread": ("choosers_keep_the_chosen", "no_committed_record_lost", 11),
    "snapshot-past-hw": ("snapshot_is_committed_prefix", "snapshot_is_committed_prefix", 3),
    "delete-at-lbo": ("snapshot_in_between", "snapshot_in_between", 6),
    "vote-half-fetched": ("no_committed_record_lost", "no_committed_record_lost", 12),
    "acknowledge-half-fetched": ("acknowledged_is_held", "no_committed_record_lost", 16),
    "fetch-at-lbo": ("logs_match", "logs_match", 16),
    "boot-by-hw": ("latest_is_there", "snapshot_in_between", 15),
    "mixed-chunks": ("fetching_begins_anew", "snapshot_is_committed_prefix", 16),
    "stale-responses": ("logs_match", "snapshot_is_committed_prefix", 14),
}
"""The variants with a hole: the conjunct that a first counterexample to induction breaks; and the promise that a run
from the initial state breaks, with the number of its steps, shortest at the first of the proof's ``runs`` with one.
"""


ELSEWHERE = ("kip-630-votes", "late-votes")
"""Those with a proof of their own (``test_prove_votes.py``)."""


def test_every_guard_is_accounted_for_once() -> None:
    assert sorted([*NEEDED, *REDUNDANT]) == guards_of(snapshots.traced())


def test_every_variant_is_accounted_for_once() -> None:
    """Nodes that run by themselves are not proved: no lemma speaks of them."""
    proved = ("kip-630-safe", "kip-630-nodes")
    assert sorted([*TWINS, *ELSEWHERE, *proved, "kip-630-quorum"]) == sorted(snapshots.variants)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", NEEDED)
def test_without_it_an_obligation_fails(guard: str) -> None:
    assert counterexample_without(kip_630, guard) == NEEDED[guard]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", REDUNDANT)
def test_without_it_every_promise_is_still_proved(guard: str) -> None:
    proved_without(kip_630, guard)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", TWINS)
def test_no_variant_with_a_hole_is_proved(variant: str) -> None:
    run = judge(kip_630, snapshots.traced(variant))
    conjunct, promise, steps = TWINS[variant]
    assert confirmed(run).conjunct == conjunct
    broken = breaking_run(run.attached)
    assert broken is not None and broken.path is not None
    assert (broken.violated, len(broken.path)) == (promise, steps)


def test_no_run_breaks_the_text_where_the_twins_are_broken() -> None:
    """The search for a run can come back with none. (The larger ``runs`` are explored in ``fencepost check``.)"""
    proof = copy.copy(kip_630)
    proof.runs = kip_630.runs[:3]
    assert breaking_run(attach(proof, snapshots.traced())) is None


def test_a_counterexample_is_told() -> None:
    run = judge(kip_630, snapshots.traced("delete-at-lbo"))
    told = shown(run.attached, first_counterexample(run))
    assert told.step.startswith("delete_snapshot(replica=")
    assert told.broken == "snapshot_in_between"
    assert any(name.startswith("snapshot_size[") for name in told.changes)
    assert told.reached.startswith(("reached by ", "not reached at 2/0/1/1/1/0/1/1 ("))
