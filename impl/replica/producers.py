"""What the log says of its idempotent producers (``ProducerStateManager`` in Kafka, KIP-98).

All of it is in the batches, so nothing is stored: whoever leads reads what it has not looked at yet. So it outlives
failovers, and a follower spends nothing on it. Of batches that are in remote storage alone a snapshot is kept beside
the log, as it was where its local records begin.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..log.batch import Batch
from ..log.errors import CorruptLog
from ..log.log import Log
from ..log.segment import REPLACE
from ..wire.errors import ErrorCode
from .producer_snapshot import ProducerEntry, decode_producers, encode_producers

REMEMBERED = 5
"""Batches of each producer that a repeat is known by: as many as a producer may have on their way."""
_SEQUENCES = 1 << 31
"""Sequence numbers go around here."""
_READ_BYTES = 1 << 20


class Sent(NamedTuple):
    """A batch of a producer in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int


@dataclass(slots=True)
class Producer:
    """One producer: its epoch, and its last batches in that epoch."""

    epoch: int
    sent: deque[Sent] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


def _last_sequence(batch: Batch) -> int:
    return (batch.base_sequence + batch.last_offset - batch.base_offset) % _SEQUENCES


class Producers:
    """All producers of a partition, as of the batches below ``end``."""

    def __init__(self) -> None:
        self.end = 0
        self._producers: dict[int, Producer] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def catch_up(self, log: Log, up_to: int | None = None) -> None:
        """Look at the batches that were appended since the last time, below ``up_to`` alone. Raises like ``Log.read``.

        ``CorruptLog`` where what is kept of the producers below the local records cannot be read.
        """
        if self.end < log.local_start:
            self._begin_at(log)
        end = log.end if up_to is None else min(up_to, log.end)
        while self.end < end:
            batches = log.read(self.end, _READ_BYTES, end)
            self.follow(batches)
            self.end = batches[-1].next_offset if batches else end

    def _begin_at(self, log: Log) -> None:
        """Know what was known where the log's local records begin: it was written when those before were moved away."""
        self._producers.clear()
        self.end = log.local_start
        if log.log_start < log.local_start:
            try:
                self.know(log.read_producers())
            except ValueError as error:
                raise CorruptLog(str(error), log.folder, None, REPLACE) from None

    def know(self, data: bytes) -> None:
        """Take up what ``snapshot`` gave, or nothing. Raises ``ValueError`` for what is no such file."""
        for entry in decode_producers(data) if data else ():
            first = (entry.last_sequence - entry.offset_delta) % _SEQUENCES
            sent = Sent(first, entry.last_sequence, entry.last_offset - entry.offset_delta, entry.last_offset)
            self._producers[entry.producer_id] = Producer(entry.epoch, deque([sent], REMEMBERED))

    def follow(self, batches: Iterable[Batch]) -> None:
        """Go on behind what is known, by batches of the log."""
        for batch in batches:
            self._note(batch, batch.base_offset)

    def snapshot(self) -> bytes:
        """What is known at ``end``, for a file."""
        return encode_producers(
            ProducerEntry(
                producer_id, each.epoch, last.last_sequence, last.last_offset, last.last_offset - last.base_offset
            )
            for producer_id, each in sorted(self._producers.items())
            for last in [each.sent[-1]]
        )

    def truncated(self, end: int) -> None:
        """The log was cut back to ``end``: what was known of later batches is forgotten, with all the rest."""
        if end < self.end:
            self.end = 0
            self._producers.clear()

    def appended(self, batches: list[Batch], base_offset: int) -> None:
        """The leader has appended these at ``base_offset``; they still have the producer's own offsets."""
        if self.end != base_offset:
            return  # not caught up: they are read with the others
        for batch in batches:
            self._note(batch, self.end)
            self.end += batch.last_offset - batch.base_offset + 1

    def _note(self, batch: Batch, base_offset: int) -> None:
        if batch.producer_id < 0 or batch.is_control:
            return
        producer = self._producers.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            producer = self._producers[batch.producer_id] = Producer(batch.producer_epoch)
        last_offset = base_offset + batch.last_offset - batch.base_offset
        producer.sent.append(Sent(batch.base_sequence, _last_sequence(batch), base_offset, last_offset))

    def check(self, batch: Batch, log_start: int) -> Sent | ErrorCode:
        """What to do with a batch that a producer with an id sends: append it (NONE), or why not.

        A ``Sent`` is where the batch is already: it is a repeat of one of the last five. The producer's first batch has
        sequence 0, unless its earlier ones may have been deleted from the front of the log; each epoch begins at 0.
        """
        producer = self._producers.get(batch.producer_id)
        first = batch.base_sequence
        if producer is None:
            return ErrorCode.NONE if first == 0 or log_start > 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if batch.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if batch.producer_epoch > producer.epoch:
            return ErrorCode.NONE if first == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        for sent in producer.sent:
            if sent.first_sequence == first and sent.last_sequence == _last_sequence(batch):
                return sent
        ahead = (first - producer.sent[-1].last_sequence - 1) % _SEQUENCES
        if ahead == 0:
            return ErrorCode.NONE
        behind = ahead >= _SEQUENCES // 2
        return ErrorCode.DUPLICATE_SEQUENCE_NUMBER if behind else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
