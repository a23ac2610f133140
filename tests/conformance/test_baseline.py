"""``benchmarks/baseline``: planted differences between two records are reported, and equal records pass."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
KILLED = {"found": True, "by": {"free": "killed"}, "steps": {"free": 9}, "detail": {"free": "a lost record is read"}}
REACH = {
    "exit_code": 0,
    "actions": {"leader_write": 40, "restart": 7},
    "kinds": {"crash": 9},
    "guards_never_met": ["leader_write.log_not_full"],
    "lines": 100,
    "executed": 80,
}
PARTS: dict[str, dict[str, Any]] = {
    "counts": {"explore/fencing/kip-320": {"states": 277, "depth": 12, "violated": None}},
    "invocations": {"explore-violated": {"exit_code": 1, "output": {"trace": [1, 2], "reason": "all was well"}}},
    "kills": {
        "planned/fencing/zombie": KILLED,
        "model/fencing/leader_write": {"leader_write.record_available dropped": KILLED},
        **{f"generated/{seed}": [{"fate": "killed", "killer": "conform"}] * 5 for seed in range(4)},
    },
    "simulation": {
        "reach/fencing/20": REACH,
        **{f"detection/fencing/zombie/{seed}": {"events": 100 + seed, "check": "cells"} for seed in range(10)},
    },
}


@pytest.fixture
def baseline(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The package ``baseline``, which no installation has."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import baseline  # type: ignore[import-not-found]
    import baseline.__main__

    yield baseline
    for name in [name for name in sys.modules if name.partition(".")[0] == "baseline"]:
        del sys.modules[name]


def differences(baseline: Any, part: str, key: str, value: Any) -> list[str]:
    """Output of ``compare`` after one item of the record changed to ``value``, or is missing (None)."""
    new = copy.deepcopy(PARTS)
    if value is None:
        del new[part][key]
    else:
        new[part][key] = value
    return [str(each) for each in baseline.compare.compare(PARTS, new)]


def test_equal_records_pass(baseline: Any) -> None:
    assert baseline.compare.compare(PARTS, copy.deepcopy(PARTS)) == []


@pytest.mark.parametrize(
    ("part", "key", "value", "shown"),
    [
        (
            "counts",
            "explore/fencing/kip-320",
            {"states": 278, "depth": 12, "violated": None},
            "counts explore/fencing/kip-320 .states: 277 became 278",
        ),
        ("counts", "explore/fencing/kip-320", None, "counts explore/fencing/kip-320"),
        ("counts", "explore/fencing/kip-101", {"states": 1}, "counts explore/fencing/kip-101: '(absent)' became"),
        (
            "invocations",
            "explore-violated",
            {"exit_code": 1, "output": {"trace": [1], "reason": "all was well"}},
            "invocations explore-violated .output.trace: [1, 2] became [1]",
        ),
        (
            "invocations",
            "explore-violated",
            {"exit_code": True, "output": {"trace": [1, 2], "reason": "all was well"}},
            "invocations explore-violated .exit_code: 1 became True",
        ),
        (
            "kills",
            "planned/fencing/zombie",
            KILLED | {"by": {"free": "survived"}},
            "kills planned/fencing/zombie .by.free: 'killed' became 'survived'",
        ),
        (
            "kills",
            "model/fencing/leader_write",
            {"leader_write.record_available dropped": KILLED | {"steps": {"free": 10}}},
            "kills model/fencing/leader_write .leader_write.record_available dropped.steps.free: 9 became 10",
        ),
        (
            "kills",
            "generated/0",
            [{"fate": "missed"}] * 5,
            "kills generated share killed: '1.000' became '0.750'",
        ),
        (
            "simulation",
            "reach/fencing/20",
            REACH | {"actions": {"leader_write": 90}},
            "simulation reach/fencing/20 actions: restart: 7 became 0",
        ),
        (
            "simulation",
            "reach/fencing/20",
            REACH | {"guards_never_met": ["restart.something_lost"]},
            "simulation reach/fencing/20 guard restart.something_lost: 'refused' became 'never refused'",
        ),
        (
            "simulation",
            "reach/fencing/20",
            REACH | {"executed": 60},
            "simulation reach/fencing/20 share of lines executed: '0.800' became '0.600'",
        ),
        ("simulation", "reach/fencing/20", None, "simulation reach/fencing/20: True became False"),
    ],
)
def test_compare_reports_planted_difference(baseline: Any, part: str, key: str, value: Any, shown: str) -> None:
    found = differences(baseline, part, key, value)
    assert len(found) == 1 and found[0].startswith(shown)


def test_compare_reports_missing_part(baseline: Any) -> None:
    rest = {part: items for part, items in PARTS.items() if part != "kills"}
    assert [str(each) for each in baseline.compare.compare(PARTS, rest)] == ["kills: True became False"]


def test_compare_ignores_length_of_random_run(baseline: Any) -> None:
    assert differences(baseline, "kills", "planned/fencing/zombie", KILLED | {"steps": {"free": 44}}) == []


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (lambda _: {"events": None, "check": None}, "share of seeds that find it: '1.000' became '0.000'"),
        (lambda old: old | {"events": 3 * old["events"]}, "median of events: 104.5 became 313.5"),
        (lambda old: old | {"check": "raised"}, "found by cells: 10 became 0"),
        (lambda old: old | {"events": old["events"] + 50}, None),
    ],
)
def test_compare_reports_slower_detection(baseline: Any, change: Any, shown: str | None) -> None:
    new = copy.deepcopy(PARTS)
    for key, old in PARTS["simulation"].items():
        if key.startswith("detection/"):
            new["simulation"][key] = change(old)
    found = [str(each) for each in baseline.compare.compare(PARTS, new)]
    if shown is None:
        assert found == []
    else:
        assert found[0] == f"simulation detection/fencing/zombie {shown}"


def write(path: Path, parts: dict[str, dict[str, Any]]) -> Path:
    rows = [{"part": part, "key": key, "value": value} for part, items in parts.items() for key, value in items.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_compare_exits_by_difference(baseline: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compare_files = baseline.__main__.compare_files
    old = write(tmp_path / "old", PARTS)
    with pytest.raises(SystemExit) as equal:
        compare_files(old, old)
    assert equal.value.code == 0 and capsys.readouterr().out == "0 differences\n"
    changed = copy.deepcopy(PARTS)
    changed["invocations"]["explore-violated"]["output"]["reason"] = "every invariant holds"
    new = write(tmp_path / "new", changed)
    with pytest.raises(SystemExit) as prose:
        compare_files(old, new, ignore_prose=True)
    assert prose.value.code == 0 and "0 differences, and 1 of prose" in capsys.readouterr().out
    with pytest.raises(SystemExit) as differs:
        compare_files(old, new)
    assert differs.value.code == 1 and "'all was well' became" in capsys.readouterr().out


def test_record_resumes_and_shards(baseline: Any, tmp_path: Path) -> None:
    runs: list[int] = []
    items = [baseline.item.Item("part", str(n), lambda n=n: runs.append(n) or n) for n in range(7)]
    path = tmp_path / "record"
    record = baseline.recorder.record
    assert [record(items, path, (number, 2)) for number in (1, 2)] == [4, 3]
    assert runs == [0, 2, 4, 6, 1, 3, 5] and record(items, path) == 0
    assert baseline.record.Record(path).parts == {"part": {str(n): n for n in range(7)}}
    # A recorder that was killed has left half a line.
    path.write_bytes(path.read_bytes()[:-5])
    assert record(items, path) == 1 and runs[-1] == 5
    assert record(items, tmp_path / "sample", sample=3) == 3 and runs[-3:] == [0, 2, 4]


def test_normalise_removes_measured_values_only(baseline: Any, tmp_path: Path) -> None:
    value = {
        "seconds": 1.5,
        "memory_bytes": 9,
        "states_per_second": 4,
        "metadata_version": "4.0",
        "at": f"{tmp_path}/why.html after 1.25 s",
        "retention": "100 ms",
    }
    assert baseline.normalise.normalise([value], [(tmp_path, "{scratch}")]) == [
        {"metadata_version": "4.0", "at": "{scratch}/why.html after <measured>", "retention": "100 ms"}
    ]


def test_counts_are_compared_with_pinned_ones(baseline: Any) -> None:
    constants = {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}
    query = {"protocol": "fencing", "variant": "kip-320", "constants": constants, "invariants": ["type_ok"]}
    found = baseline.counts.explore(query | {"pinned": {"states": 277, "depth": 12}})
    assert (found["verdict"], found["states"], found["is_pinned"]) == ("holds", 277, True)
    assert not baseline.counts.explore(query | {"pinned": {"states": 278}})["is_pinned"]


def test_invocation_reports_bad_input_and_files(baseline: Any, tmp_path: Path) -> None:
    invocation = baseline.invocation.Invocation
    bad = invocation("bad", ["explore", "fensing"]).measure(tmp_path)
    assert bad["exit_code"] == 2 and len(bad["errors"]) == 1 and "fensing" in bad["errors"][0]
    new = invocation("new", ["new", "two_phase"], json=False).measure(tmp_path)
    assert new["exit_code"] == 0 and "two_phase/two_phase.py" in new["written"]


def test_defects_in_kafkas_classes_are_listed(baseline: Any) -> None:
    from .kafka_planted import SOURCES, planted

    listed = [(plan.driver, defect) for plan in baseline.kafka_plan.read_plans() for defect in plan.defects]
    assert sorted(listed) == sorted((driver, defect) for driver in SOURCES for defect in planted(driver))
    assert len(listed) == 52
