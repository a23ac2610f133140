"""What a bug is known by: the shape of its last steps, and how what was observed differs from what the model has.

A shape is what happened, whoever the replicas were and however far the offsets had come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ...model.core.ground import Layout
from ...model.core.protocol import Protocol
from ...model.core.terms import Sort

LAST: Final = 3
"""How many steps make a shape: the one that is refused, and what led to it directly."""

Call: TypeAlias = "tuple[str | None, Mapping[str, int | None]]"
"""An action with its parameters; None: a look at the state, or a parameter that is not known."""


def shape_of(protocol: Protocol, calls: Iterable[Call]) -> tuple[str, ...]:
    """The last ``LAST`` of these steps with canonical parameters, in order.

    Replicas are A, B, C ... as they first appear. Numbers (leader epochs, offsets) keep their order and nothing else:
    of each kind the smallest is 0, the next larger one 1. So steps have one shape if and only if one renaming of the
    replicas and one monotone renaming of each kind of number turns the one into the other.
    """
    last = list(calls)[-LAST:]
    letters: dict[int, str] = {}
    numbers: dict[str, set[int]] = {}
    for action, params in last:
        for name, value in params.items():
            if action is None or value is None:
                continue
            index = protocol.actions[action].params[name]
            if index.names:
                continue
            if index.sort is Sort.REPLICA:
                letters.setdefault(value, chr(ord("A") + len(letters)) if len(letters) < 26 else f"R{len(letters)}")
            else:
                numbers.setdefault(index.name, set()).add(value)
    ranks = {kind: {value: rank for rank, value in enumerate(sorted(values))} for kind, values in numbers.items()}

    def told(action: str, name: str, value: int | None) -> str:
        if value is None:
            return f"{name}=?"
        index = protocol.actions[action].params[name]
        if index.names:
            return f"{name}={index.names[value]}"
        return f"{name}={letters[value] if index.sort is Sort.REPLICA else ranks[index.name][value]}"

    return tuple(
        "look" if action is None else f"{action}({', '.join(told(action, n, v) for n, v in params.items())})"
        for action, params in last
    )


def differing(layout: Layout, apart: npt.NDArray[np.signedinteger[Any]]) -> Iterator[tuple[str, ...]]:
    """For each column of differences (observed less expected, shape (cells, n)) the variables that differ."""
    signs = np.ascontiguousarray(np.sign(apart).astype(np.int8).T)
    known: dict[bytes, tuple[str, ...]] = {}
    for row in signs:
        key = row.tobytes()
        if key not in known:
            known[key] = variables_of(layout, {number: int(row[number]) for number in np.flatnonzero(row).tolist()})
        yield known[key]


def variables_of(layout: Layout, apart: Mapping[int, int]) -> tuple[str, ...]:
    """The variables whose cells differ, in the layout's order: ``leo+`` where they are too high, ``leo-`` too low.

    ``apart``: by cell's number, observed less expected. Replicas and sets have no direction.
    """
    directions: dict[str, set[str]] = {}
    for number, difference in sorted(apart.items()):
        variable = layout.cells[number].variable
        ordered = variable.values.sort is Sort.INT and not variable.values.names
        directions.setdefault(variable.name, set()).add(("+" if difference > 0 else "-") if ordered else "")
    return tuple(name + (found.copy().pop() if len(found) == 1 else "") for name, found in directions.items())
