"""The binding of ``tiering`` itself: what brokers with tiered storage answer that are driven step for step beside it.

Uploads and deletions are a broker's own: nobody asks for one, and each is given the time to come. A follower asks its
leader by a fetch, whatever comes of that. The controller's rules and a fetch's errors are those of KIP-320.
"""

from __future__ import annotations

from typing import Final

from ....model.protocols.tiering.state import NOT_LOOKED, Segment
from ...lockstep.binding import (
    BOUND,
    FENCED,
    ITSELF,
    NOT_LEADER,
    NOTHING,
    UNKNOWN_EPOCH,
    ActionBinding,
    Answer,
    Binding,
    Effect,
    Exchange,
    Rule,
    Sight,
    environment,
    error,
    unasked,
)

_INELIGIBLE: Final = error("ELIGIBLE_LEADERS_NOT_AVAILABLE")
_CLEAN: Final = environment("a member of the ISR is elected cleanly")
_HEARS: Final = environment("the controller tells of leaders, and who has gone on to a later epoch answers nobody")
_LOST: Final = environment("a disk of the ISR that is lost takes what is committed along")
_MOVED: Final = error("OFFSET_MOVED_TO_TIERED_STORAGE", "OFFSET_OUT_OF_RANGE")


def _leads(sight: Sight, replica: int) -> bool:
    return sight.cell("epoch_leader", sight.cell("leader_epoch", replica)) == replica


def _follows(sight: Sight) -> bool:
    leader, follower = sight["leader"], sight["follower"]
    same = sight.cell("leader_epoch", leader) == sight.cell("leader_epoch", follower)
    return leader != follower and _leads(sight, leader) and same


def _fetches_before(sight: Sight) -> Answer:
    """A replica that does not follow this leader fetches."""
    leader, follower = sight["leader"], sight["follower"]
    if leader == follower:
        return ITSELF
    if not _leads(sight, leader):
        return error(NOT_LEADER)
    older = sight.cell("leader_epoch", follower) < sight.cell("leader_epoch", leader)
    return error(FENCED if older else UNKNOWN_EPOCH)


def _is_leader_itself(sight: Sight) -> bool:
    """Who leads already is not elected: it would be after a restart, of which there is none."""
    return sight.cell("epoch_leader", sight.cell("newest_epoch")) == sight["replica"]


def _is_deposed(sight: Sight) -> bool:
    """Producers find the new leader. A deposed one that was alone in its ISR would commit what it writes."""
    return sight.cell("leader_epoch", sight["leader"]) < sight.cell("newest_epoch")


def _has_looked(sight: Sight) -> bool:
    """It has looked when it took office; again it looks when it is not uploading, and it may begin to."""
    return sight.cell("highest_remote", sight["leader"]) != NOT_LOOKED


def _is_caught_up(sight: Sight) -> bool:
    """Nobody takes out of the ISR who has all that its leader has."""
    same = sight.cell("leo", sight["leader"]) == sight.cell("leo", sight["follower"])
    return _follows(sight) and same


def _is_longer(sight: Sight) -> bool:
    """Each record is a segment of its own."""
    leader = sight["leader"]
    begin = max(sight.cell("highest_remote", leader) + 1, sight.cell("log_start", leader))
    return sight["end"] > begin + 1


def _is_busy(sight: Sight) -> bool:
    """Its expiry deletes one after another, the lowest first; and what came to no end, which takes for ever here.

    While a deposed leader goes by what would be deleted, nothing is.
    """
    if any(_leads(sight, other) for other in range(sight.system.constants["replicas"]) if other != sight["leader"]):
        return True
    mine = sight.cell("leader_epoch", sight["leader"])
    for epoch in range(sight.system.constants["max_leader_epoch"] + 1):
        for start in range(sight.system.constants["log_size"]):
            state = sight.cell("segment_state", epoch, start)
            other = epoch != mine and (epoch, start) != (sight["epoch"], sight["start"])
            if other and (start <= sight["start"] if state == Segment.copy_finished else state != Segment.none):
                return True
    return False


def _inner(*guards: str, **others: Rule) -> dict[str, Rule]:
    return {**dict.fromkeys(guards, unasked()), **others}


def _not_driven(*guards: str) -> ActionBinding:
    """Nothing expires, tiering is not switched, and no broker stops while it begins."""
    return ActionBinding(dict.fromkeys(guards, BOUND))


_OF_LEADER: Final = Exchange("follower", "leader", Effect.ASKER)
_ALTER_ISR: Final = Exchange("leader", None, Effect.ASKED)
_UPLOADS: Final[dict[str, Rule]] = {"presumes_leadership": unasked(), "tiering_enabled": BOUND}
_MOVES: Final[dict[str, Rule]] = {"follows_leader": _fetches_before, "offset_not_local": unasked()}

STEPPED: Final = Binding(
    "tiering",
    {
        "elect_leader": ActionBinding({"epoch_available": BOUND, "in_isr": _INELIGIBLE}, waits=_is_leader_itself),
        "elect_unclean_leader": ActionBinding(
            {"unclean_allowed": _INELIGIBLE, "epoch_available": BOUND, "outside_isr": _CLEAN}
        ),
        "become_follower": ActionBinding(
            {"not_leader_itself": ITSELF, "presumes_leadership": _HEARS, "epoch_newer": unasked(FENCED)}, _OF_LEADER
        ),
        "leader_write": ActionBinding(
            {"presumes_leadership": error(NOT_LEADER), "log_not_full": BOUND}, waits=_is_deposed
        ),
        "follower_fetch": ActionBinding(
            {"follows_leader": _fetches_before, "offset_is_local": _MOVED, "record_available": NOTHING}, _OF_LEADER
        ),
        "leader_inc_high_watermark": ActionBinding(
            _inner("presumes_leadership", "record_above_hw", "in_isr", "isr_has_it")
        ),
        "end_transaction": ActionBinding({"transaction_open": BOUND}),
        "leader_shrink_isr": ActionBinding(
            {"true_leader": unasked(FENCED), "not_leader_itself": ITSELF, "in_isr": unasked()}, waits=_is_caught_up
        ),
        "leader_expand_isr": ActionBinding(
            _inner(
                "follows_leader",
                "outside_isr",
                "reached_high_watermark",
                "hw_reached_epoch",
                true_leader=unasked(FENCED),
                has_all_there_is=BOUND,
            ),
            _ALTER_ISR,
        ),
        "replace_replica": ActionBinding({"outside_isr": _LOST, "not_empty": unasked()}),
        "find_highest_remote_offset": ActionBinding(
            {**_UPLOADS, **_inner("not_looked", "log_start_is_committed")}, waits=_has_looked
        ),
        "start_copy": ActionBinding(
            {**_UPLOADS, **_inner("has_looked", "one_at_a_time", "has_records", "below_last_stable", "is_local")},
            waits=_is_longer,
        ),
        "copy_segment": ActionBinding({**_UPLOADS, **_inner("copy_started", "is_local")}),
        "finish_copy": ActionBinding({**_UPLOADS, **_inner("copied")}),
        "delete_local": ActionBinding({**_UPLOADS, **_inner("below_last_stable", "is_uploaded")}),
        "increment_log_start": _not_driven(
            "presumes_leadership", "retention_expires", "below_last_stable", "has_looked"
        ),
        "delete_segment": ActionBinding(
            {**_UPLOADS, **_inner("epoch_is_newest", "copy_finished", "below_log_start")}, waits=_is_busy
        ),
        "disable_tiering": _not_driven(
            "true_leader", "switches_made", "is_enabled", "isr_is_whole", "isr_reaches_start"
        ),
        "enable_tiering": _not_driven("true_leader", "is_disabled"),
        "truncate_fully": ActionBinding({**_MOVES, **_inner("below_log_start", "old_behaviour")}),
        "build_to_local_start": ActionBinding(
            {
                **_MOVES,
                **_inner("moved_to_tiered_storage", "old_behaviour", "segment_is_readable", "segment_is_of_lineage"),
            }
        ),
        "build_to_epuo": ActionBinding(
            {
                **_MOVES,
                **_inner(
                    "begins_at_epuo", "epuo_is_known", "above_log_start", "segment_is_readable", "segment_is_of_lineage"
                ),
            }
        ),
        "start_at_local_start": ActionBinding(
            {**_MOVES, **_inner("begins_at_epuo", "epuo_is_unknown", "nothing_uploaded")}
        ),
        "start_at_log_start": ActionBinding(
            {**_MOVES, **_inner("begins_at_epuo", "epuo_is_known", "not_above_log_start")}
        ),
        "crash_while_building": _not_driven(
            "follows_leader", "offset_not_local", "begins_at_epuo", "epuo_is_known", "above_log_start"
        ),
        "copy_anew": _not_driven("follows_leader", "tiering_disabled", "outside_isr", "lacks_the_beginning"),
    },
)
"""For ``up-to-gap``, at constants with no transactions, where nothing expires and tiering is not switched."""
