"""What a proved invariant implies of a mutant's steps, and that nothing else comes out as implied."""

from __future__ import annotations

import pytest
import z3
from fencepost.model.core import terms
from fencepost.model.core.domains import REPLICA
from fencepost.model.core.errors import ProtocolError
from fencepost.model.core.mutants import mutant_named
from fencepost.model.core.registry import PROTOCOLS, REGISTRY
from fencepost.model.core.tracer import TracedState, Tracer
from fencepost.model.explore import Verdict
from fencepost.model.interpret.symbolic_terms import Bound, Reading
from fencepost.model.interpret.symbolic_unbounded import Unbounded
from fencepost.model.interpret.symbolic_values import Truth
from fencepost.model.protocols.snapshots.state import OFFSET
from fencepost.model.prove.implied import Implications, Implied, Relation
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import prove

FENCING = PROTOCOLS["fencing"].traced("kip-320")
SNAPSHOTS = PROTOCOLS["snapshots"].traced("kip-630-safe")


def proof_of(protocol: str) -> Proof:
    proof = REGISTRY[protocol].find_proof()
    assert proof is not None
    return proof


@pytest.fixture(scope="module")
def fencing() -> Implications:
    return Implications(proof_of("fencing"), FENCING)


@pytest.fixture(scope="module")
def snapshots() -> Implications:
    return Implications(proof_of("snapshots"), SNAPSHOTS)


def relation(implications: Implications, name: str) -> Relation:
    mutant = mutant_named(implications.traced, name)
    return implications.judge(mutant.traced, mutant.action).relation


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # By the guards beside it; by a promise; by a lemma; under a quantifier, and in what is written too.
        ("become_leader.request_sent dropped", Relation.SAME),
        ("leader_expand_isr.hw_reached_epoch bound 1 +1", Relation.SAME),
        ("follower_fetch.epoch_not_fenced bound +1", Relation.SAME),
        ("leader_inc_high_watermark.isr_acknowledges bound 2 +1", Relation.SAME),
        ("become_follower.truncates_backward bound 2 +1", Relation.SAME),
        ("leader_shrink_isr.in_isr dropped", Relation.STILL),
        ("leader_expand_isr.outside_isr dropped", Relation.STILL),
        ("leader_shrink_isr.not_caught_up bound 2 +1", Relation.FEWER),
        ("controller_shrink_isr.epoch_available bound -1", Relation.FEWER),
        # It has more steps, and no promise breaks.
        ("controller_elect_leader.not_leader_yet dropped", Relation.UNKNOWN),
        # It has the same steps, by what no lemma says.
        ("follower_fetch.follows_leader dropped", Relation.UNKNOWN),
    ],
)
def test_steps_are_implied_or_not(fencing: Implications, name: str, expected: Relation) -> None:
    assert relation(fencing, name) is expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name",
    [
        "follower_fetch.epoch_not_fenced dropped",
        "become_follower.leader_epoch_matches dropped",
        "leader_inc_high_watermark.isr_acknowledges dropped",
        "leader_inc_high_watermark.isr_acknowledges bound 1 +1",
        "leader_expand_isr.hw_reached_epoch dropped",
        "leader_expand_isr.true_leader dropped",
        # In an effect alone.
        "follower_fetch.hw' bound +1",
    ],
)
def test_a_guard_or_a_bound_that_is_needed_is_not_implied(fencing: Implications, name: str) -> None:
    assert relation(fencing, name) is Relation.UNKNOWN


def test_what_is_implied_of_a_snapshots_effects(snapshots: Implications) -> None:
    """Both forms of an action choose the latest snapshot, by conditions of their own."""
    assert relation(snapshots, "follower_start_over.snapshot_exists bound 2 +1") is Relation.SAME
    assert relation(snapshots, "follower_fetch.lbo' bound 3 +1") is Relation.UNKNOWN


def parsed(implied: Implied) -> list[list[str]]:
    """What z3 reads; of the same formulas its printer may abbreviate other parts."""
    return [[each.sexpr() for each in z3.parse_smt2_string(asked.smt, ctx=z3.Context())] for asked, _ in implied.asked]


def test_neither_seed_nor_what_was_asked_before_changes_a_question(fencing: Implications) -> None:
    mutant = mutant_named(FENCING, "become_follower.truncates_backward bound 2 +1")
    other = Implications(proof_of("fencing"), FENCING, seed=7)
    before = other.judge(mutant.traced, mutant.action)
    relation(other, "leader_shrink_isr.in_isr dropped")
    for after in (other.judge(mutant.traced, mutant.action), fencing.judge(mutant.traced, mutant.action)):
        assert parsed(after) == parsed(before)
        assert after.relation is before.relation is Relation.SAME


def test_a_wrong_lemma_implies_what_is_not_so_and_is_not_proved(proof_with_a_wrong_lemma: Proof) -> None:
    """So nothing may be said of a mutant before the proof of the variant itself has gone through."""
    proof = proof_with_a_wrong_lemma
    assert relation(Implications(proof, FENCING), "follower_fetch.epoch_not_fenced dropped") is Relation.SAME
    run = prove(attach(proof, FENCING), conjuncts=["followers_are_never_late"], witnesses=False, first=True)
    assert run.verdict is Verdict.VIOLATED


def test_of_definitions_that_contradict_each_other_nothing_is_implied(monkeypatch: pytest.MonkeyPatch) -> None:
    """By such a one every step is refuted, and so every guard would be implied."""
    implications = Implications(proof_of("truncation"), PROTOCOLS["truncation"].traced("kip-320-mended"))
    implied, needed = "elect_cleanly.hw' bound 2 +1", "elect_uncleanly.lacks_committed bound 2 -1"
    assert relation(implications, implied) is not Relation.UNKNOWN
    assert relation(implications, needed) is Relation.UNKNOWN
    define = Reading._define

    def wrongly(self: Reading, *axioms: Truth) -> None:
        define(self, *axioms, False)

    monkeypatch.setattr(Reading, "_define", wrongly)
    assert relation(implications, implied) is relation(implications, needed) is Relation.UNKNOWN


def test_a_proof_of_another_variant_is_refused() -> None:
    with pytest.raises(ProtocolError, match="this is a proof of fencing kip-320"):
        Implications(proof_of("fencing"), PROTOCOLS["fencing"].traced("kip-279"))


def test_a_last_one_is_there_whatever_it_is_asked_of() -> None:
    """A shifted bound may hold at every dead cell; a last one of all naturals would be a contradiction."""
    unbounded = Unbounded(SNAPSHOTS)
    k, s = Tracer(SNAPSHOTS.variant.rules), TracedState(SNAPSHOTS.variables)
    replica = terms.node("param", (), REPLICA.sort, "replica")
    term = terms.lift(k.last(OFFSET, lambda o: s.snapshot_size[replica, o] > -2, -1))
    bound = {replica: Bound(z3.Const("r", unbounded.universe.replica_sort), REPLICA)}
    reading = unbounded.interpreter.reading(unbounded.pre, bound)
    found = reading(term)
    solver = z3.Solver()
    solver.add(*reading.definitions, unbounded.universe.constants["log_size"] == 3)
    solver.add(
        *(unbounded.pre.functions["snapshot_size"]((bound[replica].value, found + i)) == 0 for i in range(-3, 4))
    )
    assert solver.check() == z3.sat
    assert solver.model().eval(found).as_long() == 2
