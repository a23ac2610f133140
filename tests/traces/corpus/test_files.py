"""A file of a corpus: what goes in comes out, and everything wrong with a file is named by file, row group and row."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.core.terms import Sort
from fencepost.traces.corpus import files as corpus_files
from fencepost.traces.corpus.checks import first_fault
from fencepost.traces.corpus.convert import events_of, trace_of
from fencepost.traces.corpus.files import open_events, write_events
from fencepost.traces.corpus.layout import LOOK, METADATA_KEY, UNKNOWN, CorpusHeader, CorpusLayout, Events
from fencepost.traces.format import Trace, TraceEvent

Change = Callable[[Events], None]


def equal(ours: Events, theirs: Events) -> bool:
    same = all(
        np.array_equal(getattr(ours, name), getattr(theirs, name))
        for name in ("trace", "step", "action", "params", "cells")
    )
    if (ours.seen is None) != (theirs.seen is None):
        return False
    return same and (ours.seen is None or theirs.seen is None or np.array_equal(ours.seen, theirs.seen))


def copied(events: Events) -> Events:
    arrays = {name: getattr(events, name).copy() for name in ("trace", "step", "action", "params", "cells")}
    return dataclasses.replace(events, **arrays, seen=None if events.seen is None else events.seen.copy())


def table_of(events: Events) -> pa.Table:
    """What is written, as one that can be changed."""
    header = corpus_files._metadata(events.layout.header)
    return corpus_files._table(events, events.layout.schema).replace_schema_metadata({METADATA_KEY: header})


def write_unchecked(path: Path, events: Events, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """Write what the writer would refuse."""
    with monkeypatch.context() as patch:
        patch.setattr(corpus_files, "first_fault", lambda events: None)
        patch.setattr(corpus_files, "_FORMAT", {**corpus_files._FORMAT, **options})
        write_events(path, events.layout, [events])


def test_traces_come_back_as_they_were(
    tmp_path: Path, layout: CorpusLayout, traces: list[Trace], events: Events
) -> None:
    path = tmp_path / "a.parquet"
    written = write_events(path, layout, [events])
    assert (written.traces, written.events, written.first, written.last) == (12, len(events), 0, 11)
    assert written.size == path.stat().st_size
    with open_events(path) as file:
        assert file.header == layout.header
        assert (file.groups, file.rows, file.bounds) == (1, len(events), [(0, 11)])
        found = file.read(0)
    assert found.seen is None
    assert equal(found, events)
    assert found.cells.dtype == np.int8 and found.cells.flags.c_contiguous
    assert [trace_of(found, place).events for place in range(12)] == [trace.events for trace in traces]
    assert trace_of(found, 3).header == dataclasses.replace(traces[3].header, source={"trace": 3})


def test_what_was_not_observed_is_null(tmp_path: Path, layout: CorpusLayout) -> None:
    header = dataclasses.replace(layout.header, complete=False)
    partial = CorpusLayout.of(header)
    told = (
        TraceEvent(1, "become_leader", {"leader": 0, "epoch": None}, {"isr[0]": (0, 1)}),
        TraceEvent(4, None, {}, {"leader[1]": None, "hw[0]": 0}),
    )
    events = events_of(partial, [(7, Trace(header.of_trace(), told))])
    assert events.action.tolist() == [partial.numbers["become_leader"], LOOK]
    assert events.params.tolist() == [[0, UNKNOWN], [UNKNOWN, UNKNOWN], [UNKNOWN, UNKNOWN]]
    write_events(tmp_path / "a.parquet", partial, [events])
    with open_events(tmp_path / "a.parquet") as file:
        found = file.read(0)
    assert found.seen is not None and found.seen.sum() == 3
    assert equal(found, events)
    assert trace_of(found, 0).events == told


def test_a_file_of_whole_observations_has_no_room_for_a_null(
    tmp_path: Path, layout: CorpusLayout, events: Events
) -> None:
    write_events(tmp_path / "a.parquet", layout, [events], observed=True)
    assert not any(field.nullable for field in pq.read_schema(tmp_path / "a.parquet"))
    with open_events(tmp_path / "a.parquet") as file:
        assert equal(file.read(0), events)
    seen = np.ones(events.cells.shape, dtype=np.bool_)
    seen[3, 4] = False
    partial = dataclasses.replace(events, seen=seen)
    with pytest.raises(ValueError, match="a cell was not observed, and the file is said to have all"):
        write_events(tmp_path / "b.parquet", layout, [partial], observed=True)
    assert not (tmp_path / "b.parquet").exists()


def test_some_cells_alone_can_be_read(tmp_path: Path, layout: CorpusLayout, events: Events) -> None:
    write_events(tmp_path / "a.parquet", layout, [events])
    with open_events(tmp_path / "a.parquet") as file:
        found = file.read(0, [5, 2])
        assert found.numbers == (2, 5)
        assert np.array_equal(found.cells, events.cells[[2, 5]])
        assert file.read(0, []).cells.shape == (0, len(events))


def test_row_groups_hold_whole_traces(
    tmp_path: Path, layout: CorpusLayout, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_files, "ROW_GROUP", 13)
    runs = [events.rows(int(low), int(high)) for low, high in zip(events.starts, events.ends, strict=True)]
    for name, given in (("one", [events]), ("many", runs)):
        write_events(tmp_path / name, layout, given)
        with open_events(tmp_path / name) as file:
            groups = list(file)
        assert equal(Events.joined(groups), events)
        lengths = [len(group) for group in groups]
        # Traces of 1 to 12 events: as many as fit into 13, in order.
        assert lengths == [10, 11, 7, 8, 9, 10, 11, 12]
    assert (tmp_path / "one").read_bytes() == (tmp_path / "many").read_bytes()
    monkeypatch.setattr(corpus_files, "ROW_GROUP", 5)
    write_events(tmp_path / "small", layout, [events])
    with open_events(tmp_path / "small") as file:
        assert [len(group) for group in file][:5] == [3, 3, 4, 5, 6], "a longer trace has a group of its own"


def test_integers_are_narrow_and_without_dictionaries(tmp_path: Path, layout: CorpusLayout, events: Events) -> None:
    write_events(tmp_path / "a.parquet", layout, [events])
    metadata = pq.ParquetFile(tmp_path / "a.parquet").metadata
    for number in range(metadata.num_columns):
        assert not metadata.row_group(0).column(number).has_dictionary_page
        assert "DICTIONARY" not in "".join(metadata.row_group(0).column(number).encodings)
    types = {str(field.type) for field in pq.read_schema(tmp_path / "a.parquet")}
    assert types == {"int64", "int32", "int8"}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_variant_has_a_layout(name: str) -> None:
    protocol = PROTOCOLS[name]
    for variant in protocol.variants:
        found = CorpusLayout.of(CorpusHeader(name, variant, protocol.check_constants({})))
        assert len(found.schema) == 3 + found.params + len(found.cells)
        assert found.param_sizes.shape == (found.params, len(found.actions) + 1)
        assert not found.param_sizes[:, LOOK].any()
    wide = CorpusLayout.of(CorpusHeader(name, protocol.default_variant, protocol.check_constants({"replicas": 20})))
    sets = any(cell.variable.values.sort is Sort.SET for cell in wide.cells)
    assert wide.dtype == (np.int32 if sets else np.int8), "a set of twenty replicas takes twenty bits"


# Faults of rows. Each change is made to a sound run of events.


def gap(events: Events) -> None:
    events.step[events.starts[5] + 3 : events.ends[5]] += 1


def repeat(events: Events) -> None:
    events.step[events.starts[5] + 3 : events.ends[5]] -= 1


def backwards(events: Events) -> None:
    events.step[events.starts[5] + 3] = 1


def late_start(events: Events) -> None:
    events.step[events.starts[5] : events.ends[5]] += 1


def unsorted(events: Events) -> None:
    events.trace[events.starts[5] : events.ends[5]] = 99


def unknown_action(events: Events) -> None:
    events.action[17] = 9


def odd_param(events: Events) -> None:
    events.params[0, 17] = 3


def param_of_a_look(events: Events) -> None:
    events.action[17] = LOOK
    events.params[0, 17] = 0


def outside(events: Events) -> None:
    events.cells[0, 17] = 100


FAULTS: list[tuple[Change, int, str]] = [
    (gap, 18, "in trace 5 step 5 comes after step 3, and the trace is said to be complete"),
    (repeat, 18, "in trace 5 step 3 stands twice"),
    (backwards, 18, "in trace 5 step 1 comes after step 3"),
    (late_start, 15, "trace 5 begins with step 2, and is said to be complete"),
    (unsorted, 21, "trace 6 comes after trace 99"),
    (unknown_action, 17, "the action's number is 9, and kip-320 has 9 actions"),
    (odd_param, 17, "parameter 0 of "),
    (param_of_a_look, 17, "parameter 0 of a look is 0"),
    (outside, 17, " is 100, and holds "),
]


@pytest.mark.parametrize(("change", "row", "told"), FAULTS, ids=[change.__name__ for change, _, _ in FAULTS])
def test_a_wrong_row_is_named(
    change: Change, row: int, told: str, tmp_path: Path, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first_fault(events) is None
    wrong = copied(events)
    change(wrong)
    fault = first_fault(wrong)
    assert fault is not None and fault.row == row and told in fault.what
    with pytest.raises(ValueError, match=f"row {row}: "):
        write_events(tmp_path / "a.parquet", events.layout, [wrong])
    assert list(tmp_path.iterdir()) == []
    if change is unsorted:
        return  # statistics would give the same traces
    write_unchecked(tmp_path / "b.parquet", wrong, monkeypatch)
    with open_events(tmp_path / "b.parquet") as file, pytest.raises(BadInput) as refused:
        file.read(0)
    assert str(refused.value).startswith(f"{tmp_path}/b.parquet, row group 0, row {row}: ")
    assert told in str(refused.value) and "\n" not in str(refused.value)


def test_steps_of_incomplete_traces_may_have_gaps_but_must_rise(layout: CorpusLayout, events: Events) -> None:
    lax = copied(events)
    lax.layout = CorpusLayout.of(dataclasses.replace(layout.header, complete=False))
    gap(lax)
    assert first_fault(lax) is None
    backwards(lax)
    assert first_fault(lax) is not None


def test_a_step_of_an_incomplete_trace_may_not_stand_twice(layout: CorpusLayout, events: Events) -> None:
    lax = copied(events)
    lax.layout = CorpusLayout.of(dataclasses.replace(layout.header, complete=False))
    row = int(lax.starts[4]) + 2
    lax.step[row] = lax.step[row - 1]
    fault = first_fault(lax)
    assert fault is not None and fault.row == row
    assert fault.what == f"in trace {lax.trace[row]} step {lax.step[row]} stands twice"


def test_a_split_trace_is_named(
    tmp_path: Path, layout: CorpusLayout, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(events)
    # PyArrow cuts where it is told to, in the middle of trace 5.
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=18, use_dictionary=False)
    with pytest.raises(BadInput, match="row group 1: trace 5 begins in an earlier row group"):
        open_events(tmp_path / "a.parquet")
    pq.write_table(table, tmp_path / "b.parquet", write_statistics=False)
    with pytest.raises(BadInput, match="does not say which traces it has"):
        open_events(tmp_path / "b.parquet")


@pytest.mark.parametrize("end", [0, 1])
def test_statistics_of_other_traces_are_refused(tmp_path: Path, events: Events, end: int) -> None:
    write_events(tmp_path / "a.parquet", events.layout, [events])
    with open_events(tmp_path / "a.parquet") as file:
        file.read(0)
        bounds = list(file.bounds[0])
        bounds[end] += 1
        file.bounds[0] = (bounds[0], bounds[1])
        with pytest.raises(BadInput, match="its statistics give other traces than it has"):
            file.read(0)


def test_a_row_group_that_is_no_corpus_s_is_refused_by_the_footer(
    tmp_path: Path, layout: CorpusLayout, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    monkeypatch.setattr(corpus_files, "ROW_GROUP", len(events))
    pq.write_table(table_of(events), path, use_dictionary=False)
    with open_events(path) as file:
        assert file.rows == len(events)
    monkeypatch.setattr(corpus_files, "ROW_GROUP", len(events) - 1)
    with pytest.raises(BadInput, match=rf"row group 0: it has {len(events)} rows, and those of a corpus"):
        open_events(path)
    # A trace that is longer than a row group has one of its own, up to a length.
    last = events.rows(int(events.starts[-1]), len(events))
    monkeypatch.setattr(corpus_files, "ROW_GROUP", 4)
    monkeypatch.setattr(corpus_files, "LONGEST", len(last))
    pq.write_table(table_of(last), path, use_dictionary=False)
    with open_events(path) as file:
        assert equal(file.read(0), last)
    write_events(path, layout, [last])
    monkeypatch.setattr(corpus_files, "LONGEST", len(last) - 1)
    with pytest.raises(BadInput, match=f"row group 0: it has {len(last)} rows"):
        open_events(path)
    with pytest.raises(BadInput, match=f"trace 11: it has {len(last)} events; cut it"):
        write_events(path, layout, [events])


# Faults of files.


def metadata(table: pa.Table, **changes: Any) -> pa.Table:
    told = json.loads(table.schema.metadata[METADATA_KEY])
    return table.replace_schema_metadata({METADATA_KEY: json.dumps({**told, **changes})})


def other_header(table: pa.Table, **changes: Any) -> pa.Table:
    told = json.loads(table.schema.metadata[METADATA_KEY])
    return metadata(table, header={**told["header"], **changes})


OTHERS: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "no header": (lambda t: t.replace_schema_metadata(None), "a Parquet file of another kind: it has no corpus header"),
    "no JSON": (lambda t: t.replace_schema_metadata({METADATA_KEY: "{"}), "its corpus header is no JSON"),
    "other format": (lambda t: metadata(t, format="x"), "its corpus header names another format"),
    "older version": (
        lambda t: metadata(t, version=0),
        "the corpus' schema version is 0, and only 1 and 2 are read here",
    ),
    "newer version": (
        lambda t: metadata(t, version=3),
        "the corpus' schema version is 3, and only 1 and 2 are read here",
    ),
    "no version": (lambda t: metadata(t, version=None), "the corpus' schema version is missing"),
    "true version": (lambda t: metadata(t, version=True), "the corpus' schema version is true"),
    "unknown protocol": (lambda t: other_header(t, protocol="paxos"), 'unknown protocol "paxos"'),
    "unknown variant": (lambda t: other_header(t, variant="kip-1"), 'fencing has no variant "kip-1"'),
    "lacks a constant": (lambda t: other_header(t, constants={"replicas": 2}), "the constant log_size is missing"),
    "other constants": (lambda t: other_header(t, constants={**t_constants(t), "replicas": 3}), "it has no column"),
    "a column less": (lambda t: t.drop_columns(["hw[0]"]), "it has no column hw[0]"),
    "a column more": (
        lambda t: t.append_column("x", t.column("hw[0]")),
        "it has columns that its header does not give",
    ),
    "a column twice": (lambda t: t.append_column("hw[0]", t.column("hw[0]")), "hw[0]"),
    "a wide column": (
        lambda t: t.set_column(1, "step", t.column("step").cast(pa.int64())),
        "its column step is of type int64, not int32",
    ),
}


def t_constants(table: pa.Table) -> dict[str, int]:
    found: dict[str, int] = json.loads(table.schema.metadata[METADATA_KEY])["header"]["constants"]
    return found


@pytest.mark.parametrize("kind", OTHERS)
def test_a_file_of_another_schema_is_refused_by_name(kind: str, tmp_path: Path, events: Events) -> None:
    change, told = OTHERS[kind]
    pq.write_table(change(table_of(events)), tmp_path / "a.parquet", use_dictionary=False)
    with pytest.raises(BadInput) as refused:
        open_events(tmp_path / "a.parquet")
    assert str(refused.value).startswith(f"{tmp_path}/a.parquet: ")
    assert told in str(refused.value) and "\n" not in str(refused.value)


def test_a_null_in_a_fixed_column_is_named(tmp_path: Path, events: Events) -> None:
    table = table_of(events)
    steps = pa.array(events.step, mask=np.arange(len(events)) == 4)
    schema = table.schema.set(1, pa.field("step", pa.int32()))
    columns = [*table.columns[:1], steps, *table.columns[2:]]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), tmp_path / "a.parquet")
    with open_events(tmp_path / "a.parquet") as file, pytest.raises(BadInput, match="step is null in some row"):
        file.read(0)


def test_every_cut_and_every_flipped_byte_is_named_or_harmless(
    tmp_path: Path, layout: CorpusLayout, events: Events
) -> None:
    path = tmp_path / "a.parquet"
    write_events(path, layout, [events])
    whole = path.read_bytes()
    for length in (0, 3, 8, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(BadInput) as refused:
            open_events(path)
        assert str(refused.value).startswith(f"{path}: ") and "\n" not in str(refused.value)
    caught = 0
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            with open_events(path) as file:
                assert equal(Events.joined(list(file)), events), f"byte {at} is misread"
        except BadInput:
            caught += 1
    assert caught > len(whole) // 7 * 0.6, "the rest is padding, and what the footer says twice"


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: No such file or directory"):
        open_events(tmp_path / "none.parquet")
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(BadInput, match=r"folder.parquet: "):
        open_events(tmp_path / "folder.parquet")


def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, layout: CorpusLayout, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_events(tmp_path / "a.parquet", layout, [events])

    def refused(source: str, **_: object) -> None:
        raise PermissionError(
            errno.EACCES, f"Failed to open local file {source!r}. Detail: [errno 13] Permission denied"
        )

    monkeypatch.setattr(pq, "ParquetFile", refused)
    with pytest.raises(BadInput, match=r"a\.parquet: cannot be read: Permission denied; name a file that you may read"):
        open_events(tmp_path / "a.parquet")


def test_a_full_disk_leaves_nothing(tmp_path: Path, layout: CorpusLayout, events: Events) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, before[1]))
        with pytest.raises(BadInput) as refused:
            write_events(tmp_path / "a.parquet", layout, [events])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert str(refused.value).startswith(f"{tmp_path}/a.parquet: cannot be written: ")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BadInput, match="No such file or directory"):
        write_events(tmp_path / "none" / "a.parquet", layout, [events])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path, layout: CorpusLayout, events: Events) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(BadInput, match="Permission denied"):
            write_events(tmp_path / "a.parquet", layout, [events])
    finally:
        tmp_path.chmod(0o700)
