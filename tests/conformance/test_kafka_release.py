"""Another release of Apache Kafka under the same drivers: which there are for it, and what is said where none is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fencepost.conformance.kafka.jars import (
    BROKERS,
    CLEANERS,
    CONSUMER,
    CONTROLLERS,
    QUORUM,
    RELEASE,
    TIERED,
    TRIED,
    classes,
)
from fencepost.conformance.kafka.process import Jvm
from fencepost.conformance.simulation.divergence import Sort
from fencepost.model.core.errors import BadInput
from fencepost.model.explore.result import Verdict

from . import test_kafka_reader as reader
from .conftest import Fencepost
from .kafka_jvm import needs_kafka, one_jvm
from .test_simulation_kafka_consumer import BROKEN, ENDS, MENDED, SHIPPED, SimulationPlan, held

OLDER = "4.3.1"


@pytest.fixture(scope="module")
def older() -> Iterator[Jvm]:
    """A consumer of that release."""
    yield from one_jvm(release=OLDER, drives=CONSUMER)


def test_all_drivers_are_for_the_release_that_is_driven_by_default() -> None:
    assert set(TRIED[RELEASE]) == {BROKERS, QUORUM, CONSUMER, CONTROLLERS, CLEANERS, TIERED}
    assert TRIED[OLDER] == (CONSUMER,)


@pytest.mark.kafka
@pytest.mark.nightly(seconds=60)
def test_its_consumer_does_what_the_variant_of_what_is_shipped_says(older: Jvm) -> None:
    free, _ = held(older, SHIPPED, SimulationPlan(runs=60, events=150, seed=10), BROKEN)
    assert free.verdict is Verdict.HOLDS and free.met.events > 5_000


@pytest.mark.kafka
@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize(("variant", "seed", "cell"), [(MENDED, 9, "validating"), (ENDS, 1, "position")])
def test_h1_and_v6_are_there_too(
    older: Jvm, monkeypatch: pytest.MonkeyPatch, variant: str, seed: int, cell: str
) -> None:
    monkeypatch.setattr(
        "fencepost.conformance.simulation.runner.smallest", lambda _system, failed: (failed, True, False)
    )
    free, _ = held(older, variant, SimulationPlan(runs=60, events=150, seed=seed), BROKEN)
    assert free.verdict is Verdict.VIOLATED and free.failure is not None and free.failure.divergence is not None
    assert (free.failure.divergence.sort, free.failure.divergence.cells[0].cell) == (Sort.CELLS, cell)


@pytest.mark.kafka
@pytest.mark.nightly(seconds=60)
def test_v7_is_there_too(older: Jvm) -> None:
    reader.test_v7_metadata_goes_back_once_a_broker_has_not_known_the_topic(reader.Story(older))


@pytest.mark.kafka
@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize(("drives", "what"), [(BROKERS, "brokers"), (QUORUM, "a quorum's nodes")])
def test_what_does_not_compile_against_it_is_said_in_one_line(drives: str, what: str) -> None:
    with needs_kafka():
        classes(OLDER, drives=CONSUMER)
    said = rf"^Apache Kafka 4\.3\.1: the driver of {what} does not compile against it: \w+\.java \(at line \d+\); "
    with pytest.raises(BadInput, match=said + r"name a release that it was tried on: 4\.4\.0$"):
        classes(OLDER, drives=drives)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--impl", "kafka", "--kafka", "new"), "--kafka: 'new' is not a version of Kafka; write it as in 4.4.0"),
        (
            ("--kafka", "4.3.1"),
            "--kafka 4.3.1: no class of Apache Kafka runs in this system; leave it out, or name --impl kafka",
        ),
    ],
    ids=["no-version", "no-kafka"],
)
def test_bad_input_is_one_line(fencepost: Fencepost, words: tuple[str, ...], says: str) -> None:
    assert fencepost("conform", "--protocol", "fencing", "--way", "free", *words).complaint == says
