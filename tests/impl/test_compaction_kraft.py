"""Compaction as the controller is told of it: checked when it is set, and followed by brokers that are running."""

from __future__ import annotations

import pytest
from fencepost.impl.compaction import CompactionConfig, Kind, Strategy
from fencepost.impl.kraft.configs import compacted_topics
from fencepost.impl.log import Record
from fencepost.impl.log.batch import encode_batch
from fencepost.impl.metadata.image import ALL_BROKERS
from fencepost.impl.replica.broker import CLEANER
from fencepost.impl.wire.controller import (
    ConfigChange,
    CreateTopicsRequest,
    IncrementalAlterConfigsRequest,
    ResourceType,
)
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import ProduceRequest

from .kraft_cluster import T0, held, settled, state
from .kraft_rack import BROKERS, Rack

BROKER = "log.cleaner.compaction.strategy"


def alter(rack: Rack, kind: int, name: str, **changes: str | None) -> ErrorCode:
    told = tuple(ConfigChange(key.replace("_", "."), value) for key, value in changes.items())
    error: ErrorCode = rack.ask(IncrementalAlterConfigsRequest(kind, name, told)).error
    return error


def test_a_strategy_is_checked_when_it_is_set() -> None:
    rack = settled()
    bad = (
        {"compaction.strategy": "newest"},
        {"compaction.strategy": "header"},
        {"min.cleanable.dirty.ratio": "2"},
        {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"},
        {BROKER: "offset"},
    )
    for configs in bad:
        answer = rack.ask(CreateTopicsRequest("t", 1, 1, configs=tuple(configs.items())))
        assert answer.error is ErrorCode.INVALID_CONFIG, configs
    assert rack.ask(CreateTopicsRequest("t", 1, 3)).error is ErrorCode.NONE
    topic, broker = ResourceType.TOPIC, ResourceType.BROKER
    assert alter(rack, topic, "t", compaction_strategy="header") is ErrorCode.INVALID_CONFIG
    assert alter(rack, broker, ALL_BROKERS, log_cleaner_compaction_strategy="header") is ErrorCode.INVALID_CONFIG
    header = {"log_cleaner_compaction_strategy_header": "v"}
    assert alter(rack, broker, ALL_BROKERS, **header) is ErrorCode.NONE
    assert alter(rack, topic, "t", compaction_strategy="header", cleanup_policy="compact") is ErrorCode.NONE
    assert compacted_topics(rack.ledger.image) == {"t": CompactionConfig(Strategy(Kind.HEADER, "v"))}
    gone = dict.fromkeys(header)
    assert alter(rack, broker, ALL_BROKERS, **gone) is ErrorCode.INVALID_CONFIG  # the topic goes by it
    assert alter(rack, topic, "t", compaction_strategy=None) is ErrorCode.NONE
    assert alter(rack, broker, ALL_BROKERS, **gone) is ErrorCode.NONE


def send(rack: Rack, key: bytes | None, value: bytes, timestamp: int) -> ErrorCode:
    found: list[ErrorCode] = []

    def done() -> bool:
        batch = encode_batch([Record(value, key, timestamp)])
        number = rack.client.ask(max(state(rack).leader, 0), ProduceRequest(T0, -1, batch))
        rack.run(80)
        answer = rack.client.answers.get(number)
        if answer is not None and answer.error in (ErrorCode.NONE, ErrorCode.INVALID_RECORD):
            found.append(answer.error)
        return bool(found)

    rack.until(done)
    return found[0]


@pytest.mark.parametrize("strategy", ["offset", "timestamp"])
def test_brokers_follow_a_topic_that_is_compacted_from_now_on(strategy: str) -> None:
    """Switched on, cleaned on every replica, opened again before the broker has heard of it, and switched off."""
    rack = settled()
    assert rack.ask(CreateTopicsRequest("t", 1, 3)).error is ErrorCode.NONE
    rack.until(rack.even)
    for number in range(4):
        assert send(rack, b"k", b"%d" % number, 10 - number) is ErrorCode.NONE
    configs = {"cleanup_policy": "compact", "compaction_strategy": strategy, "min_cleanable_dirty_ratio": "0"}
    assert alter(rack, ResourceType.TOPIC, "t", **configs) is ErrorCode.NONE
    rack.until(rack.even)
    rack.run(500)
    assert send(rack, None, b"no key", 0) is ErrorCode.INVALID_RECORD
    rack.run(500)
    left = [b"3"] if strategy == "offset" else [b"0"]
    for broker in BROKERS:
        here = rack.brokers[broker].broker
        here.partitions[T0].log.roll()
        here.fire(CLEANER)
        assert held(rack, broker) == left, broker
    rack.stop(BROKERS[0])
    rack.start(BROKERS[0])
    assert held(rack, BROKERS[0]) == left
    assert alter(rack, ResourceType.TOPIC, "t", cleanup_policy=None) is ErrorCode.NONE
    rack.until(rack.even)
    rack.run(500)
    assert send(rack, None, b"no key", 0) is ErrorCode.NONE
    assert all(held(rack, broker)[: len(left)] == left for broker in BROKERS)
