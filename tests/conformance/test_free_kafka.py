"""Apache Kafka's own brokers running freely, held to ``kip-320-kafka`` and to what it becomes with what is shipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fencepost.conformance.free.events import What
from fencepost.conformance.free.parted import Sort
from fencepost.conformance.free.runner import Free, FreePlan, Ran, run_freely
from fencepost.conformance.free.system import FreeSystem
from fencepost.conformance.free.ways import Ways
from fencepost.conformance.kafka.jars import RELEASE
from fencepost.conformance.kafka.process import Jvm
from fencepost.conformance.protocols.fencing.binding import FENCING
from fencepost.conformance.protocols.fencing.kafka import KafkaBrokers
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.fencing import fencing

from .conftest import Fencepost

pytestmark = pytest.mark.kafka
CONSTANTS = {"replicas": 3, "log_size": 3, "max_records": 4, "max_leader_epoch": 9}
SHIPPED = "kip-320-kafka-shipped"


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all of these."""
    try:
        made = Jvm()
    except BadInput as missing:
        pytest.skip(f"absent: Apache Kafka {RELEASE}: {missing}")
    yield made
    made.close()


def brokers(jvm: Jvm, variant: str) -> KafkaBrokers:
    """Brokers in that JVM."""
    return KafkaBrokers(variant=variant, make=lambda: jvm)


def held(jvm: Jvm, variant: str, plan: FreePlan) -> tuple[Free, Ways]:
    ways = Ways(ground(fencing.traced(variant), CONSTANTS), FENCING)
    return run_freely(brokers(jvm, variant), [ways], plan), ways


@pytest.fixture
def as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found is taken as it is: to make it small takes longer than to find it."""

    def unmade(_system: FreeSystem, failed: Ran) -> tuple[Ran, bool, bool]:
        return failed, True, False

    monkeypatch.setattr("fencepost.conformance.free.runner.smallest", unmade)


def test_it_does_what_the_variant_of_what_is_shipped_says(jvm: Jvm) -> None:
    """Nothing is taken on trust: every cell is seen, and all that brokers do comes about."""
    free, ways = held(jvm, SHIPPED, FreePlan(runs=30, events=150, seed=0))
    assert free.verdict is Verdict.HOLDS and free.met.events > 4_000
    assert {name for name in ways.system.layout.by_name if name not in free.met.cells} == set()
    actions = {action.name for action in fencing.traced(SHIPPED).actions}
    assert actions - free.met.steps.keys() <= {"leader_ask_again"}  # it asks for something else only where it learns
    happened = {what for what, _ in free.kinds}
    assert {What.CRASH, What.START, What.CUT, What.LOSE, What.REPEAT, What.TIMER, What.CALL} <= happened


@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize(("seed", "cell"), [(3, "remote_leo"), (0, "maximal_isr")], ids=["K11", "K12"])
def test_what_breaks_the_protocol_is_found_by_draw(jvm: Jvm, seed: int, cell: str) -> None:
    """The variant without K11 and K12 parts from Kafka where a broker replays its metadata."""
    free, _ = held(jvm, "kip-320-kafka", FreePlan(runs=30, events=150, seed=seed))
    assert free.verdict is Verdict.VIOLATED and free.failure is not None
    parted = free.failure.parted
    assert parted is not None and parted.event is not None
    assert (parted.sort, parted.event.name) == (Sort.CELLS, "metadata")
    assert any(each.cell.startswith(cell) for each in parted.cells)


def test_the_same_seed_is_the_same_run(jvm: Jvm) -> None:
    plan = FreePlan(runs=4, events=60, seed=9)
    one, other = (held(jvm, SHIPPED, plan)[0] for _ in range(2))
    assert (one.met.events, one.met.steps, one.kinds) == (other.met.events, other.met.steps, other.kinds)


def test_it_is_held_to_no_other_variant() -> None:
    with pytest.raises(BadInput, match="it is not held to fencing kip-320"):
        KafkaBrokers("fencing", "kip-320")


def test_without_maven_one_line_says_so(fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XDG_CACHE_HOME", "PATH"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert fencepost("conform", "--impl", "kafka").complaint.startswith("Maven: no mvn on PATH")


@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize(
    "defect", ["KEEPS_DIVERGENCE", "NAMES_NO_EPOCH", "COMMITS_ALL", "ACKS_ONE", "ALTERS_ALONE"], ids=str.lower
)
def test_a_defect_planted_in_kafkas_classes_is_found(jvm: Jvm, defect: str) -> None:
    """Subclasses of ``driver/Defect.java``, in a JVM of their own; without one the same plan finds nothing."""
    planted = Jvm(options=(f"-Dfencepost.defect={defect}",))
    try:
        free, _ = held(planted, SHIPPED, FreePlan(runs=30, events=150, seed=0))
    finally:
        planted.close()
    assert free.verdict is Verdict.VIOLATED and free.failure is not None and free.failure.parted is not None
    print(defect, free.met.events, free.failure.parted.detail)
    assert free.failure.parted.sort is not Sort.RAISED
