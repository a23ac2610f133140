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

OBLIGATIONS: Final = (
    ObligationCount("kip-631-safe", 1582, {"bootstrapped": 0}),
    ObligationCount("kip-631-safe", 1675, {"bootstrapped": 1}),
)
"""Number of obligations of each proof."""
