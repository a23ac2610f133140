"""JUnit XML, as CI servers read it: a suite for each group, a case for each obligation, a failure with its story."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, SystemOut, TestCase, TestSuite

from ..text import printable, printable_lines
from ..write import write_whole
from .obligation import Note, Obligation, grouped
from .text import render_text


def junit_of(results: Sequence[Obligation], name: str = "fencepost", notes: Sequence[Note] = ()) -> JUnitXml:
    """A wrong verdict is a failure, a spent budget an error; either has the story as its text, where there is one.

    ``notes`` are the output of the last suite.
    """
    xml = JUnitXml(name)
    suite = None
    for group, members in grouped(results).items():
        suite = TestSuite(printable(group))
        for each in members:
            case = TestCase(printable(each.name), classname=f"fencepost.{printable(group)}", time=each.seconds)
            if each.open:
                case.result = [Skipped(printable(each.detail or each.outcome))]
            elif not each.met:
                said = f"{each.outcome}: {each.detail}" if each.detail else each.outcome
                kind = Error if each.verdict == "unknown" else Failure
                result = kind(printable(said), each.verdict)
                text = each.text if each.story is None else render_text(each.story)
                if text:
                    result.text = printable_lines(text)
                case.result = [result]
            case.system_out = f"{each.outcome}; {each.count} {printable(each.unit)}"
            suite.add_testcase(case)
        xml.add_testsuite(suite)
    if notes and suite is not None:
        lines = "\n".join(f"{note.kind}: {printable(note.text)}" for note in notes)
        suite.append(SystemOut(lines))  # type: ignore[no-untyped-call]
    return xml


def write_junit(path: Path, results: Sequence[Obligation], name: str) -> None:
    """Write the file whole or not at all. Raises BadInput where it cannot."""
    write_whole(path, lambda part: junit_of(results, name).write(str(part), pretty=True))
