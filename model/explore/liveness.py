"""Liveness under stated fairness, over the whole state graph of a small system.

A property fails where a fair run breaks it. Such a run is a lasso: a stem to a strongly connected part of the
graph, and in it a loop that every fairness condition accepts. ``fairness.py`` finds the loops, this file says which
states they may visit, and ``lasso.py`` re-runs what was found before anyone sees it.

As in TLA, a run may stutter at any time, and so may stop for good; what keeps it going is fairness alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core.errors import BadInput
from ..core.ground import Grounder, Params, System, bindings
from ..core.protocol import Fair, Form, LivenessSpec, TracedAction
from ..core.terms import Term
from ..core.traced_variant import Text
from ..interpret.staged import stage
from .fairness import FairGraph, Group, Mask
from .graph import GRAPH_LIMITS, BudgetExceeded, StateGraph, build_graph
from .lasso import Judgement, Lasso, fair_actions, judge
from .result import Limits, OnProgress, Verdict


@dataclass(frozen=True)
class Liveness:
    """The answer for one property under one set of fairness conditions.

    ``fair`` says for each condition why the loop of the lasso satisfies it, as pairs (condition, reason).
    ``distinct`` and ``edges`` are those of the state graph; 0 where a budget ran out, and ``reason`` says which.
    """

    system: System
    spec: LivenessSpec
    fairness: str
    verdict: Verdict
    distinct: int = 0
    edges: int = 0
    seconds: float = 0.0
    lasso: Lasso | None = None
    fair: tuple[tuple[str, str], ...] = ()
    reason: str | None = None

    def to_json(self) -> dict[str, object]:
        """The object that a report shows for this property."""
        return {
            "property": self.spec.name,
            "form": self.spec.form.name.lower(),
            "fairness": self.fairness,
            "verdict": self.verdict.value,
            "distinct": self.distinct,
            "edges": self.edges,
            "lasso": self.lasso.to_json() if self.lasso else None,
            "fair": dict(self.fair),
            "reason": self.reason,
            "seconds": round(self.seconds, 3),
        }


def check_liveness(
    system: System,
    fairness: Sequence[str] = (),
    properties: Sequence[str] = (),
    limits: Limits = GRAPH_LIMITS,
    on_progress: OnProgress | None = None,
) -> list[Liveness]:
    """These liveness properties of the protocol under each of these named sets of fairness conditions.

    None given means all of them. Where the graph does not fit the limits, each verdict is ``unknown``. Raises
    BadInput for an unknown name.
    """
    protocol = system.traced.protocol
    for option, what, names, known in (
        ("--fairness", "set of fairness conditions", fairness, list(protocol.fairness)),
        ("--liveness", "liveness property", properties, list(protocol.liveness)),
    ):
        for name in names:
            if name not in known:
                mend = f"choose of {', '.join(known)}" if known else "choose a protocol that states one"
                raise BadInput(f"{protocol.name} has no {what} {name!r}", option, mend)
    assumed = [protocol.fairness[name] for name in fairness or protocol.fairness]
    specs = [protocol.liveness[name] for name in properties or protocol.liveness]
    try:
        graph = build_graph(system, limits, on_progress)
    except BudgetExceeded as exceeded:
        reason = str(exceeded)
        return [Liveness(system, spec, a.name, Verdict.UNKNOWN, reason=reason) for a in assumed for spec in specs]
    answers: list[Liveness] = []
    for each in assumed:
        fair = fair_graph(graph, each.conditions)
        answers += [_check(graph, fair, spec, each.name, each.conditions) for spec in specs]
    return answers


def check_property(graph: StateGraph, spec: LivenessSpec, conditions: Sequence[Fair]) -> Liveness:
    """One property of a graph under these very conditions."""
    names = ", ".join(name for name, _, _ in fair_actions(graph.system, conditions))
    return _check(graph, fair_graph(graph, conditions), spec, names or "none", conditions)


def fair_graph(graph: StateGraph, conditions: Sequence[Fair]) -> FairGraph:
    """The state graph under the conditions that apply to it."""
    instances = graph.system.instances
    groups = [
        Group(
            name,
            fair.strong,
            frozenset(n for n, i in enumerate(instances) if i.action == fair.action and set(fixed) <= set(i.params)),
        )
        for name, fair, fixed in fair_actions(graph.system, conditions)
    ]
    return FairGraph(len(graph.states), graph.source, graph.target, graph.instance, groups)


def _check(
    graph: StateGraph, fair: FairGraph, spec: LivenessSpec, fairness: str, conditions: Sequence[Fair]
) -> Liveness:
    start = time.perf_counter()
    answer = Liveness(graph.system, spec, fairness, Verdict.HOLDS, len(graph.states), len(graph.source))
    for params, conditions_of in _obligations(graph.system, spec):
        lasso = _lasso(graph, fair, spec.form, params, _masks(graph, conditions_of))
        if lasso is not None:
            judgement = judge(graph.system, lasso, spec, conditions)
            _believe(spec, judgement)
            answer = replace(answer, verdict=Verdict.VIOLATED, lasso=lasso, fair=judgement.fair)
            break
    return replace(answer, seconds=time.perf_counter() - start)


def _believe(spec: LivenessSpec, judgement: Judgement) -> None:
    if judgement.objections:
        raise AssertionError(f"the reference rejects the lasso against {spec.name}: {'; '.join(judgement.objections)}")


def _obligations(system: System, spec: LivenessSpec) -> Iterator[tuple[Params, tuple[Term, ...]]]:
    """For each value of the property's parameters: its conditions as ground terms."""
    traced = system.traced
    conditions = Text(traced.protocol, traced.variant).liveness(spec)
    grounder = Grounder(traced, system.constants, system.layout)
    for values, binding in bindings(TracedAction(spec.name, spec.params, (), ()), system.constants):
        yield values, tuple(grounder.ground(condition, binding) for condition in conditions)


def _masks(graph: StateGraph, conditions: tuple[Term, ...]) -> list[Mask]:
    """In which states each condition holds."""
    named = {f"condition_{i}": term for i, term in enumerate(conditions)}
    compiled = stage(replace(graph.system, instances=[], invariants=named, witnesses={})).invariants
    return [np.fromiter(map(compiled[name], graph.states), dtype=np.bool_, count=len(graph.states)) for name in named]


def _lasso(graph: StateGraph, fair: FairGraph, form: Form, params: Params, masks: list[Mask]) -> Lasso | None:
    """A fair run against one obligation, with a stem as short as any has."""
    holds = masks[-1]
    if form is Form.SETTLES:
        # The run may go anywhere, but comes back to a state without P for ever.
        allowed, visits, begins = np.ones_like(holds), ~holds, np.ones_like(holds)
        stuttering = fair.stutters(visits)
    else:
        # From some moment on (for ~>: one where P holds) the run never meets what it waits for.
        allowed, visits = ~holds, None
        begins = allowed & masks[0] if form is Form.LEADS_TO else allowed
        stuttering = fair.stutters(allowed)
    cycles = list(fair.cycles(allowed, visits))
    if not len(stuttering) and not cycles:
        return None
    waits = _Waits(graph, allowed, begins)
    found = [(int(waits.distance[s]), -1, s) for s in stuttering.tolist() if waits.distance[s] >= 0]
    for number, inside in enumerate(cycles):
        states = np.unique(graph.source[inside])
        reached = states[waits.distance[states] >= 0]
        if len(reached):
            nearest = reached[np.argmin(waits.distance[reached])]
            found.append((int(waits.distance[nearest]), number, int(nearest)))
    if not found:
        return None
    _, number, state = min(found)
    loop = fair.loop(cycles[number], state, visits) if number >= 0 else []
    return Lasso(
        tuple(graph.step(edge) for edge in waits.edges_to(state)), tuple(graph.step(edge) for edge in loop), params
    )


class _Waits:
    """Shortest paths on which, from a state in ``begins`` to the end, every state is allowed."""

    def __init__(self, graph: StateGraph, allowed: Mask, begins: Mask) -> None:
        self._graph = graph
        self.distance = np.full(len(graph.states), -1, dtype=np.int64)
        self._edge = np.full(len(graph.states), -1, dtype=np.int64)
        first = np.searchsorted(graph.source, np.arange(len(graph.states) + 1))
        # States stand in breadth-first order, so the beginnings come by their distance from the initial state.
        beginnings = np.flatnonzero(begins & allowed).tolist()
        level: list[int] = []
        done, at = 0, 0
        while level or done < len(beginnings):
            if not level:
                at = int(graph.depth[beginnings[done]])
            while done < len(beginnings) and graph.depth[beginnings[done]] <= at:
                if self.distance[beginnings[done]] < 0:
                    self.distance[beginnings[done]] = at
                    level.append(beginnings[done])
                done += 1
            following: list[int] = []
            for state in level:
                for edge in range(first[state], first[state + 1]):
                    to = int(graph.target[edge])
                    if allowed[to] and self.distance[to] < 0:
                        self.distance[to], self._edge[to] = at + 1, edge
                        following.append(to)
            level, at = following, at + 1

    def edges_to(self, state: int) -> list[int]:
        """The edges of the path from the initial state."""
        path: list[int] = []
        while self._edge[state] >= 0:
            path.append(int(self._edge[state]))
            state = int(self._graph.source[path[-1]])
        return self._graph.edges_to(state) + path[::-1]
