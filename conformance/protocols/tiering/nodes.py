"""Brokers with tiered storage as processes on a simulated network, their controller, and one object store.

There are two partitions: ``PARTITION``, which is tiered, and the metadata log. Who leads the second, and how it is
replicated, is ``fencing``: its messages arrive one by one, or all of them in one event (``REPLICATE``). Each append is
synced at once, so that no crash takes back what a broker had said to have.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast
from uuid import UUID

from ....impl.files.simulated import SimulatedFiles
from ....impl.replica.broker import Broker
from ....impl.replica.timers import Key
from ....impl.tiering import TieringConfig
from ....impl.tiering.metadata import METADATA
from ....impl.tiering.remote import READ
from ....impl.wire.messages import (
    CONTROLLER,
    FIRST_CLIENT,
    AlterIsrRequest,
    Envelope,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
    TopicPartition,
)
from ...adapters.endpoints import Mailbox, Node
from ...adapters.nodes import DUE
from ...adapters.topic_ids import topic_ids
from ...checks.crash_image import Nowhere
from ...checks.durability import LastingBrokers
from ...checks.timers import Timed, TimedNodes, waits_of_broker
from ...simulation.events import Event, EventKind
from ...simulation.system import StepResult
from .retention import Retention
from .store import BREAKS, FAILS, FAR, WORKS, Bucket, EventJobs

PARTITION: Final = TopicPartition("t", 0)
REPLICATE: Final = "replicate"
"""The metadata log is replicated, and what is asked to be written to it is."""
FOLLOW: Final = "follow"
"""Everybody fetches the records of the tiered partition."""
WORK: Final = "work"
"""A broker's remote log manager goes on, as far as it comes."""
_BUCKET: Final = 1_000
"""The number of the store's disk."""
_TIMES: Final = 4
_SEGMENT: Final = 480
_STEPS: Final = 24
"""So many requests to the store are served in one ``WORK``."""
_BUDGET: Final = 400
REMOTE: Final = "remote"
OF_FETCH: Final = (
    FetchRequest,
    FetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
OF_BUILD: Final = (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
OF_METADATA: Final = (*OF_FETCH, ProduceRequest, ProduceResponse)
TIMEOUT_MS: Final = 400
_RETRY_MS: Final = 20
PATIENCE_MS: Final = TIMEOUT_MS + _RETRY_MS
"""Who is told of a failing store waits no longer."""
INTERVAL_MS: Final = 100
POLL_MS: Final = 40


class _Wire:
    """A broker's transport. In events in which others act, too, power is lost by the one broker at whom they happen."""

    def __init__(self, nodes: TieredNodes, node: int) -> None:
        self._nodes = nodes
        self._node = node

    def send(self, envelope: Envelope) -> None:
        """Take a message on its way."""
        self._nodes.effect(self._node)
        self._nodes.sends(envelope)
        self._nodes.network.send(envelope)


class TieredNodes(LastingBrokers, TimedNodes):
    """The processes, without what is asked of them."""

    protocol = "tiering"
    implemented = "kip-1023-brokers"
    times = (10, 60, 300)

    def _set_up(self, constants: Mapping[str, int]) -> range:
        parts = self._parts
        chance = random.Random(self.seed)  # noqa: S311 - repeatable on purpose
        self.brokers = range(constants["replicas"])
        self._config = parts.broker_config(
            # The metadata log's records have to fit, too.
            log=parts.log_config(segment_bytes=_SEGMENT, index_interval_bytes=100),
            replica_lag_time_max_ms=chance.choice((1_000, 10_000)),
            isr_interval_ms=60,
            replica_fetch_wait_ms=30,
            replica_fetch_backoff_ms=20,
            replica_fetch_max_bytes=chance.choice((1, 1 << 20)),
            request_timeout_ms=TIMEOUT_MS,
            high_watermark_interval_ms=chance.choice((50, 5_000)),
            recovery_point_interval_ms=5_000,
            flush_each_append=True,
        )
        self._of_broker = waits_of_broker(self._config, self._tiering(last_tiered=False), FAR)
        self.retention = chance.random() < 0.3
        total = chance.choice((900, 1_500)) if self.retention else -1
        self.record_bytes = chance.choice((300, 150, 150, 80))
        """One, two or three records are a segment."""
        self.kept = Retention.drawn(total, chance.choice((0, 0, 0, 600)), self.seed)
        self.topic = parts.tiered_topic(**self.kept.configs())
        self._flag_at_first = chance.random() < 0.7
        self._flags: dict[int, bool] = dict.fromkeys(self.brokers, self._flag_at_first)
        self._incarnations = dict.fromkeys(self.brokers, 0)
        self._registered = dict.fromkeys(self.brokers, 0)
        self.copies = 0
        """So many copies were begun."""
        self.managers: dict[int, Any] = {}
        self.jobs: dict[int, EventJobs] = {}
        self._victim: int | None = None
        """Who may lose power in the midst of this event; None: whoever does anything."""
        self._of: dict[tuple[int, int], TopicPartition] = {}
        """By sender and correlation id, of which partition a request is."""
        self._bucket = Bucket(self.store.files(_BUCKET), self._power)
        self.is_store_away = False
        """Whether the store refuses all that would be served."""
        self.network.observer = self._notice
        self.network.attach(Mailbox(FIRST_CLIENT, self._told))
        self.controller = parts.controller(
            self.network,
            self.clock.at(CONTROLLER),
            SimulatedFiles(self.seed),
            retry=300,
            new_id=topic_ids(self.seed),
        )
        self.network.attach(self.controller)
        return self.brokers

    def _begin(self, node: int, first_correlation: int) -> Node:
        parts, clock = self._parts, self.clock.at(node)
        self._incarnations[node] += 1
        jobs = self.jobs[node] = EventJobs(clock)
        config = self._tiering(last_tiered=self._flags[node])
        manager = self.managers[node] = parts.remote_log_manager(
            parts.remote_store.in_files(cast(Any, self._bucket), "bucket"),
            jobs,
            clock,
            {PARTITION.topic: self.topic},
            config,
            new_id=self._new_id,
        )
        return parts.broker(
            node,
            self.store.files(node),
            _Wire(self, node),
            clock,
            self._config,
            first_correlation=first_correlation,
            remote_logs=manager,
        )

    def _opened_on(self, node: int, files: SimulatedFiles) -> Any:
        return self._parts.broker(node, files, Nowhere(), self.clock.at(node), self._config)

    def _tiering(self, *, last_tiered: bool) -> TieringConfig:
        return self._parts.tiering_config(
            follower_fetch_last_tiered_offset_enable=last_tiered,
            task_interval_ms=INTERVAL_MS,
            task_retry_backoff_ms=20,
            task_retry_backoff_max_ms=80,
            metadata_poll_ms=POLL_MS,
            metadata_timeout_ms=2 * POLL_MS,
            read_retry_ms=_RETRY_MS,
        )

    def _timed(self, node: int) -> Iterator[Timed]:
        yield Timed(self.broker(node)._runtime.timers, self._of_broker)

    def _new_id(self) -> UUID:
        self.copies += 1
        return UUID(int=self.copies)

    def _settle(self) -> None:
        for node in self.brokers:
            self.register(node)
        for partition in (METADATA, PARTITION):
            self.controller.create_partition(partition, list(self.brokers))
        self._arrive_all()
        self._prepare()

    def _prepare(self) -> None:
        """Some runs have records when they begin."""

    def step(self, event: Event) -> StepResult:
        """One event. Raises what a broker does."""
        self._victim = event.node if event.what is EventKind.SYNC else None
        return super().step(event)

    def effect(self, node: int) -> None:
        """A broker is about to leave something behind. Raises ``PowerLost``."""
        if self._victim in (None, node):
            self._power.effect()

    def _hook(self, node: int) -> Callable[[str, str], None]:
        hook = super()._hook(node)

        def own(operation: str, path: str) -> None:
            left = self._power.left
            if self._victim not in (None, node):
                self._power.left = None
            try:
                hook(operation, path)
            finally:
                if self._victim not in (None, node):
                    self._power.left = left

        return own

    # -- who is there -----------------------------------------------------------------------------------------------

    def broker(self, node: int) -> Broker:
        """One that is up."""
        return cast(Broker, self.nodes[node])

    def replica(self, node: int, partition: TopicPartition = PARTITION) -> Any:
        """A replica of one that is up, a ``Partition`` of its ``impl``; None where it has none."""
        return self.broker(node).partitions.get(partition)

    def position(self, node: int) -> int:
        """Up to where one that is up has read the metadata log, which it does when it needs to know."""
        manager: Any = self.broker(node)._runtime.remote_logs
        return int(manager.metadata.position)

    def remote(self, node: int) -> Any:
        """The remote part of a replica of one that is up."""
        here = self.replica(node)
        return None if here is None else here.remote

    def up(self) -> list[int]:
        """Whoever runs."""
        return [node for node in self.brokers if node not in self.down]

    def leaders(self) -> list[int]:
        """Whoever presumes that it leads the tiered partition."""
        there = ((node, self.replica(node)) for node in self.up())
        return [node for node, here in there if here is not None and here.leader is not None]

    def leader_of(self, node: int, partition: TopicPartition) -> Any:
        """A broker's role as the leader of a partition, one object for each leader epoch; None where it is not."""
        here = self.replica(node, partition) if node in self.brokers and node not in self.down else None
        return None if here is None else here.leader

    def register(self, node: int) -> None:
        """The controller hears of a broker's process."""
        self.controller.broker_started(node, self._incarnations[node])
        self._registered[node] = self._incarnations[node]

    def is_registered(self, node: int) -> bool:
        """Whether the controller has heard of the process that runs."""
        return self._registered[node] == self._incarnations[node]

    def set_flag(self, node: int) -> None:
        """``follower.fetch.last.tiered.offset.enable`` is switched, which is dynamic."""
        self._flags[node] = not self._flags[node]
        if node not in self.down:
            manager = self.managers[node]
            manager.config = replace(manager.config, follower_fetch_last_tiered_offset_enable=self._flags[node])

    def is_counted(self, node: int) -> bool:
        """Whether a leader goes by what a broker has fetched in its leader epoch: it would take an empty one for it.

        (Kafka has known of that since KIP-903, which is ``controller``; here whoever is emptied begins a leader epoch.)
        """
        for partition in (METADATA, PARTITION):
            for other in self.up():
                here = self.replica(other, partition)
                known = None if here is None or here.leader is None else here.leader.progress.get(node)
                if known is not None and known.end >= 0:
                    return True
        asked = (flight.envelope.body for flight in self.network.in_flight(destination=CONTROLLER))
        return any(isinstance(body, AlterIsrRequest) and node in body.new_isr for body in asked)

    def replace_disk(self, node: int) -> None:
        """A broker that is down gets an empty disk; what its process had sent, or was to get, is lost with connections.

        Of a former process's requests Kafka's brokers know by the broker epoch (KIP-380) that they are not meant for
        them: by one of them an empty broker would lead in an epoch in which others may follow it still.
        """
        self.store.replace(node)
        for flight in self.network.in_flight():
            if node in (flight.envelope.source, flight.envelope.destination):
                self.network.drop(flight)

    def _is_lost(self, node: int) -> bool:
        return any(each.failure is not None for each in self.broker(node).partitions.values())

    def _lose(self, address: int, event: Event) -> None:
        # It has one log directory: where that fails for one partition its process ends, and no other goes on (KIP-112).
        self._stop(address, self._crash_seed(event))

    def _stop(self, node: int, seed: int) -> None:
        super()._stop(node, seed)
        self.managers.pop(node, None)
        self.jobs.pop(node, None)

    # -- messages ---------------------------------------------------------------------------------------------------

    def _notice(self, what: str, _moment: int, envelope: Envelope) -> None:
        """Told of every message that is sent, and of what becomes of it."""
        body: Any = envelope.body
        partition = getattr(body, "partition", None)
        if what == "sent" and partition is not None:
            self._of[envelope.source, envelope.correlation] = partition

    def _told(self, envelope: Envelope) -> None:
        """A client is answered."""

    def partition_of(self, envelope: Envelope) -> TopicPartition | None:
        """Which partition a message is about."""
        partition: TopicPartition | None = getattr(envelope.body, "partition", None)
        return partition or self._of.get((envelope.destination, envelope.correlation))

    # -- timers -----------------------------------------------------------------------------------------------------

    def _timers(self, node: int) -> Iterable[Key]:
        for key in self.broker(node).timers():
            if len(key) == 2 and key[1] == PARTITION and key[0] in ("fetch", "isr", REMOTE):
                yield key

    def _fire(self, event: Event) -> None:
        match event.name:
            case "replicate":
                self._converse(METADATA, OF_METADATA)
            case "follow":
                self._converse(PARTITION, OF_FETCH)
            case "work":
                assert event.node is not None
                self._work(event.node)
            case "resend":
                self.controller.wake()
            case _ if event.name.startswith(WORKS):
                assert event.node is not None
                self._serve(event.node, event)
            case _ if event.name == DUE and event.node is not None:
                self.nodes[event.node].wake()
            case _:
                super()._fire(event)

    def _serve(self, node: int, event: Event) -> None:
        """The store serves a broker's oldest request, or what comes of it otherwise."""
        jobs = self.jobs[node].waiting
        number = int(event.arg("request"))
        if number >= len(jobs):
            return
        bucket = self._bucket
        bucket.mood = FAILS if self.is_store_away and event.name == WORKS else event.name
        bucket.left = self._crash_seed(event) % 5 if event.name == BREAKS else 0
        try:
            jobs.pop(number).run()
        finally:
            bucket.mood = WORKS
        self._go_on(node)

    def reads(self, node: int) -> bool:
        """Whether a broker waits for its store to answer whoever reads what is there."""
        here = self.replica(node)
        tasks = {} if here is None or here.remote is None else here.remote.tasks._tasks
        return any(task.job is not None for name, task in tasks.items() if name.startswith(READ))

    def _go_on(self, node: int) -> None:
        if self.replica(node) is not None:
            self.broker(node).fire((REMOTE, PARTITION))

    def _work(self, node: int) -> None:
        begun = self.copies
        jobs = self.jobs[node].waiting
        if not jobs:
            self.look_at_timers()
            self.clock.advance(INTERVAL_MS)  # whatever it waits for, its time has come
            self._go_on(node)
        for _ in range(_STEPS):
            if jobs:
                self._bucket.mood = FAILS if self.is_store_away else WORKS
                try:
                    jobs.pop(0).run()
                finally:
                    self._bucket.mood = WORKS
                self._go_on(node)
                if self._is_store_another():
                    break
            elif self._asks_leader(node):
                continue
            elif not any(True for _ in self._about(METADATA, (ProduceRequest,))):
                break
            if self._converse(METADATA, OF_METADATA):
                break
            self.look_at_timers()
            self.clock.advance(POLL_MS)
            finished = self._has_finished()
            self._go_on(node)
            if finished or self.copies - begun > 1:
                break

    def _asks_leader(self, node: int) -> bool:
        """Let what a follower has asked, or is answered, arrive; gives whether there was any of it."""
        found = [
            each
            for each in self._about(PARTITION, OF_BUILD)
            if node in (each.envelope.source, each.envelope.destination)
        ]
        for flight in found:
            self.network.deliver(flight)
        return bool(found)

    @abstractmethod
    def _is_store_another(self) -> bool:
        """Whether a copy is in the store that was not when the event began, or the other way round."""

    @abstractmethod
    def _has_finished(self) -> bool:
        """Whether the metadata log says of another copy that it is finished."""

    def _highest(self) -> list[int | None]:
        """What each leader that is up has found to be the highest offset in remote storage."""
        copiers = (remote.copier for node in self.up() if (remote := self.remote(node)) is not None)
        return [None if copier is None else copier.highest for copier in copiers]

    def _converse(self, partition: TopicPartition, bodies: tuple[type, ...]) -> bool:
        """Everybody who can be reached fetches, a few times over, and of all that is in flight this alone arrives.

        Not once a leader has found more in remote storage: it has looked as far as it had read just then, and what it
        reads later in the event would not show that. Gives whether that was so.
        """
        found = self._highest() if partition == METADATA else []
        for _ in range(_TIMES):
            for node in self.up():
                here = self.replica(node, partition)
                if node not in self.cut and here is not None and here.follower is not None:
                    building = partition == PARTITION and here.remote is not None and here.remote.building()
                    if not building:
                        self.broker(node).fire(("fetch", partition))
            for _ in range(2):
                for flight in self._about(partition, bodies):
                    if self._may_arrive(flight.envelope):
                        self.network.deliver(flight)
                        if partition == METADATA and self._highest() != found:
                            return True
        return False

    def _about(self, partition: TopicPartition, bodies: tuple[type, ...]) -> Iterator[Any]:
        for flight in self.network.in_flight():
            envelope = flight.envelope
            if isinstance(envelope.body, bodies) and self.partition_of(envelope) == partition:
                yield flight

    # -- before a run -----------------------------------------------------------------------------------------------

    def _arrive_all(self) -> None:
        """Let everything arrive, before a run begins."""
        for _ in range(_BUDGET):
            flights = [each for each in self.network.in_flight() if not isinstance(each.envelope.body, OF_FETCH)]
            if not flights:
                break
            for flight in flights:
                self.network.deliver(flight)
        for _ in range(3):
            self._converse(METADATA, OF_METADATA)
            self._converse(PARTITION, OF_FETCH)
