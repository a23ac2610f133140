"""What the proof of ``kip-630-safe`` remembers beside the state: histories, quorums, what was chosen, files.

The *history* of an epoch is the log of its leader from offset 0 on: what that replica held when it was elected, and
what it wrote since. Below a log's LBO it is what was chosen. A record is *chosen* when a leader first counts a majority
for a record of its own epoch at that offset or a later one; what is committed is chosen, and a high watermark may
still have to catch up with what is chosen. An epoch is *blocked* at an offset where a later one was elected that has
not got its record there: none of the electors had acknowledged it, and none will. The *tip* is the epoch of a replica's
last record; it stays what it is while the log is cut off before that record and a snapshot has to tell it.
"""

from __future__ import annotations

from pathlib import Path

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA, REPLICA_SET, Constants, integers
from ...prove.proof import Ghosts, Proof
from ..logs import EPOCH, OFFSET
from .fetch import Response, divergence_response, records_response, snapshot_response, take_divergence
from .late import held_response
from .state import has_snapshot, presumes_leadership, snapshots


def constants_at(replicas: int, observers: int, offsets: int, epochs: int, chunks: int, late: int) -> Constants:
    """With at most so many offsets, chunks and late responses, and this largest epoch."""
    values = (replicas, observers, offsets, epochs, chunks, 0, late, 1)
    return dict(zip(snapshots.constants, values, strict=True))


kip_630 = Proof(
    snapshots,
    variant="kip-630-safe",
    sizes=(constants_at(2, 0, 1, 1, 1, 1), constants_at(2, 0, 2, 2, 2, 1), constants_at(3, 0, 2, 2, 2, 1)),
    runs=(
        constants_at(2, 1, 2, 0, 1, 0),
        constants_at(2, 1, 2, 0, 1, 1),
        constants_at(3, 0, 1, 1, 1, 0),
        constants_at(3, 0, 1, 1, 2, 0),
        constants_at(3, 0, 2, 1, 1, 0),
    ),
    cores=Path(__file__).with_name("cores-kip-630-safe.json"),
)

_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_ENDS = integers(-1, lambda c: c["log_size"])
_OFFSETS = integers(-1, lambda c: c["log_size"] - 1)

kip_630.ghost("latest", "the last offset of the latest complete snapshot", _OFFSETS, per=(REPLICA,), initially=-1)
kip_630.ghost(
    "tip", "the epoch of a replica's last record, in its log or in its snapshot", _EPOCHS, per=(REPLICA,), initially=-1
)
kip_630.ghost("history_end", "the LEO of an epoch's leader; -1 while it has none", _ENDS, per=(EPOCH,), initially=-1)
kip_630.ghost("history", "the epochs of the records of an epoch's leader", _EPOCHS, per=(EPOCH, OFFSET), initially=-1)
kip_630.ghost("elected_by", "who voted for an epoch's leader", REPLICA_SET, per=(EPOCH,))
kip_630.ghost(
    "blocked_by", "a later epoch that was elected without this one's record", _EPOCHS, per=(EPOCH, OFFSET), initially=-1
)
kip_630.ghost("chosen_end", "the end of what is chosen, exclusive", integers(0, lambda c: c["log_size"]))
kip_630.ghost("chosen", "the epoch of the chosen record at an offset", _EPOCHS, per=(OFFSET,), initially=-1)
kip_630.ghost("chosen_in", "the epoch in which a record was chosen last", _EPOCHS, initially=-1)
kip_630.ghost("chosen_by", "the leader and those that had acknowledged it then", REPLICA_SET)
kip_630.ghost(
    "file_size",
    "the size of the snapshot that the leader of an epoch has, or had",
    integers(0, lambda c: c["max_chunks"]),
    per=(EPOCH, OFFSET),
)


def is_started(s: View, epoch: Value) -> Value:
    """The epoch has, or had, a leader."""
    return 0 <= s.history_end[epoch]


def held(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The epoch of a replica's record at an offset, below its LBO that of the chosen one."""
    return k.ite(offset < s.lbo[replica], s.chosen[offset], s.record_epoch[replica, offset])


def counted_votes(k: Algebra, s: View, candidate: Value, votes: Value, epoch: Value) -> Ghosts:
    """With a majority of votes the candidate's log becomes the history of its epoch."""
    won = k.majority(votes, s.voters)
    leo = s.leo[candidate]

    def blocked(e: Value, o: Value) -> Value:
        has = k.all(o < leo, held(k, s, candidate, o) == e)
        newly = k.all(won, e < epoch, s.blocked_by[e, o] == -1, k.negate(has))
        return k.ite(newly, epoch, s.blocked_by[e, o])

    def size(e: Value, o: Value) -> Value:
        now = k.all(won, e == epoch)
        return k.ite(now, k.ite(has_snapshot(k, s, candidate, o), s.snapshot_size[candidate, o], 0), s.file_size[e, o])

    return {
        "history_end": lambda e: k.ite(k.all(won, e == epoch), leo, s.history_end[e]),
        "history": lambda e, o: k.ite(k.all(won, e == epoch), held(k, s, candidate, o), s.history[e, o]),
        "elected_by": lambda e: k.ite(k.all(won, e == epoch), votes, s.elected_by[e]),
        "blocked_by": blocked,
        "file_size": size,
    }


@kip_630.updates("become_candidate")
def _stood(k: Algebra, s: View, candidate: Value) -> Ghosts:
    return counted_votes(k, s, candidate, k.only(candidate), s.newest_epoch + 1)


@kip_630.updates("grant_vote")
def _voted(k: Algebra, s: View, voter: Value) -> Ghosts:
    return counted_votes(k, s, s.candidate, k.with_member(s.votes, voter), s.newest_epoch)


@kip_630.updates("leader_write")
def _written(k: Algebra, s: View, leader: Value) -> Ghosts:
    epoch, end = s.leader_epoch[leader], s.leo[leader]
    return {
        "tip": lambda r: k.ite(r == leader, epoch, s.tip[r]),
        "history_end": lambda e: k.ite(e == epoch, end + 1, s.history_end[e]),
        "history": lambda e, o: k.ite(k.all(e == epoch, o == end), epoch, s.history[e, o]),
    }


@kip_630.updates("leader_inc_high_watermark")
def _chosen(k: Algebra, s: View, leader: Value, offset: Value) -> Ghosts:
    """All up to a record of the leader's own epoch is chosen, if a majority has acknowledged that."""
    new = s.chosen_end <= offset
    by = k.with_member(s.acknowledged[leader, offset], leader)
    return {
        "chosen_end": lambda: k.max(s.chosen_end, offset + 1),
        "chosen": lambda o: k.ite(k.all(s.chosen_end <= o, o <= offset), s.record_epoch[leader, o], s.chosen[o]),
        "chosen_in": lambda: k.ite(new, s.leader_epoch[leader], s.chosen_in),
        "chosen_by": lambda: k.ite(new, by, s.chosen_by),
    }


@kip_630.updates("generate_snapshot")
def _generated(k: Algebra, s: View, replica: Value, offset: Value, more: Value) -> Ghosts:
    epoch, leads = s.leader_epoch[replica], presumes_leadership(k, s, replica)
    return {
        "latest": lambda r: k.ite(r == replica, offset, s.latest[r]),
        "file_size": lambda e, o: k.ite(k.all(leads, e == epoch, o == offset), more + 1, s.file_size[e, o]),
    }


def _record_taken(k: Algebra, s: View, follower: Value, response: Response) -> Ghosts:
    new = k.ite(s.leo[follower] < response.offset, response.offset_epoch, s.tip[follower])
    return {"tip": lambda r: k.ite(r == follower, new, s.tip[r])}


@kip_630.updates("follower_fetch")
def _record_fetched(k: Algebra, s: View, leader: Value, follower: Value) -> Ghosts:
    return _record_taken(k, s, follower, records_response(k, s, leader, follower))


@kip_630.updates("late_records")
def _record_came_late(k: Algebra, s: View, follower: Value, slot: Value) -> Ghosts:
    return _record_taken(k, s, follower, held_response(s, slot))


def _cut(k: Algebra, s: View, follower: Value, response: Response) -> Ghosts:
    last = take_divergence(k, s, follower, response)["leo"][follower] - 1
    new = k.ite(last < 0, -1, held(k, s, follower, last))
    return {"tip": lambda r: k.ite(r == follower, new, s.tip[r])}


@kip_630.updates("follower_truncate")
def _truncated(k: Algebra, s: View, leader: Value, follower: Value) -> Ghosts:
    return _cut(k, s, follower, divergence_response(k, s, leader, follower))


@kip_630.updates("late_divergence")
def _truncated_late(k: Algebra, s: View, follower: Value, slot: Value) -> Ghosts:
    return _cut(k, s, follower, held_response(s, slot))


def _chunk_taken(k: Algebra, s: View, follower: Value, position: Value, size: Value) -> Ghosts:
    complete = k.min(position + 1, size) == size
    return {"latest": lambda r: k.ite(k.all(r == follower, complete), s.fetching[r], s.latest[r])}


@kip_630.updates("fetch_snapshot")
def _chunk_fetched(k: Algebra, s: View, leader: Value, follower: Value) -> Ghosts:
    return _chunk_taken(k, s, follower, s.position[follower], s.snapshot_size[leader, s.fetching[follower]])


@kip_630.updates("late_chunk")
def _chunk_came_late(k: Algebra, s: View, follower: Value, slot: Value) -> Ghosts:
    return _chunk_taken(k, s, follower, s.response_fetch_offset[slot], s.response_size[slot])


def _started_over(k: Algebra, s: View, replica: Value, epoch: Value) -> Ghosts:
    return {
        "latest": lambda r: k.ite(r == replica, -1, s.latest[r]),
        "tip": lambda r: k.ite(r == replica, epoch, s.tip[r]),
    }


@kip_630.updates("follower_start_over")
def _named(k: Algebra, s: View, leader: Value, follower: Value) -> Ghosts:
    return _started_over(k, s, follower, snapshot_response(k, s, leader, follower).offset_epoch)


@kip_630.updates("late_snapshot")
def _named_late(k: Algebra, s: View, follower: Value, slot: Value) -> Ghosts:
    return _started_over(k, s, follower, s.response_offset_epoch[slot])


@kip_630.updates("rediscover_snapshot")
def _rediscovered(k: Algebra, s: View, follower: Value) -> Ghosts:
    return _started_over(k, s, follower, -1)


@kip_630.updates("restart_empty")
def _emptied(k: Algebra, s: View, replica: Value, checkpoint: Value) -> Ghosts:  # noqa: ARG001 - as the action has it
    return _started_over(k, s, replica, -1)
