"""Small corpora that the tests share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fencepost.traces.corpus.convert import events_of
from fencepost.traces.corpus.files import PART, Written, write_events
from fencepost.traces.corpus.layout import CorpusHeader, CorpusLayout, Events
from fencepost.traces.corpus.manifest import write_manifest
from fencepost.traces.format import Trace
from fencepost.traces.record import record

CONSTANTS = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}


@pytest.fixture(scope="session")
def layout() -> CorpusLayout:
    """Of the safe variant at 2/2/2/2."""
    return CorpusLayout.of(CorpusHeader("fencing", "kip-320", CONSTANTS))


@pytest.fixture(scope="session")
def traces(model: Any, walk: Any) -> list[Trace]:
    """Twelve walks of the safe variant at 2/2/2/2, of 1 to 12 steps."""
    stepper = model("kip-320", 2, 2, 2, 2)
    draw = np.random.default_rng(5)
    walks = []
    for length in range(1, 13):
        while len(found := walk(stepper, draw.integers(0, 1000, size=length).tolist())) < length:
            pass  # ended early
        walks.append(found)
    return [record(stepper.system, each) for each in walks]


@pytest.fixture(scope="session")
def events(layout: CorpusLayout, traces: list[Trace]) -> Events:
    """The same as columns, numbered from 0."""
    return events_of(layout, enumerate(traces))


@pytest.fixture
def corpus(tmp_path: Path, layout: CorpusLayout, events: Events) -> Callable[..., Path]:
    """Write the walks as a corpus of so many files."""

    def write(files: int = 3, manifest: bool = True) -> Path:
        folder = tmp_path / "corpus"
        folder.mkdir()
        cuts = [*(int(events.starts[n]) for n in range(0, 12, 12 // files)), len(events)]
        written: list[Written] = []
        for number, (low, high) in enumerate(pairwise(cuts)):
            written.append(write_events(folder / PART.format(number), layout, [events.rows(low, high)]))
        if manifest:
            write_manifest(folder, written)
        return folder

    return write
