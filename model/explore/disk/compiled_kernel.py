"""A level in C: ``disk.c`` behind the text of the system, in the table of which Python has the memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...interpret.compiled_text import text_of
from ...interpret.compiler import Compiler, compiled
from ...interpret.packing import Packing
from .. import memory
from ..batch import Spent
from ..result import Query, Watch
from .kernel import Tally
from .order import Actions, Rows

SPARE: Final = 8 << 20
"""Bytes for what else is taken meanwhile: chunks of files, and what Python and the loader need."""

FILLED: Final = 0.75
"""The share of slots that are taken at most."""

_OVER: Final = 1 << 12
"""Slots past the last one in which a search begins: it does not go on at the first."""

_LAID: Final = 1 << 16
"""Candidates that are given out at once."""

Array = npt.NDArray[Any]


@cache
def _own_text() -> str:
    return files(__package__).joinpath("disk.c").read_text(encoding="utf-8")


def kernel_text(query: Query) -> str:
    """The text of a system's levels in C."""
    return f"{text_of(query.system)}\n{_own_text()}"


def _at(array: Array) -> int:
    return int(array.ctypes.data)


class CompiledKernel:
    """A level by compiled code. Raises BadInput where it cannot be compiled or loaded, Spent without memory."""

    name = "compiled"

    def __init__(self, query: Query, watch: Watch, compiler: Compiler, text: str) -> None:
        self.watch = watch
        self._limit = query.limits.max_memory
        self.words = Packing(query.system.layout).words
        self._instances = len(query.system.instances)
        self._witnesses = len(query.system.witnesses)
        if not watch.grants(SPARE + 2 * len(text)):
            raise Spent(watch.too_much)
        self._library = library = compiled(compiler, text)
        pointer, number, small = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32
        for name, result, arguments in (
            ("level_start", pointer, (pointer, pointer)),
            ("level_finish", None, (pointer,)),
            ("level_told", None, (pointer,)),
            ("level_take", None, (pointer, pointer, pointer, number, number, number, ctypes.c_uint)),
            ("level_count", number, (pointer,)),
            ("level_begin", None, (pointer,)),
            ("level_expand", ctypes.c_int64, (pointer, pointer, number, small)),
            ("level_load", ctypes.c_int, (pointer, pointer, pointer, number)),
            ("level_strike", None, (pointer, pointer, number)),
            ("level_fresh", ctypes.c_int64, (pointer, pointer, pointer, pointer, pointer, number)),
            ("level_leads", small, (pointer, pointer, small, pointer)),
            ("level_counted", None, (pointer, pointer, pointer, pointer)),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        wanted = [int(name in query.invariants) for name in query.system.invariants]
        actions = {name: number for number, name in enumerate(query.system.actions)}
        flags = np.array([*wanted, 0], dtype=np.uint8)
        of_instance = np.array([*(actions[each.action] for each in query.system.instances), 0], dtype=np.uint16)
        self._level: int | None = library.level_start(_at(flags), _at(of_instance))
        if self._level is None:
            raise Spent(watch.too_much)
        told = np.zeros(2, dtype=np.uint64)
        library.level_told(_at(told))
        self._group = int(told[1])
        self._least = 4 * self._group + (1 << 12)
        self._keys = np.empty((0, self.words), dtype=np.uint64)
        self._marks = np.empty(0, dtype=np.uint16)
        self._laid = (
            np.empty((_LAID, self.words), dtype=np.uint64),
            np.empty(_LAID, dtype=np.uint16),
            np.empty(_LAID, dtype=np.uint64),
        )

    def __del__(self) -> None:
        if getattr(self, "_level", None) is not None:
            self._library.level_finish(self._level)
            self._level = None

    @property
    def _slot_bytes(self) -> int:
        return 8 * self.words + 2

    def holds(self) -> int:
        """How many candidates there is room for: as many as memory has slots for."""
        self.clear()
        memory.give_back()
        there = self._limit - memory.resident() - SPARE
        slots = there // self._slot_bytes - _OVER
        if slots * FILLED < self._least:
            raise Spent(self.watch.too_much)
        return int(slots * FILLED)

    def _take(self, candidates: int, shared: int) -> None:
        slots = int(candidates / FILLED) + 1
        self.clear()
        try:
            self._keys = np.empty((slots + _OVER, self.words), dtype=np.uint64)
            self._marks = np.zeros(slots + _OVER, dtype=np.uint16)
        except MemoryError as error:
            raise Spent(self.watch.too_much) from error
        most = int(slots * FILLED)
        self._library.level_take(self._level, _at(self._keys), _at(self._marks), slots, slots + _OVER, most, shared)

    def begin(self, candidates: int) -> None:
        """A new table."""
        self._take(max(self._least, min(candidates, self.holds())), 0)
        self._library.level_begin(self._level)

    def again(self) -> None:
        """Nothing is in the table any more, and what was counted stands."""
        self._marks[:] = 0
        slots = len(self._marks) - _OVER
        self._library.level_take(
            self._level, _at(self._keys), _at(self._marks), slots, slots + _OVER, int(slots * FILLED), 0
        )

    def expand(self, keys: Rows, begins: int) -> int:
        """As far as there is room."""
        assert keys.flags.c_contiguous
        done = int(self._library.level_expand(self._level, _at(keys), begins, len(keys)))
        if done < 0:
            raise Spent(self.watch.too_much)
        return done

    @property
    def count(self) -> int:
        """Keys in the table."""
        return int(self._library.level_count(self._level))

    def tally(self) -> Tally:
        """What was counted since the level began."""
        transitions = np.zeros(self._instances + 1, dtype=np.uint64)
        witnesses = np.zeros(self._witnesses + 1, dtype=np.uint64)
        first = np.zeros(6, dtype=np.uint64)
        self._library.level_counted(self._level, _at(transitions), _at(witnesses), _at(first))
        broken, escaped = first[:3].tolist(), first[3:].tolist()
        return Tally(
            transitions[: self._instances].tolist(),
            witnesses[: self._witnesses].tolist(),
            (broken[1], broken[2]) if broken[0] else None,
            (escaped[1], escaped[2]) if escaped[0] else None,
        )

    def settle(self) -> None:
        """Slots are in order already."""

    def strike(self, keys: Rows) -> None:
        """Mark those that are there."""
        self._library.level_strike(self._level, _at(keys), len(keys))

    def fresh(self) -> Iterator[tuple[Rows, Actions]]:
        """From the first slot to the last."""
        keys, marks, orders = self._laid
        slot = np.zeros(1, dtype=np.uint64)
        while laid := int(
            self._library.level_fresh(self._level, _at(slot), _at(keys), _at(marks), _at(orders), len(orders))
        ):
            if laid < 0:
                raise AssertionError("more keys side by side than there is room for")
            yield keys[:laid], marks[:laid]

    def load(self, spilled: Iterable[tuple[Rows, Actions]], count: int, shared: int) -> None:
        """Into a table whose slots are those of a range of the order."""
        self._take(max(self._least, count), shared)
        for keys, actions in spilled:
            if not self._library.level_load(self._level, _at(keys), _at(actions), len(keys)):
                raise Spent(self.watch.too_much)

    def clear(self) -> None:
        """Without a table."""
        self._library.level_take(self._level, None, None, 0, 0, 0, 0)
        self._keys = np.empty((0, self.words), dtype=np.uint64)
        self._marks = np.empty(0, dtype=np.uint16)

    def leads(self, keys: Rows, key: Rows) -> int | None:
        """The first that has a step there."""
        wanted = np.ascontiguousarray(key)
        found = int(self._library.level_leads(self._level, _at(keys), len(keys), _at(wanted)))
        return found if found < len(keys) else None
