"""A replica that leads: followers' progress, the high watermark by majority, and when the LBO advances."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..log.records import Record
from ..log.varint import uvarint
from ..replica.progress import Progress
from ..wire.errors import ErrorCode
from ..wire.quorum import BeginQuorumEpochRequest, BeginQuorumEpochResponse, EndQuorumEpochRequest
from .timers import ADVANCE_BEGIN, BEGIN_EPOCH

if TYPE_CHECKING:
    from .node import QuorumNode

_LEADER_CHANGE_KEY = struct.pack(">hh", 0, 2)
"""Kafka's control record LEADER_CHANGE: version and type."""
_NO_TAGS = b"\0"


def leader_change(leader: int, voters: Iterable[int], granting: Iterable[int], timestamp: int) -> Record:
    """The record with which a leader begins its epoch (``LeaderChangeMessage``, version 0)."""

    def nodes(ids: Iterable[int]) -> bytes:
        packed = [struct.pack(">i", each) + _NO_TAGS for each in sorted(ids)]
        return uvarint(len(packed) + 1) + b"".join(packed)

    value = struct.pack(">hi", 0, leader) + nodes(voters) + nodes(granting) + _NO_TAGS
    return Record(value, _LEADER_CHANGE_KEY, timestamp)


class Leader:
    """One epoch of a replica that was elected. Nobody's progress is known when it begins."""

    def __init__(self, node: QuorumNode, granted: frozenset[int]) -> None:
        self._node = node
        self._replica = node.replica
        now = node.now()
        voters = [each for each in node.config.voters if each != node.address]
        self.progress = {each: Progress(each, now) for each in voters}
        """What is known of the other voters, and of the observers that have fetched lately."""
        self._counted: dict[int, int] = {}
        """The end of what each voter has synced of this log, if it has all that is before it."""
        self._seen: dict[int, int] = {}
        """When this leader first saw a snapshot with that end."""
        self._following: set[int] = set()
        self._asked: dict[int, int] = {}
        """The last BeginQuorumEpoch to each voter, by its correlation: one that is not answered may never be."""
        if self._replica.fetching is not None:
            # It was elected as a replica with an empty log, and that is what it leads with.
            self._replica.reset_to_empty()
        if node.config.leader_change_record:
            record = leader_change(node.address, node.config.voters, granted, node.wall())
            self._replica.append([record], node.epoch, control=True)

    def begin(self) -> None:
        """Tell the voters, and go on; apart from the constructor, as a quorum of one commits at once."""
        self.tell_voters()
        self._node.set_timer(ADVANCE_BEGIN, self._node.config.begin_offset_interval_ms)
        self.advance()

    def close(self) -> None:
        """The epoch is over."""
        for correlation in self._asked.values():
            self._node.requests.forget(correlation)
        for timer in (BEGIN_EPOCH, ADVANCE_BEGIN):
            self._node.timers.cancel(timer)

    # -- who follows ------------------------------------------------------------------------------------------------

    def tell_voters(self) -> None:
        """BeginQuorumEpoch to every voter that has not fetched, or not lately: it may have forgotten who leads."""
        node = self._node
        for voter in node.config.voters:
            if voter != node.address and not (voter in self._following and self._is_live(voter)):
                body = BeginQuorumEpochRequest(node.config.partition, node.epoch, node.address)
                node.requests.forget(self._asked.get(voter))
                self._asked[voter] = node.requests.request(voter, body, self._told)
        if len(node.config.voters) > 1:
            node.set_timer(BEGIN_EPOCH, node.config.request_timeout_ms)

    def _told(self, body: object) -> None:
        if isinstance(body, BeginQuorumEpochResponse):
            self._node.learn(body.epoch, body.leader)

    def _is_live(self, replica: int) -> bool:
        """Whether it has fetched lately; a voter is given time from the beginning of the epoch on."""
        return self._node.now() - self.progress[replica].fetched_at <= self._node.config.fetch_timeout_ms

    def fetched(self, replica: int, offset: int, *, incomplete: bool) -> None:
        """A replica in this epoch has fetched, and its last record is in this log: it has synced all up to there.

        While its snapshot is incomplete that does not count: it votes as if it had none of it.
        """
        node = self._node
        progress = self.progress.setdefault(replica, Progress(replica, node.now()))
        progress.fetched(offset, self._replica.end, node.now())
        self._following.add(replica)
        if replica not in node.config.voters:
            return
        if incomplete:
            self._counted.pop(replica, None)
        else:
            self._counted[replica] = offset
            self.advance()

    def advance(self) -> None:
        """Raise the high watermark to what a majority has synced, this replica included; never below a record of its
        own epoch: one of an older epoch may still be overwritten (Raft, section 5.4.2)."""
        node, replica = self._node, self._replica
        ends = sorted([replica.end, *self._counted.values()], reverse=True)
        if len(ends) < node.config.majority:
            return
        end = ends[node.config.majority - 1]
        if end > replica.high_watermark and replica.epoch_at(end - 1) == node.epoch:
            replica.flush()
            replica.raise_high_watermark(end)
            node.committed()

    # -- the log begin offset ---------------------------------------------------------------------------------------

    def look_at_begin(self) -> None:
        """Advance the LBO as far as a snapshot's end allows ("When to Increase the Log Begin Offset").

        A client may have it elsewhere; at a snapshot's end a follower that is exactly there can be told from one that
        diverges.
        """
        node = self._node
        node.set_timer(ADVANCE_BEGIN, node.config.begin_offset_interval_ms)
        self._forget_observers()
        for snapshot in reversed(self._replica.snapshots.ids):
            if self.may_begin_at(snapshot.end_offset) and self._replica.advance_begin(snapshot.end_offset):
                node.begin_advanced()
                return

    def _forget_observers(self) -> None:
        """Those that are not live count for nothing, and whoever asks is an observer (``clearInactiveObservers``)."""
        voters = self._node.config.voters
        for replica in [each for each in self.progress if each not in voters and not self._is_live(each)]:
            del self.progress[replica]
            self._following.discard(replica)

    def may_begin_at(self, offset: int) -> bool:
        """All live replicas have replicated up to there, or it could have begun there for max.replication.lag.ms."""
        node, now = self._node, self._node.now()
        ends = [each.end_offset for each in self._replica.snapshots.ids]
        self._seen = {end: self._seen.get(end, now) for end in ends}
        covering = [self._seen[end] for end in ends if end >= offset]
        if not covering:
            return False
        old = now - min(covering) >= node.config.max_replication_lag_ms
        return old or all(each.end >= offset for each in self.progress.values() if self._is_live(each.replica))

    def delete_records(self, offset: int) -> ErrorCode:
        """A client wants the log to begin at ``offset``: "validated using the same logic".

        OFFSET_OUT_OF_RANGE where no snapshot reaches it, REQUEST_TIMED_OUT where replicas lag: it may be asked again.
        Where the log begins later already there is nothing to do.
        """
        replica = self._replica
        target = replica.high_watermark if offset == -1 else offset
        if target <= replica.begin:
            return ErrorCode.NONE
        if target > replica.snapshots.latest_end:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if not self.may_begin_at(target):
            return ErrorCode.REQUEST_TIMED_OUT
        if replica.advance_begin(target):
            self._node.begin_advanced()
        return ErrorCode.NONE

    # -- the end ----------------------------------------------------------------------------------------------------

    def resign(self) -> None:
        """Tell the voters that the epoch ends, whoever has most of the log first (EndQuorumEpoch)."""
        node = self._node
        others = [each for each in node.config.voters if each != node.address]
        successors = tuple(sorted(others, key=lambda each: (-self._counted.get(each, -1), each)))
        for voter in others:
            body = EndQuorumEpochRequest(node.config.partition, node.epoch, node.address, successors)
            node.requests.forget(node.requests.request(voter, body, lambda _: None))  # whatever it answers
