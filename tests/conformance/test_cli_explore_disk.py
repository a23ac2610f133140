"""``fencepost explore --dir``: killed at any moment it goes on to the same answer; what it does not do is refused."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import Fencepost, Said

TINY = ("fencing", "--replicas", 2, "--log-size", 1, "--max-records", 1, "--max-leader-epoch", 1)
BROKEN = ("fencing", "--variant", "truncate-to-hw")


def answer(said: Said) -> dict[str, object]:
    """What does not depend on how quickly it went, nor on how often it was begun."""
    timed = ("seconds", "states_per_second", "memory_bytes", "engine", "engine_note")
    return {name: value for name, value in said.json.items() if name not in timed}


def levels(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.keys")}


def killed(arguments: tuple[object, ...], seconds: float) -> int:
    """Run it as a process, and kill it after so many seconds; its exit code."""
    program = "from fencepost.conformance.cli import run; run()"
    command = [sys.executable, "-c", program, "explore", *map(str, arguments)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return running.wait(seconds)
    except subprocess.TimeoutExpired:
        running.kill()
        return running.wait()


def goes_on(process: Fencepost, tmp_path: Path, times: int, seed: int, *arguments: object) -> None:
    """Killed so many times at random moments, each time in a new directory or in that of the last time."""
    print(f"seed {seed}")
    draw = random.Random(seed)
    before = time.monotonic()
    whole = process("explore", *arguments, "--dir", tmp_path / "whole", "--json")
    took = time.monotonic() - before
    ends = 0
    for number in range(times):
        folder = tmp_path / f"killed-{number - number % 2}"
        ends += killed((*arguments, "--dir", folder), draw.uniform(0.2, 1.0) * took) == -signal.SIGKILL
        if number % 2:
            again = process("explore", *arguments, "--dir", folder, "--json")
            assert (again.code, answer(again)) == (whole.code, answer(whole))
            assert levels(folder) == levels(tmp_path / "whole")
    assert ends, "no run was killed: all were too quick"


def test_a_search_that_was_killed_goes_on_to_the_same_counterexample(process: Fencepost, tmp_path: Path) -> None:
    """Some seconds: seven processes, of which four are killed."""
    goes_on(process, tmp_path, 4, 1, *BROKEN, "--engine", "batch")


@pytest.mark.nightly(seconds=80)
@pytest.mark.parametrize("variant", ["kip-320", "truncate-to-hw"])
def test_killed_at_20_moments_it_goes_on_to_the_same_answer(process: Fencepost, tmp_path: Path, variant: str) -> None:
    goes_on(process, tmp_path, 20, 2, "fencing", "--variant", variant, "--log-size", 3, "--max-records", 3)


def test_the_answer_is_that_of_memory(fencepost: Fencepost, tmp_path: Path) -> None:
    on_disk = fencepost("explore", *TINY, "--dir", tmp_path / "states", "--engine", "batch", "--json")
    in_memory = fencepost("explore", *TINY, "--engine", "batch", "--json")
    assert on_disk.code == in_memory.code == 0

    def enabled(said: Said) -> dict[str, object]:
        # Who finds a state first is a race.
        return {**answer(said), "coverage": {n: each["transitions"] for n, each in said.json["coverage"].items()}}

    assert enabled(on_disk) == enabled(in_memory)
    assert str(tmp_path / "states") in on_disk.json["engine_note"]
    text = fencepost("explore", *TINY, "--dir", tmp_path / "states")
    assert text.code == 0 and "277 distinct states, depth 12" in text.out
    assert "from level 12 on, of which a run before has ended" in text.out


def test_a_counterexample_is_written_as_a_trace(fencepost: Fencepost, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    arguments = ("explore", *BROKEN, "--replicas", 2, "--dir", tmp_path / "states", "--trace-out", trace)
    assert fencepost(*arguments).code == 1
    first = trace.read_bytes()
    assert fencepost(*arguments).code == 1 and trace.read_bytes() == first
    assert fencepost("replay", trace).out.startswith("violated: weak_isr")


def test_a_spent_budget_is_unknown_and_a_larger_one_goes_on(fencepost: Fencepost, tmp_path: Path) -> None:
    folder = tmp_path / "states"
    said = fencepost("explore", *TINY, "--dir", folder, "--max-states", 100)
    assert said.code == 3 and "more than 100 states (--max-states)" in said.out
    assert fencepost("explore", *TINY, "--dir", folder).code == 0


def test_whoever_runs_out_of_memory_hears_of_it(process: Fencepost) -> None:
    said = process("explore", "fencing", "--variant", "kip-320-brokers", "--max-memory", 160)
    assert said.code == 3 and "more than 160 MiB of memory (--max-memory)" in said.out
    assert "with --dir DIR states lie on disk, and memory does not limit how many they are" in said.lines


IDLE = [
    (("--engine", "reference"), "--dir: the reference engine keeps nothing in files; leave it out, or take batch"),
    (("--engine", "symbolic"), "--dir: the symbolic engine keeps nothing in files"),
    (("--liveness",), "--liveness: it needs the whole graph in memory; leave it out, or --dir"),
    (("--graph", "x.dot"), "--graph: it needs the whole graph in memory"),
    (("--refines", "kip-279"), "--refines: it needs the whole graph in memory"),
    (("--threads", 2), "--threads: of states on disk all is done by one thread"),
    (("--symmetry", "--engine", "compiled"), "--symmetry: the compiled engine counts states, no orbits"),
]


@pytest.mark.parametrize(("options", "told"), IDLE, ids=[options[0] for options, _ in IDLE])
def test_what_is_not_asked_of_states_on_disk_is_refused(
    fencepost: Fencepost, options: tuple[object, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in fencepost("explore", *TINY, "--dir", "states", *options).complaint
    assert list(tmp_path.iterdir()) == []


def test_only_states_on_disk_are_spread(fencepost: Fencepost, tmp_path: Path) -> None:
    told = "--master: only states on disk are spread over processes; add --dir, or leave it out"
    assert fencepost("explore", *TINY, "--master", "local[2]").complaint == told
    assert "no master that this runs on" in fencepost("explore", *TINY, "--dir", tmp_path, "--master", "x").complaint
    assert list(tmp_path.iterdir()) == []
    assert fencepost("explore", *TINY, "--dir", tmp_path, "--master", "serial").code == 0


def test_a_directory_of_another_search_is_refused_in_one_line(fencepost: Fencepost, tmp_path: Path) -> None:
    folder = tmp_path / "states"
    assert fencepost("explore", *TINY, "--dir", folder).code == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    told = fencepost("explore", "snapshots", "--dir", folder).complaint
    what = "it is of protocol fencing, and this is of snapshots"
    assert told == f"{folder}: {what}; give a directory of its own, or remove this one"
    (folder / "level-00003.keys").write_bytes(b"")
    assert "level-00003.keys: it is cut or changed: 0 bytes" in fencepost("explore", *TINY, "--dir", folder).complaint
    (folder / "level-00003.keys").write_bytes(before["level-00003.keys"])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert "it has files, and no manifest" in fencepost("explore", *TINY, "--dir", tmp_path).complaint


BUDGETS = (20, 25, 30, 35, 40, 45, 50, 60, 80, 110)
"""MiB beside what the process has before it begins."""

_PROGRAM = """
import json, sys
from pathlib import Path
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore import Limits, Query, memory
from fencepost.model.explore.disk.search import explore_on_disk
constants = dict(zip(PROTOCOLS["fencing"].constants, (3, 3, 3, 2)))
system = ground(PROTOCOLS["fencing"].traced(None), constants)
granted = memory.resident() + (int(sys.argv[1]) << 20)
answer = explore_on_disk(Query.of(system, limits=Limits(max_memory=granted)), Path(sys.argv[2]), sys.argv[3])
print(json.dumps([answer.verdict.value, answer.distinct, answer.memory / granted]))
"""


def peaked(budget: int, folder: Path, engine: str) -> tuple[str, int, float]:
    """Verdict, states and the share of what was granted that the process had resident at most."""
    command = [sys.executable, "-c", _PROGRAM, str(budget), str(folder), engine]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    verdict, distinct, share = json.loads(done.stdout)
    return verdict, distinct, share


@pytest.mark.nightly(seconds=150)
@pytest.mark.parametrize(("engine", "budgets"), [("batch", BUDGETS[::3]), ("compiled", BUDGETS)])
def test_memory_is_what_was_granted(tmp_path: Path, engine: str, budgets: tuple[int, ...]) -> None:
    for budget in budgets:
        verdict, distinct, share = peaked(budget, tmp_path / str(budget), engine)
        assert (verdict, distinct) == ("holds", 4_093_531) and share <= 1.05, budget
