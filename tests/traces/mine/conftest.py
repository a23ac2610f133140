"""Small corpora with planted faults, that the tests of mining share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fencepost.traces.corpus.manifest import PLANTED
from fencepost.traces.corpus.plan import make_plan
from fencepost.traces.corpus.simulate import simulate, simulation, walker

FAULTS = (
    "follower_fetch.epoch_not_fenced dropped",
    "leader_inc_high_watermark.isr_acknowledges dropped",
    "become_follower.leo' bound +1",
    "become_leader.epoch_newer bound +1",
)
"""Two guards left out, one off by one, one wrong offset: four bugs."""

TRACES = 700

Corpus = Callable[..., Path]


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A corpus of walks of the safe variant at 2/2/2/2, 40 of 700 planted, in so many files; written once each."""
    made: dict[tuple[int, bool], Path] = {}

    def write(files: int = 3, faults: bool = True) -> Path:
        if (files, faults) not in made:
            asked = simulation("fencing", None, {"replicas": 2}, TRACES, 40, 3, files)
            folder = tmp_path_factory.mktemp("corpora") / f"{files}"
            plan = make_plan(walker(asked, FAULTS), FAULTS, FAULTS, TRACES, 40, 40) if faults else None
            simulate(asked, folder, plan)
            made[files, faults] = folder
        return made[files, faults]

    return write


@pytest.fixture(scope="session")
def truth() -> Callable[[Path], dict[int, dict[str, object]]]:
    """What was planted in a corpus, by trace id."""

    def read(corpus: Path) -> dict[int, dict[str, object]]:
        lines = (corpus / PLANTED).read_text(encoding="utf-8").splitlines()
        return {each["trace"]: each for each in map(json.loads, lines)}

    return read
