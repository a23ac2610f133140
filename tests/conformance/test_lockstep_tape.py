"""A lockstep run as a trace file: it runs again alike, and replaying it against the model tells the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.conformance.lockstep.choice_log import KEY, bound_tries, read_tape, tape_of
from fencepost.conformance.lockstep.expect import Try
from fencepost.conformance.lockstep.faults import EVENTS, MODIFIERS, OF_A_REPLICA, Fault, Kind
from fencepost.conformance.lockstep.model_adapter import ModelAdapter
from fencepost.conformance.lockstep.play import repeat
from fencepost.conformance.lockstep.render import script, story_of_failure
from fencepost.conformance.lockstep.runner import Conformance
from fencepost.model.core.errors import BadInput
from fencepost.model.explore.result import Verdict
from fencepost.traces.format import Trace, TraceEvent, TraceHeader, trace_schema
from fencepost.traces.read import read_trace
from fencepost.traces.replay import replay
from fencepost.traces.report.page import render_page
from fencepost.traces.write import write_trace
from jsonschema import Draft202012Validator

from . import planted
from .planted import held

SMALL_CONSTANTS = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}


def failing(adapter: ModelAdapter) -> Conformance:
    """A divergence to write down."""
    found = held(adapter)
    assert found.failure is not None
    return found


@pytest.fixture(scope="module")
def lying() -> Conformance:
    return failing(planted.Lying("fencing"))


@pytest.fixture(scope="module")
def isolated() -> Conformance:
    return failing(planted.ReachesTheIsolated("fencing"))


def written(found: Conformance, path: Path, adapter: str = "some.py:Adapter") -> Path:
    assert found.failure is not None
    write_trace(path, tape_of(found.space.system, found.failure, adapter))
    return path


def test_a_tape_runs_again_step_for_step_faults_included(isolated: Conformance, tmp_path: Path) -> None:
    assert isolated.failure is not None
    path = written(isolated, tmp_path / "t.jsonl")
    tape = read_tape(path)
    assert (tape.adapter, tape.seed) == ("some.py:Adapter", isolated.failure.seed)
    assert (tape.protocol, tape.variant, tape.constants) == ("fencing", "kip-320", planted.SMALL)
    tries = bound_tries(isolated.space, tape, str(path))
    assert tries == isolated.failure.tries
    assert any(each.fault is not None and each.fault.kind is Kind.ISOLATE for each in tries)
    again = repeat(isolated.space, planted.ReachesTheIsolated("fencing"), tape.seed, tries)
    assert again.divergence == isolated.failure.divergence
    assert repeat(isolated.space, ModelAdapter("fencing"), tape.seed, tries).divergence is None


def test_what_was_observed_otherwise_is_refused_by_replay_too(lying: Conformance, tmp_path: Path) -> None:
    assert lying.failure is not None and lying.failure.divergence is not None
    answer = replay(read_trace(written(lying, tmp_path / "t.jsonl")))
    assert answer.verdict is Verdict.VIOLATED and answer.cause == "observation"
    (difference,) = answer.frontier[0].denials[0].differences
    (cell,) = lying.failure.divergence.cells
    assert (difference.cell, difference.expected, difference.observed) == (cell.cell, cell.model, cell.implementation)


def test_what_the_model_refuses_is_refused_by_replay_with_the_same_guard(tmp_path: Path) -> None:
    found = failing(ModelAdapter("fencing", "kip-320", ["leader_shrink_isr.true_leader"]))
    assert found.failure is not None and found.failure.divergence is not None
    answer = replay(read_trace(written(found, tmp_path / "t.jsonl")))
    assert answer.verdict is Verdict.VIOLATED and answer.cause == "guard"
    assert answer.frontier[0].denials[0].refusal == found.failure.divergence.refusal


def test_a_state_that_changed_on_a_refusal_is_refused_as_an_observation(tmp_path: Path) -> None:
    answer = replay(read_trace(written(failing(planted.ChangesOnRefusal("fencing")), tmp_path / "t.jsonl")))
    assert answer.verdict is Verdict.VIOLATED and answer.cause == "observation"
    assert answer.event is not None and answer.event.action is None, "nothing happened, and yet it looks otherwise"


def test_every_line_is_of_the_published_schema(isolated: Conformance, tmp_path: Path) -> None:
    schema = trace_schema()

    def valid(definition: str, item: object) -> None:
        Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]}).validate(item)

    lines = [json.loads(line) for line in written(isolated, tmp_path / "t.jsonl").read_text().splitlines()]
    valid("header", lines[0])
    valid("lockstep_run", lines[0]["source"][KEY])
    told = [line["source"][KEY] for line in lines[1:] if KEY in line.get("source", {})]
    assert isolated.failure is not None and len(told) == len(isolated.failure.tries)
    for line in lines[1:]:
        valid("event", line)
    for each in told:
        valid("lockstep_try", each)


def test_what_no_cell_can_hold_stands_beside_the_observations(tmp_path: Path) -> None:
    class OutOfRange(ModelAdapter):
        def observe(self) -> dict[str, object]:  # type: ignore[override]
            seen = dict(super().observe())
            return {**seen, "leo[0]": -7, "brokers": 3} if seen["leo[0]"] == 1 else {**seen}

    found = failing(OutOfRange("fencing"))
    assert found.failure is not None and found.failure.divergence is not None
    assert "leo[0] is 1 in the model, -7 in the implementation" in found.failure.divergence.lines
    trace = read_trace(written(found, tmp_path / "t.jsonl"))
    assert trace.events[-1].source["not in the model"] == {"leo[0]": "-7", "brokers": "3"}
    assert "leo[0]" not in trace.events[-1].observed


@pytest.mark.parametrize("kind", Kind)
def test_every_fault_survives_being_written(kind: Kind) -> None:
    fault = Fault(kind, 1 if kind in OF_A_REPLICA else None, seed=5 if kind is Kind.CRASH else 0)
    assert Fault.from_json(fault.to_json(), "here") == fault
    assert (kind in MODIFIERS) is not (kind in EVENTS)
    assert kind.value in str(Try(None, fault))


def test_any_complete_trace_has_its_steps_as_tries(tmp_path: Path) -> None:
    header = TraceHeader("fencing", "kip-320", SMALL_CONSTANTS, complete=True)
    events = (
        TraceEvent(1, "controller_elect_leader", {"new_leader": 1}, {"quorum_leader": 1}),
        TraceEvent(2, None, {}, {"leo[0]": 0}),
        TraceEvent(3, "become_leader", {"leader": 1, "epoch": 0}),
    )
    write_trace(tmp_path / "t.jsonl", Trace(header, events))
    tape = read_tape(tmp_path / "t.jsonl")
    assert tape.adapter is None and tape.variant == "kip-320" and tape.constants == SMALL_CONSTANTS
    assert [str(each) for each in tape.tries] == [
        "controller_elect_leader(new_leader=1)",
        "become_leader(leader=1, epoch=0)",
    ]
    half_known = replace(events[2], params={"leader": 1, "epoch": None})
    write_trace(tmp_path / "t.jsonl", Trace(header, (*events[:2], half_known)))
    with pytest.raises(BadInput, match=r"line 4: the parameter epoch of .* is not known"):
        read_tape(tmp_path / "t.jsonl")


BAD = [
    ({"source": {}, "complete": False}, None, "line 1|not of a lockstep run"),
    ({"source": {KEY: {"adapter": 3, "seed": 1}}}, None, "line 1"),
    (None, {KEY: []}, "line 2"),
    (None, {KEY: {}}, "neither an action nor a fault"),
    (None, {KEY: {"fault": {"kind": "earthquake"}}}, "there is no fault 'earthquake'"),
    (None, {KEY: {"fault": {"kind": "isolate"}}}, "names no replica"),
    (None, {KEY: {"fault": {"kind": "clock-jump", "millis": -1}}}, "the number -1"),
    (None, {KEY: {"action": "leader_write", "params": {"leader": "0"}}}, "the parameter '0'"),
]


@pytest.mark.parametrize(("header", "source", "words"), BAD)
def test_a_file_that_is_no_tape_is_bad_input_with_its_line(
    lying: Conformance, tmp_path: Path, header: dict[str, object] | None, source: dict[str, object] | None, words: str
) -> None:
    path = written(lying, tmp_path / "t.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    if header is not None:
        lines[0] |= header
    if source is not None:
        lines[1]["source"] = source
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(BadInput, match=words):
        read_tape(path)


def test_a_step_that_the_variant_does_not_have_is_bad_input(lying: Conformance, tmp_path: Path) -> None:
    tape = read_tape(written(lying, tmp_path / "t.jsonl"))
    strange = replace(tape, tries=(Try(("follower_truncate", (("leader", 0), ("follower", 1)))),))
    with pytest.raises(BadInput, match="no step of fencing kip-320"):
        bound_tries(lying.space, strange, "t.jsonl")


def test_the_story_ends_in_the_divergence(isolated: Conformance) -> None:
    assert isolated.failure is not None and isolated.failure.divergence is not None
    story = story_of_failure(isolated.space.system, isolated.failure, "cut")
    assert story.violated == "conforms" and story.verdict == "violated"
    assert isolated.failure.divergence.headline in story.moments[-1].notes
    assert any("tried isolate(replica=" in note for moment in story.moments for note in moment.notes)
    page = render_page(story)
    assert "cut does not conform" in page and "is isolated" in page
    lines = script(isolated.failure)
    assert len(lines) == len(isolated.failure.tries)
    assert any("isolate(replica=" in line and "happened: nothing" in line for line in lines)
