"""Truncation detection, exhaustively: what each variant breaks and how soon, and that the mended rules break nothing.

Constants: replicas/log size/records/leader epoch. Distinct states and depths are those that TLC finds.
"""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.explore import Exploration, Query, Verdict, explore
from fencepost.model.explore.result import Limits
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.expected import COUNTEREXAMPLES, STATE_COUNTS, WITHOUT_GUARD
from fencepost.model.prove.crosscheck import crosscheck, exhaustive, sampled

from .pinned import breaches_by_guard, breaches_by_place, graphs_by_variant

SEED = 320
CLIENT = "kip-320-client"
"""A consumer that runs by itself: ``test_truncation_client.py``; Apache Kafka's: ``test_truncation_kafka.py``."""
VARIANTS = tuple(name for name in truncation.variants if name != CLIENT and not name.startswith("kip-320-kafka"))
DEFAULT = "2/2/3/2"
PROMISES = tuple(truncation.traced().invariants)

# Distinct states and depth by variant and constants, whatever is broken on the way.
GRAPHS = graphs_by_variant(truncation, STATE_COUNTS)
# Steps of the shortest run that breaks a promise, at the default constants; those not named hold.
_BREACHES = breaches_by_place(truncation, COUNTEREXAMPLES)
BREACHES = {variant: _BREACHES.get((variant, DEFAULT), {}) for variant in VARIANTS}
GUARDS = breaches_by_guard(truncation, WITHOUT_GUARD, "kip-320-mended")


@cache
def at(constants: str, variant: str = "kip-320-mended", *dropped: str) -> System:
    values = dict(zip(truncation.constants, map(int, constants.split("/")), strict=True))
    return ground(truncation.traced(variant).drop(*dropped), values)


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


def test_the_default_constants_are_those_of_the_counts() -> None:
    assert "/".join(str(spec.default) for spec in truncation.constants.values()) == DEFAULT
    assert truncation.default_variant == "kip-320-mended"


def test_the_mended_rules_keep_every_promise_and_are_not_vacuous() -> None:
    answer = answer_to(at(DEFAULT))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *GRAPHS["kip-320-mended"][DEFAULT])
    assert answer.query.invariants == ("type_ok", *PROMISES)
    assert set(answer.witnesses) == set(truncation.witnesses) and all(answer.witnesses.values())
    assert all(answer.transitions.values()), "an action that never happens"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", VARIANTS)
def test_what_each_variant_breaks_and_how_soon(variant: str) -> None:
    """Each promise asked for alone; a must-fail twin breaks those that its one difference costs, and no other."""
    system = at(DEFAULT, variant)
    for name, length in BREACHES[variant].items():
        answer = answer_to(system, name)
        assert answer.path is not None
        assert (answer.violated, len(answer.path)) == (name, length)
    kept = [name for name in PROMISES if name not in BREACHES[variant]]
    assert answer_to(system, *kept).path is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", VARIANTS)
def test_distinct_states_and_depth(variant: str) -> None:
    for constants, expected in GRAPHS[variant].items():
        answer = explore(Query.of(at(constants, variant), ("type_ok",)))
        assert (answer.distinct, answer.depth, answer.path) == (*expected, None), constants


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", VARIANTS)
def test_both_engines_see_the_same(variant: str) -> None:
    query = Query.of(at("2/1/1/2", variant), ("type_ok",))
    batch, reference = explore(query), explore(query, "reference")
    for name in ("verdict", "distinct", "depth", "transitions", "witnesses"):
        assert getattr(batch, name) == getattr(reference, name), name


def test_both_engines_find_the_shortest_counterexample() -> None:
    query = Query.of(at("2/1/1/2", "kip-320"))
    batch, reference = explore(query), explore(query, "reference")
    assert batch.path is not None and reference.path is not None
    assert (batch.violated, len(batch.path)) == (reference.violated, len(reference.path)) == ("truncation_is_true", 9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", ["2/1/1/2", "2/2/2/1", "3/1/1/1"])
def test_symmetry_over_replicas_changes_no_verdict(constants: str) -> None:
    whole, orbits = (explore(Query.of(at(constants), symmetry=symmetric)) for symmetric in (False, True))
    assert (whole.verdict, whole.depth) == (orbits.verdict, orbits.depth) == (Verdict.HOLDS, whole.depth)
    assert orbits.distinct < whole.distinct
    broken = explore(Query.of(at("2/1/1/2", "kip-320"), symmetry=True))
    assert broken.path is not None
    assert (broken.violated, len(broken.path)) == ("truncation_is_true", 9)


def test_no_witness_is_expected_where_it_cannot_be() -> None:
    """At every small choice of constants the safe variant holds: no witness is missed, no promise is broken."""
    for replicas, log_size, records, epochs in (
        (r, n, m, e) for r in (1, 2) for n in (1, 2) for m in (1, 2) for e in (0, 1, 2)
    ):
        constants = f"{replicas}/{log_size}/{records}/{epochs}"
        answer = explore(Query.of(at(constants)))
        assert answer.verdict is Verdict.HOLDS, (constants, answer.reason, answer.violated)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dropped", list(GUARDS))
def test_without_any_one_of_these_guards_a_promise_breaks(dropped: str) -> None:
    broken, length, constants = GUARDS[dropped]
    answer = answer_to(at(constants, "kip-320-mended", dropped))
    assert answer.path is not None
    assert (answer.violated, len(answer.path)) == (broken, length)


def test_the_search_for_the_divergence_needs_its_fence_at_three_replicas() -> None:
    """Hole 3 of kip-320; the mended variant without its guard has it too."""
    for system in (at("3/1/2/2", "kip-320"), at("3/1/2/2", "kip-320-mended", "find_divergence.epoch_known")):
        answer = answer_to(system, "reported_divergence")
        assert answer.path is not None
        assert (answer.violated, len(answer.path)) == ("reported_divergence", 11)
        assert answer.path[-1].instance.action == "find_divergence"
    whole = explore(Query.of(at("3/1/2/2"), limits=Limits(max_states=3_000_000)))
    assert whole.verdict is Verdict.HOLDS


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", ["kip-320", "kip-320-mended"])
def test_the_symbolic_relation_accepts_and_refuses_what_the_reference_does(variant: str) -> None:
    system = at("2/1/1/1", variant)
    check = crosscheck(system, exhaustive(system), SEED, refused=200)
    assert (check.verdict, check.first_failure) == (Verdict.HOLDS, None)
    # Without a second epoch beyond an unclean one nothing is out of range at one offset.
    assert set(check.by_action) == set(system.actions) - {"answer_out_of_range"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("variant", "constants"), [("reset-latest", DEFAULT), ("kip-320", "3/2/3/2")])
def test_the_symbolic_relation_on_random_walks(variant: str, constants: str) -> None:
    system = at(constants, variant)
    check = crosscheck(system, sampled(system, 200, SEED), SEED, refused=200)
    assert (check.verdict, check.first_failure, check.accepted) == (Verdict.HOLDS, None, 200)
