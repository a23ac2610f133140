"""What somebody may ask brokers and controller besides what brings the partition on: most of it must be refused.

A fetch in the name of a replica says what the replica has, so none is sent that could ever be believed: a stale leader
epoch stays stale, and one beyond the model's largest is never reached. What changes nothing may ask anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from ....impl.log.batch import HEADER, HEADER_BYTES, assemble, encode_batch
from ....impl.log.legacy import encode_message
from ....impl.log.records import Record, StoredRecord
from ....impl.replica.partition import PartitionState
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONSUMER,
    CONTROLLER,
    EARLIEST,
    LATEST,
    NO_EPOCH,
    AlterIsrRequest,
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    TopicPartition,
)
from ....impl.zk_controller import PartitionState as Quorum
from ...simulation.events import Argument, Event, EventKind

_BEYOND: Final = 1 << 20
"""A leader epoch that no leader is ever in."""
_EPOCHS_BACK: Final = 3


_ASKED: Final = frozenset({"metadata", "list-offsets", "epoch-end", "position"})
"""What consumers ask for in earnest."""


@lru_cache(1 << 14)
def _probe(name: str, **args: Argument) -> Event:
    asked = name in _ASKED and args.get("replica", CONSUMER) == CONSUMER
    return Event(EventKind.CALL if asked else EventKind.PROBE, name, args=tuple(sorted(args.items())))


def is_probe(event: Event) -> bool:
    """Whether it is one of these."""
    return event.what is EventKind.PROBE or event.name in _ASKED


def broker_probes(node: int, state: PartitionState, others: list[int]) -> Iterator[Event]:
    """What may be asked of a broker next."""
    epoch = state.leader_epoch
    yield _probe("metadata", to=node)
    yield _probe("list-offsets", to=node, timestamp=LATEST, epoch=NO_EPOCH)
    if state.leader != node:
        return
    yield _probe("list-offsets", to=node, timestamp=EARLIEST, epoch=epoch)
    yield _probe("list-offsets", to=node, timestamp=LATEST, epoch=epoch + 1)
    yield _probe("list-offsets", to=node, timestamp=10 * (state.end // 2), epoch=epoch - 1)
    for asked in range(max(0, epoch - _EPOCHS_BACK), epoch + 2):
        yield _probe("epoch-end", to=node, replica=CONSUMER, epoch=NO_EPOCH, asked=asked)
        # Below, at and beyond the end: of two reasons to refuse a position the one that says more is to be told.
        for offset in dict.fromkeys((state.high_watermark, state.end, state.end + 1)):
            yield _probe("position", to=node, offset=offset, epoch=NO_EPOCH, last=asked)
    yield _probe("position", to=node, offset=state.end + 1, epoch=epoch, last=NO_EPOCH)
    for kinds in _MALFORMED:
        yield _probe("produce", to=node, wrong=kinds[(state.end + epoch) % len(kinds)])
    for replica in others:
        yield _probe("epoch-end", to=node, replica=replica, epoch=epoch, asked=max(0, epoch - 1))
        yield _probe("epoch-end", to=node, replica=replica, epoch=_BEYOND, asked=epoch)
        yield _probe("fetch", to=node, replica=replica, offset=state.end, epoch=_BEYOND)
        if epoch > 0:
            yield _probe("epoch-end", to=node, replica=replica, epoch=epoch - 1, asked=epoch - 1)
            yield _probe("fetch", to=node, replica=replica, offset=state.end, epoch=epoch - 1)


def controller_probes(quorum: Quorum) -> Iterator[Event]:
    """AlterIsr requests that no controller may take up, now or later."""
    if quorum.leader_epoch < 0:
        return
    leader, version = max(quorum.leader, 0), quorum.partition_epoch
    wrong: dict[str, Argument] = {
        "epoch": quorum.leader_epoch,
        "version": version,
        "broker": leader,
        "leaves": leader,
        "who": "broker",
    }
    yield _probe("alter-isr", **{**wrong, "epoch": _BEYOND})
    if quorum.leader_epoch > 0:
        yield _probe("alter-isr", **{**wrong, "epoch": quorum.leader_epoch - 1})
    for replica in quorum.replicas:
        yield _probe("alter-isr", **{**wrong, "version": version - 1, "leaves": replica})
    yield _probe("alter-isr", **{**wrong, "who": "client"})
    # In the present version too, the leader does not leave the ISR.
    yield _probe("alter-isr", **wrong)


def body_of(event: Event, partition: TopicPartition, replicas: int) -> tuple[int, Any, bool]:
    """Whom a probe asks, what, and whether as a broker would."""

    def arg(name: str) -> int:
        return int(event.arg(name))

    match event.name:
        case "metadata":
            return arg("to"), MetadataRequest(partition), False
        case "list-offsets":
            return arg("to"), ListOffsetsRequest(partition, arg("timestamp"), arg("epoch")), False
        case "epoch-end":
            ask = OffsetsForLeaderEpochRequest(arg("replica"), partition, arg("epoch"), arg("asked"))
            return arg("to"), ask, arg("replica") != CONSUMER
        case "position":
            position = FetchRequest(CONSUMER, partition, arg("offset"), 1 << 20, arg("epoch"), arg("last"))
            return arg("to"), position, False
        case "fetch":
            return arg("to"), FetchRequest(arg("replica"), partition, arg("offset"), 1 << 20, arg("epoch")), True
        case "produce":
            return arg("to"), _malformed(str(event.arg("wrong")), partition), False
    everybody = frozenset(range(replicas))
    isr = everybody - {arg("leaves")}
    ask_isr = AlterIsrRequest(arg("broker"), partition, arg("epoch"), isr, arg("version"))
    return CONTROLLER, ask_isr, event.arg("who") == "broker"


def _malformed(wrong: str, partition: TopicPartition) -> ProduceRequest:
    good = _batch()
    match wrong:
        case "crc":
            return ProduceRequest(partition, -1, good[:-2] + bytes((good[-2] ^ 1,)) + good[-1:])
        case "acks":
            return ProduceRequest(partition, 7, good)
        case "empty":
            return ProduceRequest(partition, 1, b"")
    return ProduceRequest(partition, 1, _INVALID[wrong])


def _batch(**more: Any) -> bytes:
    numbered = {"producer_id": _BEYOND, "producer_epoch": 0, "base_sequence": 0}
    return encode_batch([Record(b"malformed", timestamp=0)], **{**numbered, **more})


def _counted_wrong() -> bytes:
    """A batch that says it has more records than it has."""
    data = _batch(producer_id=-1, producer_epoch=-1, base_sequence=-1)
    attributes, _, *others = HEADER.unpack_from(data)[5:]
    return assemble(0, NO_EPOCH, (attributes, 3, *others), data[HEADER_BYTES:])


_MALFORMED: Final = (("crc", "control", "twice"), ("acks", "old", "counted wrong"), ("empty", "half numbered", "below"))
"""What a producer may get wrong: of each of these one at a time."""
_INVALID: Final[Mapping[str, bytes]] = {
    "control": _batch(control=True),
    "twice": _batch() + _batch(base_sequence=1),
    "old": encode_message(StoredRecord(0, -1, b"malformed", None, 0, ()), 1, 0),
    "counted wrong": _counted_wrong(),
    "half numbered": _batch(producer_epoch=-1),
    "below": _batch(producer_id=-2),
}
"""What is no batch of a producer's though its CRC is right: brokers take one numbered batch of magic 2 at a time, whose
records count from 0, and make the markers of transactions themselves (``LogValidator``, INVALID_RECORD)."""


def refused_produce(request: ProduceRequest) -> ErrorCode:
    """How a leader refuses one that no producer has made."""
    if request.acks not in (-1, 0, 1):
        return ErrorCode.INVALID_REQUIRED_ACKS
    if request.records in _INVALID.values():
        return ErrorCode.INVALID_RECORD
    return ErrorCode.CORRUPT_MESSAGE if request.records else ErrorCode.INVALID_REQUEST
