"""Batches of arriving files without Spark: the answer of the batch job, repeats counted, each event once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.corpus.convert import events_of, trace_of
from fencepost.traces.corpus.files import open_events, write_events
from fencepost.traces.corpus.layout import CorpusLayout, Events
from fencepost.traces.corpus.manifest import read_corpus
from fencepost.traces.corpus.plan import make_plan
from fencepost.traces.corpus.simulate import simulate, simulation, walker
from fencepost.traces.corpus.spread import SERIAL
from fencepost.traces.mine.answer import TIMES, Answer
from fencepost.traces.mine.follow import Batch, Follower
from fencepost.traces.mine.follow_state import Journal, State
from fencepost.traces.mine.job import Asked, mine, mine_files
from fencepost.traces.mine.part_json import part_from_json, part_to_json
from fencepost.traces.mine.repeats import Repeats
from fencepost.traces.mine.work_unit import Question
from fencepost.traces.mine.workers import Workers

FAULTS = ("follower_fetch.epoch_not_fenced dropped", "kip-101")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six files of random walks, some of which show a fault; no manifest, as files that arrive have none."""
    folder = tmp_path_factory.mktemp("corpora") / "corpus"
    asked = simulation("fencing", None, {"replicas": 2}, 120, 30, 5, 6)
    simulate(asked, folder, make_plan(walker(asked, FAULTS), FAULTS, FAULTS, asked.traces, 20, asked.events))
    for path in folder.iterdir():
        if path.suffix != ".parquet":
            path.unlink()
    return folder


def told(answer: Answer) -> str:
    """The answer without its times, as text."""
    return json.dumps({name: value for name, value in answer.to_json().items() if name not in TIMES}, indent=1)


class Run:
    """A folder that is followed by this process, batch by batch."""

    def __init__(self, folder: Path, checkpoint: Path, workers: Workers) -> None:
        self.batches: list[Batch] = []
        self.follower = Follower(
            Asked(folder), folder, Journal(checkpoint, {"folder": str(folder)}), workers, self._told
        )

    def _told(self, batch: Batch, _answer: object) -> None:
        self.batches.append(batch)

    def mine(self, number: int, *names: str) -> Batch:
        self.follower.mine(number, names)
        return self.batches[-1]


@pytest.fixture
def workers() -> Workers:
    return Workers(SERIAL)


def test_a_part_outlives_being_written(corpus: Path, workers: Workers) -> None:
    part = mine_files(read_corpus(corpus).files, Question(), workers)
    assert part.sightings and part.seen
    text = json.dumps(part_to_json(part))
    again = part_from_json(json.loads(text))
    assert json.dumps(part_to_json(again)) == text
    assert again.sightings == part.sightings
    # What is merged in is taken over, so each merge is given its own.
    one = part_from_json(json.loads(text)).merge(again)
    assert (one.traces, one.events, one.violating) == (2 * part.traces, 2 * part.events, 2 * part.violating)
    assert {bug: each.count for bug, each in one.sightings.items()} == {
        bug: 2 * each.count for bug, each in part.sightings.items()
    }


@pytest.mark.parametrize(
    "order",
    [
        [["part-00000", "part-00001", "part-00002", "part-00003", "part-00004", "part-00005"]],
        [["part-00005"], ["part-00003", "part-00001"], [], ["part-00000", "part-00002", "part-00004"]],
    ],
    ids=["at-once", "in-disorder"],
)
def test_batches_come_to_the_answer_of_the_batch_job(
    corpus: Path, tmp_path: Path, workers: Workers, order: Sequence[Sequence[str]]
) -> None:
    run = Run(corpus, tmp_path / "checkpoint", workers)
    for number, names in enumerate(order):
        batch = run.mine(number, *(f"{name}.parquet" for name in names))
        assert batch.files == len(names)
    assert told(run.follower.answer()) == told(mine(Asked(corpus), SERIAL))
    bugs = [bug for batch in run.batches for bug in batch.new]
    assert len(bugs) == len(set(bugs)) > 0


def test_json_lines_that_arrive_are_named_as_by_the_batch_job(corpus: Path, tmp_path: Path, workers: Workers) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(corpus / "part-00001.parquet", folder)
    (folder / "late.trace.jsonl").write_text("{}\n")
    (folder / "planted.jsonl").write_text("{}\n")
    run = Run(folder, tmp_path / "checkpoint", workers)
    run.mine(0, "part-00001.parquet")
    batch = run.mine(1, "late.trace.jsonl")
    path = folder / "late.trace.jsonl"
    assert [str(each) for each in batch.problems] == [
        f"{path}: it is JSON Lines, and no file of a corpus; fencepost ingest makes a corpus of it"
    ]
    assert told(run.follower.answer()) == told(mine(Asked(folder), SERIAL))


def test_a_batch_that_is_done_twice_counts_once(corpus: Path, tmp_path: Path, workers: Workers) -> None:
    """The process ends after the state of a batch is written, and before Spark has noted that it was done."""
    first = Run(corpus, tmp_path / "checkpoint", workers)
    first.mine(0, "part-00000.parquet", "part-00001.parquet")
    first.mine(1, "part-00002.parquet", "part-00003.parquet")
    before = (tmp_path / "checkpoint" / "batch-00000001.json").read_text()
    again = Run(corpus, tmp_path / "checkpoint", workers)
    assert again.follower.answer().events == first.follower.answer().events
    again.mine(1, "part-00002.parquet", "part-00003.parquet")
    after = (tmp_path / "checkpoint" / "batch-00000001.json").read_text()
    assert [{**json.loads(text), "seconds": 0} for text in (after,)] == [{**json.loads(before), "seconds": 0}]
    again.mine(2, "part-00004.parquet", "part-00005.parquet")
    assert told(again.follower.answer()) == told(mine(Asked(corpus), SERIAL))


def test_only_the_last_batches_files_are_kept(corpus: Path, tmp_path: Path, workers: Workers) -> None:
    run = Run(corpus, tmp_path / "checkpoint", workers)
    for number in range(6):
        run.mine(number, f"part-{number:05d}.parquet")
    assert sorted(path.name for path in (tmp_path / "checkpoint").glob("batch-*")) == [
        f"batch-{number:08d}.json" for number in (3, 4, 5)
    ]
    with pytest.raises(BadInput, match="batch 0 cannot be read: No such file"):
        run.mine(1, "part-00001.parquet")


def test_what_came_before_is_counted_and_named(corpus: Path, tmp_path: Path, workers: Workers) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(corpus / "part-00001.parquet", folder / "first.parquet")
    shutil.copy(corpus / "part-00001.parquet", folder / "second.parquet")
    run = Run(folder, tmp_path / "checkpoint", workers)
    clean = run.mine(0, "first.parquet")
    assert clean.problems == () and clean.events > 0
    batch = run.mine(1, "second.parquet")
    assert batch.events == 0 and batch.state.duplicate == clean.events
    assert (batch.state.late, batch.state.continued) == (0, 0)
    assert f"{clean.events:,} duplicate events, the first of trace 20 at step 1" in batch.problems[0].what
    assert batch.problems[0].where == str(folder / "second.parquet")
    assert f"{clean.events:,} duplicate events" in str(batch)
    # The batch job refuses the same file, so the verdicts are the same.
    live, job = run.follower.answer(), mine(Asked(folder), SERIAL)
    assert (live.verdict, live.events, live.violating_traces) == (job.verdict, job.events, job.violating_traces)
    assert [each.where for each in live.problems] == [each.where for each in job.problems]


def test_late_and_continued_events_are_told_apart(corpus: Path, tmp_path: Path, workers: Workers) -> None:
    """Steps 1, 3 and 5 of one trace come first; then 2 (late), 3 (a duplicate) and 6 (after all that had come)."""
    folder = tmp_path / "in"
    folder.mkdir()
    with open_events(corpus / "part-00000.parquet") as file:
        events = Events.joined(list(file))
        header = replace(file.header, complete=False)
    trace = trace_of(events, 0)
    layout = CorpusLayout.of(header)
    for name, steps in (("a", (1, 3, 5)), ("b", (2, 3, 6))):
        chosen = replace(trace, events=tuple(event for event in trace.events if event.step in steps))
        write_events(folder / f"{name}.parquet", layout, [events_of(layout, [(7, chosen)])])
    run = Run(folder, tmp_path / "checkpoint", workers)
    run.mine(0, "a.parquet")
    state = run.mine(1, "b.parquet").state
    assert (state.duplicate, state.late, state.continued) == (1, 1, 1)
    assert "1 duplicate event and 1 late event and 1 continued event, the first of trace 7 at step 2" in str(
        run.batches[-1].problems[0]
    )


def test_ids_between_those_of_another_file_repeat_nothing(corpus: Path, tmp_path: Path, workers: Workers) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    with open_events(corpus / "part-00000.parquet") as file:
        events = Events.joined(list(file))
    for name, odd in (("a", 0), ("b", 1)):
        spread = replace(events, trace=2 * events.trace + odd)
        write_events(folder / f"{name}.parquet", events.layout, [spread])
    run = Run(folder, tmp_path / "checkpoint", workers)
    batch = run.mine(0, "a.parquet", "b.parquet")
    assert (batch.state.duplicate, batch.state.late, batch.state.continued) == (0, 0, 0)
    assert batch.problems[0].what == "it has trace 1, within those of a.parquet (to 38), which came before it"
    assert Repeats().told == ""


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_mined(
    corpus: Path, tmp_path: Path, workers: Workers
) -> None:
    folder = tmp_path / "in"
    shutil.copytree(corpus, folder)
    whole = (folder / "part-00002.parquet").read_bytes()
    (folder / "part-00002.parquet").write_bytes(whole[: len(whole) // 2])
    run = Run(folder, tmp_path / "checkpoint", workers)
    batch = run.mine(0, *sorted(path.name for path in folder.iterdir()))
    assert [problem.where for problem in batch.problems] == [str(folder / "part-00002.parquet")]
    assert told(run.follower.answer()) == told(mine(Asked(folder), SERIAL))


def test_a_checkpoint_of_other_work_is_refused(tmp_path: Path) -> None:
    about = {"folder": "a", "variant": None}
    Journal(tmp_path / "c", dict(about))
    Journal(tmp_path / "c", dict(about))
    with pytest.raises(BadInput, match="the checkpoint is that of other work: another variant; name another folder"):
        Journal(tmp_path / "c", {**about, "variant": "kip-101"})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious.txt").touch()
    with pytest.raises(BadInput, match="the folder holds something else than a checkpoint"):
        Journal(tmp_path / "other", dict(about))
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot be written: File exists"):
        Journal(tmp_path / "file", dict(about))


def test_a_damaged_state_is_refused_by_name(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "c", {})
    journal.write(State(batch=0))
    assert journal.last() == State(batch=0) == journal.read(0)
    path = tmp_path / "c" / "batch-00000000.json"
    for text in ("", "[]", '{"batch": 0}', path.read_text().replace('"batch": 0', '"batch": 7')):
        path.write_text(text)
        with pytest.raises(BadInput, match=r"batch-00000000\.json: the checkpoint is damaged: .*; name another folder"):
            journal.read(0)
