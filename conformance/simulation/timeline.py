"""A free run that fails as the story of a sequence diagram, for the HTML page."""

from __future__ import annotations

from ...traces.report.timeline import Arrival, Row, Sent, Timeline
from .divergence import Parted
from .events import Event, What
from .render import Look, looks, script
from .shrink import Ran

_FATES = {What.DELIVER: "arrived", What.REPEAT: "repeated", What.LOSE: "lost", What.GARBLE: "garbled"}


def timeline_of(ran: Ran, name: str) -> Timeline:
    """The events as rows between the nodes; the last one is where the two part. ``name``: the system's."""
    parted, system = ran.parted, ran.ways.system
    assert parted is not None
    rows = [_row(look) for look in looks(ran)]
    nodes = {node for row in rows for node in _nodes(row)}
    replicas = system.constants.get("replicas", 0)
    return Timeline(
        protocol=system.name,
        variant=system.traced.variant.name,
        system=name,
        constants=dict(system.constants),
        seed=ran.seed,
        nodes=tuple(sorted(nodes | set(range(replicas)))),
        rows=tuple(rows),
        sort=parted.sort.value,
        headline=parted.headline,
        why=_why(parted),
        cells=tuple((each.cell, *each.words) for each in parted.cells),
        text="\n".join((*script(ran), "", parted.headline, *parted.lines)),
    )


def _why(parted: Parted) -> tuple[str, ...]:
    """What differs, but for the cells, which are told as a table."""
    cells = {str(each) for each in parted.cells}
    return tuple(line for line in parted.lines if line not in cells)


def _row(look: Look) -> Row:
    event, happened = look.event, look.done.happened
    arrival = None
    if event.what in _FATES:
        arrival = Arrival(look.done.message, event.name, _lane(event.source), _lane(event.node), _FATES[event.what])
    return Row(
        number=look.number,
        text=str(event),
        mark="" if arrival is not None else event.what.value,
        label=_label(event),
        lane=_lane(event.node),
        arrival=arrival,
        sent=tuple(Sent(each.number, each.name, _lane(each.source), _lane(each.destination)) for each in happened.sent),
        model=tuple(look.steps),
        changes=tuple(look.changes),
        told=happened.told,
        crashed=tuple(sorted(happened.crashed)),
        started=tuple(sorted(happened.started)),
        within=event.crash is not None,
    )


def _label(event: Event) -> str:
    """What is written at the mark."""
    if event.what in (What.TIMER, What.CALL, What.OPERATE, What.PROBE):
        return event.name
    if event.what is What.TIME:
        return f"+{event.arg('ms')} ms" if event.args else "time"
    return f"{event.what.value} {event.name}".rstrip()


def _lane(party: int | None) -> int | None:
    """A node; None for the controller and clients, which have one lane."""
    return party if party is not None and party >= 0 else None


def _nodes(row: Row) -> set[int]:
    lanes = {row.lane, *(each for sent in row.sent for each in (sent.source, sent.destination))}
    return {lane for lane in lanes if lane is not None}
