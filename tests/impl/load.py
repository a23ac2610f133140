"""A load: many records through three replicas while leaders fail, every one of them followed from producer to consumer.

Producers with an id, a consumer that reads all the time, a network that loses, repeats and overtakes messages. Leaders
crash and come back, are cut off, and are replaced by hand. Nothing that is checked is kept for longer than it takes to
see it twice, so that a long run needs no more memory than a short one.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from fencepost.impl.files import DiskFiles
from fencepost.impl.files.disk import DiskFile
from fencepost.impl.log import Record
from fencepost.impl.net import Faults
from fencepost.impl.producer import Delivery, Producer
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import CONTROLLER, FIRST_CLIENT

from .brokers import TP
from .rack import NODES, Parts, Rack

READER = FIRST_CLIENT - 1
PRODUCERS = 3
AHEAD = 2000
"""Records that a producer gives at most before the first of them is acknowledged."""
VALUE_BYTES = 50
FAULTS = Faults((0, 10), loss=0.01, duplication=0.02)
KINDS = ("crash", "bounce", "isolate", "elect", "controller")


class LoadFailure(AssertionError):
    """A record that is lost, doubled, out of order, or not the one that was sent."""


def demand(holds: bool, broken: str) -> None:
    """Raise ``LoadFailure``."""
    if not holds:
        raise LoadFailure(broken)


class ProcessDisk(DiskFiles):
    """A real disk under a process that is killed: what was written stays, the open files are gone."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._files: WeakSet[DiskFile] = WeakSet()

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        """Open, and keep it in mind."""
        file = super().open(path, create=create)
        self._files.add(file)
        return file

    def crash(self, _seed: int) -> None:
        """Kill the process."""
        for file in list(self._files):
            file.close()
        self._files.clear()


def value_of(producer: int, number: int) -> bytes:
    """The value of a producer's record: whose it is, which one, and filling."""
    return b"%d:%d:" % (producer, number) + b"x" * (VALUE_BYTES - 2 - len(str(producer)) - len(str(number)))


@dataclass
class Sender:
    """One producer, and its records that were not yet both acknowledged and read."""

    producer: Producer
    number: int
    given: int = 0
    acknowledged: int = 0
    read: int = 0
    waiting: deque[Delivery] = field(default_factory=deque)
    """Of the records from ``acknowledged`` on."""
    told: deque[int] = field(default_factory=deque)
    """Offsets of records that were acknowledged and are not read yet."""
    seen: deque[int] = field(default_factory=deque)
    """Offsets of records that were read and are not acknowledged yet."""

    def give(self, total: int) -> None:
        """Let the producer have more."""
        while self.given < total and len(self.waiting) < AHEAD:
            self.waiting.append(self.producer.send(TP, Record(value_of(self.number, self.given))))
            self.given += 1

    def settle(self) -> None:
        """Note what was acknowledged."""
        while self.waiting and self.waiting[0].done:
            delivery = self.waiting.popleft()
            demand(delivery.error is ErrorCode.NONE, f"producer {self.number}: given up, {delivery.error!r}")
            self.acknowledged += 1
            self.told.append(delivery.offset)
        self._match()

    def take(self, offset: int, value: bytes | None) -> None:
        """The consumer has read its next record."""
        wanted = value_of(self.number, self.read)
        demand(value == wanted, f"offset {offset}: {value!r:.40} where {wanted!r:.40} comes next")
        self.read += 1
        self.seen.append(offset)
        self._match()

    def _match(self) -> None:
        while self.told and self.seen:
            told, seen = self.told.popleft(), self.seen.popleft()
            demand(told == seen, f"producer {self.number}: acknowledged at offset {told}, read at {seen}")


class Load:
    """``records`` in all, ``failovers`` on the way; with ``folder`` on real files there, else in memory.

    ``parts`` is what is run: ``impl``, or a patched copy of it.
    """

    def __init__(
        self, records: int, failovers: int, seed: int, *, folder: str | None = None, parts: Parts | None = None
    ) -> None:
        self.chance = random.Random(seed)
        self.records = records
        self.failovers = failovers
        disk: Callable[[int], Any] | None = None
        if folder is not None:

            def disk(address: int) -> ProcessDisk:
                return ProcessDisk(f"{folder}/{'controller' if address == CONTROLLER else address}")

        settings = {"min_insync_replicas": 2, "high_watermark_interval_ms": 500}
        self.rack = Rack(seed, parts=parts, faults=FAULTS, settings=settings, segment_bytes=4 << 20, disk=disk)
        self.rack.start_all()
        net = self.rack.net
        self.senders: list[Sender] = []
        for number in range(PRODUCERS):
            config = self.rack.parts.producer.ProducerConfig(
                NODES,
                producer_id=number,
                request_timeout_ms=200,
                retry_backoff_ms=20,
                delivery_timeout_ms=1 << 40,
                address=READER - 1 - number,
            )
            self.senders.append(Sender(self.rack.parts.producer.Producer(net, net.clock, config), number))
            net.attach(self.senders[-1].producer)
        consumer = self.rack.parts.consumer
        reading = consumer.ConsumerConfig(
            NODES,
            reset_policy=consumer.ResetPolicy.NONE,
            max_poll_records=1 << 20,
            retry_backoff_ms=20,
            request_timeout_ms=200,
            address=READER,
        )
        self.consumer = consumer.Consumer(net, net.clock, reading)
        net.attach(self.consumer)
        self.consumer.assign([TP])
        self.consumer.seek(TP, 0)
        self.read = 0
        self.happened: Counter[str] = Counter()
        """Failovers by kind."""

    # -- running ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """All of it, and the checks. Raises ``LoadFailure``, and what the consumer raises."""
        for done in range(self.failovers):
            self._read_up_to((done + 1) * self.records // (self.failovers + 1))
            self._until(self.rack.whole)
            kind = KINDS[done % len(KINDS)]
            before = self.rack.controller.partition(TP)
            self._fail(kind)
            self._until(self.rack.whole)
            after = self.rack.controller.partition(TP)
            demand(after.leader != before.leader, f"{kind}: {before.leader} leads still")
            self.happened[kind] += 1
        self._read_up_to(self.records)
        self.rack.net.faults = Faults()
        self._until(lambda: self.rack.whole() and self._even() and not any(s.told or s.seen for s in self.senders))
        self._check_replicas()

    def _tick(self, milliseconds: int = 10) -> None:
        share, rest = divmod(self.records, PRODUCERS)
        for sender in self.senders:
            sender.settle()
            sender.give(share + (sender.number < rest))
        self.rack.register()
        self.rack.net.run(self.rack.net.clock.now() + milliseconds)
        for record in self.consumer.poll():
            value = record.value or b""
            demand(record.offset == self.read, f"read offset {record.offset} where {self.read} comes next")
            self.read += 1
            number = int(value.partition(b":")[0])
            self.senders[number].take(record.offset, value)

    def _read_up_to(self, count: int) -> None:
        self._until(lambda: self.read >= count)

    def _until(self, reached: Callable[[], bool]) -> None:
        stuck = 0
        while not reached():
            before = self.read
            self._tick()
            stuck = 0 if self.read > before else stuck + 1
            demand(stuck < 3000, f"nothing was read for 30 seconds, at {self.read} of {self.records}")
        demand(not self.rack.failures(), "; ".join(self.rack.failures()))

    def _pass(self, ticks: int) -> None:
        for _ in range(ticks):
            self._tick()

    # -- failovers --------------------------------------------------------------------------------------------------

    def _fail(self, kind: str) -> None:
        """Make another replica lead."""
        rack, chance = self.rack, self.chance
        controller = rack.controller
        leader = controller.partition(TP).leader
        other = chance.choice([node for node in NODES if node != leader])
        match kind:
            case "crash":  # and the controller notices
                rack.crash(leader, chance.randrange(1 << 32))
                controller.mark_offline(leader)
                self._pass(chance.randint(1, 30))
                rack.start(leader)
            case "bounce":  # back before anyone has noticed
                rack.crash(leader, chance.randrange(1 << 32))
                self._pass(chance.randint(0, 5))
                rack.start(leader)
            case "isolate":  # it goes on as a leader that nobody follows
                rack.net.isolate(leader)
                self._pass(chance.randint(0, 10))
                controller.mark_offline(leader)
                self._pass(chance.randint(10, 30))
                rack.net.heal()
                self._pass(chance.randint(0, 3))
                controller.mark_online(leader)
            case "elect":
                controller.elect_leader(TP, other)
            case _:  # the controller crashes once it has elected
                controller.elect_leader(TP, other)
                rack.crash(CONTROLLER, chance.randrange(1 << 32))
                self._pass(chance.randint(0, 20))
                rack.start(CONTROLLER)

    # -- the end ----------------------------------------------------------------------------------------------------

    def _even(self) -> bool:
        states = [self.rack.brokers[node].state(TP) for node in NODES]
        return all(state.high_watermark == state.end == self.records for state in states)

    def _check_replicas(self) -> None:
        """Every replica's log is byte for byte the same, and holds what was sent: read again from the files."""
        logs = [self.rack.brokers[node].partitions[TP].log for node in NODES]
        offset, numbers = 0, [0] * PRODUCERS
        while offset < self.records:
            first, *others = ([(b.base_offset, b.data) for b in log.read(offset)] for log in logs)
            demand(all(other == first for other in others), f"the replicas differ after offset {offset}")
            for batch in logs[0].read(offset):
                for record in batch.records():
                    number = int((record.value or b"").partition(b":")[0])
                    wanted = value_of(number, numbers[number])
                    demand(record.value == wanted, f"offset {record.offset}: {record.value!r:.40}")
                    numbers[number] += 1
                offset = batch.next_offset
        demand(sum(numbers) == self.records == offset, f"{sum(numbers)} records of {self.records}")
        demand(all(sender.acknowledged == sender.given for sender in self.senders), "one is not acknowledged")

    def log_bytes(self) -> int:
        """Of all replicas together."""
        return sum(self.rack.brokers[node].partitions[TP].log.size for node in NODES)

    def close(self) -> None:
        """Close every broker's files."""
        for node in sorted(self.rack.brokers):
            self.rack.brokers[node].close()
