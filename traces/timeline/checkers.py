"""All checks over a timeline, and their result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from .checker import Checker
from .checks.acknowledged import AcknowledgedChecker
from .checks.dumped_logs import DumpedLogChecker
from .checks.duplicates import DuplicateChecker
from .checks.failed_sends import FailedSendChecker
from .checks.leader_end import LeaderEndChecker
from .checks.leader_start import LeaderStartChecker
from .checks.leaders import LeaderChecker
from .checks.offset_values import OffsetValueChecker
from .checks.poll_order import PollOrderChecker
from .checks.send_order import SendOrderChecker
from .checks.skipped_records import SkippedRecordChecker
from .checks.truncation import TruncationChecker
from .checks.unclean import UncleanElectionChecker
from .checks.votes import VoteChecker
from .contradiction import Contradiction
from .timeline import Timeline

CHECKERS: Final[tuple[Checker, ...]] = (
    TruncationChecker(),
    LeaderStartChecker(),
    LeaderEndChecker(),
    LeaderChecker(),
    VoteChecker(),
    AcknowledgedChecker(),
    DumpedLogChecker(),
    OffsetValueChecker(),
    DuplicateChecker(),
    SkippedRecordChecker(),
    PollOrderChecker(),
    FailedSendChecker(),
    SendOrderChecker(),
    UncleanElectionChecker(),
)


@dataclass(frozen=True, slots=True)
class TimelineReport:
    """What the checks found, and how much they compared.

    Args:
        contradictions: Violations first, in the order of partitions and checks.
        comparisons: By name of the check, over all partitions.
    """

    contradictions: tuple[Contradiction, ...]
    comparisons: dict[str, int]

    @property
    def verdict(self) -> Literal["holds", "violated", "unknown"]:
        """``unknown`` if a contradiction is not proven, and if no check compared anything."""
        verdicts = {each.verdict for each in self.contradictions}
        if "violated" in verdicts:
            return "violated"
        return "unknown" if verdicts or not any(self.comparisons.values()) else "holds"


def check_timeline(timeline: Timeline, checkers: Sequence[Checker] = CHECKERS) -> TimelineReport:
    """Run all checks on all partitions."""
    found: list[Contradiction] = []
    comparisons = {checker.name: 0 for checker in checkers}
    for partition in timeline.partitions:
        for checker in checkers:
            result = checker.check(partition)
            comparisons[checker.name] += result.comparisons
            found += result.contradictions
    found = _each_fact_once(found)
    found.sort(key=lambda each: each.verdict != "violated")
    return TimelineReport(tuple(found), comparisons)


def _each_fact_once(found: Sequence[Contradiction]) -> list[Contradiction]:
    """Join contradictions about one loss: a follower truncates what a leader lacks, and an election explains it."""
    kept: list[Contradiction] = []
    causes = {each.cause for each in found if each.verdict == "violated" and each.cause is not None}
    losses = [each for each in found if each.check == LeaderStartChecker.name and each.verdict == "violated"]
    doubtful = [each for each in found if each.check == LeaderStartChecker.name and each.verdict != "violated"]
    for each in found:
        if each.check == UncleanElectionChecker.name and each.cause in causes:
            continue
        if each.check == TruncationChecker.name and any(_is_same_loss(each, loss) for loss in losses):
            continue
        if each in doubtful and any(_is_same_loss(other, each) for other in found):
            # The truncation proves it.
            continue
        if each in losses and any(_is_part_of(each, other) for other in found):
            continue
        if each in losses:
            seen = next((other for other in found if _is_same_loss(other, each)), None)
            if seen is not None:
                last = seen.evidence[-1]
                more = f"; broker {last.node} truncates to offset {last.offset} ({last.where})"
                kept.append(replace(each, message=each.message + more, evidence=(*each.evidence, last)))
                continue
        kept.append(each)
    return kept


def _is_part_of(loss: Contradiction, truncation: Contradiction) -> bool:
    """Whether a leader lacks what a truncation removed before, by the same report of a high watermark."""
    if truncation.check != TruncationChecker.name or loss.lost is None or truncation.lost is None:
        return False
    first, last = truncation.lost
    within = first <= loss.lost[0] and loss.lost[1] <= last and truncation.lost != loss.lost
    one, other = loss.evidence[0], truncation.evidence[0]
    same_report = (one.node, one.high_watermark) == (other.node, other.high_watermark)
    return within and loss.partition == truncation.partition and same_report


def _is_same_loss(truncation: Contradiction, loss: Contradiction) -> bool:
    if truncation.check != TruncationChecker.name or truncation.partition != loss.partition:
        return False
    if truncation.lost is None or loss.lost is None:
        return False
    return loss.lost[0] <= truncation.lost[0] and truncation.lost[1] <= loss.lost[1]
