"""Apache Kafka's own controllers running freely, held to ``kip-631-kafka``.

Constants: brokers/controllers/partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fencepost.conformance.harness import held_to
from fencepost.conformance.kafka.process import CONTROLLERS, Jvm
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols.controller.kafka import KafkaControllers
from fencepost.conformance.protocols.controller.kafka_binding import RUNNING
from fencepost.conformance.simulation.events import EventKind
from fencepost.conformance.simulation.runner import SimulationPlan, SimulationResult, simulate
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.controller.impl_state import cluster
from fencepost.model.protocols.controller.kafka_spec import VARIANT, text

from .conftest import Fencepost
from .kafka_found import as_found as as_found
from .kafka_found import found, is_repeatable, wants_maven
from .kafka_jvm import one_jvm, planted
from .kafka_planted import FOUND

USUAL = "3/3/2"
PLAN = SimulationPlan(runs=40, events=150, seed=0)
SELDOM = {"elect_returning"}
"""What some hundred runs need not meet; ``test_kafka_controller_driver.py`` has it (O11)."""


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all of these."""
    yield from one_jvm(drives=CONTROLLERS)


def held(jvm: Jvm, plan: SimulationPlan, at: str = USUAL) -> tuple[SimulationResult, Transitions]:
    ways = Transitions(ground(text.traced(VARIANT), constants_of(text, at)), RUNNING)
    return simulate(KafkaControllers(make=lambda: jvm), [ways], plan), ways


@pytest.mark.kafka
def test_it_does_what_the_variant_says(jvm: Jvm) -> None:
    """Every cell is seen, nearly all that controllers do comes about, and nearly every refusal with its code."""
    free, ways = held(jvm, SimulationPlan(runs=60, events=150, seed=5))
    assert free.verdict is Verdict.HOLDS and free.met.events > 10_000
    assert free.met.widest <= 1, "all is seen, so that one state explains it"
    assert {name for name in ways.system.layout.by_name if name not in free.met.cells} == set()
    actions = {action.name for action in text.traced(VARIANT).actions}
    assert actions - free.met.steps.keys() <= SELDOM
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
    assert {
        ("register_broker", "session_over"),
        ("unfence_broker", "is_active"),
        ("alter_partition", "members_eligible"),
        ("alter_partition", "partition_epoch_matches"),
        ("create_topic", "can_lead"),
    } <= set(free.met.refused)


@pytest.mark.nightly(seconds=10)
@pytest.mark.kafka
@pytest.mark.parametrize("at", ["2/3/1", "3/1/2"])
def test_it_does_so_with_fewer_of_them(jvm: Jvm, at: str) -> None:
    """Two brokers; and one controller, which commits by itself."""
    free, _ = held(jvm, SimulationPlan(runs=20, events=150, seed=1), at)
    assert free.verdict is Verdict.HOLDS and free.met.events > 3_000


@pytest.mark.kafka
@pytest.mark.nightly(seconds=240)
def test_a_night_of_it(jvm: Jvm) -> None:
    free, _ = held(jvm, SimulationPlan(runs=500, events=150, seed=11))
    assert free.verdict is Verdict.HOLDS and free.met.events > 100_000


@pytest.mark.sampled(2)
@pytest.mark.kafka
@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("defect", FOUND[CONTROLLERS], ids=str.lower)
def test_a_defect_planted_in_kafkas_controller_is_found(jvm: Jvm, defect: str) -> None:
    """Those of ``driver/ControllerDefect.java``; without one the same plan finds nothing."""
    with planted(jvm, defect):
        free, _ = held(jvm, PLAN)
    found(free, defect)


@pytest.mark.kafka
def test_nothing_is_found_where_nothing_is_planted(jvm: Jvm) -> None:
    free, _ = held(jvm, PLAN)
    assert free.verdict is Verdict.HOLDS


@pytest.mark.kafka
def test_the_same_seed_is_the_same_run(jvm: Jvm) -> None:
    is_repeatable(lambda plan: held(jvm, plan)[0])


def test_the_other_variant_is_what_it_was() -> None:
    """The text that running controllers are held to has the one of our own, unchanged."""
    assert held_to("controller") is text and set(text.variants) - set(cluster.variants) == {VARIANT}
    assert text.default_variant == cluster.default_variant
    name = cluster.default_variant
    ours, theirs = text.traced(name), cluster.traced(name)
    assert ours.actions == theirs.actions and ours.invariants == theirs.invariants and ours.live == theirs.live
    assert ours.variables == theirs.variables


def test_it_is_held_to_no_other_variant() -> None:
    with pytest.raises(BadInput, match="it is not held to controller kip-631-cluster"):
        KafkaControllers("controller", "kip-631-cluster")


@pytest.mark.kafka
def test_without_maven_one_line_says_so(fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wants_maven(fencepost, monkeypatch, tmp_path, "--protocol", "controller")
