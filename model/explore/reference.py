"""Breadth-first search over the staged reference, one state at a time."""

from __future__ import annotations

from collections import Counter

from ..core.ground import State
from ..interpret.symmetry import Symmetry
from .path import ancestry, rebuild
from .result import Coverage, Exploration, OnProgress, Query, Verdict, Watch, conclude


def explore_reference(query: Query, on_progress: OnProgress | None = None) -> Exploration:
    """Explore with plain Python; memory is about 0.4 KiB a state at 3/2/2/2."""
    system = query.system
    watch = Watch(query.limits, on_progress)
    answer = Exploration(query, "reference", Verdict.HOLDS, 0, 0, 0.0)
    staged = watch.staged(system)
    if staged is None:
        answer.verdict, answer.reason, answer.memory = Verdict.UNKNOWN, watch.too_much, watch.peak
        return answer
    invariants = [(name, staged.invariants[name]) for name in query.invariants]
    representative = Symmetry(system).representative if query.symmetry else None
    actions = [instance.action for instance in system.instances]
    answer.witnesses = dict.fromkeys(staged.witnesses, 0)
    coverage = {name: Coverage() for name in system.actions}

    initial = representative(system.initial) if representative else system.initial
    parent: dict[State, State | None] = {initial: None}
    level = [initial]
    while level:
        answer.depth += 1
        answer.distinct += len(level)
        watch.report(answer.depth, len(parent), len(level))
        broken = [(name, state) for state in level for name, holds in invariants if not holds(state)]
        if broken:
            # The first state of the level and, of its broken invariants, the first as listed.
            answer.verdict = Verdict.VIOLATED
            answer.violated, state = broken[0]

            def taken(before: State, wanted: State) -> tuple[int, State] | None:
                for number, after in staged.successors(before):
                    if (representative(after) if representative else after) == wanted:
                        return number, after
                return None

            answer.path = rebuild(system, ancestry(parent, state), taken)
            break
        for name, happens in staged.witnesses.items():
            answer.witnesses[name] += sum(map(happens, level))
        following: list[State] = []
        transitions: Counter[int] = Counter()
        discoveries: Counter[int] = Counter()
        for done, state in enumerate(filter(staged.expandable, level)):
            for number, after in staged.successors(state):
                transitions[number] += 1
                after = representative(after) if representative else after
                if after not in parent:
                    parent[after] = state
                    discoveries[number] += 1
                    following.append(after)
            if watch.due(len(parent) + done):
                answer.reason = watch.exhausted(len(parent), parent)
                if answer.reason:
                    break
                watch.report(answer.depth, len(parent), len(level) - done)
        answer.reason = answer.reason or watch.exhausted(len(parent), parent)
        if answer.reason:
            answer.verdict = Verdict.UNKNOWN
            break
        for number, count in transitions.items():
            seen = coverage[actions[number]]
            coverage[actions[number]] = Coverage(seen.transitions + count, seen.discoveries + discoveries[number])
        level = following
        reason = watch.too_deep(answer.depth)
        if level and reason:
            answer.verdict, answer.reason = Verdict.UNKNOWN, reason
            break
    answer.coverage = coverage
    answer.seconds = watch.seconds
    answer.memory = watch.peak
    return conclude(answer) if answer.verdict is Verdict.HOLDS else answer
