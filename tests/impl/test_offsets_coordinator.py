"""The group coordinator: what it commits, refuses, survives and reads back."""

from __future__ import annotations

import errno
import os
from dataclasses import replace

import pytest
from fencepost.impl.files import Files, SimulatedFiles
from fencepost.impl.log import DataDirectory, Log, LogConfig, Record
from fencepost.impl.net import SimulatedClock
from fencepost.impl.offsets import (
    OFFSETS_TOPIC,
    CommittedOffset,
    CorruptOffsets,
    GroupCoordinator,
    OffsetKey,
    OffsetsConfig,
    decode_value,
    encode_key,
    encode_value,
)
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TopicPartition,
)

TP = TopicPartition("orders", 0)
COMMIT = OffsetCommitRequest("billing", TP, 42, 5, 7, "note")
FETCH = OffsetFetchRequest("billing", TP)
FOUND = OffsetFetchResponse(ErrorCode.NONE, 42, 5, 7, "note")
NOTHING = OffsetFetchResponse(ErrorCode.NONE)


def open_log(files: Files, config: LogConfig | None = None) -> Log:
    return DataDirectory(files, node_id=1, cluster_id="Rj_brD27af2db7ETxjjJIw", config=config).log(OFFSETS_TOPIC, 0)


def coordinator(log: Log, config: OffsetsConfig | None = None) -> GroupCoordinator:
    known = {TP, TP._replace(partition=1), TopicPartition("secret", 0)}
    return GroupCoordinator(log, SimulatedClock(), known=known.__contains__, config=config)


def test_nothing_is_committed_at_first() -> None:
    groups = coordinator(open_log(SimulatedFiles()))
    assert groups.fetch(FETCH) == NOTHING
    assert groups.fetch(replace(FETCH, partition=TopicPartition("nowhere", 9))) == NOTHING


def test_commit_is_read_back_with_both_epochs() -> None:
    groups = coordinator(open_log(SimulatedFiles()))
    assert groups.commit(COMMIT).error is ErrorCode.NONE
    assert groups.fetch(FETCH) == FOUND
    assert groups.fetch(replace(FETCH, group="other")) == NOTHING
    assert groups.fetch(replace(FETCH, partition=TP._replace(partition=1))) == NOTHING


def test_later_commits_take_the_place_of_earlier_ones_also_backwards() -> None:
    groups = coordinator(open_log(SimulatedFiles()))
    for offset in (10, 50, 20):
        groups.commit(replace(COMMIT, offset=offset))
    assert groups.fetch(FETCH).offset == 20


def test_acknowledged_commits_survive_a_crash() -> None:
    """Whatever a crash leaves of writes that were not synced, the commits are there: they were."""
    for seed in range(20):
        files = SimulatedFiles()
        groups = coordinator(open_log(files))
        for offset in range(5):
            assert groups.commit(replace(COMMIT, offset=offset)).error is ErrorCode.NONE
        files.crash(seed)
        assert coordinator(open_log(files)).fetch(FETCH).offset == 4


def test_state_is_rebuilt_from_the_log() -> None:
    files = SimulatedFiles()
    log = open_log(files, LogConfig(segment_bytes=400))
    groups = coordinator(log)
    for n in range(30):
        groups.commit(replace(COMMIT, group=f"g{n % 7}", offset=n, serving_epoch=n % 3 - 1))
    groups.delete("g3", TP)
    assert len(log.segment_bases) > 3
    log.close()
    again = coordinator(open_log(files, LogConfig(segment_bytes=400)))
    assert again.committed == groups.committed
    assert len(again.committed) == 6


def test_tombstone_takes_a_commit_away() -> None:
    log = open_log(SimulatedFiles())
    groups = coordinator(log)
    assert groups.delete("billing", TP) is ErrorCode.NONE and log.end == 0
    groups.commit(COMMIT)
    assert groups.delete("billing", TP) is ErrorCode.NONE
    assert groups.fetch(FETCH) == NOTHING
    (_, last) = log.records(0)
    assert (last.key, last.value) == (encode_key(OffsetKey("billing", TP)), None)


def test_version_2_until_every_broker_reads_3() -> None:
    files = SimulatedFiles()
    log = open_log(files)
    old = coordinator(log, config=OffsetsConfig(write_epochs=False))
    assert old.commit(COMMIT).error is ErrorCode.NONE
    assert old.fetch(FETCH) == replace(FOUND, leader_epoch=-1, serving_epoch=-1)
    new = coordinator(log)
    assert new.fetch(FETCH) == replace(FOUND, leader_epoch=-1, serving_epoch=-1)
    assert new.commit(COMMIT).error is ErrorCode.NONE
    values = [record.value or b"" for record in log.records(0)]
    assert [value[:2] for value in values] == [b"\0\2", b"\0\3"]
    assert decode_value(values[1]).serving_epoch == 7


BAD = {
    "empty group": (replace(COMMIT, group=""), ErrorCode.INVALID_GROUP_ID),
    "long group": (replace(COMMIT, group="g" * 32768), ErrorCode.INVALID_GROUP_ID),
    "group of no Unicode": (replace(COMMIT, group="\ud800"), ErrorCode.INVALID_GROUP_ID),
    "negative offset": (replace(COMMIT, offset=-1), ErrorCode.INVALID_REQUEST),
    "offset of 64 bits": (replace(COMMIT, offset=1 << 63), ErrorCode.INVALID_REQUEST),
    "epoch below -1": (replace(COMMIT, leader_epoch=-2), ErrorCode.INVALID_REQUEST),
    "epoch of 32 bits": (replace(COMMIT, leader_epoch=1 << 31), ErrorCode.INVALID_REQUEST),
    "serving epoch below -1": (replace(COMMIT, serving_epoch=-2), ErrorCode.INVALID_REQUEST),
    "metadata of no Unicode": (replace(COMMIT, metadata="\ud800"), ErrorCode.INVALID_REQUEST),
    "long metadata": (replace(COMMIT, metadata="m" * 4097), ErrorCode.OFFSET_METADATA_TOO_LARGE),
    "metadata of many bytes": (replace(COMMIT, metadata="ü" * 2049), ErrorCode.OFFSET_METADATA_TOO_LARGE),
    "unknown topic": (replace(COMMIT, partition=TopicPartition("nowhere", 0)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "unknown partition": (replace(COMMIT, partition=TopicPartition("orders", 2)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "negative partition": (
        replace(COMMIT, partition=TopicPartition("orders", -1)),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
}


@pytest.mark.parametrize(("request_", "error"), BAD.values(), ids=BAD)
def test_bad_commits_are_refused_and_change_nothing(request_: OffsetCommitRequest, error: ErrorCode) -> None:
    log = open_log(SimulatedFiles())
    groups = coordinator(log)
    groups.commit(COMMIT)
    before = groups.committed
    assert groups.commit(request_).error is error
    assert (groups.committed, log.end) == (before, 1)


def test_the_largest_that_fits_is_taken() -> None:
    log = open_log(SimulatedFiles())
    groups = coordinator(log)
    largest = OffsetCommitRequest("g" * 32767, TP, (1 << 63) - 1, (1 << 31) - 1, (1 << 31) - 1, "ü" * 2048)
    assert groups.commit(largest).error is ErrorCode.NONE
    assert coordinator(log).committed == groups.committed


def test_record_that_no_batch_may_hold() -> None:
    log = open_log(SimulatedFiles(), LogConfig(max_message_bytes=200))
    groups = coordinator(log)
    assert groups.commit(replace(COMMIT, metadata="m" * 200)).error is ErrorCode.MESSAGE_TOO_LARGE
    assert groups.fetch(FETCH) == NOTHING and log.end == 0


@pytest.mark.parametrize("call", ["append", "fsync"])
def test_commit_on_a_failing_disk_is_not_acknowledged(call: str) -> None:
    files = SimulatedFiles()
    groups = coordinator(open_log(files))
    groups.commit(COMMIT)

    def fail(what: str, path: str) -> None:
        if what == call and path.endswith(".log"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    files.hook = fail
    assert groups.commit(replace(COMMIT, offset=43)).error is ErrorCode.KAFKA_STORAGE_ERROR
    assert groups.delete("billing", TP) is ErrorCode.KAFKA_STORAGE_ERROR
    assert groups.fetch(FETCH) == FOUND


def test_records_of_other_kinds_are_passed_over() -> None:
    log = open_log(SimulatedFiles())
    groups = coordinator(log)
    groups.commit(COMMIT)
    log.append_as_leader([Record(b"\0\3 whatever a group's metadata is", b"\0\2\0\7billing")], 0)
    assert coordinator(log).committed == groups.committed


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        (None, b"", "no key"),
        (b"\0\1\0", b"", "bytes are left"),
        (encode_key(OffsetKey("billing", TP)), b"\0\5" + bytes(30), "a value of version 5"),
        (encode_key(OffsetKey("billing", TP)), encode_value(CommittedOffset(1, 1)) + b"x", "bytes are left"),
    ],
)
def test_what_does_not_parse_is_named_with_its_offset(key: bytes | None, value: bytes, what: str) -> None:
    log = open_log(SimulatedFiles())
    coordinator(log).commit(COMMIT)
    log.append_as_leader([Record(value, key)], 0)
    with pytest.raises(CorruptOffsets, match=f"^__consumer_offsets-0, offset 1: .*{what}.*; restore") as caught:
        coordinator(log)
    assert caught.value.offset == 1


def test_batches_go_on_in_the_logs_epoch() -> None:
    log = open_log(SimulatedFiles())
    log.assign_epoch(4)
    coordinator(log).commit(COMMIT)
    assert [record.leader_epoch for record in log.records(0)] == [4]
