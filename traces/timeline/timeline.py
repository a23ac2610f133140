"""The timelines of all partitions that some files report about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from .observation import METADATA_LOG, Observation
from .partition_timeline import PartitionTimeline


@dataclass(frozen=True)
class Timeline:
    """One timeline per partition, by name; the metadata log comes last."""

    partitions: tuple[PartitionTimeline, ...]

    @classmethod
    def of(cls, observations: Sequence[Observation], topics: Collection[str] = ()) -> Timeline:
        """Group the observations by partition.

        Events of a topic go to all its partitions. Starts and stops of a node go to the partitions that it reports.

        Args:
            observations: Of all sources.
            topics: Only partitions of these topics; empty for all.
        """
        by_partition: dict[str, list[Observation]] = defaultdict(list)
        for each in observations:
            if each.partition and (not topics or topic_of(each.partition) in topics):
                by_partition[each.partition].append(each)
        reporters = {name: {each.node for each in members} for name, members in by_partition.items()}
        for each in observations:
            if each.partition:
                continue
            for partition, members in by_partition.items():
                if each.topic is not None:
                    if topic_of(partition) == each.topic:
                        members.append(replace(each, partition=partition))
                elif each.node is not None and each.node in reporters[partition]:
                    members.append(each)
        names = sorted(by_partition, key=lambda name: (name == METADATA_LOG, topic_of(name), number_of(name), name))
        return cls(tuple(PartitionTimeline.of(name, by_partition[name]) for name in names))


def topic_of(partition: str) -> str:
    """``orders`` of ``orders-0``; ``key`` of Jepsen's ``key 5``."""
    return partition.rpartition(_separator(partition))[0]


def number_of(partition: str) -> int:
    """``0`` of ``orders-0``."""
    number = partition.rpartition(_separator(partition))[2]
    return int(number) if number.isdecimal() else 0


def _separator(partition: str) -> str:
    # Topics have no space in their names.
    return " " if " " in partition else "-"
