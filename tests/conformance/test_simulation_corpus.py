"""Schedules that met something new: what is kept, how later runs go on from it, and that the same gives the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fencepost.conformance.simulation.corpus import Corpus
from fencepost.conformance.simulation.model_system import ModelSystem
from fencepost.conformance.simulation.runner import SimulationPlan, simulate
from fencepost.conformance.simulation.schedule import read_schedule
from fencepost.conformance.simulation.shrink import repeat
from fencepost.model.core.errors import BadInput

from .conftest import Fencepost
from .planted_free import ways_of

SMALL = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
PLAN = SimulationPlan(runs=8, events=40, seed=5)


def ran(folder: Path, plan: SimulationPlan = PLAN) -> Corpus:
    """Runs of the model with a corpus, which hold."""
    system = ModelSystem()
    corpus = Corpus(folder, "model")
    found = simulate(system, [ways_of(system.protocol, system.variant, **SMALL)], plan, corpus=corpus)
    assert found.verdict.value == "holds"
    return corpus


def test_what_meets_something_new_is_kept_up_to_there(tmp_path: Path) -> None:
    corpus = ran(tmp_path / "corpus")
    assert corpus.began == 0 and 0 < corpus.kept <= PLAN.runs
    files = sorted((tmp_path / "corpus").iterdir())
    assert len(files) == corpus.kept
    schedules = [read_schedule(path) for path in files]
    met = [feature for each in schedules for feature in each.met]
    assert len(met) == len(set(met)), "each is new once"
    assert {"step", "steps"} <= {feature.split()[0] for feature in met}
    ways = ways_of("fencing", None, **SMALL)
    for each in schedules:
        again = repeat(ModelSystem(), ways, each.seed, each.events)
        assert again.divergence is None and again.events == each.events, "all of it happens again"
        steps = {call[0] for done in again.history for call, _ in done.path}
        assert {feature.removeprefix("step ") for feature in each.met if feature.startswith("step ")} <= steps
        last = again.history[-1]
        assert last.path or last.happened.judged, "it ends where something new was met"


def test_later_runs_go_on_from_it_and_the_same_folder_and_seed_give_the_same_runs(tmp_path: Path) -> None:
    first = tmp_path / "first"
    ran(first)
    before = {path.name for path in first.iterdir()}
    second = tmp_path / "second"
    shutil.copytree(first, second)
    more = SimulationPlan(runs=30, events=60, seed=6)
    one, other = ran(first, more), ran(second, more)
    assert one.began == other.began == len(before) and one.kept == other.kept
    texts = [{path.name: path.read_text() for path in folder.iterdir()} for folder in (first, second)]
    assert texts[0] == texts[1] and before <= set(texts[0])
    ways = ways_of("fencing", None, **SMALL)
    begun = [one.begin(ways, seed) for seed in range(200)]
    assert 60 < sum(each is not None for each in begun) < 140, "half of the runs"
    kept = [read_schedule(path) for path in first.iterdir()]
    for each in begun:
        if each is not None:
            assert any(each.seed == own.seed and own.events[: len(each.events)] == each.events for own in kept)
    assert one.begin(ways_of("fencing", None, **(SMALL | {"replicas": 3})), 1) is None, "other constants"
    assert Corpus(first, "another").began == 0, "another system's"


def test_a_run_that_goes_on_from_a_schedule_can_be_repeated(fencepost: Fencepost, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    ran(folder)
    system = ModelSystem("fencing", None, ["leader_shrink_isr.true_leader"])
    ways = ways_of("fencing", None, **SMALL)
    for seed in range(20):
        found = simulate(system, [ways], SimulationPlan(runs=200, events=60, seed=seed), corpus=Corpus(folder, "model"))
        assert found.verdict.value == "violated" and found.repeatable
        begun = {each.seed for each in map(read_schedule, folder.iterdir())}
        if found.failure is not None and found.failure.seed in begun:
            return
    pytest.fail("no failing run began with a schedule that was kept")


def test_the_command_keeps_a_corpus_and_says_so(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ("conform", "--way", "free", "--impl", "model", "--runs", 4, "--events", 30, "--corpus", "kept")
    said = fencepost(*run, "--replicas", 2, "--json").json["free"]["corpus"]
    assert said["began"] == 0 and said["kept"] == len(list(Path("kept").iterdir())) > 0
    text = " ".join(fencepost(*run, "--replicas", 2).out.split())
    assert f"kept: {said['kept']} schedules to resume from" in text
    assert "cannot be made" in fencepost(*run[:-1], "no/such").complaint
    path = next(Path("kept").iterdir())
    head, *_ = path.read_text().splitlines()
    path.write_text(json.dumps(json.loads(head) | {"met": 3}) + "\n")
    assert "what it met is no list of texts" in fencepost(*run).complaint
    with pytest.raises(BadInput):
        Corpus(path, "model")
