"""Traces into a corpus: each comes out as it went in, and a bad file is named while the others are laid out."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.corpus import ingest as ingesting
from fencepost.traces.corpus.convert import trace_of
from fencepost.traces.corpus.ingest import Ingested, NothingIngested, files_below, ingest_files
from fencepost.traces.corpus.logs import look_at, not_laid_out
from fencepost.traces.corpus.manifest import SOURCES, read_corpus
from fencepost.traces.format import Trace
from fencepost.traces.kafka.abstraction import ABSENT, Abstraction, Block
from fencepost.traces.vocabulary import vocabulary_of
from fencepost.traces.write import write_trace


def ingested(folder: Path, out: Path) -> Ingested:
    return ingest_files(folder, files_below(folder, "*.jsonl"), out)


def read_all(out: Path) -> dict[str, Trace]:
    """Every trace of a corpus by the name that its sources give it."""
    rows = [json.loads(line) for line in (out / SOURCES).read_text().splitlines()]
    names = {row["trace"]: row for row in rows}
    found = {}
    for file in read_corpus(out).files:
        with file.open() as opened:
            for events in opened:
                for place in range(events.starts.size):
                    trace = trace_of(events, place)
                    number = trace.header.source["trace"]
                    assert isinstance(number, int)
                    source = names[number].get("source", {})
                    found[names[number]["file"]] = dataclasses.replace(
                        trace, header=dataclasses.replace(trace.header, source=source)
                    )
    assert len(found) == len(rows)
    return found


@pytest.fixture
def mixed(tmp_path: Path, traces: list[Trace]) -> tuple[Path, dict[str, Trace]]:
    """Whole and partial traces, complete and not, in folders; with sources and without."""
    folder = tmp_path / "src"
    (folder / "deep").mkdir(parents=True)
    written: dict[str, Trace] = {}
    for number, trace in enumerate(traces):
        header = trace.header
        events = trace.events
        if number % 3 == 0:
            events = tuple(dataclasses.replace(e, observed=dict(list(e.observed.items())[:4])) for e in events)
        if number % 4 == 0:
            header = dataclasses.replace(header, complete=False, source={"recorded by": f"number {number}"})
            events = tuple(dataclasses.replace(e, step=2 * e.step) for e in events)
        name = f"deep/{number:02d}.jsonl" if number % 2 else f"{number:02d}.trace.jsonl"
        written[name] = Trace(header, events)
        write_trace(folder / name, written[name])
    return folder, written


def test_what_goes_in_comes_out(mixed: tuple[Path, dict[str, Trace]], tmp_path: Path) -> None:
    folder, written = mixed
    done = ingested(folder, tmp_path / "out")
    assert (done.traces, done.problems) == (12, ())
    assert done.events == sum(map(len, written.values()))
    assert read_all(tmp_path / "out") == written
    corpus = read_corpus(tmp_path / "out")
    # Complete or not, and observed in full or in part: each kind has a file of its own.
    assert len(corpus.files) == 4 and {file.header.complete for file in corpus.files} == {True, False}
    whole = []
    for file in corpus.files:
        with file.open() as opened:
            whole.append(opened.read(0).seen is None)
    assert sorted(whole) == [False, False, True, True]


def test_a_corpus_is_the_same_in_pieces(
    mixed: tuple[Path, dict[str, Trace]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, written = mixed
    ingested(folder, tmp_path / "one")
    monkeypatch.setattr(ingesting, "PIECE_FILES", 5)
    ingested(folder, tmp_path / "pieces")
    assert len(read_corpus(tmp_path / "pieces").files) > 4
    assert read_corpus(tmp_path / "pieces").problems == ()
    assert read_all(tmp_path / "pieces") == read_all(tmp_path / "one") == written
    monkeypatch.setattr(ingesting, "PIECE_BYTES", 1)
    done = ingested(folder, tmp_path / "each")
    assert len(done.files) == 12
    assert read_all(tmp_path / "each") == written
    again = ingested(folder, tmp_path / "again")
    assert again == done
    for path in (tmp_path / "each").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def spoil(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_bad_files_are_named_and_the_rest_laid_out(mixed: tuple[Path, dict[str, Trace]], tmp_path: Path) -> None:
    folder, written = mixed
    spoil(folder / "02.trace.jsonl", '"step": 3', '"step": 4')
    spoil(folder / "deep/05.jsonl", '"step": 4', '"step": 3')
    spoil(folder / "06.trace.jsonl", '"version": 1', '"version": 0')
    spoil(folder / "deep/07.jsonl", '"observed"', '"seen"')
    (folder / "deep/09.jsonl").write_text((folder / "deep/09.jsonl").read_text().splitlines()[0] + "\n")
    (folder / "10.trace.jsonl").write_bytes(b"\x89PNG")
    (folder / "deep/11.jsonl").write_text("")
    done = ingested(folder, tmp_path / "out")
    told = [str(problem) for problem in done.problems]
    assert [line.removeprefix(f"{folder}/").partition(";")[0] for line in told] == [
        "02.trace.jsonl, line 4: step 4 stands where step 3 should, and the trace is said to be complete",
        "06.trace.jsonl, line 1: the format's version is 0",
        "10.trace.jsonl, line 1: byte 0 of the line is not UTF-8 (the file ends in the middle of this line)",
        "deep/05.jsonl, line 5: step 3 comes after step 3 of line 4",
        'deep/07.jsonl, line 2: the event has a field "seen"',
        "deep/09.jsonl: the trace has no event",
        "deep/11.jsonl, line 1: the file is empty",
    ]
    bad = {"02.trace.jsonl", "deep/05.jsonl", "06.trace.jsonl", "deep/07.jsonl", "deep/09.jsonl", "10.trace.jsonl"}
    left = {name: trace for name, trace in written.items() if name not in bad | {"deep/11.jsonl"}}
    assert read_all(tmp_path / "out") == left


def test_nothing_to_ingest_leaves_nothing(mixed: tuple[Path, dict[str, Trace]], tmp_path: Path) -> None:
    folder, _ = mixed
    for path in files_below(folder, "*.jsonl"):
        path.write_text("")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(NothingIngested) as nothing:
        ingested(folder, tmp_path / "out")
    assert len(nothing.value.ingested.problems) == 12
    assert sorted(tmp_path.iterdir()) == before


def test_an_unreadable_file_and_folder_are_named(mixed: tuple[Path, dict[str, Trace]], tmp_path: Path) -> None:
    folder, _ = mixed
    (folder / "02.trace.jsonl").unlink()
    (folder / "02.trace.jsonl").symlink_to(folder / "nowhere")
    assert len(files_below(folder, "*.jsonl")) == 11, "a link to nothing is no file"
    done = ingest_files(folder, [*files_below(folder, "*.jsonl"), folder / "gone.jsonl"], tmp_path / "out")
    assert [str(problem).partition(";")[0] for problem in done.problems] == [
        f"{folder}/gone.jsonl: cannot be read: No such file or directory"
    ]
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="there is no such folder to put it in"):
        ingested(folder, tmp_path / "none" / "out")
    assert not (tmp_path / "none").exists()


def block(first: int, last: int, epochs: tuple[int, ...], identities: tuple[int, ...]) -> Block:
    return Block(first, last, epochs, identities)


def test_logs_are_told_as_far_as_the_files_show_them() -> None:
    blocks = (block(0, 9, (0, 0), (0, 0)), block(10, 10, (3, ABSENT), (0, ABSENT)))
    target = Abstraction((4, 7), 1, blocks, (2, None), {0: 0, 3: 2}, 0)
    trace = look_at(target, "kip-320", {"topic": "t"})
    assert trace.header.constants == {"replicas": 3, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
    assert not trace.header.complete and trace.header.source["leader epochs"] == {"0": 0, "2": 3}
    (event,) = trace.events
    assert event.action is None and event.observed == {
        "leo[0]": 2,
        "record_epoch[0][0]": 0,
        "record_epoch[0][1]": 2,
        "leo[1]": 1,
        "record_epoch[1][0]": 0,
        "record_epoch[1][1]": -1,
        "record_id[1][1]": -1,
    }
    assert list(vocabulary_of(trace.header).faults(event)) == []
    assert not_laid_out(target) is None
    holes = dataclasses.replace(target, blocks=(block(0, 9, (ABSENT, 0), (ABSENT, 0)), *blocks))
    assert not_laid_out(holes) == "broker 4's log lacks offsets that another has (compaction leaves such holes)"
    many = dataclasses.replace(target, blocks=blocks[:1] * 9)
    assert not_laid_out(many) == "the logs differ in 9 places; a state is made of up to 8 offsets"


def test_ingest_keeps_the_reason_of_partial_traces(tmp_path: Path, traces: list[Trace]) -> None:
    why = "the log of node 2 ends early"
    (tmp_path / "src").mkdir()
    for number, trace in enumerate(traces):
        header = dataclasses.replace(trace.header, partial=why if number % 2 else None)
        write_trace(tmp_path / "src" / f"{number:02d}.jsonl", dataclasses.replace(trace, header=header))
    ingested(tmp_path / "src", tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    listed = {each["header"].get("partial"): each["traces"] for each in manifest["files"]}
    assert listed == {None: 6, why: 6} and manifest["version"] == 2
    assert {name: each.header.partial for name, each in read_all(tmp_path / "out").items()} == {
        f"{number:02d}.jsonl": why if number % 2 else None for number in range(len(traces))
    }


def test_ingest_of_whole_traces_writes_version_1(tmp_path: Path, traces: list[Trace]) -> None:
    (tmp_path / "src").mkdir()
    write_trace(tmp_path / "src" / "0.jsonl", traces[3])
    ingested(tmp_path / "src", tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["version"] == 1 and "partial" not in manifest["files"][0]["header"]
