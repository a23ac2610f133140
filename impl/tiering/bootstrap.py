"""A follower whose leader has its next records no more: it begins after remote storage (``TierStateMachine`` in Kafka).

KIP-405, "Follower fetch", and KIP-1023. Nothing of the follower changes before all that it is to hold is known, so
that each failure ends in another try. Where the records begin that it copies from its leader is decided by ``_target``;
the state before that ("auxiliary state": leader epochs, producers) comes from remote storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..log.epochs import EpochEntry
from ..wire.errors import ErrorCode
from ..wire.messages import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from . import parts
from .errors import CorruptRemoteSegment, RemoteStorageError
from .known_producers import Unread, producers_before
from .segments import EPOCHS
from .steps import Ask, Call, Steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .remote import RemotePartition
    from .segments import RemoteSegment


class _Retry(Exception):
    """Something is not known yet, or the leader has not answered: all is tried again, and nothing has changed."""


class Target(NamedTuple):
    """Where a follower is to begin: what it will hold of the remote log, its first local offset, that one's epoch."""

    log_start: int
    offset: int
    epoch: int
    """-1 where nothing is in remote storage before it."""


class Bootstrap:
    """What a follower does in one leader epoch to begin after what is in remote storage."""

    def __init__(self, remote: RemotePartition) -> None:
        self._remote = remote
        self._partition = remote.partition

    def run(self, leader_start: int) -> Steps:
        """Bring the follower there, and let it fetch on; or let it try again after ``replica.fetch.backoff.ms``."""
        follower = self._partition.follower
        if follower is None:
            return
        metrics = self._remote.metrics
        metrics.build_requests.mark()
        wait = self._partition.runtime.config.replica_fetch_backoff_ms
        end = self._partition.log.end
        try:
            target = yield from self._target(leader_start)
            yield from self._build(target)
            if self._partition.log.end != end:  # else it would be told the same again, and again
                wait = 0
        except (_Retry, Unread, RemoteStorageError):
            metrics.build_errors.mark()
        if self._partition.follower is follower:
            follower.go_on(wait)

    # -- where to begin ---------------------------------------------------------------------------------------------

    def _target(self, leader_start: int) -> Steps:
        if leader_start < 0:
            leader_start, _ = yield from self._list(EARLIEST)
        if not self._remote.begins_after_tiered():
            offset, epoch = yield from self._list(EARLIEST_LOCAL)
            return Target(leader_start, offset, epoch)
        offset, epoch = yield from self._list(EARLIEST_PENDING_UPLOAD)
        if offset < 0:
            local, _ = yield from self._list(EARLIEST_LOCAL)
            if local != leader_start:
                raise _Retry  # something is uploaded, and the leader will know of it
            return Target(leader_start, leader_start, -1)
        if offset < leader_start:
            # Tiering was off for a time: nothing that is left of the log is in remote storage.
            return Target(leader_start, leader_start, -1)
        return Target(leader_start, offset, epoch)

    def _ask(self, body: Any, kind: type[Any]) -> Steps:
        """An answer of the leader in this leader epoch. Raises ``_Retry`` where there is none."""
        follower = self._partition.follower
        if follower is None:
            raise _Retry
        answer = yield Ask(follower.leader, body)
        here = isinstance(answer, kind) and answer.error is ErrorCode.NONE and answer.answering_epoch == follower.epoch
        if not here or self._partition.follower is not follower:
            raise _Retry
        return answer

    def _list(self, timestamp: int) -> Steps:
        """Offset and leader epoch for a sentinel of ListOffsets."""
        follower = self._partition.follower
        epoch = -1 if follower is None else follower.epoch
        answer = yield from self._ask(ListOffsetsRequest(self._partition.key, timestamp, epoch), ListOffsetsResponse)
        return answer.offset, answer.leader_epoch

    def _epoch_before(self, target: Target) -> Steps:
        """The leader epoch of the record before the target: that of the target, unless that one begins there.

        The leader says where the epoch before it ends, as in shipped Kafka (``buildRemoteLogAuxState``). An epoch that
        is not known is not taken for epoch 0.
        """
        if target.epoch < 0:
            raise _Retry
        if target.epoch == 0:
            return 0
        follower = self._partition.follower
        epoch = -1 if follower is None else follower.epoch
        node = self._partition.runtime.node_id
        body = OffsetsForLeaderEpochRequest(node, self._partition.key, epoch, target.epoch - 1)
        answer = yield from self._ask(body, OffsetsForLeaderEpochResponse)
        return answer.leader_epoch if answer.end_offset == target.offset else target.epoch

    # -- what comes before ------------------------------------------------------------------------------------------

    def _build(self, target: Target) -> Steps:
        """Begin at the target, with all that is before it as the remote segment that ends there has it."""
        partition = self._partition
        log_start, offset = target.log_start, target.offset
        if offset <= log_start:
            partition.start_at(log_start)
            return
        epoch = yield from self._epoch_before(target)
        segment = self._remote.segments().find(epoch, offset - 1)
        if segment is None:
            raise _Retry  # this broker has not read of it yet
        store = self._remote.store
        follower = partition.follower
        data: bytes = yield Call(lambda: parts.read_part(store, segment, EPOCHS))
        where = segment.object_name(EPOCHS)
        said = _joined(parts.decode_epochs(data, where), segment)
        epochs = [entry for entry in said if entry.start_offset < offset]
        producers = yield from producers_before(self._remote, epochs, log_start, offset)
        if partition.follower is not follower:
            raise _Retry
        found = self._remote.segments().find(epoch, offset - 1)
        if found is None or found.id != segment.id:
            raise _Retry  # meanwhile this broker has read that it is deleted, and would claim what nobody can serve
        if not epochs or epochs[-1].epoch != epoch:
            raise CorruptRemoteSegment(f"its epochs {epochs} do not end with {epoch} at {offset - 1}", where)
        self._begin(log_start, offset, epochs, producers)

    def _begin(self, log_start: int, offset: int, epochs: list[EpochEntry], producers: bytes) -> None:
        if epochs[0].start_offset > log_start:
            # The uploader's log began later: its leader had deleted more than this one knows of.
            raise _Retry
        self._partition.start_after_remote(log_start, offset, epochs, producers)


def _joined(said: Iterable[EpochEntry], segment: RemoteSegment) -> list[EpochEntry]:
    """The epochs before a segment, as those uploaded with it say, and its own, as the metadata log says.

    What was uploaded begins with the uploader's log start. That may lie inside of the segment, and above that of a
    leader who has not heard of the deletion; the segment's own epochs are of all its records.
    """
    found = [entry for entry in said if entry.start_offset < segment.start_offset]
    for entry in segment.epochs:
        if not found or found[-1].epoch != entry.epoch:
            found.append(entry)
    return found
