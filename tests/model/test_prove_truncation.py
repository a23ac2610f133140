"""The proof of kip-320-mended with no bound: it holds, for every seed and order; every lemma and hint of it is needed.

``fencepost prove`` asks every obligation (``tests/conformance/test_cli_prove.py``). Here only those are asked by
default that take z3 longest; by night ten seeds and orders are asked of every obligation, more states are visited and
the walks are longer.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random

import pytest
import z3
from fencepost.model.core.errors import ProtocolError
from fencepost.model.core.ground import Params, State, ground
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import Verdict
from fencepost.model.interpret.staged import stage
from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.proof import kip_320_mended
from fencepost.model.prove.finite import Concrete
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import prove
from fencepost.model.prove.solve import RLIMIT, ask

SEED = 320

HEAVY = (
    "elect_cleanly.unclean_means_lost",
    "elect_cleanly.clean_elections_keep_what_is_exposed",
    "elect_uncleanly.histories_match",
    "answer_log_truncation.truncation_is_true",
    "find_divergence.reported_divergence",
    "find_divergence.reported_served_or_lost",
    "seek_to_nearest.position_served_or_lost",
)
"""Obligations that take z3 longest."""

NEEDED_FOR = {
    "epochs_begin_with_an_election": "elect_cleanly.truncation_is_true",
    "no_epoch_from_the_future": "elect_cleanly.clean_elections_keep_what_is_exposed",
    "history_of_histories": "leader_write.no_silent_gap",
    "histories_match": "consumer_fetch.no_silent_gap",
    "log_is_a_prefix": "elect_uncleanly.history_of_histories",
    "leader_has_the_whole_history": "leader_write.truncation_is_true",
    "last_unclean_was_unclean": "answer_log_truncation.truncation_is_true",
    "last_unclean_is_last": "find_divergence.reported_served_or_lost",
    "clean_elections_keep_what_is_exposed": "answer_log_truncation.truncation_is_true",
    "position_served_or_lost": "leader_write.no_silent_gap",
    "commit_served_or_lost": "restart.position_served_or_lost",
    "reported_served_or_lost": "reset_to_divergence.position_served_or_lost",
    "consumed_is_of_one_history": "answer_out_of_range.out_of_range_only_unchecked",
    "commit_is_of_one_history": "restart.no_silent_gap",
    "truncation_is_of_a_named_epoch": "elect_uncleanly.truncation_is_true",
}
"""For each lemma an obligation that is not proved without it."""

WITHOUT_HINT = {
    "_kept": "elect_cleanly.clean_elections_keep_what_is_exposed",
    "_checked": "answer_log_truncation.truncation_is_true",
}
"""For each hint an obligation that z3 leaves open without it, in one order of the hypotheses at least."""


def proved(proof: Proof, name: str, *, rlimit: int = RLIMIT) -> bool:
    """Whether z3 refutes the denial of ``action.conjunct``."""
    action, _, conjunct = name.partition(".")
    return ask(Obligations(attach(proof, truncation.traced())).obligation(action, conjunct).smt, rlimit=rlimit).proved


def test_it_is_registered() -> None:
    assert REGISTRY["truncation"].find_proof() is kip_320_mended
    attached = attach(kip_320_mended, truncation.traced())
    promises = [name for name, conjunct in attached.conjuncts.items() if conjunct.promise]
    assert promises == ["type_ok", *truncation.traced().invariants]
    assert all(lemma.doc.endswith(".") and lemma.doc.count(". ") == 0 for lemma in kip_320_mended.lemmas.values())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(1, 3))
def test_neither_seed_nor_order_changes_a_verdict(seed: int) -> None:
    obligations = Obligations(attach(kip_320_mended, truncation.traced()))
    for name in HEAVY:
        action, _, conjunct = name.partition(".")
        answer = ask(obligations.obligation(action, conjunct).smt, seed=seed, shuffle=seed)
        assert answer.proved and answer.resources < RLIMIT / 4, (name, answer)


@pytest.mark.nightly(seconds=20)
@pytest.mark.parametrize("seed", range(1, 11))
def test_no_verdict_of_all_depends_on_seed_or_order(seed: int) -> None:
    run = prove(attach(kip_320_mended, truncation.traced()), seed=seed, shuffle=seed, witnesses=False)
    print(f"seed {seed}: {max(result.answer.resources for result in run.results):,} resource units at most")
    assert [result.obligation.name for result in run.failed] == []


def test_every_action_can_happen_where_all_conjuncts_hold() -> None:
    """Against vacuity: one obligation of each action, and a witness for it."""
    run = prove(attach(kip_320_mended, truncation.traced()), conjuncts=["no_epoch_from_the_future"])
    assert [w.action for w in run.witnesses] == [action.name for action in truncation.traced().actions]
    assert all(witness.found is not None for witness in run.witnesses)


# Lemmas, hints, and what is assumed.


def without_lemma(name: str) -> Proof:
    proof = copy.copy(kip_320_mended)
    proof.lemmas = {key: lemma for key, lemma in kip_320_mended.lemmas.items() if key != name}
    return proof


def test_every_lemma_and_hint_is_accounted_for() -> None:
    assert set(NEEDED_FOR) == set(kip_320_mended.lemmas)
    given = {spec.text.__name__ for specs in kip_320_mended.hint_texts.values() for spec in specs}
    assert given == set(WITHOUT_HINT)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lemma", NEEDED_FOR)
def test_every_lemma_is_needed(lemma: str) -> None:
    assert proved(kip_320_mended, NEEDED_FOR[lemma])
    assert not proved(without_lemma(lemma), NEEDED_FOR[lemma])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("hint", WITHOUT_HINT)
def test_every_hint_is_needed(hint: str) -> None:
    action, _, conjunct = WITHOUT_HINT[hint].partition(".")
    proof = copy.copy(kip_320_mended)
    proof.hint_texts = {
        name: [spec for spec in specs if spec.text.__name__ != hint]
        for name, specs in kip_320_mended.hint_texts.items()
    }
    with_it, without = (
        Obligations(attach(each, truncation.traced())).obligation(action, conjunct).smt
        for each in (kip_320_mended, proof)
    )
    left_open = 0
    for shuffle in (None, 1, 2):
        order = {"seed": shuffle or 0, "shuffle": shuffle, "rlimit": RLIMIT // 4}
        assert ask(with_it, **order).proved
        left_open += not ask(without, **order).proved
    # Without it the answer lies in the order in which all hypotheses are asserted, or there is none; the few that its
    # core names may do without. What is left open is not taken for a counterexample.
    assert left_open
    run = prove(attach(proof, truncation.traced()), actions=[action], conjuncts=[conjunct], witnesses=False)
    assert run.verdict is not Verdict.VIOLATED


def test_the_lemmas_alone_prove_every_promise_but_one() -> None:
    """What is derived is proved and not assumed: z3 has fewer hypotheses, never more."""
    assert kip_320_mended.derived == set(truncation.traced().invariants) - {"hw_at_leaders"}
    assuming = copy.copy(kip_320_mended)
    assuming.derived = frozenset()
    given, all_of_them = (
        len(Obligations(attach(proof, truncation.traced())).hypotheses) for proof in (kip_320_mended, assuming)
    )
    assert given < all_of_them
    # With them z3 goes from epoch to epoch.
    name = "elect_cleanly.unclean_means_lost"
    assert proved(kip_320_mended, name, rlimit=RLIMIT // 4)
    assert not proved(assuming, name, rlimit=RLIMIT // 4)


def test_what_is_derived_proves_nothing_else() -> None:
    """Planted: a promise that others do rest on. Less is proved then; its own obligations still are."""
    needy = copy.copy(kip_320_mended)
    needy.derived = frozenset({*kip_320_mended.derived, "hw_at_leaders"})
    assert proved(needy, "become_follower.hw_at_leaders")
    assert proved(kip_320_mended, "consumer_fetch.type_ok")
    assert not proved(needy, "consumer_fetch.type_ok")


def test_only_a_promise_can_be_derived() -> None:
    with pytest.raises(ProtocolError, match="truncation has no promise histories_match"):
        Proof(truncation, "kip-320-mended", (), derived=("histories_match",))


# The ghosts say what they are said to say.


def test_histories_only_grow() -> None:
    """What was written, and what was exposed, stays so: else a lemma about a history would say less than it seems."""
    obligations = Obligations(attach(kip_320_mended, truncation.traced()))
    epoch, offset, record = z3.Ints("epoch offset record")
    for action in obligations.attached.traced.actions:
        step = obligations.step(action.name)
        before, after = step.before, step.after
        one, two, begun = [True], [True, True], epoch <= before.read("quorum_leader_epoch", ())
        same = z3.And(
            before.read("history", (epoch, offset), two) == after.read("history", (epoch, offset), two),
            before.read("last_unclean", (epoch,), one) == after.read("last_unclean", (epoch,), one),
        )
        grows = z3.And(
            before.read("history_end", (epoch,), one) <= after.read("history_end", (epoch,), one),
            before.read("exposed_end", (epoch,), one) <= after.read("exposed_end", (epoch,), one),
        )
        written = before.read("written_in", (record,), one) == after.read("written_in", (record,), one)
        solver = z3.Solver()
        solver.add(epoch >= 0, offset >= 0, begun, offset < before.read("history_end", (epoch,), one))
        solver.add(0 <= record, record < before.read("next_record_id", ()))
        solver.add(*(guard for guard in obligations.unbounded.assumed(step) if not z3.is_quantifier(guard)))
        # A presumed leader has the whole history, and exposes what the epoch has exposed.
        if action.name in ("leader_write", "leader_inc_high_watermark"):
            leader = z3.Const("leader!param", obligations.unbounded.universe.replica_sort)
            own = before.read("leader_epoch", (leader,), one)
            solver.add(before.read("leo", (leader,), one) == before.read("history_end", (own,), one))
            solver.add(before.read("hw", (leader,), one) == before.read("exposed_end", (own,), one))
        solver.add(z3.Not(z3.And(same, grows, written)))
        assert solver.check() == z3.unsat, action.name


def reachable(concrete: Concrete) -> Iterator[tuple[State, str]]:
    """Every state with its ghosts, breadth first, and the action that led to it."""
    first = concrete.system.initial
    seen = {first}
    yield first, "initial"
    for state in (todo := [first]):
        for action, params in concrete.base.by_step:
            after = concrete.step(state, action, params)
            if after is not None and after not in seen:
                seen.add(after)
                todo.append(after)
                yield after, action


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("size", "states"),
    [
        ("2/1/1/1", 1390),
        pytest.param("2/1/1/2", 10794, marks=pytest.mark.nightly),
        pytest.param("2/2/2/1", 23170, marks=pytest.mark.nightly),
    ],
)
def test_all_conjuncts_hold_in_every_reachable_state(size: str, states: int) -> None:
    attached = attach(kip_320_mended, truncation.traced())
    concrete = Concrete(attached, dict(zip(truncation.constants, map(int, size.split("/")), strict=True)))
    compiled = stage(ground(attached.traced.protocol.traced("kip-320-mended"), concrete.base.constants)).invariants
    assert set(compiled) == set(attached.conjuncts)
    own = set()
    for number, (state, action) in enumerate(reachable(concrete)):
        for name, holds in compiled.items():
            assert holds(state), (name, action, concrete.shown(state))
        if number % 100 == 0:
            assert concrete.broken(state) == []
        own.add(concrete.own(state))
    # Ghosts add nothing to a run and take nothing away: the states without them are those of the model.
    assert len(own) == states


STORY: list[tuple[str, dict[str, int]]] = [
    ("elect_cleanly", {"new_leader": 0}),
    ("become_follower", {"follower": 1}),
    ("become_follower", {"follower": 2}),
    ("leader_write", {"leader": 0}),
    ("follower_fetch", {"follower": 1}),
    ("leader_inc_high_watermark", {"leader": 0}),
    ("refresh_metadata", {"epoch": 0}),
    ("consumer_fetch", {"leader": 0}),
    ("commit_offset", {}),
    ("elect_uncleanly", {"new_leader": 2}),
    ("refresh_metadata", {"epoch": 1}),
    ("answer_log_truncation", {"leader": 2}),
    ("find_divergence", {"leader": 2}),
    ("reset_to_divergence", {}),
]
"""The consumer reads and commits a record that an unclean election loses, and finds where to go on from."""


def taken(concrete: Concrete, state: State, action: str, params: Params) -> State:
    """The state after a step that is allowed, with all conjuncts asked."""
    after = concrete.step(state, action, params)
    assert after is not None, (action, params)
    assert concrete.broken(after) == [], (action, params, concrete.shown(state))
    return after


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("walks", "length"), [(3, 12), pytest.param(60, 25, marks=pytest.mark.nightly(seconds=40))])
@pytest.mark.parametrize("begun", [0, 9, 12, 14])
def test_all_conjuncts_hold_along_walks(begun: int, walks: int, length: int) -> None:
    """On runs that begin with a part of the story."""
    concrete = Concrete(attach(kip_320_mended, truncation.traced()), kip_320_mended.sizes[2])
    random, actions = Random(SEED), set()
    for _ in range(walks):
        state = concrete.system.initial
        for action, params in STORY[:begun]:
            state = taken(concrete, state, action, tuple(params.items()))
        for _ in range(length):
            # An action first, so that one with few parameters is not rare.
            order = random.sample(concrete.base.actions, len(concrete.base.actions))
            steps = random.sample(list(concrete.base.by_step), len(concrete.base.by_step))
            steps.sort(key=lambda step: order.index(step[0]))
            action, params = next(step for step in steps if concrete.step(state, *step) is not None)
            state = taken(concrete, state, action, params)
            actions.add(action)
    print(f"seed {SEED}: {sorted(actions)}")


def test_a_wrong_lemma_is_seen_in_a_reachable_state() -> None:
    """The search above can fail: without the update of the histories their lemmas do not hold."""
    proof = copy.copy(kip_320_mended)
    proof.update_texts = {name: text for name, text in kip_320_mended.update_texts.items() if name != "leader_write"}
    concrete = Concrete(attach(proof, truncation.traced()), kip_320_mended.sizes[0])
    broken: set[str] = set()
    for state, _ in reachable(concrete):
        broken |= set(concrete.broken(state))
        if {"log_is_a_prefix", "leader_has_the_whole_history"} <= broken:
            return
    raise AssertionError(broken)
