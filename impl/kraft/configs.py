"""IncrementalAlterConfigs, and which configs there are (``ConfigurationControlManager`` in Kafka)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


_TOPIC: dict[str, Callable[[str], bool]] = {UNCLEAN_ELECTION: _is_bool, "min.insync.replicas": _is_positive}
_KNOWN: dict[int, dict[str, Callable[[str], bool]]] = {
    ResourceType.TOPIC: _TOPIC,
    ResourceType.BROKER: {**_TOPIC, "broker.heartbeat.interval.ms": _is_positive},
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
    records = tuple(
        changes.config(body.resource_type, name, each.name, each.value)
        for each in body.changes
        if values.get(each.name) != each.value
    )
    return Decision(IncrementalAlterConfigsResponse(ErrorCode.NONE), records)
