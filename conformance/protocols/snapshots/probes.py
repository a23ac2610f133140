"""What a quorum's node must refuse whatever its state is, and with which code: asked in the name of another node.

No honest node sends such requests: they say what no state of the asker stands for, so there is no step of the model to
hold the answer against. That nothing has changed by them is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ....impl.quorum.node import QuorumNode
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import NO_EPOCH
from ....impl.wire.quorum import (
    BeginQuorumEpochRequest,
    FetchSnapshotRequest,
    OffsetAndEpoch,
    QuorumFetchRequest,
    QuorumRequest,
    QuorumResponse,
    VoteRequest,
)
from ...free.events import Event, What
from .counting import CHUNK
from .quorum import PARTITION

_BEYOND: Final = 1_000
"""An offset, or a position, that there is not."""


class WrongAnswer(Exception):
    """A node has answered what it must refuse otherwise than with the protocol's code."""


def probes(number: int, node: QuorumNode, voters: Sequence[int]) -> Iterator[Event]:
    """What may be asked of a node now."""
    if node.epoch >= 0:
        for name in ("old-fetch", "new-fetch", "old-fetch-snapshot"):
            yield Event(What.PROBE, name, number)
        if number in voters and len(voters) > 1 and node.epoch > 0:
            yield Event(What.PROBE, "old-vote", number)
            yield Event(What.PROBE, "old-leader", number)
        if node.is_leader:
            yield Event(What.PROBE, "no-snapshot", number)
            if node.replica.snapshots.latest is not None:
                yield Event(What.PROBE, "beyond-snapshot", number)


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
        case "no-snapshot":
            gone = OffsetAndEpoch(_BEYOND, epoch)
            return FetchSnapshotRequest(PARTITION, asker, epoch, gone, 0, CHUNK), ErrorCode.SNAPSHOT_NOT_FOUND
        case _:
            body = FetchSnapshotRequest(PARTITION, asker, epoch, named, _BEYOND * CHUNK, CHUNK)
            return body, ErrorCode.POSITION_OUT_OF_RANGE
