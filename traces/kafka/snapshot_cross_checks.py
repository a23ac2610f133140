"""The snapshots of several nodes' metadata logs held against each other, and against each other's logs (KIP-630)."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from .snapshot_checks import BOOTSTRAP
from .snapshot_files import first_difference
from .verdicts import CheckResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .partition import PartitionFiles
    from .snapshot_files import SnapshotFile

Node = tuple[str, "PartitionFiles", "tuple[SnapshotFile, ...]"]
"""A node's label, its metadata log, and the snapshots beside that."""

NAME = "snapshots_agree_between_replicas"


def compare_snapshots(nodes: Sequence[Node], subject: str) -> list[CheckResult]:
    """All nodes' snapshots: names of one end have one epoch, files of one name have the same records.

    Each node snapshots by itself, so the bytes of two files of one name may differ (batch boundaries, timestamps): that
    is told as worth knowing, since half of one file and half of the other make none (DEVIATIONS A4). Nothing is said
    where no two nodes have anything to compare.
    """
    named = [(label, each) for label, _, snapshots in nodes for each in snapshots if each.id != BOOTSTRAP]
    results: list[CheckResult] = []
    pairs = 0
    for (a_label, a), (b_label, b) in combinations(named, 2):
        if a_label == b_label or a.id.end_offset != b.id.end_offset:
            continue
        pairs += 1
        wrong = _different(a_label, a, b_label, b, subject)
        if wrong is not None:
            return [wrong]
        if a.digest != b.digest:
            results.append(_other_bytes(a_label, a, b_label, b, subject))
    compared, wrong = _against_other_logs(nodes, subject)
    if wrong is not None:
        return [wrong]
    if not pairs and not compared:
        return []
    damaged = [(label, each) for label, each in named if each.damaged]
    if damaged:
        label, first = damaged[0]
        message = f"part of {label}'s snapshot {first.id} could not be read"
        return [CheckResult(NAME, "unknown", subject, message, str(first.path))]
    message = f"{pairs} pairs of one end offset, {compared} names against another node's log"
    return [CheckResult(NAME, "holds", subject, message), *results]


def _different(a_label: str, a: SnapshotFile, b_label: str, b: SnapshotFile, subject: str) -> CheckResult | None:
    """What two snapshots of one end offset do not agree on."""
    if a.id.epoch != b.id.epoch:
        message = f"{a_label} has snapshot {a.id} and {b_label} {b.id}: two epochs before one end"
        return CheckResult(NAME, "violated", subject, message, a.at(0))
    if a.damaged or b.damaged:
        return None
    if a.header != b.header:
        message = f"snapshot {a.id}: its header says append time {a.header} on {a_label}, {b.header} on {b_label}"
        return CheckResult(NAME, "violated", subject, message, a.at(0))
    for (mine, own), (theirs, other) in (((a_label, a), (b_label, b)), ((b_label, b), (a_label, a))):
        row = _first_missing(own, other)
        if row is not None:
            message = (
                f"snapshot {own.id}: {mine} has a record that {theirs} has not, {len(own.records)} records against"
            )
            where = own.at(int(own.positions[row]))
            return CheckResult(NAME, "violated", subject, f"{message} {len(other.records)}", where)
    return None


def _first_missing(own: SnapshotFile, other: SnapshotFile) -> int | None:
    """The row of the first record that ``own`` has more often than ``other``; their order says nothing."""
    values, counts = np.unique(own.records, return_counts=True)
    theirs = dict(zip(*(column.tolist() for column in np.unique(other.records, return_counts=True)), strict=True))
    pairs = zip(values.tolist(), counts.tolist(), strict=True)
    more = [value for value, count in pairs if count > theirs.get(value, 0)]
    if not more:
        return None
    rows = np.flatnonzero(np.isin(own.records, np.array(more, np.uint64)))
    return int(rows[0])


def _other_bytes(a_label: str, a: SnapshotFile, b_label: str, b: SnapshotFile, subject: str) -> CheckResult:
    byte = first_difference(a.path, b.path)
    message = f"snapshot {a.id} has the same records and other bytes on {a_label} ({a.size}) and {b_label} ({b.size})"
    return CheckResult(NAME, "unknown", subject, message, a.at(byte or 0), informative=True)


def _against_other_logs(nodes: Sequence[Node], subject: str) -> tuple[int, CheckResult | None]:
    """How many names the other nodes' logs confirm, and the first that one contradicts.

    What is in a snapshot is committed. A log that has something else there is yet to be truncated, unless a snapshot of
    its own says that it is committed too.
    """
    compared = 0
    for label, _, snapshots in nodes:
        for other, log, own in nodes:
            reach = max((each.id.end_offset for each in own), default=0)
            for snapshot in snapshots:
                end = snapshot.id.end_offset
                record = log.records.between(end - 1, end)
                if other == label or not len(record) or end > reach:
                    continue
                compared += 1
                epoch = int(record.leader_epoch[0])
                if epoch != snapshot.id.epoch:
                    message = f"{label} has snapshot {snapshot.id}, {other}'s log epoch {epoch} before that end"
                    where = f"{message} ({log.where(end - 1)})"
                    return compared, CheckResult(NAME, "violated", subject, where, snapshot.at(0))
    return compared, None
