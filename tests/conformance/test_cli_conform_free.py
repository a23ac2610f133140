"""``fencepost conform --way free``: verdicts, what a divergence leaves, which way is taken, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fencepost.conformance.simulation.registry import Mode, offered, system_names
from fencepost.model.core.errors import BadInput
from junitparser import Failure, JUnitXml

from .conftest import Fencepost

SMALL = ("--replicas", 2, "--log-size", 2, "--max-records", 2, "--max-leader-epoch", 2)
FREE = ("conform", "--way", "free")

SYSTEMS = """
import time
from fencepost.conformance.simulation.model_system import ModelSystem
from fencepost.conformance.lockstep.model_adapter import ModelAdapter

def unfenced(protocol, variant):
    return ModelSystem(protocol, variant, ["leader_shrink_isr.true_leader"])

class Free(ModelSystem):
    name = "mine"

class Stepped(ModelAdapter):
    name = "mine"

class Hangs(ModelSystem):
    def pending(self):
        while len(self._flights) > 2:
            time.sleep(0.01)
        return super().pending()

class Blind(ModelSystem):
    def observe(self):
        return {}

class Raises(ModelSystem):
    def step(self, event):
        if event.name == "leader_write":
            return {}["gone"]
        return super().step(event)
"""


@pytest.fixture
def systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with systems, and an empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "systems.py"
    path.write_text(SYSTEMS)
    return path


def test_a_system_that_can_be_followed_holds(fencepost: Fencepost, systems: Path) -> None:
    run = (*FREE, "--impl", "model", "--runs", 6, "--events", 80, "--seed", 7, *SMALL)
    said = fencepost(*run, "--json")
    assert said.code == 0
    answer, free = said.json, said.json["free"]
    assert (answer["verdict"], answer["ways"]) == ("holds", {"free": "holds"})
    assert (free["system"], free["variant"], free["seed"], free["runs"]) == ("model", "kip-320", 7, 6)
    assert free["events"] > 100 and free["disagreement"] is None and free["cells_never_observed"] == []
    assert sum(free["kinds"].values()) == free["events"] - free["runs"], (
        "the start is compared too; no run of this seed comes to peace"
    )
    assert set(free["actions_never_taken"]) == {name for name, count in free["steps"].items() if not count}
    text = " ".join(fencepost(*run).out.split())
    assert "model in simulation against fencing kip-320: holds" in text
    assert f"no divergence in {free['events']:,} events of 6 runs" in text
    assert "seed 7:" in text and "(the others have their defaults): replicas 2 model states" in text
    assert "model states that explain the observations" in text and "deliver" in text
    assert list(Path.cwd().iterdir()) == [systems], "nothing is written"


def test_a_divergence_leaves_a_schedule_a_page_and_the_command_that_repeats_it(
    fencepost: Fencepost, systems: Path
) -> None:
    run = (*FREE, "--impl", "systems.py:unfenced", *SMALL)
    said = fencepost(*run, "--html", "why.html", "--junitxml", "junit.xml")
    assert said.code == 1 and "wrote disagreement.schedule.jsonl" in said.err
    text = " ".join(said.out.split())
    assert "A request got an answer that the model does not allow." in text or "No path of the model reaches" in text
    assert "guard true_leader wants" in text and "model controller_elect_leader(new_leader=" in text
    assert "events when it was found," in text and "fencing kip-320: violated" in text
    page = Path("why.html").read_text()
    assert "does not conform" in page and "true_leader" in page
    (suite,) = JUnitXml.fromfile("junit.xml")
    (failure,) = {case.name: case for case in suite}["the model can follow"].result
    assert isinstance(failure, Failure) and "true_leader" in failure.text
    command = next(line.split() for line in said.out.splitlines() if line.strip().startswith("fencepost conform"))
    assert command[1:] == ["conform", "--impl", "systems.py:unfenced", "--replay", "disagreement.schedule.jsonl"]
    again = fencepost(*command[1:], "--html", "again.html", "--trace-out", "again.jsonl", "--json")
    first = fencepost(*run, "--json").json["free"]
    assert again.code == 1 and again.json["disagreement"] == first["disagreement"]
    assert again.json["events"] == first["schedule"]
    assert Path("again.html").read_text() == page
    events = Path("disagreement.schedule.jsonl").read_text().splitlines()[1:]
    assert Path("again.jsonl").read_text().splitlines()[1:] == events and len(events) == len(first["schedule"])


def test_a_schedule_that_another_system_cannot_follow_is_no_verdict(fencepost: Fencepost, systems: Path) -> None:
    assert fencepost(*FREE, "--impl", "systems.py:unfenced", *SMALL).code == 1
    lines = Path("disagreement.schedule.jsonl").read_text().splitlines()
    said = fencepost("conform", "--impl", "model", "--replay", "disagreement.schedule.jsonl", "--json")
    assert said.code == 3 and "could not happen any more" in said.json["reason"]
    Path("head.jsonl").write_text(lines[0] + "\n")
    assert fencepost("conform", "--replay", "head.jsonl").code == 3
    Path("two.jsonl").write_text("\n".join(lines[:3]) + "\n")
    right = fencepost("conform", "--impl", "model", "--replay", "two.jsonl")
    assert right.code == 0 and "go together through all 2 events" in right.out
    Path("bad.jsonl").write_text(lines[0] + "\n" + json.dumps({"event": "explode"}))
    assert "there is no event 'explode'" in fencepost("conform", "--replay", "bad.jsonl").complaint


def test_what_a_budget_of_time_finds_is_found_again_without_the_clock(fencepost: Fencepost, systems: Path) -> None:
    said = fencepost(*FREE, "--impl", "systems.py:unfenced", "--time", "5m", "--seed", 3, *SMALL, "--json")
    assert said.code == 1
    command = said.json["free"]["redraw"].split()
    assert "--time" not in command and command[:2] == ["fencepost", "conform"]
    again = fencepost(*command[1:], "--json").json["free"]
    same = ("disagreement", "schedule", "events", "runs", "found_after", "kinds")
    assert [again[name] for name in same] == [said.json["free"][name] for name in same]


def test_both_ways_are_taken_and_the_verdict_is_of_both(fencepost: Fencepost, systems: Path) -> None:
    run = ("conform", "--impl", "model", "--runs", 2, "--events", 30, "--examples", 2, *SMALL)
    said = fencepost(*run, "--json")
    assert said.code == 0 and said.json["ways"] == {"free": "holds", "lockstep": "holds"}
    assert said.json["steps"] > 0 and said.json["free"]["events"] > 0
    assert "both ways: holds" in fencepost(*run).out
    spent = fencepost("conform", "--impl", "model", "--max-seconds", 0.02, *SMALL, "--json")
    assert spent.code == 3 and spent.json["verdict"] == "unknown"
    assert "s ran out after" in spent.json["free"]["reason"]


def test_lockstep_is_left_out_where_free_runs_have_found_something(fencepost: Fencepost, systems: Path) -> None:
    unsafe = ("--variant", "truncate-to-hw", "--replicas", 2, "--seed", 1)
    said = fencepost("conform", "--impl", "model", *unsafe, "--json")
    assert said.code == 1 and said.json["ways"] == {"free": "violated", "lockstep": None}
    assert said.json["free"]["disagreement"]["kind"] == "promise"


@pytest.mark.parametrize(("name", "ways"), [("Free", ["free"]), ("Stepped", ["lockstep"])])
def test_which_way_is_seen_from_what_a_class_has(
    fencepost: Fencepost, systems: Path, name: str, ways: list[str]
) -> None:
    said = fencepost("conform", "--impl", f"systems.py:{name}", "--max-seconds", 1, *SMALL, "--json")
    assert list(said.json["ways"]) == ways
    other = "lockstep" if ways == ["free"] else "free"
    told = fencepost("conform", "--impl", f"systems.py:{name}", "--way", other).complaint
    assert told.startswith(f"--way {other}: systems.py:{name} has no ")
    assert "--way free" in told or "--way lockstep" in told
    option = ("--examples", 3) if ways == ["free"] else ("--runs", 3)
    assert "nothing is drawn for the way" in fencepost("conform", "--impl", f"systems.py:{name}", *option).complaint


def test_systems_are_named_and_made_for_the_ways_that_are_asked_for() -> None:
    assert system_names("fencing")[-1] == "model" and "memory" in system_names("fencing")
    both = offered("model", "truncation", None)
    assert both.ways == (Mode.FREE, Mode.LOCKSTEP) and both.free is not None and both.free.protocol == "truncation"
    assert offered("model", None, None, [Mode.LOCKSTEP]).free is None
    with pytest.raises(BadInput, match="there is no adapter 'nobody'"):
        offered("nobody", None, None)


def test_a_system_that_hangs_or_raises_is_found_and_one_that_shows_nothing_is_no_verdict(
    fencepost: Fencepost, systems: Path
) -> None:
    hung = fencepost(*FREE, "--impl", "systems.py:Hangs", "--step-timeout", "0.2s", *SMALL, "--json")
    assert hung.code == 1 and hung.json["free"]["disagreement"]["kind"] == "hung"
    raised = fencepost(*FREE, "--impl", "systems.py:Raises", *SMALL, "--json").json["free"]["disagreement"]
    assert raised["kind"] == "raised" and "KeyError" in raised["detail"]
    assert Path(raised["at"]["file"]).name == "systems.py"
    blind = fencepost(*FREE, "--impl", "systems.py:Blind", "--runs", 2, "--events", 20, *SMALL, "--json")
    assert blind.code == 3 and "showed no cell" in blind.json["free"]["reason"]


IDLE = [
    (("--way", "free", "--impl", "model", "--examples", 3), "--examples: nothing is drawn for the way lockstep"),
    (("--way", "lockstep", "--impl", "model", "--events", 3), "--events: nothing is drawn for the way free"),
    (("--impl", "model", "--time", "5s", "--runs", 3), "--runs: --time says when to stop"),
    (("--replay", "x.jsonl", "--way", "free"), "--way: the tries are the file's"),
    (("--replay", "x.jsonl", "--runs", 3), "--runs: the tries are the file's"),
    (("--impl", "model", "--html", "disagreement.schedule.jsonl"), "disagreement.schedule.jsonl is the file of"),
]


@pytest.mark.parametrize(("options", "told"), IDLE, ids=[" ".join(map(str, options)) for options, _ in IDLE])
def test_an_option_that_would_change_nothing_is_refused(
    fencepost: Fencepost, systems: Path, options: tuple[object, ...], told: str
) -> None:
    assert told in fencepost("conform", *options).complaint


def test_a_projects_defaults_of_the_other_way_step_back(fencepost: Fencepost, systems: Path) -> None:
    Path("pyproject.toml").write_text("[tool.fencepost.conform]\nexamples = 2\nruns = 2\nevents = 30\nreplicas = 2\n")
    assert fencepost(*FREE, "--impl", "model", "--json").json["free"]["runs"] == 2
    assert fencepost("conform", "--way", "lockstep", "--impl", "model", "--json").json["examples"] == 2
    assert fencepost("conform", "--impl", "model", "--json").json["ways"] == {"free": "holds", "lockstep": "holds"}
