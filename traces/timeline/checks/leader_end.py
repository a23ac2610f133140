"""No follower meets a leader whose log ends below the follower's high watermark."""

from __future__ import annotations

from ..checker import CheckResult
from ..contradiction import Contradiction
from ..elections import UncleanElection, unclean_elections
from ..event_kind import EventKind
from ..incarnations import Incarnations
from ..observation import Observation
from ..partition_timeline import PartitionTimeline
from ..watermark_memory import WatermarkMemory
from .truncation import because, cause_of, records, watermark_before

K = EventKind


class LeaderEndChecker:
    """Compare the log end of a leader, as a follower reports it, with the follower's own high watermark.

    Before 2.0 a follower stops if its leader's log ends before its own. Without a high watermark above the leader's log
    end the loss is unknown.
    """

    name = "leader_ends_below_high_watermark"
    title = "no follower meets a leader whose log ends below the follower's high watermark"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Walk through each broker's lines in their order."""
        incarnations = Incarnations.of(timeline)
        elections = unclean_elections(timeline, incarnations)
        comparisons = 0
        found: list[Contradiction] = []
        for node in timeline.nodes:
            memory = WatermarkMemory()
            incarnation = None
            for seen in timeline.of_process(node):
                if seen.partition and incarnations[seen] != incarnation:
                    memory, incarnation = WatermarkMemory(), incarnations[seen]
                ends = seen.kind in (K.TRUNCATION_REFUSED, K.FETCH_RESET) and seen.offset is not None
                if ends and seen.log_end is not None:
                    comparisons += 1
                    known = watermark_before(seen, memory)
                    contradiction = _leader_end(timeline.partition, seen, known, elections)
                    if contradiction is not None:
                        found.append(contradiction)
                memory.observe(seen)
        return CheckResult(comparisons, tuple(found))


def _leader_end(
    partition: str, seen: Observation, known: Observation | None, elections: list[UncleanElection]
) -> Contradiction | None:
    assert seen.offset is not None and seen.log_end is not None
    leader = (
        f"the leader of {partition}" if seen.leader is None else f"broker {seen.leader}, the leader of {partition},"
    )
    what = "broker" if seen.node is None else f"broker {seen.node}"
    cause = cause_of(elections, None, None)
    if known is not None and (known.high_watermark or 0) > seen.offset:
        lost = (seen.offset, (known.high_watermark or 0) - 1)
        return Contradiction(
            check=LeaderEndChecker.name,
            partition=partition,
            message=(
                f"{leader} has a log up to offset {seen.offset}, below the high watermark {known.high_watermark}"
                f" of {what} ({known.where}): it lacks the committed {records(lost)}{because(cause)}"
            ),
            evidence=(known, seen),
            cause=None if cause is None else cause.source,
            lost=lost,
        )
    if seen.kind is not K.TRUNCATION_REFUSED or seen.log_end <= seen.offset:
        return None
    return Contradiction(
        check=LeaderEndChecker.name,
        partition=partition,
        verdict="unknown",
        message=(
            f"{what} stops because its log of {partition} ends at {seen.log_end} and its leader's at {seen.offset};"
            f" no line shows whether {records((seen.offset, seen.log_end - 1))} had been committed"
        ),
        evidence=(seen,),
    )
