"""Leader epoch caches against each other and against the elections in the metadata log.

A leader enters its epoch at its LEO before it serves anyone (``Partition.makeLeader``), and followers copy that start.
So an epoch starts at one offset in all caches, and the leader's cache ends with its own epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .committed import led_epoch
from .epoch_conflicts import latest_epoch
from .replica_checks import CACHE_FILE, check_epoch_cache
from .verdicts import CheckResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .cross_checks import Replica
    from .image import MetadataImage, PartitionState

AGREE = "epoch_caches_agree"
ELECTED = "cached_epochs_had_leaders"
OWN_EPOCH = "leader_epoch_in_cache"


def check_epoch_caches(
    replicas: Sequence[Replica], image: MetadataImage | None, own: Mapping[str, MetadataImage | None], subject: str
) -> list[CheckResult]:
    """All comparisons of the epoch caches of one partition.

    ``image`` is the newest metadata log, ``own`` each broker's own by label.
    """
    results = _agree(replicas, subject)
    if image is None or not replicas:
        return results
    history = image.history(replicas[0][2].topic, replicas[0][2].partition)
    if history:
        results += _elected(replicas, history, image, subject)
        results += _own_epoch(replicas, history[-1], image, own, subject)
    return results


def _agree(replicas: Sequence[Replica], subject: str) -> list[CheckResult]:
    """Each epoch starts at one offset: in all caches that match their own batches, above every log start.

    Compaction may remove the first records of an epoch before a follower copies it, so a log with holes is left out.
    No result if no two caches have an entry in common.
    """
    first: dict[int, tuple[int, str]] = {}
    compared = 0
    for label, _, files in replicas:
        if check_epoch_cache(files, label, clean_shutdown=False).verdict != "holds" or files.gaps():
            continue
        for entry in files.epoch_cache or ():
            if entry.start_offset <= files.log_start:
                continue
            start, other = first.setdefault(entry.epoch, (entry.start_offset, label))
            compared += other != label
            if start != entry.start_offset:
                message = (
                    f"leader epoch {entry.epoch} starts at {start} in the cache of {other} and at "
                    f"{entry.start_offset} in that of {label}"
                )
                return [CheckResult(AGREE, "violated", subject, message, str(files.path / CACHE_FILE))]
    return [CheckResult(AGREE, "holds", subject, f"{compared} entries compared")] if compared else []


def _elected(
    replicas: Sequence[Replica], history: Sequence[PartitionState], image: MetadataImage, subject: str
) -> list[CheckResult]:
    """No cache has an epoch above the controller's, or one in which the controller elected no leader.

    No result without an entry.
    """
    if not any(files.epoch_cache for _, _, files in replicas):
        return []
    leaders: dict[int, int] = {}
    for state in history:
        leaders[state.leader_epoch] = max(state.leader, leaders.get(state.leader_epoch, -1))
    last = history[-1].leader_epoch
    for label, _, files in replicas:
        for entry in files.epoch_cache or ():
            if entry.epoch > last:
                reason = f"the controller's newest is {last} (metadata offset {history[-1].offset})"
            elif leaders.get(entry.epoch) == -1:
                reason = "the controller elected no leader in it"
            else:
                continue
            message = (
                f"the cache of {label} has leader epoch {entry.epoch} from offset {entry.start_offset}, but {reason}"
            )
            where = str(files.path / CACHE_FILE)
            # A broker reads of an election in its own copy of the controller's log first.
            verdict: Verdict = "violated" if image.complete else "unknown"
            return [CheckResult(ELECTED, verdict, subject, message, where)]
    verdict = "holds" if image.complete else "unknown"
    return [CheckResult(ELECTED, verdict, subject, f"all epochs up to {last} had a leader")]


def _own_epoch(
    replicas: Sequence[Replica],
    state: PartitionState,
    image: MetadataImage,
    own: Mapping[str, MetadataImage | None],
    subject: str,
) -> list[CheckResult]:
    """The elected leader's cache has its own epoch once it has acted as leader.

    A follower with a larger epoch than the leader's cache gets OFFSET_OUT_OF_RANGE for every fetch
    (``Partition.readRecords``) and never recovers.
    """
    leader = next((each for each in replicas if each[1] == state.leader and state.leader >= 0), None)
    if leader is None:
        return []
    label, node, files = leader
    latest = latest_epoch(files)
    if latest >= state.leader_epoch:
        return [CheckResult(OWN_EPOCH, "holds", subject, f"{label} has its leader epoch {state.leader_epoch}")]
    where = str(files.path / CACHE_FILE)
    if files.epoch_cache is None:
        message = f"{label} leads in epoch {state.leader_epoch}, and its {CACHE_FILE} is missing, empty or damaged"
        return [CheckResult(OWN_EPOCH, "unknown", subject, message, where)]
    newest = "is empty" if latest < 0 else f"ends with epoch {latest}"
    message = f"{label} leads in epoch {state.leader_epoch}, and its epoch cache {newest}"
    stuck = [
        f"{other}, whose last epoch is {latest_epoch(log)}"
        for other, _, log in replicas
        if other != label and latest_epoch(log) > latest
    ]
    if stuck:
        message += f"; {' and '.join(stuck)}, is stuck: the leader answers each fetch with OFFSET_OUT_OF_RANGE"
    told = own.get(label)
    if files.damaged or not image.complete:
        return [CheckResult(OWN_EPOCH, "unknown", subject, f"{message}; part of a log could not be read", where)]
    if told is None or led_epoch(told.history(files.topic, files.partition), node) != state.leader_epoch:
        message += "; it may not have begun the epoch yet"
        return [CheckResult(OWN_EPOCH, "unknown", subject, message, where, informative=not stuck)]
    return [CheckResult(OWN_EPOCH, "violated", subject, message, where)]
