"""IncrementalAlterConfigs, and which configs there are (``ConfigurationControlManager`` in Kafka)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from ..compaction import config as compaction
from ..metadata import changes
from ..metadata.image import ALL_BROKERS, UNCLEAN_ELECTION, Image, ResourceKey
from ..wire.controller import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ResourceType,
)
from ..wire.errors import ErrorCode
from .decision import Decision


def _is_bool(value: str) -> bool:
    return value in ("true", "false")


def _is_positive(value: str) -> bool:
    return value.isascii() and value.isdecimal() and 0 < int(value[:11]) < 1 << 31


def _passes(check: Callable[[str], str | None]) -> Callable[[str], bool]:
    return lambda value: check(value) is None


_MINIMUM = "min.insync.replicas"
_TOPIC: dict[str, Callable[[str], bool]] = {UNCLEAN_ELECTION: _is_bool, _MINIMUM: _is_positive}
_KNOWN: dict[int, dict[str, Callable[[str], bool]]] = {
    ResourceType.TOPIC: {**_TOPIC, **{name: _passes(check) for name, check in compaction.TOPIC.items()}},
    ResourceType.BROKER: {
        **_TOPIC,
        "broker.heartbeat.interval.ms": _is_positive,
        **{name: _passes(check) for name, check in compaction.BROKER.items()},
    },
}
"""For each type of resource the configs that there are, and whether a value is one of theirs."""


def config_error(resource_type: int, told: Sequence[ConfigChange]) -> ErrorCode:
    """INVALID_CONFIG for a name or value that there is not, INVALID_REQUEST for a name twice or another resource."""
    known = _KNOWN.get(resource_type)
    if known is None or len({each.name for each in told}) < len(told):
        return ErrorCode.INVALID_REQUEST
    for each in told:
        check = known.get(each.name)
        if check is None or (each.value is not None and not check(each.value)):
            return ErrorCode.INVALID_CONFIG
    return ErrorCode.NONE


def _go_together(image: Image, key: ResourceKey, told: Mapping[str, str | None]) -> bool:
    """Whether, with ``told`` for this resource, every topic that it touches has a strategy of compaction (KIP-280)."""
    default = ResourceKey(ResourceType.BROKER, ALL_BROKERS)
    broker: Mapping[str, str | None] = image.configs.get(default, {})
    topics: list[Mapping[str, str | None]] = [told]
    if key.type == ResourceType.BROKER:
        broker, topics = told, [{}]
        topics += [values for other, values in sorted(image.configs.items()) if other.type == ResourceType.TOPIC]
    return all(compaction_goes_together(topic, broker) for topic in topics)


def compaction_goes_together(topic: Mapping[str, str | None], broker: Mapping[str, str | None]) -> bool:
    """Whether these configurations of a topic make settings of compaction with those of its broker."""
    try:
        compaction.topic_config(_among(topic, compaction.TOPIC), _among(broker, compaction.BROKER))
    except compaction.InvalidConfig:
        return False
    return True


def compacted_topics(image: Image) -> dict[str, compaction.CompactionConfig]:
    """The topics of an image that are compacted, and how; one whose configurations do not go together is left out."""
    broker = _among(image.configs.get(ResourceKey(ResourceType.BROKER, ALL_BROKERS), {}), compaction.BROKER)
    found: dict[str, compaction.CompactionConfig] = {}
    for key, values in image.configs.items():
        if key.type == ResourceType.TOPIC and "cleanup.policy" in values:
            with suppress(compaction.InvalidConfig):
                log, settings = compaction.topic_config(_among(values, compaction.TOPIC), broker)
                if log.compacted:
                    found[key.name] = settings
    return found


def minimums(image: Image, broker: int) -> dict[str, int]:
    """By topic of an image how large an ISR acks=-1 takes at this broker (``min.insync.replicas``).

    What the topic says comes before what this broker is told, and that before what all brokers are
    (``KafkaConfigSchema.resolveEffectiveTopicConfig``); a topic of which none says anything is left out.
    """
    found: dict[str, int] = {}
    for topic in image.names:
        keys = (
            ResourceKey(ResourceType.TOPIC, topic),
            ResourceKey(ResourceType.BROKER, str(broker)),
            ResourceKey(ResourceType.BROKER, ALL_BROKERS),
        )
        told = (image.configs.get(key, {}).get(_MINIMUM) for key in keys)
        value = next((each for each in told if each is not None), None)
        if value is not None:
            found[topic] = int(value)
    return found


def _among(values: Mapping[str, str | None], known: Iterable[str]) -> dict[str, str]:
    return {name: value for name in known if (value := values.get(name)) is not None}


def alter_configs(image: Image, body: IncrementalAlterConfigsRequest) -> Decision:
    """Set and delete; to delete what is not set changes nothing.

    UNKNOWN_TOPIC_OR_PARTITION, and BROKER_ID_NOT_REGISTERED where the resource is a broker that is not registered.
    """
    error = config_error(body.resource_type, body.changes)
    name = body.resource_name
    if error is ErrorCode.NONE and body.resource_type == ResourceType.TOPIC and name not in image.names:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if error is ErrorCode.NONE and body.resource_type == ResourceType.BROKER and name != ALL_BROKERS:
        there = any(name == str(broker) for broker in image.brokers)
        error = ErrorCode.NONE if there else ErrorCode.BROKER_ID_NOT_REGISTERED
    if error is not ErrorCode.NONE:
        return Decision(IncrementalAlterConfigsResponse(error))
    values = image.configs.get(ResourceKey(body.resource_type, name), {})
    told = {**values, **{each.name: each.value for each in body.changes}}
    if not _go_together(image, ResourceKey(body.resource_type, name), told):
        return Decision(IncrementalAlterConfigsResponse(ErrorCode.INVALID_CONFIG))
    records = tuple(
        changes.config(body.resource_type, name, each.name, each.value)
        for each in body.changes
        if values.get(each.name) != each.value
    )
    return Decision(IncrementalAlterConfigsResponse(ErrorCode.NONE), records)
