"""Expected results of exploring ``fencing``.

Constants are those that differ from the protocol's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...expected.counterexample import Counterexample
from ...expected.obligation_count import ObligationCount
from ...expected.state_count import StateCount

DEFAULT: Final[Mapping[str, int]] = {}
"""The protocol's defaults."""
TWO_REPLICAS: Final[Mapping[str, int]] = {"replicas": 2}
"""The defaults with two replicas."""
ONE_RECORD: Final[Mapping[str, int]] = {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}
"""Two replicas, one record, and two leader epochs."""
ONE_RECORD_AT_THREE: Final[Mapping[str, int]] = {"log_size": 1, "max_records": 1, "max_leader_epoch": 1}
"""The same with three replicas."""
THREE_EPOCHS: Final[Mapping[str, int]] = {"log_size": 1, "max_records": 1}
"""Three replicas, one record, and three leader epochs."""
THREE_RECORDS: Final[Mapping[str, int]] = {"replicas": 2, "log_size": 3, "max_records": 3}
"""Two replicas and three records."""
TWO_EPOCHS: Final[Mapping[str, int]] = {"max_leader_epoch": 1}
"""The defaults with two leader epochs."""
FULL_LOG: Final[Mapping[str, int]] = {"replicas": 2, "log_size": 1}
"""Two replicas whose log has no room for the second record."""

STATE_COUNTS: Final = (
    StateCount("truncate-to-hw", ONE_RECORD, 353, 12),
    StateCount("truncate-to-hw", TWO_REPLICAS, 10_131, 20),
    StateCount("truncate-to-hw", ONE_RECORD_AT_THREE, 10_681, 17),
    StateCount("truncate-to-hw", THREE_RECORDS, 37_667, 25),
    StateCount("kip-101", ONE_RECORD, 341, 12),
    StateCount("kip-101", TWO_REPLICAS, 9_045, 18),
    StateCount("kip-101", ONE_RECORD_AT_THREE, 9_841, 18),
    StateCount("kip-101", THREE_RECORDS, 32_933, 21),
    StateCount("kip-279", ONE_RECORD, 341, 12),
    StateCount("kip-279", TWO_REPLICAS, 9_027, 18),
    StateCount("kip-279", ONE_RECORD_AT_THREE, 9_841, 18),
    StateCount("kip-279", THREE_RECORDS, 32_713, 21),
    StateCount("kip-320-first-try", ONE_RECORD, 337, 12),
    StateCount("kip-320-first-try", TWO_REPLICAS, 8_429, 18),
    StateCount("kip-320-first-try", ONE_RECORD_AT_THREE, 9_661, 18),
    StateCount("kip-320-first-try", THREE_RECORDS, 30_737, 22),
    StateCount("kip-320", ONE_RECORD, 277, 12),
    StateCount("kip-320", TWO_REPLICAS, 5_973, 18),
    StateCount("kip-320", ONE_RECORD_AT_THREE, 6_787, 18),
    StateCount("kip-320", THREE_RECORDS, 21_493, 22),
    StateCount("kip-320-restarts", ONE_RECORD, 1_031, 14),
    StateCount("kip-320-restarts", TWO_REPLICAS, 26_853, 20),
    StateCount("kip-320-restarts", ONE_RECORD_AT_THREE, 53_542, 21),
    StateCount("kip-320-restarts", THREE_RECORDS, 101_549, 23),
    StateCount("kip-320-resumes", ONE_RECORD, 1_091, 14),
    StateCount("kip-320-resumes", TWO_REPLICAS, 29_261, 21),
    StateCount("kip-320-resumes", ONE_RECORD_AT_THREE, 61_834, 22),
    StateCount("kip-320-resumes", THREE_RECORDS, 112_589, 24),
    StateCount("kip-320-forgets", ONE_RECORD, 1_361, 15),
    StateCount("kip-320-forgets", TWO_REPLICAS, 77_019, 24),
    StateCount("kip-320-forgets", ONE_RECORD_AT_THREE, 106_888, 26),
    StateCount("kip-320-forgets", THREE_RECORDS, 511_239, 31),
    StateCount("kip-320-brokers", ONE_RECORD, 1_439, 15),
    StateCount("kip-320-brokers", TWO_REPLICAS, 38_077, 21),
    StateCount("kip-320-brokers", ONE_RECORD_AT_THREE, 119_770, 23),
    StateCount("kip-320-brokers", TWO_EPOCHS, 847_165, 27),
    StateCount("kip-320-stale-acks", ONE_RECORD, 1_483, 15),
    StateCount("kip-320-stale-acks", TWO_REPLICAS, 40_517, 21),
    StateCount("kip-320-stale-acks", ONE_RECORD_AT_THREE, 129_670, 23),
    StateCount("kip-320-stale-acks", TWO_EPOCHS, 920_857, 27),
    StateCount("kip-497", {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 0}, 1_573, 22),
    StateCount("kip-497", ONE_RECORD, 57_095, 35),
    StateCount("kip-497", {"replicas": 2, "max_leader_epoch": 1}, 252_031, 38),
    StateCount("kip-497", {"log_size": 1, "max_records": 1, "max_leader_epoch": 0}, 211_723, 29),
)
"""Distinct states and depth of the whole graph."""

LARGE_STATE_COUNTS: Final = (
    StateCount("truncate-to-hw", DEFAULT, 1_988_158, 28),
    StateCount("kip-101", DEFAULT, 1_613_089, 26),
    StateCount("kip-279", DEFAULT, 1_616_461, 26),
    StateCount("kip-320-first-try", DEFAULT, 1_437_076, 28),
    StateCount("kip-320", DEFAULT, 737_794, 26),
    StateCount("kip-320-restarts", DEFAULT, 7_601_248, 29),
    StateCount("kip-320-brokers", THREE_EPOCHS, 2_016_850, 27),
    StateCount("kip-320-brokers", DEFAULT, 17_904_154, 31),
    StateCount("kip-497", ONE_RECORD_AT_THREE, 35_361_880, 45, symmetry=True),
)
"""The same at larger constants."""

COUNTEREXAMPLES: Final = (
    Counterexample("truncate-to-hw", DEFAULT, "weak_isr", 8),
    Counterexample("truncate-to-hw", DEFAULT, "strong_isr", 8),
    Counterexample("kip-101", DEFAULT, "weak_isr", 10),
    Counterexample("kip-101", DEFAULT, "strong_isr", 10),
    Counterexample("kip-279", DEFAULT, "weak_isr", 10),
    Counterexample("kip-279", DEFAULT, "strong_isr", 10),
    Counterexample("kip-320-first-try", DEFAULT, "weak_isr", 11),
    Counterexample("kip-320-first-try", DEFAULT, "strong_isr", 12),
    Counterexample("truncate-to-hw", TWO_REPLICAS, "weak_isr", 8),
    Counterexample("truncate-to-hw", TWO_REPLICAS, "strong_isr", 9),
    Counterexample("kip-101", TWO_REPLICAS, "weak_isr", 11),
    Counterexample("kip-101", TWO_REPLICAS, "strong_isr", 11),
    Counterexample("kip-320-resumes", ONE_RECORD_AT_THREE, "weak_isr", 15),
    Counterexample("kip-320-resumes", ONE_RECORD_AT_THREE, "strong_isr", 15),
    Counterexample("kip-320-resumes", DEFAULT, "weak_isr", 15),
    Counterexample("kip-320-resumes", DEFAULT, "strong_isr", 15),
    Counterexample("kip-320-forgets", ONE_RECORD, "weak_isr", 7),
    Counterexample("kip-320-forgets", ONE_RECORD, "strong_isr", 9),
    Counterexample("kip-320-forgets", TWO_REPLICAS, "weak_isr", 7),
    Counterexample("kip-320-forgets", TWO_REPLICAS, "strong_isr", 9),
    Counterexample("kip-320-forgets", ONE_RECORD_AT_THREE, "weak_isr", 8),
    Counterexample("kip-320-forgets", ONE_RECORD_AT_THREE, "strong_isr", 9),
    Counterexample("kip-320-forgets", DEFAULT, "weak_isr", 8),
    Counterexample("kip-320-forgets", DEFAULT, "strong_isr", 9),
    Counterexample("kip-320-stale-acks", THREE_EPOCHS, "weak_isr", 13),
    Counterexample("kip-320-stale-acks", THREE_EPOCHS, "strong_isr", 13),
    Counterexample("kip-320-stale-acks", DEFAULT, "weak_isr", 13),
    Counterexample("kip-320-stale-acks", DEFAULT, "strong_isr", 13),
    Counterexample("kip-497-eager", ONE_RECORD, "strong_isr", 8),
    Counterexample("kip-497-eager", ONE_RECORD, "weak_isr", 9),
    Counterexample("kip-497-forgets", ONE_RECORD, "strong_isr", 9),
    Counterexample("kip-497-forgets", ONE_RECORD, "weak_isr", 10),
    Counterexample("kip-497-fenced", ONE_RECORD, "strong_isr", 12),
    Counterexample("kip-497-fenced", ONE_RECORD, "weak_isr", 13),
)
"""Steps of the shortest run that breaks an invariant. Each is checked alone; the variant keeps the others."""

WITHOUT_GUARD: Final = (
    Counterexample("kip-320", DEFAULT, "leader_in_isr", 2, dropped=("controller_elect_leader.in_quorum_isr",)),
    # The model bounds leader epochs; Kafka does not.
    Counterexample("kip-320", DEFAULT, "type_ok", 4, dropped=("controller_elect_leader.epoch_available",)),
    Counterexample("kip-320", DEFAULT, "type_ok", 4, dropped=("controller_shrink_isr.epoch_available",)),
    # The leader takes up an old request to lead, with the ISR of that time.
    Counterexample("kip-320", DEFAULT, "weak_isr", 7, dropped=("become_leader.epoch_newer",)),
    Counterexample("kip-320", DEFAULT, "weak_isr", 10, dropped=("become_follower.epoch_newer",)),
    Counterexample("kip-320", DEFAULT, "weak_isr", 14, dropped=("become_follower.leader_epoch_matches",)),
    # A replica that never led has no epoch to write in.
    Counterexample("kip-320", DEFAULT, "type_ok", 1, dropped=("leader_write.presumes_leadership",)),
    Counterexample("kip-320", DEFAULT, "type_ok", 7, dropped=("leader_write.record_available",)),
    Counterexample("kip-320", DEFAULT, "weak_isr", 12, dropped=("follower_fetch.epoch_not_fenced",)),
    Counterexample("kip-320", DEFAULT, "type_ok", 3, dropped=("follower_fetch.record_available",)),
    Counterexample("kip-320", DEFAULT, "weak_isr", 4, dropped=("leader_inc_high_watermark.isr_acknowledges",)),
    Counterexample("kip-320", DEFAULT, "leader_in_isr", 4, dropped=("leader_shrink_isr.true_leader",)),
    Counterexample("kip-320", DEFAULT, "weak_isr", 14, dropped=("leader_expand_isr.epoch_not_fenced",)),
    Counterexample("kip-320", DEFAULT, "weak_isr", 8, dropped=("leader_expand_isr.reached_high_watermark",)),
    # KAFKA-7128: a new leader does not know yet which records its predecessor committed.
    Counterexample("kip-320", DEFAULT, "strong_isr", 11, dropped=("leader_expand_isr.hw_reached_epoch",)),
    Counterexample("kip-320", DEFAULT, "strong_isr", 9, dropped=("leader_expand_isr.true_leader",)),
    # Where the log has room for all records, the guard rejects nothing.
    Counterexample("kip-320", FULL_LOG, "type_ok", 4, dropped=("leader_write.log_not_full",)),
    # A restarted replica takes a record for committed that no other replica has.
    Counterexample("kip-320-restarts", ONE_RECORD_AT_THREE, "weak_isr", 5, dropped=("restart.stored_high_watermark",)),
    Counterexample("kip-320-restarts", ONE_RECORD_AT_THREE, "weak_isr", 10, dropped=("become_follower.epoch_newer",)),
    # Without crashes the guard is implied. A restarted leader knows no ISR, so no replica has to acknowledge.
    Counterexample(
        "kip-320-restarts",
        ONE_RECORD_AT_THREE,
        "weak_isr",
        7,
        dropped=("leader_inc_high_watermark.presumes_leadership",),
    ),
    Counterexample(
        "kip-320-brokers", ONE_RECORD, "leader_in_isr", 2, dropped=("controller_elect_leader.in_quorum_isr",)
    ),
    Counterexample("kip-320-brokers", ONE_RECORD, "type_ok", 3, dropped=("controller_elect_leader.epoch_available",)),
    Counterexample("kip-320-brokers", ONE_RECORD, "type_ok", 3, dropped=("controller_shrink_isr.epoch_available",)),
    Counterexample("kip-320-brokers", ONE_RECORD, "weak_isr", 6, dropped=("become_leader.epoch_newer",)),
    Counterexample("kip-320-brokers", ONE_RECORD_AT_THREE, "weak_isr", 11, dropped=("become_follower.epoch_newer",)),
    Counterexample("kip-320-brokers", THREE_EPOCHS, "weak_isr", 14, dropped=("become_follower.leader_epoch_matches",)),
    Counterexample("kip-320-brokers", ONE_RECORD, "type_ok", 1, dropped=("leader_write.presumes_leadership",)),
    Counterexample("kip-320-brokers", ONE_RECORD, "type_ok", 6, dropped=("leader_write.record_available",)),
    Counterexample("kip-320-brokers", FULL_LOG, "type_ok", 4, dropped=("leader_write.log_not_full",)),
    Counterexample("kip-320-brokers", THREE_EPOCHS, "weak_isr", 12, dropped=("follower_fetch.epoch_not_fenced",)),
    Counterexample("kip-320-brokers", ONE_RECORD, "type_ok", 3, dropped=("follower_fetch.record_available",)),
    # A fetch of an older epoch reports a log that its follower truncates for the newer one.
    Counterexample("kip-320-brokers", THREE_EPOCHS, "weak_isr", 13, dropped=("follower_acknowledge.epoch_not_fenced",)),
    Counterexample(
        "kip-320-brokers",
        ONE_RECORD_AT_THREE,
        "weak_isr",
        7,
        dropped=("leader_inc_high_watermark.presumes_leadership",),
    ),
    Counterexample(
        "kip-320-brokers", ONE_RECORD, "weak_isr", 4, dropped=("leader_inc_high_watermark.isr_acknowledges",)
    ),
    # Implied where a leader counts itself as caught up; here no message says so.
    Counterexample("kip-320-brokers", ONE_RECORD, "leader_in_isr", 3, dropped=("leader_shrink_isr.not_leader_itself",)),
    Counterexample("kip-320-brokers", ONE_RECORD, "leader_in_isr", 4, dropped=("leader_shrink_isr.true_leader",)),
    Counterexample("kip-320-brokers", THREE_EPOCHS, "weak_isr", 14, dropped=("leader_expand_isr.epoch_not_fenced",)),
    Counterexample("kip-320-brokers", ONE_RECORD, "weak_isr", 7, dropped=("leader_expand_isr.reached_high_watermark",)),
    Counterexample(
        "kip-320-brokers", ONE_RECORD_AT_THREE, "strong_isr", 12, dropped=("leader_expand_isr.hw_reached_epoch",)
    ),
    Counterexample("kip-320-brokers", ONE_RECORD, "leader_in_isr", 5, dropped=("leader_expand_isr.true_leader",)),
    Counterexample("kip-320-brokers", ONE_RECORD, "weak_isr", 5, dropped=("restart.stored_high_watermark",)),
    Counterexample("kip-497", ONE_RECORD, "weak_isr", 4, dropped=("leader_inc_high_watermark.isr_acknowledges",)),
    Counterexample("kip-497", ONE_RECORD, "leader_in_isr", 4, dropped=("leader_propose_shrink.not_leader_itself",)),
    Counterexample("kip-497", ONE_RECORD, "strong_isr", 8, dropped=("leader_propose_expand.reached_high_watermark",)),
    Counterexample("kip-497", ONE_RECORD, "leader_in_isr", 5, dropped=("controller_alter_isr.leader_epoch_matches",)),
    Counterexample("kip-497", ONE_RECORD, "strong_isr", 10, dropped=("controller_alter_isr.partition_epoch_matches",)),
    Counterexample("kip-497", ONE_RECORD, "strong_isr", 9, dropped=("leader_take_isr.partition_epoch_newer",)),
    Counterexample("kip-320-resumes", ONE_RECORD, "type_ok", 2, dropped=("resume_leadership.quorum_has_it_lead",)),
    Counterexample("kip-320-resumes", ONE_RECORD, "type_ok", 3, dropped=("resume_leadership.epoch_is_quorums",)),
)
"""Guards without which an invariant breaks, and after how many steps. All invariants are checked."""

MORE_WITHOUT_GUARD: Final = (
    StateCount("kip-320-restarts", TWO_REPLICAS, 54_865, None, dropped=("controller_elect_leader.not_leader_yet",)),
    StateCount(
        "kip-320-restarts", ONE_RECORD_AT_THREE, 63_913, None, dropped=("controller_elect_leader.not_leader_yet",)
    ),
    StateCount("kip-320-restarts", TWO_REPLICAS, 30_241, None, dropped=("controller_shrink_isr.leads_or_in_isr",)),
    StateCount(
        "kip-320-restarts", ONE_RECORD_AT_THREE, 55_021, None, dropped=("controller_shrink_isr.leads_or_in_isr",)
    ),
    StateCount("kip-320-restarts", TWO_REPLICAS, 113_621, None, dropped=("become_leader.names_leader",)),
    StateCount("kip-320-restarts", ONE_RECORD_AT_THREE, 147_610, None, dropped=("become_leader.names_leader",)),
    StateCount("kip-320-restarts", TWO_REPLICAS, 26_853, None, dropped=("leader_shrink_isr.not_caught_up",)),
    StateCount("kip-320-restarts", ONE_RECORD_AT_THREE, 53_542, None, dropped=("leader_shrink_isr.not_caught_up",)),
    # This guard and the next three are implied without crashes. A replica that has lost its role is still in its epoch:
    # each of its steps was possible before the crash, or is possible after it rejoins.
    StateCount("kip-320-restarts", TWO_REPLICAS, 26_853, None, dropped=("become_follower.presumes_leadership",)),
    StateCount("kip-320-restarts", ONE_RECORD_AT_THREE, 53_542, None, dropped=("become_follower.presumes_leadership",)),
    StateCount("kip-320-restarts", TWO_REPLICAS, 26_853, None, dropped=("follower_fetch.presumes_leadership",)),
    StateCount("kip-320-restarts", ONE_RECORD_AT_THREE, 53_542, None, dropped=("follower_fetch.presumes_leadership",)),
    StateCount("kip-320-restarts", TWO_REPLICAS, 26_853, None, dropped=("follower_fetch.follows_leader",)),
    StateCount("kip-320-restarts", ONE_RECORD_AT_THREE, 53_542, None, dropped=("follower_fetch.follows_leader",)),
    StateCount("kip-320-restarts", TWO_REPLICAS, 26_853, None, dropped=("leader_expand_isr.follows_leader",)),
    StateCount("kip-320-restarts", ONE_RECORD_AT_THREE, 53_542, None, dropped=("leader_expand_isr.follows_leader",)),
    StateCount("kip-320-brokers", TWO_REPLICAS, 76_901, None, dropped=("controller_elect_leader.not_leader_yet",)),
    StateCount(
        "kip-320-brokers", ONE_RECORD_AT_THREE, 140_293, None, dropped=("controller_elect_leader.not_leader_yet",)
    ),
    StateCount("kip-320-brokers", TWO_REPLICAS, 42_969, None, dropped=("controller_shrink_isr.leads_or_in_isr",)),
    StateCount(
        "kip-320-brokers", ONE_RECORD_AT_THREE, 123_841, None, dropped=("controller_shrink_isr.leads_or_in_isr",)
    ),
    StateCount("kip-320-brokers", TWO_REPLICAS, 137_973, None, dropped=("become_leader.names_leader",)),
    StateCount("kip-320-brokers", ONE_RECORD_AT_THREE, 258_646, None, dropped=("become_leader.names_leader",)),
    StateCount("kip-320-brokers", TWO_REPLICAS, 38_077, None, dropped=("leader_shrink_isr.not_caught_up",)),
    StateCount("kip-320-brokers", ONE_RECORD_AT_THREE, 119_770, None, dropped=("leader_shrink_isr.not_caught_up",)),
    StateCount("kip-320-brokers", TWO_REPLICAS, 38_077, None, dropped=("become_follower.presumes_leadership",)),
    StateCount("kip-320-brokers", ONE_RECORD_AT_THREE, 119_770, None, dropped=("become_follower.presumes_leadership",)),
    StateCount("kip-320-brokers", TWO_REPLICAS, 38_077, None, dropped=("follower_fetch.presumes_leadership",)),
    StateCount("kip-320-brokers", ONE_RECORD_AT_THREE, 119_770, None, dropped=("follower_fetch.presumes_leadership",)),
    StateCount("kip-320-brokers", TWO_REPLICAS, 38_077, None, dropped=("follower_fetch.follows_leader",)),
    StateCount("kip-320-brokers", ONE_RECORD_AT_THREE, 119_770, None, dropped=("follower_fetch.follows_leader",)),
    StateCount("kip-320-brokers", TWO_REPLICAS, 38_077, None, dropped=("follower_acknowledge.follows_leader",)),
    StateCount("kip-320-brokers", ONE_RECORD_AT_THREE, 119_770, None, dropped=("follower_acknowledge.follows_leader",)),
    StateCount("kip-320-brokers", TWO_REPLICAS, 38_077, None, dropped=("leader_expand_isr.follows_leader",)),
    StateCount("kip-320-brokers", ONE_RECORD_AT_THREE, 119_770, None, dropped=("leader_expand_isr.follows_leader",)),
)
"""Guards without which there are more steps, and no invariant breaks."""

OBLIGATIONS: Final = (
    ObligationCount("kip-320", 260),
    ObligationCount("kip-320-brokers", 360),
    ObligationCount("kip-497", 518),
)
"""Number of obligations of each proof."""
