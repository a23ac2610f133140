"""What clients, operators and the store do next: events, and how likely they are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ....impl.tiering.metadata import METADATA
from ....impl.wire.messages import (
    BROKER_PRINCIPAL,
    CONSUMER,
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    FIRST_CLIENT,
    LAST_TIERED,
    LATEST,
    MAX_TIMESTAMP,
    NO_LEADER,
    Envelope,
    FetchRequest,
    ListOffsetsRequest,
    ProduceRequest,
)
from ...simulation.events import Argument, Event, EventKind
from .nodes import FOLLOW, PARTITION, REPLICATE, WORK
from .producers import Producers
from .store import BREAKS, FAILS, LATE, STORE_AWAY, STORE_BACK, WORKS

if TYPE_CHECKING:
    from .system import FreeTiering

TIMESTAMPS: Final = (LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LAST_TIERED, EARLIEST_PENDING_UPLOAD)
_BEYOND: Final = 1 << 20
"""A leader epoch that no leader is ever in."""
_SKEW_MS: Final = 1_000
_PRODUCERS: Final = (0, 3, 1, 3)
"""So many idempotent producers are there, by the seed of a run."""
_EPOCHS_LEFT: Final = 5
"""So many leader epochs are kept for the end of a run."""


@lru_cache(1 << 12)
def event(what: EventKind, name: str, node: int | None = None, **args: Argument) -> Event:
    """One of these."""
    return Event(what, name, node, args=tuple(sorted(args.items())))


def of_store(system: FreeTiering, node: int) -> Iterator[Event]:
    """What may come of what a broker asks the store for."""
    waiting = system.jobs[node].waiting
    for number in range(min(2, len(waiting))):
        yield event(EventKind.SYNC, WORKS, node, request=number)
    if waiting:
        for name in (FAILS, BREAKS, LATE):
            yield event(EventKind.DISK, name, node, request=0)


def offers(system: FreeTiering) -> Iterator[Event]:
    """What may be asked for now."""
    yield event(EventKind.SYNC, REPLICATE)
    yield event(EventKind.SYNC, FOLLOW)
    for node in system.up():
        yield from of_store(system, node)
        here = system.replica(node)
        if here is None:
            continue
        if here.leader is not None:
            yield event(EventKind.SYNC, WORK, node)
            yield from _of_leader(system, node, here)
            if node not in system.cut:
                yield from _probes(here, node)
        elif here.remote is not None and here.remote.building():
            yield event(EventKind.SYNC, WORK, node)
    yield from _operations(system)


def _of_leader(system: FreeTiering, node: int, here: Any) -> Iterator[Event]:
    log = here.log
    if system.may_write(here):
        yield event(EventKind.CALL, "produce", to=node)
        for number in range(len(system.clients.producers.retried())):
            yield event(EventKind.CALL, "retry", to=node, batch=number)
    for at in {log.log_start, log.local_start - 1, here.high_watermark}:
        if at >= log.log_start:
            yield event(EventKind.CALL, "consume", to=node, offset=at)
    there = {log.log_start, log.local_start - 1} if log.log_start < log.end else set()
    times = (system.written.time_at(log, at) for at in there if at >= log.log_start)
    for timestamp in (*TIMESTAMPS, *sorted({time for time in times if time is not None})):
        yield event(EventKind.CALL, "list-offsets", to=node, timestamp=timestamp)
    if log.log_start < here.high_watermark and system.retention_left():
        yield event(EventKind.OPERATE, "delete-records", to=node, offset=log.log_start + 1)
        if log.local_start + 1 < here.high_watermark:
            yield event(EventKind.OPERATE, "delete-records", to=node, offset=log.local_start + 1)


def _probes(here: Any, node: int) -> Iterator[Event]:
    """What must be refused, or change nothing."""
    log, epoch = here.log, here.leader_epoch
    if log.log_start > 0:
        yield event(EventKind.PROBE, "consume", to=node, offset=log.log_start - 1)
    yield event(EventKind.PROBE, "consume", to=node, offset=log.end + 1)
    yield event(EventKind.PROBE, "list-offsets", to=node, timestamp=EARLIEST_PENDING_UPLOAD, epoch=_BEYOND)
    follower = next(each for each in here.request.replicas if each != node) if len(here.request.replicas) > 1 else None
    if follower is not None:
        yield event(EventKind.PROBE, "fetch", to=node, replica=follower, offset=log.local_start, epoch=_BEYOND)
        if epoch > 0:
            yield event(EventKind.PROBE, "fetch", to=node, replica=follower, offset=log.log_start, epoch=epoch - 1)
    yield event(EventKind.PROBE, "metadata", to=node)


def _operations(system: FreeTiering) -> Iterator[Event]:
    controller = system.controller
    yield event(EventKind.OPERATE, STORE_BACK if system.is_store_away else STORE_AWAY)
    for node in system.brokers:
        if node in system.down or node in system.cut:
            if controller.brokers[node].online:
                yield event(EventKind.OPERATE, "expire", broker=node)
        elif not system.is_registered(node):
            yield event(EventKind.OPERATE, "register", broker=node)
        elif not controller.brokers[node].online:
            yield event(EventKind.OPERATE, "return", broker=node)
    if system.epochs_left() <= _EPOCHS_LEFT:
        return
    state, metadata = controller.partition(PARTITION), controller.partition(METADATA)
    for node in system.up():
        if node in state.offline or not system.is_registered(node):
            continue
        if node != state.leader:
            yield event(EventKind.OPERATE, "elect" if node in state.isr else "elect-unclean", broker=node)
        if node in metadata.isr and node != metadata.leader and node not in metadata.offline:
            yield event(EventKind.OPERATE, "elect-metadata", broker=node)
        yield event(EventKind.OPERATE, "flag", broker=node)
    for node in system.brokers:
        gone = node in system.down and node not in system.nodes and node not in system.bad
        if gone and node not in state.isr | metadata.isr and not system.is_counted(node):
            yield event(EventKind.OPERATE, "replace", broker=node)


def is_urgent(asked: Event, system: FreeTiering) -> bool:
    """What whoever watches brokers does as soon as it can; and producers send again when there is another leader.

    First what that one has in remote storage alone.
    """
    if asked.what is EventKind.CALL and asked.name == "retry":
        clients, to = system.clients, int(asked.arg("to"))
        if clients.has_retried(to):
            return False
        remote = clients.remote_alone(to)
        return not remote or int(asked.arg("batch")) in remote
    return asked.what is EventKind.OPERATE and asked.name in ("expire", "register", "return")


class Clients:
    """Of one run."""

    def __init__(self, system: FreeTiering) -> None:
        self._system = system
        self._correlation = 0
        self.sent: dict[int, bytes] = {}
        """By correlation id, the record that a producer has sent."""
        self.producers = Producers(_PRODUCERS[system.seed // 17 % len(_PRODUCERS)])
        self._retried: dict[int, int] = {}
        """By broker, the leader epoch in which somebody has last sent to it again."""

    def ask(self, asked: Event) -> None:
        """One of ``offers``."""
        if asked.what is EventKind.OPERATE:
            self._operate(asked)
            return
        to = int(asked.arg("to"))
        arguments = dict(asked.args)
        epoch = int(arguments.get("epoch", -1))
        match asked.name:
            case "produce":
                self.produce(to)
            case "retry" if int(arguments["batch"]) < len(self.producers.retried()):
                value, data = self.producers.retried()[int(arguments["batch"])]
                self._retried[to] = self.epoch_of(to)
                self.sent[self._send(to, ProduceRequest(PARTITION, -1, data))] = value
            case "consume":
                self._send(to, FetchRequest(CONSUMER, PARTITION, int(arguments["offset"]), 1 << 16, -1))
            case "list-offsets":
                self._send(to, ListOffsetsRequest(PARTITION, int(arguments["timestamp"]), epoch))
            case "fetch":
                replica, offset = int(arguments["replica"]), int(arguments["offset"])
                self._send(to, FetchRequest(replica, PARTITION, offset, 1 << 16, epoch), principal=BROKER_PRINCIPAL)
            case "metadata":
                self._system.write_again()

    def produce(self, to: int) -> None:
        """One record."""
        system = self._system
        number = len(system.written.times)
        value = b"%06d" % (number + 1) + b"." * system.record_bytes
        # Producers' clocks differ: what is newest in a log need not be what comes last.
        timestamp = system.clock.wall() - _SKEW_MS * (number * 5 % 7)
        system.written.times[value] = timestamp
        data = self.producers.batch(value, timestamp)
        system.written.sizes[value] = len(data)
        self.sent[self._send(to, ProduceRequest(PARTITION, -1, data))] = value

    def remote_alone(self, node: int) -> set[int]:
        """Which of the batches that may be sent again lie below the local log start of a leader."""
        here = self._system.replica(node)
        if here is None or here.log.log_start == here.log.local_start:
            return set()
        log, written = here.log, self._system.written
        there = {written.at(at, log.epoch_for(at)) for at in range(log.log_start, log.local_start)}
        return {number for number, (value, _) in enumerate(self.producers.retried()) if value in there}

    def has_retried(self, node: int) -> bool:
        """Whether somebody has sent something again to a broker since it leads."""
        return self._retried.get(node) == self.epoch_of(node)

    def epoch_of(self, node: int) -> int:
        """The leader epoch that a broker is in; -1: none."""
        here = self._system.replica(node)
        return -1 if here is None else int(here.leader_epoch)

    def write_metadata(self, data: bytes) -> None:
        """Somebody writes to the metadata log, once more, what was written there."""
        leader = self._system.controller.partition(METADATA).leader
        if leader != NO_LEADER:
            self._send(leader, ProduceRequest(METADATA, -1, data), principal=BROKER_PRINCIPAL)

    def _send(self, to: int, body: Any, principal: str = "User:client") -> int:
        self._correlation += 1
        self._system.network.send(Envelope(FIRST_CLIENT, to, self._correlation, body, principal))
        return self._correlation

    def _operate(self, asked: Event) -> None:
        system, arguments = self._system, dict(asked.args)
        controller = system.controller
        if asked.name in (STORE_AWAY, STORE_BACK):
            system.is_store_away = asked.name == STORE_AWAY
            return
        if asked.name == "delete-records":
            node = int(arguments["to"])
            here = system.replica(node)
            assert here is not None
            offset = min(int(arguments["offset"]), here.high_watermark)
            system.deleted = max(system.deleted, offset)
            system.begun_deletions[node] = offset
            with here.storage():
                here.log.delete_before(offset)
            return
        node = int(arguments["broker"])
        match asked.name:
            case "expire":
                controller.mark_offline(node)
            case "register":
                system.register(node)
            case "return":
                controller.mark_online(node)
            case "elect":
                controller.elect_leader(PARTITION, node)
            case "elect-metadata":
                controller.elect_leader(METADATA, node)
            case "elect-unclean":
                controller.unclean = True
                try:
                    controller.elect_unclean(PARTITION, node)
                finally:
                    controller.unclean = False
                system.elected_uncleanly(node)
            case "flag":
                system.set_flag(node)
            case "replace":
                system.replace_disk(node)
