"""A controller with four brokers that take note of what it says."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.impl.files import Files, SimulatedFiles
from fencepost.impl.net import SimulatedNetwork, Transport
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    BROKER_PRINCIPAL,
    CONTROLLER,
    AlterIsrRequest,
    AlterIsrResponse,
    Envelope,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    OfflineReplicasRequest,
    OfflineReplicasResponse,
    Request,
    StopReplicaRequest,
    StopReplicaResponse,
    TopicPartition,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from fencepost.impl.zk_controller import (
    Controller,
    PartitionState,
)

TP = TopicPartition("t", 0)
ALL = frozenset((0, 1, 2))


class Broker:
    """Takes note of what the controller says and answers with ``error``; with ``None`` not at all."""

    def __init__(self, address: int, transport: Transport) -> None:
        self.address = address
        self.error: ErrorCode | None = ErrorCode.NONE
        self.told: list[Request] = []
        self.answers: list[AlterIsrResponse] = []
        self._transport = transport

    def receive(self, envelope: Envelope) -> None:
        body = envelope.body
        if isinstance(body, AlterIsrResponse):
            self.answers.append(body)
            return
        assert isinstance(
            body, LeaderAndIsrRequest | StopReplicaRequest | OfflineReplicasRequest | UpdateMetadataRequest
        )
        assert envelope.source == CONTROLLER and envelope.principal == BROKER_PRINCIPAL
        self.told.append(body)
        answer = {
            LeaderAndIsrRequest: LeaderAndIsrResponse,
            StopReplicaRequest: StopReplicaResponse,
            OfflineReplicasRequest: OfflineReplicasResponse,
            UpdateMetadataRequest: UpdateMetadataResponse,
        }[type(body)]
        if self.error is not None:
            back = Envelope(self.address, CONTROLLER, envelope.correlation, answer(self.error), BROKER_PRINCIPAL)
            self._transport.send(back)

    def leaders(self) -> list[LeaderAndIsrRequest]:
        return [body for body in self.told if isinstance(body, LeaderAndIsrRequest)]

    def metadata(self) -> list[UpdateMetadataRequest]:
        return [body for body in self.told if isinstance(body, UpdateMetadataRequest)]

    def marks(self) -> list[OfflineReplicasRequest]:
        return [body for body in self.told if isinstance(body, OfflineReplicasRequest)]

    def deadline(self) -> int | None:
        return None

    def wake(self) -> None:
        raise AssertionError


class Cluster:
    """A controller and four brokers; a partition on three of them, led by 0 in epoch 0."""

    def __init__(self, files: Files | None = None, *, unclean: bool = False, elect: bool = True, seed: int = 0) -> None:
        self.files = files or SimulatedFiles(seed)
        self.net = SimulatedNetwork(seed)
        self.unclean = unclean
        self.brokers = [Broker(address, self.net) for address in range(4)]
        for broker in self.brokers:
            self.net.attach(broker)
        self.controller = self.start()
        for address in range(4):
            self.controller.broker_started(address, 1)
        self.controller.create_partition(TP, (0, 1, 2), elect=elect)
        self.settle()

    def start(self) -> Controller:
        if self.net.is_up(CONTROLLER):
            self.net.detach(CONTROLLER)
        self.controller = Controller(self.net, self.net.clock.at(CONTROLLER), self.files, unclean=self.unclean)
        self.net.attach(self.controller)
        return self.controller

    def settle(self) -> None:
        """Everything arrives; then the brokers forget what they were told."""
        self.net.run()
        for broker in self.brokers:
            broker.told.clear()

    @property
    def state(self) -> PartitionState:
        return self.controller.partition(TP)

    def summary(self) -> tuple[int, int, set[int], int]:
        state = self.state
        return state.leader, state.leader_epoch, set(state.isr), state.partition_epoch

    def alter(
        self,
        isr: Sequence[int],
        *,
        broker: int = 0,
        epoch: int | None = None,
        version: int | None = None,
        partition: TopicPartition = TP,
        principal: str = BROKER_PRINCIPAL,
    ) -> AlterIsrResponse:
        state = self.state
        leader_epoch = state.leader_epoch if epoch is None else epoch
        partition_epoch = state.partition_epoch if version is None else version
        body = AlterIsrRequest(broker, partition, leader_epoch, frozenset(isr), partition_epoch)
        self.net.send(Envelope(3, CONTROLLER, 77, body, principal))
        self.net.run(until=lambda: bool(self.brokers[3].answers))
        return self.brokers[3].answers.pop()
