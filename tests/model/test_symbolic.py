"""The finite symbolic relation against the reference interpreter, in both directions, and that the check can fail."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
import z3
from fencepost.model.core import terms
from fencepost.model.core.ground import State, System, ground
from fencepost.model.core.protocol import TracedProtocol
from fencepost.model.core.terms import Term
from fencepost.model.explore.result import Verdict
from fencepost.model.interpret.reference import Reference
from fencepost.model.interpret.staged import stage
from fencepost.model.interpret.symbolic import Symbolic
from fencepost.model.protocols.fencing import fencing
from fencepost.model.prove.crosscheck import CrossCheck, Sample, changed, crosscheck, disturbed, exhaustive, sampled

SEED = 320
SMALL = {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}
LARGER = {"replicas": 3, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
VARIANTS = tuple(fencing.variants)


def system_of(variant: str, constants: dict[str, int]) -> System:
    return ground(fencing.traced(variant), constants)


def smallest(variant: str) -> System:
    """The smallest constants, and one leader epoch where what is in flight has many states: few enough."""
    many = {"proposed", "asked_isr"} & fencing.variables_of(variant).keys()
    return system_of(variant, SMALL | ({"max_leader_epoch": 0} if many else {}))


@pytest.fixture(scope="module")
def small() -> tuple[System, Sample]:
    system = system_of("kip-320", SMALL)
    return system, exhaustive(system)


def report(check: CrossCheck) -> CrossCheck:
    print(f"seed {check.seed}: {check}")
    return check


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_transition_at_the_smallest_constants(variant: str) -> None:
    system = smallest(variant)
    # At the constants of ``smallest`` there is no second epoch to be fenced by.
    never: set[str] = {"leader_forget_proposal"} if variant == "kip-497-fenced" else set()
    if variant == "kip-320-cluster":  # nor one to fail over to, to truncate in, or to write a record in once more
        never = {"controller_fail_over", "leader_write_again", "truncate_partly"}
    elif "asked_isr" in system.traced.variables:
        never = {"controller_fail_over", "truncate_partly"}
    sample = exhaustive(system)
    thorough, refused = (100, len(sample.refused)) if variant == "kip-320" else (20, 700)
    check = report(crosscheck(system, sample, SEED, thorough=thorough, refused=refused))
    assert check.first_failure is None
    assert check.verdict is Verdict.HOLDS
    assert check.accepted == len(sample.transitions)
    assert check.near_misses == len(sample.transitions) + thorough * len(system.layout.cells)
    assert check.determined == thorough
    assert check.refused == refused
    assert set(check.by_action) == set(system.actions) - never


def test_two_thousand_sampled_transitions_at_larger_constants() -> None:
    system = system_of("kip-320", LARGER)
    sample = sampled(system, 2000, SEED)
    check = report(crosscheck(system, sample, SEED, thorough=25, refused=1000))
    assert check.first_failure is None
    assert (check.accepted, check.determined, check.refused) == (2000, 25, 1000)
    assert check.near_misses == 2000 + 25 * len(system.layout.cells)
    # Not only the crowded actions: each has its share of the sample.
    assert set(check.by_action) == set(system.actions)
    assert min(check.by_action.values()) >= 50


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", VARIANTS[:-1])
def test_sampled_transitions_of_the_other_variants(variant: str) -> None:
    system = system_of(variant, LARGER)
    check = report(crosscheck(system, sampled(system, 250, SEED), SEED, thorough=5, refused=150))
    assert check.first_failure is None
    assert check.accepted == 250


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", VARIANTS)
def test_steps_from_states_that_no_run_reaches(variant: str) -> None:
    system = smallest(variant)
    sample = disturbed(system, exhaustive(system).states, 100, SEED)
    check = report(crosscheck(system, sample, SEED, thorough=0, refused=500))
    assert check.first_failure is None
    assert check.accepted > 150


def test_a_sample_depends_on_its_seed_alone() -> None:
    system = system_of("kip-320", LARGER)
    assert sampled(system, 100, 1) == sampled(system, 100, 1)
    assert sampled(system, 100, 1) != sampled(system, 100, 2)


# Faults that the cross-check must see.

REDUNDANT = {
    "become_follower.not_leader_itself",
    "become_follower.truncates_backward",
    "leader_shrink_isr.not_leader_itself",
}
"""Guards that the others imply in every state of kip-320; ``test_symbolic_unbounded.py`` proves that they do."""


def guards() -> list[str]:
    return [f"{a.name}.{guard}" for a in fencing.traced("kip-320").actions for guard, _ in a.guards]


@pytest.fixture(scope="module")
def everywhere(small: tuple[System, Sample]) -> Sample:
    """Every refused step of the smallest system, and those of states that no run reaches."""
    system, sample = small
    return Sample(refused=sample.refused + disturbed(system, sample.states, 300, SEED).refused)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("guard", guards())
def test_a_relation_without_a_guard_is_reported(small: tuple[System, Sample], everywhere: Sample, guard: str) -> None:
    system, _ = small
    action, _, name = guard.partition(".")
    mutant = Symbolic(system.traced.drop(guard), SMALL)
    check = crosscheck(system, everywhere.of_action(action), SEED, symbolic=mutant)
    if guard in REDUNDANT:
        assert check.verdict is Verdict.HOLDS
        return
    assert check.verdict is Verdict.VIOLATED
    assert f"the reference's guard {name} refuses: {action}(" in str(check.first_failure)


def with_effect(traced: TracedProtocol, action: str, variable: str, change: object) -> TracedProtocol:
    """The protocol with the values that an action writes to a variable changed."""
    assert callable(change)

    def write(target: Term, value: Term) -> tuple[Term, Term]:
        return (target, change(value)) if target.value == variable else (target, value)

    actions = tuple(
        replace(a, writes=tuple(write(t, v) for t, v in a.writes)) if a.name == action else a for a in traced.actions
    )
    assert any(a.writes is not b.writes for a, b in zip(actions, traced.actions, strict=True))
    return replace(traced, actions=actions)


def without_effect(traced: TracedProtocol, action: str, variable: str) -> TracedProtocol:
    """The protocol in which an action forgets to write a variable."""
    actions = tuple(
        replace(a, writes=tuple(w for w in a.writes if w[0].value != variable)) if a.name == action else a
        for a in traced.actions
    )
    return replace(traced, actions=actions)


def test_a_perturbed_effect_is_reported(small: tuple[System, Sample]) -> None:
    system, sample = small
    mutants = {
        "hw one further": with_effect(system.traced, "leader_inc_high_watermark", "hw", lambda v: v + 1),
        "leo kept": without_effect(system.traced, "follower_fetch", "leo"),
        "isr kept": without_effect(system.traced, "leader_shrink_isr", "quorum_isr"),
        "no leader": with_effect(
            system.traced, "become_follower", "leader", lambda _: terms.const(terms.NONE, terms.Sort.REPLICA)
        ),
    }
    for name, traced in mutants.items():
        check = crosscheck(system, sample, SEED, symbolic=Symbolic(traced, SMALL))
        assert check.verdict is Verdict.VIOLATED, name
        assert str(check.first_failure).startswith("the relation refuses a transition of the reference"), name


def test_dead_cells_left_as_they_were_are_reported(small: tuple[System, Sample]) -> None:
    system, sample = small
    careless = replace(system.traced, live={})  # truncation leaves the records above the new LEO in place
    check = crosscheck(system, sample, SEED, symbolic=Symbolic(careless, SMALL), refused=0)
    assert "refuses a transition of the reference: become_follower" in str(check.first_failure)


class Loose(Symbolic):
    """A relation that says nothing of the controller's ISR after the step."""

    def relation(self, action: str, params: tuple[tuple[str, int], ...]) -> z3.BoolRef:
        number = self.layout.by_name["quorum_isr"]
        free = [(c, z3.Bool(f"free {i}")) for i, c in enumerate(self.post.cells[number])]
        exact = super().relation(action, params)
        return z3.simplify(z3.Exists([new for _, new in free], z3.substitute(exact, *free)))


def test_a_relation_that_leaves_a_cell_open_is_reported(small: tuple[System, Sample]) -> None:
    system, sample = small
    loose = Loose(system.traced, SMALL)
    first = Sample(sample.states[:1], sample.transitions[:1])
    check = crosscheck(system, first, SEED, symbolic=loose, thorough=1)
    assert "one cell changed" in str(check.first_failure)
    assert "with quorum_isr {" in str(check.first_failure)


def test_a_wrong_invariant_is_reported(small: tuple[System, Sample]) -> None:
    system, sample = small
    wrong = replace(system.traced, invariants={**system.traced.invariants, "weak_isr": terms.FALSE})
    check = crosscheck(system, sample, SEED, symbolic=Symbolic(wrong, SMALL), refused=0)
    assert "z3 and the reference differ: weak_isr does not hold for z3" in str(check.first_failure)


def test_a_query_that_z3_leaves_open_is_unknown(small: tuple[System, Sample]) -> None:
    system, sample = small
    check = crosscheck(system, sample, SEED, rlimit=1)
    assert check.verdict is Verdict.UNKNOWN
    assert str(check.first_failure).startswith("z3 does not decide (")


# Invariants on broken states.


def first_broken(system: System) -> list[State]:
    """The states of the first breadth-first level on which an invariant breaks."""
    staged = stage(system)
    seen, level = {system.initial}, [system.initial]
    while level:
        broken = [s for s in level if not all(holds(s) for holds in staged.invariants.values())]
        if broken:
            return broken
        level = list(dict.fromkeys(after for s in level for _, after in staged.successors(s)))
        level = [s for s in level if s not in seen]
        seen.update(level)
    return []


def test_invariants_in_the_states_that_end_a_counterexample() -> None:
    system = system_of("truncate-to-hw", {**SMALL, "replicas": 3})
    broken = first_broken(system)
    assert len(broken) == 6
    assert all(Reference(system).broken(state) == ["weak_isr", "strong_isr"] for state in broken)
    check = report(crosscheck(system, Sample(states=broken), SEED))
    assert check.first_failure is None
    assert check.invariants == 4 * len(broken)


def test_invariants_in_states_that_no_run_reaches(small: tuple[System, Sample]) -> None:
    system, sample = small
    random, cells = Random(SEED), system.layout.cells
    states = []
    for _ in range(600):
        state = list(random.choice(sample.states))
        for cell in random.sample(cells, 4):
            state[cell.number] = changed(cell, state[cell.number], random)
        states.append(tuple(state))
    reference = Reference(system)
    broken = [name for state in states for name in reference.broken(state)]
    # Each invariant is seen broken and seen holding, so agreement means something.
    assert all(30 < broken.count(name) < 600 for name in ("type_ok", "weak_isr", "strong_isr", "leader_in_isr"))
    check = report(crosscheck(system, Sample(states=states), SEED, states=600))
    assert check.first_failure is None
    assert check.invariants == 4 * 600


# The parts of the interface.


def test_encode_and_decode_are_inverse(small: tuple[System, Sample]) -> None:
    system, sample = small
    symbolic = Symbolic(system.traced, SMALL)
    for t in sample.transitions[::40]:
        solver = z3.Solver()
        solver.add(*(constant == literal for constant, literal in symbolic.encode(t.state)))
        solver.add(symbolic.relation(t.action, t.params))
        assert solver.check() == z3.sat
        assert symbolic.decode(solver.model()) == t.state
        assert symbolic.post.decode(solver.model()) == t.after


def test_guards_are_those_of_the_reference(small: tuple[System, Sample]) -> None:
    system, sample = small
    symbolic, reference = Symbolic(system.traced, SMALL), Reference(system)
    for step in sample.refused[::60]:
        names = [name for name, _ in system.traced.action(step.action).guards]
        verdicts = [symbolic.decided(symbolic.guard(step.action, n, step.params), step.state) for n in names]
        assert names[verdicts.index(False)] == reference.refused_by(*step)


def test_a_set_with_a_member_that_is_no_replica_cannot_be_encoded() -> None:
    symbolic = Symbolic(fencing.traced("kip-320"), SMALL)
    state = list(symbolic.layout.initial)
    state[symbolic.layout.by_name["quorum_isr"]] = 0b100
    with pytest.raises(ValueError, match=r"quorum_isr holds 0b100, and there are 2 replicas"):
        symbolic.encode(tuple(state))


def test_a_read_out_of_range_gives_the_dead_value_whatever_its_sort() -> None:
    symbolic = Symbolic(fencing.traced("kip-320"), SMALL)
    state = symbolic.state(symbolic.pre)
    assert state.read("leader_epoch", (terms.NONE,)) == -1
    assert state.read("record_id", (0, 5)) == -1
    # The dead value of `isr` is -1: as a bit mask, all replicas.
    assert [state.read("isr", (terms.NONE,)).has(r) for r in (0, 1)] == [False, False]
    assert [state.read("request_isr", (9,)).has(r) for r in (0, 1)] == [False, False]


def test_a_step_with_parameters_left_open_finds_what_the_reference_takes(small: tuple[System, Sample]) -> None:
    """Parameters may be z3 integers: z3 then chooses them, and the reference takes the step that it chose."""
    system, _ = small
    symbolic, reference = Symbolic(system.traced, SMALL), Reference(system)
    solver = z3.Solver()
    replica = z3.Int("new_leader")
    step = symbolic.interpreter.step(symbolic.state(symbolic.pre), "controller_elect_leader", {"new_leader": replica})
    solver.add(symbolic.initial(), step.enabled, replica > 0)
    assert solver.check() == z3.sat
    chosen = solver.model()[replica].as_long()
    assert chosen == 1
    assert reference.step(system.initial, "controller_elect_leader", (("new_leader", chosen),)) is not None
    solver.add(replica > 1)
    assert solver.check() == z3.unsat
