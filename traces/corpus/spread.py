"""Independent pieces of work, spread by Spark or done one after the other: the results are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ...model.core.errors import BadInput
from ..shipping import carried
from ..spark import collected, spark_session

T = TypeVar("T")
R = TypeVar("R")

SERIAL: Final = "serial"
"""The master that is none: this process does the work, and no Spark is needed."""

OnDone = Callable[[int, int], None]
"""Told how many pieces are done, of how many."""


def spread(
    pieces: Sequence[T], work: Callable[[T], R], master: str = SERIAL, on_done: OnDone | None = None
) -> list[R | BadInput]:
    """The result of each piece, in their order; where the work on one raises BadInput, that stands in its place.

    ``master``: ``SERIAL`` or a master of Spark's. There a piece is a task; ``work`` and results are pickled.
    Raises BadInput where Spark does not start, or gives up.
    """
    told = on_done or (lambda _done, _of: None)
    told(0, len(pieces))
    if master != SERIAL:
        return _on_spark(pieces, work, master, told)
    results: list[R | BadInput] = []
    for piece in pieces:
        results.append(_caught(work, piece))
        told(len(results), len(pieces))
    return results


def _caught(work: Callable[[T], R], piece: T) -> R | BadInput:
    try:
        return work(piece)
    except BadInput as wrong:
        return wrong


def _on_spark(pieces: Sequence[T], work: Callable[[T], R], master: str, told: OnDone) -> list[R | BadInput]:
    session = spark_session("fencepost", master)
    context = session.sparkContext
    done = context.accumulator(0)

    def task(piece: T) -> R | BadInput:
        result = _caught(work, piece)
        done.add(1)
        return result

    # A task that is run twice is counted twice.
    results: list[R | BadInput] = collected(
        context.parallelize(pieces, max(len(pieces), 1)).map(carried(task)),
        lambda: told(min(done.value, len(pieces)), len(pieces)),
    )
    told(len(pieces), len(pieces))
    return results
