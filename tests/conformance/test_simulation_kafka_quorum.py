"""Apache Kafka's own quorum nodes running freely, held to ``kip-630-kafka``, and to it as it is shipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fencepost.conformance.harness import held_to, in_lockstep
from fencepost.conformance.kafka.process import QUORUM, Jvm
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols.snapshots.kafka import KafkaQuorum
from fencepost.conformance.protocols.snapshots.kafka_binding import RUNNING
from fencepost.conformance.simulation.divergence import Sort
from fencepost.conformance.simulation.events import EventKind
from fencepost.conformance.simulation.runner import SimulationPlan, SimulationResult, simulate
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.protocols.snapshots.kafka_spec import SHIPPED, VARIANT, text

from .conftest import Fencepost
from .kafka_found import as_found as as_found
from .kafka_found import found, is_repeatable, wants_maven
from .kafka_jvm import one_jvm, planted
from .kafka_planted import FOUND, LATER

THREE = "3/0/10/10/3/0/0/1"
PLAN = SimulationPlan(runs=30, events=150, seed=0)
SELDOM = {"rediscover_at", "learn_resigned_leader", "give_up_snapshot", "end_epoch", "follower_truncate"}
"""What a few runs need not meet."""


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all of these."""
    yield from one_jvm(drives=QUORUM)


def held(jvm: Jvm, plan: SimulationPlan, variant: str = SHIPPED) -> tuple[SimulationResult, Transitions]:
    ways = Transitions(ground(text.traced(variant), constants_of(text, THREE)), RUNNING)
    return simulate(KafkaQuorum(variant=variant, make=lambda: jvm), [ways], plan), ways


@pytest.mark.kafka
def test_it_does_what_the_variant_says(jvm: Jvm) -> None:
    """Nothing is taken on trust: every cell is seen, and nearly all that nodes do comes about."""
    free, ways = held(jvm, PLAN)
    assert free.verdict is Verdict.HOLDS and free.met.events > 4_000
    assert {name for name in ways.system.layout.by_name if name not in free.met.cells} == set()
    actions = {action.name for action in text.traced(SHIPPED).actions}
    assert actions - free.met.steps.keys() <= SELDOM
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


def refused(free: SimulationResult, request: str, error: str) -> None:
    """What was found is a request that was answered otherwise than the model says."""
    divergence = found(free)
    assert divergence.event is not None
    assert (divergence.sort, divergence.event.name) == (Sort.ERROR, request) and error in divergence.detail


@pytest.mark.kafka
@pytest.mark.usefixtures("as_found")
def test_an_error_that_cannot_be_written_is_found_by_draw(jvm: Jvm) -> None:
    """F24: the variant without what is wrong in 4.4.0 parts from it where an error of FetchSnapshot is told."""
    free, _ = held(jvm, PLAN, VARIANT)
    refused(free, "FetchSnapshot", "UNKNOWN_SERVER_ERROR")


@pytest.mark.kafka
def test_the_same_seed_is_the_same_run(jvm: Jvm) -> None:
    is_repeatable(lambda plan: held(jvm, plan)[0])


def test_the_other_variants_are_what_they_were() -> None:
    """The text that running quorums are held to has every variant of the protocol, unchanged."""
    assert held_to("snapshots") is text and in_lockstep("snapshots")[0] is snapshots
    assert set(text.variants) - set(snapshots.variants) == {VARIANT, SHIPPED}
    assert text.default_variant == snapshots.default_variant
    for name in ("kip-630-quorum", snapshots.default_variant):
        ours, theirs = text.traced(name), snapshots.traced(name)
        assert ours.actions == theirs.actions and ours.invariants == theirs.invariants and ours.live == theirs.live


def test_it_is_held_to_no_other_variant() -> None:
    with pytest.raises(BadInput, match="it is not held to snapshots kip-630-quorum"):
        KafkaQuorum("snapshots", "kip-630-quorum")


@pytest.mark.kafka
def test_without_maven_one_line_says_so(fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wants_maven(fencepost, monkeypatch, tmp_path, "--protocol", "snapshots", "--log-size", "2")


def finds(jvm: Jvm, defect: str, plan: SimulationPlan = PLAN) -> None:
    """A defect of ``driver/QuorumDefect.java``; without it the same plan finds nothing."""
    with planted(jvm, defect):
        free, _ = held(jvm, plan)
    found(free, defect)


@pytest.mark.sampled(2)
@pytest.mark.kafka
@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("defect", FOUND[QUORUM], ids=str.lower)
def test_a_defect_planted_in_kafkas_quorum_is_found(jvm: Jvm, defect: str) -> None:
    finds(jvm, defect)


@pytest.mark.kafka
@pytest.mark.nightly(seconds=120)
@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("defect", LATER[QUORUM], ids=str.lower)
def test_a_defect_that_opens_a_hole_of_the_text_is_found_by_longer_runs(jvm: Jvm, defect: str) -> None:
    """A2 and A4, which Kafka has closed; after some 20,000 events."""
    finds(jvm, defect, SimulationPlan(runs=250, events=150, seed=3))


@pytest.mark.kafka
@pytest.mark.nightly(seconds=120)
def test_it_holds_where_those_are_found(jvm: Jvm) -> None:
    """The same runs, with nothing planted."""
    free, _ = held(jvm, SimulationPlan(runs=250, events=150, seed=3))
    assert free.verdict is Verdict.HOLDS and free.met.events > 27_000
