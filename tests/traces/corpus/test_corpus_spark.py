"""The same corpus on Spark as in one process; it runs where PySpark is installed (``tox -e spark``)."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.corpus.plan import make_plan
from fencepost.traces.corpus.simulate import simulate, simulation, walker
from fencepost.traces.corpus.spread import SERIAL, spread
from fencepost.traces.spark import spark_session

has_spark = importlib.util.find_spec("pyspark") is not None
pytestmark = pytest.mark.skipif(not has_spark, reason="PySpark is not installed (the extra 'spark' brings it)")

FAULTS = ("follower_fetch.epoch_not_fenced dropped", "kip-101")


@pytest.fixture(scope="module", autouse=True)
def _session() -> Iterator[None]:
    """One session for the file, stopped after it."""
    session = spark_session("fencepost tests", "local[2]")
    yield
    session.stop()


def test_a_corpus_is_the_same_on_spark(tmp_path: Path) -> None:
    asked = simulation("fencing", None, {"replicas": 2}, 300, 30, 5, 5)
    plan = make_plan(walker(asked, FAULTS), FAULTS, FAULTS, asked.traces, 20, asked.events)
    told: list[tuple[int, int]] = []
    found = {}
    for master in (SERIAL, "local[2]"):
        folder = tmp_path / master
        simulate(asked, folder, plan, master, lambda done, of: told.append((done, of)))
        found[master] = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    assert len(found[SERIAL]) == 7
    assert found[SERIAL] == found["local[2]"]
    assert told[-1] == (5, 5)


def test_what_a_task_refuses_comes_back_whole() -> None:
    def odd(number: int) -> int:
        if number % 2:
            raise BadInput("it is odd", str(number), "give an even one")
        return number

    results = spread([2, 3], odd, "local[2]")
    assert results[0] == 2
    assert isinstance(results[1], BadInput) and str(results[1]) == "3: it is odd; give an even one"
