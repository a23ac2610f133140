"""Expected results of exploring ``truncation``.

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
ONE_RECORD: Final[Mapping[str, int]] = {"log_size": 1, "max_records": 1}
"""One record."""
TWO_RECORDS: Final[Mapping[str, int]] = {"log_size": 1, "max_records": 2}
"""Two records, and a log with room for one."""
TWO_EPOCHS: Final[Mapping[str, int]] = {"max_records": 2, "max_leader_epoch": 1}
"""Two records and two leader epochs."""

STATE_COUNTS: Final = (
    StateCount("no-epoch", ONE_RECORD, 4_562, 15),
    StateCount("no-epoch", TWO_RECORDS, 12_734, 17),
    StateCount("no-epoch", TWO_EPOCHS, 7_902, 18),
    StateCount("no-epoch", DEFAULT, 179_238, 22),
    StateCount("kip-320", ONE_RECORD, 5_846, 17),
    StateCount("kip-320", TWO_RECORDS, 23_000, 21),
    StateCount("kip-320", TWO_EPOCHS, 11_056, 20),
    StateCount("kip-320", DEFAULT, 381_772, 27),
    StateCount("epoch-ignored", ONE_RECORD, 9_210, 21),
    StateCount("epoch-ignored", TWO_RECORDS, 31_408, 24),
    StateCount("epoch-ignored", TWO_EPOCHS, 21_506, 20),
    StateCount("epoch-ignored", DEFAULT, 700_066, 27),
    StateCount("reset-earliest", ONE_RECORD, 11_970, 23),
    StateCount("reset-earliest", TWO_RECORDS, 47_738, 26),
    StateCount("reset-earliest", TWO_EPOCHS, 23_414, 27),
    StateCount("reset-earliest", DEFAULT, 861_258, 32),
    StateCount("reset-latest", ONE_RECORD, 10_746, 23),
    StateCount("reset-latest", TWO_RECORDS, 42_272, 25),
    StateCount("reset-latest", TWO_EPOCHS, 23_390, 22),
    StateCount("reset-latest", DEFAULT, 904_512, 29),
    StateCount("kip-320-mended", ONE_RECORD, 10_794, 24),
    StateCount("kip-320-mended", TWO_RECORDS, 40_414, 26),
    StateCount("kip-320-mended", TWO_EPOCHS, 23_170, 22),
    StateCount("kip-320-mended", DEFAULT, 856_370, 30),
)
"""Distinct states and depth of the whole graph."""

CLIENT_STATE_COUNTS: Final = (
    StateCount(
        "kip-320-client", {"replicas": 1, "log_size": 1, "max_records": 1, "max_leader_epoch": 0}, 1_144_224, 34
    ),
    StateCount("kip-320-kafka", {"replicas": 1, "log_size": 1, "max_records": 1, "max_leader_epoch": 0}, 114_030, 18),
)
"""The same of a consumer that runs by itself, ours and Apache Kafka's."""

COUNTEREXAMPLES: Final = (
    Counterexample("no-epoch", DEFAULT, "no_silent_gap", 12),
    Counterexample("no-epoch", DEFAULT, "out_of_range_only_unchecked", 8),
    Counterexample("kip-320", DEFAULT, "no_silent_gap", 13),
    Counterexample("kip-320", DEFAULT, "truncation_is_true", 9),
    Counterexample("kip-320", DEFAULT, "reported_divergence", 16),
    Counterexample("epoch-ignored", DEFAULT, "no_silent_gap", 12),
    Counterexample("epoch-ignored", DEFAULT, "out_of_range_only_unchecked", 8),
    Counterexample("reset-earliest", DEFAULT, "reported_divergence", 10),
    Counterexample("reset-latest", DEFAULT, "reported_divergence", 11),
)
"""Steps of the shortest run that breaks an invariant. Each is checked alone; the variant keeps the others."""

WITHOUT_GUARD: Final = (
    Counterexample("kip-320-mended", DEFAULT, "unclean_means_lost", 4, dropped=("elect_cleanly.holds_committed",)),
    Counterexample(
        "kip-320-mended", DEFAULT, "unclean_means_lost", 4, dropped=("leader_inc_high_watermark.isr_acknowledges",)
    ),
    Counterexample("kip-320-mended", DEFAULT, "logs_match", 6, dropped=("follower_fetch.epoch_not_fenced",)),
    Counterexample("kip-320-mended", DEFAULT, "no_silent_gap", 12, dropped=("consumer_fetch.not_truncated",)),
    Counterexample("kip-320-mended", DEFAULT, "truncation_is_true", 3, dropped=("answer_log_truncation.truncated",)),
    Counterexample("kip-320-mended", DEFAULT, "truncation_is_true", 8, dropped=("answer_log_truncation.epoch_known",)),
    Counterexample(
        "kip-320-mended", DEFAULT, "unknown_epoch_is_stale", 3, dropped=("answer_unknown_leader_epoch.epoch_unknown",)
    ),
    Counterexample(
        "kip-320-mended", DEFAULT, "out_of_range_only_unchecked", 8, dropped=("answer_out_of_range.not_truncated",)
    ),
)
"""Guards without which an invariant breaks, and after how many steps. All invariants are checked."""

OBLIGATIONS: Final = (ObligationCount("kip-320-mended", 456),)
"""Number of obligations of each proof."""
