"""Both kinds of files keep the same promises; the simulated one breaks what was never promised."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest
from fencepost.impl.files import DiskFiles, File, Files, SimulatedFiles, read_file


@pytest.fixture(params=["disk", "simulated"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return DiskFiles(tmp_path / "new" / "root") if request.param == "disk" else SimulatedFiles(1)


def test_a_file_is_written_at_its_end_and_read_anywhere(files: Files) -> None:
    assert isinstance(files, Files)
    files.make_dir("a")
    files.make_dir("a")
    file = files.open("a/x", create=True)
    assert isinstance(file, File) and file.path == "a/x"
    assert [file.append(b"hello "), file.append(b"world"), file.size] == [0, 6, 11]
    assert [file.pread(6, 3), file.pread(6, 99), file.pread(11, 1), file.pread(0, 0)] == [b"wor", b"world", b"", b""]
    file.truncate(99)
    file.truncate(5)
    assert file.append(b"!") == 5
    file.fsync()
    file.close()
    assert read_file(files, "a/x") == b"hello!"
    assert files.open("a/x", create=True).size == 6


def test_names(files: Files) -> None:
    files.make_dir("a")
    for name in ("c", "b"):
        files.open(f"a/{name}", create=True).append(name.encode())
    files.rename("a/c", "a/b")
    files.fsync_dir("a")
    assert files.list("a") == ["b"] and files.list("") == ["a"] and read_file(files, "a/b") == b"c"
    assert files.exists("a/b") and files.exists("a") and not files.exists("a/c") and not files.exists("z/c")
    with pytest.raises(OSError, match="a") as full:
        files.remove("a")
    assert full.value.errno == errno.ENOTEMPTY
    files.remove("a/b")
    files.remove("a")
    assert files.list("") == []


def test_what_is_missing_is_said_so(files: Files) -> None:
    for call in (
        lambda: files.open("x"),
        lambda: files.open("no/x", create=True),
        lambda: files.list("no"),
        lambda: files.remove("x"),
        lambda: files.remove("no/such/x"),
        lambda: files.open("no/such/x"),
        lambda: files.rename("x", "y"),
        lambda: files.fsync_dir("no"),
    ):
        with pytest.raises(FileNotFoundError):
            call()


def outcomes(prepare: object, path: str) -> set[bytes | None]:
    """Everything that a crash may leave at a path, over 300 seeds."""
    assert callable(prepare)
    found: set[bytes | None] = set()
    for seed in range(300):
        files = SimulatedFiles(seed)
        prepare(files)
        files.crash(seed)
        found.add(read_file(files, path) if files.exists(path) else None)
    return found


def test_unsynced_writes_are_lost_torn_and_reordered() -> None:
    def prepare(files: SimulatedFiles) -> None:
        file = files.open("x", create=True)
        files.fsync_dir("")
        file.append(b"AA")
        file.fsync()
        file.append(b"bb")
        file.append(b"cc")

    found = outcomes(prepare, "x")
    assert all(each is not None and each.startswith(b"AA") for each in found)
    assert {b"AA", b"AAb", b"AAbb", b"AAbbcc", b"AA\0\0cc", b"AAbbc"} <= found
    assert any(each and b"\0" in each[2:4] and each[2:4] != b"\0\0" for each in found)  # torn inside


def test_an_unsynced_cut_may_come_back_behind_what_was_written_since() -> None:
    def prepare(files: SimulatedFiles) -> None:
        file = files.open("x", create=True)
        files.fsync_dir("")
        file.append(b"oldold")
        file.fsync()
        file.truncate(0)
        file.append(b"new")

    found = outcomes(prepare, "x")
    assert {b"oldold", b"", b"new", b"newold"} <= found


def test_names_survive_by_themselves_until_the_folder_is_synced() -> None:
    def prepare(files: SimulatedFiles) -> None:
        files.open("old", create=True).fsync()
        files.fsync_dir("")
        for name in ("a", "b"):
            file = files.open(name, create=True)
            file.append(name.encode())
            file.fsync()
        files.remove("old")

    seen: set[tuple[str, ...]] = set()
    for seed in range(200):
        files = SimulatedFiles(seed)
        prepare(files)
        copy = files.crashed_copy(seed)
        assert files.list("") == ["a", "b"]  # the original goes on
        seen.add(tuple(copy.list("")))
    assert len(seen) == 8  # every combination of three changes


def test_a_renaming_leaves_the_one_file_or_the_other() -> None:
    def prepare(files: SimulatedFiles) -> None:
        for name, content in (("x", b"old"), ("x.tmp", b"new")):
            file = files.open(name, create=True)
            file.append(content)
            file.fsync()
        files.fsync_dir("")
        files.rename("x.tmp", "x")

    assert outcomes(prepare, "x") == {b"old", b"new"}


def test_a_folder_that_was_not_synced_is_lost_with_all_in_it() -> None:
    def prepare(files: SimulatedFiles) -> None:
        files.make_dir("a")
        file = files.open("a/x", create=True)
        file.append(b"1")
        file.fsync()
        files.fsync_dir("a")

    assert outcomes(prepare, "a/x") == {None, b"1"}


def test_a_crash_is_decided_by_its_seed_and_ends_open_files() -> None:
    def left(seed: int) -> bytes:
        files = SimulatedFiles(0)
        file = files.open("x", create=True)
        files.fsync_dir("")
        for n in range(20):
            file.append(bytes([n]) * 9)
        files.crash(seed)
        with pytest.raises(OSError, match="crashed") as gone:
            file.append(b"1")
        assert gone.value.errno == errno.EBADF
        return read_file(files, "x")

    assert [left(seed) for seed in range(20)] == [left(seed) for seed in range(20)]
    assert len({left(seed) for seed in range(20)}) > 5


def test_a_full_disk_takes_what_fits() -> None:
    files = SimulatedFiles(capacity=10)
    file = files.open("x", create=True)
    file.append(b"12345678")
    with pytest.raises(OSError, match="x") as full:
        file.append(b"abcd")
    assert full.value.errno == errno.ENOSPC and file.size == 10
    file.truncate(4)
    assert file.append(b"abcd") == 4
    files.remove("x")
    files.open("y", create=True).append(b"0123456789")


def test_a_failed_sync_loses_writes_that_a_later_one_does_not_bring_back() -> None:
    found = set()
    for seed in range(60):
        files = SimulatedFiles(seed)
        file = files.open("x", create=True)
        files.fsync_dir("")
        file.append(b"data")

        def fail(operation: str, path: str) -> None:
            if operation == "fsync":
                raise OSError(errno.EIO, "the disk failed", path)

        files.hook = fail
        with pytest.raises(OSError, match="the disk failed"):
            file.fsync()
        files.hook = None
        file.fsync()
        assert file.pread(0, 9) == b"data"
        files.crash(seed)
        found.add(read_file(files, "x"))
    assert b"" in found and b"data" in found


@pytest.mark.parametrize("seed", range(20))
def test_whatever_changes_a_simulated_disk_is_counted(seed: int) -> None:
    chance = random.Random(seed)
    disk = SimulatedFiles(seed, capacity=200)
    disk.make_dir("f")
    names = [f"f/{name}" for name in "abc"]
    counted = 0
    for number in range(200):
        before, changes = seen(disk), disk.changes
        path = chance.choice(names)
        try:
            match chance.choice(
                ("append", "truncate", "fsync", "create", "rename", "remove", "fsync_dir", "crash", "look")
            ):
                case "append":
                    disk.open(path).append(bytes(chance.randrange(20)))
                case "truncate":
                    disk.open(path).truncate(chance.randrange(30))
                case "fsync":
                    disk.open(path).fsync()
                case "create":
                    disk.open(path, create=True)
                case "rename":
                    disk.rename(path, chance.choice(names))
                case "remove":
                    disk.remove(path)
                case "fsync_dir":
                    disk.fsync_dir(chance.choice(("", "f")))
                case "crash":
                    disk.crash(number)
                    disk.make_dir("f")
                case _:
                    read_file(disk, path)
                    disk.make_dir("f")
                    assert disk.changes == changes
        except OSError:
            pass  # there is no such file, or no room
        counted += seen(disk) != before
        assert seen(disk) == before or disk.changes > changes
    assert counted > 20


def seen(disk: SimulatedFiles) -> list[tuple[str, bytes]]:
    """What a reader finds."""
    if not disk.exists("f"):
        return []
    return [(name, read_file(disk, f"f/{name}")) for name in disk.list("f")]
