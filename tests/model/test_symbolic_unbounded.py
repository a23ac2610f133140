"""The unbounded symbolic interpreter: the same steps as the reference on concrete states, and a first proof."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest
import z3
from fencepost.model.core.algebra import Algebra, Value, View
from fencepost.model.core.domains import REPLICA
from fencepost.model.core.errors import ProtocolError
from fencepost.model.core.ground import ground
from fencepost.model.core.protocol import TracedProtocol
from fencepost.model.core.terms import TRUE, Term
from fencepost.model.core.tracer import TracedState, Tracer
from fencepost.model.interpret.reference import IntState, Reference
from fencepost.model.interpret.symbolic_terms import Step, SymbolicState
from fencepost.model.interpret.symbolic_unbounded import Unbounded
from fencepost.model.interpret.symbolic_values import Truth, both
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.logs import EPOCH
from fencepost.model.prove.crosscheck import Transition, disturbed, exhaustive, sampled

from .concrete import Concrete

SEED = 320
SMALL = {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}
LARGER = {"replicas": 3, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}


def fresh_solver() -> z3.Solver:
    """E-matching only, bounded by z3's own resource count."""
    solver = z3.Solver()
    solver.set(auto_config=False, mbqi=False, random_seed=0, rlimit=20_000_000)
    return solver


# The unbounded reading of a concrete state takes the reference's steps.


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", fencing.variants)
def test_the_unbounded_relation_takes_the_steps_of_the_reference(variant: str) -> None:
    system = ground(fencing.traced(variant), LARGER)
    concrete = Concrete(system, Unbounded(system.traced))
    sample = sampled(system, 3000 if "asked_isr" in system.traced.variables else 600, SEED)
    by_action: dict[str, list[Transition]] = {}
    for transition in sample.transitions:
        by_action.setdefault(transition.action, []).append(transition)
    print(f"seed {SEED}, {sorted(by_action)}")
    assert set(by_action) == set(system.actions)
    for transitions in by_action.values():
        # become_follower and follower_truncate read `first` and `last`: there more is asked.
        for transition in transitions[:: len(transitions) // (6 if "follower" in transitions[0].action else 2) or 1]:
            assert concrete.takes(transition), transition
    assert all(concrete.refuses(step) for step in sample.refused[::80])


def test_the_comparison_sees_a_wrong_state_after() -> None:
    system = ground(fencing.traced("kip-320"), SMALL)
    concrete = Concrete(system, Unbounded(system.traced))
    first = exhaustive(system).transitions[0]
    assert concrete.takes(first)
    wrong = first._replace(after=(first.after[0] + 1, *first.after[1:]))
    assert not concrete.takes(wrong)


# A first proof: the leader is in the ISR, for any number of replicas, offsets and epochs.


def epochs_in_order(_k: Algebra, s: View) -> Value:
    """The controller's leader epoch is the last one that it gave out."""
    return s.quorum_leader_epoch + 1 == s.next_leader_epoch


def no_epoch_from_the_future(k: Algebra, s: View) -> Value:
    """No replica has seen a leader epoch that the controller has not given out."""
    return k.all(0 <= s.next_leader_epoch, k.forall(REPLICA, lambda r: s.leader_epoch[r] <= s.quorum_leader_epoch))


def newest_request_names_the_leader(k: Algebra, s: View) -> Value:
    """The request of the newest epoch names the controller's leader; before the first there is none."""
    named = s.request_leader[s.quorum_leader_epoch] == s.quorum_leader
    return k.ite(s.quorum_leader_epoch < 0, s.quorum_leader == k.NONE, named)


def newest_request_carries_the_isr(k: Algebra, s: View) -> Value:
    """Until the leader has taken up the request of its epoch, nobody has changed the ISR in it."""
    return k.forall(
        REPLICA,
        lambda r: k.implies(
            k.all(s.quorum_leader == r, s.leader_epoch[r] < s.quorum_leader_epoch),
            s.request_isr[s.quorum_leader_epoch] == s.quorum_isr,
        ),
    )


def leader_knows_the_isr(k: Algebra, s: View) -> Value:
    """Once it has, it presumes leadership and the ISR that it knows is the controller's, until a crash ends both."""
    return k.forall(
        REPLICA,
        lambda r: k.implies(
            k.all(s.quorum_leader == r, s.leader_epoch[r] == s.quorum_leader_epoch),
            k.any(s.leader[r] == k.NONE, k.all(s.leader[r] == r, s.isr[r] == s.quorum_isr)),
        ),
    )


LEMMAS: tuple[Callable[[Algebra, View], Value], ...] = (
    epochs_in_order,
    no_epoch_from_the_future,
    newest_request_names_the_leader,
    newest_request_carries_the_isr,
    leader_knows_the_isr,
)


def conjuncts(traced: TracedProtocol) -> dict[str, Term]:
    """The invariant and its lemmas, traced from their text like everything else."""
    k, s = Tracer(traced.variant.rules), TracedState(traced.protocol.variables)
    return {"leader_in_isr": traced.invariants["leader_in_isr"]} | {lemma.__name__: lemma(k, s) for lemma in LEMMAS}


def unproved(traced: TracedProtocol, claims: Mapping[str, Term]) -> list[tuple[str, str]]:
    """The pairs (action, conjunct) whose obligation z3 does not answer with ``unsat``; ``initial`` for initiation.

    A claim named ``type_ok`` is the declared domains' and not a term.
    """
    unbounded = Unbounded(traced)

    def read(state: SymbolicState) -> dict[str, z3.BoolRef]:
        formulas = {n: unbounded.condition(t, state).formula for n, t in claims.items() if n != "type_ok"}
        return formulas | ({"type_ok": unbounded.invariant("type_ok", state).formula} if "type_ok" in claims else {})

    before = read(unbounded.pre)
    failed = []
    for name, formula in before.items():
        solver = fresh_solver()
        solver.add(*unbounded.constant_axioms, unbounded.initial(), z3.Not(formula))
        if solver.check() != z3.unsat:
            failed.append(("initial", name))
    for action in traced.actions:
        step = unbounded.step(action.name)
        for name, formula in read(step.after).items():
            solver = fresh_solver()
            solver.add(*unbounded.constant_axioms, *before.values(), *unbounded.assumed(step), z3.Not(formula))
            if solver.check() != z3.unsat:
                failed.append((action.name, name))
    return failed


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "variant", [v for v in fencing.variants if not {"proposed", "asked_isr"} & fencing.variables_of(v).keys()]
)
def test_leader_in_isr_is_inductive(variant: str) -> None:
    """It does not depend on how a variant truncates or fences, so it holds in all in which the ISR changes in one step.

    One proof does for all but one: a leader that forgets its epoch takes up its request with the ISR of then.
    """
    traced = fencing.traced(variant)
    stale = [("restart", "newest_request_carries_the_isr")] if variant == "kip-320-forgets" else []
    assert unproved(traced, conjuncts(traced)) == stale


def presumed_leader_has_an_epoch(k: Algebra, s: View) -> Value:
    """A replica that presumes leadership does so in some epoch."""
    return k.forall(REPLICA, lambda r: k.implies(s.leader[r] == r, 0 <= s.leader_epoch[r]))


def test_type_ok_is_inductive_with_one_lemma() -> None:
    """Domains and dead cells, for every log size and every number of replicas, records and epochs."""
    traced = fencing.traced("kip-320")
    type_ok = {"type_ok": TRUE}
    k, s = Tracer(traced.variant.rules), TracedState(traced.protocol.variables)
    assert unproved(traced, type_ok) == [("leader_write", "type_ok")]  # a record of no epoch would count as dead
    assert unproved(traced, type_ok | {"lemma": presumed_leader_has_an_epoch(k, s)}) == []
    # Without this guard the log outgrows its size.
    full = traced.drop("leader_write.log_not_full")
    lost = unproved(full, type_ok | {"lemma": presumed_leader_has_an_epoch(k, s)})
    assert lost == [("leader_write", "type_ok")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("guard", "lost"),
    [
        ("controller_elect_leader.in_quorum_isr", ("controller_elect_leader", "leader_in_isr")),
        ("become_leader.epoch_newer", ("become_leader", "leader_knows_the_isr")),
        ("become_follower.names_leader", ("become_follower", "leader_knows_the_isr")),
        ("leader_shrink_isr.true_leader", ("leader_shrink_isr", "leader_in_isr")),
    ],
)
def test_the_proof_fails_without_a_guard(guard: str, lost: tuple[str, str]) -> None:
    traced = fencing.traced("kip-320").drop(guard)
    assert lost in unproved(traced, conjuncts(traced))


def test_the_hypotheses_of_each_step_can_be_met() -> None:
    """No obligation above holds for want of a state: a small finite model of guards and lemmas exists for each."""
    traced = fencing.traced("kip-320")
    unbounded = Unbounded(traced)
    universe = unbounded.universe
    x, a, b = (z3.Const(name, universe.replica_sort) for name in "xab")
    world = [z3.Distinct(universe.none, a, b), z3.ForAll([x], z3.Or(x == universe.none, x == a, x == b))]
    for action in traced.actions:
        step = unbounded.step(action.name)
        solver = z3.Solver()
        solver.add(*world, *unbounded.constant_axioms, *unbounded.assumed(step))
        for term in conjuncts(traced).values():
            solver.add(unbounded.condition(term, unbounded.pre).formula)
        assert solver.check() == z3.sat, action.name


def test_the_lemmas_hold_in_every_reachable_state() -> None:
    system = ground(fencing.traced("kip-320"), SMALL)
    reference = Reference(system)
    states = exhaustive(system).states
    for lemma in LEMMAS:
        assert all(lemma(reference.k, IntState(system, state)) for state in states), lemma.__name__
        disturbed_states = disturbed(system, states, 50, SEED).states
        assert not all(lemma(reference.k, IntState(system, state)) for state in disturbed_states), lemma.__name__


def test_every_invariant_and_every_step_can_be_built_without_bounds() -> None:
    unbounded = Unbounded(fencing.traced("kip-320"))
    steps = {action.name: unbounded.step(action.name) for action in unbounded.traced.actions}
    for name in ("type_ok", *unbounded.traced.invariants):
        for step in steps.values():
            claim = unbounded.invariant(name, step.after)
            assert z3.is_bool(claim.formula)
            assert claim.definitions == ()
    # Only the truncation by first mismatch reads `last`, once: its guard and its two writes share the value.
    assert {name: len(step.definitions) for name, step in steps.items() if step.definitions} == {"become_follower": 2}


# Smaller facts of kip-320 with no bound.


def refuted(unbounded: Unbounded, step: Step, claim: Truth, *assumptions: z3.BoolRef) -> bool:
    solver = fresh_solver()
    solver.add(*unbounded.constant_axioms, *unbounded.assumed(step), *assumptions, z3.Not(claim))
    return bool(solver.check() != z3.unsat)


def test_the_leader_epoch_never_goes_back() -> None:
    unbounded = Unbounded(fencing.traced("kip-320"))
    for action in unbounded.traced.actions:
        step = unbounded.step(action.name)
        before, after = (s.read("next_leader_epoch", ()) for s in (step.before, step.after))
        assert not refuted(unbounded, step, after >= before)
        grows = action.name in ("controller_elect_leader", "controller_shrink_isr")
        assert refuted(unbounded, step, after > before) is not grows


def test_only_one_action_raises_the_high_watermark_of_a_leader() -> None:
    unbounded = Unbounded(fencing.traced("kip-320"))
    raising = []
    for action in unbounded.traced.actions:
        step = unbounded.step(action.name)
        leader = z3.Const("some_leader", unbounded.universe.replica_sort)
        presumes = both(leader != unbounded.universe.none, step.before.read("leader", (leader,)) == leader)
        before, after = (s.read("hw", (leader,)) for s in (step.before, step.after))
        if refuted(unbounded, step, after <= before, presumes):
            raising.append(action.name)
            assert not refuted(unbounded, step, after <= before + 1, presumes)
    assert raising == ["leader_inc_high_watermark"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "guard",
    [
        "become_follower.not_leader_itself",
        "become_follower.truncates_backward",
        "leader_shrink_isr.not_leader_itself",
    ],
)
def test_these_guards_are_implied_by_the_others(guard: str) -> None:
    """Dropping one of them is no mutant. All that is asked of the state is that log end offsets are naturals."""
    action, _, name = guard.partition(".")
    unbounded = Unbounded(fencing.traced("kip-320"))
    step = unbounded.step(action)
    others = [z3.BoolVal(g) if isinstance(g, bool) else g for n, g in step.guards.items() if n != name]
    natural = unbounded.forall((REPLICA,), lambda r: 0 <= unbounded.pre.read("leo", r))
    solver = fresh_solver()
    solver.add(*unbounded.constant_axioms, *step.definitions, natural, *others, z3.Not(step.guards[name]))
    assert solver.check() == z3.unsat
    # The other guards alone can hold: nothing above is vacuous.
    met = z3.Solver()
    met.add(*unbounded.constant_axioms, *step.definitions, *others)
    assert met.check() == z3.sat


def test_a_replica_by_number_means_nothing_without_bounds() -> None:
    unbounded = Unbounded(fencing.traced("kip-320"))
    with pytest.raises(ProtocolError, match="names replica 0"):
        unbounded.universe.replica(0)
    with pytest.raises(ProtocolError, match=r"become_leader takes leader, epoch, not leader"):
        unbounded.interpreter.step(unbounded.pre, "become_leader", {"leader": unbounded.universe.none})


def test_an_index_out_of_range_reads_the_dead_value() -> None:
    unbounded = Unbounded(fencing.traced("kip-320"))
    replica = z3.Const("some_replica", unbounded.universe.replica_sort)
    below = unbounded.pre.read("record_epoch", (replica, z3.IntVal(-1)))
    assert z3.simplify(below == -1).eq(z3.BoolVal(True))
    nobody = unbounded.pre.read("request_leader", (z3.IntVal(-1),))
    assert z3.simplify(nobody == unbounded.universe.none).eq(z3.BoolVal(True))
    assert EPOCH.name in unbounded.traced.protocol.indices


LEFT = """
import sys, types, z3
import fencepost.model.interpret.symbolic_values
left = types.ModuleType("left")
left.itself, left.context, left.terms = left, z3.main_ctx(), [z3.Int("x")]
for number in range(20_000):
    left.terms.append(z3.If(left.terms[-1] > number, left.terms[-1], left.terms[0]))
sys.modules["left"] = left
print("told")
"""
"""A process with a deep term that is left when it ends, where z3 took some five minutes to delete its context."""


def test_a_process_ends_when_all_is_told() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "told\n", "")
