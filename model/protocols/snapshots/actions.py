"""Snapshots of a replicated log, and the log begin offset that follows them (KIP-630).

Each replica snapshots its own state machine, and every leader advances its LBO as far as a snapshot of it reaches; what
the log has lost is in the snapshot. Whoever has fallen behind the LBO starts over from a snapshot of the leader's. A
replica may crash between any two steps. A snapshot is told by its id, its size in chunks and the number of records that
a reader finds in it; what a state machine has applied is its latest snapshot and, if nothing is missing between the
two, the log behind it.

**The text has five holes**, and the variant ``kip-630`` shows each (``specs/DEVIATIONS.md`` tells the stories). The
log behind half a snapshot counts as replicated, though its owner votes as if it had none. A leader serves a fetch at
its LBO that it cannot check. At boot a log is held against a high watermark that no replica is sure to have kept. Half
a snapshot of one leader is completed with the bytes of another's. A response to an old request wipes what was
acknowledged since, or is written into another snapshot. ``kip-630-safe`` closes them. Which replicas are alive, and how
old the LBO is, cannot be told from inside: ``lag_expires`` lets ``max.replication.lag.ms`` pass at any time or never.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import REPLICA
from ..logs import END_OFFSET, OFFSET
from .fetch import Writes, raise_lbo, reset_to_empty
from .state import (
    CHUNK,
    Boot,
    has_snapshot,
    in_whole_exchanges,
    is_fetching,
    latest_snapshot,
    presumes_leadership,
    snapshots,
)


@snapshots.action(replica=REPLICA, offset=OFFSET, more=CHUNK)
def generate_snapshot(k: Algebra, s: View, replica: Value, offset: Value, more: Value) -> Step:
    """A state machine writes a snapshot of what it has applied, up to an offset below the high watermark.

    "When to Snapshot". ``more`` is the number of chunks after the first one.
    """
    latest = latest_snapshot(k, s, replica)
    applied = k.max(s.snapshot_records[replica, latest], 0)
    end = s.hw[replica] if k.rules.committed_only else s.leo[replica]
    yield "state_loaded", k.negate(is_fetching(s, replica))
    yield "below_high_watermark", offset == end - 1 if k.rules.as_nodes else offset < end
    yield "later_than_latest", latest < offset
    yield "enough_records", k.c.minimum_records < end - 1 - latest
    if k.rules.running:
        yield "synced", offset < s.synced[replica]
    yield s.update(
        snapshot_size={(replica, offset): more + 1},
        snapshot_epoch={(replica, offset): s.record_epoch[replica, offset]},
        snapshot_records={(replica, offset): k.ite(s.lbo[replica] <= applied, offset + 1, applied)},
    )


def _has_up_to(k: Algebra, s: View, leader: Value, replica: Value, lbo: Value) -> Value:
    """The replica has the leader's log up to an offset."""
    same = s.record_epoch[replica, lbo - 1] == s.record_epoch[leader, lbo - 1]
    return k.any(lbo <= s.lbo[replica], k.all(lbo <= s.leo[replica], same))


def _begins_at(k: Algebra, s: View, leader: Value, lbo: Value) -> Step:
    """ "When to Increase the Log Begin Offset". Client's requests "will be validated using the same logic"."""
    covered = latest_snapshot(k, s, leader) + 1 if k.rules.covered_lbo else s.hw[leader]
    replicated = k.forall(REPLICA, lambda r: _has_up_to(k, s, leader, r, lbo))
    yield "presumes_leadership", presumes_leadership(k, s, leader)
    yield "increases", s.lbo[leader] < lbo
    yield "snapshot_includes", lbo <= covered
    yield "replicated_or_old", k.any(k.c.lag_expires == 1, replicated)
    yield s.update(**raise_lbo(k, s, leader, lbo))


@snapshots.action(leader=REPLICA, lbo=END_OFFSET)
def leader_advance_lbo(k: Algebra, s: View, leader: Value, lbo: Value) -> Step:
    """A presumed leader increases its LBO to an offset that a snapshot of its own reaches."""
    yield from _begins_at(k, s, leader, lbo)


@snapshots.action(leader=REPLICA, lbo=END_OFFSET)
def delete_records(k: Algebra, s: View, leader: Value, lbo: Value) -> Step:
    """A client has a presumed leader increase its LBO (DeleteRecords)."""
    yield from _begins_at(k, s, leader, lbo)


@snapshots.action(replica=REPLICA, offset=OFFSET)
def delete_snapshot(k: Algebra, s: View, replica: Value, offset: Value) -> Step:
    """A replica deletes a snapshot whose last offset is less than LBO - 1 ("When to Delete Snapshots")."""
    first_kept = s.lbo[replica] - 1 if k.rules.keeps_last else s.lbo[replica]
    yield "is_complete", has_snapshot(k, s, replica, offset)
    yield "below_lbo", offset < first_kept
    yield s.update(snapshot_size={(replica, offset): 0})


def is_valid(k: Algebra, s: View, replica: Value, checkpoint: Value) -> Value:
    """The log does not count as empty at boot. One that begins at 0 needs no snapshot."""
    lbo, latest = s.lbo[replica], latest_snapshot(k, s, replica)
    match k.rules.boot:
        case Boot.SNAPSHOT:
            found = lbo - 1 <= latest
        case Boot.FROM_LBO:
            found = lbo <= latest
        case Boot.HIGH_WATERMARK:
            found = k.exists(OFFSET, lambda o: k.all(has_snapshot(k, s, replica, o), lbo - 1 <= o, o < checkpoint))
    return k.any(lbo == 0, found)


def _was_known(k: Algebra, s: View, replica: Value, checkpoint: Value) -> Value:
    """The high watermark was this once; a node of ours has no file for it."""
    return checkpoint == 0 if k.rules.as_nodes else checkpoint <= s.hw[replica]


def _leave_office(k: Algebra, s: View, replica: Value) -> Writes:
    """Whoever crashes leads no more in its epoch, and stands for none."""
    epoch = s.leader_epoch[replica]
    leads = presumes_leadership(k, s, replica)
    return {
        "candidate": k.ite(s.candidate == replica, k.NONE, s.candidate),
        "epoch_leader": {epoch: k.ite(leads, k.NONE, s.epoch_leader[epoch])},
    }


@snapshots.action(replica=REPLICA, checkpoint=END_OFFSET, present=in_whole_exchanges)
def restart(k: Algebra, s: View, replica: Value, checkpoint: Value) -> Step:
    """A replica crashes and boots with the log that it has ("Validation of Snapshot and Log").

    ``checkpoint`` is the high watermark that it had last written to disk: any up to the one that it knew.
    """
    yield "was_known", _was_known(k, s, replica, checkpoint)
    yield "log_valid", is_valid(k, s, replica, checkpoint)
    by_snapshot = k.max(checkpoint, latest_snapshot(k, s, replica) + 1)
    hw = checkpoint if k.rules.boot is Boot.HIGH_WATERMARK else by_snapshot
    yield s.update(hw={replica: hw}, **_leave_office(k, s, replica))


@snapshots.action(replica=REPLICA, checkpoint=END_OFFSET, present=in_whole_exchanges)
def restart_empty(k: Algebra, s: View, replica: Value, checkpoint: Value) -> Step:
    """A replica crashes, boots, and has to assume that its log is empty; what it fetched of a snapshot is lost."""
    yield "was_known", _was_known(k, s, replica, checkpoint)
    yield "log_not_valid", k.negate(is_valid(k, s, replica, checkpoint))
    yield s.update(**reset_to_empty(k, replica), **_leave_office(k, s, replica))
