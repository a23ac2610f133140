"""Cells of a state as a trace shows them, and which of them a recorder looks at."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ..model.core.domains import REPLICA
from ..model.core.errors import BadInput
from ..model.core.terms import NONE, Sort

if TYPE_CHECKING:
    from ..model.core.ground import Cell, Layout, State
    from .format import Value


def decode(cell: Cell, value: int) -> Value:
    """The value of a cell of a state as a trace shows it: a set as its sorted members, no replica as None.

    A value of an enumeration is its name, and None where the cell is dead.
    """
    sort, names = cell.variable.values.sort, cell.variable.values.names
    if names:
        return None if value == NONE else names[value]
    if sort is Sort.SET:
        return tuple(replica for replica in range(value.bit_length()) if value >> replica & 1)
    if sort is Sort.REPLICA and value == NONE:
        return None
    return value


def domain_words(cell: Cell) -> str:
    """What a cell may hold, for the person who has to mend a trace."""
    if cell.variable.values.names:
        return " or ".join(map(repr, cell.variable.values.names)) + (" or null" if cell.low == NONE else "")
    match cell.variable.values.sort:
        case Sort.SET:
            return f"a sorted list of replicas from 0 to {cell.high.bit_length() - 1}"
        case Sort.REPLICA:
            return f"a replica from 0 to {cell.high}" + (" or null" if cell.low == NONE else "")
        case _:
            return f"an integer from {cell.low} to {cell.high}"


def encode(cell: Cell, value: object) -> int:
    """The inverse of ``decode``; a list is taken for a tuple. Raises ValueError for what the cell cannot hold."""
    sort, names = cell.variable.values.sort, cell.variable.values.names
    if names:
        if value is None and cell.low == NONE:
            return NONE
        if isinstance(value, str) and value in names:
            return names.index(value)
        raise ValueError(f"{cell.name} holds {domain_words(cell)}")
    if sort is Sort.SET:
        return _mask(cell, value)
    if value is None and sort is Sort.REPLICA and cell.low == NONE:
        return NONE
    lowest = max(cell.low, 0) if sort is Sort.REPLICA else cell.low
    # bool is an int to Python, but not to JSON.
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= cell.high:
        raise ValueError(f"{cell.name} holds {domain_words(cell)}")
    return value


def _mask(cell: Cell, value: object) -> int:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{cell.name} holds {domain_words(cell)}")
    mask, least = 0, 0
    for replica in value:
        if isinstance(replica, bool) or not isinstance(replica, int):
            raise ValueError(f"{cell.name} holds {domain_words(cell)}")
        if not least <= replica < cell.high.bit_length():
            raise ValueError(f"{cell.name} holds {domain_words(cell)}")
        mask |= 1 << replica
        least = replica + 1
    return mask


def choose_cells(
    layout: Layout,
    *,
    variables: Collection[str] | None = None,
    replicas: Collection[int] | None = None,
) -> tuple[int, ...]:
    """The numbers of the cells of these variables, and of these replicas where a variable is per replica.

    None means all. Raises BadInput for a variable or a replica that is not there.
    """
    known = list(layout.by_variable)
    for name in variables or ():
        if name not in layout.by_variable:
            raise BadInput(f"no variable {name!r} to observe", "--observe", f"choose of {', '.join(known)}")
    count = max((cell.index[0] + 1 for cell in layout.cells if _per_replica(cell)), default=0)
    for replica in replicas or ():
        if not 0 <= replica < count:
            raise BadInput(f"no replica {replica} to observe", "--observe", f"choose from 0 to {count - 1}")
    return tuple(
        cell.number
        for cell in layout.cells
        if (variables is None or cell.variable.name in variables)
        and (replicas is None or not _per_replica(cell) or cell.index[0] in replicas)
    )


def _per_replica(cell: Cell) -> bool:
    return bool(cell.variable.per) and cell.variable.per[0] is REPLICA


def observe(layout: Layout, state: State, cells: Iterable[int] | None = None) -> dict[str, Value]:
    """The chosen cells of a state (None: all) by name, in the layout's order as far as ``cells`` has it."""
    numbers = range(len(layout.cells)) if cells is None else cells
    return {layout.cells[n].name: decode(layout.cells[n], state[n]) for n in numbers}
