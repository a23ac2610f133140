"""A story in the terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.traces.report.lanes import Record, ReplicaLane, replica_lane
from fencepost.traces.report.text import log_strip, print_story, render_text
from fencepost.traces.run_report import Breach, Call, Moment, Story
from rich.console import Console


def test_the_whole_text(lost_record: Story, data: Path) -> None:
    """The one snapshot of a whole output: it is what a person reads, and it is to stay the same on every machine."""
    assert render_text(lost_record) == (data / "truncate_to_hw.txt").read_text(encoding="utf-8")


def test_eighty_columns_and_no_escapes(lost_record: Story, lasso: Story) -> None:
    for told in (lost_record, lasso):
        for text in (render_text(told), render_text(told, enabled=True)):
            assert max(map(len, text.splitlines())) <= 80
            assert "\x1b" not in text
            assert text.isascii()


@pytest.mark.parametrize("name", ["NO_COLOR", None])
def test_colour_is_for_terminals_that_want_it(
    lost_record: Story, monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    if name:
        monkeypatch.setenv(name, "1")
    out = io.StringIO()
    print_story(lost_record, Console(file=out, force_terminal=True, width=80, color_system="auto"))
    coloured = "\x1b[36m" in out.getvalue() or "\x1b[1;31m" in out.getvalue()
    assert coloured == (name is None)


def test_the_end_says_the_promise_what_happened_and_where_to_look(lost_record: Story) -> None:
    end = " ".join(render_text(lost_record).split("BROKEN: ")[1].split())
    assert end.startswith("strong_isr at step 12 the promise: whatever a presumed leader counts as committed")
    assert "what happened: leader 0 has high watermark 1, but replica 2 lacks its record at offset 0" in end
    assert "also broken there: weak_isr" in end
    assert "hw[0] = 1, leo[2] = 0" in end


def test_a_lasso_says_where_it_goes_back_to(lasso: Story) -> None:
    text = render_text(lasso)
    assert text.index("  5  leader_write") < text.index("repeat for ever") < text.index("  6  leader_shrink_isr")
    assert "Step 7 leads back to the state of step 5; steps 6 to 7 repeat for ever." in text
    stays = replace(lasso, moments=lasso.moments[:6], loop_start=5)
    assert "After step 5 nothing more has to happen" in render_text(stays)


def test_a_run_that_holds_says_so(lost_record: Story) -> None:
    told = replace(lost_record, verdict="holds", violated=None, moments=lost_record.moments[:9])
    assert render_text(told).endswith("Every promise held in every state of this run.\n")
    assert "BROKEN" not in render_text(told)


def test_what_else_was_enabled_is_told_on_request(lost_record: Story) -> None:
    assert "enabled:" not in render_text(lost_record)
    assert "enabled: controller_elect_leader(new_leader=0);" in render_text(lost_record, enabled=True)


@pytest.mark.parametrize(
    ("mark", "strip"),
    [
        (0, "1: [|0@e0 1@e1]"),
        (1, "1: [0@e0|1@e1]"),
        (2, "1: [0@e0 1@e1|]"),
        (3, "1: [0@e0 1@e1|] high watermark 3 is outside"),
        (None, "1: [0@e0 1@e1]"),
    ],
)
def test_the_high_watermark_in_a_strip(lost_record: Story, mark: int | None, strip: str) -> None:
    lane = replica_lane(lost_record, lost_record.moments[-1], 1)
    assert log_strip(replace(lane, high_watermark=mark)).plain == strip


def test_strips_of_other_logs(lost_record: Story) -> None:
    lane = replica_lane(lost_record, lost_record.moments[-1], 1)
    cut = replace(lane, start=1, records=lane.records[1:], high_watermark=1)
    assert log_strip(cut).plain == "1: from 1 [|1@e1]"
    none = ReplicaLane(0, "", False, None, 0, None, None, (), ())
    assert log_strip(none).plain == "0: no log"


def test_a_long_log_is_drawn_in_runs_of_one_epoch(lost_record: Story) -> None:
    def record(offset: int, epoch: int) -> Record:
        return Record(offset, 100 + offset, epoch, ())

    records = tuple(record(offset, 0 if offset < 7 else 1) for offset in range(10))
    lane = ReplicaLane(0, "", False, None, 0, 10, 5, records, ())
    assert log_strip(lane).plain == "0: [100..104@e0|105..106@e0 107..109@e1]"
    skip = replace(lane, records=(*records[:3], replace(records[3], id=900), *records[4:]))
    assert log_strip(skip).plain == "0: [100..102@e0 900@e0 104@e0|105..106@e0 107..109@e1]"


def test_hostile_strings_steer_nothing(lost_record: Story) -> None:
    bad = "\x1b[2J[bold]x[/bold]\u202e\r\nnext :smile:"
    moment = Moment(0, bad, {bad: bad}, {bad: bad}, (Call(bad, {bad: bad}),), (Breach(bad, bad, (bad,)),), (bad,))
    told = replace(
        lost_record, headline=bad, protocol=bad, variant=bad, violated=bad, promises={bad: bad}, moments=(moment,)
    )
    text = render_text(told, enabled=True)
    assert all(each.isprintable() or each == "\n" for each in text)
    assert "[bold]x[/bold]" in text
    assert ":smile:" in text
