"""The same corpus on Spark as in one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.corpus import ingest as ingesting
from fencepost.traces.corpus import relay as relaying
from fencepost.traces.corpus.ingest import files_below, ingest_files
from fencepost.traces.corpus.layout import Events
from fencepost.traces.corpus.plan import make_plan
from fencepost.traces.corpus.relay import relay
from fencepost.traces.corpus.simulate import simulate, simulation, walker
from fencepost.traces.corpus.spread import SERIAL, spread
from fencepost.traces.format import Trace
from fencepost.traces.spark import spark_session
from fencepost.traces.write import write_trace

pytestmark = pytest.mark.spark

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


def test_traces_are_ingested_and_laid_out_anew_alike_on_spark(
    tmp_path: Path, traces: list[Trace], events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src").mkdir()
    for number, trace in enumerate(traces):
        write_trace(tmp_path / "src" / f"{number:02d}.jsonl", trace)
    (tmp_path / "src" / "07.jsonl").write_text("")
    monkeypatch.setattr(ingesting, "PIECE_FILES", 3)
    monkeypatch.setattr(relaying, "PART_EVENTS", 20)
    found, problems = {}, {}
    for master in (SERIAL, "local[2]"):
        folder = tmp_path / master
        done = ingest_files(tmp_path / "src", files_below(tmp_path / "src", "*.jsonl"), folder, master)
        again = relay(files_below(folder, "*.parquet"), tmp_path / f"{master} again", None, master)
        assert done.traces == again.traces == 11 and not again.problems
        found[master] = [p.read_bytes() for d in (folder, tmp_path / f"{master} again") for p in sorted(d.iterdir())]
        problems[master] = [str(problem) for problem in done.problems]
    assert found[SERIAL] == found["local[2]"]
    assert problems[SERIAL] == problems["local[2]"] and "07.jsonl, line 1: the file is empty" in problems[SERIAL][0]


def test_what_a_task_refuses_comes_back_whole() -> None:
    def odd(number: int) -> int:
        if number % 2:
            raise BadInput("it is odd", str(number), "give an even one")
        return number

    results = spread([2, 3], odd, "local[2]")
    assert results[0] == 2
    assert isinstance(results[1], BadInput) and str(results[1]) == "3: it is odd; give an even one"
