"""What KIP-320 says about replicas, sentence by sentence: the tests that ``specs/CLAUSES.md`` points to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from fencepost.model.core.ground import Params, State, System, ground
from fencepost.model.explore import explore
from fencepost.model.explore.graph import StateGraph, build_graph
from fencepost.model.explore.result import Exploration, Query, Verdict
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.fencing import fencing

SMALL = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
LARGE = SMALL | {"replicas": 3}


@cache
def small_graph(variant: str) -> StateGraph:
    return build_graph(ground(fencing.traced(variant), SMALL))


def explored(variant: str, *dropped: str, invariants: tuple[str, ...] = ()) -> Exploration:
    return explore(Query.of(ground(fencing.traced(variant).drop(*dropped), LARGE), invariants))


def get(system: System, state: State, cell: str) -> int:
    return state[system.layout.by_name[cell]]


def log(system: System, state: State, replica: int) -> list[tuple[int, int]]:
    return [
        (get(system, state, f"record_id[{replica}][{o}]"), get(system, state, f"record_epoch[{replica}][{o}]"))
        for o in range(get(system, state, f"leo[{replica}]"))
    ]


def steps(variant: str, action: str) -> Iterator[tuple[State, dict[str, int], State]]:
    """Every step of an action that some run takes: state before, parameters, state after."""
    graph = small_graph(variant)
    for source, label, target in zip(graph.source, graph.instance, graph.target, strict=True):
        instance = graph.system.instances[label]
        if instance.action == action:
            yield graph.states[source], dict(instance.params), graph.states[target]


def refusals(variant: str, action: str, guard: str) -> Iterator[tuple[State, dict[str, int]]]:
    """Every reachable state and choice of parameters at which the first guard that fails is this one."""
    graph = small_graph(variant)
    reference = Reference(graph.system)
    choices = [params for name, params in graph.system.by_step if name == action]
    for state in graph.states:
        for params in choices:
            if reference.refused_by(state, action, params) == guard:
                yield state, dict(params)


def test_kip_320_keeps_all_four_promises() -> None:
    answer = explored("kip-320")
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, 737794, 26)


@pytest.mark.parametrize(
    ("dropped", "broken", "length"),
    [
        ("follower_fetch.epoch_not_fenced", "weak_isr", 12),
        ("become_follower.leader_epoch_matches", "weak_isr", 14),
        ("leader_expand_isr.epoch_not_fenced", "weak_isr", 14),
        ("leader_expand_isr.hw_reached_epoch", "strong_isr", 11),
        ("leader_expand_isr.true_leader", "strong_isr", 9),
        ("leader_inc_high_watermark.isr_acknowledges", "weak_isr", 4),
    ],
)
def test_without_any_one_fence_a_promise_breaks(dropped: str, broken: str, length: int) -> None:
    answer = explored("kip-320", dropped)
    assert answer.violated == broken
    assert answer.path is not None
    assert len(answer.path) == length


def test_each_step_of_replication_has_one_epoch_at_both_ends() -> None:
    """A fetch, a truncation and a join are seen only between a leader and a follower of one epoch."""
    system = small_graph("kip-320").system
    for before, params, _ in steps("kip-320", "follower_fetch"):
        leader, follower = params["leader"], params["follower"]
        assert get(system, before, f"leader_epoch[{leader}]") == get(system, before, f"leader_epoch[{follower}]")
    for before, params, _ in steps("kip-320", "become_follower"):
        assert get(system, before, f"leader_epoch[{params['leader']}]") == params["epoch"]
    for before, params, _ in steps("kip-320", "leader_expand_isr"):
        epoch = get(system, before, f"leader_epoch[{params['follower']}]")
        assert epoch == get(system, before, f"leader_epoch[{params['leader']}]")
    mixed = [
        before
        for before, params, _ in steps("kip-279", "follower_fetch")
        if get(system, before, f"leader_epoch[{params['leader']}]")
        != get(system, before, f"leader_epoch[{params['follower']}]")
    ]
    assert mixed, "without the fence there are fetches across epochs"


def test_a_replica_in_a_lower_epoch_is_fenced() -> None:
    """FENCED_REPLICA: of a fetch, and of a truncation for a request that the leader has left behind."""
    system = small_graph("kip-320").system
    fetches = list(refusals("kip-320", "follower_fetch", "epoch_not_fenced"))
    assert fetches
    for state, params in fetches:
        mine, its = (get(system, state, f"leader_epoch[{params[who]}]") for who in ("follower", "leader"))
        # Never a larger one: a follower takes up an epoch only from a leader that is in it.
        assert mine < its
    truncations = list(refusals("kip-320", "become_follower", "leader_epoch_matches"))
    assert any(get(system, s, f"leader_epoch[{p['leader']}]") > p["epoch"] for s, p in truncations)


def test_a_replica_in_an_epoch_that_the_leader_does_not_know_is_refused() -> None:
    """UNKNOWN_LEADER_EPOCH: the truncation comes before the leader has its own request."""
    system = small_graph("kip-320").system
    truncations = list(refusals("kip-320", "become_follower", "leader_epoch_matches"))
    assert any(get(system, s, f"leader_epoch[{p['leader']}]") < p["epoch"] for s, p in truncations)


def test_a_refusal_changes_nothing_and_the_retry_may_succeed() -> None:
    system = small_graph("kip-320").system
    reference = Reference(system)
    elect: Params = (("new_leader", 0),)
    follow: Params = (("leader", 0), ("follower", 1), ("epoch", 0))
    state = reference.step(system.initial, "controller_elect_leader", elect)
    assert state is not None
    assert reference.refused_by(state, "become_follower", follow) == "presumes_leadership"
    assert reference.step(state, "become_follower", follow) is None
    state = reference.step(state, "become_leader", (("leader", 0), ("epoch", 0)))
    assert state is not None
    assert reference.step(state, "become_follower", follow) is not None


def test_a_new_follower_has_a_prefix_of_its_leaders_log() -> None:
    system = small_graph("kip-320").system

    def is_prefix(after: State, params: dict[str, int]) -> bool:
        mine, its = log(system, after, params["follower"]), log(system, after, params["leader"])
        return its[: len(mine)] == mine

    assert all(is_prefix(after, params) for _, params, after in steps("kip-320", "become_follower"))
    assert not all(is_prefix(after, params) for _, params, after in steps("kip-101", "become_follower"))


def test_a_follower_fetches_only_after_it_has_truncated() -> None:
    """Whoever fetches holds a prefix of the leader's log, so nothing need ever be truncated on a fetch."""
    system = small_graph("kip-320").system
    for before, params, _ in steps("kip-320", "follower_fetch"):
        mine, its = log(system, before, params["follower"]), log(system, before, params["leader"])
        assert its[: len(mine)] == mine
    for variant in fencing.variants:
        names = {action.name for action in fencing.traced(variant).actions}
        assert ("follower_truncate" in names) == (variant == "kip-320-first-try")


def test_a_request_may_arrive_late_or_never() -> None:
    system = small_graph("kip-320").system
    late = [
        params
        for action in ("become_leader", "become_follower")
        for before, params, _ in steps("kip-320", action)
        if get(system, before, "next_leader_epoch") > params["epoch"] + 1
    ]
    assert late
    unheard = [
        state
        for state in small_graph("kip-320").states
        if get(system, state, "next_leader_epoch") == 3 and get(system, state, "leader_epoch[1]") == -1
    ]
    assert unheard


def test_a_replica_that_the_controller_removed_rejoins_only_in_the_new_epoch() -> None:
    system = small_graph("kip-320").system
    joins = list(steps("kip-320", "leader_expand_isr"))
    assert joins
    for before, params, _ in joins:
        epoch = get(system, before, "quorum_leader_epoch")
        assert get(system, before, f"leader_epoch[{params['follower']}]") == epoch


def test_the_high_watermark_rises_only_with_the_isr_in_the_leaders_epoch() -> None:
    system = small_graph("kip-320").system
    for before, params, _ in steps("kip-320", "leader_inc_high_watermark"):
        leader = params["leader"]
        isr = get(system, before, f"isr[{leader}]")
        epochs = {get(system, before, f"leader_epoch[{r}]") for r in range(2) if isr >> r & 1}
        assert epochs == {get(system, before, f"leader_epoch[{leader}]")}


@pytest.mark.parametrize(("invariant", "length"), [("weak_isr", 11), ("strong_isr", 12)])
def test_the_rejected_draft_loses_committed_records(invariant: str, length: int) -> None:
    answer = explored("kip-320-first-try", invariants=(invariant,))
    assert answer.violated == invariant
    assert answer.path is not None
    assert len(answer.path) == length
