"""Mutants: what counts as a bound, that every engine reads a shifted mutant alike, and how mutants are compared."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from fencepost.model.core import terms
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import State, System, ground, ground_mutant
from fencepost.model.core.mutants import Mutant, mutant_named, mutants
from fencepost.model.core.pretty import show
from fencepost.model.core.protocol import Protocol, TracedAction
from fencepost.model.core.terms import Sort, Term
from fencepost.model.core.tracer import TracedState, Tracer
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.explore.batch import search_batch
from fencepost.model.explore.compare import Change, Difference, compare, run_to
from fencepost.model.explore.result import Step
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.logs import OFFSET
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.protocols.truncation import truncation

SMALL = {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}
MUTANTS = mutants(fencing.traced("kip-320"))
SHIFTED = [mutant for mutant in MUTANTS if mutant.change != "dropped"]

K = Tracer(fencing.variants["kip-320"].rules)
S = TracedState(fencing.variables)
R = terms.node("param", (), Sort.REPLICA, "r")
E = terms.node("param", (), Sort.INT, "e")


def shifts_of(condition: Term) -> list[str]:
    """The shifted forms of a guard, beside an action that puts LEOs, high watermarks and leader epochs in an order."""
    orders = (("log", S.leo[R] < S.hw[R]), ("epoch", S.leader_epoch[R] < E))
    actions = (TracedAction("orders", {}, orders, ()), TracedAction("a", {}, (("g", condition),), ()))
    found = mutants(replace(fencing.traced("kip-320"), actions=actions))
    return [show(dict(m.traced.action("a").guards)["g"]) for m in found if m.name.startswith("a.g bound")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("condition", "shifted"),
    [
        (S.leo[R] < S.hw[R], ["leo[r] < (hw[r] + 1)", "leo[r] < (hw[r] - 1)"]),
        (S.leo[R] >= S.hw[R], ["hw[r] <= (leo[r] + 1)", "hw[r] <= (leo[r] - 1)"]),
        (K.negate(S.leo[R] < S.hw[R]), ["leo[r] >= (hw[r] + 1)", "leo[r] >= (hw[r] - 1)"]),
        # A side of an order is shifted with the order, once.
        (S.leo[R] <= S.hw[R] + 1, ["leo[r] <= (hw[r] + 2)", "leo[r] <= hw[r]"]),
        # An equality is two bounds.
        (S.leo[R] == E, ["(leo[r] == e) or (leo[r] == (e + 1))", "(leo[r] == e) or (leo[r] == (e - 1))"]),
        # Limits and positions, in an index too.
        (
            S.record_id[R, S.leo[R] - 1] == S.record_id[R, 0],
            ["record_id[r][leo[r]] == record_id[r][0]", "record_id[r][leo[r] - 2] == record_id[r][0]"],
        ),
        (
            S.record_id[R, K.min(S.leo[R], E)] == 0,
            ["record_id[r][min(leo[r], e) + 1] == 0", "record_id[r][min(leo[r], e) - 1] == 0"],
        ),
        # Sentinels, names, replicas and sets are no bounds.
        (S.leader_epoch[R] == -1, []),
        (S.record_id[R, 0] == S.record_id[R, 1], []),
        (S.leader[R] == R, []),
        (S.isr[R] == S.quorum_isr, []),
    ],
)
def test_what_is_a_bound(condition: Term, shifted: list[str]) -> None:
    assert shifts_of(condition) == shifted


def test_bounds_stand_under_quantifiers_and_in_alternatives() -> None:
    found = shifts_of(K.forall(OFFSET, lambda o: K.any(S.leader[R] == R, o < S.leo[R])))
    assert [text.partition("offset")[2].partition("<")[2] for text in found] == [" (leo[r] + 1))", " (leo[r] - 1))"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("protocol", [fencing, truncation], ids=lambda p: p.name)
def test_every_guard_is_dropped_and_no_two_mutants_have_one_name(protocol: Protocol) -> None:
    traced = protocol.traced()
    names = [mutant.name for mutant in mutants(traced)]
    assert len(set(names)) == len(names)
    guards = [f"{action.name}.{guard} dropped" for action in traced.actions for guard, _ in action.guards]
    assert [name for name in names if name.endswith(" dropped")] == guards
    assert names == [mutant.name for mutant in mutants(traced)]


def test_one_expression_in_several_places_of_an_action_is_one_bound() -> None:
    mutant = mutant_named(fencing.traced("kip-320"), "become_follower.truncates_backward bound 2 -1")
    before, after = (traced.action("become_follower") for traced in (fencing.traced("kip-320"), mutant.traced))
    changed = [name for (name, a), (_, b) in zip(before.guards, after.guards, strict=True) if a is not b]
    written = [str(t.value) for (t, a), (_, b) in zip(before.writes, after.writes, strict=True) if a is not b]
    assert (changed, written) == (["truncates_backward"], ["leo", "hw"])
    others = zip(fencing.traced("kip-320").actions, mutant.traced.actions, strict=True)
    assert [a.name for a, b in others if a is not b] == ["become_follower"]


def test_an_unknown_mutant_is_refused_in_a_line() -> None:
    with pytest.raises(BadInput, match=r"^--only: fencing \(kip-320\) has no mutant 'leader_write.nothing dropped'; "):
        mutant_named(fencing.traced("kip-320"), "leader_write.nothing dropped")


def reached(system: System) -> list[State]:
    """Every state that the system reaches inside its domains, by the reference."""
    reference = Reference(system)
    seen = {system.initial: None}
    for state in (todo := [system.initial]):
        for _, _, after in reference.successors(state):
            if after not in seen and "type_ok" not in reference.broken(after):
                seen[after] = None
                todo.append(after)
    return list(seen)


MODEL = Reference(ground(fencing.traced("kip-320"), SMALL))
STATES = reached(ground(fencing.traced("kip-320"), SMALL))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mutant", SHIFTED, ids=lambda m: m.name)
def test_the_engines_read_a_shifted_mutant_alike(mutant: Mutant) -> None:
    """Batch and staged read its ground terms, the reference the terms as they stand: the path is the reference's."""
    system = ground(mutant.traced, SMALL)
    batch, staged = (explore(Query.of(system), engine) for engine in ("batch", "reference"))
    # A value outside its domain fits no key: the batch engine does not count the states of that level.
    for name in ("verdict", "depth") if batch.reason else ("verdict", "depth", "distinct"):
        assert getattr(batch, name) == getattr(staged, name), name
    if batch.path is not None:
        reference = Reference(system)
        assert batch.violated in reference.broken(batch.path[-1].state)
        assert staged.path is not None and len(staged.path) == len(batch.path)


def by_hand(mutant: Mutant) -> Difference:
    """What ``compare`` counts, state by state and by the reference alone; without the nearest steps."""
    changed = Reference(ground(mutant.traced, SMALL))
    steps = [step for step in changed.system.by_step if step[0] == mutant.action]
    counts: Counter[str] = Counter()
    for state, step in product(STATES, steps):
        ours, theirs = MODEL.step(state, *step), changed.step(state, *step)
        if ours != theirs:
            kind = "other" if ours and theirs else "fewer" if ours else "more"
            counts["still" if state in (ours, theirs) and kind != "other" else kind] += 1
    return Difference(counts["more"], counts["fewer"], counts["other"], counts["still"], None, None)


def test_mutants_are_compared_as_by_hand() -> None:
    search = search_batch(Query.of(ground(fencing.traced("kip-320"), SMALL)))
    assert search.table.count == len(STATES)
    seen = set()
    for mutant in MUTANTS:
        found = compare(search, ground(mutant.traced, SMALL), mutant.action)
        assert replace(found, added=None, removed=None) == by_hand(mutant), mutant.name
        assert (found.added is not None or found.removed is not None) is (found.change is not Change.NONE)
        seen.add(found.change)
    assert seen == set(Change)


def test_a_run_that_only_one_of_the_two_has() -> None:
    model = ground(fencing.traced("kip-320"), SMALL)
    search = search_batch(Query.of(model))
    for name, of_mutant in (
        ("become_follower.leader_epoch_matches dropped", True),
        ("leader_write.leo' bound -1", True),
        ("follower_fetch.record_available bound -1", False),
    ):
        mutant = mutant_named(fencing.traced("kip-320"), name)
        system = ground(mutant.traced, SMALL)
        found = compare(search, system, mutant.action)
        apart = found.added if of_mutant else found.removed
        assert apart is not None and apart.of_mutant is of_mutant
        tells_apart(run_to(search, system, apart), model, system, of_mutant)


def tells_apart(run: list[Step], model: System, mutant: System, of_mutant: bool) -> None:
    """Both have the run but for its last step, which only one has."""
    has, lacks = (Reference(mutant), Reference(model))[:: 1 if of_mutant else -1]
    state = model.initial
    for step in run[:-1]:
        assert lacks.step(state, step.instance.action, step.instance.params) == step.state
        state = step.state
    last = run[-1].instance
    assert has.step(state, last.action, last.params) == run[-1].state
    assert lacks.step(state, last.action, last.params) != run[-1].state


def test_orbits_are_compared_as_states_are() -> None:
    """With three replicas that can change names, the same mutants differ, in the same way; the runs are of states."""
    traced = snapshots.traced("kip-630-safe")
    constants = dict(zip(snapshots.constants, (3, 0, 1, 1, 1, 0, 0, 1), strict=True))
    model = ground(traced, constants)
    states, orbits = (search_batch(Query.of(model, symmetry=symmetric)) for symmetric in (False, True))
    assert orbits.table.count < states.table.count / 5
    seen = set()
    for mutant in mutants(traced)[::9]:
        system = ground_mutant(model, mutant.traced, mutant.action)
        one, other = (compare(each, system, mutant.action) for each in (states, orbits))
        assert one.change is other.change, mutant.name
        assert (one.more, one.fewer, one.other, one.still) >= (other.more, other.fewer, other.other, other.still)
        apart = other.added or other.removed
        if apart is not None:
            tells_apart(run_to(orbits, system, apart), model, system, apart.of_mutant)
        seen.add(other.change)
    assert seen == set(Change)


def test_a_mutant_that_breaks_nothing_is_no_violation() -> None:
    """The planted opposite: a bound that is shifted to where it says nothing leaves all states as they are."""
    mutant = mutant_named(fencing.traced("kip-320"), "follower_fetch.epoch_not_fenced bound +1")
    answer = explore(Query.of(ground(mutant.traced, SMALL)))
    assert (answer.verdict, answer.distinct) == (Verdict.HOLDS, len(STATES))


def test_a_mutant_is_grounded_from_its_model_as_by_itself() -> None:
    model = ground(fencing.traced("kip-320"), SMALL)
    for mutant in MUTANTS:
        quick, whole = ground_mutant(model, mutant.traced, mutant.action), ground(mutant.traced, SMALL)
        assert quick.traced is mutant.traced
        for one, other in zip(quick.by_step.items(), whole.by_step.items(), strict=True):
            assert one[0] == other[0]
            assert [(n, id(g)) for n, g in one[1].guards] == [(n, id(g)) for n, g in other[1].guards]
            assert {n: id(t) for n, t in one[1].effect.items()} == {n: id(t) for n, t in other[1].effect.items()}
        assert [str(i) for i in quick.instances] == [str(i) for i in whole.instances]
        assert {n: id(t) for n, t in quick.invariants.items()} == {n: id(t) for n, t in whole.invariants.items()}
