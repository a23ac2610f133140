"""A set of packed keys that numbers its members in the order in which they came.

Open addressing over NumPy arrays: a slot holds a member's number, and every comparison is of whole keys. The
64-bit fingerprint only chooses the slot, so a collision of fingerprints costs a probe and never a wrong answer.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from .packing import Words

Numbers = npt.NDArray[np.int32]
"""Member numbers (positions in the order of insertion)."""

Kind = TypeVar("Kind", bound=np.generic)

_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)
_EMPTY = np.int32(-1)
_REHASHED = 1 << 16
"""So many members at once find their slots in a larger table."""

INSERTED = 160
"""Bytes of temporary arrays for each key that is inserted, its own words excepted."""

_RETURNED = 32 << 20
"""An array of so many bytes leaves no pages behind, which a smaller one may (see ``memory.keep_pages``)."""

_AT_ONCE = 1 << 16
"""From so many members on, an array is made as large as it may ever become."""


def grown(array: npt.NDArray[Kind], used: int, count: int, most: int) -> npt.NDArray[Kind]:
    """An array with room for ``count`` entries along its first axis, of which the first ``used`` are as they were.

    A page to which nothing was written takes no memory. So a large array gets the addresses of ``most`` entries at
    once, and is never copied again, which would take its memory twice. Where there are not so many addresses, or
    ``most`` is less than what is needed, it becomes twice as large.
    """
    if count <= len(array):
        return array
    large = max(count, 2 * len(array))
    if _AT_ONCE <= large < most:
        try:
            larger = np.empty((most, *array.shape[1:]), dtype=array.dtype)
        except MemoryError:
            larger = np.empty((large, *array.shape[1:]), dtype=array.dtype)
    else:
        larger = np.empty((large, *array.shape[1:]), dtype=array.dtype)
    larger[:used] = array[:used]
    return larger


def _differ(keys: Words, others: Words) -> npt.NDArray[np.bool_]:
    """Which of these keys, shape (n, words), are not the ones beside them."""
    differ: npt.NDArray[np.bool_] = keys[:, 0] != others[:, 0]
    for word in range(1, keys.shape[1]):
        differ |= keys[:, word] != others[:, word]
    return differ


class StateTable:
    """Distinct keys of ``words`` 64-bit words each, at most 2**31 - 2 of them.

    ``most``: how many it is made for (see ``grown``); there may be more. ``dense``: whether it grows to half as many
    slots as it would, which makes it a tenth slower.
    """

    def __init__(self, words: int, most: int = 0) -> None:
        # A key's words side by side: to compare one is to fetch one line of memory.
        self._keys = np.empty((1 << 10, words), dtype=np.uint64)
        self._slots = np.full(1 << 12, _EMPTY, dtype=np.int32)
        self._most = most
        self.count = 0
        self.dense = False

    @property
    def keys(self) -> Words:
        """All members, shape (words, count), in the order of insertion. A view: valid until the next insertion."""
        return self._keys[: self.count].T

    @property
    def bytes(self) -> int:
        """The memory held, in bytes."""
        return self.keys.nbytes + self._slots.nbytes

    def needs(self, more: int) -> int:
        """How many bytes more it takes at most, for a moment, to insert so many keys, all of them new."""
        words, count = self._keys.shape[1], self.count + more
        needed = more * (8 * words + INSERTED)
        if count > len(self._keys) and not _AT_ONCE <= max(count, 2 * len(self._keys)) < self._most:
            needed += 8 * words * self.count
        if 2 * count > self._slots.size:
            # The former ones are given up first, and where they are large their pages at once.
            former = self._slots.nbytes if self._slots.nbytes >= _RETURNED else 0
            needed += 4 * self._slots_for(count) - former + min(self.count, _REHASHED) * INSERTED
        return needed

    def copy(self) -> StateTable:
        """A table of the same members, which can grow by itself."""
        other = StateTable(self._keys.shape[1], self._most)
        other._keys, other._slots, other.count = self._keys[: self.count].copy(), self._slots.copy(), self.count
        other.dense = self.dense
        return other

    def _home(self, keys: Words) -> npt.NDArray[np.int64]:
        """The slot at which the search for each key starts."""
        mixed = keys[0] * np.uint64(_ODD[0])
        for word, odd in zip(keys[1:], _ODD[1:] * len(keys), strict=False):
            mixed ^= mixed >> np.uint64(29)
            mixed += word
            mixed *= np.uint64(odd)
        mixed ^= mixed >> np.uint64(32)
        mixed *= np.uint64(_ODD[-1])
        bits = self._slots.size.bit_length() - 1
        homes: npt.NDArray[np.int64] = (mixed >> np.uint64(64 - bits)).view(np.int64)
        return homes

    def insert(self, keys: Words) -> Numbers:
        """Add keys, shape (words, n). Returns the positions in ``keys`` of those that are new, in ascending order.

        Of equal new keys the first position counts. The new members' numbers are consecutive from the former count.
        """
        first, last = self.count, self.count + keys.shape[1]
        self._reserve(last)
        # They stand behind the members until it is known which are new: whatever a slot holds is compared alike.
        self._keys[first:last] = keys.T
        at = self._home(keys)
        fresh = self._claim(at, first)
        if fresh.size < keys.shape[1]:
            self._keys[first : first + fresh.size] = self._keys.take(fresh + first, axis=0)
            self._slots[at.take(fresh)] = np.arange(first, first + fresh.size, dtype=np.int32)
        self.count += fresh.size
        return fresh

    def _claim(self, at: npt.NDArray[np.int64], first: int) -> Numbers:
        """Find or take a slot for each key from the number ``first`` on, searching from the slot ``at``, which is set.

        Returns the positions of those that have taken one, in ascending order; it holds their number.
        """
        mask = self._slots.size - 1
        fresh: list[Numbers] = []
        # None: all of them, which need not be gathered.
        rows: Numbers | None = None
        slot, mine = at, np.arange(first, first + at.size, dtype=np.int32)
        while slot.size:
            held = self._slots.take(slot)
            empty = np.flatnonzero(held == _EMPTY)
            if empty.size:
                # Written in descending order, so that of several rows that want one slot the first one gets it.
                wanted, claimed = slot.take(empty), mine.take(empty)
                self._slots[wanted[::-1]] = claimed[::-1]
                owner = self._slots.take(wanted)
                fresh.append(claimed[owner == claimed])
                held[empty] = owner
            asking = self._keys[first : first + at.size] if rows is None else self._keys.take(mine, axis=0)
            apart = np.flatnonzero(_differ(asking, self._keys.take(held, axis=0)))
            mine = mine.take(apart)
            rows = mine - np.int32(first)
            slot = (slot.take(apart) + 1) & mask
            at[rows] = slot
        if not fresh:
            return np.empty(0, dtype=np.int32)
        return np.sort(np.concatenate(fresh)) - np.int32(first)

    def _place(self, at: npt.NDArray[np.int64], numbers: Numbers) -> None:
        """Give members slots, searching from ``at``: no two of them are equal, so that nothing is compared."""
        mask = self._slots.size - 1
        while at.size:
            empty = np.flatnonzero(self._slots.take(at) == _EMPTY)
            wanted, claimed = at.take(empty), numbers.take(empty)
            self._slots[wanted] = claimed
            left = np.ones(at.size, dtype=np.bool_)
            left[empty[self._slots.take(wanted) == claimed]] = False
            at, numbers = (at[left] + 1) & mask, numbers[left]

    def _reserve(self, count: int) -> None:
        self._keys = grown(self._keys, self.count, count, self._most)
        if 2 * count > self._slots.size:
            # The members' keys say where they go: the former slots need not be there beside the new ones.
            self._slots = np.empty(0, dtype=np.int32)
            self._slots = np.full(self._slots_for(count), _EMPTY, dtype=np.int32)
            for start in range(0, self.count, _REHASHED):
                numbers = np.arange(start, min(start + _REHASHED, self.count), dtype=np.int32)
                self._place(self._home(np.ascontiguousarray(self._keys[start : start + numbers.size].T)), numbers)

    def _slots_for(self, count: int) -> int:
        """How many slots there are for so many members: a power of two, of which few are taken at first."""
        return 1 << ((2 * count).bit_length() if self.dense else (4 * count - 1).bit_length())
