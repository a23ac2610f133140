"""An offset holds one value."""

from __future__ import annotations

from collections import defaultdict

from ..checker import CheckResult
from ..client_view import MAX_FOUND, ClientView, acks_assumption, keeps, named
from ..contradiction import Contradiction
from ..event_kind import EventKind
from ..observation import Observation
from ..partition_timeline import PartitionTimeline

K = EventKind


class OffsetValueChecker:
    """Compare all values that acknowledgements and reads report for one offset, and those that dumps report.

    Two dumps are compared within one leader epoch: before a truncation, replicas differ in uncommitted records.
    ``DumpedLogChecker`` compares clients with dumps.
    """

    name = "two_values_at_one_offset"
    title = "every offset holds one value"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Compare the values of each offset."""
        view = ClientView(timeline)
        found: list[Contradiction] = []
        comparisons = 0
        claims: dict[int, list[Observation]] = defaultdict(list)
        for each in [*view.acks, *view.polls]:
            if each.value is not None and each.offset is not None and (each.kind is K.POLL or keeps(each)):
                claims[each.offset].append(each)
        for offset in sorted(claims):
            first, *others = claims[offset]
            comparisons += len(others)
            other = next((each for each in others if each.value != first.value), None)
            if other is None:
                continue
            acks = [each for each in (first, other) if each.kind is K.PRODUCE]
            verbs = " and ".join(f"{_said(each)} ({each.where})" for each in (first, other))
            message = f"offset {offset} of {timeline.partition} holds two values: {verbs}"
            found.append(view.contradiction(self.name, message, (first, other), unless=acks_assumption(acks)))
        more, compared = self._dumps(view)
        return CheckResult(comparisons + compared, (*found, *more)[:MAX_FOUND])

    def _dumps(self, view: ClientView) -> tuple[list[Contradiction], int]:
        found: list[Contradiction] = []
        compared = 0
        kept: dict[tuple[int | None, int], Observation] = {}
        for each in view.timeline.observations:
            if each.kind is not K.RECORD or each.value is None or each.leader_epoch is None:
                continue
            first = kept.setdefault((each.offset, each.leader_epoch), each)
            if first is each:
                continue
            compared += 1
            if first.value != each.value:
                message = (
                    f"offset {each.offset} of {view.timeline.partition} in leader epoch {each.leader_epoch} holds two"
                    f" values: {named(first.value)} ({first.where}) and {named(each.value)} ({each.where})"
                )
                found.append(view.contradiction(self.name, message, (first, each)))
        return found, compared


def _said(seen: Observation) -> str:
    verb = "read" if seen.kind is K.POLL else "acknowledged"
    return f"{named(seen.value)} {verb} by {seen.process}"
