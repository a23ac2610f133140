"""Archives of recorded files: the same bytes for the same files, and nothing lost on the way back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.bundled.archive import command, is_unpacked, pack, unpack
from fencepost.traces.bundled.unpacked import NAMES, archive_of


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    folder = tmp_path / "recorded"
    (folder / "stage" / "broker-1").mkdir(parents=True)
    (folder / "stage" / "broker-1" / "0.log").write_bytes(bytes(range(256)))
    (folder / "stage" / "broker-1" / ".kafka_cleanshutdown").touch()
    (folder / "stage" / "broker-2").mkdir()
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o700)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_bundled_archive_has_the_bytes_of_its_files(name: str, tmp_path: Path) -> None:
    unpack(archive_of(name), tmp_path / "unpacked")
    again = pack(tmp_path / "unpacked", tmp_path / "again.tar.gz")
    assert again.read_bytes() == archive_of(name).read_bytes()


def test_archive_ignores_times_and_group_modes(recorded: Path, tmp_path: Path) -> None:
    first = pack(recorded, tmp_path / "first.tar.gz").read_bytes()
    os.utime(recorded / "run", (0, 0))
    (recorded / "stage" / "broker-1" / "0.log").chmod(0o660)
    assert pack(recorded, tmp_path / "second.tar.gz").read_bytes() == first


def test_unpacking_keeps_empty_files_folders_and_modes(recorded: Path, tmp_path: Path) -> None:
    archive = pack(recorded, tmp_path / "archive.tar.gz")
    copy = tmp_path / "copy"
    unpack(archive, copy)
    assert is_unpacked(archive, copy)
    paths = {path.relative_to(copy).as_posix(): path for path in copy.rglob("*")}
    assert sorted(paths) == [
        "run",
        "stage",
        "stage/broker-1",
        "stage/broker-1/.kafka_cleanshutdown",
        "stage/broker-1/0.log",
        "stage/broker-2",
    ]
    assert paths["stage/broker-1/0.log"].read_bytes() == bytes(range(256))
    assert paths["run"].stat().st_mode & 0o100 and not paths["stage/broker-1/0.log"].stat().st_mode & 0o111


def test_packing_can_leave_entries_out(recorded: Path, tmp_path: Path) -> None:
    archive = pack(recorded, tmp_path / "archive.tar.gz", ["stage"])
    unpack(archive, tmp_path / "copy")
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["stage"]


def test_each_change_of_a_copy_is_seen(recorded: Path, tmp_path: Path) -> None:
    archive = pack(recorded, tmp_path / "archive.tar.gz")
    log = recorded / "stage" / "broker-1" / "0.log"
    assert is_unpacked(archive, recorded)
    log.write_bytes(bytes(256))
    assert not is_unpacked(archive, recorded)
    log.write_bytes(bytes(range(256)))
    (recorded / "more").touch()
    assert not is_unpacked(archive, recorded)
    (recorded / "more").unlink()
    assert is_unpacked(archive, recorded)
    (recorded / "stage" / "broker-2").rmdir()
    assert not is_unpacked(archive, recorded)
    assert not is_unpacked(archive, tmp_path / "nowhere")


@pytest.mark.parametrize("kept", [0, 10, 200, -8], ids=["empty", "header", "half", "no-checksum"])
def test_damaged_archive_is_one_line(kept: int, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.tar.gz"
    damaged.write_bytes(archive_of("mining").read_bytes()[:kept])
    with pytest.raises(BadInput, match="the archive is damaged") as caught:
        unpack(damaged, tmp_path / "copy")
    assert str(damaged) in str(caught.value) and "\n" not in str(caught.value)


def test_command_packs_a_folder(recorded: Path, tmp_path: Path) -> None:
    assert command(recorded, tmp_path / "archive.tar.gz") == 0
    assert is_unpacked(tmp_path / "archive.tar.gz", recorded)
    with pytest.raises(BadInput, match="no such folder"):
        command(tmp_path / "nowhere", tmp_path / "other.tar.gz")
    assert not (tmp_path / "other.tar.gz").exists()
