"""A protocol with enumerations through the commands: whatever a person reads has the names, and so has a trace."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from fencepost.conformance.cli import main
from fencepost.model.core.ground import ground
from fencepost.model.core.mutants import mutants
from fencepost.model.core.protocol import TracedProtocol
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import explore
from fencepost.model.explore.result import Query
from fencepost.model.interpret.explain import refusal
from fencepost.model.interpret.reference import Reference
from fencepost.model.prove.crosscheck import crosscheck, exhaustive
from fencepost.traces.corpus.convert import events_of, trace_of
from fencepost.traces.corpus.layout import CorpusHeader, CorpusLayout
from fencepost.traces.format import trace_schema
from fencepost.traces.mine.signature import shape_of
from fencepost.traces.read import read_trace
from fencepost.traces.record import record

COMMIT = '''
"""Two-phase commit, with names for its phases."""

from fencepost.model.core.domains import REPLICA, integers
from fencepost.model.core.enumeration import enumeration
from fencepost.model.core.protocol import ConstantSpec, Protocol
from fencepost.model.core.registration import Registration

Phase = enumeration("phase", "working", "prepared", "committed", "aborted")
Decision = enumeration("decision", "undecided", "commit", "abort")

commit = Protocol("commit", "a test", constants=(ConstantSpec("replicas", 2, 1, "the participants"),))
registered = Registration(__name__, commit)
commit.variable("phase", "what a participant has done", Phase, per=(REPLICA,))
commit.variable("decision", "what the coordinator has decided", Decision)
commit.variable("seen", "whether some participant has prepared", integers(0, lambda _: 1), per=(Phase,))
commit.variable(
    "heard", "what a participant that is done was told", Decision, per=(REPLICA,), initially=-1,
    live=lambda k, s, p: k.any(s.phase[p] == Phase.committed, s.phase[p] == Phase.aborted),
)
commit.variant("hasty", False, "commits without asking")
commit.variant("safe", True, "commits when all are prepared")


@commit.action(participant=REPLICA)
def prepare(k, s, participant):
    """A participant votes to commit."""
    yield "still_working", s.phase[participant] == Phase.working
    yield s.update(phase={participant: Phase.prepared}, seen={Phase.prepared: 1})


@commit.action(outcome=Decision)
def decide(k, s, outcome):
    """The coordinator decides."""
    yield "undecided", s.decision == Decision.undecided
    yield "is_decision", outcome != Decision.undecided
    if k.rules:
        all_prepared = k.forall(REPLICA, lambda p: s.phase[p] == Phase.prepared)
        yield "all_prepared", k.implies(outcome == Decision.commit, all_prepared)
    yield s.update(decision=outcome)


@commit.action(participant=REPLICA, told=Decision)
def learn(k, s, participant, told):
    """A participant hears the decision."""
    yield "decided", s.decision != Decision.undecided
    yield "told_decision", told == s.decision
    yield "not_done", k.any(s.phase[participant] == Phase.working, s.phase[participant] == Phase.prepared)
    after = k.ite(told == Decision.commit, Phase.committed, Phase.aborted)
    yield s.update(phase={participant: after}, heard={participant: told})


@commit.action(participant=REPLICA)
def give_up(k, s, participant):
    """A participant that has promised nothing aborts by itself."""
    yield "still_working", s.phase[participant] == Phase.working
    yield s.update(phase={participant: Phase.aborted}, heard={participant: Decision.abort})


@commit.always
def consistent(k, s):
    """No participant has committed where another has aborted."""

    def some(phase):
        return k.exists(REPLICA, lambda p: s.phase[p] == phase)

    return k.any(k.negate(some(Phase.committed)), k.negate(some(Phase.aborted)))


@commit.sometimes()
def all_commit(k, s):
    """Everybody commits."""
    return k.forall(REPLICA, lambda p: s.phase[p] == Phase.committed)
'''


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The protocol's place, in the current directory."""
    monkeypatch.chdir(tmp_path)
    # What a command line names is known for the rest of the process.
    monkeypatch.setattr(REGISTRY, "_loaded", {})
    monkeypatch.setattr(REGISTRY, "_places", {})
    Path("commit_of_names.py").write_text(COMMIT, encoding="utf-8")
    return "commit_of_names.py:commit"


def traced(place: str, variant: str = "hasty") -> TracedProtocol:
    return REGISTRY.named(place).protocol.traced(variant)


def test_a_counterexample_has_the_names(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", place, "--variant", "hasty"]) == 1
    told = capsys.readouterr().out
    for line in ("decide(outcome=commit)", "-> committed", "phase working", "decision  undecided -> commit"):
        assert line in told
    assert "phase[0] is aborted, phase[1] is committed" in told
    assert "heard none" in told, "a dead cell holds none of the names"
    files = ["--html", "run.html", "--graph", "all.dot", "--trace-out", "run.jsonl"]
    assert main(["explore", place, "--variant", "hasty", "--json", *files]) == 1
    steps = json.loads(capsys.readouterr().out)["trace"]
    assert {"action": "decide", "params": {"outcome": "commit"}} in steps
    page, graph = Path("run.html").read_text(encoding="utf-8"), Path("all.dot").read_text(encoding="utf-8")
    assert "outcome=commit" in page and "seen[prepared]" in page and "committed" in page
    assert "phase[0] = working" in graph and "decide(outcome=abort)" in graph and "heard[0] = NONE" in graph


def test_a_trace_has_the_names_and_is_read_by_names_alone(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", place, "--variant", "hasty", "--trace-out", "run.jsonl"]) == 1
    text = Path("run.jsonl").read_text(encoding="utf-8")
    header, *events = [json.loads(line) for line in text.splitlines()]
    assert events[0]["params"] == {"outcome": "commit"}
    assert events[0]["observed"]["phase[0]"] == "working" and events[0]["observed"]["heard[0]"] is None
    assert "seen[prepared]" in events[0]["observed"]
    schema = trace_schema()
    jsonschema.validate(header, schema | {"$ref": "#/$defs/header"})
    for event in events:
        jsonschema.validate(event, schema | {"$ref": "#/$defs/event"})
    capsys.readouterr()
    assert main(["replay", "run.jsonl", "--protocol", place]) == 1
    assert "decide(outcome=commit)" in capsys.readouterr().out
    # The safe variant refuses it, and says so by names.
    assert main(["replay", "run.jsonl", "--protocol", place, "--variant", "safe"]) == 1
    told = capsys.readouterr().out
    assert "guard all_prepared wants" in told and "phase[0] is working" in told
    for old, new, says in (
        (
            '"outcome": "commit"',
            '"outcome": 1',
            "line 2: outcome of decide is 1; give 'undecided' or 'commit' or 'abort', or null",
        ),
        ('"outcome": "commit"', '"outcome": "comit"', "line 2: outcome of decide is \"comit\"; give 'undecided' or"),
        (
            '"participant": 1',
            '"participant": "one"',
            'line 3: participant of learn is "one"; give an integer from 0 to 1, or null',
        ),
        (
            '"phase[0]": "working"',
            '"phase[0]": 0',
            "line 2: phase[0] is observed as 0; give 'working' or 'prepared' or",
        ),
        (
            '"phase[0]": "working"',
            '"phase[0]": null',
            "line 2: phase[0] is observed as null; give 'working' or 'prepared' or",
        ),
        (
            "seen[prepared]",
            "seen[1]",
            'line 2: the state has no cell "seen[1]"; seen has seen[working] to seen[aborted]',
        ),
    ):
        Path("bad.jsonl").write_text(text.replace(old, new), encoding="utf-8")
        assert main(["replay", "bad.jsonl", "--protocol", place]) == 2
        assert f"fencepost: bad.jsonl, {says}" in capsys.readouterr().err


def test_engines_see_integers_and_agree(place: str) -> None:
    for variant, verdict in (("hasty", "violated"), ("safe", "holds")):
        system = ground(traced(place, variant), {})
        answers = [explore(Query.of(system), engine) for engine in ("batch", "reference")]
        assert {(a.verdict.value, a.distinct, a.depth) for a in answers} == {
            (verdict, answers[0].distinct, answers[0].depth)
        }
        assert all(type(value) is int for step in answers[0].path or () for value in step.state)
    check = crosscheck(
        ground(traced(place, "safe"), {"replicas": 1}), exhaustive(ground(traced(place, "safe"), {"replicas": 1})), 1
    )
    assert check.first_failure is None


def test_a_refusal_a_shape_and_a_row_have_the_names(place: str) -> None:
    system = ground(traced(place, "safe"), {})
    reference = Reference(system)
    (params,) = [i.params for i in system.by_step.values() if str(i) == "decide(outcome=commit)"]
    refused = refusal(reference, system.initial, "decide", params)
    assert str(refused) == (
        "decide(outcome=commit): guard all_prepared wants (outcome != commit) or (forall replica0: phase[replica0] == "
        "prepared); phase[0] is working"
    )
    answer = explore(Query.of(ground(traced(place), {})))
    assert answer.path is not None
    trace = record(answer.query.system, answer.path)
    header = CorpusHeader("commit", "hasty", {"replicas": 2})
    layout = CorpusLayout.of(header)
    again = trace_of(events_of(layout, [(7, trace)]), 0)
    assert again.events == trace.events
    assert [event.call for event in again.events] == [step.instance.__str__() for step in answer.path]
    shape = shape_of(system.traced.protocol, [(event.action, event.params) for event in trace.events])
    assert "decide(outcome=commit)" in shape


def test_an_enumeration_has_no_bound_to_shift(place: str) -> None:
    """``told == s.decision`` compares with a parameter, as bounds do; a next value of an enumeration means nothing."""
    assert {mutant.change for mutant in mutants(traced(place, "safe"))} == {"dropped"}


def test_protocols_tells_the_names(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocols", place]) == 0
    assert "outcome: decision (undecided | commit | abort)" in capsys.readouterr().out
    assert main(["protocols", place, "--json"]) == 0
    assert "working | prepared | committed | aborted" in capsys.readouterr().out


def test_a_recorded_trace_is_read_back_as_it_was(place: str) -> None:
    answer = explore(Query.of(ground(traced(place), {})))
    assert answer.path is not None
    main(["explore", place, "--variant", "hasty", "--trace-out", "run.jsonl"])
    assert read_trace("run.jsonl").events == record(answer.query.system, answer.path).events
