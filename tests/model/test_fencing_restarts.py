"""Replicas that crash and come back: what KIP-320 keeps of its promises, and the two rules without which it does not.

``strong_isr`` speaks of presumed leaders only, and a crash takes away just the one that knew what was committed; so
the promise is checked with a history here: whatever a presumed leader once counted as committed stays on every member
of the controller's ISR. Constants: replicas/log size/records/leader epoch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import pytest
from fencepost.model.core.ground import State, System
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.explore.graph import build_graph
from fencepost.model.explore.liveness import check_liveness
from fencepost.model.interpret.staged import Staged, stage
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.expected import (
    COUNTEREXAMPLES,
    LARGE_STATE_COUNTS,
    MORE_WITHOUT_GUARD,
    STATE_COUNTS,
    WITHOUT_GUARD,
)

from .pinned import breaches_by_guard, breaches_by_place, graphs_by_variant, states_by_guard
from .test_fencing_guards import BREAKS as BREAKS_ANYWAY
from .test_fencing_guards import ROOM
from .test_fencing_stories import Walk

At = Callable[..., System]

SAFE, RESUMES, FORGETS = "kip-320-restarts", "kip-320-resumes", "kip-320-forgets"


# --- how many states, and what breaks

GRAPHS = graphs_by_variant(fencing, STATE_COUNTS)
LARGE_GRAPHS = graphs_by_variant(fencing, LARGE_STATE_COUNTS)
BREACHES = {
    place: (lengths["weak_isr"], lengths["strong_isr"])
    for place, lengths in breaches_by_place(fencing, COUNTEREXAMPLES).items()
    if place[0] in (RESUMES, FORGETS)
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", [SAFE, RESUMES, FORGETS])
def test_distinct_states_and_depth(at: At, variant: str) -> None:
    """Those up to 3/1/1/1 are what TLC finds as well."""
    for constants, expected in GRAPHS[variant].items():
        answer = explore(Query.of(at(constants, variant), ("type_ok",)))
        assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected), constants


def test_every_promise_holds_where_replicas_crash(at: At) -> None:
    constants = "3/2/2/2"
    answer = explore(Query.of(at(constants, SAFE)))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *LARGE_GRAPHS[SAFE][constants])
    assert set(answer.witnesses) == set(fencing.witnesses) and all(answer.witnesses.values())
    assert answer.coverage["restart"].discoveries


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("variant", "constants"), [*BREACHES, (RESUMES, "2/2/2/2")])
def test_the_twins_must_fail(at: At, variant: str, constants: str) -> None:
    """With two replicas ``kip-320-resumes`` loses nothing."""
    weak, strong = BREACHES.get((variant, constants), (None, None))
    for invariant, length in (("weak_isr", weak), ("strong_isr", strong)):
        answer = explore(Query.of(at(constants, variant), (invariant,)))
        assert answer.verdict is (Verdict.VIOLATED if length else Verdict.HOLDS)
        assert (answer.violated, len(answer.path or [])) == (invariant if length else None, length or 0)


# --- the promise with a history


def first_loss(system: System) -> int | None:
    """After how many steps a record that was committed is missing on a member of the controller's ISR; None: never.

    A node is a state with what was committed: for each offset the id of the record that a presumed leader counted as
    committed there first, else -1.
    """
    cell = system.layout.by_name
    offsets, replicas = range(system.constants["log_size"]), range(system.constants["replicas"])
    leo, hw = ([cell[f"{name}[{r}]"] for r in replicas] for name in ("leo", "hw"))
    record = [[cell[f"record_id[{r}][{o}]"] for o in offsets] for r in replicas]
    quorum_isr = cell["quorum_isr"]
    commits = {
        number: dict(each.params)["leader"]
        for number, each in enumerate(system.instances)
        if each.action == "leader_inc_high_watermark"
    }

    def lost(state: State, committed: State) -> bool:
        return any(
            state[quorum_isr] >> r & 1 and (state[leo[r]] <= o or state[record[r][o]] != committed[o])
            for o in offsets
            if committed[o] != -1
            for r in replicas
        )

    successors = stage(system).successors
    frontier = [(system.initial, tuple(-1 for _ in offsets))]
    seen, steps = set(frontier), 0
    while frontier:
        if any(lost(*node) for node in frontier):
            return steps
        reached = []
        for state, committed in frontier:
            for number, after in successors(state):
                known = committed
                if number in commits:
                    leader = commits[number]
                    o = state[hw[leader]]
                    if known[o] == -1:
                        known = (*known[:o], state[record[leader][o]], *known[o + 1 :])
                if (after, known) not in seen:
                    seen.add((after, known))
                    reached.append((after, known))
        frontier, steps = reached, steps + 1
    return None


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "lengths"),
    [
        ("kip-320", {"2/1/1/1": None, "2/2/2/2": None, "3/1/1/1": None}),
        (SAFE, {"2/1/1/1": None, "2/2/2/2": None, "3/1/1/1": None}),
        (RESUMES, {"2/1/1/1": 9, "2/2/2/2": 9, "3/1/1/1": 10}),
        (FORGETS, {"2/1/1/1": 9, "2/2/2/2": 9, "3/1/1/1": 9}),
        ("truncate-to-hw", {"2/1/1/1": 9, "2/2/2/2": 9, "3/1/1/1": 8}),
    ],
)
def test_what_was_once_committed_stays_on_the_isr(at: At, variant: str, lengths: dict[str, int | None]) -> None:
    """With two replicas the loss of ``kip-320-resumes`` is one that no leader is left to tell."""
    for constants, length in lengths.items():
        assert first_loss(at(constants, variant)) == length, constants


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", ["2/1/1/1", "2/2/2/2", "3/1/1/1"])
def test_a_crash_adds_nothing_that_an_idle_replica_could_not_do(at: At, constants: str) -> None:
    """Less roles, and with high watermarks at most as high, each state is one that ``kip-320`` reaches too.

    That is why brokers' files are not searched for with crashes as well. It is not so where a replica forgets.
    """

    def parts(variant: str) -> list[tuple[State, State]]:
        system = at(constants, variant)
        names = [cell.variable.name for cell in system.layout.cells]
        kept = [n for n, name in enumerate(names) if name not in ("hw", "leader", "isr")]
        marks = [n for n, name in enumerate(names) if name == "hw"]
        return [(tuple(state[n] for n in kept), tuple(state[n] for n in marks)) for state in build_graph(system).states]

    known: dict[State, set[State]] = defaultdict(set)
    for rest, marks in parts("kip-320"):
        known[rest].add(marks)

    def strange(variant: str) -> int:
        return sum(
            not any(all(low <= high for low, high in zip(marks, each, strict=True)) for each in known[rest])
            for rest, marks in parts(variant)
        )

    assert strange(SAFE) == 0
    assert strange(FORGETS) > 0


# --- stories


@pytest.fixture
def walk(at: At) -> Callable[..., Walk]:
    """A walk of a variant at 3/2/2/2."""
    return lambda variant=SAFE: Walk(at("3/2/2/2", variant))


MakeWalk = Callable[..., Walk]


def one_record_committed(walk: Walk) -> None:
    """All three have record 0; only leader 0 knows that it is committed."""
    walk.starts(0, 1, 2)
    walk("leader_write", leader=0)
    walk("follower_fetch", leader=0, follower=1)
    walk("follower_fetch", leader=0, follower=2)
    walk("leader_inc_high_watermark", leader=0)


def test_a_restarted_follower_rejoins_in_the_same_epoch(walk: MakeWalk) -> None:
    crashed = walk()
    one_record_committed(crashed)
    crashed("leader_write", leader=0)
    crashed("follower_fetch", leader=0, follower=1)
    crashed("follower_fetch", leader=0, follower=2)
    assert crashed.refused_by("become_follower", leader=0, follower=1, epoch=0) == "epoch_newer"
    crashed("restart", replica=1, stored=0)
    assert (crashed["leader[1]"], crashed["leader_epoch[1]"], crashed["hw[1]"]) == (-1, 0, 0)
    assert crashed.log(1) == crashed.log(0) == [(0, 0), (1, 0)]
    # While it is away nothing is committed, unless the leader goes on without it.
    assert crashed.refused_by("leader_inc_high_watermark", leader=0) == "isr_acknowledges"
    assert crashed.refused_by("leader_shrink_isr", leader=0, follower=1) is None
    assert crashed.refused_by("follower_fetch", leader=0, follower=1) == "follows_leader"
    crashed("become_follower", leader=0, follower=1, epoch=0)
    assert crashed.log(1) == crashed.log(0)
    crashed("leader_inc_high_watermark", leader=0)
    assert crashed["hw[0]"] == 2 and crashed.broken == []


def test_a_restarted_leader_leads_in_a_newer_epoch_only(walk: MakeWalk) -> None:
    crashed = walk()
    one_record_committed(crashed)
    crashed("restart", replica=0, stored=0)
    assert (crashed["leader[0]"], crashed["isr[0]"], crashed["quorum_leader"]) == (-1, 0, 0)
    assert crashed.refused_by("leader_write", leader=0) == "presumes_leadership"
    assert crashed.refused_by("leader_inc_high_watermark", leader=0) == "presumes_leadership"
    assert crashed.refused_by("become_leader", leader=0, epoch=0) == "epoch_newer"
    # It is still in the ISR, so the controller may make it the leader again, by way of another one.
    crashed.starts(1, 0, epoch=1)
    assert crashed.log(0) == crashed.log(1) == [(0, 0)]
    crashed.starts(0, 1, 2, epoch=2)
    crashed("leader_inc_high_watermark", leader=0)
    assert crashed["hw[0]"] == 1 and crashed.broken == []


def test_nothing_is_stored_that_was_not_known_and_a_crash_that_loses_nothing_is_none(walk: MakeWalk) -> None:
    crashed = walk()
    assert crashed.refused_by("restart", replica=0, stored=0) == "something_lost"
    one_record_committed(crashed)
    assert crashed.refused_by("restart", replica=1, stored=1) == "stored_high_watermark"
    crashed("restart", replica=0, stored=1)
    assert crashed.refused_by("restart", replica=0, stored=1) == "something_lost"
    crashed("restart", replica=0, stored=0)
    assert crashed["hw[0]"] == 0


def leader_that_commits_with_one_follower(walk: Walk) -> None:
    """Replicas 0 and 2 hold committed record 0; 1 is out of the ISR and empty. Then leader 0 crashes."""
    walk.starts(0)
    walk("leader_shrink_isr", leader=0, follower=2)
    walk("leader_shrink_isr", leader=0, follower=1)
    walk("leader_write", leader=0)
    walk("leader_inc_high_watermark", leader=0)
    walk("become_follower", leader=0, follower=2, epoch=0)
    walk("follower_fetch", leader=0, follower=2)
    assert (walk["hw[0]"], walk["hw[2]"], walk["quorum_isr"]) == (1, 1, 0b001)
    walk("restart", replica=0, stored=0)


def test_a_leader_that_resumes_takes_a_follower_into_the_isr_that_lacks_what_it_committed(walk: MakeWalk) -> None:
    """Its high watermark fell in its own epoch, so that the rule of KAFKA-7128 is met without saying anything."""
    resumed = walk(RESUMES)
    leader_that_commits_with_one_follower(resumed)
    resumed("resume_leadership", leader=0)
    assert (resumed["hw[0]"], resumed["isr[0]"]) == (0, 0b001)
    resumed("become_follower", leader=0, follower=1, epoch=0)
    resumed("leader_expand_isr", leader=0, follower=1)
    assert resumed["quorum_isr"] == 0b011 and resumed.log(1) == []
    assert resumed.broken == [], "what was committed is lost already, and no leader knows"
    resumed("leader_expand_isr", leader=0, follower=2)
    resumed.starts(2, epoch=1)
    assert resumed["hw[2]"] == 1 and resumed.broken == ["weak_isr", "strong_isr"]

    safe = walk()
    leader_that_commits_with_one_follower(safe)
    assert safe.refused_by("become_leader", leader=0, epoch=0) == "epoch_newer"
    # The controller cannot do without it, as it is alone in the ISR: it takes it out as leader, and elects it anew.
    safe("controller_shrink_isr", replica=0)
    safe("controller_elect_leader", new_leader=0)
    safe.take_up(0, 1, epoch=2)
    assert safe.refused_by("leader_expand_isr", leader=0, follower=1) == "hw_reached_epoch"
    safe("leader_inc_high_watermark", leader=0)
    assert safe.refused_by("leader_expand_isr", leader=0, follower=1) == "reached_high_watermark"


def test_a_replica_that_forgets_its_epoch_leads_in_one_that_is_over(walk: MakeWalk) -> None:
    def deposed(walk: Walk) -> None:
        walk("controller_elect_leader", new_leader=0)
        walk("controller_shrink_isr", replica=2)
        walk("become_leader", leader=0, epoch=1)
        walk("leader_shrink_isr", leader=0, follower=1)
        walk("leader_write", leader=0)
        walk("leader_inc_high_watermark", leader=0)
        walk("restart", replica=0, stored=1)

    forgetful, safe = walk(FORGETS), walk()
    deposed(forgetful)
    assert forgetful["leader_epoch[0]"] == -1
    forgetful("become_leader", leader=0, epoch=0)
    assert (forgetful["isr[0]"], forgetful["quorum_isr"]) == (0b111, 0b001)
    assert forgetful.broken == ["weak_isr"]
    deposed(safe)
    assert safe["leader_epoch[0]"] == 1
    assert safe.refused_by("become_leader", leader=0, epoch=0) == "epoch_newer"


# --- every guard of kip-320-restarts, accounted for. What breaks a promise without crashes does so with them
# (BREAKS_ANYWAY, ROOM: the runs of kip-320 are runs of this variant too); the rest is looked at anew.

BREAKS = breaches_by_guard(fencing, WITHOUT_GUARD, SAFE)


def extra_steps(states: Sequence[State], less: Staged, more: Staged) -> list[tuple[State, State]]:
    """Steps from these states that ``more`` has and ``less`` has not. Nothing that ``less`` has may be missing."""
    found = []
    ours, theirs = ([str(instance) for instance in staged.system.instances] for staged in (less, more))
    for state in states:
        here = {(ours[number], after) for number, after in less.successors(state)}
        there = {(theirs[number], after) for number, after in more.successors(state)}
        assert here <= there
        found += [(state, after) for _, after in there - here]
    return found


IMPLIED = (
    "become_leader.request_sent",
    "become_follower.not_leader_itself",
    "become_follower.request_sent",
    "become_follower.names_leader",
    "become_follower.truncates_backward",
    "leader_inc_high_watermark.record_above_hw",
    "leader_shrink_isr.not_leader_itself",
)

STUTTERS = ("leader_shrink_isr.in_isr", "leader_expand_isr.outside_isr", "restart.something_lost")

# Distinct states at 2/2/2/2 and 3/1/1/1, where the variant itself has 26853 and 53542.
MORE = states_by_guard(fencing, MORE_WITHOUT_GUARD, SAFE)


def test_every_guard_is_accounted_for_once() -> None:
    anyway = {*BREAKS_ANYWAY, *ROOM} - {*BREAKS}
    guards = [f"{action.name}.{guard}" for action in fencing.traced(SAFE).actions for guard, _ in action.guards]
    assert sorted([*anyway, *BREAKS, *IMPLIED, *STUTTERS, *MORE]) == sorted(guards)


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


def test_the_guards_of_the_twins_own_action(at: At) -> None:
    """A replica in no epoch would lead; without ``lost_role`` a leader resumes what it never lost."""
    breaks = breaches_by_guard(fencing, WITHOUT_GUARD, RESUMES)
    assert len(breaks) == 2
    for guard, (violated, length, constants) in breaks.items():
        answer = explore(Query.of(at(constants, RESUMES, guard)))
        assert (answer.violated, len(answer.path or [])) == (violated, length)
    system = at("2/1/1/1", RESUMES)
    idle = stage(at("2/1/1/1", RESUMES, "resume_leadership.lost_role"))
    extra = extra_steps(build_graph(system).states, stage(system), idle)
    assert extra and all(before == after for before, after in extra)


# --- in the end


def test_nothing_is_promised_in_the_end_as_nobody_need_elect_anew(at: At) -> None:
    answers = check_liveness(at("2/1/1/1", SAFE), ("fair-fetches",))
    stems = {each.spec.name: [str(step.instance) for step in each.lasso.stem] for each in answers if each.lasso}
    led = ["controller_elect_leader(new_leader=0)", "become_leader(leader=0, epoch=0)"]
    assert stems == {
        "final_leader_adopts_epoch": [*led, "restart(replica=0, stored=0)"],
        "final_leader_commits_record": [*led, "leader_write(leader=0)", "restart(replica=0, stored=0)"],
    }
