"""``fencepost ingest``: recorded runs, brokers' data, and what is wrong with them, a line each."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fencepost.traces.corpus.manifest import SOURCES, read_corpus
from fencepost.traces.kafka.capture import bundled_corpus

Run = Callable[..., Any]
SERIAL = ("--master", "serial")


@pytest.fixture
def runs(fencepost: Run, tmp_path: Path) -> Path:
    """Traces that other commands wrote."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for variant in ("truncate-to-hw", "kip-101"):
        fencepost("explore", "fencing", "--variant", variant, "--trace-out", folder / f"{variant}.trace.jsonl")
    return folder


def test_recorded_traces_are_laid_out(fencepost: Run, runs: Path, tmp_path: Path) -> None:
    said = fencepost("ingest", runs, "--out", tmp_path / "c", *SERIAL, "--json")
    assert said.code == 0
    told = said.json
    assert told.pop("seconds") >= 0
    corpus = read_corpus(tmp_path / "c")
    assert [file.header.variant for file in corpus.files] == ["kip-101", "truncate-to-hw"]
    assert told == {
        "src": str(runs),
        "out": str(tmp_path / "c"),
        "files": 2,
        "traces": 2,
        "events": corpus.events,
        "problems": [],
    }
    one = fencepost("ingest", runs / "kip-101.trace.jsonl", "--out", tmp_path / "d", *SERIAL)
    assert one.code == 0 and one.out.startswith("1 trace with ")


def test_bad_files_are_named_and_the_exit_code_says_so(fencepost: Run, runs: Path, tmp_path: Path) -> None:
    (runs / "bad.trace.jsonl").write_text("{}\n")
    said = fencepost("ingest", runs, "--out", tmp_path / "c", *SERIAL, "--json")
    assert said.code == 2
    assert [problem["where"] for problem in said.json["problems"]] == [f"{runs}/bad.trace.jsonl, line 1"]
    assert f"fencepost: {runs}/bad.trace.jsonl, line 1: the header is missing" in said.err
    assert read_corpus(tmp_path / "c").problems == ()


def test_brokers_data_is_looked_at(fencepost: Run, tmp_path: Path) -> None:
    said = fencepost("ingest", bundled_corpus(), "--out", tmp_path / "c", *SERIAL, "--json")
    assert said.code == 0
    assert (said.json["traces"], said.json["events"]) == (28, 28)
    rows = [json.loads(line) for line in (tmp_path / "c" / SOURCES).read_text().splitlines()]
    assert "6-unclean-election/payments-0" in {row["file"] for row in rows}
    for file in read_corpus(tmp_path / "c").files:
        assert not file.header.complete
        with file.open() as opened:
            (events,) = opened
        assert events.seen is not None and (events.action == -1).all()
    stage = bundled_corpus() / "6-unclean-election"
    alone = fencepost("ingest", stage, "--out", tmp_path / "d", *SERIAL, "--variant", "kip-101", "--json")
    assert alone.json["traces"] == 4
    assert {file.header.variant for file in read_corpus(tmp_path / "d").files} == {"kip-101"}


def test_a_damaged_log_is_named_and_left_out(fencepost: Run, tmp_path: Path) -> None:
    stage = tmp_path / "stage"
    shutil.copytree(bundled_corpus() / "6-unclean-election", stage)
    log = stage / "broker-3" / "payments-0" / "00000000000000000000.log"
    log.write_bytes(log.read_bytes()[:-5] + b"\xff" * 40)
    said = fencepost("ingest", stage, "--out", tmp_path / "c", *SERIAL)
    assert said.code == 2
    assert any(str(log) in line for line in said.lines)
    assert any("payments-0: left out: broker" in line for line in said.lines), said.lines
    assert said.out.startswith("3 traces with 3 events")


def test_copies_of_different_times_are_no_look_at_a_cluster(fencepost: Run, tmp_path: Path) -> None:
    stage = tmp_path / "stage"
    shutil.copytree(bundled_corpus() / "7-all-back", stage)
    shutil.rmtree(stage / "broker-2")
    shutil.copytree(bundled_corpus() / "1-steady" / "broker-2", stage / "broker-2")
    said = fencepost("ingest", stage, "--out", tmp_path / "c", *SERIAL)
    assert said.code == 2
    left = [line for line in said.lines if "left out: the copies are not of one time: broker 2: " in line]
    assert len(left) == 4, "every partition that broker 2 has a log of"


def test_parquet_of_another_layout_is_laid_out_anew(fencepost: Run, tmp_path: Path) -> None:
    fencepost("simulate", "fencing", "--replicas", 2, "--traces", 30, "--events", 9, "--out", tmp_path / "c", *SERIAL)
    table = pq.read_table(tmp_path / "c" / "part-00000.parquet").replace_schema_metadata(None)
    (tmp_path / "src").mkdir()
    pq.write_table(table.take(list(range(table.num_rows))[::-1]), tmp_path / "src" / "x.parquet")
    given = ("--protocol", "fencing", "--replicas", 2)
    said = fencepost("ingest", tmp_path / "src", "--out", tmp_path / "d", *given, *SERIAL, "--json")
    assert said.code == 0 and said.json["events"] == table.num_rows
    found = pq.read_table(tmp_path / "d" / "part-00000.parquet")
    assert found.replace_schema_metadata(None).equals(table)
    alone = fencepost("ingest", tmp_path / "src" / "x.parquet", "--out", tmp_path / "e", *SERIAL)
    assert alone.code == 2 and "it has no corpus header" in alone.lines[0]
    wrong = fencepost("ingest", tmp_path / "src", "--out", tmp_path / "e", "--protocol", "x", *SERIAL)
    assert wrong.complaint.startswith("PROTOCOL: there is no protocol 'x'")


def test_what_cannot_be_ingested_is_said_in_one_line(fencepost: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def refused(src: Path) -> str:
        complaint: str = fencepost("ingest", src, "--out", out, *SERIAL).complaint
        assert not out.exists()
        return complaint

    assert refused(tmp_path / "none").startswith(f"{tmp_path}/none: cannot be read: No such file or directory")
    (tmp_path / "src").mkdir()
    assert refused(tmp_path / "src").startswith(f"{tmp_path}/src: the folder is empty")
    (tmp_path / "src" / "x.txt").touch()
    assert "holds neither traces nor brokers' data nor Parquet" in refused(tmp_path / "src")
    (tmp_path / "src" / "x.jsonl").touch()
    said = fencepost("ingest", tmp_path / "src", "--out", out, *SERIAL, "--json")
    assert said.code == 2 and said.json["out"] is None and len(said.json["problems"]) == 1
    assert said.lines[-1] == f"{out} is not written: nothing in {tmp_path}/src could be ingested"
    assert not out.exists()
    out.mkdir()
    (out / "x").touch()
    assert "the folder is there already" in fencepost("ingest", tmp_path / "src", "--out", out, *SERIAL).complaint


def test_ingest_without_a_result_exits_with_2_and_the_reason(fencepost: Run, tmp_path: Path) -> None:
    (tmp_path / "src" / "broker-1").mkdir(parents=True)
    (tmp_path / "src" / "broker-1" / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    said = fencepost("ingest", tmp_path / "src", "--out", tmp_path / "out", *SERIAL)
    assert said.code == 2 and not (tmp_path / "out").exists()
    assert any(line.endswith("name the data directories of all brokers of a cluster") for line in said.lines)


def test_ingest_of_a_log_without_partitions_exits_with_2(fencepost: Run, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("[2026-01-01 10:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n")
    said = fencepost("ingest", "--kafka-log", log, "--out", tmp_path / "out", "--json")
    assert said.code == 2 and not (tmp_path / "out").exists()
    assert len(said.json["problems"]) == 1 and said.json["out"] is None


BAD_COLUMNS = [
    (("--column", "action"), "--column: 'action' renames no column; write COLUMN=NAME"),
    (("--column", "=x"), "--column: '=x' renames no column; write COLUMN=NAME"),
    (("--column", "action=x", "--column", "action=y"), "--column: action is named twice"),
    (("--column", "action=x", "--column", "step=x"), "--column: x is named twice"),
    (("--column", "action=x"), "--column: only Parquet files have columns"),
]


@pytest.mark.parametrize(("options", "told"), BAD_COLUMNS, ids=lambda each: " ".join(each))
def test_wrong_column_option_is_bad_input(fencepost: Run, tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    (tmp_path / "trace.jsonl").touch()
    assert fencepost("ingest", tmp_path, *options, "--out", tmp_path / "out").complaint.startswith(told)


def test_column_option_renames_columns(fencepost: Run, tmp_path: Path) -> None:
    rows = {"run": [7, 7], "step": [1, 2], "event_name": ["controller_elect_leader", "become_leader"], "p0": [1, 1]}
    table = pa.table(rows | {"p1": [None, 0], "p2": [None, None], "leo[0]": [None, None]})
    pq.write_table(table, tmp_path / "mine.parquet")
    run = ("ingest", tmp_path / "mine.parquet", "--protocol", "fencing", "--replicas", 2, "--out", tmp_path / "out")
    said = fencepost(*run, "--column", "trace=run", "--column", "action=event_name", "--json")
    assert said.code == 0 and (said.json["traces"], said.json["events"]) == (1, 2)
    assert fencepost("mine", tmp_path / "out", "--master", "serial").code == 0
    assert any("--column trace=NAME renames one" in line for line in fencepost(*run[:-1], tmp_path / "none").lines)


def test_compressed_traces_are_ingested(fencepost: Run, runs: Path, tmp_path: Path) -> None:
    for number, path in enumerate(sorted(runs.rglob("*.jsonl"))):
        packed = tmp_path / "packed" / f"{number}.jsonl.gz"
        packed.parent.mkdir(exist_ok=True)
        packed.write_bytes(gzip.compress(path.read_bytes()))
    plain = fencepost("ingest", runs, "--out", tmp_path / "a", "--json")
    both = fencepost("ingest", tmp_path / "packed", "--out", tmp_path / "b", "--json")
    assert both.code == 0
    assert [both.json[each] for each in ("traces", "events")] == [plain.json[each] for each in ("traces", "events")]
    packed.write_bytes(packed.read_bytes()[:-12])
    cut = fencepost("ingest", tmp_path / "packed", "--out", tmp_path / "c", "--json")
    assert cut.code == 2 and [each["where"] for each in cut.json["problems"]] == [str(packed)]


def test_traces_beside_parquet_are_named(fencepost: Run, runs: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    assert fencepost("ingest", runs, "--out", corpus).code == 0
    assert fencepost("ingest", corpus, "--out", tmp_path / "again").code == 0
    trace = next(runs.rglob("*.jsonl"))
    (corpus / "more.jsonl").write_bytes(trace.read_bytes())
    (corpus / "more.jsonl.gz").write_bytes(gzip.compress(trace.read_bytes()))
    said = fencepost("ingest", corpus, "--out", tmp_path / "mixed", "--json")
    assert said.code == 2
    assert {each["where"] for each in said.json["problems"]} == {
        str(corpus / "more.jsonl"),
        str(corpus / "more.jsonl.gz"),
    }
