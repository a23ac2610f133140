"""A protocol from outside the package: what ``fencepost new`` writes passes, and goes through every command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.conformance.check.builtin import plan_tasks
from fencepost.conformance.check.task import carry_out
from fencepost.conformance.scaffold import FILES, files_of
from fencepost.model.core.registry import REGISTRY

from .conftest import Fencepost

ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")
NAME = "two_phase"
PLACE = f"{NAME}.py:{NAME}"


def blocks(language: str) -> list[str]:
    """The tutorial's blocks in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TUTORIAL, re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test names by its file is not there for the next."""
    monkeypatch.setattr(REGISTRY, "_loaded", dict(REGISTRY._loaded))
    monkeypatch.setattr(REGISTRY, "_places", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in [name for name in sys.modules if name.startswith(NAME)]:
        monkeypatch.delitem(sys.modules, name)


@pytest.fixture
def folder(fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new protocol, as the command writes it, and the folder that a person would go to."""
    monkeypatch.chdir(tmp_path)
    said = fencepost("new", NAME)
    assert said.code == 0 and len(said.lines) == len(FILES)
    monkeypatch.chdir(tmp_path / NAME)
    return tmp_path / NAME


def test_its_tests_pass(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "11 passed" in done.stdout


def test_every_piece_of_the_tutorial_is_in_a_file() -> None:
    texts = list(files_of(NAME).values())
    pieces = blocks("python")
    assert len(pieces) >= 8
    for piece in pieces:
        assert any(piece in text for text in texts), piece


def test_the_tutorials_commands_say_what_it_shows(fencepost: Fencepost, folder: Path) -> None:
    """Each command of the tutorial, one after the other; every line that it shows is printed, times aside."""
    asked = 0
    for block in blocks("console"):
        command, *shown = block.splitlines()
        words = command.removeprefix("$ ").split()
        if words[0] != "fencepost" or words[1] == "new":
            continue
        asked += 1
        said = fencepost(*words[1:])
        printed = [" ".join(line.split()) for line in (said.out + said.err).splitlines()]
        for line in shown:
            wanted = " ".join(line.split())
            pattern = re.escape(wanted).replace(r"\.\.\.", ".*")
            assert any(re.fullmatch(pattern, each) for each in printed), (command, wanted, printed)
    assert asked >= 8


@pytest.mark.parametrize("engine", ["batch", "reference", "symbolic"])
def test_every_engine_explores_it(fencepost: Fencepost, folder: Path, engine: str) -> None:
    said = fencepost("explore", PLACE, "--variant", "hasty", "--engine", engine, "--replicas", 2, "--json")
    assert said.code == 1 and said.json["violated"] == "all_agree"
    assert len(said.json["trace"]) == 4


def test_pages_graphs_and_orbits(fencepost: Fencepost, folder: Path) -> None:
    said = fencepost("explore", PLACE, "--variant", "hasty", "--html", "why.html", "--trace-out", "t.jsonl")
    assert said.code == 1
    page = (folder / "why.html").read_text()
    assert "prepared" in page and "all_agree" in page
    assert fencepost("explore", PLACE, "--graph", "graph.graphml", "--symmetry").code == 0
    assert '"prepared"' in (folder / "t.jsonl").read_text(), "traces show the names of values"
    assert fencepost("replay", "t.jsonl", "--protocol", PLACE).code == 1
    assert "leave it out" in fencepost("replay", "t.jsonl", "--protocol", "fencing").complaint
    assert "states no liveness property" in fencepost("explore", PLACE, "--liveness").complaint


def test_a_trace_of_an_unknown_protocol_says_what_to_name(fencepost: Fencepost, folder: Path) -> None:
    fencepost("explore", PLACE, "--variant", "hasty", "--trace-out", "t.jsonl")
    REGISTRY._loaded.pop(NAME)
    said = fencepost("replay", "t.jsonl")
    assert said.code == 2 and "unknown protocol" in said.err and "--protocol" in said.err


@pytest.mark.parametrize("file", [f"{NAME}.py", f"{NAME}_system.py"])
def test_an_error_in_its_text_is_one_line_with_file_and_line(fencepost: Fencepost, folder: Path, file: str) -> None:
    path = folder / file
    path.write_text("1 / 0\n" + path.read_text().replace("from __future__ import annotations\n", ""))
    told = fencepost("conform", "--protocol", PLACE, "--examples", 1).complaint
    assert file in told and "line 1" in told and "ZeroDivisionError" in told


BAD = [
    ("two_phase.py:", "names no protocol"),
    ("absent.py:two_phase", "there is no file absent.py"),
    ("two_phase.py:Phase", "no protocol; name one of two_phase"),
    ("two_phase.py:nothing", "is nothing, no protocol"),
    ("no.such.module:it", "ModuleNotFoundError"),
    ("paxos", f"choose one of {', '.join(REGISTRY)}"),
]


@pytest.mark.parametrize(("place", "words"), BAD, ids=[row[0] for row in BAD])
def test_a_place_without_a_protocol_is_refused(fencepost: Fencepost, folder: Path, place: str, words: str) -> None:
    assert words in fencepost("explore", place).complaint


@pytest.mark.parametrize(
    ("name", "words"),
    [("two-phase", "cannot name"), ("class", "cannot name"), ("json", "another module"), ("fencing", "there is a")],
)
def test_a_name_that_cannot_be_one_is_refused(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in fencepost("new", name).complaint
    assert list(tmp_path.iterdir()) == []


def test_a_file_may_be_named_again_and_changed_in_between(fencepost: Fencepost, folder: Path) -> None:
    assert fencepost("explore", PLACE, "--replicas", 2).code == 0
    assert fencepost("explore", PLACE, "--replicas", 2).code == 0
    path = folder / f"{NAME}.py"
    path.write_text(path.read_text().replace("Rules(),", "Rules(waits=False),"))
    for name in (f"{NAME}_proof", f"{NAME}_harness", f"{NAME}_system"):
        sys.modules.pop(name, None)
    assert fencepost("explore", PLACE, "--replicas", 2).code == 1


def test_nothing_is_written_over(fencepost: Fencepost, folder: Path) -> None:
    (folder / f"{NAME}_proof.py").write_text("mine")
    assert "already" in fencepost("new", NAME, "--out", folder).complaint
    assert (folder / f"{NAME}_proof.py").read_text() == "mine"


def test_check_follows_its_plan(folder: Path) -> None:
    tasks = plan_tasks(REGISTRY.named(PLACE))
    met = {each.name: each.met for each in carry_out(tasks, lambda _task: lambda _progress: None)}
    assert met == dict.fromkeys(("two-phase 3", "hasty 2", "batch and reference, two-phase 3", "two-phase"), True)


def test_an_installed_package_registers_its_protocol(folder: Path, tmp_path: Path) -> None:
    """It is served by its name from any folder, without a line changed in ours."""
    pytest.importorskip("setuptools")
    target = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, "--target", str(target), str(folder)], check=True, capture_output=True, timeout=120)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        program = "from fencepost.conformance.cli import run; run()"
        return subprocess.run(
            [sys.executable, "-c", program, *words],
            cwd=elsewhere,
            env={**os.environ, "PYTHONPATH": str(target)},
            capture_output=True,
            text=True,
            timeout=120,
        )

    assert json.loads(run("protocols", "--json").stdout)["protocols"][-1]["protocol"] == NAME
    assert run("explore", NAME).returncode == 0
    assert run("prove", NAME).returncode == 0
    assert run("conform", "--protocol", NAME, "--runs", "5", "--examples", "5").returncode == 0
    assert run("explore", NAME, "--variant", "hasty").returncode == 1
