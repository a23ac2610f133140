"""What a quorum's node must refuse whatever its state is, and with which code: asked in the name of another node.

No honest node sends such requests: they say what no state of the asker stands for, so there is no step of the model to
hold the answer against. That nothing has changed by them is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ....impl.quorum.node import QuorumNode
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import NO_EPOCH, NO_LEADER, TopicPartition
from ....impl.wire.quorum import (
    BeginQuorumEpochRequest,
    DeleteRecordsRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    OffsetAndEpoch,
    QuorumFetchRequest,
    QuorumRequest,
    QuorumResponse,
    VoteRequest,
)
from ...lockstep.adapter import Contradiction
from ...simulation.events import Event, EventKind
from .counting import CHUNK
from .quorum import PARTITION

_BEYOND: Final = 1_000
"""An offset, or a position, that there is not."""
_NOBODY: Final = 90
"""The number of a node that there is not."""


class WrongAnswer(Contradiction):
    """A node has answered what it must refuse otherwise than with the protocol's code."""


def probes(number: int, node: QuorumNode, voters: Sequence[int]) -> Iterator[Event]:
    """What may be asked of a node now."""
    if node.epoch >= 0:
        names = ["old-fetch", "new-fetch", "old-fetch-snapshot", "own-fetch", "fetch-elsewhere", "stranger"]
        if number in voters and len(voters) > 1:
            names.append("vote-from-the-future")
            if node.epoch > 0:
                names += ["old-vote", "old-leader", "old-end"]
            if node.leader_id != NO_LEADER and _others(node, voters):
                names += ["other-leader", "other-end"]
        if node.is_leader:
            names += ["no-snapshot", "fetch-before-all"]
            if node.replica.snapshots.latest is not None:
                names += ["beyond-snapshot", "before-snapshot", "gone-snapshot"]
        else:
            names.append("delete-records-of-follower")
        for name in names:
            yield Event(EventKind.PROBE, name, number)


def probe(
    event: Event, node: QuorumNode, voters: Sequence[int], ask: Callable[[QuorumRequest], QuorumResponse]
) -> None:
    """Ask one of them. Raises ``WrongAnswer``."""
    body, wanted = _request(event.name, node, voters)
    # Who leads nothing may say that first.
    led = node.is_leader or not isinstance(body, QuorumFetchRequest | FetchSnapshotRequest)
    answer = ask(body)
    if answer.error is not wanted and (led or answer.error is not ErrorCode.NOT_LEADER_OR_FOLLOWER):
        raise WrongAnswer(f"{event.name}: answered {answer.error.name}, and not {wanted.name}")


def _request(name: str, node: QuorumNode, voters: Sequence[int]) -> tuple[QuorumRequest, ErrorCode]:
    epoch, replica = node.epoch, node.replica
    asker = next((each for each in voters if each != node.address), node.address + 1)
    fetched = replica.end, replica.last_epoch, 1, False
    latest = replica.snapshots.latest
    named = OffsetAndEpoch(_BEYOND, epoch) if latest is None else latest.in_messages
    match name:
        case "old-fetch":
            return QuorumFetchRequest(PARTITION, asker, epoch - 1, *fetched), ErrorCode.FENCED_REPLICA
        case "new-fetch":
            return QuorumFetchRequest(PARTITION, asker, epoch + 1, *fetched), ErrorCode.UNKNOWN_LEADER_EPOCH
        case "old-fetch-snapshot":
            return FetchSnapshotRequest(PARTITION, asker, epoch - 1, named, 0, CHUNK), ErrorCode.FENCED_REPLICA
        case "old-vote":
            return VoteRequest(PARTITION, epoch - 1, asker, NO_EPOCH, -1), ErrorCode.FENCED_REPLICA
        case "old-leader":
            return BeginQuorumEpochRequest(PARTITION, epoch - 1, asker), ErrorCode.FENCED_REPLICA
        case "old-end":
            return EndQuorumEpochRequest(PARTITION, epoch - 1, asker, ()), ErrorCode.FENCED_REPLICA
        case "other-leader":
            return BeginQuorumEpochRequest(PARTITION, epoch, _others(node, voters)[0]), ErrorCode.INVALID_REQUEST
        case "other-end":
            return EndQuorumEpochRequest(PARTITION, epoch, _others(node, voters)[0], ()), ErrorCode.INVALID_REQUEST
        case "vote-from-the-future":
            return VoteRequest(PARTITION, epoch, asker, epoch, replica.end), ErrorCode.INVALID_REQUEST
        case "stranger":
            return VoteRequest(PARTITION, epoch + 1, _NOBODY, NO_EPOCH, -1), ErrorCode.INCONSISTENT_VOTER_SET
        case "own-fetch":
            return QuorumFetchRequest(PARTITION, node.address, epoch, *fetched), ErrorCode.INVALID_REQUEST
        case "fetch-elsewhere":
            elsewhere = TopicPartition(PARTITION.topic, PARTITION.partition + 1)
            return QuorumFetchRequest(elsewhere, asker, epoch, *fetched), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        case "fetch-before-all":
            early = QuorumFetchRequest(PARTITION, asker, epoch, -1, NO_EPOCH, 1, False)
            return early, ErrorCode.INVALID_REQUEST
        case "delete-records-of-follower":
            return DeleteRecordsRequest(PARTITION, -1), ErrorCode.NOT_LEADER_OR_FOLLOWER
        case "gone-snapshot":
            return FetchSnapshotRequest(PARTITION, asker, epoch, _gone(node), 0, CHUNK), ErrorCode.SNAPSHOT_NOT_FOUND
        case "before-snapshot":
            return FetchSnapshotRequest(PARTITION, asker, epoch, named, -1, CHUNK), ErrorCode.POSITION_OUT_OF_RANGE
        case "no-snapshot":
            gone = OffsetAndEpoch(_BEYOND, epoch)
            return FetchSnapshotRequest(PARTITION, asker, epoch, gone, 0, CHUNK), ErrorCode.SNAPSHOT_NOT_FOUND
        case _:
            body = FetchSnapshotRequest(PARTITION, asker, epoch, named, _BEYOND * CHUNK, CHUNK)
            return body, ErrorCode.POSITION_OUT_OF_RANGE


def _others(node: QuorumNode, voters: Sequence[int]) -> list[int]:
    """The voters that neither are asked nor lead."""
    return [each for each in voters if each not in (node.address, node.leader_id)]


def _gone(node: QuorumNode) -> OffsetAndEpoch:
    """The id of no snapshot, which is not above the latest: one that was deleted, or never was."""
    ids = [each.in_messages for each in node.replica.snapshots.ids]
    below = (OffsetAndEpoch(offset, each.epoch) for each in ids for offset in range(each.offset))
    return next((each for each in below if each not in ids), OffsetAndEpoch(ids[-1].offset, node.epoch + 1))


def check_again(answer: QuorumResponse, lbo: int, covered: int) -> None:
    """Who is told to ask again for an LBO may be served then: some snapshot reaches it. Raises WrongAnswer.

    ``covered``: where the leader's latest snapshot ends. Replicas that lag catch up by themselves; that an offset is
    beyond every snapshot its asker has to be told.
    """
    if answer.error is ErrorCode.REQUEST_TIMED_OUT and lbo > covered:
        raise WrongAnswer(
            f"who wants the log to begin at {lbo} is to ask again, and no snapshot reaches beyond {covered}"
        )
