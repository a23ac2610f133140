"""The set of packed keys against a Python set: members, numbers, growth, and keys that collide on purpose."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from fencepost.model.interpret.packing import Words
from fencepost.model.interpret.table import StateTable
from hypothesis import given
from hypothesis import strategies as st


class Model:
    """What the table must do, by a dict: number keys in the order of their first occurrence."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, ...], int] = {}

    def insert(self, keys: Words) -> list[int]:
        fresh = []
        for position, key in enumerate(map(tuple, keys.T.tolist())):
            if key not in self.numbers:
                self.numbers[key] = len(self.numbers)
                fresh.append(position)
        return fresh


def check(table: StateTable, model: Model, keys: Words) -> None:
    fresh = table.insert(keys)
    assert fresh.tolist() == model.insert(keys)
    assert table.count == len(model.numbers)
    assert list(map(tuple, table.keys.T.tolist())) == list(model.numbers)


def drawn(seed: int, words: int, count: int, different: int) -> Words:
    """Keys with many duplicates: every word from so many values, spread over all 64 bits."""
    draw = np.random.default_rng(seed)
    values = draw.integers(0, 1 << 64, size=different, dtype=np.uint64)
    return values[draw.integers(0, different, size=(words, count))]


@pytest.mark.parametrize("words", [1, 2, 3, 6])
@pytest.mark.parametrize("different", [3, 60, 5000])
def test_random_keys_with_duplicates_in_and_across_batches(words: int, different: int) -> None:
    print("seed 0 to 7")
    table, model = StateTable(words), Model()
    for seed in range(8):
        check(table, model, drawn(seed, words, 1500, different))
    assert table.count > 2


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 1 << 63, (1 << 64) - 1])))))
def test_any_batches_of_few_keys(batches: list[list[tuple[int, int]]]) -> None:
    table, model = StateTable(2), Model()
    for batch in batches:
        check(table, model, np.array(batch, dtype=np.uint64).reshape(len(batch), 2).T)


def test_growth_keeps_members_and_their_numbers() -> None:
    table, model = StateTable(2), Model()
    held = table.bytes
    for seed in range(4):
        check(table, model, drawn(seed, 2, 1 << (8 + 2 * seed), 4096))
    assert table.count > 15_000 and table.bytes > 4 * held
    before = table.count
    assert table.insert(table.keys.copy()).size == 0 and table.count == before
    # All at once or one by one: the same numbers.
    again = StateTable(2)
    again.insert(table.keys.copy())
    assert np.array_equal(again.keys, table.keys)


@pytest.mark.parametrize("home", ["one slot", "the last slot", "two slots"])
def test_keys_that_start_at_one_slot_cost_probes_and_no_answer(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    def constant(self: StateTable, keys: Words) -> npt.NDArray[np.int64]:
        last = self._slots.size - 1
        homes = {"one slot": [0, 0], "the last slot": [last, last], "two slots": [last, 1]}[home]
        return np.where(keys[0] & np.uint64(1), *homes).astype(np.int64)

    monkeypatch.setattr(StateTable, "_home", constant)
    table, model = StateTable(2), Model()
    for seed in range(5):
        check(table, model, drawn(seed, 2, 120, 12))
    assert table.count > 300


def test_keys_that_differ_in_one_word_only_are_different() -> None:
    for words in (1, 2, 4):
        keys = np.zeros((words, words + 1), dtype=np.uint64)
        for word in range(words):
            keys[word, word] = 1 << 63
        table = StateTable(words)
        assert table.insert(keys).tolist() == list(range(words + 1))
        assert table.insert(keys[:, ::-1]).size == 0


def test_equal_new_keys_in_one_batch_count_at_their_first_position() -> None:
    table = StateTable(1)
    assert table.insert(np.array([[7, 5, 7, 9, 5]], dtype=np.uint64)).tolist() == [0, 1, 3]
    assert table.keys.tolist() == [[7, 5, 9]]
    assert table.insert(np.array([[9, 1, 1, 7]], dtype=np.uint64)).tolist() == [1]
    assert table.keys.tolist() == [[7, 5, 9, 1]]
    assert table.insert(np.empty((1, 0), dtype=np.uint64)).size == 0


def test_a_table_that_looks_at_the_fingerprint_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: only the first word is compared."""
    real = StateTable.insert

    def first_word(self: StateTable, keys: Words) -> object:
        return real(self, np.concatenate([keys[:1], np.zeros_like(keys[1:])]))

    monkeypatch.setattr(StateTable, "insert", first_word)
    with pytest.raises(AssertionError):
        check(StateTable(2), Model(), drawn(0, 2, 500, 10))
