"""The rows of a timeline's table: the same for the terminal, the page and JSON."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from .contradiction import Contradiction
from .describe import describe
from .event_kind import EventKind
from .observation import Observation
from .partition_timeline import PartitionTimeline
from .replica_state import ReplicaState, replay_states

K = EventKind
_QUIET: Final = frozenset(
    {
        K.APPENDED,
        K.HIGH_WATERMARK,
        K.FOLLOWER_FETCH,
        K.FETCHER_REMOVED,
        K.ISR_REQUESTED,
        K.ROLE_SKIPPED,
        K.TRUNCATION_NO_EFFECT,
        K.TRUNCATION_DECIDED,
        K.BATCH,
        K.RECORD,
        K.ASSIGNED,
        K.PRODUCE,
        K.POLL,
        K.COMMIT,
        K.SEEK,
    }
)
"""Frequent events that the table leaves out: the states in later rows include them."""


@dataclass(frozen=True, slots=True)
class Row:
    """One event, and the state of its node after it.

    ``marked``: the event is evidence of a contradiction, or its cause.
    """

    seen: Observation
    text: str
    state: ReplicaState
    marked: bool

    @property
    def who(self) -> str:
        """Node id or client name."""
        if self.seen.client is not None:
            return self.seen.client
        return "?" if self.seen.node is None else str(self.seen.node)


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """One partition's table.

    Args:
        rows: Events in the order of the timeline.
        left_out: Events that the table leaves out.
        states: Last state of each broker that has one.
    """

    partition: str
    rows: tuple[Row, ...]
    left_out: int
    states: dict[int, ReplicaState]
    contradictions: tuple[Contradiction, ...]


def partition_rows(
    timeline: PartitionTimeline, contradictions: Sequence[Contradiction], *, everything: bool = False
) -> PartitionRows:
    """Build the table of one partition.

    Args:
        contradictions: Of all partitions; those of this one are kept.
        everything: Keep frequent events too. Evidence is always kept.
    """
    own = tuple(each for each in contradictions if each.partition == timeline.partition)
    evidence = {id(seen) for each in own for seen in (*each.evidence, *filter(None, (each.cause,)))}
    # A topic without any other event is shown by its frequent ones.
    quiet: Collection[EventKind] = _QUIET
    if all(each.kind in _QUIET for each in timeline.observations):
        quiet = ()
    rows: list[Row] = []
    left_out = 0
    last: dict[int, ReplicaState] = {}
    for seen, states in replay_states(timeline):
        last = states
        marked = id(seen) in evidence
        if seen.kind in quiet and not marked and not everything:
            left_out += 1
            continue
        state = states.get(seen.node, ReplicaState()) if seen.node is not None else ReplicaState()
        if state == ReplicaState() or seen.kind in _CONTROLLERS:
            state = _reported(seen)
        rows.append(Row(seen, describe(seen), state, marked))
    return PartitionRows(timeline.partition, tuple(rows), left_out, dict(sorted(last.items())), own)


_CONTROLLERS = frozenset({K.PARTITION_CREATED, K.PARTITION_CHANGED, K.UNCLEAN_ELECTION, K.CONTROLLER_CHANGED, K.VOTE})


def _reported(seen: Observation) -> ReplicaState:
    """What the event itself names."""
    return ReplicaState(seen.leader_epoch, seen.leader, seen.isr, seen.log_start, seen.high_watermark, seen.log_end)
