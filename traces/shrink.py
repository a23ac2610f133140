"""Making a failing sequence as short as it gets: delta debugging over whole items.

Whoever has a sequence that shows something (a run on which an implementation and the model part, a trace that a mined
rule contradicts) and can tell of any other sequence whether it shows that too, gets one from which no single item can
be left out. The method is Zeller's and Hildebrandt's ddmin, over complements, then one item at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

Failing = Callable[[Sequence[T]], Sequence[T] | None]
"""Whether a sequence fails: the part of it that was needed for that (often all), or None where it does not."""


def _no_simpler(_item: object) -> Iterable[T]:
    return ()


def minimize(
    items: Sequence[T],
    failing: Failing[T],
    *,
    simpler: Callable[[T], Iterable[T]] = _no_simpler,
    rewritten: Callable[[Sequence[T]], Iterable[Sequence[T]]] = _no_simpler,
    budget: int = 10_000,
) -> list[T]:
    """A failing subsequence, 1-minimal: without any one of its items it does not fail.

    ``simpler`` gives plainer forms of an item (an action without its fault), which take its place where the sequence
    still fails. ``rewritten`` gives shorter sequences in which what is left has changed too: an election gone, and the
    epochs of all later ones one less. ``budget``: after so many calls of ``failing`` the best so far is returned,
    minimal or not. Raises ValueError where the sequence itself does not fail. ``failing`` must answer alike whenever
    it is asked alike: it is asked of no sequence twice.
    """
    search = _Search(failing, budget)
    best = search.ask(items)
    if best is None:
        raise ValueError("the sequence does not fail")
    while True:
        before = best
        best = _shorten(search, best)
        best = _simplify(search, best, simpler)
        best = _rewrite(search, best, rewritten)
        if best == before or search.spent:
            return best


class _Search(Generic[T]):
    """Asks, and counts how often. Half of what it wants to know it has asked before, for another reason."""

    def __init__(self, failing: Failing[T], budget: int) -> None:
        self._failing = failing
        self._left = budget
        self._known: dict[tuple[T, ...], list[T] | None] = {}

    @property
    def spent(self) -> bool:
        """Whether no more may be asked."""
        return self._left <= 0

    def ask(self, items: Sequence[T]) -> list[T] | None:
        """What is needed of a sequence to fail; None where it does not, or where the budget is spent."""
        key = tuple(items)
        if key not in self._known:
            if self.spent:
                return None
            self._left -= 1
            found = self._failing(items)
            self._known[key] = None if found is None else list(found)
        return self._known[key]


def _shorten(search: _Search[T], best: list[T]) -> list[T]:
    """Leave out ever smaller chunks, until no single item can be left out."""
    size = max(1, len(best) // 2)
    while best:
        # From the end: what came last depends on the most, so the least depends on it.
        start = len(best) - size
        shorter = None
        while start > -size and shorter is None:
            shorter = search.ask(best[: max(0, start)] + best[start + size :])
            start -= size
        if shorter is not None and len(shorter) < len(best):
            best = shorter
            size = max(1, min(size, len(best) // 2))
        elif size == 1:
            break
        else:
            size //= 2
    return best


def _simplify(search: _Search[T], best: list[T], simpler: Callable[[T], Iterable[T]]) -> list[T]:
    for index in range(len(best)):
        if index >= len(best):
            break
        for plain in simpler(best[index]):
            found = search.ask([*best[:index], plain, *best[index + 1 :]])
            if found is not None and len(found) <= len(best):
                best = found
                break
    return best


def _rewrite(search: _Search[T], best: list[T], rewritten: Callable[[Sequence[T]], Iterable[Sequence[T]]]) -> list[T]:
    for other in rewritten(best):
        found = search.ask(other)
        if found is not None and len(found) < len(best):
            return found
    return best
