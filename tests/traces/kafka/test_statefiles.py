"""Checkpoints, meta.properties, quorum-state, partition.metadata: the values, and each fault with its line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fencepost.traces.kafka.problems import ProblemLog
from fencepost.traces.kafka.statefiles import (
    EpochEntry,
    MetaProperties,
    decode_uuid,
    encode_uuid,
    read_epoch_checkpoint,
    read_meta_properties,
    read_offset_checkpoint,
    read_quorum_state,
    read_topic_id,
)

from .encoder import CLUSTER, TOPIC_ID, checkpoint, topic_id_text

if TYPE_CHECKING:
    from collections.abc import Callable


def read(
    function: Callable[[Path, ProblemLog], Any], path: Path, content: str | bytes
) -> tuple[Any, list[tuple[str, int | None]]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    log = ProblemLog(path)
    result = function(path, log)
    for problem in log.result():
        assert str(path) in str(problem) and "\n" not in str(problem)
    return result, [(problem.kind, problem.line) for problem in log.result()]


def test_epoch_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    assert read(read_epoch_checkpoint, path, "0\n2\n0 0\n3 17\n") == ((EpochEntry(0, 0), EpochEntry(3, 17)), [])
    assert read(read_epoch_checkpoint, path, "0\n0\n") == ((), [])
    assert read(read_epoch_checkpoint, path, "") == (None, []), "as Kafka makes it"


@pytest.mark.parametrize(
    ("content", "entries", "line"),
    [
        ("\n", 0, 2),
        ("0\n", 0, 2),
        ("1\n1\n0 0\n", 0, 1),
        ("0\nx\n0 0\n", 1, 2),
        ("0\n2\n0 0\n", 1, 2),
        ("0\n1\n0 0 0\n", 0, 3),
        ("0\n2\n0 0\n1 x\n", 1, 4),
        ("0\n2\n0 0\n1 -5\n", 1, 4),
        ("0\n1\n0 " + "9" * 19 + "9\n", 0, 3),
        ("0\n1\n0 \u0661\n", 0, 3),
    ],
)
def test_broken_checkpoint_names_its_line(tmp_path: Path, content: str, entries: int, line: int) -> None:
    found, problems = read(read_epoch_checkpoint, tmp_path / "leader-epoch-checkpoint", content)
    assert len(found) == entries
    assert problems == [("bad-checkpoint", line)]


def test_offset_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "replication-offset-checkpoint"
    found, problems = read(read_offset_checkpoint, path, checkpoint(["a.b_c-1 0 5", "t 12 9"]))
    assert found == {("a.b_c-1", 0): (5, 3), ("t", 12): (9, 4)}
    assert problems == []
    assert read(read_offset_checkpoint, path, "") == ({}, [])
    found, problems = read(read_offset_checkpoint, path, checkpoint(["t 0 5", "t 0 6", "t one 6"]))
    assert found == {("t", 0): (5, 3)}
    assert problems == [("bad-checkpoint", 4), ("bad-checkpoint", 5)]


def test_text_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(b"0\n\xff\xfe")
    log = ProblemLog(path)
    assert read_epoch_checkpoint(path, log) == ()
    assert [(p.kind, p.byte) for p in log.result()] == [("not-text", 2)]
    path.unlink()
    path.mkdir()
    log = ProblemLog(path)
    assert read_epoch_checkpoint(path, log) == ()
    assert [p.kind for p in log.result()] == ["unreadable"]


def test_meta_properties(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    text = f"#\n#comment\nnode.id=3\nversion=1\ncluster.id={CLUSTER}\ndirectory.id=abc\\=\\=\n"
    assert read(read_meta_properties, path, text) == (MetaProperties(1, 3, CLUSTER, "abc=="), [])
    old = f"version=0\nbroker.id=7\ncluster.id={CLUSTER}\n"
    assert read(read_meta_properties, path, old) == (MetaProperties(0, 7, CLUSTER, None), [])


@pytest.mark.parametrize(
    ("content", "node", "problems"),
    [
        ("version=1\ncluster.id=x\n", None, [("bad-properties", None)]),
        ("version=1\nnode.id=one\n", None, [("bad-properties", 2), ("bad-properties", None)]),
        ("version=9\nnode.id=1\n", 1, [("bad-properties", 1)]),
        ("node.id=1\n", 1, [("bad-properties", 1)]),
        ("version=1\nnode.id=1\nrubbish\n", 1, [("bad-properties", 3), ("bad-properties", None)]),
        ("version=1\nnode.id=1\nclustes.id=x\n", 1, [("bad-properties", None)]),
        ("version=0\nnode.id=1\ncluster.id=x\n", 1, [("bad-properties", 2)]),
    ],
)
def test_broken_meta_properties(
    tmp_path: Path, content: str, node: int | None, problems: list[tuple[str, int | None]]
) -> None:
    found, seen = read(read_meta_properties, tmp_path / "meta.properties", content)
    assert found.node_id == node
    assert sorted(seen, key=str) == sorted(problems, key=str)


def test_quorum_state_of_both_versions(tmp_path: Path) -> None:
    path = tmp_path / "quorum-state"
    old = (
        '{"clusterId":"","leaderId":1,"leaderEpoch":4,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    )
    state, problems = read(read_quorum_state, path, old)
    assert problems == [] and (state.leader_id, state.leader_epoch, state.voters) == (1, 4, (1, 2))
    new = '{"leaderId":-1,"leaderEpoch":9,"votedId":2,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    state, problems = read(read_quorum_state, path, new)
    assert problems == [] and (state.leader_epoch, state.voted_id, state.voters) == (9, 2, None)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"leaderId":1}', '{"leaderId":"1","leaderEpoch":1,"votedId":1,"data_version":1}',
     '{"leaderId":1,"leaderEpoch":1,"votedId":1,"data_version":1,"currentVoters":3}', "[" * 100_000,
     '{"leaderId":' + "9" * 10_000 + "}"],
)  # fmt: skip
def test_broken_quorum_state(tmp_path: Path, content: str) -> None:
    state, problems = read(read_quorum_state, tmp_path / "quorum-state", content)
    assert state is None
    assert problems == [("bad-quorum-state", 1)]


def test_topic_id(tmp_path: Path) -> None:
    path = tmp_path / "partition.metadata"
    assert read(read_topic_id, path, f"version: 0\ntopic_id: {topic_id_text(TOPIC_ID)}") == (TOPIC_ID, [])
    assert read(read_topic_id, path, "version: 0\ntopic_id: short") == (None, [("bad-topic-id", 2)])
    assert read(read_topic_id, path, "version: 0\ntopic_id: " + "!" * 22) == (None, [("bad-topic-id", 2)])
    assert read(read_topic_id, path, "version: 0\n") == (None, [("bad-topic-id", 1)])
    assert decode_uuid(encode_uuid(TOPIC_ID)) == TOPIC_ID
