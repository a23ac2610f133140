"""The values of enumerations: integers that are written by their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Kind: TypeAlias = tuple[str, tuple[str, ...]]
"""An enumeration's name, and the names of its values: by it two enumerations are told apart."""


class Member(int):
    """A value of the enumeration ``of``: an integer to every engine, and its ``label`` where it is written.

    ``repr`` is the integer's, so that generated source reads it.
    """

    of: str
    names: tuple[str, ...]

    def __new__(cls, number: int, of: str, names: tuple[str, ...]) -> Member:
        member = super().__new__(cls, number)
        member.of, member.names = of, names
        return member

    @property
    def kind(self) -> Kind:
        """The enumeration that it is a value of."""
        return self.of, self.names

    @property
    def label(self) -> str:
        """Its name."""
        return self.names[self]

    def __str__(self) -> str:
        return self.label

    def __format__(self, spec: str) -> str:
        return format(self.label, spec)

    def __reduce__(self) -> tuple[type[Member], tuple[int, str, tuple[str, ...]]]:
        return Member, (int(self), self.of, self.names)


Plain: TypeAlias = "int | str | None"


def plain(value: int | None) -> Plain:
    """A number as JSON has it: the name of a member of an enumeration, any other as it is."""
    return value.label if isinstance(value, Member) else value


def plain_params(params: Mapping[str, int | None] | Iterable[tuple[str, int]]) -> dict[str, Any]:
    """The parameters of a step as JSON has them."""
    return {name: plain(value) for name, value in dict(params).items()}
