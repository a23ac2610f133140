"""Checks of tiered partitions (KIP-405, KIP-1023): remote segments against leader epochs, local logs and each other.

The remote log metadata says which segments there are; whether the store has them is asked where one is named
(``remote_store_checks.py``). A segment counts once it is committed there that it is finished, and only in the lineage
of who reads it: a leader that was deposed in an unclean election may have uploaded what no later one has.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ..text import counted
from .one_time import doubted
from .policies import tiered
from .problems import ProblemLog
from .remote_metadata import REMOTE_TOPIC, RemoteEvent, RemoteSegment, SegmentState, segments_of
from .remote_store_checks import check_store
from .replica_checks import LOG_START_FILE
from .statefiles import present, read_offset_checkpoint, read_text
from .unclean_elections import may_lose_committed
from .verdicts import CheckResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from .broker import BrokerFiles
    from .image import MetadataImage
    from .one_time import Older
    from .partition import PartitionFiles
    from .remote_store import RemoteStore

WELL_FORMED = "remote_segments_well_formed"
LINEAGE = "remote_segments_follow_the_lineage"
NO_GAP = "remote_and_local_leave_no_gap"
BELOW = "remote_below_high_watermark"

Span = tuple[int, int, int]
"""``(leader epoch, first offset, end)``."""


@dataclass(frozen=True)
class _Told:
    """What the remote log metadata says of one partition: by whom, and whether that is all of it."""

    segments: tuple[RemoteSegment, ...]
    uncommitted: frozenset[UUID]
    """Ids of segments of which something is above the high watermark of the metadata."""
    by: tuple[str, ...]
    complete: bool


def check_remote(
    brokers: Sequence[BrokerFiles], image: MetadataImage | None, older: Older, store: RemoteStore | None = None
) -> list[CheckResult]:
    """All checks of tiered partitions; nothing where no topic is tiered and no remote log metadata is here.

    Raises BadInput where the store gives an object that it has listed not back.
    """
    results: list[CheckResult] = []
    events: list[tuple[RemoteEvent, bool]] = []
    by: list[str] = []
    numbers = sorted({number for broker in brokers for number in broker.remote})
    for number in numbers:
        teller = _teller([broker for broker in brokers if number in broker.remote], number, image)
        told = teller.remote[number]
        name = f"{REMOTE_TOPIC}-{number}"
        subject = f"{teller.label}: {name}"
        results += _well_formed(told.events, subject, teller.partitions[REMOTE_TOPIC, number], complete=told.complete)
        marks = [each.partitions[REMOTE_TOPIC, number].high_watermark for each in brokers if number in each.remote]
        bound = max((mark for mark in marks if mark is not None), default=None)
        events += [(event, bound is None or event.offset < bound) for event in told.events]
        by.append(teller.label)
    if image is None:
        return results
    known = image.topics.get(REMOTE_TOPIC)
    complete = bool(numbers) and all(each.remote[n].complete for each in brokers for n in each.remote)
    complete = complete and (known is None or set(known.history) <= set(numbers))
    keys = {(event.topic, event.partition) for event, _ in events}
    keys |= {key for broker in brokers for key in broker.partitions if tiered(image, key[0])}
    for key in sorted(keys):
        topic = image.topics.get(key[0])
        holders = [broker for broker in brokers if key in broker.partitions]
        if topic is None or not holders:
            continue
        mine = [(each, sure) for each, sure in events if (each.topic, each.partition) == key]
        mine = [(each, sure) for each, sure in mine if each.topic_id == topic.topic_id]
        segments = segments_of([each for each, sure in mine if sure])
        late = frozenset(each.id for each, sure in mine if not sure)
        told_of_it = _Told(tuple(segments.values()), late, tuple(by), complete)
        results += _partition(key, holders, image, told_of_it, older)
        if store is not None:
            doubt = "" if complete else _incomplete(told_of_it)
            found = check_store(key, topic.topic_id, told_of_it.segments, late, store, doubt)
            results += [doubted(each, by, older) for each in found]
    return results


def _teller(holders: Sequence[BrokerFiles], number: int, image: MetadataImage | None) -> BrokerFiles:
    """Whose replica of the metadata is gone by: the leader's, else the longest."""
    state = image.partition(REMOTE_TOPIC, number) if image else None
    return max(
        holders,
        key=lambda each: (
            state is not None and each.node_id == state.leader,
            each.partitions[REMOTE_TOPIC, number].log_end,
            -(each.node_id or 0),
        ),
    )


def _well_formed(
    events: Sequence[RemoteEvent], subject: str, files: PartitionFiles, *, complete: bool
) -> list[CheckResult]:
    """A copy begins once, of some offsets in the epochs that they were written in; each update is of such a copy."""
    begun: dict[UUID, RemoteEvent] = {}
    last: dict[UUID, SegmentState] = {}
    results: list[CheckResult] = []
    for event in events:
        wrong = _malformed(event) if event.started else ""
        known = begun.get(event.id)
        if event.started and known is not None and _range(known) != _range(event):
            wrong = (
                f"a copy of offsets {event.start} to {event.end}, which began as one of {known.start} to {known.end}"
            )
        if not event.started and known is None and complete:
            wrong = f"an update to {event.state.name} of a copy that never began"
        where = files.where(event.offset)
        if wrong:
            message = f"{event.topic}-{event.partition}: {wrong}, at offset {event.offset}"
            return [CheckResult(WELL_FORMED, "violated", subject, message, where)]
        deleted = last.get(event.id, SegmentState.COPY_SEGMENT_STARTED) >= SegmentState.DELETE_SEGMENT_STARTED
        if deleted and event.state is SegmentState.COPY_SEGMENT_FINISHED and not results:
            message = (
                f"{event.topic}-{event.partition}: a copy is finished at offset {event.offset}, after its deletion "
            )
            message += "began: whoever reads this leaves it out, and its objects stay in the store"
            results.append(CheckResult(WELL_FORMED, "unknown", subject, message, where, informative=True))
        if event.started:
            begun.setdefault(event.id, event)
        last[event.id] = max(event.state, last.get(event.id, event.state))
    message = f"{counted(len(begun), 'segment')} in {counted(len(events), 'event')}"
    return [*results, CheckResult(WELL_FORMED, "holds" if complete else "unknown", subject, message)]


def _range(event: RemoteEvent) -> tuple[object, ...]:
    return event.start, event.end, event.epochs


def _malformed(event: RemoteEvent) -> str:
    what = f"a copy of offsets {event.start} to {event.end}"
    if not 0 <= event.start <= event.end:
        return what
    if not event.epochs or event.epochs[0].start_offset != event.start or event.epochs[-1].start_offset > event.end:
        told = ", ".join(f"{each.epoch} from {each.start_offset}" for each in event.epochs)
        return f"{what} with leader epochs {told or '(none)'}"
    for before, after in pairwise(event.epochs):
        if after.epoch <= before.epoch or after.start_offset <= before.start_offset:
            return f"{what}, in which epoch {after.epoch} from {after.start_offset} follows epoch {before.epoch}"
    return ""


def _partition(
    key: tuple[str, int], holders: Sequence[BrokerFiles], image: MetadataImage, told: _Told, older: Older
) -> list[CheckResult]:
    state = image.partition(*key)
    unclean = may_lose_committed(image, *key)
    leader = next((each for each in holders if state is not None and each.node_id == state.leader), None)
    results = []
    for broker in holders:
        files = broker.partitions[key]
        if files.topic_id not in (None, image.topics[key[0]].topic_id):
            continue
        labels = [broker.label, *told.by, *([leader.label] if leader else [])]
        subject = f"{broker.label}: {files.name}"
        found = [_follow_lineage(files, subject, told, unclean=unclean)]
        found.append(_no_gap(files, subject, told, leader.partitions[key] if leader else files, unclean=unclean))
        results += [doubted(each, labels, older) for each in found]
    if leader is not None:
        below = _below(leader.partitions[key], told, in_order=leader.clean_shutdown, unclean=unclean)
        results.append(doubted(below, [leader.label, *told.by], older))
    return results


def _spans(files: PartitionFiles) -> list[Span]:
    """The lineage that a replica claims: its epoch cache, up to the LEO."""
    entries = files.epoch_cache or ()
    bounds = [*(each.start_offset for each in entries), files.log_end]
    spans = zip(entries, bounds, bounds[1:], strict=False)
    return [(each.epoch, low, high) for each, low, high in spans if low < high]


def _shared(segment: RemoteSegment, spans: Sequence[Span]) -> tuple[list[tuple[int, int]], tuple[int, int, int] | None]:
    """Where a segment has a lineage's epochs, as ranges; and ``(offset, its epoch, the lineage's)`` where first not."""
    same: list[tuple[int, int]] = []
    other: tuple[int, int, int] | None = None
    for epoch, low, high in spans:
        for remote, first, end in segment.lineage(low, high):
            if remote == epoch:
                same.append((first, end))
            elif other is None or first < other[0]:
                other = first, remote, epoch
    return same, other


def _follow_lineage(files: PartitionFiles, subject: str, told: _Told, *, unclean: bool) -> CheckResult:
    """Below its high watermark a replica's leader epochs are those of the finished remote segments.

    So a follower that began at the last tiered offset has built the epochs of what it did not fetch (KIP-1023). After
    an unclean election a segment of the deposed leader may be there still.
    """
    mark = files.high_watermark
    start = files.log_start_checkpoint or 0
    spans = [(epoch, max(low, start), min(high, mark or 0)) for epoch, low, high in _spans(files)]
    readable = [each for each in told.segments if each.state is SegmentState.COPY_SEGMENT_FINISHED]
    agreed = 0
    for segment in readable:
        same, other = _shared(segment, [span for span in spans if span[1] < span[2]])
        agreed += sum(end - first for first, end in same)
        if other is not None:
            offset, remote, local = other
            message = f"the remote segment of offsets {segment.copy.start} to {segment.copy.end}, of broker "
            message += f"{segment.copy.broker}, has leader epoch {remote} at {offset}, the replica's cache {local}"
            doubt = "; after an unclean election it may be the deposed leader's" if unclean else ""
            verdict: Verdict = "unknown" if unclean else "violated"
            where = str(files.path / "leader-epoch-checkpoint")
            return CheckResult(LINEAGE, verdict, subject, message + doubt, where, data={"offset": offset})
    if readable and (mark is None or files.epoch_cache is None):
        missing = "no high watermark" if mark is None else "no leader-epoch-checkpoint"
        return CheckResult(LINEAGE, "unknown", subject, f"the replica has {missing} to compare by")
    verdict = "holds" if told.complete else "unknown"
    message = f"{counted(agreed, 'offset')} of {counted(len(readable), 'remote segment')}"
    return CheckResult(
        LINEAGE, verdict, subject, message if told.complete else _incomplete(told), informative=not told.by
    )


def _incomplete(told: _Told) -> str:
    return f"not all of {REMOTE_TOPIC} could be read" if told.by else f"no {REMOTE_TOPIC} among the directories"


def _no_gap(files: PartitionFiles, subject: str, told: _Told, leader: PartitionFiles, *, unclean: bool) -> CheckResult:
    """Each offset from the log start to the local log's is in a finished remote segment of the replica's lineage.

    The log start is the leader's, which may lag in its checkpoint: segments from there on that are deleted, in order,
    are no gap.
    """
    local = files.segments[0].base_offset if files.segments else 0
    start = _log_start(leader)
    start = _log_start(files) if start is None else start
    assumed = start is None
    start = start or 0
    if start >= local:
        return CheckResult(NO_GAP, "holds", subject, f"all from the log start {start} on is in the local log")
    spans = _spans(files)
    here: list[tuple[int, int]] = []
    gone: list[tuple[int, int]] = []
    for segment in told.segments:
        if segment.finished:
            readable = segment.state is SegmentState.COPY_SEGMENT_FINISHED
            (here if readable else gone).extend(_shared(segment, spans)[0])
    first = min((low for low, _ in here), default=local)
    lagging = _covered(start, gone)
    missing = _covered(lagging if lagging >= min(first, local) else start, here)
    data = {"log_start": start, "local_log_start": local}
    if missing >= local:
        lag = f", though its checkpoint says {start}" if lagging > start else ""
        message = f"offsets {max(start, min(first, local))} to {local - 1} are in remote segments{lag}"
        return CheckResult(NO_GAP, "holds" if told.complete else "unknown", subject, message, data=data)
    message = f"offset {missing} is below the local log start {local}, and in no finished remote segment of its lineage"
    doubt = ""
    if assumed:
        doubt = "where the log starts no checkpoint tells"
    elif not told.complete:
        doubt = _incomplete(told)
    elif files.epoch_cache is None or files.damaged:
        doubt = "the replica's own files could not be read in full"
    elif told.uncommitted:
        doubt = f"what is above the high watermark of {REMOTE_TOPIC} may be committed since"
    elif unclean:
        doubt = "there was an unclean election"
    where = str(files.path)
    if doubt:
        return CheckResult(NO_GAP, "unknown", subject, f"{message}; {doubt}", where, data=data)
    return CheckResult(NO_GAP, "violated", subject, message, where, data=data)


def _log_start(files: PartitionFiles) -> int | None:
    """The log start in the checkpoint: 0 if it has no entry of the log (``LogManager.loadLog``).

    ``None`` if the checkpoint is missing, empty or damaged.
    """
    if files.log_start_checkpoint is not None:
        return files.log_start_checkpoint
    path = files.path.parent / LOG_START_FILE
    log = ProblemLog(path)
    text = read_text(path, log) if present(path) else None
    read_offset_checkpoint(path, log)
    return 0 if text and not log.result() else None


def _covered(start: int, ranges: Sequence[tuple[int, int]]) -> int:
    """The first offset from ``start`` on that is in none of the ranges ``(first, end)``."""
    for first, end in sorted(ranges):
        if first <= start:
            start = max(start, end)
    return start


def _below(leader: PartitionFiles, told: _Told, *, in_order: bool, unclean: bool) -> CheckResult:
    """What is uploaded is committed: below the leader's LEO, and its high watermark as far as that is known."""
    highest = max((each for each in told.segments if each.finished), key=lambda each: each.copy.end, default=None)
    if highest is None:
        message = "no remote segment is finished" if told.complete else _incomplete(told)
        verdict: Verdict = "holds" if told.complete else "unknown"
        return CheckResult(BELOW, verdict, leader.name, message, informative=not told.by)
    end, mark = highest.copy.end, leader.high_watermark
    message = f"the last remote offset is {end}, the leader's high watermark {mark}, its LEO {leader.log_end}"
    above = end >= leader.log_end or (in_order and mark is not None and end >= mark)
    if not above:
        return CheckResult(BELOW, "holds" if told.complete else "unknown", leader.name, message)
    verdict = "unknown" if unclean or leader.damaged else "violated"
    doubt = "; there was an unclean election" if unclean else ""
    return CheckResult(BELOW, verdict, leader.name, message + doubt, str(leader.path))
