"""Levels on disk that Spark's tasks expand: the files of one process, and so where workers are killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore import Query
from fencepost.model.explore.disk import spread as spreading
from fencepost.model.explore.disk.search import explore_on_disk
from fencepost.model.explore.disk.spread import explore_spread
from fencepost.traces.corpus.spread import spread
from fencepost.traces.spark import spark_session

from .conftest import Fencepost

pytestmark = pytest.mark.spark

MASTER = "local[2,4]"
"""A task is tried four times."""


@pytest.fixture(scope="module", autouse=True)
def _session() -> Iterator[None]:
    """One session for the file, stopped after it."""
    session = spark_session("fencepost tests", MASTER)
    yield
    session.stop()


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if these levels were large."""
    monkeypatch.setattr(spreading, "ALONE", 300)
    monkeypatch.setattr(spreading, "SLICE", 150)
    monkeypatch.setattr(spreading, "WAYS", 2)


def levels(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.keys")}


def test_the_command_finds_on_spark_what_one_process_finds(fencepost: Fencepost, tmp_path: Path) -> None:
    asked = (
        "explore",
        "fencing",
        "--variant",
        "truncate-to-hw",
        "--replicas",
        2,
        "--json",
        "--engine",
        "batch",
        "--dir",
    )
    one, many = fencepost(*asked, tmp_path / "one"), fencepost(*asked, tmp_path / "many", "--master", MASTER)
    assert one.code == many.code == 1
    for name in ("distinct", "depth", "violated", "trace", "coverage", "witnesses"):
        assert one.json[name] == many.json[name]
    assert levels(tmp_path / "one") == levels(tmp_path / "many")


def test_workers_that_are_killed_change_nothing(tmp_path: Path) -> None:
    query = Query.of(ground(PROTOCOLS["fencing"].traced(None), {"replicas": 2}))
    once = explore_on_disk(query, tmp_path / "one", "batch")
    killed = tmp_path / "killed"
    killed.mkdir()
    jobs = []

    def dying(pieces: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
        mark = killed / str(len(jobs))
        jobs.append(len(pieces))

        def run(piece: Any) -> Any:
            done = work(piece)
            # Its files are written, and nobody hears of them; whoever tries again writes others.
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return spread(pieces, run, MASTER)

    answer = explore_spread(query, tmp_path / "many", dying, "batch")
    assert len(jobs) >= 8 and len(list(killed.iterdir())) == len(jobs)
    assert (answer.distinct, answer.depth, answer.coverage) == (once.distinct, once.depth, once.coverage)
    assert levels(tmp_path / "one") == levels(tmp_path / "many")
    assert not list((tmp_path / "many").glob("*.part"))
