"""Random crash points of a KIP-631 cluster: ``python -m tests.impl.kraft_crashes [POINTS] [SEED]`` at the root.

A story is a workload over three controllers and three brokers, decided by its seed: topics are created and deleted,
configs altered, leaders elected, records produced with acks=-1, brokers shut down under control, leaders of the quorum
resign, nodes are cut off, the network is bad. At ten points of each story the power of one machine, or of the whole
rack, fails before a random change of a file; what was not synced is lost, torn and reordered. The machines start again,
now and then to fail once more while they recover. In the end all come together, every image is equal, everything that
was acknowledged is there, and brokers hold the replicas that the metadata name, and no others.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any

from fencepost.impl.log import LogError, Record
from fencepost.impl.log.batch import encode_batch
from fencepost.impl.log.topic_id import read_topic_id
from fencepost.impl.metadata import changes, encode
from fencepost.impl.metadata.image import Image, PartitionKey
from fencepost.impl.net import Faults
from fencepost.impl.wire.controller import (
    ConfigChange,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ResourceType,
)
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import Envelope, ProduceRequest, ProduceResponse, TopicPartition

from .kraft_rack import BROKERS, CONTROLLER, CONTROLLERS, PowerLoss, Rack, Violation, demand

POINTS = 10
"""Crash points of a story."""
EVERYONE = (*CONTROLLERS, *BROKERS)
NAMES = ("a", "b", "c")
_CALM = Faults((0, 6), loss=0.02, duplication=0.05)


class CrashFailure(AssertionError):
    """What was found, and the numbers that bring it back."""


class Story:
    """One workload."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        controller = replace(CONTROLLER, fence_by_event=self.chance.random() < 0.5)
        self.rack = Rack(seed, faults=_CALM, controller=controller)
        self.rack.client.told = self._told
        self.rack.net.observer = self._seen
        self.crashes: Counter[str] = Counter()
        self.acknowledged: Counter[str] = Counter()
        """How many changes of each kind."""
        self.produced: dict[PartitionKey, set[bytes]] = {}
        """The values that were acknowledged."""
        self._serial = 0
        self._sent: dict[bytes, bytes] = {}
        """The value in each batch."""
        self.point = 0
        self.leaving: int | None = None
        """The broker that shuts down under control."""

    # -- the workload -----------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do something, and let some time pass."""
        chance, rack = self.chance, self.rack
        move = chance.random()
        if move < 0.14:
            self._ask(CreateTopicsRequest(chance.choice(NAMES), chance.randint(1, 3), chance.randint(1, 3)))
        elif move < 0.20:
            self._delete()
        elif move < 0.30:
            self._configure()
        elif move < 0.36:
            self._elect()
        elif move < 0.70 and rack.ledger.image.partitions:
            for _ in range(chance.randint(1, 4)):
                self._produce(chance.choice(sorted(rack.ledger.image.partitions)))
        elif move < 0.74:
            self._isolate()
        elif move < 0.84:
            rack.net.heal()
        elif move < 0.88:
            rack.net.faults = Faults((0, chance.choice((1, 6, 20))), chance.choice((0, 0.05)), chance.choice((0, 0.2)))
        elif move < 0.91 and rack.active is not None:
            rack.active.quorum.resign()
            rack.net.refresh()
        elif move < 0.94 and self.leaving is None and rack.brokers:
            self.leaving = chance.choice(sorted(rack.brokers))
            rack.brokers[self.leaving].lifecycle.want_shut_down = True
        elif move < 0.955:
            self._leave_behind()
        self._leave()
        rack.run(chance.randint(5, 60))

    def _partition(self, key: PartitionKey) -> TopicPartition:
        return TopicPartition(self.rack.ledger.image.topics[key.topic].name, key.partition)

    def _ask(self, body: Any) -> None:
        """Whoever takes itself for active, or now and then anyone, is asked."""
        active = self.rack.active
        node = active.address if active is not None and self.chance.random() < 0.9 else self.chance.choice(CONTROLLERS)
        self.rack.client.ask(node, body)

    def _delete(self) -> None:
        topics = sorted(self.rack.ledger.image.topics)
        if topics:
            self._ask(DeleteTopicsRequest(topic_id=self.chance.choice(topics)))

    def _configure(self) -> None:
        names = sorted(self.rack.ledger.image.names)
        if names:
            self._serial += 1
            told = ConfigChange("min.insync.replicas", str(self._serial))
            self._ask(IncrementalAlterConfigsRequest(ResourceType.TOPIC, self.chance.choice(names), (told,)))

    def _elect(self) -> None:
        """The preferred replica of a partition, one that it does not lead if there is any."""
        states = self.rack.ledger.image.partitions
        keys = sorted(key for key, state in states.items() if state.leader != state.replicas[0]) or sorted(states)
        if keys:
            self._ask(ElectLeadersRequest(self._partition(self.chance.choice(keys))))

    def _leave_behind(self) -> None:
        """Cut a node off for so long that the log begins after its end: it has to start over from a snapshot."""
        self.rack.net.heal()
        self.rack.net.isolate(self.chance.choice(EVERYONE))
        for number in range(16):
            if number == 8:
                self._delete()
            for _ in range(5):
                self._configure()
            self.rack.run(60)
        self.rack.net.heal()

    def _produce(self, key: PartitionKey) -> None:
        self._serial += 1
        value = b"%d" % self._serial
        batch = encode_batch([Record(value, b"k", 0)])
        self._sent[batch] = value
        leader = self.rack.ledger.image.partitions[key].leader
        if leader >= 0:
            self.rack.client.ask(leader, ProduceRequest(self._partition(key), -1, batch))

    def _isolate(self) -> None:
        chance, net = self.chance, self.rack.net
        net.heal()
        node = chance.choice(EVERYONE)
        if chance.random() < 0.5:
            net.isolate(node)
        else:
            net.cut(node, chance.choice([each for each in EVERYONE if each != node]), both=chance.random() < 0.5)

    def _leave(self) -> None:
        """A broker that may stop does, and starts again as a new process."""
        leaving = self.rack.brokers.get(-1 if self.leaving is None else self.leaving)
        if leaving is None or not leaving.lifecycle.want_shut_down:  # its power has failed meanwhile
            self.leaving = None
        elif leaving.lifecycle.may_shut_down:
            self.acknowledged["shutdown"] += 1
            leaving.close()
            self.rack.stop(leaving.address)
            self.rack.start(leaving.address)
            self.leaving = None

    # -- what is acknowledged ---------------------------------------------------------------------------------------

    def _told(self, body: Any, answer: Any) -> None:
        """It is committed when it is told, and what is committed is held to be the same ever after."""
        if answer.error is not ErrorCode.NONE:
            return
        self.rack.check()
        self.acknowledged[type(body).__name__.removesuffix("Request")] += 1
        records = []
        if isinstance(body, CreateTopicsRequest):
            assert answer.topic_id is not None
            records = [changes.topic(answer.topic_id, body.name)]
        elif isinstance(body, DeleteTopicsRequest):
            assert body.topic_id is not None
            records = [changes.remove_topic(body.topic_id)]
        elif isinstance(body, IncrementalAlterConfigsRequest):
            records = [changes.config(body.resource_type, body.resource_name, *each) for each in body.changes]
        values = self.rack.ledger.values()
        for record in records:
            demand(encode(record) in values, f"{record} was acknowledged and is not committed")

    def _seen(self, what: str, _now: int, envelope: Envelope) -> None:
        """A record is promised when its leader sends the answer, for the topic that this one has of the name.

        (By the name alone a producer cannot tell a topic from a later one; Kafka's Produce has the id since KIP-516.)
        """
        body = envelope.body
        if what != "sent" or not isinstance(body, ProduceResponse) or body.error is not ErrorCode.NONE:
            return
        asked = self.rack.client.asked(envelope.correlation)
        self.rack.looking = True
        topic = read_topic_id(self.rack.disks[envelope.source][0], str(asked.partition))
        self.rack.looking = False
        demand(topic is not None, f"broker {envelope.source} serves {asked.partition}, and does not know which it is")
        if topic is not None:
            key = PartitionKey(topic, asked.partition.partition)
            self.produced.setdefault(key, set()).add(self._sent[asked.records])

    # -- crashes ----------------------------------------------------------------------------------------------------

    def crash_point(self) -> None:
        """Let the power fail at a random change of a file, and start again."""
        chance, rack = self.chance, self.rack
        victim = chance.choice(EVERYONE)
        falls = EVERYONE if chance.random() < 0.2 else (victim,)
        rack.arm(victim, chance.randint(1, chance.choice((6, 60, 300, 900))), falls)
        try:
            for _ in range(60):
                self.tick()
            rack.last_operation = "nothing was written"
            raise PowerLoss(falls)
        except PowerLoss as loss:
            self._fall(loss)
        back = list(falls)
        chance.shuffle(back)
        for address in back:
            for _ in range(chance.choice((0, 0, 1, 5))):
                self.tick()
            self._start(address)
        self.check()

    def _fall(self, loss: PowerLoss) -> None:
        rack = self.rack
        rack.disarm()
        self.point += 1
        kind = "rack" if len(loss.nodes) > 1 else "controller" if loss.nodes[0] in CONTROLLERS else "broker"
        self.crashes[kind] += 1
        for address in loss.nodes:
            rack.crash(address, self.chance.randrange(1 << 32))

    def _start(self, address: int) -> None:
        """Start a machine; its power may fail again while it recovers."""
        chance, rack = self.chance, self.rack
        if chance.random() < 0.2:
            rack.arm(address, chance.randint(1, 6), (address,))
        try:
            self._boot(address)
        except PowerLoss as loss:
            self._fall(loss)
            self._boot(address)
        rack.disarm()

    def _boot(self, address: int) -> None:
        try:
            self.rack.start(address)
        except (LogError, OSError) as error:
            raise Violation(f"{address} does not start: {error}") from error

    # -- checks -----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """What is too dear to be looked at after each event."""
        self.rack.check()
        ledger = self.rack.ledger
        for broker in self.rack.brokers.values():
            epoch = broker.lifecycle.broker_epoch
            if epoch >= 0:
                known = ledger.images[epoch + 1].brokers[broker.address]
                mine = broker.lifecycle.incarnation
                demand((known.epoch, known.incarnation) == (epoch, mine), f"broker {broker.address}: epoch {epoch}")
            for partition, there in broker.broker.partitions.items():
                demand(there.failure is None, f"broker {broker.address}, {partition}: {there.failure}")
                leader = there.leader
                topic = read_topic_id(self.rack.disks[broker.address][0], str(partition))
                if leader is not None and topic is not None:
                    held = _held(ledger.images, PartitionKey(topic, partition.partition), leader.isr.partition_epoch)
                    mine_isr = leader.epoch, leader.isr.members
                    demand(mine_isr in held, f"broker {broker.address}, {partition}: ISR {mine_isr}, never committed")

    def finish(self) -> None:
        """With a good network all come together, and have kept every promise."""
        rack = self.rack
        rack.net.heal()
        rack.net.faults = Faults()
        for _ in range(400):
            self._leave()
            rack.run(50)
            if self.leaving is None and rack.unfenced() and rack.even() and self._whole():
                break
        else:
            raise Violation("they do not come together again")
        self.check()
        for key, values in self.produced.items():
            state = rack.ledger.image.partitions.get(key)
            if state is not None:
                lost = values - {value for _, value in self._rows(state.leader, key)}
                demand(not lost, f"{key}: {sorted(lost)} were acknowledged and are lost")
        for key, state in rack.ledger.image.partitions.items():
            rows = [self._rows(replica, key) for replica in state.replicas]
            demand(all(each == rows[0] for each in rows), f"{key}: replicas differ: {rows}")

    def _rows(self, broker: int, key: PartitionKey) -> list[tuple[int, bytes]]:
        """Epoch and value of a replica's records."""
        log = self.rack.brokers[broker].broker.partitions[self._partition(key)].log
        return [(record.leader_epoch, record.value or b"") for record in log.records(log.log_start)]

    def _whole(self) -> bool:
        """Whether every partition is led and its ISR is whole, and brokers have the replicas that they should have."""
        image = self.rack.ledger.image
        for address, broker in self.rack.brokers.items():
            mine = {self._partition(key) for key, state in image.partitions.items() if address in state.replicas}
            if set(broker.broker.partitions) != mine:
                return False
        return all(state.leader >= 0 and set(state.isr) == set(state.replicas) for state in image.partitions.values())

    def play(self, points: int = POINTS) -> None:
        """All of it. Raises ``CrashFailure``."""
        try:
            while self.point < points:
                self.crash_point()
            self.finish()
        except Exception as error:
            where = f"story {self.seed}, after crash {self.point} (last: {self.rack.last_operation})"
            raise CrashFailure(f"{where}: {type(error).__name__}: {error}") from error


def _held(images: list[Image], key: PartitionKey, partition_epoch: int) -> set[tuple[int, frozenset[int]]]:
    found = set()
    for image in images:
        state = image.partitions.get(key)
        if state is not None and state.partition_epoch == partition_epoch:
            found.add((state.leader_epoch, frozenset(state.isr)))
    return found


def play_many(points: int, seed: int) -> tuple[Counter[str], Counter[str], int]:
    """Stories with so many crash points: whose power failed, what was acknowledged, how many snapshots were looked at.

    Raises ``CrashFailure``.
    """
    crashes: Counter[str] = Counter()
    acknowledged: Counter[str] = Counter()
    number = snapshots = 0
    while (left := points - crashes.total()) > 0:
        story = Story(seed * 100_000 + number)
        story.play(min(POINTS, left))
        crashes += story.crashes
        acknowledged += story.acknowledged
        snapshots += story.rack.ledger.snapshots_checked
        number += 1
    return crashes, acknowledged, snapshots


def main(points: int = 5000, seed: int = 1) -> None:
    """Run and print."""
    start = time.perf_counter()
    crashes, acknowledged, snapshots = play_many(points, seed)
    seconds = time.perf_counter() - start
    whom = ", ".join(f"{crashes[name]} of {whose}" for name, whose in WHOSE.items())
    print(
        f"seed {seed}: {crashes.total()} crashes ({whom}) in {seconds:.0f} s: {acknowledged.total()} changes and "
        f"records acknowledged and none lost, {snapshots} snapshots and every image as the log makes it"
    )


WHOSE = {"controller": "a controller", "broker": "a broker", "rack": "all six machines at once"}

if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
