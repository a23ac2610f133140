"""No consumer reads a record whose send failed."""

from __future__ import annotations

from ..checker import CheckResult
from ..client_view import MAX_FOUND, ClientView, named
from ..contradiction import Contradiction
from ..partition_timeline import PartitionTimeline


class FailedSendChecker:
    """Compare each value that was read with the outcomes of its sends: one that did not fail explains it."""

    name = "read_of_failed_send"
    title = "no consumer reads a record whose send failed"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Compare each read with the sends of its value."""
        view = ClientView(timeline)
        found: list[Contradiction] = []
        comparisons = 0
        reported: set[str] = set()
        for read in view.polls:
            sends = view.sends_of.get(read.value or "", ()) if read.value is not None else ()
            if not sends:
                continue
            comparisons += 1
            if read.value in reported or any(each.outcome != "failed" for each in sends):
                continue
            reported.add(read.value or "")
            message = (
                f"{read.process} reads {named(read.value)} at offset {read.offset} of {timeline.partition}"
                f" ({read.where}), but its send by {sends[0].process} failed ({sends[0].where})"
            )
            found.append(view.contradiction(self.name, message, (sends[0], read)))
        return CheckResult(comparisons, tuple(found[:MAX_FOUND]))
