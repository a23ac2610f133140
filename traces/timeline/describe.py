"""Events in a few words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from .event_kind import EventKind
from .observation import Observation

K = EventKind
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def describe(seen: Observation) -> str:
    """The event as a short predicate of its node: ``truncates to 90``."""
    match seen.kind:
        case K.LEADER_STARTED:
            return f"leads from {_value(seen.log_end)}"
        case K.FOLLOWER_STARTED:
            leader = "nobody" if seen.leader in (None, -1) else str(seen.leader)
            return f"follows {leader} from {_value(seen.log_end)}"
        case K.ROLE_SKIPPED:
            return "keeps its role"
        case K.LOG_LOADED:
            return "loads its log"
        case K.LOG_CREATED:
            return "creates an empty log"
        case K.COPY_CREATED:
            return "begins to move its log to another directory"
        case K.LOG_DELETED:
            return "deletes its log"
        case K.LOG_SWAPPED:
            return "swaps the log directory"
        case K.LOG_CORRUPT:
            return f"finds corruption, truncates to {_value(seen.offset)}"
        case K.LOG_START:
            return f"moves log start to {_value(seen.log_start)}"
        case K.LOG_CONTENT:
            return f"log from {_value(seen.log_start)} to {_value(seen.log_end)}"
        case K.ISR_SHRINK:
            return f"shrinks ISR to {ids(seen.isr)}"
        case K.ISR_EXPAND:
            return f"expands ISR to {ids(seen.isr)}"
        case K.ISR_REQUESTED:
            return f"ISR {ids(seen.isr)} requested"
        case K.ISR_UPDATED:
            return f"ISR is {ids(seen.isr)}"
        case K.TRUNCATED:
            below = "" if seen.high_watermark is None else f", below HW {seen.high_watermark}"
            return f"truncates to {_value(seen.offset)}{below}"
        case K.TRUNCATED_FULLY:
            return f"drops its log, starts at {_value(seen.offset)}"
        case K.TRUNCATION_DECIDED:
            return f"decides to truncate to {_value(seen.offset)}"
        case K.TRUNCATION_NO_EFFECT:
            return f"need not truncate to {_value(seen.offset)}"
        case K.TRUNCATION_REFUSED:
            return f"stops: its leader ends at {_value(seen.offset)}"
        case K.FETCH_RESET:
            target = f"log end {seen.offset}" if seen.offset is not None else f"log start {_value(seen.log_start)}"
            return f"resets to the leader's {target}"
        case K.FETCHER_ADDED:
            return f"fetches from broker {_value(seen.leader)} at {_value(seen.offset)}"
        case K.FETCHER_REMOVED:
            return "stops fetching"
        case K.FOLLOWER_FETCH:
            return f"sees broker {_value(seen.follower)} at {_value(seen.offset)}"
        case K.HIGH_WATERMARK:
            return f"high watermark {_value(seen.high_watermark)}"
        case K.APPENDED:
            return f"appends up to {_value(seen.log_end)}"
        case K.REPLICA_OFFLINE:
            return "replica goes offline"
        case _:
            return _other(seen)


def _other(seen: Observation) -> str:
    """Events of controllers, nodes, files and clients."""
    match seen.kind:
        case K.PARTITION_CREATED:
            return f"controller creates it, replicas {ids(seen.replicas)}"
        case K.PARTITION_CHANGED:
            return f"controller: {_changes(seen)}"
        case K.UNCLEAN_ELECTION:
            who = "" if seen.leader is None else f" of broker {seen.leader}"
            return f"UNCLEAN election{who}"
        case K.TOPIC_DELETED:
            return "topic is deleted"
        case K.NODE_STARTED:
            return "node starts"
        case K.NODE_STOPPED:
            return "node stops"
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
        case K.EPOCH_START:
            return f"epoch starts at {_value(seen.offset)}"
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
