"""Arguments for mutants of ``truncation``'s ``kip-320-mended`` that nobody kills and of which z3 shows nothing."""

from __future__ import annotations

from ...mutants.arguments import Collected

kip_320_mended = Collected()

kip_320_mended.other(
    "what is asked of a new leader's high watermark is that it lies within its log; it may count the rest of its log as"
    " committed at any later time",
    "elect_uncleanly.hw' bound 3 +1",
    "elect_uncleanly.hw' bound 3 -1",
)
kip_320_mended.fewer(
    "the leader looks one record too low: epochs only rise in a log, so it finds the consumer's epoch there only where"
    " it is above too, and misses one of a single record",
    "consumer_fetch.not_truncated bound 5 -1",
)

# Where the consumer goes on after a truncation, or from a stored offset.

kip_320_mended.more(
    "whoever asks for the divergence without having been told of one gets the same answer, and loses nothing by going"
    " on from it",
    "find_divergence.outcome_pending dropped",
)
kip_320_mended.other(
    "at an offset that is only a bound the consumer begins anew, so it costs no promise there whether it names the"
    " epoch found, or none",
    "find_divergence.reported_epoch' bound 1 +1",
    "find_divergence.reported_epoch' bound 2 -1",
    "seek_to_nearest.last_epoch' bound 1 +1",
    "seek_to_nearest.last_epoch' bound 2 -1",
)
kip_320_mended.same(
    "an offset is reported while the outcome is that a divergence was found, and only then",
    "reset_to_divergence.divergence_found dropped",
    beside="offset_reported",
)
kip_320_mended.same(
    "a divergence that was found has an offset",
    "reset_to_divergence.offset_reported dropped",
    beside="divergence_found",
)
kip_320_mended.same(
    "the answer to OffsetForLeaderEpoch has no larger epoch than the one asked",
    "reset_to_divergence.consumed_from' bound 1 +1",
)
kip_320_mended.same(
    "no divergence is reported beyond the position",
    "reset_to_divergence.consumed_from' bound 2 +1",
)
