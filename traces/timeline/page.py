"""Timelines as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ...model.core.errors import BadInput
from ..report.page import environment, joined, policy
from ..text import printable
from .checkers import TimelineReport
from .describe import time_text
from .rows import PartitionRows, Row
from .text import state_cells, summary, verdict_of

MAX_PAGE_ROWS = 5000
"""Rows of one partition; a page with more is slow to open."""


def render_timelines(
    partitions: Sequence[PartitionRows],
    report: TimelineReport,
    problems: Sequence[BadInput] = (),
    notes: Sequence[str] = (),
) -> str:
    """The page as text, for a file in UTF-8: no script, and nothing from the network."""
    style = joined("tables.css", "partition_timeline.css")
    return (
        environment()
        .get_template("partition_timeline.html.j2")
        .render(
            policy=policy(style=style),
            style=Markup(style),  # noqa: S704 - our own file, named by its hash in the policy
            verdict=verdict_of(report, len(problems)),
            summary=summary(report, len(problems)),
            contradictions=[
                {"verdict": each.verdict, "message": printable(each.message), "anchor": printable(each.partition)}
                for each in report.contradictions
            ],
            problems=[printable(str(each)) for each in problems],
            notes=[printable(each) for each in notes],
            partitions=[_partition(each) for each in partitions],
        )
    )


def _partition(rows: PartitionRows) -> dict[str, object]:
    shown = rows.rows[-MAX_PAGE_ROWS:]
    dates = {time_text(each.seen.time, date=True)[:10] for each in shown if each.seen.time is not None}
    one_day = len(dates) == 1
    relative = any(each.seen.relative for each in shown)
    return {
        "date": f" of {dates.pop()}" if one_day and not relative else "",
        "name": printable(rows.partition),
        "violated": any(each.verdict == "violated" for each in rows.contradictions),
        "left_out": rows.left_out + len(rows.rows) - len(shown),
        "rows": [_row(each, date=not one_day) for each in shown],
        "states": [{"node": node, "cells": state_cells(state)} for node, state in rows.states.items()],
    }


def _row(row: Row, *, date: bool) -> dict[str, object]:
    return {
        "time": time_text(row.seen.time, date=date and not row.seen.relative),
        "who": printable(row.who),
        "text": printable(row.text),
        "line": printable(row.seen.text),
        "where": printable(row.seen.where),
        "cells": state_cells(row.state),
        "marked": row.marked,
    }
