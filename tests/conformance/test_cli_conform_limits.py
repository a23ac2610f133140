"""``fencepost conform``: systems that raise, hang or end the process, budgets of time, options that change nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fencepost.conformance.lockstep.watch import Hung, Watched
from junitparser import Error, Failure, JUnitXml

from .conftest import Fencepost

TINY = ("--replicas", 2, "--log-size", 1, "--max-records", 1, "--max-leader-epoch", 1)

BROKEN = """
import ctypes
import time
from fencepost.conformance.lockstep.model_adapter import ModelAdapter

class Raises(ModelAdapter):
    name = "raises"
    def observe(self):
        seen = super().observe()
        return {}["gone"] if seen["leo[0]"] == 1 else seen

class Inside(ModelAdapter):
    name = "inside"
    def observe(self):
        return self.space.nothing

class Resets(ModelAdapter):
    name = "resets"
    def reset(self, constants, seed):
        raise OSError("no route to host")

class Exits(ModelAdapter):
    name = "exits"
    def apply(self, action, params, fault=None):
        raise SystemExit(0)

class Hangs(ModelAdapter):
    name = "hangs"
    def apply(self, action, params, fault=None):
        while action == "leader_write":
            try:
                time.sleep(100)
            except Exception:
                pass
        return super().apply(action, params, fault)

class Blind(ModelAdapter):
    name = "blind"
    def observe(self):
        time.sleep(100)

class Locked(ModelAdapter):
    name = "locked"
    def apply(self, action, params, fault=None):
        mutex, library = ctypes.create_string_buffer(128), ctypes.CDLL(None)
        library.pthread_mutex_lock(mutex)
        library.pthread_mutex_lock(mutex)

class Faultless(ModelAdapter):
    name = "faultless"
    faults = ()

def unfenced(protocol, variant):
    return ModelAdapter(protocol, variant, ["leader_shrink_isr.true_leader"])
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with adapters, and an empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "broken.py"
    path.write_text(BROKEN)
    return path


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("Raises", 'return {}["gone"]', "observing it raised KeyError: 'gone'"),
        ("Inside", "return self.space.nothing", "observing it raised AttributeError: "),
        ("Resets", "raise OSError", "resetting it raised OSError: no route to host"),
        ("Exits", "raise SystemExit", "it raised SystemExit: 0"),
    ],
)
def test_whatever_a_system_raises_is_a_divergence_with_file_and_line(
    fencepost: Fencepost, broken: Path, name: str, text: str, told: str
) -> None:
    said = fencepost("conform", "--impl", f"broken.py:{name}", *TINY)
    assert said.code == 1 and told in said.out
    line = line_of(broken, text)
    assert f"at broken.py:{line}, in " in said.out
    again = fencepost("conform", "--impl", f"broken.py:{name}", "--replay", "disagreement.trace.jsonl", "--json")
    assert again.code == 1 and again.json["disagreement"]["kind"] == "raised"
    assert again.json["disagreement"]["at"]["line"] == line
    assert Path(again.json["disagreement"]["at"]["file"]).name == "broken.py"


@pytest.mark.parametrize(
    ("name", "call"),
    [("Hangs", "apply(leader_write(leader="), ("Blind", "observe did not come back within 0.2 s")],
)
def test_a_system_that_hangs_is_stopped_and_told_by_the_call(
    fencepost: Fencepost, broken: Path, name: str, call: str
) -> None:
    start = time.monotonic()
    said = fencepost("conform", "--impl", f"broken.py:{name}", "--step-timeout", "0.2s", *TINY, "--json")
    assert said.code == 1 and said.json["verdict"] == "violated" and said.json["repeatable"]
    found = said.json["disagreement"]
    assert found["kind"] == "hung" and call in found["detail"]
    assert broken.read_text().splitlines()[found["at"]["line"] - 1].strip() == "time.sleep(100)"
    assert time.monotonic() - start < 60


def test_what_cannot_be_interrupted_ends_the_process_with_the_verdict(broken: Path) -> None:
    program = """
import sys
from fencepost.conformance.lockstep import watch
watch.Watched.__init__.__defaults__ = (60.0, 1.0)
from fencepost.conformance.cli import run
run()
"""
    arguments = ["conform", "--impl", "broken.py:Locked", "--step-timeout", "0.2s", *map(str, TINY), "--json"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stdout == ""
    first, *rest = done.stderr.splitlines()
    assert first.startswith("fencepost: apply(controller_elect_leader(new_leader=") and "cannot be interrupted" in first
    assert any(f'broken.py", line {line_of(broken, "pthread_mutex_lock") + 1} in apply' in line for line in rest)


def test_a_call_that_is_just_slow_is_let_be(broken: Path) -> None:
    class Slow:
        name, protocol, variant, faults = "slow", "fencing", "kip-320", ()

        def observe(self) -> dict[str, int]:
            time.sleep(0.15)
            return {}

    with Watched(Slow(), 0.3) as watched:  # type: ignore[arg-type]
        # Time is counted from each call, not over all of them.
        assert [watched.observe() for _ in range(4)] == [{}] * 4
        time.sleep(0.4)
    with Watched(Slow(), 0.05) as watched, pytest.raises(Hung, match="observe did not come back"):  # type: ignore[arg-type]
        watched.observe()


def test_what_holds_says_in_how_many_steps(fencepost: Fencepost, broken: Path) -> None:
    run = ("conform", "--way", "lockstep", "--impl", "model", "--examples", 3, "--seed", 5, *TINY)
    steps = fencepost(*run, "--json").json["steps"]
    assert f"holds, no divergence in {steps:,} steps" in fencepost(*run).out


def test_a_budget_of_time_says_what_it_made(fencepost: Fencepost, broken: Path) -> None:
    said = fencepost("conform", "--way", "lockstep", "--impl", "model", "--time", "1s", *TINY, "--json")
    assert said.code == 0 and said.json["verdict"] == "holds" and said.json["redraw"] is None
    assert 1.0 <= said.json["seconds"] < 30 and said.json["steps"] > 0 and said.json["examples"] > 0


@pytest.mark.parametrize("draw", ["hypothesis", "random"])
def test_what_a_budget_of_time_finds_is_found_again_without_the_clock(
    fencepost: Fencepost, broken: Path, draw: str
) -> None:
    run = ("conform", "--impl", "broken.py:unfenced", "--draw", draw, "--seed", 3, "--replicas", 2)
    said = fencepost(*run, "--time", "5m", "--json")
    assert said.code == 1
    command = said.json["redraw"].split()
    assert command[:2] == ["fencepost", "conform"] and "--time" not in command
    again = fencepost(*command[1:], "--json")
    same = ("disagreement", "tries", "steps", "examples", "found_after")
    assert [again.json[name] for name in same] == [said.json[name] for name in same]
    assert fencepost(*said.json["replay"].split()[1:]).code == 1


IDLE = [
    (("--impl", "model", "--fault", "crash"), "--fault crash: nothing crashes in kip-320"),
    (("--impl", "broken.py:Faultless", "--fault", "isolate"), "--fault: faultless has no fault 'isolate'"),
    (("--impl", "model", "--no-faults", "--fault", "isolate"), "--fault: no fault is drawn"),
    (("--impl", "model", "--time", "5s", "--examples", 3), "--examples: --time says when to stop"),
    (("--impl", "model", "--time", "5s", "--max-seconds", 3), "--max-seconds: --time says when to stop"),
    (("--impl", "model", "--time", "soon"), "'soon' is no duration: write 60s, 5m or 1h"),
    (("--replay", "x.jsonl", "--seed", 0), "--seed: the tries are the file's"),
    (("--replay", "x.jsonl", "--no-faults"), "--faults: the tries are the file's"),
    (("--impl", "model", "--invariant", "weak_isr", "--invariant", "weak_isr"), "--invariant: weak_isr is named twice"),
    (("--impl", "model", "--replicas", 40), "the constants: grounding 9,880 instances"),
]


@pytest.mark.parametrize(("options", "told"), IDLE, ids=[" ".join(map(str, options)) for options, _ in IDLE])
def test_an_option_that_would_change_nothing_is_refused(
    fencepost: Fencepost, broken: Path, options: tuple[object, ...], told: str
) -> None:
    assert told in fencepost("conform", *options).complaint


def test_a_trace_without_events_shows_nothing(fencepost: Fencepost, broken: Path) -> None:
    assert fencepost("explore", "fencing", "--variant", "truncate-to-hw", "--trace-out", "run.jsonl").code == 1
    Path("empty.jsonl").write_text(Path("run.jsonl").read_text().splitlines()[0] + "\n")
    assert (
        "empty.jsonl: it has no tries" in fencepost("conform", "--impl", "model", "--replay", "empty.jsonl").complaint
    )


def test_junit_and_annotation_of_a_divergence(
    fencepost: Fencepost, broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    said = fencepost("conform", "--impl", "broken.py:Raises", *TINY, "--junitxml", "junit.xml", "--json")
    assert said.code == 1 and said.json["verdict"] == "violated"
    (suite,) = JUnitXml.fromfile("junit.xml")
    cases = {case.name: case for case in suite}
    (failure,) = cases["conforms"].result
    assert isinstance(failure, Failure) and "KeyError" in failure.message and "follower" in failure.text
    assert isinstance(cases["weak_isr"].result[0], Error)
    annotation = next(line for line in said.err.splitlines() if line.startswith("::"))
    line = line_of(broken, 'return {}["gone"]')
    assert annotation.startswith(f"::error file=broken.py,line={line},title=raises does not conform to fencing::")
    held = fencepost(
        "conform", "--way", "lockstep", "--impl", "model", "--examples", 2, *TINY, "--junitxml", "junit.xml"
    )
    assert held.code == 0 and "::" not in held.err
    (suite,) = JUnitXml.fromfile("junit.xml")
    assert suite.tests > 3 and not any(case.result for case in suite)


def test_a_divergence_with_a_guard_points_at_the_action(
    fencepost: Fencepost, broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    said = fencepost("conform", "--impl", "broken.py:unfenced", "--replicas", 2)
    annotation = next(line for line in said.err.splitlines() if line.startswith("::error"))
    properties = dict(each.split("=", 1) for each in annotation.split("::")[1].removeprefix("error ").split(","))
    text = Path(properties["file"]).read_text().splitlines()[int(properties["line"]) - 1 :]
    assert any("def leader_shrink_isr" in each for each in text[:3])


def test_hypothesis_leaves_nothing_in_the_folder(broken: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    environment.pop("HYPOTHESIS_STORAGE_DIRECTORY", None)
    command = [sys.executable, "-c", "from fencepost.conformance.cli import run; run()"]
    run = ["conform", "--impl", "broken.py:Raises", *map(str, TINY)]
    done = subprocess.run([*command, *run], capture_output=True, timeout=120, env=environment)
    assert done.returncode == 1
    left = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert left <= {"broken.py", "cache", "disagreement.trace.jsonl"}
