"""No later leader starts below an acknowledged record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..checker import CheckResult
from ..contradiction import Contradiction
from ..elections import unclean_elections
from ..event_kind import EventKind
from ..incarnations import Incarnations
from ..observation import Observation
from ..partition_timeline import PartitionTimeline
from .leader_start import is_leader_start
from .truncation import because, cause_of

K = EventKind
SKEW: Final = 1000
"""Milliseconds by which the clocks of a client and of a broker may differ."""
_FIRST: Final = 64
_NO_TIME: Final = -(1 << 62)
_LARGEST_SKEW: Final = 5000
_QUARTER: Final = 15 * 60 * 1000
_ZONES: Final = tuple(_QUARTER * quarter for quarter in range(-14 * 4, 12 * 4 + 1))
"""What to add to a client's time to get a broker's time, for every time zone of the broker."""


class AcknowledgedChecker:
    """Compare each acknowledged record with the log ends of later leaders.

    Leader epochs order the two if the acknowledgement names its epoch. Otherwise the times do, if they differ by more
    than ``SKEW``. Logs without a time zone count as UTC; if another zone fits the acknowledgements too and explains
    them without a loss, the result is unknown.
    """

    name = "acknowledged_record_below_later_leader"
    title = "every later leader starts above all acknowledged records"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Compare each acknowledged record with each leader's start."""
        incarnations = Incarnations.of(timeline)
        elections = unclean_elections(timeline, incarnations)
        acks = [each for each in timeline.observations if _is_acknowledged(each)]
        starts = [each for each in timeline.observations if is_leader_start(each)]
        columns = _Columns.of(acks)
        found = []
        comparisons = 0
        certain = not acks or not starts or _zone_is_certain(acks, starts)
        for start in starts:
            assert start.log_end is not None
            later = columns.earlier(start, 0)
            comparisons += int(np.count_nonzero(later))
            lost = [acks[row] for row in np.flatnonzero(later & (columns.offset >= start.log_end))]
            if not lost:
                continue
            first = min(lost, key=lambda each: (each.offset or 0, each.where))
            by_epoch = any(each.leader_epoch is not None for each in lost)
            weak = next((each for each in lost if each.acks is None), None)
            cause = cause_of(elections, None, start.leader_epoch)
            offsets = sorted({each.offset for each in lost if each.offset is not None})
            message = (
                f"broker {start.node} starts as leader of {timeline.partition} in epoch {start.leader_epoch} at offset"
                f" {start.log_end}, and the acknowledged {_offsets(offsets)} ({first.where}) are lost{because(cause)}"
            )
            slow = None if by_epoch else _skew_that_explains(acks, starts, start, lost)
            again = _may_be_new_topic(timeline, start, by_epoch=by_epoch)
            proven = (certain or by_epoch) and weak is None and slow is None and not again
            if not certain and not by_epoch:
                message += "; this holds if the brokers' logs, which name no time zone, are in UTC"
            elif again:
                message += "; this holds if the topic was not deleted and created again in between"
            elif slow is not None:
                message += f"; this holds if the clocks of client and broker differ by less than {slow / 1000:.1f} s"
            elif weak is not None:
                message += "; this holds if the producer used acks=all, which the history does not say"
            found.append(
                Contradiction(
                    check=self.name,
                    partition=timeline.partition,
                    verdict="violated" if proven else "unknown",
                    message=message,
                    evidence=(first, start),
                    cause=None if cause is None else cause.source,
                    lost=(offsets[0], offsets[-1]),
                )
            )
        return CheckResult(comparisons, tuple(found))


def _is_acknowledged(seen: Observation) -> bool:
    produced = seen.kind is K.PRODUCE and seen.outcome == "ok" and seen.offset is not None
    return produced and seen.client is not None and seen.acks in (None, -1)


@dataclass(frozen=True)
class _Columns:
    """Acknowledgements as columns; -1 for an unknown epoch, and ``_NO_TIME`` for an unknown time."""

    offset: NDArray[np.int64]
    epoch: NDArray[np.int64]
    time: NDArray[np.int64]

    @classmethod
    def of(cls, acks: Sequence[Observation]) -> _Columns:
        return cls(
            np.array([each.offset for each in acks], np.int64),
            np.array([-1 if each.leader_epoch is None else each.leader_epoch for each in acks], np.int64),
            np.array([_NO_TIME if each.time is None else each.time for each in acks], np.int64),
        )

    def earlier(self, start: Observation, shift: int) -> NDArray[np.bool_]:
        """Whether a leader starts after each acknowledgement; ``shift`` is added to the clients' times."""
        by_time = np.zeros(len(self.time), np.bool_)
        if start.time is not None:
            by_time = (self.time != _NO_TIME) & (self.time + shift + SKEW < start.time)
        if start.leader_epoch is None:
            return by_time
        return np.where(self.epoch >= 0, start.leader_epoch > self.epoch, by_time)


def _zone_is_certain(acks: Sequence[Observation], starts: Sequence[Observation]) -> bool:
    """Whether no time zone explains all acknowledgements without a loss, or the logs name theirs."""
    if all(each.zoned or each.leader_epoch is not None for each in acks) and all(each.zoned for each in starts):
        return True
    return not any(shift and _fits(acks, starts, shift) for shift in _ZONES)


def _fits(acks: Sequence[Observation], starts: Sequence[Observation], shift: int) -> bool:
    """Whether each acknowledgement falls in the time of a leader, at or above its start, and none is lost."""
    timed = [each for each in acks if each.time is not None]
    # Most shifts fail at the first acknowledgements.
    return all(_all_fit(_Columns.of(part), starts, shift) for part in (timed[:_FIRST], timed[_FIRST:]) if part)


def _all_fit(columns: _Columns, starts: Sequence[Observation], shift: int) -> bool:
    times = columns.time + shift + SKEW
    led = np.zeros(len(times), np.bool_)
    bound = np.zeros(len(times), np.int64)
    for start in starts:
        assert start.log_end is not None
        if np.any(columns.earlier(start, shift) & (columns.offset >= start.log_end)):
            return False
        if start.time is not None:
            begun = start.time <= times
            led |= begun
            bound[begun] = start.log_end
    return bool(np.all(led & (columns.offset >= bound)))


def _skew_that_explains(
    acks: Sequence[Observation], starts: Sequence[Observation], start: Observation, lost: Sequence[Observation]
) -> int | None:
    """The least skew of the clocks with which no record is lost; ``None`` if it is larger than usual."""
    if start.time is None or any(each.time is None for each in lost):
        return None
    shift = max(start.time - (each.time or 0) for each in lost) - SKEW
    return shift + SKEW if 0 < shift <= _LARGEST_SKEW and _fits(acks, starts, shift) else None


def _may_be_new_topic(timeline: PartitionTimeline, start: Observation, *, by_epoch: bool) -> bool:
    """Whether a leader may be one of another topic of the same name: of its first epoch, or after a deletion."""
    if any(each.kind in (K.LOG_DELETED, K.TOPIC_DELETED) for each in timeline.observations):
        return True
    return start.leader_epoch == 0 and not by_epoch


def _offsets(offsets: Sequence[int]) -> str:
    if len(offsets) == 1:
        return f"record {offsets[0]}"
    if len(offsets) <= 4:
        return "records " + ", ".join(map(str, offsets))
    return f"{len(offsets)} records from {offsets[0]} to {offsets[-1]}"
