"""Two runs on one page: KIP-630's tombstone argument, from the explorer's own runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fencepost.conformance.check.builtin import plan_tasks
from fencepost.conformance.check.task import carry_out
from fencepost.conformance.harness import plan_of
from fencepost.conformance.protocols.compaction import tombstones
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import Limits, Query, explore
from fencepost.model.explore.goal import run_to
from fencepost.traces.report.beside import render_beside
from fencepost.traces.report.index import write_report
from fencepost.traces.report.obligation import Obligation
from fencepost.traces.run_report import from_json

TASKS = [task for task in plan_tasks(REGISTRY["compaction"]) if task.group.endswith("runs side by side")]


@pytest.fixture(scope="module")
def shown() -> Obligation:
    (found,) = carry_out(TASKS, lambda _: lambda _: None)
    return found


def test_compaction_leaves_other_states_and_snapshots_do_not(shown: Obligation) -> None:
    assert (shown.verdict, shown.expected) == ("holds", "holds") and shown.beside is not None
    compacted, loaded = shown.beside.sides
    assert sorted(compacted.states.values()) == ["A = 1", "nothing: every key is deleted"]
    assert set(loaded.states.values()) == {"nothing: every key is deleted"}
    assert compacted.story.violated == "deleted_stays_deleted" and compacted.story.verdict == "violated"
    assert loaded.story.verdict == "holds" and loaded.story.violated is None
    assert "breaks after 14 steps of slow-readers" in shown.detail and "after 11 steps" in shown.detail


def test_the_slow_replica_has_the_first_record_in_both(shown: Obligation) -> None:
    assert shown.beside is not None
    for side in shown.beside.sides:
        held = {r: [[box.text for box in row.held[r]] for row in side.rows] for r in side.story.replicas}
        (slow,) = (r for r, rows in held.items() if not any("delete A" in texts for texts in rows))
        assert ["A = 1"] in held[slow], "it had the first record, and never the delete"


def test_the_page_is_in_the_report_with_both_runs_to_step_through(shown: Obligation, tmp_path: Path) -> None:
    index = write_report(tmp_path / "report", [shown]).read_text(encoding="utf-8")
    (entry,) = json.loads((tmp_path / "report" / "report.json").read_text())["obligations"]
    assert f'<a href="{entry["story"]}">side by side</a>' in index
    page = (tmp_path / "report" / entry["story"]).read_text(encoding="utf-8")
    assert "states differ" in page and "states agree" in page and "<script" not in page
    assert "it is possible for slow replicas to miss the tombstone records" in page
    stem = entry["story"].removesuffix(".html")
    for number, expected in ((1, "compaction"), (2, "snapshots")):
        assert f"{Path(stem).name}-{number}.html" in page
        story = from_json((tmp_path / "report" / f"{stem}-{number}.json").read_text())
        assert story.protocol == expected


def test_a_page_escapes_what_it_is_given(shown: Obligation) -> None:
    assert shown.beside is not None
    bad = type(shown.beside)("<b>x</b>", "&", "\x1b[31m", shown.beside.sides, "<script>")
    page = render_beside(bad)
    assert "<b>x</b>" not in page and "<script>" not in page and "\x1b" not in page


def test_where_the_argument_does_not_hold_the_obligation_is_not_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """The safe variant in place of the one in which a tombstone goes too early."""
    monkeypatch.setattr(tombstones, "_VARIANT", "kip-280-safe")
    monkeypatch.setattr(tombstones, "_AT", "1/3/2/1/0/0/0/0/0/0")
    found = tombstones.side_by_side()
    assert found.verdict.value == "violated" and found.page is None and "kip-280-safe holds" in found.detail


def test_a_run_to_a_goal_is_a_shortest_one() -> None:
    protocol = REGISTRY["fencing"].protocol
    variant = next(iter(plan_of(protocol).breaks))
    system = ground(protocol.traced(variant), {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2})
    found = explore(Query.of(system), "reference")
    assert found.path is not None
    last = found.path[-1].state
    path = run_to(system, lambda state: state == last)
    assert path is not None and len(path) == len(found.path) and path[-1].state == last
    assert run_to(system, lambda state: state == last, path[-2].state) == path[-1:]
    assert run_to(system, lambda _: False, last) is None
    with pytest.raises(ValueError, match="more than 10 states"):
        run_to(system, lambda _: False, limits=Limits(max_states=10))
