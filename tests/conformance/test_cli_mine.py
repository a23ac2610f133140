"""``fencepost mine``: what it writes with --out, and that nothing is written where it may not be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
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
