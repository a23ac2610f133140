"""Whose turn it is to take a snapshot (KIP-631, "Snapshot Implementation"): soft state of the active controller.

Every node tells in its heartbeats how far it is and where its latest snapshot ends. At most one is told at a time to
take another; until it tells of one, or is not heard of for a whole session, nobody else is. Where a member of the
quorum is not heard of, or so many have fallen behind that the loss of one more would leave no majority, a node waits
for ``degraded_snapshot_minimum_records``.
"""

from __future__ import annotations

from typing import NamedTuple

from .config import ControllerConfig


class _Node(NamedTuple):
    metadata_end: int
    snapshot_end: int
    heard_at: int


class _Turn(NamedTuple):
    node: int
    snapshot_end: int
    """Where its snapshot ended when it was told."""


class SnapshotTurns:
    """Of one time of being active, by node id. Ends are exclusive, times the clock's milliseconds."""

    def __init__(self, config: ControllerConfig, voters: tuple[int, ...], now: int) -> None:
        self._config = config
        self._voters = voters
        self._since = now
        self._nodes: dict[int, _Node] = {}
        self._turn: _Turn | None = None

    @property
    def turn(self) -> int | None:
        """Who has been told to take a snapshot, and has not told of it yet."""
        return None if self._turn is None else self._turn.node

    def heard(self, node: int, *, metadata_end: int, snapshot_end: int, stable: int, now: int) -> bool:
        """A heartbeat; gives whether it is this node's turn. ``stable``: the end of what is committed."""
        self._nodes[node] = _Node(metadata_end, snapshot_end, now)
        turn = self._turn
        if turn is not None and (turn.node != node or snapshot_end > turn.snapshot_end):
            known = self._nodes.get(turn.node)
            gone = known is None or now - known.heard_at >= self._config.session_timeout_ms
            if turn.node == node or gone:
                self._turn = turn = None
        if turn is not None:
            return turn.node == node
        if stable - snapshot_end <= self.threshold(stable, now) or metadata_end <= snapshot_end:
            return False
        self._turn = _Turn(node, snapshot_end)
        return True

    def threshold(self, stable: int, now: int) -> int:
        """More records than this have to be stable after a node's snapshot."""
        config = self._config
        return (
            config.degraded_snapshot_minimum_records if self.degraded(stable, now) else config.snapshot_minimum_records
        )

    def degraded(self, stable: int, now: int) -> bool:
        """Whether a member of the quorum is unavailable, or the loss of one that is not behind would leave no majority.

        Nobody is that has not had the time yet to send a heartbeat. A quorum of one or two has none to lose at any
        time, and is degraded only where a member is unavailable.
        """
        timeout, lag = self._config.session_timeout_ms, self._config.max_lag_records
        there = 0
        for voter in self._voters:
            known = self._nodes.get(voter)
            if now - (self._since if known is None else known.heard_at) >= timeout:
                return True
            there += known is None or stable - known.metadata_end <= lag
        majority = len(self._voters) // 2 + 1
        spare = min(1, len(self._voters) - majority)
        return there - spare < majority
