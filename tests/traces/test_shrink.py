"""Delta debugging: what is left is enough, and nothing of it can be left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from fencepost.traces.shrink import minimize
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.integers(0, 40), max_size=60), st.sets(st.integers(0, 40), min_size=1, max_size=6))
def test_what_is_left_fails_and_nothing_of_it_can_go(items: list[int], needed: set[int]) -> None:
    full = [*items, *sorted(needed)]

    def failing(part: Sequence[int]) -> Sequence[int] | None:
        return part if needed <= set(part) else None

    least = minimize(full, failing)
    assert sorted(least) == sorted(needed)


@given(st.lists(st.integers(-5, 5), max_size=40))
def test_one_minimal_where_items_depend_on_each_other(items: list[int]) -> None:
    def failing(part: Sequence[int]) -> Sequence[int] | None:
        total = 0
        for number, each in enumerate(part):
            total += each
            if total >= 7:
                return part[: number + 1]
        return None

    if failing(items) is None:
        with pytest.raises(ValueError, match="does not fail"):
            minimize(items, failing)
        return
    least = minimize(items, failing)
    assert failing(least) is not None
    for index in range(len(least)):
        assert failing([*least[:index], *least[index + 1 :]]) is None


def test_items_become_plainer_where_that_still_fails() -> None:
    def simpler(word: str) -> Iterable[str]:
        return (word.lower(),) if word != word.lower() else ()

    def failing(part: Sequence[str]) -> Sequence[str] | None:
        return part if "b" in {each.lower() for each in part} and "C" in part else None

    assert minimize(["A", "B", "C"], failing, simpler=simpler) == ["b", "C"]


def test_a_rewritten_sequence_takes_its_place_only_if_it_is_shorter_and_fails() -> None:
    def renumbered(part: Sequence[int]) -> Iterable[Sequence[int]]:
        for index in range(len(part)):
            yield [*part[:index], *(each - 1 for each in part[index + 1 :])]

    # Fails if the last number counts the ones before it: no item alone can go.
    def failing(part: Sequence[int]) -> Sequence[int] | None:
        return part if part and part[-1] == len(part) - 1 and part[0] == 0 else None

    assert minimize([0, 1, 2, 3, 4], failing) == [0, 1, 2, 3, 4] or minimize([0, 1, 2, 3, 4], failing) == [0]
    assert minimize([0, 7, 2], failing, rewritten=renumbered) == [0]


def test_the_budget_bounds_the_calls_and_gives_the_best_so_far() -> None:
    asked = 0

    def failing(part: Sequence[int]) -> Sequence[int] | None:
        nonlocal asked
        asked += 1
        return part if 63 in part else None

    best = minimize(list(range(64)), failing, budget=3)
    assert asked == 3
    assert 63 in best and 1 < len(best) < 64
    assert minimize(list(range(64)), failing) == [63]


@given(st.lists(st.integers(0, 9), max_size=30))
def test_nothing_is_asked_twice(items: list[int]) -> None:
    asked: list[tuple[int, ...]] = []

    def failing(part: Sequence[int]) -> Sequence[int] | None:
        asked.append(tuple(part))
        return part if {3, 7} <= set(part) else None

    minimize([*items, 3, 7], failing, rewritten=lambda part: (part[n:] for n in range(len(part))))
    assert len(asked) == len(set(asked))
