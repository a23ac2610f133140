"""The remote log manager of one broker (``RemoteLogManager`` in Kafka): which topics are tiered, over which store.

``Broker(..., remote_logs=manager)`` is all that a broker needs. Its partition of ``__remote_log_metadata`` is one like
any other; it must be a replica of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID, uuid4

from ..net.interface import Clock
from ..replica.partition import Partition
from ..wire.messages import TopicPartition
from .config import TieredTopic, TieringConfig
from .jobs import Jobs
from .metadata import METADATA, RemoteLogMetadata
from .metrics import TieringMetrics
from .remote import RemotePartition
from .store import RemoteStore

NO_TOPIC_ID = UUID(int=0)


class RemoteLogManager:
    """``topics`` are those with ``remote.storage.enable``; ``topic_ids`` tells one from another that had its name.

    ``config`` may be set at any time: ``follower.fetch.last.tiered.offset.enable`` is dynamic. ``new_id`` gives each
    copy its id, and must never give one twice.
    """

    def __init__(
        self,
        store: RemoteStore,
        jobs: Jobs,
        clock: Clock,
        topics: Mapping[str, TieredTopic],
        config: TieringConfig | None = None,
        *,
        topic_ids: Callable[[str], UUID] = lambda _: NO_TOPIC_ID,
        new_id: Callable[[], UUID] = uuid4,
    ) -> None:
        self.store = store
        self.jobs = jobs
        self.topics = dict(topics)
        self.config = config or TieringConfig()
        self.metadata = RemoteLogMetadata(self.config)
        self.metrics = TieringMetrics(clock)
        self.new_id = new_id
        self._topic_ids = topic_ids
        self.partitions: dict[TopicPartition, RemotePartition] = {}
        """Of the replicas that were opened."""

    def __call__(self, partition: Partition) -> RemotePartition | None:
        """The remote part of a replica that is opened; ``None`` where its topic is not tiered.

        Where it was once, what is left in remote storage is no part of the log any more (KIP-950, delete on disable).
        """
        if partition.key == METADATA:
            self.metadata.partition = partition
            return None
        topic = self.topics.get(partition.key.topic)
        if topic is None:
            partition.log.delete_before(partition.log.local_start)
            return None
        remote = RemotePartition(self, partition, topic, self._topic_ids(partition.key.topic))
        self.partitions[partition.key] = remote
        return remote

    def tiered(self, topic: str) -> bool:
        """Whether the topic has ``remote.storage.enable``."""
        return topic in self.topics

    def close(self) -> None:
        """The broker is gone."""
        self.jobs.close()
