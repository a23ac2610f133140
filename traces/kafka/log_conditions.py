"""What brokers' logs say of the model's final state, as conditions on named cells: one text for every engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from .abstraction import ABSENT, Abstraction

Atom: TypeAlias = tuple[str, str, "str | int"]
"""A cell, ``==``, ``!=`` or ``>=``, and another cell or a number."""

Condition: TypeAlias = tuple[Atom, ...]
"""At least one of the atoms holds."""


def log_conditions(target: Abstraction) -> Iterator[Condition]:
    """Yield the conditions on the logs: LEO, high watermark, and each record's epoch and identity."""
    for r in range(len(target.nodes)):
        yield ((f"leo[{r}]", "==", target.end(r)),)
        mark = target.high_watermarks[r]
        if mark is not None:
            yield ((f"hw[{r}]", ">=", mark),)
        for o, block in enumerate(target.blocks):
            if block.identities[r] == ABSENT:
                continue
            yield ((f"record_epoch[{r}][{o}]", "==", target.epochs[block.epochs[r]]),)
            for other in range(r):
                if block.identities[other] != ABSENT:
                    same = block.identities[r] == block.identities[other]
                    yield ((f"record_id[{r}][{o}]", "==" if same else "!=", f"record_id[{other}][{o}]"),)


def history_conditions(target: Abstraction, last: int) -> Iterator[Condition]:
    """Yield the conditions of the epoch caches on the history of each epoch, up to the model's epoch ``last``.

    ``history_end[E]`` is the LEO that the leader of E had last in E, and -1 while it has not taken E up.
    """
    for r, newest in enumerate(target.newest):
        if newest is None:
            continue
        epoch = target.epochs[newest.epoch]
        if newest.empty:
            yield ((f"request_leader[{epoch}]", "==", r),)
            yield ((f"history_end[{epoch}]", "==", target.end(r)),)
        for later in range(epoch + 1, last + 1):
            yield ((f"request_leader[{later}]", "!=", r), (f"history_end[{later}]", "==", -1))
