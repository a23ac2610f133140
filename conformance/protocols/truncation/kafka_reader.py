"""Apache Kafka's consumer as an endpoint of our network: its requests become ours, and our answers its bytes."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....impl.net.simulated import SimulatedNetwork
from ....impl.replica.broker import Broker
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONSUMER,
    NO_EPOCH,
    Envelope,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    Request,
    Response,
)
from ...adapters.cluster import PARTITION
from ...kafka.process import Jvm
from .system_partition import GROUP, READER, TIMEOUT_MS

_NAMES: Final = {ErrorCode.FENCED_REPLICA: "FENCED_LEADER_EPOCH"}
"""Kafka's names of errors, where they are not ours."""
_LIFE: Final = 1_000_000
"""So many requests are sent by one process at most."""


@dataclass(frozen=True, slots=True)
class Open:
    """A request that waits for its answer, by the connection on which it was sent."""

    number: int
    connection: str
    envelope: Envelope


class KafkaReader:
    """One process of a consumer. ``life``: which; ``seen``: what it shows."""

    address = READER

    def __init__(
        self, jvm: Jvm, network: SimulatedNetwork, life: int, brokers: int, first: Sequence[int], **settings: Any
    ) -> None:
        self._jvm, self._network, self._life = jvm, network, life
        self.open: dict[int, Open] = {}
        """By correlation id, in the order in which they were sent."""
        self._heard: list[Mapping[str, Any]] = []
        self.seen: Mapping[str, Any] = {}
        self.ask(
            "start",
            brokers=brokers,
            coordinator=brokers,
            first=list(first),
            timeout=TIMEOUT_MS,
            **settings,
        )

    def ask(self, do: str, **more: Any) -> Mapping[str, Any]:
        """Have it do something; what it sends is in flight from then on. Raises DriverFailedError."""
        told = self._jvm.ask(do, **more)
        self.seen = told["seen"]
        self._heard.append(told)
        for each in told["sent"]:
            correlation = self._life * _LIFE + each["id"]
            envelope = Envelope(READER, each["to"], correlation, _request(each), "User:client")
            self.open[correlation] = Open(each["id"], each["connection"], envelope)
            self._network.send(envelope)
        waits = set(self.seen["waits"])
        self.open = {correlation: each for correlation, each in self.open.items() if each.number in waits}
        return told

    def hear(self) -> Sequence[Mapping[str, Any]]:
        """What it has said since this was asked last."""
        heard, self._heard = self._heard, []
        return heard

    # -- the endpoint -----------------------------------------------------------------------------------------------

    def receive(self, envelope: Envelope) -> None:
        """An answer arrives; one that nobody waits for any more came on a connection that is gone."""
        asked = self.open.get(envelope.correlation)
        if asked is not None:
            # Where a consumer begins it looks for what is committed in ``poll`` alone.
            begins = isinstance(envelope.body, OffsetFetchResponse)
            self.ask("arrive", id=asked.number, poll=begins, **_fields(envelope.body))

    def deadline(self) -> int | None:
        """Nothing wakes it: its application polls."""
        return None

    def wake(self) -> None:
        """Nothing is due."""

    def is_next(self, correlation: int) -> bool:
        """Whether nothing that was asked on the same connection before still waits for its answer."""
        asked = self.open.get(correlation)
        if asked is None:
            return True
        return next(each for each in self.open.values() if each.connection == asked.connection) is asked


def _request(told: Mapping[str, Any]) -> Request:
    match told["kind"]:
        case "metadata":
            return MetadataRequest(PARTITION)
        case "fetch":
            offset, size, current, last = (told[name] for name in ("offset", "bytes", "current", "last"))
            return FetchRequest(CONSUMER, PARTITION, offset, size, current, last)
        case "validate":
            return OffsetsForLeaderEpochRequest(CONSUMER, PARTITION, told["current"], told["epoch"])
        case "list":
            return ListOffsetsRequest(PARTITION, told["timestamp"], told["current"])
        case "commit":
            return OffsetCommitRequest(GROUP, PARTITION, told["offset"], told["epoch"])
        case "committed":
            return OffsetFetchRequest(GROUP, PARTITION)
    raise AssertionError(f"a consumer asks {told}")


def _fields(body: Any) -> dict[str, Any]:
    """An answer as the driver has it."""
    error: ErrorCode = body.error
    fields: dict[str, Any] = {"error": _NAMES.get(error, error.name)}
    match body:
        case FetchResponse():
            records = base64.b64encode(body.records).decode()
            fields |= {"hw": body.high_watermark, "start": body.log_start_offset, "records": records}
        case MetadataResponse():
            fields |= {"leader": body.leader, "epoch": body.leader_epoch}
        case OffsetsForLeaderEpochResponse():
            fields |= {"epoch": body.leader_epoch, "offset": body.end_offset}
        case ListOffsetsResponse() | OffsetFetchResponse():
            fields |= {"epoch": body.leader_epoch, "offset": body.offset}
    return fields


class ShippedBroker(Broker):
    """A broker of ours that answers a consumer as Apache Kafka's does, where that differs.

    It compares the leader epoch that a consumer names for equality, and before it looks at its role (K1, K2); and
    OffsetForLeaderEpoch gives the epoch that ends at the offset, as it does to a replica.
    """

    def receive(self, envelope: Envelope) -> None:
        """A message has arrived."""
        answer = self._shipped(envelope.body) if envelope.source == READER else None
        if answer is None:
            super().receive(envelope)
        else:
            self._runtime.respond(envelope, answer)

    def _shipped(self, body: Any) -> Response | None:
        make = _REFUSED.get(type(body))
        partition = self.partitions.get(PARTITION)
        if make is None or partition is None or partition.failure is not None or body.partition != PARTITION:
            return None
        own = partition.state().leader_epoch
        if body.current_leader_epoch not in (NO_EPOCH, own):
            fenced = body.current_leader_epoch < own
            return make(ErrorCode.FENCED_REPLICA if fenced else ErrorCode.UNKNOWN_LEADER_EPOCH)
        if isinstance(body, OffsetsForLeaderEpochRequest) and partition.leader is not None:
            epoch, end = partition.log.end_offset_for(body.leader_epoch)
            return OffsetsForLeaderEpochResponse(ErrorCode.NONE, epoch, end, own)
        return None


_REFUSED: Final[dict[type[Any], Callable[[ErrorCode], Response]]] = {
    FetchRequest: FetchResponse,
    OffsetsForLeaderEpochRequest: OffsetsForLeaderEpochResponse,
    ListOffsetsRequest: ListOffsetsResponse,
}
