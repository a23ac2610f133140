"""Mining whole corpora: every planted fault is one group, nothing else is found, however a corpus is cut."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fencepost.conformance.cli import main
from fencepost.model.core.errors import BadInput
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore.result import Verdict
from fencepost.traces.corpus.convert import events_of
from fencepost.traces.corpus.faults import ALL, faults_named
from fencepost.traces.corpus.files import write_events
from fencepost.traces.corpus.layout import CorpusHeader, CorpusLayout
from fencepost.traces.corpus.manifest import read_corpus, write_manifest
from fencepost.traces.corpus.plan import make_plan
from fencepost.traces.corpus.simulate import simulate, simulation, walker
from fencepost.traces.corpus.spread import SERIAL
from fencepost.traces.format import Trace, TraceEvent
from fencepost.traces.mine.answer import TIMES, Answer
from fencepost.traces.mine.bad_step import explaining
from fencepost.traces.mine.job import Asked, conclude, mine, mine_files, units_of
from fencepost.traces.mine.minimal import bad_step_of, bug_in
from fencepost.traces.mine.reachable_gap import Known
from fencepost.traces.mine.work_unit import Question
from fencepost.traces.mine.workers import Progress, Workers
from fencepost.traces.read import read_trace
from fencepost.traces.replay import Budget, replay, traced_of
from fencepost.traces.stepper import DirectStepper

from .conftest import FAULTS, TRACES

NO_GRAPH = 0
CONSTANTS = PROTOCOLS["fencing"].constants


def text(answer: Answer) -> str:
    """The answer without what is timed."""
    return json.dumps({name: value for name, value in answer.to_json().items() if name not in TIMES})


@pytest.fixture(scope="module")
def answer(planted: Any) -> Answer:
    return mine(Asked(planted(3), max_states=NO_GRAPH))


def test_each_planted_fault_is_one_group_and_nothing_else_is_found(planted: Any, truth: Any, answer: Answer) -> None:
    by_fault: dict[str, list[int]] = {}
    for trace, each in truth(planted(3)).items():
        by_fault.setdefault(each["fault"], []).append(trace)
    assert answer.verdict is Verdict.VIOLATED
    assert (answer.traces, answer.violating_traces, answer.groups_left_off) == (TRACES, 40, 0)
    found = {group.mutants[0]: group for group in answer.groups}
    # A guard left out lets through whatever one that is off by one does.
    named = {"become_leader.epoch_newer bound +1": "become_leader.epoch_newer dropped"}
    assert found.keys() == {named.get(name, name) for name in FAULTS}
    for name, traces in by_fault.items():
        group = found[named.get(name, name)]
        assert (group.count, group.first) == (len(traces), min(traces))
        assert group.shortest in traces


def test_a_minimal_trace_is_refused_for_the_reason_of_its_group(answer: Answer, tmp_path: Path) -> None:
    for group in answer.groups:
        assert group.minimal is not None and group.minimised and group.note is None
        assert len(group.minimal) <= group.prefix
        bug = bug_in(group.minimal, DirectStepper(traced_of(group.minimal), group.minimal.header.constants))
        assert bug is not None
        assert (bug.kind, bug.action, bug.guard) == (group.bug.kind, group.bug.action, group.bug.guard)
        # One step less, and nothing is wrong.
        before = replace(group.minimal, events=group.minimal.events[:-1])
        assert replay(before).verdict is Verdict.HOLDS
        assert len(group.shape) <= 3


def test_a_corpus_without_faults_holds(planted: Any) -> None:
    answer = mine(Asked(planted(2, faults=False), max_states=NO_GRAPH))
    assert (answer.verdict, answer.groups, answer.violating_traces) == (Verdict.HOLDS, (), 0)


@pytest.mark.parametrize("files", [1, 7, 64])
def test_the_answer_is_the_same_in_so_many_files(planted: Any, answer: Answer, files: int) -> None:
    assert len(read_corpus(planted(files)).files) == files
    assert text(mine(Asked(planted(files), max_states=NO_GRAPH))) == text(answer)


def test_the_answer_is_the_same_in_any_order_of_files(planted: Any, answer: Answer) -> None:
    asked = Asked(planted(7), max_states=NO_GRAPH)
    files = read_corpus(asked.corpus).files
    with Workers(SERIAL) as workers:
        for order in (files[::-1], files[3:] + files[:3]):
            part = mine_files(order, Question(), workers)
            again = conclude(part, {model: Known(None, None) for model in part.seen}, asked, workers, 0.0)
            assert text(again) == text(answer)


def test_a_corpus_may_be_named_by_its_uri_or_from_another_folder(
    planted: Any, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = planted(3)
    monkeypatch.chdir(corpus.parent)
    for named in (Path(corpus.as_uri()), Path(corpus.name)):
        assert text(mine(Asked(named, max_states=NO_GRAPH))) == text(answer)


def test_files_are_cut_so_that_every_worker_is_busy_and_no_row_group_is_left_out(planted: Any) -> None:
    files = [replace(file, events=40 << 17) for file in read_corpus(planted(3)).files]
    for tasks in (1, 2, 16):
        units = units_of(files, tasks)
        assert len(units) >= min(3 * 40, 4 * tasks)
        by_path = Counter(unit.file.path for unit in units)
        assert set(by_path) == {file.path for file in files}
        for path in by_path:
            mine_ = sorted((unit.low, unit.high) for unit in units if unit.file.path == path)
            assert mine_[0][0] == 0 and mine_[-1][1] > 1 << 30
            assert all(high == low for (_, high), (low, _) in pairwise(mine_))


def test_a_file_that_is_not_what_the_manifest_says_is_named(planted: Any, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    shutil.copytree(planted(3), folder)
    told = json.loads((folder / "manifest.json").read_text())
    told["files"][1]["events"] += 1
    told["events"] += 1
    (folder / "manifest.json").write_text(json.dumps(told))
    answer = mine(Asked(folder, max_states=NO_GRAPH))
    assert [each.where for each in answer.problems] == [str(folder / "part-00001.parquet")]
    assert "its count of events is not that of the manifest" in answer.problems[0].what
    assert answer.traces < mine(Asked(planted(3), max_states=NO_GRAPH)).traces


@pytest.mark.parametrize(
    ("path", "key", "by", "said"),
    [
        ("manifest.json", "traces", 20, "it says 720 traces in all, and of its files 700"),
        ("manifest.json", "events", -1, "events in all, and of its files"),
        ("part-00001.parquet", "traces", -1, "it has 233 traces, and by the manifest 232"),
        ("part-00000.parquet", "last", -1, "it has traces 0 to 232, and by the manifest 0 to 231"),
        ("part-00002.parquet", "first", 1, "it has traces 466 to 699, and by the manifest 467 to 699"),
    ],
)
def test_counts_that_are_not_those_of_the_files_leave_the_answer_open(
    planted: Any, tmp_path: Path, path: str, key: str, by: int, said: str
) -> None:
    folder = tmp_path / "corpus"
    shutil.copytree(planted(3, faults=False), folder)
    told = json.loads((folder / "manifest.json").read_text())
    listed = [each["name"] for each in told["files"]]
    if path in listed:
        entry = told["files"][listed.index(path)]
        entry[key] += by
        # One less in all and, where an end is another, among fewer ids, or the manifest would be wrong in itself.
        entry["traces"] -= key != "traces"
        told["traces"] -= 1
    else:
        told[key] += by
    (folder / "manifest.json").write_text(json.dumps(told))
    answer = mine(Asked(folder, max_states=NO_GRAPH))
    assert answer.verdict is Verdict.UNKNOWN
    assert [each.where for each in answer.problems] == [str(folder / path)]
    assert said in answer.problems[0].what


def test_a_model_too_large_to_be_grounded_is_unknown_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = CorpusLayout.of(CorpusHeader("fencing", "kip-320", dict.fromkeys(CONSTANTS, 63)))
    event = TraceEvent(1, next(iter(layout.actions)), dict.fromkeys(layout.param_names[0], 0))
    written = write_events(
        tmp_path / "part-00000.parquet", layout, [events_of(layout, [(7, Trace(layout.header.of_trace(), (event,)))])]
    )
    write_manifest(tmp_path, [written])
    start = time.monotonic()
    assert main(["mine", str(tmp_path), "--master", "serial"]) == 3
    assert time.monotonic() - start < 60
    said = capsys.readouterr().out
    assert "verdict  unknown" in said
    assert "unknown  1 trace, the first 7: grounding 270,207 instances of actions over 8,386 cells takes" in said


def test_the_changes_that_explain_an_outcome_are_those_of_the_reference(tmp_path: Path) -> None:
    """Of all planted faults, each outcome's mutants, found for whole columns, beside those of the shortest trace."""
    asked = simulation("truncation", None, {}, 6_000, 40, 11, 1)
    traced = PROTOCOLS["truncation"].traced()
    names = faults_named(traced, (ALL,))
    plan = make_plan(walker(asked, names), names, (), asked.traces, 1_500, asked.events)
    simulate(asked, tmp_path / "c", plan)
    with Workers(SERIAL) as workers:
        part = mine_files(read_corpus(tmp_path / "c").files, Question(), workers)
    effects = [each for each in part.sightings.values() if each.bug.kind == "effect"]
    assert len({each.bug for each in effects}) > len({each.bug.seen for each in effects}) > 10
    for each in effects:
        found = bad_step_of(each.bug, each.model, each.trace, Budget())
        assert found is not None
        explained = explaining(traced, dict(each.model[2]), found[1])
        assert tuple(change.name for change in explained if change.mutant) == each.bug.changes


def test_fewer_groups_are_told_where_asked_and_the_others_counted(planted: Any) -> None:
    few = mine(Asked(planted(3), max_groups=1, max_states=NO_GRAPH))
    assert (len(few.groups), few.groups_left_off, few.violating_traces) == (1, 3, 40)


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_mined(planted: Any, tmp_path: Path) -> None:
    for faults, verdict in ((True, Verdict.VIOLATED), (False, Verdict.UNKNOWN)):
        folder = tmp_path / str(faults)
        folder.mkdir()
        for path in planted(3, faults=faults).iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        damaged = folder / "part-00001.parquet"
        raw = bytearray(damaged.read_bytes())
        raw[len(raw) // 3] ^= 0x55
        damaged.write_bytes(raw)
        answer = mine(Asked(folder, max_states=NO_GRAPH))
        assert answer.verdict is verdict
        assert [problem.where.partition(",")[0] for problem in answer.problems] == [str(damaged)]
        whole = mine(Asked(planted(3, faults=faults), max_states=NO_GRAPH))
        assert 0 < answer.traces < whole.traces


def test_an_unknown_variant_and_one_with_another_state_are_refused(planted: Any) -> None:
    with pytest.raises(BadInput, match="no variant 'kip-999'"):
        mine(Asked(planted(3), "kip-999", max_states=NO_GRAPH))
    with pytest.raises(BadInput, match="traces are of kip-320, whose state is not that of kip-320-brokers"):
        mine(Asked(planted(3), "kip-320-brokers", max_states=NO_GRAPH))


def test_a_variant_that_does_not_keep_its_promises_is_a_bug_of_its_own(tmp_path: Path) -> None:
    """Walks of the oldest rules, held against these: no step is refused, and a promise breaks."""
    simulate(simulation("fencing", "truncate-to-hw", {}, 4000, 40, 1), tmp_path / "corpus")
    answer = mine(Asked(tmp_path / "corpus", "truncate-to-hw", max_states=NO_GRAPH))
    assert {group.bug.kind for group in answer.groups} == {"promise"}
    for group in answer.groups:
        assert group.minimal is not None and group.minimised
        found = replay(group.minimal)
        assert (found.verdict, found.violated) == (Verdict.VIOLATED, group.bug.invariant)


def test_the_command_writes_traces_that_replay_refuses(
    planted: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report"
    words = ["mine", str(planted(3)), "--master", SERIAL, "--max-states", "0", "--json", "--out", str(out)]
    assert main(words) == 1
    said = capsys.readouterr()
    told = json.loads(said.out)
    fields = "verdict traces events violating_traces groups coverage seconds events_per_second"
    assert set(fields.split()) <= told.keys()
    assert "of 3 files" in said.err
    for group in told["groups"]:
        assert main(["replay", str(out / group["file"]), "--json"]) == 1
        answer = json.loads(capsys.readouterr().out)
        signature = group["signature"]
        assert answer["event"]["action"] == signature["action"]
        assert answer["step"] == len(read_trace(out / group["file"]))
        if signature["kind"] == "guard":
            assert answer["frontier"][0]["event"][0]["guard"] == signature["guard"]


def test_the_command_tells_bad_input_from_a_violation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", tmp_path / "missing"):
        assert main(["mine", str(place), "--master", SERIAL]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    traces = tmp_path / "traces"
    traces.mkdir()
    (traces / "one.trace.jsonl").write_text("{}")
    assert main(["mine", str(traces), "--master", SERIAL]) == 2
    assert "fencepost ingest" in capsys.readouterr().err


def test_progress_comes_to_all_files_and_events(planted: Any) -> None:
    told: list[Progress] = []
    answer = mine(Asked(planted(7), max_states=NO_GRAPH), on_progress=told.append)
    last = told[-1]
    assert (last.files, last.of, last.events, last.violations) == (7, 7, answer.events, answer.violating_traces)
    assert [each.events for each in told] == sorted(each.events for each in told)


def test_nothing_depends_on_the_hashing_of_names(planted: Any, answer: Answer) -> None:
    """Another process, with another seed of string hashes."""
    words = ["mine", str(planted(3)), "--master", SERIAL, "--max-states", "0", "--json"]
    run = f"import sys; from fencepost.conformance.cli import main; sys.exit(main({words!r}))"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    done = subprocess.run([sys.executable, "-c", run], env=environment, capture_output=True, text=True, check=False)
    told = {name: value for name, value in json.loads(done.stdout).items() if name not in TIMES}
    assert json.dumps(told) == text(answer)


WHY = "the log of node 2 ends early"


def _mined_partial(tmp_path: Path, events: tuple[TraceEvent, ...], *, observed: bool) -> Answer:
    constants = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
    header = CorpusHeader("fencing", "kip-320", constants, partial=WHY)
    layout = CorpusLayout.of(header)
    trace = Trace(header.of_trace(), events)
    out = tmp_path / ("observed" if observed else "bare")
    out.mkdir()
    written = write_events(out / "part-00000.parquet", layout, [events_of(layout, [(0, trace), (1, trace)])])
    write_manifest(out, [written])
    return mine(Asked(out, max_states=NO_GRAPH))


@pytest.mark.parametrize("observed", [True, False])
def test_mine_answers_unknown_for_partial_traces(tmp_path: Path, observed: bool) -> None:
    seen = {"quorum_leader": 0} if observed else {}
    good = (TraceEvent(1, "controller_elect_leader", {"new_leader": 0}, seen),)
    answer = _mined_partial(tmp_path, good, observed=observed)
    assert answer.verdict is Verdict.UNKNOWN
    assert [(each.reason, each.count, each.first) for each in answer.unknown] == [
        (f"the trace is partial: {WHY}", 2, 0)
    ]


def test_mine_finds_bugs_in_partial_traces(tmp_path: Path) -> None:
    bad = (TraceEvent(1, "become_leader", {"leader": 0, "epoch": 2}),)
    answer = _mined_partial(tmp_path, bad, observed=False)
    assert (answer.verdict, answer.violating_traces, answer.unknown) == (Verdict.VIOLATED, 2, ())
