"""Controllers and brokers of ``impl/kraft`` run freely against ``kip-631-cluster``: what is sound passes, what is
planted is found.

Constants: brokers/controllers/partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.harness import all_defects, held_to
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols.controller.binding import CONTROLLER
from fencepost.conformance.protocols.controller.metadata_log import MetadataLog, WrongState
from fencepost.conformance.protocols.controller.plan import PLAN
from fencepost.conformance.protocols.controller.produced import _rising
from fencepost.conformance.protocols.controller.system import FreeControllers
from fencepost.conformance.simulation.coverage import SimulationCoverage
from fencepost.conformance.simulation.divergence import Sort
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.machine import Machine
from fencepost.conformance.simulation.quiesce import settle
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.conformance.simulation.system import StepResult
from fencepost.impl.log import Record
from fencepost.impl.metadata import changes, encode
from fencepost.impl.metadata.elections import PartitionImage
from fencepost.impl.metadata.image import PartitionKey
from fencepost.impl.wire.messages import TopicPartition
from fencepost.model.core.errors import BadInput
from fencepost.model.explore import Verdict
from fencepost.model.protocols.controller.impl_spec import cluster
from fencepost.traces.format import Value

from .freely import Freely

USUAL = "3/3/2"
FIRST = TopicPartition("first", 0)
DEFECTS = {each.name: each for each in all_defects() if each.protocol == "controller"}
CLUSTER = Freely("controller", FreeControllers)
SHORT = SimulationPlan(runs=60, seed=7)


def test_the_cluster_is_followed_whatever_happens() -> None:
    """Nearly every step is met, and whoever is refused is refused by nearly every guard that there is a code for."""
    found = CLUSTER.run(PLAN.free, SimulationPlan(runs=24, events=200, seed=631))
    assert (found.verdict, found.reason, found.failure) == (Verdict.HOLDS, None, None)
    assert found.met.widest <= 1, "all is seen, so that one state explains it"
    steps = {action.name for action in cluster.traced(None).actions}
    assert steps - set(found.met.steps) <= {"elect_leader", "shut_down", "fence_as_asked", "move_partition"}
    refused = {
        ("register_broker", "is_active"),
        ("register_broker", "session_over"),
        ("unfence_broker", "is_active"),
        ("alter_partition", "is_active"),
        ("alter_partition", "partition_epoch_matches"),
    }
    assert refused <= set(found.met.refused)
    assert {"isr[0]", "own_epoch[1]", "snapshot_end[2]", "asks_member_epoch[0][1][2]"} <= found.met.cells


def test_a_broker_that_gets_on_is_seen_to_before_it_takes_anything_up() -> None:
    """Nothing of the log is taken up below its own registration: peace must not take the way there for rest."""
    system = FreeControllers()
    machine = Machine(CLUSTER.ways("3/1/2"), system, 18, SimulationCoverage())
    assert machine.start() is None
    assert settle(machine, Event(EventKind.PEACE)) is None
    system.close()
    seen = [done.observed or {} for done in machine.history]
    assert any(int(str(each["view_end[0]"])) > 1 and each["view_applied[0]"] == 0 for each in seen)


def test_a_process_that_is_registered_is_told_its_epoch_again() -> None:
    """The copy of its registration comes when it is unfenced: its own session keeps nobody out."""
    told = Event(EventKind.DELIVER, "BrokerRegistration", node=3, source=1)
    beat, due, later = (
        Event(EventKind.TIMER, "heartbeat", 1),
        Event(EventKind.TIMER, "due", 1),
        Event(EventKind.TIME, args=(("ms", 200),)),
    )
    events = [later, due, beat, later, later, due, replace(due, node=3), replace(told, number=2)]
    events += [
        replace(told, name="BrokerRegistrationResponse", node=1, source=3),
        Event(EventKind.SYNC, "replicate"),
        due,
    ]
    system = FreeControllers()
    machine = Machine(CLUSTER.ways("3/1/2"), system, 10259148, SimulationCoverage())
    assert machine.start() is None
    for event in (*events, replace(told, name="BrokerHeartbeat"), told):
        assert machine.perform(event) is None
    system.close()
    assert (machine.history[-1].observed or {})["unfenced"] == (1,)


def test_a_heartbeat_of_a_former_process_says_nothing_of_a_snapshot() -> None:
    """Its broker has told of the snapshot that it was to make: its turn is over, and another one is told."""
    due = Event(EventKind.TIMER, "due", 1)
    made = [
        Event(EventKind.CALL, "create-topic", 3, args=(("partition", partition), ("first", 0)))
        for partition in range(2)
    ]
    system = FreeControllers()
    machine = Machine(CLUSTER.ways("3/1/2"), system, 1322336022, SimulationCoverage())
    assert machine.start() is None
    assert machine.perform(Event(EventKind.OPERATE, "shut-down", 2)) is None
    assert settle(machine, Event(EventKind.PEACE)) is None
    for event in (due, *made, Event(EventKind.PROBE, "refused-broker", 3)):
        assert machine.perform(event) is None
    active = system.controller(3).active
    assert active is not None and active.turns.turn is None
    assert machine.perform(Event(EventKind.DELIVER, "BrokerHeartbeat", 3, source=1)) is None
    assert active.turns.turn == 1
    system.close()


@pytest.mark.nightly(seconds=400)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_night_of_it(seed: int) -> None:
    found = CLUSTER.run(PLAN.free, SimulationPlan(runs=180, events=250, seed=seed))
    assert (found.verdict, found.reason) == (Verdict.HOLDS, None)
    assert found.met.events > 50_000


FOUND = {
    "stale-leader-alters": "answered NONE, and not",
    "old-partition-epoch-taken": "",
    "fenced-stays-in-isr": "",
    "answered-before-stable": "",
    "same-process-registers-anew": "in the model",
    "replica-not-deleted": "and there are []",
    "acknowledged-by-leader-alone": "was acknowledged at offset",
    "follower-counts-unsynced": "was acknowledged at offset",
    "standby-tells-nothing": "and its snapshots end at",
    "told-and-makes-none": "and its snapshots end at",
}
"""Of each kind one that is found within seconds, and what is told of it."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FOUND)
def test_a_planned_defect_is_found(name: str) -> None:
    found = CLUSTER.first_divergence(PLAN.free, SHORT, *DEFECTS[name].patches)
    assert found is not None
    assert FOUND[name] in found.headline


def test_whoever_waits_at_one_that_resigns_is_answered() -> None:
    patch = Patch("kraft/node.py", "            for each in waiting:\n", "            for each in ():\n")
    found = CLUSTER.first_divergence(PLAN.free, SHORT, patch)
    assert found is not None
    assert "has decided" in found.headline and "will never answer it" in found.headline


def test_what_never_comes_is_found_in_peace() -> None:
    """Nobody is ever unfenced: no look at one state shows that."""
    never = Patch("kraft/heartbeats.py", "after is Next.UNFENCED and known.fenced:", "after is None:")
    system = FreeControllers
    with patched(never) as root:
        made = system(Parts.of(root))
        machine = Machine(CLUSTER.ways(USUAL), made, 6, SimulationCoverage())
        divergence = machine.start() or machine.perform(Event(EventKind.TIMER, "due", 0))
        made.close()
    # The first heartbeat of a broker that has caught up is answered as if it were unfenced.
    assert divergence is None
    found = CLUSTER.first_divergence(PLAN.free, SHORT, never)
    assert found is not None
    assert found.sort in (Sort.MISSING, Sort.NEVER)


def test_only_what_the_binding_gives_may_be_given() -> None:
    """A system that gives itself what it should come to by a step is told so."""

    class Cheats(FreeControllers):
        def step(self, event: Event) -> StepResult:
            return replace(super().step(event), inputs=frozenset({"unknown"}))

    system = Cheats()
    machine = Machine(CLUSTER.ways(USUAL), system, 1, SimulationCoverage())
    assert machine.start() is None
    divergence = machine.perform(Event(EventKind.TIME, args=(("ms", 10),)))
    system.close()
    assert divergence is not None
    assert divergence.sort is Sort.UNKNOWN
    assert {"stable", "own_epoch", "end"} <= CONTROLLER.inputs


def test_the_log_is_the_same_for_everybody() -> None:
    """Whoever has committed another record than others have, or holds another image, is named."""
    system = FreeControllers()
    system.reset(constants_of(cluster, USUAL), 1)
    node = system.controller(system.voters[0])
    log = MetadataLog()
    log.look(node.quorum, node.machine.image)
    assert log.end == node.quorum.replica.high_watermark > 0
    other = node.machine.image.fork()
    other.brokers.clear()
    with pytest.raises(WrongState, match="of brokers it has"):
        log.look(node.quorum, other)
    log.entries[0] = log.entries[0]._replace(epoch=77)
    again = MetadataLog()
    again.entries = list(log.entries)
    again._prefixes = log._prefixes
    with pytest.raises(WrongState, match="another record at 0"):
        again.look(node.quorum, node.machine.image)
    system.close()


# What a producer is told.


def written(seed: int) -> FreeControllers:
    """A cluster that has acknowledged a record of each of two topics."""
    system = FreeControllers()
    system.reset(constants_of(cluster, USUAL), seed)
    assert sum(map(len, system.produced.acknowledged.values())) == 2
    return system


WRITTEN = next(seed for seed in range(14, 200) if seed // 7 % 3 == 2 and seed // 13 % 3 and seed % 6)


def test_what_is_acknowledged_is_on_every_disk_of_the_isr() -> None:
    """A record more is acknowledged; the disk of a follower that lacks it is named, also while that broker is down."""
    system = written(WRITTEN)
    for event in (Event(EventKind.CALL, "write", args=(("partition", 0),)), Event(EventKind.SYNC, "produce")):
        system.step(event)
    (topic,) = (each for each, records in system.produced.acknowledged.items() if len(records) == 2)
    leader = next(each for each in system.brokers if system.broker(each).broker.partitions[FIRST].leader is not None)
    follower = next(each for each in system.brokers if each != leader)
    system.step(Event(EventKind.CRASH, node=follower, args=(("seed", 1),)))
    files = system.store.files(follower)
    log = files.open(f"{FIRST}/00000000000000000000.log")
    log.truncate(log.size - 1)
    log.close()
    with pytest.raises(WrongState, match=f"broker {follower} may be elected for first-0: b'3' was acknowledged at"):
        system.step(Event(EventKind.TIME, args=(("ms", 10),)))
    # Whose folder is of another topic has nothing of this one.
    del system.produced.acknowledged[topic][1]
    files.remove(f"{FIRST}/partition.metadata")
    with pytest.raises(WrongState, match="b'1' was acknowledged at offset 0, and it has nothing there"):
        system.step(Event(EventKind.TIME, args=(("ms", 10),)))
    system.close()


def test_who_is_in_an_isr_of_a_log_that_may_be_the_next_has_it_too() -> None:
    """A controller that leads no more has an IsrChange that its successor lacks, and may be elected again."""
    system = written(WRITTEN)
    (topic,) = (
        each for each in system.produced.acknowledged if system.log.prefix(system.log.end).names[each] == "first"
    )

    def state() -> PartitionImage:
        return system.log.prefix(system.log.end).image.partitions[PartitionKey(topic, 0)]

    gone = next(each for each in state().isr if each != state().leader)
    there = system.broker(state().leader).broker.partitions[FIRST]
    system.step(Event(EventKind.CRASH, node=gone, args=(("seed", 1),)))
    system.run_until(lambda: there.leader is not None and gone not in there.leader.isr.members)
    for event in (Event(EventKind.CALL, "write", args=(("partition", 0),)), *[Event(EventKind.SYNC, "produce")] * 2):
        system.step(event)
    assert gone not in state().isr and len(system.produced.acknowledged[topic]) == 2
    other = next(each for each in map(system.controller, system.voters) if each is not system.newest_leader)
    system.run_until(lambda: other.quorum.replica.end == system.log.end)
    now = state()
    told = changes.isr(PartitionKey(topic, 0), now._replace(isr=now.replicas, partition_epoch=now.partition_epoch + 1))
    other.quorum.replica.append([Record(encode(told))], other.quorum.replica.last_epoch)
    assert other in system.next_controllers
    with pytest.raises(WrongState, match=f"broker {gone} may be elected for first-0"):
        system.step(Event(EventKind.TIME, args=(("ms", 1),)))
    system.close()


def test_a_leader_whose_disk_has_failed_may_acknowledge_still() -> None:
    """It gives up its metadata log, and leads on until it is fenced: what it says counts as others' word does."""
    system, at_leader = FreeControllers(), Event(EventKind.TIMER, "due", 2)
    machine = Machine(CLUSTER.ways("3/1/2"), system, 11747920, SimulationCoverage())
    assert machine.start() is None
    later = Event(EventKind.TIME, args=(("ms", 200),))
    write, arrives = (
        Event(EventKind.CALL, "write", args=(("partition", 1),)),
        Event(EventKind.DELIVER, "Produce", node=2),
    )
    for event in (
        later,
        at_leader,
        write,
        arrives,
        later,
        replace(at_leader, node=3),
        Event(EventKind.DISK, "full", 2),
    ):
        assert machine.perform(event) is None
    before = sum(map(len, system.produced.acknowledged.values()))
    assert settle(machine, Event(EventKind.PEACE, node=2)) is None
    assert 2 in system.down and sum(map(len, system.produced.acknowledged.values())) == before + 1
    system.close()


def test_a_batch_whose_offset_is_torn_is_none() -> None:
    assert list(_rising([(0, b"1"), (0, b"2")])) == [(0, b"1")]
    assert list(_rising([(0, b"1"), (3, b"2"), (2, b"3"), (4, b"4")])) == [(0, b"1"), (3, b"2")]


def test_running_systems_are_held_to_a_text_of_their_own() -> None:
    text = held_to("controller")
    assert text.name == cluster.name == "controller"
    assert text.traced().actions == cluster.traced().actions
    assert held_to("fencing").name == "fencing"


def test_what_cannot_be_followed_is_refused() -> None:
    system = FreeControllers()
    with pytest.raises(BadInput, match="two partitions at most"):
        system.reset(constants_of(cluster, "3/3/3"), 1)
    system.close()


def test_the_same_seed_and_the_same_events_lead_to_the_same() -> None:
    def played() -> list[object]:
        system = FreeControllers()
        seen: list[object] = [system.reset(constants_of(cluster, USUAL), 5), dict(system.observe())]
        for event in (
            *[Event(EventKind.TIME, args=(("ms", 200),))] * 2,
            *(Event(EventKind.TIMER, "due", n) for n in range(6)),
        ):
            seen += (system.step(event), dict(system.observe()))
        seen.append(list(system.pending()))
        system.close()
        return seen

    first = played()
    assert first == played()
    looks: list[Mapping[str, Value]] = [each for each in first if isinstance(each, dict)]
    assert any(
        look["role[0]"] == "active" or look["role[1]"] == "active" or look["role[2]"] == "active" for look in looks
    )


def test_there_are_enough_defects_and_each_is_told_from_the_others() -> None:
    assert len(DEFECTS) >= 15
    assert len({each.patches for each in DEFECTS.values()}) == len(DEFECTS)
    issues = {each.issue for each in DEFECTS.values()} - {""}
    assert {"KAFKA-13916", "KAFKA-14154", "KAFKA-14616", "KAFKA-7235"} <= issues
