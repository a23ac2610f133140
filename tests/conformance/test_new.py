"""A protocol from outside the package: what ``fencepost new`` writes passes, and goes through every command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fencepost.conformance.check.builtin import plan_tasks
from fencepost.conformance.check.task import carry_out
from fencepost.conformance.harness import bound_protocols
from fencepost.conformance.scaffold import FILES, files_of
from fencepost.model.core.registry import REGISTRY
from fencepost.model.interpret.compiler import find_compiler
from fencepost.traces.corpus.manifest import read_corpus

from .conftest import Fencepost, Said

ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "docs" / "tutorials" / "your-own-protocol.md").read_text(encoding="utf-8")
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
        assert any(piece in text for text in texts) or piece == row(), piece


def row() -> str:
    """The one piece that is in no file: an update that the protocol does not have, of a whole row."""
    (found,) = [
        block for block in re.findall(r"^```\w*\n(.*?)^```$", TUTORIAL, re.DOTALL | re.MULTILINE) if "EVERY" in block
    ]
    return str(found)


def test_every_block_of_the_tutorial_says_what_it_is() -> None:
    """Commands are run, and Python is in a file: of what is neither, or says nothing, nobody would ask."""
    fences = re.findall(r"^```(.*)$", TUTORIAL, re.MULTILINE)
    assert set(fences[::2]) == {"console", "python"} and set(fences[1::2]) == {""}


def test_row_of_the_tutorial_is_explored_and_proved(fencepost: Fencepost, folder: Path) -> None:
    path = folder / f"{NAME}.py"
    text, promises, rest = path.read_text().partition("# Promises: ")
    assert promises
    text = text.replace("core.algebra import ", "core.algebra import EVERY, ")
    action = f'''@{NAME}.action()
def abort_all(k: Algebra, s: View) -> Step:
    """Whoever has not prepared aborts."""
    yield "decided", s.decision == Decision.abort
    {row().strip()}


'''
    path.write_text(text + action + promises + rest)
    explored = fencepost("explore", PLACE, "--json")
    assert explored.code == 0 and explored.json["coverage"]["abort_all"]["transitions"] > 0
    proved = fencepost("prove", PLACE, "--json").json
    assert proved["verdict"] == "holds"


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


@pytest.mark.parametrize("engine", ["batch", "compiled", "reference", "symbolic"])
def test_every_engine_explores_it(fencepost: Fencepost, folder: Path, engine: str) -> None:
    if engine == "compiled" and find_compiler() is None:
        pytest.skip("absent: a C compiler (CC, cc, gcc, clang, ziglang)")
    said = fencepost("explore", PLACE, "--variant", "hasty", "--engine", engine, "--replicas", 2, "--json")
    assert said.code == 1 and said.json["violated"] == "all_agree" and said.json["engine"] == engine
    assert len(said.json["trace"]) == 4


def test_a_module_on_the_path_is_named_from_any_folder(
    process: Fencepost, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(folder))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    said = process("explore", f"{NAME}:{NAME}", "--variant", "hasty", "--json", cwd=elsewhere)
    assert (said.code, said.err) == (1, "")
    assert (said.json["protocol"], said.json["violated"]) == (NAME, "all_agree")


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


def test_its_page_has_a_lane_for_each_participant(fencepost: Fencepost, folder: Path) -> None:
    """It has no view: a lane shows what is one participant's, a dot is who acts, and what is nobody's stands apart."""
    asked = ("explore", PLACE, "--variant", "hasty", "--replicas", 3, "--html", "why.html", "--json")
    trace = fencepost(*asked).json["trace"]
    page = (folder / "why.html").read_text(encoding="utf-8")
    (block,) = re.findall(r'<script type="application/json" id="story">(.*?)</script>', page)
    story = json.loads(block)
    assert (story["replicas"], story["hasLogs"], story["hasController"]) == ([0, 1, 2], False, False)
    last = story["moments"][-1]
    phases = [f"phase[{number}]" for number in range(3)]
    assert [each["cell"] for lane in last["replicas"] for each in lane["values"]] == phases
    assert [each["cell"] for each in last["others"]] == ["decision"]
    told = {lane["values"][0]["text"] for lane in last["replicas"]} | {each["text"] for each in last["others"]}
    assert told >= {"committed", "aborted", "commit"}
    assert len(story["moments"]) == len(trace) + 1
    for moment, step in zip(story["moments"][1:], trace, strict=True):
        who = step["params"].get("participant")
        drawn = None if moment["route"] is None else (moment["route"]["source"], moment["route"]["target"])
        assert drawn == (None if who is None else (who, None))
        cells = ["decision"] if who is None else [f"phase[{who}]"]
        assert moment["changed"] == [change[0] for change in moment["changes"]] == cells


def test_traces_and_parquet_of_it_become_a_corpus(fencepost: Fencepost, folder: Path) -> None:
    """Where it is must be said: of a trace that names what is not installed, and of Parquet that names nothing."""
    serial = ("--master", "serial")
    assert fencepost("explore", PLACE, "--variant", "hasty", "--trace-out", "t.jsonl").code == 1
    assert fencepost("simulate", PLACE, "--traces", 20, "--events", 9, "--out", "walks", *serial).code == 0
    table = pq.read_table("walks/part-00000.parquet").replace_schema_metadata(None)
    Path("bare").mkdir()
    pq.write_table(table, "bare/x.parquet")

    def ingested(src: str, out: str, *place: str) -> Said:
        """As another process would, which has not been told of it."""
        REGISTRY._loaded.pop(NAME, None)
        return fencepost("ingest", src, "--out", out, *place, *serial)

    refused = ingested("t.jsonl", "refused")
    assert refused.code == 2 and f'unknown protocol "{NAME}"' in refused.err and not Path("refused").exists()
    for src, out, variant in (("t.jsonl", "broken", "hasty"), ("bare", "again", "two-phase")):
        assert ingested(src, out, "--protocol", PLACE).code == 0
        (file,) = read_corpus(Path(out)).files
        assert (file.header.protocol, file.header.variant) == (NAME, variant)
        assert file.header.constants == {"replicas": 3}
    assert pq.read_table("again/part-00000.parquet").replace_schema_metadata(None).equals(table)
    mined = fencepost("mine", "broken", "--protocol", PLACE, *serial)
    assert mined.code == 1 and "1. decide_commit against all_prepared" in mined.out
    assert fencepost("mine", "again", "--protocol", PLACE, *serial).code == 0


@pytest.fixture
def bare(folder: Path) -> str:
    """The text alone, with no registration beside it: where it is."""
    text, registration, _ = (folder / f"{NAME}.py").read_text().partition("REGISTRATION = ")
    assert registration
    (folder / f"{NAME}_bare.py").write_text(text)
    return f"{NAME}_bare.py:{NAME}"


def test_a_text_alone_is_explored_and_what_it_lacks_is_told(fencepost: Fencepost, folder: Path, bare: str) -> None:
    assert fencepost("protocols", PLACE).out.splitlines()[-1] == "it has no liveness, no defects"
    REGISTRY._loaded.pop(NAME)  # the other one has its name
    assert fencepost("protocols", bare).out.splitlines()[-1] == "it has no proof, no liveness, no binding, no defects"
    assert fencepost("explore", bare, "--variant", "hasty", "--replicas", 2).code == 1
    assert f"there is no proof of '{NAME}'" in fencepost("prove", bare).complaint


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ((), "--protocol"),
        (("--impl", "model"), "--protocol"),
        (("--impl", f"{NAME}_system.py:Adapter"), f"--impl {NAME}_system.py:Adapter"),
        (("--impl", f"{NAME}_free.py:Free"), f"--impl {NAME}_free.py:Free"),
    ],
)
def test_nothing_is_held_against_a_text_without_a_binding(
    fencepost: Fencepost, folder: Path, bare: str, options: tuple[str, ...], where: str
) -> None:
    bound = ", ".join(bound_protocols())
    assert bound
    told = fencepost("conform", "--protocol", bare, *options).complaint
    assert told == f"{where}: there is no binding for '{NAME}'; protocols that have one: {bound}"


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
    pytest.importorskip("setuptools", reason="absent: setuptools")
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
