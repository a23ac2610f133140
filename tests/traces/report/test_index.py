"""The report folder: what it holds, and that it appears whole or not at all."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.report import index
from fencepost.traces.report.answer import Answer, Finding
from fencepost.traces.report.index import Note, Obligation, overall, summary, write_report
from fencepost.traces.report.replicas import ReplicaRow, ReplicaTable
from fencepost.traces.run_report import Story, Verdict, from_json
from junitparser import Error, Failure, JUnitXml

BAD = "<b>x</b> & \x00\x1b[31m \ud800 ]]> \"'"


@pytest.fixture
def results(lost_record: Story, lasso: Story) -> list[Obligation]:
    return [
        Obligation("kip-320 is safe", "safety", "holds", "holds", "", 5973, "states", 1.25),
        Obligation("a record is committed", "liveness", "violated", "holds", "a lasso", 12, "states", 0.5, lasso),
        Obligation("truncate-to-hw", "safety", "violated", "violated", "12 steps", 3869, "states", 0.5, lost_record),
        Obligation("kip-279", "safety", "holds", "violated", "no counterexample", 60106, "states", 2.0),
        Obligation("3/3/3/2", "engines", "unknown", "holds", "--max-memory was spent", 4, "states", 9.0),
    ]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_the_folder_holds(tmp_path: Path, results: list[Obligation], lost_record: Story) -> None:
    page = write_report(tmp_path / "report", results)
    files = tree(tmp_path / "report")
    assert page == tmp_path / "report" / "index.html"
    assert sorted(files) == [
        "index.html",
        "junit.xml",
        "report.json",
        "stories/002-liveness-a-record-is-committed.html",
        "stories/002-liveness-a-record-is-committed.json",
        "stories/003-safety-truncate-to-hw.html",
        "stories/003-safety-truncate-to-hw.json",
    ]
    assert from_json(files["stories/003-safety-truncate-to-hw.json"].decode()) == lost_record
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_the_table_links_each_counterexample(tmp_path: Path, results: list[Obligation]) -> None:
    html = write_report(tmp_path / "report", results).read_text(encoding="utf-8")
    assert '<a href="stories/003-safety-truncate-to-hw.html">12 steps</a>' in html
    assert '<a href="stories/002-liveness-a-record-is-committed.html">7 steps</a>' in html
    assert "violated (expected)" in html
    assert "holds, not violated" in html
    assert "60,106 states" in html
    assert "script-src &#39;none&#39;" in html
    # Groups in the order in which they come up, each once.
    assert html.index("safety</th>") < html.index("liveness</th>") < html.index("engines</th>")
    assert html.count("safety</th>") == 1


def test_report_json(tmp_path: Path, results: list[Obligation]) -> None:
    write_report(tmp_path / "report", results)
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert (report["format"], report["version"], report["verdict"]) == ("fencepost-report", 1, "violated")
    assert report["seconds"] == 13.25
    assert [each["met"] for each in report["obligations"]] == [True, False, True, False, False]
    assert report["obligations"][2] == {
        "name": "truncate-to-hw",
        "group": "safety",
        "verdict": "violated",
        "expected": "violated",
        "met": True,
        "optional": False,
        "detail": "12 steps",
        "count": 3869,
        "unit": "states",
        "seconds": 0.5,
        "story": "stories/003-safety-truncate-to-hw.html",
    }


def test_junit(tmp_path: Path, results: list[Obligation]) -> None:
    write_report(tmp_path / "report", results)
    xml = JUnitXml.fromfile(str(tmp_path / "report" / "junit.xml"))
    assert (xml.tests, xml.failures, xml.errors) == (5, 2, 1)
    cases = {case.name: case for suite in xml for case in suite}
    assert [suite.name for suite in xml] == ["safety", "liveness", "engines"]
    assert cases["kip-320 is safe"].result == []
    assert cases["truncate-to-hw"].result == []
    assert isinstance(cases["kip-279"].result[0], Failure)
    assert cases["kip-279"].result[0].message == "holds, not violated: no counterexample"
    assert isinstance(cases["3/3/3/2"].result[0], Error)


def test_notes_are_in_all_of_them(tmp_path: Path, results: list[Obligation]) -> None:
    notes = [Note("loss", "orders-0: lost: offset 3, key '<k>'"), Note("note", "a\x1b[31m")]
    page = write_report(tmp_path / "report", results, notes).read_text(encoding="utf-8")
    assert '<li class="loss"><b>loss</b> orders-0: lost: offset 3, key &#39;&lt;k&gt;&#39;</li>' in page
    assert "<b>note</b> a\\x1b[31m</li>" in page
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert report["notes"] == [{"kind": each.kind, "text": each.text} for each in notes]
    xml = (tmp_path / "report" / "junit.xml").read_text(encoding="utf-8")
    assert "<system-out>loss: orders-0: lost: offset 3, key '&lt;k&gt;'\nnote: a\\x1b[31m</system-out>" in xml
    page = write_report(tmp_path / "report", results).read_text(encoding="utf-8")
    assert "Notes" not in page, "nothing to say"


def test_hostile_strings(tmp_path: Path, lost_record: Story) -> None:
    bad = Obligation(BAD, f"../{BAD}", "violated", "holds", BAD, 1, BAD, 0.0, replace(lost_record, headline=BAD))
    html = write_report(tmp_path / "report", [bad]).read_text(encoding="utf-8")
    assert "<b>" not in html
    assert "&lt;b&gt;x&lt;/b&gt; &amp; \\x00\\x1b[31m \\ud800" in html
    case = next(iter(next(iter(JUnitXml.fromfile(str(tmp_path / "report" / "junit.xml"))))))
    assert case.name == "<b>x</b> & \\x00\\x1b[31m \\ud800 ]]> \"'"
    assert json.loads((tmp_path / "report" / "report.json").read_text())["obligations"][0]["name"] == BAD
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_an_older_report_is_replaced_as_a_whole(tmp_path: Path, results: list[Obligation]) -> None:
    write_report(tmp_path / "report", results)
    write_report(tmp_path / "report", results[:1])
    assert sorted(tree(tmp_path / "report")) == ["index.html", "junit.xml", "report.json"]


def test_the_same_results_give_the_same_bytes(tmp_path: Path, results: list[Obligation]) -> None:
    write_report(tmp_path / "a", results)
    write_report(tmp_path / "b", results)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


@pytest.mark.parametrize("step", ["render_page", "_index", "junit_of"])
def test_a_failure_while_writing_leaves_the_older_report_and_nothing_else(
    tmp_path: Path, results: list[Obligation], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def disk_full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    folder = tmp_path / "report"
    with monkeypatch.context() as patch:
        patch.setattr(index, step, disk_full)
        with pytest.raises(BadInput, match="No space left on device"):
            write_report(folder, results)
        assert list(tmp_path.iterdir()) == []
    write_report(folder, results)
    before = tree(folder)
    monkeypatch.setattr(index, step, disk_full)
    with pytest.raises(BadInput, match="No space left on device"):
        write_report(folder, results[::-1])
    assert tree(folder) == before
    assert list(tmp_path.iterdir()) == [folder]


def test_an_interrupt_leaves_nothing_behind(
    tmp_path: Path, results: list[Obligation], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(index, "junit_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_report(tmp_path / "report", results)
    assert list(tmp_path.iterdir()) == []


def test_when_the_new_folder_cannot_be_put_in_place_the_old_one_comes_back(
    tmp_path: Path, results: list[Obligation], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "report"
    write_report(folder, results)
    before = tree(folder)
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self.suffix == ".new":
            raise OSError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(BadInput, match="Permission denied"):
        write_report(folder, results[:1])
    assert tree(folder) == before
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_holds_something_else_is_not_touched(tmp_path: Path, results: list[Obligation]) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.txt").write_text("ten years")
    (home / "report.json").write_text('{"format": "another"}')
    before = tree(home)
    with pytest.raises(BadInput, match="holds something that is not a report"):
        write_report(home, results)
    assert tree(home) == before
    with pytest.raises(BadInput, match="this is none"):
        write_report(home / "thesis.txt", results)
    (tmp_path / "link").symlink_to(home)
    with pytest.raises(BadInput, match="this is none"):
        write_report(tmp_path / "link", results)
    with pytest.raises(BadInput, match="cannot write the report"):
        write_report(home / "thesis.txt" / "report", results)
    assert tree(home) == before


PUT: dict[str, Callable[[Path], object]] = {
    "'notes.txt'": lambda report: (report / "notes.txt").write_text("mine"),
    "'stories/notes.txt'": lambda report: (report / "stories" / "notes.txt").write_text("mine"),
    "'thesis'": lambda report: (report / "thesis").mkdir(),
    "'thesis/chapter.txt'": lambda report: [(report / "thesis").mkdir(), (report / "thesis/chapter.txt").touch()],
    "'away'": lambda report: (report / "away").symlink_to(report.parent),
    "'index.html' of the report there was changed": lambda report: (report / "index.html").write_text("mine"),
    "not a report": lambda report: [(report / "report.json").unlink(), os.mkfifo(report / "report.json")],
    "does not say which files": lambda report: (report / "report.json").write_text('{"format": "fencepost-report"}'),
}


@pytest.mark.parametrize("what", PUT)
def test_a_report_with_anything_else_in_it_is_not_touched(tmp_path: Path, results: list[Obligation], what: str) -> None:
    folder = tmp_path / "report"
    write_report(folder, results)
    PUT[what](folder)
    before = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    with pytest.raises(BadInput, match=re.escape(what)) as refused:
        write_report(folder, results[:1])
    assert str(refused.value).startswith(f"{folder}: ")
    assert sorted(path.relative_to(folder) for path in folder.rglob("*")) == before
    assert list(tmp_path.iterdir()) == [folder]


def test_what_is_put_into_a_report_while_its_successor_is_written_is_kept(
    tmp_path: Path, results: list[Obligation], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "report"
    write_report(folder, results)
    fill = index._fill

    def slowly(
        building: Path,
        results: Sequence[Obligation],
        notes: Sequence[Note],
        overview: index.Overview | None,
        answer: index.Answer | None,
    ) -> None:
        fill(building, results, notes, overview, answer)
        (folder / "notes.txt").write_text("mine")

    monkeypatch.setattr(index, "_fill", slowly)
    with pytest.raises(BadInput, match=r"beside a report the folder holds 'notes\.txt'"):
        write_report(folder, results[:1])
    assert (folder / "notes.txt").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [folder]


def test_a_report_that_lacks_files_or_has_caches_of_its_tests_is_replaced(
    tmp_path: Path, results: list[Obligation]
) -> None:
    folder = tmp_path / "report"
    write_report(folder, results)
    (folder / "junit.xml").unlink()
    for cache in (folder / "__pycache__", folder / "stories" / ".pytest_cache" / "v"):
        cache.mkdir(parents=True)
        (cache / "x").touch()
    write_report(folder, results[:1])
    assert sorted(tree(folder)) == ["index.html", "junit.xml", "report.json"]


def test_an_empty_folder_and_a_folder_yet_to_make_are_fine(tmp_path: Path, results: list[Obligation]) -> None:
    (tmp_path / "empty").mkdir()
    assert write_report(tmp_path / "empty", results).exists()
    assert write_report(tmp_path / "a" / "b" / "c", results).exists()


def obligation(verdict: Verdict, expected: Verdict = "holds") -> Obligation:
    return Obligation("it", "group", verdict, expected, "", 1, "states", 0.0)


def search(verdict: Verdict) -> Obligation:
    return replace(obligation(verdict), optional=True)


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        ([], "unknown"),
        ([search("unknown")], "unknown"),
        ([search("unknown"), obligation("holds")], "holds"),
        ([search("unknown"), obligation("unknown")], "unknown"),
        ([search("violated"), obligation("holds")], "violated"),
        ([obligation("holds"), obligation("violated", "violated")], "holds"),
        ([obligation("unknown"), obligation("holds")], "unknown"),
        ([obligation("unknown"), obligation("violated")], "violated"),
        ([obligation("holds", "violated")], "violated"),
        ([obligation("unknown", "violated")], "unknown"),
    ],
)
def test_the_verdict_on_all(results: list[Obligation], verdict: Verdict) -> None:
    assert overall(results) == verdict


def test_an_unfinished_search_is_skipped_in_junit(tmp_path: Path) -> None:
    results = [obligation("holds"), replace(search("unknown"), detail="more than 7 states")]
    write_report(tmp_path / "report", results)
    xml = JUnitXml.fromfile(str(tmp_path / "report" / "junit.xml"))
    assert (xml.tests, xml.failures, xml.errors, xml.skipped) == (2, 0, 0, 1)
    assert summary(results) == "2 obligations: 1 met, 1 search not finished"


def test_the_summary_counts_the_twins(results: list[Obligation]) -> None:
    assert summary(results) == "5 obligations: 2 met, 3 not met; 1 of 2 must-fail twins caught"
    assert summary(results[:1]) == "1 obligation: 1 met"


@pytest.mark.parametrize(
    "change",
    [{"verdict": "maybe"}, {"expected": "maybe"}, {"count": -1}, {"seconds": -0.1}, {"seconds": float("nan")}],
)
def test_an_obligation_that_makes_no_sense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="it: "):
        replace(obligation("holds"), **change)  # type: ignore[arg-type]


def test_page_and_object_have_the_order_of_the_screen(tmp_path: Path, results: list[Obligation]) -> None:
    row = ReplicaRow("t-0", 2, 3, 7, (3,), 6, 0, 1, 2, "differs at 1", frozenset({"epoch"}), first=True)
    answer = Answer(
        "violated",
        "1 problem in t-0",
        (Finding("violated", "t-0", "it lost <offset> 1", ("offset 1, byte 96",), "kept"),),
        ("Copy the directory.",),
        ReplicaTable((row,), 1),
        ("a: none; name it",),
        ("not searched",),
    )
    page = write_report(tmp_path / "report", results, answer=answer).read_text(encoding="utf-8")
    shown = ["violated</span>", "1 problem in t-0", "it lost &lt;offset&gt; 1", "offset 1, byte 96", "not searched",
             "skipped 1 directory: a: none; name it", "Copy the directory.", "differs at 1", "Checks that do not hold",
             "kip-279", "<details><summary>Checks that hold: 2", "kip-320 is safe"]  # fmt: skip
    places = [page.index(each) for each in shown]
    assert places == sorted(places)
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    keys = list(report)
    assert keys[:8] == ["format", "version", "verdict", "headline", "problems", "next_steps", "replicas", "skipped"]
    assert report["problems"] == [
        {"verdict": "violated", "subject": "t-0", "text": "it lost <offset> 1", "details": ["offset 1, byte 96"],
         "check": "kept"}
    ]  # fmt: skip
    assert report["replicas"][0]["differs"] == ["epoch"]
