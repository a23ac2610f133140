"""What a line of Kafka's server log says of a partition: offsets, epochs and broker ids are Kafka's own numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Loads:
    """A broker's process opens its log (``Partition.createLogIfNotExists``), with a stored high watermark."""

    hw: int


@dataclass(frozen=True, slots=True)
class Leads:
    """It takes up the record that names it leader; ``end`` is its LEO (``Partition.makeLeader``)."""

    epoch: int
    end: int
    hw: int
    isr: frozenset[int]


@dataclass(frozen=True, slots=True)
class Follows:
    """It takes up the record that names another leader, or nobody: -1 (``Partition.makeFollower``)."""

    epoch: int
    end: int
    hw: int
    leader: int


@dataclass(frozen=True, slots=True)
class Appends:
    """Records were appended, up to a new LEO (``UnifiedLog.append``)."""

    end: int


@dataclass(frozen=True, slots=True)
class Truncates:
    """The log is cut (``UnifiedLog.truncateTo``)."""

    end: int


@dataclass(frozen=True, slots=True)
class Raises:
    """A leader's high watermark rises (``Partition.maybeIncrementLeaderHW``)."""

    hw: int


@dataclass(frozen=True, slots=True)
class Sets:
    """A log has a high watermark (``UnifiedLog.updateHighWatermark``): a follower's, of an answer or a truncation."""

    hw: int


@dataclass(frozen=True, slots=True)
class Hears:
    """A leader is told a follower's LEO by its fetch (``Partition.updateFollowerFetchState``)."""

    replica: int
    end: int


@dataclass(frozen=True, slots=True)
class Asks:
    """A leader asks the controller for an ISR (``Partition.submitAlterPartition``)."""

    isr: frozenset[int]


@dataclass(frozen=True, slots=True)
class Learns:
    """A leader knows the ISR: by the controller's answer, or by a record that it replays in its leader epoch."""

    isr: frozenset[int]


@dataclass(frozen=True, slots=True)
class Restarts:
    """The log does not begin where it did: it was thrown away (``UnifiedLog.truncateFullyAndStartAt``)."""


@dataclass(frozen=True, slots=True)
class Decides:
    """The controller's record of a partition epoch (``ReplicationControlManager``). None: it leaves that as it is.

    ``altered``: a leader has asked for it. ``unclean``: the line calls the election unclean. ``replicas``: the set of
    them, where it is another one.
    """

    version: int
    leader: int | None = None
    epoch: int | None = None
    isr: frozenset[int] | None = None
    replicas: frozenset[int] | None = None
    created: bool = False
    altered: bool = False
    unclean: bool = False


Said: TypeAlias = (
    "Loads | Leads | Follows | Appends | Truncates | Raises | Sets | Hears | Asks | Learns | Restarts | Decides"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line. ``at``: milliseconds, of whichever day; ``line``: from 1 on; ``thread``: empty where none is told."""

    at: int
    file: str
    line: int
    thread: str
    said: Said
