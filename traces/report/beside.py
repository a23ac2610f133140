"""Two runs on one page, side by side: what each replica holds after each step, and the state that it makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from ..run_report import Moment, Story
from ..text import printable
from .lanes import pairs_words
from .page import environment, joined, policy


class Box(NamedTuple):
    """Something that a replica holds. ``kind``: ``record``, ``snapshot``, or ``gone`` for what is there no more."""

    where: str
    text: str
    kind: str


@dataclass(frozen=True)
class Row:
    """One moment of a run, and what each replica holds then, in order."""

    moment: Moment
    held: Mapping[int, Sequence[Box]]


@dataclass(frozen=True)
class Side:
    """One of the two runs. ``states``: by replica, what it makes of all that it holds in the end."""

    title: str
    story: Story
    rows: Sequence[Row]
    states: Mapping[int, str]


@dataclass(frozen=True)
class Beside:
    """Two runs that are held side by side: what they are about, in whose words, and what comes of it."""

    title: str
    quote: str
    source: str
    sides: tuple[Side, Side]
    conclusion: str


def render_beside(page: Beside, links: Sequence[str] = ()) -> str:
    """The page as text, with no script in it. ``links``: where each run can be stepped through."""
    style = joined("tables.css", "beside.css")
    return (
        environment()
        .get_template("beside.html.j2")
        .render(
            policy=policy(style=style),
            style=Markup(style),  # noqa: S704 - our own file, named by its hash in the policy
            title=printable(page.title),
            quote=printable(page.quote),
            source=printable(page.source),
            conclusion=printable(page.conclusion),
            sides=[
                _side(each, links[number] if number < len(links) else None) for number, each in enumerate(page.sides)
            ],
        )
    )


def _side(side: Side, link: str | None) -> dict[str, object]:
    story = side.story
    agree = len(set(side.states.values())) == 1
    return {
        "title": printable(side.title),
        "protocol": printable(f"{story.protocol} {story.variant}"),
        "constants": pairs_words(story.constants),
        "headline": printable(story.headline),
        "verdict": story.verdict,
        "agree": agree,
        "link": link,
        "replicas": list(story.replicas),
        "noun": printable(story.noun),
        "rows": [
            {
                "step": row.moment.step,
                "action": printable(row.moment.action) if row.moment.action is not None else "at first",
                "params": pairs_words(row.moment.params),
                "held": [[box._asdict() for box in row.held[replica]] for replica in story.replicas],
            }
            for row in side.rows
        ],
        "states": [printable(side.states[replica]) for replica in story.replicas],
    }
