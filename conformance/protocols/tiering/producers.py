"""The producers of freely running brokers with tiered storage, and what an idempotent one must never see (KIP-98).

Whoever leads knows the last batch of each producer, whether it is local, or in remote storage alone: then from the
producers' snapshot that was uploaded beside the segment. So a log has a record once however often it is sent, and no
batch is refused that is the next one, or the last one once more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from ....impl.log.batch import encode_batch
from ....impl.log.records import Record
from ....impl.replica.producer_snapshot import decode_producers
from ....impl.wire.errors import ErrorCode
from .responses import Written, WrongAnswer

_RETRIED: Final = 2
"""So many of its last batches each may send again: of what is in remote storage leaders know the last alone."""
_SELDOM: Final = 6
"""The first of several sends each so many times."""
_BEGINS_ANEW: Final = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH}
)
"""What a producer is told whose batches a leader lacks, or has long had: it takes another producer id then."""


class _Producer:
    """One with a producer id, as of its last batches."""

    def __init__(self, number: int) -> None:
        self.id = number
        self.sequence = 0
        self.batches: deque[tuple[bytes, bytes]] = deque(maxlen=_RETRIED)
        """The last ones: the record of each, and its bytes."""


class Producers:
    """Of one run: ``count`` idempotent ones, which take turns; with none whoever sends has no producer id."""

    def __init__(self, count: int) -> None:
        self._all = [_Producer(1 + number) for number in range(count)]
        self._next_id = count
        self._turn = 0
        self._sent: dict[bytes, tuple[int, int]] = {}
        """By record, its producer id and its sequence number."""

    def batch(self, value: bytes, timestamp: int) -> bytes:
        """A batch of one record, of whoever is next."""
        record = [Record(value, timestamp=timestamp)]
        if not self._all:
            return encode_batch(record)
        producer = self._all[self._next()]
        data = encode_batch(record, producer_id=producer.id, producer_epoch=0, base_sequence=producer.sequence)
        self._sent[value] = producer.id, producer.sequence
        producer.sequence += 1
        producer.batches.append((value, data))
        return data

    def _next(self) -> int:
        """Who sends next: the first one seldom, so that its last batch comes to lie in remote storage alone."""
        turn, others = self._turn, len(self._all) - 1
        self._turn += 1
        return 1 + turn % others if others and turn % _SELDOM else 0

    def is_once(self, value: bytes) -> bool:
        """Whether a record is of an idempotent producer."""
        return value in self._sent

    def retried(self) -> list[tuple[bytes, bytes]]:
        """What may be sent again: records, and their batches."""
        return [sent for producer in sorted(self._all, key=lambda each: each.id) for sent in producer.batches]

    def heard(self, value: bytes, error: ErrorCode) -> None:
        """What became of a record; whoever is refused for its sequence begins anew under another producer id."""
        if error not in _BEGINS_ANEW:
            return
        for place, producer in enumerate(self._all):
            if any(value == sent for sent, _ in producer.batches):
                self._next_id += 1
                self._all[place] = _Producer(self._next_id)

    def check_refusal(self, here: Any, value: bytes, error: ErrorCode, written: Written, gone: int = 0) -> None:
        """A leader has refused a record for its sequence. Raises WrongAnswer where it is next in its log, or last.

        ``here``: its replica; ``gone``: below this its log may be deleted in remote storage, and it has not heard.
        """
        if error not in _BEGINS_ANEW or value not in self._sent:
            return
        log = here.log
        producer, sequence = self._sent[value]
        last, at = -1, -1
        for offset in range(log.log_start, log.end):
            found = self._sent.get(written.at(offset, log.epoch_for(offset)) or b"")
            if found is not None and found[0] == producer and found[1] > last:
                last, at = found[1], offset
        start = max(gone, log.log_start)
        is_deleted = at < start > 0  # what the log had of this producer is known still, or not any more
        if sequence in (last, last + 1) and not is_deleted:
            raise WrongAnswer(
                f"the batch of sequence {sequence} of an idempotent producer is refused with {error.name}, and the "
                f"last one that the leader's log has of it is that of sequence {last} at offset {at}"
            )

    def check_kept(self, data: bytes, lineage: Mapping[int, int], offsets: range, written: Written) -> None:
        """Hold what a broker keeps of producers below its local log start. Raises WrongAnswer.

        ``data``: the file; ``lineage``: the epochs of its log; ``offsets``: those below the local log start. The last
        batch that a producer has there is known.
        """
        try:
            entries = {each.producer_id: each for each in decode_producers(data)} if data else {}
        except ValueError as error:
            raise WrongAnswer(
                f"what is kept of producers below offset {offsets.stop} cannot be read: {error}"
            ) from None
        last: dict[int, tuple[int, int]] = {}
        for offset in offsets:
            found = self._sent.get(written.at(offset, lineage.get(offset, -1)) or b"")
            if found is not None:
                last[found[0]] = found[1], offset
        for producer, (sequence, offset) in last.items():
            kept = entries.get(producer)
            if kept is None or (kept.last_sequence, kept.last_offset) != (sequence, offset):
                of = None if kept is None else (kept.last_sequence, kept.last_offset)
                raise WrongAnswer(
                    f"of an idempotent producer {of} is kept as its last sequence and offset below the local log start "
                    f"{offsets.stop}, and it is {sequence, offset}"
                )


def check_once(node: int, lineage: Mapping[int, int], written: Written, producers: Producers) -> None:
    """Raises WrongAnswer where a log has a record of an idempotent producer twice.

    ``lineage``: the epochs of all of it, remote or not.
    """
    found: dict[bytes, int] = {}
    for offset, epoch in sorted(lineage.items()):
        value = written.at(offset, epoch)
        if value is not None and producers.is_once(value) and found.setdefault(value, offset) != offset:
            raise WrongAnswer(
                f"broker {node} has the record that an idempotent producer sent at offset {found[value]} once more at "
                f"offset {offset}"
            )
