"""``fencepost explore``: options that would change nothing, budgets that are spent at once, JUnit and annotations."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.conformance.cli.annotations import annotate
from junitparser import Error, Failure, JUnitXml

from .conftest import Fencepost

TINY = ("--replicas", 2, "--log-size", 1, "--max-records", 1, "--max-leader-epoch", 1)
BROKEN = ("fencing", "--variant", "truncate-to-hw", "--replicas", 2)

IDLE = [
    (("snapshots", "--liveness"), "--liveness: snapshots states no liveness property"),
    (("fencing", *TINY, "--fairness", "kip"), "--fairness: fairness is assumed for liveness alone"),
    (("fencing", *TINY, "--fairness", "bogus"), "--fairness: fairness is assumed for liveness alone"),
    (("fencing", *TINY, "--liveness", "--fairness", "bogus"), "no set of fairness conditions 'bogus'"),
    ((*BROKEN, "--liveness", "--fairness", "bogus"), "no set of fairness conditions 'bogus'"),
    (("fencing", *TINY, "--max-effort", 5), "--max-effort: the batch engine does not ask z3"),
    (("fencing", *TINY, "--engine", "reference", "--max-effort", 5), "--max-effort: the reference engine does not"),
    (("fencing", *TINY, "--engine", "symbolic", "--graph", "x.dot"), "--graph: the symbolic engine visits no states"),
    (("fencing", *TINY, "--engine", "symbolic", "--symmetry"), "--symmetry: the symbolic engine visits no states"),
    (("fencing", *TINY, "--engine", "symbolic", "--max-states", 9), "--max-states: the symbolic engine visits no"),
    (("fencing", *TINY, "--invariant", "weak_isr", "--invariant", "weak_isr"), "--invariant: weak_isr is named twice"),
    (("fencing", *TINY, "--html", "a", "--trace-out", "a"), "is the file of --trace-out too"),
]


@pytest.mark.parametrize(("options", "told"), IDLE, ids=[" ".join(map(str, options)) for options, _ in IDLE])
def test_an_option_that_would_change_nothing_is_refused(
    fencepost: Fencepost, options: tuple[object, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in fencepost("explore", *options).complaint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("budget", [(), ("--max-states", 1000)])
def test_constants_that_no_machine_takes_in_are_unknown_at_once(fencepost: Fencepost, budget: tuple[object]) -> None:
    said = fencepost("explore", "fencing", "--replicas", 20, *budget, "--json")
    assert said.code == 3 and said.json["verdict"] == "unknown" and said.json["distinct"] == 0
    assert "2,540 instances of actions over 191 cells" in said.json["reason"] and "(--max-terms)" in said.json["reason"]
    assert said.json["constants"]["replicas"] == 20
    text = fencepost("explore", "fencing", "--replicas", 20, *budget)
    assert text.code == 3 and "max_leader_epoch 2): unknown" in text.out and "(--max-terms)" in text.out


def test_the_budget_of_terms_is_an_option(fencepost: Fencepost) -> None:
    assert fencepost("explore", "fencing", *TINY, "--max-terms", 100).code == 3
    assert fencepost("explore", "fencing", *TINY, "--max-terms", 1_000_000).code == 0


def test_memory_is_asked_for_before_the_first_state(fencepost: Fencepost) -> None:
    said = fencepost("explore", "fencing", *TINY, "--max-memory", 8, "--json")
    assert said.code == 3 and said.json["distinct"] == 0 and "(--max-memory)" in said.json["reason"]


def test_junit_has_a_case_for_each_property_and_the_story_of_the_failure(fencepost: Fencepost, tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    assert fencepost("explore", *BROKEN, "--junitxml", path).code == 1
    (suite,) = JUnitXml.fromfile(str(path))
    cases = {case.name: case for case in suite}
    (failure,) = cases["weak_isr"].result
    assert isinstance(failure, Failure) and failure.message == "violated: breaks after 8 steps"
    assert "  8  become_follower(leader=0, follower=1, epoch=1)" in failure.text
    # What was not decided is no success.
    assert isinstance(cases["type_ok"].result[0], Error)
    assert suite.name == "fencing truncate-to-hw"


def test_junit_of_what_holds_has_no_failure(fencepost: Fencepost, tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    assert fencepost("explore", "fencing", *TINY, "--liveness", "--fairness", "kip", "--junitxml", path).code in (0, 1)
    (suite,) = JUnitXml.fromfile(str(path))
    names = [case.name for case in suite]
    assert {"type_ok", "weak_isr", "strong_isr", "record_committed"} <= set(names)
    assert any(name.endswith(" under kip") for name in names)
    assert not any(case.result for case in suite if " under " not in case.name)
    assert fencepost("explore", "fencing", "--replicas", 20, "--junitxml", path).code == 3
    (suite,) = JUnitXml.fromfile(str(path))
    assert all(isinstance(case.result[0], Error) for case in suite) and suite.tests == 3


def test_a_failure_is_annotated_where_the_promise_is_written(
    fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "::" not in fencepost("explore", *BROKEN).err
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    said = fencepost("explore", *BROKEN, "--json")
    assert said.code == 1 and said.json["violated"] == "weak_isr"
    (line,) = said.err.splitlines()
    assert line.startswith("::error file=") and "title=fencing truncate-to-hw%3A weak_isr is violated::" in line
    properties = dict(each.split("=", 1) for each in line.split("::")[1].removeprefix("error ").split(","))
    text = Path(properties["file"]).read_text().splitlines()[int(properties["line"]) - 1 :]
    assert any("def weak_isr" in each for each in text[:3])
    assert fencepost("explore", "fencing", *TINY).err == ""
    assert fencepost("explore", "fencing", "--replicas", 20).err.startswith(
        "::warning title=fencing kip-320%3A unknown"
    )


def test_annotations_are_escaped_as_github_wants(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    annotate("a: b, 100%\r", "x::y, 5%\n\rz")
    assert capsys.readouterr().err == "::error title=a%3A b%2C 100%25%0D::x::y, 5%25%0A%0Dz\n"


def test_all_reports_every_violated_invariant(fencepost: Fencepost, tmp_path: Path) -> None:
    run = ("explore", "fencing", "--variant", "truncate-to-hw", "--replicas", 2, "--all")
    files = ("--html", tmp_path / "why.html", "--trace-out", tmp_path / "run.jsonl", "--junitxml", tmp_path / "j.xml")
    said = fencepost(*run, *files, "--json")
    assert said.code == 1 and said.json["violated"] == "weak_isr" and said.json["undecided"] == []
    assert [(each["invariant"], len(each["trace"])) for each in said.json["violations"]] == [
        ("weak_isr", 8),
        ("strong_isr", 9),
    ]
    for name, length in (("weak_isr", 8), ("strong_isr", 9)):
        assert f"{name} breaks after {length} steps" in (tmp_path / f"why-{name}.html").read_text()
        replayed = fencepost("replay", tmp_path / f"run-{name}.jsonl", "--variant", "truncate-to-hw", "--json")
        assert replayed.code == 1, replayed
    (suite,) = JUnitXml.fromfile(tmp_path / "j.xml")
    verdicts = {case.name: [type(each).__name__ for each in case.result] for case in suite}
    assert verdicts["weak_isr"] == verdicts["strong_isr"] == ["Failure"] and verdicts["leader_in_isr"] == []
    text = fencepost(*run).out
    assert "weak_isr: violated, the shortest counterexample has 8 steps" in text
    assert "BROKEN: weak_isr at step 8" in text and "BROKEN: strong_isr at step 9" in text


def test_all_of_a_safe_variant_holds(fencepost: Fencepost) -> None:
    said = fencepost("explore", "fencing", "--replicas", 2, "--log-size", 1, "--all", "--json")
    assert said.code == 0 and said.json["violations"] == [] and said.json["verdict"] == "holds"


def test_all_is_refused_for_states_on_disk(fencepost: Fencepost, tmp_path: Path) -> None:
    said = fencepost("explore", "fencing", "--all", "--dir", tmp_path / "states")
    assert said.complaint.startswith("--dir: the search in files ends at the first violated invariant")
