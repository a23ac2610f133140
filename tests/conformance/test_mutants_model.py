"""The matrix of the models' mutants, line for line as pinned, and the faults that it must not overlook.

``mutants_fencing.txt`` and the like, one for each protocol that is judged, have one line a mutant: name, verdict
with what breaks where after how many steps (or why nothing does, and in what its steps differ), and what trace replay
says. The quick tier judges all mutants of ``fencing`` and a fixed sample of the others.
The proofs of the models themselves, without which nothing follows for their mutants, are asked in tests/model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest
from fencepost.conformance.harness import arguments_for, plan_of
from fencepost.conformance.mutants import trace_replay
from fencepost.conformance.mutants.arguments import Argument, Arguments
from fencepost.conformance.mutants.beyond import Beyond
from fencepost.conformance.mutants.explorer import Explorer, confirmed
from fencepost.conformance.mutants.matrix import NO_JUDGE, Cell, Kind, Matrix, Outcome, Reason, Row, Verdict
from fencepost.conformance.mutants.model_rows import model_rows, unknown_names
from fencepost.conformance.mutants.proofs import Proofs
from fencepost.model.core.errors import BadInput, ProtocolError
from fencepost.model.core.ground import ground
from fencepost.model.core.mutants import Mutant, mutant_named, mutants
from fencepost.model.core.registry import PROTOCOLS, REGISTRY
from fencepost.model.explore import Limits, Query, explore
from fencepost.model.explore.compare import Change
from fencepost.model.prove.implied import Implications, Relation
from fencepost.model.prove.proof import Proof

FENCING = PROTOCOLS["fencing"].traced("kip-320")
TINY = ("2/1/1/1",)
SNAPSHOTS = PROTOCOLS["snapshots"].traced("kip-630-safe")
SMALL = ("2/0/1/1/1/0/0/1", "2/0/2/1/1/0/0/1", "3/0/1/1/1/0/0/1", "2/1/2/0/1/0/1/1")
"""The smallest constants of snapshots: no chunks, no offset behind another where logs can part."""
TELLING = ("2/1/1/1", "3/1/1/1")
JUDGED = [name for name, protocol in PROTOCOLS.items() if plan_of(protocol).rungs]
"""The protocols whose mutants are judged: their plans say where."""
EIGHTHS = range(8)
"""Parts in which a matrix is asked."""
SAMPLE = 3
"""Mutants of each other protocol that the quick tier judges: those whose names have the smallest checksums."""


def line(row: Row) -> str:
    """A row as it is pinned: without the seconds, and of the proof what follows from it."""
    explorer, replay = row.cell("explorer"), row.cell("replay")
    how = "" if row.change is None else row.change.name.lower()
    if explorer.outcome is Outcome.KILLED:
        how = f"{explorer.detail}, {explorer.length or 'no'} steps"
    told = f"{replay.length} steps, {replay.detail}" if replay.length else replay.detail
    why = "" if row.reason is None else f" ({row.reason.value})"
    return f"{row.name} | {row.verdict.value}{why}: {how} | {told}"


def pins(protocol: str) -> dict[str, str]:
    """The pinned lines, by the mutant's name."""
    text = (Path(__file__).parent / f"mutants_{protocol}.txt").read_text(encoding="utf-8")
    return {each.partition(" | ")[0]: each for each in text.splitlines()}


def killed_at(pin: str) -> str | None:
    """The constants at which a line says that its mutant was killed."""
    _, verdict, _ = pin.split(" | ")
    return verdict.partition(" at ")[2].partition(",")[0] if verdict.startswith("killed") else None


class OfSurvivors:
    """The proofs, asked of what nobody kills: a pin says nothing of what they say of the others."""

    def __init__(self, protocol: str) -> None:
        self.pins = pins(protocol)
        self.proofs = Proofs(checked=PROTOCOLS, decide=False)

    def judge(self, mutant: Mutant) -> Cell:
        return NO_JUDGE if killed_at(self.pins[mutant.name]) else self.proofs.judge(mutant)


def judged(protocol: str, rungs: Sequence[str] = (), names: Iterable[str] | None = None) -> list[Row]:
    traced = PROTOCOLS[protocol].traced()
    which = [m for m in mutants(traced) if names is None or m.name in set(names)]
    arguments = arguments_for(protocol, traced.variant.name)
    return list(model_rows(Explorer(traced, rungs), which, arguments, OfSurvivors(protocol)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("protocol", JUDGED)
def test_every_mutant_is_pinned_and_accounted_for(protocol: str) -> None:
    traced = PROTOCOLS[protocol].traced()
    arguments = arguments_for(protocol, traced.variant.name)
    pinned = pins(protocol)
    assert list(pinned) == [mutant.name for mutant in mutants(traced)]
    survivors = {name: pin.split(" | ")[1] for name, pin in pinned.items() if killed_at(pin) is None}
    said = {name: re.fullmatch(r"(equivalent|harmless) \((\w+)\): (\w+)", pin) for name, pin in survivors.items()}
    assert {name: m[3] for name, m in said.items() if m and m[2] == Reason.ARGUED.value} == {
        name: argument.change.name.lower() for name, argument in arguments.items()
    }
    assert {m[2] for m in said.values() if m} <= {reason.value for reason in Reason} and all(said.values())
    assert unknown_names(traced, arguments) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name",
    [
        "become_follower.leader_elected dropped",
        "follower_fetch.last_record_matches bound 5 -1",
        "follower_fetch.lbo' bound 2 -1",
        "follower_truncate.diverges dropped",
        "restart.log_valid bound 1 -1",
        "hold_snapshot.snapshot_exists bound 1 -1",
        "late_chunk.answers_request bound 1 +1",
    ],
)
def test_snapshots_that_survive_differ_as_is_argued(name: str) -> None:
    """Orbits are compared, and the run that tells the two apart is one of states."""
    (row,) = judged("snapshots", SMALL, [name])
    assert line(row) == pins("snapshots")[name]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name",
    [
        "follower_truncate.leo' bound 5 -1",
        "hold_records.last_record_matches bound 1 -1",
        "late_divergence.leo' bound 2 +1",
        "late_snapshot.answers_request dropped",
    ],
)
def test_what_breaks_beyond_the_rungs(name: str) -> None:
    """Such a mutant breaks nothing at the smallest constants, and is refused by the model where it breaks something."""
    (row,) = model_rows(beyond({name: plan_of(SNAPSHOTS.protocol).beyond[name]}), [mutant_named(SNAPSHOTS, name)], {})
    assert line(row) == pins("snapshots")[name]
    assert (row.verdict, row.complaints) == (Verdict.KILLED, ())


def beyond(places: dict[str, Beyond]) -> Explorer:
    explorer = Explorer(SNAPSHOTS, SMALL[:1])
    explorer.beyond = places
    return explorer


def test_a_place_at_which_nothing_breaks_is_no_verdict() -> None:
    """Nothing is said of what the other actions might do, so that is no argument either."""
    name = "follower_truncate.leo' bound 5 -1"
    place = plan_of(SNAPSHOTS.protocol).beyond[name]
    less = replace(place, actions=place.actions - {"follower_truncate"})
    (row,) = model_rows(beyond({name: less}), [mutant_named(SNAPSHOTS, name)], {})
    assert row.verdict is Verdict.UNKNOWN
    assert row.cell("explorer").detail == "3/0/2/3/1/2/0/0: it is said to break a promise there, and does not"


def test_every_place_beyond_the_rungs_is_a_mutants() -> None:
    for protocol in JUDGED:
        plan = plan_of(PROTOCOLS[protocol])
        places = plan.beyond
        pinned = pins(protocol)
        assert {name: killed_at(pinned[name]) for name in places} == {n: p.constants for n, p in places.items()}
        assert not {place.constants for place in places.values()} & set(plan.rungs)
        assert all(p.actions <= set(PROTOCOLS[protocol].actions) for p in places.values())


@cache
def explorer_of(protocol: str) -> Explorer:
    """What is found out of the model serves all parts of its matrix."""
    return Explorer(PROTOCOLS[protocol].traced())


def check_rows(protocol: str, names: Iterable[str]) -> None:
    """Judge these mutants, and compare the rows with the pinned ones."""
    pinned, wanted = pins(protocol), set(names)
    explorer = explorer_of(protocol)
    which = [mutant for mutant in mutants(explorer.traced) if mutant.name in wanted]
    arguments = arguments_for(protocol, explorer.traced.variant.name)
    rows = list(model_rows(explorer, which, arguments, OfSurvivors(protocol)))
    assert [line(row) for row in rows] == [pin for name, pin in pinned.items() if name in wanted]
    assert len(rows) == len(wanted) and Matrix.of(rows).exit_code == 0


WHOLE = [
    pytest.param(protocol, part, marks=() if protocol == "fencing" else pytest.mark.nightly(seconds=60))
    for protocol in JUDGED
    for part in EIGHTHS
]


@pytest.mark.parametrize(("protocol", "part"), WHOLE)
def test_whole_matrix_is_the_pinned_one(protocol: str, part: int) -> None:
    check_rows(protocol, list(pins(protocol))[part :: len(EIGHTHS)])


@pytest.mark.parametrize("protocol", [each for each in JUDGED if each != "fencing"])
def test_sample_of_the_matrix_is_the_pinned_one(protocol: str) -> None:
    check_rows(protocol, sorted(pins(protocol), key=lambda name: crc32(name.encode()))[:SAMPLE])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", EIGHTHS)
@pytest.mark.parametrize("protocol", JUDGED)
def test_nothing_that_is_killed_is_implied(protocol: str, part: int) -> None:
    """At most it has no step but the model's, and then it is killed by a witness that is missed, or by liveness."""
    traced, pinned = PROTOCOLS[protocol].traced(), pins(protocol)
    proofs = [proof for proof in REGISTRY[protocol].find_proofs() if proof.variant == traced.variant.name]
    assert proofs
    implied = [(proof, Implications(proof, proof.reads(traced))) for proof in proofs]
    for mutant in mutants(traced)[part :: len(EIGHTHS)]:
        pin = pinned[mutant.name]
        if killed_at(pin) is not None:
            judged_by = ((by, proof.reads(mutant.traced)) for proof, by in implied)
            relations = {by.judge(read, mutant.action).relation for by, read in judged_by}
            missed = " never happens at " in pin or " under " in pin
            assert Relation.UNKNOWN in relations or (Relation.FEWER in relations and missed), mutant.name


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "outcome", "detail"),
    [
        (
            "controller_elect_leader.not_leader_yet dropped",
            Outcome.SURVIVED,
            "for all constants it keeps every promise of safety",
        ),
        ("become_leader.request_sent dropped", Outcome.EQUIVALENT, "for all constants it has the same steps"),
        (
            "leader_shrink_isr.in_isr dropped",
            Outcome.EQUIVALENT,
            "for all constants it has the same steps, but for such as change nothing",
        ),
        (
            "leader_shrink_isr.not_caught_up bound 2 +1",
            Outcome.SURVIVED,
            "for all constants it has no steps but the model's, or such as change nothing",
        ),
        (
            "leader_inc_high_watermark.isr_acknowledges dropped",
            Outcome.LOST,
            "weak_isr is not inductive under leader_inc_high_watermark",
        ),
    ],
)
def test_a_proof_says_what_is_implied_or_goes_through_or_is_lost(name: str, outcome: Outcome, detail: str) -> None:
    cell = Proofs(checked=PROTOCOLS).judge(mutant_named(FENCING, name))
    assert (cell.outcome, cell.detail) == (outcome, detail)
    undecided = Proofs(checked=PROTOCOLS, decide=False).judge(mutant_named(FENCING, name))
    assert undecided.outcome is (Outcome.UNKNOWN if outcome is Outcome.LOST else outcome)


def test_nothing_follows_from_a_proof_that_does_not_go_through(
    monkeypatch: pytest.MonkeyPatch, proof_with_a_wrong_lemma: Proof
) -> None:
    """It is asked first, and once: a lemma that is not so implies whatever one likes."""
    registered = replace(REGISTRY["fencing"], proof=proof_with_a_wrong_lemma)
    monkeypatch.setitem(REGISTRY._loaded, "fencing", registered)
    needed = mutant_named(FENCING, "follower_fetch.epoch_not_fenced dropped")
    assert Proofs(checked=["fencing"]).judge(needed).relation is Relation.SAME
    asked: list[str] = []
    proofs = Proofs(on_proof=lambda variant: lambda _number, _of, name: asked.append(f"{variant}: {name}"))
    for _ in range(2):
        cell = proofs.judge(needed)
        assert (cell.outcome, cell.relation) == (Outcome.UNKNOWN, None)
        assert cell.detail.startswith("kip-320 itself is not proved (") and cell.detail.endswith("nothing follows")
    assert len(asked) == len(set(asked)) and asked[0] == "fencing kip-320: initial.type_ok"
    (row,) = model_rows(
        Explorer(FENCING, TINY), [mutant_named(FENCING, "become_leader.request_sent dropped")], {}, proofs
    )
    assert (row.verdict, row.reason) == (Verdict.FAILED, None)


def test_the_column_is_empty_where_the_proof_is_of_another_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = mutant_named(FENCING, "become_leader.request_sent dropped")
    assert Proofs(checked=PROTOCOLS).judge(mutant).outcome is Outcome.EQUIVALENT
    monkeypatch.setitem(
        REGISTRY._loaded, "fencing", replace(REGISTRY["fencing"], proof=Proof(FENCING.protocol, "kip-279", ()))
    )
    assert Proofs().judge(mutant).outcome is Outcome.NONE
    monkeypatch.setitem(REGISTRY._loaded, "fencing", replace(REGISTRY["fencing"], proof=None))
    assert Proofs().judge(mutant).outcome is Outcome.NONE


# Planted faults: each makes a row fail.


def row_of(name: str, arguments: Arguments, rungs: Sequence[str] = TINY) -> Row:
    explorer = Explorer(FENCING, rungs)
    (row,) = model_rows(explorer, [mutant_named(FENCING, name)], arguments)
    return row


def test_a_killed_mutant_that_is_claimed_to_be_equivalent_fails() -> None:
    name = "leader_inc_high_watermark.isr_acknowledges dropped"
    for change in (Change.NONE, Change.MORE):
        row = row_of(name, {name: Argument(change, "nobody reads that far")})
        assert (row.verdict, row.complaints) == (
            Verdict.FAILED,
            (f"it is claimed to be harmless ({change.name}), and yet it is killed",),
        )
    assert row_of(name, {}).verdict is Verdict.KILLED


def test_a_survivor_without_a_reason_fails() -> None:
    name = "follower_fetch.follows_leader dropped"
    whole = arguments_for("fencing", "kip-320")
    row = row_of(name, whole, TELLING)
    assert (row.verdict, row.reason) == (Verdict.EQUIVALENT, Reason.ARGUED)
    row = row_of(name, {other: a for other, a in whole.items() if other != name}, TELLING)
    assert row.verdict is Verdict.FAILED
    assert row.complaints == ("nobody kills it, and nothing argues that it is equivalent",)
    assert Matrix.of([row]).exit_code == 1


def test_an_argument_for_another_change_than_there_is_fails() -> None:
    name = "leader_shrink_isr.not_caught_up dropped"
    row = row_of(name, {name: Argument(Change.NONE, "it says nothing")})
    assert row.complaints == ("the argument is for the same steps; it has more steps",)
    assert row_of(name, {name: Argument(Change.MORE, "whoever is left has the records")}).verdict is Verdict.HARMLESS


def test_an_argument_that_names_the_wrong_guards_fails() -> None:
    name = "become_leader.request_sent dropped"
    wrong = Argument(Change.NONE, "the epoch is newer", beside=("epoch_newer",))
    row = row_of(name, {name: wrong}, TELLING)
    assert row.complaints == (
        "without become_leader.epoch_newer it has the same steps too, so those are not the reason",
    )
    assert row_of(name, {name: replace(wrong, beside=("names_leader",))}).verdict is Verdict.EQUIVALENT


class Credulous:
    """A prover that proves anything."""

    def judge(self, mutant: Mutant) -> Cell:
        return Cell(Outcome.SURVIVED)


class Timid:
    """A prover that proves nothing."""

    def judge(self, mutant: Mutant) -> Cell:
        return Cell(Outcome.LOST)


class Rash:
    """A prover to whom every mutant is much like the model."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation

    def judge(self, mutant: Mutant) -> Cell:
        outcome = Outcome.SURVIVED if self.relation is Relation.FEWER else Outcome.EQUIVALENT
        return Cell(outcome, relation=self.relation)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "has", "relations"),
    [
        ("become_leader.request_sent dropped", Change.NONE, set()),
        ("leader_shrink_isr.in_isr dropped", Change.STUTTERS, {Relation.SAME}),
        ("leader_shrink_isr.not_caught_up bound 2 +1", Change.FEWER, {Relation.SAME, Relation.STILL}),
        ("leader_shrink_isr.not_caught_up dropped", Change.MORE, {Relation.SAME, Relation.STILL, Relation.FEWER}),
    ],
)
def test_what_is_implied_and_not_so_in_a_reachable_state_fails(
    name: str, has: Change, relations: set[Relation]
) -> None:
    """The explorer's comparison is held against what z3 says of all constants."""
    explorer = Explorer(FENCING, TINY)
    for relation in (Relation.SAME, Relation.STILL, Relation.FEWER):
        (row,) = model_rows(explorer, [mutant_named(FENCING, name)], {}, Rash(relation))
        assert row.change is has
        wrong = (f"it is proved to have {relation.value}; it has {has.value}",) if relation in relations else ()
        assert (row.complaints, row.verdict is Verdict.FAILED) == (wrong, bool(wrong))
        assert row.reason is (Reason.PROVED if relation is Relation.FEWER else Reason.IMPLIED)


def test_an_argument_for_what_z3_shows_fails() -> None:
    """So that words stay where nothing else says it."""
    name = "become_leader.request_sent dropped"
    said = {name: Argument(Change.NONE, "a request that was not sent names no leader")}
    (row,) = model_rows(Explorer(FENCING, TINY), [mutant_named(FENCING, name)], said, Proofs(checked=PROTOCOLS))
    assert row.complaints == ("it is implied, so the argument has nothing to say",)


def test_a_proof_that_goes_through_for_a_killed_mutant_fails() -> None:
    killed, kept = (
        mutant_named(FENCING, f"{name} dropped")
        for name in ("leader_inc_high_watermark.isr_acknowledges", "become_leader.request_sent")
    )
    arguments = {kept.name: Argument(Change.NONE, "a request that was not sent names no leader")}
    (row,) = model_rows(Explorer(FENCING, TINY), [killed], {}, Credulous())
    assert row.complaints == ("the proof goes through, and yet there is a run to weak_isr at 2/1/1/1",)
    # That a proof is lost kills nothing by itself, and does not stand for an argument.
    (row,) = model_rows(Explorer(FENCING, TINY), [kept], arguments, Timid())
    assert row.verdict is Verdict.EQUIVALENT
    (row,) = model_rows(Explorer(FENCING, TINY), [kept], {}, Timid())
    assert row.verdict is Verdict.FAILED


def test_an_argument_for_a_mutant_that_is_not_there_fails() -> None:
    complaints = unknown_names(FENCING, {"leader_write.nothing dropped": Argument(Change.NONE, "")})
    assert complaints == ["there is an argument for 'leader_write.nothing dropped', which is no mutant"]
    assert Matrix.of([], complaints).exit_code == 1


def test_a_mutant_of_an_implementation_that_nobody_kills_fails() -> None:
    """What such rows will have: no explorer, but a machine that draws steps, and the replay of what it found."""
    survived = {"hypothesis": Cell(Outcome.SURVIVED, "2,000 steps")}
    row = Row("a", Kind.IMPLEMENTATION, "impl", survived)
    assert (row.verdict, Matrix.of([row]).exit_code) == (Verdict.FAILED, 1)
    for column in ("hypothesis", "replay"):
        found = Row("a", Kind.IMPLEMENTATION, "impl", survived | {column: Cell(Outcome.KILLED, "", 7)})
        assert (found.verdict, Matrix.of([found]).exit_code) == (Verdict.KILLED, 0)


def test_a_replay_that_refuses_nothing_fails() -> None:
    """A counterexample is refused by the model; one that the model explains would be no counterexample of a mutant."""
    mutant = mutant_named(FENCING, "leader_inc_high_watermark.isr_acknowledges dropped")
    finding = Explorer(FENCING, TINY).judge(mutant)
    assert finding.path is not None
    cell, faults = trace_replay.judge(mutant, finding)
    assert (cell.outcome, cell.length, faults) == (Outcome.KILLED, 4, ())
    cell, _ = trace_replay.judge(mutant, replace(finding, path=finding.path[:-1]))
    assert (cell.outcome, cell.detail) == (Outcome.SURVIVED, "the model explains the run")
    # Another place than the dropped guard refuses the run: it is not that mutant's.
    other = replace(mutant, place="record_above_hw")
    assert trace_replay.judge(other, finding)[1] == (
        "the replay ends by guard isr_acknowledges, and not by the guard that was dropped",
    )


def test_a_counterexample_that_the_reference_does_not_confirm_is_not_believed() -> None:
    def path_of(mutant: Mutant) -> None:
        system = ground(mutant.traced, dict(zip(PROTOCOLS["fencing"].constants, (2, 1, 1, 1), strict=True)))
        answer = explore(Query.of(system))
        assert confirmed(system, answer) == tuple(answer.path or ())
        with pytest.raises(ProtocolError, match="does not find type_ok broken"):
            confirmed(system, replace(answer, violated="type_ok"))
        with pytest.raises(ProtocolError, match="does not find"):
            confirmed(system, replace(answer, path=(answer.path or [])[:-1]))

    path_of(mutant_named(FENCING, "controller_elect_leader.in_quorum_isr dropped"))
    path_of(mutant_named(FENCING, "leader_expand_isr.reached_high_watermark bound +1"))


def test_each_state_of_a_counterexample_is_held_against_the_reference() -> None:
    system = ground(PROTOCOLS["fencing"].traced("truncate-to-hw"), {"replicas": 2})
    answer = explore(Query.of(system))
    path = answer.path
    assert path is not None
    for number, step in enumerate(path):
        # The steps are right and lead to the breach; only the state that is told after one of them is another.
        other = path[number - 1].state if number else path[1].state
        wrong = [*path[:number], replace(step, state=other), *path[number + 1 :]]
        with pytest.raises(ProtocolError, match=rf"the reference takes step {number + 1}, {step.instance.action}\("):
            confirmed(system, replace(answer, path=wrong))


def test_of_mutants_of_a_broken_model_nothing_follows() -> None:
    traced = PROTOCOLS["fencing"].traced("truncate-to-hw")
    with pytest.raises(BadInput, match=r"^--variant: truncate-to-hw itself breaks weak_isr at 2/2/2/2; "):
        Explorer(traced, ("2/2/2/2",)).judge(mutants(traced)[0])


def test_a_budget_that_runs_out_is_no_verdict() -> None:
    name = "leader_shrink_isr.not_caught_up dropped"
    explorer = Explorer(FENCING, TELLING, Limits(max_states=1000))
    (row,) = model_rows(explorer, [mutant_named(FENCING, name)], arguments_for("fencing", "kip-320"))
    assert (row.verdict, Matrix.of([row]).exit_code) == (Verdict.UNKNOWN, 3)


def test_the_usual_constants_begin_with_the_smallest() -> None:
    assert {name: plan_of(protocol).rungs[:1] for name, protocol in PROTOCOLS.items() if name in JUDGED} == {
        "fencing": TINY,
        "truncation": TINY,
        "snapshots": SMALL[:1],
        "controller": ("1/1/1/2/0/1/1/1",),
        "tiering": ("2/1/1/1/0/0/0/1",),
        "compaction": ("1/2/1/2/0/0/0/0/2/1",),
    }
