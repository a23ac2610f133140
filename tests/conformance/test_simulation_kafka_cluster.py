"""Apache Kafka's brokers as real processes, running freely: held to ``kip-320-kafka``, and faults that are found.

One cluster for all of these, in half a minute; every run has a topic of its own.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fencepost.conformance.kafka.cluster.frames import ALTER_PARTITION, FETCH, PRODUCE, Header
from fencepost.conformance.kafka.cluster.proxied_cluster import decoded, gated_stage
from fencepost.conformance.kafka.cluster.proxy import Alters, Waiting
from fencepost.conformance.kafka.cluster.stage import Stage
from fencepost.conformance.kafka.jars import RELEASE
from fencepost.conformance.protocols.fencing.binding import FENCING
from fencepost.conformance.protocols.fencing.kafka_processes import KafkaProcesses
from fencepost.conformance.simulation.divergence import Sort
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.runner import SimulationPlan, SimulationResult, repeat, simulate
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.fencing import fencing
from fencepost.traces.kafka.wire import read, written

from .conftest import Fencepost
from .kafka_found import as_found as as_found
from .kafka_found import found
from .kafka_jvm import needs_kafka

CONSTANTS = {"replicas": 3, "log_size": 3, "max_records": 4, "max_leader_epoch": 9}
KAFKA = "kip-320-kafka"
STALE = "kip-320-kafka-stale-acks"


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One cluster for all of these."""
    with needs_kafka():
        made = gated_stage(RELEASE)
    with made:
        yield made
        assert made.gate.faults == [], "the proxies must understand all that is said"


def ways_of(variant: str) -> Transitions:
    return Transitions(ground(fencing.traced(variant), CONSTANTS), FENCING)


def held(stage: Stage, plan: SimulationPlan, alters: Sequence[Alters] = (), variant: str = KAFKA) -> SimulationResult:
    system = KafkaProcesses(variant=variant, stage=stage, alters=alters)
    try:
        return simulate(system, [ways_of(variant)], replace(plan, faults=False))
    finally:
        system.close()


def altering(api: int, change: Callable[[Any], Any], *, response: bool = False) -> Alters:
    """What a faulty node would say: messages of this kind, changed. Names of clients are those of brokers, or ours."""

    def altered(_node: int, header: Header, is_response: bool, frame: bytes) -> bytes:
        if header.api != api or is_response != response or (header.client or "").startswith("raft"):
            return frame
        waiting = Waiting(header, is_response, None, frame)  # type: ignore[arg-type]
        body = decoded(waiting)
        head, _ = read(type(body).__header_schema__, frame, 4)
        data = written(head) + written(change(body))
        return struct.pack(">i", len(data)) + data

    return altered


def to_itself_alone(answer: Any) -> Any:
    """The controller is said to have taken everybody but the leader out of the ISR."""
    topics = []
    for topic in answer.topics:
        partitions = [
            replace(each, isr=(each.leader_id,)) if each.error_code.name == "none" else each
            for each in topic.partitions
        ]
        topics.append(replace(topic, partitions=tuple(partitions)))
    return replace(answer, topics=tuple(topics))


def has_one_more(request: Any) -> Any:
    """A follower asks for the offset after the one that it lacks, as if it had that record."""
    topics = []
    for topic in request.topics:
        partitions = [replace(each, fetch_offset=each.fetch_offset + 1) for each in topic.partitions]
        topics.append(replace(topic, partitions=tuple(partitions)))
    return replace(request, topics=tuple(topics))


FAULTS = {
    # A producer with acks=all is told of a record that the leader alone has.
    "acknowledged early": altering(PRODUCE, lambda request: replace(request, acks=1)),
    "isr made smaller": altering(ALTER_PARTITION, to_itself_alone, response=True),
    "has one more": altering(FETCH, has_one_more),
}


@pytest.mark.kafka
@pytest.mark.nightly(seconds=200)
def test_it_does_what_the_variant_says(stage: Stage) -> None:
    """Of some thousand events none is otherwise than the model has it; K11 takes more than is drawn here."""
    free = held(stage, SimulationPlan(runs=40, events=80, seed=1))
    assert free.verdict is Verdict.HOLDS, free.failure and free.failure.divergence
    assert free.met.events > 2_000
    needed = {"become_leader", "hear_of_leader", "follower_fetch", "truncate_partly", "controller_fail_over"}
    needed |= {"leader_ask_expand", "controller_grant_isr", "leader_learn_isr", "producer_hears", "consumer_reads"}
    assert needed <= free.met.steps.keys()


@pytest.mark.kafka
def test_it_does_what_the_variant_says_by_day(stage: Stage) -> None:
    """The same, of fewer events; nothing is open: one state of the model explains all that is seen."""
    free = held(stage, SimulationPlan(runs=4, events=60, seed=3))
    assert free.verdict is Verdict.HOLDS, free.failure and free.failure.divergence
    assert free.met.events > 150 and free.met.widest == 1


@pytest.mark.kafka
@pytest.mark.usefixtures("as_found")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_is_planted_is_found(stage: Stage, fault: str) -> None:
    free = held(stage, SimulationPlan(runs=30, events=60, seed=1), [FAULTS[fault]])
    assert found(free, fault).sort is not Sort.RAISED


def at(what: EventKind, name: str, node: int | None = None, source: int | None = None, **args: int) -> Event:
    return Event(what, name, node, source, 0, tuple(args.items()))


def fetched(leader: int, follower: int) -> list[Event]:
    """A follower's fetch arrives, and the answer does."""
    return [at(EventKind.DELIVER, "Fetch", leader, follower), at(EventKind.DELIVER, "FetchAnswer", follower, leader)]


K11 = [
    at(EventKind.OPERATE, "elect", broker=0),
    at(EventKind.TIMER, "metadata", 0),
    at(EventKind.TIMER, "metadata", 2),
    at(EventKind.CALL, "produce", broker=0),
    # One brings the record, and the next one tells that it is there.
    *fetched(0, 2),
    *fetched(0, 2),
    at(EventKind.OPERATE, "elect", broker=1),
    at(EventKind.TIMER, "metadata", 1),
    at(EventKind.TIMER, "metadata", 2),
    *fetched(1, 2),
    at(EventKind.OPERATE, "take out", broker=1),
    at(EventKind.TIMER, "metadata", 2),
    at(EventKind.TIMER, "metadata", 0),
]


@pytest.mark.kafka
@pytest.mark.parametrize("variant", [KAFKA, STALE])
def test_k11_is_found_on_real_processes(stage: Stage, variant: str) -> None:
    """Two elections in one update: the leader counts what its follower has truncated.

    The variant without K11 has no such high watermark. Its twin has, and a promise is broken then.
    """
    system = KafkaProcesses(variant=variant, stage=stage)
    try:
        ran = repeat(system, ways_of(variant), 1, K11)
    finally:
        system.close()
    assert ran.divergence is not None and list(ran.events) == K11
    if variant == KAFKA:
        assert ran.divergence.sort is Sort.CELLS and any(each.cell == "hw[0]" for each in ran.divergence.cells)
    else:
        assert ran.divergence.sort is Sort.PROMISE and ran.divergence.broken in ("weak_isr", "strong_isr")


@pytest.mark.kafka
@pytest.mark.nightly(seconds=120)
def test_a_leader_that_is_killed_comes_back(stage: Stage) -> None:
    """SIGKILL, another leader by the controller's word, and the process again, which is let into the ISR."""
    system = KafkaProcesses(variant=KAFKA, stage=stage)
    events = [
        at(EventKind.OPERATE, "elect", broker=0),
        *(at(EventKind.TIMER, "metadata", node) for node in (0, 1, 2)),
        at(EventKind.CALL, "produce", broker=0),
        at(EventKind.OPERATE, "kill", broker=0),
        at(EventKind.START, "", 0),
        Event(EventKind.PEACE),
    ]
    try:
        # In a run of such a seed a leader may be killed.
        ran = repeat(system, ways_of(KAFKA), 0, events)
    finally:
        system.close()
    assert ran.divergence is None, ran.divergence
    assert list(ran.events) == events
    taken = {action for done in ran.history for (action, _), _ in done.path}
    assert {"controller_fail_over", "hear_of_leader", "leader_ask_expand", "controller_grant_isr"} <= taken


FAULTY = """
import sys
sys.path.insert(0, {folder!r})
from test_free_kafka_cluster import FAULTS
from fencepost.conformance.protocols.fencing.kafka_processes import KafkaProcesses

class Faulty(KafkaProcesses):
    def __init__(self, protocol=None, variant=None):
        super().__init__(protocol, variant, alters=[FAULTS["acknowledged early"]])
"""


@pytest.mark.kafka
@pytest.mark.nightly(seconds=150)
def test_the_command_tells_the_story_and_how_to_repeat_it(
    fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A cluster of its own each time: the events, made few, and the command that has them happen again."""
    with needs_kafka():
        gated_stage(RELEASE)
    monkeypatch.chdir(tmp_path)
    # pytest has this very module under the name of its package.
    monkeypatch.setitem(sys.modules, "test_free_kafka_cluster", sys.modules[__name__])
    Path("faulty.py").write_text(FAULTY.format(folder=str(Path(__file__).parent)), encoding="utf-8")
    told = fencepost("conform", "--impl", "faulty.py:Faulty", "--runs", "5", "--events", "40", "--seed", "1")
    assert told.code == 1 and "three brokers and a controller start, each a process of its own" in told.err
    assert "call produce (broker=" in told.out and "below_high_watermark wants offset < hw[leader]" in told.out
    (again,) = [line.split() for line in told.out.splitlines() if "--replay" in line]
    assert again[:2] == ["fencepost", "conform"]
    assert fencepost(*again[1:]).code == 1


def test_it_is_held_to_no_other_variant() -> None:
    with pytest.raises(BadInput, match="it is not held to fencing kip-320"):
        KafkaProcesses("fencing", "kip-320")


def test_without_maven_one_line_says_so(fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XDG_CACHE_HOME", "PATH"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    said = fencepost("conform", "--impl", "kafka-cluster")
    assert "Maven: no mvn on PATH" in said.err.splitlines()[-1] and said.code == 2
