"""What Apache Kafka's brokers say to each other and to the controller, and the one that stands for Kafka's.

It decides as ReplicationControlManager does, and writes a metadata log of one partition's changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ..lockstep.adapter import ModelStep

CODES: Final = {
    "NONE": None,
    "FENCED_LEADER_EPOCH": "FENCED_REPLICA",
    "UNKNOWN_LEADER_EPOCH": "UNKNOWN_LEADER_EPOCH",
    "NOT_LEADER_OR_FOLLOWER": "NOT_LEADER_OR_FOLLOWER",
}
"""Kafka's error codes by the protocol's names (K1); others say nothing to the model."""

# -- the messages ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fetch:
    """A follower's fetch; ``number`` is that of its bytes at the driver, or on the wire.

    ``epoch``: Kafka's leader epoch; -1 where nobody looks (a fetch session leaves out a partition that is as it was).
    """

    number: int
    epoch: int = -1


@dataclass(frozen=True)
class FetchAnswer:
    """What the leader answered: whether the logs part, and how many records it brings, in how many bytes of batches."""

    number: int
    error: str
    diverges: bool
    records: int
    size: int = 0


@dataclass(frozen=True)
class AlterPartition:
    """A leader asks for another ISR than that of a partition epoch (``version``), in Kafka's leader epoch."""

    number: int
    epoch: int
    isr: frozenset[int]
    version: int


@dataclass(frozen=True)
class AlterPartitionAnswer:
    """What the controller has, or why it refuses."""

    request: int
    error: str
    leader: int = -1
    epoch: int = -1
    isr: frozenset[int] = frozenset()
    version: int = -1


# -- the controller -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Isr:
    """An ISR, and the partition epoch that it came with. ``asked``: a leader has asked for it."""

    version: int
    isr: frozenset[int]
    asked: bool = False


class Controller:
    """It elects leaders, takes up ISRs and writes all of it to the metadata log. It never crashes.

    ``fences``: a failed follower leaves the ISR in the leader epoch that there is, as it does with KRaft (K14).
    """

    def __init__(self, brokers: Iterable[int], *, fences: bool = False) -> None:
        self.fences = fences
        self.leader: int | None = None
        self.epoch = 0
        self.isr = frozenset(brokers)
        self.version = 0
        self.log: list[dict[str, Any]] = []
        self.leaders: list[int | None] = []
        """Who leads in each leader epoch, from the model's 0 on."""
        self.isrs: list[list[Isr]] = []
        """The ISRs of each leader epoch, in their order."""
        self.begins: list[int] = []
        """By record of the log, the model's leader epoch after it."""
        self.versions = [0]
        """By how many records were replayed, the partition epoch then."""

    def begin(self, leader: int | None, isr: frozenset[int]) -> None:
        """Begin a leader epoch."""
        self.leader, self.isr, self.epoch, self.version = leader, isr, self.epoch + 1, self.version + 1
        self.leaders.append(leader)
        self.isrs.append([Isr(self.version, isr)])
        self._write({"leader": -1 if leader is None else leader, "isr": sorted(isr)})

    def _write(self, record: dict[str, Any]) -> None:
        self.log.append(record)
        self.versions.append(self.version)
        self.begins.append(self.epoch - 1)

    def _alter(self, isr: frozenset[int], *, asked: bool) -> None:
        """Another ISR in the same leader epoch."""
        self.isr, self.version = isr, self.version + 1
        self.isrs[-1].append(Isr(self.version, isr, asked))
        self._write({"isr": sorted(isr)})

    def told(self, epoch: int, version: int) -> tuple[frozenset[int], list[frozenset[int]]]:
        """The ISR in a leader epoch's request, as the model has it, and those that came of fencings since.

        ``version``: the last partition epoch that the epoch's leader knows; -1 where it has not heard of the epoch.
        """
        all_ = self.isrs[epoch]
        if not self.fences:
            return all_[-1].isr, []
        place = max((at for at, each in enumerate(all_) if each.version <= version), default=0)
        if place + 1 < len(all_) and all_[place + 1].asked:
            place += 1
        return all_[place].isr, [each.isr for each in all_[place + 1 :]]

    def may_fail(self, broker: int) -> bool:
        """Whether there is anything to take from a broker."""
        return broker == self.leader or broker in self.isr

    def takes_epoch(self, broker: int) -> bool:
        """Whether its failure takes a leader epoch."""
        return self.may_fail(broker) and not (self.fences and self.leader not in (None, broker))

    def fail(self, broker: int, others: Iterable[int]) -> list[ModelStep]:
        """A broker's session is over. Another member of the ISR leads then, the first of these, if one of them can."""
        left = self.isr - {broker}
        if not self.takes_epoch(broker):
            self.fence(broker)
            return [("controller_fence_follower", {"replica": broker})]
        if self.leader != broker:
            self.begin(self.leader, left)
            return [("controller_shrink_isr", {"replica": broker})]
        heir = next((each for each in others if each in left), None)
        if heir is not None:
            self.begin(heir, left)
            return [("controller_fail_over", {"failed": broker, "new_leader": heir})]
        self.begin(None, left or self.isr)
        return [("controller_shrink_isr", {"replica": broker})]

    def fence(self, broker: int) -> None:
        """A follower's session is over: it leaves the ISR in the same leader epoch (K14)."""
        self._alter(self.isr - {broker}, asked=False)

    def alter(self, source: int | None, asked: AlterPartition) -> AlterPartitionAnswer:
        """A leader asks for an ISR; decided as ReplicationControlManager.validateAlterPartitionData does."""
        error = "NONE"
        if asked.epoch < self.epoch:
            error = "FENCED_LEADER_EPOCH"
        elif source != self.leader:
            error = "INVALID_REQUEST"
        elif asked.version < self.version:
            error = "INVALID_UPDATE_VERSION"
        if error != "NONE":
            return AlterPartitionAnswer(asked.number, error)
        if asked.isr != self.isr:
            self._alter(asked.isr, asked=True)
        leader = -1 if self.leader is None else self.leader
        return AlterPartitionAnswer(asked.number, "NONE", leader, self.epoch, self.isr, self.version)
