"""The same lines in many layouts: each yields the same events of the same node."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from fencepost.traces.timeline.checkers import check_timeline
from fencepost.traces.timeline.sources import read_sources
from fencepost.traces.timeline.timeline import Timeline

FOLLOWER = (
    "[Broker id=7] Follower rides-4 starts at leader epoch 2 from offset 31 with high watermark 30."
    " Previous leader epoch was 1."
)
LINES = [
    (
        "2026-03-04 10:00:00,101",
        "INFO",
        FOLLOWER,
        "state.change.logger",
    ),
    (
        "2026-03-04 10:00:00,250",
        "INFO",
        "[UnifiedLog partition=rides-4, dir=/var/lib/kafka] Truncating to offset 30",
        "org.apache.kafka.storage.internals.log.UnifiedLog",
    ),
    (
        "2026-03-04 10:00:01,007",
        "WARN",
        "[ReplicaFetcher replicaId=7, leaderId=8, fetcherId=0] Truncating rides-4 to offset 29 below high watermark 30",
        "kafka.server.ReplicaFetcherThread",
    ),
]
EXPECTED = [
    ("follower started", "rides-4", 7, 1772618400101),
    ("truncated", "rides-4", 7, 1772618400250),
    ("truncated", "rides-4", 7, 1772618401007),
]
Layout = Callable[[str, str, str, str], str]


def iso(time: str, zone: str = "Z") -> str:
    return time.replace(" ", "T").replace(",", ".") + zone


def kafka(time: str, level: str, message: str, logger: str) -> str:
    return f"[{time}] {level} {message} ({logger})"


def escaped(value: object) -> str:
    return json.dumps(value)


LAYOUTS: dict[str, Layout] = {
    "kafka": kafka,
    "kafka with thread": lambda t, v, m, c: f"[{t}] [ReplicaFetcherThread-0-8] {v} {m} ({c})",
    "kafka with line": lambda t, v, m, c: f"[{t}] {v} {m} ({c}:217)",
    "kafka padded": lambda t, v, m, c: f"[{t}] {v:5} {m} ({c})",
    "no brackets": lambda t, v, m, c: f"{t} {v} {m} ({c})",
    "strimzi": lambda t, v, m, c: f"{t} {v} {m} ({c}) [ReplicaFetcherThread-0-8]",
    "strimzi 4": lambda t, v, m, c: f"{t} {v:5} [ReplicaFetcherThread-0-8] {c.rpartition('.')[2]}:312 - {m}",
    "logback": lambda t, v, m, c: f"{t.replace(',', '.')} [main] {v:5} {c} - {m}",
    "logback iso": lambda t, v, m, c: f"{iso(t)} [main] {v:5} {c} -- {m}",
    "logger first": lambda t, v, m, c: f"{iso(t, '+00:00')} {v} {c}: {m}",
    "level first": lambda t, v, m, c: f"{v:5} [{t}] {c} - {m}",
    "thread and colon": lambda t, v, m, c: f"{t} {v} [main] {c}: {m}",
    "spring boot": lambda t, v, m, c: f"{iso(t)}  {v:5} 2537 --- [r-event-handler] {c:40} : {m}",
    "spring boot named": lambda t, v, m, c: f"{iso(t)}  {v:5} 2537 --- [app] [r-event-handler] {c} : {m}",
    "month": lambda t, v, m, c: f"04 Mar 2026{t[10:]} {v} {c} - {m}",
    "spark": lambda t, v, m, c: f">>> 26/03/04 {t[11:]} {v} {'.'.join(c.split('.')[-2:])}: {m}",
    "offset": lambda t, v, m, c: f"[{t.replace('10:', '12:', 1)} +0200] {v} {m} ({c})",
    "compose": lambda t, v, m, c: f"kafka-1  | {kafka(t, v, m, c)}",
    "compose coloured": lambda t, v, m, c: f"\x1b[36mkafka-1  | \x1b[0m{kafka(t, v, m, c)}",
    "compose with time": lambda t, v, m, c: f"kafka-1  | 2026-03-04T10:00:09.123456789Z {kafka(t, v, m, c)}",
    "docker with time": lambda t, v, m, c: f"2026-03-04T10:00:09.123456789Z {kafka(t, v, m, c)}",
    "kubectl prefix": lambda t, v, m, c: f"[pod/prod-kafka-0/kafka] {t} {v} {m} ({c}) [main]",
    "stern": lambda t, v, m, c: f"prod-kafka-0 kafka {kafka(t, v, m, c)}",
    "cri": lambda t, v, m, c: f"2026-03-04T10:00:09.123456789+01:00 stdout F {kafka(t, v, m, c)}",
    "journald": lambda t, v, m, c: f"Mar 04 10:00:09 host7 kafka-server-start.sh[811]: {kafka(t, v, m, c)}",
    "journald iso": lambda t, v, m, c: f"2026-03-04T10:00:09+0000 host7 kafka[811]: {kafka(t, v, m, c)}",
    "syslog": lambda t, v, m, c: f"<14>1 2026-03-04T10:00:09Z host7 kafka 811 - - {kafka(t, v, m, c)}",
    "grep": lambda t, v, m, c: f"broker-7/server.log:{kafka(t, v, m, c)}",
    "grep with line": lambda t, v, m, c: f"server.log:118:{kafka(t, v, m, c)}",
    "quoted": lambda t, v, m, c: f"> {kafka(t, v, m, c)}",
    "windows": lambda t, v, m, c: f"{kafka(t, v, m, c)}\r",
    "json logstash": lambda t, v, m, c: escaped(
        {"@timestamp": iso(t), "level": v, "logger_name": c, "thread_name": "main", "message": m}
    ),
    "json ecs": lambda t, v, m, c: escaped(
        {"@timestamp": iso(t), "log.level": v, "message": m, "log.logger": c, "process.thread.name": "main"}
    ),
    "json nested ecs": lambda t, v, m, c: escaped(
        {"@timestamp": iso(t), "log": {"level": v, "logger": c}, "message": m}
    ),
    "json log4j2": lambda t, v, m, c: escaped(
        {
            "instant": {"epochSecond": 1772618400 + int(t[18]), "nanoOfSecond": int(t[20:]) * 1_000_000},
            "level": v,
            "loggerName": c,
            "message": m,
        }
    ),
    "json docker": lambda t, v, m, c: escaped(
        {"log": kafka(t, v, m, c) + "\n", "stream": "stdout", "time": "2026-03-04T10:00:09.123456789Z"}
    ),
    "json journald": lambda t, v, m, c: escaped(
        {"MESSAGE": kafka(t, v, m, c), "_HOSTNAME": "host7", "__REALTIME_TIMESTAMP": "1772618409000000"}
    ),
    "json in compose": lambda t, v, m, c: (
        "kafka-1 | " + escaped({"timestamp": iso(t), "level": v, "logger": c, "message": m})
    ),
    "american": lambda t, v, m, c: f"3/4/2026, 10{t[13:].replace(',', '.')} AM {v} {c} - {m}",
    "twelve hours": lambda t, v, m, c: f"[{t} AM] {v} {m} ({c})",
    "points": lambda t, v, m, c: f"04.03.2026 {t[11:]} {v} [main] {c} - {m}",
    "day and month": lambda t, v, m, c: f"04-Mar-2026 {t[11:].replace(',', '.')} {v} [main] {c} {m}",
    "zone abbreviated": lambda t, v, m, c: f"[{t} CET] {v} {m} ({c})",
    "lower case": lambda t, v, m, c: f"[{t}] {v.lower()} {m} ({c})",
    "tabs": lambda t, v, m, c: f"{t}\t{v}\tmain\t{c}\t{m}",
    "bars": lambda t, v, m, c: f"{t} | {v} | main | {c} | {m}",
    "brackets": lambda t, v, m, c: f"[{t}][{v:5}][{c}] {m}",
    "logfmt": lambda t, v, m, c: f'ts={iso(t)} level={v.lower()} logger={c} msg="{m}"',
    "csv": lambda t, v, m, c: f'kafka-1,"{kafka(t, v, m, c)}",x',
    "csv columns": lambda t, v, m, c: f'{iso(t)},{v},{c},"{m}"',
    "bold": lambda t, v, m, c: f"**{kafka(t, v, m, c)}**",
    "list item": lambda t, v, m, c: f"  - `{kafka(t, v, m, c)}`",
    "html": lambda t, v, m, c: kafka(t, v, m, c).replace('"', "&quot;") + "&nbsp;",
    "coloured without escape": lambda t, v, m, c: f"[32m[{t}] [1;34m{v}[0m {m} ([36m{c}[0m)",
    "test containers": lambda t, v, m, c: f"09:59:59.101 [stream] INFO tc.kafka - STDOUT: {kafka(t, v, m, c)}",
    "json splunk": lambda t, v, m, c: escaped({"preview": False, "result": {"_raw": kafka(t, v, m, c), "host": "k1"}}),
    "json vector": lambda t, v, m, c: escaped({"file": "/var/log/x", "message": kafka(t, v, m, c), "host": "k1"}),
    "json fluent bit": lambda t, v, m, c: escaped(
        {"date": 1772618409.1, "log": kafka(t, v, m, c), "kubernetes": {"pod_name": "kafka-1"}}
    ),
    "json elastic": lambda t, v, m, c: escaped(
        {"_index": "k", "_source": {"@timestamp": iso(t), "message": m, "log": {"level": v, "logger": c}}}
    ),
    "json datadog": lambda t, v, m, c: escaped({"attributes": {"timestamp": iso(t), "message": kafka(t, v, m, c)}}),
    "json stackdriver": lambda t, v, m, c: escaped(
        {"jsonPayload": {"message": m, "logger": c, "level": v}, "timestamp": iso(t)}
    ),
    "json azure": lambda t, v, m, c: escaped({"TimeGenerated": iso(t), "LogMessage": kafka(t, v, m, c)}),
    "json logback": lambda t, v, m, c: escaped(
        {"@timestamp": iso(t), "level": v, "loggerName": c, "message": "{}", "arguments": [m], "formattedMessage": m}
    ),
    "json journald bytes": lambda t, v, m, c: escaped({"MESSAGE": list(kafka(t, v, m, c).encode()), "_PID": "7"}),
    "json seconds": lambda t, v, m, c: escaped(
        {"ts": 1772618400 + int(t[18]) + int(t[20:]) / 1000, "severity": v, "logger": c, "msg": m}
    ),
}


def events(path: Path) -> list[tuple[str, str, int | None, int | None]]:
    read = read_sources([path])
    assert not read.problems
    return [(each.kind.value, each.partition, each.node, each.time) for each in read.observations]


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_yields_the_events(tmp_path: Path, name: str) -> None:
    path = tmp_path / "kafka.log"
    noise = ["", "java.io.IOException: Broken pipe", "\tat java.base/sun.nio.ch.Net.poll(Native Method)"]
    path.write_text("\n".join([*noise, *(LAYOUTS[name](*each) for each in LINES), *noise]), newline="")
    assert events(path) == EXPECTED


def test_json_array_yields_the_events(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    rows = [{"timestamp": iso(t), "level": v, "logger": c, "message": m} for t, v, m, c in LINES]
    path.write_text(json.dumps(rows))
    assert events(path) == EXPECTED


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_file_yields_the_events(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "server.log.1"
    path.write_bytes(compress("\n".join(kafka(*each) for each in LINES).encode()))
    assert events(path) == EXPECTED


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_mark_is_skipped(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "server.log"
    path.write_text("\n".join(kafka(*each) for each in LINES), encoding=encoding)
    assert events(path) == EXPECTED


def wrapped(width: int, before: str = "") -> str:
    parts = [kafka(*each) for each in LINES]
    return "\n".join(before + each[at : at + width] for each in parts for at in range(0, len(each), width))


DOCUMENTS = {
    "pretty array": json.dumps([json.loads(LAYOUTS["json ecs"](*each)) for each in LINES], indent=2),
    "search engine": json.dumps(
        {"took": 3, "hits": {"hits": [json.loads(LAYOUTS["json elastic"](*each)) for each in LINES]}}, indent=1
    ),
    "Loki": json.dumps(
        {"data": {"result": [{"stream": {"pod": "k"}, "values": [["1772618409000000000", kafka(*x)] for x in LINES]}]}}
    ),
    "fence": "\n".join(["It says:", "```", *(kafka(*each) for each in LINES), "```"]),
    "Jira": "{noformat}" + "\n".join(kafka(*each) for each in LINES) + "{noformat}",
    "wrapped at 80": wrapped(80),
    "wrapped and quoted": wrapped(76, "> "),
    "wrapped between words": "\n".join(line for each in LINES for line in textwrap.wrap(kafka(*each), 90)),
    "split by the container runtime": "\n".join(
        f"2026-03-04T10:00:09.123456789Z stdout {'F' if at + 60 >= len(text) else 'P'} {text[at : at + 60]}"
        for text in (kafka(*each) for each in LINES)
        for at in range(0, len(text), 60)
    ),
    "split by Docker": "\n".join(
        json.dumps({"log": text[at : at + 60], "stream": "stdout", "time": "2026-03-04T10:00:09.1Z"})
        for text in (kafka(*each) + "\n" for each in LINES)
        for at in range(0, len(text), 60)
    ),
    "carriage returns": "\r".join(kafka(*each) for each in LINES),
    "zero bytes": "\0" * 300 + "\n".join(kafka(*each) for each in LINES),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_yields_the_events(tmp_path: Path, name: str) -> None:
    path = tmp_path / "kafka.log"
    path.write_text(DOCUMENTS[name], newline="")
    assert events(path) == EXPECTED


def test_times_without_a_date_stay_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "kafka.log"
    path.write_text("\n".join(f"[{t[11:]}] {v} {m} ({c})" for t, v, m, c in LINES))
    read = read_sources([path])
    assert [each.kind.value for each in read.observations] == [each[0] for each in EXPECTED]
    assert all(each.relative for each in read.observations)


@pytest.mark.parametrize("width", range(60, 150, 3))
def test_lines_that_are_cut_off_prove_nothing_false(tmp_path: Path, width: int) -> None:
    """A cut may leave the first digits of a number: offset 110 is not offset 11."""
    path = tmp_path / "kafka.log"
    log = "[UnifiedLog partition=rides-4, dir=/var/lib/kafka] Truncating to offset 110"
    lines = [
        kafka("2026-03-04 10:00:00,000", "INFO", FOLLOWER.replace("offset 31", "offset 120"), "state.change.logger"),
        *[kafka("2026-03-04 10:00:01,000", "INFO", log, LINES[1][3])] * 4,
        "2026-03-04 10:00:02,000 INFO [main] UnifiedLog:312 - " + log,
    ]
    path.write_text("\n".join(each[:width] for each in lines))
    assert check_timeline(Timeline.of(read_sources([path]).observations)).verdict != "violated"


def test_prefixes_tell_nodes_of_one_file_apart(tmp_path: Path) -> None:
    """The log's own line names no node: its prefix does."""
    path = tmp_path / "compose.log"
    other = [(t, v, m.replace("id=7", "id=9").replace("replicaId=7", "replicaId=9"), c) for t, v, m, c in LINES]
    rows = [
        f"kafka-{node}  | {kafka(*each)}"
        for pair in zip(LINES, other, strict=True)
        for node, each in zip((7, 9), pair, strict=True)
    ]
    path.write_text("\n".join(rows))
    nodes = [(node, kind) for kind, _, node, _ in events(path)]
    assert nodes == [(node, kind) for node in (7, 9) for kind, *_ in EXPECTED]


def test_file_of_several_nodes_leaves_lines_unattributed(tmp_path: Path) -> None:
    path = tmp_path / "mixed.log"
    other = [(t, v, m.replace("id=7", "id=9").replace("replicaId=7", "replicaId=9"), c) for t, v, m, c in LINES]
    path.write_text("\n".join(kafka(*each) for each in (*LINES, *other)))
    read = read_sources([path])
    assert sorted((str(each.node), each.kind.value) for each in read.observations if each.node is None) == [
        ("None", "truncated"),
        ("None", "truncated"),
    ]
    assert read.notes and "take no part in the checks" in read.notes[0]


def test_files_of_one_node_are_merged_by_time(tmp_path: Path) -> None:
    """Kafka's own configuration writes state changes to a file of their own; a rolled copy repeats lines."""
    (tmp_path / "state-change.log").write_text(kafka(*LINES[0]) + "\n")
    (tmp_path / "server.log").write_text("\n".join(kafka(*each) for each in LINES[1:]))
    (tmp_path / "server.log.2026-03-04-10").write_text(kafka(*LINES[1]) + "\n")
    assert events(tmp_path) == EXPECTED


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"hello\nworld\n", "no line has a known layout of Kafka's logs"),
        (b"\x00\x01\x02\x03" * 400, "it is a binary file"),
        (gzip.compress(b"[2026-03-04 10:00:00,101] INFO x (a.B)\n" * 50)[:-9], "the compressed data is damaged"),
    ],
    # A gzip file holds the time of its making, and a test's name must be the same in each worker.
    ids=["no-layout", "binary", "damaged-gzip"],
)
def test_unreadable_file_is_a_problem(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(content)
    (problem,) = read_sources([path]).problems
    assert says in str(problem) and str(path) in str(problem)


def test_number_out_of_range_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    time, level, message, logger = LINES[1]
    path.write_text(kafka(time, level, message.replace("offset 30", "offset 9999999999999999999"), logger))
    (problem,) = read_sources([path]).problems
    assert f"{path}, line 1: 9999999999999999999 is no offset of Kafka's" in str(problem)


def test_deeply_nested_json_is_no_line(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    nested = '{"message": ' * 900 + '"x"' + "}" * 900
    path.write_text("\n".join([nested, *(kafka(*each) for each in LINES)]))
    assert events(path) == EXPECTED


def test_damaged_lines_are_read_or_skipped(tmp_path: Path) -> None:
    """Cut, doubled and changed characters raise nothing."""
    draw = random.Random(7)
    lines = [layout(*each) for layout in LAYOUTS.values() for each in LINES]
    path = tmp_path / "server.log"
    for _ in range(40):
        damaged = []
        for text in draw.sample(lines, 30):
            at = draw.randrange(len(text))
            part = text[at : at + draw.randrange(1, 30)]
            damaged.append(
                draw.choice([text[:at], text[at:], text[:at] + part * 3 + text[at:], text.replace("0", "9" * 9)])
            )
        path.write_text("\n".join(damaged))
        read = read_sources([path])
        report = check_timeline(Timeline.of(read.observations))
        assert report.verdict in ("holds", "violated", "unknown")
