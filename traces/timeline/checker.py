"""The interface of a check over one partition's timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .contradiction import Contradiction
from .partition_timeline import PartitionTimeline


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one checker did on one partition.

    ``comparisons`` counts the pairs of observations that the checker compared. A checker that compared nothing did not
    judge the partition: it neither holds nor fails.
    """

    comparisons: int
    contradictions: tuple[Contradiction, ...] = ()


class Checker(Protocol):
    """Find contradictions in one partition's timeline, without any search.

    A checker is sound: missing lines, a repeated file or a clock that is wrong never make it report a violation.
    """

    @property
    def name(self) -> str:
        """Identifier in snake_case: ``truncation_below_high_watermark``."""
        ...

    @property
    def title(self) -> str:
        """One line for people: ``No broker truncates below its high watermark``."""
        ...

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Compare the observations of one partition."""
        ...
