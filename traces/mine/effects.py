"""How what was observed after a step differs from what the model has: which variables, and in which direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...model.core.ground import Layout
from ...model.core.terms import Sort


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
        ordered = variable.values.sort is Sort.INT
        directions.setdefault(variable.name, set()).add(("+" if difference > 0 else "-") if ordered else "")
    return tuple(name + (found.copy().pop() if len(found) == 1 else "") for name, found in directions.items())
