"""Paths that name bundled recordings, and paths of users that do not."""

from __future__ import annotations

from pathlib import Path

import fencepost
import pytest
from fencepost.traces.bundled.paths import find_bundled
from fencepost.traces.bundled.unpacked import unpacked

STAGE = "6-unclean-election"
assert fencepost.__file__ is not None
PACKAGE = Path(fencepost.__file__).parent


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "typed",
    [
        f"traces/bundled/failover/{STAGE}/broker-1",
        f"./traces/bundled/tiered/../failover/{STAGE}/broker-1/",
        f"traces/kafka/corpus/{STAGE}/broker-1",
        f"{PACKAGE}/traces/bundled/failover/{STAGE}/broker-1",
        f"{PACKAGE}/traces/kafka/corpus/{STAGE}/broker-1",
    ],
)
def test_path_into_an_archive_names_its_files(typed: str) -> None:
    assert find_bundled(Path(typed)) == [unpacked("failover") / STAGE / "broker-1"]


def test_path_is_taken_from_a_folder_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PACKAGE / "traces" / "bundled")
    assert find_bundled(Path("compacted/1-cleaned-once")) == [unpacked("compacted") / "1-cleaned-once"]


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("traces/bundled/failover/6-*/broker-*", ["broker-1", "broker-2", "broker-3"]),
        (f"traces/kafka/corpus/{STAGE}/broker-[23]", ["broker-2", "broker-3"]),
        ("traces/kafka/corpus_tiered/4-empty-follower/r*", ["remote"]),
        ("traces/mine/bundled/planted", ["planted"]),
    ],
)
def test_pattern_is_expanded(typed: str, names: list[str]) -> None:
    assert [path.name for path in find_bundled(Path(typed))] == names


@pytest.mark.parametrize(
    "typed",
    [
        "broker-1",
        f"failover/{STAGE}/broker-1",
        f"traces/bundled/failover/{STAGE}/broker-9",
        f"traces/bundled/failover/{STAGE}/zk-*",
        "traces/bundled/failover/../../../secret",
        "traces/bundled/other/broker-1",
        "traces/bundled",
        f"/data/traces/kafka/corpus/{STAGE}/broker-1",
        f"backup/traces/kafka/corpus/{STAGE}/broker-1",
    ],
)
def test_other_path_names_nothing_bundled(typed: str) -> None:
    assert find_bundled(Path(typed)) == []


def test_existing_folder_is_not_replaced() -> None:
    own = Path("traces", "kafka", "corpus", STAGE, "broker-1")
    own.mkdir(parents=True)
    assert find_bundled(own) == []


def test_removed_current_folder_names_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert find_bundled(Path("broker-1")) == []
