"""No leader starts below a high watermark of an earlier epoch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby

from ..checker import CheckResult
from ..clocks import Clocks, Order, is_before_on_node
from ..contradiction import Contradiction
from ..elections import UncleanElection, unclean_elections
from ..epoch_bounds import EpochBounds, epoch_bounds, order_before_epoch
from ..event_kind import EventKind
from ..incarnations import Incarnations
from ..observation import METADATA_LOG, Observation
from ..partition_timeline import PartitionTimeline
from .leaders import LeaderChecker
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
        clocks = Clocks.of(timeline)
        # Two leaders of one epoch show that the lines may be about two topics of one name.
        same_topic = not any(each.verdict == "unknown" for each in LeaderChecker().check(timeline).contradictions)
        times = sorted({start.time for _, start in starts if start.time is not None})
        reports = list(_decisive(reports, incarnations, times))
        comparisons = 0
        found: list[Contradiction] = []
        lost_in: dict[object, int] = {}
        for index, start in sorted(starts, key=lambda each: (each[1].leader_epoch or 0, each[1].where)):
            assert start.leader_epoch is not None and start.log_end is not None
            # Later leaders lack what an earlier one has lost already.
            since = lost_in.get(incarnations[start])
            earlier: dict[Order, list[tuple[Observation, EpochBounds]]] = {each: [] for each in Order}
            for each in reports:
                *_, seen, bounds = each
                if incarnations[seen] != incarnations[start] or seen is start:
                    continue
                if since is None or (bounds.lower is not None and bounds.lower >= since):
                    earlier[_order(each, index, start, clocks)].append((seen, bounds))
            certain = earlier[Order.EPOCHS] + earlier[Order.CLOCKS]
            comparisons += len(certain)
            for proven, members in ((same_topic, certain), (False, earlier[Order.ASSUMED])):
                worst = max(members, key=lambda each: (each[0].high_watermark or 0, each[0].where), default=None)
                if worst is not None and (worst[0].high_watermark or 0) > start.log_end:
                    unless = None if proven else _SAME_TOPIC if members is certain else _AGREE
                    found.append(_contradiction(timeline.partition, start, *worst, elections, unless))
                    lost_in[incarnations[start]] = start.leader_epoch
                    break
        return CheckResult(comparisons, tuple(found))


_SAME_TOPIC = "the topic was not deleted and created again in between"
_AGREE = "the nodes' clocks and time zones agree (--time-zone names the zones)"


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


def _order(report: Report, index: int, start: Observation, clocks: Clocks) -> Order:
    """Evidence that a report comes before a leader's start."""
    assert start.leader_epoch is not None
    node, place, seen, bounds = report
    if node == start.node:
        return Order.EPOCHS if place < index and is_before_on_node(seen, start) else Order.UNKNOWN
    return order_before_epoch(seen, bounds, start.leader_epoch, start, clocks)


def _contradiction(
    partition: str,
    start: Observation,
    seen: Observation,
    bounds: EpochBounds,
    elections: list[UncleanElection],
    unless: str | None,
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
            + ("" if unless is None else f"; this holds if {unless}")
        ),
        verdict="violated" if unless is None else "unknown",
        evidence=(seen, start),
        cause=None if cause is None else cause.source,
        lost=lost,
    )
