"""The broker: an ``Endpoint`` that holds replicas, and answers the controller, other brokers and clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol
from uuid import UUID

from ..compaction.cleaner import Cleaned
from ..compaction.config import CompactionConfig, refuse_tiered
from ..compaction.manager import Cleanable, LogCleaner
from ..files.interface import Files
from ..log.directory import DataDirectory, is_partition
from ..net.interface import Clock, Transport
from ..wire.errors import ErrorCode
from ..wire.messages import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    NO_TOPIC_ID,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    Envelope,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OfflineReplicasRequest,
    OfflineReplicasResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
    Response,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicPartition,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from .access import denied
from .acl import AllowAll, Authorizer
from .config import BrokerConfig
from .fetch import answer_epoch_end, answer_fetch, answer_list_offsets
from .partition import Partition, PartitionState, Role
from .remote import RemoteLogs
from .runtime import STORAGE_FAILURES, Runtime
from .timers import Key
from .validate import CHECKS, is_consistent, is_response, names_partition, names_topic

CLEANER = ("log-cleaner",)
HIGH_WATERMARKS = ("high-watermarks",)
RECOVERY_POINTS = ("recovery-points",)


class OffsetHandler(Protocol):
    """The group coordinator, where this broker is one."""

    def commit(self, request: OffsetCommitRequest, principal: str) -> OffsetCommitResponse:
        """Answer; the broker has looked at types and ACLs."""

    def fetch(self, request: OffsetFetchRequest, principal: str) -> OffsetFetchResponse:
        """Answer; the broker has looked at types and ACLs."""


class Broker:
    """One broker process. To crash it, throw it away (and what its disk had not synced); to restart, make another.

    ``first_correlation`` must rise from one process of a node to the next by more than the requests that it sends, or
    a late answer to the former one may be taken for the answer to a request of this one. ``remote_logs`` gives replicas
    the remote part of their logs (``impl/tiering``); without it no topic has one.
    Opening recovers every log in the data directory. Raises ``LogError`` that names file and byte, and ``OSError``; no
    file is left open then. Raises ``InvalidConfig`` for a topic that is compacted and tiered, before it opens any.
    """

    def __init__(
        self,
        node_id: int,
        files: Files,
        transport: Transport,
        clock: Clock,
        config: BrokerConfig | None = None,
        *,
        authorizer: Authorizer | None = None,
        coordinator: OffsetHandler | None = None,
        first_correlation: int = 0,
        remote_logs: RemoteLogs | None = None,
    ) -> None:
        self.config = config or BrokerConfig()
        self.coordinator = coordinator
        for topic in self.config.compacted:
            refuse_tiered(topic, tiered=remote_logs is not None and remote_logs.tiered(topic))
        compacted = {topic: replace(self.config.log, cleanup_policy="compact") for topic in self.config.compacted}
        self.directory = DataDirectory(
            files, node_id=node_id, cluster_id=self.config.cluster_id, config=self.config.log, topics=compacted
        )
        self.cleaner: LogCleaner | None = None
        """Since any topic was compacted."""
        self._runtime = Runtime(node_id, self.config, transport, clock, self.directory, first_correlation, remote_logs)
        self._authorizer = authorizer or AllowAll()
        self.controller_epoch = -1
        """The latest controller's; an older one is refused."""
        self.metadata: dict[TopicPartition, UpdateMetadataRequest] = {}
        """What the controller said last of each partition of the cluster."""
        self.partitions: dict[TopicPartition, Partition] = {}
        try:
            for topic, number in self.directory.partitions():
                key = TopicPartition(topic, number)
                self.partitions[key] = Partition(self._runtime, key)
        except BaseException:
            self.directory.abandon()
            raise
        now = clock.now()
        self._runtime.timers.set(HIGH_WATERMARKS, now + self.config.high_watermark_interval_ms)
        self._runtime.timers.set(RECOVERY_POINTS, now + self.config.recovery_point_interval_ms)
        if compacted:
            self._start_cleaner()

    # -- the endpoint -----------------------------------------------------------------------------------------------

    @property
    def address(self) -> int:
        """The node id."""
        return self._runtime.node_id

    def deadline(self) -> int | None:
        """When the first timer runs off."""
        return self._runtime.timers.deadline()

    def wake(self) -> None:
        """Fire the timers that are due, each once."""
        for key in self._runtime.timers.due(self._runtime.clock.now()):
            self.fire(key)

    def timers(self) -> list[Key]:
        """The timers that are set, sorted."""
        return self._runtime.timers.keys()

    def fire(self, key: Key) -> None:
        """Do now what a timer is for, whether it is due or not.

        ``("fetch", partition)``: a follower sends its next request. ``("isr", partition)``: a leader looks at its ISR.
        ``("remote", partition)``: what waits for remote storage is looked at.
        ``("produce", partition)`` and ``("delete", partition)``: a leader gives up what has waited for too long.
        ``("high-watermarks",)`` and ``("recovery-points",)``: store them. ``("log-cleaner",)``: clean the log with the
        most dirt, if one is due.
        Raises ``KeyError`` for a partition that is not here.
        """
        if len(key) == 2:
            self.partitions[key[1]].fire(key[0])
        elif key == HIGH_WATERMARKS:
            self._store_high_watermarks()
        elif key == RECOVERY_POINTS:
            self._store_recovery_points()
        elif key == CLEANER and self.cleaner is not None:
            self._clean(self.cleaner)
        else:
            raise KeyError(key)

    def receive(self, envelope: Envelope) -> None:
        """A message has arrived. A malformed request gets an error, anything else that is malformed no answer."""
        body = envelope.body
        serve = _SERVES.get(type(body))
        if serve is not None:
            reply = serve[0](self, envelope, body)
            if isinstance(reply, ErrorCode):
                reply = serve[1](body, reply)
            if reply is not None:
                self._runtime.respond(envelope, reply)
        elif is_response(body):
            self._runtime.answered(envelope)

    # -- looking, opening, closing ----------------------------------------------------------------------------------

    def state(self, partition: TopicPartition) -> PartitionState:
        """What a replica goes by. Raises ``KeyError`` for a partition that is not here."""
        return self.partitions[partition].state()

    def reopen(self, partition: TopicPartition) -> None:
        """Bring back a replica that a failing disk took offline. Raises like ``DataDirectory.log``; ``KeyError``."""
        self.partitions[partition].reopen()

    def delete(self, partition: TopicPartition) -> None:
        """Give up a replica and remove its log: its topic is gone, or this broker is no replica any more.

        Nothing where there is none but that metadata of it is forgotten. Raises ``OSError`` and ``LogError``; it is
        offline then, and there still.
        """
        there = self.partitions.get(partition)
        if there is not None:
            there.stop()
            try:
                self.directory.delete(*partition)
            except STORAGE_FAILURES as failure:
                there.go_offline(str(failure))
                raise
            del self.partitions[partition]
        self.metadata.pop(partition, None)

    def close(self) -> None:
        """A clean shutdown: sync and store everything. Raises ``OSError`` and ``LogOffline``, the files closed."""
        self._store_high_watermarks()
        self.directory.close()

    def _store_high_watermarks(self) -> None:
        timers, now = self._runtime.timers, self._runtime.clock.now()
        timers.set(HIGH_WATERMARKS, now + self.config.high_watermark_interval_ms)
        online = [each for each in self.partitions.values() if each.role is not Role.OFFLINE]
        try:
            self.directory.store_high_watermarks({each.key: each.high_watermark for each in online})
        except OSError as error:
            self._storage_failed(error)
        else:
            for each in online:
                each.high_watermark_stored(each.high_watermark)

    def _store_recovery_points(self) -> None:
        timers, now = self._runtime.timers, self._runtime.clock.now()
        timers.set(RECOVERY_POINTS, now + self.config.recovery_point_interval_ms)
        try:
            self.directory.store_recovery_points()
        except OSError as error:
            self._storage_failed(error)

    def configure(self, topic: str, compaction: CompactionConfig | None) -> None:
        """Let a topic be compacted so from now on, or not any more; what is cleaned already stays as it is.

        Raises ``InvalidConfig`` for a topic that is tiered, and ``OSError`` where the cleaner's checkpoint cannot be
        written.
        """
        remote_logs = self._runtime.remote_logs
        if compaction is not None:
            refuse_tiered(topic, tiered=remote_logs is not None and remote_logs.tiered(topic))
        if compaction is None:
            self._runtime.compacted.pop(topic, None)
            self.directory.configure(topic, None)
            return
        self._runtime.compacted[topic] = compaction
        self.directory.configure(topic, replace(self.config.log, cleanup_policy="compact"))
        self._start_cleaner()

    def require_in_sync(self, topic: str, replicas: int | None) -> None:
        """Let acks=-1 take so large an ISR in a topic from now on; ``None``: as large as the broker's settings say.

        A produce that waits is held to what is so when the high watermark passes it, as in Kafka. Raises ``ValueError``
        below 1.
        """
        if replicas is None:
            self._runtime.min_insync.pop(topic, None)
            return
        if replicas < 1:
            raise ValueError(f"min.insync.replicas {replicas} is below 1")
        self._runtime.min_insync[topic] = replicas

    def _start_cleaner(self) -> None:
        runtime = self._runtime
        if self.cleaner is None:
            self.cleaner = LogCleaner(self.directory, runtime.compacted, runtime.clock.wall, self.config.cleaner)
            runtime.timers.set(CLEANER, runtime.clock.now() + self.config.cleaner.backoff_ms)

    def _clean(self, cleaner: LogCleaner) -> None:
        """Clean one log; the next one is looked for at once, and after a while where none was due."""
        # Whoever has not heard of its leader may know of a high watermark that was another's.
        roles = Role.LEADER, Role.FOLLOWER
        online = [each for each in self.partitions.values() if each.role in roles and each.log.config.compacted]
        done: Cleaned | None = None
        due: list[tuple[float, Partition, Cleanable]] = []
        for each in online:
            with each.storage():
                due += [(-found.ratio, each, found) for found in cleaner.due({each.key: each.high_watermark})]
        if due:
            _, partition, found = min(due, key=lambda one: (one[0], one[1].key))
            with partition.storage():
                done = cleaner.clean(found)
        wait = self.config.cleaner.backoff_ms if done is None else 0
        self._runtime.timers.set(CLEANER, self._runtime.clock.now() + wait)

    def _storage_failed(self, error: OSError) -> None:
        """What all partitions share cannot be written: the directory is offline, as in Kafka."""
        for each in self.partitions.values():
            each.go_offline(f"a checkpoint could not be written: {error}")

    # -- what every request goes through ----------------------------------------------------------------------------

    def _refused(self, envelope: Envelope, body: Any) -> ErrorCode:
        """Why a request is not even looked at: malformed, or not allowed."""
        if not names_partition(body.partition) or not names_topic(body):
            return ErrorCode.INVALID_REQUEST
        check = CHECKS.get(type(body))
        error = ErrorCode.NONE if check is None else check(body, self.config)
        return error if error is not ErrorCode.NONE else denied(self._authorizer, envelope.principal, body)

    def _serve(
        self, envelope: Envelope, body: Any, answer: Callable[[Partition], Response | ErrorCode | None]
    ) -> Response | ErrorCode | None:
        """The answer of the replica that the request is for, or why there is none."""
        error = self._refused(envelope, body)
        if error is not ErrorCode.NONE:
            return error
        partition = self._find(body.partition, getattr(body, "topic_id", NO_TOPIC_ID))
        if isinstance(partition, ErrorCode):
            return partition
        try:
            return answer(partition)
        except STORAGE_FAILURES as failure:
            partition.go_offline(str(failure))
            return ErrorCode.KAFKA_STORAGE_ERROR

    def _find(self, key: TopicPartition, topic_id: UUID) -> Partition | ErrorCode:
        """The replica, where it is one of this topic (``KafkaApis`` and ``ReplicaManager.fetchMessages``, KIP-516)."""
        partition, known = self.partitions.get(key), self.metadata.get(key)
        if partition is None:
            if topic_id != NO_TOPIC_ID and (known is None or not is_consistent(topic_id, known.topic_id)):
                return ErrorCode.UNKNOWN_TOPIC_ID
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known is None else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not is_consistent(topic_id, partition.topic_id):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        return partition if partition.failure is None else ErrorCode.KAFKA_STORAGE_ERROR

    # -- brokers and clients ----------------------------------------------------------------------------------------

    def _fetch(self, envelope: Envelope, body: FetchRequest) -> Response | ErrorCode | None:
        return self._serve(envelope, body, lambda partition: answer_fetch(partition, body, envelope))

    def _epoch_end(self, envelope: Envelope, body: OffsetsForLeaderEpochRequest) -> Response | ErrorCode | None:
        return self._serve(envelope, body, lambda partition: answer_epoch_end(partition, body))

    def _list_offsets(self, envelope: Envelope, body: ListOffsetsRequest) -> Response | ErrorCode | None:
        return self._serve(envelope, body, lambda partition: answer_list_offsets(partition, body, envelope))

    def _produce(self, envelope: Envelope, body: ProduceRequest) -> Response | ErrorCode | None:
        def produce(partition: Partition) -> Response | ErrorCode | None:
            leader = partition.leader
            return leader.produce(envelope, body) if leader is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER

        return self._serve(envelope, body, produce)

    def _delete_records(self, envelope: Envelope, body: DeleteRecordsRequest) -> Response | ErrorCode | None:
        def delete(partition: Partition) -> Response | ErrorCode | None:
            leader = partition.leader
            return leader.delete_records(envelope, body) if leader is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER

        return self._serve(envelope, body, delete)

    def _metadata(self, envelope: Envelope, body: MetadataRequest) -> Response | ErrorCode:
        error = self._refused(envelope, body)
        if error is not ErrorCode.NONE:
            return error
        known = self.metadata.get(body.partition)
        if known is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error = ErrorCode.LEADER_NOT_AVAILABLE if known.leader == NO_LEADER else ErrorCode.NONE
        told = known.leader, known.leader_epoch, known.isr, known.replicas, known.offline, known.topic_id
        return MetadataResponse(error, *told)

    def _offset_commit(self, envelope: Envelope, body: OffsetCommitRequest) -> Response | ErrorCode:
        error = self._refused(envelope, body)
        if error is not ErrorCode.NONE:
            return error
        here = self.coordinator
        return here.commit(body, envelope.principal) if here is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _offset_fetch(self, envelope: Envelope, body: OffsetFetchRequest) -> Response | ErrorCode:
        error = self._refused(envelope, body)
        if error is not ErrorCode.NONE:
            return error
        here = self.coordinator
        return here.fetch(body, envelope.principal) if here is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER

    # -- the controller ---------------------------------------------------------------------------------------------

    def _controller(self, envelope: Envelope, body: Any) -> ErrorCode:
        """Whether a request of the controller is to be followed: not one of an older controller."""
        error = self._refused(envelope, body)
        if error is not ErrorCode.NONE:
            return error
        if not is_partition(*body.partition):
            return ErrorCode.INVALID_REQUEST
        stale = body.controller_epoch < self.controller_epoch
        return ErrorCode.STALE_CONTROLLER_EPOCH if stale else ErrorCode.NONE

    def _leader_and_isr(self, envelope: Envelope, body: LeaderAndIsrRequest) -> Response | ErrorCode:
        error = self._controller(envelope, body)
        if error is not ErrorCode.NONE:
            return error
        if self.address not in body.replicas:
            return ErrorCode.INVALID_REQUEST
        partition = self.partitions.get(body.partition)
        try:
            if partition is None:
                partition = self.partitions[body.partition] = Partition(self._runtime, body.partition)
            if partition.failure is not None:
                return ErrorCode.KAFKA_STORAGE_ERROR
            error = partition.take_up(body)
        except STORAGE_FAILURES as failure:
            if partition is not None:
                partition.go_offline(str(failure))
            return ErrorCode.KAFKA_STORAGE_ERROR
        if error is ErrorCode.INCONSISTENT_TOPIC_ID:
            return LeaderAndIsrResponse(error, partition.topic_id)
        if error is ErrorCode.NONE:
            self.controller_epoch = body.controller_epoch
        return error

    def _stop_replica(self, envelope: Envelope, body: StopReplicaRequest) -> ErrorCode:
        error = self._controller(envelope, body)
        if error is not ErrorCode.NONE:
            return error
        partition, known = self.partitions.get(body.partition), self.metadata.get(body.partition)
        if partition is not None and not is_consistent(body.topic_id, partition.topic_id):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if partition is not None and partition.failure is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        try:
            self.delete(body.partition)
        except STORAGE_FAILURES:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if known is not None and not is_consistent(body.topic_id, known.topic_id):
            self.metadata[body.partition] = known  # it has heard of the next topic of that name
        self.controller_epoch = body.controller_epoch
        return ErrorCode.NONE

    def _offline_replicas(self, envelope: Envelope, body: OfflineReplicasRequest) -> ErrorCode:
        error = self._controller(envelope, body)
        if error is not ErrorCode.NONE:
            return error
        partition = self.partitions.get(body.partition)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not is_consistent(body.topic_id, partition.topic_id):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if body.leader_epoch > partition.leader_epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH  # the LeaderAndIsr is late, and may hold older marks
        self.controller_epoch = body.controller_epoch
        leader = partition.leader
        if leader is not None and leader.epoch == body.leader_epoch:
            leader.isr.mark(body.offline, body.partition_epoch)
        return ErrorCode.NONE

    def _update_metadata(self, envelope: Envelope, body: UpdateMetadataRequest) -> ErrorCode:
        error = self._controller(envelope, body)
        if error is not ErrorCode.NONE:
            return error
        self.controller_epoch = body.controller_epoch
        known = self.metadata.get(body.partition)
        same = known is not None and is_consistent(body.topic_id, known.topic_id)
        if body.leader == LEADER_DURING_DELETE:
            if same:
                del self.metadata[body.partition]
        elif known is None or not same or known.leader_epoch <= body.leader_epoch:  # else it was overtaken on its way
            self.metadata[body.partition] = body
        return ErrorCode.NONE


_SERVES: dict[type[Any], tuple[Callable[[Broker, Envelope, Any], Any], Callable[[Any, ErrorCode], Response]]] = {
    FetchRequest: (Broker._fetch, lambda _, error: FetchResponse(error)),
    OffsetsForLeaderEpochRequest: (Broker._epoch_end, lambda _, error: OffsetsForLeaderEpochResponse(error)),
    ListOffsetsRequest: (Broker._list_offsets, lambda _, error: ListOffsetsResponse(error)),
    ProduceRequest: (Broker._produce, lambda _, error: ProduceResponse(error)),
    DeleteRecordsRequest: (Broker._delete_records, lambda _, error: DeleteRecordsResponse(error)),
    MetadataRequest: (Broker._metadata, lambda _, error: MetadataResponse(error)),
    OffsetCommitRequest: (Broker._offset_commit, lambda _, error: OffsetCommitResponse(error)),
    OffsetFetchRequest: (Broker._offset_fetch, lambda _, error: OffsetFetchResponse(error)),
    LeaderAndIsrRequest: (Broker._leader_and_isr, lambda _, error: LeaderAndIsrResponse(error)),
    StopReplicaRequest: (Broker._stop_replica, lambda _, error: StopReplicaResponse(error)),
    OfflineReplicasRequest: (Broker._offline_replicas, lambda _, error: OfflineReplicasResponse(error)),
    UpdateMetadataRequest: (Broker._update_metadata, lambda _, error: UpdateMetadataResponse(error)),
}
"""For each request: how it is served, and how an error is answered. An AlterIsr is the controller's."""
