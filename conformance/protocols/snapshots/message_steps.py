"""What the messages and timers of a running quorum may be in ``snapshots``: the model's steps of each.

A message stands for half an exchange: a request for what its asker wants decided, a response for what comes of the
answer at whoever gets it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ....impl.quorum.node import QuorumNode
from ....impl.quorum.timers import ADVANCE_BEGIN, CLEAN, ELECTION, GENERATE
from ....impl.replica.timers import Key
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import NO_LEADER, NO_OFFSET, Envelope
from ....impl.wire.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoteRequest,
    VoteResponse,
)
from ...lockstep.adapter import ModelStep
from ...simulation.system import SenderClaim

_DECIDED: Final[Mapping[type, Callable[[int, int], tuple[ModelStep, ...]]]] = {
    VoteRequest: lambda asker, asked: (("give_vote", {"candidate": asker, "voter": asked}),),
    BeginQuorumEpochRequest: lambda asker, asked: (("begin_epoch", {"leader": asker, "follower": asked}),),
    EndQuorumEpochRequest: lambda asker, asked: (("end_epoch", {"leader": asker, "follower": asked}),),
    QuorumFetchRequest: lambda asker, asked: tuple(
        (action, {"leader": asked, "follower": asker})
        for action in ("follower_fetch", "follower_truncate", "follower_start_over")
    ),
    FetchSnapshotRequest: lambda asker, asked: (("fetch_snapshot", {"leader": asked, "follower": asker}),),
}
"""For each request, the model's steps of which it is asked whether they may be, by who asks and who is asked."""
_FETCHED: Final = (
    "follower_fetch",
    "follower_truncate",
    "truncate_batch",
    "follower_start_over",
    "lose_begin",
    "lose_tail",
    "lose_snapshot",
    "lose_log",
)
TIMED: Final[Mapping[Key, tuple[str, str]]] = {
    ELECTION: ("look_for_leader", "replica"),
    GENERATE: ("generate_snapshot", "replica"),
    ADVANCE_BEGIN: ("leader_advance_lbo", "leader"),
    CLEAN: ("delete_snapshot", "replica"),
}
"""For a timer, what a node does when it fires, and the parameter that names the node; a voter stands besides."""


def decided(body: object, asker: int, asked: int) -> tuple[ModelStep, ...]:
    """The steps of which a request asks whether they may be."""
    return _DECIDED[type(body)](asker, asked)


def steps_of(envelope: Envelope, asked: Envelope | None) -> tuple[ModelStep, ...]:
    """The steps that the arrival of a message may be; ``asked``: the request that it answers. None of a client's."""
    body: Any = envelope.body
    source, to = envelope.source, envelope.destination
    if source < 0 or to < 0:
        return ()
    if asked is None:
        match body:
            case VoteRequest():
                pair = {"candidate": source, "voter": to}
                return ("give_vote", pair), ("hear_of_candidate", pair)
            case QuorumFetchRequest():
                return (("count_fetch", {"leader": to, "follower": source}),)
            case FetchSnapshotRequest():
                return ()
            case _:
                return decided(body, source, to)
    heard: ModelStep = ("learn_leader", {"replica": to, "teller": source})
    pair = {"leader": source, "follower": to}
    match body:
        case VoteResponse():
            return heard, ("count_vote", {"candidate": to, "voter": source})
        case QuorumFetchResponse():
            return heard, *((action, pair) for action in _FETCHED)
        case FetchSnapshotResponse():
            return heard, ("fetch_snapshot", pair), ("rediscover_at", pair)
        case _:
            return (heard,)


def says_of(envelope: Envelope) -> tuple[SenderClaim, ...]:
    """What a message says of its sender: the epoch that it is in, who leads it, what it has and knows to be committed.

    An offline node says only that it is.
    """
    body: Any = envelope.body
    node = envelope.source
    error = getattr(body, "error", None)
    if node < 0 or error is ErrorCode.KAFKA_STORAGE_ERROR:
        return ()
    epoch = getattr(body, "current_leader_epoch", None)
    told = [SenderClaim((f"leader_epoch[{node}]",), body.epoch if epoch is None else epoch)]
    if error is not None:
        told.append(SenderClaim((f"leader[{node}]",), None if body.leader == NO_LEADER else body.leader))
    match body:
        case QuorumFetchRequest():
            told.append(SenderClaim((f"leo[{node}]",), body.fetch_offset))
        case QuorumFetchResponse() if body.high_watermark != NO_OFFSET:
            told.append(SenderClaim((f"hw[{node}]",), body.high_watermark))
            told.append(SenderClaim((f"lbo[{node}]",), body.log_begin_offset))
    return tuple(told)


def brings(body: object, receiver: QuorumNode | None) -> str:
    """What comes of an answer, where that is not what usually does; ``receiver``: None where it is down."""
    match body:
        case QuorumFetchResponse() if body.snapshot is not None:
            return "a snapshot"
        case QuorumFetchResponse() if body.diverging is not None:
            return "divergence"
        case QuorumFetchResponse() if body.records:
            is_later = receiver is not None and body.log_begin_offset > receiver.replica.begin
            return "an LBO" if is_later else "records"
        case FetchSnapshotResponse() if body.error is ErrorCode.NONE:
            return "bytes" if body.continues else "the last bytes"
        case FetchSnapshotResponse():
            return "an error"
    return ""
