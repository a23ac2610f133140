"""What breaks only where an index ends is not proved: the last offset that a log has room for is one like any other.

Somebody takes the first free seat, and it is remembered which was taken last. Among as many seats as there are naturals
one is always left; among those that there are somebody may take a seat that is none.
"""

from __future__ import annotations

import pytest
from fencepost.model.core.algebra import Algebra, Step, Value, View
from fencepost.model.core.domains import Index, Size, integers
from fencepost.model.core.errors import BadText, ProtocolError
from fencepost.model.core.ground import ground
from fencepost.model.core.mutants import mutant_named
from fencepost.model.core.protocol import ConstantSpec, Protocol
from fencepost.model.core.symbolic_size import SumOfConstants
from fencepost.model.core.terms import Sort
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.interpret.symbolic_unbounded import Unbounded
from fencepost.model.prove.implied import Implications, Relation
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.proof_for_variant import attach
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


def sized(size: Size) -> Protocol:
    protocol = seats()
    protocol.variable("more", "more", integers(0, lambda _: 1), per=(Index("half", Sort.INT, size),))
    return protocol


WRONG: dict[str, Size] = {
    "max": lambda c: max(c["seats"], 2),
    "//": lambda c: c["seats"] // 2,
    "if ==": lambda c: 1 if c["seats"] == c["seats"] else 2,
    "==": lambda c: c["seats"] == 2,
    "+ ==": lambda c: c["seats"] + (c["seats"] == 2),
    "if !=": lambda c: 2 if c["seats"] != 1 else 1,
    "*": lambda c: 2 * c["seats"],
    "%": lambda c: c["seats"] % 2 + 1,
    "<<": lambda c: 1 << c["seats"],
    "if": lambda c: c["seats"] if c["seats"] else 1,
    "in": lambda c: 1 if c["seats"] in (1, 2) else 2,
    "dict": lambda c: {1: 2}.get(c["seats"], 3),
    "text": lambda c: len(f"{c['seats']}"),
    "float": lambda c: c["seats"] + 0.5,  # type: ignore[dict-item, return-value]
    "pair": lambda c: (c["seats"], 1),  # type: ignore[dict-item, return-value]
}


@pytest.mark.parametrize("name", WRONG)
def test_a_size_that_is_no_sum_of_constants_is_refused_with_its_line(name: str) -> None:
    """At finite constants each of them is a number like any other: only a proof cannot take it."""
    size = WRONG[name]
    unbounded = Unbounded(sized(size).traced("any"))
    with pytest.raises(BadText, match=r"the size of half.*give it by . and -, as in") as refused:
        unbounded.invariant("type_ok")
    assert refused.value.where.endswith(f"test_prove_edge.py, line {size.__code__.co_firstlineno}")
    protocol = seats()
    protocol.variable("more", "more", integers(0, size))
    with pytest.raises(BadText, match="the bound of a value"):
        Unbounded(protocol.traced("any")).invariant("type_ok")
    protocol = seats()
    protocol.variable("more", "more", integers(0, lambda _: 9), initially=size)
    with pytest.raises(BadText, match="the initial value of more"):
        Unbounded(protocol.traced("any")).initial()


@pytest.mark.parametrize(
    ("size", "comes_to"),
    [
        (lambda c: c["seats"] + c["seats"] - 1, "seats*2 - 1"),
        (lambda c: -(1 - c["seats"]) + 3, "seats + 2"),
        (lambda c: sum(c.values()), "seats"),
        (lambda _: 3, "3"),
        (lambda c: c["seats"] - c["seats"] + 3, "3"),
    ],
)
def test_a_size_that_is_a_sum_of_constants_is_taken(size: Size, comes_to: str) -> None:
    assert str(Unbounded(seats().traced("any")).universe.sized(size, "it")) == comes_to
    protocol = sized(size)
    assert Unbounded(protocol.traced("any")).invariant("type_ok").formula is not None
    assert explore(Query.of(ground(protocol.traced("any"), {"seats": 3}), ("type_ok",))).verdict is Verdict.HOLDS


def test_a_comparison_that_python_lets_pass_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: constants are compared as Python compares any objects, and one answer is taken for all."""
    monkeypatch.setattr(SumOfConstants, "__eq__", object.__eq__)
    with pytest.raises(pytest.fail.Exception):
        test_a_size_that_is_no_sum_of_constants_is_refused_with_its_line("if ==")


def test_other_replicas_than_all_are_refused() -> None:
    protocol = seats()
    protocol.variable("more", "more", integers(0, lambda _: 1), per=(Index("voter", Sort.REPLICA, lambda _: 2),))
    with pytest.raises(ProtocolError, match="voter is no index: only REPLICA is"):
        Unbounded(protocol.traced("any")).invariant("type_ok")
