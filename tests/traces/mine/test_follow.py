"""Following a folder with Spark: killed twice in mid-run and started again, the answer is that of the batch job."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fencepost.conformance.cli import main
from fencepost.traces.corpus.plan import make_plan
from fencepost.traces.corpus.simulate import simulate, simulation, walker
from fencepost.traces.corpus.spread import SERIAL
from fencepost.traces.mine.answer import TIMES
from fencepost.traces.mine.job import Asked, mine

FAULTS = ("follower_fetch.epoch_not_fenced dropped", "kip-101")
SECONDS = 240.0

KILLED = """
import os, signal, sys
from fencepost.conformance.cli import main
from fencepost.traces.mine import follow, follow_state

folder, checkpoint, when = sys.argv[1:]
follow.FILES = 2
write = follow_state.Journal.write

def dying(self, state):
    if state.batch == 1 and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, state)
    if state.batch == 1 and when == "after":
        os.kill(os.getpid(), signal.SIGKILL)

follow_state.Journal.write = dying
main(["mine", "--follow", folder, "--checkpoint", checkpoint, "--master", "local[2]"])
"""
"""Ends as by kill -9 in its second batch: before what came of it is written, or after, when Spark does not know yet."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight files of a corpus, and its name holds what Spark would take for a pattern."""
    path = tmp_path_factory.mktemp("follow") / "in [1] {a,b}"
    asked = simulation("fencing", None, {"replicas": 2}, 160, 30, 5, 8)
    simulate(asked, path, make_plan(walker(asked, FAULTS), FAULTS, FAULTS, asked.traces, 20, asked.events))
    for each in path.iterdir():
        if each.suffix != ".parquet":
            each.unlink()
    return path


class Process:
    """``fencepost mine --follow`` in a process of its own; what it says on standard error is read as it comes."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-c", "from fencepost.conformance.cli import run; run()", "mine", "--follow"]
        self._process = subprocess.Popen(
            [*command, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.said: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said.append(line.rstrip("\n"))

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not any(text in line for line in self.said):
            assert self._process.poll() is None and time.monotonic() < deadline, f"no {text!r} in {self.said}"
            time.sleep(0.1)

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, dict[str, Any]]:
        assert self._process.stdout is not None
        out = self._process.stdout.read()
        return self._process.wait(SECONDS), json.loads(out)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def untimed(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in TIMES}


def batches(said: list[str]) -> Iterator[int]:
    for line in said:
        if line.startswith("batch "):
            yield int(line.split()[1].rstrip(":"))


def killed_and_interrupted(folder: Path, tmp_path: Path, killed: Sequence[str]) -> tuple[Path, Path, Any]:
    """Killed so often, then interrupted at the end: the folder, the checkpoint and the answer, the batch job's too."""
    folder = Path(shutil.copytree(folder, tmp_path / folder.name))
    expected = untimed(json.loads(json.dumps(mine(Asked(folder), SERIAL).to_json())))
    assert expected["groups"], "a corpus with no bug would show little"
    later = sorted(folder.iterdir())[4:]
    away = tmp_path / "away"
    away.mkdir()
    for path in later:
        path.rename(away / path.name)
    checkpoint = tmp_path / "checkpoint"
    for when in killed:
        done = subprocess.run(
            [sys.executable, "-c", KILLED, folder, checkpoint, when], capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
    written = [path.name for path in checkpoint.glob("batch-*")]
    expected_batches = ["batch-00000000.json", "batch-00000001.json"]
    assert sorted(written) == expected_batches[: 2 if killed[-1] == "after" else 1]
    assert not (checkpoint / "spark" / "commits" / "1").exists(), "Spark does not know of the second batch"
    with Process(folder, "--checkpoint", checkpoint, "--master", "local[2]", "--json") as process:
        process.wait_for("so far 4 files")
        for path in later:
            (away / path.name).rename(folder / path.name)
        # Its ground truth is no trace.
        (folder / "planted.jsonl").write_text("")
        process.wait_for("so far 8 files")
        process.interrupt()
        code, answer = process.end()
        assert next(batches(process.said)) == 1, "the batch that was not noted is done again, and no other"
        # But for the JVM's own warnings, nothing else is said.
        assert [line for line in process.said if not line.startswith(("batch ", "new: ", "WARNING:"))] == []
    assert code == 1
    assert untimed(answer) == expected
    return folder, checkpoint, expected


@pytest.mark.spark
def test_killed_and_interrupted_it_comes_to_the_batch_jobs_answer(
    folder: Path, tmp_path: Path, random_seed: int
) -> None:
    killed_and_interrupted(folder, tmp_path, [("before", "after")[random_seed % 2]])


@pytest.mark.spark
@pytest.mark.nightly(seconds=90)
def test_killed_twice_and_interrupted_it_comes_to_the_batch_jobs_answer(folder: Path, tmp_path: Path) -> None:
    followed, checkpoint, expected = killed_and_interrupted(folder, tmp_path, ["before", "after"])
    # Once more, with nothing new: the answer is that of the checkpoint.
    once_more = ("--checkpoint", checkpoint, "--master", "local[2]", "--json", "--until-idle", 1)
    with Process(followed, *once_more) as process:
        code, again = process.end()
        assert list(batches(process.said)) == []
    assert (code, untimed(again)) == (1, expected)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["FOLDER", "--follow", "--master", "serial"],
            "--master serial: a folder is followed by Spark; name local[N], ",
        ),
        (["FOLDER", "--follow", "--variant", "nope"], "--variant: no protocol has a variant 'nope'; fencepost explore"),
        (["FOLDER/none", "--follow"], "/none: cannot be read: No such file or directory; name a folder"),
        (["FOLDER", "--until-idle", "3"], "--until-idle: it says how a folder is followed; add --follow, or leave it"),
        (["FOLDER", "--checkpoint", "c"], "--checkpoint: it says how a folder is followed; add --follow, or leave it"),
    ],
)
def test_what_cannot_be_followed_is_named_in_one_line(
    folder: Path, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mine", *(each.replace("FOLDER", str(folder)) for each in arguments)]) == 2
    said = capsys.readouterr()
    assert complaint in said.err
    assert said.err.count("\n") == 1 and said.out == ""
