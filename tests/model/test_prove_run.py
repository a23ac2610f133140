"""How a proof is written and run, on a protocol small enough to see through: a token that replicas pass on."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import z3
from fencepost.model.core.algebra import Algebra, Step, Value, View
from fencepost.model.core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, Index, integers
from fencepost.model.core.errors import BadInput, ProtocolError
from fencepost.model.core.protocol import ConstantSpec, Protocol
from fencepost.model.core.terms import Sort
from fencepost.model.core.tracer import TracedState, Tracer
from fencepost.model.explore import Verdict
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.proof import kip_320
from fencepost.model.prove.finite import Concrete
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof import Ghosts, Proof
from fencepost.model.prove.proof_for_variant import attach, prenex, split
from fencepost.model.prove.run import judge, prove
from fencepost.model.prove.solve import ask

TURN = Index("turn", Sort.INT, lambda c: c["turns"] + 1)


def token() -> Protocol:
    """Whoever holds the token passes it on to a replica that never had it; each turn has a number."""
    protocol = Protocol(
        "token",
        "this test",
        constants=(
            ConstantSpec("replicas", 2, 1, "the number of replicas"),
            ConstantSpec("turns", 2, 1, "the number of turns"),
        ),
    )
    protocol.variable("turn", "how often it was passed on", integers(0, lambda c: c["turns"]))
    protocol.variable("holder", "who holds the token", OPTIONAL_REPLICA, initially=-1)
    protocol.variable("had", "who had it before", REPLICA_SET)
    protocol.variant("safe", None, "as it should be")

    @protocol.action(to=REPLICA)
    def pass_on(k: Algebra, s: View, to: Value) -> Step:
        """The token goes to a replica that did not have it."""
        yield "turns_left", s.turn < k.c.turns
        yield "another", s.holder != to
        yield "never_had_it", k.negate(k.member(to, s.had))
        yield s.update(turn=s.turn + 1, holder=to, had=k.with_member(s.had, s.holder))

    @protocol.always
    def had_no_holder(k: Algebra, s: View) -> Value:
        """Whoever holds the token did not have it before."""
        return k.negate(k.member(s.holder, s.had))

    return protocol


def proof_of_token(protocol: Protocol | None = None) -> Proof:
    """With the turn in which each replica got the token as a ghost."""
    proof = Proof(protocol or token(), "safe", sizes=({"replicas": 2, "turns": 2},))
    proof.ghost("got", "who got the token in a turn", OPTIONAL_REPLICA, per=(TURN,), initially=-1)

    @proof.updates("pass_on")
    def _got(k: Algebra, s: View, to: Value) -> Ghosts:
        return {"got": lambda turn: k.ite(turn == s.turn + 1, to, s.got[turn])}

    @proof.lemma()
    def last_to_get_it_holds_it(_k: Algebra, s: View) -> Value:
        """The holder is who got the token last."""
        return s.got[s.turn] == s.holder

    @proof.lemma(turn=TURN)
    def who_had_it_got_it(k: Algebra, s: View, turn: Value) -> Value:
        """Who got it before, had it."""
        return k.implies(k.all(turn < s.turn, s.got[turn] != k.NONE), k.member(s.got[turn], s.had))

    return proof


def test_it_is_proved_with_its_ghost() -> None:
    attached = attach(proof_of_token(), token().traced())
    run = prove(attached)
    assert run.verdict is Verdict.HOLDS
    assert [r.obligation.name for r in run.results][:2] == ["initial.type_ok", "initial.had_no_holder"]
    assert len(run.results) == 2 * 4
    assert [w.action for w in run.witnesses] == ["pass_on"]
    assert "got" in attached.traced.variables and "got" not in attached.base.variables
    # What is promised is the protocol's; the text and its variables are as they were.
    assert [c.name for c in attached.conjuncts.values() if c.promise] == ["type_ok", "had_no_holder"]
    assert list(attached.base.variables) == ["turn", "holder", "had"]


def test_threads_change_no_answer() -> None:
    attached = attach(proof_of_token(), token().traced())
    told: list[str] = []
    alone = prove(attached)
    run = prove(attached, workers=3, on_obligation=lambda _number, _of, name: told.append(name))
    assert [(r.obligation.name, r.verdict, r.answer.resources) for r in run.results] == [
        (r.obligation.name, r.verdict, r.answer.resources) for r in alone.results
    ]
    assert told == [r.obligation.name for r in run.results]
    # What is still asked when a counterexample ends the run is let go.
    dropped = attach(proof_of_token(), token().traced().drop("pass_on.another"))
    stopped = prove(dropped, workers=3, first=True)
    assert stopped.verdict is Verdict.VIOLATED and len(stopped.results) < len(alone.results)


@pytest.mark.parametrize(
    ("guard", "conjunct"),
    [
        ("pass_on.turns_left", "type_ok"),
        ("pass_on.another", "had_no_holder"),
        ("pass_on.never_had_it", "had_no_holder"),
    ],
)
def test_each_guard_is_needed(guard: str, conjunct: str) -> None:
    proof = proof_of_token()
    run = judge(proof, proof.protocol.traced().drop(guard))
    assert run.verdict is Verdict.VIOLATED
    assert run.results[-1].counterexample is not None
    assert run.results[-1].obligation.conjunct == conjunct


def test_a_lemma_that_does_not_hold_at_first_is_violated_there() -> None:
    proof = proof_of_token()

    @proof.lemma()
    def passed_on(_k: Algebra, s: View) -> Value:
        """The token was passed on."""
        return 0 < s.turn

    run = prove(attach(proof, proof.protocol.traced()), conjuncts=["passed_on"])
    assert run.verdict is Verdict.VIOLATED
    (failed,) = run.failed
    assert failed.obligation.name == "initial.passed_on"
    assert failed.counterexample is not None and failed.counterexample.after is None


def test_hypotheses_that_nothing_meets_prove_nothing() -> None:
    """With a contradiction among the lemmas every step is proved; that no state meets them tells."""
    proof = proof_of_token()

    @proof.lemma()
    def never(k: Algebra, s: View) -> Value:
        """Nothing."""
        return k.all(s.turn < 1, 0 < s.turn)

    run = prove(attach(proof, proof.protocol.traced()), actions=["pass_on"])
    assert run.failed == []
    assert [witness.found for witness in run.witnesses] == [None]
    assert run.verdict is Verdict.UNKNOWN


def test_without_enough_resources_it_is_unknown() -> None:
    attached = attach(kip_320, fencing.traced())
    obligation = Obligations(attached).obligation("leader_inc_high_watermark", "strong_isr")
    assert ask(obligation.smt).proved
    answer = ask(obligation.smt, rlimit=5_000)
    assert not answer.proved and answer.reason


def test_actions_and_conjuncts_can_be_chosen() -> None:
    attached = attach(proof_of_token(), token().traced())
    run = prove(attached, actions=["pass_on"], conjuncts=["type_ok"])
    assert [r.obligation.name for r in run.results] == ["pass_on.type_ok"]
    with pytest.raises(BadInput, match="--action: the proof has no action 'pas_on'; choose of initial, pass_on"):
        prove(attached, actions=["pas_on"])
    with pytest.raises(BadInput, match="--conjunct: the proof has no conjunct 'x'"):
        prove(attached, conjuncts=["x"])


def parsed(smt: str) -> list[str]:
    return [f.sexpr() for f in z3.parse_smt2_string(smt, ctx=z3.Context())]


def test_the_text_of_an_obligation_does_not_depend_on_what_was_asked_before() -> None:
    attached = attach(kip_320, fencing.traced())
    alone = Obligations(attached).obligation("become_follower", "log_matching")
    obligations = Obligations(attached)
    for action, conjunct in obligations.names()[:120]:
        obligations.obligation(action, conjunct)
    after_others = obligations.obligation("become_follower", "log_matching")
    assert parsed(alone.smt) == parsed(after_others.smt)
    assert alone.smt.startswith("; fencing kip-320: become_follower.log_matching\n")
    assert "(set-logic UFLIA)" in alone.smt and alone.smt.rstrip().endswith("(check-sat)")


def test_quantifiers_come_to_the_front() -> None:
    protocol = token()
    k, s = Tracer(None), TracedState(protocol.variables)
    some_set = k.forall(REPLICA, lambda r: k.implies(s.holder == r, s.had == k.only(r)))
    (clause,) = prenex(some_set, {"replica": REPLICA})
    assert [index.name for _, index in clause.bound] == ["replica", "replica"]
    parts = k.forall(REPLICA, lambda r: k.implies(s.holder == r, k.all(0 < s.turn, k.member(r, s.had))))
    (clause,) = prenex(parts, {"replica": REPLICA})
    small = split(clause)
    assert [len(each.bound) for each in small] == [1, 1]
    # A part that does not name the bound replica is no longer bound by it.
    loose = k.forall(REPLICA, lambda r: k.all(0 < s.turn, k.member(r, s.had)))
    assert sorted(len(each.bound) for clause in prenex(loose, {"replica": REPLICA}) for each in split(clause)) == [0, 1]


def no_such_ghost(proof: Proof) -> None:
    @proof.updates("pass_on")
    def _wrong(_k: Algebra, s: View, to: Value) -> Ghosts:
        return {"turn": lambda: s.turn}

    attach(proof, proof.protocol.traced())


def wrong_sort(proof: Proof) -> None:
    proof.ghost("last", "the last turn", integers(0, lambda c: c["turns"]))

    @proof.updates("pass_on")
    def _wrong(_k: Algebra, _s: View, to: Value) -> Ghosts:
        return {"last": lambda: to}

    attach(proof, proof.protocol.traced())


def no_such_action(proof: Proof) -> None:
    proof.updates("steal")(dict)


def a_ghost_twice(proof: Proof) -> None:
    proof.ghost("turn", "a variable of the protocol", integers(0, lambda _: 1))


def a_lemma_twice(proof: Proof) -> None:
    def had_no_holder(_k: Algebra, s: View) -> Value:
        return s.turn == 0

    proof.lemma()(had_no_holder)


def another_protocol(proof: Proof) -> None:
    attach(proof, fencing.traced())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (no_such_ghost, "the updates of pass_on write 'turn', which is no ghost"),
        (wrong_sort, "the update of pass_on writes the replica to to last, a int"),
        (no_such_action, "token has no action steal"),
        (a_ghost_twice, "token has a variable turn already"),
        (a_lemma_twice, "there are two conjuncts had_no_holder"),
        (another_protocol, "this is a proof of token, not of fencing"),
    ],
)
def test_a_proof_that_is_written_wrongly_is_refused(wrong: Callable[[Proof], None], says: str) -> None:
    with pytest.raises(ProtocolError, match=says):
        wrong(Proof(token(), "safe", sizes=()))


# What is proved from what.


def with_follows(*, needed: bool) -> Proof:
    """The promise is no part of the induction: a lemma says it, where ``needed``, and it follows."""
    protocol = token()
    proof = Proof(protocol, "safe", sizes=({"replicas": 2, "turns": 2},), follows=("had_no_holder",))
    if needed:

        @proof.lemma(replica=REPLICA)
        def holder_is_new(k: Algebra, s: View, replica: Value) -> Value:
            """Nobody who had the token holds it."""
            return k.implies(k.member(replica, s.had), s.holder != replica)

    return proof


def test_a_promise_may_follow_from_the_other_conjuncts() -> None:
    attached = attach(with_follows(needed=True), token().traced())
    names = Obligations(attached).names()
    assert [name for name in names if "had_no_holder" in name] == [("follows", "had_no_holder")]
    run = prove(attached)
    assert run.verdict is Verdict.HOLDS
    assert [result.obligation.name for result in run.results][-1] == "follows.had_no_holder"
    # Whoever needs it for the induction is not given it.
    told = Obligations(attached).obligation("pass_on", "holder_is_new").smt
    whole = attach(with_follows(needed=True), token().traced())
    whole.proof.follows = frozenset()
    assert len(told) < len(Obligations(whole).obligation("pass_on", "holder_is_new").smt)


def test_a_promise_that_does_not_follow_is_violated() -> None:
    """The planted fault: the lemma that says it is left out."""
    attached = attach(with_follows(needed=False), token().traced())
    run = prove(attached, actions=["follows"])
    (result,) = run.results
    assert (run.verdict, result.verdict, run.witnesses) == (Verdict.VIOLATED, Verdict.VIOLATED, [])
    found = result.counterexample
    assert found is not None and (found.action, found.after, found.conjunct) == ("follows", None, "had_no_holder")
    assert Concrete(attached, found.constants).broken(found.state) == ["had_no_holder"]


def test_what_follows_is_a_promise() -> None:
    with pytest.raises(ProtocolError, match="token has no promise nobody_has_it"):
        Proof(token(), "safe", sizes=({"replicas": 2},), follows=("nobody_has_it",))


def in_layers(of: int, on: int) -> Proof:
    """``who_had_it_got_it`` in one layer, and what it needs, ``last_to_get_it_holds_it``, in another."""
    plain, proof = proof_of_token(), Proof(token(), "safe", sizes=({"replicas": 2, "turns": 2},))
    proof.takes(plain, "got", "pass_on")
    for name, layer in (("last_to_get_it_holds_it", on), ("who_had_it_got_it", of)):
        proof.lemma(layer=layer, **plain.lemmas[name].params)(plain.lemmas[name].text)
    return proof


def test_a_lemma_is_proved_from_those_of_its_layer_and_below() -> None:
    needy = "pass_on.who_had_it_got_it"
    for of, on, verdict in ((0, 0, True), (1, 0, True), (1, 1, True), (0, 1, False)):
        attached = attach(in_layers(of, on), token().traced())
        run = prove(attached, decide=False, witnesses=False)
        assert [result.obligation.name for result in run.failed] == ([] if verdict else [needy]), (of, on)
    below, same = (Obligations(attach(in_layers(of, 0), token().traced())) for of in (1, 0))
    for action in ("initial", "pass_on"):
        # The one below is given less, and the one above no less.
        # What z3 calls a shared term depends on how many there have been in the process.
        texts = (each.obligation(action, "last_to_get_it_holds_it").smt for each in (below, same))
        lower, whole = (len(re.sub(r"\$x\d+", "$x", text)) for text in texts)
        assert (lower < whole) is (action == "pass_on")
        upper = [len(each.obligation(action, "who_had_it_got_it").smt.splitlines()) for each in (below, same)]
        assert upper[0] == upper[1]
    assert len(below.hypotheses) == len(same.hypotheses)


def test_a_proof_takes_a_lemma_with_its_layer() -> None:
    other = Proof(token(), "safe", sizes=({"replicas": 2, "turns": 2},))
    other.takes(in_layers(2, 1), "got", "pass_on", "who_had_it_got_it")
    assert other.lemmas["who_had_it_got_it"].layer == 2
    assert attach(other, token().traced()).conjuncts["who_had_it_got_it"].layer == 2
