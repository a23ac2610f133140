"""Rows of a protocol's ``expected.py`` by what the tests look up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencepost.model.core.protocol import Protocol
from fencepost.model.expected.counterexample import Counterexample
from fencepost.model.expected.state_count import StateCount


def write_constants(protocol: Protocol, constants: Mapping[str, int]) -> str:
    """Write all constants in the protocol's order, as ``3/2/2/2``; those not given have their defaults."""
    unknown = constants.keys() - protocol.constants.keys()
    assert not unknown, f"{protocol.name} has no {unknown}"
    return "/".join(str(constants.get(name, spec.default)) for name, spec in protocol.constants.items())


def graphs_by_variant(protocol: Protocol, rows: Iterable[StateCount]) -> dict[str, dict[str, tuple[int, int | None]]]:
    """By variant and constants, distinct states and depth."""
    found: dict[str, dict[str, tuple[int, int | None]]] = {}
    for row in rows:
        found.setdefault(row.variant, {})[write_constants(protocol, row.constants)] = (row.states, row.depth)
    return found


def breaches_by_place(protocol: Protocol, rows: Iterable[Counterexample]) -> dict[tuple[str, str], dict[str, int]]:
    """By variant and constants, the steps of the shortest run that breaks each invariant."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        found.setdefault((row.variant, write_constants(protocol, row.constants)), {})[row.violated] = row.steps
    return found


def breaches_by_guard(
    protocol: Protocol, rows: Iterable[Counterexample], variant: str
) -> dict[str, tuple[str, int, str]]:
    """By the guard that a variant lacks, the invariant that breaks, after how many steps, and at which constants."""
    return {
        guard: (row.violated, row.steps, write_constants(protocol, row.constants))
        for row in rows
        if row.variant == variant
        for guard in row.dropped
    }


def states_by_guard(protocol: Protocol, rows: Iterable[StateCount], variant: str) -> dict[str, dict[str, int]]:
    """By the guard that a variant lacks, the distinct states at each constants."""
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        for guard in row.dropped if row.variant == variant else ():
            found.setdefault(guard, {})[write_constants(protocol, row.constants)] = row.states
    return found
