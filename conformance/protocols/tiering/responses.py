"""What is held against the records themselves: logs, copies in the store, answers to clients and to followers.

The model knows a record by its offset and leader epoch. Here is what was written there: whoever has a record of an
offset and an epoch has the same one, and so has every copy; and what a client was told of, it is served.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from ....impl.files.interface import Files, read_file
from ....impl.log.batch import read_batches
from ....impl.tiering.segments import EPOCHS, LOG, PARTS
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONSUMER,
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LAST_TIERED,
    LATEST,
    MAX_TIMESTAMP,
    NO_TOPIC_ID,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from ...lockstep.adapter import Contradiction
from .nodes import PARTITION

Row = tuple[int, int, bytes]
"""Offset, leader epoch, content."""
_WAITS: Final = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER})
"""What may be answered at any time where the store is asked."""


class WrongRecord(Contradiction):
    """A log, or a copy of a part of one, has what nobody wrote there."""


class WrongAnswer(Contradiction):
    """A broker has answered what its own state, or what was written, does not bear out."""


def rows_in(data: bytes) -> list[Row]:
    """The records of encoded batches."""
    return [
        (record.offset, record.leader_epoch, record.value or b"")
        for batch in read_batches(data)
        for record in batch.records()
    ]


class Written:
    """All records that were ever in a log, by offset and leader epoch."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], bytes] = {}
        self.acknowledged: dict[int, bytes] = {}
        """By offset, what a producer was told is committed, and no unclean election has cut off."""
        self.times: dict[bytes, int] = {}
        """The timestamp of each record that a producer has sent."""
        self.sizes: dict[bytes, int] = {}
        """The bytes of its batch."""

    def add(self, rows: Sequence[Row], where: str) -> None:
        """Raises WrongRecord for one that is another's."""
        for offset, epoch, value in rows:
            known = self._rows.setdefault((offset, epoch), value)
            if known != value:
                raise WrongRecord(f"{where} has another record at offset {offset} of leader epoch {epoch}")

    def at(self, offset: int, epoch: int) -> bytes | None:
        """The record of an epoch at an offset."""
        return self._rows.get((offset, epoch))

    def time_at(self, log: Any, offset: int) -> int | None:
        """The timestamp of the record that a log has at an offset; None where it was seen in no log yet."""
        value = self.at(offset, log.epoch_for(offset))
        return None if value is None else self.times.get(value)

    def keep(self, end: int, lineage: Mapping[int, int]) -> None:
        """An unclean election has cut off what was acknowledged and a log that ends there does not have."""
        self.acknowledged = {
            offset: value
            for offset, value in self.acknowledged.items()
            if offset < end and self.at(offset, lineage.get(offset, -1)) == value
        }

    def lost(self, start: int, end: int, lineage: Mapping[int, int]) -> str | None:
        """What was acknowledged and a leader's log, from its start to its end, does not have."""
        for offset, value in sorted(self.acknowledged.items()):
            if offset >= start and (offset >= end or self.at(offset, lineage.get(offset, -1)) != value):
                return f"the record that was acknowledged at offset {offset} is not in it"
        return None


def check_local(
    node: int, rows: Sequence[Row], lineage: Mapping[int, int], local_start: int, end: int, starts: Sequence[int]
) -> None:
    """The checkpoint has each local record's epoch. Raises WrongRecord.

    ``starts``: where the entries of the checkpoint begin; none lies behind the end.
    """
    there = {offset: epoch for offset, epoch, _ in rows if offset >= local_start}
    if sorted(there) != list(range(local_start, end)):
        raise WrongRecord(f"broker {node} has the offsets {sorted(there)} locally, and says {local_start} to {end}")
    for offset, epoch in there.items():
        if lineage.get(offset) != epoch:
            raise WrongRecord(
                f"broker {node} says epoch {lineage.get(offset)} of offset {offset}, and its record says {epoch}"
            )
    if any(start > end for start in starts):
        raise WrongRecord(f"broker {node} has leader epochs that begin at {list(starts)}, and its log ends at {end}")


def objects_of(files: Files, number: int, start: int) -> dict[str, bytes]:
    """By part, what there is of a copy in a store that keeps its objects in ``bucket``; ``start``: its first offset."""
    topic = f"{PARTITION.topic}-{PARTITION.partition}-{UUID(int=0)}"
    found = {part: f"bucket/{topic}/{start:020d}-{UUID(int=number + 1)}.{part}" for part in PARTS}
    return {part: read_file(files, path) for part, path in found.items() if files.exists(path)}


def check_copy(
    number: int, start: int, end: int, epochs: Mapping[int, int], objects: Mapping[str, bytes], written: Written
) -> dict[int, int] | None:
    """What a copy's checkpoint says, by offset; None as long as not all of it is there, as it was written.

    Raises WrongRecord for what is there, and is not the segment.
    """
    if any(part not in objects for part in PARTS):
        return None
    try:
        rows = rows_in(objects[LOG])
    except Exception:
        return None  # a part of it
    if [row[0] for row in rows] != list(range(start, end)):
        return None
    for offset, epoch, value in rows:
        if epochs.get(offset) != epoch or written.at(offset, epoch) != value:
            raise WrongRecord(f"copy {number} has another record at offset {offset}, of leader epoch {epoch}")
    said = _checkpoint(objects[EPOCHS], end)
    if said is None:
        return None
    for offset, epoch in said.items():
        if offset >= start and epochs.get(offset) != epoch:
            raise WrongRecord(f"the checkpoint of copy {number} says epoch {epoch} of offset {offset}")
    return said


def _checkpoint(data: bytes, end: int) -> dict[int, int] | None:
    try:
        _, count, *lines, _ = data.decode().split("\n")
        entries = [tuple(map(int, line.split())) for line in lines]
    except ValueError:
        return None
    if len(entries) != int(count):
        return None
    found: dict[int, int] = {}
    for epoch, start in entries:
        found |= dict.fromkeys(range(start, end), epoch)
    return found


# -- answers ---------------------------------------------------------------------------------------------------------


def _wrong(what: str, answered: object, wanted: object) -> WrongAnswer:
    return WrongAnswer(f"{what} is answered with {answered}, and its state says {wanted}")


def refusal(here: Any, request: Any) -> ErrorCode:
    """How a replica refuses whoever is in another leader epoch (KIP-320), and everybody where its disk has failed.

    The latter comes first, as in Kafka's ``ReplicaManager.getPartitionOrError``.
    """
    if here is not None and here.failure is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if here is None or here.leader is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    epoch = request.current_leader_epoch
    if getattr(request, "replica_id", CONSUMER) != CONSUMER and epoch != here.leader_epoch:
        return ErrorCode.FENCED_REPLICA if epoch < here.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > here.leader_epoch else ErrorCode.NONE


def _is_unknown(here: Any, request: Any, answer: Any) -> bool:
    """Whether a broker that has no replica says no more than that: it was not told of the topic yet."""
    if here is None and answer.error is ErrorCode.UNKNOWN_TOPIC_ID:
        return bool(getattr(request, "topic_id", NO_TOPIC_ID) != NO_TOPIC_ID)
    return here is None and answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def check_fetch(
    here: Any,
    request: FetchRequest,
    answer: FetchResponse,
    written: Written,
    lineage: Mapping[int, int],
    *,
    late: bool,
) -> None:
    """Raises WrongAnswer. A follower is told of what is in remote storage, a consumer gets it.

    ``here``: the replica as it is while it answers. ``lineage``: the epochs of its log, and of what was before it.
    ``late``: the store was asked meanwhile.
    """
    offset, replica = request.fetch_offset, request.replica_id != CONSUMER
    what = f"a fetch from offset {offset}"
    wanted = refusal(here, request)
    remote = False
    if wanted.name == "NONE":
        log = here.log
        if not log.log_start <= offset <= log.end:
            wanted = ErrorCode.OFFSET_OUT_OF_RANGE
        elif offset < log.local_start:
            remote = not replica
            wanted = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE if replica else ErrorCode.NONE
    if (remote or late) and answer.error in _WAITS:
        return
    if _is_unknown(here, request, answer):
        return
    if late and answer.error is ErrorCode.NONE:
        wanted = ErrorCode.NONE  # what it began to read may have expired since
    if answer.error.name != wanted.name:
        raise _wrong(what, answer.error.name, wanted.name)
    if here is None or here.leader is None:
        return
    log = here.log
    beyond = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)
    if answer.error in beyond and answer.log_start_offset != log.log_start:
        raise _wrong(f"{what}, as to the log start,", answer.log_start_offset, log.log_start)
    if answer.error is not ErrorCode.NONE:
        return
    said = answer.high_watermark, answer.log_start_offset, answer.leader_epoch
    if said != (here.high_watermark, log.log_start, here.leader_epoch):
        raise _wrong(what, said, (here.high_watermark, log.log_start, here.leader_epoch))
    rows = [row for row in rows_in(answer.records) if row[0] >= offset]
    below = log.end if replica else here.high_watermark
    if [row[0] for row in rows] != list(range(offset, offset + len(rows))) or (not rows and offset < below):
        raise _wrong(what, [row[0] for row in rows], f"offsets from {offset} on, below {below}")
    known = {**lineage, **{at: log.epoch_for(at) for at in range(log.log_start, log.end)}}
    for at, epoch, value in rows:
        if at >= below or known.get(at) != epoch or written.at(at, epoch) not in (value, None):
            raise WrongAnswer(f"{what} is answered with epoch {epoch} at {at}, which the leader's log does not have")


def check_list_offsets(
    here: Any, request: ListOffsetsRequest, answer: ListOffsetsResponse, highest: int | None, written: Written
) -> None:
    """Raises WrongAnswer. ``highest``: the last offset that the leader knows to be in remote storage."""
    what = f"the offset of timestamp {request.timestamp}"
    wanted = refusal(here, request)
    if answer.error in _WAITS and request.timestamp not in _SENTINELS:
        return
    if _is_unknown(here, request, answer):
        return
    if answer.error.name != wanted.name:
        raise _wrong(what, answer.error.name, wanted.name)
    if answer.error is not ErrorCode.NONE:
        return
    log = here.log
    if answer.answering_epoch != here.leader_epoch:
        raise _wrong(f"{what}, as to the answering epoch,", answer.answering_epoch, here.leader_epoch)
    tiered = -1 if highest is None else highest
    offsets = {
        EARLIEST: log.log_start,
        LATEST: here.high_watermark,
        EARLIEST_LOCAL: log.local_start,
        LAST_TIERED: tiered,
        EARLIEST_PENDING_UPLOAD: -1 if tiered < 0 else tiered + 1,
    }
    if request.timestamp not in offsets:
        if answer.offset >= here.high_watermark:
            raise _wrong(what, answer.offset, f"an offset below {here.high_watermark}")
        _check_time(what, log, request, answer, written)
        return
    offset = offsets[request.timestamp]
    at = offset if request.timestamp <= EARLIEST_LOCAL else offset - 1
    known = offset >= 0 and (request.timestamp <= EARLIEST_LOCAL or offset > log.log_start)
    epoch = log.epoch_for(at) if known else -1
    if (answer.offset, answer.leader_epoch) != (offset, epoch):
        raise _wrong(what, (answer.offset, answer.leader_epoch), (offset, epoch))


def _check_time(
    what: str, log: Any, request: ListOffsetsRequest, answer: ListOffsetsResponse, written: Written
) -> None:
    """The record that is answered has the timestamp that is, and none in remote storage is better.

    Where the store was asked meanwhile, what is local now may have been written, or committed, after that.
    """
    remote = ((at, written.time_at(log, at)) for at in range(log.log_start, log.local_start))
    known = {at: time for at, time in remote if time is not None}
    if answer.offset >= log.log_start:
        time = written.time_at(log, answer.offset)
        if time is not None and time != answer.timestamp:
            raise _wrong(f"{what}, as to the timestamp,", answer.timestamp, time)
    if request.timestamp == MAX_TIMESTAMP:
        better = [at for at, time in known.items() if time > answer.timestamp]
    else:
        end = log.local_start if answer.offset < 0 else answer.offset
        better = [at for at, time in known.items() if at < end and time >= request.timestamp]
    if better:
        raise _wrong(what, answer.offset, f"offset {better[0]}, which is in remote storage")


_SENTINELS: Final = frozenset({EARLIEST, LATEST, EARLIEST_LOCAL, LAST_TIERED, EARLIEST_PENDING_UPLOAD})
