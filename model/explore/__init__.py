"""Exhaustive exploration: ``explore(query, engine)`` over either interpreter."""

from __future__ import annotations

from ..core.errors import BadInput
from .batch import explore_batch
from .reference import explore_reference
from .result import Exploration, Limits, OnProgress, Query, Step, Verdict

__all__ = ["ENGINES", "Exploration", "Limits", "OnProgress", "Query", "Step", "Verdict", "explore"]


def explore_symbolic(query: Query, on_progress: OnProgress | None = None) -> Exploration:
    """By the relation that z3 reads (``symbolic.py``), which is loaded when it is asked: z3 takes longest to load."""
    from .symbolic import explore_symbolic as search

    return search(query, on_progress)


ENGINES = {"batch": explore_batch, "reference": explore_reference, "symbolic": explore_symbolic}


def explore(query: Query, engine: str = "batch", on_progress: OnProgress | None = None) -> Exploration:
    """All reachable states, or a shortest counterexample, or ``unknown`` where a budget runs out first.

    Raises BadInput for an unknown engine.
    """
    if engine not in ENGINES:
        raise BadInput(f"there is no engine {engine!r}", "--engine", f"choose one of {', '.join(ENGINES)}")
    return ENGINES[engine](query, on_progress)
