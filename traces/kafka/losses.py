"""Committed records that a later leader does not have: the cost of an unclean election or of a lost disk.

Records below a replica's checkpointed high watermark are committed. Every later leader must have them (KIP-101,
KIP-279, KIP-320). A leader that began an epoch without a record lacks it for ever, so copies of different times still
prove a loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from ..text import counted
from .codecs import CodecError
from .committed import led_epoch
from .divergence import offset_ranges, range_words
from .epoch_conflicts import conflicting_rows
from .loss_words import loss_words
from .records import Record, RecordError
from .truncation import effective_epochs, prescribe
from .verdicts import CheckResult

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from numpy.typing import NDArray

    from .batches import Limits
    from .cross_checks import Replica
    from .image import MetadataImage, PartitionState
    from .partition import PartitionFiles
    from .unclean_elections import UncleanElection

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


@dataclass(frozen=True, slots=True)
class _Loss:
    """Rows of one replica that are committed and that a leader began without."""

    label: str
    files: PartitionFiles
    leader: str
    leader_files: PartitionFiles
    rows: NDArray[np.intp]
    end: int
    doubt: str
    """Why the rows may not be lost after all; empty for a proven loss."""

    assigned: bool = True
    """Whether the broker is still a replica, and so will truncate."""
    within: str | None = None
    """The replica that holds all of the same lost records; None if no other does."""

    def election(self, elections: Sequence[UncleanElection]) -> UncleanElection | None:
        """The unclean election that lost the rows: the first one after the newest of them."""
        newest = int(self.files.records.leader_epoch[self.rows].max())
        return next((each for each in elections if each.leader_epoch > newest), None)

    def contains(self, other: _Loss) -> bool:
        """Whether these rows include all of another replica's."""
        ours, theirs = self.files.records.take(self.rows), other.files.records.take(other.rows)
        at = np.searchsorted(ours.offset, theirs.offset)
        if len(theirs) > len(ours) or bool(np.any(at >= len(ours))):
            return False
        same = ours.take(at)
        return (
            np.array_equal(same.offset, theirs.offset)
            and np.array_equal(same.leader_epoch, theirs.leader_epoch)
            and np.array_equal(same.payload_hash, theirs.payload_hash)
        )

    @property
    def rank(self) -> tuple[bool, int]:
        """Proven losses first, then the larger."""
        return not self.doubt, len(self.rows)


def check_committed_kept(
    replicas: Sequence[Replica],
    image: MetadataImage | None,
    own: Mapping[str, MetadataImage | None],
    elections: Sequence[UncleanElection],
    subject: str,
    limits: Limits,
    *,
    stopped: Container[str] = (),
) -> list[CheckResult]:
    """Every later leader has every record that is below the high watermark of a replica which holds it.

    A loss is ``violated`` if a later epoch, which some replica's files show to have begun, rules out a committed record
    of another replica (``epoch_conflicts.py``). This does not depend on the copies being of one time. It is ``unknown``
    if a leader of a still later epoch may hold the record after all, and for a record that the elected leader lacks
    without such a conflict. Offsets below a log start were deleted, holes inside a log were compacted.

    ``image`` is the newest metadata log, ``own`` each broker's own by label, ``elections`` the unclean elections,
    ``stopped`` the labels of the brokers that were shut down cleanly.
    """
    if not replicas:
        return []
    topic, number = replicas[0][2].topic, replicas[0][2].partition
    state = image.partition(topic, number) if image is not None else None
    leader = next((r for r in replicas if state is not None and r[1] is not None and r[1] == state.leader), None)
    newest = max(replicas, key=lambda each: (_effective_latest(each[2]), each is leader, each[2].log_end))
    worst: list[_Loss] = []
    doubtful: list[str] = []
    for replica in replicas:
        label, node, files = replica
        end = files.high_watermark
        if end is None:
            doubtful.append(f"{label} has no high watermark")
            continue
        losses = [
            loss
            for other in ((leader,) if leader is newest else (leader, newest))
            if other is not None and other is not replica
            for loss in [_ruled_out(replica, other, replicas, image, own, end)]
            if loss is not None
        ]
        if leader is not None and leader is not replica and state is not None:
            absent = _absent(replica, leader, state, end)
            losses += [] if absent is None else [absent]
        if losses:
            assigned = state is None or node is None or node in state.replicas
            worst.append(replace(max(losses, key=lambda each: each.rank), assigned=assigned))
    results = [_lost(subject, loss, elections, limits) for loss in _nested(worst, elections)]
    results += _cut_off(replicas, state, subject, stopped)
    if results:
        return results
    if len(replicas) < 2:
        return []
    unread = [label for label, _, files in replicas if files.damaged]
    if unread:
        return [CheckResult(NAME, "unknown", subject, f"part of {unread[0]}'s log could not be read")]
    if state is not None and leader is None and state.leader >= 0:
        message = f"the log of broker {state.leader}, the leader, is not here"
        return [CheckResult(NAME, "unknown", subject, message, informative=True)]
    if doubtful:
        return [CheckResult(NAME, "unknown", subject, doubtful[0], informative=True)]
    if _effective_latest(newest[2]) < 0:
        return [CheckResult(NAME, "unknown", subject, "no log here has a leader epoch", informative=True)]
    message = f"{(leader or newest)[0]} has every committed record of the others"
    return [CheckResult(NAME, "holds", subject, message)]


def _nested(losses: Sequence[_Loss], elections: Sequence[UncleanElection]) -> list[_Loss]:
    """The losses, each with the replica whose loss includes it: one fact, which is reported once."""
    primary: list[_Loss] = []
    within: dict[str, str] = {}
    for loss in sorted(losses, key=lambda each: -len(each.rows)):
        of = next(
            (
                each
                for each in primary
                if not loss.doubt
                and each.leader == loss.leader
                and each.election(elections) == loss.election(elections)
                and each.contains(loss)
            ),
            None,
        )
        if of is not None:
            within[loss.label] = of.label
        elif not loss.doubt:
            primary.append(loss)
    return [replace(loss, within=within.get(loss.label)) for loss in losses]


def _cut_off(
    replicas: Sequence[Replica], state: PartitionState | None, subject: str, stopped: Container[str]
) -> list[CheckResult]:
    """Report a high watermark that no replica's log reaches; nothing if a log does, or some log is not here.

    A copy of a running broker may have a log of an earlier moment than the checkpoint beside it. So this is a loss only
    of a broker in ``stopped``.
    """
    if state is None or any(files.damaged for _, _, files in replicas):
        return []
    if not set(state.replicas) <= {node for _, node, _ in replicas}:
        return []
    label, _, most = max(replicas, key=lambda each: each[2].high_watermark or 0)
    end = max(files.log_end for _, _, files in replicas)
    if most.high_watermark is None or most.high_watermark <= end:
        return []
    lost = range_words(((end, most.high_watermark - 1),))
    message = f"{label} had committed up to {most.high_watermark}, and every log ends at {end} or before; lost: {lost}"
    if label in stopped:
        return [CheckResult(NAME, "violated", subject, message)]
    message += f"; no loss if {label} ran while its log was copied before its checkpoints"
    return [CheckResult(NAME, "unknown", subject, message)]


def _effective_latest(files: PartitionFiles) -> int:
    return max((entry.epoch for entry in effective_epochs(files)), default=-1)


def _ruled_out(
    replica: Replica,
    other: Replica,
    replicas: Sequence[Replica],
    image: MetadataImage | None,
    own: Mapping[str, MetadataImage | None],
    end: int,
) -> _Loss | None:
    """The committed records of ``replica`` that a later epoch of ``other`` rules out; ``None`` if there are none."""
    label, _, files = replica
    key = files.topic, files.partition
    history = () if image is None else image.history(*key)
    others = own.get(other[0])
    acted = None if others is None else led_epoch(others.history(*key), other[1])
    rows = conflicting_rows(other[2], files, acted)
    offsets = files.records.offset[rows]
    rows = rows[(offsets < end) & (offsets >= files.log_start)]
    if not len(rows):
        return None
    doubt = ""
    if image is not None and own.get(label) is None:
        doubt = f"{label} has no metadata log here, so a later leader may have committed them"
    epoch = max(_effective_latest(other[2]), -1 if acted is None else acted)
    for node in dict.fromkeys(s.leader for s in history if s.leader_epoch > epoch and s.leader not in (-1, other[1])):
        later = next((each for each in replicas if each[1] == node), None)
        kept = rows if later is None else np.setdiff1d(rows, _missing(later[2], files, end))
        if later is replica or len(kept):
            doubt = doubt or f"broker {node} has led a later epoch and may have kept them"
    return _Loss(label, files, other[0], other[2], rows, end, doubt)


def _absent(replica: Replica, leader: Replica, state: PartitionState, end: int) -> _Loss | None:
    """The committed records of ``replica`` that the elected leader lacks, without a conflict that proves a loss."""
    label, _, files = replica
    rows = _missing(leader[2], files, end)
    if not len(rows):
        return None
    if leader[2].damaged:
        doubt = "part of the leader's log could not be read"
    elif all(entry.epoch != state.leader_epoch for entry in effective_epochs(leader[2])):
        doubt = f"the leader's files do not show that its epoch {state.leader_epoch} has begun: its copy may be older"
    else:
        doubt = "the leader itself wrote them: its copy is older, or it has lost unsynced records"
    return _Loss(label, files, leader[0], leader[2], rows, end, doubt)


def _missing(leader: PartitionFiles, files: PartitionFiles, end: int) -> NDArray[np.intp]:
    """Rows of the replica's records below ``end`` that the leader has not, or has others for."""
    start = max(leader.log_start, files.log_start)
    low, high = (int(i) for i in np.searchsorted(files.records.offset, [start, end]))
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


def _lost(subject: str, loss: _Loss, elections: Sequence[UncleanElection], limits: Limits) -> CheckResult:
    files = loss.files
    records = [lost_record(files, int(row), limits) for row in loss.rows[:MAX_TOLD]]
    ranges = offset_ranges(files.records.offset[loss.rows])
    first_epoch = int(files.records.leader_epoch[loss.rows].min())
    start = next((e for e in effective_epochs(loss.leader_files) if e.epoch > first_epoch), None)
    cause = loss.election(elections)
    data: dict[str, Any] = {
        "leader": loss.leader,
        "follower": loss.label,
        "leader_epoch": None if start is None else start.epoch,
        "high_watermark": loss.end,
        "records_lost": len(loss.rows),
        "offsets": [list(each) for each in ranges],
        "records": [record.to_json() for record in records],
        "told": [str(record) for record in records],
        "unclean_election": None if cause is None else cause.to_json(),
    }
    if loss.doubt:
        what = counted(len(loss.rows), "record")
        message = (
            f"{loss.leader} lacks {what} below {loss.label}'s high watermark {loss.end} ({range_words(ranges)}); "
            f"{loss.doubt}"
        )
        return CheckResult(NAME, "unknown", subject, message, records[0].where, data=data)
    cut = prescribe(
        loss.leader_files,
        files,
        leader_label=loss.leader,
        follower_label=loss.label,
        leader_epoch=None,
        by_controller=False,
    )
    if cause is not None:
        because = str(cause)
    elif start is not None:
        because = f"leader epoch {start.epoch} starts at {start.start_offset} on {loss.leader}"
    else:
        because = f"{loss.leader} has led a later epoch without them"
    data |= {
        "truncate_to": cut.offset,
        "records_truncated": cut.records_lost,
        "assigned": loss.assigned,
        "because": because,
        "within": loss.within,
    }
    return CheckResult(NAME, "violated", subject, loss_words(data), records[0].where, data=data)


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
