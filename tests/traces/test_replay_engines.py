"""Replay: both steppers answer alike, whatever the hashing; the reference confirms; what callers get wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from fencepost.model.core.errors import BadInput, ProtocolError
from fencepost.model.core.ground import State
from fencepost.model.explore.result import Verdict
from fencepost.traces.format import Trace, TraceEvent, TraceHeader
from fencepost.traces.record import record
from fencepost.traces.replay import Replay, replay
from fencepost.traces.stepper import CompiledStepper, DirectStepper, TakenStep
from hypothesis import given, settings
from hypothesis import strategies as st

Model = Any
Walk = Any
Counterexample = Any
Shortest = Any
CHOICES = st.lists(st.integers(0, 1000), max_size=25)
OLD = ["truncate-to-hw", "kip-101", "kip-279", "kip-320-first-try"]


def without_time(answer: Replay) -> dict[str, Any]:
    return {name: value for name, value in answer.to_json().items() if name != "seconds"}


@pytest.mark.parametrize("variant", [*OLD, "kip-320"])
@settings(deadline=None, max_examples=15)
@given(choices=CHOICES, vague=st.booleans())
def test_the_text_and_its_compiled_form_answer_alike(
    model: Model, walk: Walk, variant: str, choices: list[int], vague: bool
) -> None:
    compiled, other = model(variant, 2, 2, 2, 2), model("truncate-to-hw", 2, 2, 2, 2)
    trace = record(other.system, walk(other, choices), variables=["leo", "hw"] if vague else None)
    if vague:
        events = [replace(event, params=dict.fromkeys(event.params)) for event in trace.events]
        trace = Trace(trace.header, tuple(events))
    direct = DirectStepper(compiled.system.traced, compiled.system.constants)
    assert without_time(replay(trace, compiled)) == without_time(replay(trace, direct))


def test_large_constants_are_replayed_without_compiling(model: Model) -> None:
    """3/40/60/8 would take hours to write out."""
    constants = {"replicas": 3, "log_size": 40, "max_records": 60, "max_leader_epoch": 8}
    events = [
        TraceEvent(1, "controller_elect_leader", {"new_leader": 0}),
        TraceEvent(2, "become_leader", {"leader": 0, "epoch": 0}),
        *(TraceEvent(3 + n, "leader_write", {"leader": 0}, {"leo[0]": n + 1}) for n in range(40)),
    ]
    header = TraceHeader("fencing", "kip-320", constants, complete=True)
    assert replay(Trace(header, tuple(events))).verdict is Verdict.HOLDS
    over = replay(Trace(header, (*events, TraceEvent(99, "leader_write", {"leader": 0}))))
    assert (over.verdict, over.step) == (Verdict.VIOLATED, 99)
    refusal = over.frontier[0].denials[0].refusal
    assert refusal is not None
    assert refusal.guard == "log_not_full"


SCRIPT = """
import json
from fencepost.traces.format import Trace, TraceEvent, TraceHeader
from fencepost.traces.replay import Budget, replay
constants = {"replicas": 3, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}
events = (TraceEvent(1, observed={"quorum_isr": (0, 2)}), TraceEvent(2, "leader_write", {"leader": None}),
          TraceEvent(3, "follower_fetch", {"leader": None, "follower": 1}, {"hw[1]": 1, "leo[1]": 0}))
answer = replay(Trace(TraceHeader("fencing", "kip-320", constants), events), budget=Budget(max_skipped=3)).to_json()
del answer["seconds"]
print(json.dumps(answer))
"""


def test_the_answer_does_not_depend_on_hashing() -> None:
    answers = set()
    for seed in ("0", "1", "20"):
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        answers.add(ran.stdout)
    assert len(answers) == 1
    answer = json.loads(answers.pop())
    assert answer["frontier_size"] > 100


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (TraceEvent(7, observed={"lso[0]": 1}, line=3), r"step 7 \(line 3\): the state has no cell 'lso\[0\]'"),
        (TraceEvent(7, observed={"leo[0]": 9}), "step 7: leo.* holds an integer from 0 to 2"),
        (TraceEvent(7, "leader_write", {"replica": 0}), "step 7: leader_write has no parameter 'replica'"),
        (TraceEvent(7, "leader_write", {"leader": 3}), "step 7: leader_write.* is out of range"),
    ],
)
def test_words_that_the_model_does_not_have(model: Model, event: TraceEvent, words: str) -> None:
    trace = Trace(TraceHeader("fencing", "kip-320", model().system.constants, complete=True), (event,))
    with pytest.raises(BadInput, match=words):
        replay(trace, model())


def test_unknown_names_of_the_caller(model: Model) -> None:
    header = TraceHeader("fencing", "kip-320", model().system.constants)
    with pytest.raises(BadInput, match="no invariant 'exactly_once'"):
        replay(Trace(header, ()), invariants=["exactly_once"])
    with pytest.raises(BadInput, match="unknown protocol 'paxos'"):
        replay(Trace(replace(header, protocol="paxos"), ()))
    with pytest.raises(BadInput, match="no variant 'kip-1'"):
        replay(Trace(replace(header, variant="kip-1"), ()))


def test_an_empty_trace_is_explained_by_doing_nothing(model: Model) -> None:
    header = TraceHeader("fencing", "kip-320", model().system.constants)
    answer = replay(Trace(header, ()))
    assert (answer.verdict, answer.explanation, answer.events) == (Verdict.HOLDS, (), 0)


def test_an_action_that_the_variant_lacks(model: Model, shortest: Shortest) -> None:
    first = model("kip-320-first-try", 2, 2, 2, 2)
    run = shortest(first, lambda state: any(step.action == "follower_truncate" for step in first.every(state)))
    cut = next(step for step in first.every(run[-1].state) if step.action == "follower_truncate")
    trace = record(first.system, [*run, cut])
    answer = replay(trace, model("kip-320", 2, 2, 2, 2))
    assert answer.verdict is Verdict.VIOLATED
    only_cut = Trace(trace.header, (trace.events[-1],))
    answer = replay(only_cut, model("kip-320", 2, 2, 2, 2))
    assert (answer.verdict, answer.cause) == (Verdict.VIOLATED, "guard")
    assert answer.frontier[0].denials == ()


def test_happened_reads_like_the_text() -> None:
    assert TakenStep("leader_write", (("leader", 0),), ()).call == "leader_write(leader=0)"


class Careless(CompiledStepper):
    """The planted fault: a compiled model that finds every invariant kept, and every epoch current."""

    def broken(self, state: State) -> list[str]:
        return []


def test_the_reference_has_the_last_word(model: Model, counterexample: Counterexample) -> None:
    old = model("truncate-to-hw")
    run = counterexample("truncate-to-hw")
    careless = Careless(old.system)
    trace = record(old.system, run)
    with pytest.raises(ProtocolError, match=f"after step {len(run)} of the run the reference finds broken: weak_isr"):
        replay(trace, careless)
    assert replay(trace, careless, confirm=False).verdict is Verdict.HOLDS
    # A compiled model of another variant passes for kip-320's: its steps are not the reference's.
    forged = CompiledStepper(old.system)
    forged.reference = model().reference
    with pytest.raises(ProtocolError, match=r"step . of the run"):
        replay(trace, forged)


def test_progress_is_told_event_by_event(model: Model, walk: Walk) -> None:
    stepper = model()
    trace = record(stepper.system, walk(stepper, range(4)))
    told: list[tuple[int, int]] = []
    replay(trace, stepper, on_progress=lambda done, of: told.append((done, of)))
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4)]
