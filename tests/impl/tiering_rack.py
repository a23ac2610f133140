"""Brokers with tiered topics over one object store, a network that runs freely, and a controller that is the test."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from fencepost.impl.files import Files, SimulatedFiles
from fencepost.impl.log import LogConfig, Record, encode_batch
from fencepost.impl.log.batch import read_batches
from fencepost.impl.net import SimulatedNetwork
from fencepost.impl.replica import Broker, BrokerConfig, PartitionState
from fencepost.impl.tiering import (
    METADATA,
    RemoteLogManager,
    RemotePartition,
    RemoteSegment,
    RemoteStore,
    SimulatedJobs,
    TieredTopic,
    TieringConfig,
)
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    BROKER_PRINCIPAL,
    CONTROLLER,
    FIRST_CLIENT,
    AlterIsrRequest,
    AlterIsrResponse,
    Envelope,
    FetchRequest,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    ProduceRequest,
    TopicPartition,
)

from .brokers import TP, Asker

CONFIG = BrokerConfig(
    log=LogConfig(segment_bytes=300, index_interval_bytes=100),
    replica_lag_time_max_ms=400,
    isr_interval_ms=40,
    replica_fetch_wait_ms=10,
    replica_fetch_backoff_ms=30,
    request_timeout_ms=400,
)
TIERING = TieringConfig(
    task_interval_ms=50,
    task_retry_backoff_ms=20,
    task_retry_backoff_max_ms=80,
    metadata_poll_ms=5,
    metadata_timeout_ms=200,
    read_retry_ms=20,
)
LOCAL_NOTHING = TieredTopic(local_retention_bytes=0)
"""Whatever is in remote storage goes from the brokers' disks."""
RECORD_BYTES = 40


class Controller:
    """Takes every ISR that a leader asks for, and counts partition epochs."""

    def __init__(self, rack: TieredRack) -> None:
        self.address = CONTROLLER
        self._rack = rack

    def receive(self, envelope: Envelope) -> None:
        body = envelope.body
        if not isinstance(body, AlterIsrRequest):
            return
        known = self._rack.roles.get(body.partition)
        if known is None or (known.leader, known.leader_epoch) != (body.broker, body.leader_epoch):
            answer = AlterIsrResponse(ErrorCode.FENCED_REPLICA, body.partition)
        else:
            if body.partition_epoch == known.partition_epoch:
                known = self._rack.changed(body.partition, isr=body.new_isr)
            answer = AlterIsrResponse(
                ErrorCode.NONE, body.partition, known.leader, known.leader_epoch, known.isr, known.partition_epoch
            )
        self._rack.network.send(Envelope(CONTROLLER, envelope.source, envelope.correlation, answer, BROKER_PRINCIPAL))

    def deadline(self) -> int | None:
        return None

    def wake(self) -> None:
        raise AssertionError("nobody sets it a deadline")


class TieredRack:
    """``count`` brokers; each is a replica of ``TP``, which is tiered, and of the metadata partition."""

    def __init__(
        self,
        count: int = 3,
        *,
        seed: int = 1,
        topic: TieredTopic = LOCAL_NOTHING,
        tiering: TieringConfig = TIERING,
        config: BrokerConfig = CONFIG,
        store: Callable[[int], RemoteStore] | None = None,
        latency: tuple[int, int] = (0, 3),
        disk: Callable[[int], Files] | None = None,
    ) -> None:
        self.config, self.tiering, self.topic, self.latency = config, tiering, topic, latency
        self.tiered_topics = {TP.topic: topic}
        self.chance = random.Random(seed)
        self.network = SimulatedNetwork(seed)
        self.client = Asker(FIRST_CLIENT)
        self.network.attach(self.client)
        self.network.attach(Controller(self))
        self.bucket = SimulatedFiles(1000 + seed)
        self._store = store or (lambda _: RemoteStore.in_files(self.bucket, "bucket"))
        self.disks: dict[int, Any] = {n: (disk or SimulatedFiles)(n) for n in range(count)}
        self.starts = dict.fromkeys(range(count), 0)
        self.brokers: dict[int, Broker] = {}
        self.managers: dict[int, RemoteLogManager] = {}
        self.roles: dict[TopicPartition, LeaderAndIsrRequest] = {}
        self._correlation = 0
        for node in range(count):
            self.start(node)

    # -- processes --------------------------------------------------------------------------------------------------

    def start(self, node: int) -> Broker:
        """Start a broker's process, and tell it of its partitions."""
        self.starts[node] += 1
        clock = self.network.clock
        manager = RemoteLogManager(
            self._store(node),
            SimulatedJobs(clock, self.chance.randrange(1 << 30), self.latency),
            clock,
            self.tiered_topics,
            self.tiering,
            new_id=lambda: UUID(int=self.chance.getrandbits(128)),
        )
        broker = Broker(
            node,
            self.disks[node],
            self.network,
            clock,
            self.config,
            first_correlation=self.starts[node] << 32,
            remote_logs=manager,
        )
        self.brokers[node], self.managers[node] = broker, manager
        self.network.attach(broker)
        return broker

    def stop(self, node: int) -> None:
        """Its process is gone."""
        if self.network.is_up(node):
            self.network.detach(node)
        self.brokers.pop(node, None)
        self.managers.pop(node, None)

    def crash(self, node: int, seed: int = 0) -> None:
        """The machine goes down."""
        self.stop(node)
        self.disks[node].crash(seed)

    def wipe(self, node: int) -> None:
        """Its disk is replaced by an empty one: all partitions but the metadata's are gone."""
        self.stop(node)
        self.disks[node] = SimulatedFiles(50 + node)

    # -- roles ------------------------------------------------------------------------------------------------------

    def changed(self, partition: TopicPartition, **changes: Any) -> LeaderAndIsrRequest:
        """Another state of the controller, a partition epoch later."""
        known = self.roles[partition]
        fields = {name: getattr(known, name) for name in known.__dataclass_fields__}
        fields |= {"partition_epoch": known.partition_epoch + 1, **changes}
        self.roles[partition] = LeaderAndIsrRequest(**fields)
        return self.roles[partition]

    def elect(self, leader: int, epoch: int, isr: Iterable[int] | None = None, partition: TopicPartition = TP) -> None:
        """Let a broker lead, and tell all that are up."""
        everyone = tuple(self.disks)
        version = self.roles[partition].partition_epoch + 1 if partition in self.roles else 0
        members = frozenset(everyone if isr is None else isr)
        self.roles[partition] = LeaderAndIsrRequest(
            1, partition, leader, epoch, members, everyone, frozenset(), version
        )
        for node in sorted(self.brokers, key=lambda node: node != leader):
            self.tell(node, partition)

    def tell(self, node: int, partition: TopicPartition = TP) -> None:
        """Tell one of its role, be it cut off from all others or not."""
        self._correlation += 1
        self.brokers[node].receive(
            Envelope(self.client.address, node, self._correlation, self.roles[partition], BROKER_PRINCIPAL)
        )
        self.network.refresh()

    def begin(self, leader: int = 0, isr: Iterable[int] | None = None) -> None:
        """The metadata partition, with broker 0 as its leader, and the tiered one in leader epoch 0."""
        self.elect(0, 0, isr, METADATA)
        self.elect(leader, 0, isr)
        self.run()

    # -- time and requests ------------------------------------------------------------------------------------------

    def run(self, milliseconds: int = 300) -> None:
        """Let time pass."""
        self.network.run(self.network.clock.now() + milliseconds)

    def until(self, condition: Callable[[], bool], budget: int = 20_000) -> None:
        """Let time pass until something is so."""
        self.network.run(condition, budget=budget)

    def ask(self, node: int, body: Any) -> Any:
        """A client's request, and its answer, however long it takes."""
        self._correlation += 1
        number = self._correlation
        self.network.send(Envelope(self.client.address, node, number, body, BROKER_PRINCIPAL))
        found: list[Any] = []

        def answered() -> bool:
            found.extend(each.body for each in self.client.answers if each.correlation == number)
            return bool(found)

        self.until(answered)
        self.client.answers.clear()
        return found[0]

    def produce(self, node: int, *values: bytes, timestamp: int | None = None, acks: int = -1, **producer: int) -> Any:
        """One batch; the answer."""
        at = self.network.clock.wall() if timestamp is None else timestamp
        batch = encode_batch([Record(value, timestamp=at) for value in values], **producer)
        return self.ask(node, ProduceRequest(TP, acks, batch))

    def write(self, node: int, count: int, timestamp: int | None = None) -> None:
        """So many records more, each a batch whose value is its offset."""
        for _ in range(count):
            offset = self.state(node).end
            assert self.produce(node, value_of(offset), timestamp=timestamp).base_offset == offset

    def fetch(self, node: int, offset: int, max_bytes: int = 1 << 16) -> Any:
        """A consumer's fetch."""
        return self.ask(node, FetchRequest(-1, TP, offset, max_bytes))

    def consume(self, node: int, offset: int, max_bytes: int = 1 << 16) -> list[tuple[int, int, bytes]]:
        """Offset, leader epoch and value of all committed records from an offset on, as a consumer gets them."""
        rows: list[tuple[int, int, bytes]] = []
        while offset < self.state(node).high_watermark:
            answer = self.fetch(node, offset, max_bytes)
            assert answer.error is ErrorCode.NONE, (offset, answer)
            batches = list(read_batches(answer.records))
            assert batches, (offset, answer)
            for batch in batches:
                rows += [(r.offset, r.leader_epoch, r.value or b"") for r in batch.records() if r.offset >= offset]
            offset = batches[-1].next_offset
        return rows

    def list_offsets(self, node: int, timestamp: int) -> tuple[int, int]:
        """Offset and leader epoch."""
        answer = self.ask(node, ListOffsetsRequest(TP, timestamp))
        assert answer.error is ErrorCode.NONE, answer
        return answer.offset, answer.leader_epoch

    # -- looking ----------------------------------------------------------------------------------------------------

    def state(self, node: int) -> PartitionState:
        return self.brokers[node].state(TP)

    def log(self, node: int) -> Any:
        return self.brokers[node].partitions[TP].log

    def remote(self, node: int) -> RemotePartition:
        return self.managers[node].partitions[TP]

    def segments(self, node: int = 0) -> list[RemoteSegment]:
        """What the broker knows to be in remote storage and readable."""
        return self.remote(node).segments().finished()

    def objects(self) -> list[str]:
        """The names of all objects in the simulated store."""
        found: list[str] = []

        def look(folder: str) -> None:
            for name in self.bucket.list(folder):
                path = f"{folder}/{name}" if folder else name
                try:
                    look(path)
                except NotADirectoryError:
                    found.append(path)

        look("")
        return found

    def tiered(self, node: int, segments: int) -> None:
        """Wait until so many local segments are gone, or as many as can go."""
        self.until(lambda: self.log(node).local_start >= segments)

    def whole(self) -> bool:
        """Whether everyone is in the ISR."""
        return self.roles[TP].isr == frozenset(self.disks)


def value_of(offset: int) -> bytes:
    """The value of the record that is written at an offset."""
    return b"%06d" % offset + b"." * (RECORD_BYTES - 6)


def values_of(rows: Sequence[tuple[int, int, bytes]]) -> list[int]:
    """The offsets that the values say."""
    return [int(value[:6]) for _, _, value in rows]
