"""Refinement by exploration: what holds, what does not and by which guards, and mappings that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from fencepost.model.core.algebra import Algebra, Value, View
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import System, ground
from fencepost.model.explore import Limits, Verdict
from fencepost.model.explore.refine import Refinement, StateMapping, refine
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.refinements import REFINEMENTS, UNREAD
from fencepost.model.protocols.snapshots import snapshots

At = Callable[..., System]

UNSPLIT = "kip-320-brokers"


def held(system: System, other: str, *but: str, mapping: StateMapping | None = None) -> Refinement:
    """A system against another variant, by the protocol's own mapping unless another is given."""
    pair = system.traced.variant.name, other
    given = REFINEMENTS.get(pair, {}) if mapping is None else mapping
    return refine(system, fencing.traced(other), given, but, unread=UNREAD.get(pair))


def kinds(found: Refinement) -> dict[tuple[str, ...], int]:
    """The guards that tell each difference, and how long its shortest run is."""
    return {each.guards: len(each.path) for each in found.apart}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "other", "constants"),
    [
        ("kip-320", "kip-320-restarts", "2/2/2/2"),
        ("kip-320-brokers", "kip-320-stale-acks", "2/1/1/0"),
        ("kip-497", "kip-497-forgets", "2/1/1/0"),
        ("kip-320", "kip-320", "2/2/2/2"),
    ],
)
def test_a_variant_with_fewer_steps_refines_the_one_with_more(at: At, variant: str, other: str, constants: str) -> None:
    found = held(at(constants, variant), other)
    assert (found.verdict, found.apart, found.broken, found.unreached) == (Verdict.HOLDS, [], None, 0)
    assert found.distinct == found.mapped and found.steps > found.distinct


def test_the_other_way_round_every_fence_is_a_difference_with_a_run(at: At) -> None:
    """kip-279 talks across epochs: each guard of kip-320 that forbids it is named, with a run of kip-279 alone."""
    system = at("2/1/1/1", "kip-279")
    found = held(system, "kip-320")
    assert found.verdict is Verdict.VIOLATED
    named = {guard for each in found.apart for guard in each.guards}
    assert {"follower_fetch.epoch_not_fenced", "leader_expand_isr.hw_reached_epoch"} <= named
    reference, other = Reference(system), Reference(found.other)
    for each in found.apart:
        states = [system.initial, *(step.state for step in each.path)]
        last = each.path[-1].instance
        assert reference.step(states[-2], last.action, last.params) == states[-1]
        # Both have the same cells: the mapping is none.
        assert (each.before, each.after) == (states[-2], states[-1])
        assert each.after not in {after for _, _, after in other.successors(each.before)}
        assert each.nearest is not None and other.refused_by(each.before, each.nearest.action, each.nearest.params)
    assert [len(each.path) for each in found.apart] == sorted(len(each.path) for each in found.apart)


def test_a_proposed_isr_is_taken_up_when_things_are_no_more_as_they_were(at: At) -> None:
    """Where kip-497 is not kip-320-brokers (DEVIATIONS.md, D9); and yet it comes to none but its states."""
    found = held(at("2/1/1/0", "kip-497"), UNSPLIT)
    assert found.verdict is Verdict.VIOLATED
    assert {each.action for each in found.apart} == {"controller_alter_isr"}, "all else is a step, or nothing"
    told = kinds(found)
    # The leader has crashed since: there is no step in which the controller's ISR changes alone.
    assert told[()] == 5 and found.apart[0].nearest is None
    # The follower has caught up since, or has crashed since.
    assert told[("leader_shrink_isr.not_caught_up",)] == 6
    assert told[("leader_expand_isr.follows_leader",)] == 9
    assert (found.broken, found.mapped, found.unreached) == (None, 165, 0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("constants", "mapped"), [("2/1/1/0", 59), ("2/1/1/1", 479)])
def test_without_crashes_one_guard_tells_them_apart(at: At, constants: str, mapped: int) -> None:
    """A follower that has caught up since is taken out all the same; nothing else differs."""
    whole = at(constants, "kip-497")
    steady = replace(whole, instances=[each for each in whole.instances if each.action != "restart"])
    found = held(steady, UNSPLIT, "leader_shrink_isr.not_caught_up")
    assert (found.verdict, found.apart, found.broken) == (Verdict.HOLDS, [], None)
    assert found.mapped == mapped
    assert kinds(held(steady, UNSPLIT)).keys() == {("leader_shrink_isr.not_caught_up",)}


def test_two_changes_in_one_request_are_a_run_of_two_steps(at: At) -> None:
    whole = at("3/1/1/0", "kip-497")
    kept = ("leader_propose_shrink", "controller_elect_leader", "become_leader", "leader_write", "controller_alter_isr")
    found = held(replace(whole, instances=[each for each in whole.instances if each.action in kept]), UNSPLIT)
    assert (found.verdict, found.apart) == (Verdict.HOLDS, [])


def test_who_counts_too_few_is_refused_with_a_run_and_a_broken_promise(at: At) -> None:
    """The planted fault: a twin that breaks."""
    found = held(at("2/1/1/0", "kip-497-eager"), UNSPLIT)
    assert ("leader_inc_high_watermark.isr_acknowledges",) in kinds(found)
    assert found.broken in ("weak_isr", "strong_isr") and found.unreached
    assert found.broken_path is not None and len(found.broken_path) >= 10


CLUSTER = "kip-320-cluster"
GRANTED_LATE = {
    ("controller_grant_isr", "leader_shrink_isr.not_caught_up"): 6,
    ("controller_grant_isr", "leader_expand_isr.follows_leader"): 10,
}
OF_NODES = {
    ("hear_of_leader",): 2,
    ("restart_after_loss",): 4,
    ("follower_fetch",): 5,
    ("follower_hear_high_watermark", "leader_inc_high_watermark.presumes_leadership"): 10,
}


def rows(found: Refinement) -> dict[tuple[str, ...], int]:
    """The same by the action too."""
    return {(each.action, *each.guards): len(each.path) for each in found.apart}


def test_what_a_running_cluster_does_that_brokers_in_whole_exchanges_do_not(at: At) -> None:
    """Each difference is a row of DEVIATIONS.md; the promises of kip-320-brokers hold in every mapped state."""
    found = held(at("2/1/1/0", CLUSTER), UNSPLIT)
    assert rows(found) == GRANTED_LATE | OF_NODES
    assert (found.verdict, found.reason, found.broken) == (Verdict.VIOLATED, None, None)
    assert (found.distinct, found.mapped, found.unreached) == (1121, 195, 38)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("constants", "kept", "row"),
    [
        ("2/1/1/1", {"controller_fail_over"}, {("controller_fail_over",): 2}),
        ("2/1/1/1", {"leader_write_again"}, {("leader_write_again",): 6}),
        ("2/2/2/1", {"hear_of_leader", "truncate_partly"}, {("hear_of_leader",): 2, ("truncate_partly",): 8}),
    ],
)
def test_what_takes_another_epoch_to_tell_them_apart(
    at: At, constants: str, kept: set[str], row: dict[tuple[str, ...], int]
) -> None:
    """In runs of these steps, elections and writes alone."""
    whole, used = at(constants, CLUSTER), kept | {"controller_elect_leader", "become_leader", "leader_write"}
    found = held(replace(whole, instances=[each for each in whole.instances if each.action in used]), UNSPLIT)
    assert (rows(found), found.reason, found.broken) == (row, None, None)


@pytest.mark.nightly
def test_with_another_epoch_a_running_cluster_differs_in_nothing_else(at: At) -> None:
    found = held(at("2/1/1/1", CLUSTER), UNSPLIT)
    assert rows(found).keys() == (GRANTED_LATE | OF_NODES).keys() | {("controller_fail_over",), ("leader_write_again",)}
    assert (found.distinct, found.mapped, found.unreached, found.broken) == (12407, 1938, 604, None)


def test_elections_isrs_and_clients_of_a_running_cluster_are_those_of_brokers(at: At) -> None:
    """All its steps but those of the rows."""
    whole = at("2/1/1/1", CLUSTER)
    other = {action for action, *_ in OF_NODES} | {"controller_fail_over", "leader_write_again"}
    used = [each for each in whole.instances if each.action not in other]
    found = held(replace(whole, instances=used), UNSPLIT, "leader_shrink_isr.not_caught_up")
    assert (found.verdict, found.apart, found.broken, found.unreached) == (Verdict.HOLDS, [], None, 0)
    assert found.distinct > 1000


def test_what_is_said_to_be_unread_is_looked_for(at: At) -> None:
    """The planted fault: no step is said to read the ISR of a leader. Clean: a follower's, and that of old requests."""
    brokers = at("2/1/1/1", UNSPLIT)
    clean = refine(brokers, brokers.traced, unread=UNREAD[CLUSTER, UNSPLIT])
    assert (clean.verdict, clean.reason, clean.unreached) == (Verdict.HOLDS, None, 0)
    assert clean.mapped < clean.distinct
    planted = refine(brokers, brokers.traced, unread={"isr": _nobody})
    assert planted.verdict is not Verdict.HOLDS
    assert planted.reason == "kip-320-brokers reads what is said to be unread"
    elections = replace(brokers, instances=[each for each in brokers.instances if "elect" in each.action])
    for limit, verdict in ((2000, Verdict.HOLDS), (600, Verdict.UNKNOWN)):
        found = refine(elections, brokers.traced, unread=UNREAD[CLUSTER, UNSPLIT], limits=Limits(max_states=limit))
        assert found.verdict is verdict and found.distinct < 600, "all of it has to be looked at"


def voting(variant: str, constants: str) -> System:
    values = dict(zip(snapshots.constants, map(int, constants.split("/")), strict=True))
    return ground(snapshots.traced(variant), values)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("constants", "distinct"),
    [
        ("2/0/1/1/1/0/0/1", 771),
        pytest.param("3/0/1/1/1/0/0/1", 84001, marks=pytest.mark.nightly),
    ],
)
def test_votes_that_travel_are_votes_refused_at_first(constants: str, distinct: int) -> None:
    """A voter whose answer has not come yet is one that has refused, whatever the candidate's log; then it grants."""
    other = snapshots.traced("kip-630-nodes")
    found = refine(voting("kip-630-votes", constants), other, but=("refuse_vote.out_of_date",))
    assert (found.verdict, found.distinct, found.apart, found.unreached) == (Verdict.HOLDS, distinct, [], 0)
    found = refine(voting("kip-630-votes", constants), other)
    assert kinds(found) == {("refuse_vote.out_of_date",): 2} and found.broken is None


def test_a_late_vote_that_counts_is_refused_with_a_run() -> None:
    """The planted fault: a twin. It leads by a vote of its former candidacy."""
    found = refine(
        voting("late-votes", "2/0/1/1/1/0/0/1"), snapshots.traced("kip-630-nodes"), but=("refuse_vote.out_of_date",)
    )
    assert found.verdict is Verdict.VIOLATED and found.path is not None
    told = [step.instance.action for step in found.path]
    assert told == ["become_candidate", "grant_vote", "become_candidate", "hear_vote"]


def _known_isr(_k: Algebra, s: View, replica: Value) -> Value:
    return s.isr[replica]


def _nobody(k: Algebra, _s: View, _replica: Value) -> Value:
    return k.EMPTY


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("wrong", "length"), [(_known_isr, 4), (_nobody, 2)])
def test_a_wrong_mapping_is_refused_with_a_run(at: At, wrong: Callable[..., Value], length: int) -> None:
    """The planted fault: the ISR that a leader knows is none that both have, and that of nobody is no ISR."""
    found = held(at("2/1/1/0", "kip-497"), UNSPLIT, mapping={"isr": wrong})
    assert found.verdict is Verdict.VIOLATED and found.path is not None
    assert len(found.path) == length
    assert found.apart[0].action == ("controller_alter_isr" if wrong is _known_isr else "become_leader")


def test_an_initial_state_that_maps_elsewhere_is_refused(at: At) -> None:
    found = held(at("2/1/1/0", "kip-320-restarts"), "kip-320", mapping={"leo": lambda _k, _s, _r: 1})
    assert (found.verdict, found.reason) == (
        Verdict.VIOLATED,
        "the initial state maps to another one than the initial one",
    )


def test_a_budget_that_runs_out_is_no_holds(at: At) -> None:
    system = at("2/2/2/2", "kip-320")
    spent = refine(system, fencing.traced("kip-320-restarts"), limits=Limits(max_states=100))
    assert spent.verdict is Verdict.UNKNOWN and spent.reason is not None and spent.unreached is None
    shallow = refine(system, fencing.traced("kip-320-restarts"), limits=Limits(max_depth=3))
    assert shallow.verdict is Verdict.UNKNOWN


def test_a_variable_that_is_not_there_and_not_mapped_is_bad_input(at: At) -> None:
    with pytest.raises(BadInput, match="kip-320 has no remote_leo, which kip-320-brokers has"):
        held(at("2/1/1/0", "kip-320"), UNSPLIT)
    with pytest.raises(BadInput, match="restart has no guard 'no_such_guard'"):
        held(at("2/1/1/0", "kip-320"), "kip-320-restarts", "restart.no_such_guard")
