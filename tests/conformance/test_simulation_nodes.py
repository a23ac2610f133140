"""Running nodes: events in flight, at rest and in the midst of something, over real brokers and no model."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.conformance.adapters.endpoints import Node
from fencepost.conformance.adapters.nodes import GaveUpError, RunningNodes
from fencepost.conformance.adapters.stores import OncePerChange
from fencepost.conformance.lockstep.adapter import ModelStep
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.system import RequestOutcome, StepResult
from fencepost.impl.files import DiskFiles, Files, SimulatedFiles
from fencepost.impl.replica.broker import Broker
from fencepost.impl.replica.partition import Role
from fencepost.impl.replica.timers import Key
from fencepost.impl.wire.messages import CONTROLLER, Envelope, LeaderAndIsrRequest, TopicPartition

PARTITION = TopicPartition("t", 0)


class Brokers(RunningNodes):
    """Two brokers that are told once that 0 leads."""

    protocol = implemented = "none"

    def _set_up(self, constants: Mapping[str, int]) -> range:
        return range(constants["replicas"])

    def _begin(self, node: int, first_correlation: int) -> Node:
        broker = self._parts.broker(
            node, self.store.files(node), self.wire(), self.clock.at(node), first_correlation=first_correlation
        )
        self.first = first_correlation
        return broker

    def _settle(self) -> None:
        everyone = frozenset(self.replicas)
        for number, node in enumerate(self.replicas):
            body = LeaderAndIsrRequest(0, PARTITION, 0, 0, everyone, tuple(self.replicas), frozenset(), 0)
            self.network.send(Envelope(CONTROLLER, node, number, body, "User:broker"))

    def broker(self, node: int) -> Broker:
        broker = self.nodes[node]
        assert isinstance(broker, Broker)
        return broker

    def _timers(self, node: int) -> Iterable[Key]:
        return self.broker(node).timers()

    def _calls(self) -> Iterator[Event]:
        yield from ()

    def _call(self, event: Event) -> Sequence[ModelStep]:
        raise AssertionError(event)

    def _steps(self, envelope: Envelope, asked: Envelope | None) -> tuple[ModelStep, ...]:
        return ()

    def _judged(self, request: Envelope, answer: Envelope) -> Iterable[RequestOutcome]:
        return (RequestOutcome((), answer.body.error.name),)

    def _took(self, event: Event) -> Sequence[ModelStep]:
        return ()

    def _is_lost(self, node: int) -> bool:
        return any(each.role is Role.OFFLINE for each in self.broker(node).partitions.values())


def started(*, disk: bool = False) -> Brokers:
    system = Brokers(disk=disk)
    system.reset({"replicas": 2}, 7)
    return system


def step(system: Brokers, what: EventKind, name: str = "", node: int | None = None, **more: int) -> StepResult:
    """One event, which must be pending but for its variation."""
    source = more.get("source")
    event = Event(what, name, node, source, crash=more.get("crash"))
    plain = replace(event, what=EventKind.DELIVER if what in (EventKind.LOSE, EventKind.REPEAT) else what, crash=None)
    assert plain in [each.event for each in system.pending()]
    return system.step(event)


def test_a_message_arrives_when_it_is_told_to_and_its_answer_names_it() -> None:
    system = started()
    happened = step(system, EventKind.DELIVER, "LeaderAndIsr", 0)
    (answer,) = happened.sent
    assert (answer.name, answer.source, answer.answers) == ("LeaderAndIsrResponse", 0, 0)
    assert [(each.error, each.message) for each in happened.judged] == [("NONE", 0)]
    assert system.broker(0).partitions[PARTITION].role is Role.LEADER
    assert PARTITION not in system.broker(1).partitions


def test_a_copy_arrives_and_the_message_stays() -> None:
    system = started()
    step(system, EventKind.REPEAT, "LeaderAndIsr", 1)
    assert system.broker(1).partitions[PARTITION].role is Role.TRUNCATING
    step(system, EventKind.LOSE, "LeaderAndIsr", 1)
    assert Event(EventKind.DELIVER, "LeaderAndIsr", 1) not in [each.event for each in system.pending()]


@pytest.mark.parametrize("disk", [False, True])
def test_power_fails_between_two_effects_and_the_next_process_goes_on_with_what_is_there(*, disk: bool) -> None:
    """Before the first effect nothing is sent, and after the last all is; the leader epoch is stored in between."""
    sent, epochs = [], []
    for effects in range(40):
        system = started(disk=disk)
        before = system.first
        happened = step(system, EventKind.DELIVER, "LeaderAndIsr", 1, crash=effects)
        assert happened.crashed == {1} and 1 in system.down
        sent.append(len(happened.sent))
        assert step(system, EventKind.START, node=1).started == {1}
        assert system.first > before
        partition = system.broker(1).partitions.get(PARTITION)
        epochs.append(-1 if partition is None else partition.leader_epoch)
        system.close()
    assert sent[0] == 0 and sent[-1] == 1 and sent == sorted(sent)
    assert epochs[-1] == 0
    assert epochs[0] == (0 if disk else -1), "effects on real disks are not counted, so that the answer is the first"


def test_what_arrives_for_a_node_that_is_down_or_cut_off_vanishes() -> None:
    system = started()
    step(system, EventKind.CUT, node=0)
    assert step(system, EventKind.DELIVER, "LeaderAndIsr", 0) == StepResult()
    step(system, EventKind.HEAL, node=0)
    crash = next(each.event for each in system.pending() if each.event.what is EventKind.CRASH and each.event.node == 1)
    assert system.step(crash).crashed == {1}
    assert step(system, EventKind.DELIVER, "LeaderAndIsr", 1) == StepResult()
    assert not system.broker(0).partitions


def test_a_node_whose_disk_fails_is_down_until_it_is_mended_and_started() -> None:
    system = started()
    step(system, EventKind.DELIVER, "LeaderAndIsr", 1)
    step(system, EventKind.DISK, "fails", 1)
    assert step(system, EventKind.TIMER, "high-watermarks", 1).crashed == {1}
    names = {(each.event.what, each.event.name) for each in system.pending() if each.event.node == 1}
    assert (EventKind.START, "") not in names and not any(what is EventKind.TIMER for what, _ in names)
    step(system, EventKind.DISK, "mended", 1)
    assert step(system, EventKind.START, node=1).started == {1}
    assert system.broker(1).partitions[PARTITION].role is Role.NONE


def test_a_node_whose_disk_takes_no_first_replica_ends_and_has_it_in_its_next_process() -> None:
    """There is no replica yet that could be offline, and yet the node must not be taken for one that is well."""
    system = started()
    system.bad[1] = "fails"
    happened = step(system, EventKind.DELIVER, "LeaderAndIsr", 1)
    (answer,) = happened.sent
    assert answer.name == "LeaderAndIsrResponse" and happened.crashed == {1} == system.down
    assert 1 not in system.nodes
    step(system, EventKind.DISK, "mended", 1)
    assert step(system, EventKind.START, node=1).started == {1} and not system.down
    system._settle()  # who leads is told once more
    step(system, EventKind.DELIVER, "LeaderAndIsr", 1)
    assert system.broker(1).partitions[PARTITION].role is Role.TRUNCATING


def test_a_node_that_refuses_a_first_replica_though_its_disk_works_is_told_of() -> None:
    system = started()

    def full(_folder: str) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    system.broker(1).directory.files.make_dir = full  # type: ignore[method-assign]
    with pytest.raises(GaveUpError, match="node 1 gave up as if its disk had failed, and it had not"):
        step(system, EventKind.DELIVER, "LeaderAndIsr", 1)


def test_the_same_seed_and_events_come_to_the_same() -> None:
    def run() -> list[tuple[Event, StepResult]]:
        system, chance, found = started(), random.Random(3), []
        for _ in range(300):
            event = chance.choice(system.pending()).event
            if event.what is EventKind.DELIVER and chance.random() < 0.2:
                event = event.crashing(chance.randrange(6))
            found.append((event, system.step(event)))
        return found

    assert run() == run()


def test_a_disk_is_read_again_after_a_change_and_not_before(tmp_path: Path) -> None:
    reads = []

    def names(files: Files) -> list[str]:
        reads.append(files)
        return files.list("")

    look = OncePerChange(names)
    simulated, other, real = SimulatedFiles(), SimulatedFiles(), DiskFiles(tmp_path)
    for files in (simulated, other, real):
        assert look(files) == look(files) == []
    assert reads == [simulated, other, real, real]
    simulated.open("a", create=True)
    real.open("a", create=True).close()
    assert look(simulated) == look(real) == ["a"]
    assert look(other) == []
    assert reads[4:] == [simulated, real]
