"""``fencepost examples``, and bundled recordings named as paths of other commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from fencepost.traces.bundled.archive import is_unpacked
from fencepost.traces.bundled.unpacked import NAMES, archive_of

from .conftest import Fencepost

README = archive_of("failover").with_name("README.md")
STAGE = "6-unclean-election"
BROKERS = ("broker-1", "broker-2", "broker-3")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def without_paths(value: Any, *prefixes: str) -> Any:
    """A JSON value without these prefixes of its texts, and without times."""
    if isinstance(value, dict):
        return {key: without_paths(each, *prefixes) for key, each in value.items() if key != "seconds"}
    if isinstance(value, list):
        return [without_paths(each, *prefixes) for each in value]
    if isinstance(value, str):
        for prefix in prefixes:
            value = value.replace(prefix, "")
    return value


def test_examples_are_listed(fencepost: Fencepost) -> None:
    said = fencepost("examples")
    assert said.code == 0
    for line in (f"failover/{STAGE} ", "tiered/4-empty-follower ", "mining/planted ", "fencepost examples DIR"):
        assert line in said.out
    names = [each["name"] for each in fencepost("examples", "--json").json["examples"]]
    assert len(names) == 17 and set(names) >= {"failover/1-steady", "compacted/3-failover", "mining/clean"}


def test_examples_are_written_and_checked(fencepost: Fencepost, tmp_path: Path) -> None:
    said = fencepost("examples", "here")
    assert said.code == 0 and f"fencepost check here/failover/{STAGE}/broker-*" in said.out
    for name in NAMES:
        assert is_unpacked(archive_of(name), tmp_path / "here" / name)
    listed = [each["name"] for each in fencepost("examples", "--json").json["examples"]]
    assert all((tmp_path / "here" / name).is_dir() for name in listed)
    assert fencepost("check", *(f"here/failover/{STAGE}/{each}" for each in BROKERS), "--no-search").code == 1


def test_examples_reject_a_folder_with_files(fencepost: Fencepost, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine").touch()
    assert "here: the folder is there already, and not empty" in fencepost("examples", "here").complaint
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["mine"]


@pytest.mark.parametrize("corpus", ["traces/bundled/failover", "traces/kafka/corpus"])
def test_check_takes_a_bundled_path(fencepost: Fencepost, tmp_path: Path, corpus: str) -> None:
    said = fencepost("check", f"{corpus}/{STAGE}/broker-*", "--json", "--no-search")
    assert said.code == 1
    (line,) = [line for line in said.lines if "bundled recording" in line]
    where = line.rpartition(" ")[2]
    assert line.startswith(f"{corpus}/{STAGE}/broker-*: ") and Path(where).is_dir()
    fencepost("examples", "here")
    written = fencepost("check", *(f"here/failover/{STAGE}/{each}" for each in BROKERS), "--json", "--no-search")
    assert without_paths(said.json, where) == without_paths(written.json, f"here/failover/{STAGE}")


def test_check_commands_of_the_readme_run(fencepost: Fencepost) -> None:
    commands = re.findall(r"^\$ fencepost (check .*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    losing, tiered = (fencepost(*shlex.split(command), "--json", "--no-search") for command in commands)
    assert (losing.code, tiered.code) == (1, 0)
    checks = {each["check"] for each in tiered.json["files"]["checks"] if each["verdict"] == "holds"}
    assert "remote_segments_are_stored" in checks


def test_check_names_an_unknown_stage_as_typed(fencepost: Fencepost) -> None:
    typed = "traces/bundled/failover/9-none/broker-*"
    assert fencepost("check", typed).complaint.startswith(f"{typed}: no such directory")


def test_other_commands_take_a_bundled_path(fencepost: Fencepost, tmp_path: Path) -> None:
    assert fencepost("ingest", f"traces/bundled/failover/{STAGE}", "--out", "corpus", "--master", "serial").code == 0
    assert (tmp_path / "corpus").is_dir()
    assert fencepost("mine", "traces/bundled/mining/planted", "--master", "serial", "--json").code == 1
    assert fencepost("mine", "traces/bundled/mining/clean", "--master", "serial", "--json").code == 0
    said = fencepost("timeline", f"traces/bundled/failover/{STAGE}/broker-*/payments-0", "--json")
    assert [each["partition"] for each in said.json["partitions"]] == ["payments-0"]
