"""Whether a controller's request or response is well formed: looked at first, so that a bad one changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_args
from uuid import UUID

from ..replica.validate import names_partition
from ..wire.controller import ConfigChange, ControllerRequest, ControllerResponse, Endpoint, IsrMember, ResourceType
from ..wire.errors import ErrorCode

REQUESTS = get_args(ControllerRequest)
RESPONSES = get_args(ControllerResponse)

_INT16 = 1 << 15
_INT32 = 1 << 31
_INT64 = 1 << 63
_TEXT = _INT16 - 1
"""Bytes of a string on the wire and in a record."""


def _int32(value: Any) -> bool:
    return type(value) is int and -1 <= value < _INT32


def _id(value: Any) -> bool:
    return type(value) is int and 0 <= value < _INT32


def _int64(value: Any) -> bool:
    return type(value) is int and -1 <= value < _INT64


def _bool(value: Any) -> bool:
    return type(value) is bool


def _text(value: Any) -> bool:
    if type(value) is not str:
        return False
    try:
        return len(value.encode()) <= _TEXT
    except UnicodeEncodeError:
        return False


def _uuid(value: Any) -> bool:
    return type(value) is UUID


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _all(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is tuple and all(check(each) for each in value)


def _endpoint(value: Any) -> bool:
    return (
        type(value) is Endpoint
        and _text(value.name)
        and _text(value.host)
        and type(value.port) is int
        and 0 <= value.port < 1 << 16
        and type(value.security_protocol) is int
        and 0 <= value.security_protocol < _INT16
    )


def _member(value: Any) -> bool:
    return type(value) is IsrMember and _id(value.broker) and _int64(value.broker_epoch)


def _change(value: Any) -> bool:
    return type(value) is ConfigChange and _text(value.name) and _or_none(_text)(value.value)


def _config(value: Any) -> bool:
    return type(value) is tuple and len(value) == 2 and _text(value[0]) and _text(value[1])


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "error": lambda value: type(value) is ErrorCode,
    "partition": names_partition,
    "incarnation": _uuid,
    "endpoints": _all(_endpoint),
    "rack": _or_none(_text),
    "new_isr": _all(_member),
    "isr": lambda value: type(value) is frozenset and all(_id(each) for each in value),
    "name": _or_none(_text),
    "assignments": _all(_all(_id)),
    "configs": _all(_config),
    "changes": _all(_change),
    **dict.fromkeys(("broker", "node"), _id),
    **dict.fromkeys(("cluster_id", "resource_name"), _text),
    **dict.fromkeys(("broker_epoch", "metadata_offset", "snapshot_offset"), _int64),
    **dict.fromkeys(("leader", "leader_epoch", "partition_epoch"), _int32),
    **dict.fromkeys(("partitions", "replication_factor"), _int32),
    "resource_type": lambda value: _int32(value) or type(value) is ResourceType,
    **dict.fromkeys(("want_fence", "want_shut_down", "unclean"), _bool),
    **dict.fromkeys(("is_caught_up", "is_fenced", "should_shut_down", "should_snapshot"), _bool),
}
"""What each field may hold, in whichever message it is. ``topic_id`` may be missing in some of them."""
_MAY_LACK_TOPIC_ID = frozenset({"CreateTopicsResponse", "DeleteTopicsRequest"})
_MUST_HAVE_NAME = frozenset({"CreateTopicsRequest"})


def is_well_formed(body: Any) -> bool:
    """Whether every field holds what it may."""
    kind = type(body).__name__
    for each in fields(body):
        value = getattr(body, each.name)
        if each.name == "topic_id":
            good = _uuid(value) or (value is None and kind in _MAY_LACK_TOPIC_ID)
        else:
            good = _FIELDS[each.name](value) and not (value is None and kind in _MUST_HAVE_NAME and each.name == "name")
        if not good:
            return False
    return True
