"""Apache Kafka's own consumer before brokers that run freely, held to ``kip-320-kafka`` and to what is shipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from fencepost.conformance.kafka.process import CONSUMER, Jvm
from fencepost.conformance.protocols.truncation.binding import TRUNCATION
from fencepost.conformance.protocols.truncation.kafka import KafkaConsumers
from fencepost.conformance.protocols.truncation.kafka_reader import ShippedBroker
from fencepost.conformance.simulation.divergence import Sort
from fencepost.conformance.simulation.events import EventKind
from fencepost.conformance.simulation.runner import SimulationPlan, SimulationResult, simulate
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import MetadataRequest, MetadataResponse, Response
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.truncation import truncation

from .conftest import Fencepost
from .kafka_found import as_found as as_found
from .kafka_found import found, is_repeatable, wants_maven
from .kafka_jvm import one_jvm, planted
from .kafka_planted import FOUND

pytestmark = pytest.mark.kafka
CONSTANTS = {"replicas": 2, "log_size": 3, "max_records": 4, "max_leader_epoch": 4}
MENDED = "kip-320-kafka"
SHIPPED, ENDS, LATE = (f"{MENDED}-{name}" for name in ("shipped", "ends", "late"))
WIDE = {"replicas": 2, "log_size": 7, "max_records": 16, "max_leader_epoch": 6}
BROKEN = frozenset({"no_unnoticed_gap", "told_divergence"})
"""What a consumer with H1 and V6 does not keep, as what it has read is of two logs then; all else it does."""


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all of these."""
    yield from one_jvm(drives=CONSUMER)


def held(
    jvm: Jvm, variant: str, plan: SimulationPlan, but: frozenset[str] = frozenset(), at: Mapping[str, int] = CONSTANTS
) -> tuple[SimulationResult, Transitions]:
    """The consumer in that JVM; ``but``: the promises that are not demanded."""
    traced = truncation.traced(variant)
    demanded = frozenset(traced.invariants) - but if but else None
    ways = Transitions(ground(traced, at), TRUNCATION, demanded)
    return simulate(KafkaConsumers(variant=variant, make=lambda: jvm), [ways], plan), ways


def test_it_does_what_the_variant_of_what_is_shipped_says(jvm: Jvm) -> None:
    """Nothing is taken on trust: every cell is seen, and all that a consumer does comes about."""
    free, ways = held(jvm, SHIPPED, SimulationPlan(runs=100, events=150, seed=1), BROKEN)
    assert free.verdict is Verdict.HOLDS
    assert free.met.events > 5_000
    assert {name for name in ways.system.layout.by_name if name not in free.met.cells} == set()
    assert {action.name for action in truncation.traced(SHIPPED).actions} - free.met.steps.keys() <= {"miss_commit"}
    happened = {what for what, _ in free.kinds}
    assert {
        EventKind.CRASH,
        EventKind.START,
        EventKind.CUT,
        EventKind.LOSE,
        EventKind.REPEAT,
        EventKind.TIMER,
        EventKind.TIME,
        EventKind.CALL,
    } <= happened


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("variant", [MENDED, LATE])
def test_h1_is_found_by_draw(jvm: Jvm, variant: str) -> None:
    """The variants that compare epochs too tell a truncation where the consumer goes on."""
    free, _ = held(jvm, variant, SimulationPlan(runs=60, events=150, seed=9), BROKEN)
    divergence = found(free)
    assert divergence.event is not None
    assert (divergence.sort, divergence.event.name) == (Sort.CELLS, "OffsetsForLeaderEpochResponse")
    assert [each.cell for each in divergence.cells] == ["validating"]
    assert any("not_truncated" in str(each) for each in divergence.refusals)


@pytest.mark.usefixtures("as_found")
def test_v6_is_found_by_draw(jvm: Jvm) -> None:
    """Where H1 is allowed, and an answer of a leader that was left is not, the consumer parts as it takes one."""
    free, _ = held(jvm, ENDS, SimulationPlan(runs=60, events=150, seed=1), BROKEN)
    divergence = found(free)
    assert divergence.event is not None
    assert (divergence.sort, divergence.event.name) == (Sort.CELLS, "FetchResponse")
    assert divergence.cells[0].cell == "position"
    assert any("same_epoch" in str(each) for each in divergence.refusals)


def test_v7_where_brokers_often_do_not_know_the_topic(jvm: Jvm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata goes back, and an older leader says that it knows of nothing: the variant of what is shipped agrees."""
    told: list[int] = []
    answer = ShippedBroker._shipped

    def knows_it_seldom(self: ShippedBroker, body: object) -> Response | None:
        if isinstance(body, MetadataRequest):
            told.append(len(told))
            if told[-1] % 4 == 3:
                return MetadataResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return answer(self, body)

    monkeypatch.setattr(ShippedBroker, "_shipped", knows_it_seldom)
    free, _ = held(jvm, SHIPPED, SimulationPlan(runs=40, events=150, seed=1), BROKEN)
    assert free.verdict is Verdict.HOLDS
    assert {"lose_metadata", "update_metadata", "find_truncation"} <= free.met.steps.keys()


@pytest.mark.usefixtures("as_found")
def test_what_is_shipped_skips_records(jvm: Jvm) -> None:
    """The promise falls, in the model as in the consumer."""
    free, _ = held(jvm, SHIPPED, SimulationPlan(runs=40, events=200, seed=4), at=WIDE)
    divergence = found(free)
    assert (divergence.sort, divergence.broken) == (Sort.PROMISE, "no_unnoticed_gap")


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("defect", FOUND[CONSUMER], ids=str.lower)
def test_a_defect_planted_in_kafkas_classes_is_found(jvm: Jvm, defect: str) -> None:
    """Subclasses of ``driver/Planted.java``; without one the same plan finds nothing."""
    with planted(jvm, defect):
        free, _ = held(jvm, SHIPPED, SimulationPlan(runs=40, events=150, seed=4), BROKEN)
    assert found(free, defect).sort is not Sort.RAISED


def test_the_same_seed_is_the_same_run(jvm: Jvm) -> None:
    is_repeatable(lambda plan: held(jvm, SHIPPED, plan, BROKEN)[0])


def test_it_is_held_to_no_other_variant() -> None:
    with pytest.raises(BadInput, match="it is not held to truncation kip-320-client"):
        KafkaConsumers("truncation", "kip-320-client")


def test_without_maven_one_line_says_so(fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wants_maven(fencepost, monkeypatch, tmp_path, "--protocol", "truncation")
