"""Parquet of another layout, laid out anew: the same traces come out, and what is wrong is named and left out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.corpus import foreign
from fencepost.traces.corpus import relay as relaying
from fencepost.traces.corpus.files import open_events
from fencepost.traces.corpus.ingest import NothingIngested
from fencepost.traces.corpus.layout import FORMAT, LOOK, METADATA_KEY, CorpusHeader, CorpusLayout, Events
from fencepost.traces.corpus.manifest import MANIFEST, SOURCES, read_corpus
from fencepost.traces.corpus.relay import relay

Corpus = Callable[..., Path]


def table_of(events: Events, rows: np.ndarray | None = None, header: CorpusHeader | None = None) -> pa.Table:  # type: ignore[type-arg]
    """Events as another program would write them: a plain table, with the corpus header or without."""
    columns = dict(
        zip(events.layout.fixed_columns, [events.trace, events.step, events.action, *events.params], strict=True)
    )
    columns |= dict(zip(events.layout.cell_columns, events.cells, strict=True))
    table = pa.table({name: pa.array(column if rows is None else column[rows]) for name, column in columns.items()})
    if header is not None:
        told = {"format": FORMAT, "version": 1, "header": header.to_json()}
        table = table.replace_schema_metadata({METADATA_KEY: json.dumps(told)})
    return table


def same(out: Path, events: Events) -> None:
    corpus = read_corpus(out)
    assert corpus.problems == ()
    runs = []
    for file in corpus.files:
        with file.open() as opened:
            runs += list(opened)
    found = Events.joined(runs)
    for name in ("trace", "step", "action", "params", "cells"):
        assert np.array_equal(getattr(found, name), getattr(events, name)), name
    assert (found.seen is None) == (events.seen is None)


@pytest.fixture
def shuffled(tmp_path: Path, events: Events, layout: CorpusLayout) -> Path:
    """The traces shuffled over three files, so that most are split: one of each with wide integers and dictionaries."""
    folder = tmp_path / "src"
    folder.mkdir()
    order = np.random.default_rng(3).permutation(len(events))
    for number, rows in enumerate(np.array_split(order, 3)):
        table = table_of(events, rows, layout.header)
        if number == 1:
            wide = pa.schema([field.with_type(pa.int64()) for field in table.schema], metadata=table.schema.metadata)
            table = table.cast(wide)
        if number == 2:
            names = pa.array([layout.actions[each] for each in events.action[rows]]).dictionary_encode()
            table = table.set_column(2, "action", names)
        pq.write_table(table, folder / f"x{number}.parquet", use_dictionary=number == 2, row_group_size=7)
    return folder


def test_shuffled_split_wide_and_encoded_rows_come_out_in_order(
    shuffled: Path, tmp_path: Path, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput), open_events(shuffled / "x0.parquet") as file:
        file.read(0)
    paths = sorted(shuffled.iterdir())
    done = relay(paths, tmp_path / "one")
    assert (done.traces, done.events, done.problems, len(done.files)) == (12, len(events), (), 1)
    same(tmp_path / "one", events)
    monkeypatch.setattr(relaying, "PART_EVENTS", 20)
    monkeypatch.setattr(foreign, "BATCH", 5)
    done = relay(paths[::-1], tmp_path / "parts")
    assert [file.traces for file in done.files] == [5, 2, 2, 1, 1, 1]
    same(tmp_path / "parts", events)
    assert sorted(each.name for each in (tmp_path / "parts").iterdir())[0] == MANIFEST, "no bucket is left"


def test_a_corpus_is_laid_out_as_it_was(corpus: Corpus, tmp_path: Path, events: Events) -> None:
    folder = corpus(4)
    (folder / SOURCES).write_text('{"trace": 0, "file": "a"}\n')
    relay(sorted(folder.glob("*.parquet")), tmp_path / "out", beside=folder)
    same(tmp_path / "out", events)
    assert (tmp_path / "out" / SOURCES).read_text() == '{"trace": 0, "file": "a"}\n'


def test_the_header_is_the_files_the_manifests_or_given(
    corpus: Corpus, tmp_path: Path, events: Events, layout: CorpusLayout
) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    pq.write_table(table_of(events), folder / "x.parquet")
    paths = [folder / "x.parquet"]
    with pytest.raises(NothingIngested) as nothing:
        relay(paths, tmp_path / "out")
    (problem,) = nothing.value.ingested.problems
    assert str(problem).startswith(f"{folder}/x.parquet: it has no corpus header, and there is no manifest beside it; ")
    assert not (tmp_path / "out").exists()
    relay(paths, tmp_path / "given", layout.header)
    same(tmp_path / "given", events)
    (folder / MANIFEST).write_bytes((corpus() / MANIFEST).read_bytes())
    relay(paths, tmp_path / "listed")
    same(tmp_path / "listed", events)


def test_cells_that_were_not_observed_stay_so(tmp_path: Path, events: Events, layout: CorpusLayout) -> None:
    table = table_of(events, None, layout.header).drop_columns(["hw[0]"])
    marks = pa.array(events.cells[5], mask=np.arange(len(events)) % 3 == 0)
    table = table.set_column(table.schema.get_field_index(layout.cells[5].name), layout.cells[5].name, marks)
    pq.write_table(table, tmp_path / "x.parquet")
    relay([tmp_path / "x.parquet"], tmp_path / "out")
    (file,) = read_corpus(tmp_path / "out").files
    with file.open() as opened:
        found = opened.read(0)
    assert found.seen is not None
    unseen = layout.vocabulary.layout.by_name["hw[0]"]
    assert not found.seen[unseen].any()
    assert np.array_equal(found.seen[5], np.arange(len(events)) % 3 != 0)
    assert found.seen.sum() == found.seen.size - len(events) - (len(events) + 2) // 3


def test_wrong_traces_are_named_and_left_out(tmp_path: Path, events: Events, layout: CorpusLayout) -> None:
    starts = events.starts
    gap, twice = starts[4] + 1, starts[7] + 2
    rows = np.delete(np.arange(len(events)), gap)
    rows = np.append(rows, twice)
    pq.write_table(table_of(events, rows, layout.header), tmp_path / "x.parquet")
    done = relay([tmp_path / "x.parquet"], tmp_path / "out")
    assert [str(problem).split("; ")[0] for problem in done.problems] == [
        "trace 4: in trace 4 step 3 comes after step 1, and the trace is said to be complete",
        "trace 7: in trace 7 step 3 stands twice",
    ]
    left = np.flatnonzero(~np.isin(events.trace, (4, 7)))
    same(tmp_path / "out", relaying._chosen(events, left))


def test_too_many_wrong_traces_are_told_as_one(
    tmp_path: Path, events: Events, layout: CorpusLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relaying, "MAX_BAD_TRACES", 3)
    late = dataclasses.replace(events, step=events.step + np.int32(1))
    pq.write_table(table_of(late, None, layout.header), tmp_path / "x.parquet")
    with pytest.raises(NothingIngested) as nothing:
        relay([tmp_path / "x.parquet"], tmp_path / "out")
    (problem,) = nothing.value.ingested.problems
    assert str(problem).startswith("traces 3 to 11: more than 3 traces of 9 are wrong, such as 3: trace 3 begins with ")


def changed(table: pa.Table, kind: str) -> pa.Table:
    names = table.schema.names
    match kind:
        case "no step":
            return table.drop_columns(["step"])
        case "strange column":
            return table.append_column("x", table.column("step"))
        case "text":
            return table.set_column(names.index("hw[0]"), "hw[0]", table.column("hw[0]").cast(pa.string()))
        case "too large":
            return table.set_column(names.index("hw[0]"), "hw[0]", pa.array([1000] * table.num_rows))
        case "null step":
            return table.set_column(1, "step", pa.nulls(table.num_rows, pa.int32()))
        case "unknown action":
            return table.set_column(2, "action", pa.array(["vote"] * table.num_rows))
        case "negative id":
            return table.set_column(0, "trace", pa.array([-1] * table.num_rows))
        case "older version":
            told = json.loads(table.schema.metadata[METADATA_KEY])
            return table.replace_schema_metadata({METADATA_KEY: json.dumps({**told, "version": 0})})
        case _:
            told = json.loads(table.schema.metadata[METADATA_KEY])
            told["header"]["variant"] = "kip-1"
            return table.replace_schema_metadata({METADATA_KEY: json.dumps(told)})


ALL_NULL = [pa.null(), pa.float64(), pa.string(), pa.int8(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("kind", ALL_NULL, ids=str)
def test_column_of_nulls_may_be_of_any_type(
    tmp_path: Path, events: Events, layout: CorpusLayout, kind: pa.DataType
) -> None:
    """No value of a cell and of a parameter was recorded, and no step is named: each row is a look at the state."""
    table = table_of(events, header=layout.header)
    for name in ("action", *layout.fixed_columns[3:], "hw[0]"):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.nulls(len(table), kind))
    pq.write_table(table, tmp_path / "nulls.parquet", row_group_size=7)
    done = relay([tmp_path / "nulls.parquet"], tmp_path / "out")
    assert (done.traces, done.events, done.problems) == (12, len(events), ())
    with read_corpus(tmp_path / "out").files[0].open() as opened:
        found = Events.joined(list(opened))
    hw = next(number for number, cell in enumerate(layout.cells) if cell.name == "hw[0]")
    assert found.seen is not None and not found.seen[hw].any() and found.seen[hw - 1].all()
    assert (found.action == LOOK).all()


def test_floats_that_hold_integers_are_integers(tmp_path: Path, events: Events, layout: CorpusLayout) -> None:
    """As pandas writes integers beside nulls."""
    table = table_of(events, header=layout.header)
    at = table.schema.get_field_index("hw[0]")
    floats = table.set_column(at, "hw[0]", table.column("hw[0]").cast(pa.float64()))
    pq.write_table(floats, tmp_path / "floats.parquet")
    relay([tmp_path / "floats.parquet"], tmp_path / "out")
    same(tmp_path / "out", events)
    halves = [0.5] * len(events)
    pq.write_table(table.set_column(at, "hw[0]", pa.array(halves)), tmp_path / "halves.parquet")
    with pytest.raises(NothingIngested) as refused:
        relay([tmp_path / "halves.parquet"], tmp_path / "none")
    assert "hw[0] has a value that it cannot hold" in str(refused.value.ingested.problems[0])


def test_renamed_columns_are_found(tmp_path: Path, events: Events, layout: CorpusLayout) -> None:
    columns = {"action": "event_name", "trace": "step", "step": "trace", "leo[1]": "end"}
    table = table_of(events)
    table = table.rename_columns([columns.get(name, name) for name in table.column_names])
    pq.write_table(table, tmp_path / "renamed.parquet")
    relay([tmp_path / "renamed.parquet"], tmp_path / "out", layout.header, columns=columns)
    same(tmp_path / "out", events)


RENAMED = {
    "unknown to the corpus": ({"actoin": "step"}, "kip-320 has no column actoin, which --column actoin=step names"),
    "unknown to the file": ({"action": "kind"}, "it has no column kind, which --column action=kind names"),
    "both in the file": ({"action": "hw[0]"}, "its column action is none of kip-320, as --column action=hw[0] names"),
}


@pytest.mark.parametrize("case", RENAMED)
def test_wrong_renaming_is_named(tmp_path: Path, events: Events, layout: CorpusLayout, case: str) -> None:
    columns, told = RENAMED[case]
    pq.write_table(table_of(events, header=layout.header), tmp_path / "x.parquet")
    with pytest.raises(NothingIngested) as refused:
        relay([tmp_path / "x.parquet"], tmp_path / "out", columns=columns)
    assert told in str(refused.value.ingested.problems[0])


WRONG = {
    "no step": "it has no column step",
    "strange column": "its column x is none of kip-320",
    "text": "its column hw[0] is of type string",
    "too large": "hw[0] has a value that it cannot hold",
    "null step": "step is null in some row",
    "unknown action": "kip-320 has no action 'vote'",
    "negative id": "the trace's id is -1",
    "older version": "the corpus' schema version is 0, and only 1 and 2 are read here",
    "unknown variant": 'the corpus header in {path} is wrong: fencing has no variant "kip-1"',
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_file_that_cannot_be_read_is_named_and_the_others_laid_out(
    kind: str, tmp_path: Path, events: Events, layout: CorpusLayout
) -> None:
    half = int(events.starts[6])
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    pq.write_table(table_of(events, np.arange(half), layout.header), paths[0])
    pq.write_table(changed(table_of(events, np.arange(half, len(events)), layout.header), kind), paths[1])
    done = relay(paths, tmp_path / "out")
    (problem,) = done.problems
    assert str(problem).startswith(f"{paths[1]}: {WRONG[kind].format(path=paths[1])}")
    assert "\n" not in str(problem)
    same(tmp_path / "out", events.rows(0, half))


def test_a_damaged_file_leaves_nothing_behind(
    tmp_path: Path, events: Events, layout: CorpusLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first rows can be read, and are in a bucket when the damage shows."""
    half = int(events.starts[6])
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    monkeypatch.setattr(foreign, "BATCH", 4)
    pq.write_table(table_of(events, np.arange(half), layout.header), paths[0])
    table = table_of(events, np.arange(half, len(events)), layout.header)
    pq.write_table(table, paths[1], row_group_size=10, write_page_checksum=True, use_dictionary=False)
    raw = bytearray(paths[1].read_bytes())
    at = pq.ParquetFile(paths[1]).metadata.row_group(2).column(5).data_page_offset
    raw[at + 60] ^= 0xFF
    paths[1].write_bytes(bytes(raw))
    done = relay(paths, tmp_path / "out")
    (problem,) = done.problems
    assert str(problem).startswith(f"{paths[1]}: no sound Parquet: ")
    same(tmp_path / "out", events.rows(0, half))


def test_two_headers_may_not_share_ids(tmp_path: Path, events: Events, layout: CorpusLayout) -> None:
    other = dataclasses.replace(layout.header, variant="kip-101")
    half = int(events.starts[6])
    pq.write_table(table_of(events, np.arange(half), layout.header), tmp_path / "a.parquet")
    pq.write_table(table_of(events, np.arange(half, len(events)), other), tmp_path / "b.parquet")
    done = relay([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "apart")
    assert {file.header.variant for file in done.files} == {"kip-320", "kip-101"}
    pq.write_table(table_of(events, None, other), tmp_path / "b.parquet")
    with pytest.raises(BadInput, match=r"its traces 0 to 5 have ids that .*b\.parquet has too"):
        relay([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
