"""Where mutants break a promise only at constants at which the model's states are too many to compare with theirs.

Such a mutant is searched alone, and with a few actions only, as far as its run needs them: what a run of some actions
breaks, the mutant breaks. That the model has no such run is for trace replay to say. These places were found by
thinking of a run that would break something; the search confirms it, or the row fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...model.core.ground import System
from ...model.snapshots import snapshots


@dataclass(frozen=True)
class Beyond:
    """``constants``, written as a rung is, and the actions of which the run consists."""

    constants: str
    actions: frozenset[str]

    def of(self, system: System) -> System:
        """The system with these actions alone. What happens sometimes need not happen any more."""
        instances = [each for each in system.instances if each.action in self.actions]
        return replace(system, instances=instances, witnesses={})


def _beyond(constants: str, *actions: str) -> Beyond:
    return Beyond(constants, frozenset(name for each in actions for name in each.split()))


_QUORUM = "become_candidate grant_vote become_follower leader_write leader_inc_high_watermark follower_fetch"
_CUT = "generate_snapshot leader_advance_lbo"
_START_OVER = "follower_start_over fetch_snapshot"

_FOUR_EPOCHS = _beyond("3/0/2/3/1/2/0/0", _QUORUM, "follower_truncate")
"""No snapshot is taken: KIP-595's log alone."""
_FOUR_EPOCHS_CUT = _beyond("3/0/2/3/1/0/0/1", _QUORUM, _CUT, "follower_truncate")
_CHUNKS = _beyond("3/0/2/1/2/0/0/1", _QUORUM, _CUT, _START_OVER)
_LATE_CHUNKS = _beyond("3/0/2/1/2/0/1/1", _QUORUM, _CUT, _START_OVER, "hold_chunk late_chunk")
_LATE_RECORDS = _beyond("3/0/2/2/1/2/1/0", _QUORUM, "hold_records late_records")
_LATE_DIVERGENCES = _beyond("3/0/2/3/1/2/1/0", _QUORUM, "hold_divergence late_divergence")
_LATE_DIVERGENCES_CUT = _beyond("3/0/2/3/1/0/1/1", _QUORUM, _CUT, "hold_divergence late_divergence")
_LATE_SNAPSHOTS = _beyond("3/0/2/1/1/0/1/1", _QUORUM, _CUT, _START_OVER, "hold_snapshot late_snapshot")

_LATE_SNAPSHOTS_DIVERGE = _beyond(
    "3/0/2/1/1/0/1/1", _QUORUM, _CUT, _START_OVER, "hold_snapshot late_snapshot follower_truncate"
)
_LATE_SNAPSHOTS_LATER = _beyond("3/0/2/2/1/0/1/1", _QUORUM, _CUT, _START_OVER, "hold_snapshot late_snapshot")

BEYOND: Mapping[str, Mapping[str, Beyond]] = {
    snapshots.name: {
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
    },
}
"""By protocol and mutant."""
