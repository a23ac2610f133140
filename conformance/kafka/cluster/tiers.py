"""Remote storage on real brokers: their settings, a topic that keeps all for ever, and the folder that is the store.

The store is a folder, by the driver's own ``RemoteStore.java`` as a plugin of the brokers; the remote log metadata are
Kafka's topic.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from ....traces.kafka.cluster import wait_until
from ..jars import RELEASE, TIERED, classes
from .stage import stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .stage import Stage

_STORE: Final = "store"
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


class Store:
    """The folder that is remote storage."""

    def __init__(self, stage: Stage, topic: str) -> None:
        self._nodes = stage.cluster.nodes
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

    def wait_failed(self, broker: int) -> None:
        """Wait until a broker prints that the store fails, once more than up to now."""
        words = "the store fails"
        log = self._nodes[broker].log
        before = log.read_text(errors="replace").count(words)
        wait_until(f"broker {broker} to print {words!r}", lambda: log.read_text(errors="replace").count(words) > before)

    def wait_settled(self, count: int) -> None:
        """Wait until a leader's tasks have deleted some of `count` segments and go on no more, or had the time to."""
        deadline = time.monotonic() + _SETTLED
        seen, since = self.segments, time.monotonic()
        while time.monotonic() < deadline:
            time.sleep(0.1)
            if self.segments != seen:
                seen, since = self.segments, time.monotonic()
            if seen < count and time.monotonic() - since > _STILL:
                return
