"""Events in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from .event_kind import EventKind
from .observation import Observation

K = EventKind
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_TEXTS: Final[Mapping[EventKind, str]] = {
    K.LEADER_STARTED: "leads from {log_end}",
    K.ROLE_SKIPPED: "keeps its role",
    K.LOG_LOADED: "loads its log",
    K.LOG_CREATED: "creates an empty log",
    K.COPY_CREATED: "begins to move its log to another directory",
    K.LOG_DELETED: "deletes its log",
    K.LOG_SWAPPED: "swaps the log directory",
    K.LOG_CORRUPT: "finds corruption, truncates to {offset}",
    K.LOG_START: "moves log start to {log_start}",
    K.LOG_CONTENT: "log from {log_start} to {log_end}",
    K.ISR_SHRINK: "shrinks ISR to {isr}",
    K.ISR_EXPAND: "expands ISR to {isr}",
    K.ISR_REQUESTED: "ISR {isr} requested",
    K.ISR_UPDATED: "ISR is {isr}",
    K.TRUNCATED_FULLY: "drops its log, starts at {offset}",
    K.TRUNCATION_DECIDED: "decides to truncate to {offset}",
    K.TRUNCATION_NO_EFFECT: "need not truncate to {offset}",
    K.TRUNCATION_REFUSED: "stops: its leader ends at {offset}",
    K.FETCHER_ADDED: "fetches from broker {leader} at {offset}",
    K.FETCHER_REMOVED: "stops fetching",
    K.FOLLOWER_FETCH: "sees broker {follower} at {offset}",
    K.HIGH_WATERMARK: "high watermark {high_watermark}",
    K.APPENDED: "appends up to {log_end}",
    K.REPLICA_OFFLINE: "replica goes offline",
    K.PARTITION_CREATED: "controller creates it, replicas {replicas}",
    K.TOPIC_DELETED: "topic is deleted",
    K.NODE_STARTED: "node starts",
    K.NODE_STOPPED: "node stops",
    K.EPOCH_START: "epoch starts at {offset}",
}
"""By kind, the predicate; ``{field}`` stands for a field of the observation."""


def describe(seen: Observation) -> str:
    """The event as a short predicate of its node: ``truncates to 90``."""
    text = _TEXTS.get(seen.kind)
    return _special(seen) if text is None else text.format_map(_Shown(seen))


class _Shown(dict[str, str]):
    """The fields of an observation as text; ``?`` for an unknown one."""

    def __init__(self, seen: Observation) -> None:
        super().__init__()
        self._seen = seen

    def __missing__(self, name: str) -> str:
        value = getattr(self._seen, name)
        return ids(value) if name in ("isr", "replicas") else _value(value)


def _special(seen: Observation) -> str:
    """An event whose predicate depends on its fields."""
    match seen.kind:
        case K.FOLLOWER_STARTED:
            leader = "nobody" if seen.leader in (None, -1) else str(seen.leader)
            return f"follows {leader} from {_value(seen.log_end)}"
        case K.TRUNCATED:
            below = "" if seen.high_watermark is None else f", below HW {seen.high_watermark}"
            return f"truncates to {_value(seen.offset)}{below}"
        case K.FETCH_RESET:
            target = f"log end {seen.offset}" if seen.offset is not None else f"log start {_value(seen.log_start)}"
            return f"resets to the leader's {target}"
        case K.PARTITION_CHANGED:
            return f"controller: {_changes(seen)}"
        case K.UNCLEAN_ELECTION:
            return "UNCLEAN election" + ("" if seen.leader is None else f" of broker {seen.leader}")
        case K.CONTROLLER_CHANGED:
            return "no active controller" if seen.leader == -1 else f"active controller is {_value(seen.leader)}"
        case K.QUORUM_ROLE:
            vote = "" if seen.voted_for is None else f", votes for {seen.voted_for}"
            return f"becomes {(seen.role or 'unknown').lower()}{vote}"
        case K.VOTE:
            answer = "grants" if seen.outcome == "ok" else "rejects"
            return f"{answer} node {_value(seen.leader)}'s {seen.role or 'vote request'}"
        case K.BATCH:
            last = None if seen.log_end is None else seen.log_end - 1
            return f"batch {_value(seen.offset)} to {_value(last)}"
        case K.RECORD:
            return f"record {_value(seen.offset)}" + ("" if seen.value is None else f" is {seen.value}")
        case K.ASSIGNED:
            return "is assigned the partition" if seen.outcome != "unknown" else "may be assigned the partition"
        case K.PRODUCE | K.POLL | K.COMMIT | K.SEEK:
            value = "" if seen.value is None else f" {seen.value}"
            outcome = "" if seen.outcome in (None, "ok") else f" ({seen.outcome})"
            return f"{seen.kind.value}s{value} at {_value(seen.offset)}{outcome}"
        case _:
            return seen.kind.value


def _changes(seen: Observation) -> str:
    parts = []
    if seen.leader is not None:
        parts.append("no leader" if seen.leader < 0 else f"leader {seen.leader}")
    if seen.isr is not None:
        parts.append(f"ISR {ids(seen.isr)}")
    if seen.replicas is not None:
        parts.append(f"replicas {ids(seen.replicas)}")
    return ", ".join(parts) or "changes it"


def ids(members: Iterable[int] | None) -> str:
    """``1,2,3``; ``none`` for an empty set, ``?`` for an unknown one."""
    if members is None:
        return "?"
    return ",".join(map(str, sorted(members))) or "none"


def _value(value: int | None) -> str:
    return "?" if value is None else str(value)


def time_text(time: int | None, *, date: bool) -> str:
    """``09:20:01.000``, or with the date ``2026-02-01 09:20:01.000``; empty if unknown."""
    if time is None:
        return ""
    moment = _EPOCH + timedelta(milliseconds=time)
    text = moment.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
    return text if date else text.partition(" ")[2]
