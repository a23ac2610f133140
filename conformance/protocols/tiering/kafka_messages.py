"""What followers of tiered brokers of Apache Kafka ask for besides records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ....impl.wire.messages import EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD

TELLS: Final = {EARLIEST: "start", EARLIEST_LOCAL: "local", EARLIEST_PENDING_UPLOAD: "epuo"}
"""By timestamp of ListOffsets: what the answer tells a follower."""


@dataclass(frozen=True)
class ListOffsets:
    """A follower asks for an offset; ``number`` is that of its bytes at the driver."""

    number: int
    timestamp: int


@dataclass(frozen=True)
class ListOffsetsAnswer:
    """Its number, the error, and the offset; -1: the leader does not know."""

    number: int
    error: str
    offset: int


@dataclass(frozen=True)
class OffsetsForLeaderEpoch:
    """A follower asks where a leader epoch ends."""

    number: int
    epoch: int


@dataclass(frozen=True)
class OffsetsForLeaderEpochAnswer:
    """Its number, the error, and the end."""

    number: int
    error: str
    offset: int


def asked_by(told: Any) -> ListOffsets | OffsetsForLeaderEpoch:
    """A request that the driver tells of, ``list`` or ``epoch``."""
    if told["kind"] == "list":
        return ListOffsets(told["id"], told["timestamp"])
    return OffsetsForLeaderEpoch(told["id"], told["of"])


def answered_with(told: Any) -> ListOffsetsAnswer | OffsetsForLeaderEpochAnswer:
    """An answer that it tells of, ``listed`` or ``ended``."""
    make = ListOffsetsAnswer if told["kind"] == "listed" else OffsetsForLeaderEpochAnswer
    return make(told["id"], told["error"], told["offset"])
