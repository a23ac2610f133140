"""Fair cycles of a labelled graph: emptiness of a Streett condition by strongly connected components.

This file knows no protocol: states and labels are numbers. A *run* is an infinite path; in every state it may
also stutter, that is stay for ever. A step of a group is an edge that carries one of the group's labels and leads
to another state (TLA: ``<<A>>_vars``). A group is *enabled* in a state that has such an edge.

- Weak fairness (WF): a group that is enabled from some point on in every state has infinitely many steps.
- Strong fairness (SF): a group that is enabled infinitely often has infinitely many steps.

A run ends up in a strongly connected component and visits there some set of states again and again. Weak
fairness asks of this set a step of the group or a state where it is disabled; strong fairness asks for a step of
the group or that it is disabled in all of them. So a component without a step of a strong group is searched once
more without the states where the group is enabled (Emerson and Lei, "Modalities for model checking", 1987).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Group:
    """A fairness condition: a set of labels whose steps it treats as one action."""

    name: str
    strong: bool
    labels: frozenset[int]


class FairGraph:
    """A graph under fairness. Edge ``j`` leads from ``source[j]`` to ``target[j]`` and carries ``label[j]``."""

    def __init__(self, states: int, source: Numbers, target: Numbers, label: Numbers, groups: Sequence[Group]) -> None:
        self.groups = tuple(groups)
        self.source, self.target = source, target
        moves = source != target
        labels = int(label.max()) + 1 if len(label) else 0
        self._member = np.zeros((len(self.groups), labels), dtype=np.bool_)
        self.enabled: Mask = np.zeros((len(self.groups), states), dtype=np.bool_)
        """Per group and state."""
        for g, group in enumerate(self.groups):
            self._member[g, [number for number in group.labels if number < labels]] = True
            self.enabled[g, source[moves & self._member[g, label]]] = True
        self._label = label
        # Whatever cycle there is lies in these; in a graph of epochs and logs that only grow they are few.
        self._cyclic = np.concatenate([np.empty(0, dtype=np.int64), *self._split(np.flatnonzero(moves))])

    def _split(self, edges: Numbers) -> list[Numbers]:
        """The edges inside each strongly connected component that has any, by the components' smallest states."""
        # It takes longer to load than most searches take.
        import networkx as nx

        digraph: nx.DiGraph[int] = nx.DiGraph()
        digraph.add_edges_from(zip(self.source[edges].tolist(), self.target[edges].tolist(), strict=True))
        components = sorted((c for c in nx.strongly_connected_components(digraph) if len(c) > 1), key=min)
        number = np.full(self.enabled.shape[1], -1, dtype=np.int64)
        for i, component in enumerate(components):
            number[list(component)] = i
        ends = number[self.source[edges]]
        within = (ends >= 0) & (ends == number[self.target[edges]])
        inside, ends = edges[within], ends[within]
        order = np.argsort(ends, kind="stable")
        return np.split(inside[order], np.flatnonzero(np.diff(ends[order])) + 1) if len(order) else []

    def stutters(self, allowed: Mask) -> Numbers:
        """The allowed states in which a fair run may stay for ever: every group is disabled there."""
        return np.flatnonzero(allowed & ~self.enabled.any(axis=0))

    def cycles(self, allowed: Mask, visits: Mask | None = None) -> Iterator[Numbers]:
        """The largest sets of edges such that one fair cycle takes them all and stays in allowed states.

        With ``visits``, only those that touch a state that it marks.
        """
        work = [self._cyclic]
        while work:
            edges = work.pop()
            for inside in self._split(edges[allowed[self.source[edges]] & allowed[self.target[edges]]]):
                states = np.unique(self.source[inside])
                if visits is not None and not visits[states].any():
                    continue
                taken: Mask = np.any(self._member[:, np.unique(self._label[inside])], axis=1)
                enabled = self.enabled[:, states]
                missing = np.flatnonzero(~taken & enabled.any(axis=1))
                strong = [g for g in missing.tolist() if self.groups[g].strong]
                # What is enabled throughout the component, and never taken in it, is so in each part of it.
                if enabled[missing].all(axis=1).any():
                    continue
                if not strong:
                    yield inside
                    continue
                kept: Mask = np.logical_not(np.any(self.enabled[strong], axis=0))
                work.append(inside[kept[self.source[inside]] & kept[self.target[inside]]])

    def loop(self, inside: Numbers, start: int, visits: Mask | None = None) -> list[int]:
        """A fair cycle from ``start`` and back, as edges out of a set that ``cycles`` gave.

        It goes to the nearest thing that fairness (or ``visits``) still asks for, and in the end home. It is empty
        where staying in ``start`` is fair already.
        """
        if not self.enabled[:, start].any() and (visits is None or visits[start]):
            return []
        leaving: dict[int, list[int]] = {}
        for edge in inside.tolist():
            leaving.setdefault(int(self.source[edge]), []).append(edge)
        enabled = self.enabled[:, list(leaving)]
        wanted = {g for g in range(len(self.groups)) if enabled[g].any()}
        if visits is not None:
            wanted.add(len(self.groups))

        def met_in(state: int) -> set[int]:
            met = {g for g, group in enumerate(self.groups) if not group.strong and not self.enabled[g, state]}
            return met | {len(self.groups)} if visits is not None and visits[state] else met

        def met_by(edge: int) -> set[int]:
            return set(np.flatnonzero(self._member[:, self._label[edge]]).tolist()) | met_in(int(self.target[edge]))

        wanted.difference_update(met_in(start))
        path: list[int] = []
        at = start
        while wanted:
            path += _nearest(leaving, self.target, at, lambda edge: not wanted.isdisjoint(met_by(edge)))
            wanted.difference_update(met_by(path[-1]))
            at = int(self.target[path[-1]])
        if at != start:
            path += _nearest(leaving, self.target, at, lambda edge: int(self.target[edge]) == start)
        return path


def _nearest(leaving: dict[int, list[int]], target: Numbers, at: int, found: Callable[[int], bool]) -> list[int]:
    """The edges of a shortest path from ``at`` whose last edge is what is looked for."""
    arrival: dict[int, int | None] = {at: None}
    origin: dict[int, int] = {}
    queue = deque([at])
    while queue:
        state = queue.popleft()
        for edge in leaving[state]:
            origin[edge] = state
            to = int(target[edge])
            if found(edge):
                path = [edge]
                while (before := arrival[origin[path[-1]]]) is not None:
                    path.append(before)
                return path[::-1]
            if to not in arrival:
                arrival[to] = edge
                queue.append(to)
    raise AssertionError("a strongly connected component has a path to each of its edges")
