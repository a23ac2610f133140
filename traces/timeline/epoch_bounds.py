"""Leader epochs between which a node reported something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .clocks import MARGIN, Clocks, Order
from .event_kind import EventKind
from .observation import Observation

K = EventKind
_ROLES = frozenset({K.LEADER_STARTED, K.FOLLOWER_STARTED, K.QUORUM_ROLE, K.ROLE_SKIPPED})
_LEADERS_ONLY = frozenset({K.ISR_SHRINK, K.ISR_EXPAND, K.ISR_UPDATED, K.FOLLOWER_FETCH})


@dataclass(frozen=True, slots=True)
class EpochBounds:
    """The node knew leader epoch ``lower`` or a later one, and none after ``upper``. ``None`` is unknown."""

    lower: int | None
    upper: int | None


def epoch_bounds(observations: Sequence[Observation]) -> list[EpochBounds]:
    """Bounds of the epoch in which the facts of each observation were established.

    Lines may be missing, so a node may have moved on silently: only a later line of the node bounds the epoch from
    above. The high watermark in a line that starts a role comes from the epoch before.

    Args:
        observations: Of one node, in its order.
    """
    lowers: list[int | None] = []
    epoch: int | None = None
    leads = False
    latest = -1
    for each in observations:
        if each.time is not None and each.time < latest - MARGIN:
            # The clock went back, or the lines are out of order: nothing before counts.
            epoch, leads = None, False
        latest = latest if each.time is None else each.time
        starts = each.kind in _ROLES and each.leader_epoch is not None
        before = each.previous_epoch
        earlier = before is not None and each.leader_epoch is not None and 0 <= before < each.leader_epoch
        if starts and earlier:
            lowers.append(before)
        elif each.kind in _LEADERS_ONLY and not leads:
            # Only a leader logs it, but the line that makes the node a leader is missing.
            lowers.append(None)
        elif starts:
            # After a restart the line does not say in which epoch its high watermark was established.
            lowers.append(epoch)
        else:
            lowers.append(each.leader_epoch if each.leader_epoch is not None else epoch)
        if starts:
            epoch = each.leader_epoch
            leads = each.leader is not None and each.leader == each.node
        elif each.leader_epoch is not None and each.kind is K.FETCHER_ADDED:
            epoch, leads = each.leader_epoch, False
    uppers: list[int | None] = []
    upper: int | None = None
    soonest: int | None = None
    for each in reversed(observations):
        if each.time is not None and soonest is not None and each.time > soonest + MARGIN:
            upper = None
        soonest = soonest if each.time is None else each.time
        if each.kind in _ROLES and each.leader_epoch is not None:
            before = each.previous_epoch
            upper = before if before is not None and 0 <= before < each.leader_epoch else each.leader_epoch
        elif each.leader_epoch is not None and each.kind in (K.FETCHER_ADDED, K.HIGH_WATERMARK):
            upper = each.leader_epoch if upper is None else min(upper, each.leader_epoch)
        uppers.append(upper)
    uppers.reverse()
    return [EpochBounds(lower, each) for lower, each in zip(lowers, uppers, strict=True)]


def order_before_epoch(seen: Observation, bounds: EpochBounds, epoch: int, start: Observation, clocks: Clocks) -> Order:
    """Evidence that an observation was made before a leader epoch began at the leader.

    Epochs decide if the node's later lines bound its epoch. Otherwise its last known epoch and both clocks must agree.

    Args:
        seen: The observation.
        bounds: Its bounds.
        epoch: The later leader epoch.
        start: The line in which the leader starts that epoch.
        clocks: Of the partition's nodes.
    """
    if bounds.upper is not None and bounds.upper < epoch:
        return Order.EPOCHS
    if bounds.lower is None or bounds.lower >= epoch:
        return Order.UNKNOWN
    # The next epoch leaves no room for a role of which no line tells.
    return clocks.order(seen, start, trusted=bounds.lower == epoch - 1)
