"""Writes the directories of small KRaft and ZooKeeper clusters, with metadata logs as a controller writes them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any
from uuid import UUID

from .encoder import (
    CLUSTER,
    TOPIC_ID,
    Partition,
    cache_of,
    config_record,
    encode,
    log,
    metadata_partition,
    partition_record,
    register_broker,
    remove_topic,
    topic_record,
    unfence_broker,
    write_broker,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SECOND_ID = UUID("22345678-1234-4678-9234-567812345678")
METADATA = "__cluster_metadata-0"


class Controller:
    """The metadata log of a cluster, record by record; its brokers are registered and unfenced first."""

    def __init__(self, *brokers: int) -> None:
        self.values: list[bytes] = []
        self._epochs: dict[int, int] = {}
        for broker in brokers:
            self.start(broker)

    @property
    def end(self) -> int:
        """The number of records: where a broker's own copy of the log may end."""
        return len(self.values)

    def broker_epoch(self, broker: int) -> int:
        """The broker epoch of the last registration."""
        return self._epochs[broker]

    def start(self, broker: int) -> Controller:
        """The broker registers and is unfenced."""
        self.register(broker)
        self.values.append(unfence_broker(broker, self._epochs[broker]))
        return self

    def register(self, broker: int) -> Controller:
        """The broker registers, and stays fenced."""
        epoch = self.end + 1
        self._epochs[broker] = epoch
        self.values.append(register_broker(broker, epoch, incarnation=1000 + epoch))
        return self

    def stop(self, broker: int) -> Controller:
        """The controller fences the broker."""
        self.values.append(unfence_broker(broker, self._epochs[broker], fence=True))
        return self

    def topic(
        self,
        *replicas: int,
        name: str = "t",
        topic_id: UUID = TOPIC_ID,
        isr: Sequence[int] | None = None,
        **config: str,
    ) -> Controller:
        """The controller creates a topic of one partition, whose first ISR member leads."""
        members = list(replicas if isr is None else isr)
        self.values.append(topic_record(name, topic_id))
        self.values += [config_record(name, key.replace("_", "."), value) for key, value in config.items()]
        self.values.append(partition_record(replicas, members, members[0], topic_id=topic_id))
        return self

    def remove(self, topic_id: UUID = TOPIC_ID) -> Controller:
        """The controller removes a topic."""
        self.values.append(remove_topic(topic_id))
        return self

    def configure(self, name: str, value: str | None, topic: str = "t") -> Controller:
        """The controller changes a configuration of a topic."""
        self.values.append(config_record(topic, name, value))
        return self

    def change(self, topic_id: UUID = TOPIC_ID, **fields: Any) -> Controller:
        """The controller changes partition 0; fields by the names of PartitionChangeRecord."""
        version = 2 if {"EligibleLeaderReplicas", "LastKnownElr"} & fields.keys() else 0
        self.values.append(encode("PartitionChangeRecord", version, PartitionId=0, TopicId=topic_id, **fields))
        return self

    def elect_uncleanly(self, old: int, new: int) -> Controller:
        """The leader and only ISR member goes, and a broker outside the ISR is elected."""
        self.change(Leader=-1).stop(old).start(new)
        return self.change(Leader=new, Isr=[new], LeaderRecoveryState=1).change(LeaderRecoveryState=0)


def records(*runs: tuple[int, int], hw: int | None = None, start: int = 0, tag: str = "r", **files: Any) -> Partition:
    """A log of runs of records ``(leader epoch, count)``; ``files`` are other fields of ``Partition``."""
    epochs = [epoch for epoch, count in runs for _ in range(count)]
    end = start + len(epochs)
    fields = {"cache": cache_of(epochs, start), "high_watermark": end if hw is None else hw} | files
    return Partition({start: log(*epochs, start=start, tag=tag)}, **fields)


def empty_log(start: int = 0, cache: Sequence[tuple[int, int]] = (), **files: Any) -> Partition:
    """A log without a record whose next offset is ``start``."""
    return Partition({start: b""}, list(cache), start, **files)


def write_cluster(
    root: Path,
    replicas: Mapping[int, Partition | Mapping[str, Partition] | None],
    controller: Controller | None = None,
    *,
    ends: Mapping[int, int] | None = None,
    clean: Sequence[int] = (),
    cluster_id: str | None = CLUSTER,
) -> list[Path]:
    """Write one directory for each broker, and one for the controller of a KRaft cluster.

    Args:
        root: The folder of the directories.
        replicas: By broker, its replica of t-0, its replicas by folder, or None for no folder.
        controller: The metadata log; without one, a ZooKeeper cluster without topic ids.
        ends: By broker, how many records its own copy of the metadata log has; all by default.
        clean: The brokers that were shut down cleanly.
        cluster_id: The cluster id in ``meta.properties``; None for a release before 2.4.
    """
    found = []
    for broker, held in replicas.items():
        folders = {} if held is None else {"t-0": held} if isinstance(held, Partition) else dict(held)
        if controller is None:
            for files in folders.values():
                files.topic_id = None
        else:
            folders[METADATA] = metadata_partition(controller.values[: (ends or {}).get(broker, controller.end)])
        found.append(
            write_broker(
                root / f"broker-{broker}",
                broker,
                folders,
                clean=broker in clean,
                clean_epoch=-1 if controller is None else controller.broker_epoch(broker),
                directory=None if controller is None else _directory_id(broker),
            )
        )
        if controller is None:
            lines = ["version=0", f"broker.id={broker}", *([f"cluster.id={cluster_id}"] if cluster_id else [])]
            (found[-1] / "meta.properties").write_text("".join(f"{line}\n" for line in ["#", *lines]))
    if controller is not None:
        log_of_all = {METADATA: metadata_partition(controller.values)}
        found.append(write_broker(root / "controller-100", 100, log_of_all, directory=_directory_id(100)))
    return found


def _directory_id(broker: int) -> str:
    return base64.urlsafe_b64encode(UUID(int=1 << 64 | broker).bytes).decode().rstrip("=")
