"""The same answer on Spark as in one process; it runs where PySpark is installed (``tox -e spark``)."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest
from fencepost.traces.corpus.spread import SERIAL
from fencepost.traces.mine.answer import TIMES, Answer
from fencepost.traces.mine.job import Asked, mine
from fencepost.traces.mine.workers import Progress

has_spark = importlib.util.find_spec("pyspark") is not None
pytestmark = pytest.mark.skipif(not has_spark, reason="PySpark is not installed (the extra 'spark' brings it)")


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
