"""Late responses in ``snapshots``: a few that the network holds back, to be delivered later, again and again, or never.

``follower_fetch`` and its like are a request and its response in one step. Here a leader handles a request in the same
way, and its response goes into one of ``late_responses`` slots; there it stays, to be delivered any number of times,
until another one takes its place. Meanwhile the follower has asked again, as after a timeout.

The KIP says nothing of a response to an old request. A response of Fetch names its leader epoch, and records are
appended at the LEO only; a response of FetchSnapshot, as the text has it, names neither epoch nor snapshot id. With
``correlates`` a replica takes a response only while the request that it answers is the one that it would send.
"""

from __future__ import annotations

from dataclasses import fields

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import OPTIONAL_REPLICA, REPLICA, Constants, integers
from .fetch import (
    Response,
    Writes,
    acknowledge_at_once,
    chunk_response,
    divergence_response,
    finds_divergence,
    names_snapshot,
    records_response,
    serves_chunk,
    serves_records,
    snapshot_response,
    take_chunk,
    take_divergence,
    take_records,
    take_snapshot,
)
from .state import SLOT, in_whole_exchanges, is_fetching, last_epoch, snapshots

RECORDS = 0
"""A fetch was served."""
DIVERGENCE = 1
"""A fetch found that the logs diverge."""
SNAPSHOT = 2
"""A fetch was answered with a snapshot id."""
CHUNK_OF_SNAPSHOT = 3
"""A response of FetchSnapshot."""


def _fetch_position(constants: Constants) -> int:
    # At least either; the larger one would not do, as a sum is all that can be said of constants that are unknown.
    return constants["log_size"] + constants["max_chunks"]


_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_OFFSETS = integers(-1, lambda c: c["log_size"])

for _name, _doc, _values in (
    ("kind", "what a held response is", integers(-1, lambda _: CHUNK_OF_SNAPSHOT)),
    ("to", "to whom it goes", OPTIONAL_REPLICA),
    ("epoch", "the leader epoch of whoever sent it", _EPOCHS),
    ("fetch_offset", "the offset or position that was asked for", integers(-1, _fetch_position)),
    ("fetch_epoch", "the last fetched epoch that was sent with it", _EPOCHS),
    ("offset", "the LEO after its records, the end of the leader's epoch, or the snapshot's last offset", _OFFSETS),
    ("offset_epoch", "the epoch of that", _EPOCHS),
    ("hw", "the leader's high watermark", _OFFSETS),
    ("lbo", "the leader's LBO", _OFFSETS),
    ("size", "the size of the snapshot that a chunk comes from", integers(-1, lambda c: c["max_chunks"])),
    ("records", "how many records a reader of that snapshot finds", _OFFSETS),
):
    snapshots.variable(f"response_{_name}", _doc, _values, per=(SLOT,), initially=-1)


def held_response(s: View, slot: Value) -> Response:
    """The response in a slot."""
    return Response(**{field.name: getattr(s, f"response_{field.name}")[slot] for field in fields(Response)})


def _hold(s: View, slot: Value, leader: Value, follower: Value, kind: int, response: Response) -> Writes:
    names = {"kind": kind, "to": follower, "epoch": s.leader_epoch[leader], **vars(response)}
    return {f"response_{name}": {slot: value} for name, value in names.items()}


@snapshots.action(leader=REPLICA, follower=REPLICA, slot=SLOT, present=in_whole_exchanges)
def hold_records(k: Algebra, s: View, leader: Value, follower: Value, slot: Value) -> Step:
    """The leader serves a fetch, and the network holds the response back."""
    yield from serves_records(k, s, leader, follower)
    response = records_response(k, s, leader, follower)
    held = _hold(s, slot, leader, follower, RECORDS, response)
    yield s.update(**acknowledge_at_once(k, s, leader, follower), **held)


@snapshots.action(leader=REPLICA, follower=REPLICA, slot=SLOT, present=in_whole_exchanges)
def hold_divergence(k: Algebra, s: View, leader: Value, follower: Value, slot: Value) -> Step:
    """The leader finds that the logs diverge, and the network holds the response back."""
    yield from finds_divergence(k, s, leader, follower)
    yield s.update(**_hold(s, slot, leader, follower, DIVERGENCE, divergence_response(k, s, leader, follower)))


@snapshots.action(leader=REPLICA, follower=REPLICA, slot=SLOT, present=in_whole_exchanges)
def hold_snapshot(k: Algebra, s: View, leader: Value, follower: Value, slot: Value) -> Step:
    """The leader answers with a snapshot id, and the network holds the response back."""
    yield from names_snapshot(k, s, leader, follower)
    yield s.update(**_hold(s, slot, leader, follower, SNAPSHOT, snapshot_response(k, s, leader, follower)))


@snapshots.action(leader=REPLICA, follower=REPLICA, slot=SLOT, present=in_whole_exchanges)
def hold_chunk(k: Algebra, s: View, leader: Value, follower: Value, slot: Value) -> Step:
    """The leader sends a chunk of a snapshot, and the network holds it back."""
    yield from serves_chunk(k, s, leader, follower)
    yield s.update(**_hold(s, slot, leader, follower, CHUNK_OF_SNAPSHOT, chunk_response(s, leader, follower)))


def _arrives(k: Algebra, s: View, follower: Value, slot: Value, kind: int) -> Step:
    """Guards: a response of Fetch is taken. It names the leader epoch, which KIP-595 has the replica compare."""
    yield "addressed_to", k.all(s.response_to[slot] == follower, s.response_kind[slot] == kind)
    yield "epoch_not_fenced", s.response_epoch[slot] == s.leader_epoch[follower]
    if k.rules.correlates:
        same_offset = s.response_fetch_offset[slot] == s.leo[follower]
        same_epoch = s.response_fetch_epoch[slot] == last_epoch(k, s, follower)
        yield "answers_request", k.all(same_offset, same_epoch)
    elif kind == RECORDS:
        yield "answers_request", s.response_fetch_offset[slot] == s.leo[follower]
    else:
        yield "answers_request", k.all()


@snapshots.action(follower=REPLICA, slot=SLOT, present=in_whole_exchanges)
def late_records(k: Algebra, s: View, follower: Value, slot: Value) -> Step:
    """A follower takes records that come late."""
    yield from _arrives(k, s, follower, slot, RECORDS)
    yield s.update(**take_records(k, s, follower, held_response(s, slot)))


@snapshots.action(follower=REPLICA, slot=SLOT, present=in_whole_exchanges)
def late_divergence(k: Algebra, s: View, follower: Value, slot: Value) -> Step:
    """A follower truncates by a response that comes late."""
    yield from _arrives(k, s, follower, slot, DIVERGENCE)
    yield s.update(**take_divergence(k, s, follower, held_response(s, slot)))


@snapshots.action(follower=REPLICA, slot=SLOT, present=in_whole_exchanges)
def late_snapshot(k: Algebra, s: View, follower: Value, slot: Value) -> Step:
    """A follower starts over by a response that comes late."""
    yield from _arrives(k, s, follower, slot, SNAPSHOT)
    yield s.update(**take_snapshot(k, follower, held_response(s, slot)))


@snapshots.action(follower=REPLICA, slot=SLOT, present=in_whole_exchanges)
def late_chunk(k: Algebra, s: View, follower: Value, slot: Value) -> Step:
    """A follower writes a chunk that comes late. By the text it cannot tell of which snapshot, or of whose."""
    yield "is_fetching", is_fetching(s, follower)
    yield (
        "addressed_to",
        k.all(s.response_to[slot] == follower, s.response_kind[slot] == CHUNK_OF_SNAPSHOT),
    )
    current = s.response_epoch[slot] == s.leader_epoch[follower]
    requested = k.all(
        s.response_offset[slot] == s.fetching[follower],
        s.response_offset_epoch[slot] == s.fetching_epoch[follower],
        s.response_fetch_offset[slot] == s.position[follower],
    )
    yield "epoch_not_fenced", current if k.rules.correlates else k.all()
    yield "answers_request", requested if k.rules.correlates else k.all()
    yield s.update(**take_chunk(k, s, follower, held_response(s, slot)))
