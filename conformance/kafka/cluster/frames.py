"""What a proxy has to know of Kafka's wire format: where a message ends, who asks, and for what.

Kafka's protocol guide, "Protocol Primitives" and "Request and Response Headers": a message is an INT32 of its size and
so many bytes. A request begins with INT16 ``api_key``, INT16 ``api_version``, INT32 ``correlation_id`` and the
NULLABLE_STRING ``client_id``, in header versions 1 and 2 alike; a response begins with the INT32 ``correlation_id``.
Nothing else is read, and no byte is changed, so that no version of any request has to be known.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncio import StreamReader

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3
OFFSET_FOR_LEADER_EPOCH: Final = 23
ALTER_PARTITION: Final = 56
BROKER_HEARTBEAT: Final = 63

API_NAMES: Final = {
    PRODUCE: "Produce",
    FETCH: "Fetch",
    LIST_OFFSETS: "ListOffsets",
    METADATA: "Metadata",
    OFFSET_FOR_LEADER_EPOCH: "OffsetForLeaderEpoch",
    ALTER_PARTITION: "AlterPartition",
    BROKER_HEARTBEAT: "BrokerHeartbeat",
}
"""The requests that are told by name."""

_SIZE: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">hhih")
_CORRELATION: Final = struct.Struct(">i")
MAX_BYTES: Final = 100 * 1024 * 1024
"""``socket.request.max.bytes`` of a broker: nobody sends more."""


class FrameError(Exception):
    """What came is no message of Kafka's: which size or header."""


@dataclass(frozen=True)
class Header:
    """The head of a request."""

    api: int
    version: int
    correlation: int
    client: str | None

    def __str__(self) -> str:
        return f"{API_NAMES.get(self.api, f'api {self.api}')} v{self.version} of {self.client} ({self.correlation})"


async def read_frame(reader: StreamReader) -> bytes:
    """The next message, its size included. Raises FrameError for a size that no message has, and EOFError at the end.

    A connection that ends within a message has an end like any: what was cut is nobody's.
    """
    size = await reader.readexactly(_SIZE.size)
    (length,) = _SIZE.unpack(size)
    if not _CORRELATION.size <= length <= MAX_BYTES:
        raise FrameError(f"a message of {length} bytes")
    return size + await reader.readexactly(length)


def request_header(frame: bytes) -> Header:
    """The head of a request. Raises FrameError where it is cut or the client's id is no text."""
    try:
        api, version, correlation, length = _HEADER.unpack_from(frame, _SIZE.size)
    except struct.error as short:
        raise FrameError(f"a request of {len(frame)} bytes") from short
    start = _SIZE.size + _HEADER.size
    client = frame[start : start + max(length, 0)]
    if length < -1 or len(client) < length:
        raise FrameError(f"a client id of {length} bytes in a request of {len(frame)}")
    try:
        return Header(api, version, correlation, None if length == -1 else client.decode())
    except UnicodeDecodeError as garbled:
        raise FrameError(f"a client id that is no text: {client!r}") from garbled


def response_correlation(frame: bytes) -> int:
    """Which request a response answers."""
    (correlation,) = _CORRELATION.unpack_from(frame, _SIZE.size)
    return int(correlation)
