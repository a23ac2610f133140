"""Where mutants of ``snapshots`` break a promise only at constants at which its states are too many to compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...mutants.beyond import Beyond, beyond

_QUORUM = "become_candidate grant_vote become_follower leader_write leader_inc_high_watermark follower_fetch"
_CUT = "generate_snapshot leader_advance_lbo"
_START_OVER = "follower_start_over fetch_snapshot"

_FOUR_EPOCHS = beyond("3/0/2/3/1/2/0/0", _QUORUM, "follower_truncate")
"""No snapshot is taken: KIP-595's log alone."""
_FOUR_EPOCHS_CUT = beyond("3/0/2/3/1/0/0/1", _QUORUM, _CUT, "follower_truncate")
_CHUNKS = beyond("3/0/2/1/2/0/0/1", _QUORUM, _CUT, _START_OVER)
_LATE_CHUNKS = beyond("3/0/2/1/2/0/1/1", _QUORUM, _CUT, _START_OVER, "hold_chunk late_chunk")
_LATE_RECORDS = beyond("3/0/2/2/1/2/1/0", _QUORUM, "hold_records late_records")
_LATE_DIVERGENCES = beyond("3/0/2/3/1/2/1/0", _QUORUM, "hold_divergence late_divergence")
_LATE_DIVERGENCES_CUT = beyond("3/0/2/3/1/0/1/1", _QUORUM, _CUT, "hold_divergence late_divergence")
_LATE_SNAPSHOTS = beyond("3/0/2/1/1/0/1/1", _QUORUM, _CUT, _START_OVER, "hold_snapshot late_snapshot")

_LATE_SNAPSHOTS_DIVERGE = beyond(
    "3/0/2/1/1/0/1/1", _QUORUM, _CUT, _START_OVER, "hold_snapshot late_snapshot follower_truncate"
)
_LATE_SNAPSHOTS_LATER = beyond("3/0/2/2/1/0/1/1", _QUORUM, _CUT, _START_OVER, "hold_snapshot late_snapshot")

BEYOND: Final[Mapping[str, Beyond]] = {
    "follower_fetch.last_record_matches bound 1 -1": _FOUR_EPOCHS,
    "follower_truncate.leo' bound 3 +1": _FOUR_EPOCHS,
    "follower_truncate.leo' bound 4 +1": _FOUR_EPOCHS_CUT,
    "follower_truncate.leo' bound 4 -1": _FOUR_EPOCHS,
    "follower_truncate.leo' bound 5 +1": _FOUR_EPOCHS,
    "follower_truncate.leo' bound 5 -1": _FOUR_EPOCHS,
    "follower_truncate.leo' bound 6 -1": _FOUR_EPOCHS_CUT,
    "fetch_snapshot.presumes_leadership dropped": _CHUNKS,
    "fetch_snapshot.epoch_not_fenced dropped": _CHUNKS,
    "fetch_snapshot.epoch_not_fenced bound +1": _CHUNKS,
    "fetch_snapshot.epoch_not_fenced bound -1": _CHUNKS,
    "hold_records.last_record_matches bound 1 -1": _LATE_RECORDS,
    "hold_records.last_record_matches bound 6 +1": _LATE_RECORDS,
    "hold_divergence.response_offset' bound +1": _LATE_DIVERGENCES,
    "hold_divergence.response_offset_epoch' bound 1 +1": _LATE_DIVERGENCES_CUT,
    "hold_divergence.response_offset_epoch' bound 1 -1": _LATE_DIVERGENCES,
    "hold_divergence.response_offset_epoch' bound 2 +1": _LATE_DIVERGENCES,
    "hold_divergence.response_offset_epoch' bound 2 -1": _LATE_DIVERGENCES,
    "hold_divergence.response_offset_epoch' bound 3 -1": _LATE_DIVERGENCES_CUT,
    "hold_snapshot.begins_later bound 3 +1": _LATE_SNAPSHOTS,
    "hold_snapshot.response_offset' bound 1 +1": _LATE_SNAPSHOTS_DIVERGE,
    "hold_chunk.presumes_leadership dropped": _LATE_CHUNKS,
    "late_chunk.epoch_not_fenced dropped": _LATE_CHUNKS,
    "late_chunk.epoch_not_fenced bound -1": _LATE_CHUNKS,
    "late_divergence.answers_request bound 4 -1": _LATE_DIVERGENCES,
    "late_divergence.leo' bound 2 +1": _LATE_DIVERGENCES,
    "late_snapshot.answers_request dropped": _LATE_SNAPSHOTS,
    "late_snapshot.answers_request bound 2 -1": _LATE_SNAPSHOTS_LATER,
}
"""By mutant."""
