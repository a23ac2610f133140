"""Remote storage on real brokers: how they are set up, a topic that keeps all for ever, and what came of its records.

The store is a folder, by the driver's own ``RemoteStore.java`` as a plugin of the brokers; the remote log metadata are
Kafka's topic.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ....traces.kafka.cluster import wait_until
from ..jars import RELEASE, TIERED, classes
from .clients import ClientError, Polled
from .stage import stored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .stage import Stage

_STORE: Final = "store"
_PAUSE: Final = 0.3
"""A segment is full after 100 ms, and a record comes so many seconds after the one before."""
_SETTLED: Final = 8.0
"""In so many seconds a leader's tasks, which run twice a second, have done what they are about to do."""
_STILL: Final = 3.0
"""And have done all of it where nothing has changed for so long."""
TOPIC: Final[Mapping[str, str]] = {
    "remote.storage.enable": "true",
    "segment.ms": "100",
    "retention.bytes": "-1",
    "local.retention.bytes": "1",
}
"""All is kept for ever, and on disks only what is not in remote storage yet."""


def settings(release: str = RELEASE) -> dict[str, object]:
    """What all nodes are told where there is remote storage, a folder of a stage's. Raises BadInput as ``classes``."""
    ours = classes(release, drives=TIERED).classpath.split(os.pathsep)[0]
    return {
        "remote.log.storage.system.enable": True,
        "remote.log.storage.manager.class.name": "fencepost.kafka.RemoteStore",
        "remote.log.storage.manager.class.path": f"{ours}/",
        "rsm.config.folder": f"{{home}}/{_STORE}",
        "remote.log.metadata.manager.listener.name": "BROKER",
        "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
        "rlmm.config.remote.log.metadata.topic.replication.factor": 3,
        "remote.log.manager.task.interval.ms": 500,
        "replica.fetch.backoff.ms": 500,
    }


@dataclass
class Deleted:
    """What came of the records of a topic that keeps all for ever."""

    acknowledged: dict[str, int] = field(default_factory=dict)
    """By record, the offset that its producer was told."""
    uploaded: int = 0
    """So many segments were in remote storage before the last election."""
    remain: int = 0
    """And so many after it."""
    read: list[Polled] = field(default_factory=list)
    """What a consumer reads from the beginning, in the end."""
    thrown: str | None = None
    """What it throws then, where it is not told of all."""
    kept: set[str] = field(default_factory=set)
    """The records that are on some broker's disk in the end, or in remote storage."""

    @property
    def gone(self) -> list[str]:
        """The records that the producer was told to be committed, and that are nowhere any more."""
        return sorted(self.acknowledged.keys() - self.kept)

    @property
    def lost(self) -> bool:
        """Whether there is one."""
        return bool(self.gone)

    def words(self) -> str:
        """The same in a sentence."""
        if self.lost:
            return f"{', '.join(self.gone)} were acknowledged, and are in no broker's log, and not in remote storage"
        return f"all {len(self.acknowledged)} records that were acknowledged are there"


class Store:
    """The folder that is remote storage."""

    def __init__(self, stage: Stage, topic: str) -> None:
        self._folder = stage.home / _STORE
        self._copies = self._folder / f"{topic}-0"

    def fails(self, broker: int, *, on: bool) -> None:
        """It fails at a broker from now on, or does not any more."""
        self._folder.mkdir(exist_ok=True)
        flag = self._folder / f"fails-at-{broker}"
        if on:
            flag.touch()
        else:
            flag.unlink()

    @property
    def segments(self) -> int:
        """So many are in it, with all that belongs to them."""
        return sum(1 for each in self._copies.glob("*/LEADER_EPOCH") if (each.parent / "log").exists())

    def values(self) -> set[str]:
        """The records in it."""
        return {each.value for log in sorted(self._copies.glob("*/log")) for each in stored(log)}


def write(stage: Stage, topic: str, leader: int, values: Sequence[str], found: Deleted) -> None:
    """Records with acks=all, each in a segment of its own."""
    with stage.clients.lone_producer(stage.cluster.address(leader), "producer") as producer:
        for value in values:
            time.sleep(_PAUSE)
            found.acknowledged[value] = producer.send(topic, value).offset()


def wait_uploaded(stage: Stage, topic: str, store: Store, segments: int, last: str, brokers: Sequence[int]) -> None:
    """Until so many segments are in remote storage, and these brokers have the last record alone on disk."""
    wait_until(f"{segments} segments of {topic} in remote storage", lambda: store.segments == segments)
    stage.wait_logs(topic, {broker: [last] for broker in brokers})


def wait_fails(stage: Stage, broker: int) -> None:
    """Until a broker prints that the store fails, once more than up to now."""
    words = "the store fails"
    log = stage.cluster.nodes[broker].log
    before = log.read_text(errors="replace").count(words)
    wait_until(f"broker {broker} to print {words!r}", lambda: log.read_text(errors="replace").count(words) > before)


def wait_in_isr(stage: Stage, topic: str, broker: int) -> None:
    """Until the controller has a broker in the ISR."""

    def there() -> bool:
        state = stage.decided(topic)
        return state is not None and broker in state.isr

    wait_until(f"broker {broker} to be in the ISR of {topic}", there)


def left(stage: Stage, topic: str, store: Store, found: Deleted) -> None:
    """What is there in the end."""
    found.remain = store.segments
    found.kept = store.values() | {each.value for log in stage.logs(topic).values() for each in log}


def settled(store: Store, uploaded: int) -> None:
    """Until a leader's tasks have deleted something and go on no more, or have had the time to."""
    deadline = time.monotonic() + _SETTLED
    seen, since = store.segments, time.monotonic()
    while time.monotonic() < deadline:
        time.sleep(0.1)
        if store.segments != seen:
            seen, since = store.segments, time.monotonic()
        if seen < uploaded and time.monotonic() - since > _STILL:
            return


def read_all(stage: Stage, topic: str, leader: int, found: Deleted) -> str:
    """What a consumer reads from the beginning within ten seconds, or until it throws or has all; in words."""
    deadline = time.monotonic() + 10
    with stage.clients.consumer(stage.cluster.address(leader), f"{topic}-consumer", topic) as consumer:
        while len(found.read) < len(found.acknowledged) and time.monotonic() < deadline:
            try:
                found.read += consumer.poll(1)
            except ClientError as error:
                found.thrown = error.name
                break
    read = ", ".join(each.value for each in found.read) or "nothing"
    return f"a consumer reads from the beginning: {read}" + (f", and throws {found.thrown}" if found.thrown else "")
