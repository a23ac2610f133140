"""A broker of KIP-631: an ``Endpoint`` that holds a broker, and an observer of the metadata log that tells it its role.

What the controller of ZooKeeper's time tells its brokers, the metadata log tells here, late and perhaps with states
left out. The process registers, sends heartbeats, and takes a snapshot of its image when the controller says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from ..files.interface import Files
from ..metadata.machine import MetadataMachine
from ..metadata.metrics import BrokerMetrics
from ..net.interface import Clock, Transport
from ..quorum.config import QuorumConfig
from ..quorum.node import QuorumNode
from ..quorum.validate import REQUESTS as QUORUM_REQUESTS
from ..quorum.validate import RESPONSES as QUORUM_RESPONSES
from ..replica.broker import Broker
from ..replica.config import BrokerConfig
from ..replica.runtime import Requests
from ..replica.timers import Timers
from ..wire.controller import Endpoint, ReplicaRequest
from ..wire.errors import ErrorCode
from ..wire.messages import BROKER_PRINCIPAL, CONTROLLER, Envelope
from .active import refused
from .config import LifecycleConfig
from .gateway import Gateway
from .lifecycle import Lifecycle, Standing
from .node import NEVER, take_snapshot
from .publisher import Publisher
from .validate import REQUESTS, RESPONSES, is_well_formed


class MetadataBroker:
    """One process. To crash it, throw it away (and what its disks had not synced); to restart, make another.

    ``files`` has the partitions' logs (``log.dirs``), ``metadata_files`` the metadata log (``metadata.log.dir``), each
    a root of its own. ``incarnation`` is a new id of each process. ``quorum`` has the controllers as its voters; the
    broker's id is none of theirs. ``seed`` and ``first_correlation`` are as for ``QuorumNode``. Raises like ``Broker``
    and ``QuorumNode``, with no file left open.
    """

    def __init__(
        self,
        node_id: int,
        files: Files,
        metadata_files: Files,
        transport: Transport,
        clock: Clock,
        quorum: QuorumConfig,
        *,
        incarnation: UUID,
        config: BrokerConfig | None = None,
        lifecycle: LifecycleConfig | None = None,
        endpoints: tuple[Endpoint, ...] = (),
        rack: str | None = None,
        seed: int = 0,
        first_correlation: int = 0,
    ) -> None:
        self.machine = MetadataMachine(track=True)
        quorum = replace(quorum, snapshot_minimum_records=NEVER)
        self.quorum = QuorumNode(
            node_id,
            metadata_files,
            transport,
            clock,
            self.machine,
            quorum,
            seed=seed,
            first_correlation=first_correlation,
        )
        self.timers = Timers()
        self.metrics = BrokerMetrics()
        self._clock = clock
        self._asked = 0
        self._requests = Requests(node_id, transport, first_correlation)
        self._gateway = Gateway(
            transport,
            self._requests,
            epoch=lambda: self.lifecycle.broker_epoch,
            image=lambda: self.machine.image,
            to=self._controller,
            receive=lambda envelope: self.broker.receive(envelope),
        )
        try:
            self.broker = Broker(node_id, files, self._gateway, clock, config, first_correlation=first_correlation)
        except BaseException:
            self.quorum.go_offline("its broker cannot start")
            raise
        self.publisher = Publisher(self.broker, self.machine, incarnation, tell=self._tell, forget=self._gateway.forget)
        self.lifecycle = Lifecycle(
            node_id,
            self._requests,
            self.timers,
            clock,
            lifecycle or LifecycleConfig(),
            cluster_id=quorum.cluster_id,
            incarnation=incarnation,
            endpoints=endpoints,
            rack=rack,
            standing=self._standing,
            to=self._controller,
            snapshot=lambda: take_snapshot(self.quorum),
        )

    # -- the endpoint -----------------------------------------------------------------------------------------------

    @property
    def address(self) -> int:
        """The node id."""
        return self.broker.address

    def deadline(self) -> int | None:
        """When the first timer runs off."""
        deadlines = self.quorum.deadline(), self.broker.deadline(), self.timers.deadline()
        return min((at for at in deadlines if at is not None), default=None)

    def wake(self) -> None:
        """Fire the timers that are due, each once."""
        self.quorum.wake()
        self._publish()
        for _ in self.timers.due(self._clock.now()):
            self.lifecycle.send()
        self.broker.wake()

    def receive(self, envelope: Envelope) -> None:
        """A message has arrived."""
        body: Any = envelope.body
        if isinstance(body, QUORUM_REQUESTS + QUORUM_RESPONSES):
            self.quorum.receive(envelope)
            self._publish()
        elif isinstance(body, RESPONSES):
            if is_well_formed(body):
                self._requests.answered(envelope)
        elif isinstance(body, REQUESTS):
            self._requests.respond(envelope, refused(body, ErrorCode.NOT_CONTROLLER))
        elif isinstance(body, ReplicaRequest):
            self._gateway.serve(envelope, body)
        else:
            self.broker.receive(envelope)

    def close(self) -> None:
        """A clean shutdown: sync and store everything. Raises ``OSError`` and ``LogOffline``, the files closed."""
        try:
            self.broker.close()
        finally:
            self.quorum.close()

    # -- metadata ---------------------------------------------------------------------------------------------------

    def _publish(self) -> None:
        replica = self.quorum.replica
        end = replica.applied
        if self.quorum.failure is None and end != self.publisher.published:
            self.publisher.publish(end, replica.epoch_at(end - 1))
        self.metrics.stable(replica.high_watermark)
        self.metrics.replayed(self.publisher.published)

    def _tell(self, body: Any) -> ErrorCode:
        self._gateway.answer = None
        self.broker.receive(Envelope(CONTROLLER, self.address, 0, body, BROKER_PRINCIPAL))
        answer = self._gateway.answer
        return answer.error if answer is not None else ErrorCode.UNKNOWN_SERVER_ERROR

    def _standing(self) -> Standing:
        replica = self.quorum.replica
        works = self.publisher.failure is None and all(each.failure is None for each in self.broker.partitions.values())
        ready = self.publisher.published > 0 and works and self.quorum.failure is None
        return Standing(self.publisher.published, replica.snapshots.latest_end, ready)

    def _controller(self) -> int:
        """Who leads the metadata log, as far as is known; else one voter after another."""
        leader = self.quorum.leader_id
        if leader >= 0:
            return leader
        voters = self.quorum.config.voters
        self._asked += 1
        return voters[self._asked % len(voters)]
