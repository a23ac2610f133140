"""The exchanges of ``snapshots`` between a leader and whoever follows it: Fetch and FetchSnapshot.

A request and its response are one step here; ``late.py`` holds a response back, by the same functions. A
Fetch is answered in one of three ways: with the next record, with the offset to truncate to (KIP-595), or with a
snapshot id (KIP-630). After the third the follower has nothing but that id, and fetches the snapshot and the log behind
it concurrently. Whom a follower asks is the leader of the epoch that it is in.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import REPLICA
from ..logs import OFFSET
from .state import (
    epoch_at,
    has_snapshot,
    in_whole_exchanges,
    is_fetching,
    last_epoch,
    latest_snapshot,
    presumes_leadership,
    snapshots,
)

Writes = dict[str, Value]
"""What an update writes: a mapping from index to value for each variable."""


@dataclass(frozen=True)
class Response:
    """What a response says; -1 in whatever its kind lacks.

    ``fetch_offset`` and ``fetch_epoch`` are FetchOffset and LastFetchedEpoch of the request, or the position of a
    FetchSnapshot and -1. ``offset`` and ``offset_epoch`` are, with a record, the LEO after it and its epoch; of a
    divergence, the end of the largest epoch that the leader knows, and that epoch; of a snapshot and of a chunk of it,
    its id. ``size`` and ``records`` are those of the file that a chunk comes from.
    """

    fetch_offset: Value
    fetch_epoch: Value = -1
    offset: Value = -1
    offset_epoch: Value = -1
    hw: Value = -1
    lbo: Value = -1
    size: Value = -1
    records: Value = -1


def follows(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    yield "not_leader_itself", leader != follower
    yield "presumes_leadership", presumes_leadership(k, s, leader)
    yield "epoch_not_fenced", s.leader_epoch[follower] == s.leader_epoch[leader]


def larger_epoch_start(k: Algebra, s: View, replica: Value, epoch: Value) -> Value:
    """Where the first epoch begins in a log that is larger than this one; the LEO where none does."""
    return k.first(OFFSET, lambda o: s.record_epoch[replica, o] > epoch, s.leo[replica])


def _known_epoch(k: Algebra, s: View, leader: Value, epoch: Value) -> tuple[Value, Value]:
    """The largest epoch up to this one that the leader knows, or -1, and where it ends.

    Without ``validates_at_lbo`` a leader that knows none takes the follower's word for it: its log begins with a larger
    epoch, and no snapshot of its own ends where its log begins.
    """
    end = larger_epoch_start(k, s, leader, epoch)
    known = epoch_at(k, s, leader, end - 1)
    if not k.rules.validates_at_lbo:
        known = k.ite(k.all(end == s.lbo[leader], known == -1), epoch, known)
    return known, end


def _below_log(k: Algebra, s: View, leader: Value, follower: Value) -> Value:
    """The fetch is below the LBO, or the record before it is below and, by its epoch, not the leader's."""
    epoch = last_epoch(k, s, follower)
    known, end = _known_epoch(k, s, leader, epoch)
    parts_below = k.all(0 < end, end == s.lbo[leader], k.any(known == -1, epoch < known))
    return k.any(s.leo[follower] < s.lbo[leader], parts_below)


def _matches(k: Algebra, s: View, leader: Value, follower: Value) -> Value:
    """The leader has the follower's last record (KIP-595's check of FetchOffset and LastFetchedEpoch)."""
    epoch = last_epoch(k, s, follower)
    known, end = _known_epoch(k, s, leader, epoch)
    return k.all(known == epoch, s.leo[follower] <= end)


def serves_records(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """Guards: the leader serves the follower's fetch."""
    yield from follows(k, s, leader, follower)
    yield "reaches_back", k.negate(_below_log(k, s, leader, follower))
    yield "last_record_matches", _matches(k, s, leader, follower)


def records_response(k: Algebra, s: View, leader: Value, follower: Value) -> Response:
    """The next record, if there is one, with the high watermark and the LBO."""
    at = s.leo[follower]
    return Response(
        fetch_offset=at,
        fetch_epoch=last_epoch(k, s, follower),
        offset=k.min(at + 1, s.leo[leader]),
        offset_epoch=s.record_epoch[leader, at],
        hw=s.hw[leader],
        lbo=s.lbo[leader],
    )


def acknowledge(k: Algebra, s: View, leader: Value, follower: Value) -> Writes:
    """The leader learns from a fetch that the follower has its log up to there.

    The text does not say that the log of a replica whose snapshot is incomplete must not count.
    """
    counts = k.member(follower, s.voters)
    if k.rules.acknowledges_whole:
        counts = k.all(counts, k.negate(is_fetching(s, follower)))
    at = (leader, s.leo[follower] - 1)
    holders = s.acknowledged[at]
    return {"acknowledged": {at: k.ite(counts, k.with_member(holders, follower), holders)}}


def acknowledge_at_once(k: Algebra, s: View, leader: Value, follower: Value) -> Writes:
    """The same, where that is one step with the response."""
    return {} if k.rules.as_nodes else acknowledge(k, s, leader, follower)


def raise_lbo(k: Algebra, s: View, replica: Value, lbo: Value) -> Writes:
    """A larger LBO, or the same; who runs freely is seen to take every step, and needs no note of the largest."""
    reached = {} if k.rules.running else {"lbo_reached": {replica: k.max(s.lbo_reached[replica], lbo)}}
    return {"lbo": {replica: lbo}, **reached}


def append_records(k: Algebra, s: View, follower: Value, response: Response) -> Writes:
    """The follower appends, and raises its high watermark."""
    end = response.offset
    return {
        "leo": {follower: end},
        "record_epoch": {(follower, response.fetch_offset): response.offset_epoch},
        "hw": {follower: k.max(s.hw[follower], k.min(response.hw, end))},
    }


def brings_begin(k: Algebra, s: View, follower: Value, response: Response) -> Value:
    """A response has a larger LBO, and the follower's own snapshot reaches it.

    "When to Increase the Log Begin Offset": "as long as the local state machine has generated a snapshot that includes
    to the log begin offset minus one".
    """
    return k.all(s.lbo[follower] < response.lbo, response.lbo - 1 <= latest_snapshot(k, s, follower))


def take_records(k: Algebra, s: View, follower: Value, response: Response) -> Writes:
    """The follower appends, and takes the LBO if its own snapshot reaches it."""
    begin = k.ite(brings_begin(k, s, follower, response), response.lbo, s.lbo[follower])
    return {**append_records(k, s, follower, response), **raise_lbo(k, s, follower, begin)}


@snapshots.action(leader=REPLICA, follower=REPLICA)
def follower_fetch(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A fetch that the leader serves: it acknowledges the log up to its offset, and brings the next record, if any."""
    yield from serves_records(k, s, leader, follower)
    response = records_response(k, s, leader, follower)
    yield s.update(**acknowledge_at_once(k, s, leader, follower), **take_records(k, s, follower, response))


@snapshots.action(leader=REPLICA, follower=REPLICA, present=lambda rules: rules.as_nodes and in_whole_exchanges(rules))
def follower_acknowledge(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """The leader counts a fetch that it serves. The response may come after this, or never."""
    yield from serves_records(k, s, leader, follower)
    yield s.update(**acknowledge(k, s, leader, follower))


def finds_divergence(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """Guards: the leader lacks the follower's last record."""
    yield from follows(k, s, leader, follower)
    yield "reaches_back", k.negate(_below_log(k, s, leader, follower))
    yield "diverges", k.negate(_matches(k, s, leader, follower))


def divergence_response(k: Algebra, s: View, leader: Value, follower: Value) -> Response:
    """The largest epoch up to the follower's last one that the leader knows, and where it ends."""
    epoch = last_epoch(k, s, follower)
    known, end = _known_epoch(k, s, leader, epoch)
    return Response(fetch_offset=s.leo[follower], fetch_epoch=epoch, offset=end, offset_epoch=known)


def take_divergence(k: Algebra, s: View, follower: Value, response: Response) -> Writes:
    """The follower truncates to where its own epochs and the leader's part."""
    end = k.min(response.offset, larger_epoch_start(k, s, follower, response.offset_epoch))
    synced = {"synced": {follower: k.min(end, s.synced[follower])}} if k.rules.running else {}
    return {"leo": {follower: end}, "hw": {follower: k.min(end, s.hw[follower])}, **synced}


@snapshots.action(leader=REPLICA, follower=REPLICA)
def follower_truncate(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A fetch finds that the logs diverge: the follower truncates, and fetches again (KIP-595)."""
    yield from finds_divergence(k, s, leader, follower)
    yield s.update(**take_divergence(k, s, follower, divergence_response(k, s, leader, follower)))


def names_snapshot(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """Guards: the leader answers a fetch with its latest snapshot's id ("Handling Fetch Request")."""
    yield from follows(k, s, leader, follower)
    yield "begins_later", _below_log(k, s, leader, follower)
    yield "snapshot_exists", latest_snapshot(k, s, leader) != -1


def snapshot_response(k: Algebra, s: View, leader: Value, follower: Value) -> Response:
    """SnapshotOffsetAndEpoch; NextOffsetAndEpoch is the offset right after it."""
    offset = latest_snapshot(k, s, leader)
    return Response(
        fetch_offset=s.leo[follower],
        fetch_epoch=last_epoch(k, s, follower),
        offset=offset,
        offset_epoch=s.snapshot_epoch[leader, offset],
    )


def begin_at(k: Algebra, replica: Value, offset: Value) -> Writes:
    """A full reset: an empty log that begins at this offset, below which everything is committed."""
    more = "synced" if k.rules.running else "lbo_reached"
    return {name: {replica: offset} for name in ("lbo", "leo", "hw", more)}


def take_snapshot(k: Algebra, follower: Value, response: Response) -> Writes:
    """The follower deletes its entire log and all snapshots, and begins to fetch both ("Handling Fetch Response")."""
    return {
        **begin_at(k, follower, response.offset + 1),
        "fetching": {follower: response.offset},
        "fetching_epoch": {follower: response.offset_epoch},
        "position": {follower: 0},
        "snapshot_size": {(follower, response.offset): 0},
    }


@snapshots.action(leader=REPLICA, follower=REPLICA)
def follower_start_over(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A fetch below the LBO is answered with a snapshot id: the follower has to start over from that snapshot."""
    yield from names_snapshot(k, s, leader, follower)
    yield s.update(**take_snapshot(k, follower, snapshot_response(k, s, leader, follower)))


def reset_to_empty(k: Algebra, replica: Value) -> Writes:
    """A full reset to nothing at all."""
    nothing = {name: {replica: -1} for name in ("fetching", "fetching_epoch", "position")}
    return {**begin_at(k, replica, 0), **nothing}


def is_found(k: Algebra, s: View, leader: Value, follower: Value) -> Value:
    """The leader has the snapshot that the follower asks for by its id."""
    offset = s.fetching[follower]
    return k.all(has_snapshot(k, s, leader, offset), s.snapshot_epoch[leader, offset] == s.fetching_epoch[follower])


def serves_chunk(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """Guards: none of the three errors ("Fetching Snapshots", "Request Handling")."""
    yield "is_fetching", is_fetching(s, follower)
    yield from follows(k, s, leader, follower)
    yield "snapshot_found", is_found(k, s, leader, follower)
    yield "position_in_range", s.position[follower] <= s.snapshot_size[leader, s.fetching[follower]]


def chunk_response(s: View, leader: Value, follower: Value) -> Response:
    """The bytes at the follower's position; there is none at the end of the file."""
    offset = s.fetching[follower]
    return Response(
        fetch_offset=s.position[follower],
        offset=offset,
        offset_epoch=s.fetching_epoch[follower],
        size=s.snapshot_size[leader, offset],
        records=s.snapshot_records[leader, offset],
    )


def take_chunk(k: Algebra, s: View, follower: Value, response: Response) -> Writes:
    """Write the bytes at their position; without ``Continue`` the snapshot is complete ("Response Handling").

    Bytes of two files that differ, or a gap between bytes, make a file in which a reader finds nothing. Two snapshots
    with one id have the same bytes here if and only if they have the same size.
    """
    at = (follower, s.fetching[follower])
    size, position = response.size, response.fetch_offset
    end = k.min(position + 1, size)
    complete = end == size
    first = position == 0
    of_same_file = k.all(
        response.offset == s.fetching[follower],
        response.offset_epoch == s.fetching_epoch[follower],
        size == s.snapshot_size[at],
        position <= s.position[follower],
    )
    found = k.ite(of_same_file, s.snapshot_records[at], 0)
    return {
        "snapshot_size": {at: k.ite(k.any(first, complete), size, s.snapshot_size[at])},
        "snapshot_epoch": {at: s.fetching_epoch[follower]},
        "snapshot_records": {at: k.ite(first, response.records, found)},
        "fetching": {follower: k.ite(complete, -1, s.fetching[follower])},
        "fetching_epoch": {follower: k.ite(complete, -1, s.fetching_epoch[follower])},
        "position": {follower: k.ite(complete, -1, end)},
    }


@snapshots.action(leader=REPLICA, follower=REPLICA)
def fetch_snapshot(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """FetchSnapshot: the next chunk of the snapshot that the follower fetches."""
    yield from serves_chunk(k, s, leader, follower)
    yield s.update(**take_chunk(k, s, follower, chunk_response(s, leader, follower)))


@snapshots.action(follower=REPLICA, present=in_whole_exchanges)
def rediscover_snapshot(k: Algebra, s: View, follower: Value) -> Step:
    """FetchSnapshot fails: NOT_LEADER_FOR_PARTITION, SNAPSHOT_NOT_FOUND or OFFSET_OUT_OF_RANGE.

    "The follower can rediscover the new snapshot by sending a fetch request with an offset and epoch of zero." Whoever
    fetches from zero has an empty log, so the log that was fetched behind the snapshot goes.
    """
    leader = s.epoch_leader[s.leader_epoch[follower]]
    not_leader = k.any(leader == k.NONE, s.leader_epoch[leader] != s.leader_epoch[follower])
    not_found = k.negate(is_found(k, s, leader, follower))
    out_of_range = s.snapshot_size[leader, s.fetching[follower]] < s.position[follower]
    refused = k.any(not_leader, not_found, out_of_range)
    if k.rules.as_nodes:
        refused = k.all(k.negate(not_leader), k.any(not_found, out_of_range))
    yield "is_fetching", is_fetching(s, follower)
    yield "fetch_refused", refused
    yield s.update(**reset_to_empty(k, follower))
