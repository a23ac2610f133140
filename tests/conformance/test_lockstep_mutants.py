"""Model mutants behind the adapter: the harness catches each guard whose loss a system could show.

What a system could show is found without the harness: every reachable state of the model is searched for a step that
one guard alone refuses, and that a system can be asked for. Without that guard the step happens.
"""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.conformance.harness import binding_of
from fencepost.conformance.lockstep.divergence import Sort
from fencepost.conformance.lockstep.model_adapter import ModelAdapter
from fencepost.conformance.lockstep.runner import Plan
from fencepost.conformance.lockstep.space import Pair, Space
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore.result import Verdict

from .planted import SMALL, held

TRACED = PROTOCOLS["fencing"].traced("kip-320")
GUARDS = [f"{action.name}.{guard}" for action in TRACED.actions for guard, _ in action.guards]


@cache
def alone() -> dict[Pair, int]:
    """For each guard that a system can be asked about: how often it alone refuses a step, over all reachable states."""
    space = Space(ground(TRACED, SMALL), binding_of("fencing", "--protocol"))
    counts = dict.fromkeys(space.askable, 0)
    seen, waiting = {space.system.initial}, [space.system.initial]
    while waiting:
        state = waiting.pop()
        for call, guards, first in zip(space.tries, space.pairs, space.first_refusing(state), strict=True):
            if first >= 0 and guards[first] in counts and len(space.refused(space.node(state), call)[0]) == 1:
                counts[guards[first]] += 1
        for _, after in space.successors(state):
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    assert len(seen) == 5_973
    return counts


@pytest.mark.sampled(3)
@pytest.mark.parametrize("guard", GUARDS)
def test_a_dropped_guard_is_caught_where_a_system_could_show_it(guard: str) -> None:
    action, _, name = guard.partition(".")
    shows = alone().get((action, name), 0)
    examples = 1_500 if shows else 60
    found = held(ModelAdapter("fencing", "kip-320", [guard]), Plan(examples=examples, seed=11, draw="random"))
    if not shows:
        # Nobody can ask, or another guard refuses the same.
        assert found.verdict is Verdict.HOLDS, found.failure and found.failure.divergence
        return
    assert found.verdict is Verdict.VIOLATED, f"it alone refuses {shows} steps"
    assert found.failure is not None and found.failure.divergence is not None
    assert found.failure.divergence.sort in (Sort.REFUSED, Sort.ERROR)
    refusal = found.failure.divergence.refusal
    assert refusal is not None and f"{refusal.action}.{refusal.guard}" == guard
    assert len(found.failure.tries) <= 12


def test_most_guards_can_be_shown() -> None:
    shown = sorted(".".join(pair) for pair, count in alone().items() if count > 0)
    assert len(shown) >= 15
    assert {"follower_fetch.epoch_not_fenced", "leader_expand_isr.hw_reached_epoch"} <= set(shown)
