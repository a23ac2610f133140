"""Apache Kafka's own log cleaner, in brokers that run freely, held to ``kip-280-kafka``.

Constants: brokers/log size/keys/timestamps/values of the header/leader epochs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from fencepost.conformance.harness import binding_of, held_to
from fencepost.conformance.kafka.controller import AlterPartitionAnswer
from fencepost.conformance.kafka.process import CLEANERS, DriverFailedError, Jvm
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols.compaction.kafka import KafkaCompaction
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.mailbox import Letter
from fencepost.conformance.simulation.runner import SimulationPlan, SimulationResult, simulate
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.compaction.impl_state import SHIPPED, brokers

from .conftest import Fencepost
from .kafka_found import as_found as as_found
from .kafka_found import found, is_repeatable, wants_maven
from .kafka_jvm import one_jvm, planted, started
from .kafka_planted import FOUND

USUAL = "2/12/2/2/1/6"
PLAN = SimulationPlan(runs=30, events=150, seed=0)
NEVER = {"set_topic_strategy"}
"""Kafka has one strategy."""
UNSEEN = {"since", "deleted_version", "dropped", "late", "unsure"}
"""Who was in time is the model's alone."""


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all of these."""
    yield from one_jvm(drives=CLEANERS)


@cache
def ways_at(at: str) -> Transitions:
    """Made once: it takes longer than to find a defect."""
    traced = held_to("compaction").traced(SHIPPED)
    return Transitions(ground(traced, constants_of(brokers, at)), binding_of("compaction", "kafka_free"))


def held(jvm: Jvm, plan: SimulationPlan, at: str = USUAL) -> tuple[SimulationResult, Transitions]:
    ways = ways_at(at)
    return simulate(KafkaCompaction(make=lambda: jvm), [ways], plan), ways


@pytest.mark.kafka
def test_it_does_what_the_variant_says(jvm: Jvm) -> None:
    """All is seen but who was in time, and nearly all that brokers do comes about."""
    free, ways = held(jvm, PLAN)
    assert free.verdict is Verdict.HOLDS and free.met.events > 4_000
    assert free.met.widest <= 1, "all is seen, so that one state explains it"
    cells = {name.partition("[")[0] for name in ways.system.layout.by_name if name not in free.met.cells}
    assert cells == UNSEEN
    actions = {action.name for action in ways.system.traced.actions}
    assert actions - free.met.steps.keys() == NEVER and free.met.steps["clean"] > 100
    happened = {what for what, _ in free.kinds}
    assert {
        EventKind.CRASH,
        EventKind.START,
        EventKind.CUT,
        EventKind.LOSE,
        EventKind.REPEAT,
        EventKind.TIMER,
        EventKind.TIME,
        EventKind.PROBE,
    } <= happened
    assert {("leader_write", "leads"), ("leader_write", "has_key")} <= set(free.met.refused)


@pytest.mark.nightly(seconds=10)
@pytest.mark.kafka
@pytest.mark.parametrize("at", ["1/8/2/3/3/3", "3/8/2/2/1/6"])
def test_it_does_so_with_one_and_with_three(jvm: Jvm, at: str) -> None:
    free, _ = held(jvm, SimulationPlan(runs=10, events=150, seed=1), at)
    assert free.verdict is Verdict.HOLDS and free.met.events > 1_200


@pytest.mark.kafka
@pytest.mark.nightly(seconds=300)
def test_a_night_of_it(jvm: Jvm) -> None:
    free, _ = held(jvm, SimulationPlan(runs=430, events=150, seed=11))
    assert free.verdict is Verdict.HOLDS and free.met.events > 60_000


@pytest.mark.sampled(2)
@pytest.mark.kafka
@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("defect", FOUND[CLEANERS], ids=str.lower)
def test_a_defect_planted_in_kafkas_cleaner_is_found(jvm: Jvm, defect: str) -> None:
    """Those of ``driver/CleanerDefect.java``; without one the same plan finds nothing."""
    with planted(jvm, defect):
        free, _ = held(jvm, PLAN)
    found(free, defect)


@pytest.mark.kafka
def test_the_same_seed_is_the_same_run(jvm: Jvm) -> None:
    is_repeatable(lambda plan: held(jvm, plan)[0])


@pytest.mark.kafka
def test_brokers_in_which_something_was_thrown_are_in_no_later_run() -> None:
    """Other runs go on with the same brokers."""

    def folders_after_a_run() -> set[str]:
        free, _ = held(own, SimulationPlan(runs=1, events=5, seed=0, faults=False))
        assert free.verdict is Verdict.HOLDS
        return {each.name for each in (own._folder / "brokers").iterdir()}

    own = started(drives=CLEANERS)
    before = folders_after_a_run()
    assert folders_after_a_run() == before
    with pytest.raises(DriverFailedError, match="NullPointerException"):
        own.ask("serve", node=0, id=-1)
    assert folders_after_a_run().isdisjoint(before)
    own.close()


@pytest.mark.kafka
def test_an_answer_to_a_former_process_has_none_that_waits_to_be_registered_replay_anything(jvm: Jvm) -> None:
    """It knows of no topic yet, and Kafka's image takes no change of a partition that it has not."""
    system = KafkaCompaction(make=lambda: jvm)
    system.reset(ways_at("2/8/2/2/1/1").system.constants, 1)
    while system._left() > 0:
        system.controller.begin(0, frozenset({0, 1}))
    system.step(Event(EventKind.CRASH, node=1, args=(("seed", 0),)))
    system.step(Event(EventKind.START, node=1))
    assert system.waiting == {1}
    replayed, version = dict(system.replayed), system.controller.version
    system.receive(Letter(99, None, 1, AlterPartitionAnswer(5, "NONE", 0, 1, frozenset({0, 1}), version)))
    assert system.replayed == replayed and not system.seen[1]["hosted"]


def test_the_other_variant_is_the_default() -> None:
    """Our own brokers are held to what they were held to; Kafka's clean whoever leads, segment by segment."""
    text = held_to("compaction")  # with its actions, which brokers.py alone has not
    assert list(text.variants) == [SHIPPED, "kip-280-brokers"]
    ours, theirs = (
        {action.name: {guard for guard, _ in action.guards} for action in text.traced(name).actions}
        for name in ("kip-280-brokers", SHIPPED)
    )
    assert ours["clean"] - theirs["clean"] == {"knows_leader"}
    assert {name: ours[name] for name in ours if name != "clean"} == {
        name: theirs[name] for name in theirs if name != "clean"
    }


def test_it_is_held_to_no_other_variant() -> None:
    with pytest.raises(BadInput, match="it is not held to compaction kip-280-brokers"):
        KafkaCompaction("compaction", "kip-280-brokers")


@pytest.mark.kafka
def test_without_maven_one_line_says_so(fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wants_maven(fencepost, monkeypatch, tmp_path, "--protocol", "compaction", "--replicas", "1", "--log-size", "2")
