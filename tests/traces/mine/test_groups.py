"""Shapes of last steps, and which sightings are one bug."""

from __future__ import annotations

from typing import Any

from fencepost.model.protocols.fencing import fencing
from fencepost.traces.corpus.faults import fault_named
from fencepost.traces.format import Trace, TraceHeader
from fencepost.traces.mine.answer import Bug
from fencepost.traces.mine.groups import Explained, families
from fencepost.traces.mine.part import Part, Sighting
from fencepost.traces.mine.signature import LAST, shape_of

CONSTANTS = {"replicas": 3, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
MODEL = ("fencing", "kip-320", tuple(CONSTANTS.items()))


def sighting(
    bug: Bug, count: int = 1, first: int = 0, prefix: int = 5, shapes: Any = None, then: Any = None
) -> Sighting:
    trace = Trace(TraceHeader("fencing", "kip-320", CONSTANTS), ())
    return Sighting(bug, MODEL, count, first, prefix, first, trace, shapes or {(): count}, then or {})


def explained(bug: Bug, *names: str, **counts: Any) -> Explained:
    return Explained(sighting(bug, **counts), [fault_named(fencing.traced(), name) for name in names])


def test_a_shape_forgets_which_replicas_and_how_far() -> None:
    def shape(a: int, b: int, low: int, high: int) -> tuple[str, ...]:
        return shape_of(
            fencing,
            [
                ("become_leader", {"leader": a, "epoch": low}),
                ("become_follower", {"leader": a, "follower": b, "epoch": high}),
                ("follower_fetch", {"leader": b, "follower": a}),
            ],
        )

    assert shape(0, 1, 0, 1) == shape(2, 0, 1, 5)
    assert shape(0, 1, 0, 1) != shape(0, 1, 1, 1)
    assert shape(0, 1, 0, 1) != shape(1, 1, 0, 1)
    assert shape(0, 1, 0, 1)[1] == "become_follower(leader=A, follower=B, epoch=1)"


def test_a_shape_has_the_last_steps_and_says_what_is_not_known() -> None:
    calls: list[tuple[str | None, dict[str, int | None]]] = [("leader_write", {"leader": 0})] * 5
    assert len(shape_of(fencing, calls)) == LAST
    assert shape_of(fencing, [(None, {}), ("follower_fetch", {"leader": None, "follower": 2})]) == (
        "look",
        "follower_fetch(leader=?, follower=A)",
    )


def test_sightings_are_merged_in_any_order_to_the_same() -> None:
    bug = Bug("fencing", "guard", "follower_fetch", "epoch_not_fenced")
    made = [
        lambda: sighting(bug, 2, 7, 5, {("a",): 2}, {"weak_isr": (1, 3)}),
        lambda: sighting(bug, 3, 4, 6, {("b",): 3}),
        lambda: sighting(bug, 1, 9, 5, {("a",): 1}, {"weak_isr": (1, 1)}),
    ]
    wholes = []
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        part = Part()
        for number in order:
            part.see(made[number]())
        wholes.append(part.sightings[bug])
    assert wholes[0] == wholes[1] == wholes[2]
    whole = wholes[0]
    assert (whole.count, whole.first, whole.prefix, whole.shortest) == (6, 4, 5, 7)
    assert (whole.shapes, whole.then) == ({("a",): 3, ("b",): 3}, {"weak_isr": (2, 1)})


def test_outcomes_of_one_wrong_offset_are_one_bug() -> None:
    high = Bug("fencing", "effect", "become_follower", variables=("leo+",))
    records = Bug("fencing", "effect", "become_follower", variables=("leo+", "record_id+"))
    other = Bug("fencing", "effect", "become_follower", variables=("hw-",))
    plus, minus = "become_follower.leo' bound +1", "become_follower.hw' bound -1"
    found = families([explained(high, plus, count=2), explained(other, minus, count=9), explained(records, plus)])
    assert [[each.sighting.bug for each in family.members] for family in found] == [[other], [records, high]]
    assert [family.changes[0].name for family in found] == [minus, plus]
    assert found[1].merged.count == 3


def test_two_guards_are_two_bugs_and_a_guard_left_out_is_the_likeliest_change() -> None:
    fetch = Bug("fencing", "guard", "follower_fetch", "epoch_not_fenced")
    end = Bug("fencing", "guard", "follower_fetch", "record_available")
    dropped, shifted = "follower_fetch.epoch_not_fenced dropped", "follower_fetch.epoch_not_fenced bound -1"
    ahead = "follower_fetch.record_available dropped"
    found = families([explained(fetch, shifted, dropped, "kip-101"), explained(end, ahead)])
    assert sorted(family.changes[0].name for family in found) == [dropped, ahead]
    # Another variant is no explanation where a mutant is one.
    assert all(change.mutant for family in found for change in family.changes)


def test_two_changes_of_like_outcomes_are_two_bugs_where_each_has_some_of_its_own() -> None:
    plus, minus = "become_follower.leo' bound +1", "become_follower.leo' bound -1"

    def bug(*changes: str) -> Bug:
        return Bug("fencing", "effect", "become_follower", variables=("leo+",), changes=changes)

    parts = [explained(bug(*names), *names, count=count) for names, count in (((plus,), 5), ((plus, minus), 2))]
    assert [[change.name for change in family.changes] for family in families(parts)] == [[plus]]
    found = families([*parts, explained(bug(minus), minus, count=3)])
    assert [[change.name for change in family.changes] for family in found] == [[plus], [minus]]
    assert [family.merged.count for family in found] == [7, 3]
    # One outcome among them that no change has: then it is by chance that a change has the others.
    (whole,) = families([*parts, explained(bug())])
    assert (whole.merged.count, whole.changes) == (8, [])


def test_what_no_change_explains_is_parted_by_its_variables() -> None:
    bugs = [
        Bug("fencing", "effect", "leader_write", variables=names) for names in (("leo+",), ("leo-", "hw+"), ("isr",))
    ]
    found = families([explained(bug) for bug in bugs])
    assert sorted(len(family.members) for family in found) == [1, 2]
    promise = Bug("fencing", "promise", invariant="weak_isr")
    assert len(families([explained(bugs[0]), explained(promise)])) == 2


def test_a_bug_says_in_which_direction_a_value_is_wrong() -> None:
    bug = Bug("fencing", "effect", "leader_write", variables=("leo+", "record_id-", "isr"))
    assert str(bug) == "leader_write with leo too high, record_id too low, isr wrong"
