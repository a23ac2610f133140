"""Exhaustive exploration: ``explore(query, engine)`` over either interpreter."""

from __future__ import annotations

from ..core.errors import BadInput
from .batch import explore_batch
from .compiled import explore_by_size, explore_compiled
from .reference import explore_reference
from .result import Exploration, Limits, OnProgress, Query, Step, Verdict

__all__ = ["ENGINES", "Exploration", "Limits", "OnProgress", "Query", "Step", "Verdict", "explore"]


def explore_symbolic(query: Query, on_progress: OnProgress | None = None) -> Exploration:
    """By the relation that z3 reads (``symbolic.py``), which is loaded when it is asked: z3 takes longest to load."""
    from .symbolic import explore_symbolic as search

    return search(query, on_progress)


ENGINES = {
    "batch": explore_batch,
    "compiled": explore_compiled,
    "reference": explore_reference,
    "symbolic": explore_symbolic,
}

THREADED = {"auto": explore_by_size, "compiled": explore_compiled}
"""Those that can be told how many threads to use."""


def explore(
    query: Query, engine: str = "batch", on_progress: OnProgress | None = None, threads: int | None = None
) -> Exploration:
    """All reachable states, or a shortest counterexample, or ``unknown`` where a budget runs out first.

    ``engine`` may be ``auto``, too: NumPy, and compiled from where that is quicker. ``threads``: at most so many, of
    these two; by default one a core, up to four. The answer is the same for any number.

    Raises BadInput for an unknown engine, and where there is no C compiler for the compiled one.
    """
    if engine in THREADED:
        return THREADED[engine](query, on_progress, threads)
    if engine not in ENGINES:
        raise BadInput(f"there is no engine {engine!r}", "--engine", f"choose one of {', '.join(ENGINES)}")
    return ENGINES[engine](query, on_progress)
