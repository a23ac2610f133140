"""The TLA+ module that specifies a protocol's variant, and the names that things of the protocol have there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


@dataclass(frozen=True)
class TlaModule:
    """The TLA+ module of a variant.

    Attributes:
        name: Name of the module; its text is ``specs/NAME.tla``.
        rules: Fields of the variant's rules that are constants of the module.
        names: By such a field, the constant's name where that is another than the field's.
        lacks: Constants of the protocol that the module does not have.
        shapes: Invariants of the module alone: the values that its variables take.
        fairness: By the name of a set of fairness conditions, the module's specification under them.
    """

    name: str
    rules: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    lacks: frozenset[str] = frozenset()
    shapes: tuple[str, ...] = ("TypeOk",)
    fairness: Mapping[str, str] = field(default_factory=dict)

    def constant_of(self, rule: str) -> str:
        """The constant of the module that stands for a field of the rules."""
        return self.names.get(rule, tla_name(rule))


def tla_name(name: str) -> str:
    """``follower_fetch`` as TLA+ has it: ``FollowerFetch``."""
    return "".join(part.capitalize() for part in name.split("_"))


def tla_value(value: Any) -> str:
    """The value of a rule as TLA+ has it: ``TRUE``, or ``"first-mismatch"``; ``"none"`` for None."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, Enum):
        return f'"{value.name.lower().replace("_", "-")}"'
    if value is None:
        return '"none"'
    raise TypeError(f"no rule of a TLA+ module: {value!r}")
