"""KIP-630, exhaustively: what the text and each twin break and how soon, and that the mended rules break nothing.

Constants: replicas/observers/log size/leader epoch/chunks/minimum records/late responses/lag expires. Distinct states
and depths are those that TLC finds, of ``kip-630-quorum`` at smaller constants.
"""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.explore import Exploration, Query, Verdict, explore
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.protocols.snapshots.expected import COUNTEREXAMPLES, STATE_COUNTS
from fencepost.model.prove.crosscheck import RefusedStep, Sample, Transition, crosscheck, exhaustive

from .pinned import breaches_by_place, graphs_by_variant

SEED = 630
VARIANTS = tuple(snapshots.variants)
DEFAULT = "3/0/2/1/1/0/0/1"
CHUNKED = "3/0/2/1/2/0/0/1"
LATE = "2/1/2/0/1/0/1/1"
PROMISES = tuple(snapshots.invariants)

# Distinct states and depth of the safe variant.
_GRAPHS = graphs_by_variant(snapshots, STATE_COUNTS)
SAFE = _GRAPHS["kip-630-safe"]
# The same of the others, where nothing leaves its domain.
OTHERS = {variant: graph for variant, graph in _GRAPHS.items() if variant != "kip-630-safe"}
# Steps of the shortest run that breaks a promise asked for alone; those not named hold, or nothing breaks them before
# something leaves its domain.
BREACHES = breaches_by_place(snapshots, COUNTEREXAMPLES)


@cache
def at(constants: str, variant: str = "kip-630-safe", *dropped: str) -> System:
    values = dict(zip(snapshots.constants, map(int, constants.split("/")), strict=True))
    return ground(snapshots.traced(variant).drop(*dropped), values)


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


def test_the_default_constants_are_those_of_the_counts() -> None:
    assert "/".join(str(spec.default) for spec in snapshots.constants.values()) == DEFAULT
    assert snapshots.default_variant == "kip-630-safe"


def test_the_mended_rules_keep_every_promise_and_are_not_vacuous() -> None:
    answer = answer_to(at(DEFAULT))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *SAFE[DEFAULT])
    assert answer.query.invariants == ("type_ok", *PROMISES)
    assert all(answer.witnesses.values())
    never = {name for name, count in answer.transitions.items() if not count}
    assert never == {name for name in answer.transitions if name.startswith(("hold_", "late_"))}


def test_late_responses_are_not_vacuous_either() -> None:
    """With one voter and one observer; nothing diverges there, and nobody else votes."""
    answer = answer_to(at("2/1/2/1/1/0/1/1"))
    assert answer.verdict is Verdict.HOLDS
    never = {name for name, count in answer.transitions.items() if not count}
    assert never == {"grant_vote", "follower_truncate", "hold_divergence", "late_divergence"}
    assert all(answer.witnesses.values())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("constants", "expected"), SAFE.items())
def test_distinct_states_and_depth_of_the_safe_variant(constants: str, expected: tuple[int, int]) -> None:
    answer = explore(Query.of(at(constants)))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", list(OTHERS))
def test_distinct_states_and_depth_of_the_others(variant: str) -> None:
    for constants, expected in OTHERS[variant].items():
        answer = explore(Query.of(at(constants, variant), ("type_ok",)))
        assert (answer.distinct, answer.depth, answer.path) == (*expected, None), constants


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("variant", "constants"), list(BREACHES))
def test_what_each_variant_breaks_and_how_soon(variant: str, constants: str) -> None:
    """Each promise asked for alone: the two holes that were known, the three that were not, and the twins."""
    system = at(constants, variant)
    for name, length in BREACHES[variant, constants].items():
        answer = answer_to(system, name)
        assert answer.path is not None
        assert (answer.violated, len(answer.path)) == (name, length)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("promise", "length", "culprit"),
    [("no_committed_record_lost", 19, "late_snapshot"), ("offsets_in_order", 15, "late_divergence")],
)
def test_what_stale_responses_do_to_three_voters(promise: str, length: int, culprit: str) -> None:
    """Hole 5 by way of a snapshot id and of a divergence: two epochs, one late response; orbits under renaming."""
    answer = answer_to(at("3/0/2/1/1/0/1/1", "stale-responses"), promise, symmetry=True)
    assert answer.path is not None
    assert (answer.violated, len(answer.path)) == (promise, length)
    assert culprit in [step.instance.action for step in answer.path]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", VARIANTS)
def test_both_engines_see_the_same(variant: str) -> None:
    for constants in ("2/0/1/1/1/0/0/1", "2/1/2/0/2/0/0/1", LATE):
        query = Query.of(at(constants, variant), ("type_ok",))
        batch, reference = explore(query), explore(query, "reference")
        for name in ("verdict", "distinct", "depth", "transitions", "witnesses"):
            assert getattr(batch, name) == getattr(reference, name), name


def test_symmetry_over_replicas_changes_no_verdict() -> None:
    """Observers too: who is one is part of the state."""
    for constants in ("3/0/1/1/1/0/0/1", "3/1/2/0/1/0/0/1"):
        whole, orbits = (explore(Query.of(at(constants), symmetry=symmetric)) for symmetric in (False, True))
        assert (whole.verdict, whole.depth) == (orbits.verdict, orbits.depth) == (Verdict.HOLDS, whole.depth)
        assert orbits.distinct < whole.distinct
    broken = answer_to(at(DEFAULT, "kip-630"), "no_committed_record_lost", symmetry=True)
    assert broken.path is not None
    assert len(broken.path) == 11


def test_no_witness_is_expected_where_it_cannot_be() -> None:
    """At every small choice of constants the safe variant holds: no witness is missed, no promise is broken."""
    for replicas, observers, log_size, epoch, chunks, minimum, lag in (
        (r, o, n, e, b, m, g)
        for r in (1, 2)
        for o in (0, 1)
        for n in (1, 2)
        for e in (0, 1)
        for b in (1, 2)
        for m in (0, 1)
        for g in (0, 1)
    ):
        constants = f"{replicas}/{observers}/{log_size}/{epoch}/{chunks}/{minimum}/{log_size % 2}/{lag}"
        answer = explore(Query.of(at(constants)))
        assert answer.verdict is Verdict.HOLDS, (constants, answer.reason, answer.violated)


def test_without_the_lag_nobody_falls_behind() -> None:
    """While max.replication.lag.ms never passes, the LBO waits for every replica, and no snapshot is ever sent.

    Hole 2's mend has its price: a follower at the LBO whose record the leader has no longer starts over all the same.
    """
    unmended, mended = (explore(Query.of(at("3/0/2/1/1/0/0/0", v))) for v in ("fetch-at-lbo", "kip-630-safe"))
    assert unmended.transitions["follower_start_over"] == 0
    assert mended.transitions["follower_start_over"] == 1704
    assert unmended.verdict is mended.verdict is Verdict.HOLDS
    assert mended.transitions["leader_advance_lbo"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("dropped", "broken", "length"),
    [
        ("grant_vote.up_to_date", "no_committed_record_lost", 8),
        ("become_follower.epoch_newer", "no_committed_record_lost", 9),
        ("leader_inc_high_watermark.majority_acknowledges", "no_committed_record_lost", 6),
        ("follower_fetch.epoch_not_fenced", "no_committed_record_lost", 8),
        ("follower_fetch.last_record_matches", "logs_match", 9),
        ("follower_truncate.presumes_leadership", "no_committed_record_lost", 8),
        ("follower_start_over.begins_later", "no_committed_record_lost", 10),
        ("fetch_snapshot.snapshot_found", "snapshot_in_between", 13),
        ("rediscover_snapshot.is_fetching", "no_committed_record_lost", 7),
        ("generate_snapshot.below_high_watermark", "snapshot_is_committed_prefix", 8),
        ("leader_advance_lbo.snapshot_includes", "snapshot_in_between", 3),
        ("delete_records.snapshot_includes", "snapshot_in_between", 3),
        ("delete_snapshot.below_lbo", "snapshot_in_between", 9),
        ("restart.was_known", "offsets_in_order", 1),
        ("restart.log_valid", "offsets_in_order", 11),
        ("restart_empty.log_not_valid", "no_committed_record_lost", 9),
    ],
)
def test_without_any_one_of_these_guards_a_promise_breaks(dropped: str, broken: str, length: int) -> None:
    answer = answer_to(at(DEFAULT, "kip-630-safe", dropped))
    assert answer.path is not None
    assert (answer.violated, len(answer.path)) == (broken, length)


def test_a_leader_commits_only_up_to_a_record_of_its_own_epoch() -> None:
    """KIP-595's rule; at fewer than four epochs and two offsets nothing is lost without it."""
    system = at("3/0/2/3/1/0/0/1", "kip-630-safe", "leader_inc_high_watermark.of_own_epoch")
    answer = answer_to(system, symmetry=True)
    assert answer.path is not None
    assert (answer.violated, len(answer.path)) == ("no_committed_record_lost", 15)


def test_an_lbo_that_retreats_is_seen() -> None:
    """The planted fault of ``lbo_never_retreats``: an LBO that may be set to anything that a snapshot reaches."""
    system = at(DEFAULT, "kip-630-safe", "leader_advance_lbo.increases")
    answer = answer_to(system)
    assert answer.path is not None
    assert len(answer.path) == 9
    assert Reference(system).broken(answer.path[-1].state)[:2] == ["type_ok", "lbo_never_retreats"]


def test_the_symbolic_relation_accepts_and_refuses_what_the_reference_does() -> None:
    system = at("2/1/1/0/1/0/1/1")
    check = crosscheck(system, exhaustive(system), SEED, refused=200, thorough=20)
    assert (check.verdict, check.first_failure) == (Verdict.HOLDS, None)
    assert {"follower_start_over", "fetch_snapshot", "late_snapshot", "late_chunk"} <= set(check.by_action)


@cache
def states_on_the_way(*mutant: str) -> tuple[dict[str, int], ...]:
    """The later states of a shortest counterexample of a variant, or of one less a guard, as cells by name."""
    system = at(DEFAULT, *mutant)
    path = explore(Query.of(system)).path
    assert path is not None
    cells = [cell.name for cell in system.layout.cells]
    return tuple(dict(zip(cells, step.state, strict=True)) for step in path[5:])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", ["kip-630-safe", "kip-630"])
def test_the_symbolic_relation_on_the_way_into_the_holes(variant: str) -> None:
    """Random walks seldom see a snapshot: every step here is one from a state of a counterexample."""
    system = at("3/0/2/1/1/0/1/1", variant)
    reference, sample = Reference(system), Sample()
    deep = [
        *states_on_the_way("acknowledge-half-fetched"),
        *states_on_the_way("fetch-at-lbo"),
        *states_on_the_way("kip-630-safe", "follower_fetch.last_record_matches"),
    ]
    for values in deep:
        state = tuple(values.get(cell.name, cell.initial) for cell in system.layout.cells)
        sample.states.append(state)
        for action, params in system.by_step:
            after = reference.step(state, action, params)
            if after is None:
                sample.refused.append(RefusedStep(state, action, params))
            else:
                sample.transitions.append(Transition(state, action, params, after))
    check = crosscheck(system, sample, SEED, refused=100, thorough=5, states=20)
    assert (check.verdict, check.first_failure) == (Verdict.HOLDS, None)
    late = {"late_records", "late_divergence", "late_snapshot", "late_chunk", "delete_snapshot"}
    assert set(system.actions) - set(check.by_action) - late <= {"rediscover_snapshot"}
