"""Unpacking on first use: into the cache, without one, by several processes at once, and over a changed copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.bundled import unpacked as unpacking
from fencepost.traces.bundled.archive import is_unpacked
from fencepost.traces.bundled.unpacked import archive_of, unpacked

PROGRAM = "from fencepost.traces.bundled.unpacked import unpacked; print(unpacked('failover'), flush=True); input()"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "fencepost" / "bundled"


def started(**environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_recording_is_unpacked_once_into_the_cache(cache: Path) -> None:
    folder = unpacked("failover")
    assert folder.parent == cache and folder.name.startswith("failover-")
    assert is_unpacked(archive_of("failover"), folder)
    before = folder.stat().st_ino
    unpacking._cached.cache_clear()
    assert unpacked("failover") == folder and folder.stat().st_ino == before
    assert [path.name for path in cache.iterdir()] == [folder.name]


def test_folder_is_named_by_the_archives_digest(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.tar.gz"
    shutil.copy(archive_of("mining"), other)
    first = unpacked("failover")
    monkeypatch.setattr(unpacking, "archive_of", lambda name: other)
    assert unpacked("failover") != first


@pytest.mark.parametrize("change", ["flip", "remove", "add"])
def test_changed_copy_is_replaced(change: str, cache: Path) -> None:
    folder = unpacked("failover")
    log = folder / "6-unclean-election" / "broker-2" / "payments-0" / f"{0:020}.log"
    if change == "flip":
        log.write_bytes(bytes(log.stat().st_size))
    elif change == "remove":
        shutil.rmtree(log.parent)
    else:
        shutil.copytree(log.parents[1], log.parents[2] / "broker-4")
    unpacking._cached.cache_clear()
    assert unpacked("failover") == folder and is_unpacked(archive_of("failover"), folder)
    assert [path.name for path in cache.iterdir()] == [folder.name]


def test_processes_unpack_at_once(cache: Path) -> None:
    running = [started() for _ in range(4)]
    folders = {Path(each.communicate("\n")[0].strip()) for each in running}
    (folder,) = folders
    assert is_unpacked(archive_of("failover"), folder)
    assert [path.name for path in cache.iterdir()] == [folder.name]


def test_process_without_a_cache_uses_a_temporary_folder(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    (tmp_path / "tmp").mkdir()
    process = started(XDG_CACHE_HOME=str(tmp_path / "cache"), TMPDIR=str(tmp_path / "tmp"))
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert folder.parent == tmp_path / "tmp" and is_unpacked(archive_of("failover"), folder)
    process.communicate("\n")
    assert process.returncode == 0 and list((tmp_path / "tmp").iterdir()) == []


def test_no_writable_folder_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(unpacking, "unpack", full)
    with pytest.raises(BadInput, match=r"No space left on device; set XDG_CACHE_HOME or TMPDIR") as caught:
        unpacked("tiered")
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "fencepost" / "bundled").iterdir())


def test_missing_archive_is_one_line(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "archive_of", lambda name: tmp_path / f"{name}.tar.gz")
    with pytest.raises(BadInput, match="No such file or directory; install Fencepost again"):
        unpacked("failover")
