"""A leader of one partition over a real log, with the checks of ``kip-320-mended``; and one consumer of it.

It replicates nothing: a test says who leads in which epoch, what each log holds, and where the high watermark is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fencepost.impl.consumer import Consumer, ConsumerConfig, ConsumerRecord
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import Log, LogConfig, Record
from fencepost.impl.net import SimulatedNetwork
from fencepost.impl.offsets import OFFSETS_TOPIC, GroupCoordinator
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    EARLIEST,
    NO_EPOCH,
    Envelope,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    Request,
    Response,
    TopicPartition,
)

from .twin import open_directory

TP = TopicPartition("orders", 0)


class Leader:
    """The broker at ``address``: leader in ``epoch``, or none while that is ``None``."""

    def __init__(self, network: SimulatedNetwork, address: int, *, segment_bytes: int = 4096) -> None:
        self.network = network
        self.address = address
        self.directory = open_directory(SimulatedFiles(), LogConfig(segment_bytes=segment_bytes))
        self.log: Log = self.directory.log(*TP)
        self.groups = self.coordinate()
        self.epoch: int | None = None
        self.hw = 0
        self.metadata = MetadataResponse(ErrorCode.NONE)
        self.refuse: ErrorCode | None = None
        """Answer every fetch so."""
        self.mended = True
        """Whether a fetch that names an epoch which the log lacks is refused, and a replaced leader refuses."""
        self.damage = False
        """Flip a bit in what is fetched."""
        self.asked: list[Request] = []
        network.attach(self)

    # -- what a test does -------------------------------------------------------------------------------------------

    def coordinate(self, **settings: Any) -> GroupCoordinator:
        """Keep the groups' offsets by a coordinator of these settings."""
        log = self.directory.log(OFFSETS_TOPIC, 0)
        self.groups = GroupCoordinator(log, self.network.clock, known=lambda tp: tp == TP, **settings)
        return self.groups

    def lead(self, epoch: int) -> None:
        """Become the leader."""
        self.epoch = epoch
        self.log.assign_epoch(epoch)

    def write(self, *values: str) -> None:
        """One record a batch, and expose all that there is."""
        assert self.epoch is not None
        for value in values:
            self.log.append_as_leader([Record(value.encode(), timestamp=7)], self.epoch)
        self.hw = self.log.end

    def copy(self, other: Leader, up_to: int) -> None:
        """Become what a follower is that has copied the other's log up to there."""
        self.epoch, self.hw = None, 0
        self.log.truncate_to(0)
        for batch in other.log.read(0, up_to=up_to):
            self.log.append_as_follower(batch.data)

    # -- endpoint ---------------------------------------------------------------------------------------------------

    def deadline(self) -> int | None:
        """Nothing to wait for."""
        return None

    def wake(self) -> None:
        """Nothing to do."""

    def receive(self, envelope: Envelope) -> None:
        """Answer at once."""
        request = envelope.body
        answer: Response
        match request:
            case FetchRequest():
                answer = self.fetch(request)
            case OffsetsForLeaderEpochRequest():
                answer = self.end_of_epoch(request)
            case ListOffsetsRequest():
                answer = self.list_offsets(request)
            case MetadataRequest():
                answer = self.metadata
            case OffsetCommitRequest():
                answer = self.groups.commit(request)
            case OffsetFetchRequest():
                answer = self.groups.fetch(request)
            case _:
                raise AssertionError(f"no consumer asks {request}")
        self.asked.append(request)
        self.network.send(Envelope(self.address, envelope.source, envelope.correlation, answer))

    def fetch(self, request: FetchRequest) -> FetchResponse:
        """KIP-320, "Leader Fetch Handling", mended."""
        if self.refuse is not None:
            return FetchResponse(self.refuse, leader_epoch=self.epoch or 0)
        if self.epoch is None:
            return FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        named = request.current_leader_epoch if self.mended else NO_EPOCH
        if max(named, request.last_fetched_epoch) > self.epoch:
            return FetchResponse(ErrorCode.UNKNOWN_LEADER_EPOCH, leader_epoch=self.epoch)
        offset, epoch = request.fetch_offset, request.last_fetched_epoch
        if epoch != NO_EPOCH:
            found, end = self.log.end_offset_for(epoch)
            if end < offset or (self.mended and found != epoch):
                return FetchResponse(ErrorCode.LOG_TRUNCATION, leader_epoch=self.epoch)
        if not self.log.log_start <= offset <= self.log.end:
            return FetchResponse(ErrorCode.OFFSET_OUT_OF_RANGE, leader_epoch=self.epoch)
        batches = self.log.read(offset, request.max_bytes, self.hw) if offset < self.hw else []
        data = bytearray(b"".join(batch.data for batch in batches))
        if self.damage and data:
            data[-1] ^= 1
        return FetchResponse(ErrorCode.NONE, self.hw, self.log.log_start, self.epoch, bytes(data))

    def end_of_epoch(self, request: OffsetsForLeaderEpochRequest) -> OffsetsForLeaderEpochResponse:
        """OffsetsForLeaderEpoch, where -1 for the current epoch skips the check."""
        if self.epoch is None:
            return OffsetsForLeaderEpochResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.mended and request.current_leader_epoch > self.epoch:
            return OffsetsForLeaderEpochResponse(ErrorCode.UNKNOWN_LEADER_EPOCH, answering_epoch=self.epoch)
        epoch, end = self.log.end_offset_for(request.leader_epoch)
        return OffsetsForLeaderEpochResponse(ErrorCode.NONE, epoch, end, self.epoch)

    def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """The log start or the high watermark, with the epoch of the record before it."""
        if self.epoch is None:
            return ListOffsetsResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        offset = self.log.log_start if request.timestamp == EARLIEST else self.hw
        epoch = self.log.epoch_for(offset - 1) if offset > self.log.log_start else NO_EPOCH
        return ListOffsetsResponse(ErrorCode.NONE, offset, epoch, answering_epoch=self.epoch)


class Reader:
    """A consumer of ``TP``, driven as an application would, or step by step."""

    def __init__(self, network: SimulatedNetwork, config: ConsumerConfig, partitions: Sequence[TopicPartition]) -> None:
        self.network = network
        self.consumer = Consumer(network, network.clock, config)
        network.attach(self.consumer)
        self.consumer.assign(partitions)

    def knows(self, leader: Leader | int, epoch: int = -1) -> None:
        """Give it metadata by hand."""
        address = leader if isinstance(leader, int) else leader.address
        self.consumer.update_metadata(TP, MetadataResponse(ErrorCode.NONE, address, epoch))

    def step(self, *, max_bytes: int = 1) -> list[str]:
        """One request and its answer; the values of the records that came of it."""
        self.consumer.advance(TP, max_bytes)
        self.deliver()
        return values(self.consumer.take(TP))

    def deliver(self) -> None:
        """Deliver every message there is, and those that come of them."""
        while flights := self.network.in_flight():
            self.network.deliver(flights[0])

    def poll(self, rounds: int = 10, pause: int = 200) -> list[str]:
        """Poll again and again, with time enough for every backoff."""
        found: list[str] = []
        for _ in range(rounds):
            found += values(self.consumer.poll())
            self.deliver()
            self.network.clock.advance(pause)
        return found


def values(records: Sequence[ConsumerRecord]) -> list[str]:
    """What they hold."""
    return [(record.value or b"").decode() for record in records]


def cluster(count: int = 1, **settings: object) -> tuple[SimulatedNetwork, list[Leader], Reader]:
    """Brokers 0 to ``count - 1`` and one consumer that knows of them all."""
    network = SimulatedNetwork()
    leaders = [Leader(network, address) for address in range(count)]
    config = ConsumerConfig(brokers=tuple(range(count)), **settings)  # type: ignore[arg-type]
    return network, leaders, Reader(network, config, [TP])


def reading(**settings: object) -> tuple[SimulatedNetwork, Leader, Reader]:
    """A leader in epoch 2 with a1 b1 c2 d2, and a consumer at offset 0 that knows it."""
    network, (leader,), reader = cluster(1, **settings)
    leader.lead(1)
    leader.write("a1", "b1")
    leader.lead(2)
    leader.write("c2", "d2")
    leader.metadata = MetadataResponse(ErrorCode.NONE, 0, 2)
    reader.consumer.seek(TP, 0)
    reader.knows(leader, 2)
    return network, leader, reader


def at(reader: Reader) -> tuple[int, int, int]:
    """Offset, last fetched epoch, serving epoch."""
    position = reader.consumer.state(TP).position
    assert position is not None
    return position.offset, position.leader_epoch, position.serving_epoch


def fetches(leader: Leader) -> list[FetchRequest]:
    return [request for request in leader.asked if isinstance(request, FetchRequest)]
