"""Random crash points of tiered storage: ``python -m tests.impl.tiering_crashes [POINTS] [SEED]`` at the root.

A story is a workload over three brokers and a folder as the object store, decided by its seed: records are produced
with acks=-1, leaders elected, brokers emptied so that they have to begin anew, records deleted, the store made slow and
made to fail. At ten points of each story the power of one broker fails before a random change of a file, of its own
disk or of an object that it writes or removes, and sometimes that of the store's disk with it. What was not synced is
lost, torn and reordered. In the end all come together, and each broker in turn leads: it must serve every record that
was acknowledged, once and in order, from its disk or from the store; epochs are the same on all; the store has what the
metadata log says, whole, and nothing else.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import google_crc32c
from fencepost.impl.log import LogConfig, LogError, Record, encode_batch
from fencepost.impl.log.checkpoints import TEMPORARY
from fencepost.impl.net import BudgetExceeded
from fencepost.impl.tiering import METADATA, RemoteStore, SegmentState, TieredTopic
from fencepost.impl.tiering.segments import PARTS
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import BROKER_PRINCIPAL, Envelope, ProduceRequest, ProduceResponse, TopicPartition

from .brokers import TP
from .rack import CHANGES, PowerLoss
from .tiering_rack import CONFIG as RACK_CONFIG
from .tiering_rack import TIERING, TieredRack

POINTS = 10
"""Crash points of a story."""
RECORDS = 150
"""That are produced in a story, at most."""
CONFIG = replace(RACK_CONFIG, log=LogConfig(segment_bytes=700, index_interval_bytes=200), replica_fetch_wait_ms=15)
NODES = (0, 1, 2)
BUCKET = -1
PARTITIONS = (METADATA, TP)


class CrashFailure(AssertionError):
    """What was found, and the numbers that bring it back."""


class _View:
    """The store's disk as one broker uses it: whoever does, is the one whose power may fail."""

    def __init__(self, story: Story, node: int) -> None:
        self._story = story
        self._node = node

    def __getattr__(self, name: str) -> Any:
        self._story.using = self._node
        return getattr(self._story.rack.bucket, name)


class Story:
    """One workload."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        chance = self.chance
        topic = TieredTopic(local_retention_bytes=chance.choice((0, 0, 1200)))
        if chance.random() < 0.3:
            topic = replace(topic, retention_bytes=chance.choice((2500, 5000)), local_retention_bytes=0)
        tiering = replace(TIERING, follower_fetch_last_tiered_offset_enable=chance.random() < 0.7)
        self.using = BUCKET
        self.fuse: dict[int, int] = {}
        self.remote_only = False
        self.last_operation = ""
        self.crashes: Counter[str] = Counter()
        self.acknowledged: dict[int, bytes] = {}
        self.sent: dict[int, bytes] = {}
        self.deleted = 0
        """Up to where records were asked to be deleted."""
        self.jumps = 0
        """Brokers that have begun anew."""
        self.failing = 0.0
        self._number = 0
        self.rack = TieredRack(
            3,
            seed=seed,
            topic=topic,
            tiering=tiering,
            config=CONFIG,
            latency=(0, chance.choice((0, 5, 20))),
            store=lambda node: RemoteStore.in_files(_View(self, node), "bucket"),  # type: ignore[arg-type]
        )
        for node in NODES:
            self.rack.disks[node].hook = self._hook(node)
        self.rack.bucket.hook = self._hook(BUCKET)
        self.rack.network.observer = self._seen
        self.rack.begin()

    # -- power ------------------------------------------------------------------------------------------------------

    def _hook(self, machine: int) -> Callable[[str, str], None]:
        def hook(operation: str, path: str) -> None:
            node = self.using if machine == BUCKET else machine
            # A sync of names that fails is as good as none, whatever is tried later: what was removed may come back.
            fails = machine == BUCKET and operation != "fsync_dir"
            if fails and self.failing and self.chance.random() < self.failing:
                raise OSError(5, "the store fails", path)
            if operation not in CHANGES or node not in self.fuse or (self.remote_only and machine != BUCKET):
                return
            self.fuse[node] -= 1
            if self.fuse[node] <= 0:
                del self.fuse[node]
                self.last_operation = f"{operation} {path} at {machine}"
                raise PowerLoss((node, machine) if machine == BUCKET else (node,))

        return hook

    def _attempt(self, action: Callable[[], Any]) -> None:
        """Do something during which the power of a broker may fail; it is down then, and starts again later."""
        try:
            action()
        except PowerLoss as loss:
            node, *store = loss.nodes
            self.crashes["store" if store else "broker"] += 1
            if store and self.chance.random() < 0.5:
                self.rack.bucket.crash(self.chance.randrange(1 << 30))
                self.rack.bucket.hook = self._hook(BUCKET)
                self.crashes["store's disk"] += 1
            self.rack.crash(node, self.chance.randrange(1 << 30))

    # -- the controller ---------------------------------------------------------------------------------------------

    def lead(self, partition: TopicPartition, preferred: int | None = None, without: int | None = None) -> None:
        """Elect a leader of the ISR among those that are up; nobody where there is none."""
        rack = self.rack
        known = rack.roles[partition]
        isr = known.isr - {without}
        up = sorted(isr & set(rack.brokers))
        if up:
            leader = preferred if preferred in up else self.chance.choice(up)
            self._attempt(lambda: rack.elect(leader, known.leader_epoch + 1, isr, partition))

    def up(self, node: int) -> None:
        """Start a broker that is down, and tell it of its roles; in those that it had led somebody is elected."""
        rack = self.rack
        if node not in rack.brokers:
            self._attempt(lambda: rack.start(node))
        for partition in PARTITIONS:
            if node in rack.brokers:
                if rack.roles[partition].leader == node:
                    self.lead(partition)
                else:
                    self._attempt(lambda partition=partition: rack.tell(node, partition))  # type: ignore[misc]

    # -- the workload -----------------------------------------------------------------------------------------------

    def _seen(self, what: str, _at: int, envelope: Envelope) -> None:
        body, value = envelope.body, self.sent.get(envelope.correlation)
        if what == "delivered" and isinstance(body, ProduceResponse) and value and body.error is ErrorCode.NONE:
            before = self.acknowledged.setdefault(body.base_offset, value)
            assert before == value, f"offset {body.base_offset} is acknowledged for two records"

    def produce(self) -> None:
        """One record, to whom the controller has lead; nobody waits for the answer."""
        leader = self.rack.roles[TP].leader
        if leader not in self.rack.brokers:
            return
        self._number += 1
        correlation = 1 << 40 | self._number
        value = b"%06d" % self._number + b"." * self.chance.randint(0, 90)
        self.sent[correlation] = value
        batch = encode_batch([Record(value, timestamp=self.rack.network.clock.wall())])
        body = ProduceRequest(TP, -1, batch)
        self.rack.network.send(Envelope(self.rack.client.address, leader, correlation, body, BROKER_PRINCIPAL))

    def tick(self) -> None:
        """Do something, and let some time pass."""
        chance, rack = self.chance, self.rack
        for node in NODES:
            if node not in rack.brokers and chance.random() < 0.4:
                self.up(node)
        for partition in PARTITIONS:
            if rack.roles[partition].leader not in rack.brokers and chance.random() < 0.6:
                self.lead(partition)
        move = chance.random()
        if move < 0.70 and len(self.sent) < RECORDS:
            for _ in range(chance.randint(1, 9)):
                self.produce()
        elif move < 0.78:
            self.lead(chance.choice(PARTITIONS))
        elif move < 0.84:
            self._empty()
        elif move < 0.88:
            self.failing = chance.choice((0.0, 0.0, 0.1, 0.5))
        elif move < 0.90:
            self._delete_records()
        self._attempt(lambda: rack.run(chance.randint(10, 120)))

    def _empty(self) -> None:
        """A broker loses its disk: it is out of every ISR before, and begins anew."""
        rack = self.rack
        node = self.chance.choice(NODES)
        others = [rack.roles[partition].isr & set(rack.brokers) - {node} for partition in PARTITIONS]
        if not all(others):
            return
        self.fuse.pop(node, None)
        for partition in PARTITIONS:
            self.lead(partition, without=node)
        if any(node in rack.roles[partition].isr or rack.roles[partition].leader == node for partition in PARTITIONS):
            return
        rack.wipe(node)
        rack.disks[node].hook = self._hook(node)
        self.jumps += 1

    def _delete_records(self) -> None:
        leader = self.rack.roles[TP].leader
        broker = self.rack.brokers.get(leader)
        there = None if broker is None else broker.partitions.get(TP)
        if there is not None and there.leader is not None and there.failure is None:
            offset = self.chance.randint(there.log.log_start, there.high_watermark)
            if offset < there.log.log_start + 4:
                self.deleted = max(self.deleted, offset)
                self._attempt(lambda: there.log.delete_before(offset))

    # -- the end ----------------------------------------------------------------------------------------------------

    def play(self, points: int = POINTS) -> None:
        """Run it, and check. Raises ``CrashFailure``."""
        try:
            while sum(self.crashes[each] for each in ("broker", "store")) < points:
                if not self.fuse:
                    # Rather while objects are written or removed, of which there are few.
                    self.remote_only = self.chance.random() < 0.5
                    far = (1, 2, 5, 9, 20) if self.remote_only else (1, 10, 40, 120, 300)
                    self.fuse[self.chance.choice(NODES)] = self.chance.choice(far)
                self.tick()
            self.fuse.clear()
            self.failing = 0.0
            self.settle()
            self.check()
        except (AssertionError, LogError, BudgetExceeded, KeyError, ValueError) as error:
            where = f"story {self.seed}, last crash at {self.last_operation}"
            raise CrashFailure(f"{where}: {type(error).__name__}: {error}") from error

    def settle(self) -> None:
        """Everybody is up and in every ISR, and all that can be copied is."""
        rack = self.rack
        for _ in range(60):
            for node in NODES:
                if node not in rack.brokers:
                    self.up(node)
            for partition in PARTITIONS:
                role = rack.roles[partition]
                there = rack.brokers[role.leader].partitions.get(partition) if role.leader in rack.brokers else None
                if there is None or there.leader is None or there.leader_epoch != role.leader_epoch:
                    self.lead(partition)
                self._tell_again(partition)
            rack.run(300)
            if all(rack.roles[partition].isr == frozenset(NODES) for partition in PARTITIONS) and self._at_rest():
                return
        raise AssertionError(f"they do not come together: {rack.roles}, {[rack.state(node) for node in rack.brokers]}")

    def _tell_again(self, partition: TopicPartition) -> None:
        """A controller sends until it is answered: whoever was not told, as another's power failed first, is now."""
        role = self.rack.roles[partition]
        for node in sorted(self.rack.brokers):
            there = self.rack.brokers[node].partitions.get(partition)
            if there is None or there.leader_epoch < role.leader_epoch:
                self.rack.tell(node, partition)

    def _at_rest(self) -> bool:
        leader = self.rack.roles[TP].leader
        remote = self.rack.remote(leader)
        busy = [each for each in remote.segments() if each.state is not SegmentState.COPY_SEGMENT_FINISHED]
        return not busy and remote.copier is not None and not remote.copier.candidates()

    def check(self) -> None:
        """See ``play``."""
        rack = self.rack
        failures = [
            (node, key, there.failure) for node, b in rack.brokers.items() for key, there in b.partitions.items()
        ]
        assert not [each for each in failures if each[2] is not None], failures
        reference: list[tuple[int, int, bytes]] | None = None
        for node in NODES:
            self.lead(TP, node)
            self.lead(METADATA, node)
            self.settle()
            self.lead(TP, node)
            rack.run(300)
            state = rack.state(node)
            assert rack.roles[TP].leader == node and state.high_watermark == state.end, state
            log_start = rack.log(node).log_start
            rows = rack.consume(node, log_start)
            assert [row[0] for row in rows] == list(range(log_start, state.end)), "not each offset once, in order"
            served = {offset: value for offset, _, value in rows}
            lost = [at for at, value in self.acknowledged.items() if at >= log_start and served.get(at) != value]
            assert not lost, f"broker {node} does not serve what was acknowledged at {lost}"
            unlimited = rack.topic.retention_bytes < 0
            assert log_start <= self.deleted or not unlimited, f"the log starts at {log_start}, deleted: {self.deleted}"
            if reference is not None:
                assert rows[-len(reference) :] == reference[-len(rows) :], f"broker {node} serves other records"
            reference = rows
        self._check_epochs()
        self._check_store()

    def _check_epochs(self) -> None:
        lineages = set()
        start = max(self.rack.log(node).log_start for node in NODES)
        for node in NODES:
            log = self.rack.log(node)
            lineages.add(tuple(log.epoch_for(offset) for offset in range(start, self.rack.state(node).end)))
        assert len(lineages) == 1, f"leader epochs differ: {lineages}"

    def _check_store(self) -> None:
        rack = self.rack
        leader = rack.roles[TP].leader
        segments = list(rack.remote(leader).segments())
        for node in NODES:
            assert list(rack.remote(node).segments()) == segments, "the brokers know of different remote segments"
        store = rack.managers[leader].store
        for each in segments:
            assert each.state is SegmentState.COPY_SEGMENT_FINISHED, each
            for part in PARTS:
                known = each.object(part)
                assert known is not None
                data = store.get(each.object_name(part))
                assert (len(data), google_crc32c.value(data)) == known[1:], each.object_name(part)
        named = {f"bucket/{each.object_name(part)}" for each in segments for part in PARTS}
        left = {name for name in rack.objects() if not name.endswith(TEMPORARY)} - named
        assert not left, f"objects that no segment has: {sorted(left)}"


def play_many(points: int, seed: int) -> tuple[Counter[str], int, int]:
    """Stories with so many crash points; gives what failed, records that were acknowledged, and brokers emptied."""
    crashes: Counter[str] = Counter()
    acknowledged = emptied = 0
    for number in range(max(1, points // POINTS)):
        story = Story(seed * 100_000 + number)
        story.play()
        crashes += story.crashes
        acknowledged += len(story.acknowledged)
        emptied += story.jumps
    return crashes, acknowledged, emptied


def main(points: int = 3000, seed: int = 1) -> None:
    """Run and print."""
    start = time.perf_counter()
    crashes, acknowledged, emptied = play_many(points, seed)
    seconds = time.perf_counter() - start
    told = ", ".join(f"{count} {name}" for name, count in sorted(crashes.items()))
    print(
        f"seed {seed}: {told}: {acknowledged} acknowledged records served by each broker, {emptied} begun anew, "
        f"{seconds:.0f} s"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
