"""Prove, replay, check and mutants: JUnit, annotations, tables on narrow terminals, options that change nothing."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from fencepost.conformance.check.groups import all_groups
from fencepost.conformance.check.search import SearchLimits
from fencepost.conformance.check.task import Outcome as Found
from fencepost.conformance.check.task import Task, obligation_of
from fencepost.conformance.cli.check import _annotate as annotate_check
from fencepost.conformance.cli.check import _corpus_tasks
from fencepost.conformance.cli.output import table
from fencepost.conformance.mutants.matrix import Cell, Kind, Matrix, Outcome, Row
from fencepost.conformance.mutants.table import print_matrix
from fencepost.traces.report.obligation import Obligation
from fencepost.traces.report.table import closing_table
from fencepost.traces.report.terminal import Terminal
from junitparser import Error, Failure, JUnitXml

from .conftest import Fencepost

PROVE = ("prove", "fencing", "--action", "leader_inc_high_watermark", "--conjunct", "weak_isr")
SELECTED = ("--drop", "leader_inc_high_watermark.isr_acknowledges")


def annotations(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("::")]


def test_prove_has_a_test_case_for_each_obligation(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    said = fencepost(*PROVE, "--junitxml", "junit.xml")
    assert said.code == 0 and not annotations(said.err)
    (suite,) = JUnitXml.fromfile("junit.xml")
    assert "leader_inc_high_watermark.weak_isr" in [case.name for case in suite]
    assert not any(case.result for case in suite)
    said = fencepost(*PROVE, *SELECTED, "--junitxml", "junit.xml", "--json")
    assert said.code == 1 and said.json["verdict"] == "violated"
    (suite,) = JUnitXml.fromfile("junit.xml")
    (failure,) = next(case for case in suite if case.name == "leader_inc_high_watermark.weak_isr").result
    assert isinstance(failure, Failure) and "breaks weak_isr" in failure.message and "  state   " in failure.text
    (line,) = annotations(said.err)
    assert (
        line.startswith("::error file=")
        and "promises.py,line=" in line
        and "leader_inc_high_watermark.weak_isr" in line
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--conjunct", "weak_isr"), "weak_isr is named twice"),
        (("--action", "initial"), "initial is named twice"),
    ],
)
def test_prove_refuses_what_is_named_twice(fencepost: Fencepost, options: tuple[str, str], told: str) -> None:
    assert told in fencepost("prove", "fencing", *options, *options).complaint


def test_replay_annotates_the_promise_and_refuses_a_trace_without_events(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert fencepost("explore", "fencing", "--variant", "truncate-to-hw", "--trace-out", "run.jsonl").code == 1
    broken = fencepost("replay", "run.jsonl")
    (line,) = annotations(broken.err)
    assert broken.code == 1 and "promises.py,line=" in line and "run.jsonl is no run of fencing truncate-to-hw" in line
    refused = fencepost("replay", "run.jsonl", "--variant", "kip-320")
    (line,) = annotations(refused.err)
    assert refused.code == 1 and "actions.py,line=" in line
    Path("empty.jsonl").write_text(Path("run.jsonl").read_text().splitlines()[0] + "\n")
    said = fencepost("replay", "empty.jsonl")
    assert "empty.jsonl: it has no events, so nothing would be checked" in said.complaint
    assert "is named twice" in fencepost("replay", "run.jsonl", "--invariant", "x", "--invariant", "x").complaint


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--impl", "--max-states", 5), "--max-states: no state is explored for the defects"),
        (("--model", "--seed", 5), "--seed: no run in lockstep is drawn"),
        (("--only", "follower_fetch.", "--only", "follower_fetch."), "--only: follower_fetch. is named twice"),
        (("--only", "nothing"), "no mutant is named 'nothing'"),
    ],
)
def test_mutants_refuses_what_would_change_nothing(
    fencepost: Fencepost, options: tuple[object, ...], told: str
) -> None:
    assert told in fencepost("mutants", "--protocol", "fencing", *options).complaint


def test_check_annotates_what_is_not_met(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    annotate_check(
        [
            Obligation("a", "g", "holds", "holds", "", 1, "states", 0.0),
            Obligation("twin", "g", "violated", "violated", "", 1, "states", 0.0),
            Obligation("b", "g", "violated", "holds", "why", 1, "states", 0.0),
            Obligation("c", "g", "unknown", "holds", "spent", 1, "states", 0.0),
        ]
    )
    assert capsys.readouterr().err.splitlines() == [
        "::error title=g%3A b%3A violated::why",
        "::warning title=g%3A c%3A unknown::spent",
    ]


NAME = "leader_expand_isr.hw_reached_epoch bound 12 +1"
ARGUMENT = "a follower one epoch behind is fenced by the guard before it in every state that the model can reach"


def printed(width: int | None) -> str:
    cells = {
        "explorer": Cell(Outcome.SURVIVED, seconds=1.5),
        "proof": Cell(Outcome.LOST),
        "replay": Cell(Outcome.KILLED, ARGUMENT, 14),
    }
    rows = [Row(NAME, Kind.MODEL, "fencing kip-320", cells)]
    out = io.StringIO()
    print_matrix(Matrix.of(rows, []), Terminal(out, width=width, plain=True))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_mutants_keep_every_column_at_any_width(width: int) -> None:
    text = printed(width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    for words in ("explorer", "proof", "replay", "survived", "lost", "killed 14", "failed"):
        assert words in text, words
    assert "\u2026" not in text
    squeezed = "".join(text.split())
    assert "leader_expand_isr" in squeezed
    assert ("1.50" in text) is (width >= 120) and ("seconds are left out" in text) is (width < 120)


def test_mutants_without_a_terminal_are_one_line_each() -> None:
    (line,) = [line for line in printed(None).splitlines() if NAME in line and "lost" in line]
    assert "survived" in line and "killed 14" in line and "1.50" in line


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_table_folds_and_loses_nothing(width: int) -> None:
    made = table("action", "proved", right=(1,))
    made.add_row("controller_elect_leader_of_the_partition", "1,234,567")
    out = io.StringIO()
    Terminal(out, width=width, plain=True).print(made)
    lines = out.getvalue().splitlines()
    assert all(len(line.rstrip()) <= width for line in lines) and "\u2026" not in out.getvalue()
    letters = sorted("actionprovedcontroller_elect_leader_of_the_partition1,234,567")
    assert sorted("".join(out.getvalue().split())) == letters


def checked(*tasks: Task) -> list[Obligation]:
    """As if each had come out as it should, after as many states as one of the larger searches visits."""
    return [obligation_of(task, Found(task.expected, "", 737_794, "states"), 12.34) for task in tasks]


def columns(results: list[Obligation], width: int) -> list[str]:
    """The lines of the check's closing table."""
    out = io.StringIO()
    Terminal(out, width=width, plain=True).print(closing_table(results))
    return out.getvalue().splitlines()


def test_no_name_in_the_checks_table_is_broken_at_eighty_columns() -> None:
    """Of all models and what is bundled. A name goes on in the next line behind a space or a dot, or not at all."""
    tasks = [task for group in all_groups() for task in group.tasks()]
    results = checked(*tasks, *_corpus_tasks(None, SearchLimits()))
    assert len(results) > 180
    lines = columns(results, 80)
    assert max(map(len, lines)) <= 80 and "\u2026" not in "".join(lines)
    words = {word for line in lines for word in line.split()}
    parts = {part for each in results for part in re.findall(r"[^\s.]+\.?", f"{each.group} {each.name}")}
    broken = {part for part in parts if not any(part in word for word in words)}
    assert broken == set()


def test_an_unproved_obligation_is_an_error_in_junit(tmp_path: Path) -> None:
    from fencepost.traces.report.junit import write_junit

    path = tmp_path / "junit.xml"
    write_junit(path, [Obligation("a", "g", "unknown", "holds", "spent\x1b", 1, "obligation", 0.0, None, "b\x07")], "x")
    ((case,),) = JUnitXml.fromfile(str(path))
    assert isinstance(case.result[0], Error) and case.result[0].message == r"unknown: spent\x1b"
    assert case.result[0].text == r"b\x07"
