"""The log of the current leader has every record that clients were promised."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ..checker import CheckResult
from ..client_view import MAX_FOUND, ClientView, acks_assumption, keeps, named
from ..contradiction import Contradiction
from ..event_kind import EventKind
from ..observation import Observation
from ..partition_timeline import PartitionTimeline

K = EventKind
_LEADERS = frozenset({K.LEADER_STARTED, K.PARTITION_CREATED, K.PARTITION_CHANGED, K.UNCLEAN_ELECTION})


@dataclass(frozen=True)
class _Log:
    """One replica's log: its content, its batches in order and its records by offset."""

    content: Observation
    batches: tuple[Observation, ...]
    records: dict[int, Observation]

    def batch_of(self, offset: int) -> Observation | None:
        """The batch that covers an offset."""
        at = bisect_right(self.batches, offset, key=lambda each: each.offset or 0) - 1
        if at < 0 or (self.batches[at].log_end or 0) <= offset:
            return None
        return self.batches[at]


class DumpedLogChecker:
    """Compare acknowledgements and reads with a dump, or a copy, of the current leader's log.

    The current leader is the one that logs and metadata name last. Without them it is the replica that alone has the
    largest leader epoch. Logs of other replicas may lack or differ in records, so nothing is compared with them.
    """

    name = "acknowledged_record_missing_in_log"
    title = "the current leader's log has all acknowledged and read records"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Compare each acknowledged or read record with the leader's log."""
        view = ClientView(timeline)
        promised = [each for each in view.acks if keeps(each)] + view.polls
        log = _leader_log(timeline) if promised else None
        if log is None:
            return CheckResult(0)
        start, end = log.content.log_start or 0, log.content.log_end or 0
        lost: list[Observation] = []
        holes: list[Observation] = []
        differing: list[tuple[Observation, Observation]] = []
        agreeing = compared = 0
        for each in promised:
            assert each.offset is not None
            if each.offset < max(start, view.log_start):
                continue
            compared += 1
            if each.offset >= end:
                lost.append(each)
            elif log.batch_of(each.offset) is None:
                holes.append(each)
            elif (record := log.records.get(each.offset)) is not None and each.value is not None:
                if record.value == each.value:
                    agreeing += 1
                else:
                    differing.append((each, record))
        found: list[Contradiction] = []
        if lost:
            found.append(self._lost(view, log, lost))
        holes = [each for each in holes if not each.compacted]
        if holes:
            found.append(self._hole(view, log, holes))
        found += [self._differs(view, log, claim, record, agreeing) for claim, record in differing]
        return CheckResult(compared, tuple(found[:MAX_FOUND]))

    def _lost(self, view: ClientView, log: _Log, lost: Sequence[Observation]) -> Contradiction:
        first = min(lost, key=lambda each: (each.offset or 0, each.where))
        offsets = sorted({each.offset or 0 for each in lost})
        content = log.content
        message = (
            f"{_log_name(log)} ends at offset {content.log_end} ({content.where}), and {_promise(first)}, is lost"
            + (f", with {len(offsets) - 1} more up to offset {offsets[-1]}" if len(offsets) > 1 else "")
        )
        unless = acks_assumption([each for each in lost if each.kind is K.PRODUCE])
        if not any(_is_later(content, each) for each in lost):
            unless = (*unless, "the log was copied with its last segment after the record was acknowledged")
        return view.contradiction(self.name, message, (first, content), unless=unless, lost=(offsets[0], offsets[-1]))

    def _hole(self, view: ClientView, log: _Log, holes: Sequence[Observation]) -> Contradiction:
        first = min(holes, key=lambda each: (each.offset or 0, each.where))
        message = (
            f"{_log_name(log)} has no record at offset {first.offset} ({log.content.where}), where {_promise(first)}"
        )
        unless = ("the topic is not compacted",)
        return view.contradiction(self.name, message, (first, log.content), unless=unless)

    def _differs(
        self, view: ClientView, log: _Log, claim: Observation, record: Observation, agreeing: int
    ) -> Contradiction:
        message = (
            f"{_log_name(log)} holds {named(record.value)} at offset {record.offset} ({record.where}), where"
            f" {_promise(claim)}"
        )
        unless = acks_assumption([claim] if claim.kind is K.PRODUCE else [])
        if not agreeing:
            unless = (*unless, "the dump prints values as the clients wrote them")
        return view.contradiction(self.name, message, (claim, record), unless=unless)


def _promise(seen: Observation) -> str:
    verb = "read" if seen.kind is K.POLL else "acknowledged"
    return f"{named(seen.value)}, {verb} at offset {seen.offset} ({seen.where})"


def _log_name(log: _Log) -> str:
    node = log.content.node
    return "the log of the current leader" + ("" if node is None else f", broker {node},")


def _is_later(content: Observation, claim: Observation) -> bool:
    """Whether the log was copied after the record was acknowledged or read.

    Only leader epochs show that. The times of records are their producers' (CreateTime), which may be of any day.
    """
    if claim.leader_epoch is None or content.leader_epoch is None:
        return False
    return content.leader_epoch > claim.leader_epoch


def _leader_log(timeline: PartitionTimeline) -> _Log | None:
    contents = [each for each in timeline.observations if each.kind is K.LOG_CONTENT]
    if not contents:
        return None
    named_ = [each for each in timeline.observations if each.kind in _LEADERS and each.leader_epoch is not None]
    named_ = [each for each in named_ if each.leader is not None and each.leader >= 0]
    chosen: list[Observation]
    if named_:
        last = max(named_, key=lambda each: each.leader_epoch or 0)
        # A log with records of a later epoch shows that what names the leader is older.
        if any((each.leader_epoch or -1) > (last.leader_epoch or 0) for each in contents):
            return None
        chosen = [each for each in contents if each.node is not None and each.node == last.leader]
    else:
        newest = max(each.leader_epoch if each.leader_epoch is not None else -1 for each in contents)
        chosen = [each for each in contents if each.leader_epoch == newest] if len(contents) > 1 else []
    if len(chosen) != 1:
        return None
    content = chosen[0]
    own = [each for each in timeline.observations if each.file == content.file and each.node == content.node]
    batches = sorted((each for each in own if each.kind is K.BATCH), key=lambda each: each.offset or 0)
    records = {each.offset: each for each in own if each.kind is K.RECORD and each.offset is not None}
    return _Log(content, tuple(batches), records)
