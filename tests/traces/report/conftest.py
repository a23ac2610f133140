"""Two runs of the fencing model at replicas=3, log_size=2: paths chosen by hand, every state of them computed."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.traces.story import Story, from_json

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
