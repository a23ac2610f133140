"""Changes of dictionaries that an aborted metadata transaction takes back (KIP-868)."""

from __future__ import annotations

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Any = object()


class Journal:
    """Applies changes at once, and remembers what they replaced while a transaction is open."""

    def __init__(self) -> None:
        self._old: list[tuple[dict[Any, Any], Any, Any]] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun, and has not ended."""
        return self._old is not None

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        """Set a key."""
        if self._old is not None:
            self._old.append((table, key, table.get(key, _ABSENT)))
        table[key] = value

    def discard(self, table: dict[K, V], key: K) -> None:
        """Remove a key, if it is there."""
        if key in table:
            if self._old is not None:
                self._old.append((table, key, table[key]))
            del table[key]

    def begin(self) -> None:
        """Begin a transaction."""
        self._old = []

    def end(self) -> None:
        """Keep the changes of the open transaction."""
        self._old = None

    def abort(self) -> None:
        """Take back the changes of the open transaction."""
        for table, key, old in reversed(self._old or []):
            if old is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = old
        self._old = None
