"""Whether a message of the quorum is well formed: looked at before anything else, so that a bad one changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_args

from ..replica.validate import names_partition
from ..wire.errors import ErrorCode
from ..wire.quorum import OffsetAndEpoch, QuorumRequest, QuorumResponse

REQUESTS = get_args(QuorumRequest)
RESPONSES = get_args(QuorumResponse)

_INT32 = 1 << 31
_INT64 = 1 << 63


def _int32(value: Any) -> bool:
    return type(value) is int and -1 <= value < _INT32


def _int64(value: Any) -> bool:
    return type(value) is int and -1 <= value < _INT64


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def _is_bytes(value: Any) -> bool:
    return type(value) is bytes


def _is_error(value: Any) -> bool:
    return type(value) is ErrorCode


def _named(value: Any) -> bool:
    return type(value) is OffsetAndEpoch and _int64(value.offset) and _int32(value.epoch)


def _may_be_named(value: Any) -> bool:
    return value is None or _named(value)


def _nodes(value: Any) -> bool:
    return type(value) is tuple and all(_int32(each) and each >= 0 for each in value)


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "partition": names_partition,
    "error": _is_error,
    "preferred_successors": _nodes,
    "diverging": _may_be_named,
    "next_fetch": _may_be_named,
    "records": _is_bytes,
    "unaligned_records": _is_bytes,
    "granted": _is_bool,
    "snapshot_incomplete": _is_bool,
    "continues": _is_bool,
    **dict.fromkeys(("epoch", "last_epoch", "current_leader_epoch", "last_fetched_epoch"), _int32),
    **dict.fromkeys(("leader", "candidate", "replica_id"), _int32),
    **dict.fromkeys(("last_offset", "fetch_offset", "high_watermark", "log_begin_offset", "low_watermark"), _int64),
    **dict.fromkeys(("offset", "size", "position"), _int64),
    "max_bytes": lambda value: _int32(value) and value > 0,
    "snapshot": _may_be_named,
}
"""What each field may hold, in whichever message it is."""


def is_well_formed(body: Any) -> bool:
    """Whether every field of a request or response holds what it may.

    A snapshot may be missing in a response only; its last offset is at least 0.
    """
    if not all(_FIELDS[each.name](getattr(body, each.name)) for each in fields(body)):
        return False
    if "snapshot" not in body.__slots__:
        return True
    snapshot = body.snapshot
    if snapshot is None:
        return not isinstance(body, REQUESTS)
    return bool(snapshot.offset >= 0 and snapshot.epoch >= 0)
