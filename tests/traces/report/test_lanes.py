"""A story cut into lanes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fencepost.model.core.view import CONTROLLER, LogView
from fencepost.traces.report.lanes import (
    arrow,
    other_values,
    readable_changes,
    record_words,
    replica_lane,
    words,
)
from fencepost.traces.run_report import Json, Moment, Story
from fencepost.traces.text import printable


def test_roles_follow_the_leader_that_a_replica_believes_in(lost_record: Story) -> None:
    first, last = lost_record.moments[0], lost_record.moments[-1]
    assert [replica_lane(lost_record, first, r).role for r in (0, 1, 2)] == ["no leader yet"] * 3
    assert [replica_lane(lost_record, last, r).role for r in (0, 1, 2)] == ["leader", "leader", "follows 1"]
    assert [replica_lane(lost_record, last, r).epoch for r in (0, 1, 2)] == [0, 1, 1]


def test_only_live_records_are_in_the_log(lost_record: Story) -> None:
    lane = replica_lane(lost_record, lost_record.moments[-1], 1)
    assert [(each.offset, each.id, each.epoch) for each in lane.records] == [(0, 0, 0), (1, 1, 1)]
    assert (lane.start, lane.end, lane.high_watermark) == (0, 2, 0)
    assert replica_lane(lost_record, lost_record.moments[-1], 2).records == ()


def test_the_cells_of_a_record_are_told_as_one_change(lost_record: Story) -> None:
    assert readable_changes(lost_record, 5) == (
        ("next_record_id", "0", "1"),
        ("leo[0]", "0", "1"),
        ("log[0][0]", "empty", "0@e0"),
    )
    assert ("log[2][0]", "0@e0", "empty") in readable_changes(lost_record, 12)


def test_a_request_starts_where_it_was_sent(lost_record: Story, lasso: Story) -> None:
    adopted = arrow(lost_record, 12)
    assert adopted is not None
    assert (adopted.source, adopted.target, adopted.from_index, adopted.consults) == (CONTROLLER, 2, 9, None)
    fenced = arrow(lasso, 3)
    assert fenced is not None
    assert (fenced.source, fenced.target, fenced.from_index, fenced.consults) == (CONTROLLER, 1, 1, 0)
    fetch = arrow(lost_record, 6)
    assert fetch is not None
    assert (fetch.source, fetch.target, fetch.from_index, fetch.consults) == (0, 1, 6, None)
    assert arrow(lost_record, 0) is None


def test_a_message_that_was_sent_twice_starts_at_the_later_sending(lost_record: Story) -> None:
    moments = list(lost_record.moments)
    moments[3] = replace(moments[3], state={**moments[3].state, "request_leader[1]": 2})
    adopted = arrow(replace(lost_record, moments=tuple(moments)), 12)
    assert adopted is not None
    assert adopted.from_index == 9


def test_an_arrow_to_a_replica_that_is_not_there_is_not_drawn(lost_record: Story) -> None:
    fetch = replace(lost_record.moments[6], params={"leader": 9, "follower": 1})
    told = replace(lost_record, moments=(*lost_record.moments[:6], fetch))
    assert arrow(told, 6) is None


def test_a_log_start_offset_cuts_the_front(lost_record: Story) -> None:
    view = LogView(end="leo", start="lbo", record_epoch="epoch")
    state: dict[str, Json] = {"leo[0]": 4, "lbo[0]": 2, "epoch[0][2]": 1, "epoch[0][3]": 1}
    told = replace(lost_record, view=view, moments=(Moment(0, None, {}, state),), verdict="holds", violated=None)
    assert [each.offset for each in replica_lane(told, told.moments[0], 0).records] == [2, 3]


def test_a_protocol_without_a_layout_still_shows_its_whole_state(lost_record: Story) -> None:
    told = replace(lost_record, view=LogView())
    assert len(other_values(told, told.moments[3])) == len(told.moments[3].state)
    assert other_values(lost_record, lost_record.moments[3]) == ()


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "none"), (True, "true"), ([0, 2], "{0, 2}"), ([], "{}"), ({"a": None}, "{a: none}"), (-1, "-1")],
)
def test_values_in_words(value: Json, said: str) -> None:
    assert words(value) == said


def test_records_in_words() -> None:
    assert [record_words(3, 1), record_words(None, 1), record_words(3, None)] == ["3@e1", "e1", "3"]


def test_what_steers_a_terminal_is_escaped() -> None:
    assert printable("a\x1b[31m\u202eb\n\ud800é") == "a\\x1b[31m\\u202eb\\n\\ud800é"
