"""All observations of one partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from .observation import Observation

Process: TypeAlias = tuple[int | None, str | None]
"""A node and no client, or a client and no node."""


@dataclass(frozen=True)
class PartitionTimeline:
    """One partition's observations, in the order in which the timeline shows them.

    ``observations`` are sorted by time; those without a time come first. Within one process they keep their
    ``sequence``, even if its clock goes back.
    """

    partition: str
    observations: tuple[Observation, ...]

    @classmethod
    def of(cls, partition: str, observations: Iterable[Observation]) -> PartitionTimeline:
        """Sort the observations of one partition."""
        return cls(partition, tuple(_merge(observations)))

    @cached_property
    def by_process(self) -> Mapping[Process, tuple[Observation, ...]]:
        """The observations of each node and each client, in its own order."""
        found: dict[Process, list[Observation]] = {}
        for each in self.observations:
            found.setdefault((each.node, each.client), []).append(each)
        return {process: tuple(members) for process, members in found.items()}

    def of_process(self, node: int | None, client: str | None = None) -> tuple[Observation, ...]:
        """Observations of one node or one client, in its own order."""
        return self.by_process.get((node, client), ())

    @property
    def nodes(self) -> tuple[int, ...]:
        """Ids of the nodes that reported something, ascending."""
        return tuple(sorted({each.node for each in self.observations if each.node is not None}))


def _merge(observations: Iterable[Observation]) -> Sequence[Observation]:
    """Order by time; an event never comes before an earlier event of its own process."""
    processes: dict[Process, list[Observation]] = {}
    for each in observations:
        processes.setdefault((each.node, each.client), []).append(each)
    keyed: list[tuple[int, str, int, Observation]] = []
    for members in processes.values():
        latest = -1
        for each in sorted(members, key=lambda one: (one.sequence, one.file, one.line)):
            latest = max(latest, -1 if each.time is None else each.time)
            keyed.append((latest, each.process, each.sequence, each))
    keyed.sort(key=lambda one: (one[0], one[1], one[2], one[3].file, one[3].line))
    return [each for *_, each in keyed]
