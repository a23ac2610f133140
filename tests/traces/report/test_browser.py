"""The page of a story in a real, headless Chromium: it is opened as a file, stepped through, and watched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.conformance.check.counterexamples import counterexample
from fencepost.conformance.protocols.compaction.tombstones import side_by_side
from fencepost.model.core.ground import ground
from fencepost.model.explore.batch import explore_batch
from fencepost.model.explore.result import Query
from fencepost.model.protocols.controller import controller
from fencepost.traces.report.index import Obligation, write_report
from fencepost.traces.report.page import render_page
from fencepost.traces.run_report import Breach, Call, Moment, Story

from .browser import Page


def written(folder: Path, story: Story) -> Path:
    path = folder / "story.html"
    path.write_text(render_page(story), encoding="utf-8")
    return path


def test_it_opens_where_the_promise_breaks(page: Page, tmp_path: Path, lost_record: Story) -> None:
    page.open(written(tmp_path, lost_record))
    assert page.step() == "12"
    assert page.text("h1") == "fencing truncate-to-hw"
    assert page.text("#verdict") == "violated"
    first = page.texts("#alarm > div")[0]
    assert first.startswith("strong_isr does not hold here")
    assert "leader 0 has high watermark 1, but replica 2 lacks its record at offset 0" in first
    assert len(page.texts(".column")) == 13
    assert page.script("document.querySelectorAll('.column.broken').length") == 1


def test_it_steps_by_button(page: Page, tmp_path: Path, lost_record: Story) -> None:
    page.open(written(tmp_path, lost_record))
    page.click("#first")
    assert page.step() == "0"
    assert page.script("document.getElementById('back').disabled") is True
    page.click("#forward")
    assert page.step() == "1"
    assert "quorum_leader none \u2192 0" in page.texts("#changed li")
    page.click("#back")
    assert page.step() == "0"
    assert page.texts("#changed li") == ["nothing yet: this is where the run starts"]
    page.click("#last")
    assert page.step() == "12"
    assert page.script("document.getElementById('forward').disabled") is True
    page.click("#first")
    page.click("#jump")
    assert page.step() == "12"


def test_it_steps_by_key(page: Page, tmp_path: Path, lost_record: Story) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open(written(tmp_path, lost_record))
    page.press(Keys.HOME)
    assert page.step() == "0"
    for expected in ("1", "2", "3"):
        page.press(Keys.ARROW_RIGHT)
        assert page.step() == expected
    page.press(Keys.ARROW_LEFT)
    assert page.step() == "2"
    page.press(Keys.END)
    page.press(Keys.ARROW_RIGHT)
    assert page.step() == "12"
    page.press(Keys.HOME)
    page.press(Keys.ARROW_RIGHT, "#diagram")
    assert page.step() == "1"
    page.press(Keys.ARROW_RIGHT, "#slider")
    assert page.step() == "2"


def test_it_steps_by_click_and_by_address(page: Page, tmp_path: Path, lost_record: Story) -> None:
    path = written(tmp_path, lost_record)
    page.open(path, "#step=7")
    assert page.step() == "7"
    page.click("#column-3 .hit")
    assert page.step() == "3"
    assert page.script("location.hash") == "#step=3"
    page.script("void (location.hash = '#step=9')")
    page.script("new Promise((done) => setTimeout(done, 50))")
    assert page.step() == "9"
    page.open(path, "#step=99")
    assert page.step() == "12"


def test_a_step_shows_its_state(page: Page, tmp_path: Path, lost_record: Story) -> None:
    page.open(written(tmp_path, lost_record), "#step=12")
    assert page.text('[data-replica="2"] h3') == "Replica 2follows 1 \u00b7 e1"
    assert page.text('[data-cell="leo[2]"]') == "0was 1"
    assert page.script("document.querySelector('[data-cell=\"leo[2]\"]').className") == "changed suspect"
    assert page.script("document.querySelector('[data-cell=\"leo[1]\"]').className") == ""
    label = "document.querySelector('[data-replica=\"%d\"] [role=img]').getAttribute('aria-label')"
    assert page.script(label % 1) == "log of replica 1: 0: 0@e0, 1: 1@e1, high watermark 0, LEO 2"
    assert "cut off" in page.texts('[data-replica="2"] svg text')
    assert page.script("[...document.querySelectorAll('.card.touched')].map((n) => n.dataset.replica)") == ["2"]
    page.click("#back")
    assert "cut off" not in page.texts('[data-replica="2"] svg text')
    assert page.text('[data-cell="leo[2]"]') == "1"


def test_what_belongs_to_no_replica_is_in_tables(page: Page, tmp_path: Path) -> None:
    at = dict(zip(controller.constants, (1, 1, 1, 2, 0, 1, 1, 1), strict=True))
    found = explore_batch(Query.of(ground(controller.traced("snapshot-pending"), at)))
    story = counterexample(found.query.system, found)
    assert story is not None
    page.open(written(tmp_path, story))
    cells = 'document.querySelectorAll(".cells [data-cell]")'
    shown = page.script(f"[...{cells}].map((n) => n.dataset.cell)")
    assert {"record_kind[0]", "record_kind[1]", "prefix_isr[1][0]", "node_isr[0][0]"} <= set(shown)
    assert len(shown) == len(set(shown)), "each cell is there once"
    column = "[...n.closest('table').querySelectorAll('thead th')][n.cellIndex].textContent"
    row = "n.closest('tr').querySelector('th').textContent"
    places = page.script(f"Object.fromEntries([...{cells}].map((n) => [n.dataset.cell, [{row}, {column}]]))")
    # A row for each index, or for each variable where there are many of few indices.
    assert places["prefix_isr[1][0]"] == ["[1, 0]", "prefix_isr"] and places["node_isr[0][0]"] == ["node_isr", "[0, 0]"]
    # No value is broken in two: each is one line high.
    assert page.script(f"Math.max(...[...{cells}].map((n) => n.getBoundingClientRect().height))") < 30


def test_what_could_happen_next_marks_what_did(page: Page, tmp_path: Path, lost_record: Story) -> None:
    page.open(written(tmp_path, lost_record), "#step=8")
    enabled = page.texts("#enabled li")
    assert len(enabled) == len(lost_record.moments[8].enabled)
    assert page.texts("#enabled li.taken") == ["controller_elect_leader(new_leader=1) (taken)"]
    assert page.texts("#alarm .note") == ["Record 0 is committed: replica 0 has told its producer so."]


def test_a_lasso_shows_its_loop(page: Page, tmp_path: Path, lasso: Story) -> None:
    page.open(written(tmp_path, lasso))
    assert page.step() == "7"
    assert page.texts(".loop-text") == ["repeats for ever"]
    assert "steps 6 to 7 repeat for ever" in page.text("#alarm")
    page.open(written(tmp_path, replace(lasso, moments=lasso.moments[:6], loop_start=5)))
    assert page.texts(".loop-text") == ["stays for ever"]


def test_it_asks_the_network_for_nothing_and_the_console_stays_silent(
    page: Page, tmp_path: Path, lost_record: Story
) -> None:
    path = written(tmp_path, lost_record)
    page.open(path)
    for selector in ("#first", "#forward", "#theme", "#last", "summary"):
        page.click(selector)
    assert page.requests() == [path.as_uri()]
    assert page.complaints() == []


def test_the_watch_on_the_network_would_see_a_request(page: Page, tmp_path: Path, lost_record: Story) -> None:
    """The planted fault: an image from elsewhere. Without the policy it is asked for, with it it is refused."""
    whole = render_page(lost_record)
    image = '<img src="http://127.0.0.1:9/x.png">'
    path = tmp_path / "story.html"
    path.write_text(whole.replace("Content-Security-Policy", "ignored").replace("<main>", "<main>" + image))
    page.open(path)
    assert "http://127.0.0.1:9/x.png" in page.requests()
    path.write_text(whole.replace("<main>", "<main>" + image))
    page.open(path)
    assert any("Content Security Policy" in each for each in page.complaints())


def test_hostile_strings_are_shown_and_not_run(page: Page, tmp_path: Path, lost_record: Story) -> None:
    bad = "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"
    moments = tuple(
        Moment(
            step,
            bad,
            {bad: bad, "leader": bad},
            {"leo[0]": 1, "record_id[0][0]": bad, "record_epoch[0][0]": bad, bad: f"{bad}{step}"},
            (Call(bad, {bad: bad}),),
            (Breach(bad, bad, (bad,)),),
            (bad,),
        )
        for step in (0, 1)
    )
    told = replace(lost_record, protocol=bad, violated=bad, headline=bad, promises={bad: bad}, moments=moments)
    path = written(tmp_path, told)
    page.open(path)
    page.click("#last")
    assert page.text("#headline") == bad
    assert page.texts("#changed li") == [f"{bad} {bad}0 \u2192 {bad}1"]
    assert page.script("window.pwned") is None
    assert page.script("document.querySelectorAll('img').length") == 0
    assert page.requests() == [path.as_uri()]
    assert page.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_colour_scheme_and_can_be_turned(
    page: Page, tmp_path: Path, lost_record: Story, scheme: str
) -> None:
    feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    try:
        page.open(written(tmp_path, lost_record))
        colours = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}
        ground = "getComputedStyle(document.body).backgroundColor"
        assert page.script(ground) == colours.pop(scheme)
        page.click("#theme")
        assert page.script(ground) == next(iter(colours.values()))
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_print_and_no_script_have_the_whole_run_as_text(page: Page, tmp_path: Path, lost_record: Story) -> None:
    page.open(written(tmp_path, lost_record))
    assert page.script("document.getElementById('text').open") is False
    page.driver.execute_cdp_cmd("Page.printToPDF", {"landscape": True})
    assert page.script("document.getElementById('text').open") is True
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.open(tmp_path / "story.html")
        shown = page.driver.find_element("css selector", "#text pre")
        assert shown.is_displayed()
        assert "BROKEN: strong_isr at step 12" in shown.text
    finally:
        page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_nothing_runs_off_a_narrow_screen(page: Page, tmp_path: Path, lost_record: Story) -> None:
    page.driver.set_window_size(520, 900)
    try:
        page.open(written(tmp_path, lost_record))
        assert page.script("document.documentElement.scrollWidth <= document.documentElement.clientWidth") is True
        box = page.script(
            "(() => { const b = document.getElementById('scroll'); return [b.scrollLeft, b.scrollWidth]; })()"
        )
        assert box[1] > 520
    finally:
        page.driver.set_window_size(1300, 1000)


def test_a_long_run_stays_quick_and_keeps_the_step_in_sight(page: Page, tmp_path: Path, lost_record: Story) -> None:
    first, *rest = lost_record.moments
    many = [replace(rest[at % 12], step=at + 1, broken=()) for at in range(400)]
    told = replace(lost_record, moments=(first, *many), verdict="holds", violated=None)
    page.open(written(tmp_path, told), "#step=350")
    assert page.step() == "350"
    inside = """(() => {
      const box = document.getElementById('scroll').getBoundingClientRect();
      const column = document.querySelector('[aria-selected=true] .hit').getBoundingClientRect();
      return column.left >= box.left && column.right <= box.right;
    })()"""
    page.script("new Promise((done) => setTimeout(done, 100))")
    assert page.script(inside) is True


def test_the_report_links_to_the_page(page: Page, tmp_path: Path, lost_record: Story) -> None:
    result = Obligation(
        "truncate-to-hw", "fencing", "violated", "violated", "it breaks", 3869, "states", 0.4, lost_record
    )
    path = write_report(tmp_path / "report", [result])
    page.open(path)
    assert page.texts("thead th") == ["Obligation", "Verdict", "Counted", "Seconds", "Run"]
    page.click("tbody a")
    assert page.step() == "12"
    assert all(each.startswith((tmp_path / "report").as_uri()) for each in page.requests())
    assert page.complaints() == []


def test_two_runs_are_side_by_side_and_each_can_be_stepped_through(page: Page, tmp_path: Path) -> None:
    """The tombstone argument: the columns beside one another, no script, and the link of each leads to its run."""
    told = side_by_side()
    result = Obligation(
        "a slow replica", "runs", "holds", "holds", told.detail, told.states, "states", 5.0, beside=told.page
    )
    page.open(write_report(tmp_path / "report", [result]))
    page.click("tbody a")
    assert page.texts("h2 .badge") == ["states differ", "states agree"]
    tops = page.script("[...document.querySelectorAll('section')].map((n) => n.getBoundingClientRect().top)")
    assert tops[0] == tops[1]
    assert page.script("document.querySelectorAll('script').length") == 0
    assert page.texts("tfoot td")[2:] == ["nothing: every key is deleted"] * 2
    assert page.script("document.documentElement.scrollWidth <= document.documentElement.clientWidth") is True
    page.click("section a")
    assert page.step() == "14"
    assert page.complaints() == []
