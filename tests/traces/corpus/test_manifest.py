"""A corpus' folder: its manifest, what is missing or too much, and folders that are none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.corpus.files import open_events, write_events
from fencepost.traces.corpus.layout import CorpusLayout, Events
from fencepost.traces.corpus.manifest import MANIFEST, read_corpus, write_manifest
from fencepost.traces.format import Trace
from fencepost.traces.write import write_trace

Write = Callable[..., Path]


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    told = json.loads((folder / MANIFEST).read_text())
    change(told)
    (folder / MANIFEST).write_text(json.dumps(told))


def test_a_manifest_tells_what_is_there(corpus: Write, layout: CorpusLayout, events: Events) -> None:
    folder = corpus(3)
    told = json.loads((folder / MANIFEST).read_text())
    assert told["format"] == "fencepost-corpus" and told["version"] == 1
    assert (told["protocols"], told["constants"]) == (["fencing"], [dict(layout.header.constants)])
    assert (told["traces"], told["events"]) == (12, len(events))
    assert [each["traces"] for each in told["files"]] == [4, 4, 4]
    found = read_corpus(folder)
    assert found.problems == () and found.events == len(events)
    assert [(file.name, file.first, file.last) for file in found.files] == [
        ("part-00000.parquet", 0, 3),
        ("part-00001.parquet", 4, 7),
        ("part-00002.parquet", 8, 11),
    ]
    assert all(file.header == layout.header for file in found.files)


def test_without_a_manifest_the_files_tell(corpus: Write, events: Events) -> None:
    folder = corpus(3, manifest=False)
    found = read_corpus(folder)
    assert [(file.events, file.first, file.last) for file in found.files] == [(10, 0, 3), (26, 4, 7), (42, 8, 11)]
    (folder / "part-00001.parquet").write_bytes(b"PAR1")
    found = read_corpus(folder)
    assert [file.name for file in found.files] == ["part-00000.parquet", "part-00002.parquet"]
    assert len(found.problems) == 1 and str(found.problems[0]).startswith(
        f"{folder}/part-00001.parquet: no sound Parquet"
    )


def test_missing_added_and_cut_off_files_are_named_and_the_others_kept(
    corpus: Write, layout: CorpusLayout, events: Events
) -> None:
    folder = corpus(4)
    (folder / "part-00001.parquet").unlink()
    whole = (folder / "part-00002.parquet").read_bytes()
    (folder / "part-00002.parquet").write_bytes(whole[:-9])
    shutil.copy(folder / "part-00000.parquet", folder / "part-00009.parquet")
    cut = len(whole) - 9
    found = read_corpus(folder)
    assert [file.name for file in found.files] == ["part-00000.parquet", "part-00003.parquet"]
    assert [str(problem) for problem in found.problems] == [
        f"{folder}/part-00001.parquet: the manifest lists it, and it is not there; bring the file back",
        f"{folder}/part-00002.parquet: it has {cut} bytes, and by the manifest {cut + 9}; bring the whole file back",
        f"{folder}/part-00009.parquet: it is not in the manifest; take it away, or ingest the folder anew",
    ]


def test_a_trace_id_stands_for_one_trace(corpus: Write) -> None:
    folder = corpus(3, manifest=False)
    shutil.copy(folder / "part-00000.parquet", folder / "part-00009.parquet")
    found = read_corpus(folder)
    assert len(found.files) == 3
    told = "part-00009.parquet: it has trace 0, within those of part-00000.parquet (to 3)"
    assert len(found.problems) == 1 and told in str(found.problems[0])


def test_folders_that_are_no_corpus(tmp_path: Path, traces: list[Trace]) -> None:
    def refusal(folder: Path) -> str:
        with pytest.raises(BadInput) as refused:
            read_corpus(folder)
        assert "\n" not in str(refused.value)
        return str(refused.value)

    assert refusal(tmp_path / "none").startswith(f"{tmp_path}/none: cannot be read: No such file or directory; ")
    assert (
        refusal(tmp_path) == f"{tmp_path}: the folder is empty; write the corpus anew by fencepost simulate or ingest"
    )
    write_trace(tmp_path / "a.trace.jsonl", traces[3])
    mend = f"lay it out first: fencepost ingest {tmp_path} --out CORPUS"
    assert refusal(tmp_path) == f"{tmp_path}: the folder holds traces, and no corpus; {mend}"
    (tmp_path / "a.trace.jsonl").rename(tmp_path / "a.txt")
    assert refusal(tmp_path) == f"{tmp_path}: the folder holds no corpus; {mend}"
    (tmp_path / "broker-1").mkdir()
    (tmp_path / "broker-1" / "meta.properties").touch()
    assert refusal(tmp_path) == f"{tmp_path}: the folder holds brokers' data, and no corpus; {mend}"
    assert "cannot be read: Not a directory" in refusal(tmp_path / "a.txt")


def test_an_empty_corpus_is_named(tmp_path: Path, layout: CorpusLayout) -> None:
    written = write_events(tmp_path / "part-00000.parquet", layout, [])
    assert (written.traces, written.events, written.first, written.last) == (0, 0, None, None)
    with open_events(tmp_path / "part-00000.parquet") as file:
        assert list(file) == []
    write_manifest(tmp_path, [written])
    with pytest.raises(BadInput, match="the corpus is empty: it has no event"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("version", [0, 3, None, "1", True])
def test_another_schema_version_is_refused_by_name(corpus: Write, version: object) -> None:
    folder = corpus()
    changed(folder, lambda told: told.update(version=version))
    shown = "missing" if version is None else json.dumps(version)
    with pytest.raises(BadInput, match=f"schema version is {shown}, and only 1 and 2 are read here"):
        read_corpus(folder)


WRONG: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "format": (lambda t: t.update(format="x"), "not that of a corpus"),
    "files": (lambda t: t.update(files=3), "lists no files"),
    "entry": (lambda t: t["files"].append(3), "entry 3 of the manifest's files is wrong: it is no object"),
    "elsewhere": (lambda t: t["files"][1].update(name="../part-00001.parquet"), "entry 1 .* in the same folder"),
    "count": (lambda t: t["files"][1].update(events=-1), "traces, events and bytes are no counts"),
    "huge count": (lambda t: t["files"][1].update(traces=10**30), "traces, events and bytes are no counts"),
    "huge events": (lambda t: t["files"][1].update(events=1 << 63), "traces, events and bytes are no counts"),
    "broken count": (lambda t: t["files"][1].update(events=26.0), "traces, events and bytes are no counts"),
    "total": (lambda t: t.update(traces=10**30), "the manifest's traces and events are no counts"),
    "no total": (lambda t: t.pop("events"), "the manifest's traces and events are no counts"),
    "ends": (lambda t: t["files"][1].update(first=None), "first and last are no trace ids"),
    "huge ends": (lambda t: t["files"][2].update(last=10**30), "first and last are no trace ids"),
    "negative ends": (lambda t: t["files"][0].update(first=-1), "first and last are no trace ids"),
    "turned ends": (lambda t: t["files"][1].update(first=7, last=4), "4 traces do not lie within 7 to 4"),
    "more traces than ids": (lambda t: t["files"][1].update(traces=5), "5 traces do not lie within 4 to 7"),
    "more traces than events": (lambda t: t["files"][1].update(events=3), "or have 3 events"),
    "no traces": (lambda t: t["files"][1].update(traces=0), "no traces, and yet a first or last one, or events"),
    "twice": (lambda t: t["files"].append(t["files"][0]), "part-00000.parquet is listed twice"),
    "header": (lambda t: t["files"][1].update(header={}), "the header lacks protocol, variant or complete"),
    "variant": (lambda t: t["files"][1]["header"].update(variant="x"), 'fencing has no variant "x"'),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_manifest_is_named(corpus: Write, kind: str) -> None:
    change, told = WRONG[kind]
    folder = corpus()
    changed(folder, change)
    with pytest.raises(BadInput, match=told) as refused:
        read_corpus(folder)
    assert str(refused.value).startswith(f"{folder}/manifest.json: ")


def test_a_file_that_is_not_what_the_manifest_says_is_named(corpus: Write) -> None:
    folder = corpus()
    for file in read_corpus(folder).files:
        with file.open() as opened:
            assert opened.rows == file.events
    changed(folder, lambda told: told["files"][0]["header"]["constants"].update(max_records=3))
    changed(folder, lambda told: told["files"][1].update(events=27))
    changed(folder, lambda told: told["files"][2].update(last=12))
    files = read_corpus(folder).files
    for file in files[:2]:
        with pytest.raises(BadInput, match="its header or its count of events is not that of the manifest"):
            file.open()
    with pytest.raises(BadInput, match="it has traces 8 to 11, and by the manifest 8 to 12"):
        files[2].open()


def test_totals_that_are_not_those_of_the_files_are_named(corpus: Write) -> None:
    folder = corpus()
    assert read_corpus(folder).problems == ()
    changed(folder, lambda told: told.update(traces=24))
    changed(folder, lambda told: told.update(events=told["events"] - 1))
    found = read_corpus(folder)
    assert len(found.files) == 3
    assert {problem.where for problem in found.problems} == {f"{folder}/manifest.json"}
    assert [problem.what for problem in found.problems] == [
        "it says 24 traces in all, and of its files 12",
        "it says 77 events in all, and of its files 78",
    ]


def test_a_manifest_that_is_no_json_is_named(corpus: Write) -> None:
    folder = corpus()
    (folder / MANIFEST).write_bytes(b"\xff{")
    with pytest.raises(BadInput, match="the manifest is no JSON"):
        read_corpus(folder)
