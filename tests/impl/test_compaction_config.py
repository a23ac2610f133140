"""The configurations of compaction, and what the producer's edge refuses."""

from __future__ import annotations

import struct

import pytest
from fencepost.impl.compaction import (
    CleanerConfig,
    CompactionConfig,
    InvalidConfig,
    Kind,
    Strategy,
    refused,
    topic_config,
)
from fencepost.impl.log import LogConfig, Record, encode_batch, read_batches

BROKER = "log.cleaner.compaction.strategy"


@pytest.mark.parametrize(
    ("topic", "broker", "strategy"),
    [
        ({}, {}, Strategy()),
        ({"compaction.strategy": ""}, {BROKER: ""}, Strategy()),
        ({}, {BROKER: "timestamp"}, Strategy(Kind.TIMESTAMP)),
        ({"compaction.strategy": "offset"}, {BROKER: "timestamp"}, Strategy()),
        ({"compaction.strategy": ""}, {BROKER: "timestamp"}, Strategy(Kind.TIMESTAMP)),
        ({"compaction.strategy": "header"}, {BROKER + ".header": "v"}, Strategy(Kind.HEADER, "v")),
        (
            {"compaction.strategy.header": "w"},
            {BROKER: "header", BROKER + ".header": "v"},
            Strategy(Kind.HEADER, "w"),
        ),
    ],
)
def test_a_topics_own_comes_before_the_brokers(
    topic: dict[str, str], broker: dict[str, str], strategy: Strategy
) -> None:
    assert topic_config(topic, broker)[1].strategy == strategy


def test_every_setting_arrives() -> None:
    told = {
        "cleanup.policy": "delete, compact",
        "compaction.strategy": "timestamp",
        "min.cleanable.dirty.ratio": "0.25",
        "segment.ms": "5",
        "min.compaction.lag.ms": "1",
        "max.compaction.lag.ms": "7",
        "delete.retention.ms": "0",
    }
    log, compaction = topic_config(told, base=LogConfig(segment_bytes=99))
    assert log.compacted and log.segment_bytes == 99
    assert compaction == CompactionConfig(Strategy(Kind.TIMESTAMP), 0.25, 5, 1, 7, 0)
    assert not topic_config({})[0].compacted


@pytest.mark.parametrize(
    ("topic", "what"),
    [
        ({"compaction.strategy": "newest"}, "compaction.strategy: 'newest' is no value of it; use offset or"),
        ({"compaction.strategy": "Header"}, "no value"),
        ({"compaction.strategy": "header"}, "compaction.strategy: header, and no header is named; set"),
        ({"compaction.strategies": "header"}, "no configuration of compaction; use one of"),
        ({"cleanup.policy": "compact,compact"}, "use compact, delete or both"),
        ({"cleanup.policy": ""}, "use compact"),
        ({"min.cleanable.dirty.ratio": "1.5"}, "a number from 0 to 1"),
        ({"min.cleanable.dirty.ratio": "nan"}, "a number from 0 to 1"),
        ({"segment.ms": "0"}, "a number from 1"),
        ({"delete.retention.ms": "-1"}, "a number from 0"),
        ({"max.compaction.lag.ms": "9223372036854775808"}, "a number from 1"),
        ({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}, "set them to values that go together"),
        ({"compaction.strategy.header": "x" * 250}, "at most 249"),
        ({"remote.storage.enable": "yes"}, "use true or false"),
        (
            {"cleanup.policy": "compact", "remote.storage.enable": "true"},
            "only supports topics with cleanup.policy=delete",
        ),
        ({"cleanup.policy": "delete, compact", "remote.storage.enable": "true"}, "so set one of the two"),
    ],
)
def test_a_wrong_one_is_refused_in_one_line(topic: dict[str, str], what: str) -> None:
    with pytest.raises(InvalidConfig) as error:
        topic_config(topic)
    assert what in str(error.value) and "\n" not in str(error.value) and "; " in str(error.value)


@pytest.mark.parametrize(
    "topic",
    [
        {"remote.storage.enable": "true"},
        {"cleanup.policy": "delete", "remote.storage.enable": "true"},
        {"cleanup.policy": "compact", "remote.storage.enable": "false"},
    ],
)
def test_tiered_storage_goes_with_what_is_not_compacted(topic: dict[str, str]) -> None:
    log, _ = topic_config(topic)
    assert log.compacted == (topic.get("cleanup.policy") == "compact")


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="dedupe_buffer_bytes"):
        CleanerConfig(dedupe_buffer_bytes=10)
    with pytest.raises(ValueError, match="cleanup_policy"):
        LogConfig(cleanup_policy="compress")


LONG = struct.pack(">q", 5)


@pytest.mark.parametrize(
    ("strategy", "record", "why"),
    [
        (Strategy(), Record(b"v", b"k"), None),
        (Strategy(), Record(b"v"), "no key"),
        (Strategy(), Record(b"v", b"k", 0, (("v", b"x"),)), None),
        (Strategy(Kind.HEADER, "v"), Record(b"v", b"k"), None),
        (Strategy(Kind.HEADER, "v"), Record(None, b"k", 0, (("v", LONG),)), None),
        (Strategy(Kind.HEADER, "v"), Record(b"v", b"k", 0, (("w", b"x"),)), None),
        (Strategy(Kind.HEADER, "v"), Record(b"v", b"k", 0, (("v", b"1234567"),)), "header 'v' is 7 bytes long"),
        (Strategy(Kind.HEADER, "v"), Record(b"v", b"k", 0, (("v", None),)), "header 'v' is null"),
        (Strategy(Kind.HEADER, "v"), Record(b"v", b"k", 0, (("v", LONG), ("v", b""))), "header 'v' is 0 bytes long"),
        (Strategy(Kind.HEADER, "v"), Record(b"v", b"k", 0, (("v", b""), ("v", LONG))), None),
    ],
)
def test_what_the_producers_edge_refuses(strategy: Strategy, record: Record, why: str | None) -> None:
    batches = list(read_batches(encode_batch([Record(b"v", b"k"), record])))
    found = refused(CompactionConfig(strategy), batches)
    assert found is None if why is None else (found is not None and f"record 1: {why}" in found)
