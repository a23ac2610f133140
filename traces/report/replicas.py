"""The replicas of a cluster's partitions side by side, as the terminal, the page and JSON present them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

COLUMNS: Final = ("partition", "leader", "epoch", "ISR", "broker", "last epoch", "log start", "HW", "LEO", "log")
"""Headings, in the order of ``ReplicaRow.cells``. ``epoch`` is the leader's, ``last epoch`` the replica's."""

NUMBERS: Final = (2, 4, 5, 6, 7, 8)
"""The columns that hold numbers."""

MARK: Final = "*"
"""Stands behind a value that differs from the reference replica's."""


@dataclass(frozen=True)
class ReplicaRow:
    """One replica of one partition.

    Args:
        partition: ``TOPIC-NUMBER``.
        broker: Node id, or the folder's path if that is unknown.
        leader: The elected leader, -1 for none; None if no metadata log is among the directories.
        leader_epoch: The leader epoch of that election.
        isr: The ISR by the newest metadata log; None without such a log.
        epoch: The newest leader epoch of the replica's own files; None if they have none.
        log_start: Log start offset.
        high_watermark: Checkpointed high watermark; None without a checkpoint.
        log_end: LEO.
        log: The log compared with the reference replica's, in words.
        differs: Names of the fields that differ from the reference replica's.
        first: Whether the row is the first of its partition, which shows leader and ISR.
    """

    partition: str
    broker: int | str
    leader: int | None
    leader_epoch: int | None
    isr: tuple[int, ...] | None
    epoch: int | None
    log_start: int
    high_watermark: int | None
    log_end: int
    log: str
    differs: frozenset[str]
    first: bool

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, one cell a column; ``*`` marks a value that differs."""
        leader = "" if self.leader is None else "none" if self.leader < 0 else str(self.leader)
        epoch = "" if self.leader_epoch is None else str(self.leader_epoch)
        isr = "" if self.isr is None else ",".join(map(str, self.isr)) or "none"
        return (
            *((self.partition, leader, epoch, isr) if self.first else ("", "", "", "")),
            str(self.broker),
            self._marked("epoch", self.epoch),
            self._marked("log_start", self.log_start),
            self._marked("high_watermark", self.high_watermark),
            self._marked("log_end", self.log_end),
            self.log,
        )

    def _marked(self, name: str, value: int | None) -> str:
        return ("-" if value is None else str(value)) + (MARK if name in self.differs else " ")

    def to_json(self) -> dict[str, Any]:
        """All fields but ``first``."""
        return {
            "partition": self.partition,
            "leader": None if self.leader is None or self.leader < 0 else self.leader,
            "leader_epoch": self.leader_epoch,
            "isr": None if self.isr is None else list(self.isr),
            "broker": self.broker,
            "epoch": self.epoch,
            "log_start": self.log_start,
            "high_watermark": self.high_watermark,
            "log_end": self.log_end,
            "log": self.log,
            "differs": sorted(self.differs),
        }


@dataclass(frozen=True)
class ReplicaTable:
    """The replicas of a cluster.

    Args:
        rows: All replicas, partition by partition; partitions with findings first, then those that differ.
        shown: So many of the first rows are worth a look: their partitions have a finding or differ.
        equal: The names of the partitions that ``shown`` leaves out.
    """

    rows: tuple[ReplicaRow, ...] = ()
    shown: int = 0
    equal: tuple[str, ...] = ()

    def to_json(self) -> list[dict[str, Any]]:
        """Every row, those of equal partitions too."""
        return [row.to_json() for row in self.rows]
