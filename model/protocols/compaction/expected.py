"""Expected results of exploring ``compaction``.

Constants are those that differ from the protocol's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...expected.counterexample import Counterexample
from ...expected.obligation_count import ObligationCount
from ...expected.state_count import StateCount

BY_TIMESTAMP: Final[Mapping[str, int]] = {"max_leader_epoch": 0, "max_changes": 0, "default_strategy": 2}
"""Two replicas of one leader epoch; the brokers compact by timestamp."""
HEADERS: Final[Mapping[str, int]] = {
    "replicas": 1,
    "timestamps": 1,
    "header_values": 1,
    "repeated_headers": 1,
    "max_leader_epoch": 0,
    "consumers": 0,
}
"""One replica whose records have a header, perhaps twice, while a strategy is set."""
TOMBSTONES: Final[Mapping[str, int]] = {
    "replicas": 1,
    "max_leader_epoch": 0,
    "max_changes": 0,
    "default_strategy": 2,
    "consumers": 0,
}
"""One replica that compacts by timestamp, without a consumer."""
READ: Final[Mapping[str, int]] = {"replicas": 1, "max_leader_epoch": 0, "max_changes": 0, "default_strategy": 2}
"""The same with a consumer."""
STRATEGY_SET: Final[Mapping[str, int]] = {"replicas": 1, "log_size": 3, "max_leader_epoch": 0, "consumers": 0}
"""One replica whose strategy is set once."""
TWO_KEYS: Final[Mapping[str, int]] = {
    "replicas": 1,
    "log_size": 3,
    "keys": 2,
    "max_leader_epoch": 0,
    "max_changes": 0,
    "default_strategy": 2,
    "consumers": 0,
}
"""One replica with two keys, which compacts by timestamp."""
ONE_MAY_LAG: Final[Mapping[str, int]] = {
    "log_size": 3,
    "keys": 2,
    "timestamps": 1,
    "max_leader_epoch": 0,
    "max_changes": 0,
    "consumers": 0,
}
"""Two replicas of one leader epoch; the strategy is offset, as in Kafka as shipped."""
UNREAD: Final[Mapping[str, int]] = {
    "replicas": 1,
    "timestamps": 1,
    "max_leader_epoch": 0,
    "max_changes": 0,
    "consumers": 0,
}
"""One replica, one timestamp, and no consumer."""
ONE_REPLICA: Final[Mapping[str, int]] = {"replicas": 1, "timestamps": 1, "max_leader_epoch": 0, "max_changes": 0}
"""One replica, one timestamp, and a consumer."""
TWO_EPOCHS: Final[Mapping[str, int]] = {"timestamps": 1, "max_changes": 0}
"""Two replicas and two leader epochs, one timestamp, and a consumer."""
TWO_KEYS_READ: Final[Mapping[str, int]] = {
    "replicas": 1,
    "log_size": 3,
    "keys": 2,
    "max_leader_epoch": 0,
    "max_changes": 0,
    "default_strategy": 2,
}
"""One replica with two keys, which compacts by timestamp, and a consumer."""
STRATEGY_SET_AT_TWO: Final[Mapping[str, int]] = {"max_leader_epoch": 0, "consumers": 0}
"""Two replicas whose strategy is set once."""
BY_HEADER: Final[Mapping[str, int]] = {
    "replicas": 1,
    "log_size": 3,
    "timestamps": 1,
    "header_values": 1,
    "max_leader_epoch": 0,
    "max_changes": 0,
    "default_strategy": 3,
    "consumers": 0,
}
"""One replica that compacts by header."""
STRATEGY_SET_READ: Final[Mapping[str, int]] = {"max_leader_epoch": 0}
"""Two replicas whose strategy is set once, and a consumer."""

STATE_COUNTS: Final = (
    StateCount("kip-280-safe", {"max_changes": 0, "default_strategy": 2}, 801_825, 22),
    StateCount("empty-batch", {"max_changes": 0, "default_strategy": 2}, 913_425, 24),
    StateCount(
        "kip-280-safe",
        {"log_size": 3, "max_leader_epoch": 0, "max_changes": 0, "default_strategy": 2, "consumers": 0},
        336_253,
        21,
    ),
    StateCount(
        "empty-batch",
        {"log_size": 3, "max_leader_epoch": 0, "max_changes": 0, "default_strategy": 2, "consumers": 0},
        374_689,
        23,
    ),
    StateCount("kip-280-safe", ONE_MAY_LAG, 304_977, 22),
    StateCount("empty-batch", ONE_MAY_LAG, 321_425, 22),
    StateCount("kip-280-safe", TWO_KEYS_READ, 68_306, 16),
    StateCount("empty-batch", TWO_KEYS_READ, 69_962, 16),
    StateCount("kip-280-safe", {"timestamps": 1, "header_values": 1, "max_leader_epoch": 0}, 456_857, 19),
    StateCount("empty-batch", {"timestamps": 1, "header_values": 1, "max_leader_epoch": 0}, 489_257, 25),
    StateCount(
        "kip-280-safe",
        {
            "replicas": 1,
            "log_size": 3,
            "timestamps": 1,
            "header_values": 2,
            "repeated_headers": 1,
            "max_leader_epoch": 0,
            "max_changes": 0,
            "default_strategy": 3,
            "consumers": 0,
        },
        288_402,
        13,
    ),
    StateCount(
        "empty-batch",
        {
            "replicas": 1,
            "log_size": 3,
            "timestamps": 1,
            "header_values": 2,
            "repeated_headers": 1,
            "max_leader_epoch": 0,
            "max_changes": 0,
            "default_strategy": 3,
            "consumers": 0,
        },
        298_161,
        13,
    ),
)
"""Distinct states and depth of the whole graph of both variants that keep all invariants."""

SMALL_STATE_COUNTS: Final = (
    StateCount("kip-280", BY_TIMESTAMP, 30_305, 18),
    StateCount("kip-280", HEADERS, 41_445, 11),
    StateCount("slow-readers", BY_TIMESTAMP, 28_325, 18),
    StateCount("slow-readers", HEADERS, 25_755, 11),
    StateCount("uncleaned-tail", BY_TIMESTAMP, 26_729, 18),
    StateCount("uncleaned-tail", HEADERS, 25_887, 11),
    StateCount("late-producers", BY_TIMESTAMP, 25_697, 18),
    StateCount("late-producers", HEADERS, 25_755, 11),
    StateCount("reads-again", BY_TIMESTAMP, 32_769, 21),
    StateCount("reads-again", HEADERS, 27_807, 13),
    StateCount("changes-uncleaned", BY_TIMESTAMP, 25_697, 18),
    StateCount("changes-uncleaned", HEADERS, 29_823, 11),
    StateCount("rolling-change", BY_TIMESTAMP, 25_697, 18),
    StateCount("rolling-change", HEADERS, 37_065, 11),
    StateCount("maps-dirty-part", BY_TIMESTAMP, 25_697, 18),
    StateCount("maps-dirty-part", HEADERS, 25_755, 11),
    StateCount("forgets-deletes", BY_TIMESTAMP, 25_697, 18),
    StateCount("forgets-deletes", HEADERS, 25_755, 11),
    StateCount("reads-by-offset", BY_TIMESTAMP, 25_697, 18),
    StateCount("reads-by-offset", HEADERS, 25_755, 11),
    StateCount("removes-last", BY_TIMESTAMP, 29_145, 20),
    StateCount("removes-last", HEADERS, 27_807, 13),
    StateCount("ties-to-lower", BY_TIMESTAMP, 20_177, 18),
    StateCount("ties-to-lower", HEADERS, 18_959, 10),
    StateCount("first-occurrence", BY_TIMESTAMP, 25_697, 18),
    StateCount("first-occurrence", HEADERS, 25_715, 11),
    StateCount("anomalous-stays", BY_TIMESTAMP, 25_697, 18),
    StateCount("anomalous-stays", HEADERS, 25_725, 11),
    StateCount("trusts-header", BY_TIMESTAMP, 25_697, 18),
    StateCount("trusts-header", HEADERS, 29_115, 11),
    StateCount("cleans-uncommitted", BY_TIMESTAMP, 42_297, 18),
    StateCount("cleans-uncommitted", HEADERS, 41_677, 11),
    StateCount("cleans-active", BY_TIMESTAMP, 63_489, 18),
    StateCount("cleans-active", HEADERS, 41_663, 11),
    StateCount("empty-batch", BY_TIMESTAMP, 29_449, 20),
    StateCount("empty-batch", HEADERS, 27_807, 13),
    StateCount("kip-280-safe", BY_TIMESTAMP, 25_697, 18),
    StateCount("kip-280-safe", HEADERS, 25_755, 11),
)
"""The same of each variant: two replicas under timestamps, and headers while a strategy is set."""

LARGE_STATE_COUNTS: Final = (
    StateCount("kip-280-safe", {}, 6_732_593, 23),
    StateCount("kip-280-safe", {"replicas": 3, "timestamps": 1, "max_changes": 0, "consumers": 0}, 2_106_391, 27),
    StateCount("kip-280-safe", {"log_size": 3, "timestamps": 1, "max_changes": 0}, 4_302_329, 28),
    StateCount("kip-280-safe", {"max_leader_epoch": 0, "max_changes": 2}, 1_641_409, 20),
    StateCount("empty-batch", {"replicas": 3, "timestamps": 1, "max_changes": 0, "consumers": 0}, 2_367_553, 29),
    StateCount("empty-batch", {"log_size": 3, "timestamps": 1, "max_changes": 0, "consumers": 0}, 1_508_817, 26),
)
"""The same at larger constants."""

COUNTEREXAMPLES: Final = (
    Counterexample("kip-280", ONE_MAY_LAG, "deleted_stays_deleted", 14),
    Counterexample("kip-280", TOMBSTONES, "deleted_stays_deleted", 8),
    Counterexample("kip-280", READ, "consumer_agrees", 7),
    Counterexample("kip-280", STRATEGY_SET, "winner_is_kept", 8),
    Counterexample("kip-280", TWO_KEYS, "survivor_is_alone", 10),
    Counterexample("slow-readers", ONE_MAY_LAG, "deleted_stays_deleted", 14),
    Counterexample(
        "slow-readers",
        {"replicas": 1, "log_size": 3, "keys": 2, "timestamps": 1, "max_leader_epoch": 0, "max_changes": 0},
        "consumer_agrees",
        11,
    ),
    Counterexample("uncleaned-tail", TOMBSTONES, "deleted_stays_deleted", 8),
    Counterexample("late-producers", TWO_KEYS, "deleted_stays_deleted", 10),
    Counterexample("reads-again", TWO_EPOCHS, "consumer_agrees", 17),
    Counterexample("changes-uncleaned", STRATEGY_SET_AT_TWO, "winner_is_kept", 11),
    Counterexample("rolling-change", STRATEGY_SET, "winner_is_kept", 8),
    Counterexample("rolling-change", STRATEGY_SET_AT_TWO, "winner_is_kept", 9),
    Counterexample("maps-dirty-part", TWO_KEYS, "survivor_is_alone", 10),
    Counterexample("forgets-deletes", READ, "consumer_agrees", 7),
    Counterexample("reads-by-offset", READ, "consumer_agrees", 7),
    Counterexample(
        "ties-to-lower",
        {"replicas": 1, "log_size": 3, "max_leader_epoch": 0, "max_changes": 0, "default_strategy": 2, "consumers": 0},
        "winner_is_kept",
        8,
    ),
    Counterexample("ties-to-lower", BY_HEADER, "winner_is_kept", 8),
    Counterexample(
        "first-occurrence",
        {
            "replicas": 1,
            "log_size": 3,
            "timestamps": 1,
            "header_values": 2,
            "repeated_headers": 1,
            "max_leader_epoch": 0,
            "max_changes": 0,
            "default_strategy": 3,
            "consumers": 0,
        },
        "winner_is_kept",
        7,
    ),
    Counterexample("anomalous-stays", BY_HEADER, "winner_is_kept", 7),
    Counterexample(
        "trusts-header",
        {"replicas": 1, "log_size": 3, "timestamps": 1, "header_values": 1, "max_leader_epoch": 0, "consumers": 0},
        "winner_is_kept",
        8,
    ),
    Counterexample(
        "trusts-header",
        {"replicas": 1, "log_size": 3, "timestamps": 1, "header_values": 1, "max_leader_epoch": 0, "consumers": 0},
        "header_is_long",
        3,
    ),
    Counterexample("cleans-uncommitted", UNREAD, "uncommitted_is_whole", 5),
    Counterexample("cleans-uncommitted", UNREAD, "active_segment_is_uncleaned", 4),
    Counterexample("cleans-active", UNREAD, "active_segment_is_uncleaned", 4),
)
"""Steps of the shortest run that breaks an invariant. Each is checked alone."""

WITHOUT_GUARD: Final = (
    Counterexample(
        "kip-280-safe",
        {"replicas": 1, "timestamps": 1, "header_values": 1, "max_leader_epoch": 0, "consumers": 0},
        "header_is_long",
        3,
        dropped=("set_topic_strategy.logs_are_alike",),
    ),
    Counterexample(
        "kip-280-safe",
        {"replicas": 1, "max_leader_epoch": 0},
        "winner_is_kept",
        8,
        dropped=("set_broker_strategy.topic_overrides",),
    ),
    Counterexample("kip-280-safe", TWO_EPOCHS, "consumer_agrees", 6, dropped=("elect_leader.in_isr",)),
    Counterexample(
        "kip-280-safe",
        {"replicas": 1, "timestamps": 1, "header_values": 1, "max_leader_epoch": 0, "consumers": 0},
        "header_is_long",
        3,
        dropped=("leader_write.header_is_long",),
    ),
    Counterexample(
        "kip-280-safe", TWO_KEYS_READ, "deleted_stays_deleted", 11, dropped=("leader_write.arrives_in_time",)
    ),
    Counterexample(
        "kip-280-safe", STRATEGY_SET_READ, "uncommitted_is_whole", 3, dropped=("follower_fetch.record_there",)
    ),
    Counterexample("kip-280-safe", TWO_EPOCHS, "consumer_agrees", 11, dropped=("follower_fetch.not_fetched",)),
    Counterexample("kip-280-safe", STRATEGY_SET_READ, "uncommitted_is_whole", 5, dropped=("follower_fetch.is_next",)),
    Counterexample(
        "kip-280-safe", ONE_REPLICA, "consumer_agrees", 2, dropped=("leader_inc_high_watermark.isr_has_it",)
    ),
    Counterexample(
        "kip-280-safe", TWO_EPOCHS, "consumer_agrees", 7, dropped=("leader_expand_isr.reached_high_watermark",)
    ),
    Counterexample(
        "kip-280-safe",
        {"max_changes": 0, "default_strategy": 2, "consumers": 0},
        "winner_is_kept",
        13,
        dropped=("remove_record.follows_leader",),
    ),
    Counterexample("kip-280-safe", ONE_REPLICA, "winner_is_kept", 6, dropped=("remove_record.winner_cleanable",)),
    Counterexample("kip-280-safe", ONE_REPLICA, "winner_is_kept", 6, dropped=("remove_record.is_beaten",)),
    Counterexample(
        "kip-280-safe", ONE_REPLICA, "active_segment_is_uncleaned", 4, dropped=("finish_cleaning.committed",)
    ),
    Counterexample(
        "kip-280-safe", ONE_REPLICA, "active_segment_is_uncleaned", 4, dropped=("finish_cleaning.inactive",)
    ),
    Counterexample(
        "kip-280-safe",
        {"replicas": 1, "log_size": 3, "keys": 2, "timestamps": 1, "max_leader_epoch": 0, "max_changes": 0},
        "survivor_is_alone",
        9,
        dropped=("finish_cleaning.nothing_left",),
    ),
    Counterexample("kip-280-safe", ONE_REPLICA, "winner_is_kept", 8, dropped=("remove_tombstone.is_tombstone",)),
    Counterexample(
        "kip-280-safe",
        {"replicas": 1, "log_size": 3, "keys": 2, "timestamps": 1, "max_leader_epoch": 0, "max_changes": 0},
        "consumer_agrees",
        11,
        dropped=("remove_tombstone.readers_in_time",),
    ),
    Counterexample("kip-280-safe", READ, "deleted_stays_deleted", 9, dropped=("remove_tombstone.cleaned_in_time",)),
    Counterexample("kip-280-safe", ONE_REPLICA, "consumer_agrees", 6, dropped=("consumer_fetch.committed",)),
    Counterexample("kip-280-safe", READ, "consumer_agrees", 6, dropped=("consumer_fetch.is_next",)),
)
"""Guards without which an invariant breaks, and after how many steps. All invariants are checked."""

OBLIGATIONS: Final = (ObligationCount("kip-280-safe", 454),)
"""Number of obligations of each proof."""
