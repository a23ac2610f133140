"""Unclean elections that the logs name, or that the ISRs of consecutive partition epochs prove."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .event_kind import EventKind
from .incarnations import Incarnation, Incarnations
from .observation import Observation
from .partition_timeline import PartitionTimeline

K = EventKind


@dataclass(frozen=True, slots=True)
class UncleanElection:
    """A leader that was not in the ISR. ``leader_epoch`` is ``None`` if no line names it."""

    leader: int | None
    leader_epoch: int | None
    source: Observation
    incarnation: Incarnation

    @property
    def text(self) -> str:
        """``broker 3 was elected uncleanly in leader epoch 2 (controller.log, line 9)``."""
        if self.leader is None and self.leader_epoch is None:
            return f"an unclean election was requested ({self.source.where})"
        who = "a leader" if self.leader is None else f"broker {self.leader}"
        when = "" if self.leader_epoch is None else f" in leader epoch {self.leader_epoch}"
        return f"{who} was elected uncleanly{when} ({self.source.where})"


def unclean_elections(timeline: PartitionTimeline, incarnations: Incarnations) -> list[UncleanElection]:
    """All unclean elections, one per leader epoch."""
    found: dict[tuple[Incarnation, int | None, int | None], UncleanElection] = {}
    for each in (*_named(timeline, incarnations), *_derived(timeline, incarnations)):
        found.setdefault((each.incarnation, each.leader_epoch, each.leader), each)
    # A line without an epoch repeats an election that another line names with its epoch.
    with_epoch = {(each.incarnation, each.leader) for each in found.values() if each.leader_epoch is not None}
    of_topic = {incarnation for incarnation, _ in with_epoch}
    return [
        each
        for each in found.values()
        if each.leader_epoch is not None
        or (each.leader is None and each.incarnation not in of_topic)
        or (each.leader is not None and (each.incarnation, each.leader) not in with_epoch)
    ]


def _named(timeline: PartitionTimeline, incarnations: Incarnations) -> Iterator[UncleanElection]:
    epochs: dict[tuple[Incarnation, int | None, int | None], int | None] = {
        (incarnations[each], each.leader, each.partition_epoch): each.leader_epoch
        for each in timeline.observations
        if each.leader_epoch is not None and each.partition_epoch is not None
    }
    for each in timeline.observations:
        if each.kind is K.UNCLEAN_ELECTION:
            incarnation = incarnations[each]
            epoch = each.leader_epoch
            if epoch is None:
                epoch = epochs.get((incarnation, each.leader, each.partition_epoch))
            yield UncleanElection(each.leader, epoch, each, incarnation)


def _derived(timeline: PartitionTimeline, incarnations: Incarnations) -> Iterator[UncleanElection]:
    """A leader that is not in the ISR before its election.

    The ISR before it is that of the last partition epoch, or that of the last leader epoch if it had no leader: without
    a leader no ISR changes.
    """
    isrs: dict[tuple[Incarnation, int], frozenset[int]] = {}
    offline: dict[tuple[Incarnation, int], frozenset[int]] = {}
    for each in timeline.observations:
        if each.isr is None or each.kind not in _COMMITTED:
            continue
        if each.partition_epoch is not None:
            isrs.setdefault((incarnations[each], each.partition_epoch), each.isr)
        if each.leader == -1 and each.leader_epoch is not None:
            offline[incarnations[each], each.leader_epoch] = each.isr
    for each in timeline.observations:
        if each.kind not in _ELECTS or each.leader_epoch is None or each.leader is None or each.leader < 0:
            continue
        # A follower's line comes from a later partition epoch, too: only the ISR of the one before it proves anything.
        before = None
        if each.kind is not K.FOLLOWER_STARTED:
            before = offline.get((incarnations[each], each.leader_epoch - 1))
        if each.partition_epoch is not None:
            before = isrs.get((incarnations[each], each.partition_epoch - 1), before)
        # An empty ISR has eligible leader replicas beside it, from which a clean election may choose.
        if before and each.leader not in before:
            yield UncleanElection(each.leader, each.leader_epoch, each, incarnations[each])


_COMMITTED = frozenset({K.LEADER_STARTED, K.ISR_UPDATED, K.PARTITION_CHANGED, K.PARTITION_CREATED, K.ROLE_SKIPPED})
_ELECTS = frozenset({K.LEADER_STARTED, K.FOLLOWER_STARTED, K.PARTITION_CHANGED})
