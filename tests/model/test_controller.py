"""KIP-631, exhaustively: what the text and each twin break and how soon, and that the mended rules break nothing.

Constants: replicas/nodes/partitions/log size/controller epoch/bootstrapped/snapshots/removals.
"""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.explore import Exploration, Query, Verdict, explore
from fencepost.model.explore.graph import build_graph
from fencepost.model.explore.liveness import check_property
from fencepost.model.explore.refine import refine
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.controller import controller
from fencepost.model.protocols.controller.expected import (
    COUNTEREXAMPLES,
    LARGE_COUNTEREXAMPLES,
    LARGE_STATE_COUNTS,
    STATE_COUNTS,
)

from .conftest import COMPILED
from .pinned import breaches_by_place, graphs_by_variant

DEFAULT = "2/2/1/2/2/1/0/1"
DATA = "2/1/1/3/0/1/0/1"
"""One controller, no snapshots: brokers, partitions and their data."""
SNAPSHOTS = "1/2/1/2/1/1/1/1"
THREE_EPOCHS = "1/2/1/1/2/1/0/1"
"""What was pending, and the second controller lacked, may come back with the third."""
PROMISES = tuple(controller.invariants)

# Distinct states and depth of the safe variant.
_GRAPHS = graphs_by_variant(controller, STATE_COUNTS)
SAFE = _GRAPHS["kip-631-safe"]
# The same of the others: without failover and snapshots, and with both.
SMALL = "1/2/1/1/1/1/1/1"
OTHERS = {variant: graph for variant, graph in _GRAPHS.items() if variant != "kip-631-safe"}
LARGE = graphs_by_variant(controller, LARGE_STATE_COUNTS)["kip-631-safe"]
# Steps of the shortest run that breaks a promise asked for alone, and where.
BREACHES = breaches_by_place(controller, COUNTEREXAMPLES)
LARGE_BREACHES = breaches_by_place(controller, LARGE_COUNTEREXAMPLES)
RESTARTED = "2/1/1/5/0/1/0/0"
"""Where a stale broker epoch does harm: it takes five records, and nothing is shut down or removed."""


@cache
def at(constants: str, variant: str = "kip-631-safe", *dropped: str) -> System:
    values = dict(zip(controller.constants, map(int, constants.split("/")), strict=True))
    return ground(controller.traced(variant).drop(*dropped), values)


def answer_to(system: System, *invariants: str) -> Exploration:
    """The batch engine's answer; a counterexample is walked again by the reference, whose opinion counts."""
    answer = explore(Query.of(system, invariants))
    if answer.path is not None:
        reference = Reference(system)
        state = system.initial
        for step in answer.path:
            assert not set(answer.query.invariants) & set(reference.broken(state)), "a shorter path breaks it too"
            after = reference.step(state, step.instance.action, step.instance.params)
            assert after == step.state
            state = after
        assert answer.violated in reference.broken(state)
    return answer


def never(answer: Exploration) -> set[str]:
    """The actions that no state enables."""
    return {name for name, count in answer.transitions.items() if not count}


def test_the_default_constants_and_variant() -> None:
    assert "/".join(str(spec.default) for spec in controller.constants.values()) == DEFAULT
    assert controller.default_variant == "kip-631-safe"
    assert set(OTHERS) | {"removes-last", "kip-631-safe"} == set(controller.variants)


@pytest.mark.nightly(seconds=40)
def test_all_of_it_at_once() -> None:
    """Two of everything but partitions, with snapshots; and one more epoch in place of them by default."""
    constants = "2/2/1/2/1/1/1/1"
    answer = answer_to(at(constants))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *LARGE[constants])


@pytest.mark.nightly(seconds=30)
def test_the_mended_rules_keep_every_promise_at_the_default_constants() -> None:
    answer = answer_to(at(DEFAULT))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *LARGE[DEFAULT])
    assert answer.query.invariants == ("type_ok", *PROMISES)
    assert all(answer.witnesses.values())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("constants", "expected"), SAFE.items())
def test_distinct_states_and_depth_of_the_safe_variant(constants: str, expected: tuple[int, int]) -> None:
    answer = answer_to(at(constants))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected)
    assert all(answer.witnesses.values())


def test_no_action_is_vacuous() -> None:
    """With one controller and no snapshots; with two; where nobody is registered at first."""
    seen = set(controller.actions)
    for constants in ("2/1/1/3/0/1/0/1", SNAPSHOTS, "2/1/2/3/0/0/0/1"):
        seen &= never(explore(Query.of(at(constants), ("type_ok",))))
    assert seen == set()
    assert set(controller.actions) - {a.name for a in controller.traced().actions} == {"begin_own_snapshot"}
    assert "begin_own_snapshot" not in never(explore(Query.of(at(SMALL, "concurrent-snapshots"), ("type_ok",))))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", list(OTHERS))
def test_distinct_states_and_depth_of_the_others(variant: str) -> None:
    for constants, expected in OTHERS[variant].items():
        answer = explore(Query.of(at(constants, variant), ("type_ok",)))
        assert (answer.distinct, answer.depth, answer.path) == (*expected, None), constants


def test_the_engines_visit_the_same_states() -> None:
    for variant, constants in (
        ("kip-631-safe", "2/1/1/2/0/1/0/1"),
        ("kip-631", SMALL),
        ("isr-changes", "2/1/2/1/0/1/0/1"),
    ):
        query = Query.of(at(constants, variant))
        batch, staged, *compiled = (explore(query, engine=name) for name in ("batch", "reference", *COMPILED))
        for other in (staged, *compiled):
            assert (batch.distinct, batch.depth, batch.transitions) == (other.distinct, other.depth, other.transitions)
            assert batch.witnesses == other.witnesses


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("variant", "constants"), list(BREACHES))
def test_what_each_variant_breaks_and_how_soon(variant: str, constants: str) -> None:
    for name, length in BREACHES[variant, constants].items():
        answer = answer_to(at(constants, variant), name)
        assert answer.path is not None
        assert (answer.violated, len(answer.path)) == (name, length)


def test_who_joins_an_isr_is_who_was_proposed() -> None:
    """KIP-903: a follower is proposed, restarts without its log, and is unfenced before the request is taken up."""
    ((name, length),) = LARGE_BREACHES["stale-broker-epoch", RESTARTED].items()
    answer = answer_to(at(RESTARTED, "stale-broker-epoch"), name)
    assert answer.path is not None
    assert (answer.violated, len(answer.path)) == (name, length)
    actions = [step.instance.action for step in answer.path]
    assert actions.index("propose_expand") < actions.index("crash_broker") < actions.index("unfence_broker") < 20
    assert actions[-1] == "alter_partition"


@pytest.mark.nightly(seconds=20)
def test_so_it_is_with_the_mended_rules() -> None:
    """With one record more."""
    constants = "2/1/1/6/0/1/0/0"
    answer = answer_to(at(constants))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *LARGE[constants])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", ["2/1/1/2/0/1/0/1", "2/1/2/2/0/1/0/1", "1/2/1/1/1/1/1/1"])
def test_two_ways_to_fence_have_the_same_visible_states(constants: str) -> None:
    """One FenceBroker, or one batch of an IsrChange for each partition: each step of one is a step of the other."""
    answer = refine(at(constants, "isr-changes"), at(constants).traced)
    assert (answer.verdict, answer.apart, answer.broken, answer.unreached) == (Verdict.HOLDS, [], None, 0)
    changes, event = (explore(Query.of(at(constants, variant))) for variant in ("isr-changes", "kip-631-safe"))
    # As many states, and as many steps by each action: there is no step of either that the other lacks.
    assert answer.distinct == answer.mapped == changes.distinct == event.distinct
    assert changes.transitions == event.transitions


def test_a_fence_that_forgets_a_partition_is_another() -> None:
    """The planted fault for the comparison: the last member is taken out too."""
    answer = refine(at("2/1/1/2/0/1/0/1", "removes-last"), at("2/1/1/2/0/1/0/1").traced)
    assert answer.verdict is Verdict.VIOLATED
    assert {each.action for each in answer.apart} >= {"fence_broker"}


def test_one_controller_alone_makes_snapshots_only_while_it_is_active() -> None:
    """KIP-631 has it resign first: with no other node there is nobody to tell it to make one."""
    alone = "1/1/1/2/1/1/1/1"
    assert "finish_snapshot" in never(explore(Query.of(at(alone))))
    assert "finish_snapshot" not in never(explore(Query.of(at(alone, "concurrent-snapshots"))))


NEEDED = {
    "commit": "proposal_is_decided",
    "replay_metadata": "view_converges",
    "unfence_broker": "live_broker_is_unfenced",
    "alter_partition": "proposal_is_decided",
}
"""Without this step's fairness, that property fails."""


def test_what_holds_in_the_end_and_by_whose_fairness() -> None:
    """With the fair set all of it; without fairness of any one of these steps, something fails."""
    graph = build_graph(at(DATA))
    fair = controller.fairness["fair-cluster"].conditions
    for spec in controller.liveness.values():
        assert check_property(graph, spec, fair).verdict is Verdict.HOLDS, spec.name
    for action, name in NEEDED.items():
        rest = [each for each in fair if each.action != action]
        assert check_property(graph, controller.liveness[name], rest).verdict is Verdict.VIOLATED, action


@pytest.mark.nightly(seconds=60)
def test_who_may_not_join_is_refused_in_the_end() -> None:
    """It takes one record more to see that a leader waits for ever without INELIGIBLE_REPLICA."""
    graph = build_graph(at("2/1/1/4/0/1/0/0"))
    fair = controller.fairness["fair-cluster"].conditions
    decided = controller.liveness["proposal_is_decided"]
    assert check_property(graph, decided, fair).verdict is Verdict.HOLDS
    rest = [each for each in fair if each.action != "refuse_member"]
    assert check_property(graph, decided, rest).verdict is Verdict.VIOLATED
