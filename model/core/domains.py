"""What indices and values range over: index domains, value domains, variables of the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .pretty import show_set
from .terms import NONE, Sort

Constants: TypeAlias = Mapping[str, int]
"""The values of a protocol's constants, by name."""

Size: TypeAlias = Callable[[Constants], int]
"""A number that depends on the constants."""


@dataclass(frozen=True)
class Index:
    """Something that variables and parameters range over: ``0 .. size(constants) - 1``.

    ``names`` are those of its values, where it is an enumeration (see ``enumeration.py``).
    """

    name: str
    sort: Sort
    size: Size
    names: tuple[str, ...] = field(default=(), kw_only=True)

    def values(self, constants: Constants) -> Sequence[int]:
        """Its values in order; those of an enumeration are written by their names."""
        return range(self.size(constants))

    def number(self, told: object) -> object:
        """What a parameter is in a trace or a report, as a value of the index: a name becomes the value it names.

        Anything else is as it was; it is for others to say that it is no value.
        """
        return told


REPLICA = Index("replica", Sort.REPLICA, lambda c: c["replicas"])
"""The replicas. Every protocol over replicas has a constant ``replicas``."""


@dataclass(frozen=True)
class Values:
    """What a cell may hold: the integers ``low .. high`` (both included), a replica, or a set of replicas.

    A replica is an int from 0, or ``NONE`` (-1) where ``low`` is -1; a set is a bit mask, replica 0 being bit 0.
    ``names`` are those of an enumeration's values, which are ints from 0; they are empty for all else.
    """

    sort: Sort
    low: Size
    high: Size
    names: tuple[str, ...] = field(default=(), kw_only=True)

    def told(self, value: int) -> str:
        """A value as a person reads it; a dead cell of an enumeration holds none of its names."""
        if self.names and value >= 0:
            return self.names[value] if value < len(self.names) else str(value)
        if value == NONE and (self.names or self.sort is Sort.REPLICA):
            return "NONE"
        return show_set(value) if self.sort is Sort.SET else str(value)


def integers(low: int, high: Size) -> Values:
    """Integers from ``low`` to ``high(constants)``, both included."""
    return Values(Sort.INT, lambda _: low, high)


OPTIONAL_REPLICA = Values(Sort.REPLICA, lambda _: -1, lambda c: c["replicas"] - 1)
REPLICA_SET = Values(Sort.SET, lambda _: 0, lambda c: (1 << c["replicas"]) - 1)


def all_replicas(constants: Constants) -> int:
    """The set of all replicas, as a bit mask."""
    return (1 << constants["replicas"]) - 1


@dataclass(frozen=True)
class Variable:
    """One variable of the state.

    ``per`` are its index domains: none for a scalar, ``(REPLICA,)`` for one cell a replica, and so on.
    ``live`` says, for a variable some of whose cells are dead at times (log cells at and above the LEO), in which
    states a cell is live; a dead cell always holds ``dead``, so that equal states are equal tuples. ``dead`` is also
    what a read at an index out of range gives. ``unset`` says that a live cell of integers may hold ``dead`` too, for a
    value that is not known yet; sets and replicas always may. ``present(rules)`` says which variants have the variable.
    ``where`` is the file and line of its declaration. ``lasting(rules)`` says in which variants a cell that has another
    value than its first keeps it, in every run that keeps all invariants.
    """

    name: str
    per: tuple[Index, ...]
    values: Values
    initially: Size
    doc: str
    live: Callable[..., object] | None = None
    dead: int = -1
    unset: bool = False
    present: Callable[[Any], bool] = field(default=lambda _: True)
    where: str = "the protocol"
    lasting: Callable[[Any], bool] = field(default=lambda _: False)

    def shape(self, constants: Constants) -> tuple[int, ...]:
        """The number of cells along each index."""
        return tuple(index.size(constants) for index in self.per)
