"""Which of two records of one key stays (KIP-280): the strategies ``offset``, ``timestamp`` and ``header``.

Every strategy puts the records of a key in a total order by ``(rank, offset)``, and the last in it is the winner. The
rank is nothing, the timestamp, or the header's number. So equal ranks leave it to the higher offset; and a record with
no header, whose rank is below every number, loses to any that has it, and is compared by offset with those that lack
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..log.records import Headers

ABSENT = -(1 << 63) - 1
"""The rank of a record without the header: below every int64."""
NO_RANK = 0
"""Every record's rank under ``offset``."""
HEADER_BYTES = 8

Order = tuple[int, int]
"""Rank and offset."""


class Kind(Enum):
    """The values of ``compaction.strategy``."""

    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    HEADER = "header"


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy. ``header`` names the header that ``HEADER`` goes by. Raises ``ValueError`` where there is no name."""

    kind: Kind = Kind.OFFSET
    header: str = ""

    def __post_init__(self) -> None:
        if self.kind is Kind.HEADER and not self.header:
            raise ValueError("the strategy header needs the name of a header")

    @property
    def ranked(self) -> bool:
        """Whether records are compared by more than their offsets."""
        return self.kind is not Kind.OFFSET

    def rank(self, timestamp: int, headers: Headers) -> int:
        """The rank of a record with this timestamp, in milliseconds, and these headers, in their order."""
        if self.kind is Kind.OFFSET:
            return NO_RANK
        return timestamp if self.kind is Kind.TIMESTAMP else header_rank(last_value(headers, self.header))


def last_value(headers: Headers, name: str) -> bytes | None:
    """The value of the last header of this name; ``None`` where there is none, or it is null."""
    return next((value for key, value in reversed(headers) if key == name), None)


def header_rank(value: bytes | None) -> int:
    """The int64, big-endian as ``LongSerializer`` writes it; ``ABSENT`` for a value that is not of 8 bytes.

    The producer's edge refuses such a value (``edge.py``). One that is in the log all the same, from before the
    strategy was set, must not stop the cleaner: it counts as no header at all.
    """
    if value is None or len(value) != HEADER_BYTES:
        return ABSENT
    return int.from_bytes(value, "big", signed=True)
