"""The remote log manager of a leader: what is uploaded and how, what is deleted, and tiering switched off and on.

KIP-405. The manager's task runs now and then; where it first runs after an election it looks in remote storage for the
highest offset of its own lineage, and for where the log begins there. An upload takes three steps. What is uploaded is
what is on the leader's disk; a segment ends where the leader has rolled its log, which is anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...core.algebra import EVERY, Algebra, Step, Value, View
from ...core.domains import REPLICA
from ..logs import END_OFFSET, EPOCH, OFFSET
from .state import (
    NOT_LOOKED,
    LogStart,
    Segment,
    Upload,
    is_readable,
    is_tiered,
    last_stable,
    leads,
    leads_newest,
    tiering,
)


def is_found(k: Algebra, s: View, leader: Value, offset: Value) -> Value:
    """A leader takes the record at an offset for uploaded, going by its leader epoch checkpoint."""
    if k.rules.by_lineage:
        return is_tiered(k, s, leader, offset)
    return k.exists(EPOCH, lambda e: is_readable(k, s, e, offset))


def _runs(k: Algebra, s: View, leader: Value) -> Iterator[tuple[str, Value]]:
    """Guards: the remote log manager of a presumed leader runs."""
    yield "presumes_leadership", leads(k, s, leader)
    yield "tiering_enabled", s.tiered == 1


@tiering.action(leader=REPLICA)
def find_highest_remote_offset(k: Algebra, s: View, leader: Value) -> Step:
    """The task runs for the first time: the leader learns of the highest offset, and of the log start, on remote.

    Or each time, and it learns of what others have uploaded since.
    """
    begin, end = s.log_start[leader], s.leo[leader]

    def is_remote(offset: Value) -> Value:
        return k.all(begin <= offset, offset < end, is_found(k, s, leader, offset))

    found = k.last(OFFSET, is_remote, -1)
    known = s.highest_remote[leader]
    highest = found if k.rules.looks_anew and k.rules.looks_once else k.max(found, known)
    below = k.max(found + 1, s.local_start[leader])
    lacks = k.last(OFFSET, lambda o: k.all(o < below, k.negate(is_remote(o))), -1)
    start = {
        LogStart.ITS_OWN: begin,
        LogStart.FIRST: k.first(OFFSET, is_remote, s.local_start[leader]),
        LogStart.CONTIGUOUS: k.max(begin, lacks + 1),
    }[k.rules.log_start]
    yield from _runs(k, s, leader)
    if k.rules.looks_once:
        yield "not_looked", known == NOT_LOOKED
    yield "log_start_is_committed", start <= s.hw[leader]
    yield s.update(
        highest_remote={leader: highest},
        log_start={leader: start},
        local_start={leader: k.max(s.local_start[leader], start)},
    )


def next_upload(k: Algebra, s: View, leader: Value) -> Value:
    """The first offset that a leader has to upload next."""
    return k.max(s.highest_remote[leader] + 1, s.log_start[leader])


def _is_uploading(k: Algebra, s: View, leader: Value, start: Value) -> Value:
    state = s.segment_state[s.leader_epoch[leader], start]
    return k.any(state == Segment.copy_started, state == Segment.copied)


@tiering.action(leader=REPLICA, end=END_OFFSET)
def start_copy(k: Algebra, s: View, leader: Value, end: Value) -> Step:
    """The first step of an upload: the next segment's metadata is in state COPY_SEGMENT_STARTED."""
    epoch, start = s.leader_epoch[leader], next_upload(k, s, leader)
    bound = {
        Upload.STABLE: last_stable(k, s, leader),
        Upload.COMMITTED: s.hw[leader],
        Upload.WRITTEN: s.leo[leader],
    }[k.rules.uploads]
    yield from _runs(k, s, leader)
    yield "has_looked", s.highest_remote[leader] != NOT_LOOKED
    yield "one_at_a_time", k.forall(OFFSET, lambda o: k.negate(_is_uploading(k, s, leader, o)))
    yield "has_records", start < end
    yield "below_last_stable", end <= bound
    yield "is_local", s.local_start[leader] <= start
    yield s.update(segment_state={(epoch, start): Segment.copy_started}, segment_end={(epoch, start): end})


@tiering.action(leader=REPLICA, start=OFFSET)
def copy_segment(k: Algebra, s: View, leader: Value, start: Value) -> Step:
    """The second step: the segment, and the leader epoch checkpoint up to its end, are in remote storage."""
    epoch = s.leader_epoch[leader]
    end = s.segment_end[epoch, start]

    def stored(offset: Value) -> Value:
        new = k.all(s.log_start[leader] <= offset, offset < end)
        return k.ite(new, s.record_epoch[leader, offset], s.remote_epoch[epoch, offset])

    yield from _runs(k, s, leader)
    yield "copy_started", s.segment_state[epoch, start] == Segment.copy_started
    yield "is_local", s.local_start[leader] <= start
    yield s.update(segment_state={(epoch, start): Segment.copied}, remote_epoch={(epoch, EVERY): stored})


@tiering.action(leader=REPLICA, start=OFFSET)
def finish_copy(k: Algebra, s: View, leader: Value, start: Value) -> Step:
    """The third step: its metadata is in state COPY_SEGMENT_FINISHED, and the leader's highest offset is its last."""
    epoch = s.leader_epoch[leader]
    yield from _runs(k, s, leader)
    yield "copied", s.segment_state[epoch, start] == Segment.copied
    last = s.segment_end[epoch, start] - 1
    yield s.update(
        segment_state={(epoch, start): Segment.copy_finished},
        highest_remote={leader: last if k.rules.looks_once else k.max(last, s.highest_remote[leader])},
    )


@tiering.action(leader=REPLICA)
def delete_local(k: Algebra, s: View, leader: Value) -> Step:
    """Local retention: a presumed leader deletes the first record on its disk, which is in remote storage."""
    first = s.local_start[leader]

    def is_copied(start: Value) -> Value:
        state = s.segment_state[s.leader_epoch[leader], start]
        return k.all(state == Segment.copied, start <= first, first < s.segment_end[s.leader_epoch[leader], start])

    uploaded = first <= s.highest_remote[leader] if k.rules.highest_stands else is_found(k, s, leader, first)
    if not k.rules.after_commit:
        uploaded = k.any(uploaded, k.exists(OFFSET, is_copied))
    yield from _runs(k, s, leader)
    yield "below_last_stable", first < last_stable(k, s, leader)
    yield "is_uploaded", uploaded
    yield s.update(local_start={leader: first + 1})


@tiering.action(leader=REPLICA)
def increment_log_start(k: Algebra, s: View, leader: Value) -> Step:
    """Retention, or who deletes records, moves a presumed leader's log start behind a record that is stable."""
    start = s.log_start[leader]
    yield "presumes_leadership", leads(k, s, leader)
    yield "retention_expires", k.c.expires == 1
    yield "below_last_stable", start < last_stable(k, s, leader)
    yield "has_looked", k.any(s.tiered == 0, s.highest_remote[leader] != NOT_LOOKED)
    yield s.update(
        log_start={leader: start + 1},
        local_start={leader: k.max(s.local_start[leader], start + 1)},
    )


@tiering.action(leader=REPLICA, epoch=EPOCH, start=OFFSET)
def delete_segment(k: Algebra, s: View, leader: Value, epoch: Value, start: Value) -> Step:
    """A leader deletes a segment that lies below its log start, whoever uploaded it.

    Or one of leader epochs before all of its log's, as an unclean election leaves behind, which nobody can ask for.
    """
    end = s.segment_end[epoch, start]
    useless = end <= s.log_start[leader]
    if not k.rules.keeps_older:
        begin = s.log_start[leader]
        first = k.ite(begin < s.leo[leader], s.record_epoch[leader, begin], s.leader_epoch[leader])
        useless = k.any(useless, s.remote_epoch[epoch, end - 1] < first)
    yield from _runs(k, s, leader)
    if k.rules.fences_deletion:
        yield "epoch_is_newest", s.leader_epoch[leader] == s.newest_epoch
    yield "copy_finished", s.segment_state[epoch, start] == Segment.copy_finished
    yield "below_log_start", useless
    yield s.update(segment_state={(epoch, start): Segment.none})


@tiering.action(leader=REPLICA)
def disable_tiering(k: Algebra, s: View, leader: Value) -> Step:
    """Tiering is switched off for the topic, and the log begins at its leader's local log start (KIP-950).

    All of the ISR hear that, whoever leads next: so nobody goes back to what others of the ISR have not locally.
    """
    start = s.local_start[leader]

    def has_as_much(member: Value) -> Value:
        return s.local_start[member] <= start

    def begins(cells: Value) -> Callable[[Value], Value]:
        def at(replica: Value) -> Value:
            hears = k.any(replica == leader, k.member(replica, s.isr))
            return k.ite(hears, k.max(cells[replica], start), cells[replica])

        return at

    yield "true_leader", leads_newest(k, s, leader)
    yield "switches_made", k.c.switches == 1
    yield "is_enabled", s.tiered == 1
    if k.rules.whole_isr:
        yield "isr_is_whole", k.forall(REPLICA, lambda r: k.implies(k.member(r, s.isr), has_as_much(r)))
    if not k.rules.isr_hears_start:
        yield s.update(tiered=0, log_start={leader: start})
        return
    yield "isr_reaches_start", k.forall(REPLICA, lambda r: k.implies(k.member(r, s.isr), start <= s.leo[r]))
    yield s.update(
        tiered=0,
        log_start={EVERY: begins(s.log_start)},
        local_start={EVERY: begins(s.local_start)},
        hw={EVERY: begins(s.hw)},
    )


@tiering.action(leader=REPLICA)
def enable_tiering(k: Algebra, s: View, leader: Value) -> Step:
    """Tiering is switched on again: what was uploaded before counts, as far as the leader's log still has it."""
    yield "true_leader", leads_newest(k, s, leader)
    yield "is_disabled", s.tiered == 0
    yield s.update(tiered=1)
