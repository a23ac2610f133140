"""Irregular entries under a file's name: FIFOs, sockets, links out of the folder, damaged files, leftovers."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.core.regular_file import open_regular
from fencepost.model.explore import Query
from fencepost.model.explore.disk.manifest import Directory
from fencepost.traces.corpus.files import EventsFile, open_events
from fencepost.traces.corpus.foreign import ForeignFile
from fencepost.traces.corpus.manifest import read_corpus
from fencepost.traces.corpus.output import new_folder
from fencepost.traces.corpus.simulate import simulate, simulation
from fencepost.traces.mine.job import Asked, mine

CONSTANTS = {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}
KINDS = ["fifo", "socket", "folder", "device"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    simulate(simulation("fencing", None, CONSTANTS, 6, 4, 1), folder)
    return folder


def put(kind: str, path: Path) -> None:
    """Put something that is no regular file in the place of a file."""
    path.unlink(missing_ok=True)
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as one:
                before = Path.cwd()
                os.chdir(path.parent)
                one.bind(path.name)
                os.chdir(before)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fail where the block waits for another process."""

    def late(*_: object) -> None:
        raise AssertionError("it waits for ever")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", KINDS)
def test_open_regular_rejects_other_kinds(kind: str, tmp_path: Path) -> None:
    put(kind, tmp_path / "file")
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_APPEND | os.O_CREAT):
        with within(10), pytest.raises(OSError, match=r"regular file|directory|No such device"):
            open_regular(tmp_path / "file", flags)


def test_open_regular_reads_a_link_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"abc"


@pytest.mark.parametrize("kind", KINDS)
def test_corpus_rejects_an_irregular_manifest(kind: str, corpus: Path) -> None:
    put(kind, corpus / "manifest.json")
    with within(10), pytest.raises(BadInput, match=r"manifest\.json"):
        read_corpus(corpus)


@pytest.mark.parametrize("manifest", [True, False], ids=["manifest", "footers"])
@pytest.mark.parametrize("kind", KINDS)
def test_corpus_reports_an_irregular_part(kind: str, manifest: bool, corpus: Path) -> None:
    shutil.copy(corpus / "part-00000.parquet", corpus / "part-00001.parquet")
    put(kind, corpus / "part-00001.parquet")
    if not manifest:
        (corpus / "manifest.json").unlink()
    with within(10):
        found = read_corpus(corpus)
    (problem,) = found.problems
    assert "part-00001.parquet" in problem.where and [each.name for each in found.files] == ["part-00000.parquet"]


@pytest.mark.parametrize("manifest", [True, False], ids=["manifest", "footers"])
def test_corpus_rejects_a_link_out_of_it(manifest: bool, corpus: Path, tmp_path: Path) -> None:
    (corpus / "part-00000.parquet").rename(tmp_path / "elsewhere.parquet")
    (corpus / "part-00000.parquet").symlink_to(tmp_path / "elsewhere.parquet")
    if not manifest:
        (corpus / "manifest.json").unlink()
    with pytest.raises(BadInput, match="a symbolic link out of the corpus"):
        read_corpus(corpus)


def test_corpus_reads_through_a_link_to_its_folder(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(corpus)
    assert not read_corpus(tmp_path / "link").problems


@pytest.mark.parametrize("name", ["manifest.json", "lock", "manifest.part", "level-00000.part"])
def test_explore_directory_rejects_a_fifo(name: str, tmp_path: Path) -> None:
    protocol = PROTOCOLS["fencing"]
    query = Query.of(ground(protocol.traced(None), protocol.check_constants(CONSTANTS)))
    Directory(tmp_path, query).release()
    put("fifo", tmp_path / name)
    with within(20):
        if name == "level-00000.part":
            Directory(tmp_path, query).release()
            assert not (tmp_path / name).exists()
        else:
            with pytest.raises(Exception, match=r"regular file|No such device") as raised:
                Directory(tmp_path, query).write()
            assert type(raised.value).__name__ in ("BadInput", "DiskFull")


def test_flipped_bits_of_a_part_are_bad_input(corpus: Path, tmp_path: Path) -> None:
    """A sample of the flips; some of them gave a column another type, by which PyArrow ended the process."""
    raw = (corpus / "part-00000.parquet").read_bytes()
    damaged = tmp_path / "damaged.parquet"
    refused: list[str] = []
    chosen = random.Random(5).sample(range(8 * len(raw)), 300)
    for at in chosen:
        content = bytearray(raw)
        content[at // 8] ^= 1 << (at % 8)
        damaged.write_bytes(content)
        for read in (read_own, read_foreign):
            try:
                read(damaged)
            except BadInput as error:
                refused.append(str(error))
    assert len(refused) > 300 and not any("\n" in each for each in refused)


def read_own(path: Path) -> None:
    with open_events(path) as file:
        for _ in file:
            pass


def read_foreign(path: Path) -> None:
    for _ in ForeignFile(str(path)).events():
        pass


def test_damaged_footer_leaves_the_other_files(corpus: Path) -> None:
    raw = bytearray((corpus / "part-00000.parquet").read_bytes())
    (corpus / "manifest.json").unlink()
    footer = int.from_bytes(raw[-8:-4], "little")
    for at in range(len(raw) - 8 - footer, len(raw) - 8, 7):
        raw[at] ^= 0x40
    (corpus / "part-00001.parquet").write_bytes(raw)
    answer = mine(Asked(corpus), "serial", lambda _: None)
    assert answer.traces == 6 and len(answer.problems) == 1


KILLED = """
import sys, time
from pathlib import Path
from fencepost.traces.corpus.output import new_folder
with new_folder(Path(sys.argv[1])) as part:
    (part / "half").write_text("half")
    print(part, flush=True)
    time.sleep(600)
"""


def test_run_removes_what_a_killed_run_left(tmp_path: Path) -> None:
    running, killed = (
        subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    )
    try:
        parts = [Path(each.stdout.readline().strip()) for each in (running, killed) if each.stdout is not None]
        other = tmp_path / ".others.0123456789abcdef.part"
        other.mkdir()
        killed.kill()
        killed.wait()
        assert all(part.is_dir() for part in parts)
        with new_folder(tmp_path / "out") as part:
            assert parts[0].is_dir() and not parts[1].exists() and part.is_dir()
            (part / "whole").write_text("whole")
        assert (tmp_path / "out" / "whole").is_file() and other.is_dir()
    finally:
        for each in (running, killed):
            each.kill()
            each.wait()


@pytest.mark.parametrize("place", ["_check_columns", "_bounds", "_header"])
def test_own_fault_is_no_damaged_file(corpus: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(corpus.glob("*.parquet"))
    open_events(path).close()

    def fail(*_: object) -> None:
        raise ValueError("a fault of ours")

    monkeypatch.setattr(EventsFile, place, fail)
    with pytest.raises(ValueError, match="a fault of ours"):
        open_events(path)
