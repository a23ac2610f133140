"""What fencing promises in the end: verdicts, and the lassos of what fails, re-run step by step."""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.model.core.ground import State, ground
from fencepost.model.core.protocol import Fair
from fencepost.model.explore.graph import StateGraph, build_graph
from fencepost.model.explore.liveness import Liveness, check_liveness, check_property
from fencepost.model.explore.result import Verdict
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.fencing import fencing

ADOPTS = fencing.liveness["final_leader_adopts_epoch"]
COMMITS = fencing.liveness["final_leader_commits_record"]
KIP = fencing.fairness["kip"].conditions
FAIR_FETCHES = fencing.fairness["fair-fetches"].conditions

BECOME_LEADER, BECOME_FOLLOWER = Fair("become_leader"), Fair("become_follower")
FETCH, INC_HW = Fair("follower_fetch"), Fair("leader_inc_high_watermark")
SHRINK = Fair("leader_shrink_isr")

VARIANTS = ("truncate-to-hw", "kip-101", "kip-279", "kip-320-first-try", "kip-320")


@cache
def graph(variant: str, constants: str, *dropped: str) -> StateGraph:
    names = ("replicas", "log_size", "max_records", "max_leader_epoch")
    values = dict(zip(names, map(int, constants.split("/")), strict=True))
    return build_graph(ground(fencing.traced(variant).drop(*dropped), values))


def calls(answer: Liveness) -> tuple[list[str], list[str]]:
    assert answer.lasso is not None
    return [str(s.instance) for s in answer.lasso.stem], [str(s.instance) for s in answer.lasso.loop]


def cells(answer: Liveness, state: State) -> dict[str, int]:
    return {cell.name: value for cell, value in zip(answer.system.layout.cells, state, strict=True)}


def replayed(answer: Liveness) -> list[State]:
    """The states of the lasso, by the reference alone."""
    assert answer.lasso is not None
    reference = Reference(answer.system)
    states = [answer.system.initial]
    for step in answer.lasso.path:
        after = reference.step(states[-1], step.instance.action, step.instance.params)
        assert after is not None and after == step.state
        states.append(after)
    assert states[-1] == states[answer.lasso.loop_start]
    return states


def enabled(answer: Liveness, state: State) -> set[str]:
    return {action for action, _, after in Reference(answer.system).successors(state) if after != state}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", ["2/1/1/1", "2/2/2/2", "3/1/1/1"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_final_leader_adopts_its_epoch_because_becoming_leader_is_fair(variant: str, constants: str) -> None:
    for conditions in (KIP, FAIR_FETCHES, [BECOME_LEADER]):
        assert check_property(graph(variant, constants), ADOPTS, conditions).verdict is Verdict.HOLDS
    without = [fair for fair in FAIR_FETCHES if fair != BECOME_LEADER]
    answer = check_property(graph(variant, constants), ADOPTS, without)
    # Fenced followers wait for the leader; the others take up the epoch before it does.
    followers = [] if variant == "kip-320" else range(1, int(constants[0]))
    joins = [f"become_follower(leader=0, follower={r}, epoch=0)" for r in followers]
    assert calls(answer) == (["controller_elect_leader(new_leader=0)", *joins], [])
    assert "become_leader" in enabled(answer, replayed(answer)[-1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("constants", "stem"), [("2/1/1/1", 4), ("2/2/2/2", 5), ("3/1/1/1", 5)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_fairness_of_the_kip_does_not_commit_because_nobody_need_fetch(
    variant: str, constants: str, stem: int
) -> None:
    answer = check_property(graph(variant, constants), COMMITS, KIP)
    assert answer.verdict is Verdict.VIOLATED
    assert answer.lasso is not None and (len(answer.lasso.stem), answer.lasso.loop) == (stem, ())
    last = replayed(answer)[-1]
    # Of the actions of the KIP's fairness none is left to do; the fetch is what is missing.
    assert not enabled(answer, last) & {fair.action for fair in KIP} and "follower_fetch" in enabled(answer, last)
    assert {reason for _, reason in answer.fair} == {"never enabled in the loop"} and len(answer.fair) == 5
    end = cells(answer, last)
    assert (end["quorum_leader"], end["leader[0]"], end["leader_epoch[0]"]) == (0, 0, end["quorum_leader_epoch"])
    assert end["leo[0]"] == int(constants[2]) and end["hw[0]"] == end["leo[1]"] == 0
    assert end["isr[0]"] == end["quorum_isr"] == (1 << int(constants[0])) - 1


def test_the_lasso_at_the_smallest_constants() -> None:
    assert calls(check_property(graph("kip-320", "2/1/1/1"), COMMITS, KIP)) == (
        [
            "controller_elect_leader(new_leader=0)",
            "become_leader(leader=0, epoch=0)",
            "leader_write(leader=0)",
            "become_follower(leader=0, follower=1, epoch=0)",
        ],
        [],
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", ["2/1/1/1", "2/2/2/2", "3/1/1/1"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_fair_fetches_commit_every_record_but_for_kip_101(variant: str, constants: str) -> None:
    answer = check_property(graph(variant, constants), COMMITS, FAIR_FETCHES)
    fails = (variant, constants) == ("kip-101", "2/2/2/2")
    assert answer.verdict is (Verdict.VIOLATED if fails else Verdict.HOLDS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", ["2/1/1/1", "2/2/2/2", "3/1/1/1"])
def test_weak_fairness_of_four_actions_commits_and_none_of_them_can_be_spared(constants: str) -> None:
    small = graph("kip-320", constants)
    four = [BECOME_LEADER, BECOME_FOLLOWER, FETCH, INC_HW]
    assert check_property(small, COMMITS, four).verdict is Verdict.HOLDS
    for spared in four:
        others = [fair for fair in FAIR_FETCHES if fair.action != spared.action]
        answer = check_property(small, COMMITS, others)
        assert answer.verdict is Verdict.VIOLATED
        assert any(spared.action in enabled(answer, state) for state in replayed(answer))


def test_a_follower_that_need_not_truncate_stops_the_first_try() -> None:
    small = graph("kip-320-first-try", "2/2/2/2")
    answer = check_property(small, COMMITS, [*KIP, FETCH])
    stem, loop = calls(answer)
    assert (len(stem), loop) == (7, [])
    assert "follower_truncate" in enabled(answer, replayed(answer)[-1])


def test_kip_101_stops_at_a_follower_that_is_told_an_offset_beyond_its_log() -> None:
    small = graph("kip-101", "2/2/2/2")
    answer = check_property(small, COMMITS, FAIR_FETCHES)
    assert (len(calls(answer)[0]), calls(answer)[1]) == (9, [])
    last = replayed(answer)[-1]
    epoch = cells(answer, last)["quorum_leader_epoch"]
    become = (("leader", 0), ("follower", 1), ("epoch", epoch))
    assert Reference(answer.system).refused_by(last, "become_follower", become) == "truncates_backward"
    # The leader could go on by taking it out of the ISR.
    assert check_property(small, COMMITS, [*FAIR_FETCHES, SHRINK]).verdict is Verdict.HOLDS


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", ["2/1/1/1", "2/2/2/2"])
def test_with_two_replicas_shrinks_are_enough_only_under_strong_fairness_of_the_high_watermark(constants: str) -> None:
    small = graph("kip-320", constants)
    assert check_property(small, COMMITS, [*KIP, SHRINK]).verdict is Verdict.HOLDS
    weak = [fair for fair in KIP if fair.action != INC_HW.action] + [INC_HW, SHRINK]
    answer = check_property(small, COMMITS, weak)
    assert calls(answer)[1] == ["leader_shrink_isr(leader=0, follower=1)", "leader_expand_isr(leader=0, follower=1)"]
    states = replayed(answer)
    alone, full = states[-2], states[-1]
    assert "leader_inc_high_watermark" in enabled(answer, alone)
    assert "leader_inc_high_watermark" not in enabled(answer, full)


def test_with_three_replicas_shrinks_are_not_enough_however_fair() -> None:
    for_each = Fair("leader_shrink_isr", strong=True, per=("leader", "follower"))
    answer = check_property(graph("kip-320", "3/1/1/1"), COMMITS, [*KIP, for_each])
    assert calls(answer)[1] == [
        "leader_shrink_isr(leader=0, follower=1)",
        "leader_expand_isr(leader=0, follower=1)",
        "leader_shrink_isr(leader=0, follower=2)",
        "leader_expand_isr(leader=0, follower=2)",
    ]
    assert answer.lasso is not None
    isrs = {cells(answer, state)["isr[0]"] for state in replayed(answer)[answer.lasso.loop_start :]}
    assert isrs == {0b111, 0b101, 0b011}
    assert dict(answer.fair)["SF leader_shrink_isr(leader=0, follower=2)"] == "happens at step 8"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dropped", ["become_leader.epoch_newer", "become_follower.epoch_newer"])
def test_a_replica_that_takes_up_an_older_epoch_again_and_again_starves_the_newest(dropped: str) -> None:
    for spec in (ADOPTS, COMMITS):
        assert check_property(graph("kip-320", "2/1/1/2"), spec, FAIR_FETCHES).verdict is Verdict.HOLDS
        answer = check_property(graph("kip-320", "2/1/1/2", dropped), spec, FAIR_FETCHES)
        assert sorted(call.split("(")[0] for call in calls(answer)[1]) == ["become_follower", "become_leader"]
        assert answer.lasso is not None
        loop = [cells(answer, state) for state in replayed(answer)[answer.lasso.loop_start :]]
        assert any(state["leader_epoch[0]"] != loop[0]["leader_epoch[0]"] for state in loop) or any(
            state["leader_epoch[1]"] != loop[0]["leader_epoch[1]"] for state in loop
        )
        assert {state["quorum_leader_epoch"] for state in loop} == {loop[0]["quorum_leader_epoch"]}


def test_every_property_under_every_fairness_in_one_go() -> None:
    answers = check_liveness(graph("kip-320", "2/2/2/2").system)
    assert [(a.spec.name, a.fairness, a.verdict.value, a.distinct) for a in answers] == [
        ("final_leader_adopts_epoch", "kip", "holds", 5973),
        ("final_leader_commits_record", "kip", "violated", 5973),
        ("final_leader_adopts_epoch", "fair-fetches", "holds", 5973),
        ("final_leader_commits_record", "fair-fetches", "holds", 5973),
    ]
