"""Random crash points over a cluster at work: ``python -m tests.impl.cluster_crashes [POINTS] [SEED]`` at the root.

A story is a fixed workload over three brokers, decided by its seed: records with acks -1 and 1, a consumer that reads
and commits, elections, brokers that are cut off, a bad network. At ten points of each story the power of a broker, of
the controller, or of the whole rack fails before a random change of a file; what was not synced is lost, torn and
reordered. The machines start again, now and then to fail once more while they recover, and the work goes on.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from operator import methodcaller
from typing import Any

from fencepost.impl.net import Faults
from fencepost.impl.wire.messages import CONTROLLER, TopicPartition

from .brokers import TP
from .ledger import Ledger, Reader, Violation, Writer, demand
from .rack import NODES, Parts, PowerLoss, Rack

PARTITIONS = (TP, TP._replace(partition=1))
POINTS = 10
"""Crash points of a story."""
EVERYONE = (CONTROLLER, *NODES)
_CALM = Faults((0, 8), loss=0.02, duplication=0.05)


class CrashFailure(AssertionError):
    """What was found, and the numbers that bring it back."""


class Story:
    """One workload. ``parts`` is what is run: ``impl``, or a patched copy of it."""

    def __init__(self, seed: int, parts: Parts | None = None) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        settings = {"min_insync_replicas": self.chance.choice((1, 1, 2))}
        self.rack = Rack(seed, parts=parts, faults=_CALM, partitions=PARTITIONS, settings=settings)
        self.ledger = Ledger(self.rack)
        self.rack.start_all()
        self.writer = Writer(self.ledger)
        self.reader = Reader(self.ledger)
        self.haste = self.chance.choice((0.3, 0.9))
        """How often a broker that fails was just elected, and acts before it has registered again."""
        self.crashes: Counter[str] = Counter()
        """How often whose power has failed."""
        self.isolated: int | None = None
        self.point = 0

    # -- the workload -----------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do something, let some time pass, and read."""
        chance, net = self.chance, self.rack.net
        move = chance.random()
        partition = chance.choice(PARTITIONS)
        if move < 0.40:
            self.writer.write(partition, chance.randint(1, 5), chance.choice((0, 10, 60)))
        elif move < 0.48:
            self.writer.shout(partition, chance.choice(NODES))
        elif move < 0.60:
            self.reader.commit()
        elif move < 0.68:
            self._operate(lambda controller: self._elect(controller, partition))
        elif move < 0.72:
            self._isolate(chance.choice(NODES))
        elif move < 0.80:
            self._heal()
        elif move < 0.84:
            net.faults = Faults((0, chance.choice((1, 8, 30))), chance.choice((0, 0.05)), chance.choice((0, 0.2)))
        elif move < 0.87:
            self.reader.start()
        self._pass(chance.randint(5, 40))

    def _pass(self, milliseconds: int) -> None:
        self.rack.register()
        for node in self.rack.brokers:  # the controller hears of those that can be reached again
            if node != self.isolated and node not in self.rack.unregistered:
                self._operate(methodcaller("mark_online", node))
        self.rack.net.run(self.rack.net.clock.now() + milliseconds)
        self.reader.poll()

    def _operate(self, job: Callable[[Any], object]) -> None:
        """Ask the controller for something, where it is up; it may refuse."""
        controller = self.rack.controller
        if controller is not None:
            try:
                job(controller)
            except self.rack.parts.zk_controller.ControllerError:
                demand(controller.stopped is None, f"controller: {controller.stopped}")

    def _elect(self, controller: Any, partition: TopicPartition) -> None:
        if self.chance.random() < 0.3:
            controller.elect_preferred(partition)
        else:
            controller.elect_leader(partition, self.chance.choice(NODES))

    def _isolate(self, node: int) -> None:
        """Cut a broker off, from everyone or from the others only; the controller may take notice."""
        self._heal()
        if self.chance.random() < 0.5:
            for other in NODES:
                self.rack.net.cut(node, other)
            return
        self.rack.net.isolate(node)
        self.isolated = node
        if self.chance.random() < 0.6:
            self._operate(lambda controller: controller.mark_offline(node))

    def _heal(self) -> None:
        self.isolated = None
        self.rack.net.heal()

    # -- crashes ----------------------------------------------------------------------------------------------------

    def crash_point(self) -> None:
        """Let the power fail at a random change of a file, start again, and check."""
        chance, rack = self.chance, self.rack
        victim = chance.choice((*NODES, *NODES, CONTROLLER))
        falls = EVERYONE if chance.random() < 0.25 else (victim,)
        far = (6, 30) if victim == CONTROLLER else (10, 60, 300)
        rack.arm(victim, chance.randint(1, chance.choice(far)), falls)
        try:
            for _ in range(60):
                self.tick()
            rack.last_operation = "nothing was written"
            raise PowerLoss(falls)
        except PowerLoss as loss:
            self._fall(loss)
        if victim != CONTROLLER and chance.random() < self.haste:  # nobody has noticed yet that it is down
            self._operate(lambda controller: controller.elect_leader(chance.choice(PARTITIONS), victim))
        back = list(falls)
        chance.shuffle(back)
        for address in back:
            if address != CONTROLLER and chance.random() < 0.5:
                self._operate(methodcaller("mark_offline", address))
            for _ in range(chance.choice((0, 1, 2, 6))):
                self.tick()
            self._start(address)
        self.check()

    def _fall(self, loss: PowerLoss) -> None:
        rack = self.rack
        rack.disarm()
        self.point += 1
        self.crashes["rack" if len(loss.nodes) > 1 else "controller" if CONTROLLER in loss.nodes else "broker"] += 1
        for address in loss.nodes:
            rack.crash(address, self.chance.randrange(1 << 32))

    def _start(self, address: int) -> None:
        """Start a machine; its power may fail again while it recovers."""
        chance, rack = self.chance, self.rack
        if chance.random() < 0.25:
            rack.arm(address, chance.randint(1, 6), (address,))
        try:
            self._boot(address)
        except PowerLoss as loss:
            self._fall(loss)
            self._boot(address)
        rack.disarm()
        rack.register()

    def _boot(self, address: int) -> None:
        """Start it. Before a broker registers, old letters of the controller and clients may reach it."""
        chance, rack = self.chance, self.rack
        try:
            rack.start(address)
        except (rack.parts.log.LogError, OSError) as error:
            raise Violation(f"{address} does not start: {error}") from error
        if address == CONTROLLER or chance.random() > self.haste:
            return
        letters = self.ledger.letters[address][-8:]
        for letter in chance.sample(letters, min(chance.randint(0, 2), len(letters))):
            rack.net.send(letter)
        for _ in range(chance.randint(1, 4)):
            self.writer.shout(chance.choice(PARTITIONS), address)
            rack.net.run(rack.net.clock.now() + 15)
            self.reader.poll()

    # -- checks -----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Everything that must hold at any time."""
        self.ledger.check()
        self.writer.check()
        self.reader.check()

    def finish(self) -> None:
        """With a good network all come together, deliver everything, and have kept every promise."""
        rack = self.rack
        self._heal()
        rack.net.faults = Faults()
        for _ in range(600):
            self._pass(20)
            ends = {p: len(rows) for p, rows in self.ledger.committed.items()}
            if rack.whole() and not self.writer.producer.pending and self.reader.next == ends and self._even():
                break
        else:
            raise Violation("they do not come together again")
        self.check()
        demand(not self.writer.waiting, "a record is neither acknowledged nor pending")
        self.ledger.check_all_alike()

    def _even(self) -> bool:
        states = [self.rack.brokers[node].state(partition) for node in NODES for partition in PARTITIONS]
        return all(state.high_watermark == state.end for state in states)

    def play(self, points: int = POINTS) -> None:
        """All of it. Raises ``CrashFailure``."""
        try:
            while self.point < points:
                self.crash_point()
            self.finish()
        except Exception as error:
            where = f"story {self.seed}, after crash {self.point} (last: {self.rack.last_operation})"
            raise CrashFailure(f"{where}: {type(error).__name__}: {error}") from error


def play_many(points: int, seed: int, parts: Parts | None = None) -> Counter[str]:
    """Stories with so many crash points in all; how often whose power has failed. Raises ``CrashFailure``."""
    total: Counter[str] = Counter()
    number = 0
    while (left := points - total.total()) > 0:
        story = Story(seed * 100_000 + number, parts)
        story.play(min(POINTS, left))
        total += story.crashes
        number += 1
    return total


def main(points: int = 2000, seed: int = 1) -> None:
    """Run and print."""
    start = time.perf_counter()
    crashes = play_many(points, seed)
    seconds = time.perf_counter() - start
    whom = ", ".join(f"{crashes[name]} of {whose}" for name, whose in sorted(WHOSE.items()))
    print(f"seed {seed}: {crashes.total()} crashes ({whom}): every promise kept, {points / seconds:.1f} a second")


WHOSE = {"broker": "one broker", "controller": "the controller", "rack": "all four machines at once"}

if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
