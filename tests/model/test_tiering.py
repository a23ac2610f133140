"""KIP-1023, exhaustively: what the text and each twin break and how soon, and that the mended rules break nothing.

Constants: replicas/log size/leader epoch/last tiered offset/unclean/transactions/switches/expires.
"""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.conformance.harness import plan_of
from fencepost.model.core.ground import System, ground
from fencepost.model.explore import Exploration, Query, Verdict, explore
from fencepost.model.explore.graph import build_graph
from fencepost.model.explore.liveness import check_property
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.tiering import tiering
from fencepost.model.protocols.tiering.expected import (
    COUNTEREXAMPLES,
    LARGE_STATE_COUNTS,
    SMALL_STATE_COUNTS,
    STATE_COUNTS,
    WITHOUT_GUARD,
)

from .conftest import COMPILED
from .pinned import breaches_by_guard, breaches_by_place, graphs_by_variant

DEFAULT = "2/2/1/1/1/1/1/1"
SAFE = "kip-1023-safe"
BROKERS = "up-to-gap"
PROMISES = tuple(tiering.invariants)

# Distinct states and depth of the safe variant.
_GRAPHS = graphs_by_variant(tiering, STATE_COUNTS)
GRAPHS = _GRAPHS[SAFE]
LARGER = graphs_by_variant(tiering, LARGE_STATE_COUNTS)[SAFE]
BY_DEFAULT = LARGER.pop(DEFAULT)
SMALL = "2/1/1/1/1/0/0/1"
# The same of the others, where they differ from the safe one in something that is seen there.
OTHERS = {variant: graph[SMALL] for variant, graph in graphs_by_variant(tiering, SMALL_STATE_COUNTS).items()}
# Steps of the shortest run that breaks a promise asked for alone, at the constants of the plan.
BREACHES = breaches_by_place(tiering, COUNTEREXAMPLES)
PLAN = plan_of(tiering)


@cache
def at(constants: str, variant: str = SAFE, *dropped: str) -> System:
    values = dict(zip(tiering.constants, map(int, constants.split("/")), strict=True))
    return ground(tiering.traced(variant).drop(*dropped), values)


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


def test_the_default_constants_and_variant() -> None:
    assert "/".join(str(spec.default) for spec in tiering.constants.values()) == DEFAULT
    assert tiering.default_variant == SAFE
    broken = {variant for variant, _ in BREACHES}
    assert {*broken, BROKERS, SAFE} == set(tiering.variants)
    assert (set(PLAN.breaks), set(PLAN.holds)) == (broken, {BROKERS})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", [PLAN.holds[BROKERS], PLAN.stepped])
def test_what_brokers_do_holds_where_nothing_expires(constants: str) -> None:
    answer = answer_to(at(constants, BROKERS))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *_GRAPHS[BROKERS][constants])


def test_what_brokers_do_leaves_a_gap_where_records_expire() -> None:
    """Whoever has not heard of the log start claims what is deleted; brokers raise theirs by the metadata log."""
    answer = answer_to(at(PLAN.breaks["highest-alone"], BROKERS))
    assert (answer.violated, len(answer.path or ())) == ("leader_can_serve", 16)
    assert [step.instance.action for step in answer.path or ()][-2:] == ["elect_leader", "find_highest_remote_offset"]


def test_the_mended_rules_keep_every_promise_at_the_default_constants() -> None:
    """No action is vacuous there, and every witness is met."""
    answer = answer_to(at(DEFAULT))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *BY_DEFAULT)
    assert answer.query.invariants == ("type_ok", *PROMISES)
    assert all(answer.witnesses.values()) and all(answer.transitions.values())
    assert set(tiering.actions) - set(answer.transitions) == {"crash_while_building"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("constants", "expected"), GRAPHS.items())
def test_distinct_states_and_depth_of_the_safe_variant(constants: str, expected: tuple[int, int]) -> None:
    answer = answer_to(at(constants))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected)
    assert all(answer.witnesses.values())


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize(("constants", "expected"), LARGER.items())
def test_it_holds_at_larger_constants(constants: str, expected: tuple[int, int]) -> None:
    """Three leader epochs, with unclean elections, retention, or tiering off and on; logs of three and of four."""
    answer = answer_to(at(constants))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", list(OTHERS))
def test_distinct_states_and_depth_of_the_others(variant: str) -> None:
    answer = explore(Query.of(at(SMALL, variant), ("type_ok",)))
    assert (answer.distinct, answer.depth, answer.path) == (*OTHERS[variant], None)


def test_the_engines_visit_the_same_states() -> None:
    for variant, constants in ((SAFE, "2/1/1/1/1/1/1/1"), (SAFE, "2/2/0/1/0/0/1/1"), ("kip-1023", "2/1/1/1/0/0/0/1")):
        query = Query.of(at(constants, variant))
        batch, staged, *compiled = (explore(query, engine=name) for name in ("batch", "reference", *COMPILED))
        for other in (staged, *compiled):
            assert (batch.distinct, batch.depth, batch.transitions) == (other.distinct, other.depth, other.transitions)
            assert batch.witnesses == other.witnesses


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("variant", "constants"), list(BREACHES))
def test_what_each_variant_breaks_and_how_soon(variant: str, constants: str) -> None:
    assert constants == PLAN.breaks[variant]
    for name, length in BREACHES[variant, constants].items():
        answer = answer_to(at(constants, variant), name)
        assert answer.path is not None
        assert (answer.violated, len(answer.path)) == (name, length)
    whole = explore(Query.of(at(constants, variant)))
    assert whole.path is not None and len(whole.path) == min(BREACHES[variant, constants].values()), (
        "nothing breaks sooner"
    )


NEEDED = {
    "2/1/1/1/1/0/0/1": {
        "become_follower",
        "follower_fetch",
        "leader_inc_high_watermark",
        "leader_expand_isr",
        "find_highest_remote_offset",
        "build_to_epuo",
        "start_at_local_start",
        "start_at_log_start",
    },
    "2/2/0/1/0/0/1/1": {"truncate_fully", "build_to_local_start"},
}
"""Without these steps' fairness, the property fails there."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", list(NEEDED))
def test_an_empty_follower_joins_the_isr_in_the_end(constants: str) -> None:
    """With the fair set; without fairness of any one of its steps it does not, here or there."""
    graph = build_graph(at(constants))
    fair = tiering.fairness["fair-cluster"].conditions
    joins = tiering.liveness["empty_follower_joins"]
    assert check_property(graph, joins, fair).verdict is Verdict.HOLDS
    assert {each.action for each in fair} == set.union(*NEEDED.values())
    for action in NEEDED[constants]:
        rest = [each for each in fair if each.action != action]
        assert check_property(graph, joins, rest).verdict is Verdict.VIOLATED, action


ONE_RECORD, ONE_EPOCH = "2/1/1/1/1/1/1/1", "2/2/0/1/0/0/1/1"
# Guards without which a promise breaks, after how many steps, and where.
GUARDS = breaches_by_guard(tiering, WITHOUT_GUARD, SAFE)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", list(GUARDS))
def test_without_any_one_of_these_guards_a_promise_breaks(guard: str) -> None:
    promise, length, constants = GUARDS[guard]
    answer = explore(Query.of(at(constants, SAFE, guard)))
    assert answer.path is not None
    assert (answer.violated, len(answer.path)) == (promise, length)
