"""A free run that fails as the story of a sequence diagram, for the HTML page."""

from __future__ import annotations

from ...traces.report.timeline import Arrival, Row, Sent, Timeline
from .divergence import Divergence
from .events import Event, EventKind
from .render import RenderedStep, rendered_steps, script
from .shrink import RunRecord

_FATES = {
    EventKind.DELIVER: "arrived",
    EventKind.REPEAT: "repeated",
    EventKind.LOSE: "lost",
    EventKind.GARBLE: "garbled",
}


def timeline_of(ran: RunRecord, name: str) -> Timeline:
    """The events as rows between the nodes; the last one is where the two part. ``name``: the system's."""
    divergence, system = ran.divergence, ran.ways.system
    assert divergence is not None
    rows = [_row(look) for look in rendered_steps(ran)]
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
        sort=divergence.sort.value,
        headline=divergence.headline,
        why=_why(divergence),
        cells=tuple((each.cell, *each.words) for each in divergence.cells),
        text="\n".join((*script(ran), "", divergence.headline, *divergence.lines)),
    )


def _why(divergence: Divergence) -> tuple[str, ...]:
    """What differs, but for the cells, which are told as a table."""
    cells = {str(each) for each in divergence.cells}
    return tuple(line for line in divergence.lines if line not in cells)


def _row(look: RenderedStep) -> Row:
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
    if event.what in (EventKind.TIMER, EventKind.CALL, EventKind.OPERATE, EventKind.PROBE):
        return event.name
    if event.what is EventKind.TIME:
        return f"+{event.arg('ms')} ms" if event.args else "time"
    return f"{event.what.value} {event.name}".rstrip()


def _lane(party: int | None) -> int | None:
    """A node; None for the controller and clients, which have one lane."""
    return party if party is not None and party >= 0 else None


def _nodes(row: Row) -> set[int]:
    lanes = {row.lane, *(each for sent in row.sent for each in (sent.source, sent.destination))}
    return {lane for lane in lanes if lane is not None}
