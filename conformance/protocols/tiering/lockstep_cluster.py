"""Brokers with tiered storage on a network whose messages go only when they are told to, and one object store.

Beside the tiered partition there is the metadata log. A broker that has no other part, the keeper, leads that, and who
leads it is ``fencing``: what is written there is replicated at once, but for deletions, the requests for which are lost
until one is asked for (the model keeps for ever what came to no end). Each piece of work with the store is done when it
is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from ....impl.replica.broker import Broker, OffsetHandler
from ....impl.tiering.metadata import METADATA
from ....impl.tiering.remote import COPY, CUT
from ....impl.tiering.segments import SegmentState
from ....impl.wire.messages import (
    BROKER_PRINCIPAL,
    CONTROLLER,
    Envelope,
    LeaderAndIsrRequest,
    ProduceRequest,
    TopicPartition,
)
from ...adapters.carrier import LIFE
from ...adapters.cluster import PARTITION, Cluster
from ...adapters.parts import Parts
from ...adapters.stores import Store
from ...lockstep.faults import Kind
from .metadata_log import MetadataView, said_in
from .nodes import OF_BUILD, OF_METADATA
from .store import EventJob, EventJobs

REMOTE: Final = ("remote", PARTITION)
INTERVAL_MS: Final = 1_000
POLL_MS: Final = 1
_BUCKET: Final = 1_000
"""The number of the store's disk."""
_ROUNDS: Final = 12
_BATCHES: Final = 80
"""So many batches the metadata log of a run has at most, and one comes in a round."""
_METADATA_FETCH: Final = ("fetch", METADATA)
_DELETES: Final = (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED)


class Upload(NamedTuple):
    """The copy of a segment of the model: the leader epoch in which it was uploaded, its offsets, its number."""

    epoch: int
    start: int
    end: int
    copy: int


class TieredCluster(Cluster):
    """``flag``: ``follower.fetch.last.tiered.offset.enable``; ``unclean``: ``unclean.leader.election.enable``."""

    def __init__(self, parts: Parts, store: Store, replicas: int, seed: int, *, flag: bool, unclean: bool) -> None:
        self.keeper = replicas
        self.bucket = store.files(_BUCKET)
        self.jobs: dict[int, EventJobs] = {}
        self.metadata = MetadataView()
        self.may_go: set[int] = set()
        """The copies whose deletion the metadata log takes in."""
        self._flag = flag
        self._copies = 0
        self._of: dict[tuple[int, int], TopicPartition] = {}
        """By sender and correlation id, of which partition a request is."""
        self._metadata_request: LeaderAndIsrRequest | None = None
        super().__init__(parts, store, replicas, seed, segment_bytes=1 << 20, flush_each_append=True)
        self.controller.unclean = unclean
        self.start(self.keeper)

    def create_partition(self) -> None:
        """Make both partitions: nobody leads the tiered one yet."""
        self.controller.broker_started(self.keeper, 1)
        for node in self.replicas:
            self.controller.broker_started(node, 1)
        self.controller.create_partition(METADATA, [self.keeper, *self.replicas])
        while flights := self.network.in_flight():
            for flight in flights:
                self.network.deliver(flight)
        self.controller.create_partition(PARTITION, list(self.replicas), elect=False)
        self.collect()
        self.replicate()

    def start(self, node: int, coordinator: OffsetHandler | None = None) -> Broker:
        """Start a broker on the files that are there; the keeper has no remote log manager."""
        if node == self.keeper:
            return super().start(node, coordinator)
        parts, clock = self._parts, self.clock.at(node)
        self._lives += 1
        jobs = self.jobs[node] = EventJobs(clock)
        manager = parts.remote_log_manager(
            parts.remote_store.in_files(self.bucket, "bucket"),
            jobs,
            clock,
            {PARTITION.topic: self.topic()},
            parts.tiering_config(
                follower_fetch_last_tiered_offset_enable=self._flag,
                task_interval_ms=INTERVAL_MS,
                metadata_poll_ms=POLL_MS,
                metadata_timeout_ms=2 * POLL_MS,
            ),
            new_id=self._new_id,
        )
        broker = parts.broker(
            node,
            self._store.files(node),
            self.network,
            clock,
            self._config,
            first_correlation=self._lives * LIFE,
            remote_logs=manager,
        )
        self.brokers[node] = broker
        self.network.attach(broker)
        return broker

    def topic(self, local_bytes: int = -1) -> Any:
        """The topic's configuration: nothing expires, and so much is kept on the disk."""
        return self._parts.tiered_topic(
            retention_ms=-1, retention_bytes=-1, local_retention_ms=-1, local_retention_bytes=local_bytes
        )

    def _new_id(self) -> UUID:
        self._copies += 1
        return UUID(int=self._copies)

    def replace(self, node: int) -> None:
        """Another broker is given a replica's place: its disk is empty. What the former one had sent is lost."""
        self.network.detach(node)
        for flight in self.network.in_flight(source=node):
            if flight not in self.late:
                self.network.drop(flight)
        self._store.replace(node)
        self.start(node)
        assert self._metadata_request is not None
        self.carry(self.ask(CONTROLLER, node, self._metadata_request, BROKER_PRINCIPAL))

    # -- looking ----------------------------------------------------------------------------------------------------

    def replica(self, node: int, partition: TopicPartition = PARTITION) -> Any:
        """A broker's replica; None where it was told of none."""
        return self.brokers[node].partitions.get(partition)

    def _notice(self, envelope: Envelope) -> None:
        body: Any = envelope.body
        partition = getattr(body, "partition", None)
        if partition is not None:
            self._of[envelope.source, envelope.correlation] = partition
        if partition != METADATA:
            super()._notice(envelope)
        elif isinstance(body, LeaderAndIsrRequest) and self._metadata_request is None:
            self._metadata_request = body

    def _partition_of(self, envelope: Envelope) -> TopicPartition | None:
        partition: TopicPartition | None = getattr(envelope.body, "partition", None)
        return partition or self._of.get((envelope.destination, envelope.correlation))

    def _deliver(self, partition: TopicPartition, bodies: tuple[type, ...], node: int | None = None) -> bool:
        """Let what is on its way about a partition arrive, of one node alone or of all; gives whether it was any."""
        found = False
        for flight in self.network.in_flight():
            envelope = flight.envelope
            if (
                flight in self.late
                or not isinstance(envelope.body, bodies)
                or self._partition_of(envelope) != partition
            ):
                continue
            if node is not None and node not in (envelope.source, envelope.destination):
                continue
            if partition == METADATA and self._is_in_vain(envelope):
                self.network.drop(flight)
                continue
            self.network.deliver(flight)
            found = True
        return found

    # -- the metadata log -------------------------------------------------------------------------------------------

    def _is_in_vain(self, envelope: Envelope) -> bool:
        body: Any = envelope.body
        if not isinstance(body, ProduceRequest):
            return False
        return any(said.state in _DELETES and said.copy not in self.may_go for said in said_in(body))

    def replicate(self) -> None:
        """Let what is written to the metadata log be committed, and everybody read it."""
        for _ in range(_BATCHES):
            self._note_begun()
            for _ in range(2):  # requests, and what they are answered with
                self._deliver(METADATA, OF_METADATA)
            log = self.replica(self.keeper, METADATA)
            behind = [node for node in self.replicas if self._lags(self.replica(node, METADATA), log.log.end)]
            if not behind and log.high_watermark == log.log.end:
                break
            for node in self.replicas:
                self.brokers[node].fire(_METADATA_FETCH)
        self.metadata.catch_up(self.replica(self.keeper, METADATA), self._store.files(self.keeper))

    def _note_begun(self) -> None:
        for flight in self.network.in_flight():
            body: Any = flight.envelope.body
            if isinstance(body, ProduceRequest) and body.partition == METADATA:
                for said in said_in(body):
                    self.metadata.begun(said)

    @staticmethod
    def _lags(replica: Any, end: int) -> bool:
        return bool(replica.log.end != end or replica.high_watermark != end)

    def truncate(self, follower: int, leader: int, fault: Kind | None = None) -> None:
        """The same; where it cuts below what is on its disk, a follower reads from the store first."""
        super().truncate(follower, leader, fault)
        cuts = False
        while (job := self.waits_for(follower, CUT)) is not None:
            self.work(follower, job)
            cuts = True
        if cuts:
            super().truncate(follower, leader)

    # -- work with the store ----------------------------------------------------------------------------------------

    def goes_on(self, node: int) -> None:
        """Let what a broker's remote log manager has waited for come."""
        if self.replica(node) is not None:
            self.brokers[node].fire(REMOTE)

    def waits_for(self, node: int, task: str = COPY) -> EventJob | None:
        """The work with the store that one of a broker's tasks waits for."""
        replica = self.replica(node)
        found = None if replica is None or replica.remote is None else replica.remote.tasks._tasks.get(task)
        return None if found is None else found.job

    def work(self, node: int, job: EventJob) -> None:
        """Do it, and let the task go on."""
        self.jobs[node].waiting.remove(job)
        job.run()
        self.goes_on(node)

    def until(self, node: int, decided: Callable[[], bool]) -> bool:
        """Let the metadata log take in what a broker writes, until it has come to something, or for a while."""
        for _ in range(_ROUNDS):
            if decided():
                return True
            self.replicate()
            self.clock.advance(POLL_MS)
            self.goes_on(node)
        return decided()

    def asks_leader(self, node: int) -> bool:
        """Let what a follower has asked that builds its auxiliary state, or is answered, arrive."""
        return self._deliver(PARTITION, OF_BUILD, node)


def constants_left(constants: Mapping[str, int]) -> list[str]:
    """The constants that a broker of ours has nothing for, in lockstep."""
    return [name for name in ("transactions", "switches", "expires") if constants[name]]
