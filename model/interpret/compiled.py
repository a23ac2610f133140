"""The compiled interpreter: a whole search in C (``compiled_text.py``), and its memory in the hands of who runs it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..core.ground import System
from .compiler import Compiler, compiled
from .packing import Packing, Words

PARTS: Final = 4
"""Tables that the states are split among by hash, whatever the number of threads; no more threads than these."""

LARGEST: Final = 1 << 30
"""The most slots of a part."""

FEWEST: Final = 1 << 14
"""The slots that a part has at first."""


class Outcome(IntEnum):
    """Why ``Compiled.advance`` came back (the enumeration of ``search.c``)."""

    LEVEL = 0
    TIME = 1
    ROOM = 2
    BROKEN = 3
    TOO_MANY = 4


@dataclass(frozen=True)
class Part:
    """One of the tables: members, how many there is room for, slots, successors that wait, the level's rest and end."""

    count: int
    room: int
    slots: int
    incoming: int
    at: int
    end: int


@dataclass(frozen=True)
class Counted:
    """What the level came to: transitions and new states by instance, and how often each witness was met."""

    transitions: list[int]
    discoveries: list[int]
    witnesses: list[int]


def room_in(slots: int) -> int:
    """Members for which so many slots are enough (``grow`` in ``search.c``)."""
    return slots * 3 // 4


class Compiled:
    """A search over a system, compiled. A member's number is its place in its part, times ``PARTS``, and the part.

    ``text`` is the system's own, by ``text_of``. Raises BadInput where it cannot be compiled or loaded.
    """

    def __init__(self, system: System, compiler: Compiler, text: str) -> None:
        self.system = system
        self.packing = Packing(system.layout)
        self._library = library = compiled(compiler, text)
        pointer, number = ctypes.c_void_p, ctypes.c_uint64
        library.start.argtypes, library.start.restype = (number, pointer), pointer
        library.finish.argtypes, library.finish.restype = (pointer,), None
        library.fixed_bytes.argtypes, library.fixed_bytes.restype = (), number
        library.grow.argtypes = (pointer, ctypes.c_uint, ctypes.c_uint32)
        library.seed.argtypes, library.seed.restype = (pointer, pointer, pointer, number, number, pointer), None
        library.advance.argtypes = (pointer, ctypes.c_uint, ctypes.c_double)
        library.next_level.argtypes, library.next_level.restype = (pointer,), None
        library.told.argtypes, library.told.restype = (pointer, pointer), None
        library.counted.argtypes, library.counted.restype = (pointer, pointer, pointer, pointer), None
        library.broken.argtypes = library.escaped.argtypes = (pointer, pointer)
        library.looked_up.argtypes, library.looked_up.restype = (pointer, ctypes.c_uint32, pointer), ctypes.c_uint32
        self._search: int | None = None

    @property
    def member_bytes(self) -> int:
        """Bytes of a member: its key, and the number of one that leads to it."""
        return 8 * self.packing.words + 4

    @property
    def fixed_bytes(self) -> int:
        """Bytes that a search takes at most beside its members and their slots."""
        return int(self._library.fixed_bytes())

    def start(self, most: int, wanted: tuple[str, ...]) -> None:
        """Begin a search without members, which is to end above ``most``. Raises MemoryError."""
        flags = np.array([int(name in wanted) for name in self.system.invariants] or [0], dtype=np.uint8)
        self._search = self._library.start(most, _at(flags))
        if self._search is None:
            raise MemoryError

    def close(self) -> None:
        """Give back all memory."""
        if self._search is not None:
            self._library.finish(self._search)
            self._search = None

    def parts(self) -> list[Part]:
        """How each part is."""
        out = np.zeros((PARTS, 6), dtype=np.uint64)
        self._library.told(self._search, _at(out))
        return [Part(*row) for row in out.tolist()]

    def grow(self, part: int, slots: int) -> None:
        """Give a part so many slots, and room for three members to four of them. Raises MemoryError."""
        if self._library.grow(self._search, part, slots):
            raise MemoryError

    def seed(self, keys: Words, parents: npt.NDArray[np.int32], begins: int) -> None:
        """Take in members, shape (words, n), in the order in which they were found; there is room for n in each part.

        ``parents``: the place of one that leads to each, -1 for none. Those from ``begins`` on are the next level.
        """
        side_by_side = np.ascontiguousarray(keys.T)
        parents = np.ascontiguousarray(parents, dtype=np.int32)
        named = np.empty(parents.size, dtype=np.uint32)
        self._library.seed(self._search, _at(side_by_side), _at(parents), parents.size, begins, _at(named))

    def advance(self, threads: int, seconds: float) -> Outcome:
        """Go on with the level; Python's lock is free meanwhile. What is found does not depend on ``threads``."""
        return Outcome(self._library.advance(self._search, threads, seconds))

    def next_level(self) -> None:
        """Begin the level of all that was found since the last one began."""
        self._library.next_level(self._search)

    def counted(self) -> Counted:
        """What the level came to."""
        instances, witnesses = len(self.system.instances), len(self.system.witnesses)
        arrays = [np.zeros(max(size, 1), dtype=np.uint64) for size in (instances, instances, witnesses)]
        self._library.counted(self._search, *map(_at, arrays))
        transitions, discoveries, met = (array.tolist() for array in arrays)
        return Counted(transitions, discoveries, met[:witnesses])

    def broken(self) -> tuple[int, int] | None:
        """The first member of the level that breaks an invariant, and that invariant's number; None where none does."""
        return self._first(self._library.broken)

    def escaped(self) -> tuple[int, int] | None:
        """The first with a successor that has a value outside of its domain, and the instance's number; or None."""
        return self._first(self._library.escaped)

    def _first(self, asked: Any) -> tuple[int, int] | None:
        out = np.zeros(2, dtype=np.uint32)
        return (int(out[0]), int(out[1])) if asked(self._search, _at(out)) else None

    def chain(self, number: int) -> list[npt.NDArray[np.uint64]]:
        """Keys, shape (words,) each, of members each of which leads to the next: from the initial state to that one."""
        found = []
        while number != 0xFFFFFFFF:
            key = np.zeros(self.packing.words, dtype=np.uint64)
            number = int(self._library.looked_up(self._search, number, _at(key)))
            found.append(key)
        return found[::-1]


def _at(array: npt.NDArray[Any]) -> int:
    return int(array.ctypes.data)
