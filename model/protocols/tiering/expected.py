"""Expected results of exploring ``tiering``.

Constants are those that differ from the protocol's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...expected.counterexample import Counterexample
from ...expected.obligation_count import ObligationCount
from ...expected.state_count import StateCount

SMALL: Final[Mapping[str, int]] = {"log_size": 1, "transactions": 0, "switches": 0}
"""One record, two leader epochs, and unclean elections."""
ONE_RECORD: Final[Mapping[str, int]] = {"log_size": 1}
"""One record, and everything that may happen to it."""
ONE_EPOCH: Final[Mapping[str, int]] = {"max_leader_epoch": 0, "unclean": 0, "transactions": 0}
"""One leader epoch, and tiering off and on."""

STATE_COUNTS: Final = (
    StateCount("kip-1023-safe", {"unclean": 0, "switches": 0}, 172_489, 38),
    StateCount("kip-1023-safe", {"transactions": 0, "switches": 0}, 246_751, 36),
    StateCount("kip-1023-safe", {"last_tiered_offset": 0, "transactions": 0, "switches": 0}, 240_093, 36),
    StateCount("kip-1023-safe", {"log_size": 1, "max_leader_epoch": 2}, 126_290, 32),
    StateCount("kip-1023-safe", {"log_size": 3, "max_leader_epoch": 0, "unclean": 0}, 72_476, 34),
    StateCount("kip-1023-safe", {"replicas": 3, "log_size": 1, "transactions": 0, "switches": 0}, 158_332, 31),
    StateCount("kip-1023-safe", {"replicas": 3, "log_size": 1}, 350_525, 34),
    StateCount("kip-1023-safe", {"replicas": 3, "max_leader_epoch": 0, "unclean": 0}, 166_989, 33),
    StateCount("up-to-gap", {"log_size": 1, "transactions": 0, "switches": 0, "expires": 0}, 2_555, 22),
    StateCount("up-to-gap", {"transactions": 0, "switches": 0, "expires": 0}, 68_777, 34),
)
"""Distinct states and depth of the whole graph."""

SMALL_STATE_COUNTS: Final = (
    StateCount("kip-1023", SMALL, 4_991, 23),
    StateCount("jump-unknown", SMALL, 4_665, 22),
    StateCount("below-log-start", SMALL, 4_625, 22),
    StateCount("offsets-first", SMALL, 4_847, 22),
    StateCount("keeps-uncompared", SMALL, 4_737, 22),
    StateCount("upload-past-hw", SMALL, 5_957, 22),
    StateCount("deposed-segment", SMALL, 4_719, 22),
    StateCount("deletes-uncommitted", SMALL, 5_087, 22),
    StateCount("keeps-highest", SMALL, 5_653, 23),
    StateCount("highest-alone", SMALL, 4_637, 22),
    StateCount("deposed-deletes", SMALL, 4_867, 23),
    StateCount("kip-1023-safe", SMALL, 4_625, 22),
)
"""The same of each variant, where its difference from the safe one shows."""

LARGE_STATE_COUNTS: Final = (
    StateCount("kip-1023-safe", {}, 508_209, 39),
    StateCount("kip-1023-safe", {"max_leader_epoch": 2, "transactions": 0, "switches": 0, "expires": 0}, 2_015_847, 46),
    StateCount("kip-1023-safe", {"max_leader_epoch": 2, "unclean": 0, "transactions": 0, "switches": 0}, 3_775_305, 52),
    StateCount("kip-1023-safe", {"log_size": 3, "transactions": 0, "switches": 0, "expires": 0}, 819_867, 46),
    StateCount(
        "kip-1023-safe", {"log_size": 4, "unclean": 0, "transactions": 0, "switches": 0, "expires": 0}, 3_903_693, 58
    ),
    StateCount(
        "kip-1023-safe",
        {"replicas": 3, "log_size": 1, "max_leader_epoch": 2, "unclean": 0, "transactions": 0, "expires": 0},
        3_413_770,
        46,
    ),
)
"""The same at larger constants."""

COUNTEREXAMPLES: Final = (
    Counterexample("kip-1023", {"log_size": 1, "unclean": 0, "transactions": 0, "switches": 0}, "leader_can_serve", 16),
    Counterexample(
        "jump-unknown",
        {"log_size": 1, "unclean": 0, "transactions": 0, "switches": 0, "expires": 0},
        "lineage_is_leaders",
        12,
    ),
    Counterexample(
        "below-log-start",
        {"max_leader_epoch": 0, "unclean": 0, "transactions": 0, "switches": 0},
        "offsets_in_order",
        14,
    ),
    Counterexample(
        "epochs-to-local-start",
        {"unclean": 0, "transactions": 0, "switches": 0, "expires": 0},
        "lineage_is_leaders",
        14,
    ),
    Counterexample(
        "flag-ignored",
        {
            "log_size": 1,
            "max_leader_epoch": 0,
            "last_tiered_offset": 0,
            "unclean": 0,
            "transactions": 0,
            "switches": 0,
            "expires": 0,
        },
        "only_empty_follower_jumps",
        11,
    ),
    Counterexample(
        "jump-with-data",
        {"max_leader_epoch": 0, "unclean": 0, "transactions": 0, "switches": 0, "expires": 0},
        "only_empty_follower_jumps",
        15,
    ),
    Counterexample(
        "offsets-first",
        {"log_size": 1, "max_leader_epoch": 0, "unclean": 0, "transactions": 0, "switches": 0, "expires": 0},
        "lineage_is_leaders",
        11,
    ),
    Counterexample(
        "keeps-uncompared",
        {"log_size": 1, "max_leader_epoch": 2, "unclean": 0, "transactions": 0, "switches": 0},
        "segments_agree",
        20,
    ),
    Counterexample("short-checkpoint", {"unclean": 0, "transactions": 0, "switches": 0}, "lineage_is_leaders", 24),
    Counterexample(
        "upload-past-stable",
        {"replicas": 1, "log_size": 1, "max_leader_epoch": 0, "unclean": 0, "switches": 0, "expires": 0},
        "uploaded_is_stable",
        5,
    ),
    Counterexample(
        "upload-past-hw",
        {
            "replicas": 1,
            "log_size": 1,
            "max_leader_epoch": 0,
            "unclean": 0,
            "transactions": 0,
            "switches": 0,
            "expires": 0,
        },
        "uploaded_is_stable",
        4,
    ),
    Counterexample(
        "deposed-segment", {"log_size": 1, "transactions": 0, "switches": 0, "expires": 0}, "leader_can_serve", 13
    ),
    Counterexample(
        "deposed-segment", {"log_size": 1, "transactions": 0, "switches": 0, "expires": 0}, "lineage_is_leaders", 15
    ),
    Counterexample(
        "deposed-segment", {"log_size": 1, "transactions": 0, "switches": 0, "expires": 0}, "built_is_uploaded", 15
    ),
    Counterexample(
        "deletes-uncommitted",
        {
            "replicas": 1,
            "log_size": 1,
            "max_leader_epoch": 0,
            "unclean": 0,
            "transactions": 0,
            "switches": 0,
            "expires": 0,
        },
        "leader_can_serve",
        7,
    ),
    Counterexample(
        "keeps-highest",
        {"log_size": 1, "max_leader_epoch": 2, "transactions": 0, "switches": 0, "expires": 0},
        "leader_can_serve",
        14,
    ),
    Counterexample("highest-alone", {"unclean": 0, "transactions": 0, "switches": 0}, "leader_can_serve", 16),
    Counterexample("first-on-remote", {"unclean": 0, "transactions": 0, "switches": 0}, "leader_can_serve", 22),
    Counterexample(
        "deposed-deletes", {"log_size": 1, "unclean": 0, "transactions": 0, "switches": 0}, "leader_can_serve", 16
    ),
    Counterexample(
        "disabled-under-isr",
        {"max_leader_epoch": 0, "unclean": 0, "transactions": 0, "expires": 0},
        "isr_can_serve",
        15,
    ),
    Counterexample(
        "disabled-at-leader",
        {"replicas": 3, "log_size": 1, "unclean": 0, "transactions": 0, "expires": 0},
        "isr_can_serve",
        18,
    ),
)
"""Steps of the shortest run that breaks an invariant. Each is checked alone."""

WITHOUT_GUARD: Final = (
    Counterexample("kip-1023-safe", ONE_EPOCH, "offsets_in_order", 11, dropped=("follower_fetch.offset_is_local",)),
    Counterexample("kip-1023-safe", ONE_RECORD, "isr_can_serve", 4, dropped=("leader_inc_high_watermark.isr_has_it",)),
    Counterexample(
        "kip-1023-safe", ONE_RECORD, "isr_can_serve", 7, dropped=("leader_expand_isr.reached_high_watermark",)
    ),
    Counterexample("kip-1023-safe", ONE_RECORD, "isr_can_serve", 16, dropped=("leader_expand_isr.has_all_there_is",)),
    Counterexample("kip-1023-safe", ONE_EPOCH, "built_is_uploaded", 17, dropped=("start_copy.one_at_a_time",)),
    Counterexample("kip-1023-safe", ONE_RECORD, "uploaded_is_stable", 3, dropped=("start_copy.below_last_stable",)),
    Counterexample("kip-1023-safe", ONE_RECORD, "leader_can_serve", 11, dropped=("copy_segment.presumes_leadership",)),
    Counterexample("kip-1023-safe", ONE_RECORD, "leader_can_serve", 15, dropped=("finish_copy.presumes_leadership",)),
    Counterexample("kip-1023-safe", ONE_RECORD, "leader_can_serve", 7, dropped=("delete_local.is_uploaded",)),
    Counterexample("kip-1023-safe", ONE_RECORD, "leader_can_serve", 16, dropped=("delete_segment.epoch_is_newest",)),
    Counterexample("kip-1023-safe", ONE_RECORD, "leader_can_serve", 11, dropped=("delete_segment.below_log_start",)),
    Counterexample("kip-1023-safe", ONE_RECORD, "isr_can_serve", 15, dropped=("disable_tiering.isr_is_whole",)),
    Counterexample(
        "kip-1023-safe",
        {"replicas": 3, "log_size": 1, "max_leader_epoch": 2, "transactions": 0, "expires": 0},
        "offsets_in_order",
        20,
        dropped=("disable_tiering.isr_reaches_start",),
    ),
    Counterexample("kip-1023-safe", ONE_EPOCH, "isr_can_serve", 15, dropped=("build_to_local_start.offset_not_local",)),
    Counterexample(
        "kip-1023-safe", ONE_EPOCH, "only_empty_follower_jumps", 15, dropped=("build_to_epuo.begins_at_epuo",)
    ),
    Counterexample(
        "kip-1023-safe", ONE_RECORD, "lineage_is_leaders", 19, dropped=("build_to_epuo.segment_is_of_lineage",)
    ),
    Counterexample("kip-1023-safe", ONE_RECORD, "isr_can_serve", 12, dropped=("copy_anew.outside_isr",)),
)
"""Guards without which an invariant breaks, and after how many steps. All invariants are checked."""

OBLIGATIONS: Final = (
    ObligationCount("kip-1023-safe", 1198, {"transactions": 1}),
    ObligationCount("kip-1023-safe", 1224, {"transactions": 0}),
)
"""Number of obligations of each proof."""
