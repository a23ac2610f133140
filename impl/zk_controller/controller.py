"""The controller of KIP-320's time: it elects leaders, keeps the ISR, and tells the brokers.

The rules are those of Kafka's ZooKeeper controller (``KafkaController``, ``PartitionStateMachine``,
``ReplicaStateMachine``), with AlterIsr in the place of writes to ZooKeeper by leaders (KIP-497). What brokers did in
ZooKeeper (register, vanish) is told to it by calls: ``broker_started``, ``mark_offline``, ``mark_online``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID, uuid4

from ..files.interface import Files
from ..log.directory import is_partition
from ..net.interface import Clock, Transport
from ..replica.validate import is_alter_isr, is_consistent
from ..wire.errors import ErrorCode
from ..wire.messages import (
    BROKER_PRINCIPAL,
    CONTROLLER,
    LEADER_DURING_DELETE,
    NO_EPOCH,
    NO_TOPIC_ID,
    AlterIsrRequest,
    AlterIsrResponse,
    Envelope,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    OfflineReplicasRequest,
    OfflineReplicasResponse,
    Request,
    Response,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicPartition,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from .errors import (
    ControllerStopped,
    InvalidPartition,
    PartitionExists,
    StaleIncarnation,
    UnknownBroker,
    UnknownPartition,
    UnknownTopic,
)
from .outbox import Kind, Outbox, RequestKey
from .partition import PartitionState
from .store import CHECKPOINT, Contents, Deleted, Registration, read_store, write_store

_ANSWERS = (LeaderAndIsrResponse, StopReplicaResponse, OfflineReplicasResponse, UpdateMetadataResponse)


class Controller:
    """An ``Endpoint``, and the operator's calls. One process at a time may have the checkpoint in ``files``.

    Every change is synced to the checkpoint before a request or answer tells of it, or a crash could make the next
    controller give the same leader epoch to another leader. What the last one knew is sent again to all brokers when
    the new one is first woken.

    ``unclean`` is ``unclean.leader.election.enable``; ``retry`` says after how many milliseconds an unanswered request
    is sent again; ``new_id`` makes the ids of topics. Raises ``CorruptCheckpoint`` and ``OSError``. All calls raise
    ``ControllerStopped`` once it has stopped: after its checkpoint could not be written, and when a broker knows of a
    later controller.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        files: Files,
        *,
        unclean: bool = False,
        retry: int = 1000,
        new_id: Callable[[], UUID] = uuid4,
    ) -> None:
        self.address = CONTROLLER
        self.unclean = unclean
        self.stopped: str | None = None
        """Why it acts no more."""
        self._transport = transport
        self._files = files
        self._new_id = new_id
        contents = read_store(files, CHECKPOINT)
        self._contents = replace(contents, controller_epoch=contents.controller_epoch + 1)
        for partition, state in self._contents.partitions.items():
            if state.topic_id == NO_TOPIC_ID:  # of before topics had ids (KIP-516, "Migration")
                self._contents.partitions[partition] = replace(state, topic_id=self._id_of(partition.topic))
        write_store(files, CHECKPOINT, self._contents)
        first = self.controller_epoch << 32  # answers to its former life may still arrive
        self._outbox = Outbox(self.address, transport, clock, self._build, correlation=first, retry=retry)
        self._outbox.resume(key for broker in self._live() for key in self._all_for(broker))

    # -- what it knows ----------------------------------------------------------------------------------------------

    @property
    def controller_epoch(self) -> int:
        """Rises at each start; brokers refuse requests of a lower one (STALE_CONTROLLER_EPOCH)."""
        return self._contents.controller_epoch

    @property
    def brokers(self) -> Mapping[int, Registration]:
        """Every broker that has ever started."""
        return self._contents.brokers

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionState]:
        """All partitions."""
        return self._contents.partitions

    @property
    def deleted(self) -> Mapping[Deleted, frozenset[int]]:
        """The partitions of deleted topics, each with the brokers that may have a replica of it still."""
        return self._contents.deleted

    def partition(self, partition: TopicPartition) -> PartitionState:
        """One partition. Raises ``UnknownPartition``."""
        try:
            return self._contents.partitions[partition]
        except KeyError:
            raise UnknownPartition("there is no such partition", str(partition), "create it first") from None

    def _live(self) -> list[int]:
        return [broker for broker, registration in self._contents.brokers.items() if registration.online]

    # -- partitions -------------------------------------------------------------------------------------------------

    def create_partition(
        self, partition: TopicPartition, replicas: Sequence[int], *, elect: bool = True
    ) -> PartitionState:
        """Make a partition and elect the first live replica, in leader epoch 0; the ISR are the live replicas.

        Without ``elect``, and where no replica is live, there is no leader and no leader epoch yet, and every replica
        is in the ISR. Raises ``PartitionExists``, ``InvalidPartition``, ``UnknownBroker``.
        """
        self._check_running()
        where = str(partition)
        if partition in self._contents.partitions:
            raise PartitionExists("the partition is there", where, "choose another name")
        if not is_partition(*partition):
            raise InvalidPartition("no name of a partition", where, "use letters, digits, . _ - and a number from 0 on")
        if not replicas or len(set(replicas)) < len(replicas):
            raise InvalidPartition(f"replicas {list(replicas)}", where, "name each broker once, and at least one")
        for broker in replicas:
            self._registration(broker)
        offline = frozenset(replicas).difference(self._live())
        state = PartitionState.unled(replicas, offline, self._id_of(partition.topic))
        if elect:
            state = state.prefer(unclean=False)
        self._commit({partition: state})
        return state

    def _id_of(self, topic: str) -> UUID:
        """The id of a topic that is there, and a new one of one that is not."""
        known = (state.topic_id for partition, state in self._contents.partitions.items() if partition.topic == topic)
        return next((each for each in known if each != NO_TOPIC_ID), None) or self._new_id()

    def delete_topic(self, topic: str) -> None:
        """Delete a topic (``TopicDeletionManager`` in Kafka): whoever has a replica removes it when it hears of that.

        Its name is free at once, and the next topic of that name has another id. Raises ``UnknownTopic``.
        """
        self._check_running()
        gone = {partition: state for partition, state in self._contents.partitions.items() if partition.topic == topic}
        if not gone:
            raise UnknownTopic("there is no such topic", topic, "leave it")
        there = {Deleted(partition, state.topic_id): frozenset(state.replicas) for partition, state in gone.items()}
        self._commit({}, removed=gone, deleted={**self._contents.deleted, **there})
        for partition, state in gone.items():
            self._outbox.forget_partition(partition)
            for broker in self._live():
                if broker in state.replicas:
                    self._outbox.post(RequestKey(Kind.STOP_REPLICA, broker, partition, state.topic_id))
                self._outbox.post(RequestKey(Kind.METADATA, broker, partition, state.topic_id))

    def elect_leader(self, partition: TopicPartition, replica: int) -> PartitionState:
        """A clean election. Raises ``NotEligible``, ``ElectionNotNeeded``, ``UnknownPartition``."""
        return self._change(partition, self.partition(partition).elect(replica, str(partition)))

    def elect_unclean(self, partition: TopicPartition, replica: int) -> PartitionState:
        """Make any live replica leader and whole ISR; outside of the ISR only with ``unclean``. Raises likewise."""
        state = self.partition(partition)
        return self._change(partition, state.elect_unclean(replica, str(partition), enabled=self.unclean))

    def elect_preferred(self, partition: TopicPartition) -> PartitionState:
        """Elect the first live replica in the ISR; else the first live one, if ``unclean``; else nobody."""
        return self._change(partition, self.partition(partition).prefer(unclean=self.unclean))

    def shrink_isr(self, partition: TopicPartition, replica: int) -> PartitionState:
        """Take a failed replica out of the ISR, and out of leadership. Raises ``NotInIsr``, ``UnknownPartition``."""
        return self._change(partition, self.partition(partition).shrink(replica, str(partition)))

    def _change(self, partition: TopicPartition, state: PartitionState) -> PartitionState:
        self._check_running()
        self._commit({partition: state})
        return state

    # -- brokers ----------------------------------------------------------------------------------------------------

    def broker_started(self, broker: int, incarnation: int) -> None:
        """A broker has started, for the ``incarnation``-th time or with any other number that rises.

        Where its failure went unnoticed it is dealt with first (the fast bounce of KIP-380): the broker has lost what
        it had not synced, so it leaves each ISR of more than itself and leads again in a new epoch only. Then it is
        told of all its partitions. The same incarnation again is only told again. Raises ``StaleIncarnation``.
        """
        self._check_running()
        known = self._contents.brokers.get(broker)
        if known is not None and incarnation < known.incarnation:
            mend = f"register with an incarnation above {known.incarnation}"
            raise StaleIncarnation(f"incarnation {incarnation} is over", f"broker {broker}", mend)
        if broker < 0 or incarnation < 0:
            raise UnknownBroker(f"incarnation {incarnation}", f"broker {broker}", "give numbers from 0 on")
        restarted = known is not None and incarnation > known.incarnation
        self._outbox.forget_broker(broker)
        self._bring_online(broker, Registration(incarnation, online=True), restarted=restarted)

    def mark_offline(self, broker: int) -> None:
        """A broker has failed: mark its replicas, shrink each ISR and elect new leaders. Raises ``UnknownBroker``."""
        self._check_running()
        registration = self._registration(broker)
        if not registration.online:
            return
        self._outbox.forget_broker(broker)
        failed = {
            partition: state.fail(broker, unclean=self.unclean)
            for partition, state in self._contents.partitions.items()
            if broker in state.replicas
        }
        self._commit(failed, {broker: replace(registration, online=False)})

    def mark_online(self, broker: int) -> None:
        """A broker is there again that had not stopped: take the marks away. Raises ``UnknownBroker``."""
        self._check_running()
        registration = self._registration(broker)
        if not registration.online:
            self._bring_online(broker, replace(registration, online=True), restarted=False)

    def _bring_online(self, broker: int, registration: Registration, *, restarted: bool) -> None:
        changes = {}
        for partition, state in self._contents.partitions.items():
            if broker in state.replicas:
                # Nobody is elected uncleanly in the place of a last member that is back already.
                failed = state.fail(broker, unclean=False) if restarted else state
                changes[partition] = failed.recover(broker, unclean=self.unclean)
        self._commit(changes, {broker: registration})
        for key in self._all_for(broker):
            if not self._outbox.waits(key):  # else it was sent just now, with the change
                self._outbox.post(key)

    def _registration(self, broker: int) -> Registration:
        try:
            return self._contents.brokers[broker]
        except KeyError:
            raise UnknownBroker("it has never started", f"broker {broker}", "start it first") from None

    # -- telling ----------------------------------------------------------------------------------------------------

    def _check_running(self) -> None:
        if self.stopped is not None:
            raise ControllerStopped(self.stopped, "controller", "start another one")

    def _commit(
        self,
        partitions: Mapping[TopicPartition, PartitionState],
        brokers: Mapping[int, Registration] | None = None,
        *,
        removed: Iterable[TopicPartition] = (),
        deleted: dict[Deleted, frozenset[int]] | None = None,
    ) -> None:
        """Store the changes, then take them up and tell of them. Raises ``ControllerStopped`` where they can't be."""
        old = self._contents
        changed = {p: state for p, state in partitions.items() if old.partitions.get(p) != state}
        if not changed and not brokers and deleted is None:
            return
        left = {partition: state for partition, state in old.partitions.items() if partition not in removed}
        new = Contents(
            old.controller_epoch,
            {**old.brokers, **(brokers or {})},
            {**left, **changed},
            old.deleted if deleted is None else deleted,
        )
        try:
            write_store(self._files, CHECKPOINT, new)
        except OSError as problem:
            # Whether the change survives a crash is unknown now, so no later one may go beyond it.
            self._stop(f"its checkpoint could not be written: {problem}")
            raise ControllerStopped(str(self.stopped), "controller", "mend the disk and start another one") from problem
        self._contents = new
        for partition, state in changed.items():
            self._announce(partition, old.partitions.get(partition), state)

    def _announce(self, partition: TopicPartition, old: PartitionState | None, new: PartitionState) -> None:
        live = self._live()
        if new.leader_epoch > (NO_EPOCH if old is None else old.leader_epoch):
            for broker in new.replicas:
                if broker in live:
                    self._outbox.post(RequestKey(Kind.LEADER_AND_ISR, broker, partition))
        elif old is not None and new.offline != old.offline and new.leader in live:
            self._outbox.post(RequestKey(Kind.OFFLINE_REPLICAS, new.leader, partition))
        for broker in live:
            self._outbox.post(RequestKey(Kind.METADATA, broker, partition))

    def _all_for(self, broker: int) -> Iterable[RequestKey]:
        """What a broker is told that knows nothing, and what it is to remove."""
        for (partition, topic_id), brokers in self._contents.deleted.items():
            if broker in brokers:
                yield RequestKey(Kind.STOP_REPLICA, broker, partition, topic_id)
        for partition, state in self._contents.partitions.items():
            if broker in state.replicas and state.leader_epoch != NO_EPOCH:
                yield RequestKey(Kind.LEADER_AND_ISR, broker, partition)
        for partition in self._contents.partitions:
            yield RequestKey(Kind.METADATA, broker, partition)

    def _build(self, key: RequestKey) -> Request:
        epoch, partition = self.controller_epoch, key.partition
        if key.kind is Kind.STOP_REPLICA:
            return StopReplicaRequest(epoch, partition, key.topic_id)
        if key.topic_id != NO_TOPIC_ID:
            gone = LEADER_DURING_DELETE, NO_EPOCH, frozenset[int](), (), frozenset[int]()
            return UpdateMetadataRequest(epoch, partition, *gone, key.topic_id)
        state = self._contents.partitions[partition]
        if key.kind is Kind.OFFLINE_REPLICAS:
            marks = state.offline, state.leader_epoch, state.partition_epoch
            return OfflineReplicasRequest(epoch, partition, *marks, state.topic_id)
        if key.kind is Kind.METADATA:
            known = state.leader, state.leader_epoch, state.isr, state.replicas, state.offline
            return UpdateMetadataRequest(epoch, partition, *known, state.topic_id)
        return LeaderAndIsrRequest(
            epoch,
            partition,
            state.leader,
            state.leader_epoch,
            state.isr,
            state.replicas,
            state.offline,
            state.partition_epoch,
            state.topic_id,
        )

    def _stop(self, why: str) -> None:
        self.stopped = why

    # -- the endpoint -----------------------------------------------------------------------------------------------

    def receive(self, envelope: Envelope) -> None:
        """A leader's AlterIsr, or a broker's answer. Anything else is no controller's business, and not answered."""
        if self.stopped is not None:
            return
        body = envelope.body
        if isinstance(body, AlterIsrRequest):
            answer = self._alter_isr(body, envelope.principal)
            if answer is not None:
                self._send_back(envelope, answer)
        elif isinstance(body, _ANSWERS) and isinstance(body.error, ErrorCode):
            self._answered(envelope.correlation, body)

    def deadline(self) -> int | None:
        """When the next unanswered request is to be sent again."""
        return None if self.stopped is not None else self._outbox.deadline()

    def wake(self) -> None:
        """Send again what is due."""
        if self.stopped is None:
            self._outbox.send_again()

    def _send_back(self, request: Envelope, body: Response) -> None:
        self._transport.send(Envelope(self.address, request.source, request.correlation, body, BROKER_PRINCIPAL))

    def _alter_isr(self, request: AlterIsrRequest, principal: str) -> AlterIsrResponse | None:
        """``None`` where the change could not be stored: then nobody knows whether it holds."""
        partition = request.partition
        if principal != BROKER_PRINCIPAL:
            return AlterIsrResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, partition)
        if not is_alter_isr(request):
            return AlterIsrResponse(ErrorCode.INVALID_REQUEST, partition)
        state = self._contents.partitions.get(partition)
        if not is_consistent(request.topic_id, NO_TOPIC_ID if state is None else state.topic_id):
            return AlterIsrResponse(ErrorCode.UNKNOWN_TOPIC_ID, partition)
        if state is None:
            asked = request.topic_id != NO_TOPIC_ID
            error = ErrorCode.UNKNOWN_TOPIC_ID if asked else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return AlterIsrResponse(error, partition)
        error = ErrorCode.NONE
        result = state.alter_isr(request.broker, request.leader_epoch, request.new_isr, request.partition_epoch)
        if isinstance(result, ErrorCode):
            error = result
        else:
            state = result
            try:
                self._commit({partition: state})
            except ControllerStopped:
                return None
        return AlterIsrResponse(error, partition, state.leader, state.leader_epoch, state.isr, state.partition_epoch)

    def _answered(self, correlation: int, body: Response) -> None:
        key, error = self._outbox.answered(correlation), body.error
        if key is None:
            return
        if error is ErrorCode.STALE_CONTROLLER_EPOCH:
            self._stop(f"broker {key.broker} knows a controller after epoch {self.controller_epoch}")
        elif error is ErrorCode.KAFKA_STORAGE_ERROR and key.kind is Kind.LEADER_AND_ISR:
            self._replica_failed(key)
        elif key.kind is Kind.STOP_REPLICA and error in (ErrorCode.NONE, ErrorCode.INCONSISTENT_TOPIC_ID):
            self._outbox.forget(key)
            self._mark_stray(key, key.topic_id, there=False)
        elif error is ErrorCode.INCONSISTENT_TOPIC_ID and isinstance(body, LeaderAndIsrResponse):
            self._stray_found(key, body.topic_id)
        elif not error.retriable:
            self._outbox.forget(key)

    def _replica_failed(self, key: RequestKey) -> None:
        """The broker is up but cannot use its log of the partition (KIP-112): that replica alone is offline."""
        self._outbox.forget(key)
        state = self._contents.partitions[key.partition]
        try:
            self._commit({key.partition: state.fail(key.broker, unclean=self.unclean)})
        except ControllerStopped:
            return

    def _stray_found(self, key: RequestKey, topic_id: UUID) -> None:
        """The broker has a replica of another topic, which is not there any more: it is to remove it.

        Its process may have ended between two requests of which the second was the older (Kafka's are refused by broker
        epoch, KIP-380), or its disk was another broker's.
        """
        if type(topic_id) is not UUID or topic_id in (NO_TOPIC_ID, self._contents.partitions[key.partition].topic_id):
            return
        stop = RequestKey(Kind.STOP_REPLICA, key.broker, key.partition, topic_id)
        if not self._outbox.waits(stop) and self._mark_stray(key, topic_id, there=True):
            self._outbox.post(stop)

    def _mark_stray(self, key: RequestKey, topic_id: UUID, *, there: bool) -> bool:
        """Take note of whether a broker may have a replica of a deleted topic still; gives whether that is stored."""
        entry, deleted = Deleted(key.partition, topic_id), dict(self._contents.deleted)
        brokers = deleted.pop(entry, frozenset()) - {key.broker} | ({key.broker} if there else frozenset())
        if brokers:
            deleted[entry] = brokers
        try:
            self._commit({}, deleted=deleted)
        except ControllerStopped:
            return False
        return True
