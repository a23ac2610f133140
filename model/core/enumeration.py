"""Enumerations: domains whose values have names, such as the phases of a transaction.

Underneath a value is an integer, from 0 in the order of the names, and that is all that an engine sees. Whatever a
person reads has the name: traces, pages, refusals, counterexamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from keyword import iskeyword

from .domains import Constants, Index, Values
from .enum_value import Kind, Member
from .errors import BadText
from .source_location import declared_here, near
from .terms import Sort


@dataclass(frozen=True)
class Enumeration(Index, Values):
    """A domain of named values: the ``Values`` of a variable, and the ``Index`` of a parameter or of a variable.

    A value is an attribute: ``Phase.working``. Values of one enumeration can be told equal or not, and chosen by
    ``k.ite``; they have no order and no arithmetic, and those of two enumerations cannot be compared.
    """

    def __getattr__(self, name: str) -> Member:
        if name.startswith("_") or name not in self.names:
            if name.startswith("__"):
                raise AttributeError(name)
            raise BadText(f"{self.name} has no value {name!r}", declared_here(), near(name, self.names))
        return Member(self.names.index(name), self.name, self.names)

    @property
    def members(self) -> tuple[Member, ...]:
        """Its values, in the order of their names."""
        return tuple(Member(number, self.name, self.names) for number in range(len(self.names)))

    def values(self, _constants: Constants) -> Sequence[Member]:
        """Its values, whatever the constants."""
        return self.members

    def number(self, told: object) -> object:
        """The value that a name names; anything else as it is."""
        return Member(self.names.index(told), self.name, self.names) if told in self.names else told

    def with_dead(self) -> Enumeration:
        """The domain of a variable some of whose cells are dead at times: they hold -1, which has no name."""
        return replace(self, low=lambda _: -1)

    @property
    def kind(self) -> Kind:
        """What tells it apart from other enumerations."""
        return self.name, self.names


def enumeration(name: str, *names: str) -> Enumeration:
    """Declare an enumeration: ``Phase = enumeration("phase", "working", "prepared", "committed")``.

    ``name`` is that of the domain, as of an ``Index``. Raises BadText for fewer than two names, for one twice, and for
    one that Python does not allow as an attribute.
    """
    here = declared_here()
    if len(names) < 2:
        raise BadText(f"the enumeration {name!r} has {len(names)} names", here, "give two or more, each as a string")
    for value in names:
        if not isinstance(value, str) or not value.isidentifier() or not value.isascii() or iskeyword(value):
            raise BadText(f"{value!r} is no name of a value of {name}", here, "use letters, digits and _, as in Python")
        if names.count(value) > 1:
            raise BadText(f"the enumeration {name} has the name {value!r} twice", here, "name each value once")
        if value.startswith("_") or hasattr(Index, value) or hasattr(Values, value) or value in _TAKEN:
            raise BadText(f"a value of {name} cannot be named {value!r}", here, "choose another name for it")
    size = len(names)
    return Enumeration(Sort.INT, lambda _: 0, lambda _: size - 1, name, lambda _: size, names=names)


_TAKEN = ("name", "sort", "size", "low", "high", "names", "members", "with_dead", "kind", "values")
