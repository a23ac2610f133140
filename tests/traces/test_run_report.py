"""The data structure that a counterexample is told from."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.core.view import LogView, Route
from fencepost.traces.run_report import (
    Breach,
    Call,
    Change,
    Moment,
    Story,
    from_json,
    split_cell,
    to_json,
)
from hypothesis import given
from hypothesis import strategies as st

VIEW = LogView(
    end="leo",
    start="log_start",
    record_id="record_id",
    record_epoch="record_epoch",
    high_watermark="hw",
    leader="leader",
    epoch="leader_epoch",
    fields=("isr",),
    controller=("quorum_leader",),
    controller_leader="quorum_leader",
    per_epoch=("request_leader",),
    per_epoch_end="next_leader_epoch",
    labels={"leo": "LEO"},
    routes={"follower_fetch": Route("leader", "follower"), "leader_write": Route("leader")},
)


def story(**changes: object) -> Story:
    first = Moment(0, None, {}, {"leo[0]": 0, "isr[0]": []}, (Call("leader_write", {"leader": 0}),))
    second = Moment(
        1,
        "leader_write",
        {"leader": 0},
        {"leo[0]": 1, "isr[0]": []},
        broken=(Breach("weak_isr", "replica 1 lacks it", ("leo[1]",)), Breach("strong_isr")),
        notes=("a note",),
    )
    base = Story(
        protocol="fencing",
        variant="kip-320",
        constants={"replicas": 2},
        verdict="violated",
        violated="strong_isr",
        headline="It breaks.",
        source={"seed": 7},
        replicas=(0, 1),
        view=VIEW,
        moments=(first, second),
        promises={"strong_isr": "no committed record is lost"},
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def test_changes_are_computed_from_the_states() -> None:
    told = story()
    assert told.changes(0) == ()
    assert told.changes(1) == (Change("leo[0]", 0, 1),)


def test_a_cell_that_appears_or_goes_is_a_change() -> None:
    a, b = Moment(0, None, {}, {"old": 1}), Moment(1, "act", {}, {"new": 2})
    told = story(moments=(a, b), verdict="holds", violated=None)
    assert told.changes(1) == (Change("new", None, 2), Change("old", 1, None))


def test_first_breach_is_that_of_the_violated_invariant() -> None:
    a, b = story().moments
    only_weak = replace(a, broken=(Breach("weak_isr"),))
    assert story(moments=(only_weak, b)).first_breach() == 1
    assert story(moments=(only_weak, b), violated=None).first_breach() == 0
    assert story(moments=(a,)).first_breach() is None


@pytest.mark.parametrize(
    ("cell", "parts"),
    [
        ("next_record_id", ("next_record_id", ())),
        ("leo[2]", ("leo", (2,))),
        ("record_id[1][10]", ("record_id", (1, 10))),
    ],
)
def test_cell_names(cell: str, parts: tuple[str, tuple[int, ...]]) -> None:
    assert split_cell(cell) == parts


@pytest.mark.parametrize("cell", ["", "leo[", "leo[-1]", "leo[0]x", "[0]"])
def test_what_is_no_cell_name_is_refused(cell: str) -> None:
    with pytest.raises(ValueError, match="not a cell name"):
        split_cell(cell)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"moments": ()}, "initial state"),
        ({"verdict": "maybe"}, "'maybe'"),
        ({"verdict": "holds"}, "strong_isr is named as violated"),
        ({"loop_start": 2}, "moment 2 of 2"),
        ({"loop_start": 0}, "the one that its loop starts in"),
    ],
)
def test_a_story_that_makes_no_sense_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        story(**changes)


def test_a_stutter_is_a_lasso_with_no_step() -> None:
    assert story(loop_start=1).stutters
    assert not story().stutters


def test_json_round_trip() -> None:
    for told in (story(), story(loop_start=1), story(verdict="unknown", violated=None, view=LogView())):
        assert from_json(to_json(told)) == told


def test_a_tuple_is_a_list_to_json() -> None:
    one = Moment(0, "act", {"isr": (0, 1)}, {"isr[0]": (0, 1)}, (Call("act", {"isr": (1,)}),))
    told = story(moments=(one,))
    assert told.moments[0].state == {"isr[0]": [0, 1]}
    assert from_json(to_json(told)) == told


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(min_size=1), json_values, max_size=4), st.text())
def test_json_round_trip_of_any_value_and_any_text(state: dict[str, object], text: str) -> None:
    told = story(
        moments=(Moment(0, text, state, state, (Call(text, state),), (Breach(text, text, (text,)),), (text,)),),
        headline=text,
        violated=text,
    )
    assert from_json(to_json(told)) == told
    to_json(told).encode("ascii")


def damaged(*path: str | int, value: object = None, drop: bool = False) -> str:
    root = json.loads(to_json(story()))
    node = root
    for part in path[:-1]:
        node = node[part]
    if drop:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return json.dumps(root)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", r"it\.json, line 1: not JSON"),
        ("[]", "not a fencepost-story of version 1"),
        (damaged("version", value=2), "not a fencepost-story of version 1"),
        (damaged("protocol", drop=True), "protocol is missing"),
        (damaged("replicas", value=["0"]), "replicas holds more than numbers"),
        (damaged("replicas", value=[True]), "replicas holds more than numbers"),
        (damaged("moments", value={}), "moments is dict; it must be list"),
        (damaged("moments", 1, value=3), r"moments\[1\] is int; it must be an object"),
        (damaged("moments", 1, "step", value=True), r"moments\[1\]\.step is bool; it must be int"),
        (damaged("moments", 0, "enabled", 0, "action", value=None), r"moments\[0\]\.enabled\[0\]\.action is"),
        (damaged("moments", 1, "broken", 0, "cells", value=[1]), r"cells holds more than names"),
        (damaged("view", "routes", "leader_write", value=1), r"view\.routes\.leader_write is int"),
        (damaged("view", "labels", "leo", value=1), r"view\.labels\.leo is int"),
        (damaged("verdict", value="maybe"), "'maybe'"),
        (damaged("moments", value=[]), "at least the initial state"),
    ],
)
def test_bad_json_is_refused_in_one_line_that_says_where(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        from_json(text, "it.json")
    assert str(caught.value).startswith("it.json")
    assert "\n" not in str(caught.value)
