"""One leader in each leader epoch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

from ..checker import CheckResult
from ..contradiction import Contradiction
from ..event_kind import EventKind
from ..incarnations import Incarnations
from ..observation import METADATA_LOG, Observation
from ..partition_timeline import PartitionTimeline

K = EventKind
_CLAIMS = frozenset(
    {
        K.LEADER_STARTED,
        K.FOLLOWER_STARTED,
        K.ROLE_SKIPPED,
        K.PARTITION_CREATED,
        K.PARTITION_CHANGED,
        K.UNCLEAN_ELECTION,
        K.QUORUM_ROLE,
        K.CONTROLLER_CHANGED,
    }
)


class LeaderChecker:
    """Compare all leaders that nodes name for one leader epoch."""

    name = "two_leaders_in_one_epoch"
    title = "each leader epoch has one leader"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Group the claims by incarnation of the topic and by epoch."""
        incarnations = Incarnations.of(timeline)
        claims: dict[tuple[object, int], dict[int, list[Observation]]] = defaultdict(lambda: defaultdict(list))
        counts: dict[tuple[object, int], int] = defaultdict(int)
        for seen in timeline.observations:
            # Events of a node, without a partition, name controllers and their epochs.
            names_leader = seen.partition and seen.kind in _CLAIMS and seen.leader is not None and seen.leader >= 0
            if names_leader and seen.leader is not None and seen.leader_epoch is not None:
                key = (incarnations[seen], seen.leader_epoch)
                counts[key] += 1
                claims[key][seen.leader].append(seen)
        found = []
        for (_, epoch), by_leader in sorted(claims.items(), key=lambda each: each[0][1]):
            if len(by_leader) > 1:
                evidence = _nearest([by_leader[leader] for leader in sorted(by_leader)], _soon(epoch))
                proven = all(map(incarnations.is_identified, evidence[:2]))
                found.append(_contradiction(timeline, epoch, evidence, proven=proven))
        return CheckResult(sum(count - 1 for count in counts.values()), tuple(found))


_SOON = 1000
"""Milliseconds in which no topic is deleted, created again and led in its next leader epoch."""
_SOON_LATER = 60_000
"""Milliseconds in which none is and then goes through two elections or more.

A script can do that in less. Without this bound, logs without topic ids would prove nothing of two leaders.
"""
_LATER_EPOCH = 2
_MOST = 200


def _soon(epoch: int) -> int:
    """Return the milliseconds in which the partition is not created again and led in this epoch."""
    return _SOON_LATER if epoch >= _LATER_EPOCH else _SOON


def _nearest(claims: Sequence[Sequence[Observation]], soon: int) -> tuple[Observation, ...]:
    """One claim for each leader, the two that prove most first.

    Those are the nearest in time. A leader's own line is better evidence than another node's.
    """

    def rank(one: Observation, other: Observation) -> tuple[bool, int, int]:
        if one.time is None or other.time is None:
            return True, 0, 0
        distance = abs(one.time - other.time)
        own = (one.node == one.leader) + (other.node == other.leader)
        return distance > soon, -own, distance

    pairs = [
        (one, other) for first, second in combinations(claims, 2) for one in first[:_MOST] for other in second[:_MOST]
    ]
    one, other = min(pairs, key=lambda pair: rank(*pair))
    return (one, other, *(each[0] for each in claims if each[0].leader not in (one.leader, other.leader)))


def _contradiction(
    timeline: PartitionTimeline, epoch: int, evidence: tuple[Observation, ...], *, proven: bool
) -> Contradiction:
    # Two leaders suffice, whatever is known of a third one.
    proven = proven or not _may_be_recreated(timeline, epoch, evidence[:2])
    subject = "a cluster" if timeline.partition == METADATA_LOG else "a topic"
    leaders = " and ".join(f"{each.leader} ({each.where})" for each in evidence)
    message = f"leader epoch {epoch} of {timeline.partition} has several leaders: {leaders}"
    if not proven:
        message += f"; not all lines name an id of {subject}, so it may have been deleted and created again"
    return Contradiction(
        check=LeaderChecker.name,
        partition=timeline.partition,
        verdict="violated" if proven else "unknown",
        message=message,
        evidence=evidence,
    )


def _may_be_recreated(timeline: PartitionTimeline, epoch: int, evidence: tuple[Observation, ...]) -> bool:
    """Whether the lines fit a topic of the same name that was created again: without topic ids only times tell."""
    if epoch == 0 and timeline.partition != METADATA_LOG:
        return True
    times = [each.time for each in evidence if each.time is not None]
    if len(times) < len(evidence) or max(times) - min(times) > _soon(epoch):
        return True
    if any(each.relative for each in evidence) and len({each.file for each in evidence}) > 1:
        return True
    between = (
        each
        for each in timeline.observations
        if each.partition
        and each.time is not None
        and each.leader_epoch is not None
        and min(times) < each.time < max(times)
    )
    return any(each.leader_epoch != epoch for each in between)
