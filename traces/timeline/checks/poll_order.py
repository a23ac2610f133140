"""A consumer reads forward."""

from __future__ import annotations

from ..checker import CheckResult
from ..client_view import MAX_FOUND, ClientView
from ..contradiction import Contradiction
from ..partition_timeline import PartitionTimeline


class PollOrderChecker:
    """Compare each read with the one before it in the same assignment."""

    name = "poll_goes_backward"
    title = "no consumer reads backward without a seek or another assignment"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Compare neighbours of each run of polls."""
        view = ClientView(timeline)
        found: list[Contradiction] = []
        comparisons = 0
        for run in view.runs:
            for before, after in zip(run.polls[:-1], run.polls[1:], strict=True):
                comparisons += 1
                assert before.offset is not None and after.offset is not None
                if before.offset < after.offset:
                    continue
                message = (
                    f"{after.process} reads offset {after.offset} of {timeline.partition} ({after.where}) after offset"
                    f" {before.offset} ({before.where}), without a seek or another assignment"
                )
                found.append(view.contradiction(self.name, message, (before, after)))
        return CheckResult(comparisons, tuple(found[:MAX_FOUND]))
