"""What the nodes of a running cluster print of one partition, line by line as it comes: roles, the ISR, who fetches.

The loggers of ``traces/kafka/server_log/lines.py`` must be on. A broker prints what it does before it answers whoever
had it do so: who has the answer finds the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ....traces.kafka.server_log.entries import Asks, Decides, Follows, Hears, Leads, Learns, Said
from ....traces.kafka.server_log.words import decided, said_by

_LINE: Final = re.compile(r"\d\d:\d\d:\d\d\.\d{3} (?:\[[^\]]*\] )?[A-Z]+ ([\w.$]+) - (.*)")
_VERSION: Final = re.compile(r"partition epoch (\d+)|partitionEpoch=(\d+)")
_UPDATED: Final = re.compile(r"version updated to (\d+)")
_FETCHES: Final = re.compile(
    r"\[ReplicaFetcherManager on broker \d+\] Added fetcher to broker (\d+) for partitions (.*)"
)
_STOPS: Final = re.compile(r"\[ReplicaFetcherManager on broker \d+\] Removed fetcher for partitions Set\((.*)\)")
_FAILED: Final = re.compile(r"Partition (\S+) marked as failed")
_RESET: Final = "reset to the latest committed"
_NOT_SENT: Final = "OPERATION_NOT_ATTEMPTED"
"""Another request is under way, of which the answer is still to come."""
_STALE: Final = "newer partition epoch"
_ANSWERED: Final = ("ISR updated to", "Ignoring ", "Failed to alter")


class Tail:
    """What a node's output has gained since it was looked at last: logger and message of each whole line."""

    def __init__(self, path: Path) -> None:
        """From its end on."""
        self._path = path
        self._at = path.stat().st_size if path.exists() else 0
        self._rest = b""

    def lines(self) -> Iterator[tuple[str, str]]:
        """Each once."""
        if not self._path.exists() or self._path.stat().st_size == self._at:
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        self._at += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            found = _LINE.fullmatch(line.decode("utf-8", "replace"))
            if found is not None:
                yield found[1], found[2]


@dataclass
class Picture:
    """A broker's partition, by what it printed. Offsets, epochs and broker ids are Kafka's."""

    partition: str
    epoch: int = -1
    leader: int = -1
    leads: bool = False
    isr: frozenset[int] = frozenset()
    asked: frozenset[int] = frozenset()
    maximal: frozenset[int] = frozenset()
    version: int = -1
    """The partition epoch that it goes by."""
    replayed: int = -1
    """The partition epoch of the last record that it has replayed."""
    ends: dict[int, int] = field(default_factory=dict)
    """By follower, the end that its fetch has told since this broker took up its role last."""
    fetches: int | None = None
    """The broker that it fetches from."""
    begins: bool = False
    """Whether it follows a leader, and has not begun to fetch yet."""
    waits: bool = False
    """Whether it has asked the controller, and has not been answered."""
    answers: int = 0
    """How often it was answered, or looked away from an answer."""

    @property
    def hosted(self) -> bool:
        """Whether it has heard of the partition."""
        return self.epoch >= 0

    def take(self, logger: str, message: str) -> None:
        """Take in a line."""
        last = logger.rpartition(".")[2]
        if self.partition not in message:
            return
        if last == "ReplicaFetcherManager" or last == "ReplicaFetcherThread":
            self._fetcher(message)
            return
        if last == "logger" and ("state change for" in message or "starts at leader epoch" in message):
            found = _VERSION.search(message)
            if found is not None:
                self.replayed = max(self.replayed, int(found[1] or found[2]))
        said = said_by(last, message)
        if said is not None and said[0] == self.partition:
            self._take(said[1], message)
        if last == "Partition":
            if _RESET in message:
                self.asked = self.maximal = self.isr
            if any(word in message for word in _ANSWERED) and _NOT_SENT not in message:
                self.waits = False
                self.answers += 1

    def _take(self, said: Said, message: str) -> None:
        match said:
            case Leads():
                self.epoch, self.leads, self.ends = said.epoch, True, {}
                self.isr = self.asked = self.maximal = said.isr
                self.version = self.replayed
            case Follows():
                self.epoch, self.leads, self.leader = said.epoch, False, said.leader
                self.isr = self.asked = self.maximal = frozenset()
                self.fetches, self.begins = None, said.leader >= 0
                self.version = self.replayed
            case Learns() if _STALE not in message:
                self.isr = self.asked = self.maximal = said.isr
                updated = _UPDATED.search(message)
                self.version = int(updated[1]) if updated is not None else self.replayed
            case Asks():
                self.asked, self.maximal, self.waits = said.isr, self.isr | said.isr, True
            case Hears():
                self.ends[said.replica] = said.end
            case _:
                pass

    def _fetcher(self, message: str) -> None:
        added, removed, failed = _FETCHES.search(message), _STOPS.search(message), _FAILED.search(message)
        if added is not None:
            self.fetches, self.begins = int(added[1]), False
        elif removed is not None or failed is not None:
            self.fetches = None


class Decisions:
    """What the controller has decided of one partition, from its creation on."""

    def __init__(self, partition: str, tail: Tail) -> None:
        self._partition = partition
        self._tail = tail
        self._altered: set[str] = set()
        self.made: list[Decides] = []

    def look(self) -> list[Decides]:
        """Those that are new."""
        before = len(self.made)
        for logger, message in self._tail.lines():
            if logger.endswith("ReplicationControlManager") and self._partition in message:
                said = decided(message, self._altered)
                if said is not None and said[0] == self._partition and isinstance(said[1], Decides):
                    self.made.append(said[1])
        return self.made[before:]
