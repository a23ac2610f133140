"""What ``fencepost mine`` found as one self-contained HTML page: bugs with their diagrams, coverage, what was not read.

All text is in the page itself; its script adds the diagrams. No network, no inline handler or style, and a content
security policy that names the one script and the one style sheet (see ``page.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from ..mine.answer import Answer, Coverage, Group, Share
from ..run_report import Story
from ..text import counted, printable
from .lanes import pairs_words
from .page import TEXT_WIDTH, embedded, environment, joined, page_data, policy
from .text import render_text

_KINDS: Final = {
    "guard": "a step that the model refuses",
    "effect": "a step with another outcome than the model's",
    "promise": "allowed steps that break a promise",
}


def render_mining(answer: Answer, corpus: str, stories: Sequence[Story | None]) -> str:
    """The page as text, for a file encoded in UTF-8.

    ``corpus``: what was mined, as the reader knows it. ``stories``: one for each group of the answer, None where it has
    no minimal trace.
    """
    script, style = joined("diagram.js", "step.js", "mining.js"), joined("story.css", "mining.css")
    told = [None if story is None else page_data(story) for story in stories]
    return (
        environment()
        .get_template("mining.html.j2")
        .render(
            policy=policy(script=script, style=style),
            style=Markup(style),  # noqa: S704 - our own file, named by its hash in the policy
            script=Markup(script),  # noqa: S704 - likewise
            data=Markup(embedded(list(told))),  # noqa: S704 - embedded() escapes every "<"
            corpus=printable(corpus),
            verdict=answer.verdict.value,
            headline=headline(answer),
            tiles=_tiles(answer),
            groups=[
                _group(number, group, story, answer)
                for number, (group, story) in enumerate(zip(answer.groups, stories, strict=True), 1)
            ],
            left_off=answer.groups_left_off,
            unknown=[
                {"reason": printable(each.reason), "count": _number(each.count), "first": each.first}
                for each in answer.unknown
            ],
            problems=[
                {"where": printable(each.where), "what": printable(each.what), "mend": printable(each.mend)}
                for each in answer.problems
            ],
            coverage=[_coverage(each) for each in answer.coverage],
        )
    )


def headline(answer: Answer) -> str:
    """The outcome in a sentence or two."""
    against = f"held against {' and '.join(map(printable, answer.variants))}"
    traces = counted(answer.traces, "trace")
    if answer.violating_traces:
        bugs = len(answer.groups) + answer.groups_left_off
        share = f"{_number(answer.violating_traces)} of {traces}"
        first = f"{counted(bugs, 'bug')} in {share}, {against}."
    else:
        first = f"No bug in {traces}, {against}."
    rest = ""
    if answer.unknown:
        count = sum(each.count for each in answer.unknown)
        rest += (
            f" Of {_number(count)} more nothing certain is known."
            if answer.violating_traces
            else (f" Of {_number(count)} nothing certain is known.")
        )
    if answer.problems:
        count = len(answer.problems)
        rest += f" {counted(count, 'file')} or part{'' if count == 1 else 's'} could not be read."
    return first + rest


def _tiles(answer: Answer) -> list[dict[str, str]]:
    tiles = [
        ("traces", _number(answer.traces)),
        ("events", _number(answer.events)),
        ("violating traces", _number(answer.violating_traces)),
        ("bugs", _number(len(answer.groups) + answer.groups_left_off)),
        ("seconds", f"{answer.seconds:,.1f}"),
        ("events a second", f"{answer.events_per_second:,.0f}"),
    ]
    return [{"label": label, "value": value} for label, value in tiles]


def _group(number: int, group: Group, story: Story | None, answer: Answer) -> dict[str, object]:
    return {
        "number": number,
        "name": printable(str(group.bug)),
        "kind": _KINDS[group.bug.kind],
        "protocol": printable(group.bug.protocol),
        "variant": printable(group.variant),
        "constants": pairs_words(dict(group.constants)),
        "count": _number(group.count),
        "share": _percent(group.count, answer.traces),
        "first": group.first,
        "shortest": group.shortest,
        "prefix": _number(group.prefix),
        "steps": None if group.minimal is None else len(group.minimal),
        "minimised": group.minimised,
        "shape": [printable(each) for each in group.shape],
        "signatures": _number(group.signatures),
        "then": [
            {"name": printable(name), "count": _number(count), "after": after}
            for name, (count, after) in group.then.items()
        ],
        "mutants": [printable(each) for each in group.mutants],
        "note": None if group.note is None else printable(group.note),
        "file": group.file,
        "test": group.test,
        "text": None if story is None else render_text(story, width=TEXT_WIDTH),
    }


def _coverage(found: Coverage) -> dict[str, object]:
    most = max(found.actions.values(), default=0)
    small = pairs_words(dict(found.small))
    return {
        "model": printable(f"{found.protocol} {found.variant}"),
        "constants": pairs_words(dict(found.constants)),
        "events": _number(found.events),
        "shares": [
            _share("states", found.states),
            _share("steps", found.steps),
            _share(f"abstract states, at {small}", found.abstract),
            _share("moves between them", found.moves),
        ],
        "actions": [
            {"name": printable(name), "count": _number(count), "width": _width(count, most), "seen": count > 0}
            for name, count in found.actions.items()
        ],
        "actions_unseen": len(found.actions_unseen),
        "guards": len(found.guards),
        "guards_unseen": [printable(each) for each in found.guards_unseen],
        "idle": [printable(each) for each in found.idle],
        "unvisited": [{"state": printable(each.state), "steps": each.steps} for each in found.unvisited],
        "unvisited_left_out": _number(found.unvisited_left_out) if found.unvisited_left_out else "",
        "rarest": [
            {
                "action": printable(each.action),
                "state": printable(each.state),
                "count": _number(each.count),
                "first": each.first,
            }
            for each in found.rarest
        ],
        "notes": [printable(each) for each in found.notes],
    }


def _share(label: str, share: Share) -> dict[str, object]:
    counted = "not counted" if share.visited is None else _number(share.visited)
    if share.of is not None and share.visited is not None:
        counted += f" of {_number(share.of)}"
    known = share.visited is not None and share.of is not None
    percent = _percent(share.visited or 0, share.of or 0) if known else ""
    return {
        "label": printable(label),
        "counted": counted,
        "percent": f"about {percent}" if percent and share.estimated else percent,
        "width": _width(share.visited or 0, share.of or 0) if known else None,
    }


def _number(count: int) -> str:
    return f"{count:,}"


def _percent(part: int, whole: int) -> str:
    """``12.3 %``; what is not nothing never reads as nothing, and what is not all never as all."""
    if not whole:
        return ""
    share = 100 * part / whole
    if 0 < share < 0.001:
        return "< 0.001 %"
    if part < whole and share > 99.9:
        return "> 99.9 %"
    return f"{share:.3g} %"


def _width(part: int, whole: int) -> float:
    """The length of a bar of 100, and at least enough to be seen where there is something."""
    return 0.0 if not part or not whole else max(0.5, round(100 * part / whole, 2))
