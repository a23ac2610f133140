"""Commands on a machine without a home, without a cache that can be written, without ``/proc``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.model.core.caches import cache_folder
from fencepost.model.explore import memory

RUN = "from fencepost.conformance.entry import run; run()"
SMALL = ("--replicas", "2", "--log-size", "1", "--max-records", "1", "--max-leader-epoch", "1")
COMPILED = ("explore", "fencing", "--engine", "compiled", *SMALL, "--json")
CONFORM = ("conform", "--impl", "model", "--way", "lockstep", "--examples", "3", *SMALL, "--json")

NO_USER = "import pwd\ndef missing(_): raise KeyError('getpwuid(): uid not found')\npwd.getpwuid = missing\n"
"""As for a user id that the user database does not have, such as that of a container."""


def finished(
    arguments: tuple[str, ...], folder: Path, program: str = "", **environment: str | None
) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", program + RUN, *arguments],
        cwd=folder,
        env={name: value for name, value in variables.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("arguments", [COMPILED, CONFORM], ids=["compiled", "conform"])
def test_command_runs_without_a_home(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = finished(arguments, tmp_path, NO_USER, HOME=None, XDG_CACHE_HOME=None)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["verdict"] == "holds" and list(tmp_path.iterdir()) == []


def test_kafka_jars_need_a_home(tmp_path: Path) -> None:
    done = finished(("conform", "--impl", "kafka"), tmp_path, NO_USER, HOME=None, XDG_CACHE_HOME=None)
    assert done.returncode == 2 and "has no home folder; set HOME or XDG_CACHE_HOME" in done.stderr


@pytest.mark.parametrize("kind", ["missing", "file", "null", "proc"])
@pytest.mark.parametrize("arguments", [COMPILED, CONFORM], ids=["compiled", "conform"])
def test_command_runs_without_a_usable_cache(arguments: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = {
        "missing": str(tmp_path / "nowhere" / "at" / "all"),
        "file": str(tmp_path / "file"),
        "null": "/dev/null",
        "proc": "/proc",
    }[kind]
    done = finished(arguments, tmp_path, XDG_CACHE_HOME=cache)
    assert (done.returncode, done.stderr) == (0, "")


FULL = """
import fencepost.model.interpret.compiler as compiler
real = compiler._compile
def full(of, text, key, folder):
    if "cache" in str(folder):
        raise OSError(28, "No space left on device")
    return real(of, text, key, folder)
compiler._compile = full
"""


def test_compiled_search_runs_beside_a_full_cache(tmp_path: Path) -> None:
    done = finished(COMPILED, tmp_path, FULL, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (done.returncode, done.stderr) == (0, "") and json.loads(done.stdout)["engine"] == "compiled"
    nowhere = FULL.replace('if "cache" in str(folder)', "if True")
    done = finished(COMPILED, tmp_path, nowhere, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 2 and "cannot write the compiled search" in done.stderr


@pytest.mark.parametrize("cache", ["", "relative"])
def test_cache_folder_is_absolute(cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("a") == tmp_path / ".cache" / "fencepost" / "a"


@pytest.mark.parametrize("content", [None, b"", b"not a number"])
def test_resident_memory_without_proc(content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = memory.resident()
    for name in ("_STATM", "_STATUS"):
        monkeypatch.setattr(memory, name, tmp_path / name)
        if content is not None:
            (tmp_path / name).write_bytes(content)
    assert there / 2 < memory.resident() < 100 * there
    assert memory.peak() >= memory.resident()


def test_paths_outside_utf8_work(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"bad\xff")
    folder.mkdir()
    broken = ("explore", "fencing", "--variant", "truncate-to-hw", "--replicas", "2", "--max-records", "2")
    for arguments, code in (
        ((*broken, "--trace-out", f"{folder}/t.jsonl", "--html", f"{folder}/page.html"), 1),
        (("replay", f"{folder}/t.jsonl", "--html", f"{folder}/replay.html", "--json"), 1),
        (("ingest", f"{folder}/t.jsonl", "--out", f"{folder}/corpus", "--json"), 0),
        (("mine", f"{folder}/corpus", "--master", "serial", "--out", f"{folder}/mined", "--json"), 1),
        (("replay", os.fsdecode(b"gone\xfe")), 2),
        (("explore", os.fsdecode(b"gone\xfe")), 2),
    ):
        # The folder is also the one to work in.
        done = finished(arguments, folder)
        assert done.returncode == code, done.stderr
        if "--json" in arguments:
            json.loads(done.stdout)
    assert (folder / "replay.html").is_file() and (folder / "mined" / "index.html").is_file()
