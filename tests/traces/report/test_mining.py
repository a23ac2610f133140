"""The report of a mining run: what is in the folder, what the page says, and that it can be acted on."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.conformance.protocols.fencing import template
from fencepost.model.core.errors import BadInput
from fencepost.traces.mine.answer import Bug, Problem, Share, Unknown
from fencepost.traces.read import read_trace
from fencepost.traces.replay import replay
from fencepost.traces.report import mining
from fencepost.traces.report.mining import FORMAT, named, refuse_out, write_mining
from fencepost.traces.report.mining_page import _percent, headline, render_mining
from fencepost.traces.report.mining_pytest import pytest_file, slug
from fencepost.traces.report.mining_trace import story_of_group
from junitparser import Error, Failure, JUnitXml

from . import mined
from .test_page import HOSTILE, outline


def page_of(answer: mining.Answer, corpus: str = "CORPUS") -> str:
    return render_mining(answer, corpus, [story_of_group(group) for group in answer.groups])


def test_a_refused_step_is_the_last_moment_of_its_story() -> None:
    story = story_of_group(mined.refused())
    assert story is not None
    last = story.moments[-1]
    assert (last.step, last.action, last.params) == (7, "follower_fetch", {"leader": 0, "follower": 1})
    assert story.verdict == "violated" and story.violated == "epoch_not_fenced"
    breach = last.broken[0]
    assert breach.invariant == "epoch_not_fenced"
    assert set(breach.cells) == {"leader_epoch[0]", "leader_epoch[1]"}
    assert "leader_epoch[1] is 0, leader_epoch[0] is 1" in breach.detail
    # What was seen after the step, and not what the model would have.
    assert (story.moments[-2].state["leo[1]"], last.state["leo[1]"]) == (0, 1)
    assert not any(moment.broken for moment in story.moments[:-1])


def test_another_outcome_shows_the_cells_that_differ() -> None:
    story = story_of_group(mined.other_outcome())
    assert story is not None
    last = story.moments[-1]
    assert last.action == "leader_write" and last.broken[0].cells == ("leo[0]",)
    assert "leo[0] is 1 in the model, 0 in the trace" in last.broken[0].detail
    assert last.state["leo[0]"] == 0


def test_a_bug_without_a_minimal_trace_has_no_story() -> None:
    assert story_of_group(mined.untold()) is None


def test_a_trace_that_breaks_nothing_is_told_to_its_end() -> None:
    """A promise of a variant that keeps it, say: the story is what the replay says, and claims nothing."""
    story = story_of_group(replace(mined.refused(), minimal=mined.trace_of(mined.ZOMBIE[:-1])))
    assert story is not None and story.verdict == "holds" and len(story.moments) == 7


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            mined.answer(),
            (
                "5 bugs in 1,208 of 200,000 traces, held against kip-320. Of 3 more nothing certain is known. "
                "1 file or part could not be read."
            ),
        ),
        (mined.clean(), "No bug in 200,000 traces, held against kip-320."),
        (
            replace(mined.clean(), traces=1, unknown=(Unknown("x", 1, 0),), problems=(Problem("a", "b", "c"),) * 2),
            (
                "No bug in 1 trace, held against kip-320. Of 1 nothing certain is known. "
                "2 files or parts could not be read."
            ),
        ),
    ],
)
def test_the_headline(answer: mining.Answer, said: str) -> None:
    assert headline(answer) == said


def test_shares_never_say_nothing_or_all_where_that_is_not_so() -> None:
    assert [_percent(part, 1000) for part in (0, 1, 123, 999, 1000)] == ["0 %", "0.1 %", "12.3 %", "99.9 %", "100 %"]
    assert _percent(1, 10**9) == "< 0.001 %"
    assert _percent(10**9 - 1, 10**9) == "> 99.9 %"
    assert _percent(0, 0) == ""


def test_the_page_is_one_file_that_loads_nothing_and_names_its_script_and_style() -> None:
    found = outline(page_of(mined.answer()))
    assert not [tag for tag, attributes in found.tags if {"src", "style"} & attributes.keys()]
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]
    links = {attributes["href"] for tag, attributes in found.tags if "href" in attributes}
    assert links == {"#bug-1", "#bug-2", "#bug-3", "report.json", "junit.xml"}
    policy = next(a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none'; ") and "unsafe" not in policy


def test_the_page_says_everything() -> None:
    page = page_of(named(mined.answer()))
    for text in (
        "CORPUS/part-00003.parquet",
        "3 traces, the first of them 99: a budget ran out",
        "2 more bugs left off",
        "1. follower_fetch against epoch_not_fenced",
        "2. leader_write with leo too low",
        "3. breaks strong_isr",
        "no single run of the model leads to it",
        "follower_fetch.epoch_not_fenced dropped",
        "soonest after 2 more steps",
        "fencepost replay bugs/001-follower-fetch-against-epoch-not-fenced.trace.jsonl",
        "5,972 of 5,973",
        "&gt; 99.9 %",
        "about 21.6 %",
        "not counted",
        "can happen: become_follower",
        "and 23 more",
        "the model has more states than that",
        "<code>leader_write.presumes_leadership</code>.",
    ):
        assert text in page, text
    calm = page_of(mined.clean())
    assert 'id="bugs"' not in calm and 'id="problems"' not in calm and "No bug in 200,000 traces" in calm


def test_hostile_strings_stay_text() -> None:
    bad = replace(
        mined.answer(),
        variants=(HOSTILE,),
        problems=(Problem(HOSTILE, HOSTILE, HOSTILE),),
        unknown=(Unknown(HOSTILE, 3, 99),),
        groups=(
            replace(mined.refused(), mutants=(HOSTILE,), note=HOSTILE, then={HOSTILE: (2, 1)}),
            mined.other_outcome(),
            replace(mined.untold(), bug=Bug("fencing", "promise", invariant=HOSTILE), note="x"),
        ),
        coverage=(replace(mined.coverage(), variant=HOSTILE, actions={HOSTILE: 0}, notes=(HOSTILE,)),),
    )
    plain = replace(
        mined.answer(),
        groups=(replace(mined.refused(), note="x"), *mined.answer().groups[1:]),
        coverage=(replace(mined.coverage(), actions={"x": 0}),),
    )
    tags = [[tag for tag, _ in outline(page_of(answer, name)).tags] for answer, name in ((bad, HOSTILE), (plain, "C"))]
    assert tags[0] == tags[1]
    assert "\x00" not in page_of(bad, HOSTILE)


def test_the_folder_has_page_json_junit_and_for_each_bug_a_trace_and_a_test(tmp_path: Path) -> None:
    told = write_mining(tmp_path / "out", mined.answer(), "CORPUS")
    files = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert files == [
        "bugs/001-follower-fetch-against-epoch-not-fenced.trace.jsonl",
        "bugs/002-leader-write-with-leo-too-low.trace.jsonl",
        "bugs/test_001_follower_fetch_against_epoch_not_fenced.py",
        "bugs/test_002_leader_write_with_leo_too_low.py",
        "index.html",
        "junit.xml",
        "report.json",
    ]
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["format"] == FORMAT
    assert {name: report[name] for name in told.to_json()} == json.loads(json.dumps(told.to_json()))
    assert [group.file for group in told.groups] == [files[0], files[1], None]
    assert [group.test for group in told.groups] == [files[2], files[3], None]
    for group in told.groups[:2]:
        assert group.file is not None
        answer = replay(read_trace(tmp_path / "out" / group.file))
        assert answer.verdict.value == "violated" and answer.step == len(group.minimal or ())
    assert refuse_out(tmp_path / "out") is None


def test_the_junit_file_counts_bugs_as_failures_and_what_is_open_as_errors(tmp_path: Path) -> None:
    write_mining(tmp_path / "out", mined.answer(), "CORPUS")
    suite = next(iter(JUnitXml.fromfile(str(tmp_path / "out" / "junit.xml"))))
    assert (suite.tests, suite.failures, suite.errors) == (6, 4, 2)
    kinds = {case.name: type(case.result[0]) for case in suite}
    assert kinds["follower_fetch against epoch_not_fenced"] is Failure
    assert kinds["CORPUS/part-00003.parquet"] is Error and kinds["a budget ran out"] is Error
    write_mining(tmp_path / "out", mined.clean(), "CORPUS")
    suite = next(iter(JUnitXml.fromfile(str(tmp_path / "out" / "junit.xml"))))
    assert (suite.tests, suite.failures, suite.errors) == (1, 0, 0)
    unread = replace(mined.clean(), problems=mined.answer().problems)
    write_mining(tmp_path / "out", unread, "CORPUS")
    suite = next(iter(JUnitXml.fromfile(str(tmp_path / "out" / "junit.xml"))))
    assert (suite.tests, suite.failures, suite.errors) == (2, 0, 2)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious.txt").touch()
    for attempt in (lambda: refuse_out(tmp_path / "out"), lambda: write_mining(tmp_path / "out", mined.clean(), "C")):
        with pytest.raises(BadInput, match="holds something that is not a report"):
            attempt()
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "precious.txt"]


def test_a_full_disk_leaves_the_older_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mining(tmp_path / "out", mined.clean(), "CORPUS")
    before = (tmp_path / "out" / "report.json").read_bytes()

    def full(*_: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(mining, "render_mining", full)
    with pytest.raises(BadInput, match="No space left on device"):
        write_mining(tmp_path / "out", mined.answer(), "CORPUS")
    assert (tmp_path / "out" / "report.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def bug_test(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the test of the first bug as a user does."""
    test = next(folder.rglob("test_001_*.py"))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)],
        env={**os.environ, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_the_test_of_a_bug_fails_until_the_bug_is_mended(tmp_path: Path) -> None:
    """Of a system behind an adapter: the one that comes as a template, without its fencing and with it."""
    folder = tmp_path / "out"
    write_mining(folder, mined.answer(), "CORPUS")
    recorded = bug_test(folder)
    assert recorded.returncode == 1 and "guard epoch_not_fenced wants" in recorded.stdout, recorded.stdout
    system, fence = Path(template.__file__).read_text(), "        self.check_epoch(mine.epoch, theirs.epoch)\n"
    assert system.count(fence) == 1
    (tmp_path / "system.py").write_text(system.replace(fence, ""))
    broken = bug_test(folder, FENCEPOST_IMPL=f"{tmp_path / 'system.py'}:TemplateAdapter")
    assert broken.returncode == 1 and "epoch_not_fenced" in broken.stdout, broken.stdout
    shutil.copy(template.__file__, tmp_path / "system.py")
    mended = bug_test(folder, FENCEPOST_IMPL=f"{tmp_path / 'system.py'}:TemplateAdapter")
    assert mended.returncode == 0, mended.stdout


def test_names_that_a_bug_may_have_make_sound_tests() -> None:
    strange = replace(mined.refused(), bug=Bug("fencing", "promise", invariant='"""\n\\N{x} \' ü'))
    text = pytest_file(strange, 'a"""b\\', "a.jsonl", "test_a.py")
    compile(text, "test_a.py", "exec")
    assert text.isascii()
    assert slug("...") == "bug" and slug("A b/c" + "x" * 99).startswith("a-b-cxx") and len(slug("x" * 99)) == 60
    assert Share(0, 0).fraction is None
