"""``fencepost timeline``: options, exit codes and outputs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SCENARIOS = Path(__file__).resolve().parents[1] / "traces" / "timeline" / "scenarios"
LOST = sorted((SCENARIOS / "committed-records-lost").glob("*.log"))
CLEAN = sorted((SCENARIOS / "clean-failover").glob("*.log"))
pytestmark = pytest.mark.usefixtures("own_registry")


@pytest.mark.parametrize(
    ("files", "code", "verdict"),
    [
        (CLEAN, 0, "holds"),
        (LOST, 1, "violated"),
        ([SCENARIOS / "follower-stops" / "broker-4.log"], 3, "unknown"),
    ],
)
def test_json_has_the_verdict_of_the_exit_code(fencepost: Run, files: list[Path], code: int, verdict: str) -> None:
    said = fencepost("timeline", *files, "--json")
    assert (said.code, said.json["verdict"]) == (code, verdict)
    (partition,) = said.json["partitions"]
    assert partition["events"] and partition["brokers"]
    assert [each["verdict"] for each in said.json["contradictions"]] == ([] if code == 0 else [verdict])


def test_page_holds_the_events_and_their_lines(fencepost: Run, tmp_path: Path) -> None:
    page = tmp_path / "timeline.html"
    said = fencepost("timeline", *LOST, "--html", page)
    assert said.code == 1 and f"wrote {page}" in said.err
    text = page.read_text(encoding="utf-8")
    assert "truncates to 41" in text and "Truncating to offset 41" in text and '<tr class="marked">' in text
    assert "<script" not in text and "default-src &#39;none&#39;" in text.replace("'", "&#39;")


@pytest.mark.parametrize(("files", "code"), [(LOST, 1), (CLEAN, 2)], ids=["violated", "holds"])
def test_unwritable_page_keeps_the_answer(fencepost: Run, tmp_path: Path, files: list[Path], code: int) -> None:
    # No longer name fits beside it, as that of the file before it is whole.
    said = fencepost("timeline", *files, "--html", tmp_path / f"{'p' * 250}.html", "--json")
    assert said.code == code and said.json["verdict"] == ("violated" if code == 1 else "holds")
    assert "cannot write" in said.err and not list(tmp_path.iterdir())


def test_page_escapes_names_from_logs(fencepost: Run, tmp_path: Path) -> None:
    log = tmp_path / "<b>.log"
    log.write_text(CLEAN[0].read_text())
    said = fencepost("timeline", log, "--html", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert said.code in (0, 3) and "<b>.log" not in text and "&lt;b&gt;.log" in text


def test_topic_selects_partitions(fencepost: Run) -> None:
    both = fencepost("timeline", *LOST, *CLEAN, "--topic", "carts")
    assert both.code == 0 and "carts-0" in both.out and "bookings-2" not in both.out
    wrong = fencepost("timeline", *LOST, "--topic", "carts")
    assert wrong.code == 2 and wrong.complaint == "--topic: no file reports it; name one of bookings"


def test_verbose_prints_frequent_events(fencepost: Run) -> None:
    assert "appends up to 7" not in fencepost("timeline", *CLEAN).out
    assert "appends up to 7" in fencepost("timeline", *CLEAN, "--verbose").out


def test_unread_file_makes_a_clean_timeline_unknown(fencepost: Run, tmp_path: Path) -> None:
    said = fencepost("timeline", *CLEAN, tmp_path / "broker-3.log")
    assert said.code == 3 and "broker-3.log: cannot be read: No such file or directory" in said.err
    assert "1 file not read" in said.out
    violated = fencepost("timeline", *LOST, tmp_path / "broker-3.log")
    assert violated.code == 1


def test_nothing_readable_is_bad_input(fencepost: Run, tmp_path: Path) -> None:
    empty, foreign, fifo = tmp_path / "empty.log", tmp_path / "app.log", tmp_path / "fifo"
    empty.write_text("")
    foreign.write_text("GET / 200\nGET /x 404\n")
    os.mkfifo(fifo)
    for path, says in (
        (empty, "the file is empty"),
        (foreign, "no line has a known layout of Kafka's logs"),
        (fifo, "it is no regular file"),
    ):
        said = fencepost("timeline", path)
        assert said.code == 2 and str(path) in said.err and says in said.err and not said.out
    assert fencepost("timeline").code == 2
