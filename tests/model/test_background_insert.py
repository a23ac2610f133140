"""The second thread of the batch engine: what it finds does not depend on it, and what goes wrong in it is told."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore import Limits, Query
from fencepost.model.explore import batch as explorer
from fencepost.model.explore.background_insert import Beside
from fencepost.model.explore.batch import Search, search_batch
from fencepost.model.interpret.packing import Words
from fencepost.model.interpret.table import Numbers, StateTable

SMALL = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 1}


def query(variant: str | None = None, most: int = 1_000_000) -> Query:
    return Query.of(ground(PROTOCOLS["fencing"].traced(variant), SMALL), limits=Limits(max_states=most))


def searched(monkeypatch: pytest.MonkeyPatch, aside: bool, asked: Query) -> Search:
    """A search whose blocks are small, with all of their successors put in by the second thread, or none."""
    monkeypatch.setattr(Beside, "worth", staticmethod(lambda: aside))
    monkeypatch.setattr(explorer, "ASIDE", 1)
    monkeypatch.setattr(explorer, "BLOCK", 300)
    return search_batch(asked)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of the thread of each insertion, which takes its time."""
    real, names = StateTable.insert, list[str]()

    def insert(self: StateTable, keys: Words) -> Numbers:
        names.append(threading.current_thread().name)
        time.sleep(0.001)
        return real(self, keys)

    monkeypatch.setattr(StateTable, "insert", insert)
    return names


@pytest.mark.parametrize("variant", ["kip-320", "kip-101"])
def test_states_and_their_order_are_those_of_one_thread(
    monkeypatch: pytest.MonkeyPatch, threads: list[str], variant: str
) -> None:
    alone = searched(monkeypatch, False, query(variant))
    assert set(threads) == {"MainThread"}
    beside = searched(monkeypatch, True, query(variant))
    assert set(threads) == {"MainThread", "fencepost-beside"}
    assert np.array_equal(beside.table.keys, alone.table.keys) and np.array_equal(beside.parents, alone.parents)
    for name in ("verdict", "distinct", "depth", "coverage", "witnesses", "violated", "path"):
        assert getattr(beside.answer, name) == getattr(alone.answer, name)


@pytest.mark.parametrize("most", [100, 400, 800])
def test_where_a_budget_ends_it_does_not_depend_on_the_second_thread(
    monkeypatch: pytest.MonkeyPatch, threads: list[str], most: int
) -> None:
    alone = searched(monkeypatch, False, query(most=most))
    beside = searched(monkeypatch, True, query(most=most))
    assert alone.table.count == beside.table.count > most
    assert alone.answer.reason == beside.answer.reason == f"more than {most:,} states (--max-states)"
    for name in ("distinct", "depth", "coverage", "witnesses"):
        assert getattr(beside.answer, name) == getattr(alone.answer, name)


def test_what_goes_wrong_in_the_second_thread_is_raised_in_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: StateTable, keys: Words) -> Numbers:
        if threading.current_thread() is not threading.main_thread():
            raise ZeroDivisionError
        return real(self, keys)

    real = StateTable.insert
    monkeypatch.setattr(StateTable, "insert", broken)
    with pytest.raises(ZeroDivisionError):
        searched(monkeypatch, True, query())


def test_work_is_done_in_order_and_told_once() -> None:
    beside, done = Beside(), list[int]()

    def work(number: int) -> Callable[[], None]:
        def slowly() -> None:
            time.sleep(0.002 * (3 - number))
            done.append(number)

        return slowly

    for number in range(3):
        beside.begin(work(number), 100 + number)
        assert beside.busy and beside.bytes == 100 + number
    beside.wait()
    assert done == [0, 1, 2] and not beside.busy and beside.bytes == 0
    beside.begin(lambda: 1 // 0, 1)
    with pytest.raises(ZeroDivisionError):
        beside.wait()
    beside.wait()
    beside.close()
    beside.close()


def test_a_search_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch, threads: list[str]) -> None:
    def new() -> set[threading.Thread]:
        return set(threading.enumerate()) - before

    before = set(threading.enumerate())  # some of other tests, which may end meanwhile
    for most in (1_000_000, 400):
        assert searched(monkeypatch, True, query(most=most)).table.count > 400
    assert "fencepost-beside" in threads
    deadline = time.monotonic() + 10
    while new() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not new()


def test_a_process_that_is_to_end_does_not_wait_for_the_second_thread() -> None:
    begun = (
        "import time; from fencepost.model.explore.background_insert import Beside; "
        "Beside().begin(lambda: time.sleep(120), 0)"
    )
    subprocess.run([sys.executable, "-c", begun], check=True, timeout=60)
