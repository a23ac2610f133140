"""Planted faults: each is where the ground truth says, and what the other traces tell the variant allows."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.core.protocol import Protocol
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.protocols.truncation import truncation
from fencepost.traces.corpus import plan as plan_module
from fencepost.traces.corpus.convert import trace_of
from fencepost.traces.corpus.draws import Draws
from fencepost.traces.corpus.faults import ALL, fault_named, faults_named, rules_of
from fencepost.traces.corpus.manifest import PLANTED, read_corpus
from fencepost.traces.corpus.plan import Plan, make_plan
from fencepost.traces.corpus.simulate import Simulation, simulate, simulation, walker
from fencepost.traces.replay import replay
from fencepost.traces.stepper import CompiledStepper

DROPPED = "follower_fetch.epoch_not_fenced dropped"
SHIFTED = "leader_inc_high_watermark.hw' bound +1"
CLAIMED = "leader_expand_isr.reached_high_watermark dropped"
VARIANT = "truncate-to-hw"
SAME = "become_leader.request_sent dropped"
"""A request that was not sent names no epoch, and the guards after it refuse that too."""


def asked(
    protocol: str = "fencing", traces: int = 200, events: int = 40, files: int = 1, **constants: int
) -> Simulation:
    return simulation(protocol, None, constants, traces, events, 5, files)


def planned(what: Simulation, names: tuple[str, ...], planted: int) -> Plan:
    return make_plan(walker(what, names), names, names, what.traces, planted, what.events)


FAULTS = {
    "fencing": (DROPPED, CLAIMED, "leader_inc_high_watermark.isr_acknowledges dropped", VARIANT),
    "truncation": (
        "consumer_fetch.not_truncated dropped",
        "find_divergence.reported' bound 1 +1",
        "epoch-ignored",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("protocol", FAULTS)
def test_the_reference_refuses_each_planted_trace_where_the_truth_says_and_no_other(
    protocol: str, tmp_path: Path
) -> None:
    what = asked(protocol)
    names = FAULTS[protocol]
    plan = planned(what, names, 60)
    assert plan.faults == names and not plan.skipped
    done = simulate(what, tmp_path / "c", plan)
    truth = {row["trace"]: row for row in map(json.loads, (tmp_path / "c" / PLANTED).read_text().splitlines())}
    assert len(truth) == 60 and [each.to_json() for each in done.planted] == list(truth.values())
    counts = Counter(row["fault"] for row in truth.values())
    assert set(counts) == set(names) and max(counts.values()) - min(counts.values()) <= 1
    stepper = CompiledStepper(walker(what).system)
    (file,) = read_corpus(tmp_path / "c").files
    with file.open() as opened:
        (events,) = opened
    went_on = 0
    for place, trace in enumerate(events.trace[events.starts].tolist()):
        told = trace_of(events, place)
        answer = replay(told, stepper)
        row = truth.get(trace)
        if row is None:
            assert answer.verdict.value == "holds", trace
            continue
        assert (answer.verdict.value, answer.step) == ("violated", row["step"]), row
        event = told.events[row["step"] - 1]
        assert (event.action, event.params) == (row["action"], row["params"])
        assert (row["guard"] is None) == bool(row["variables"])
        if row["guard"] is not None:
            before = tuple(events.cells[:, events.starts[place] + row["step"] - 2].tolist())
            before = before if row["step"] > 1 else stepper.system.initial
            params = tuple(row["params"].items())
            assert stepper.reference.refused_by(before, row["action"], params) == row["guard"]
        went_on += len(told) > row["step"]
    assert went_on > 30, "walks go on under the fault"


def test_the_guard_of_the_truth_is_the_one_that_was_dropped() -> None:
    what = asked()
    plan = planned(what, (DROPPED, CLAIMED), 10)
    assert {place.guard for place in plan.places[0]} == {"epoch_not_fenced"}
    assert {place.guard for place in plan.places[1]} == {"reached_high_watermark"}
    lengths = [len(place.calls) for place in plan.places[0]]
    assert min(lengths) < max(lengths) <= what.events, "near and far ones"


def test_a_fault_of_effect_names_the_variables(tmp_path: Path) -> None:
    names = [
        name
        for name in faults_named(fencing.traced(None), (ALL,))
        if name.startswith("controller_elect_leader.") and "'" in name
    ]
    what = asked()
    plan = make_plan(walker(what, tuple(names)), names, (), what.traces, len(names), what.events)
    effects = [place for places in plan.places for place in places if place.guard is None]
    assert effects and all(place.variables for place in effects)


def test_where_faults_are_planted_is_exact_and_the_same_however_traces_are_cut() -> None:
    draws = Draws(9)
    for traces, planted in ((1000, 10), (1000, 333), (7, 7), (100_003, 17), (5, 1)):
        plan = Plan(("a", "b"), ("a", "b"), (1, 2), ((), ()), traces, planted, {})
        ids, faults = plan.among(draws, 0, traces)
        assert ids.size == planted == np.unique(ids).size
        assert abs(int((faults == 0).sum()) - int((faults == 1).sum())) <= 1
        cuts = [0, traces // 7, traces // 3, traces]
        parts = [plan.among(draws, low, high) for low, high in pairwise(cuts)]
        assert np.array_equal(np.concatenate([part[0] for part in parts]), ids)
        assert np.array_equal(np.concatenate([part[1] for part in parts]), faults)


def test_a_fault_that_shows_nowhere_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"replicas": 2}
    what = asked(**small)
    who = walker(what, (SAME, DROPPED))
    with pytest.raises(BadInput) as refused:
        make_plan(who, (SAME, DROPPED), (SAME,), 200, 20, 40)
    told = str(refused.value)
    assert told.startswith(f"--faults: {SAME} cannot be planted: it has no step of its own in any of the ")
    plan = make_plan(who, (SAME, DROPPED), (), 200, 20, 40)
    assert plan.faults == (DROPPED,) and list(plan.skipped) == [SAME] and plan.rules == (2,)
    monkeypatch.setattr(plan_module, "MAX_STATES", (500,))
    plan = make_plan(who, (SAME, DROPPED), (), 200, 20, 40)
    assert plan.skipped[SAME].startswith("it has no step of its own in ") and "walks" in plan.skipped[SAME]
    with pytest.raises(BadInput, match=r"its nearest step is the [0-9]+th, and a trace has 3"):
        make_plan(walker(what, (DROPPED,)), (DROPPED,), (DROPPED,), 200, 20, 3)
    escaping = ("leader_write.record_available dropped",)
    with pytest.raises(BadInput, match="its steps lead outside the declared domains, which no trace can tell"):
        make_plan(walker(what, escaping), escaping, escaping, 200, 20, 40)
    with pytest.raises(BadInput, match="--faults: none of the faults can be planted"):
        make_plan(walker(what, (SAME,)), (SAME,), (), 200, 20, 40)
    with pytest.raises(BadInput, match="--rate: 1 of 200 traces are too few for 2 faults"):
        planned(what, (DROPPED, CLAIMED), 1)


def test_faults_are_known_by_name() -> None:
    traced = fencing.traced(None)
    everything = faults_named(traced, (DROPPED, ALL))
    assert everything[0] == DROPPED and everything.count(DROPPED) == 1
    assert {VARIANT, "kip-101", "kip-279", "kip-320-first-try", SHIFTED} <= set(everything)
    assert "kip-320" not in everything and "kip-320-brokers" not in everything
    with pytest.raises(BadInput, match="has no mutant and no other variant 'x'"):
        fault_named(traced, "x")
    assert fault_named(traced, DROPPED.removesuffix(" dropped")).name == DROPPED
    with pytest.raises(BadInput, match=f"perhaps '{DROPPED}' or "):
        fault_named(traced, DROPPED[:-1])
    with pytest.raises(BadInput, match="has no mutant and no other variant 'kip-320'"):
        fault_named(traced, "kip-320")
    with pytest.raises(BadInput, match="kip-320-brokers has other variables than kip-320"):
        fault_named(traced, "kip-320-brokers")


OTHERS = [
    (fencing, "kip-101"),
    (fencing, "kip-320-first-try"),
    (truncation, "epoch-ignored"),
    (snapshots, "lbo-misread"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("protocol", "name"), OTHERS, ids=[name for _, name in OTHERS])
def test_the_rules_of_a_variant_are_the_actions_that_it_has_otherwise(protocol: Protocol, name: str) -> None:
    system = ground(protocol.traced(None), {"replicas": 2})
    batch, actions = rules_of(fault_named(system.traced, name), system)
    assert {instance.action for instance in batch.system.instances} <= actions <= set(system.actions)
    assert 0 < len(actions) < len(system.actions)
    assert all((instance.action, instance.params) in system.by_step for instance in batch.system.instances)
