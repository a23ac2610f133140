"""A consumer reads every acknowledged record that it passes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from ..checker import CheckResult
from ..client_view import MAX_FOUND, ClientView, acks_assumption, keeps, named
from ..contradiction import Contradiction
from ..observation import Observation
from ..partition_timeline import PartitionTimeline


class SkippedRecordChecker:
    """Find records between two reads of one consumer that it did not read.

    Offsets alone decide nothing: compaction and transactions leave holes. A record counts if it was acknowledged, or if
    another consumer read it; the second case needs consumers of the same isolation level. Nothing is compared below
    the log start, in compacted topics, or across a change of the assignment or position.
    """

    name = "acknowledged_record_skipped"
    title = "no consumer skips an acknowledged record"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Compare the gaps of each run of polls with what others wrote and read."""
        view = ClientView(timeline)
        acks = _by_offset([each for each in view.acks if keeps(each) and not each.compacted])
        reads = _by_offset([each for each in view.polls if not each.compacted])
        offsets, read_offsets = sorted(acks), sorted(reads)
        found: list[Contradiction] = []
        reported: set[int] = set()
        comparisons = 0
        for run in view.runs:
            first = run.polls[0]
            pairs: list[tuple[Observation | None, Observation]] = []
            if run.start is not None:
                pairs.append((None, first))
            pairs += list(zip(run.polls[:-1], run.polls[1:], strict=True))
            own = {each.offset for each in run.polls}
            for before, after in pairs:
                assert after.offset is not None
                low = view.log_start if before is None else max(int(before.offset or 0) + 1, view.log_start)
                if after.offset < low or after.compacted:
                    continue
                inside = offsets[bisect_left(offsets, low) : bisect_right(offsets, after.offset)]
                comparisons += len(inside)
                missing = [each for each in inside if each not in own and each not in reported]
                others = read_offsets[bisect_left(read_offsets, low) : bisect_left(read_offsets, after.offset)]
                seen = [each for each in others if each not in own and each not in acks and each not in reported]
                comparisons += len(seen)
                if missing:
                    reported.update(missing)
                    found.append(self._lost(view, run.start if before is None else before, after, acks, missing))
                if seen:
                    reported.update(seen)
                    found.append(self._unread(view, run.start if before is None else before, after, reads[seen[0]]))
        return CheckResult(comparisons, tuple(found[:MAX_FOUND]))

    def _lost(
        self,
        view: ClientView,
        before: Observation | None,
        after: Observation,
        acks: dict[int, Observation],
        missing: list[int],
    ) -> Contradiction:
        ack = acks[missing[0]]
        more = f" and {len(missing) - 1} more up to offset {missing[-1]}" if len(missing) > 1 else ""
        message = (
            f"{after.process} reads offset {after.offset} of {view.timeline.partition} ({after.where}) and has skipped"
            f" {named(ack.value)}, acknowledged at offset {ack.offset} ({ack.where}){more}"
        )
        evidence = [ack, *([] if before is None else [before]), after]
        unless = acks_assumption([acks[each] for each in missing])
        return view.contradiction(self.name, message, evidence, unless=unless, lost=(missing[0], missing[-1]))

    def _unread(
        self, view: ClientView, before: Observation | None, after: Observation, read: Observation
    ) -> Contradiction:
        sends = view.sends_of.get(read.value or "", ())
        certain = any(each.outcome == "ok" for each in sends)
        message = (
            f"{after.process} reads offset {after.offset} of {view.timeline.partition} ({after.where}) and has skipped"
            f" {named(read.value)}, which {read.process} read at offset {read.offset} ({read.where})"
        )
        evidence = [read, *([] if before is None else [before]), after]
        unless = () if certain else ("both consumers have the same isolation level",)
        return view.contradiction(self.name, message, evidence, unless=unless)


def _by_offset(seen: list[Observation]) -> dict[int, Observation]:
    found: dict[int, Observation] = {}
    for each in seen:
        if each.offset is not None:
            found.setdefault(each.offset, each)
    return found
