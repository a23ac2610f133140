"""What a follower does whose fetch offset is not on its leader: the recap's case 2, and what KIP-1023 makes of it.

The leader's answer is OFFSET_OUT_OF_RANGE below its log start, and OFFSET_MOVED_TO_TIERED_STORAGE from there up to its
local log start. The follower asks it for offsets by ListOffsets, reads in remote storage, and sets its own: that is one
step here. EPUO is the earliest pending upload offset; -1, unknown, is what a leader says that knows of no upload.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...core.algebra import EVERY, Algebra, Step, Update, Value, View
from ...core.domains import REPLICA
from ..logs import EPOCH, OFFSET
from .state import follows, is_readable, is_same_record, tiering


def epuo_is_known(_k: Algebra, s: View, leader: Value) -> Value:
    """The leader's answer is not -1."""
    return s.highest_remote[leader] >= 0


def epuo(s: View, leader: Value) -> Value:
    """The earliest pending upload offset: the one behind the last tiered offset."""
    return s.highest_remote[leader] + 1


def _is_empty(s: View, follower: Value) -> Value:
    return s.leo[follower] == 0


def _begins_at_epuo(k: Algebra, s: View, follower: Value) -> Value:
    """The check that ReplicaFetcher makes: an empty follower, with the feature enabled, of a topic with tiering."""
    conditions = [s.tiered == 1]
    if k.rules.heeds_flag:
        conditions.append(k.c.last_tiered_offset == 1)
    if k.rules.only_empty:
        conditions.append(_is_empty(s, follower))
    return k.all(*conditions)


def _not_on_leader(k: Algebra, s: View, leader: Value, follower: Value) -> Iterator[tuple[str, Value]]:
    """Guards: the follower fetches from its leader, which answers with one of the two errors."""
    yield "follows_leader", follows(k, s, leader, follower)
    yield "offset_not_local", s.leo[follower] < s.local_start[leader]


def _start_at(s: View, follower: Value, offset: Value) -> Update:
    """The follower's log is empty and begins, and ends, at an offset."""
    return s.update(
        log_start={follower: offset},
        local_start={follower: offset},
        leo={follower: offset},
        hw={follower: offset},
        jumped_from={follower: -1},
    )


@tiering.action(leader=REPLICA, follower=REPLICA)
def truncate_fully(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """Case 2.1: OFFSET_OUT_OF_RANGE, and the follower begins at the leader's log start."""
    yield from _not_on_leader(k, s, leader, follower)
    yield "below_log_start", s.leo[follower] < s.log_start[leader]
    yield "old_behaviour", k.negate(_begins_at_epuo(k, s, follower))
    yield _start_at(s, follower, s.log_start[leader])


def _found(k: Algebra, s: View, leader: Value, epoch: Value, target: Value) -> Iterator[tuple[str, Value]]:
    """Guards: the segment that ends the auxiliary state is in remote storage, and of the leader's lineage.

    Where it is not, nothing changes and the follower tries again (RemoteStorageException).
    """
    last = target - 1
    yield "segment_is_readable", is_readable(k, s, epoch, last)
    if k.rules.by_lineage:
        yield "segment_is_of_lineage", is_same_record(k, s, epoch, leader, last)


def _built(k: Algebra, s: View, leader: Value, follower: Value, epoch: Value, target: Value, jumped: Value) -> Update:
    """The follower has built the auxiliary state over [log start, target), and begins at the target."""
    start = s.log_start[leader]
    if k.rules.from_checkpoint:
        # An offset from which on the checkpoint has all, up to the segment's end.
        lacks = k.last(OFFSET, lambda o: k.all(o < target, s.remote_epoch[epoch, o] == -1), -1)
        start = k.max(start, lacks + 1)

    def built(offset: Value) -> Value:
        known = s.remote_epoch[epoch, offset]
        if k.rules.builds_to_target:
            return known
        # What a checkpoint lacks at its end has the epoch of what it ends with.
        end = s.local_start[leader]
        return k.ite(offset < end, known, s.remote_epoch[epoch, end - 1])

    return s.update(
        log_start={follower: start},
        local_start={follower: target},
        leo={follower: target},
        hw={follower: target},
        record_epoch={(follower, EVERY): built},
        jumped_from={follower: jumped},
    )


@tiering.action(leader=REPLICA, follower=REPLICA, epoch=EPOCH)
def build_to_local_start(k: Algebra, s: View, leader: Value, follower: Value, epoch: Value) -> Step:
    """Case 2.2: OFFSET_MOVED_TO_TIERED_STORAGE, and the follower builds up to the leader's local log start."""
    target = s.local_start[leader]
    yield from _not_on_leader(k, s, leader, follower)
    yield "moved_to_tiered_storage", s.log_start[leader] <= s.leo[follower]
    yield "old_behaviour", k.negate(_begins_at_epuo(k, s, follower))
    yield from _found(k, s, leader, epoch, target)
    yield _built(k, s, leader, follower, epoch, target, -1)


@tiering.action(leader=REPLICA, follower=REPLICA, epoch=EPOCH)
def build_to_epuo(k: Algebra, s: View, leader: Value, follower: Value, epoch: Value) -> Step:
    """An empty follower builds over [log start, EPUO), and begins at the EPUO."""
    target = epuo(s, leader)
    yield from _not_on_leader(k, s, leader, follower)
    yield "begins_at_epuo", _begins_at_epuo(k, s, follower)
    yield "epuo_is_known", epuo_is_known(k, s, leader)
    yield "above_log_start", s.log_start[leader] < target
    yield from _found(k, s, leader, epoch, target)
    yield _built(k, s, leader, follower, epoch, target, s.leo[follower])


@tiering.action(leader=REPLICA, follower=REPLICA)
def start_at_local_start(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """The EPUO is unknown, and nothing was uploaded: the local log start is taken for it."""
    yield from _not_on_leader(k, s, leader, follower)
    yield "begins_at_epuo", _begins_at_epuo(k, s, follower)
    yield "epuo_is_unknown", k.negate(epuo_is_known(k, s, leader))
    if k.rules.waits_for_leader:
        yield "nothing_uploaded", s.log_start[leader] == s.local_start[leader]
        yield _start_at(s, follower, s.local_start[leader])
        return
    yield s.update(
        log_start={follower: s.log_start[leader]},
        local_start={follower: s.local_start[leader]},
        leo={follower: s.local_start[leader]},
        hw={follower: s.local_start[leader]},
    )


@tiering.action(leader=REPLICA, follower=REPLICA)
def start_at_log_start(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """The EPUO is not above the log start: nothing valid is on remote, and the follower copies all that is local."""
    yield from _not_on_leader(k, s, leader, follower)
    yield "begins_at_epuo", _begins_at_epuo(k, s, follower)
    yield "epuo_is_known", epuo_is_known(k, s, leader)
    yield "not_above_log_start", epuo(s, leader) <= s.log_start[leader]
    if k.rules.heeds_log_start:
        yield _start_at(s, follower, s.log_start[leader])
        return
    target = epuo(s, leader)
    yield s.update(
        log_start={follower: s.log_start[leader]},
        local_start={follower: target},
        leo={follower: target},
        hw={follower: target},
    )


@tiering.action(leader=REPLICA, follower=REPLICA, present=lambda rules: not rules.epochs_first)
def crash_while_building(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """An empty follower has set its offsets for the EPUO, and crashes before it has stored the epochs."""
    target = epuo(s, leader)
    yield from _not_on_leader(k, s, leader, follower)
    yield "begins_at_epuo", _begins_at_epuo(k, s, follower)
    yield "epuo_is_known", epuo_is_known(k, s, leader)
    yield "above_log_start", s.log_start[leader] < target
    yield s.update(
        log_start={follower: s.log_start[leader]},
        local_start={follower: target},
        leo={follower: target},
        hw={follower: target},
    )


@tiering.action(leader=REPLICA, follower=REPLICA, present=lambda rules: rules.whole_isr)
def copy_anew(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """Without tiering, a follower that lacks the beginning of what its leader has locally copies all of that."""
    yield "follows_leader", follows(k, s, leader, follower)
    yield "tiering_disabled", s.tiered == 0
    yield "outside_isr", k.negate(k.member(follower, s.isr))
    yield "lacks_the_beginning", s.log_start[leader] < s.local_start[follower]
    yield _start_at(s, follower, s.log_start[leader])
