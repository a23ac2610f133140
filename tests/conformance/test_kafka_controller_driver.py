"""Apache Kafka's own controllers step by step: what the driver has them do, and what the dialect says of it.

Rows O3 and O5 to O13 of ``specs/DEVIATIONS.md``, and K14, which is of the replicas. O1, O2 and O4 are in
``test_kafka_controller_dialect.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from fencepost.conformance.kafka.process import CONTROLLERS, Jvm
from fencepost.model.protocols.fencing import fencing

from .kafka_dialect import Walk, shipped
from .kafka_jvm import one_jvm

pytestmark = pytest.mark.kafka
A, B, C = range(3)
SESSION = 300
Told = Mapping[str, Any]


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all; each test starts its controllers afresh."""
    yield from one_jvm(drives=CONTROLLERS)


class Controllers:
    """Three controllers, which are asked for one thing at a time. ``options``: what is said of them as they begin."""

    def __init__(self, jvm: Jvm, **options: Any) -> None:
        self.jvm = jvm
        self.number = 0
        self.epoch = 0
        self.seen: dict[int, Any] = {}
        self.logs: dict[int, list[Told]] = {node: [] for node in (A, B, C)}
        self.told: dict[int, Told] = {}
        """Answers, by the numbers of requests."""
        self.do("reset", nodes=3, session=SESSION, **options)

    def do(self, what: str, **more: Any) -> Told:
        answer = self.jvm.ask(what, **more)
        for name, seen in answer["seen"].items():
            node = int(name)
            self.seen[node] = seen
            self.logs[node][seen["from"] :] = seen["records"]
        self.told |= {each["id"]: each for each in answer["answered"]}
        return answer

    def elect(self, node: int, *voters: int) -> None:
        """It is elected by itself and these, whose logs it has."""
        self.epoch += 1
        for each in (node, *voters):
            self.do("hear", node=each, epoch=self.epoch)
        self.do("lead", node=node, epoch=self.epoch)
        for _ in range(3):
            self.commit(node, *voters)

    def commit(self, leader: int, *followers: int) -> None:
        """These fetch all that the leader has."""
        for each in followers:
            self.do("fetch", node=each, leader=leader, batches=100)

    def ask(self, node: int, kind: str, **more: Any) -> str:
        """Ask a controller; gives what it has decided, or told at once."""
        self.number += 1
        answer = self.do("request", node=node, id=self.number, kind=kind, **more)
        return str(answer["decided"]["error"] if "decided" in answer else self.told[self.number]["error"])

    def register(self, node: int, broker: int, process: int = 1, previous: int = -1) -> int:
        """A broker registers, and that is committed; gives its broker epoch.

        ``previous``: the one that an orderly stop has left in a file; -1: there is none.
        """
        assert self.ask(node, "register", broker=broker, process=process, previous=previous) == "NONE"
        self.commit(A, B, C)
        return int(self.told[self.number]["epoch"])

    def beat(self, node: int, broker: int, epoch: int, *, fence: bool = False, stop: bool = False) -> str:
        end = self.seen[node]["end"]
        return self.ask(node, "heartbeat", broker=broker, epoch=epoch, end=end, fence=fence, stop=stop)

    def records(self, node: int, since: int) -> list[str]:
        """What the records from an offset on are."""
        return [str(each.get("record", "-")) for each in self.logs[node][since:]]

    def broker(self, node: int, broker: int) -> Any:
        return self.seen[node]["image"]["brokers"][str(broker)]

    def partition(self, node: int) -> Any:
        return self.seen[node]["image"]["partitions"]["first"]


def working(jvm: Jvm, brokers: int = 2, **options: Any) -> tuple[Controllers, list[int]]:
    """A is active, these brokers work, and the first leads a partition of all; with their broker epochs."""
    there = Controllers(jvm, **options)
    there.elect(A, B, C)
    epochs = [there.register(A, broker) for broker in range(brokers)]
    for broker, epoch in enumerate(epochs):
        assert there.beat(A, broker, epoch) == "NONE"
    assert there.ask(A, "create", name="first", replicas=list(range(brokers))) == "NONE"
    there.commit(A, B, C)
    return there, epochs


def test_a_controller_starts_and_is_seen(jvm: Jvm) -> None:
    """It is active once its epoch's record is committed; brokers work, a topic is made, standbys replay."""
    there = Controllers(jvm)
    assert [there.seen[node]["active"] for node in (A, B, C)] == [-1, -1, -1]
    assert there.ask(A, "register", broker=0, process=1) == "NOT_CONTROLLER"
    assert there.beat(A, 0, 0) == "NOT_CONTROLLER"
    there.epoch = 1
    there.do("lead", node=A, epoch=1)
    assert there.seen[A]["active"] == -1 and there.seen[A]["leads"]
    there.commit(A, B)
    assert there.seen[A]["active"] == 1 and "FeatureLevelRecord" in there.records(A, 1)
    there, epochs = working(jvm)
    assert [there.broker(A, broker) for broker in range(2)] == [
        {"epoch": epoch, "process": 1, "fenced": False, "stopping": False} for epoch in epochs
    ]
    held = there.partition(A)
    assert (held["leader"], held["leaderEpoch"], held["partitionEpoch"], held["isr"]) == (0, 0, 0, [0, 1])
    there.commit(A, B)
    assert there.partition(B) == held and there.seen[B]["applied"] == there.seen[A]["end"]


def test_o5_o6_what_is_pending_is_not_told_and_goes_with_its_leader(jvm: Jvm) -> None:
    there, _ = working(jvm)
    end = there.seen[A]["end"]
    assert there.ask(A, "register", broker=2, process=1) == "NONE"
    asked = there.number
    assert asked not in there.told and there.seen[A]["end"] == end + 1 and "2" in there.seen[A]["image"]["brokers"]
    there.elect(B, C)
    assert there.seen[A]["active"] == 1 and there.seen[B]["active"] == 2
    there.commit(B, A)
    assert there.told[asked]["error"] == "NOT_CONTROLLER"
    assert there.seen[A]["active"] == -1 and "2" not in there.seen[A]["image"]["brokers"]


def test_a_session_is_over_by_the_clock(jvm: Jvm) -> None:
    there, epochs = working(jvm)
    there.do("elapse", ms=SESSION)
    assert there.beat(A, 0, epochs[0]) == "NONE"
    assert not there.broker(A, 1)["fenced"]
    there.do("elapse", ms=SESSION)
    assert there.broker(A, 1)["fenced"] and not there.broker(A, 0)["fenced"]
    assert there.partition(A)["isr"] == [0]


def test_o7_the_same_process_registers_again(jvm: Jvm) -> None:
    there = Controllers(jvm)
    there.elect(A, B, C)
    epoch = there.register(A, 0)
    end = there.seen[A]["end"]
    assert there.register(A, 0) == epoch and there.seen[A]["end"] == end + 1
    # It has replayed its first registration, and not the second one.
    assert there.ask(A, "heartbeat", broker=0, epoch=epoch, end=end, fence=False, stop=False) == "NONE"
    assert there.broker(A, 0)["fenced"]
    assert there.beat(A, 0, epoch) == "NONE" and not there.broker(A, 0)["fenced"]


def test_o8_a_process_in_the_place_of_one_that_is_not_fenced_yet(jvm: Jvm) -> None:
    """It is taken out of its partitions first, and the new epoch is where that begins."""
    there, _ = working(jvm)
    there.do("elapse", ms=10)
    assert (
        there.ask(A, "heartbeat", broker=0, epoch=there.broker(A, 0)["epoch"], end=0, fence=False, stop=False) == "NONE"
    )
    # Whoever is stale is looked for now and then: now, and not when the session is over.
    there.do("elapse", ms=SESSION - 1)
    assert there.ask(A, "register", broker=0, process=2) == "DUPLICATE_BROKER_REGISTRATION"
    there.do("elapse", ms=2)
    end = there.seen[A]["end"]
    assert not there.broker(A, 0)["fenced"] and there.partition(A)["leader"] == 0
    assert there.ask(A, "register", broker=0, process=2) == "NONE"
    assert there.records(A, end) == ["PartitionChangeRecord", "RegisterBrokerRecord"]
    assert there.broker(A, 0) == {"epoch": end, "process": 2, "fenced": True, "stopping": False}


def test_o9_who_is_fenced_is_fenced_once_more(jvm: Jvm) -> None:
    """It was heard of, so that it has a session; and one that wants to stop may, by another record each time."""
    there = Controllers(jvm)
    there.elect(A, B, C)
    epoch = there.register(A, 0)
    assert there.beat(A, 0, epoch, fence=True) == "NONE" and there.broker(A, 0)["fenced"]
    assert there.ask(A, "register", broker=0, process=2) == "DUPLICATE_BROKER_REGISTRATION"
    end = there.seen[A]["end"]
    for _ in range(2):
        assert there.beat(A, 0, epoch, stop=True) == "NONE"
    assert there.records(A, end) == ["BrokerRegistrationChangeRecord"] * 2
    there.do("elapse", ms=2 * SESSION)
    assert there.records(A, end) == ["BrokerRegistrationChangeRecord"] * 3


def test_o10_a_controlled_shutdown_is_forgotten_with_its_controller(jvm: Jvm) -> None:
    """Others have not heard of it: the one in whose time it began has the broker wait, its successor lets it go."""
    there, epochs = working(jvm)
    assert there.beat(A, 1, epochs[1]) == "NONE"
    end = there.seen[A]["end"]
    assert there.beat(A, 0, epochs[0], stop=True) == "NONE"
    assert there.records(A, end) == ["BrokerRegistrationChangeRecord", "PartitionChangeRecord"]
    assert there.broker(A, 0)["stopping"] and there.partition(A)["leader"] == 1
    assert there.beat(A, 0, epochs[0], stop=True) == "NONE" and not there.broker(A, 0)["fenced"]
    there.commit(A, B, C)
    there.elect(B, C)
    assert there.beat(B, 0, epochs[0], stop=True) == "NONE" and there.broker(B, 0)["fenced"]


def test_o11_a_late_heartbeat_brings_back_who_was_fenced_to_stop(jvm: Jvm) -> None:
    """It shuts down still, and leads again where nobody does."""
    there, epochs = working(jvm, brokers=1)
    assert there.beat(A, 0, epochs[0], stop=True) == "NONE"
    assert there.beat(A, 0, epochs[0], stop=True) == "NONE"
    assert there.broker(A, 0)["fenced"] and there.partition(A)["leader"] == -1
    assert there.beat(A, 0, epochs[0]) == "NONE"
    known = there.broker(A, 0)
    assert not known["fenced"] and known["stopping"] and there.partition(A)["leader"] == 0


@pytest.mark.parametrize("stops", [False, True], ids=["fenced", "stops"])
def test_k14_a_follower_that_fails_leaves_the_isr_in_the_same_leader_epoch(jvm: Jvm, stops: bool) -> None:
    """In the text, and in the variants without that, a new leader epoch begins."""
    with shipped("K14", "a follower that is fenced, or stops, leaves the ISR with a new partition epoch alone"):
        there, epochs = working(jvm, brokers=3)
        assert there.beat(A, 2, epochs[2], fence=not stops, stop=stops) == "NONE"
        held = there.partition(A)
        assert (held["leader"], held["leaderEpoch"], held["partitionEpoch"], held["isr"]) == (0, 0, 1, [0, 1])
        assert there.beat(A, 0, epochs[0], fence=not stops, stop=stops) == "NONE"
        held = there.partition(A)
        assert (held["leader"], held["leaderEpoch"], held["partitionEpoch"], held["isr"]) == (1, 1, 2, [1])
    ended = {}
    for variant in ("kip-320", "kip-320-kafka", "kip-320-kafka-fences"):
        found = Walk(fencing, variant, 3, 1, 1, 2)
        found("controller_elect_leader", new_leader=0)
        found("become_leader", leader=0, epoch=0)
        fences = found.has("controller_fence_follower")
        found("controller_fence_follower" if fences else "controller_shrink_isr", replica=2)
        ended[variant] = (found["quorum_leader_epoch"], found["quorum_isr"])
    assert ended == {"kip-320": (1, 0b011), "kip-320-kafka": (1, 0b011), "kip-320-kafka-fences": (0, 0b011)}
    # The leader has not heard of it, counts whoever it knows, and asks in vain.
    assert (found["isr[0]"], found["maximal_isr[0]"]) == (0b111, 0b111)
    found("leader_write", leader=0)
    found("leader_ask_shrink", leader=0, follower=1)
    assert found.refused_by("controller_grant_isr", leader=0) == "isr_is_current"
    found("leader_learn_later_isr", leader=0, place=0)
    assert (found["isr[0]"], found["maximal_isr[0]"], found["asked_isr[0]"]) == (0b011, 0b011, 0b011)


def alter(there: Controllers, epoch: int, members: Mapping[str, int]) -> str:
    held = there.partition(A)
    asked = {"topic": held["topic"], "leaderEpoch": held["leaderEpoch"], "partitionEpoch": held["partitionEpoch"]}
    return there.ask(A, "alter", broker=0, epoch=epoch, isr=members, **asked)


def test_o3_a_member_has_its_broker_epoch_and_works(jvm: Jvm) -> None:
    """One that is fenced, shuts down, or was registered by another process is INELIGIBLE_REPLICA."""
    assert max(map(int, (versions := jvm.ask("fields", api="ALTER_PARTITION")["request"]))) >= 3
    named = "topics.partitions.new_isr_with_epochs.broker_epoch"
    assert [named in versions[version] for version in ("2", "3")] == [False, True]
    for fence, stop, stale in ((True, False, 0), (False, True, 0), (False, False, 1)):
        there, epochs = working(jvm, brokers=3)
        # Who leads nothing is fenced at once when it wants to stop.
        assert there.ask(A, "create", name="second", replicas=[2, 0]) == "NONE"
        assert alter(there, epochs[0], {"0": epochs[0], "1": epochs[1]}) == "NONE"
        there.commit(A, B, C)
        if fence or stop:
            assert there.beat(A, 2, epochs[2], fence=fence, stop=stop) == "NONE"
        assert (there.broker(A, 2)["fenced"], there.broker(A, 2)["stopping"]) == (fence, stop)
        members = {str(broker): epochs[broker] - stale * (broker == 2) for broker in range(3)}
        assert alter(there, epochs[0], members) == "INELIGIBLE_REPLICA"
    there, epochs = working(jvm, brokers=3)
    assert alter(there, epochs[0], {"0": epochs[0], "1": epochs[1]}) == "NONE"
    assert alter(there, epochs[0], {str(broker): epochs[broker] for broker in range(3)}) == "NONE"


def test_o12_the_same_isr_in_another_order_is_another_one(jvm: Jvm) -> None:
    there, epochs = working(jvm)
    end = there.seen[A]["end"]
    assert alter(there, epochs[0], {"0": epochs[0], "1": epochs[1]}) == "NONE"
    assert there.records(A, end) == []
    assert alter(there, epochs[0], {"1": epochs[1], "0": epochs[0]}) == "NONE"
    assert there.records(A, end) == ["PartitionChangeRecord"] and there.partition(A)["partitionEpoch"] == 1


def test_o13_an_exception_is_told_of_what_is_pending(jvm: Jvm) -> None:
    """A refusal in an answer waits until what it goes by is committed; one that is thrown does not."""
    there, epochs = working(jvm)
    assert there.ask(A, "register", broker=2, process=1) == "NONE"
    epoch = there.broker(A, 2)["epoch"]
    assert there.ask(A, "heartbeat", broker=2, epoch=epoch - 1, end=0, fence=True, stop=False) == "STALE_BROKER_EPOCH"
    assert there.told[there.number]["thrown"]
    stale = {"0": epochs[0], "1": epochs[1] - 1}
    assert alter(there, epochs[0], stale) == "INELIGIBLE_REPLICA" and there.number not in there.told
    there.commit(A, B)
    assert there.told[there.number]["error"] == "INELIGIBLE_REPLICA"
