"""The check that Kafka replays every record of the metadata log and of its snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..text import counted
from .partition import METADATA_TOPIC
from .verdicts import CheckResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .broker import BrokerFiles
    from .partition import PartitionFiles
    from .rejection import Rejection

_METADATA = METADATA_TOPIC, 0
_NAME = "metadata_log_replays"


@dataclass(frozen=True, slots=True)
class _Holder:
    """A node whose log has a record at the offset of a rejected one."""

    broker: BrokerFiles
    files: PartitionFiles
    same: bool
    """Whether it is the same record, in the same epoch."""


def check_replay(brokers: Sequence[BrokerFiles]) -> list[CheckResult]:
    """Report each rejected record once, with all nodes that have it; and each log and snapshot that replays.

    A rejected record that other nodes have as well is no damage of a file. If another node has a different record at
    that offset which replays, the logs have diverged, or one of the files is corrupt.
    """
    holders = [broker for broker in brokers if _METADATA in broker.partitions]
    results: list[CheckResult] = []
    reported: set[tuple[int, bytes]] = set()
    for broker in holders:
        subject = f"{broker.label}: {METADATA_TOPIC}-0"
        files = broker.booted(_METADATA)
        image = broker.metadata
        rejection = image.rejection if image is not None else None
        if rejection is None or rejection.in_snapshot:
            results.append(_accepted(broker, files, subject))
            continue
        key = rejection.offset, _payload(files, rejection.offset)
        if key not in reported:
            reported.add(key)
            results.append(_rejected(broker, files, rejection, holders))
    return results + _snapshots(holders)


def _accepted(broker: BrokerFiles, files: PartitionFiles, subject: str) -> CheckResult:
    image = broker.metadata
    if image is None or not image.complete:
        message = "part of the log is missing or was not read"
        if image is not None and image.rejection is not None:
            message = "the snapshot before this log has a record that Kafka rejects"
        return CheckResult(_NAME, "unknown", subject, message)
    return CheckResult(_NAME, "holds", subject, f"all records from {files.log_start} to {files.log_end}")


def _rejected(
    broker: BrokerFiles, files: PartitionFiles, rejection: Rejection, holders: Sequence[BrokerFiles]
) -> CheckResult:
    """The result for one rejected record of the log."""
    offset = rejection.offset
    found = [_holder(each, files, offset) for each in holders]
    there = [each for each in found if each is not None]
    same = [each for each in there if each.same]
    others = [each for each in there if not each.same]
    message = (
        f"metadata offset {offset}: {rejection}. {_consequence(rejection)} {_who(same, others, len(holders), offset)}"
    )
    data = {
        **rejection.to_json(),
        "nodes": [each.broker.label for each in same],
        "places": [each.files.where(offset) for each in same],
        "differs_on": [each.broker.label for each in others],
    }
    verdict: Verdict = "violated" if rejection.refusal.sure else "unknown"
    subject = f"{METADATA_TOPIC}-0" if len(same) > 1 else f"{broker.label}: {METADATA_TOPIC}-0"
    return CheckResult(_NAME, verdict, subject, message, files.where(offset), data=data)


def _holder(broker: BrokerFiles, reference: PartitionFiles, offset: int) -> _Holder | None:
    files = broker.booted(_METADATA)
    payload = _payload(files, offset)
    if not payload:
        return None
    return _Holder(broker, files, payload == _payload(reference, offset))


def _payload(files: PartitionFiles, offset: int) -> bytes:
    """Epoch and payload hash of the record at an offset; empty without one."""
    records = files.records.between(offset, offset + 1)
    return b"" if not len(records) else records.leader_epoch.tobytes() + np.asarray(records.payload_hash).tobytes()


def _consequence(rejection: Rejection) -> str:
    if not rejection.refusal.sure:
        return "Another release may support it."
    if rejection.refusal.brokers_too:
        return "Controllers stop at this record; brokers log an error and skip it."
    return "Controllers stop at this record; brokers apply it."


def _who(same: Sequence[_Holder], others: Sequence[_Holder], given: int, offset: int) -> str:
    names = ", ".join(each.broker.label for each in same)
    if others:
        other = others[0]
        return (
            f"Only {names} has this record: {', '.join(each.broker.label for each in others)} has another one at this "
            f"offset ({other.files.where(offset)}), so the logs have diverged or a file is corrupt."
        )
    if given == 1:
        return f"{names} is the only node given."
    absent = given - len(same)
    missing = f"; {counted(absent, 'other log')} ends before it or begins after it" if absent else ""
    if len(same) == 1:
        return f"Only {names} has this record{missing}."
    return f"{names} have the same record{missing}: a copy from another node does not help."


def _snapshots(holders: Sequence[BrokerFiles]) -> list[CheckResult]:
    """Each record that Kafka rejects in a snapshot, once for all nodes that have the same file."""
    results: list[CheckResult] = []
    reported: set[bytes] = set()
    for broker in holders:
        for snapshot in broker.snapshots:
            rejection = snapshot.rejection
            if rejection is None or snapshot.digest in reported:
                continue
            reported.add(snapshot.digest)
            nodes = [each.label for each in holders if any(other.digest == snapshot.digest for other in each.snapshots)]
            message = f"record {rejection.offset} of snapshot {snapshot.id}: {rejection}. {_consequence(rejection)} "
            message += f"{', '.join(nodes)} {'has' if len(nodes) == 1 else 'have'} this snapshot."
            verdict: Verdict = "violated" if rejection.refusal.sure else "unknown"
            subject = f"{METADATA_TOPIC}-0" if len(nodes) > 1 else f"{broker.label}: {METADATA_TOPIC}-0"
            data = {**rejection.to_json(), "nodes": nodes}
            results.append(CheckResult(_NAME, verdict, subject, message, snapshot.at(rejection.position), data=data))
    return results
