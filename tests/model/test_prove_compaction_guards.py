"""What the proof of kip-280-safe needs of the text: each guard is dropped alone.

``NEEDED``: the conjunct that a first counterexample to induction breaks. ``REDUNDANT``: every promise is still proved
without the guard, for any number of everything; and why that is so.
"""

from __future__ import annotations

import pytest
from fencepost.model.protocols.compaction.proof import kip_280

from .guards import counterexample_without, guards_of, proved_without

SAFE = kip_280.protocol.traced()

NEEDED = {
    # The bounds are the model's: what holds for all constants must stay within them.
    "set_topic_strategy.change_available": "type_ok",
    "set_broker_strategy.change_available": "type_ok",
    "elect_leader.epoch_available": "type_ok",
    "leader_write.log_not_full": "type_ok",
    # The strategy.
    "set_topic_strategy.logs_are_alike": "header_is_long",
    "set_topic_strategy.brokers_agree": "brokers_clean_alike",
    "set_broker_strategy.topic_overrides": "header_is_long",
    # Replication.
    "elect_leader.in_isr": "leader_is_in_its_epoch",
    "elect_leader.follows_leader": "no_epoch_from_the_future",
    "leader_write.header_is_long": "header_is_long",
    "leader_write.arrives_in_time": "dropped_beats_nothing_here",
    "follower_fetch.follows_leader": "record_is_of_a_joined_epoch",
    "follower_fetch.record_there": "uncommitted_is_whole",
    "follower_fetch.not_fetched": "member_has_the_committed",
    "follower_fetch.is_next": "uncommitted_is_whole",
    "leader_inc_high_watermark.has_leader": "leader_is_in_its_epoch",
    "leader_inc_high_watermark.isr_has_it": "member_has_the_committed",
    "leader_expand_isr.follows_leader": "member_has_the_committed",
    "leader_expand_isr.reached_high_watermark": "member_has_the_committed",
    # The cleaner.
    "remove_record.follows_leader": "best_is_kept",
    "remove_record.cleanable": "uncommitted_is_whole",
    "remove_record.winner_cleanable": "best_is_kept",
    "remove_record.is_beaten": "best_is_kept",
    "finish_cleaning.committed": "active_segment_is_uncleaned",
    "finish_cleaning.inactive": "active_segment_is_uncleaned",
    "finish_cleaning.nothing_left": "survivor_is_alone",
    "remove_tombstone.is_tombstone": "best_is_kept",
    "remove_tombstone.cleaned_before": "uncommitted_is_whole",
    "remove_tombstone.readers_in_time": "all_have_passed",
    "remove_tombstone.cleaned_in_time": "dropped_beats_nothing_here",
    # Who reads.
    "consumer_fetch.consumer_reads": "reads_the_committed",
    "consumer_fetch.committed": "reads_the_committed",
    "consumer_fetch.not_read": "all_have_passed",
    "consumer_fetch.is_next": "table_has_the_best",
}

_NOTHING_YET = "before there is a leader there is no epoch, and no record"
_BOUND = "what records may have is bounded for those who explore; no promise rests on it"
_LEO = "the log end offset is kept apart from the records: it stays where the last one goes"
REDUNDANT = {
    "set_topic_strategy.has_leader": _NOTHING_YET,
    "set_topic_strategy.differs": "who sets what is set begins to count anew",
    "set_broker_strategy.differs": "who sets what is set changes nothing",
    "elect_leader.not_leader_yet": "the leader is elected again, in a new epoch",
    "become_follower.has_leader": _NOTHING_YET,
    "become_follower.epoch_newer": "who has missed no epoch cuts nothing",
    "leader_write.has_leader": _NOTHING_YET,
    "leader_write.headers_used": _BOUND,
    "leader_write.repeats_a_header": _BOUND,
    "leader_inc_high_watermark.record_above_hw": "the leader is in the ISR, and has the record",
    "leader_shrink_isr.has_leader": _NOTHING_YET,
    "leader_shrink_isr.not_leader_itself": "a leader is caught up with itself",
    "leader_shrink_isr.in_isr": "a replica that is not in the ISR is taken out of it",
    "leader_shrink_isr.not_caught_up": "the leader takes out a follower that has everything",
    "leader_expand_isr.outside_isr": "a replica that is in the ISR is taken into it",
    "roll_segment.segment_not_empty": "a segment that is empty is begun again",
    "remove_record.not_last": _LEO,
    "finish_cleaning.follows_leader": "who does not follow yet may know what it has cleaned, too",
    "finish_cleaning.cleans_more": "a checkpoint that is lower says less",
    "finish_cleaning.in_log": "the active segment begins within the log",
    "remove_tombstone.follows_leader": "all have come past it, and follow",
    "remove_tombstone.not_last": _LEO,
    "consumer_fetch.record_there": "an offset that is gone has no key: the consumer comes past it, and takes nothing",
}


LARGER = tuple({**kip_280.sizes[0], **more} for more in ({"log_size": 3}, {"consumers": 0}))
"""Some counterexamples take a third offset, and one that nobody reads."""


def test_every_guard_is_accounted_for_once() -> None:
    assert sorted([*NEEDED, *REDUNDANT]) == guards_of(SAFE)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", NEEDED)
def test_without_it_an_obligation_fails(guard: str) -> None:
    assert counterexample_without(kip_280, guard, LARGER) == NEEDED[guard]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", REDUNDANT)
def test_without_it_every_promise_is_still_proved(guard: str) -> None:
    proved_without(kip_280, guard)
