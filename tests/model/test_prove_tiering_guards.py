"""What the proof of kip-1023-safe needs of the text: each guard is dropped alone.

``NEEDED``: the conjunct that a first counterexample to induction breaks. ``REDUNDANT``: every promise is still proved
without the guard, for any number of replicas, offsets and epochs; and why that is so.
"""

from __future__ import annotations

import pytest
from fencepost.model.protocols.tiering.proof import kip_1023

from .guards import counterexample_without, guards_of, proved_without

SAFE = kip_1023.protocol.traced()

NEEDED = {
    # The bounds are the model's: what holds for all constants must stay within them.
    "elect_leader.epoch_available": "type_ok",
    "elect_unclean_leader.epoch_available": "type_ok",
    "leader_write.log_not_full": "type_ok",
    "end_transaction.transaction_open": "type_ok",
    # Who leads, and who is in the ISR.
    "elect_leader.in_isr": "newest_leader_leads",
    "elect_unclean_leader.unclean_allowed": "epoch_keeps_the_committed",
    "become_follower.presumes_leadership": "uploaded_is_stable",
    "become_follower.epoch_newer": "newest_leader_leads",
    "leader_write.presumes_leadership": "lineage_is_leaders",
    "follower_fetch.follows_leader": "uploaded_is_stable",
    "follower_fetch.offset_is_local": "offsets_in_order",
    "follower_fetch.record_available": "type_ok",
    "leader_inc_high_watermark.record_above_hw": "type_ok",
    "leader_inc_high_watermark.isr_has_it": "member_has_the_committed",
    "leader_shrink_isr.true_leader": "newest_leader_leads",
    "leader_shrink_isr.not_leader_itself": "newest_leader_leads",
    "leader_expand_isr.true_leader": "member_has_the_committed",
    "leader_expand_isr.follows_leader": "member_has_the_committed",
    "leader_expand_isr.reached_high_watermark": "offsets_in_order",
    "leader_expand_isr.hw_reached_epoch": "member_has_the_committed",
    "leader_expand_isr.has_all_there_is": "isr_begins_locally",
    "replace_replica.outside_isr": "newest_leader_leads",
    # What is uploaded, and what is deleted.
    "find_highest_remote_offset.not_looked": "own_upload_is_next",
    "find_highest_remote_offset.log_start_is_committed": "offsets_in_order",
    "start_copy.has_looked": "own_upload_is_next",
    "start_copy.one_at_a_time": "one_upload",
    "start_copy.has_records": "uploaded_is_stable",
    "start_copy.below_last_stable": "uploaded_is_stable",
    "copy_segment.presumes_leadership": "leader_can_serve",
    "copy_segment.copy_started": "type_ok",
    "copy_segment.is_local": "segment_is_known",
    "finish_copy.presumes_leadership": "own_upload_is_next",
    "finish_copy.copied": "type_ok",
    "delete_local.tiering_enabled": "leader_can_serve",
    "delete_local.below_last_stable": "offsets_in_order",
    "delete_local.is_uploaded": "leader_can_serve",
    "increment_log_start.below_last_stable": "type_ok",
    "delete_segment.presumes_leadership": "leader_can_serve",
    "delete_segment.epoch_is_newest": "leader_can_serve",
    "delete_segment.below_log_start": "leader_can_serve",
    "disable_tiering.isr_is_whole": "isr_begins_locally",
    "disable_tiering.isr_reaches_start": "offsets_in_order",
    # A follower whose fetch offset is not on its leader.
    "truncate_fully.follows_leader": "leader_is_at_end",
    "build_to_local_start.follows_leader": "leader_can_serve",
    "build_to_local_start.offset_not_local": "member_has_the_committed",
    "build_to_local_start.segment_is_of_lineage": "lineage_is_leaders",
    "build_to_epuo.follows_leader": "leader_can_serve",
    "build_to_epuo.begins_at_epuo": "only_empty_follower_jumps",
    "build_to_epuo.segment_is_of_lineage": "lineage_is_leaders",
    "start_at_local_start.follows_leader": "leader_is_at_end",
    "start_at_log_start.follows_leader": "leader_is_at_end",
    "copy_anew.follows_leader": "uploaded_is_stable",
    "copy_anew.outside_isr": "member_has_the_committed",
}

_LATER = "a replica's log may begin later: it claims less"
_UNUSED = "what is uploaded is stable and of the lineage, also while it is not used"
_ANEW = "whoever is behind its leader's log start may begin there, or behind it"
_UNKNOWN = "a constant, and unknown: what holds where it is 1 holds where it is not"
REDUNDANT = {
    "elect_unclean_leader.outside_isr": "a member of the ISR that is elected alone is then the ISR",
    "become_follower.not_leader_itself": "no leader is in an epoch that is newer than its own",
    "leader_inc_high_watermark.presumes_leadership": "who is followed leads; who is the ISR leads it",
    "leader_inc_high_watermark.in_isr": "the newest leader is in the ISR, and follows nobody",
    "leader_shrink_isr.in_isr": "a replica that is not in the ISR is taken out of it",
    "leader_expand_isr.outside_isr": "a replica that is in the ISR is taken into it",
    "replace_replica.not_empty": "a replica outside the ISR may begin anew",
    "find_highest_remote_offset.presumes_leadership": _LATER,
    "find_highest_remote_offset.tiering_enabled": _LATER,
    "start_copy.presumes_leadership": "who does not lead knows of nothing on remote: it has not looked",
    "start_copy.tiering_enabled": _UNUSED,
    "start_copy.is_local": "a leader has locally what comes next",
    "copy_segment.tiering_enabled": _UNUSED,
    "finish_copy.tiering_enabled": _UNUSED,
    "delete_local.presumes_leadership": "who does not lead knows of nothing on remote",
    "increment_log_start.presumes_leadership": _LATER,
    "increment_log_start.retention_expires": _UNKNOWN,
    "increment_log_start.has_looked": _LATER,
    "delete_segment.tiering_enabled": "nobody claims what is below the newest leader's log start of it",
    "delete_segment.copy_finished": "an upload that is not finished counts for nothing",
    "disable_tiering.true_leader": "the newest leader's log begins where that of all the ISR does",
    "disable_tiering.switches_made": _UNKNOWN,
    "disable_tiering.is_enabled": _LATER,
    "enable_tiering.true_leader": "while it is off a leader has locally all that it claims",
    "enable_tiering.is_disabled": "what is on stays on",
    "truncate_fully.offset_not_local": "what is below the log start is below the local log start",
    "truncate_fully.below_log_start": "a member of the ISR is past what its leader lacks, and others may begin anew",
    "truncate_fully.old_behaviour": _ANEW,
    "build_to_local_start.moved_to_tiered_storage": _ANEW,
    "build_to_local_start.old_behaviour": "an empty follower may build up to the local log start, too",
    "build_to_local_start.segment_is_readable": "the epochs that are uploaded are of the lineage",
    "build_to_epuo.offset_not_local": "an empty follower may begin at the EPUO, whatever its leader has locally",
    "build_to_epuo.epuo_is_known": "what is above a log start is known",
    "build_to_epuo.above_log_start": "below its log start a leader says nothing of any record",
    "build_to_epuo.segment_is_readable": "all up to the highest offset is on remote",
    "start_at_local_start.offset_not_local": "an empty follower may begin at a log start",
    "start_at_local_start.begins_at_epuo": _ANEW,
    "start_at_local_start.epuo_is_unknown": _ANEW,
    "start_at_local_start.nothing_uploaded": _ANEW,
    "start_at_log_start.offset_not_local": "an empty follower may begin at a log start",
    "start_at_log_start.begins_at_epuo": _ANEW,
    "start_at_log_start.epuo_is_known": _ANEW,
    "start_at_log_start.not_above_log_start": _ANEW,
    "copy_anew.tiering_disabled": "a replica outside the ISR may begin anew",
    "copy_anew.lacks_the_beginning": "a replica outside the ISR may begin anew",
}


def test_every_guard_is_accounted_for_once() -> None:
    assert sorted([*NEEDED, *REDUNDANT]) == guards_of(SAFE)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", NEEDED)
def test_without_it_an_obligation_fails(guard: str) -> None:
    assert counterexample_without(kip_1023, guard) == NEEDED[guard]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", REDUNDANT)
def test_without_it_every_promise_is_still_proved(guard: str) -> None:
    proved_without(kip_1023, guard)
