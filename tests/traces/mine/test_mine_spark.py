"""The same answer on Spark as in one process."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fencepost.traces.corpus.spread import SERIAL
from fencepost.traces.mine.answer import TIMES, Answer
from fencepost.traces.mine.job import Asked, mine
from fencepost.traces.mine.workers import Progress

pytestmark = pytest.mark.spark


def text(answer: Answer) -> str:
    """The answer without what is timed."""
    return json.dumps({name: value for name, value in answer.to_json().items() if name not in TIMES})


def test_every_master_gives_the_same_answer(planted: Any) -> None:
    """One process over one file; one core over seven; two cores over sixty-four."""
    wanted = text(mine(Asked(planted(1)), SERIAL))
    for master, files in (("local[1]", 7), ("local[2]", 64)):
        told: list[Progress] = []
        assert text(mine(Asked(planted(files)), master, told.append)) == wanted
        last = told[-1]
        assert (last.files, last.of, last.violations) == (files, files, 40)
