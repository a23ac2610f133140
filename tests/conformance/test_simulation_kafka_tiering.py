"""Apache Kafka's own brokers with tiered storage, running freely, held to ``kip-1023-kafka`` and what is shipped.

Constants: brokers/log size/leader epochs/copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from fencepost.conformance.harness import binding_of, held_to
from fencepost.conformance.kafka.process import TIERED, Jvm
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols.tiering.kafka import KafkaTiering
from fencepost.conformance.simulation.events import EventKind
from fencepost.conformance.simulation.runner import SimulationPlan, SimulationResult, simulate
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.explore.result import Verdict

from .conftest import Fencepost
from .kafka_found import as_found as as_found
from .kafka_found import found, is_repeatable, wants_maven
from .kafka_jvm import one_jvm, planted
from .kafka_planted import FOUND

USUAL = "3/8/12/20"
SHIPPED = "kip-1023-kafka-shipped"
PLAN = SimulationPlan(runs=30, events=150, seed=2)
MET = {
    *("begin_to_lead", "become_follower", "restart", "replace_replica", "append", "truncate"),
    *("find_highest_remote_offset", "start_copy", "copy_segment", "finish_copy", "give_up_copy", "delete_local"),
    *("ask_epuo", "ask_local_start", "build_to_epuo", "build_to_local_start", "stop_building"),
}
NEVER = {"delete_records"}
"""Nobody asks for it."""


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all of these."""
    yield from one_jvm(drives=TIERED)


@cache
def ways_at(at: str, variant: str) -> Transitions:
    """Made once: it takes longer than to find a defect."""
    text = held_to("tiering")
    return Transitions(ground(text.traced(variant), constants_of(text, at)), binding_of("tiering", "kafka_free"))


def held(
    jvm: Jvm, plan: SimulationPlan, variant: str = SHIPPED, at: str = USUAL
) -> tuple[SimulationResult, Transitions]:
    ways = ways_at(at, variant)
    return simulate(KafkaTiering(variant=variant, make=lambda: jvm), [ways], plan), ways


@pytest.mark.kafka
def test_it_does_what_is_shipped(jvm: Jvm) -> None:
    """All is seen, and what brokers and their remote log managers do most comes about."""
    free, ways = held(jvm, PLAN)
    assert free.verdict is Verdict.HOLDS and free.met.events > 5_000
    assert free.met.widest <= 1, "all is seen, so that one state explains it"
    assert {name.partition("[")[0] for name in ways.system.layout.by_name if name not in free.met.cells} == set()
    assert MET <= free.met.steps.keys() and not NEVER & free.met.steps.keys()
    happened = {what for what, _ in free.kinds}
    assert {
        EventKind.CRASH,
        EventKind.START,
        EventKind.CUT,
        EventKind.LOSE,
        EventKind.REPEAT,
        EventKind.TIMER,
        EventKind.DISK,
        EventKind.OPERATE,
    } <= happened


@pytest.mark.nightly(seconds=10)
@pytest.mark.kafka
@pytest.mark.parametrize("at", ["2/6/9/16", "3/10/12/20"])
def test_it_does_so_at_other_constants(jvm: Jvm, at: str) -> None:
    free, _ = held(jvm, SimulationPlan(runs=10, events=150, seed=2), at=at)
    assert free.verdict is Verdict.HOLDS and free.met.events > 1_200


@pytest.mark.kafka
@pytest.mark.nightly(seconds=400)
def test_a_night_of_it(jvm: Jvm) -> None:
    free, _ = held(jvm, SimulationPlan(runs=430, events=150, seed=11))
    assert free.verdict is Verdict.HOLDS and free.met.events > 90_000


@pytest.mark.sampled(2)
@pytest.mark.kafka
@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("defect", FOUND[TIERED], ids=str.lower)
def test_a_defect_planted_in_kafkas_remote_log_manager_is_found(jvm: Jvm, defect: str) -> None:
    """Those of ``driver/TieringDefect.java``; without one the same plan finds nothing."""
    with planted(jvm, defect):
        free, _ = held(jvm, PLAN)
    found(free, defect)


@pytest.mark.kafka
def test_the_same_seed_is_the_same_run(jvm: Jvm) -> None:
    is_repeatable(lambda plan: held(jvm, plan)[0])


def test_our_own_brokers_are_held_to_what_they_were() -> None:
    """That is the default; Kafka's do more, and of what both do a few steps differ."""
    tiered = held_to("tiering")
    assert list(tiered.variants)[-1] == "kip-1023-brokers"
    ours, theirs, shipped = (
        {action.name for action in tiered.traced(name).actions}
        for name in ("kip-1023-brokers", "kip-1023-kafka", SHIPPED)
    )
    assert theirs - ours == {"find_log_start", "recover_log_start", "truncate_below_start"} and ours <= theirs
    assert shipped - theirs == {"begin_without_epochs"}
    epochs_first = {action.name for action in tiered.traced("kip-1023-kafka-epochs-first").actions}
    assert epochs_first == theirs, "TK4"
    promised = [set(tiered.traced(name).invariants) for name in ("kip-1023-kafka", SHIPPED)]
    assert promised[0] - promised[1] == {"leader_can_serve"}, "TK1"


def test_it_is_held_to_no_other_variant() -> None:
    with pytest.raises(BadInput, match="it is not held to tiering kip-1023-brokers"):
        KafkaTiering("tiering", "kip-1023-brokers")


@pytest.mark.kafka
def test_without_maven_one_line_says_so(fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wants_maven(fencepost, monkeypatch, tmp_path, "--protocol", "tiering", "--replicas", "1", "--log-size", "2")


@pytest.mark.kafka
@pytest.mark.usefixtures("as_found")
def test_what_was_never_uploaded_is_deleted_and_that_is_found_by_draw(jvm: Jvm) -> None:
    """TK1: local retention goes by the highest offset that a log ever knew to be in remote storage."""
    divergence = found(held(jvm, SimulationPlan(runs=20, events=150, seed=6), "kip-1023-kafka")[0])
    assert divergence.event is not None and divergence.event.name == "retain"
    assert any("delete_local" in each and "is_uploaded" in each for each in map(str, divergence.refusals))


@pytest.mark.kafka
@pytest.mark.usefixtures("as_found")
def test_epochs_come_last_and_that_is_found_by_draw(jvm: Jvm) -> None:
    """TK4: a follower has cut its log to begin behind what is in remote storage, and then the store fails."""
    divergence = found(held(jvm, SimulationPlan(runs=60, events=150, seed=1), "kip-1023-kafka-epochs-first")[0])
    assert divergence.event is not None and divergence.event.name == "OffsetsForLeaderEpochAnswer"
    assert any(str(cell).startswith("local_start[") for cell in divergence.cells)
