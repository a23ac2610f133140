"""Runs in several processes: the same answer for any number of them, and nothing left behind whatever ends them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest
from fencepost.conformance.executed import Executed
from fencepost.conformance.simulation.coverage_feedback import CoverageFeedback
from fencepost.conformance.simulation.events import Event
from fencepost.conformance.simulation.model_system import ModelSystem
from fencepost.conformance.simulation.pool import AHEAD, Stage, played, process_pool
from fencepost.conformance.simulation.registry import make_system
from fencepost.conformance.simulation.runner import SimulationPlan, SimulationResult, simulate
from fencepost.conformance.simulation.system import SimulatedSystem, StepResult
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.errors import BadInput
from fencepost.model.explore.result import Verdict

from . import planted_free as planted
from .conftest import Fencepost
from .planted_free import ways_of

SMALL = {"replicas": 2, "log_size": 2, "max_records": 4, "max_leader_epoch": 4}
PLAN = SimulationPlan(runs=2 * AHEAD + 5, events=60, seed=4)


@pytest.fixture(scope="module")
def portfolio() -> list[Transitions]:
    return [ways_of("fencing", "kip-320", **SMALL), ways_of("fencing", "kip-320", **{**SMALL, "replicas": 3})]


def found_by(
    jobs: int,
    make: Callable[[], SimulatedSystem],
    portfolio: Sequence[Transitions],
    plan: SimulationPlan = PLAN,
    executed: bool = False,
) -> tuple[SimulationResult, Executed | None]:
    """What so many processes find."""
    source = Executed([Path(planted.__file__)]) if executed else None
    with process_pool(Stage(make, portfolio, plan, source, 60.0), jobs) as hands:
        assert len(hands) == jobs
        return simulate(make(), portfolio, plan, hands=hands, executed=source), source


def told(free: SimulationResult) -> dict[str, object]:
    """All of an answer but its time."""
    events = None if free.failure is None else [str(event) for event in free.failure.events]
    return {
        "verdict": free.verdict,
        "reason": free.reason,
        "met": free.met,
        "kinds": free.kinds,
        "runs": free.runs,
        "found": free.found,
        "parted": free.failure and free.failure.divergence,
        "events": events,
    }


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "make", [ModelSystem, planted.ShowsLess, planted.AnswersWrongly], ids=lambda make: make.__name__
)
def test_the_answer_is_the_same_for_any_number_of_processes(
    make: Callable[[], SimulatedSystem], portfolio: Sequence[Transitions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.conformance.simulation.shrink.DRAWS", 50)
    one, source = found_by(2, make, portfolio, executed=True)
    other, again = found_by(3, make, portfolio, executed=True)
    assert told(one) == told(other)
    assert source is not None and again is not None and source.never() == again.never()
    assert (one.verdict is Verdict.HOLDS) == (make is ModelSystem), "a planted fault is found, and nothing else"
    if make is ModelSystem:
        assert one.runs == PLAN.runs and one.met.events > PLAN.runs
    else:
        assert source.done > 0, "what was executed elsewhere is told here"


def test_what_a_run_knows_is_what_those_before_it_have_learned() -> None:
    known = CoverageFeedback()
    learned = []
    for number in range(3):
        one = known.apart()
        for seed in range(40):
            event = Event(planted.EventKind.CALL, f"name {seed % (number + 2)}")
            one.happened(event, [], new=one.is_new((number, seed % 7)))
        learned.append(one.learned(known))
        known.take(learned[-1])
    again = CoverageFeedback()
    for each in learned:
        again.take(each)
    kinds = {kind for kind, _ in known.counts}
    assert known.counts == again.counts and sum(known.counts.values()) == 120
    assert [known.yields(kind) for kind in kinds] == [again.yields(kind) for kind in kinds]
    assert not known.apart().is_new((2, 3)) and known.apart().is_new((3, 3))
    assert learned[1].states.isdisjoint(learned[0].states)


class Refuses(ModelSystem):
    """Does not start."""

    def reset(self, constants: object, seed: int) -> StepResult:
        raise BadInput("there is no room", "the disk", "make some")


class EndsItsProcess(ModelSystem):
    """What a fault in a library in C comes to."""

    def step(self, event: Event) -> StepResult:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().step(event)


def test_bad_input_comes_from_there_as_from_here(portfolio: Sequence[Transitions]) -> None:
    with pytest.raises(BadInput, match="there is no room"):
        found_by(2, Refuses, portfolio)


def test_a_system_that_ends_its_process_is_told(portfolio: Sequence[Transitions]) -> None:
    with pytest.raises(BadInput, match=r"the process that run [01] was in has ended \(SIGKILL\)"):
        found_by(2, EndsItsProcess, portfolio)


def test_no_process_outlives_the_block(portfolio: Sequence[Transitions]) -> None:
    def fails() -> None:
        with process_pool(Stage(ModelSystem, portfolio, PLAN, None, 60.0), 2) as hands:
            next(played(hands, lambda _number: True))
            assert len(psutil.Process().children()) >= 2
            raise ZeroDivisionError

    before = {each.pid for each in psutil.Process().children()}
    with pytest.raises(ZeroDivisionError):
        fails()
    assert {each.pid for each in psutil.Process().children()} <= before


def test_files_are_put_away_where_the_processes_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    system = make_system("disk", "fencing", None)
    portfolio = [ways_of("fencing", system.variant, **SMALL)]
    seen = 0
    with process_pool(Stage(lambda: make_system("disk", "fencing", None), portfolio, PLAN, None, 60.0), 2) as hands:
        for _ in played(hands, lambda number: number < 6):
            seen = max(seen, len(list(tmp_path.iterdir())))
    system.close()
    assert seen >= 2 and list(tmp_path.iterdir()) == []


def test_no_process_outlives_a_command_that_is_killed(tmp_path: Path) -> None:
    run = ("conform", "--impl", "model", "--way", "free", "--runs", "1000000", "--jobs", "2")
    command = subprocess.Popen(
        [sys.executable, "-c", "from fencepost.conformance.entry import run; run()", *run],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    )
    children: list[psutil.Process] = []
    deadline = time.monotonic() + 60
    while len(children) < 2 and time.monotonic() < deadline:
        children = psutil.Process(command.pid).children()
        time.sleep(0.05)
    assert len(children) == 2
    command.kill()
    command.wait()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive


def test_the_command_says_the_same_by_one_process_and_by_two(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ("conform", "--way", "free", "--impl", "model", "--runs", 20, "--events", 40, "--seed", 3, "--json")
    answers = []
    for jobs in (1, 2):
        answer = json.loads(fencepost(*run, "--jobs", jobs).out)["free"]
        answers.append({name: value for name, value in answer.items() if not name.startswith(("seconds", "events_"))})
    assert answers[0] == answers[1] and answers[0]["verdict"] == "holds"


def test_a_corpus_is_gone_on_from_in_one_process(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ("conform", "--way", "free", "--impl", "model", "--runs", 2, "--corpus", "kept")
    bad = fencepost(*run, "--jobs", 2)
    assert bad.code == 2 and "--jobs 2: each run goes on from what those before it have met" in bad.err
    assert fencepost(*run).code == 0


def test_a_default_for_either_steps_back_beside_the_other(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ("conform", "--way", "free", "--impl", "model", "--runs", 2)
    (tmp_path / "pyproject.toml").write_text("[tool.fencepost.conform]\njobs = 2\n")
    assert fencepost(*run, "--corpus", "kept").code == 0
    (tmp_path / "pyproject.toml").write_text('[tool.fencepost.conform]\ncorpus = "other"\n')
    assert fencepost(*run, "--jobs", 2).code == 0
    assert (tmp_path / "kept").is_dir() and not (tmp_path / "other").exists()
