"""The two formats of client histories: what they accept, and what they report as wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from fencepost.traces.timeline.client_histories import history_schema
from fencepost.traces.timeline.edn import EdnError, Keyword, read_edn
from fencepost.traces.timeline.event_kind import EventKind
from fencepost.traces.timeline.observation import Observation
from fencepost.traces.timeline.sources import read_sources
from jsonschema import Draft202012Validator

K = EventKind
HEADER = '{"format": "fencepost-client-history", "version": 1}'


def written(tmp_path: Path, *lines: str, name: str = "history.jsonl") -> Path:
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


def read(path: Path) -> list[Observation]:
    result = read_sources([path])
    assert not result.problems, [str(each) for each in result.problems]
    return list(result.observations)


def problem(path: Path) -> str:
    (found,) = read_sources([path]).problems
    return str(found)


def test_schema_is_valid_and_accepts_each_operation() -> None:
    Draft202012Validator.check_schema(history_schema())
    validator = Draft202012Validator(history_schema())
    for body in (
        {"format": "fencepost-client-history", "version": 1, "acks": "all", "idempotent": True},
        {"client": "p", "op": "produce", "partition": "a-0", "outcome": "ok", "offset": 4, "value": 7, "acks": 1},
        {"client": "c", "op": "poll", "partition": "a-0", "records": [{"offset": 1, "value": None}]},
        {"client": "c", "op": "commit", "partition": "a-0", "offset": 2},
        {"client": "c", "op": "subscribe"},
        {"client": "c", "op": "restart", "partitions": ["a-0"], "time": "2026-01-01T10:00:00Z"},
    ):
        assert validator.is_valid(body), body
    for body in (
        {"format": "fencepost-client-history", "version": 2},
        {"client": "p", "op": "produce", "partition": "a-0"},
        {"client": "p", "op": "produce", "partition": "a", "outcome": "ok"},
        {"client": "c", "op": "poll", "partition": "a-0", "records": [{"value": 1}]},
        {"client": "c", "op": "commit", "partition": "a-0"},
    ):
        assert not validator.is_valid(body), body


def test_operations_become_observations(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        HEADER,
        '{"client": "p", "op": "produce", "partition": "a-0", "outcome": "ok", "offset": 3, "value": 7, "acks": "all",'
        ' "began": "2026-01-01T10:00:00Z", "time": "2026-01-01T11:00:00.250+01:00"}',
        "",
        '{"client": "c", "op": "poll", "partition": "a-0", "records": [{"offset": 3, "value": 7}, {"offset": 4}]}',
        '{"client": "c", "op": "rebalance"}',
    )
    send, first, second, moved = read(path)
    assert (send.kind, send.value, send.offset, send.acks, send.line) == (K.PRODUCE, "7", 3, -1, 2)
    assert (send.time or 0) - (send.began or 0) == 250
    assert [(each.kind, each.offset, each.value, each.line) for each in (first, second)] == [
        (K.POLL, 3, "7", 4),
        (K.POLL, 4, None, 4),
    ]
    assert (moved.kind, moved.partition, moved.line) == (K.ASSIGNED, "a-0", 5)
    assert first.sequence < second.sequence < moved.sequence


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "line 2: not JSON"),
        ('{"client": "p", "op": "consume"}', 'line 2: the operation is "consume"'),
        ('{"client": "p", "op": "produce", "partition": "a-0", "outcome": "lost"}', "line 2: outcome: 'lost'"),
        ('{"client": "p", "op": "seek", "partition": "a-0", "offset": -1}', "line 2: offset: -1"),
        (
            '{"client": "c", "op": "poll", "partition": "a-0", "records": [{"offset": "x"}]}',
            "line 2: records[0].offset",
        ),
        ('{"client": "c", "op": "seek", "partition": "a-0", "time": "2026-13-01T10:00:00Z"}', "the time is no date"),
    ],
)
def test_wrong_line_is_a_problem(line: str, what: str, tmp_path: Path) -> None:
    assert what in problem(written(tmp_path, HEADER, line))


def test_history_with_a_wrong_line_is_left_out(tmp_path: Path) -> None:
    """A missing read would look like a skipped record."""
    poll = '{"client": "c", "op": "poll", "partition": "a-0", "records": [{"offset": 0}]}'
    result = read_sources([written(tmp_path, HEADER, poll, poll.replace('"offset"', '"ofset"'), poll)])
    assert len(result.problems) == 1 and result.observations == ()


@pytest.mark.parametrize("name", ["history.jsonl.gz", "history.edn.gz"])
def test_compressed_history_is_read(name: str, tmp_path: Path) -> None:
    lines = JEPSEN if "edn" in name else [HEADER, '{"client": "c", "op": "commit", "partition": "a-0", "offset": 2}']
    path = tmp_path / name
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    assert read(path)
    path.write_bytes(path.read_bytes()[:-12])
    assert "compressed data is damaged" in problem(path)


def test_unknown_version_is_a_problem(tmp_path: Path) -> None:
    assert "line 1: version" in problem(written(tmp_path, HEADER.replace("1}", "2}")))


JEPSEN = [
    "{:type :invoke, :f :assign, :value [5], :process 1, :time 1, :index 0}",
    "{:type :ok, :f :assign, :value [5], :process 1, :seek-to-beginning? true, :time 2, :index 1}",
    "{:type :invoke, :f :txn, :value [[:send 5 140] [:poll]], :process 1, :time 3, :index 2}",
    "{:type :info, :f :start-partition, :value nil, :process :nemesis, :time 4, :index 3}",
    "{:type :ok, :f :txn, :value [[:send 5 [272 140]] [:poll {5 [[270 138] [271 139]]}]], :process 1}",
    "{:type :fail, :f :send, :value [[:send 5 141]], :process 2, :error :timeout, :index 6}",
    '{:type :info, :f :send, :value [[:send 5 142]], :process 3, :error [:unknown "x"], :index 7}',
]


@pytest.mark.parametrize("style", ["lines", "vector", "tagged"])
def test_jepsen_operations_become_observations(style: str, tmp_path: Path) -> None:
    lines = JEPSEN
    if style == "vector":
        lines = ["[" + JEPSEN[0], *JEPSEN[1:-1], JEPSEN[-1] + "]"]
    elif style == "tagged":
        lines = ["#jepsen.history.Op" + each for each in JEPSEN]
    seen = read(written(tmp_path, *lines, name="history.edn"))
    assert [(each.kind, each.offset, each.value, each.outcome, each.line) for each in seen] == [
        (K.ASSIGNED, 0, None, "ok", 2),
        (K.PRODUCE, 272, "140", "ok", 5),
        (K.POLL, 270, "138", "ok", 5),
        (K.POLL, 271, "139", "ok", 5),
        (K.PRODUCE, None, "141", "failed", 6),
        (K.PRODUCE, None, "142", "unknown", 7),
    ]
    assert {each.partition for each in seen} == {"key 5"}
    assert seen[1].started is not None and seen[0].sequence < seen[1].started < seen[1].sequence
    assert seen[4].started is None


def test_jepsen_history_of_another_name_is_recognised(tmp_path: Path) -> None:
    assert len(read(written(tmp_path, *JEPSEN, name="history.txt"))) == 6


def test_history_of_another_workload_is_a_problem(tmp_path: Path) -> None:
    path = written(tmp_path, "{:type :ok, :f :read, :value 3, :process 0}", name="history.edn")
    assert "no operation of the kafka workload" in problem(path)


def test_truncated_edn_is_a_problem_with_its_line(tmp_path: Path) -> None:
    result = read_sources([written(tmp_path, *JEPSEN, "{:type :ok, :f :send", name="history.edn")])
    (found,) = result.problems
    assert found.where.endswith("history.edn, line 8") and len(result.observations) == 6


def test_edn_values() -> None:
    text = '{:a 1, :b [nil true -2.5 3N "x\\n\\"\\u0041" \\a \\newline] #_ :gone :c #{1 2}} ; a comment\n sym #tag (1)'
    assert list(read_edn(text)) == [
        (1, {"a": 1, "b": (None, True, -2.5, 3, 'x\n"A', "a", "\n"), "c": frozenset({1, 2})}),
        (2, "sym"),
        (2, 1),
    ]
    (_, keyword), *_ = read_edn(":ok")
    assert isinstance(keyword, Keyword)


@pytest.mark.parametrize("text", ["{:a}", "[1", "}", '"x', "{{} 1}", "[1}"])
def test_wrong_edn_is_an_error(text: str) -> None:
    with pytest.raises(EdnError):
        list(read_edn(text))


def test_every_value_survives_json(tmp_path: Path) -> None:
    for value in ("text", 7, 1.5, True):
        body = {"client": "p", "op": "produce", "partition": "a-0", "outcome": "ok", "value": value}
        (seen,) = read(written(tmp_path, HEADER, json.dumps(body)))
        assert seen.value == (value if isinstance(value, str) else json.dumps(value))
