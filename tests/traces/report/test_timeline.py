"""The page of a run with messages in flight: what it carries, what it may load, and how a browser draws it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.traces.report.page import policy
from fencepost.traces.report.timeline import Arrival, Row, Sent, Timeline, render_timeline, timeline_data
from markupsafe import escape

from .browser import Page

ROWS = (
    Row(1, "call produce at 0 (record=1)", "call", "produce", 0, changes=(("leo[0]", "0", "1"),), model=("write(0)",)),
    Row(2, "timer fetch at 1", "timer", "fetch", 1, sent=(Sent(1, "Fetch", 1, 0), Sent(2, "Fetch", 1, 0))),
    Row(3, "repeat Fetch 1 -> 0", "", "Fetch", 0, Arrival(1, "Fetch", 1, 0, "repeated"), (Sent(3, "Answer", 0, 1),)),
    Row(4, "lose Fetch 1 -> 0", "", "Fetch", 0, Arrival(2, "Fetch", 1, 0, "lost")),
    Row(5, "crash at 1", "crash", "crash", 1, crashed=(1,)),
    Row(6, "start at 1", "start", "start", 1, started=(1,), told="client 4 is told: offset 0"),
    Row(7, "time (ms=30)", "time", "+30 ms", None),
    Row(8, "deliver Answer 0 -> 1", "", "Answer", 1, Arrival(3, "Answer", 0, 1, "arrived"), (Sent(4, "Ack", 1, None),)),
    Row(None, "deliver Old ? -> 1", "", "Old", 1, Arrival(None, "Old", None, 1, "arrived")),
)


@pytest.fixture
def timeline() -> Timeline:
    """A run with every fate of a message, in which the system and the model part in the end."""
    return Timeline(
        protocol="fencing",
        variant="kip-320",
        system="mine",
        constants={"replicas": 2},
        seed=7,
        nodes=(0, 1),
        rows=ROWS,
        sort="no path of the model reaches the observed state",
        headline="deliver Old ? -> 1: leo[1] is 1 in the model, 2 in the implementation",
        why=("the model's guard: follower_fetch wants leo[follower] < leo[leader]",),
        cells=(("leo[1]", "1", "2"),),
        text="1  call produce",
    )


def data_of(page: str) -> object:
    found = re.search(r'<script type="application/json" id="story">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])


def test_the_page_carries_the_run_and_loads_nothing(timeline: Timeline) -> None:
    page = render_timeline(timeline)
    assert data_of(page) == json.loads(json.dumps(timeline_data(timeline)))
    scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
    styles = re.findall(r"<style>(.*?)</style>", page, re.S)
    assert len(scripts) == len(styles) == 1
    assert str(escape(policy(script=scripts[0], style=styles[0]))) in page
    assert "<title>mine does not conform to fencing</title>" in page and "1  call produce" in page
    assert not re.search(r' (?:src|href|on\w+|style)="', page), "nothing is loaded, and nothing inline runs"


def test_nothing_in_a_run_is_markup(timeline: Timeline) -> None:
    evil = "</script><img src=x onerror=alert(1)>\x1b[2J"
    row = replace(ROWS[0], text=evil, label=evil, told=evil, changes=((evil, evil, evil),), model=(evil,))
    page = render_timeline(replace(timeline, rows=(row,), headline=evil, system=evil, text=evil, why=(evil,)))
    assert "<img" not in page and "\x1b" not in page
    assert data_of(page)["headline"].startswith("</script><img")  # type: ignore[index]


def test_a_browser_draws_it(page: Page, tmp_path: Path, timeline: Timeline) -> None:
    from selenium.webdriver.common.keys import Keys

    path = tmp_path / "run.html"
    path.write_text(render_timeline(timeline), encoding="utf-8")
    page.open(path)
    count = "document.querySelectorAll(arguments[0]).length"
    assert page.script(count, ".row") == len(ROWS)
    # Names and dots of a message are drawn in layers of their own.
    drawn = {fate: page.script(count, f".{fate} .arrow") for fate in ("arrived", "repeated", "lost", "flying", "held")}
    assert drawn == {"arrived": 2, "repeated": 1, "lost": 1, "flying": 1, "held": 1}
    assert page.script(count, ".lost .cross") == page.script(count, ".dot.crash") == 1
    assert page.texts(".names span")[:3] == ["controller, clients", "node 0", "node 1"]
    assert page.texts(".lane.down") and "\u00d72" in " ".join(page.texts(".repeated text"))
    assert page.texts(".breach td") == ["leo[1]", "1", "2"]
    assert page.text("[aria-selected=true] .says").startswith("\u00b7deliver Old")
    page.press(Keys.HOME, "#rows")
    assert page.text("[aria-selected=true] .says").startswith("1call produce")
    page.click("#row-1")
    assert page.script(count, ".message.now .arrow") == 2, "what is sent in it is lit up"
    # Everything drawn lies within the drawing, and no lane's name is cut off.
    assert page.script(
        "(() => { const box = document.querySelector('.sketch').getBoundingClientRect();"
        "return [...document.querySelectorAll('.sketch text')].every((each) => { const own = "
        "each.getBoundingClientRect(); return own.left >= box.left - 1 && own.right <= box.right + 1; }); })()"
    )
    page.click("#theme")
    assert page.complaints() == [] and page.requests() == [path.as_uri()]
