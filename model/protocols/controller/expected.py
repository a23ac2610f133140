"""Expected results of exploring ``controller``.

Constants are those that differ from the protocol's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...expected.counterexample import Counterexample
from ...expected.obligation_count import ObligationCount
from ...expected.state_count import StateCount

DATA: Final[Mapping[str, int]] = {"nodes": 1, "log_size": 3, "max_controller_epoch": 0}
"""One controller and no snapshots: brokers, partitions and their data."""
SMALL: Final[Mapping[str, int]] = {"replicas": 1, "log_size": 1, "max_controller_epoch": 1, "snapshots": 1}
"""One broker, two controllers, two controller epochs, and snapshots."""
THREE_CONTROLLERS: Final[Mapping[str, int]] = {
    "replicas": 1,
    "nodes": 3,
    "log_size": 1,
    "max_controller_epoch": 1,
    "snapshots": 1,
}
"""The same with three controllers."""
FOUR_RECORDS: Final[Mapping[str, int]] = {"nodes": 1, "log_size": 4, "max_controller_epoch": 0, "removals": 0}
"""One controller, four metadata records, and no broker that is removed."""
ONE_OF_EACH: Final[Mapping[str, int]] = {"replicas": 1, "nodes": 1, "max_controller_epoch": 1}
"""One broker, one controller and one partition."""
THREE_EPOCHS: Final[Mapping[str, int]] = {"replicas": 1, "log_size": 1}
"""One broker, two controllers and three controller epochs."""
UNREGISTERED: Final[Mapping[str, int]] = {
    "nodes": 1,
    "partitions": 2,
    "log_size": 3,
    "max_controller_epoch": 0,
    "bootstrapped": 0,
}
"""One controller; no broker is registered at first."""
TWO_PARTITIONS: Final[Mapping[str, int]] = {"nodes": 1, "partitions": 2, "max_controller_epoch": 0}
"""One controller and two partitions."""

STATE_COUNTS: Final = (
    StateCount("kip-631-safe", DATA, 40_040, 23),
    StateCount("kip-631-safe", {"nodes": 1, "log_size": 4, "max_controller_epoch": 0}, 339_810, 29),
    StateCount("kip-631-safe", {"nodes": 1, "partitions": 2, "max_controller_epoch": 0}, 9_316, 20),
    StateCount(
        "kip-631-safe",
        {"nodes": 1, "partitions": 2, "log_size": 3, "max_controller_epoch": 0, "bootstrapped": 0},
        1_377,
        21,
    ),
    StateCount("kip-631-safe", {"replicas": 3, "nodes": 1, "max_controller_epoch": 0}, 52_062, 21),
    StateCount("kip-631-safe", {"log_size": 1, "max_controller_epoch": 1, "snapshots": 1}, 96_580, 27),
    StateCount("kip-631-safe", {"log_size": 3, "max_controller_epoch": 1, "bootstrapped": 0}, 449_953, 31),
    StateCount("kip-631-safe", THREE_CONTROLLERS, 176_096, 33),
    StateCount("kip-631-safe", {"replicas": 1, "max_controller_epoch": 1, "snapshots": 1}, 228_116, 35),
    StateCount("kip-631-safe", {"replicas": 1, "log_size": 1}, 9_998, 17),
    StateCount("kip-631", DATA, 41_602, 23),
    StateCount("kip-631", SMALL, 25_840, 25),
    StateCount("snapshot-lacks-fenced", DATA, 40_040, 23),
    StateCount("snapshot-lacks-fenced", SMALL, 12_228, 24),
    StateCount("two-snapshots", DATA, 40_040, 23),
    StateCount("two-snapshots", SMALL, 17_530, 24),
    StateCount("late-order", DATA, 40_040, 23),
    StateCount("late-order", SMALL, 12_276, 26),
    StateCount("stale-broker-epoch", DATA, 41_602, 23),
    StateCount("stale-broker-epoch", SMALL, 11_136, 24),
    StateCount("last-member-returns", DATA, 40_040, 23),
    StateCount("last-member-returns", SMALL, 11_136, 24),
    StateCount("snapshot-pending", DATA, 40_040, 23),
    StateCount("snapshot-pending", SMALL, 11_020, 24),
    StateCount("elects-fenced", DATA, 40_336, 23),
    StateCount("elects-fenced", SMALL, 11_136, 24),
    StateCount("applies-pending", DATA, 86_142, 23),
    StateCount("applies-pending", SMALL, 32_846, 24),
    StateCount("deposed-leader", DATA, 41_824, 23),
    StateCount("deposed-leader", SMALL, 11_136, 24),
    StateCount("keeps-pending", DATA, 40_040, 23),
    StateCount("keeps-pending", SMALL, 8_590, 23),
    StateCount("answers-pending", DATA, 41_828, 23),
    StateCount("answers-pending", SMALL, 11_136, 24),
    StateCount("isr-changes", DATA, 40_040, 23),
    StateCount("isr-changes", SMALL, 11_136, 24),
    StateCount("concurrent-snapshots", DATA, 40_040, 23),
    StateCount("concurrent-snapshots", SMALL, 11_020, 24),
)
"""Distinct states and depth of the whole graph."""

LARGE_STATE_COUNTS: Final = (
    StateCount("kip-631-safe", {"max_controller_epoch": 1, "snapshots": 1}, 7_558_328, 40),
    StateCount("kip-631-safe", {}, 4_344_926, 28),
    StateCount("kip-631-safe", {"nodes": 1, "log_size": 6, "max_controller_epoch": 0, "removals": 0}, 1_706_072, 41),
)
"""The same at larger constants."""

COUNTEREXAMPLES: Final = (
    Counterexample("kip-631", THREE_CONTROLLERS, "snapshot_is_sufficient", 9),
    Counterexample("kip-631", THREE_CONTROLLERS, "view_is_of_stable_prefix", 10),
    Counterexample("kip-631", THREE_CONTROLLERS, "one_snapshot_in_the_making", 13),
    Counterexample("kip-631", FOUR_RECORDS, "acknowledged_is_kept", 16),
    Counterexample("snapshot-lacks-fenced", SMALL, "snapshot_is_sufficient", 10),
    Counterexample("snapshot-lacks-fenced", SMALL, "view_is_of_stable_prefix", 11),
    Counterexample("two-snapshots", THREE_CONTROLLERS, "one_snapshot_in_the_making", 14),
    Counterexample("late-order", SMALL, "one_snapshot_in_the_making", 17),
    Counterexample("last-member-returns", FOUR_RECORDS, "acknowledged_is_kept", 16),
    Counterexample(
        "snapshot-pending",
        {"replicas": 1, "nodes": 1, "max_controller_epoch": 0, "snapshots": 1},
        "snapshot_is_sufficient",
        7,
    ),
    Counterexample("elects-fenced", DATA, "fenced_broker_leads_nothing", 5),
    Counterexample("applies-pending", {"replicas": 1, "max_controller_epoch": 1}, "state_is_of_stable_prefix", 4),
    Counterexample("applies-pending", {"replicas": 1, "max_controller_epoch": 1}, "view_is_of_stable_prefix", 4),
    Counterexample("applies-pending", {"replicas": 1, "max_controller_epoch": 1}, "acknowledged_is_kept", 8),
    Counterexample("deposed-leader", DATA, "fenced_broker_leads_nothing", 8),
    Counterexample("removes-last", {"nodes": 1, "max_controller_epoch": 0}, "isr_is_never_empty", 4),
    Counterexample(
        "keeps-pending", {"replicas": 1, "log_size": 1, "max_controller_epoch": 1}, "state_is_of_stable_prefix", 4
    ),
    Counterexample(
        "answers-pending", {"replicas": 1, "nodes": 1, "max_controller_epoch": 1}, "broker_epoch_is_its_own", 8
    ),
)
"""Steps of the shortest run that breaks an invariant. Each is checked alone."""

LARGE_COUNTEREXAMPLES: Final = (
    Counterexample(
        "stale-broker-epoch",
        {"nodes": 1, "log_size": 5, "max_controller_epoch": 0, "removals": 0},
        "acknowledged_is_kept",
        21,
    ),
)
"""The same at larger constants."""

WITHOUT_GUARD: Final = (
    Counterexample("kip-631-safe", ONE_OF_EACH, "type_ok", 3, dropped=("elect_controller.epoch_available",)),
    Counterexample(
        "kip-631-safe", ONE_OF_EACH, "view_is_of_stable_prefix", 7, dropped=("elect_controller.committed_is_kept",)
    ),
    Counterexample(
        "kip-631-safe", ONE_OF_EACH, "state_is_of_stable_prefix", 3, dropped=("elect_controller.within_log",)
    ),
    Counterexample("kip-631-safe", SMALL, "one_snapshot_in_the_making", 17, dropped=("hear_of_epoch.epoch_newer",)),
    Counterexample(
        "kip-631-safe", THREE_EPOCHS, "one_leader_per_controller_epoch", 3, dropped=("activate.is_elected",)
    ),
    Counterexample("kip-631-safe", THREE_EPOCHS, "active_state_is_at_end", 5, dropped=("activate.none_active_since",)),
    Counterexample("kip-631-safe", ONE_OF_EACH, "view_is_of_stable_prefix", 7, dropped=("activate.caught_up",)),
    Counterexample("kip-631-safe", ONE_OF_EACH, "state_is_of_stable_prefix", 3, dropped=("commit.something_pending",)),
    Counterexample(
        "kip-631-safe", ONE_OF_EACH, "state_is_of_stable_prefix", 1, dropped=("replay_record.record_stable",)
    ),
    Counterexample(
        "kip-631-safe", UNREGISTERED, "state_is_of_stable_prefix", 1, dropped=("register_broker.is_active",)
    ),
    Counterexample(
        "kip-631-safe", THREE_EPOCHS, "active_state_is_at_end", 7, dropped=("register_broker.none_active_since",)
    ),
    Counterexample("kip-631-safe", FOUR_RECORDS, "acknowledged_is_kept", 16, dropped=("register_broker.starts",)),
    Counterexample(
        "kip-631-safe", ONE_OF_EACH, "fenced_broker_leads_nothing", 5, dropped=("register_broker.session_over",)
    ),
    Counterexample("kip-631-safe", ONE_OF_EACH, "type_ok", 6, dropped=("register_broker.log_not_full",)),
    Counterexample(
        "kip-631-safe", ONE_OF_EACH, "acknowledged_is_kept", 9, dropped=("hear_registration.awaits_answer",)
    ),
    Counterexample(
        "kip-631-safe", ONE_OF_EACH, "broker_epoch_is_its_own", 8, dropped=("hear_registration.registration_stable",)
    ),
    Counterexample(
        "kip-631-safe",
        {"replicas": 1, "nodes": 1, "max_controller_epoch": 0, "snapshots": 1},
        "state_is_of_stable_prefix",
        7,
        dropped=("unfence_broker.is_active",),
    ),
    Counterexample(
        "kip-631-safe", THREE_EPOCHS, "active_state_is_at_end", 6, dropped=("unfence_broker.none_active_since",)
    ),
    Counterexample("kip-631-safe", ONE_OF_EACH, "type_ok", 5, dropped=("unfence_broker.log_not_full",)),
    Counterexample("kip-631-safe", ONE_OF_EACH, "state_is_of_stable_prefix", 1, dropped=("fence_broker.is_active",)),
    Counterexample(
        "kip-631-safe", THREE_EPOCHS, "active_state_is_at_end", 5, dropped=("fence_broker.none_active_since",)
    ),
    Counterexample("kip-631-safe", ONE_OF_EACH, "type_ok", 5, dropped=("fence_broker.log_not_full",)),
    Counterexample(
        "kip-631-safe", ONE_OF_EACH, "state_is_of_stable_prefix", 1, dropped=("request_shutdown.is_active",)
    ),
    Counterexample(
        "kip-631-safe", THREE_EPOCHS, "active_state_is_at_end", 5, dropped=("request_shutdown.none_active_since",)
    ),
    Counterexample("kip-631-safe", ONE_OF_EACH, "acknowledged_is_kept", 9, dropped=("request_shutdown.runs",)),
    Counterexample("kip-631-safe", ONE_OF_EACH, "type_ok", 5, dropped=("request_shutdown.log_not_full",)),
    Counterexample("kip-631-safe", ONE_OF_EACH, "acknowledged_is_kept", 11, dropped=("stop_broker.wants_to_stop",)),
    Counterexample(
        "kip-631-safe",
        {"replicas": 1, "nodes": 1, "log_size": 4, "max_controller_epoch": 0},
        "acknowledged_is_kept",
        16,
        dropped=("crash_broker.runs",),
    ),
    Counterexample(
        "kip-631-safe", ONE_OF_EACH, "view_is_of_stable_prefix", 1, dropped=("replay_metadata.record_stable",)
    ),
    Counterexample("kip-631-safe", ONE_OF_EACH, "type_ok", 1, dropped=("load_snapshot.is_behind",)),
    Counterexample(
        "kip-631-safe",
        {"replicas": 1, "log_size": 3, "max_controller_epoch": 1, "bootstrapped": 0, "removals": 0},
        "state_is_of_stable_prefix",
        12,
        dropped=("create_topic.is_active",),
    ),
    Counterexample(
        "kip-631-safe",
        {"replicas": 1, "max_controller_epoch": 1, "bootstrapped": 0, "removals": 0},
        "active_state_is_at_end",
        11,
        dropped=("create_topic.none_active_since",),
    ),
    Counterexample("kip-631-safe", DATA, "acknowledged_is_kept", 12, dropped=("create_topic.id_is_new",)),
    Counterexample(
        "kip-631-safe", UNREGISTERED, "fenced_broker_leads_nothing", 3, dropped=("create_topic.leader_unfenced",)
    ),
    Counterexample("kip-631-safe", UNREGISTERED, "type_ok", 9, dropped=("create_topic.log_not_full",)),
    Counterexample("kip-631-safe", ONE_OF_EACH, "state_is_of_stable_prefix", 1, dropped=("remove_topic.is_active",)),
    Counterexample(
        "kip-631-safe", THREE_EPOCHS, "active_state_is_at_end", 5, dropped=("remove_topic.none_active_since",)
    ),
    Counterexample("kip-631-safe", ONE_OF_EACH, "type_ok", 5, dropped=("remove_topic.log_not_full",)),
    Counterexample("kip-631-safe", ONE_OF_EACH, "state_is_of_stable_prefix", 1, dropped=("elect_leader.is_active",)),
    Counterexample(
        "kip-631-safe", THREE_EPOCHS, "active_state_is_at_end", 5, dropped=("elect_leader.none_active_since",)
    ),
    Counterexample("kip-631-safe", DATA, "isr_is_never_empty", 5, dropped=("elect_leader.in_isr",)),
    Counterexample(
        "kip-631-safe", ONE_OF_EACH, "fenced_broker_leads_nothing", 4, dropped=("elect_leader.is_unfenced",)
    ),
    Counterexample(
        "kip-631-safe",
        {"replicas": 1, "nodes": 1, "log_size": 5, "max_controller_epoch": 0, "removals": 0},
        "acknowledged_is_kept",
        17,
        dropped=("elect_leader.not_doubted",),
    ),
    Counterexample("kip-631-safe", ONE_OF_EACH, "type_ok", 5, dropped=("elect_leader.log_not_full",)),
    Counterexample(
        "kip-631-safe",
        {"replicas": 3, "nodes": 1, "log_size": 4, "max_controller_epoch": 0, "removals": 0},
        "acknowledged_is_kept",
        21,
        dropped=("propose_expand.nothing_proposed",),
    ),
    Counterexample("kip-631-safe", ONE_OF_EACH, "isr_is_never_empty", 7, dropped=("propose_expand.outside_isr",)),
    Counterexample("kip-631-safe", DATA, "acknowledged_is_kept", 13, dropped=("propose_expand.caught_up",)),
    Counterexample(
        "kip-631-safe",
        {"replicas": 3, "nodes": 1, "log_size": 3, "max_controller_epoch": 0, "removals": 0},
        "acknowledged_is_kept",
        17,
        dropped=("propose_shrink.nothing_proposed",),
    ),
    Counterexample("kip-631-safe", DATA, "acknowledged_is_kept", 13, dropped=("propose_shrink.in_isr",)),
    Counterexample("kip-631-safe", ONE_OF_EACH, "isr_is_never_empty", 7, dropped=("propose_shrink.not_leader_itself",)),
    Counterexample(
        "kip-631-safe",
        {"max_controller_epoch": 1, "removals": 0},
        "state_is_of_stable_prefix",
        9,
        dropped=("alter_partition.is_active",),
    ),
    Counterexample(
        "kip-631-safe",
        {"max_controller_epoch": 1, "removals": 0},
        "active_state_is_at_end",
        10,
        dropped=("alter_partition.none_active_since",),
    ),
    Counterexample(
        "kip-631-safe", FOUR_RECORDS, "acknowledged_is_kept", 17, dropped=("alter_partition.partition_epoch_matches",)
    ),
    Counterexample(
        "kip-631-safe", FOUR_RECORDS, "fenced_broker_leads_nothing", 13, dropped=("alter_partition.is_eligible",)
    ),
    Counterexample("kip-631-safe", TWO_PARTITIONS, "type_ok", 8, dropped=("alter_partition.log_not_full",)),
    Counterexample(
        "kip-631-safe",
        {"log_size": 4, "max_controller_epoch": 0, "removals": 0},
        "acknowledged_is_kept",
        20,
        dropped=("refuse_member.is_active",),
    ),
    Counterexample(
        "kip-631-safe",
        {"log_size": 4, "max_controller_epoch": 1, "removals": 0},
        "acknowledged_is_kept",
        19,
        dropped=("refuse_member.none_active_since",),
    ),
    Counterexample(
        "kip-631-safe", FOUR_RECORDS, "acknowledged_is_kept", 16, dropped=("refuse_member.partition_epoch_matches",)
    ),
    Counterexample(
        "kip-631-safe", TWO_PARTITIONS, "acknowledged_is_kept", 13, dropped=("leader_write.not_acknowledged",)
    ),
    Counterexample(
        "kip-631-safe", TWO_PARTITIONS, "acknowledged_is_kept", 11, dropped=("follower_fetch.presumes_leadership",)
    ),
    Counterexample(
        "kip-631-safe",
        {"nodes": 1, "log_size": 5, "max_controller_epoch": 0},
        "acknowledged_is_kept",
        20,
        dropped=("acknowledge.presumes_leadership",),
    ),
    Counterexample("kip-631-safe", TWO_PARTITIONS, "acknowledged_is_kept", 7, dropped=("acknowledge.isr_has_it",)),
    Counterexample(
        "kip-631-safe", THREE_CONTROLLERS, "one_snapshot_in_the_making", 16, dropped=("heartbeat.epoch_matches",)
    ),
    Counterexample(
        "kip-631-safe", THREE_CONTROLLERS, "one_snapshot_in_the_making", 15, dropped=("heartbeat.order_taken",)
    ),
    Counterexample("kip-631-safe", SMALL, "one_snapshot_in_the_making", 12, dropped=("order_snapshot.another",)),
    Counterexample("kip-631-safe", SMALL, "one_snapshot_in_the_making", 13, dropped=("order_snapshot.none_makes_one",)),
    Counterexample("kip-631-safe", THREE_EPOCHS, "one_snapshot_in_the_making", 2, dropped=("begin_snapshot.ordered",)),
    Counterexample("kip-631-safe", SMALL, "one_snapshot_in_the_making", 17, dropped=("begin_snapshot.of_own_epoch",)),
    Counterexample(
        "kip-631-safe",
        {"replicas": 1, "max_controller_epoch": 1, "snapshots": 1, "removals": 0},
        "snapshot_is_sufficient",
        13,
        dropped=("finish_snapshot.not_active",),
    ),
)
"""Guards without which an invariant breaks, and after how many steps. All invariants are checked."""

OBLIGATIONS: Final = (
    ObligationCount("kip-631-safe", 1582, {"bootstrapped": 0}),
    ObligationCount("kip-631-safe", 1675, {"bootstrapped": 1}),
)
"""Number of obligations of each proof."""
