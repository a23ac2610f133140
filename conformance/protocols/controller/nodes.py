"""Controllers and brokers of ``impl/kraft`` as processes on a simulated network, with disks that may fail.

Brokers have the numbers from 0 on, controllers those behind them. A broker has two disks, one of them for its copy of
the metadata log, and both fail together. Of what a process wants to do later all that is due is one event, as the order
of such things within a node is its own; a heartbeat may also come early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast
from uuid import UUID

from ....impl.files.simulated import SimulatedFiles
from ....impl.kraft.broker import MetadataBroker
from ....impl.kraft.node import HEARTBEAT, ControllerNode
from ....impl.log.topic_id import PARTITION_METADATA
from ....impl.quorum.config import QuorumConfig
from ....impl.quorum.node import QuorumNode
from ....impl.quorum.timers import FETCH
from ....impl.replica.timers import Key
from ....impl.wire.controller import Endpoint, ReplicaRequest
from ....impl.wire.messages import FetchResponse, OffsetsForLeaderEpochResponse
from ....impl.wire.quorum import QuorumFetchRequest, QuorumFetchResponse
from ...adapters.endpoints import Node
from ...adapters.events import FULL, MENDED
from ...adapters.nodes import DUE
from ...checks.file_inventory import AccountedNodes, folder_of, folder_of_quorum
from ...checks.timers import (
    Timed,
    TimedNodes,
    waits_of_broker,
    waits_of_controller,
    waits_of_lifecycle,
    waits_of_quorum,
)
from ...simulation.events import Event

_METADATA: Final = 1_000
"""The number of a broker's disk for the metadata log, less its own."""
LIFE_BITS: Final = 32
_BUDGET: Final = 600
"""So many times everything arrives that is in flight, or time passes, before a run begins."""


REPLICATE: Final = "replicate"
"""Everybody fetches the metadata log."""
FOLLOW: Final = "follow"
"""Everybody fetches what it follows."""
STOP: Final = "stop"
"""A broker that may stop does, in order."""
QUORUM_MESSAGES: Final = (QuorumFetchRequest, QuorumFetchResponse)
REPLICA_MESSAGES: Final = (ReplicaRequest, FetchResponse, OffsetsForLeaderEpochResponse)
_TIMES: Final = 3
"""A record is there, is stable, and is known to be by the third fetch."""
_WAVES: Final = 2
"""A request, and its answer."""


def fetch_all(node: Node) -> None:
    """A broker fetches what it follows; a controller follows nothing."""
    inner = getattr(node, "broker", None)
    if inner is not None:
        for key in inner.timers():
            if key[0] == "fetch":
                inner.fire(key)


class KraftNodes(AccountedNodes, TimedNodes):
    """The processes, without what is asked of them."""

    protocol = "controller"
    implemented = "kip-631-cluster"
    times = (10, 50, 200)

    def _set_up(self, constants: Mapping[str, int]) -> range:
        replicas, nodes = constants["replicas"], constants["nodes"]
        self.brokers = range(replicas)
        self.voters = tuple(range(replicas, replicas + nodes))
        parts, chosen = self._parts, self.seed
        self._quorum_config: QuorumConfig = parts.quorum_config(
            self.voters,
            log=parts.log_config(segment_bytes=(1 << 20, 2_000)[chosen % 2], index_interval_bytes=500),
            max_replication_lag_ms=(0, 300)[chosen // 2 % 2],
            election_timeout_ms=300,
            fetch_timeout_ms=500,
            request_timeout_ms=100,
            fetch_wait_ms=40,
            retry_backoff_ms=20,
            fetch_max_bytes=(1, 2_000)[chosen // 4 % 2],
            snapshot_max_bytes=700,
            begin_offset_interval_ms=100,
        )
        few = (4, 8, 1_000)[chosen // 8 % 3]
        self.kraft = parts.kraft_config(
            session_timeout_ms=(300, 600)[chosen // 5 % 2],
            fence_by_event=chosen // 3 % 2 == 0,
            heartbeat_interval_ms=100,
            request_timeout_ms=100,
            snapshot_minimum_records=few,
            degraded_snapshot_minimum_records=3 * few,
            max_lag_records=6,
        )
        self._lifecycle = parts.lifecycle_config(heartbeat_interval_ms=100, request_timeout_ms=100, retry_backoff_ms=20)
        self._broker_config = parts.broker_config(
            replica_lag_time_max_ms=200,
            isr_interval_ms=60,
            replica_fetch_wait_ms=40,
            replica_fetch_backoff_ms=20,
            request_timeout_ms=60,
            high_watermark_interval_ms=5_000,
            recovery_point_interval_ms=5_000,
            log=parts.log_config(segment_bytes=4_000),
        )
        self._of_quorum = waits_of_quorum(self._quorum_config)
        self._of_controller = waits_of_controller(self.kraft)
        self._of_lifecycle = waits_of_lifecycle(self._lifecycle)
        self._of_broker = waits_of_broker(self._broker_config)
        return range(replicas + nodes)

    def _begin(self, node: int, first_correlation: int) -> Node:
        clock = self.clock.at(node)
        seed = self.seed * 100 + self._lives
        if node in self.voters:
            return self._parts.controller_node(
                node,
                self.store.files(node),
                self.wire(),
                clock,
                self._quorum_config,
                self.kraft,
                seed=seed,
                first_correlation=first_correlation,
            )
        metadata = self.store.files(node + _METADATA)
        if isinstance(metadata, SimulatedFiles):
            metadata.hook = self._hook(node)
        made = self._parts.metadata_broker(
            node,
            self.store.files(node),
            metadata,
            self.wire(),
            clock,
            self._quorum_config,
            incarnation=UUID(int=(node + 1) << LIFE_BITS | self._lives),
            config=self._broker_config,
            lifecycle=self._lifecycle,
            endpoints=(Endpoint("PLAINTEXT", f"broker-{node}", 9092),),
            seed=seed,
            first_correlation=first_correlation,
        )
        return cast(Node, made)

    @property
    def broker_cluster(self) -> str:
        """The cluster id."""
        return self._quorum_config.cluster_id

    # -- who is there -----------------------------------------------------------------------------------------------

    def controller(self, number: int) -> ControllerNode:
        """One that is up."""
        return cast(ControllerNode, self.nodes[number])

    def broker(self, number: int) -> MetadataBroker:
        """One that is up."""
        return cast(MetadataBroker, self.nodes[number])

    def quorum(self, number: int) -> QuorumNode:
        """The copy of the metadata log at a process that is up."""
        return cast(ControllerNode, self.nodes[number]).quorum

    def up(self) -> list[int]:
        """Whoever runs."""
        return [node for node in self.replicas if node not in self.down]

    @property
    def active(self) -> ControllerNode | None:
        """Who takes itself for the active controller, of the newest epoch if there are two."""
        there = [self.controller(node) for node in self.voters if node not in self.down]
        acting = [each for each in there if each.active is not None]
        return max(acting, key=lambda each: each.quorum.epoch, default=None)

    def _is_lost(self, node: int) -> bool:
        if self.quorum(node).failure is not None:
            return True
        if node in self.voters:
            return False
        broker = self.broker(node)
        failed = any(each.failure is not None for each in broker.broker.partitions.values())
        return failed or broker.publisher.failure is not None

    # -- disks ------------------------------------------------------------------------------------------------------

    def _stop(self, node: int, seed: int) -> None:
        super()._stop(node, seed)
        if node in self.brokers:
            self.store.crash(node + _METADATA, seed + 1)

    def _change_disk(self, node: int, name: str) -> None:
        super()._change_disk(node, name)
        metadata = self.store.files(node + _METADATA) if node in self.brokers else None
        if isinstance(metadata, SimulatedFiles):
            metadata.capacity = metadata.used if name == FULL else None if name == MENDED else metadata.capacity

    def account(self, number: int) -> None:
        """Hold the disks of a process that is up to what it accounts for. Raises ``Unaccounted``."""
        quorum = self.quorum(number)
        metadata = self.store.files(number if number in self.voters else number + _METADATA)
        self._account(number, metadata, lambda: {quorum.replica.log.folder: folder_of_quorum(quorum.replica)})
        if number not in self.voters:
            node = self.broker(number)
            # The log of a topic whose id is not there yet holds nothing, and is deleted when the image is taken up.
            beside = () if node.publisher.published == 0 else (PARTITION_METADATA,)
            there = node.broker.partitions
            self._account(
                number,
                self.store.files(number),
                lambda: {str(each): folder_of(there[each].log, beside, (PARTITION_METADATA,)) for each in there},
            )

    # -- timers -----------------------------------------------------------------------------------------------------

    def _timed(self, node: int) -> Iterator[Timed]:
        yield Timed(self.quorum(node).timers, self._of_quorum)
        if node in self.voters:
            yield Timed(self.controller(node).timers, self._of_controller)
        else:
            broker = self.broker(node)
            yield Timed(broker.timers, self._of_lifecycle)
            yield Timed(broker.broker._runtime.timers, self._of_broker)

    def _timers(self, node: int) -> Iterable[Key]:  # noqa: ARG002 - everybody has one
        yield HEARTBEAT

    def _fire(self, event: Event) -> None:
        if event.name == REPLICATE:
            self._converse(QUORUM_MESSAGES, lambda node: cast(Any, node).quorum.fire(FETCH))
            return
        if event.name == FOLLOW:
            self._converse(REPLICA_MESSAGES, fetch_all)
            return
        assert event.node is not None
        node: Any = self.nodes[event.node]
        if event.name == DUE:
            node.wake()
        elif event.node in self.voters:
            node.fire(HEARTBEAT)
        else:
            node.lifecycle.send()

    def _converse(self, bodies: tuple[type, ...], fetch: Callable[[Node], None]) -> None:
        """Everybody who can be reached fetches, a few times over, and of all that is in flight this alone arrives."""
        for _ in range(_TIMES):
            for number in self.up():
                if number not in self.cut and self.quorum(number).failure is None:
                    fetch(self.nodes[number])
            for _ in range(_WAVES):
                for flight in self.network.in_flight():
                    if isinstance(flight.envelope.body, bodies):
                        self.network.deliver(flight)

    # -- before a run -----------------------------------------------------------------------------------------------

    def run_until(self, holds: Callable[[], bool]) -> None:
        """Let everything arrive, and what is due be done, until something holds, before a run begins."""
        for _ in range(_BUDGET):
            if holds():
                return
            flights = self.network.in_flight()
            for flight in flights:
                self.network.deliver(flight)
            self.look_at_timers()
            if not flights:
                deadlines = [at for node in self.nodes.values() if (at := node.deadline()) is not None]
                self.clock.advance(max(0, min(deadlines) - self.clock.now()))
                for number in sorted(self.nodes):
                    if self._is_due(self.nodes[number]):
                        self.nodes[number].wake()
