"""Two runs of the fencing model at replicas=3, log_size=2, every state of them computed; and a browser to show them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fencepost.traces.run_report import Story, from_json

from .browser import Page, started

DATA = Path(__file__).parent / "data"


def load(name: str) -> Story:
    path = DATA / f"{name}.story.json"
    return from_json(path.read_text(encoding="utf-8"), str(path))


@pytest.fixture
def lost_record() -> Story:
    """truncate-to-hw: twelve steps to a follower that cuts off a committed record; strong_isr breaks."""
    return load("truncate_to_hw")


@pytest.fixture
def lasso() -> Story:
    """kip-320 with no fairness: the ISR shrinks and grows for ever; the loop goes from step 7 back to step 5."""
    return load("lasso")


@pytest.fixture
def data() -> Path:
    return DATA


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests: it takes seconds to start."""
    with started(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture
def page(driver: Any) -> Page:
    return Page(driver)
