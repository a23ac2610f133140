"""Who does the work where nobody says: the faster one, and a line that says so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fencepost.conformance.cli import masters
from fencepost.conformance.cli.masters import SPARK, START_SECONDS, Work, faster
from fencepost.model.core.errors import BadInput
from fencepost.traces.corpus.spread import SERIAL

from .conftest import Fencepost

SMALL = ("fencing", "--replicas", 2, "--traces", 20, "--events", 10)


@pytest.mark.parametrize(("cores", "times"), [(1, 1000.0), (2, 2.25), (4, 1.4), (64, 1.02)])
def test_spark_is_chosen_from_where_its_start_is_won_back(cores: int, times: float) -> None:
    rate = 1000
    about = int(START_SECONDS * rate * times)
    assert faster(Work(about // 2, "events", rate), cores) == SERIAL
    assert faster(Work(about * 2, "events", rate), cores) == (SERIAL if cores == 1 else SPARK)
    assert faster(Work(0, "events", rate), cores) == SERIAL


def test_a_small_corpus_is_written_and_mined_without_spark_and_that_is_said(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("spread", "mine.workers"):
        module = f"fencepost.traces.{'corpus.' if name == 'spread' else ''}{name}"
        monkeypatch.setattr(sys.modules[module], "spark_session", None)
    corpus = tmp_path / "corpus"
    said = fencepost("simulate", *SMALL, "--out", corpus)
    assert said.code == 0
    assert said.lines[0] == (
        "200 steps at most: in this process (--master serial; another one is taken if you name it)"
    )
    said = fencepost("mine", corpus)
    assert said.code == 0
    assert said.lines[0].endswith(" events: in this process (--master serial; another one is taken if you name it)")
    # Who names one is not told.
    assert not any("--master" in line for line in fencepost("mine", corpus, "--master", "serial").lines)


@pytest.mark.parametrize("command", ["simulate", "mine", "ingest"])
def test_spark_is_asked_where_the_work_is_worth_it(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    asked: list[str] = []

    def started(_name: str, master: str) -> None:
        asked.append(master)
        raise BadInput("Spark is asked", "here", "and goes no further")

    assert fencepost("simulate", *SMALL, "--out", tmp_path / "corpus").code == 0
    monkeypatch.setattr(masters, "START_SECONDS", 0.0)
    monkeypatch.setattr(masters, "cores", lambda: 2)
    for module in ("fencepost.traces.corpus.spread", "fencepost.traces.mine.workers"):
        monkeypatch.setattr(sys.modules[module], "spark_session", started)
    arguments = {
        "simulate": (*SMALL, "--out", tmp_path / "new"),
        "mine": (tmp_path / "corpus",),
        "ingest": (tmp_path / "corpus" / "part-00000.parquet", "--out", tmp_path / "new"),
    }
    said = fencepost(command, *arguments[command])
    assert said.code == 2 and asked == [SPARK]
    assert "on Spark, all cores (--master local[*]; another one is taken if you name it)" in said.lines[0]
    assert said.lines[-1] == "fencepost: here: Spark is asked; and goes no further"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus"]
