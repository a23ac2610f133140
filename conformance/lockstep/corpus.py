"""Runs of an implementation as a corpus: each trace is one run in lockstep, drawn from the seed and its id alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from ...model.core.ground import ground
from ...traces.corpus.convert import events_of
from ...traces.corpus.draws import Draws, Purpose
from ...traces.corpus.files import PART, write_events
from ...traces.corpus.layout import CorpusLayout, Events
from ...traces.corpus.simulate import FileDone, Simulation, WriteFile
from ..harness import in_lockstep
from .adapter import Adapter
from .choice_log import tape_of
from .coverage import Coverage
from .generate import Chooser, SeededSource
from .goals import Goals
from .play import play
from .registry import make_adapter
from .space import Space

_TOGETHER: Final = 256
"""Traces that are held as objects before they become columns."""


def adapter_variant(impl: str, protocol: str, variant: str | None) -> str:
    """The variant that an adapter is held to. Raises BadInput where there is no such adapter, or it has no binding."""
    with closing(make_adapter(impl, protocol, variant)) as adapter:
        in_lockstep(protocol, f"--impl {impl}")
        return variant or adapter.variant


def runs_of(impl: str) -> WriteFile:
    """What writes the files of a simulation of this implementation."""
    return partial(_write_file, impl)


def _write_file(impl: str, asked: Simulation, folder: str, number: int) -> FileDone:
    low, high = asked.cuts()[number]
    text, binding = in_lockstep(asked.protocol, f"--impl {impl}")
    system = ground(text.traced(asked.variant), dict(asked.constants))
    layout = CorpusLayout.of(asked.header)
    lengths: list[int] = []
    with closing(make_adapter(impl, asked.protocol, asked.variant)) as adapter:
        space = Space(system, binding)
        coverage = Coverage(space)
        # What one run has met must not weigh in the next, which may be drawn by another process.
        coverage.frozen = True
        chooser = Chooser(space, coverage, adapter.faults, Goals(space))
        events = _events(asked, layout, adapter, chooser, coverage, range(low, high), lengths)
        written = write_events(Path(folder) / PART.format(number), layout, events)
    return FileDone(written, sum(length < asked.events for length in lengths))


def _events(
    asked: Simulation,
    layout: CorpusLayout,
    adapter: Adapter,
    chooser: Chooser,
    coverage: Coverage,
    ids: range,
    lengths: list[int],
) -> Iterator[Events]:
    seeds = (Draws(asked.seed).bits(np.array(ids, dtype=np.int64), 0, Purpose.RUN) >> np.uint64(32)).tolist()
    space = chooser.space
    for at in range(0, len(ids), _TOGETHER):
        kept = []
        for trace, seed in zip(ids[at : at + _TOGETHER], seeds[at : at + _TOGETHER], strict=True):
            played = play(space, adapter, seed, chooser, SeededSource(seed), asked.events, coverage)
            told = tape_of(space.system, played, adapter.name)
            # A try may be several steps, so that there may be more events than tries.
            kept.append((trace, replace(told, events=told.events[: asked.events])))
            lengths.append(len(kept[-1][1]))
        yield events_of(layout, kept)
