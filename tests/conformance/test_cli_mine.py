"""``fencepost mine``: what it writes with --out, and that nothing is written where it may not be."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.mine.answer import TIMES

from .conftest import Fencepost

SERIAL = ("--master", "serial")


@pytest.fixture
def corpus(fencepost: Fencepost, tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    options = ("--replicas", 2, "--traces", 60, "--events", 20, "--seed", 3, "--files", 2, "--rate", 0.1)
    faults = ("--faults", "follower_fetch.epoch_not_fenced dropped")
    assert fencepost("simulate", "fencing", *options, *faults, "--out", folder, *SERIAL).code == 0
    return folder


def test_out_has_the_report_and_what_is_printed(fencepost: Fencepost, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "mined"
    said = fencepost("mine", corpus, "--out", out, "--json", *SERIAL)
    assert said.code == 1 and f"wrote {out}" in said.lines
    (group,) = said.json["groups"]
    assert group["count"] == 6 and group["signature"]["guard"] == "epoch_not_fenced"
    report = json.loads((out / "report.json").read_text())
    files = report.pop("contents")
    assert set(files) >= {"index.html", "junit.xml", group["file"], group["test"]}
    assert report == {"format": "fencepost-mining", "version": 1, **said.json}
    assert (out / "index.html").stat().st_size > 10_000 and (out / "junit.xml").is_file()
    assert {"verdict", "traces", "events", "violating_traces", "groups", "coverage", *TIMES} <= said.json.keys()
    # The same bug, for the same reason, by the trace alone.
    replayed = fencepost("replay", out / group["file"], "--json")
    assert replayed.code == 1 and "epoch_not_fenced" in json.dumps(replayed.json["frontier"])
    assert (out / group["test"]).is_file()


def test_a_folder_of_something_else_is_refused_before_anything_is_mined(fencepost: Fencepost, tmp_path: Path) -> None:
    (tmp_path / "mined").mkdir()
    (tmp_path / "mined" / "precious.txt").touch()
    told = fencepost("mine", tmp_path / "no-corpus", "--out", tmp_path / "mined", *SERIAL).complaint
    assert told.startswith(f"{tmp_path / 'mined'}: the folder holds something that is not a report")


@pytest.mark.parametrize("nested", ["a", "a/b"])
def test_unwritable_report_keeps_the_answer(fencepost: Fencepost, corpus: Path, tmp_path: Path, nested: str) -> None:
    (tmp_path / "file").touch()
    out = tmp_path / "file" / nested
    said = fencepost("mine", corpus, "--out", out, "--json", *SERIAL)
    # A violation stays one; its answer names no file of the report.
    assert said.code == 1 and said.json["violating_traces"] == 6
    told = f"{out}: cannot write the report: Not a directory; name another folder"
    assert said.lines[0] == f"fencepost: warning: {told}; the answer is printed all the same"
    assert said.lines[-1] == f"fencepost: {told}"


def test_report_without_room_is_bad_input_where_all_holds(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise BadInput("cannot write the report: No space left on device", str(tmp_path), "name another folder")

    fencepost("simulate", "fencing", "--traces", 3, "--events", 5, "--out", tmp_path / "clean")
    # The package has the command under the module's name.
    monkeypatch.setattr(sys.modules["fencepost.conformance.cli.mine"], "write_mining", full)
    said = fencepost("mine", tmp_path / "clean", "--out", tmp_path / "mined", "--json", *SERIAL)
    assert said.code == 2 and said.json["verdict"] == "holds"
    assert (
        said.lines[-1]
        == f"fencepost: {tmp_path}: cannot write the report: No space left on device; name another folder"
    )
    assert not (tmp_path / "mined").exists()


def test_what_a_client_was_told_is_a_promise_of_corpora_too(fencepost: Fencepost, tmp_path: Path) -> None:
    """A coordinator that serves what it never acknowledged: no log and no leader shows it."""
    sizes = ("--replicas", 1, "--log-size", 1, "--max-records", 1, "--max-leader-epoch", 0)
    client, walks = ("--variant", "kip-320-client"), ("--traces", 40, "--events", 30, "--seed", 3, "--rate", 0.1)
    faults = ("--faults", "find_commit.was_refused dropped")
    options = (*client, *sizes, *walks, *faults, "--out", tmp_path / "corpus", *SERIAL)
    assert fencepost("simulate", "truncation", *options).code == 0
    said = fencepost("mine", tmp_path / "corpus", *client, "--json", *SERIAL)
    assert said.code == 1 and said.json["violating_traces"] == 4
    (group,) = said.json["groups"]
    assert group["count"] == 4 and group["signature"]["guard"] == "was_refused"
    # Once what it came up with was just what had been acknowledged.
    assert group["then"]["acknowledged_commit_is_kept"]["traces"] == 3
