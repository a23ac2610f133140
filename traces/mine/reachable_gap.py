"""What the model reaches and a corpus does not: the whole graph at small constants beside what was visited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ...model.core import terms
from ...model.core.budget import too_large
from ...model.core.domains import Constants
from ...model.core.ground import ground
from ...model.core.protocol import TracedProtocol
from ...model.core.registry import PROTOCOLS
from ...model.explore.batch import Search, search_batch
from ...model.explore.result import Limits, Query, Verdict
from .abstract import Abstraction, true_of
from .answer import Coverage, Rare, Share, Unvisited
from .coverage import KEPT, Prints, Seen, fingerprints, step_prints
from .part import Model
from .promises import BLOCK

MAX_STATES: Final = 1_000_000
"""A graph of more states is not explored: one second, and 150 MB."""

SHOWN: Final = 10
"""So many unvisited abstract states, and so many of the rarest moves, are told."""


@dataclass(frozen=True)
class Graph:
    """All that a variant reaches at some constants.

    ``marks``: of each abstract state the fewest steps to it. ``moves``: how many actions can happen in them, each
    abstract state by itself. ``deciding``: the guards that alone refuse a step somewhere. ``states`` and ``steps`` are
    fingerprints.
    """

    constants: Constants
    abstraction: Abstraction
    marks: Mapping[int, int]
    moves: int
    deciding: frozenset[str]
    states: Prints
    steps: Prints


def whole_graph(traced: TracedProtocol, constants: Constants, max_states: int = MAX_STATES) -> Graph | None:
    """The graph at these constants; None where it has more states, or is too large to be grounded."""
    if too_large(traced, constants) is not None:
        return None
    # Only type_ok, which every engine relies on: a variant that breaks its promises has a graph as well.
    query = Query.of(ground(traced, constants), ("type_ok",), limits=Limits(max_states))
    search = search_batch(query)
    answer = search.answer
    whole = answer.verdict is Verdict.HOLDS or answer.violated in query.system.witnesses
    return _graph(search, constants) if whole else None


def _graph(search: Search, constants: Constants) -> Graph:
    abstraction = Abstraction(search.system)
    enabled = [
        (np.uint64(number), terms.conjunction(*(condition for _, condition in instance.guards)))
        for number, instance in enumerate(search.system.by_step.values())
    ]
    nearest: dict[int, int] = {}
    deciding: set[str] = set()
    states, steps = [], []
    for low in range(0, search.table.count, BLOCK):
        keys = search.table.keys[:, low : min(low + BLOCK, search.table.count)]
        marks, block = abstraction(search.batch.packing.unpack(keys))
        distinct, first = np.unique(marks, return_index=True)
        for mark, at in zip(distinct.tolist(), first.tolist(), strict=True):
            # States are numbered in the order of their discovery, so the first one is as near as any.
            nearest.setdefault(mark, low + at)
        open_ = {name: each for name, each in abstraction.deciding.items() if name not in deciding}
        deciding |= {name for name, condition in open_.items() if true_of(block, condition, marks.size).any()}
        prints = fingerprints(keys)
        states.append(prints)
        steps += [step_prints(prints[true_of(block, condition, prints.size)], number) for number, condition in enabled]
    parents = search.parents
    return Graph(
        constants,
        abstraction,
        {mark: _depth(parents, number) for mark, number in nearest.items()},
        sum(len(abstraction.enabled(mark)) for mark in nearest),
        frozenset(deciding),
        np.unique(np.concatenate(states)),
        np.unique(np.concatenate(steps)),
    )


def _depth(parents: npt.NDArray[np.int32], number: int) -> int:
    steps = 0
    while parents[number] >= 0:
        number, steps = int(parents[number]), steps + 1
    return steps


def smaller(traced: TracedProtocol, constants: Constants) -> Iterator[dict[str, int]]:
    """Constants to compare abstract states at, the first ones that can be explored: the corpus' own, or smaller ones.

    No constant is larger than the corpus' own, or the model would be blamed for what these constants do not allow.
    """
    specs = traced.protocol.constants.values()
    tried: list[dict[str, int]] = []
    for limits in (
        dict(constants),
        {spec.name: spec.default for spec in specs},
        {spec.name: (spec.default + spec.minimum) // 2 for spec in specs},
        {spec.name: spec.minimum for spec in specs},
    ):
        chosen = {name: min(value, max(limits[name], _least(traced, name))) for name, value in constants.items()}
        if chosen not in tried:
            tried.append(chosen)
            yield chosen


def _least(traced: TracedProtocol, name: str) -> int:
    return traced.protocol.constants[name].minimum


@dataclass(frozen=True)
class Known:
    """What is known of a model's graph: whole at the corpus' own constants, or at the largest smaller ones tried."""

    whole: Graph | None
    small: Graph | None


def known_graph(model: Model, max_states: int = MAX_STATES) -> Known:
    """Explore a model at its own constants, and where that is too much at smaller ones."""
    protocol, variant, pairs = model
    traced = PROTOCOLS[protocol].traced(variant)
    for constants in smaller(traced, dict(pairs)):
        graph = whole_graph(traced, constants, max_states)
        if graph is not None:
            return Known(graph if constants == dict(pairs) else None, graph)
    return Known(None, None)


def coverage_of(model: Model, seen: Seen, known: Known, max_states: int = MAX_STATES) -> Coverage:
    """The coverage of what was visited, beside the graph."""
    protocol, variant, pairs = model
    traced = PROTOCOLS[protocol].traced(variant)
    notes = []
    states, steps = Share(None, None), Share(None, None)
    if known.whole is not None:
        states, steps = _share(seen.states, known.whole.states), _share(seen.steps, known.whole.steps)
        if states.estimated or steps.estimated:
            notes.append(f"of more than {KEPT:,} states or steps a sample is compared, the same one on both sides")
    else:
        notes.append(f"the model has more than {max_states:,} states at these constants: its graph was not compared")
    small = known.small
    abstract, moves = Share(len(seen.marks), None), Share(len(seen.moves), None)
    unvisited: list[Unvisited] = []
    if small is not None:
        told = small.abstraction.told
        abstract = Share(len(small.marks.keys() & seen.marks.keys()), len(small.marks))
        moves = Share(sum(mark in small.marks for mark, _ in seen.moves), small.moves)
        missed = sorted((steps, mark) for mark, steps in small.marks.items() if mark not in seen.marks)
        unvisited = [Unvisited(told(mark), least) for least, mark in missed]
    else:
        notes.append(f"no smaller constants were found at which the model has up to {max_states:,} states")
        told = Abstraction(ground(traced, dict.fromkeys(dict(pairs), 1) | dict(pairs))).told
    names = [f"{action.name}.{guard}" for action in traced.actions for guard, _ in action.guards]
    rarest = sorted((count, mark, action, first) for (mark, action), (count, first) in seen.moves.items())
    return Coverage(
        protocol,
        variant,
        dict(pairs),
        seen.events,
        {action.name: seen.actions.get(action.name, 0) for action in traced.actions},
        {name: seen.guards.get(name) for name in names},
        states,
        steps,
        {} if small is None else dict(small.constants),
        abstract,
        moves,
        tuple(unvisited[:SHOWN]),
        len(unvisited[SHOWN:]),
        tuple(Rare(action, told(mark), count, first) for count, mark, action, first in rarest[:SHOWN]),
        tuple(name for name in names if small is not None and name not in small.deciding | seen.guards.keys()),
        tuple(notes),
    )


def _share(visited: Prints, reached: Prints) -> Share:
    """How many of the reached ones were visited. A sample of the visited ones is compared as far as it goes."""
    if visited.size < KEPT:
        return Share(int(np.isin(reached, visited, assume_unique=True).sum()), reached.size)
    below = reached[reached <= visited[-1]]
    met = int(np.isin(below, visited, assume_unique=True).sum())
    return Share(round(met / max(below.size, 1) * reached.size), reached.size, estimated=True)
