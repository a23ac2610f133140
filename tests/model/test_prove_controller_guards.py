"""What the proof of kip-631-safe needs of the text: each guard is dropped alone.

``NEEDED``: the conjunct that a first counterexample to induction breaks. ``IMPLIED`` and ``STUTTERS``: the invariant
and the guards beside it say as much, but for steps that change nothing. ``REDUNDANT``: there may be more steps, and
every promise is still proved without the guard, for any number of everything; and why that is so. For nearly all that
is needed ``test_controller_guards.py`` has a run that breaks a promise without it.

What is needed is so where the log begins with nothing; what is not, where it begins with an image, too.

What no promise needs is there because somebody asks for it: the text (``specs/CLAUSES.md``), or whom ``ASKED`` names.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from fencepost.model.protocols.controller.proof import kip_631
from fencepost.model.protocols.controller.proof_bootstrapped import kip_631_bootstrapped
from fencepost.model.prove.implied import Implications, Relation
from fencepost.model.prove.specialize import FixedProof

from .guards import counterexample_without, guards_of, proved_without

SAFE = kip_631.protocol.traced()
PROOFS = {"bootstrapped-0": kip_631, "bootstrapped-1": kip_631_bootstrapped}
by_both = pytest.mark.parametrize("proof", PROOFS.values(), ids=PROOFS.keys())
CLAUSES = Path(__file__).parents[2] / "specs" / "CLAUSES.md"

NEEDED = {
    "elect_controller.epoch_available": "type_ok",
    "elect_controller.committed_is_kept": "stable_is_in_log",
    "elect_controller.within_log": "stable_is_in_log",
    "hear_of_epoch.epoch_newer": "order_is_of_known_epoch",
    "hear_of_epoch.epoch_elected": "epoch_is_known",
    "activate.is_elected": "one_leader_per_controller_epoch",
    "activate.none_active_since": "active_state_is_at_end",
    "activate.caught_up": "snapshot_is_sufficient",
    "commit.something_pending": "type_ok",
    "replay_record.not_active": "type_ok",
    "replay_record.record_stable": "type_ok",
    "register_broker.is_active": "state_is_of_stable_prefix",
    "register_broker.none_active_since": "active_state_is_at_end",
    "register_broker.starts": "awaiting_is_not_up",
    "register_broker.session_over": "fenced_broker_leads_nothing",
    "register_broker.log_not_full": "type_ok",
    "hear_registration.awaits_answer": "proposed_epoch_was_told",
    "hear_registration.registration_stable": "broker_epoch_is_stable",
    "unfence_broker.is_active": "state_is_of_stable_prefix",
    "unfence_broker.none_active_since": "active_state_is_at_end",
    "unfence_broker.log_not_full": "type_ok",
    "fence_broker.is_active": "state_is_of_stable_prefix",
    "fence_broker.none_active_since": "type_ok",
    "fence_broker.log_not_full": "type_ok",
    "request_shutdown.is_active": "state_is_of_stable_prefix",
    "request_shutdown.none_active_since": "active_state_is_at_end",
    "request_shutdown.runs": "isr_is_counted_on",
    "request_shutdown.log_not_full": "type_ok",
    "stop_broker.wants_to_stop": "proposed_member_keeps",
    "crash_broker.runs": "lost_is_doubted",
    "replay_metadata.record_stable": "type_ok",
    "load_snapshot.is_behind": "type_ok",
    "create_topic.is_active": "state_is_of_stable_prefix",
    "create_topic.none_active_since": "active_state_is_at_end",
    "create_topic.id_is_new": "versions_only_grow",
    "create_topic.leader_unfenced": "fenced_broker_leads_nothing",
    "create_topic.log_not_full": "type_ok",
    "remove_topic.is_active": "state_is_of_stable_prefix",
    "remove_topic.none_active_since": "active_state_is_at_end",
    "remove_topic.log_not_full": "type_ok",
    "elect_leader.is_active": "state_is_of_stable_prefix",
    "elect_leader.none_active_since": "type_ok",
    "elect_leader.in_isr": "isr_is_never_empty",
    "elect_leader.is_unfenced": "fenced_broker_leads_nothing",
    "elect_leader.not_doubted": "doubted_is_not_led",
    "elect_leader.log_not_full": "type_ok",
    "propose_expand.nothing_proposed": "isr_is_counted_on",
    "propose_expand.outside_isr": "nobody_proposes_itself",
    "propose_expand.caught_up": "proposed_member_keeps",
    "propose_shrink.nothing_proposed": "isr_is_counted_on",
    "propose_shrink.in_isr": "proposed_member_keeps",
    "propose_shrink.not_leader_itself": "nobody_proposes_itself",
    "alter_partition.is_active": "state_is_of_stable_prefix",
    "alter_partition.none_active_since": "active_state_is_at_end",
    "alter_partition.partition_epoch_matches": "isr_is_counted_on",
    "alter_partition.is_eligible": "fenced_broker_leads_nothing",
    "alter_partition.log_not_full": "type_ok",
    "refuse_member.is_active": "isr_is_counted_on",
    "refuse_member.none_active_since": "isr_is_counted_on",
    "refuse_member.partition_epoch_matches": "isr_is_counted_on",
    "leader_write.not_acknowledged": "proposed_member_keeps",
    "follower_fetch.presumes_leadership": "proposed_member_keeps",
    "acknowledge.presumes_leadership": "acknowledged_in_its_epoch",
    "acknowledge.written": "acknowledged_in_its_epoch",
    "acknowledge.isr_has_it": "proposed_member_keeps",
    "heartbeat.none_active_since": "idle_is_idle",
    "heartbeat.epoch_matches": "idle_is_idle",
    "heartbeat.order_taken": "idle_is_idle",
    "order_snapshot.is_active": "leader_has_no_order_of_its_own",
    "order_snapshot.another": "leader_has_no_order_of_its_own",
    "order_snapshot.none_makes_one": "order_is_of_known_epoch",
    "begin_snapshot.ordered": "one_snapshot_in_the_making",
    "begin_snapshot.of_own_epoch": "one_snapshot_in_the_making",
    "finish_snapshot.not_active": "snapshot_is_sufficient",
}

IMPLIED = (
    "elect_leader.exists",
    "alter_partition.proposed",
    "alter_partition.exists",
    "alter_partition.is_leader",
    "alter_partition.leader_epoch_matches",
    "refuse_member.exists",
    "refuse_member.is_leader",
    "refuse_member.leader_epoch_matches",
)

STUTTERS = (
    "propose_expand.presumes_leadership",
    "propose_shrink.presumes_leadership",
    "leader_write.not_written",
    "follower_fetch.differs",
    "acknowledge.not_acknowledged",
    "heartbeat.something_new",
    "drop_order.ordered",
)

_ACTS = "whoever acts in vain, or has never acted, may do this as well"
_STOPS = "a broker that stops with its logs in order has what it had"
_SWITCH = "a constant, and unknown: what holds where it is 1 holds where it is not"
_RUNS = "whoever runs has been told its latest registration: who registers does not run"
_REGISTERED = "a leader that registers anew was fenced before, which began another partition epoch"
_AGAIN = "the record says once more what is so"
_GONE = "what a broker replays while it is gone is stable as well"
_STOPPING = "whoever shuts down is a member like any other until it is fenced"
_REFUSED = "a request may always be refused: its leader goes back to the ISR that it knows"
REDUNDANT = {
    "resign.is_active": _ACTS,
    "resign.none_active_since": _ACTS,
    "resign.snapshots_made": _SWITCH,
    "resign.enough_records": "a node may step down at any time",
    "commit.leads": "what the newest leader has may be counted by whoever is in its epoch",
    "commit.epoch_is_newest": "what the newest leader has may be counted by an older one, too",
    "register_broker.not_awaited": "a process that registers again awaits the answer to its last registration",
    "unfence_broker.runs": "who is unfenced while it is gone has to be fenced again before it registers",
    "unfence_broker.broker_epoch_matches": _RUNS,
    "unfence_broker.caught_up": "who has not replayed its own registration leads nothing, and follows nobody",
    "unfence_broker.is_fenced": _AGAIN,
    "fence_broker.is_unfenced": _AGAIN,
    "fence_broker.may_succeed": "whoever is in an ISR of two is unfenced, and may lead",
    "request_shutdown.removals_asked": _SWITCH,
    "request_shutdown.broker_epoch_matches": _RUNS,
    "request_shutdown.is_unfenced": "a broker that is fenced may want to stop, too",
    "stop_broker.is_active": _STOPS,
    "stop_broker.none_active_since": _STOPS,
    "stop_broker.is_fenced": _STOPS,
    "stop_broker.nothing_pending": _STOPS,
    "replay_metadata.runs": _GONE,
    "load_snapshot.runs": _GONE,
    "create_topic.none_shuts_down": _STOPPING,
    "remove_topic.removals_asked": _SWITCH,
    "remove_topic.exists": _AGAIN,
    "elect_leader.none_leads": "another member of the ISR may lead at any time, in a new leader epoch",
    "elect_leader.stays": _STOPPING,
    "propose_expand.known_unfenced": "the controller asks whether it is, before it takes anybody in",
    "alter_partition.broker_epoch_matches": _REGISTERED,
    "refuse_member.proposed": _REFUSED,
    "refuse_member.broker_epoch_matches": _REGISTERED,
    "refuse_member.joins": _REFUSED,
    "refuse_member.not_eligible": _REFUSED,
    "leader_write.presumes_leadership": "a record is told by its epoch: that one's leader could have written it",
    "follower_fetch.follows_leader": "two who are in one leader epoch know one leader",
    "follower_fetch.takes_part": "whoever does not take part is counted by nobody",
    "follower_fetch.epoch_not_fenced": "who leads again has what was acknowledged, and counts who is in its own epoch",
    "heartbeat.is_active": "what a node says of itself is so, whoever hears it",
    "heartbeat.another": "a controller may tell itself",
    "order_snapshot.none_active_since": "by what is heard in the newest epoch nobody makes one, whoever orders it",
    "order_snapshot.snapshots_made": _SWITCH,
    "order_snapshot.enough_records": "a snapshot of what the last one had is as right",
    "order_snapshot.none_has_fallen_behind": "it is about who is there to take over, and no promise is",
    "begin_snapshot.is_standby": "it is made when the node has left office",
    "begin_snapshot.not_making_one": "who makes one makes one",
    "drop_order.not_taken": "an order may be lost on its way",
    "finish_snapshot.makes_one": "a snapshot of what a standby has is right whenever it is made",
}

ASKED = {
    "the model: what keeps it finite, or small": (
        "resign.snapshots_made",
        "request_shutdown.removals_asked",
        "remove_topic.removals_asked",
        "unfence_broker.is_fenced",
        "leader_write.not_written",
        "follower_fetch.differs",
        "acknowledge.not_acknowledged",
        "heartbeat.something_new",
        "begin_snapshot.not_making_one",
        "drop_order.ordered",
    ),
    "NOT_CONTROLLER, of requests that the rows do not name": (
        "resign.none_active_since",
        "stop_broker.is_active",
        "stop_broker.none_active_since",
        "heartbeat.is_active",
        "order_snapshot.none_active_since",
    ),
    "KIP-595: the leader of an epoch counts who has a record": ("commit.leads", "commit.epoch_is_newest"),
    "what is not there, or does not run, asks for nothing and does nothing": (
        "unfence_broker.runs",
        "replay_metadata.runs",
        "load_snapshot.runs",
        "elect_leader.exists",
        "remove_topic.exists",
        "propose_expand.presumes_leadership",
        "propose_shrink.presumes_leadership",
        "alter_partition.proposed",
        "alter_partition.exists",
        "refuse_member.proposed",
        "refuse_member.exists",
        "leader_write.presumes_leadership",
        "follower_fetch.takes_part",
        "follower_fetch.follows_leader",
    ),
    "as shipped, the state of a broker by its heartbeats": (
        "unfence_broker.caught_up",
        "request_shutdown.broker_epoch_matches",
        "request_shutdown.is_unfenced",
        "stop_broker.nothing_pending",
    ),
    "as shipped, who leads where a broker is fenced (I11)": ("fence_broker.may_succeed",),
    "AlterPartition's other fences, and of its refusal those of what it answers": (
        "alter_partition.broker_epoch_matches",
        "refuse_member.is_leader",
        "refuse_member.leader_epoch_matches",
        "refuse_member.broker_epoch_matches",
        "refuse_member.joins",
        "refuse_member.not_eligible",
    ),
    "KIP-841: neither who is fenced nor who shuts down joins an ISR, or leads": (
        "create_topic.none_shuts_down",
        "elect_leader.stays",
        "propose_expand.known_unfenced",
    ),
    "KIP-320": ("follower_fetch.epoch_not_fenced",),
    "the text, of standby controllers": ("begin_snapshot.is_standby",),
    # Who tells itself, registers once more, or loses an order is no step here, and could be one.
    "nobody": ("register_broker.not_awaited", "heartbeat.another", "drop_order.not_taken"),
}


LARGER = ({**dict.fromkeys(kip_631.protocol.constants, 1), "replicas": 3, "log_size": 5, "max_controller_epoch": 0},)
"""Where a leader can ask for a second broker while it waits for the answer about a first one."""


@cache
def implications(proof: FixedProof) -> Implications:
    return Implications(proof, proof.protocol.traced())


def test_every_guard_is_accounted_for_once() -> None:
    assert sorted([*NEEDED, *IMPLIED, *STUTTERS, *REDUNDANT]) == guards_of(SAFE)


def test_of_what_nothing_needs_it_is_said_who_asks_for_it() -> None:
    text = CLAUSES.read_text(encoding="utf-8").partition("\n## controller: ")[2].partition("\n## ")[0]
    by_the_text = set(re.findall(r"`(\w+\.\w+)`", text))
    by_others = Counter(guard for guards in ASKED.values() for guard in guards)
    assert sorted(by_others) == sorted({*IMPLIED, *STUTTERS, *REDUNDANT} - by_the_text)
    assert set(by_others.values()) == {1}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", NEEDED)
def test_without_it_an_obligation_fails(guard: str) -> None:
    assert counterexample_without(kip_631, guard, LARGER) == NEEDED[guard]


@pytest.mark.sampled(2)
@by_both
@pytest.mark.parametrize("guard", [*IMPLIED, *STUTTERS])
def test_without_it_there_are_no_steps_but_such_as_change_nothing(guard: str, proof: FixedProof) -> None:
    found = implications(proof).judge(proof.protocol.traced().drop(guard), guard.partition(".")[0])
    assert found.relation is (Relation.SAME if guard in IMPLIED else Relation.STILL)


@pytest.mark.sampled(2)
@by_both
@pytest.mark.parametrize("guard", REDUNDANT)
def test_without_it_every_promise_is_still_proved(guard: str, proof: FixedProof) -> None:
    proved_without(proof, guard)
