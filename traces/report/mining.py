"""The folder of one mining run: ``index.html``, ``report.json``, ``junit.xml``, and a trace and a test for each bug.

It appears under its name only when it is whole (``folder.py``). But for what is timed, nothing in it depends on the
machine or the hour.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from ...model.explore.result import Verdict
from ..mine.answer import Answer, Group
from ..run_report import Json, Story
from ..text import printable
from ..write import write_trace
from .folder import REPORT, new_folder, refuse_other_contents
from .mining_page import headline, render_mining
from .mining_pytest import pytest_file, slug
from .mining_trace import story_of_group

FORMAT: Final = "fencepost-mining"
VERSION: Final = 1
BUGS: Final = "bugs"
"""The folder of the traces and tests."""


def refuse_out(folder: Path) -> None:
    """Raise BadInput before a run whose folder holds something else, or is a file."""
    refuse_other_contents(folder.absolute(), FORMAT)


def named(answer: Answer) -> Answer:
    """The answer with the names that the files of its groups have in the folder, relative to it."""
    groups = []
    for number, group in enumerate(answer.groups, 1):
        if group.minimal is None:
            groups.append(replace(group, file=None, test=None))
            continue
        name = f"{number:03d}-{slug(str(group.bug))}"
        test = f"{BUGS}/test_{name.replace('-', '_')}.py"
        groups.append(replace(group, file=f"{BUGS}/{name}.trace.jsonl", test=test))
    return replace(answer, groups=tuple(groups))


def write_mining(folder: Path, answer: Answer, corpus: str) -> Answer:
    """Write the folder; returns the answer with the names of the files (see `named`). An older one is replaced.

    ``corpus``: what was mined, as the reader knows it. Raises BadInput as `new_folder` does.
    """
    told = named(answer)
    stories = [story_of_group(group) for group in told.groups]
    with new_folder(folder, FORMAT) as building:
        (building / BUGS).mkdir()
        for group in told.groups:
            _write_bug(building, group, corpus)
        (building / REPORT).write_text(
            json.dumps(mining_json(told), indent=1, allow_nan=False) + "\n", encoding="ascii"
        )
        (building / "index.html").write_text(render_mining(told, corpus, stories), encoding="utf-8")
        mining_junit(told, corpus, stories).write(str(building / "junit.xml"), pretty=True)
    return told


def _write_bug(building: Path, group: Group, corpus: str) -> None:
    if group.minimal is None or group.file is None or group.test is None:
        return
    trace, test = building / group.file, building / group.test
    write_trace(trace, group.minimal)
    test.write_text(pytest_file(group, corpus, trace.name, test.name), encoding="ascii")


def mining_json(answer: Answer) -> dict[str, Json]:
    """The answer as ``report.json`` has it: what ``--json`` prints, and which format it is."""
    return {"format": FORMAT, "version": VERSION, **answer.to_json()}


def mining_junit(answer: Answer, corpus: str, stories: Sequence[Story | None]) -> JUnitXml:
    """One suite: a case for all traces, a failed one for each bug, an error for what was not read or not decided."""
    xml = JUnitXml("fencepost mine")
    suite = TestSuite(printable(f"{corpus} against {' and '.join(answer.variants)}"))
    classname = "fencepost.mine"
    whole = TestCase("every trace is a run that keeps the promises", classname=classname, time=answer.seconds)
    if answer.verdict is not Verdict.HOLDS:
        kind = Failure if answer.verdict is Verdict.VIOLATED else Error
        whole.result = [kind(headline(answer), answer.verdict.value)]
    whole.system_out = f"{answer.traces} traces, {answer.events} events"
    suite.add_testcase(whole)
    for group, story in zip(answer.groups, stories, strict=True):
        case = TestCase(printable(str(group.bug)), classname=f"{classname}.bugs")
        said = f"{group.count} traces, the first of them {group.first}"
        case.result = [Failure(said if story is None else f"{said}. {printable(story.headline)}", group.bug.kind)]
        if group.file is not None:
            case.system_out = f"fencepost replay {group.file}"
        suite.add_testcase(case)
    for problem in answer.problems:
        suite.add_testcase(_error(printable(problem.where), f"{problem.what}; {problem.mend}", f"{classname}.read"))
    for each in answer.unknown:
        suite.add_testcase(
            _error(
                printable(each.reason), f"{each.count} traces, the first of them {each.first}", f"{classname}.decided"
            )
        )
    xml.add_testsuite(suite)
    return xml


def _error(name: str, said: str, classname: str) -> TestCase:
    case = TestCase(name, classname=classname)
    case.result = [Error(printable(said), "unknown")]
    return case
