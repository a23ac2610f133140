"""The directory of a search on disk: after a crash, with a file that is not as it was, and where there is no room."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import System
from fencepost.model.explore import Limits, Query, Verdict
from fencepost.model.explore.disk import files, manifest
from fencepost.model.explore.disk.manifest import LOCK, MANIFEST, Directory
from fencepost.model.explore.disk.search import explore_on_disk

At = Callable[..., System]


def told(folder: Path) -> dict[str, bytes]:
    """Every file, but for the time that was taken."""
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    whole = json.loads(found[MANIFEST])
    return {**found, MANIFEST: json.dumps({**whole, "seconds": 0, "digest": 0}).encode()}


def in_a_process(run: Callable[[], object]) -> int:
    """Run it in a process of its own, and give how that ended: minus a signal, or an exit code."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            run()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(effect: int) -> None:
    """Have this process killed, without a chance to clean up, right before so many effects on files have been."""
    left = [effect]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            flags = arguments[2]
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR):
                return
        elif event not in ("os.rename", "os.remove", "os.mkdir"):
            return
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def explored(query: Query, folder: Path, effect: int) -> int:
    """Explore in a process that is killed right before that effect; how it ended."""

    def run() -> None:
        killed_at(effect)
        explore_on_disk(query, folder, "batch")

    return in_a_process(run)


def test_a_search_goes_on_after_a_crash_before_any_effect_on_a_file(at: At, tmp_path: Path) -> None:
    """Some seconds: each effect is a crash and two searches, which wait for the disk at every level."""
    query = Query.of(at("2/1/1/1", "truncate-to-hw"))
    whole = explore_on_disk(query, tmp_path / "whole", "batch")
    assert whole.verdict is Verdict.VIOLATED
    for effect in range(1, 1000):
        folder = tmp_path / str(effect)
        ended = explored(query, folder, effect)
        answer = explore_on_disk(query, folder, "batch")
        assert answer.path == whole.path and answer.coverage == whole.coverage
        assert told(folder) == told(tmp_path / "whole"), effect
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    assert effect > 25


def test_a_search_that_is_killed_again_and_again_comes_to_its_end(at: At, tmp_path: Path) -> None:
    query = Query.of(at("2/1/1/1"))
    whole = explore_on_disk(query, tmp_path / "whole", "batch")
    assert whole.verdict is Verdict.HOLDS
    crashes = 0
    while explored(query, tmp_path / "killed", 9) != 0:
        crashes += 1
        assert crashes < 100
    assert crashes > 3 and told(tmp_path / "killed") == told(tmp_path / "whole")


@pytest.fixture
def half(at: At, tmp_path: Path) -> tuple[Query, Path]:
    """A search that was broken off, and its directory."""
    query = Query.of(at("2/1/1/1"), limits=Limits(max_depth=6))
    folder = tmp_path / "half"
    assert explore_on_disk(query, folder, "batch").verdict is Verdict.UNKNOWN
    return replace(query, limits=Limits()), folder


def refused(query: Query, folder: Path, what: str) -> None:
    """It is refused in one line that says so, and nothing is written."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(BadInput, match=what) as error:
        explore_on_disk(query, folder, "batch")
    assert "\n" not in str(error.value) and str(folder) in str(error.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_directory_of_another_search_is_refused(
    at: At, half: tuple[Query, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    query, folder = half
    refused(Query.of(at("2/1/1/1", "kip-101")), folder, "it is of variant kip-320, and this is of kip-101;")
    refused(Query.of(at("2/1/2/1")), folder, "it is of constants replicas 2 .* max_records 1 .*, and this is of")
    refused(
        Query.of(query.system, ("weak_isr",)), folder, "it is of invariants type_ok, weak_isr, .*, and this is of type"
    )
    refused(replace(query, symmetry=True), folder, "it is of symmetry False, and this is of True")
    dropped = at("2/1/1/1", "kip-320", "leader_write.log_not_full")
    refused(Query.of(dropped), folder, "it is of another text of fencing kip-320;")
    monkeypatch.setattr(manifest, "version", lambda _: "0.0.1")
    refused(query, folder, "it is of fencepost .*, and this is of 0.0.1")
    monkeypatch.setattr(manifest, "FORMAT", 9)
    refused(query, folder, "it has format 1, and this is 9")


def test_a_file_that_is_cut_or_changed_is_refused(half: tuple[Query, Path]) -> None:
    query, folder = half
    level = folder / "level-00004.keys"
    content = level.read_bytes()
    level.write_bytes(content[:-8])
    refused(query, folder, "level-00004.keys: it is cut or changed: [0-9,]+ bytes")
    level.write_bytes(content + bytes(8))
    refused(query, folder, "level-00004.keys: it is cut or changed")
    for place in (0, len(content) // 2, len(content) - 1):
        level.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        refused(query, folder, "level-00004.keys: it was changed")
    level.unlink()
    refused(query, folder, "level-00004.keys: cannot be read: No such file")
    level.write_bytes(content)
    assert explore_on_disk(query, folder, "batch").verdict is Verdict.HOLDS


def test_a_manifest_that_is_cut_or_changed_is_refused(half: tuple[Query, Path]) -> None:
    query, folder = half
    place = folder / MANIFEST
    content = place.read_text()
    for broken in (content[:-9], "", "{}", "[]", "null", "9" * 5000, content.replace('"states": 1,', '"states": 2,')):
        place.write_text(broken)
        refused(query, folder, f"{MANIFEST}: it is cut or changed, or no manifest of an exploration")
    place.write_bytes(b"\xff\xfe")
    refused(query, folder, "it is cut or changed")
    place.unlink()
    refused(query, folder, "it has files, and no manifest of an exploration")
    place.write_text(content)
    assert explore_on_disk(query, folder, "batch").verdict is Verdict.HOLDS


def test_what_is_not_ours_is_left_alone(half: tuple[Query, Path], tmp_path: Path) -> None:
    query, folder = half
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "level-00001.part").write_text("mine")
    refused(query, theirs, "it has files, and no manifest")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BadInput, match="cannot be a directory of states: File exists"):
        explore_on_disk(query, tmp_path / "file", "batch")
    with pytest.raises(BadInput, match="cannot be a directory of states: No such file"):
        explore_on_disk(query, tmp_path / "none" / "there", "batch")
    # Beside a manifest of ours, too, what has another name stays.
    for name in ("level-1.part", "notes.part", "spill-00000.keys"):
        (folder / name).write_text("mine")
    (folder / "spill-00000.part").write_text("ours, of a run that was killed")
    assert explore_on_disk(query, folder, "batch").verdict is Verdict.HOLDS
    assert [(folder / name).read_text() for name in ("level-1.part", "notes.part", "spill-00000.keys")] == ["mine"] * 3
    assert not (folder / "spill-00000.part").exists()


def test_two_processes_do_not_explore_in_one_directory(half: tuple[Query, Path]) -> None:
    query, folder = half
    first = Directory(folder, query)
    refused(query, folder, "another process explores in it")
    first.release()
    assert explore_on_disk(query, folder, "batch").verdict is Verdict.HOLDS
    assert (folder / LOCK).exists()


def test_a_disk_that_gets_full_is_unknown_before_it_is_and_room_goes_on(
    at: At, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query.of(at("2/2/2/2"))
    whole = explore_on_disk(query, tmp_path / "whole", "batch")
    folder = tmp_path / "full"
    size = files.RESERVED + 40_000

    def free(where: Path) -> int:
        return size - sum(path.stat().st_size for path in where.iterdir())

    monkeypatch.setattr(files, "free_bytes", free)
    answer = explore_on_disk(query, folder, "batch")
    assert answer.verdict is Verdict.UNKNOWN and answer.depth > 3
    assert f"{folder} has 64 MiB left, of which 64 are not taken (--dir)" in str(answer.reason)
    assert not list(folder.glob("*.part"))
    monkeypatch.undo()
    assert explore_on_disk(query, folder, "batch").distinct == whole.distinct
    assert told(folder) == told(tmp_path / "whole")


def test_a_write_that_fails_is_unknown_and_what_was_finished_stays(at: At, tmp_path: Path) -> None:
    query = Query.of(at("2/2/2/2"))
    whole = explore_on_disk(query, tmp_path / "whole", "batch")
    folder = tmp_path / "limited"

    def run() -> None:
        # No file may be larger: as where a disk or a quota is full, the system refuses a write.
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
        answer = explore_on_disk(query, folder, "batch")
        assert answer.verdict is Verdict.UNKNOWN and answer.depth > 3
        assert answer.reason == f"{folder} takes no more: File too large (--dir)"

    assert in_a_process(run) == 0
    assert explore_on_disk(query, folder, "batch").distinct == whole.distinct
    assert told(folder) == told(tmp_path / "whole")


def test_a_file_that_is_cut_while_it_is_read_is_named(
    half: tuple[Query, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    query, folder = half
    monkeypatch.setattr(Directory, "_check", lambda *_: None)
    level = folder / "level-00003.keys"
    level.write_bytes(level.read_bytes()[:-8])
    with pytest.raises(BadInput, match=r"level-00003.keys: it is cut"):
        explore_on_disk(query, folder, "batch")
