"""The page of a mining run in a real, headless Chromium: each bug has its diagram, and can be stepped through."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.traces.report.mining import write_mining

from . import mined
from .browser import Page


@pytest.fixture
def written(tmp_path: Path) -> Path:
    write_mining(tmp_path / "out", mined.answer(), "CORPUS")
    return tmp_path / "out" / "index.html"


def steps(page: Page) -> list[str]:
    """The step that each bug shows; the title and the marked column must agree."""
    shown = [text.split()[1].rstrip(":") for text in page.texts(".step-title")]
    marked = page.script("[...document.querySelectorAll('[aria-selected=true]')].map((n) => n.id)")
    assert marked == [f"bug-{number}-step-{step}" for number, step in enumerate(shown, 1)]
    return shown


def test_each_bug_opens_at_the_bad_step(page: Page, written: Path) -> None:
    page.open(written)
    assert page.text("h1") == "fencepost mine CORPUS"
    assert page.text(".badge") == "violated"
    assert page.texts("#tiles dd") == ["200,000", "20,000,000", "1,208", "5", "12.5", "1,600,000"]
    assert steps(page) == ["7", "6"], "the third has no story"
    assert page.script("document.querySelectorAll('svg.diagram').length") == 2
    assert page.script("document.querySelectorAll('#bug-1 .column').length") == 8
    assert page.texts("#bug-1 .alarm b") == ["epoch_not_fenced"]
    assert "leader_epoch[1] is 0, leader_epoch[0] is 1" in page.text("#bug-1 .alarm")
    assert "leo[0] is 1 in the model, 0 in the trace" in page.text("#bug-2 .alarm")
    assert page.script("document.querySelectorAll('#bug-1 .column.broken').length") == 1


def test_a_bug_is_stepped_by_button_key_and_click_and_the_others_stay(page: Page, written: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open(written)
    page.script("document.querySelector('#bug-1').scrollIntoView()")
    page.click("#bug-1 .back")
    assert steps(page) == ["6", "6"]
    page.press(Keys.HOME, "#diagram-1")
    assert steps(page) == ["0", "6"]
    assert page.script("document.querySelector('#bug-1 .back').disabled") is True
    page.press(Keys.ARROW_RIGHT, "#diagram-1")
    assert steps(page) == ["1", "6"]
    page.click("#bug-1-step-3 .hit")
    assert steps(page) == ["3", "6"]
    page.click("#bug-1 details.state summary")
    assert page.script("document.querySelector('#bug-1 .cards .card') !== null") is True
    assert "leader_epoch[1] -1 \u2192 0" in page.texts("#bug-1 .changed-list li")


def test_the_table_leads_to_each_bug(page: Page, written: Path) -> None:
    page.open(written)
    page.click("#bugs tbody tr:nth-child(2) a")
    assert page.script("location.hash") == "#bug-2"
    assert page.script("document.querySelector('#bug-2').getBoundingClientRect().top") < 100


def test_it_asks_the_network_for_nothing_and_the_console_stays_silent(page: Page, written: Path) -> None:
    page.open(written)
    for selector in ("#bug-1 .back", "#theme", "#bug-1 details.state summary", ".coverage details summary"):
        page.click(selector)
    assert page.requests() == [written.as_uri()]
    assert page.complaints() == []


def test_hostile_strings_are_shown_and_not_run(page: Page, tmp_path: Path) -> None:
    bad = "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"
    group = mined.refused()
    assert group.minimal is not None
    header = replace(group.minimal.header, source={bad: bad})
    group = replace(group, note=bad, mutants=(bad,), minimal=replace(group.minimal, header=header))
    write_mining(tmp_path / "out", replace(mined.answer(), groups=(group,)), bad)
    path = tmp_path / "out" / "index.html"
    page.open(path)
    assert page.text("h1") == f"fencepost mine {bad}"
    assert page.script("window.pwned") is None
    assert page.script("document.querySelectorAll('img').length") == 0
    assert page.requests() == [path.as_uri()]
    assert page.complaints() == []


@pytest.mark.parametrize("width", [1300, 520, 360])
def test_nothing_runs_off_the_screen(page: Page, written: Path, width: int) -> None:
    page.driver.set_window_size(width, 900)
    try:
        page.open(written)
        page.script("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert page.script("document.documentElement.scrollWidth <= document.documentElement.clientWidth") is True
    finally:
        page.driver.set_window_size(1300, 1000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_colour_scheme_and_can_be_turned(page: Page, written: Path, scheme: str) -> None:
    feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    try:
        page.open(written)
        colours = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}
        ground = "getComputedStyle(document.body).backgroundColor"
        assert page.script(ground) == colours.pop(scheme)
        page.click("#theme")
        assert page.script(ground) == next(iter(colours.values()))
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_print_and_no_script_have_each_story_as_text(page: Page, written: Path) -> None:
    page.open(written)
    assert page.script("[...document.querySelectorAll('details')].some((each) => each.open)") is False
    page.driver.execute_cdp_cmd("Page.printToPDF", {"landscape": True})
    assert page.script("[...document.querySelectorAll('details')].every((each) => each.open)") is True
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.open(written)
        shown = page.driver.find_elements("css selector", "details.text pre")
        assert [each.is_displayed() for each in shown] == [True, True]
        assert "BROKEN: epoch_not_fenced at step 7" in shown[0].text
        assert not page.driver.find_element("css selector", "#bug-1 .told").is_displayed()
    finally:
        page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_run_without_bugs_has_a_page_too(page: Page, tmp_path: Path) -> None:
    write_mining(tmp_path / "out", mined.clean(), "CORPUS")
    page.open(tmp_path / "out" / "index.html")
    assert page.text(".badge") == "holds"
    assert page.text("#headline") == "No bug in 200,000 traces, held against kip-320."
    assert page.texts("section h2")[0].startswith("What was seen of fencing kip-320")
    assert page.complaints() == []
