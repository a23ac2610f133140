"""What is kept of the drivers that were compiled once: needs no Kafka."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fencepost.conformance.kafka import jars
from fencepost.conformance.kafka.jars import UNUSED_SECONDS, remove_unused

OLD = UNUSED_SECONDS + 3600


def driver(cache: Path, name: str, age: float = OLD) -> Path:
    """A folder with a class in it, last used so many seconds ago."""
    made = cache / name
    made.mkdir(parents=True)
    (made / "Driver.class").write_bytes(b"class")
    os.utime(made, (time.time() - age,) * 2)
    return made


def names(cache: Path) -> list[str]:
    return sorted(each.name for each in cache.iterdir())


def test_what_nobody_has_used_for_long_is_removed_and_nothing_else(tmp_path: Path) -> None:
    home = driver(tmp_path, "driver-4.4.0-current")
    driver(tmp_path, "driver-4.4.0-old")
    driver(tmp_path, ".driver-left-by-one-that-was-killed")
    driver(tmp_path, "driver-4.4.0-used", UNUSED_SECONDS - 3600)
    driver(tmp_path, "4.4.0-layout1")
    (tmp_path / "driver-4.4.0-link").symlink_to(tmp_path / "4.4.0-layout1")
    (tmp_path / "driver-4.4.0-file").write_text("")
    assert remove_unused(tmp_path, home) == [".driver-left-by-one-that-was-killed", "driver-4.4.0-old"]
    kept = ["4.4.0-layout1", "driver-4.4.0-current", "driver-4.4.0-file", "driver-4.4.0-link", "driver-4.4.0-used"]
    assert names(tmp_path) == kept
    assert (home / "Driver.class").exists()


def test_one_that_is_used_meanwhile_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = driver(tmp_path, "driver-4.4.0-old")
    look = jars._unused

    def used_right_then(*asked: object) -> list[Path]:
        found = list(look(*asked))  # type: ignore[arg-type]
        assert found == [old] and jars._used(old)
        return found

    monkeypatch.setattr(jars, "_unused", used_right_then)
    assert remove_unused(tmp_path, tmp_path / "driver-4.4.0-current") == []
    assert names(tmp_path) == ["driver-4.4.0-old"] and (old / "Driver.class").exists()


def test_of_several_who_remove_at_once_each_folder_is_one_ones(tmp_path: Path) -> None:
    for number in range(40):
        driver(tmp_path, f"driver-4.4.0-{number:02}")
    with ThreadPoolExecutor(8) as pool:
        removed = list(pool.map(lambda _: remove_unused(tmp_path, tmp_path / "driver-4.4.0-00"), range(8)))
    assert sorted(name for each in removed for name in each) == [f"driver-4.4.0-{number:02}" for number in range(1, 40)]
    assert names(tmp_path) == ["driver-4.4.0-00"]


def test_a_cache_that_cannot_be_listed_is_left_alone(tmp_path: Path) -> None:
    assert remove_unused(tmp_path / "nowhere", tmp_path / "home") == []


def test_a_driver_that_is_asked_for_is_used(tmp_path: Path) -> None:
    old = driver(tmp_path, "driver-4.4.0-old")
    assert jars._used(old) and remove_unused(tmp_path, tmp_path / "another") == []
    assert not jars._used(tmp_path / "driver-4.4.0-none")
