"""What the clients of a running quorum append, and what it comes to: keys and values behind each record.

A record has one of a few keys. Now and then it has no value, which deletes its key, or no key, which changes nothing.
No two are alike: where there is no value, a header tells them apart.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from ....impl.log.records import Record, StoredRecord

State: TypeAlias = Mapping[bytes, bytes]
"""What a state machine holds."""
Content: TypeAlias = tuple[bytes | None, bytes | None, object]
"""Value, key and headers of a record."""

_KEYS: Final = (b"a", b"b", b"c")
_KEYLESS: Final = 10
"""One of so many records has no key."""
_TOMBSTONES: Final = 3
"""One of so many has no value."""


class Appended:
    """Of one run. A record is known by its epoch and offset: whoever has it, has all that was before it there."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._contents: dict[tuple[int, int], Content] = {}
        self._states: dict[tuple[int, int], State] = {}

    def append(self, epoch: int, offset: int, records: int, last_epoch: int) -> Sequence[Record]:
        """Draw ``records`` that a client appends in ``epoch`` from ``offset`` on, behind one of ``last_epoch``."""
        before = self.holds(last_epoch, offset)
        state = None if before is None else dict(before)
        drawn: list[Record] = []
        for at in range(offset, offset + records):
            record = self._draw(epoch, at)
            drawn.append(record)
            self._contents[epoch, at] = record.value, record.key, record.headers
            if state is None:
                continue
            if record.key is not None:
                state.pop(record.key, None)
                if record.value is not None:
                    state[record.key] = record.value
            self._states[epoch, at] = dict(state)
        return drawn

    def _draw(self, epoch: int, offset: int) -> Record:
        name = f"{epoch} {offset}".encode()
        key, value = divmod(zlib.crc32(f"{self._seed} {epoch} {offset}".encode()), 1 << 16)
        chosen = None if key % _KEYLESS == 0 else _KEYS[key % len(_KEYS)]
        if value % _TOMBSTONES:
            return Record(name, chosen)
        return Record(None, chosen, headers=(("name", name),))

    def is_appended(self, epoch: int, offset: int, content: Content) -> bool:
        """Whether a client has appended this record there."""
        return self._contents.get((epoch, offset)) == content

    def holds(self, epoch: int, end: int) -> State | None:
        """What the records below ``end`` come to, the last of which is of ``epoch``; None: there is no such record."""
        return self._states.get((epoch, end - 1)) if end else {}


def content_of(record: StoredRecord) -> Content:
    """What tells a record from others."""
    return record.value, record.key, record.headers
