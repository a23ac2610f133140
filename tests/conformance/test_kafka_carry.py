"""Stories of the model carried out on something else: on the model itself, with faults, and on Kafka's real brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.conformance.kafka.cluster.trace_executor import CannotDo, Carried, CarriedOut, carry_out
from fencepost.conformance.kafka.jars import RELEASE
from fencepost.conformance.protocols.fencing.kafka_cluster import HANDS
from fencepost.model.core.errors import BadInput
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore.result import Verdict
from fencepost.traces.format import Trace, TraceEvent, TraceHeader, Value
from fencepost.traces.kafka.maven import fetch_kafka
from fencepost.traces.observe import decode
from fencepost.traces.replay import traced_of
from fencepost.traces.stepper import DirectStepper
from fencepost.traces.write import write_trace

from .conftest import Fencepost
from .kafka_jvm import needs_kafka

FINDING = Path(__file__).resolve().parents[2] / "docs" / "findings" / "k11.md"
CONSTANTS = {"replicas": 3, "log_size": 1, "max_records": 1, "max_leader_epoch": 2}
K11: tuple[tuple[str, Mapping[str, int]], ...] = (
    ("controller_elect_leader", {"new_leader": 0}),
    ("become_leader", {"leader": 0, "epoch": 0}),
    ("leader_write", {"leader": 0}),
    ("hear_of_leader", {"replica": 2, "epoch": 0}),
    ("follower_fetch", {"leader": 0, "follower": 2}),
    ("follower_acknowledge", {"leader": 0, "follower": 2}),
    ("controller_elect_leader", {"new_leader": 1}),
    ("become_leader", {"leader": 1, "epoch": 1}),
    ("controller_fail_over", {"failed": 1, "new_leader": 0}),
    ("hear_of_leader", {"replica": 2, "epoch": 1}),
    ("become_leader", {"leader": 0, "epoch": 2}),
    ("truncate_partly", {"leader": 1, "follower": 2, "end": 0}),
    ("leader_inc_high_watermark", {"leader": 0}),
)
"""A run of ``kip-320-kafka-stale-acks`` that breaks its promise, step by step."""
COMMITTED: tuple[tuple[str, Mapping[str, int]], ...] = (
    *K11[:3],
    ("hear_of_leader", {"replica": 1, "epoch": 0}),
    *K11[3:6],
    ("follower_fetch", {"leader": 0, "follower": 1}),
    ("follower_acknowledge", {"leader": 0, "follower": 1}),
    ("leader_inc_high_watermark", {"leader": 0}),
    ("producer_hears", {"leader": 0, "offset": 0}),
    ("consumer_reads", {"leader": 0, "offset": 0}),
    ("follower_hear_high_watermark", {"leader": 0, "follower": 2}),
)
"""A record that is replicated, committed, acknowledged and read."""


def story(steps: Sequence[tuple[str, Mapping[str, int]]], variant: str, *, complete: bool = True) -> Trace:
    header = TraceHeader("fencing", variant, CONSTANTS, complete)
    return Trace(header, tuple(TraceEvent(n, action, params) for n, (action, params) in enumerate(steps, 1)))


class ModelHands:
    """A variant of the model as the system; some of its steps may be left undone, or impossible."""

    quiet = 0.0
    by_itself = HANDS.by_itself

    def __init__(self, variant: str, undone: str = "", impossible: str = "") -> None:
        self.stepper = DirectStepper(traced_of(story((), variant)), CONSTANTS)
        self.state = self.stepper.layout.initial
        self.undone, self.impossible = undone, impossible

    def do(self, action: str, params: Mapping[str, int]) -> str:
        if action == self.impossible:
            raise CannotDo("nobody has such hands")
        choices = [tuple(params.items())]
        for name in (action, *self.by_itself):
            found = self.stepper.some(self.state, name, choices if name == action else self.stepper.choices(name))
            if name == action:
                assert found, "the story is a run of the variant"
            if found and name != self.undone:
                self.state = found[0].state
        return "done"

    def observe(self) -> Mapping[str, Value]:
        cells = self.stepper.layout.cells
        return {cell.name: decode(cell, self.state[cell.number]) for cell in cells}

    def seen(self) -> Sequence[str]:
        return [f"hw[0] is {self.observe()['hw[0]']}"]


def carried(trace: Trace, hands: ModelHands) -> CarriedOut:
    said: list[Carried] = []
    found = carry_out(trace, "story", hands, lambda _number, told: said.append(told), settles=0.0)
    assert said == found.steps
    return found


def test_a_promise_breaks_where_the_system_has_it_break() -> None:
    """The system raises its high watermark at once, which the model's story does at its end."""
    found = carried(story(K11, "kip-320-kafka-stale-acks"), ModelHands("kip-320-kafka-stale-acks"))
    assert found.verdict is Verdict.VIOLATED
    assert found.reason == "weak_isr, strong_isr broken after step 12, in the model as on the cluster"
    assert found.steps[10].besides == ["leader_inc_high_watermark(leader=0)"] and found.steps[10].seen == ["hw[0] is 1"]


def test_a_story_in_which_nothing_breaks_holds() -> None:
    found = carried(story(COMMITTED, "kip-320-kafka"), ModelHands("kip-320-kafka"))
    assert (found.verdict, found.reason, len(found.steps)) == (Verdict.HOLDS, "", len(COMMITTED))
    done = {told.call: told.done for told in found.steps}
    assert done["leader_inc_high_watermark(leader=0)"] == "it has happened, by itself"


def test_a_system_with_a_fault_parts_from_the_variant_without() -> None:
    """K11 is in the system, and not in the variant that the story is of."""
    found = carried(story(K11[:-2], "kip-320-kafka"), ModelHands("kip-320-kafka-stale-acks"))
    assert found.verdict is Verdict.VIOLATED and len(found.steps) == 11
    assert found.reason.startswith("the cluster does otherwise: ") and "hw[0] is 0 in the model, 1" in found.reason


def test_a_step_that_is_not_done_is_noticed() -> None:
    hands = ModelHands("kip-320-kafka-stale-acks", undone="truncate_partly")
    found = carried(story(K11, "kip-320-kafka-stale-acks"), hands)
    assert found.reason.startswith("the cluster does otherwise: leo[2] is 0 in the model, 1 on the cluster")
    assert found.verdict is Verdict.VIOLATED and len(found.steps) == 12


def test_a_step_that_cannot_be_done_ends_it_as_unknown() -> None:
    hands = ModelHands("kip-320-kafka-stale-acks", impossible="controller_fail_over")
    found = carried(story(K11, "kip-320-kafka-stale-acks"), hands)
    assert found.verdict is Verdict.UNKNOWN and len(found.steps) == 9
    call = "controller_fail_over(failed=1, new_leader=0)"
    assert found.reason == f"{call} cannot be done on a cluster: nobody has such hands"
    assert found.steps[-1].done == "cannot be done: nobody has such hands"


def test_what_is_no_run_of_its_variant_is_refused_before_anything_is_done() -> None:
    hands = ModelHands("kip-320-kafka")
    with pytest.raises(BadInput, match=r"leader_inc_high_watermark.*cannot happen there in kip-320-kafka"):
        carried(story(K11, "kip-320-kafka"), hands)
    assert hands.state == hands.stepper.layout.initial


@pytest.mark.parametrize(
    ("complete", "options", "says"),
    [
        (True, ("--on", "nowhere"), "--on: 'nowhere' is nowhere that stories are carried out; name kafka-cluster"),
        (False, ("--on", "kafka-cluster"), "steps may be missing from it; give what fencepost explore --trace-out"),
        (True, ("--on", "kafka-cluster", "--variant", "kip-320"), "--variant: the story is carried out as it is"),
        (True, ("--on", "kafka-cluster", "--html", "x.html"), "--html: the story is carried out as it is"),
    ],
    ids=["nowhere", "incomplete", "variant", "html"],
)
def test_bad_input_is_one_line(
    fencepost: Fencepost, tmp_path: Path, complete: bool, options: Sequence[str], says: str
) -> None:
    write_trace(tmp_path / "story.jsonl", story(K11, "kip-320-kafka-stale-acks", complete=complete))
    assert says in fencepost("replay", tmp_path / "story.jsonl", *options).complaint


def test_a_protocol_without_hands_there_is_told(fencepost: Fencepost, tmp_path: Path) -> None:
    header = TraceHeader("tiering", "kip-1023-safe", {}, complete=True)
    path = tmp_path / "story.jsonl"
    constants = dict.fromkeys(PROTOCOLS["tiering"].constants, 1)
    write_trace(path, Trace(replace(header, constants=constants), ()))
    said = fencepost("replay", path, "--on", "kafka-cluster").complaint
    assert said.startswith("--on kafka-cluster: tiering has no hands there; see ")


@pytest.fixture(scope="module")
def kafka() -> None:
    with needs_kafka():
        fetch_kafka(RELEASE, timeout=120)


@pytest.mark.kafka
@pytest.mark.nightly(seconds=60)
@pytest.mark.usefixtures("kafka")
def test_the_explorers_story_of_k11_breaks_its_promise_on_real_brokers(fencepost: Fencepost, tmp_path: Path) -> None:
    """Found by the explorer, carried out on brokers: nobody writes a step of it."""
    variant = ("--variant", "kip-320-kafka-stale-acks")
    constants = [word for name, n in CONSTANTS.items() for word in (f"--{name.replace('_', '-')}", str(n))]
    fencepost("explore", "fencing", *variant, *constants, "--engine", "batch", "--trace-out", tmp_path / "k11.jsonl")
    told = fencepost("replay", tmp_path / "k11.jsonl", "--on", "kafka-cluster")
    *said, verdict = told.out.splitlines()
    assert told.code == 1 and verdict.endswith("on kafka-cluster, Apache Kafka 4.4.0: violated")
    assert said[-1] == "weak_isr, strong_isr broken after step 12, in the model as on the cluster"
    assert "     the producer of r0 has been told NONE, offset 0" in said
    assert "\n{}\n".format("\n".join(said)) in FINDING.read_text(encoding="utf-8")


@pytest.mark.kafka
@pytest.mark.nightly(seconds=60)
@pytest.mark.usefixtures("kafka")
@pytest.mark.parametrize(
    ("steps", "variant", "code", "says"),
    [
        (COMMITTED, "kip-320-kafka", 0, ""),
        (K11[:-2], "kip-320-kafka", 1, "the cluster does otherwise: hw[0] is 0 in the model, 1 on the cluster"),
        (
            (*K11[:2], ("leader_ask_shrink", {"leader": 0, "follower": 2})),
            "kip-320-kafka-forgets",
            3,
            "leader does so when replica.lag.time.max.ms has gone by, and a clock drives it",
        ),
    ],
    ids=["holds", "violated", "unknown"],
)
def test_real_brokers_tell_the_three_apart(
    fencepost: Fencepost,
    tmp_path: Path,
    steps: Sequence[tuple[str, Mapping[str, int]]],
    variant: str,
    code: int,
    says: str,
) -> None:
    """A story that goes well; K11 against the variant without it; and one that needs a clock."""
    write_trace(tmp_path / "story.jsonl", story(steps, variant))
    told = fencepost("replay", tmp_path / "story.jsonl", "--on", "kafka-cluster", "--json")
    assert (told.code, told.json["on"]) == (code, "kafka-cluster"), told.out
    assert told.json["verdict"] == {0: "holds", 1: "violated", 3: "unknown"}[code]
    assert says in (told.json["reason"] or "")
    calls = [f"{action}({', '.join(f'{name}={n}' for name, n in params.items())})" for action, params in steps]
    assert [step["step"] for step in told.json["steps"]] == calls
