"""Without which guards of KIP-631 a run breaks a promise, how soon, and at which small constants.

All guards of kip-631-safe are accounted for by its proof (``test_prove_controller_guards.py``). Of those that it needs
nearly all are needed for a promise, and here is a shortest run to that; ``NO_RUN`` has the others.

Constants: replicas/nodes/partitions/log size/controller epoch/bootstrapped/snapshots/removals.
"""

from __future__ import annotations

import pytest
from fencepost.model.explore import Query, Verdict, explore

from .guards import run_without
from .test_controller import DATA, SMALL, THREE_EPOCHS, at
from .test_prove_controller_guards import NEEDED

BREAKS = {
    "elect_controller.epoch_available": ("type_ok", 3, "1/1/1/2/1/1/0/1"),
    "elect_controller.committed_is_kept": ("view_is_of_stable_prefix", 7, "1/1/1/2/1/1/0/1"),
    "elect_controller.within_log": ("state_is_of_stable_prefix", 3, "1/1/1/2/1/1/0/1"),
    "hear_of_epoch.epoch_newer": ("one_snapshot_in_the_making", 17, "1/2/1/1/1/1/1/1"),
    "activate.is_elected": ("one_leader_per_controller_epoch", 3, "1/2/1/1/2/1/0/1"),
    "activate.none_active_since": ("active_state_is_at_end", 5, "1/2/1/1/2/1/0/1"),
    "activate.caught_up": ("view_is_of_stable_prefix", 7, "1/1/1/2/1/1/0/1"),
    "commit.something_pending": ("state_is_of_stable_prefix", 3, "1/1/1/2/1/1/0/1"),
    "replay_record.record_stable": ("state_is_of_stable_prefix", 1, "1/1/1/2/1/1/0/1"),
    "register_broker.is_active": ("state_is_of_stable_prefix", 1, "2/1/2/3/0/0/0/1"),
    "register_broker.none_active_since": ("active_state_is_at_end", 7, "1/2/1/1/2/1/0/1"),
    "register_broker.starts": ("acknowledged_is_kept", 16, "2/1/1/4/0/1/0/0"),
    "register_broker.session_over": ("fenced_broker_leads_nothing", 5, "1/1/1/2/1/1/0/1"),
    "register_broker.log_not_full": ("type_ok", 6, "1/1/1/2/1/1/0/1"),
    "hear_registration.awaits_answer": ("acknowledged_is_kept", 9, "1/1/1/2/1/1/0/1"),
    "hear_registration.registration_stable": ("broker_epoch_is_its_own", 8, "1/1/1/2/1/1/0/1"),
    "unfence_broker.is_active": ("state_is_of_stable_prefix", 7, "1/1/1/2/0/1/1/1"),
    "unfence_broker.none_active_since": ("active_state_is_at_end", 6, "1/2/1/1/2/1/0/1"),
    "unfence_broker.log_not_full": ("type_ok", 5, "1/1/1/2/1/1/0/1"),
    "fence_broker.is_active": ("state_is_of_stable_prefix", 1, "1/1/1/2/1/1/0/1"),
    "fence_broker.none_active_since": ("active_state_is_at_end", 5, "1/2/1/1/2/1/0/1"),
    "fence_broker.log_not_full": ("type_ok", 5, "1/1/1/2/1/1/0/1"),
    "request_shutdown.is_active": ("state_is_of_stable_prefix", 1, "1/1/1/2/1/1/0/1"),
    "request_shutdown.none_active_since": ("active_state_is_at_end", 5, "1/2/1/1/2/1/0/1"),
    "request_shutdown.runs": ("acknowledged_is_kept", 9, "1/1/1/2/1/1/0/1"),
    "request_shutdown.log_not_full": ("type_ok", 5, "1/1/1/2/1/1/0/1"),
    "stop_broker.wants_to_stop": ("acknowledged_is_kept", 11, "1/1/1/2/1/1/0/1"),
    "crash_broker.runs": ("acknowledged_is_kept", 16, "1/1/1/4/0/1/0/1"),
    "replay_metadata.record_stable": ("view_is_of_stable_prefix", 1, "1/1/1/2/1/1/0/1"),
    "load_snapshot.is_behind": ("type_ok", 1, "1/1/1/2/1/1/0/1"),
    "create_topic.is_active": ("state_is_of_stable_prefix", 12, "1/2/1/3/1/0/0/0"),
    "create_topic.none_active_since": ("active_state_is_at_end", 11, "1/2/1/2/1/0/0/0"),
    "create_topic.id_is_new": ("acknowledged_is_kept", 12, "2/1/1/3/0/1/0/1"),
    "create_topic.leader_unfenced": ("fenced_broker_leads_nothing", 3, "2/1/2/3/0/0/0/1"),
    "create_topic.log_not_full": ("type_ok", 9, "2/1/2/3/0/0/0/1"),
    "remove_topic.is_active": ("state_is_of_stable_prefix", 1, "1/1/1/2/1/1/0/1"),
    "remove_topic.none_active_since": ("active_state_is_at_end", 5, "1/2/1/1/2/1/0/1"),
    "remove_topic.log_not_full": ("type_ok", 5, "1/1/1/2/1/1/0/1"),
    "elect_leader.is_active": ("state_is_of_stable_prefix", 1, "1/1/1/2/1/1/0/1"),
    "elect_leader.none_active_since": ("active_state_is_at_end", 5, "1/2/1/1/2/1/0/1"),
    "elect_leader.in_isr": ("isr_is_never_empty", 5, "2/1/1/3/0/1/0/1"),
    "elect_leader.is_unfenced": ("fenced_broker_leads_nothing", 4, "1/1/1/2/1/1/0/1"),
    "elect_leader.not_doubted": ("acknowledged_is_kept", 17, "1/1/1/5/0/1/0/0"),
    "elect_leader.log_not_full": ("type_ok", 5, "1/1/1/2/1/1/0/1"),
    "propose_expand.nothing_proposed": ("acknowledged_is_kept", 21, "3/1/1/4/0/1/0/0"),
    "propose_expand.outside_isr": ("isr_is_never_empty", 7, "1/1/1/2/1/1/0/1"),
    "propose_expand.caught_up": ("acknowledged_is_kept", 13, "2/1/1/3/0/1/0/1"),
    "propose_shrink.nothing_proposed": ("acknowledged_is_kept", 17, "3/1/1/3/0/1/0/0"),
    "propose_shrink.in_isr": ("acknowledged_is_kept", 13, "2/1/1/3/0/1/0/1"),
    "propose_shrink.not_leader_itself": ("isr_is_never_empty", 7, "1/1/1/2/1/1/0/1"),
    "alter_partition.is_active": ("state_is_of_stable_prefix", 9, "2/2/1/2/1/1/0/0"),
    "alter_partition.none_active_since": ("active_state_is_at_end", 10, "2/2/1/2/1/1/0/0"),
    "alter_partition.partition_epoch_matches": ("acknowledged_is_kept", 17, "2/1/1/4/0/1/0/0"),
    "alter_partition.is_eligible": ("fenced_broker_leads_nothing", 13, "2/1/1/4/0/1/0/0"),
    "alter_partition.log_not_full": ("type_ok", 8, "2/1/2/2/0/1/0/1"),
    "refuse_member.is_active": ("acknowledged_is_kept", 20, "2/2/1/4/0/1/0/0"),
    "refuse_member.none_active_since": ("acknowledged_is_kept", 19, "2/2/1/4/1/1/0/0"),
    "refuse_member.partition_epoch_matches": ("acknowledged_is_kept", 16, "2/1/1/4/0/1/0/0"),
    "leader_write.not_acknowledged": ("acknowledged_is_kept", 13, "2/1/2/2/0/1/0/1"),
    "follower_fetch.presumes_leadership": ("acknowledged_is_kept", 11, "2/1/2/2/0/1/0/1"),
    "acknowledge.presumes_leadership": ("acknowledged_is_kept", 20, "2/1/1/5/0/1/0/1"),
    "acknowledge.isr_has_it": ("acknowledged_is_kept", 7, "2/1/2/2/0/1/0/1"),
    "heartbeat.epoch_matches": ("one_snapshot_in_the_making", 16, "1/3/1/1/1/1/1/1"),
    "heartbeat.order_taken": ("one_snapshot_in_the_making", 15, "1/3/1/1/1/1/1/1"),
    "order_snapshot.another": ("one_snapshot_in_the_making", 12, "1/2/1/1/1/1/1/1"),
    "order_snapshot.none_makes_one": ("one_snapshot_in_the_making", 13, "1/2/1/1/1/1/1/1"),
    "begin_snapshot.ordered": ("one_snapshot_in_the_making", 2, "1/2/1/1/2/1/0/1"),
    "begin_snapshot.of_own_epoch": ("one_snapshot_in_the_making", 17, "1/2/1/1/1/1/1/1"),
    "finish_snapshot.not_active": ("snapshot_is_sufficient", 13, "1/2/1/2/1/1/1/0"),
}

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


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "guard",
    [pytest.param(each, marks=pytest.mark.nightly(seconds=LARGE[each])) if each in LARGE else each for each in BREAKS],
)
def test_without_it_a_promise_breaks(guard: str) -> None:
    promise, steps, constants = BREAKS[guard]
    assert run_without(at(constants), at(constants, "kip-631-safe", guard), guard) == (promise, steps)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("guard", NO_RUN)
def test_without_it_no_run_breaks_a_promise_at_small_constants(guard: str) -> None:
    found = [explore(Query.of(at(constants, "kip-631-safe", guard))) for constants in EXPLORED]
    assert {answer.verdict for answer in found} == {Verdict.HOLDS}
