"""What a consumer makes of a compacted topic: the value of each key, by the same strategy as the broker's.

"The Consumer should be aware and follow the same compact strategy as in broker to avoid inconsistency on what records
to keep" (KIP-280, "Recommendations"). A consumer that takes the last value of each key, as is usual, is right under
``offset`` alone. With this table it ends in the same state whatever the cleaner has removed meanwhile, and on whichever
replica.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from ..log.records import Headers
from .strategy import Order, Strategy


class KeyedRecord(Protocol):
    """A record as a log or a consumer gives it."""

    @property
    def offset(self) -> int: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...

    @property
    def timestamp(self) -> int: ...

    @property
    def headers(self) -> Headers: ...


class Table(Mapping[bytes, bytes]):
    """The values of the keys that are not deleted, of one partition.

    A deleted key is remembered with its tombstone's rank and offset, for as long as ``forget`` does not say otherwise:
    a record that loses to the tombstone may come later, and must not bring the key back.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self._winners: dict[bytes, tuple[Order, bytes | None]] = {}

    def apply(self, record: KeyedRecord) -> bool:
        """Take in a record; gives whether it is its key's winner now. One without a key never is: the cleaner drops it.

        The order of records does not matter, and a record may come twice.
        """
        if record.key is None:
            return False
        order = self.strategy.rank(record.timestamp, record.headers), record.offset
        known = self._winners.get(record.key)
        if known is not None and order < known[0]:
            return False
        self._winners[record.key] = order, record.value
        return True

    def apply_all(self, records: Iterable[KeyedRecord]) -> None:
        """Take in records."""
        for record in records:
            self.apply(record)

    def forget(self, offset: int) -> int:
        """Forget the deleted keys whose tombstones lie below ``offset``, as the cleaner has; gives how many.

        A record that comes later and would have lost to one of them then counts, as for a reader from the start.
        """
        gone = [key for key, (order, value) in self._winners.items() if value is None and order[1] < offset]
        for key in gone:
            del self._winners[key]
        return len(gone)

    def winner(self, key: bytes) -> Order | None:
        """Rank and offset of a key's winner, a tombstone's too."""
        known = self._winners.get(key)
        return known[0] if known is not None else None

    def __getitem__(self, key: bytes) -> bytes:
        value = self._winners[key][1]
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[bytes]:
        return (key for key, (_, value) in self._winners.items() if value is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
