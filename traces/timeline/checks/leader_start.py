"""No leader starts below a high watermark of an earlier epoch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby

from ..checker import CheckResult
from ..contradiction import Contradiction
from ..elections import UncleanElection, unclean_elections
from ..epoch_bounds import EpochBounds, epoch_bounds, is_before_epoch
from ..event_kind import EventKind
from ..incarnations import Incarnations
from ..observation import METADATA_LOG, Observation
from ..partition_timeline import PartitionTimeline
from .truncation import because, cause_of, records

K = EventKind
Report = tuple[int, int, Observation, EpochBounds]
"""Node, place among the node's lines, a line with a high watermark, and the bounds of its epoch."""


class LeaderStartChecker:
    """Compare each leader's log end at its start with all high watermarks of earlier leader epochs.

    A leader must have every committed record. Brokers are compared by leader epochs; see ``epoch_bounds``.
    """

    name = "leader_starts_below_high_watermark"
    title = "every leader starts at or above all earlier high watermarks"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Compare each start of a leader with each earlier high watermark."""
        incarnations = Incarnations.of(timeline)
        elections = unclean_elections(timeline, incarnations)
        reports: list[Report] = []
        starts: list[tuple[int, Observation]] = []
        for node in timeline.nodes:
            own = timeline.of_process(node)
            for index, (seen, bounds) in enumerate(zip(own, epoch_bounds(own), strict=True)):
                if seen.high_watermark is not None and seen.kind is not K.TRUNCATED:
                    reports.append((node, index, seen, bounds))
                if is_leader_start(seen):
                    starts.append((index, seen))
        times = sorted({start.time for _, start in starts if start.time is not None})
        reports = list(_decisive(reports, incarnations, times))
        comparisons = 0
        found: list[Contradiction] = []
        lost_in: dict[object, int] = {}
        for index, start in sorted(starts, key=lambda each: (each[1].leader_epoch or 0, each[1].where)):
            assert start.leader_epoch is not None and start.log_end is not None
            # Later leaders lack what an earlier one has lost already.
            since = lost_in.get(incarnations[start])
            earlier = [
                (seen, bounds)
                for node, place, seen, bounds in reports
                if incarnations[seen] == incarnations[start]
                and seen is not start
                and (since is None or (bounds.lower is not None and bounds.lower >= since))
                and _is_earlier(node, place, seen, bounds, index, start)
            ]
            comparisons += len(earlier)
            worst = max(earlier, key=lambda each: (each[0].high_watermark or 0, each[0].where), default=None)
            if worst is not None and (worst[0].high_watermark or 0) > start.log_end:
                found.append(_contradiction(timeline.partition, start, *worst, elections))
                lost_in[incarnations[start]] = start.leader_epoch
        return CheckResult(comparisons, tuple(found))


def _decisive(reports: Sequence[Report], incarnations: Incarnations, times: Sequence[int]) -> Iterator[Report]:
    """The reports that can decide a comparison: of many in one epoch the highest, before each start of a leader.

    Args:
        reports: Of all nodes, each node's in its order.
        times: Times of all starts, ascending.
    """

    def key(report: Report) -> object:
        node, _, seen, bounds = report
        closed = bounds.upper is not None and bounds.lower == bounds.upper
        # If no later line bounds the epoch, times count: compare the highest before each start.
        slot = -1 if closed or seen.time is None else bisect_left(times, seen.time)
        return node, incarnations[seen], bounds, slot, seen.time is None

    for _, members in groupby(reports, key=key):
        yield max(members, key=lambda each: (each[2].high_watermark or 0, -each[1]))


def is_leader_start(seen: Observation) -> bool:
    """Whether a broker or quorum node starts a leader epoch, and reports where its log ends."""
    leads = seen.kind is K.LEADER_STARTED or (seen.kind is K.QUORUM_ROLE and seen.role == "Leader")
    return leads and seen.leader_epoch is not None and seen.log_end is not None and seen.node is not None


def _is_earlier(node: int, place: int, seen: Observation, bounds: EpochBounds, index: int, start: Observation) -> bool:
    assert start.leader_epoch is not None
    if node == start.node:
        ordered = seen.file == start.file or (
            seen.time is not None and start.time is not None and seen.time < start.time
        )
        return place < index and ordered
    return is_before_epoch(seen, bounds, start.leader_epoch, start)


def _contradiction(
    partition: str, start: Observation, seen: Observation, bounds: EpochBounds, elections: list[UncleanElection]
) -> Contradiction:
    assert start.log_end is not None and seen.high_watermark is not None
    lost = (start.log_end, seen.high_watermark - 1)
    cause = cause_of(elections, bounds.lower, start.leader_epoch)
    who = "node" if partition == METADATA_LOG else "broker"
    reporter = "it" if seen.node == start.node else f"{who} {seen.node}"
    return Contradiction(
        check=LeaderStartChecker.name,
        partition=partition,
        message=(
            f"{who} {start.node} starts as leader of {partition} in epoch {start.leader_epoch} at offset"
            f" {start.log_end}, below the high watermark {seen.high_watermark} that {reporter} reported before"
            f" ({seen.where}): the committed {records(lost, 'lost')}{because(cause)}"
        ),
        evidence=(seen, start),
        cause=None if cause is None else cause.source,
        lost=lost,
    )
