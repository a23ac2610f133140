"""Whether the clocks of two nodes can order two reports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .event_kind import EventKind
from .observation import Observation
from .partition_timeline import PartitionTimeline

K = EventKind
_ROLES: Final = frozenset({K.LEADER_STARTED, K.FOLLOWER_STARTED, K.FETCHER_ADDED, K.QUORUM_ROLE})
MARGIN: Final = 1000
"""Milliseconds by which clocks that agree may differ."""
_QUARTER: Final = 15 * 60_000
_FURTHEST: Final = 5000
"""Milliseconds between two nodes' starts of one leader epoch, if their clocks agree."""


class Order(StrEnum):
    """Evidence that one report comes before another."""

    EPOCHS = "epochs"
    CLOCKS = "clocks"
    ASSUMED = "assumed"  # the times do, if both clocks and time zones agree
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Clocks:
    """Compares times of several nodes.

    Nodes start a leader epoch at about the same time, so their lines about one epoch show whether their clocks agree.
    Without such lines, clocks of lines that name their time zone, or that stand in one file, count as synchronised.

    Args:
        distances: By pair of nodes, the least milliseconds between their starts of one epoch.
    """

    distances: Mapping[tuple[int, int], int]

    @classmethod
    def of(cls, timeline: PartitionTimeline) -> Clocks:
        """Compare the clocks of all nodes that report the partition."""
        starts: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for each in timeline.observations:
            if each.kind not in _ROLES or each.leader_epoch is None or each.node is None:
                continue
            if each.time is not None and not each.relative:
                starts[each.leader_epoch][each.node].append(each.time)
        distances: dict[tuple[int, int], int] = {}
        for by_node in starts.values():
            nodes = sorted(by_node)
            for place, one in enumerate(nodes):
                for other in nodes[place + 1 :]:
                    least = min(abs(a - b) for a in by_node[one] for b in by_node[other])
                    distances[one, other] = min(least, distances.get((one, other), least))
        return cls(distances)

    def order(self, one: Observation, other: Observation, *, trusted: bool = False) -> Order:
        """Whether ``one`` comes before ``other``, a report of another node.

        Args:
            trusted: Whether times without a zone suffice if nothing shows that the clocks disagree.
        """
        if one.time is None or other.time is None or one.time + MARGIN >= other.time:
            return Order.UNKNOWN
        same_file = one.file == other.file
        if (one.relative or other.relative) and not same_file:
            return Order.UNKNOWN
        nodes = (one.node or 0, other.node or 0)
        distance = self.distances.get((min(nodes), max(nodes)))
        if distance is not None:
            agree = distance <= _FURTHEST and one.time + 2 * distance < other.time
            return Order.CLOCKS if agree else Order.ASSUMED
        return Order.CLOCKS if trusted or same_file or (one.zoned and other.zoned) else Order.ASSUMED


def zone_notes(partitions: Iterable[PartitionTimeline]) -> list[str]:
    """Notes on nodes whose starts of common epochs are always about a multiple of a quarter of an hour apart."""
    least: dict[tuple[int, int], int] = {}
    for partition in partitions:
        for pair, distance in Clocks.of(partition).distances.items():
            least[pair] = min(distance, least.get(pair, distance))
    return [
        f"the clocks of nodes {one} and {other} are about {distance / 3_600_000:.2g} h apart; if they are in other time"
        " zones, name these with --time-zone"
        for (one, other), distance in sorted(least.items())
        if distance > _QUARTER // 2 and (distance + _FURTHEST) % _QUARTER <= 2 * _FURTHEST
    ]


def is_before_on_node(one: Observation, other: Observation) -> bool:
    """Whether ``one`` is before ``other`` of the same node, given that it stands before it.

    Lines of two files with one time may stand in either order. In one file, a time that goes back makes it doubtful.
    """
    known = one.time is not None and other.time is not None
    if one.file == other.file:
        return not known or (one.time or 0) <= (other.time or 0)
    return known and not one.relative and not other.relative and (one.time or 0) < (other.time or 0)
