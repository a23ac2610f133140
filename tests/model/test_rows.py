"""Rows: an update that writes every cell along an index, each to a value that depends on its index.

A cluster has partitions, each with a leader, an ISR and an epoch; every interpreter must agree on what fencing a broker
makes of all of them at once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import z3
from fencepost.model.core import terms
from fencepost.model.core.algebra import EVERY, View
from fencepost.model.core.budget import ground_size
from fencepost.model.core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, Index, all_replicas, integers
from fencepost.model.core.enumeration import enumeration
from fencepost.model.core.ground import Params, State, System, ground
from fencepost.model.core.mutants import mutant_named, mutants
from fencepost.model.core.pretty import show
from fencepost.model.core.protocol import ConstantSpec, Protocol
from fencepost.model.core.terms import Sort, Term
from fencepost.model.core.traced_variant import Text
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.interpret.batch import Batch
from fencepost.model.interpret.reference import IntState, Reference
from fencepost.model.interpret.staged import stage
from fencepost.model.interpret.symbolic_unbounded import Unbounded
from fencepost.model.prove.crosscheck import crosscheck, exhaustive, sampled
from fencepost.traces.shipping import digest_of

from .concrete import Concrete
from .conftest import COMPILED

PARTITION = Index("partition", Sort.INT, lambda c: c["partitions"])
Side = enumeration("side", "left", "right")
SEED = 631
AT = {"replicas": 2, "partitions": 2}


def cluster() -> Protocol:
    protocol = Protocol(
        "cluster",
        "this test",
        constants=(ConstantSpec("replicas", 2, 1, "brokers"), ConstantSpec("partitions", 2, 1, "partitions")),
    )
    protocol.variant("plain", True, "the only one")
    protocol.variable("leader", "a partition's leader", OPTIONAL_REPLICA, per=(PARTITION,), initially=-1)
    protocol.variable("isr", "a partition's ISR", REPLICA_SET, per=(PARTITION,), initially=all_replicas)
    protocol.variable("epoch", "a partition's epoch", integers(0, lambda _: 2), per=(PARTITION,))
    protocol.variable("fenced", "who is fenced", REPLICA_SET)
    protocol.variable("side", "where a broker stands", Side, per=(REPLICA,))
    protocol.variable(
        "seen",
        "the epoch of a partition as a broker that is not fenced knows it",
        integers(-1, lambda _: 2),
        per=(REPLICA, PARTITION),
        initially=-1,
        live=lambda k, s, replica, _partition: k.negate(k.member(replica, s.fenced)),
        unset=True,
    )

    @protocol.action(broker=REPLICA)
    def fence(k: Any, s: View, broker: Any) -> Any:
        """Each partition loses the broker: as its leader, and from its ISR, but for the last member."""
        yield "is_unfenced", k.negate(k.member(broker, s.fenced))

        def leaves(partition: Any) -> Any:
            return k.all(k.member(broker, s.isr[partition]), s.isr[partition] != k.only(broker))

        yield s.update(
            fenced=k.with_member(s.fenced, broker),
            leader={EVERY: lambda p: k.ite(s.leader[p] == broker, k.NONE, s.leader[p])},
            isr={EVERY: lambda p: k.ite(leaves(p), k.without_member(s.isr[p], broker), s.isr[p])},
            epoch={EVERY: lambda p: k.ite(s.leader[p] == broker, k.min(s.epoch[p] + 1, 2), s.epoch[p])},
        )

    @protocol.action(broker=REPLICA, partition=PARTITION)
    def elect(k: Any, s: View, broker: Any, partition: Any) -> Any:
        yield "none_leads", s.leader[partition] == k.NONE
        yield "in_isr", k.member(broker, s.isr[partition])
        yield "is_unfenced", k.negate(k.member(broker, s.fenced))
        yield s.update(leader={partition: broker})

    @protocol.action(broker=REPLICA)
    def unfence(k: Any, s: View, broker: Any) -> Any:
        """The broker comes back with what it can know; a cell that is written later counts."""
        yield "is_fenced", k.member(broker, s.fenced)
        yield s.update(
            fenced=k.without_member(s.fenced, broker),
            seen={(broker, EVERY): lambda p: s.epoch[p], (broker, 0): -1},
        )

    @protocol.action()
    def publish(k: Any, s: View) -> Any:
        """Every broker learns of every partition what the epoch is; of who is fenced the cells are dead."""
        yield "led", k.exists(PARTITION, lambda p: s.leader[p] != k.NONE)
        yield s.update(seen={(EVERY, EVERY): lambda r, p: k.ite(s.leader[p] == r, s.epoch[p], s.seen[r, p])})

    @protocol.action(one=PARTITION)
    def swap(_k: Any, s: View, one: Any) -> Any:
        """What is known of one partition becomes what is known of the first one, and the other way round."""
        yield "another", one > 0
        yield s.update(seen={(EVERY, one): lambda r: s.seen[r, 0], (EVERY, 0): lambda r: s.seen[r, one]})

    @protocol.action()
    def turn(k: Any, s: View) -> Any:
        """Everybody changes sides: a row of an enumeration."""
        yield "one_left", k.exists(REPLICA, lambda r: s.side[r] == Side.left)
        yield s.update(side={EVERY: lambda r: k.ite(s.side[r] == Side.left, Side.right, Side.left)})

    @protocol.action()
    def level(k: Any, s: View) -> Any:
        """Each partition takes the epoch of the first one that has none smaller: a value that is looked for."""
        yield "differ", k.exists(PARTITION, lambda p: s.epoch[p] != s.epoch[0])
        yield s.update(epoch={EVERY: lambda p: s.epoch[k.first(PARTITION, lambda q: s.epoch[q] >= s.epoch[p], 0)]})

    @protocol.always
    def leads_while_unfenced(k: Any, s: View) -> Any:
        return k.forall(PARTITION, lambda p: k.any(s.leader[p] == k.NONE, k.negate(k.member(s.leader[p], s.fenced))))

    @protocol.always
    def isr_is_never_empty(k: Any, s: View) -> Any:
        return k.forall(PARTITION, lambda p: s.isr[p] != k.EMPTY)

    return protocol


CLUSTER = cluster()


@pytest.fixture(scope="module")
def system() -> System:
    return ground(CLUSTER.traced(), AT)


def test_reference_staged_and_batch_take_the_same_steps(system: System) -> None:
    reference, staged, batch = Reference(system), stage(system), Batch(system)
    states = exhaustive(system).states
    assert len(states) > 500
    keys = np.stack([batch.packing.key(s) for s in states], axis=1)
    found: dict[State, set[tuple[str, Params, State]]] = {s: set() for s in states}
    for candidates in batch.successors(batch.block(keys), keys):
        instance = system.instances[candidates.instance]
        for row, key in zip(candidates.rows, candidates.keys.T, strict=True):
            found[states[row]].add((instance.action, instance.params, batch.packing.state(key)))
    for state in states:
        steps = set(reference.successors(state))
        compiled = {
            (system.instances[n].action, system.instances[n].params, after) for n, after in staged.successors(state)
        }
        assert found[state] == compiled == steps


def test_both_engines_count_alike(system: System) -> None:
    answers = [explore(Query.of(system), engine) for engine in ("batch", "reference", *COMPILED)]
    assert {answer.verdict for answer in answers} == {Verdict.HOLDS}
    assert len({(answer.distinct, answer.depth) for answer in answers}) == 1


def test_the_finite_relation_is_the_reference(system: System) -> None:
    check = crosscheck(system, sampled(system, 400, SEED), SEED)
    assert (check.verdict, check.first_failure) == (Verdict.HOLDS, None)
    assert set(check.by_action) == set(system.actions)


def test_the_unbounded_relation_takes_the_steps_of_the_reference(system: System) -> None:
    concrete = Concrete(system, Unbounded(system.traced))
    sample = exhaustive(system)
    asked: Counter[str] = Counter()
    for transition in sample.transitions[::40]:
        if asked[transition.action] < 8:
            asked[transition.action] += 1
            assert concrete.takes(transition), transition
    assert set(asked) == set(system.actions)
    assert all(concrete.refuses(step) for step in sample.refused[::400])


def test_the_comparison_with_the_unbounded_relation_sees_a_wrong_cell_of_a_row(system: System) -> None:
    concrete = Concrete(system, Unbounded(system.traced))
    fence = next(t for t in exhaustive(system).transitions if t.action == "fence" and 1 in t.state[:2])
    assert concrete.takes(fence)
    for cell in (system.layout.by_name["epoch[0]"], system.layout.by_name["epoch[1]"]):
        after = list(fence.after)
        after[cell] = 2 - after[cell] if after[cell] != 1 else 0
        assert not concrete.takes(fence._replace(after=tuple(after)))


def test_what_is_written_is_what_the_text_says(system: System) -> None:
    def step(action: str, params: Params = (), **cells: int) -> dict[str, int]:
        before = list(system.initial)
        for name, value in cells.items():
            before[system.layout.by_name[name]] = value
        after = Reference(system).step(tuple(before), action, params)
        assert after is not None
        return {c.name: after[c.number] for c in system.layout.cells if after[c.number] != before[c.number]}

    def at(name: str, *index: int) -> str:
        return name + "".join(f"[{i}]" for i in index)

    led = {at("leader", 0): 0, at("leader", 1): 1, at("isr", 1): 0b10}
    # Each partition by itself: one loses its leader, the other is not led by that broker, and keeps what it has.
    assert step("fence", (("broker", 0),), **led) == {"fenced": 1, "leader[0]": -1, "isr[0]": 0b10, "epoch[0]": 1}
    assert step("fence", (("broker", 1),), **led) == {"fenced": 2, "leader[1]": -1, "isr[0]": 0b01, "epoch[1]": 1}
    # All values are read in the state before the step.
    known = {at("seen", 0, 0): 1, at("seen", 0, 1): 2, at("seen", 1, 1): 0}
    swapped = {"seen[0][0]": 2, "seen[0][1]": 1, "seen[1][0]": 0, "seen[1][1]": -1}
    assert step("swap", (("one", 1),), **known) == swapped
    # The later of two writes of one cell counts.
    epochs = {"epoch[0]": 2, "epoch[1]": 1}
    assert step("unfence", (("broker", 0),), fenced=1, **epochs) == {"fenced": 0, "seen[0][1]": 1}
    assert step("turn", **{"side[1]": 1}) == {"side[0]": 1, "side[1]": 0}


def targets(of: System, action: str) -> list[str]:
    return [f"{show(target)} := {show(value)}" for target, value in of.traced.action(action).writes]


def test_a_row_is_two_terms(system: System) -> None:
    fence = targets(system, "fence")
    assert fence[1] == "leader[partition*] := if (leader[partition*] == broker) then NONE else leader[partition*]"
    assert targets(system, "swap") == [
        "seen[replica*][one] := seen[replica*][0]",
        "seen[replica*][0] := seen[replica*][one]",
    ]
    publish = "seen[replica*][partition*] := if (leader[partition*] == replica*) then epoch[partition*] else "
    assert targets(system, "publish") == [publish + "seen[replica*][partition*]"]
    # Terms are interned: the same text gives the same terms, whatever else was traced before.
    assert digest_of(CLUSTER) == digest_of(cluster())


def test_an_index_that_no_value_depends_on_stays_every() -> None:
    protocol = cluster()

    @protocol.action()
    def reset(k: Any, s: View) -> Any:
        yield "any", k.member(s.leader[0], s.isr[0])
        yield s.update(seen={(EVERY, EVERY): lambda _r, p: s.epoch[p]}, epoch={EVERY: lambda _: 0})

    of = ground(protocol.traced(), AT)
    assert targets(of, "reset") == ["seen[*][partition*] := epoch[partition*]", "epoch[*] := 0"]
    check = crosscheck(of, sampled(of, 300, SEED), SEED)
    assert check.verdict is Verdict.HOLDS and check.by_action["reset"]


def test_two_places_of_one_index_are_told_apart() -> None:
    """A matrix that is turned over: both indices of the row range over one index."""
    protocol = cluster()
    protocol.variable("heard", "whom a broker has heard", integers(0, lambda _: 1), per=(REPLICA, REPLICA))

    @protocol.action(one=REPLICA, other=REPLICA)
    def hear(_k: Any, s: View, one: Any, other: Any) -> Any:
        yield "news", s.heard[one, other] == 0
        yield s.update(heard={(one, other): 1})

    @protocol.action()
    def mirror(k: Any, s: View) -> Any:
        yield "some", k.exists(REPLICA, lambda r: s.heard[r, r] == 0)
        yield s.update(heard={(EVERY, EVERY): lambda a, b: s.heard[b, a]})

    of = ground(protocol.traced(), {"replicas": 2, "partitions": 1})
    reference, before = Reference(of), list(of.initial)
    before[of.layout.by_name["heard[0][1]"]] = 1
    after = reference.step(tuple(before), "mirror", ())
    assert after is not None
    assert [after[of.layout.by_name[f"heard[{a}][{b}]"]] for a, b in product(range(2), range(2))] == [0, 0, 1, 0]
    check = crosscheck(of, sampled(of, 300, SEED), SEED)
    assert check.verdict is Verdict.HOLDS and check.by_action["mirror"]


def test_a_shifted_bound_of_a_row_is_read_from_the_terms(system: System) -> None:
    """The mutant has no text: each engine reads its terms, the reference too."""
    name = "fence.epoch' bound 1 -1"
    assert name in {mutant.name for mutant in mutants(system.traced)}
    of = ground(mutant_named(system.traced, name).traced, AT)
    reference, staged = Reference(of), stage(of)
    differs = 0
    for state in exhaustive(system).states[::7]:
        steps = set(reference.successors(state))
        assert {(of.instances[n].action, of.instances[n].params, a) for n, a in staged.successors(state)} == steps
        differs += steps != set(Reference(system).successors(state))
    assert differs
    check = crosscheck(of, sampled(of, 300, SEED), SEED)
    assert check.verdict is Verdict.HOLDS and check.by_action["fence"]


def test_a_wrong_reading_of_a_row_is_found(system: System) -> None:
    """The planted fault: every cell of the row gets the value of the first, behind the text's back."""
    fence = system.traced.action("fence")

    def first(target: Term, value: Term) -> tuple[Term, Term]:
        for _, bound in terms.row(target):
            value = _put(value, bound, terms.const(0))
            target = terms.node("var", (terms.every(Sort.INT),), target.sort, target.value)
        return target, value

    wrong = replace(fence, writes=tuple(first(target, value) for target, value in fence.writes))
    traced = replace(system.traced, actions=(wrong, *system.traced.actions[1:]))
    right, planted = stage(system), stage(ground(traced, AT))
    states = exhaustive(system).states
    assert any(dict(right.successors(state)) != dict(planted.successors(state)) for state in states)


def _put(term: Term, old: Term, new: Term) -> Term:
    if term is old:
        return new
    return terms.rebuild(term, tuple(_put(a, old, new) for a in term.args)) if term.args else term


def test_a_row_is_counted_once_for_each_of_its_cells() -> None:
    """Twice as many partitions make at least twice the work on the values of ``fence``'s rows."""
    sizes = [ground_size(CLUSTER.traced(), {"replicas": 2, "partitions": n}).work for n in (2, 20, 40)]
    assert sizes[2] > 2 * sizes[1] > 20 * sizes[0]


# With no bound.


def unproved(protocol: Protocol, action: str, claims: dict[str, Any]) -> set[str]:
    """The claims that z3 does not find to hold after an action wherever all of them held before."""
    traced = protocol.traced()
    unbounded = Unbounded(traced)
    k, s = _text(protocol)
    conditions = {name: claim(k, s) for name, claim in claims.items()}
    step = unbounded.step(action)
    before = [unbounded.condition(term, unbounded.pre).formula for term in conditions.values()]
    failed = set()
    for name, term in conditions.items():
        solver = z3.Solver()
        solver.set(auto_config=False, mbqi=False, random_seed=0, rlimit=20_000_000)
        after = unbounded.condition(term, step.after).formula
        solver.add(*unbounded.constant_axioms, *before, *unbounded.assumed(step), z3.Not(after))
        if solver.check() != z3.unsat:
            failed.add(name)
    return failed


def _text(protocol: Protocol) -> tuple[Any, Any]:
    text = Text(protocol, protocol.variants["plain"])
    return text.k, text.s


CLAIMS = {"leads_while_unfenced": CLUSTER.invariants["leads_while_unfenced"].text}


def test_any_number_of_partitions_lose_a_broker_at_once() -> None:
    for action in CLUSTER.traced().actions:
        assert unproved(CLUSTER, action.name, CLAIMS) == set(), action.name


def test_a_row_that_leaves_out_a_condition_is_not_proved() -> None:
    """The planted fault: who is fenced goes on leading, of every partition but the first."""
    protocol = cluster()

    @protocol.action(broker=REPLICA)
    def fence_badly(k: Any, s: View, broker: Any) -> Any:
        yield "is_unfenced", k.negate(k.member(broker, s.fenced))
        yield s.update(
            fenced=k.with_member(s.fenced, broker),
            leader={EVERY: lambda p: k.ite(k.all(p == 0, s.leader[p] == broker), k.NONE, s.leader[p])},
        )

    assert unproved(protocol, "fence_badly", CLAIMS) == {"leads_while_unfenced"}


def votes() -> Protocol:
    """Each partition is decided where a majority has voted for it."""
    protocol = cluster()
    protocol.variable("voters", "all of them", REPLICA_SET, initially=all_replicas)
    protocol.variable("votes", "who has voted for it", REPLICA_SET, per=(PARTITION,))
    protocol.variable("decided", "1 where it is decided", integers(0, lambda _: 1), per=(PARTITION,))

    @protocol.action()
    def decide(k: Any, s: View) -> Any:
        yield "open", k.exists(PARTITION, lambda p: s.decided[p] == 0)
        yield s.update(decided={EVERY: lambda p: k.ite(k.majority(s.votes[p], s.voters), 1, s.decided[p])})

    @protocol.action(one=PARTITION)
    def decide_all(k: Any, s: View, one: Any) -> Any:
        """One partition's majority decides them all: one question, and one answer for the whole row."""
        yield "another", one > 0
        yield s.update(decided={EVERY: lambda p: k.ite(k.majority(s.votes[one], s.voters), 1, s.decided[p])})

    return protocol


def test_a_majority_in_a_row_is_asked_of_each_cell() -> None:
    """Were one name to stand for all of these questions, all partitions would be decided alike."""

    def same(k: Any, s: Any) -> Any:
        return k.forall(PARTITION, lambda p: k.forall(PARTITION, lambda q: s.decided[p] == s.decided[q]))

    assert unproved(votes(), "decide", {"same": same}) == {"same"}
    assert unproved(votes(), "decide_all", {"same": same}) == set()


def test_a_value_that_is_looked_for_in_a_row_is_one_for_each_cell() -> None:
    """After ``level`` no partition's epoch is smaller than it was, which the definition of the first one says."""
    unbounded = Unbounded(CLUSTER.traced())
    step = unbounded.step("level")
    p = z3.Int("p")
    solver = z3.Solver()
    solver.set(auto_config=False, mbqi=False, random_seed=0, rlimit=20_000_000)
    inside = unbounded.universe.inside(PARTITION, p)
    positive = unbounded.condition(_positive(), unbounded.pre).formula
    solver.add(*unbounded.constant_axioms, *unbounded.assumed(step), inside, positive)
    before, after = (state.read("epoch", (p,)) for state in (unbounded.pre, step.after))
    solver.push()
    solver.add(after < before)
    assert solver.check() == z3.unsat
    solver.pop()
    solver.add(after != before)
    assert solver.check() != z3.unsat


def _positive() -> Term:
    k, s = _text(CLUSTER)
    return k.forall(PARTITION, lambda p: s.epoch[p] >= 0)


def test_a_function_is_called_with_the_values_of_the_index(system: System) -> None:
    """The reference gives it plain ints, in any order."""
    state = IntState(system, system.initial)
    update = state.update(epoch={EVERY: lambda p: p})
    ((name, index, value),) = update.writes
    assert (name, index, [value(p) for p in range(2)]) == ("epoch", (EVERY,), [0, 1])
