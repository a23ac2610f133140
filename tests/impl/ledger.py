"""What a cluster has promised to anyone, and whether it keeps it: told by the messages, not by the code under test.

Promised is: every record below the high watermark of a leader that answers anyone, every record that a producer was
told of, and every commit that the consumer was told of. The replicas' logs may only ever grow by what was sent, and the
consumer may only ever see what was promised, each offset in its turn.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from fencepost.impl.log import Record
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    FIRST_CLIENT,
    Envelope,
    FetchResponse,
    LeaderAndIsrRequest,
    ProduceRequest,
    ProduceResponse,
    TopicPartition,
)

from .brokers import records
from .rack import COORDINATOR, NODES, Rack, Row

PRODUCER, READER, SHOUTER = FIRST_CLIENT - 1, FIRST_CLIENT - 2, FIRST_CLIENT - 3
GROUP = "g"
_PATIENCE = 200
"""Milliseconds after which an unanswered request of a client is over, and so is every message of it."""


class Violation(AssertionError):
    """A promise that was not kept."""


def demand(kept: bool, broken: str) -> None:
    """Raise ``Violation`` where a promise is not kept."""
    if not kept:
        raise Violation(broken)


class Ledger:
    """The records that were promised, by partition, and the controller's letters to the brokers."""

    def __init__(self, rack: Rack) -> None:
        self.rack = rack
        self.committed: dict[TopicPartition, list[Row]] = {partition: [] for partition in rack.partitions}
        self.sent: set[bytes] = set()
        """Every value that was ever given to a producer."""
        self.letters: dict[int, list[Envelope]] = {node: [] for node in NODES}
        rack.net.observer = self._observe

    def _observe(self, what: str, _now: int, envelope: Envelope) -> None:
        if what != "sent":
            return
        body = envelope.body
        if isinstance(body, FetchResponse | ProduceResponse):
            self._told(envelope.source)
        elif isinstance(body, LeaderAndIsrRequest):
            self.letters[envelope.destination].append(envelope)

    def _told(self, node: int) -> None:
        """A broker answers: what it counts as committed where it leads is promised from now on."""
        for partition, committed in self.committed.items():
            there = self.rack.brokers[node].partitions.get(partition)
            if there is not None and there.leader is not None and there.high_watermark > len(committed):
                rows = self.rack.rows(node, partition, len(committed), there.high_watermark)
                where = f"broker {node}, {partition}: high watermark {there.high_watermark}"
                demand(len(committed) + len(rows) == there.high_watermark, f"{where} above its log")
                demand(all(value in self.sent for _, value in rows), f"{where}: a record that nobody has sent")
                committed += rows

    def check(self) -> None:
        """Nobody is offline, and whoever leads has every promised record at its place."""
        failures = self.rack.failures()
        demand(not failures, "; ".join(failures))
        for partition, committed in self.committed.items():
            there = self.rack.leader(partition)
            if there is None:
                continue
            node = there.runtime.node_id
            rows = self.rack.rows(node, partition)
            for offset, row in enumerate(committed):
                found = rows[offset] if offset < len(rows) else None
                where = f"broker {node} leads {partition} in epoch {there.leader_epoch}, offset {offset}"
                demand(found == row, f"{where}: {found} where {row} was committed")

    def check_all_alike(self) -> None:
        """At the end: every replica has the same log, all of it committed, the producer's records once and in order."""
        for partition, committed in self.committed.items():
            logs = [self.rack.rows(node, partition) for node in NODES]
            for node, log in enumerate(logs):
                demand(log == committed, f"{partition}: broker {node} has not what was committed")
                state = self.rack.brokers[node].state(partition)
                demand(state.high_watermark == state.end == len(log), f"{partition}: broker {node} {state}")
            mine = [value for _, value in committed if value.startswith(b"p")]
            wanted = [b"p%d.%d" % (partition.partition, n) for n in range(len(mine))]
            demand(mine == wanted, f"{partition}: the producer's records are not in order, each once")


class Writer:
    """An idempotent producer for all partitions, and a client without an id that is content with acks=1."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        rack = ledger.rack
        producer = rack.parts.producer
        config = producer.ProducerConfig(
            NODES,
            producer_id=1,
            batch_bytes=200,
            request_timeout_ms=_PATIENCE,
            retry_backoff_ms=15,
            delivery_timeout_ms=1 << 40,
            address=PRODUCER,
        )
        self.producer = producer.Producer(rack.net, rack.net.clock, config)
        rack.net.attach(self.producer)
        self.written = dict.fromkeys(rack.partitions, 0)
        self.waiting: deque[tuple[TopicPartition, bytes, Any]] = deque()
        self._shouts = 0

    def write(self, partition: TopicPartition, count: int, filler: int) -> None:
        """Give records to the idempotent producer."""
        for _ in range(count):
            value = b"p%d.%d" % (partition.partition, self.written[partition])
            self.written[partition] += 1
            self.ledger.sent.add(value)
            record = Record(value, b"k" * filler)
            self.waiting.append((partition, value, self.producer.send(partition, record)))

    def shout(self, partition: TopicPartition, node: int) -> None:
        """Send one record with acks=1, and never ask what became of it."""
        self._shouts += 1
        value = b"s%d" % self._shouts
        self.ledger.sent.add(value)
        body = ProduceRequest(partition, 1, records(value))
        self.ledger.rack.net.send(Envelope(SHOUTER, node, self._shouts, body))

    def check(self) -> None:
        """Every record of which the producer was told is where it was told."""
        left: deque[tuple[TopicPartition, bytes, Any]] = deque()
        for partition, value, delivery in self.waiting:
            if not delivery.done:
                left.append((partition, value, delivery))
                continue
            where = f"{partition}, offset {delivery.offset}: {value!r} was acknowledged"
            committed = self.ledger.committed[partition]
            demand(delivery.error is ErrorCode.NONE, f"{partition}: {value!r} was given up: {delivery.error!r}")
            demand(delivery.offset < len(committed), f"{where}, the log is committed up to {len(committed)}")
            demand(committed[delivery.offset][1] == value, f"{where}, {committed[delivery.offset]} is there")
        self.waiting = left


class Reader:
    """A consumer in a group that reads everything, commits, and starts anew from what it has committed."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.rack = ledger.rack
        self.lives = 0
        self.acknowledged: dict[TopicPartition, tuple[int, int]] = {}
        """Offset and leader epoch of the last commit of each partition that was acknowledged."""
        self.possible: dict[TopicPartition, list[tuple[int, int]]] = {p: [] for p in self.rack.partitions}
        """Those that were sent after it."""
        self._commits: list[Any] = []
        self._quiet_until = 0
        self.start()

    def start(self) -> None:
        """A new process of the consumer."""
        if self.lives:
            self.rack.net.detach(READER)
        self._settle_commits()
        self.lives += 1
        consumer = self.rack.parts.consumer
        config = consumer.ConsumerConfig(
            NODES,
            group=GROUP,
            coordinator=COORDINATOR,
            reset_policy=consumer.ResetPolicy.NONE,
            retry_backoff_ms=15,
            request_timeout_ms=_PATIENCE,
            address=READER,
            first_correlation=self.lives << 32,
        )
        self.consumer = consumer.Consumer(self.rack.net, self.rack.net.clock, config)
        self.rack.net.attach(self.consumer)
        self.consumer.assign(self.rack.partitions)
        self.next: dict[TopicPartition, int] = {}
        """The offset that is to come next, once it is known."""
        # What the former one has sent may still be on its way.
        self._quiet_until = self.rack.net.clock.now() + _PATIENCE

    def poll(self) -> None:
        """Read, and hold what was read against what was promised."""
        errors = self.rack.parts.consumer
        try:
            read = self.consumer.poll()
        except errors.NoOffsetForPartitionError as error:
            demand(error.partition not in self.acknowledged, f"{error.partition}: the acknowledged commit is lost")
            self.consumer.seek(error.partition, 0)
            return
        except errors.ConsumerError as error:
            raise Violation(f"consumer: {type(error).__name__} {error}, and no election was unclean") from error
        for partition in self.rack.partitions:
            if partition not in self.next:
                self._begun(partition)
        for record in read:
            partition = TopicPartition(record.topic, record.partition)
            demand(record.offset == self.next[partition], f"{partition}: read {record.offset} out of turn")
            self.next[partition] += 1
            committed = self.ledger.committed[partition]
            row = committed[record.offset] if record.offset < len(committed) else None
            found = record.leader_epoch, record.value
            demand(found == row, f"{partition}: the consumer read {found} at {record.offset}, committed is {row}")
        self._settle_commits()

    def _begun(self, partition: TopicPartition) -> None:
        """The first position of this process: what is committed, or the start."""
        restored = self.consumer.committed(partition)
        position = self.consumer.state(partition).consumed_from
        if position >= 0:
            self.next[partition] = position
            if restored is not None:
                self._check_found(partition, restored.offset, restored.leader_epoch)

    # -- commits ----------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Commit every position, unless an earlier commit may still be on its way and overtake this one."""
        if self._commits or self.rack.net.clock.now() < self._quiet_until:
            return
        self._commits = self.consumer.commit()
        for each in self._commits:
            self.possible[each.partition].append((each.offset.offset, each.offset.leader_epoch))

    def _settle_commits(self) -> None:
        if not all(each.done for each in self._commits):
            return
        for each in self._commits:
            if each.error is ErrorCode.NONE:
                self.acknowledged[each.partition] = each.offset.offset, each.offset.leader_epoch
                self.possible[each.partition].clear()
            elif each.error is not ErrorCode.REQUEST_TIMED_OUT:
                known = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER
                demand(each.error in known, f"{each.partition}: a commit was refused: {each.error!r}")
        self._commits = []

    def check(self) -> None:
        """What the coordinator has is the last commit that was acknowledged, or one that was sent after it."""
        broker = self.rack.brokers.get(COORDINATOR)
        if broker is None:
            return
        self._settle_commits()
        committed = {key.partition: it for key, it in broker.coordinator.committed.items() if key.group == GROUP}
        for partition in self.rack.partitions:
            if partition in committed:
                self._check_found(partition, committed[partition].offset, committed[partition].leader_epoch)
            else:
                demand(partition not in self.acknowledged, f"{partition}: the acknowledged commit is lost")

    def _check_found(self, partition: TopicPartition, offset: int, epoch: int) -> None:
        acknowledged, possible = self.acknowledged.get(partition), self.possible[partition]
        what = f"{partition}: committed is {(offset, epoch)}, acknowledged was {acknowledged}, then sent {possible}"
        demand((offset, epoch) == acknowledged or (offset, epoch) in possible, what)
