"""The page of a check over brokers' files in a real, headless Chromium, at the widths of a desktop and a phone."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.conformance.check.files import read_cluster
from fencepost.conformance.check.judge import file_answer
from fencepost.traces.kafka.capture import broker_directories, bundled_corpus
from fencepost.traces.report.index import Obligation, write_report

from .browser import Page

WIDE = (
    "[...document.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
    ".map(e => e.tagName + ' ' + e.className)"
)
BROKEN = (
    "[...document.querySelectorAll('.verdict')].filter(e => e.getBoundingClientRect().height > 0 && "
    "e.scrollHeight > 2.6 * parseFloat(getComputedStyle(e).lineHeight)).map(e => e.textContent)"
)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    answer = file_answer(read_cluster("", broker_directories(bundled_corpus(), "6-unclean-election")))
    results = [
        Obligation("committed_records_kept", "files", "violated", "holds", "payments-0: lost", 4, "logs", 0.0),
        Obligation("epochs_monotone", "files", "holds", "holds", "in all 15", 15, "logs", 0.0),
    ]
    return write_report(tmp_path / "report", results, answer=answer)


@pytest.mark.parametrize("width", [1280, 800, 500])
def test_nothing_is_clipped_and_no_verdict_is_broken(page: Page, report: Path, width: int) -> None:
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        page.open(report)
        assert page.script(WIDE) == []
        assert page.script(BROKEN) == []
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_page_has_the_order_of_the_screen(page: Page, report: Path) -> None:
    page.open(report)
    assert page.text(".badge") == "violated"
    assert page.texts("h2") == ["Problems", "What to do next", "Replicas", "Checks that do not hold"]
    assert page.texts("h2 + .wide .differs") == ["0*", "1*", "1*", "0*"]
    assert page.script("document.querySelectorAll('details[open]').length") == 0
