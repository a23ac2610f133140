"""What expands a level and keeps its successors apart, whichever engine does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from .order import Actions, Rows


@dataclass
class Tally:
    """What the states of a level have come to so far.

    ``transitions``: by instance. ``witnesses``: how often each was met. ``broken``: the first state of the level that
    breaks an invariant, by its place, and the first that it breaks, by its place among all. ``escaped``: the first
    with a successor outside of the domains, and the first instance by which.
    """

    transitions: list[int]
    witnesses: list[int]
    broken: tuple[int, int] | None = None
    escaped: tuple[int, int] | None = None


class Kernel(Protocol):
    """An engine over one level. Its successors are candidates: distinct, and some of them known already.

    A candidate belongs to the action by which it was found first: states as they stand in the level, and of each state
    instances as they stand in the trie of guards. So every engine gives the same answer, whatever memory there is.
    """

    name: str

    def begin(self, candidates: int) -> None:
        """Begin a level, with no candidates, of which so many are likely. Raises Spent where there is no memory."""

    def expand(self, keys: Rows, begins: int) -> int:
        """Check and expand states, of which the first has that place in the level. How many were.

        Fewer than there are where there is no room for more candidates, or where one breaks an invariant.
        """

    @property
    def count(self) -> int:
        """The candidates that it has."""

    def again(self) -> None:
        """Forget all candidates, and go on with the level: what was counted stands."""

    def tally(self) -> Tally:
        """What the level has come to."""

    def settle(self) -> None:
        """Bring the candidates into their order: no more come. Raises Spent."""

    def strike(self, keys: Rows) -> None:
        """Strike out those of these keys that are candidates. They come in order, and are distinct."""

    def fresh(self) -> Iterator[tuple[Rows, Actions]]:
        """The candidates that were not struck out, in order, some at once; each is valid until the next."""

    def holds(self) -> int:
        """How many candidates there is room for at once in ``load``."""

    def load(self, spilled: Iterable[tuple[Rows, Actions]], count: int, shared: int) -> None:
        """Take back candidates that were given out, at most so many, those found first first; and settle them.

        All share so many leading bits of their order. Raises Spent.
        """

    def clear(self) -> None:
        """Forget all candidates, and give their memory back."""

    def leads(self, keys: Rows, key: Rows) -> int | None:
        """The place of the first of these states that has a step to the key, shape (words,); None where none has."""
