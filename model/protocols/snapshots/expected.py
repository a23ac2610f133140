"""Expected results of exploring ``snapshots``.

Constants are those that differ from the protocol's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...expected.counterexample import Counterexample
from ...expected.obligation_count import ObligationCount
from ...expected.state_count import StateCount

LATE_RESPONSES: Final[Mapping[str, int]] = {"replicas": 2, "observers": 1, "max_leader_epoch": 0, "late_responses": 1}
"""One voter and one observer, and responses that come late."""
TWO_VOTERS: Final[Mapping[str, int]] = {"replicas": 2}
"""Two voters."""
ONE_OFFSET: Final[Mapping[str, int]] = {"log_size": 1}
"""Three voters with a log of one offset."""
CHUNKS: Final[Mapping[str, int]] = {"replicas": 2, "observers": 1, "max_chunks": 2}
"""One voter and one observer, which fetches a snapshot in two chunks."""
DEFAULT: Final[Mapping[str, int]] = {}
"""The protocol's defaults."""

STATE_COUNTS: Final = (
    StateCount("kip-630-safe", TWO_VOTERS, 6_102, 22),
    StateCount("kip-630-safe", ONE_OFFSET, 10_308, 19),
    StateCount("kip-630-safe", CHUNKS, 9_759, 19),
    StateCount("kip-630-safe", LATE_RESPONSES, 5_752, 20),
    StateCount("kip-630-safe", {"observers": 1}, 125_824, 28),
    StateCount("kip-630-safe", {"minimum_records": 1}, 180_928, 28),
    StateCount("kip-630-safe", {"lag_expires": 0}, 337_362, 28),
    StateCount("kip-630-safe", DEFAULT, 479_685, 32),
    StateCount("kip-630", TWO_VOTERS, 19_847, 36),
    StateCount("kip-630", LATE_RESPONSES, 10_894, 22),
    StateCount("lbo-misread", TWO_VOTERS, 7_933, 35),
    StateCount("lbo-misread", LATE_RESPONSES, 4_998, 21),
    StateCount("snapshot-past-hw", TWO_VOTERS, 49_516, 22),
    StateCount("snapshot-past-hw", LATE_RESPONSES, 24_855, 19),
    StateCount("vote-half-fetched", CHUNKS, 9_759, 19),
    StateCount("vote-half-fetched", LATE_RESPONSES, 5_752, 20),
    StateCount("acknowledge-half-fetched", ONE_OFFSET, 10_380, 19),
    StateCount("acknowledge-half-fetched", LATE_RESPONSES, 5_752, 20),
    StateCount("fetch-at-lbo", ONE_OFFSET, 10_308, 19),
    StateCount("fetch-at-lbo", DEFAULT, 485_244, 32),
    StateCount("boot-by-hw", TWO_VOTERS, 19_877, 36),
    StateCount("boot-by-hw", LATE_RESPONSES, 10_873, 22),
    StateCount("mixed-chunks", CHUNKS, 9_759, 19),
    StateCount("mixed-chunks", DEFAULT, 479_685, 32),
    StateCount("stale-responses", TWO_VOTERS, 6_102, 22),
    StateCount("stale-responses", LATE_RESPONSES, 5_768, 20),
    StateCount("kip-630-votes", TWO_VOTERS, 9_155, 24),
    StateCount("kip-630-votes", ONE_OFFSET, 84_001, 22),
    StateCount("late-votes", TWO_VOTERS, 11_063, 24),
    StateCount("late-votes", ONE_OFFSET, 90_937, 22),
    StateCount("kip-630-nodes", TWO_VOTERS, 5_475, 22),
    StateCount("kip-630-nodes", ONE_OFFSET, 10_419, 19),
    StateCount("kip-630-quorum", TWO_VOTERS, 71_097, 35),
    StateCount("kip-630-quorum", CHUNKS, 178_044, 28),
)
"""Distinct states and depth of the whole graph."""

COUNTEREXAMPLES: Final = (
    Counterexample("kip-630", DEFAULT, "snapshot_in_between", 11),
    Counterexample("kip-630", DEFAULT, "offsets_in_order", 11),
    Counterexample("kip-630", DEFAULT, "no_committed_record_lost", 11),
    Counterexample("kip-630", DEFAULT, "snapshot_is_committed_prefix", 16),
    Counterexample("kip-630", DEFAULT, "logs_match", 16),
    Counterexample("kip-630", DEFAULT, "committed_below_high_watermark", 15),
    Counterexample("lbo-past-snapshot", DEFAULT, "snapshot_in_between", 7),
    Counterexample("lbo-past-snapshot", DEFAULT, "no_committed_record_lost", 7),
    Counterexample("lbo-misread", DEFAULT, "no_committed_record_lost", 11),
    Counterexample("snapshot-past-hw", DEFAULT, "snapshot_in_between", 5),
    Counterexample("snapshot-past-hw", DEFAULT, "snapshot_is_committed_prefix", 4),
    Counterexample("delete-at-lbo", DEFAULT, "snapshot_in_between", 9),
    Counterexample("delete-at-lbo", DEFAULT, "no_committed_record_lost", 9),
    Counterexample("vote-half-fetched", DEFAULT, "no_committed_record_lost", 12),
    Counterexample("acknowledge-half-fetched", DEFAULT, "no_committed_record_lost", 16),
    Counterexample("fetch-at-lbo", DEFAULT, "snapshot_is_committed_prefix", 17),
    Counterexample("fetch-at-lbo", DEFAULT, "logs_match", 16),
    Counterexample("fetch-at-lbo", DEFAULT, "committed_below_high_watermark", 16),
    Counterexample("boot-by-hw", DEFAULT, "no_committed_record_lost", 11),
    Counterexample("mixed-chunks", {"max_chunks": 2}, "snapshot_is_committed_prefix", 16),
    Counterexample("stale-responses", LATE_RESPONSES, "snapshot_is_committed_prefix", 14),
    Counterexample("late-votes", {"log_size": 1, "max_leader_epoch": 2}, "no_committed_record_lost", 11),
)
"""Steps of the shortest run that breaks an invariant. Each is checked alone."""

OBLIGATIONS: Final = (
    ObligationCount("kip-630-safe", 1100),
    ObligationCount("kip-630-votes", 1260),
)
"""Number of obligations of each proof."""
