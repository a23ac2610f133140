"""A story cut into lanes: what each presenter would otherwise have to work out of raw cells by itself.

Values become words here, once, so that the terminal and the page say the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...model.core.view import CONTROLLER, LogView, Route
from ..run_report import Call, Json, Moment, Story, split_cell
from ..text import printable


@dataclass(frozen=True)
class Record:
    """One live record of a replica's log. ``id`` or ``epoch`` is None when the protocol does not model it."""

    offset: int
    id: Json
    epoch: Json
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Value:
    """A variable as a person reads it, and the cell that it came from."""

    label: str
    text: str
    cell: str


@dataclass(frozen=True)
class ReplicaLane:
    """One replica in one state. Offsets count records; ``end`` is exclusive; a mark that is not modelled is None."""

    replica: int
    role: str
    leads: bool
    epoch: int | None
    start: int
    end: int | None
    high_watermark: int | None
    records: tuple[Record, ...]
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Arrow:
    """An action between lanes: a replica, or ``CONTROLLER``. ``from_index`` is the moment that it starts at."""

    source: int | str
    target: int | str | None
    from_index: int
    consults: int | str | None


def words(value: Json) -> str:
    """A JSON value in words: a list reads as a set, null as ``none``."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "{" + ", ".join(words(each) for each in value) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{printable(key)}: {words(each)}" for key, each in value.items()) + "}"
    return printable(str(value))


def call_words(call: Call) -> str:
    """``follower_fetch(leader=0, follower=1)``."""
    return printable(call.action) + "(" + pairs_words(call.params) + ")"


def pairs_words(pairs: Mapping[str, Json]) -> str:
    """``leader=0, follower=1``, in the mapping's own order."""
    return ", ".join(f"{printable(name)}={words(value)}" for name, value in pairs.items())


def number(value: Json) -> int | None:
    """``value`` if it is an integer and not a bool."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def replica_lane(story: Story, moment: Moment, replica: int) -> ReplicaLane:
    """What one replica looks like in ``moment``, by the story's own ``LogView``."""
    view, state = story.view, moment.state

    def mine(variable: str | None) -> int | None:
        return None if variable is None else number(state.get(f"{variable}[{replica}]"))

    start, end = mine(view.start) or 0, mine(view.end)
    leader, epoch = mine(view.leader), mine(view.epoch)
    if view.leader is None:
        role = ""
    elif leader is None or leader < 0:
        role = "no leader yet" if epoch is None or epoch < 0 else "no leader"
    else:
        role = "leader" if leader == replica else f"follows {leader}"
    cells = [
        (view.label(variable), f"{variable}[{replica}]")
        for variable in (view.epoch, view.leader, view.start, view.end, view.high_watermark, *view.fields)
        if variable is not None
    ]
    return ReplicaLane(
        replica=replica,
        role=role,
        leads=leader == replica,
        epoch=None if epoch is None or epoch < 0 else epoch,
        start=start,
        end=end,
        high_watermark=mine(view.high_watermark),
        records=tuple(_record(view, state, replica, offset) for offset in range(start, end or 0)),
        values=tuple(Value(printable(label), words(state[cell]), cell) for label, cell in cells if cell in state),
    )


def _record(view: LogView, state: Mapping[str, Json], replica: int, offset: int) -> Record:
    names = [f"{variable}[{replica}][{offset}]" for variable in (view.record_id, view.record_epoch) if variable]
    return Record(
        offset=offset,
        id=state.get(f"{view.record_id}[{replica}][{offset}]") if view.record_id else None,
        epoch=state.get(f"{view.record_epoch}[{replica}][{offset}]") if view.record_epoch else None,
        cells=tuple(names),
    )


def controller_values(story: Story, moment: Moment) -> tuple[Value, ...]:
    """The controller's scalars, those of them that the state has."""
    view = story.view
    return tuple(
        Value(printable(view.label(name)), words(moment.state[name]), name)
        for name in view.controller
        if name in moment.state
    )


def messages(story: Story, moment: Moment) -> tuple[tuple[int, tuple[Value, ...]], ...]:
    """The live messages by leader epoch, oldest first."""
    view, state = story.view, moment.state
    if view.per_epoch_end is None:
        return ()
    live = {
        epoch: tuple(
            Value(printable(view.label(name)), words(state[f"{name}[{epoch}]"]), f"{name}[{epoch}]")
            for name in view.per_epoch
            if f"{name}[{epoch}]" in state
        )
        for epoch in range(number(state.get(view.per_epoch_end)) or 0)
    }
    return tuple((epoch, values) for epoch, values in live.items() if values)


def other_values(story: Story, moment: Moment) -> tuple[Value, ...]:
    """Every cell that no lane shows, so that a protocol without a layout still shows its whole state."""
    view = story.view
    shown = {view.record_id, view.record_epoch, view.start, view.end, view.high_watermark, view.leader, view.epoch}
    shown |= {*view.fields, *view.controller, *view.per_epoch}
    return tuple(
        Value(printable(cell), words(value), cell)
        for cell, value in moment.state.items()
        if _place(cell)[0] not in shown
    )


def _place(cell: str) -> tuple[str, tuple[int | str, ...]]:
    """``split_cell``, but a name that is none stands for itself: a strange trace is shown, not refused."""
    try:
        return split_cell(cell)
    except ValueError:
        return cell, ()


def record_words(identity: Json, epoch: Json) -> str:
    """``3@e1``: record 3, written in leader epoch 1. Only the half that is modelled."""
    left = "" if identity is None else words(identity)
    right = "" if epoch is None else f"e{words(epoch)}"
    return f"{left}@{right}" if left and right else left or right or "?"


def readable_changes(story: Story, index: int) -> tuple[tuple[str, str, str], ...]:
    """What a step changed as (name, old, new) in words; the cells of one record are told as one."""
    view = story.view
    told: list[tuple[str, str, str]] = []
    logs: set[tuple[int | str, ...]] = set()
    for change in story.changes(index):
        variable, place = _place(change.cell)
        if variable in (view.record_id, view.record_epoch) and len(place) == 2:
            if place not in logs:
                logs.add(place)
                told.append((f"log[{place[0]}][{place[1]}]", *_record_change(story, index, place)))
        else:
            told.append((printable(change.cell), words(change.old), words(change.new)))
    return tuple(told)


def _record_change(story: Story, index: int, place: tuple[int | str, ...]) -> tuple[str, str]:
    replica, offset = place
    assert isinstance(replica, int), "a log is per replica"
    sides = []
    for moment in (story.moments[index - 1], story.moments[index]):
        lane = replica_lane(story, moment, replica)
        found = [each for each in lane.records if each.offset == offset]
        sides.append(record_words(found[0].id, found[0].epoch) if found else "empty")
    return sides[0], sides[1]


def arrow(story: Story, index: int) -> Arrow | None:
    """How the action of ``moments[index]`` is drawn, or None when its route leads to no lane of this story."""
    moment = story.moments[index]
    route = story.view.routes.get(moment.action or "")
    if route is None:
        return None
    source = _lane_of(route.source, moment, story)
    if source is None:
        return None
    return Arrow(
        source=source,
        target=_lane_of(route.target, moment, story),
        from_index=_sent_at(story, index, route),
        consults=_lane_of(route.consults, moment, story),
    )


def _lane_of(name: str | None, moment: Moment, story: Story) -> int | str | None:
    if name is None or name == CONTROLLER:
        return name
    replica = number(moment.params.get(name))
    return replica if replica in story.replicas else None


def _sent_at(story: Story, index: int, route: Route) -> int:
    """The moment that last wrote the message: the one of the same step when nothing in the run did."""
    if route.sent is None:
        return index
    cell = route.sent
    for name, value in story.moments[index].params.items():
        cell = cell.replace("{" + name + "}", words(value))
    for earlier in range(index - 1, 0, -1):
        if story.moments[earlier - 1].state.get(cell) != story.moments[earlier].state.get(cell):
            return earlier
    return index
