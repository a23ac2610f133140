"""Apache Kafka's own brokers running freely, held to ``kip-320-kafka`` and to what it becomes with what is shipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fencepost.conformance.kafka.controller import Controller
from fencepost.conformance.kafka.process import BROKERS, Jvm
from fencepost.conformance.protocols.fencing.binding import FENCING
from fencepost.conformance.protocols.fencing.kafka import KafkaBrokers
from fencepost.conformance.simulation.divergence import Sort
from fencepost.conformance.simulation.events import EventKind
from fencepost.conformance.simulation.runner import SimulationPlan, SimulationResult, simulate
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.fencing import fencing

from .conftest import Fencepost
from .kafka_found import as_found as as_found
from .kafka_found import found, is_repeatable, wants_maven
from .kafka_jvm import one_jvm, planted
from .kafka_planted import FOUND, LATER

pytestmark = pytest.mark.kafka
CONSTANTS = {"replicas": 3, "log_size": 3, "max_records": 4, "max_leader_epoch": 9}
TWO = {"replicas": 2, "log_size": 4, "max_records": 6, "max_leader_epoch": 12}
WIDE = {"replicas": 3, "log_size": 4, "max_records": 6, "max_leader_epoch": 12}
SHIPPED = "kip-320-kafka-shipped"
FENCES = f"{SHIPPED}-fences"
BROKEN = frozenset({"strong_isr", "weak_isr", "acknowledged_is_kept", "read_is_kept"})
"""What brokers with K11 and K12 do not keep; all else they do."""
SEEDS = {"COMMITS_BEFORE_CUTTING": 1}
"""Of defects that thirty runs of seed 0 do not come by; in seventy of them this one is met too."""


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all of these."""
    yield from one_jvm()


def brokers(jvm: Jvm, variant: str) -> KafkaBrokers:
    """Brokers in that JVM."""
    return KafkaBrokers(variant=variant, make=lambda: jvm)


def held(jvm: Jvm, variant: str, plan: SimulationPlan) -> tuple[SimulationResult, Transitions]:
    ways = Transitions(ground(fencing.traced(variant), CONSTANTS), FENCING)
    return simulate(brokers(jvm, variant), [ways], plan), ways


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", [SHIPPED, FENCES])
def test_it_does_what_the_variant_of_what_is_shipped_says(jvm: Jvm, variant: str) -> None:
    """Nothing is taken on trust: every cell is seen, and all that brokers do comes about."""
    free, ways = held(jvm, variant, SimulationPlan(runs=30, events=150, seed=0))
    assert free.verdict is Verdict.HOLDS and free.met.events > 4_000
    assert {name for name in ways.system.layout.by_name if name not in free.met.cells} == set()
    actions = {action.name for action in fencing.traced(variant).actions}
    assert actions - free.met.steps.keys() <= {"leader_ask_again"}  # it asks for something else only where it learns
    happened = {what for what, _ in free.kinds}
    assert {
        EventKind.CRASH,
        EventKind.START,
        EventKind.CUT,
        EventKind.LOSE,
        EventKind.REPEAT,
        EventKind.TIMER,
        EventKind.CALL,
    } <= happened


@pytest.mark.usefixtures("as_found")
def test_of_two_brokers_one_commits_while_the_other_is_gone(jvm: Jvm) -> None:
    """With two in-sync replicas wanted it never would: no fault, and runs come to peace around one that is down."""
    traced = fencing.traced(SHIPPED)
    ways = Transitions(ground(traced, TWO), FENCING, frozenset(traced.invariants) - BROKEN)
    free = simulate(brokers(jvm, SHIPPED), [ways], SimulationPlan(runs=70, events=150, seed=0))
    assert free.verdict is Verdict.HOLDS and free.met.events > 10_101


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize(("seed", "cell"), [(3, "remote_leo"), (0, "maximal_isr")], ids=["K11", "K12"])
def test_what_breaks_the_protocol_is_found_by_draw(jvm: Jvm, seed: int, cell: str) -> None:
    """The variant without K11 and K12 parts from Kafka where a broker replays its metadata."""
    free, _ = held(jvm, "kip-320-kafka", SimulationPlan(runs=30, events=150, seed=seed))
    divergence = found(free)
    assert divergence.event is not None
    assert (divergence.sort, divergence.event.name) == (Sort.CELLS, "metadata")
    assert any(each.cell.startswith(cell) for each in divergence.cells)


@pytest.mark.usefixtures("as_found")
def test_a_controller_that_fences_otherwise_is_found(jvm: Jvm, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: its record has the ISR that was before, so that the leader hears of nothing."""

    def untold(self: Controller, isr: frozenset[int], *, asked: bool) -> None:
        write(self, isr, asked=asked)
        if not asked:
            self.log[-1] = {"isr": sorted(self.isrs[-1][-2].isr)}

    write = Controller._alter
    monkeypatch.setattr(Controller, "_alter", untold)
    free, _ = held(jvm, FENCES, SimulationPlan(runs=30, events=150, seed=0))
    divergence = found(free)
    assert (divergence.sort, divergence.event and divergence.event.name) == (Sort.CELLS, "metadata")
    assert {each.cell.partition("[")[0] for each in divergence.cells} <= {"request_isr", "later_isr"}


def test_the_same_seed_is_the_same_run(jvm: Jvm) -> None:
    is_repeatable(lambda plan: held(jvm, SHIPPED, plan)[0])


def test_it_is_held_to_no_other_variant() -> None:
    with pytest.raises(BadInput, match="it is not held to fencing kip-320"):
        KafkaBrokers("fencing", "kip-320")


def test_without_maven_one_line_says_so(fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wants_maven(fencepost, monkeypatch, tmp_path)


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("defect", FOUND[BROKERS], ids=str.lower)
def test_a_defect_planted_in_kafkas_classes_is_found(jvm: Jvm, defect: str) -> None:
    """Those of ``driver/Defect.java``; without one the same plan finds nothing."""
    with planted(jvm, defect):
        free, _ = held(jvm, SHIPPED, SimulationPlan(runs=30, events=150, seed=SEEDS.get(defect, 0)))
    assert found(free, defect).sort is not Sort.RAISED


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("defect", LATER[BROKERS], ids=str.lower)
def test_a_defect_that_takes_more_records_and_epochs_is_found(jvm: Jvm, defect: str) -> None:
    """At constants of the plan's own; without it the same runs hold, but for what K11 and K12 break."""
    traced = fencing.traced(SHIPPED)
    ways = Transitions(ground(traced, WIDE), FENCING, frozenset(traced.invariants) - BROKEN)
    plan = SimulationPlan(runs=12, events=150, seed=2)
    with planted(jvm, defect):
        free = simulate(brokers(jvm, SHIPPED), [ways], plan)
    assert found(free, defect).sort is not Sort.RAISED
    assert simulate(brokers(jvm, SHIPPED), [ways], plan).verdict is Verdict.HOLDS


def test_a_defect_is_gone_when_another_one_is_planted_or_none(jvm: Jvm) -> None:
    """Of brokers that were there before, too: one JVM is for all of them."""
    plan = SimulationPlan(runs=2, events=60, seed=9)
    before, _ = held(jvm, SHIPPED, plan)
    with planted(jvm, "ALTERS_ALONE"):
        jvm.ask("reset", nodes=3, minIsr=1)
    after, _ = held(jvm, SHIPPED, plan)
    assert before.verdict is after.verdict is Verdict.HOLDS and before.kinds == after.kinds
