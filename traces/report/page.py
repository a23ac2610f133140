"""A story as one self-contained HTML page: no network, no inline handler, nothing that a trace could inject.

The page holds the story as a JSON data block that ``page.js``, over ``diagram.js`` and ``step.js``, draws with
``textContent`` only. Its content security policy allows exactly the one script and the one style sheet in it, by
their SHA-256.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from ..text import printable
from .lanes import (
    Value,
    arrow,
    call_words,
    controller_values,
    messages,
    other_values,
    pairs_words,
    readable_changes,
    record_words,
    replica_lane,
    words,
)
from .text import render_text

if TYPE_CHECKING:
    from jinja2 import Environment

    from ..run_report import Breach, Json, Moment, Story

TEXT_WIDTH: Final = 100
"""Columns of the text form that the page carries for readers without scripts and for print."""


def render_page(story: Story) -> str:
    """The page as text: valid for a file of its own, encoded in UTF-8."""
    script, style = joined("diagram.js", "step.js", "page.js"), joined("story.css", "page.css")
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            title=f"{printable(story.protocol)} {printable(story.variant)}: {story.verdict}",
            policy=policy(script=script, style=style),
            style=Markup(style),  # noqa: S704 - our own file, named by its hash in the policy
            script=Markup(script),  # noqa: S704 - likewise
            data=Markup(embedded(page_data(story))),  # noqa: S704 - embedded() escapes every "<"
            text=render_text(story, width=TEXT_WIDTH),
        )
    )


def asset(name: str) -> str:
    """A template, style sheet or script beside this module; they ship with the package as its data."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def joined(*names: str) -> str:
    """Several of them as one script or one style sheet, in this order."""
    return "".join(map(asset, names))


def environment() -> Environment:
    """Jinja with autoescape on and unknown names refused."""
    # Few commands write a page.
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def policy(*, style: str, script: str | None = None) -> str:
    """A content security policy that runs ``script`` and applies ``style``, and loads nothing at all."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")

    scripts = f"'sha256-{digest(script)}'" if script is not None else "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'sha256-{digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def embedded(data: Json) -> str:
    """JSON that is safe inside a script element: no ``<``, ``>`` or ``&``, and only ASCII."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page_data(story: Story) -> dict[str, Json]:
    """What the script draws. Every text is in words already; the script chooses only where it goes."""
    breach = story.first_breach()
    return {
        "protocol": printable(story.protocol),
        "variant": printable(story.variant),
        "constants": pairs_words(story.constants),
        "source": pairs_words(story.source),
        "verdict": story.verdict,
        "violated": printable(story.violated) if story.violated is not None else None,
        "headline": printable(story.headline),
        "promise": printable(story.promises.get(story.violated or "", "")),
        "replicas": list(story.replicas),
        "noun": printable(story.noun),
        "hasLogs": story.view.end is not None,
        "hasController": bool(story.view.controller),
        "loopStart": story.loop_start,
        "breach": breach,
        "moments": [_moment(story, index) for index in range(len(story.moments))],
    }


def _moment(story: Story, index: int) -> Json:
    moment = story.moments[index]
    following = story.moments[index + 1] if index + 1 < len(story.moments) else None
    drawn = arrow(story, index)
    return {
        "step": moment.step,
        "action": printable(moment.action) if moment.action is not None else None,
        "params": pairs_words(moment.params),
        "route": None
        if drawn is None
        else {
            "source": drawn.source,
            "target": drawn.target,
            "from": drawn.from_index,
            "consults": drawn.consults,
        },
        "changes": [list(change) for change in readable_changes(story, index)],
        "changed": [printable(change.cell) for change in story.changes(index)],
        "controller": {
            "epoch": _text_at(moment, story.view.controller_epoch),
            "leader": _text_at(moment, story.view.controller_leader),
            "values": [_value(value) for value in controller_values(story, moment)],
            "messages": [
                {"epoch": epoch, "values": [_value(value) for value in values]}
                for epoch, values in messages(story, moment)
            ],
        },
        "replicas": [_replica(story, moment, replica) for replica in story.replicas],
        "others": [_value(value) for value in other_values(story, moment)],
        "enabled": [
            {
                "text": call_words(call),
                "taken": following is not None
                and (call.action, dict(call.params)) == (following.action, dict(following.params)),
            }
            for call in moment.enabled
        ],
        "broken": [_breach(story, breach) for breach in moment.broken],
        "notes": [printable(note) for note in moment.notes],
    }


def _text_at(moment: Moment, cell: str | None) -> Json:
    return words(moment.state[cell]) if cell is not None and cell in moment.state else None


def _value(value: Value) -> Json:
    return {"label": printable(value.label), "text": value.text, "cell": printable(value.cell)}


def _replica(story: Story, moment: Moment, replica: int) -> Json:
    lane = replica_lane(story, moment, replica)
    return {
        "replica": replica,
        "role": lane.role,
        "leads": lane.leads,
        "epoch": lane.epoch,
        "start": lane.start,
        "end": lane.end,
        "hw": lane.high_watermark,
        "records": [
            {
                "offset": record.offset,
                "id": None if record.id is None else words(record.id),
                "epoch": record.epoch if isinstance(record.epoch, int) else None,
                "text": record_words(record.id, record.epoch),
                "cells": list(record.cells),
            }
            for record in lane.records
        ],
        "values": [_value(value) for value in lane.values],
        "marks": {
            "end": f"{story.view.end}[{replica}]",
            "hw": f"{story.view.high_watermark}[{replica}]",
        },
    }


def _breach(story: Story, breach: Breach) -> Json:
    return {
        "invariant": printable(breach.invariant),
        "promise": printable(story.promises.get(breach.invariant, "")),
        "detail": printable(breach.detail),
        "cells": [printable(cell) for cell in breach.cells],
    }
