"""A fault at any layer of any command is never 0 or 1, which a shell reads as ``holds`` and ``violated``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import pytest
from cyclopts import App
from fencepost.conformance.cli import COMMANDS, main
from fencepost.traces.corpus.simulate import simulate, simulation
from fencepost.traces.run_app import run_app

SMALL = ("--replicas", "2", "--log-size", "1", "--max-records", "1", "--max-leader-epoch", "1")
BROKEN = ("explore", "fencing", "--variant", "truncate-to-hw", "--replicas", "2", "--max-records", "2")

FAULTS: Mapping[str, Callable[[], BaseException]] = {
    "exit-0": lambda: SystemExit(0),
    "exit-1": lambda: SystemExit(1),
    "memory": MemoryError,
    "import": lambda: ImportError("half of it is missing"),
    "recursion": RecursionError,
    "pipe": lambda: BrokenPipeError(32, "Broken pipe"),
    "cancelled": GeneratorExit,
}

CLI = "fencepost.conformance.cli"
PLACES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    # Layer of a command: the function that fails, and the arguments that lead there.
    "explore-input": (f"{CLI}.explore:protocol_named", ("explore", "fencing", *SMALL)),
    "explore-engine": (f"{CLI}.explore:search", ("explore", "fencing", *SMALL)),
    "explore-report": (f"{CLI}.explore:write_trace", (*BROKEN, "--trace-out", "trace.jsonl")),
    "explore-page": (f"{CLI}.explore:write_text", (*BROKEN, "--html", "page.html")),
    "explore-junit": (f"{CLI}.explore:_write_junit", (*BROKEN, "--junitxml", "junit.xml")),
    "explore-print": (f"{CLI}.explore:print_answer", ("explore", "fencing", *SMALL)),
    "explore-json": (f"{CLI}.explore:print_json", (*BROKEN, "--json")),
    "replay-input": (f"{CLI}.replay:scan_trace", ("replay", "bad.jsonl")),
    "replay-engine": (f"{CLI}.replay:run", ("replay", "bad.jsonl")),
    "replay-report": (f"{CLI}.replay:write_text", ("replay", "bad.jsonl", "--html", "page.html")),
    "replay-print": (f"{CLI}.replay:render_replay", ("replay", "bad.jsonl")),
    "prove-input": (f"{CLI}.prove:attach", ("prove", "fencing")),
    "prove-engine": (f"{CLI}.prove:run_proof", ("prove", "fencing")),
    "check-input": (f"{CLI}.check:read_cluster", ("check", "broker")),
    "check-engine": (f"{CLI}.check:file_tasks", ("check", "broker")),
    "check-report": (f"{CLI}.check:write_report", ("check", "broker", "--no-search")),
    "check-print": (f"{CLI}.check:print_answer", ("check", "broker", "--no-search")),
    "conform-input": (f"{CLI}.conform:offered", ("conform", "--impl", "model")),
    "conform-engine": (f"{CLI}.conform:freely", ("conform", "--impl", "model")),
    "conform-report": (
        f"{CLI}.conform:write_junit",
        ("conform", "--impl", "model", "--way", "free", "--jobs", "1", "--runs", "1", "--junitxml", "junit.xml"),
    ),
    "conform-print": (
        f"{CLI}.conform_simulation:print_answer",
        ("conform", "--impl", "model", "--way", "free", "--jobs", "1", "--runs", "1"),
    ),
    "mutants-engine": (f"{CLI}.mutants:model_rows", ("mutants", "--model", "--protocol", "compaction")),
    "simulate-engine": (f"{CLI}.simulate:write", ("simulate", "fencing", "--traces", "2", "--out", "new")),
    "record-input": (
        f"{CLI}.record:Poller",
        ("record", "--bootstrap", "localhost:1", "--topic", "t", "--out", "trace.jsonl"),
    ),
    "ingest-input": (f"{CLI}.ingest:files_below", ("ingest", "traces", "--out", "new")),
    "ingest-engine": (f"{CLI}.ingest:ingest_files", ("ingest", "bad.jsonl", "--out", "new")),
    "mine-input": (f"{CLI}.mine:read_corpus", ("mine", "corpus")),
    "mine-engine": (f"{CLI}.mine:run", ("mine", "corpus", "--master", "serial")),
    "examples-input": (f"{CLI}.examples:load_manifest", ("examples",)),
    "examples-report": (f"{CLI}.examples:unpack", ("examples", "examples")),
    "protocols-engine": (f"{CLI}.protocols:described", ("protocols", "fencing")),
    "protocols-json": (f"{CLI}.protocols:print_json", ("protocols", "fencing", "--json")),
    "spec-engine": (f"{CLI}.spec:tlc_config", ("spec", "fencing", "--cfg")),
    "spec-report": (f"{CLI}.spec:write_text", ("spec", "fencing", "--out", "new")),
    "timeline-input": (f"{CLI}.timeline:read_sources", ("timeline", "broker")),
    "new-report": (f"{CLI}.new:write_new", ("new", "toy")),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trace that is violated, a corpus and a broker's directory."""
    folder = tmp_path_factory.mktemp("faults")
    assert main([*BROKEN, "--trace-out", str(folder / "bad.jsonl")]) == 1
    constants = {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}
    simulate(simulation("fencing", None, constants, 3, 4, 1), folder / "corpus")
    (folder / "traces").mkdir()
    (folder / "broker" / "orders-0").mkdir(parents=True)
    (folder / "broker" / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abc\n")
    (folder / "broker" / "orders-0" / "00000000000000000000.log").write_bytes(b"")
    return folder


def raising(fault: BaseException) -> Callable[..., NoReturn]:
    def fail(*_: object, **__: object) -> NoReturn:
        raise fault

    return fail


def test_every_command_has_faults() -> None:
    assert {name.partition("-")[0] for name in PLACES} == set(COMMANDS)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("place", PLACES)
def test_fault_in_a_command_is_no_verdict(
    place: str,
    fault: str,
    inputs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    where, arguments = PLACES[place]
    for name in ("bad.jsonl", "corpus", "broker", "traces"):
        (tmp_path / name).symlink_to(inputs / name)
    monkeypatch.chdir(tmp_path)
    module, _, name = where.partition(":")
    monkeypatch.setattr(import_module(module), name, raising(FAULTS[fault]()))
    code = main(list(arguments))
    out, err = capfd.readouterr()
    last = err.splitlines()[-1]
    if fault == "pipe" and code in (1, 2):
        # The file that the command line names cannot be written: bad input, but a violation stays one.
        assert "cannot" in last and (code == 2 or "violated" in out)
        return
    assert code == 4 and last.startswith("fencepost: a fault of Fencepost's own")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "where",
    [f"{CLI}:reject_unknown_options", f"{CLI}.settings:_read", f"{CLI}.streams:Lenient.flush"],
    ids=["options", "settings", "streams"],
)
def test_fault_around_commands_is_no_verdict(
    where: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module, _, name = where.partition(":")
    owner: object = import_module(module)
    *owners, name = name.split(".")
    for each in owners:
        owner = getattr(owner, each)
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, raising(FAULTS[fault]()))
        code = main(["protocols", "fencing", "--json"])
    assert code not in (0, 1)


def test_fault_while_a_fault_is_printed_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(f"{CLI}.explore.search", raising(SystemExit(1)))
    monkeypatch.setattr("fencepost.traces.report.terminal.Terminal.print", raising(MemoryError()))
    assert main(["explore", "fencing", *SMALL]) == 4
    assert capfd.readouterr().err == "fencepost: SystemExit\n"


@pytest.mark.parametrize("result", [True, False, 0, 1, "holds"])
def test_plain_result_of_a_command_is_no_verdict(result: object) -> None:
    app = App(name="plain")
    app.default(lambda: result)
    lines: list[str] = []
    assert run_app(app, [], lines.append) == 4
    assert len(lines) == 1 and "no ExitCode" in lines[0]


RUN = "from fencepost.conformance.entry import run\nrun()\n"
IN_A_PROCESS = {
    "at-exit": "import atexit\natexit.register(lambda: {})\n" + RUN,
    "thread": (
        "import fencepost.conformance.cli.protocols as p, threading, fencepost.traces.background as b\n"
        "exec('def fail(self): {}', vars(b))\n"
        "b.Background._run = b.fail\n"
        "old = p.described\n"
        "p.described = lambda *a: (b.Background(int).wait(), old(*a))[1]\n"
    )
    + RUN,
    "import": "import sys\nclass F:\n  def find_spec(self, name, *_):\n    if name == 'cyclopts': {}\n"
    "sys.meta_path.insert(0, F())\n" + RUN,
    "import-of-own": "import sys\nclass F:\n  def find_spec(self, name, *_):\n    if name.endswith('.at_exit'): {}\n"
    "sys.meta_path.insert(0, F())\n" + RUN,
}


@pytest.mark.parametrize("raised", ["SystemExit(1)", "SystemExit(0)", "MemoryError()", "ImportError(9)"])
@pytest.mark.parametrize("layer", IN_A_PROCESS)
def test_fault_around_the_command_line_is_no_verdict(layer: str, raised: str) -> None:
    raising = f"raise {raised}" if layer.startswith("import") else f"(_ for _ in ()).throw({raised})"
    program = IN_A_PROCESS[layer].replace("{}", raising)
    done = subprocess.run(
        [sys.executable, "-c", program, "protocols", "fencing"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 4, done.stderr


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_closed_output_of_a_fault_is_no_verdict(stream: str) -> None:
    program = f"import fencepost.conformance.cli.explore as e\ndef f(*_): raise SystemExit(1)\ne.search = f\n{RUN}"
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, "explore", "fencing", *SMALL],
            stdout=full if stream == "stdout" else subprocess.DEVNULL,
            stderr=full if stream == "stderr" else subprocess.DEVNULL,
            timeout=120,
        )
    finally:
        os.close(full)
    assert done.returncode == 4


@pytest.mark.parametrize("module", ["traces.standalone", "traces.kafka.record", "conformance.kafka.cluster"])
def test_wrong_option_of_a_module_is_bad_input(module: str) -> None:
    command = [sys.executable, "-m", f"fencepost.{module}", "--bogus"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fencepost: ") and f"see python -m fencepost.{module}" in done.stderr


@pytest.mark.parametrize("module", ["traces.standalone", "traces.kafka.record", "traces.bundled.archive"])
def test_failed_import_of_a_module_is_no_verdict(module: str, tmp_path: Path) -> None:
    (tmp_path / "cyclopts.py").write_text("raise ImportError('half of it is missing')\n")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", f"fencepost.{module}", "--help"]
    for path, code in ((os.environ.get("PYTHONPATH", ""), 0), (paths, 4)):
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == code
    assert done.stderr.startswith("fencepost: cannot start: ImportError: half of it is missing; ")
