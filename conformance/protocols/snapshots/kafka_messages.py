"""What Apache Kafka's quorum nodes say to each other: the model's steps of each message, and what it says of a node.

Bodies are as the driver tells them; a leader epoch there is one more than the model's, as Kafka's first is 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....traces.format import Value
from ...lockstep.adapter import ModelStep
from ...simulation.system import SenderClaim


@dataclass(frozen=True)
class Message:
    """A message; ``number`` is that of its bytes at the driver, ``told`` what they say."""

    number: int
    told: Mapping[str, Any]


class Fetch(Message):
    """A follower fetches; so does who looks for a leader."""


class Vote(Message):
    """A candidate asks for a vote."""


class PreVote(Message):
    """Somebody asks whether it would get a vote (KIP-996)."""


class BeginQuorumEpoch(Message):
    """A leader says that it leads."""


class EndQuorumEpoch(Message):
    """A leader has resigned."""


class FetchSnapshot(Message):
    """A follower fetches bytes of a snapshot."""


class UpdateRaftVoter(Message):
    """A voter tells its leader where it is, and what it supports."""


class FetchAnswer(Message):
    """The answer to a fetch."""


class VoteAnswer(Message):
    """The answer to a candidate."""


class PreVoteAnswer(Message):
    """The answer to who is none yet."""


class BeginQuorumEpochAnswer(Message):
    """The answer to a leader."""


class EndQuorumEpochAnswer(Message):
    """The answer to who has led."""


class FetchSnapshotAnswer(Message):
    """Bytes of a snapshot."""


class UpdateRaftVoterAnswer(Message):
    """The answer to a voter."""


_REQUESTS: Final[Mapping[str, type[Message]]] = {
    "FETCH": Fetch,
    "VOTE": Vote,
    "BEGIN_QUORUM_EPOCH": BeginQuorumEpoch,
    "END_QUORUM_EPOCH": EndQuorumEpoch,
    "FETCH_SNAPSHOT": FetchSnapshot,
    "UPDATE_RAFT_VOTER": UpdateRaftVoter,
}
_ANSWERS: Final[Mapping[type[Message], type[Message]]] = {
    Fetch: FetchAnswer,
    Vote: VoteAnswer,
    PreVote: PreVoteAnswer,
    BeginQuorumEpoch: BeginQuorumEpochAnswer,
    EndQuorumEpoch: EndQuorumEpochAnswer,
    FetchSnapshot: FetchSnapshotAnswer,
    UpdateRaftVoter: UpdateRaftVoterAnswer,
}
_CODES: Final = {
    "NONE": None,
    "FENCED_LEADER_EPOCH": "FENCED_REPLICA",
    "UNKNOWN_LEADER_EPOCH": "UNKNOWN_LEADER_EPOCH",
    "NOT_LEADER_OR_FOLLOWER": "NOT_LEADER_OR_FOLLOWER",
    "SNAPSHOT_NOT_FOUND": "SNAPSHOT_NOT_FOUND",
    "POSITION_OUT_OF_RANGE": "POSITION_OUT_OF_RANGE",
}
"""Kafka's error codes by the protocol's names; no other one is ever right."""
_FETCHED: Final = ("follower_fetch", "follower_truncate", "follower_start_over")


def request_of(told: Mapping[str, Any]) -> Message:
    """A request as it is sent."""
    kind = PreVote if told.get("pre") else _REQUESTS[told["kind"]]
    return kind(told["id"], told)


def answer_of(request: Message, told: Mapping[str, Any]) -> Message:
    """The answer to a request."""
    return _ANSWERS[type(request)](told["id"], told)


def code_of(told: Mapping[str, Any]) -> str | None:
    """The error code of an answer, by the protocol's name."""
    error: str = told["error"]
    return _CODES.get(error, error)


def decided(body: Message, asker: int, asked: int) -> Sequence[ModelStep]:
    """The steps of which a request asks whether they may be."""
    pair = {"leader": asked, "follower": asker}
    match body:
        case Vote():
            return [("give_vote", {"candidate": asker, "voter": asked})]
        case BeginQuorumEpoch():
            return [("begin_epoch", {"leader": asker, "follower": asked})]
        case EndQuorumEpoch():
            return [("end_epoch", {"leader": asker, "follower": asked})]
        case Fetch():
            return [(action, pair) for action in _FETCHED]
        case FetchSnapshot():
            return [("fetch_snapshot", pair)]
    return ()


def steps_of(body: Message, source: int, to: int) -> Sequence[ModelStep]:
    """The steps that the arrival of a message may be (half of)."""
    heard: list[ModelStep] = [
        (action, {"replica": to, "teller": source}) for action in ("learn_leader", "learn_resigned_leader")
    ]
    match body:
        case Vote() | PreVote():
            entered: ModelStep = ("hear_of_epoch", {"replica": to, "teller": source})
            return [entered, *decided(body, source, to)]
        case Fetch():
            return [("count_fetch", {"leader": to, "follower": source})]
        case BeginQuorumEpoch() | EndQuorumEpoch():
            return decided(body, source, to)
        case FetchSnapshot() | UpdateRaftVoter():
            return ()
        case VoteAnswer():
            return [*heard, ("count_vote", {"candidate": to, "voter": source})]
    pair = {"leader": source, "follower": to}
    match body:
        case FetchAnswer():
            return [*heard, *((action, pair) for action in _FETCHED)]
        case FetchSnapshotAnswer():
            return [*heard, ("fetch_snapshot", pair), ("rediscover_at", pair)]
    return heard


def says_of(body: Message, source: int, *, leads: bool) -> tuple[SenderClaim, ...]:
    """What a message says of its sender: epoch, leader, log end, high watermark and log start, where it does.

    ``leads``: whether the sender leads; who has resigned still names itself.
    """
    told = body.told
    if "epoch" not in told:
        return ()
    found = [SenderClaim((f"leader_epoch[{source}]",), told["epoch"] - 1)]
    if "leader" in told:
        leader: Value = None if told["leader"] < 0 else told["leader"]
        if leader != source or leads:
            found.append(SenderClaim((f"leader[{source}]",), leader))
    if "offset" in told:
        found.append(SenderClaim((f"leo[{source}]",), told["offset"]))
    if told.get("hw", -1) >= 0:
        found.append(SenderClaim((f"hw[{source}]",), told["hw"]))
        found.append(SenderClaim((f"lbo[{source}]",), told["begin"]))
    return tuple(found)
