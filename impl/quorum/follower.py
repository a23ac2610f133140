"""A replica that follows: it fetches the log and, where it has to, a snapshot, both at once (KIP-595, KIP-630)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..log.errors import InvalidAppend
from ..wire.errors import ErrorCode
from ..wire.quorum import FetchSnapshotRequest, FetchSnapshotResponse, QuorumFetchResponse
from .snapshots import SnapshotId
from .timers import ELECTION, FETCH, FETCH_SNAPSHOT

if TYPE_CHECKING:
    from .node import QuorumNode

_REDISCOVER = frozenset(
    {ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE, ErrorCode.NOT_LEADER_OR_FOLLOWER}
)


class Follower:
    """One epoch in which a replica knows its leader.

    At most one Fetch and one FetchSnapshot are in hand; an answer to any other request is dropped. The election timer
    runs off when the leader has not answered for ``fetch_timeout_ms``.
    """

    def __init__(self, node: QuorumNode, leader: int) -> None:
        self._node = node
        self._replica = node.replica
        self.leader = leader
        self._fetch: int | None = None
        self._fetch_snapshot: int | None = None
        self._heard()
        node.set_timer(FETCH, 0)
        node.set_timer(FETCH_SNAPSHOT, 0)

    def close(self) -> None:
        """The epoch is over, or its leader is gone."""
        for correlation in (self._fetch, self._fetch_snapshot):
            self._node.requests.forget(correlation)
        for timer in (FETCH, FETCH_SNAPSHOT, ELECTION):
            self._node.timers.cancel(timer)

    def _heard(self) -> None:
        self._node.set_timer(ELECTION, self._node.config.fetch_timeout_ms)

    # -- Fetch ------------------------------------------------------------------------------------------------------

    def fetch(self) -> None:
        """Send a Fetch; one that is not answered yet counts as lost."""
        node, replica = self._node, self._replica
        node.requests.forget(self._fetch)
        replica.flush()  # the fetch offset acknowledges everything below it, so it has to outlive a crash
        self._fetch = node.requests.request(self.leader, node.fetch_request(), self._fetched)
        node.set_timer(FETCH, node.config.request_timeout_ms)

    def _fetched(self, body: object) -> None:
        self._fetch = None
        node, replica = self._node, self._replica
        node.set_timer(FETCH, node.config.retry_backoff_ms)
        if not isinstance(body, QuorumFetchResponse) or node.learn(body.epoch, body.leader):
            return
        asked = body.fetch_offset == replica.end and body.last_fetched_epoch == replica.last_epoch
        if body.error is not ErrorCode.NONE or body.epoch != node.epoch or not asked:
            return
        self._heard()
        if body.snapshot is not None:
            replica.start_over(SnapshotId.from_message(body.snapshot))
            node.requests.forget(self._fetch_snapshot)
            node.set_timer(FETCH_SNAPSHOT, 0)
            node.set_timer(FETCH, 0)
        elif body.diverging is not None:
            if replica.truncate(body.diverging.epoch, body.diverging.offset):
                node.set_timer(FETCH, 0)
        else:
            self._take(body)

    def _take(self, body: QuorumFetchResponse) -> None:
        node, replica = self._node, self._replica
        if body.records:
            try:
                replica.log.append_as_follower(body.records, node.epoch)
            except InvalidAppend:  # damaged on its way: nothing was written
                return
        if replica.raise_high_watermark(body.high_watermark):
            node.committed()
        # "as long as the local state machine has generated a snapshot that includes to the log begin offset minus one"
        if replica.advance_begin(body.log_begin_offset):
            node.begin_advanced()
        node.set_timer(FETCH, 0 if body.records else node.config.fetch_wait_ms)

    # -- FetchSnapshot ----------------------------------------------------------------------------------------------

    def fetch_snapshot(self) -> None:
        """Send a FetchSnapshot where a snapshot is incomplete; one that is not answered yet counts as lost."""
        node, partial = self._node, self._replica.fetching
        node.requests.forget(self._fetch_snapshot)
        if partial is None:
            return
        body = FetchSnapshotRequest(
            node.config.partition,
            node.address,
            node.epoch,
            partial.id.in_messages,
            partial.size,
            node.config.snapshot_max_bytes,
        )
        self._fetch_snapshot = node.requests.request(self.leader, body, self._fetched_snapshot)
        node.set_timer(FETCH_SNAPSHOT, node.config.request_timeout_ms)

    def _fetched_snapshot(self, body: object) -> None:
        self._fetch_snapshot = None
        node, partial = self._node, self._replica.fetching
        node.set_timer(FETCH_SNAPSHOT, node.config.retry_backoff_ms)
        if not isinstance(body, FetchSnapshotResponse) or node.learn(body.epoch, body.leader):
            return
        if partial is None or body.epoch != node.epoch:
            return
        if body.snapshot != partial.id.in_messages or body.position != partial.size:
            return  # the answer to a request for another snapshot or position (the text's response names neither)
        if body.error in _REDISCOVER:
            # "The follower can rediscover the new snapshot by sending a fetch request with an offset and epoch of
            # zero": a log that is fetched from there on is empty.
            self._replica.reset_to_empty()
            node.requests.forget(self._fetch)
            node.set_timer(FETCH, 0)
        elif body.error is ErrorCode.NONE and body.continues == (
            partial.size + len(body.unaligned_records) < body.size
        ):
            self._heard()
            if self._replica.take_chunk(body.position, body.unaligned_records, more=body.continues):
                node.committed()
            elif partial.size > body.position:  # else it could not be loaded, and is begun again after a pause
                node.set_timer(FETCH_SNAPSHOT, 0)
