"""Named timers: what a node wants to do later."""

from __future__ import annotations

import heapq

from ..wire.messages import TopicPartition

Key = tuple[str] | tuple[str, TopicPartition]
"""``("fetch", partition)``, ``("isr", partition)``, ``("produce", partition)``, ``("delete", partition)``,
``("high-watermarks",)``, ``("recovery-points",)``; ``("remote", partition)`` where the partition has a remote part."""

_STALE = 64
"""Entries of the heap that are let go before it is first made anew."""


class Timers:
    """Deadlines by key, in the clock's milliseconds. Of equal deadlines the one that was set first comes first."""

    def __init__(self) -> None:
        self._deadlines: dict[Key, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._number = 0

    def set(self, key: Key, deadline: int) -> None:
        """Let the timer run off at ``deadline``, and not when it was to before."""
        self._number += 1
        entry = deadline, self._number
        self._deadlines[key] = entry
        heap = self._heap
        if len(heap) > _STALE + 4 * len(self._deadlines):
            heap[:] = [(at, number, name) for name, (at, number) in self._deadlines.items() if name != key]
            heapq.heapify(heap)
        heapq.heappush(heap, (*entry, key))

    def cancel(self, key: Key) -> None:
        """Let it not run off; nothing where it is not set."""
        self._deadlines.pop(key, None)

    def get(self, key: Key) -> int | None:
        """When it runs off."""
        entry = self._deadlines.get(key)
        return None if entry is None else entry[0]

    def keys(self) -> list[Key]:
        """The timers that are set, sorted."""
        return sorted(self._deadlines)

    def deadline(self) -> int | None:
        """The first deadline of all."""
        heap = self._heap
        while heap:
            at, number, key = heap[0]
            if self._deadlines.get(key) == (at, number):
                return at
            heapq.heappop(heap)
        return None

    def due(self, now: int) -> list[Key]:
        """Take away those whose deadline has come, in order."""
        keys = []
        while (at := self.deadline()) is not None and at <= now:
            key = heapq.heappop(self._heap)[2]
            del self._deadlines[key]
            keys.append(key)
        return keys
