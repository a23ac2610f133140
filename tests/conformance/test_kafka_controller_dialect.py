"""The rows O1, O2 and O4 of DEVIATIONS.md: Apache Kafka's controllers do the one thing, the model the other.

Each of Kafka's QuorumControllers has Kafka's MetadataLoader and SnapshotGenerator beside it, which know nothing of each
other's. A row that a release closes turns its test red, and that says so (``kafka_dialect.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fencepost.conformance.kafka.process import CONTROLLERS, Jvm
from fencepost.model.protocols.controller import controller

from .kafka_dialect import Walk, shipped
from .kafka_jvm import one_jvm
from .test_kafka_controller_driver import SESSION, A, B, C, Controllers, working

pytestmark = pytest.mark.kafka
LARGE = 1_000_000
"""More bytes than any log here has, and more milliseconds than any run here takes."""


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all; each test starts its controllers afresh."""
    yield from one_jvm(drives=CONTROLLERS)


def snapshots(there: Controllers, node: int) -> list[Any]:
    """Those that a node has made so far."""
    found: list[Any] = there.seen[node]["snapshots"]
    return found


# -- O1: what a snapshot says of a broker ----------------------------------------------------------------------------


def ordered(variant: str) -> Walk:
    """A broker is unfenced and shuts down, and node 2 is to make a snapshot of that."""
    walk = Walk(controller, variant, 1, 3, 1, 1, 1, 1, 1, 1)
    walk("elect_controller", node=0, kept=0)
    walk("activate", node=0)
    walk("request_shutdown", node=0, broker=0)
    walk("commit", node=0)
    for node in (1, 2):
        walk("replay_record", node=node)
        walk("hear_of_epoch", node=node, epoch=0)
        walk("heartbeat", node=node, active=0)
    walk("order_snapshot", active=0, node=2)
    return walk


def test_o1_a_snapshot_says_who_is_fenced_and_who_shuts_down(jvm: Jvm) -> None:
    """Of a broker there is one record, in which the text has no field for it: whoever is registered is fenced."""
    with shipped("O1", "a broker's one record in a snapshot says whether it is fenced, and whether it shuts down"):
        there, epochs = working(jvm, snapshotBytes=1, snapshotMs=0)
        # Broker 1 leads something, so that it is not fenced at once; broker 2 has registered, and no more.
        assert there.ask(A, "create", name="second", replicas=[1, 0]) == "NONE"
        assert there.beat(A, 1, epochs[1], stop=True) == "NONE"
        there.register(A, 2)
        for node in (A, B, C):
            made = snapshots(there, node)[-1]
            assert made["end"] == there.seen[node]["applied"] == there.seen[A]["end"]
            of = [each for each in made["records"] if each["record"] == "RegisterBrokerRecord"]
            assert [(each["broker"], each["fenced"], each["stopping"]) for each in of] == [
                (0, False, False),
                (1, False, True),
                (2, True, False),
            ]
            for each in of:
                known = there.broker(node, each["broker"])
                assert (each["fenced"], each["stopping"]) == (known["fenced"], known["stopping"]), "as in its memory"
            names = {each["record"] for each in made["records"]}
            assert not names & {"BrokerRegistrationChangeRecord", "FenceBrokerRecord", "UnfenceBrokerRecord"}
    for variant, says in (("kip-631", 0), ("kip-631-safe", 1)):
        walk = ordered(variant)
        walk("begin_snapshot", node=2)
        walk("finish_snapshot", node=2)
        assert (walk["snapshot_unfenced[2]"], walk["snapshot_shutting_down[2]"]) == (says, says)
        assert walk.broken == ([] if says else ["snapshot_is_sufficient"])


# -- O2: who makes snapshots, and when ---------------------------------------------------------------------------------


def test_o2_each_node_makes_its_own_snapshots_by_bytes(jvm: Jvm) -> None:
    """Nobody tells it to, and the active controller makes one while it goes on; in the text it gives up leadership."""
    with shipped("O2", "each node makes its snapshots by itself, the active controller among them, and nobody resigns"):
        there = Controllers(jvm, snapshotBytes=LARGE, snapshotMs=0)
        there.elect(A, B, C)
        for broker in range(2):
            there.register(A, broker)
        assert [snapshots(there, node) for node in (A, B, C)] == [[], [], []], "so few bytes are not enough"
        written = []
        for limit in (500, 1000):
            there = Controllers(jvm, snapshotBytes=limit, snapshotMs=0)
            there.elect(A, B, C)
            for broker in range(12):
                assert there.ask(A, "register", broker=broker, process=1) == "NONE"
                there.commit(A, B)
            assert snapshots(there, A) == snapshots(there, B), "both at once, of the same"
            written.append(len(snapshots(there, A)))
            assert snapshots(there, C) == [], "it has fetched nothing of that"
            assert (there.seen[A]["active"], there.seen[A]["leads"], there.seen[B]["epoch"]) == (1, True, 1)
            assert there.ask(A, "register", broker=12, process=1) == "NONE", "and it works"
            there.commit(A, C)
            # What comes at once counts at once: it makes one where the others have made several.
            assert [made["end"] for made in snapshots(there, C)] == [there.seen[C]["applied"]]
        assert written[0] == 2 * written[1] > 0, "twice the bytes, half as often"
    text = ordered("kip-631")
    assert text.refused_by("begin_snapshot", node=1) == "ordered" and not text.has("begin_own_snapshot")
    text("begin_snapshot", node=2)
    assert text.refused_by("order_snapshot", active=0, node=1) == "none_makes_one", "one at a time"
    text("resign", node=0)
    # In KIP-630's the active controller may, but not beside another node.
    works_on = ordered("concurrent-snapshots")
    assert not works_on.has("resign")
    assert works_on.refused_by("begin_own_snapshot", node=0) == "none_makes_one"


def test_o2_each_node_makes_its_own_snapshots_by_time(jvm: Jvm) -> None:
    """When the time is over, the next commit has each make one."""
    with shipped("O2", "each node makes its snapshots by the time since its last one"):
        there = Controllers(jvm, snapshotBytes=LARGE, snapshotMs=1000)
        there.elect(A, B, C)
        ends = []
        for broker, ms in enumerate((0, 999, 1, 999, 1)):
            there.do("elapse", ms=ms)
            there.register(A, broker)
            assert snapshots(there, A) == snapshots(there, B) == snapshots(there, C)
            ends.append([made["end"] for made in snapshots(there, A)])
        first, second = there.seen[A]["end"] - 2, there.seen[A]["end"]
        assert ends == [[], [], [first], [first], [first, second]]
        assert (there.seen[A]["active"], there.seen[A]["leads"]) == (1, True)


# -- O4: the last member of an ISR -------------------------------------------------------------------------------------


def fenced(jvm: Jvm, *, eligible: bool, min_isr: int = 1) -> tuple[Controllers, list[int]]:
    """Broker 1 is fenced, and then 0, which leads, and is the last member of the ISR. With their broker epochs."""
    there, epochs = working(jvm, eligible=eligible)
    if min_isr != 1:
        assert there.ask(A, "config", name="first", value=str(min_isr)) == "NONE"
    for broker in (1, 0):
        assert there.beat(A, broker, epochs[broker], fence=True) == "NONE"
    there.commit(A, B, C)
    there.do("elapse", ms=2 * SESSION)
    assert there.partition(A)["leader"] == -1
    return there, epochs


def members(there: Controllers) -> tuple[list[int], list[int]]:
    """The ISR, and who is eligible beside."""
    return there.partition(A)["isr"], there.partition(A).get("eligible", [])


def back(there: Controllers, broker: int, previous: int) -> None:
    """Its next process registers, and is unfenced."""
    epoch = there.register(A, broker, process=2, previous=previous)
    assert there.beat(A, broker, epoch) == "NONE" and not there.broker(A, broker)["fenced"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("orderly", [True, False], ids=["in order", "logs lost"])
def test_o4_the_last_member_stays_and_leads_again(jvm: Jvm, *, orderly: bool) -> None:
    """Without eligible leader replicas: whether it had stopped in order makes no difference, as in the text."""
    with shipped("O4", "without eligible leader replicas the last member leads again, whatever its logs have lost"):
        there, epochs = fenced(jvm, eligible=False)
        assert members(there) == ([0], [])
        back(there, 0, epochs[0] if orderly else -1)
        held = there.partition(A)
        assert (held["leader"], held["leaderEpoch"], held["isr"], held["recovering"]) == (0, 2, [0], 0)
    for variant, refused in (("kip-631", None), ("last-member-returns", None), ("kip-631-safe", "not_doubted")):
        walk = Walk(controller, variant, 2, 1, 1, 6, 0, 1, 0, 1)
        walk("elect_controller", node=0, kept=0)
        walk("activate", node=0)
        walk("fence_broker", node=0, broker=1, successor=1)
        walk("commit", node=0)
        walk("replay_metadata", broker=0)
        walk("crash_broker", broker=0)
        walk("fence_broker", node=0, broker=0, successor=0)
        walk("register_broker", node=0, broker=0)
        for _ in range(2):
            walk("commit", node=0)
        walk("hear_registration", broker=0)
        for _ in range(2):
            walk("replay_metadata", broker=0)
        walk("unfence_broker", node=0, broker=0)
        assert walk["node_isr[0][0]"] == 0b01
        assert walk.refused_by("elect_leader", node=0, partition=0, leader=0) == refused


@pytest.mark.sampled(2)
@pytest.mark.parametrize("orderly", [True, False], ids=["in order", "logs lost"])
def test_o4_with_eligible_leader_replicas_it_leads_again_as_the_last_known_leader(jvm: Jvm, *, orderly: bool) -> None:
    """It leaves the ISR as it is fenced, is eligible until it registers without its epoch, and leads in recovery."""
    with shipped("O4", "the last member leads again with eligible leader replicas, too, as nobody else is eligible"):
        there, epochs = fenced(jvm, eligible=True)
        assert (*members(there), there.partition(A)["lastKnown"]) == ([], [0], [0])
        end = there.seen[A]["end"]
        epoch = there.register(A, 0, process=2, previous=epochs[0] if orderly else -1)
        moved = [] if orderly else ["PartitionChangeRecord"]
        assert there.records(A, end) == [*moved, "RegisterBrokerRecord"]
        assert members(there) == ([], [0] if orderly else [])
        assert there.beat(A, 0, epoch) == "NONE"
        held = there.partition(A)
        assert (held["leader"], held["isr"], held["recovering"]) == (0, [0], 0 if orderly else 1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("orderly", [True, False], ids=["in order", "logs lost"])
def test_o4_not_where_another_one_is_eligible(jvm: Jvm, *, orderly: bool) -> None:
    """Broker 1 left an ISR that was below min.insync.replicas then: it has all that was acknowledged."""
    with shipped("O4", "who has lost its logs does not lead where another one is eligible"):
        there, epochs = fenced(jvm, eligible=True, min_isr=2)
        assert sorted(members(there)[1]) == [0, 1] and members(there)[0] == []
        back(there, 0, epochs[0] if orderly else -1)
        held = there.partition(A)
        assert (held["leader"], held["isr"], held["eligible"]) == ((0, [0], [1]) if orderly else (-1, [], [1]))
        back(there, 1, epochs[1])
        assert there.partition(A)["leader"] == (0 if orderly else 1) and there.partition(A)["recovering"] == 0
