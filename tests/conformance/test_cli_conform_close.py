"""``fencepost conform`` of systems that hang, raise or are slow: in ``close``, after a hang, while a run is shrunk."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fencepost.conformance.lockstep.watch import HUNG_STATUS
from fencepost.conformance.system_closer import SystemCloser

from .conftest import Fencepost

TINY = ("--replicas", 2, "--log-size", 1, "--max-records", 1, "--max-leader-epoch", 1)

SYSTEMS = """
import threading
import time
from fencepost.conformance.simulation.model_system import ModelSystem
from fencepost.conformance.lockstep.model_adapter import ModelAdapter

class HangsAtClose:
    def close(self):
        time.sleep(1000)

class Simulated(HangsAtClose, ModelSystem):
    name = "simulated"

class Stepped(HangsAtClose, ModelAdapter):
    name = "stepped"

class RaisesAtClose(ModelSystem):
    name = "raises"
    def close(self):
        raise OSError("no such socket")

class ExitsAtClose(ModelAdapter):
    name = "exits"
    def close(self):
        raise SystemExit(1)

class LeavesThread(ModelSystem):
    name = "thread"
    def __init__(self, protocol, variant):
        super().__init__(protocol, variant)
        threading.Thread(target=time.sleep, args=(1000,)).start()

class Stuck:
    stuck = False
    def reset(self, constants, seed):
        if self.stuck:
            time.sleep(1000)
        return super().reset(constants, seed)

class StuckStepped(Stuck, HangsAtClose, ModelAdapter):
    name = "stuck"
    def apply(self, action, params, fault=None):
        if action == "leader_write":
            self.stuck = True
            time.sleep(1000)
        return super().apply(action, params, fault)

class StuckSimulated(Stuck, HangsAtClose, ModelSystem):
    name = "stuck"
    def step(self, event):
        if event.name == "leader_write":
            self.stuck = True
            time.sleep(1000)
        return super().step(event)

shown = stuck_once = False

def wrong(seen):
    # A wrong end of the log, as soon as replica 0 has a record.
    global shown
    seen = dict(seen)
    if seen.get("leo[0]") == 1:
        seen["leo[0]"], shown = 0, True
    return seen

class WrongThenStuck:
    # Gets stuck once, while the run is shrunk.
    def observe(self):
        return wrong(super().observe())
    def once(self):
        global stuck_once
        if shown and not stuck_once:
            stuck_once = self.stuck = True
            time.sleep(1000)

class WrongSimulated(WrongThenStuck, Stuck, ModelSystem):
    name = "wrong"
    def step(self, event):
        self.once()
        return super().step(event)

class WrongStepped(WrongThenStuck, Stuck, ModelAdapter):
    name = "wrong"
    def apply(self, action, params, fault=None):
        self.once()
        return super().apply(action, params, fault)

class SlowSimulated(ModelSystem):
    # Slow as soon as it has shown the fault.
    name = "slow"
    def observe(self):
        return wrong(super().observe())
    def step(self, event):
        time.sleep(0.5 * shown)
        return super().step(event)

class SlowStepped(ModelAdapter):
    name = "slow"
    def observe(self):
        return wrong(super().observe())
    def apply(self, action, params, fault=None):
        time.sleep(0.5 * shown)
        return super().apply(action, params, fault)

class SlowHealthy(ModelSystem):
    name = "healthy"
    def step(self, event):
        time.sleep(0.1)
        return super().step(event)

class Locked(ModelSystem):
    def step(self, event):
        while True:
            try:
                time.sleep(100)
            except BaseException:
                pass

class HangsInPeace(ModelSystem):
    name = "peaceless"
    def peace(self, *, on):
        if on:
            time.sleep(1000)
"""


@pytest.fixture
def systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "systems.py").write_text(SYSTEMS)


@pytest.mark.usefixtures("systems")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Simulated", ("--runs", 3)),
        ("Simulated", ("--runs", 20, "--jobs", 2)),
        ("Stepped", ("--examples", 3)),
    ],
)
def test_hanging_close_keeps_the_verdict(fencepost: Fencepost, name: str, options: tuple[object, ...]) -> None:
    start = time.monotonic()
    said = fencepost("conform", "--impl", f"systems.py:{name}", *TINY, *options, "--step-timeout", "2s", "--json")
    assert said.code == 0 and said.json["verdict"] == "holds"
    told = f"fencepost: {name.lower()}: close did not come back within 2 s (systems.py:9, in close); "
    assert said.lines[-1] == f"{told}the verdict stays as it was printed"
    assert time.monotonic() - start < 60


@pytest.mark.usefixtures("systems")
@pytest.mark.parametrize(
    ("name", "what"), [("RaisesAtClose", "raised OSError: no such socket"), ("ExitsAtClose", "raised SystemExit: 1")]
)
def test_raising_close_keeps_the_verdict(fencepost: Fencepost, name: str, what: str) -> None:
    said = fencepost("conform", "--impl", f"systems.py:{name}", *TINY, "--json")
    assert said.code == 0 and said.json["verdict"] == "holds"
    assert f"close {what} (systems.py:" in said.lines[-1]


@pytest.mark.usefixtures("systems")
def test_answer_precedes_a_close_that_cannot_be_interrupted(tmp_path: Path) -> None:
    program = """
import sys, time
from fencepost.conformance.system_closer import SystemCloser

class Stubborn:
    name = "stubborn"
    def close(self):
        while True:
            try:
                time.sleep(100)
            except BaseException:
                pass

closer = SystemCloser(0.2, warn=print, grace=0.5)
closer.keep(Stubborn())
print("holds", flush=True)
closer.close(3)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (3, "holds\n")
    told = (
        "fencepost: close did not come back within 0.2 s and cannot be interrupted; the verdict stays as it was printed"
    )
    assert done.stderr.splitlines()[0] == told
    assert HUNG_STATUS != 3


@pytest.mark.usefixtures("systems")
def test_uninterruptible_hang_of_a_process_is_violated() -> None:
    program = """
from fencepost.conformance.simulation import watch
watch.WatchedSystem.__init__.__defaults__ = (60.0, 0.5)
from fencepost.conformance.cli import command_line
raise SystemExit(command_line())
"""
    arguments = ["conform", "--impl", "systems.py:Locked", *map(str, TINY), "--jobs", "2", "--step-timeout", "2s"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=90)
    assert done.returncode == 1 and "cannot be interrupted; the verdict is violated" in done.stderr


@pytest.mark.usefixtures("systems")
def test_thread_of_a_system_does_not_keep_the_process(process: Fencepost) -> None:
    program = "from fencepost.conformance.entry import run; run()"
    arguments = ["conform", "--impl", "systems.py:LeavesThread", *map(str, TINY), "--runs", "2", "--json"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and '"verdict": "holds"' in done.stdout


@pytest.mark.usefixtures("systems")
@pytest.mark.parametrize(
    ("name", "options"), [("StuckSimulated", ()), ("StuckSimulated", ("--jobs", 2)), ("StuckStepped", ())]
)
def test_hang_is_repeated_on_a_fresh_system(fencepost: Fencepost, name: str, options: tuple[object, ...]) -> None:
    said = fencepost("conform", "--impl", f"systems.py:{name}", *TINY, *options, "--step-timeout", "2s", "--json")
    found = said.json.get("free", said.json)
    assert said.code == 1 and found["disagreement"]["kind"] == "hung" and found["repeatable"] and not found["minimal"]
    assert "leader_write" in found["disagreement"]["detail"]


@pytest.mark.usefixtures("systems")
def test_hang_at_quiescence_is_a_divergence(fencepost: Fencepost) -> None:
    said = fencepost("conform", "--impl", "systems.py:HangsInPeace", *TINY, "--step-timeout", "2s", "--json")
    found = said.json["free"]["disagreement"]
    assert said.code == 1 and found["kind"] == "hung" and "peace(on=True) did not come back" in found["detail"]


@pytest.mark.usefixtures("systems")
@pytest.mark.parametrize("name", ["WrongSimulated", "WrongStepped"])
def test_shrinking_continues_on_a_fresh_system(fencepost: Fencepost, name: str) -> None:
    run = ("conform", "--impl", f"systems.py:{name}", *TINY, "--step-timeout", "2s", "--json")
    said = fencepost(*run)
    found = said.json.get("free", said.json)
    assert said.code == 1 and found["repeatable"] and found["minimal"]
    assert len(found.get("schedule", found.get("tries"))) <= 6
    module = sys.modules[next(name for name in sys.modules if name.endswith("systems"))]
    assert module.stuck_once


BUDGETS = [("--max-seconds", 10), ("--time", "10s")]


@pytest.mark.usefixtures("systems")
@pytest.mark.parametrize("budget", BUDGETS, ids=["max-seconds", "time"])
@pytest.mark.parametrize("name", ["SlowSimulated", "SlowStepped"])
def test_budget_bounds_shrinking(fencepost: Fencepost, name: str, budget: tuple[str, object]) -> None:
    """Shrinking takes minutes without a budget: every step takes half a second."""
    start = time.monotonic()
    said = fencepost("conform", "--impl", f"systems.py:{name}", "--replicas", 2, *budget, "--json")
    seconds = time.monotonic() - start
    found = said.json.get("free", said.json)
    assert said.code == 1 and not found["minimal"] and found["redraw"] is not None
    assert found["repeatable"] in (True, None)
    assert 1 < seconds < 50
    replayed = fencepost("conform", "--replay", found["replay"].split()[-1])
    assert replayed.code == 1
    violated, *lines = said.lines
    assert violated.startswith("violated: a divergence after ") and any("leo[0]" in line for line in lines)


@pytest.mark.usefixtures("systems")
@pytest.mark.parametrize("jobs", [1, 2])
def test_max_seconds_bounds_a_single_run(fencepost: Fencepost, jobs: int) -> None:
    start = time.monotonic()
    run = ("conform", "--impl", "systems.py:SlowHealthy", "--max-seconds", 2, "--events", 2000, "--jobs", jobs)
    said = fencepost(*run, "--json")
    assert said.code == 3
    assert said.json["free"]["reason"] == "2 s ran out after 0 of 500 runs"
    assert time.monotonic() - start < 40


@pytest.mark.usefixtures("systems")
def test_finding_is_reported_before_it_is_shrunk(tmp_path: Path) -> None:
    program = "from fencepost.conformance.entry import run; run()"
    command = [sys.executable, "-c", program, "conform", "--impl", "systems.py:SlowSimulated", "--replicas", "3"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that run in the background inherit SIGINT ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as running:
        assert running.stderr is not None and running.stdout is not None
        first = running.stderr.readline()
        # It is being shrunk now: an interrupt leaves the run as it was found.
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130 and running.stdout.read() == ""
    assert first.startswith("violated: a divergence after ") and "disagreement.schedule.jsonl" in first
    lines = (tmp_path / "disagreement.schedule.jsonl").read_text().splitlines()
    assert f"after {len(lines) - 1} events" in first


def test_system_is_closed_once() -> None:
    class Counts:
        closed = 0

        def close(self) -> None:
            self.closed += 1

    first, second, warnings = Counts(), Counts(), list[str]()
    closer = SystemCloser(5.0, warn=warnings.append)
    assert closer.keep(first) is first and closer.keep(first) is first
    assert closer.replace(first, second) is second
    closer.close(0)
    closer.close(0)
    assert (first.closed, second.closed, warnings) == (0, 1, [])
