"""A producer's later record is behind its earlier one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ..checker import CheckResult
from ..client_view import MAX_FOUND, ClientView, acks_assumption, keeps, named
from ..contradiction import Contradiction
from ..observation import Observation
from ..partition_timeline import PartitionTimeline


class SendOrderChecker:
    """Compare each acknowledged record with those of the same producer that were acknowledged before it was sent."""

    name = "acknowledgements_out_of_order"
    title = "every record is behind those that its producer had acknowledged before"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Compare the acknowledgements of each producer."""
        view = ClientView(timeline)
        by_client: dict[str, list[Observation]] = defaultdict(list)
        for each in view.acks:
            if keeps(each):
                by_client[each.client or ""].append(each)
        found: list[Contradiction] = []
        comparisons = 0
        for client in sorted(by_client):
            for before, after in _ordered(by_client[client]):
                comparisons += 1
                assert before.offset is not None and after.offset is not None
                if before.offset < after.offset:
                    continue
                message = (
                    f"{after.process} sent {named(after.value)} of {timeline.partition} after {named(before.value)} was"
                    f" acknowledged at offset {before.offset} ({before.where}), and it is acknowledged at offset"
                    f" {after.offset} ({after.where})"
                )
                unless = acks_assumption([before, after])
                found.append(view.contradiction(self.name, message, (before, after), unless=unless))
        return CheckResult(comparisons, tuple(found[:MAX_FOUND]))


def _ordered(acks: Sequence[Observation]) -> Iterator[tuple[Observation, Observation]]:
    """Each record with the one at the largest offset that was acknowledged before it was sent."""
    by_request = [(each.started, each.sequence, each) for each in acks if each.started is not None]
    by_time = [
        (each.began, each.time, each)
        for each in acks
        if each.started is None and each.began is not None and each.time is not None
    ]
    for timed in (by_request, by_time):
        done = sorted(timed, key=lambda each: each[1] or 0)
        at = 0
        last: Observation | None = None
        for start, _, each in sorted(timed, key=lambda one: one[0] or 0):
            while at < len(done) and (done[at][1] or 0) < (start or 0):
                ack = done[at][2]
                if last is None or (ack.offset or 0) > (last.offset or 0):
                    last = ack
                at += 1
            if last is not None:
                yield last, each
