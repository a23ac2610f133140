"""KIP-280, exhaustively: what the text and each twin break and how soon, and that the mended rules break nothing.

Constants: replicas/log size/keys/timestamps/header values/repeated headers/leader epoch/changes/brokers' strategy
(0 unset, 1 offset, 2 timestamp, 3 header)/consumers.
"""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.explore import Exploration, Query, Verdict, explore
from fencepost.model.explore.graph import build_graph
from fencepost.model.explore.liveness import check_property
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.compaction import compaction
from fencepost.model.protocols.compaction.expected import (
    COUNTEREXAMPLES,
    LARGE_STATE_COUNTS,
    SMALL_STATE_COUNTS,
    STATE_COUNTS,
    WITHOUT_GUARD,
)

from .conftest import COMPILED
from .pinned import breaches_by_guard, breaches_by_place, graphs_by_variant

DEFAULT = "2/2/1/2/0/0/1/1/0/1"
PROMISES = tuple(compaction.invariants)
SAFE = "kip-280-safe"

# Distinct states and depth of the safe variant, and of the one with an empty batch.
_GRAPHS = graphs_by_variant(compaction, STATE_COUNTS)
HOLDS = tuple(_GRAPHS[SAFE])
_LARGE = graphs_by_variant(compaction, LARGE_STATE_COUNTS)
BY_DEFAULT = _LARGE[SAFE].pop(DEFAULT)
LARGE = [(variant, *each) for variant, graph in _LARGE.items() for each in graph.items()]
# The same of the others: two replicas under timestamps, and one with headers while a strategy is set.
TIMESTAMPS = "2/2/1/2/0/0/0/0/2/1"
OTHERS = graphs_by_variant(compaction, SMALL_STATE_COUNTS)
_SLOW = "2/3/2/1/0/0/0/0/0/0"
"""Of these two replicas one may lag. The strategy is ``offset``: so it is in Kafka as shipped."""
# Steps of the shortest run that breaks a promise asked for alone, and where.
BREACHES = breaches_by_place(compaction, COUNTEREXAMPLES)


@cache
def at(constants: str, variant: str = SAFE, *dropped: str) -> System:
    values = dict(zip(compaction.constants, map(int, constants.split("/")), strict=True))
    return ground(compaction.traced(variant).drop(*dropped), values)


def answer_to(system: System, *invariants: str, symmetry: bool = False) -> Exploration:
    """The batch engine's answer; a counterexample is walked again by the reference, whose opinion counts."""
    answer = explore(Query.of(system, invariants, symmetry=symmetry))
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
    assert "/".join(str(spec.default) for spec in compaction.constants.values()) == DEFAULT
    assert compaction.default_variant == SAFE
    assert set(OTHERS) == set(compaction.variants)


@pytest.mark.nightly(seconds=30)
def test_the_mended_rules_keep_every_promise_at_the_default_constants() -> None:
    answer = answer_to(at(DEFAULT))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *BY_DEFAULT)
    assert answer.query.invariants == ("type_ok", *PROMISES)
    assert all(answer.witnesses.values())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", [SAFE, "empty-batch"])
@pytest.mark.parametrize("constants", HOLDS)
def test_distinct_states_and_depth_of_the_safe_variants(constants: str, variant: str) -> None:
    answer = answer_to(at(constants, variant))
    expected = _GRAPHS[variant][constants]
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected)
    assert all(answer.witnesses.values())


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize(("variant", "constants", "expected"), LARGE)
def test_so_it_is_at_larger_constants(variant: str, constants: str, expected: tuple[int, int]) -> None:
    answer = answer_to(at(constants, variant))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected)


def test_no_action_is_vacuous() -> None:
    """With elections; while strategies are set; and the two of some variants alone."""
    seen = {action.name for action in compaction.traced().actions}
    assert set(compaction.actions) - seen == {"follower_fetch_empty_batch", "consumer_start_over"}
    for constants in ("2/2/1/1/0/0/1/0/0/1", "1/2/1/1/0/0/0/2/0/1"):
        seen &= never(explore(Query.of(at(constants), ("type_ok",))))
    assert seen == set()
    again = never(explore(Query.of(at(TIMESTAMPS, "reads-again"), ("type_ok",))))
    assert not again & {"follower_fetch_empty_batch", "consumer_start_over"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", list(OTHERS))
def test_distinct_states_and_depth_of_every_variant(variant: str) -> None:
    for constants, expected in OTHERS[variant].items():
        answer = explore(Query.of(at(constants, variant), ("type_ok",)))
        assert (answer.distinct, answer.depth, answer.path) == (*expected, None), constants


def test_the_engines_visit_the_same_states() -> None:
    for variant, constants in (
        (SAFE, "2/2/1/1/0/0/0/0/0/1"),
        ("kip-280", "1/2/1/1/1/0/0/1/0/1"),
        ("removes-last", "2/2/1/1/0/0/1/0/0/0"),
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


def test_the_text_s_divergence_is_found() -> None:
    """Leader and one follower have the last record, another has not; it goes; who lacks it leads and gives its offset.

    With two replicas there is none: somebody must still have the record whose offset is given again.
    """
    answer = answer_to(at("3/2/1/2/0/0/1/0/2/0", "removes-last"), symmetry=True)
    assert answer.path is not None
    assert (answer.violated, len(answer.path)) == ("offsets_agree", 16)
    told = [(step.instance.action, dict(step.instance.params)) for step in answer.path]
    (removed,) = [params for action, params in told if action == "remove_record"]
    leaders = [params["replica"] for action, params in told if action == "elect_leader"]
    assert leaders[0] == removed["replica"] and removed["offset"] == 1
    fetched = {params["replica"] for action, params in told if action == "follower_fetch" and params["offset"] == 1}
    assert fetched == {0, 1, 2} - set(leaders)
    assert [action for action, _ in told[-3:]] == ["leader_expand_isr", "elect_leader", "leader_write"]
    layout, last = at("3/2/1/2/0/0/1/0/2/0", "removes-last").layout.by_name, answer.path[-1].state
    at_offset_1 = [last[layout[f"record_epoch[{replica}][1]"]] for replica in range(3)]
    assert sorted(at_offset_1) == [-1, 0, 1], "removed, the committed one, another one"
    two = explore(Query.of(at("2/2/1/2/0/0/1/0/2/0", "removes-last"), ("offsets_agree",)))
    assert two.verdict is Verdict.HOLDS


def test_the_tombstone_argument_of_kip_630_is_found() -> None:
    """A follower has the record and not its tombstone, which is removed at the leader; it goes on behind that."""
    answer = answer_to(at(_SLOW, "slow-readers"))
    assert answer.path is not None
    assert (answer.violated, len(answer.path)) == ("deleted_stays_deleted", 14)
    told = [(step.instance.action, dict(step.instance.params)) for step in answer.path]
    slow = {params["replica"] for action, params in told if action == "follower_fetch"}
    assert [params["offset"] for action, params in told if action == "follower_fetch"] == [0, 2] and len(slow) == 1
    (tombstone,) = [params for action, params in told if action == "remove_tombstone"]
    assert tombstone["offset"] == 1 and {tombstone["replica"]} != slow


# Guards without which a promise breaks, after how many steps, and where.
GUARDS = breaches_by_guard(compaction, WITHOUT_GUARD, SAFE)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", list(GUARDS))
def test_without_any_one_of_these_guards_a_promise_breaks(guard: str) -> None:
    promise, length, constants = GUARDS[guard]
    answer = explore(Query.of(at(constants, SAFE, guard)))
    assert answer.path is not None
    assert (answer.violated, len(answer.path)) == (promise, length)


NEEDED = {"roll_segment": "duplicate_goes", "remove_record": "duplicate_goes", "consumer_fetch": "consumer_passes"}
"""Without this step's fairness, that property fails."""


def test_what_holds_in_the_end_and_by_whose_fairness() -> None:
    """With the fair set all of it; without fairness of any one of these steps, something fails."""
    graph = build_graph(at("1/3/1/1/0/0/0/0/0/1"))
    fair = compaction.fairness["fair-cleaners"].conditions
    assert {each.action for each in fair} == set(NEEDED)
    for spec in compaction.liveness.values():
        assert check_property(graph, spec, fair).verdict is Verdict.HOLDS, spec.name
    for action, name in NEEDED.items():
        rest = [each for each in fair if each.action != action]
        assert check_property(graph, compaction.liveness[name], rest).verdict is Verdict.VIOLATED, action
