"""The winner of each key among the records that are to be cleaned, in memory of a fixed size (``SkimpyOffsetMap``).

An open hash table. A slot holds a key's digest of 16 bytes, the winner's offset in 8, and, for a strategy that compares
more than offsets, its rank in 8 more. KIP-280 counts the 8 and 16 bytes behind the digest. Keys of one digest are one
key: Kafka takes MD5, of which two such keys can be made at will; BLAKE2b of the same size is no larger, and none are
known. That a record has no header is told by the sign of the offset, so that it costs nothing.
"""

from __future__ import annotations

from hashlib import blake2b

from .strategy import ABSENT, NO_RANK, Order

DIGEST_BYTES = 16
OFFSET_BYTES = 8
RANK_BYTES = 8
TAIL = -1
"""The offset under which a key is noted that has no record among those to be cleaned, and one behind them."""

_SHIFT = 2
"""Offsets are stored with this added: 0 is an empty slot, 1 is ``TAIL``."""


class OffsetMap:
    """At most ``load_factor`` of the slots that fit into ``memory`` bytes are taken. Raises ``ValueError`` for none."""

    def __init__(self, memory: int, *, ranked: bool, load_factor: float = 0.9) -> None:
        self.ranked = ranked
        self.slots = memory // self.slot_bytes
        self.capacity = int(self.slots * load_factor)
        """How many keys it holds."""
        if self.capacity < 1:
            raise ValueError(
                f"{memory} bytes hold no key: one takes {self.slot_bytes} at a load factor of {load_factor}"
            )
        self.clear()

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot."""
        return DIGEST_BYTES + self.payload_bytes

    @property
    def payload_bytes(self) -> int:
        """Bytes of a slot behind the digest: what KIP-280 counts."""
        return OFFSET_BYTES + (RANK_BYTES if self.ranked else 0)

    @property
    def memory(self) -> int:
        """Bytes of all slots."""
        return len(self._digests) + self._offsets.nbytes + self._ranks.nbytes

    def clear(self) -> None:
        """Forget everything."""
        self.size = 0
        """How many keys it has."""
        self._digests = bytearray(DIGEST_BYTES * self.slots)
        self._offsets = memoryview(bytearray(OFFSET_BYTES * self.slots)).cast("q")
        self._ranks = memoryview(bytearray(RANK_BYTES * (self.slots if self.ranked else 0))).cast("q")

    def _slot(self, key: bytes) -> tuple[int, bytes]:
        """The slot that has the key, or the empty one that it would take; and its digest."""
        digest = blake2b(key, digest_size=DIGEST_BYTES).digest()
        slots, offsets, digests = self.slots, self._offsets, self._digests
        slot = int.from_bytes(digest[:8], "little") % slots
        while offsets[slot]:
            at = slot << 4
            if digests[at : at + DIGEST_BYTES] == digest:
                break
            slot += 1
            if slot == slots:
                slot = 0
        return slot, digest

    def put(self, key: bytes, rank: int, offset: int) -> bool:
        """Note a record, which counts if it wins against the one that is there; ``False`` where there is no room."""
        slot, digest = self._slot(key)
        if not self._offsets[slot]:
            if self.size == self.capacity:
                return False
            self.size += 1
            self._digests[slot * DIGEST_BYTES : (slot + 1) * DIGEST_BYTES] = digest
        elif self._order(slot) >= (rank, offset):
            return True
        self._set(slot, rank, offset)
        return True

    def get(self, key: bytes) -> Order | None:
        """Rank and offset of the key's winner; ``None`` for a key that is not here."""
        slot, _ = self._slot(key)
        return self._order(slot) if self._offsets[slot] else None

    def _order(self, slot: int) -> Order:
        stored = self._offsets[slot]
        if not self.ranked:
            return NO_RANK, stored - _SHIFT
        return (ABSENT, -stored - _SHIFT) if stored < 0 else (self._ranks[slot], stored - _SHIFT)

    def _set(self, slot: int, rank: int, offset: int) -> None:
        if self.ranked and rank == ABSENT:
            self._offsets[slot] = -(offset + _SHIFT)
            return
        self._offsets[slot] = offset + _SHIFT
        if self.ranked:
            self._ranks[slot] = rank
