"""The state of one replica, as its own log lines report it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .event_kind import EventKind
from .observation import Observation
from .partition_timeline import PartitionTimeline

K = EventKind
_STATE_KINDS = frozenset(
    {
        K.LOG_LOADED,
        K.LEADER_STARTED,
        K.FOLLOWER_STARTED,
        K.FETCHER_ADDED,
        K.ISR_SHRINK,
        K.ISR_UPDATED,
        K.ROLE_SKIPPED,
        K.HIGH_WATERMARK,
        K.APPENDED,
        K.TRUNCATION_NO_EFFECT,
        K.TRUNCATION_REFUSED,
        K.LOG_START,
        K.LOG_CONTENT,
        K.QUORUM_ROLE,
    }
)


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """Epoch, leader, log start, high watermark, log end and ISR; ``None`` if unknown."""

    leader_epoch: int | None = None
    leader: int | None = None
    isr: frozenset[int] | None = None
    log_start: int | None = None
    high_watermark: int | None = None
    log_end: int | None = None

    def after(self, seen: Observation) -> ReplicaState:
        """The state after one event of the replica's own node."""
        match seen.kind:
            case K.LOG_CREATED:
                return ReplicaState(log_start=0, high_watermark=0, log_end=0)
            case K.LOG_DELETED | K.TOPIC_DELETED:
                return ReplicaState()
            case K.TRUNCATED if seen.offset is not None:
                watermark = self.high_watermark
                lower = watermark if watermark is None else min(watermark, seen.offset)
                return replace(self, log_end=seen.offset, high_watermark=lower)
            case K.TRUNCATED_FULLY if seen.offset is not None:
                return replace(self, log_start=seen.offset, high_watermark=seen.offset, log_end=seen.offset)
            case K.BATCH if seen.log_end is not None:
                return replace(self, log_end=max(self.log_end or 0, seen.log_end))
            case _ if seen.kind in _STATE_KINDS:
                return self._merged(seen)
            case _:
                return self

    def to_json(self) -> dict[str, Any]:
        """All fields; the ISR as a sorted list."""
        return {
            "leader_epoch": self.leader_epoch,
            "leader": self.leader,
            "isr": None if self.isr is None else sorted(self.isr),
            "log_start": self.log_start,
            "high_watermark": self.high_watermark,
            "log_end": self.log_end,
        }

    def _merged(self, seen: Observation) -> ReplicaState:
        role = seen.kind in (K.LEADER_STARTED, K.FOLLOWER_STARTED, K.QUORUM_ROLE)
        watermark = self.high_watermark if seen.high_watermark is None else seen.high_watermark
        end = self.log_end if seen.log_end is None else seen.log_end
        if end is not None and watermark is not None and watermark > end:
            # The log has grown since its end was reported.
            end = None
        return ReplicaState(
            leader_epoch=self.leader_epoch if seen.leader_epoch is None else seen.leader_epoch,
            leader=seen.leader if role or seen.leader is not None else self.leader,
            isr=seen.isr if role or (seen.isr is not None and seen.kind is not K.ISR_SHRINK) else self.isr,
            log_start=self.log_start if seen.log_start is None else seen.log_start,
            high_watermark=watermark,
            log_end=end,
        )


def replay_states(timeline: PartitionTimeline) -> Iterator[tuple[Observation, dict[int, ReplicaState]]]:
    """Yield each observation with the state of every node after it."""
    states: dict[int, ReplicaState] = {}
    for seen in timeline.observations:
        if seen.node is not None and seen.partition:
            before = states.get(seen.node)
            after = (before or ReplicaState()).after(seen)
            if before is not None or after != ReplicaState():
                states[seen.node] = after
        yield seen, dict(states)
