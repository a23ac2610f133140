"""Checks of compacted logs: how far each is clean, one record a key there, and that record the winner (KIP-280).

What ``cleaner-offset-checkpoint`` has (``LogCleanerManager`` in Kafka) is where the last cleaning ended, be it in the
midst of a segment, as one does whose map was full. All before it was then rewritten by a map that had every key of what
was dirty there: below it no key has two records. The active segment, and what is above the high watermark or the last
stable offset, lie above it. It is stored when the segments are swapped in, so after a crash too little is called clean,
and lowered when the log is truncated below it. That takes an unclean election: after one, ``unknown`` is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..text import counted
from .divergence import first_missing
from .keyed import KeyedLog, keyed_log
from .policies import Strategy, cleanup_policy, strategy
from .unclean_elections import may_lose_committed
from .verdicts import CheckResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .batches import Limits
    from .cross_checks import Replica
    from .image import MetadataImage
    from .partition import PartitionFiles

WITHIN = "cleaner_offset_within_log"
ONE_RECORD = "cleaned_part_has_one_record_a_key"
WINNERS = "cleaned_part_keeps_the_winners"
CHECKPOINT = "cleaner-offset-checkpoint"
_UNCLEAN = "; there was an unclean election, and a broker may have died before it lowered the checkpoint"


def check_compacted(
    replicas: Sequence[Replica], image: MetadataImage | None, clean_shutdown: frozenset[str], limits: Limits
) -> list[CheckResult]:
    """All checks of one partition that is compacted on some broker; nothing for others.

    ``clean_shutdown``: labels of the brokers that stopped in order. Raises ``BudgetSpent``.
    """
    if image is None:
        return []
    results: list[CheckResult] = []
    logs: dict[str, KeyedLog] = {}
    clean: list[Replica] = []
    topic, number = replicas[0][2].topic, replicas[0][2].partition
    unclean = may_lose_committed(image, topic, number)
    for replica in replicas:
        label, node, files = replica
        if files.cleaned is None or not cleanup_policy(image, topic, node).compacted:
            continue
        within = _within(label, files, in_order=label in clean_shutdown, unclean=unclean)
        results.append(within)
        if within.verdict != "holds":
            continue
        clean.append(replica)
        logs[label] = keyed_log(files, files.log_end, strategy(image, topic, node) or Strategy(), limits)
        results.append(_one_record(label, files, logs[label].below(files.cleaned), unclean=unclean))
    if len(replicas) > 1 and clean:
        results.append(_winners(replicas, clean, logs, image, limits))
    return results


def _within(label: str, files: PartitionFiles, *, in_order: bool, unclean: bool) -> CheckResult:
    """The cleaner's offset is not above the LEO, nor, as far as its checkpoint tells, above the high watermark."""
    subject, clean = f"{label}: {files.name}", files.cleaned
    assert clean is not None
    path = str(files.path.parent / CHECKPOINT)
    data: dict[str, Any] = {"cleaned": clean, "log_end": files.log_end, "high_watermark": files.high_watermark}
    if clean > files.log_end:
        verdict: Verdict = "unknown" if files.damaged or unclean else "violated"
        message = f"clean below {clean}, and the LEO is {files.log_end}"
        doubt = _UNCLEAN if unclean else "; part of the log could not be read" if files.damaged else ""
        return CheckResult(WITHIN, verdict, subject, message + doubt, path, data=data)
    if files.high_watermark is not None and clean > files.high_watermark and in_order:
        message = f"clean below {clean}, above the high watermark {files.high_watermark} of a clean shutdown"
        return CheckResult(WITHIN, "unknown" if unclean else "violated", subject, message, path, data=data)
    reset = (
        f", below the log start {files.log_start}: the next cleaning begins there" if clean < files.log_start else ""
    )
    return CheckResult(WITHIN, "holds", subject, f"clean below {clean}, LEO {files.log_end}{reset}", path, data=data)


def _one_record(label: str, files: PartitionFiles, log: KeyedLog, *, unclean: bool) -> CheckResult:
    """Below the cleaner's offset each key has one record, and every record a key."""
    subject = f"{label}: {files.name}"
    seen: dict[bytes | None, int] = {}
    for record in log.records:
        if record.key is None:
            message = f"the record at offset {record.offset} has no key, below the cleaner's offset {files.cleaned}"
        elif record.key in seen:
            message = f"offsets {seen[record.key]} and {record.offset} have one key, below the cleaner's offset "
            message += str(files.cleaned)
        else:
            seen[record.key] = record.offset
            continue
        verdict: Verdict = "unknown" if unclean else "violated"
        doubt = _UNCLEAN if unclean else ""
        data = {"offset": record.offset}
        return CheckResult(ONE_RECORD, verdict, subject, message + doubt, files.where(record.offset), data=data)
    if files.damaged or not log.readable:
        message = "part of the log could not be read; no key is twice in the rest"
        return CheckResult(ONE_RECORD, "unknown", subject, message)
    message = f"{counted(len(seen), 'key')} below the cleaner's offset {files.cleaned}"
    return CheckResult(ONE_RECORD, "holds", subject, message)


def _winners(
    replicas: Sequence[Replica],
    clean: Sequence[Replica],
    logs: dict[str, KeyedLog],
    image: MetadataImage,
    limits: Limits,
) -> CheckResult:
    """What a cleaned part keeps of a key is no less than what another replica has of it, committed, in that range.

    By the strategy's order. What is kept from before a record that beats it is a fault under each strategy: whatever
    has taken that one away since would have taken this one with it. What is kept from behind, or not at all, is one
    where the offset alone counts, or where the other replica has cleaned nothing in that range; elsewhere a tombstone
    of higher rank may have been there, and be gone. A key that has a record above is another matter: a cleaning that
    was not checkpointed any more has got so far.
    """
    files = replicas[0][2]
    subject = files.name
    if may_lose_committed(image, files.topic, files.partition):
        return CheckResult(WINNERS, "unknown", subject, f"replicas are not compared{_UNCLEAN}", informative=True)
    damaged = [label for label, _, each in replicas if each.damaged] + [
        label for label, each in logs.items() if not each.readable
    ]
    doubts: list[CheckResult] = []
    compared = 0
    for label, node, here in sorted(clean, key=lambda each: (-(each[2].cleaned or 0), each[0])):
        rule = strategy(image, here.topic, node)
        if rule is None:
            message = f"{label}: the strategy was changed, or is none that is known"
            doubts.append(CheckResult(WINNERS, "unknown", subject, message, informative=True))
            continue
        assert here.cleaned is not None
        kept, later = logs[label].below(here.cleaned).last(), logs[label].keys_from(here.cleaned)
        for other_label, _, other in replicas:
            limit = min(here.cleaned, other.high_watermark or 0)
            if other_label == label or limit <= max(here.log_start, other.log_start):
                continue
            best = keyed_log(other, limit, rule, limits).last()
            start = max(here.log_start, other.log_start)
            all_there = limit == here.cleaned and first_missing(other, start, limit) is None
            for key, record in best.items():
                if key is None or key in logs[label].undecided or record.offset < here.log_start:
                    continue
                compared += 1
                mine = kept.get(key)
                if mine is None:
                    if not record.has_value or limit < here.cleaned or key in later:
                        continue
                    what, sure = "has nothing of its key", all_there or not rule.ranked
                elif mine.order < record.order:
                    what, sure = f"keeps offset {mine.offset} of its key", all_there or mine.offset < record.offset
                else:
                    continue
                message = f"{label}, clean below {here.cleaned}, {what}; {other_label} has offset {record.offset}"
                message += f", which wins by {rule}"
                where = other.where(record.offset)
                if sure and not damaged:
                    return CheckResult(WINNERS, "violated", subject, message, where, data={"offset": record.offset})
                doubt = f"part of {damaged[0]}'s log could not be read" if damaged else (
                    "a tombstone that wins over it may have been there, and be gone"
                )  # fmt: skip
                doubts.append(CheckResult(WINNERS, "unknown", subject, f"{message}; {doubt}", where))
    if doubts:
        return min(doubts, key=lambda each: each.informative)
    if damaged:
        return CheckResult(WINNERS, "unknown", subject, f"part of {damaged[0]}'s log could not be read")
    return CheckResult(WINNERS, "holds", subject, f"{counted(compared, 'key')} compared with another replica's")


def cleaned_below(replicas: Sequence[Replica], image: MetadataImage | None) -> int | None:
    """Below which offset holes of a compacted partition can be anybody's cleaning; ``None`` where no file tells.

    A follower has the holes of the leader that it fetched from. So that is the largest of all replicas' cleaner
    offsets, if all that there ever were are here, each with its checkpoint; if none has lowered it after an unclean
    election, or lost it with its disk; and if the metadata log tells of all that.
    """
    if image is None or not image.whole:
        return None
    topic, number = replicas[0][2].topic, replicas[0][2].partition
    states = image.topics[topic].history.get(number, []) if topic in image.topics else []
    ever = {node for state in states for node in state.replicas}
    here = {node for _, node, _ in replicas}
    told = all(files.cleaner_told and not files.damaged for _, _, files in replicas)
    if not states or not ever <= here or not told or ever & image.new_disks or may_lose_committed(image, topic, number):
        return None
    return max((files.cleaned or 0 for _, _, files in replicas), default=0)
