"""Committed records that the elected leader of a partition does not have: what an unclean election costs.

A replica's checkpointed high watermark says that what it holds below was committed, at some leader epoch up to then. An
elected leader must have all of it (KIP-101, KIP-279, KIP-320). What is said here does not depend on the copies being of
one time: where the leader's own files show that its epoch began, what it lacked then it lacks for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from ..words import counted
from .codecs import CodecError
from .records import Record, RecordError
from .truncation import effective_epochs
from .verdicts import CheckResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .batches import Limits
    from .cross_checks import Replica
    from .image import PartitionState
    from .partition import PartitionFiles

NAME = "committed_records_kept"
MAX_TOLD = 20
"""So many lost records of a replica are told one by one."""
_SHOWN = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LostRecord:
    """A record by its offset, with what is needed to find it again. ``key`` is None for a null key."""

    offset: int
    leader_epoch: int
    key: bytes | None
    timestamp: int | None
    """Milliseconds since 1970; ``None`` where the batch could not be read again."""
    where: str
    """``FILE, byte N`` of its batch."""

    def __str__(self) -> str:
        return f"offset {self.offset}, key {key_words(self.key)}, timestamp {time_words(self.timestamp)}, {self.where}"

    def to_json(self) -> dict[str, Any]:
        """All fields; the key as text where it is UTF-8, and in hexadecimal."""
        return {
            "offset": self.offset,
            "leader_epoch": self.leader_epoch,
            "key": None if self.key is None else self.key.decode("utf-8", "replace"),
            "key_hex": None if self.key is None else self.key.hex(),
            "timestamp": self.timestamp,
            "where": self.where,
        }


def key_words(key: bytes | None) -> str:
    """A record's key as a person reads it: text in quotes, or hexadecimal where it is none; cut where it is long."""
    if key is None:
        return "null"
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    words = repr(text) if text.isprintable() and (text or not key) else f"0x{key.hex()}"
    return words if len(words) <= _SHOWN else words[:_SHOWN] + "…"


def time_words(timestamp: int | None) -> str:
    """``1700000000123 (2023-11-14T22:13:20.123Z)``; the number alone where no calendar has it."""
    if timestamp is None:
        return "unknown"
    try:
        time = _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return str(timestamp)
    return f"{timestamp} ({time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z)"


def check_committed_kept(
    replicas: Sequence[Replica], state: PartitionState | None, told: frozenset[str], subject: str, limits: Limits
) -> list[CheckResult]:
    """The elected leader has every record that is below the high watermark of a replica which holds it.

    ``told``: labels of the brokers that have a metadata log of their own here, so that no later leader than ``state``'s
    can have made a record of theirs committed. ``violated`` needs three things: a record below its own replica's high
    watermark, of an earlier epoch than the leader's; the leader's own files, which show that its epoch has begun; and
    nothing or another record at that offset in them. Short of that a missing record is ``unknown``. Offsets below the
    leader's log start were deleted, holes inside its log were compacted.
    """
    if state is None or len(replicas) < 2:
        return []
    leaders = [(label, files) for label, node, files in replicas if node is not None and node == state.leader]
    if not leaders:
        if state.leader < 0:
            return []
        message = f"broker {state.leader}, which leads, is not among the directories"
        return [CheckResult(NAME, "unknown", subject, message, informative=True)]
    ((leader_label, leader),) = leaders
    results: list[CheckResult] = []
    doubtful: list[str] = []
    damaged = [label for label, _, files in replicas if files.damaged]
    for label, node, files in replicas:
        if node == state.leader:
            continue
        if files.high_watermark is None:
            doubtful.append(f"{label} has no high watermark")
            continue
        rows = _missing(leader, files)
        if len(rows):
            rows, doubt = _doubted(leader, files, rows, state.leader_epoch)
            if not doubt and label not in told:
                doubt = f"{label} has no metadata log here, so that a later leader may have committed them"
            results.append(_lost(subject, (leader_label, leader), (label, files), rows, state, doubt, limits))
    if results:
        return results
    if damaged:
        return [CheckResult(NAME, "unknown", subject, f"part of {damaged[0]}'s log could not be read")]
    if doubtful:
        return [CheckResult(NAME, "unknown", subject, doubtful[0], informative=True)]
    message = f"{leader_label}, which leads, has what is below the others' high watermarks"
    return [CheckResult(NAME, "holds", subject, message)]


def _missing(leader: PartitionFiles, files: PartitionFiles) -> NDArray[np.intp]:
    """Rows of the replica's records below its high watermark that the leader has not, or has others for."""
    assert files.high_watermark is not None
    start = max(leader.log_start, files.log_start)
    low, high = (int(i) for i in np.searchsorted(files.records.offset, [start, files.high_watermark]))
    own = files.records.take(np.arange(low, max(low, high)))
    at = np.searchsorted(leader.records.offset, own.offset)
    inside = np.minimum(at, max(0, len(leader.records) - 1))
    if not len(leader.records):
        return np.arange(low, max(low, high))[own.offset >= leader.log_end]
    there = leader.records.take(inside)
    present = there.offset == own.offset
    other = present & ((there.leader_epoch != own.leader_epoch) | (there.payload_hash != own.payload_hash))
    beyond = ~present & (own.offset >= leader.log_end)
    return low + np.flatnonzero(other | beyond)


def _doubted(
    leader: PartitionFiles, files: PartitionFiles, rows: NDArray[np.intp], epoch: int
) -> tuple[NDArray[np.intp], str]:
    """Those of the missing that are lost, and an empty string; or all, and why none of them need be lost."""
    if leader.damaged:
        return rows, "part of the leader's log could not be read"
    if all(entry.epoch != epoch for entry in effective_epochs(leader)):
        return rows, f"the leader's files do not show that its epoch {epoch} has begun: its copy may be older"
    earlier = rows[files.records.leader_epoch[rows] < epoch]
    if len(earlier):
        return earlier, ""
    return rows, "the leader itself wrote them: its copy is older, or it has lost what it had not synced"


def _lost(
    subject: str,
    leader: tuple[str, PartitionFiles],
    replica: tuple[str, PartitionFiles],
    rows: NDArray[np.intp],
    state: PartitionState,
    doubt: str,
    limits: Limits,
) -> CheckResult:
    label, files = replica
    records = [lost_record(files, int(row), limits) for row in rows[:MAX_TOLD]]
    what = counted(len(rows), "record")
    message = (
        f"{leader[0]}, leader of epoch {state.leader_epoch}, lacks {what} below {label}'s own high watermark "
        f"{files.high_watermark}"
    )
    data = {
        "leader": leader[0],
        "follower": label,
        "leader_epoch": state.leader_epoch,
        "high_watermark": files.high_watermark,
        "records_lost": len(rows),
        "records": [record.to_json() for record in records],
        "told": [str(record) for record in records],
    }
    first = f"{message}; the first: {str(records[0]).removesuffix(', ' + records[0].where)}"
    if doubt:
        return CheckResult(NAME, "unknown", subject, f"{first}; {doubt}", records[0].where, data=data)
    return CheckResult(NAME, "violated", subject, first, records[0].where, data=data)


def lost_record(files: PartitionFiles, row: int, limits: Limits) -> LostRecord:
    """One row of a log's records with key and timestamp, which the columns do not hold: read from the file again."""
    offset, epoch = int(files.records.offset[row]), int(files.records.leader_epoch[row])
    found = _read_again(files, offset, limits)
    where = files.where(offset)
    if found is None:
        return LostRecord(offset, epoch, None, None, where)
    return LostRecord(offset, epoch, found.key, found.timestamp, where)


def _read_again(files: PartitionFiles, offset: int, limits: Limits) -> Record | None:
    row = int(np.searchsorted(files.batches.last_offset, offset))
    batch = files.stored(row)
    if batch is None:
        return None
    try:
        return next((record for record in batch.records(limits) if record.offset == offset), None)
    except (ValueError, RecordError, CodecError):
        return None
