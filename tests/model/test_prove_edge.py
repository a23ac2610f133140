"""What breaks only where an index ends is not proved: the last offset that a log has room for is one like any other.

Somebody takes the first free seat, and it is remembered which was taken last. Among as many seats as there are naturals
one is always left; among those that there are somebody may take a seat that is none.
"""

from __future__ import annotations

import pytest
from fencepost.model.core.algebra import Algebra, Step, Value, View
from fencepost.model.core.domains import Constants, Index, integers
from fencepost.model.core.errors import ProtocolError
from fencepost.model.core.ground import ground
from fencepost.model.core.mutants import mutant_named
from fencepost.model.core.protocol import ConstantSpec, Protocol
from fencepost.model.core.terms import Sort
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.interpret.symbolic_unbounded import Unbounded
from fencepost.model.prove.attached import attach
from fencepost.model.prove.implied import Implications, Relation
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.run import judge, prove

SEAT = Index("seat", Sort.INT, lambda c: c["seats"])


def seats() -> Protocol:
    protocol = Protocol("seats", "this test", constants=(ConstantSpec("seats", 2, 1, "the number of seats"),))
    protocol.variable("next", "the first free seat", integers(0, lambda c: c["seats"]))
    protocol.variable("taken", "1 for a seat that is taken", integers(0, lambda _: 1), per=(SEAT,))
    protocol.variable("last", "the seat taken last", integers(-1, lambda c: c["seats"]), initially=-1)
    protocol.variant("some", "some", "while some seat is free")
    protocol.variant("first", "first", "while there is a first free one")
    protocol.variant("any", "any", "whether one is free or not")

    @protocol.action()
    def take(k: Algebra, s: View) -> Step:
        """Somebody takes the first free seat."""

        def free(seat: Value) -> Value:
            return k.all(s.next <= seat, s.taken[seat] == 0)

        if k.rules == "some":
            yield "one_is_left", k.exists(SEAT, free)
        if k.rules == "first":
            yield "one_is_left", k.first(SEAT, free, -1) == s.next
        yield s.update(taken={s.next: 1}, next=k.min(s.next + 1, k.c.seats), last=s.next)

    @protocol.always
    def last_is_taken(k: Algebra, s: View) -> Value:
        """The seat that was taken last is taken."""
        return k.any(s.last == -1, s.taken[s.last] == 1)

    return protocol


def proof_of(variant: str) -> Proof:
    proof = Proof(seats(), variant, sizes=({"seats": 1}, {"seats": 2}))

    @proof.lemma(seat=SEAT)
    def taken_from_the_front(k: Algebra, s: View, seat: Value) -> Value:
        """No seat is taken behind the first free one."""
        return k.implies(s.next <= seat, s.taken[seat] == 0)

    @proof.hints("take")
    def _first_free(_k: Algebra, s: View) -> list[Value]:
        return [s.taken[s.next]]

    return proof


@pytest.mark.parametrize("variant", ["some", "first"])
def test_with_its_guard_it_is_proved(variant: str) -> None:
    proof = proof_of(variant)
    assert prove(attach(proof, proof.protocol.traced(variant))).verdict is Verdict.HOLDS


def test_what_breaks_at_the_last_seat_alone_is_violated() -> None:
    proof = proof_of("any")
    traced = proof.protocol.traced("any")
    run = prove(attach(proof, traced))
    assert run.verdict is Verdict.VIOLATED
    (failed,) = run.failed
    assert failed.obligation.name == "take.last_is_taken" and failed.counterexample is not None
    # It is the step from a state in which all seats are taken, and such a state is reached.
    assert failed.counterexample.state[0] == failed.counterexample.constants["seats"]
    found = explore(Query(ground(traced, {"seats": 2}), ("last_is_taken",)))
    assert found.verdict is Verdict.VIOLATED and found.depth == 4


@pytest.mark.parametrize("variant", ["some", "first"])
def test_a_guard_that_is_needed_at_the_last_seat_alone_is_not_implied(variant: str) -> None:
    proof = proof_of(variant)
    traced = proof.protocol.traced(variant)
    mutant = mutant_named(traced, "take.one_is_left dropped")
    assert Implications(proof, traced).judge(mutant.traced, "take").relation is Relation.UNKNOWN
    assert judge(proof, mutant.traced).verdict is Verdict.VIOLATED


@pytest.mark.parametrize(
    "size",
    [lambda c: max(c["seats"], 2), lambda c: c["seats"] // 2],
)
def test_a_size_that_is_no_sum_of_constants_is_refused(size: object) -> None:
    def wrong(constants: Constants) -> int:
        return int(size(constants))  # type: ignore[operator]

    protocol = seats()
    protocol.variable("more", "more", integers(0, lambda _: 1), per=(Index("half", Sort.INT, wrong),))
    with pytest.raises(ProtocolError, match="the bound of half is more than sums of constants"):
        Unbounded(protocol.traced("any")).invariant("type_ok")


def test_other_replicas_than_all_are_refused() -> None:
    protocol = seats()
    protocol.variable("more", "more", integers(0, lambda _: 1), per=(Index("voter", Sort.REPLICA, lambda _: 2),))
    with pytest.raises(ProtocolError, match="voter is no index: only REPLICA is"):
        Unbounded(protocol.traced("any")).invariant("type_ok")
