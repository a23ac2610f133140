"""What a broker makes of the image: who leads, who follows, which replicas go (``BrokerMetadataPublisher`` in Kafka).

The broker is told what the controller of ZooKeeper's time would have sent to it, in the order of the log; what was
overtaken, by later records or a snapshot, it is never told. Nothing is published before the image has the registration
of this very process: an older image, as a log that is still to be caught up with makes it, may lack topics that are
here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from ..compaction.config import CompactionConfig
from ..metadata.elections import PartitionImage
from ..metadata.image import Image, PartitionKey
from ..metadata.machine import MetadataMachine
from ..replica.broker import Broker
from ..replica.runtime import STORAGE_FAILURES
from ..wire.errors import ErrorCode
from ..wire.messages import LeaderAndIsrRequest, OfflineReplicasRequest, TopicPartition, UpdateMetadataRequest
from .configs import compacted_topics, minimums

Tell = Callable[[Any], ErrorCode]
"""Hands the broker a request of the controller's, and gives its answer."""


class Publisher:
    """Follows ``machine``, which has to track what is touched. ``incarnation`` is the broker process's."""

    def __init__(
        self,
        broker: Broker,
        machine: MetadataMachine,
        incarnation: UUID,
        *,
        tell: Tell,
        forget: Callable[[TopicPartition], None],
    ) -> None:
        """``forget`` is called with each partition that is gone."""
        self._broker = broker
        self._machine = machine
        self._incarnation = incarnation
        self._tell = tell
        self._forgotten = forget
        self._told: dict[PartitionKey, tuple[TopicPartition, PartitionImage]] = {}
        self._compacted: dict[str, CompactionConfig] = {}
        self._minimums: dict[str, int] = {}
        self._alive: frozenset[int] = frozenset()
        self.published = 0
        """The end of what was published last, 0 before the first time."""
        self.failure: str | None = None
        """Why a replica could not be made or deleted, or does not take part: the disk has failed."""

    def publish(self, end: int, epoch: int) -> bool:
        """Bring the broker to the image; gives whether that was possible. ``end`` and ``epoch`` of what it holds."""
        image, mine = self._machine.image, self._machine.image.brokers.get(self._broker.address)
        if self.published == 0 and (mine is None or mine.incarnation != self._incarnation):
            return False
        if end <= self.published:
            return False  # the log was begun anew, and is not there again yet
        touched = image.touched or set()
        image.touched = set()
        if self.published == 0:
            touched = set(image.partitions)
            self._delete_strays(image)
        self._configure(image)
        alive = frozenset(each for each in image.brokers if image.alive(each))
        touched |= self._with_replicas_among(alive ^ self._alive, image)
        self._alive = alive
        # What goes, goes first: its name may be taken again already.
        for key in sorted(touched):
            if key not in image.partitions:
                self._forget(key)
        for key in sorted(touched):
            if key in image.partitions:
                self._bring(image, key, max(epoch, 0))
        self.published = end
        return True

    def _configure(self, image: Image) -> None:
        """Tell the broker how large an ISR its topics want, and how they are compacted, before it makes their logs."""
        wanted = minimums(image, self._broker.address)
        for topic in sorted(self._minimums.keys() | wanted.keys()):
            if self._minimums.get(topic) != wanted.get(topic):
                self._broker.require_in_sync(topic, wanted.get(topic))
        self._minimums = wanted
        found = compacted_topics(image)
        try:
            for topic in sorted(self._compacted.keys() | found.keys()):
                if self._compacted.get(topic) != found.get(topic):
                    self._broker.configure(topic, found.get(topic))
        except STORAGE_FAILURES as error:
            self.failure = str(error)
        else:
            self._compacted = found

    def _with_replicas_among(self, brokers: frozenset[int], image: Image) -> set[PartitionKey]:
        """The partitions whose replicas are marked otherwise now."""
        if not brokers:
            return set()
        return {key for key, partition in image.partitions.items() if not brokers.isdisjoint(partition.replicas)}

    def _delete_strays(self, image: Image) -> None:
        """Delete what was deleted, or moved elsewhere, while this broker was away."""
        for partition, there in list(self._broker.partitions.items()):
            state = image.partitions.get(PartitionKey(there.topic_id, partition.partition))
            if state is None or self._broker.address not in state.replicas:
                self._delete(partition)

    def _forget(self, key: PartitionKey) -> None:
        told = self._told.pop(key, None)
        if told is not None:
            self._delete(told[0])

    def _delete(self, partition: TopicPartition) -> None:
        self._forgotten(partition)
        try:
            self._broker.delete(partition)
        except STORAGE_FAILURES as error:
            self.failure = str(error)

    def _bring(self, image: Image, key: PartitionKey, epoch: int) -> None:
        """Tell of one partition: everyone its metadata, its replicas their roles, its leader who is offline."""
        state = image.partitions[key]
        partition = TopicPartition(image.topics[key.topic].name, key.partition)
        offline = frozenset(each for each in state.replicas if not image.alive(each))
        isr = frozenset(state.isr)
        known = self._told.get(key)
        if self._broker.address in state.replicas and (known is None or known[1] != state):
            request = LeaderAndIsrRequest(
                epoch,
                partition,
                state.leader,
                state.leader_epoch,
                isr,
                state.replicas,
                offline,
                state.partition_epoch,
                key.topic,
            )
            self._lead_or_follow(request)
        if state.leader == self._broker.address:
            marks = epoch, partition, offline, state.leader_epoch, state.partition_epoch, key.topic
            self._tell(OfflineReplicasRequest(*marks))
        leads = state.leader, state.leader_epoch
        self._tell(UpdateMetadataRequest(epoch, partition, *leads, isr, state.replicas, offline, key.topic))
        self._told[key] = partition, state

    def _lead_or_follow(self, request: LeaderAndIsrRequest) -> None:
        partition = request.partition
        error = self._tell(request)
        if error is ErrorCode.KAFKA_STORAGE_ERROR:
            there = self._broker.partitions.get(partition)
            self.failure = f"{partition}: {there.failure if there is not None else 'its log cannot be made'}"
