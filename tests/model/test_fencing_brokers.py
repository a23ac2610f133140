"""A leader that goes by what its followers' fetches told it, as brokers do, and what it must forget.

``kip-320-brokers`` keeps every promise; ``kip-320-stale-acks``, whose leader carries what it was told into a newer
epoch, does not. Constants: replicas/log size/records/leader epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from fencepost.model.core.ground import System
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.explore.graph import build_graph
from fencepost.model.explore.liveness import check_liveness, check_property
from fencepost.model.interpret.reference import Reference
from fencepost.model.interpret.staged import stage
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.expected import (
    COUNTEREXAMPLES,
    LARGE_STATE_COUNTS,
    MORE_WITHOUT_GUARD,
    STATE_COUNTS,
    WITHOUT_GUARD,
)
from hypothesis import settings

from .pinned import breaches_by_guard, breaches_by_place, graphs_by_variant, states_by_guard
from .test_fencing_restarts import extra_steps, first_loss
from .test_fencing_stories import Walk

At = Callable[..., System]

RUNNING = "kip-320-cluster"
SAFE, STALE, SEEING = "kip-320-brokers", "kip-320-stale-acks", "kip-320-restarts"


# --- how many states, and what breaks

GRAPHS = graphs_by_variant(fencing, STATE_COUNTS)
LARGE_GRAPHS = graphs_by_variant(fencing, LARGE_STATE_COUNTS)[SAFE]
BREACHES = breaches_by_place(fencing, COUNTEREXAMPLES)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", [SAFE, STALE])
def test_distinct_states_and_depth(at: At, variant: str) -> None:
    """Those up to 3/1/1/1 are what TLC finds as well. One leader epoch more is needed to lose anything."""
    for constants, expected in GRAPHS[variant].items():
        answer = explore(Query.of(at(constants, variant)))
        assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected), constants


def test_every_promise_holds_where_leaders_go_by_what_they_were_told(at: At) -> None:
    """At 3/2/2/2 in the long profile: it takes most of a minute, and 1.2 GiB."""
    long = settings.get_current_profile_name() == "long"
    constants = "3/2/2/2" if long else "3/1/1/2"
    answer = explore(Query.of(at(constants, SAFE)))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *LARGE_GRAPHS[constants])
    assert answer.coverage["follower_acknowledge"].discoveries and answer.coverage["restart"].discoveries


@pytest.mark.sampled(2)
@pytest.mark.parametrize("invariant", ["weak_isr", "strong_isr"])
@pytest.mark.parametrize("constants", ["3/1/1/2", "3/2/2/2"])
def test_acknowledgements_that_outlive_their_epoch_must_fail(at: At, constants: str, invariant: str) -> None:
    system, length = at(constants, STALE), BREACHES[STALE, constants][invariant]
    answer = explore(Query.of(system, (invariant,)))
    assert answer.path is not None
    assert (answer.verdict, answer.violated, len(answer.path)) == (Verdict.VIOLATED, invariant, length)
    assert invariant in Reference(system).broken(answer.path[-1].state)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", ["2/1/1/1", "2/2/2/2", "3/1/1/1"])
def test_what_was_once_committed_stays_on_the_isr(at: At, constants: str) -> None:
    assert first_loss(at(constants, SAFE)) is None


def test_the_other_variants_have_no_such_variable() -> None:
    told = {name for name in fencing.variants if "remote_leo" in fencing.traced(name).variables}
    kafkas = {name for name, each in fencing.variants.items() if each.rules.shipped}
    assert told - kafkas == {SAFE, STALE, "kip-497", "kip-497-eager", "kip-497-forgets", "kip-497-fenced", RUNNING}
    assert [a.name for a in fencing.traced(SAFE).actions if a.name not in _actions(SEEING)] == ["follower_acknowledge"]


def _actions(variant: str) -> set[str]:
    return {action.name for action in fencing.traced(variant).actions}


# --- stories


@pytest.fixture
def walk(at: At) -> Callable[..., Walk]:
    """A walk of a variant at 3/2/2/2."""
    return lambda variant=SAFE: Walk(at("3/2/2/2", variant))


MakeWalk = Callable[..., Walk]


def both_hold_a_record(walk: Walk) -> None:
    """Leader 0 and its followers hold record 0."""
    walk.starts(0, 1, 2)
    walk("leader_write", leader=0)
    walk("follower_fetch", leader=0, follower=1)
    walk("follower_fetch", leader=0, follower=2)


def test_a_record_is_acknowledged_by_the_fetch_after_it(walk: MakeWalk) -> None:
    told = walk()
    told.starts(0, 1, 2)
    assert [told[f"remote_leo[0][{r}]"] for r in range(3)] == [-1, -1, -1]
    told("leader_write", leader=0)
    # The fetch that brings the record was asked for below it.
    told("follower_fetch", leader=0, follower=1)
    assert (told["leo[1]"], told["remote_leo[0][1]"]) == (1, 0)
    told("follower_fetch", leader=0, follower=2)
    assert told.refused_by("leader_inc_high_watermark", leader=0) == "isr_acknowledges"
    before = told.state
    told("follower_acknowledge", leader=0, follower=1)
    changed = [n for n, (old, new) in enumerate(zip(before, told.state, strict=True)) if old != new]
    assert [told.reference.system.layout.cells[n].name for n in changed] == ["remote_leo[0][1]"]
    assert told["remote_leo[0][1]"] == 1
    assert told.refused_by("follower_acknowledge", leader=0, follower=1) == "something_new"
    assert told.refused_by("leader_inc_high_watermark", leader=0) == "isr_acknowledges"
    told("follower_acknowledge", leader=0, follower=2)
    told("leader_inc_high_watermark", leader=0)
    assert told["hw[0]"] == 1 and told.broken == []

    seen = walk(SEEING)
    both_hold_a_record(seen)
    assert seen.refused_by("leader_inc_high_watermark", leader=0) is None


def test_a_zombie_counts_what_a_follower_acknowledged_before_it_moved_on(walk: MakeWalk) -> None:
    """No harm: whoever leads next was in the ISR, and has what all of the ISR acknowledged in the epoch before."""
    zombie, seeing = walk(), walk(SEEING)
    for each in (zombie, seeing):
        both_hold_a_record(each)
        if each is zombie:
            each("follower_acknowledge", leader=0, follower=1)
            each("follower_acknowledge", leader=0, follower=2)
        each.starts(1, 2, epoch=1)
        assert (each["leader_epoch[0]"], each["leader_epoch[2]"]) == (0, 1)
    assert seeing.refused_by("leader_inc_high_watermark", leader=0) == "isr_acknowledges"
    zombie("leader_inc_high_watermark", leader=0)
    assert zombie["hw[0]"] == 1 and zombie.broken == []
    assert zombie.log(1) == zombie.log(2) == [(0, 0)]


def test_the_leader_takes_out_a_follower_whose_last_fetch_it_has_not_had(walk: MakeWalk) -> None:
    """It has the record, but the leader cannot know: that costs a round, and no record."""
    told = walk()
    both_hold_a_record(told)
    assert told.refused_by("leader_shrink_isr", leader=0, follower=1) is None
    told("follower_acknowledge", leader=0, follower=1)
    assert told.refused_by("leader_shrink_isr", leader=0, follower=1) == "not_caught_up"
    told("leader_shrink_isr", leader=0, follower=2)
    told("leader_inc_high_watermark", leader=0)
    assert told["hw[0]"] == 1 and told.broken == []
    seen = walk(SEEING)
    both_hold_a_record(seen)
    assert seen.refused_by("leader_shrink_isr", leader=0, follower=1) == "not_caught_up"


def test_whoever_leads_no_more_knows_nothing_of_followers(walk: MakeWalk) -> None:
    told = walk()
    both_hold_a_record(told)
    told("follower_acknowledge", leader=0, follower=1)
    as_it_was = told.state
    told("restart", replica=0, stored=0)
    assert [told[f"remote_leo[0][{r}]"] for r in range(3)] == [-1, -1, -1]
    told.state = as_it_was
    told.starts(1, 0, epoch=1)
    assert [told[f"remote_leo[0][{r}]"] for r in range(3)] == [-1, -1, -1]
    told("follower_acknowledge", leader=1, follower=0)
    assert told["remote_leo[1][0]"] == 1 and told.broken == []


def leader_that_missed_an_epoch(walk: Walk) -> None:
    """Follower 2 has acknowledged record 0 to leader 0, and truncates it in epoch 1; leader 0 hears only of epoch 2."""
    walk.starts(0, 2)
    walk("leader_write", leader=0)
    walk("follower_fetch", leader=0, follower=2)
    walk("follower_acknowledge", leader=0, follower=2)
    walk.starts(1, 2, epoch=1)
    assert walk.log(0) == [(0, 0)] and walk.log(2) == []
    walk("controller_elect_leader", new_leader=0)
    walk("become_leader", leader=0, epoch=2)
    walk("leader_shrink_isr", leader=0, follower=1)


def test_a_leader_must_not_count_what_it_was_told_in_another_epoch(walk: MakeWalk) -> None:
    stale, safe = walk(STALE), walk()
    leader_that_missed_an_epoch(stale)
    assert (stale["remote_leo[0][2]"], stale["isr[0]"]) == (1, 0b101)
    stale("leader_inc_high_watermark", leader=0)
    assert stale.broken == ["weak_isr", "strong_isr"], "committed, and on the leader alone"
    leader_that_missed_an_epoch(safe)
    assert (safe["remote_leo[0][2]"], safe["isr[0]"]) == (-1, 0b101)
    assert safe.refused_by("leader_inc_high_watermark", leader=0) == "isr_acknowledges"


# --- every guard of kip-320-brokers, accounted for. Runs of kip-320 are none of this variant, so all is looked at anew;
# what each guard is for is in test_fencing_guards.py and test_fencing_restarts.py.

BREAKS = breaches_by_guard(fencing, WITHOUT_GUARD, SAFE)

IMPLIED = (
    "become_leader.request_sent",
    "become_follower.not_leader_itself",
    "become_follower.request_sent",
    "become_follower.names_leader",
    "become_follower.truncates_backward",
    "leader_inc_high_watermark.record_above_hw",
)

STUTTERS = (
    "leader_shrink_isr.in_isr",
    "leader_expand_isr.outside_isr",
    "restart.something_lost",
    "follower_acknowledge.not_leader_itself",
    # Where there is no leader, nothing is kept of what it is told.
    "follower_acknowledge.presumes_leadership",
    "follower_acknowledge.something_new",
)

# Distinct states at 2/2/2/2 and 3/1/1/1, where the variant itself has 38077 and 119770.
MORE = states_by_guard(fencing, MORE_WITHOUT_GUARD, SAFE)


def test_every_guard_is_accounted_for_once() -> None:
    guards = [f"{action.name}.{guard}" for action in fencing.traced(SAFE).actions for guard, _ in action.guards]
    assert sorted([*BREAKS, *IMPLIED, *STUTTERS, *MORE]) == sorted(guards)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", BREAKS)
def test_without_it_a_promise_breaks(at: At, guard: str) -> None:
    violated, length, constants = BREAKS[guard]
    answer = explore(Query.of(at(constants, SAFE, guard)))
    assert (answer.verdict, answer.violated, len(answer.path or [])) == (Verdict.VIOLATED, violated, length)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", IMPLIED)
def test_the_guards_beside_it_say_as_much(at: At, guard: str) -> None:
    for constants in ("2/2/2/2", "3/1/1/1"):
        full, less = (explore(Query.of(at(constants, SAFE, *dropped))) for dropped in ((), (guard,)))
        # The same states, and as many steps of each action: none was refused by it alone.
        assert (less.verdict, less.distinct, less.transitions) == (Verdict.HOLDS, full.distinct, full.transitions)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", STUTTERS)
def test_without_it_there_are_only_more_steps_that_change_nothing(at: At, guard: str) -> None:
    system = at("2/1/1/1", SAFE)
    extra = extra_steps(build_graph(system).states, stage(system), stage(at("2/1/1/1", SAFE, guard)))
    assert extra and all(before == after for before, after in extra)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", MORE)
def test_without_it_there_are_more_steps_and_no_promise_breaks(at: At, guard: str) -> None:
    for constants, distinct in MORE[guard].items():
        full, less = (explore(Query.of(at(constants, SAFE, *dropped))) for dropped in ((), (guard,)))
        assert (less.verdict, less.distinct) == (Verdict.HOLDS, distinct)
        assert less.transitions != full.transitions


# --- in the end


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", ["2/1/1/1", "2/2/2/2", "3/1/1/1"])
def test_where_nobody_crashes_a_record_is_committed_as_long_as_followers_go_on_fetching(at: At, constants: str) -> None:
    """The fetch after the last record brings nothing, and without it the leader never knows."""
    system = at(constants, SAFE)
    steady = build_graph(replace(system, instances=[i for i in system.instances if i.action != "restart"]))
    commits = fencing.liveness["final_leader_commits_record"]
    fair = fencing.fairness["fair-fetches"].conditions
    assert check_property(steady, commits, fair).verdict is Verdict.HOLDS
    answer = check_property(steady, commits, [each for each in fair if each.action != "follower_acknowledge"])
    assert answer.lasso is not None
    last = [str(step.instance) for step in answer.lasso.stem][-1]
    # All have the record, the last one just now; and nobody tells.
    assert (answer.verdict, last) == (Verdict.VIOLATED, f"follower_fetch(leader=0, follower={int(constants[0]) - 1})")


def test_nothing_is_promised_in_the_end_where_replicas_crash(at: At) -> None:
    answers = check_liveness(at("2/1/1/1", SAFE), ("fair-fetches",))
    assert {each.verdict for each in answers} == {Verdict.VIOLATED}
