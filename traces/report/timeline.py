"""A run of a system with messages in flight as one HTML page: a sequence diagram with time going down.

A lane for each node and one for the controller and clients; arrows from the event in which a message was sent to where
it arrived, was lost, or came twice. What is drawn is given as plain data: whoever has such a run tells it so. The
page is as ``page.py`` has it: one file, no network, a policy that names its only script and style sheet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from ..text import printable, printable_lines
from .lanes import pairs_words
from .page import embedded, environment, joined, policy

if TYPE_CHECKING:
    from ..run_report import Json

Lane = int | None
"""A node, or None for the controller and clients."""


@dataclass(frozen=True)
class Sent:
    """A message that left in an event. ``number`` is its own through the run."""

    number: int
    name: str
    source: Lane
    destination: Lane


@dataclass(frozen=True)
class Arrival:
    """What became of a message in an event. ``fate``: ``arrived``, ``repeated`` (a copy did) or ``lost``.

    ``message``: its number; None where that is not known.
    """

    message: int | None
    name: str
    source: Lane
    destination: Lane
    fate: str


@dataclass(frozen=True)
class Row:
    """One event. ``text`` says it in full, ``mark`` what kind it is (empty for a message), ``label`` stands beside it.

    ``number`` is None for what happened by itself at the end. ``model``: the model's steps in it; ``changes``: cell,
    before, after; ``told``: what a client was told. ``crashed``, ``started``: nodes. ``within``: power was lost in its
    midst.
    """

    number: int | None
    text: str
    mark: str
    label: str
    lane: Lane
    arrival: Arrival | None = None
    sent: tuple[Sent, ...] = ()
    model: tuple[str, ...] = ()
    changes: tuple[tuple[str, str, str], ...] = ()
    told: str = ""
    crashed: tuple[int, ...] = ()
    started: tuple[int, ...] = ()
    within: bool = False


@dataclass(frozen=True)
class Timeline:
    """A run that ends where a system and the model part.

    ``sort`` says how they part, ``headline`` at which event, ``why`` which guards refuse and what the model could do;
    ``cells``: cell, the model's value, the system's. ``text``: the run for readers without scripts, and for print.
    """

    protocol: str
    variant: str
    system: str
    constants: Mapping[str, int]
    seed: int
    nodes: tuple[int, ...]
    rows: tuple[Row, ...]
    sort: str
    headline: str
    why: tuple[str, ...]
    cells: tuple[tuple[str, str, str], ...]
    text: str


def render_timeline(timeline: Timeline) -> str:
    """The page as text: valid for a file of its own, encoded in UTF-8."""
    script, style = joined("diagram.js", "timeline.js"), joined("story.css", "page.css", "timeline.css")
    return (
        environment()
        .get_template("timeline.html.j2")
        .render(
            title=f"{printable(timeline.system)} does not conform to {printable(timeline.protocol)}",
            policy=policy(script=script, style=style),
            style=Markup(style),  # noqa: S704 - our own file, named by its hash in the policy
            script=Markup(script),  # noqa: S704 - likewise
            data=Markup(embedded(timeline_data(timeline))),  # noqa: S704 - embedded() escapes every "<"
            text=printable_lines(timeline.text),
        )
    )


def timeline_data(timeline: Timeline) -> dict[str, Json]:
    """What the script draws: every text is in words already."""
    return {
        "protocol": printable(timeline.protocol),
        "variant": printable(timeline.variant),
        "system": printable(timeline.system),
        "constants": pairs_words(dict(timeline.constants)),
        "seed": timeline.seed,
        "nodes": list(timeline.nodes),
        "sort": printable(timeline.sort),
        "headline": printable(timeline.headline),
        "why": [printable(line) for line in timeline.why],
        "cells": [[printable(word) for word in cell] for cell in timeline.cells],
        "rows": [_row(row) for row in timeline.rows],
    }


def _row(row: Row) -> Json:
    arrival = row.arrival
    return {
        "number": row.number,
        "text": printable(row.text),
        "mark": row.mark,
        "label": printable(row.label),
        "lane": row.lane,
        "arrival": None
        if arrival is None
        else {
            "message": arrival.message,
            "name": printable(arrival.name),
            "source": arrival.source,
            "destination": arrival.destination,
            "fate": arrival.fate,
        },
        "sent": [
            {
                "number": each.number,
                "name": printable(each.name),
                "source": each.source,
                "destination": each.destination,
            }
            for each in row.sent
        ],
        "model": [printable(step) for step in row.model],
        "changes": [[printable(word) for word in change] for change in row.changes],
        "told": printable(row.told),
        "crashed": list(row.crashed),
        "started": list(row.started),
        "within": row.within,
    }
