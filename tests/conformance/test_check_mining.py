"""The obligations of mining: what is planted in the bundled corpora is found on Spark; what is not mined is open."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from fencepost.conformance.check import mining
from fencepost.conformance.check.mining import bundled_mining
from fencepost.conformance.check.task import Task, carry_out
from fencepost.conformance.cli import check as checking
from fencepost.conformance.cli import main
from fencepost.traces import bundled as bundled_recordings
from fencepost.traces.corpus.layout import Events
from fencepost.traces.corpus.manifest import PLANTED, read_corpus
from fencepost.traces.corpus.spread import SERIAL
from fencepost.traces.mine import bundled
from fencepost.traces.report.obligation import Obligation, overall

BUNDLED_README = Path(bundled_recordings.__file__).with_name("README.md")
HOLDS, VIOLATED, UNKNOWN = "holds", "violated", "unknown"


def mined(master: str, folder: Path | None = None) -> list[Obligation]:
    with bundled_mining(master, folder) as tasks:
        return carry_out(tasks, lambda _task: lambda _progress: None)


def verdicts(results: Sequence[Obligation]) -> list[str]:
    return [each.verdict for each in results]


@pytest.mark.spark
def test_on_spark_exactly_the_two_planted_bugs_are_found_and_none_among_clean_traces() -> None:
    results = mined(mining.MASTER)
    assert verdicts(results) == [VIOLATED, VIOLATED, HOLDS, HOLDS] and all(each.met for each in results)
    assert overall(results) == HOLDS
    fetched, followed, other, clean = results
    assert fetched.name == "follower_fetch.epoch_not_fenced dropped: planted in 5 of 100 traces"
    assert fetched.detail == "follower_fetch against epoch_not_fenced: 5 traces, the first 0, told in 7 steps"
    assert followed.detail.endswith("5 traces, the first 17, told in 6 steps")
    assert fetched.story is not None and len(fetched.story.moments) == 8
    assert (other.detail, clean.detail) == ("2 bugs in 10 of 100 traces", "no bug in 561 events")
    # Spark or not, it is the same.
    assert [each.detail for each in mined(SERIAL)] == [each.detail for each in results]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in (bundled.PLANTED, bundled.CLEAN):
        shutil.copytree(bundled.folder() / name, tmp_path / name)
    return tmp_path


def swapped(root: Path) -> None:
    shutil.rmtree(root / bundled.CLEAN)
    shutil.copytree(root / bundled.PLANTED, root / bundled.CLEAN)


def unsaid(root: Path) -> None:
    """One bug more than was planted."""
    lines = (root / bundled.PLANTED / PLANTED).read_text().splitlines()
    kept = [line for line in lines if "become_follower" not in line]
    (root / bundled.PLANTED / PLANTED).write_text("\n".join(kept) + "\n")


def unplanted(root: Path) -> None:
    """The second bug is said to be in one trace more than it is."""
    with (root / bundled.PLANTED / PLANTED).open("a") as file:
        file.write(json.dumps({"trace": 99, "fault": "become_follower.leo' bound +1"}) + "\n")


def damaged(root: Path) -> None:
    """A bit has flipped; the manifest, which has the size alone, does not tell."""
    for name in (bundled.PLANTED, bundled.CLEAN):
        path = root / name / "part-00000.parquet"
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 3] ^= 0x55
        path.write_bytes(raw)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (swapped, [VIOLATED, VIOLATED, HOLDS, VIOLATED]),
        (unsaid, [VIOLATED, VIOLATED, HOLDS]),
        (unplanted, [VIOLATED, HOLDS, HOLDS, HOLDS]),
        (damaged, [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]),
    ],
)
def test_what_is_not_as_planted_is_told(copy: Path, change: Callable[[Path], None], expected: list[str]) -> None:
    change(copy)
    results = mined(SERIAL, copy)
    assert verdicts(results) == expected
    assert overall(results) == (UNKNOWN if change is damaged else VIOLATED)
    assert any(each.name.startswith("follower_fetch") for each in results)


class NoModels:
    """What the models come to, where nobody asks them."""

    def wait(self, _on_group: object) -> list[Obligation]:
        return []


def test_the_main_job_reports_the_planted_bugs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the terminal, in the object and in the report.

    The rest of the job is left out, and so is Spark, of which another test asks: one process mines what it would mine.
    """
    asked: list[tuple[object, ...]] = []

    @contextmanager
    def serially(*given: object) -> Iterator[list[Task]]:
        asked.append(given)
        with bundled_mining(SERIAL) as tasks:
            yield tasks

    monkeypatch.setattr(checking, "answering", lambda _groups: nullcontext(NoModels()))
    monkeypatch.setattr(checking, "_corpus_tasks", lambda *_given, **_options: [])
    monkeypatch.setattr(checking, "bundled_mining", serially)
    planted = [
        "become_follower.leo' bound +1: planted in 5 of 100 traces",
        "follower_fetch.epoch_not_fenced dropped: planted in 5 of 100 traces",
    ]
    report = tmp_path / "report"
    assert main(["check", "--report", str(report), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    mined = [each for each in answer["obligations"] if each["group"] == "mining by Spark"]
    assert sorted(each["name"] for each in mined if each["verdict"] == "violated") == planted
    assert len(mined) == 4 and all(each["met"] for each in mined)
    assert main(["check", "--report", str(report)]) == 0
    for text in (capsys.readouterr().out, unescape((report / "index.html").read_text(encoding="utf-8"))):
        assert "mining by Spark" in text and all(name in text for name in planted)
    assert asked == [(), ()], "on the master that is the job's own"
    assert inspect.signature(bundled_mining).parameters["master"].default == "local[2]"


IN_A_PROCESS = """
import json, sys
from fencepost.conformance.check import mining
from fencepost.conformance.check.task import carry_out
mining.SECONDS = float(sys.argv[1])
with mining.bundled_mining(mining.MASTER) as tasks:
    results = carry_out(tasks, lambda _task: lambda _progress: None)
print(json.dumps([(each.verdict, each.detail) for each in results]))
"""


def mined_alone(java_home: Path, seconds: float) -> list[tuple[str, str]]:
    """In a process of its own: here another test may have left a session, which would be taken."""
    environment = {**os.environ, "JAVA_HOME": str(java_home)}
    command = [sys.executable, "-c", IN_A_PROCESS, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=environment)
    found: list[tuple[str, str]] = [tuple(each) for each in json.loads(done.stdout.splitlines()[-1])]
    return found


def test_without_a_jvm_it_is_unknown_and_says_why(tmp_path: Path) -> None:
    results = mined_alone(tmp_path, mining.SECONDS)
    assert [verdict for verdict, _ in results] == [UNKNOWN] * 4
    assert all("no executable bin/java there; set JAVA_HOME to a JDK or JRE" in detail for _, detail in results)


def test_a_spark_that_does_not_answer_is_unknown(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexec sleep 60\n")
    java.chmod(0o755)
    results = mined_alone(tmp_path, 0.5)
    assert results == [(UNKNOWN, "not mined: Spark gave no answer within 0.5 s")] * 4


def rows(folder: Path) -> list[Events]:
    found = []
    for file in read_corpus(folder).files:
        with file.open() as opened:
            found += list(opened)
    return found


def test_the_commands_of_the_readme_write_the_two_corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = BUNDLED_README.read_text(encoding="utf-8").replace("\\\n", " ")
    commands = re.findall(r"^\$ fencepost (simulate .*)$", text, re.MULTILINE)
    assert len(commands) == 2
    monkeypatch.chdir(tmp_path)
    for command in commands:
        assert main([*shlex.split(command), "--master", "serial"]) == 0
    for name in (bundled.PLANTED, bundled.CLEAN):
        ours, theirs = rows(tmp_path / name), rows(bundled.folder() / name)
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            for column in ("trace", "step", "action", "params", "cells"):
                assert np.array_equal(getattr(one, column), getattr(other, column)), column
    assert (tmp_path / bundled.PLANTED / PLANTED).read_text() == (
        bundled.folder() / bundled.PLANTED / PLANTED
    ).read_text()
    size = sum(path.stat().st_size for path in bundled.folder().glob("*/*"))
    assert size < 100_000
