"""What brokers and controller answer that the model has no word for, held against what is seen of them.

The model follows every cell: the logs, the high watermarks, the leader epochs. Much of what a node answers is said by
these alone, and changes nothing: where a leader epoch ends, what a timestamp's offset is, whether a consumer's position
was truncated. So an answer is held against the node's own state, which the model has just agreed to.

``Row`` is a record as it was read past the node: offset, leader epoch, content.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from ....impl.replica.partition import PartitionState
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONSUMER,
    EARLIEST,
    LATEST,
    NO_EPOCH,
    NO_LEADER,
    NO_OFFSET,
    NO_TOPIC_ID,
    AlterIsrRequest,
    AlterIsrResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from ....impl.zk_controller import PartitionState as Quorum
from ...lockstep.adapter import Contradiction

Row: TypeAlias = tuple[int, int, bytes]

_ELSEWHERE: Final = frozenset({ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""What is answered for reasons that no state shows."""


def is_elsewhere(request: object, answer: object, state: PartitionState | None) -> bool:
    """Whether an answer says no more than that what is asked for is not here, or that the disk has failed."""
    error = getattr(answer, "error", None)
    if error is ErrorCode.UNKNOWN_TOPIC_ID:
        return state is None and getattr(request, "topic_id", NO_TOPIC_ID) != NO_TOPIC_ID
    return error in _ELSEWHERE


class WrongAnswer(Contradiction):
    """A node has answered, or keeps from answering, what its own state does not bear out."""


def live(state: PartitionState, rows: Sequence[Row]) -> Sequence[Row]:
    """What is there for whoever asks: what lies below the log start is deleted (KIP-107)."""
    return [row for row in rows if row[0] >= state.log_start] if state.log_start else rows


def epoch_starts(state: PartitionState, rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Where each leader epoch of a leader's log begins; its own does at its end, where it has written nothing."""
    found: list[tuple[int, int]] = []
    for offset, epoch, _ in live(state, rows):
        if not found or found[-1][0] != epoch:
            found.append((epoch, offset))
    if not found or found[-1][0] != state.leader_epoch:
        found.append((state.leader_epoch, state.end))
    return found


def epoch_end(starts: Sequence[tuple[int, int]], end: int, asked: int) -> tuple[int, int]:
    """The largest epoch that is at most ``asked``, and where it ends (KIP-101, KIP-279; ``endOffsetFor`` in Kafka)."""
    if asked == NO_EPOCH or asked > starts[-1][0]:
        return NO_EPOCH, NO_OFFSET
    if asked == starts[-1][0]:
        return asked, end
    later = next(start for epoch, start in starts if epoch > asked)
    return max((epoch for epoch, _ in starts if epoch <= asked), default=asked), later


def _epoch_before(rows: Sequence[Row], offset: int) -> int:
    """The leader epoch of the record before an offset, ``NO_EPOCH`` where there is none."""
    return next((epoch for at, epoch, _ in rows if at == offset - 1), NO_EPOCH)


def _wrong(what: str, answered: object, wanted: object) -> WrongAnswer:
    return WrongAnswer(f"{what} is answered with {answered}, its state says {wanted}")


def _refusal(state: PartitionState | None, node: int, epoch: int, *, replica: bool) -> ErrorCode:
    """How whoever is in this leader epoch is refused (KIP-320, "Replica Handling"; a consumer may be behind)."""
    if state is None or state.leader != node:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if replica and epoch < state.leader_epoch:
        return ErrorCode.FENCED_REPLICA
    return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > state.leader_epoch else ErrorCode.NONE


def _check_error(
    what: str,
    answer: OffsetsForLeaderEpochResponse | ListOffsetsResponse,
    wanted: ErrorCode,
    state: PartitionState | None,
) -> None:
    """Hold the error to the one that is wanted, and the epoch of whoever answers: a leader's own, also as it refuses.

    Whoever does not lead knows of none to tell. Raises WrongAnswer.
    """
    if answer.error is not wanted:
        raise _wrong(what, answer.error.name, wanted.name)
    led = NO_EPOCH if state is None or wanted is ErrorCode.NOT_LEADER_OR_FOLLOWER else state.leader_epoch
    if answer.answering_epoch != led:
        raise _wrong(f"{what}, as to who answers,", f"leader epoch {answer.answering_epoch}", f"leader epoch {led}")


def check_epoch_end(
    request: OffsetsForLeaderEpochRequest,
    answer: OffsetsForLeaderEpochResponse,
    node: int,
    state: PartitionState | None,
    rows: Sequence[Row],
) -> None:
    """Raises WrongAnswer. A consumer is given the epoch of the record before the end (KIP-320)."""
    if is_elsewhere(request, answer, state):
        return
    consumer = request.replica_id == CONSUMER
    wanted = _refusal(state, node, request.current_leader_epoch, replica=not consumer)
    what = f"where leader epoch {request.leader_epoch} ends"
    _check_error(what, answer, wanted, state)
    if wanted is not ErrorCode.NONE:
        return
    assert state is not None
    epoch, end = epoch_end(epoch_starts(state, rows), state.end, request.leader_epoch)
    if consumer and end != NO_OFFSET:
        epoch = _epoch_before(live(state, rows), end)
    if (answer.leader_epoch, answer.end_offset) != (epoch, end):
        raise _wrong(what, (answer.leader_epoch, answer.end_offset), (epoch, end))


def check_list_offsets(
    request: ListOffsetsRequest,
    answer: ListOffsetsResponse,
    node: int,
    state: PartitionState | None,
    rows: Sequence[Row],
    timestamp_of: Callable[[bytes], int],
) -> None:
    """Raises WrongAnswer. Nothing at or above the high watermark is told of (KIP-207, KIP-320 "ListOffsets")."""
    if is_elsewhere(request, answer, state):
        return
    wanted = _refusal(state, node, request.current_leader_epoch, replica=False)
    what = f"the offset of timestamp {request.timestamp}"
    _check_error(what, answer, wanted, state)
    if wanted is not ErrorCode.NONE:
        return
    assert state is not None
    rows = live(state, rows)
    offset, timestamp = NO_OFFSET, -1
    if request.timestamp == EARLIEST:
        offset = state.log_start
    elif request.timestamp == LATEST:
        offset = state.high_watermark
    else:
        for at, _, payload in rows:
            if at < state.high_watermark and timestamp_of(payload) >= request.timestamp:
                offset, timestamp = at, timestamp_of(payload)
                break
    epoch = _epoch_before(rows, offset) if offset > 0 else NO_EPOCH
    said = answer.offset, answer.leader_epoch, answer.timestamp
    if said != (offset, epoch, timestamp):
        raise _wrong(what, said, (offset, epoch, timestamp))


def check_asked(body: object, node: int, state: PartitionState) -> None:
    """What a replica asks its leader says what it is like. Raises WrongAnswer.

    The leader goes by it: an end that it acknowledges, an epoch that fences it, a log start that holds back deletions
    for nobody (KIP-101, KIP-107, KIP-320).
    """
    latest = state.epochs[-1][0] if state.epochs else NO_EPOCH
    match body:
        case FetchRequest():
            said = body.replica_id, body.current_leader_epoch, body.fetch_offset, body.log_start_offset
            wanted = node, state.leader_epoch, state.end, state.log_start
        case OffsetsForLeaderEpochRequest():
            said = body.replica_id, body.current_leader_epoch, body.leader_epoch, latest
            wanted = node, state.leader_epoch, latest, latest
        case _:
            return
    if said != wanted:
        raise WrongAnswer(f"a replica asks with {body}, and is like {state}")


def check_fetch(
    request: FetchRequest,
    answer: FetchResponse,
    node: int,
    state: PartitionState | None,
    rows: Sequence[Row],
    fetched: Sequence[Row],
) -> None:
    """Raises WrongAnswer for a fetch that is refused, cut short or served where it should not be.

    ``fetched``: the records in the answer.
    """
    if is_elsewhere(request, answer, state):
        return
    replica = request.replica_id != CONSUMER
    asked = request.current_leader_epoch if replica else max(request.current_leader_epoch, request.last_fetched_epoch)
    wanted = _refusal(state, node, asked, replica=replica)
    what = f"a fetch from offset {request.fetch_offset}"
    if wanted is ErrorCode.NONE and state is not None:
        if not replica and _is_truncated(state, rows, request.fetch_offset, request.last_fetched_epoch):
            wanted = ErrorCode.LOG_TRUNCATION
        elif not state.log_start <= request.fetch_offset <= state.end:
            wanted = ErrorCode.OFFSET_OUT_OF_RANGE
    if answer.error is not wanted:
        raise _wrong(what, answer.error.name, wanted.name)
    if wanted is not ErrorCode.NONE:
        return
    assert state is not None
    said = answer.high_watermark, answer.leader_epoch, answer.log_start_offset
    if said != (state.high_watermark, state.leader_epoch, state.log_start):
        raise _wrong(what, said, (state.high_watermark, state.leader_epoch, state.log_start))
    below = state.end if replica else state.high_watermark
    there = [row for row in rows if request.fetch_offset <= row[0] < below]
    got = [row for row in fetched if row[0] >= request.fetch_offset]
    if got != there[: len(got)] or bool(got) != bool(there):
        raise _wrong(what, got, there)


def _is_truncated(state: PartitionState, rows: Sequence[Row], offset: int, last_epoch: int) -> bool:
    """Whether the record before a consumer's position is not the one of that epoch (KIP-320, "Leader Fetch Handling").

    A larger epoch begins below the position, or the log holds nothing of that epoch; of one that ended where the log
    begins, or before, that cannot be said.
    """
    if last_epoch == NO_EPOCH:
        return False
    _, end = epoch_end(epoch_starts(state, rows), state.end, last_epoch)
    if last_epoch < state.leader_epoch and end < offset:
        return True
    return not 0 < end <= state.log_start and all(epoch != last_epoch for _, epoch, _ in live(state, rows))


def check_alter_isr(request: AlterIsrRequest, answer: AlterIsrResponse, before: Quorum, after: Quorum) -> None:
    """Raises WrongAnswer where the controller takes up, or refuses, an ISR otherwise than by what it had (KIP-497)."""
    wanted = ErrorCode.NONE
    isr = request.new_isr
    if request.leader_epoch > before.leader_epoch:
        wanted = ErrorCode.UNKNOWN_LEADER_EPOCH
    elif (request.leader_epoch, request.broker) != (before.leader_epoch, before.leader) or before.leader == NO_LEADER:
        wanted = ErrorCode.FENCED_REPLICA
    elif isr == before.isr and request.partition_epoch < before.partition_epoch:
        isr = before.isr  # a repeat
    elif request.partition_epoch != before.partition_epoch:
        wanted = ErrorCode.INVALID_UPDATE_VERSION
    elif before.leader not in isr or not isr <= set(before.replicas):
        wanted = ErrorCode.INVALID_REQUEST
    elif isr & before.offline:
        wanted = ErrorCode.INELIGIBLE_REPLICA
    if answer.error is not wanted:
        raise _wrong(f"an ISR of {sorted(request.new_isr)}", answer.error.name, wanted.name)
    if wanted is not ErrorCode.NONE and after != before:
        raise WrongAnswer(f"an ISR that is refused with {wanted.name} has changed the partition to {after}")
    if wanted is ErrorCode.NONE and after.isr != isr:
        raise WrongAnswer(f"an ISR of {sorted(isr)} is granted, and it is {sorted(after.isr)}")
    said: tuple[Any, ...] = answer.leader, answer.leader_epoch, answer.isr, answer.partition_epoch
    if said != (after.leader, after.leader_epoch, after.isr, after.partition_epoch):
        raise _wrong("what the partition's state is", said, after)
