"""What the cleaner has to know of a log before it reads its records: its times, its producers, its transactions.

All of it is in the headers of batches, read once each as the log grows. Kafka keeps the same in its time index,
producer snapshots and transaction index.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from ..log.log import Log
from .headers import ABORT, Header, headers

REMEMBERED = 5
"""Batches of each producer that a repeat is known by, as ``impl/replica/producers.py`` reads them from the log.

Kafka's cleaner keeps the last alone: the others are in its producer snapshots, of which there are none here.
"""


class Transaction(NamedTuple):
    """One that has ended: its producer, its first record, its marker, and whether it was aborted."""

    producer_id: int
    first: int
    marker: int
    aborted: bool


class LogFacts:
    """Of one log, up to ``end``. In memory: a few numbers for each producer, dirty segment and dirty transaction."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.end = log.log_start
        self._cuts = log.cuts
        self._times: dict[int, tuple[int, int]] = {}
        self._last: dict[int, deque[int]] = {}
        self._markers: dict[int, int] = {}
        self._open: dict[int, int] = {}
        self._ended: list[Transaction] = []

    def catch_up(self) -> None:
        """Look at what is new; at everything again after the log was cut. Raises ``CorruptLog`` and ``OSError``."""
        log = self._log
        if log.cuts != self._cuts:
            self.__init__(log)  # type: ignore[misc]
        for segment in log.segments:
            if segment.next_offset <= self.end:
                continue
            for header in headers(segment, self.end):
                if header.base_offset >= self.end:
                    self._note(header, segment.base_offset)
                    self.end = header.last_offset + 1
        there = {segment.base_offset for segment in log.segments}
        self._times = {base: times for base, times in self._times.items() if base in there}

    def _note(self, header: Header, base: int) -> None:
        first, largest = self._times.get(base, (header.timestamp, header.timestamp))
        self._times[base] = first, max(largest, header.timestamp)
        producer = header.producer_id
        if producer < 0:
            return
        if header.marker is None:
            self._last.setdefault(producer, deque(maxlen=REMEMBERED)).append(header.last_offset)
        else:
            self._markers[producer] = header.last_offset  # it tells the epoch that fences the producer's older ones
        if not header.transactional:
            return
        if header.marker is None:
            self._open.setdefault(producer, header.base_offset)
        elif producer in self._open:
            first = self._open.pop(producer)
            self._ended.append(Transaction(producer, first, header.last_offset, header.marker == ABORT))

    def times(self, base: int) -> tuple[int, int] | None:
        """First and largest timestamp of the batches of a segment that had records when it was looked at."""
        return self._times.get(base)

    def is_last_of_producer(self, producer: int, last_offset: int) -> bool:
        """Whether the batch that ends there is one that a repeat of this producer's is known by, or its last marker."""
        return last_offset in self._last.get(producer, ()) or self._markers.get(producer) == last_offset

    def last_stable(self, high_watermark: int) -> int:
        """The last stable offset (LSO): of the first transaction that is not decided below the high watermark."""
        undecided = [each.first for each in self._ended if each.marker >= high_watermark]
        return min((high_watermark, *undecided, *self._open.values()))

    def aborted(self) -> dict[int, list[Transaction]]:
        """For each producer its aborted transactions, in their order."""
        found: dict[int, list[Transaction]] = {}
        for each in self._ended:
            if each.aborted:
                found.setdefault(each.producer_id, []).append(each)
        return found

    def forget(self, cleaned: int) -> None:
        """The log is cleaned up to ``cleaned``: of aborted transactions below there are no records left."""
        self._ended = [each for each in self._ended if each.marker >= cleaned]
