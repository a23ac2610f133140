"""The controller's checkpoint: what it must not forget, or it would give a leader epoch twice.

Text in the form of Kafka's checkpoints: a line with the version (0), one with the number of entries, then

    controller EPOCH
    broker ID INCARNATION online|offline
    partition TOPIC PARTITION LEADER LEADER_EPOCH PARTITION_EPOCH REPLICAS ISR OFFLINE TOPIC_ID
    deleted TOPIC PARTITION TOPIC_ID REPLICAS

with lists as ``1,2,3`` and ``-`` for none (of leader and leader epoch too). A partition that was written before topics
had ids has none. ``deleted`` names the brokers that may have a replica still of a topic that is deleted.
It is written as a whole at each change, so it is for a cluster of hundreds of partitions, not of millions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar
from uuid import UUID

from ..files.interface import Files
from ..log.checkpoints import read_entries, read_number, write_entries
from ..log.directory import is_partition
from ..log.errors import CorruptCheckpoint
from ..wire.messages import NO_LEADER, NO_TOPIC_ID, TopicPartition
from .partition import PartitionState

CHECKPOINT = "controller-checkpoint"

_MAX = (1 << 31) - 1
_MEND = "put the file back from a copy; without it the controller would give leader epochs again"
_NONE = "-"
_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker's last start, and whether it is marked offline."""

    incarnation: int
    online: bool


class Deleted(NamedTuple):
    """A partition whose topic is deleted. By now there may be another one of that name."""

    partition: TopicPartition
    topic_id: UUID


@dataclass(slots=True)
class Contents:
    """Everything in the checkpoint."""

    controller_epoch: int = 0
    brokers: dict[int, Registration] = field(default_factory=dict)
    partitions: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    deleted: dict[Deleted, frozenset[int]] = field(default_factory=dict)
    """With the brokers of which it is not known that they have removed their replica."""


def write_store(files: Files, path: str, contents: Contents) -> None:
    """Write and sync the checkpoint. On ``OSError`` either the old or the new one is there."""
    write_entries(files, path, _lines(contents))


def read_store(files: Files, path: str) -> Contents:
    """The checkpoint's contents; empty where there is no file. Raises ``CorruptCheckpoint`` with the line."""
    if not files.exists(path):
        return Contents()
    contents = Contents(controller_epoch=-1)
    for line, words in read_entries(files, path, None, _MEND):
        try:
            _take(contents, words)
        except ValueError as problem:
            raise CorruptCheckpoint(f"{' '.join(words)!r:.80}: {problem}", path, line, _MEND) from None
    if contents.controller_epoch < 0:
        raise CorruptCheckpoint("no line with the controller epoch", path, 2, _MEND)
    return contents


def _lines(contents: Contents) -> Iterator[str]:
    yield f"controller {contents.controller_epoch}"
    for broker, registration in sorted(contents.brokers.items()):
        yield f"broker {broker} {registration.incarnation} {'online' if registration.online else 'offline'}"
    for (topic, partition), state in sorted(contents.partitions.items()):
        numbers = (state.leader, state.leader_epoch, state.partition_epoch)
        lists = (state.replicas, sorted(state.isr), sorted(state.offline))
        fields = (*(_NONE if n < 0 else str(n) for n in numbers), *map(_list, lists), str(state.topic_id))
        yield f"partition {topic} {partition} {' '.join(fields)}"
    for ((topic, partition), topic_id), brokers in sorted(contents.deleted.items()):
        yield f"deleted {topic} {partition} {topic_id} {_list(sorted(brokers))}"


def _list(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers)) or _NONE


def _take(contents: Contents, words: list[str]) -> None:
    """Put one entry in. Raises ``ValueError``."""
    match words:
        case ["controller", epoch] if contents.controller_epoch < 0:
            contents.controller_epoch = _number(epoch)
        case ["broker", broker, incarnation, "online" | "offline" as mark]:
            _put(contents.brokers, _number(broker), Registration(_number(incarnation), mark == "online"))
        case [
            "partition",
            topic,
            partition,
            leader,
            leader_epoch,
            partition_epoch,
            replicas,
            isr,
            offline,
            *topic_id,
        ] if len(topic_id) < 2:
            key = TopicPartition(topic, _number(partition))
            state = PartitionState(
                replicas=_brokers(replicas),
                leader=NO_LEADER if leader == _NONE else _number(leader),
                leader_epoch=-1 if leader_epoch == _NONE else _number(leader_epoch),
                isr=frozenset(_brokers(isr)),
                partition_epoch=_number(partition_epoch),
                offline=frozenset(_brokers(offline)),
                topic_id=UUID(topic_id[0]) if topic_id else NO_TOPIC_ID,
            )
            if not is_partition(*key) or not {state.leader, *state.isr, *state.offline} <= {NO_LEADER, *state.replicas}:
                raise ValueError("it names no partition, or a broker that has no replica")
            _put(contents.partitions, key, state)
        case ["deleted", topic, partition, topic_id, replicas]:
            gone = Deleted(TopicPartition(topic, _number(partition)), UUID(topic_id))
            if not is_partition(*gone.partition):
                raise ValueError("it names no partition")
            _put(contents.deleted, gone, frozenset(_brokers(replicas)))
        case _:
            raise ValueError("it is no entry of a controller's checkpoint, or the second of its kind")


def _put(entries: dict[_K, _V], key: _K, value: _V) -> None:
    if key in entries:
        raise ValueError("a line before has the same key")
    entries[key] = value


def _number(word: str) -> int:
    value = read_number(word, _MAX)
    if value < 0:
        raise ValueError(f"{word!r:.20} is no number from 0 to {_MAX}")
    return value


def _brokers(word: str) -> tuple[int, ...]:
    brokers = () if word == _NONE else tuple(map(_number, word.split(",")))
    if len(set(brokers)) < len(brokers):
        raise ValueError(f"{word!r:.40} has a broker twice")
    return brokers
