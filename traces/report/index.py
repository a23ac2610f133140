"""The report folder of a check: ``index.html``, ``report.json``, ``junit.xml`` and a page per counterexample.

Nothing in it but ``seconds`` depends on the machine or the hour.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from markupsafe import Markup

from ..run_report import to_json
from ..text import printable
from .answer import Answer
from .beside import render_beside
from .folder import REPORT, new_folder
from .junit import junit_of
from .obligation import Note, Obligation, grouped, overall, summary
from .overview import Overview
from .page import environment, joined, policy, render_page
from .replicas import COLUMNS, MARK, NUMBERS

FORMAT: Final = "fencepost-report"
VERSION: Final = 1

__all__ = ["Note", "Obligation", "Overview", "overall", "report_json", "summary", "write_report"]


def write_report(
    folder: Path,
    results: Sequence[Obligation],
    notes: Sequence[Note] = (),
    overview: Overview | None = None,
    answer: Answer | None = None,
) -> Path:
    """Write the report and return the path of its ``index.html``. An older report in ``folder`` is replaced.

    ``notes`` are on the page, in ``report.json`` and, as the output of the last suite, in ``junit.xml``. ``overview``
    and ``answer`` are on the page and in ``report.json``.

    Raises ``BadInput`` when ``folder`` holds something that is not a report, or cannot be written: nothing is
    touched then, and no temporary folder is left behind.
    """
    with new_folder(folder, FORMAT) as building:
        _fill(building, results, notes, overview, answer)
    return Path(folder).absolute() / "index.html"


def report_json(
    results: Sequence[Obligation],
    notes: Sequence[Note] = (),
    overview: Overview | None = None,
    answer: Answer | None = None,
) -> dict[str, object]:
    """The report as one JSON object; ``story`` is the page of the counterexample, relative to the folder."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "verdict": overall(results) if answer is None else answer.verdict,
        **({} if answer is None else answer.to_json()),
        "summary": summary(results),
        "seconds": round(sum(each.seconds for each in results), 3),
        **({} if overview is None else {"overview": overview.to_json()}),
        "obligations": [
            {
                "name": each.name,
                "group": each.group,
                "verdict": each.verdict,
                "expected": each.expected,
                "met": each.met,
                "optional": each.optional,
                "detail": each.detail,
                "count": each.count,
                "unit": each.unit,
                "seconds": round(each.seconds, 3),
                "story": f"stories/{name}.html" if each.story is not None or each.beside is not None else None,
            }
            for each, name in zip(results, _names(results), strict=True)
        ],
        "notes": [{"kind": note.kind, "text": note.text} for note in notes],
    }


def _fill(
    building: Path,
    results: Sequence[Obligation],
    notes: Sequence[Note],
    overview: Overview | None,
    answer: Answer | None,
) -> None:
    (building / "stories").mkdir()
    for each, name in zip(results, _names(results), strict=True):
        if each.story is not None:
            page = building / "stories" / f"{name}.html"
            page.write_text(render_page(each.story), encoding="utf-8")
            page.with_suffix(".json").write_text(to_json(each.story) + "\n", encoding="utf-8")
        elif each.beside is not None:
            runs = [f"{name}-{number}" for number in range(1, 1 + len(each.beside.sides))]
            for run, side in zip(runs, each.beside.sides, strict=True):
                (building / "stories" / f"{run}.html").write_text(render_page(side.story), encoding="utf-8")
                (building / "stories" / f"{run}.json").write_text(to_json(side.story) + "\n", encoding="utf-8")
            both = render_beside(each.beside, [f"{run}.html" for run in runs])
            (building / "stories" / f"{name}.html").write_text(both, encoding="utf-8")
    report = json.dumps(report_json(results, notes, overview, answer), indent=2, allow_nan=False)
    (building / REPORT).write_text(report + "\n", encoding="utf-8")
    (building / "index.html").write_text(_index(results, notes, overview, answer), encoding="utf-8")
    junit_of(results, "fencepost", notes).write(str(building / "junit.xml"), pretty=True)


def _names(results: Sequence[Obligation]) -> list[str]:
    """A file name for each obligation: its place in the list, then what is safe of its name."""
    return [
        f"{place:03d}-{re.sub(r'[^a-z0-9]+', '-', f'{each.group} {each.name}'.lower()).strip('-')[:80]}".rstrip("-")
        for place, each in enumerate(results, start=1)
    ]


def _index(
    results: Sequence[Obligation], notes: Sequence[Note], overview: Overview | None, answer: Answer | None
) -> str:
    style = joined("tables.css", "index.css")
    # By identity: two obligations may be equal, and each still has a page of its own.
    names = {id(each): name for each, name in zip(results, _names(results), strict=True)}
    # A check over files shows first what does not hold; a check of everything has one table.
    unmet = [each for each in results if answer is None or not each.met]
    met = [] if answer is None else [each for each in results if each.met]
    return (
        environment()
        .get_template("index.html.j2")
        .render(
            policy=policy(style=style),
            style=Markup(style),  # noqa: S704 - our own file, named by its hash in the policy
            verdict=overall(results) if answer is None else answer.verdict,
            answer=None if answer is None else _shown(answer),
            summary=summary(results),
            seconds=f"{sum(each.seconds for each in results):.1f}",
            overview=None if overview is None else overview.to_html(),
            unmet=_rows(unmet, names),
            met=_rows(met, names),
            met_count=len(met),
            notes=[{"kind": note.kind, "text": printable(note.text)} for note in notes],
        )
    )


def _shown(answer: Answer) -> dict[str, object]:
    """The answer as the page has it: every text printable."""
    cells = [[printable(cell.strip()) for cell in row.cells] for row in answer.replicas.rows]
    used = [n for n in range(len(COLUMNS)) if any(row[n] for row in cells)]
    rows = [
        [{"text": row[n].removesuffix(MARK), "differs": MARK in row[n], "number": n in NUMBERS} for n in used]
        for row in cells
    ]
    return {
        "headline": printable(answer.headline),
        "findings": [
            {
                "verdict": each.verdict,
                "subject": printable(each.subject),
                "text": printable(each.text),
                "details": [printable(line) for line in each.details],
            }
            for each in answer.findings
        ],
        "next_steps": [printable(step) for step in answer.next_steps],
        "notes": [printable(note) for note in answer.notes],
        "last_line": printable(answer.last_line),
        "columns": [{"text": COLUMNS[n], "number": n in NUMBERS} for n in used],
        "rows": rows[: answer.replicas.shown],
        "others": rows[answer.replicas.shown :],
        "equal": len(answer.replicas.equal),
    }


def _rows(results: Sequence[Obligation], names: Mapping[int, str]) -> list[dict[str, object]]:
    """Obligations by group. ``names``: the file name of each, by its identity."""
    return [
        {
            "name": printable(group),
            "rows": [
                {
                    "name": printable(each.name),
                    "detail": printable(each.detail),
                    "outcome": each.outcome,
                    "kind": "met" if each.met else each.verdict,
                    "mark": "\u2713" if each.met else "?" if each.verdict == "unknown" else "\u2717",
                    "count": f"{each.count:,}",
                    "unit": printable(each.unit),
                    "seconds": f"{each.seconds:.2f}",
                    "page": f"stories/{names[id(each)]}.html" if each.story or each.beside else None,
                    "link": "side by side" if each.story is None else f"{each.story.moments[-1].step} steps",
                }
                for each in members
            ],
        }
        for group, members in grouped(results).items()
    ]
