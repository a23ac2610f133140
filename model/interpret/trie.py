"""Instances arranged by their guards, so that a condition that many instances share is decided once."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.ground import System
from ..core.terms import Term


class Trie:
    """A node: the instances all of whose conditions lie on the way here, and what else is to be decided."""

    def __init__(self) -> None:
        self.children: dict[Term, Trie] = {}
        self.instances: list[int] = []


def by_guards(system: System) -> Trie:
    """The trie of a system's instances, by number."""
    root = Trie()
    for number, instance in enumerate(system.instances):
        at = root
        for condition in _conjuncts(guard for _, guard in instance.guards):
            at = at.children.setdefault(condition, Trie())
        at.instances.append(number)
    return root


def _conjuncts(guards: Iterable[Term]) -> list[Term]:
    parts: dict[Term, None] = {}
    for guard in guards:
        for part in guard.args if guard.op == "and" else (guard,):
            if part.op != "const":
                parts[part] = None
    # The order of guards is not observable here; small conditions are the ones that instances share.
    return sorted(parts, key=lambda part: part.cost)
