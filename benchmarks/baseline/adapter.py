"""The recorder's only imports of internal modules: simulations with a planted defect.

No command plants a defect in a simulation. Everything else in this folder runs ``fencepost`` commands.
"""

from __future__ import annotations

from contextlib import closing
from functools import cache
from typing import Any

from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.harness import all_defects, binding_of, find_harness, held_to
from fencepost.conformance.kafka.process import Jvm
from fencepost.conformance.mutants.free_rows import FreeJudge, free_over
from fencepost.conformance.mutants.patched import patched
from fencepost.conformance.plan import constants_of
from fencepost.conformance.simulation.candidate import Spent
from fencepost.conformance.simulation.coverage import SimulationCoverage
from fencepost.conformance.simulation.coverage_feedback import CoverageFeedback
from fencepost.conformance.simulation.divergence import Divergence
from fencepost.conformance.simulation.play import SimulationPlan, play, run_seed
from fencepost.conformance.simulation.system import SimulatedSystem
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.ground import ground

from .kafka_plan import KafkaPlan

Found = dict[str, Any]
"""``events`` to the first divergence, and the ``check`` that reported it; both None if no run diverged."""


def planned_defects() -> list[tuple[str, str]]:
    """Return protocol and name of each planned defect."""
    return [(each.protocol, each.name) for each in all_defects()]


def detect_planned(protocol: str, name: str, seed: int, events: int) -> Found:
    """Simulate our implementation with a planned defect, up to its first divergence or for ``events``."""
    (defect,) = (each for each in all_defects() if (each.protocol, each.name) == (protocol, name))
    with patched(*defect.patches) as root, closing(free_over(protocol)(Parts.of(root))) as system:
        return _detect(system, _judge().portfolio(protocol), SimulationPlan(runs=events, seed=seed), events)


def detect_in_kafka(plan: KafkaPlan, name: str) -> Found:
    """Simulate Apache Kafka's classes with a planted defect, by a plan."""
    text = held_to(plan.protocol)
    traced = text.traced(plan.variant)
    demanded = frozenset(traced.invariants).difference(plan.not_demanded)
    ways = Transitions(
        ground(traced, constants_of(text, plan.constants)), binding_of(plan.protocol, plan.protocol), demanded
    )
    settings = SimulationPlan(runs=plan.runs, events=plan.events, seed=plan.seed)
    harness = find_harness(plan.protocol)
    make: Any = None if harness is None else harness.find_free("kafka")
    assert make is not None
    with closing(Jvm(drives=plan.driver)) as jvm:
        jvm.plant(name)
        with closing(make(variant=plan.variant, make=lambda: jvm)) as system:
            return _detect(system, [ways], settings, None)


def _detect(system: SimulatedSystem, portfolio: list[Transitions], plan: SimulationPlan, events: int | None) -> Found:
    memory, met = CoverageFeedback(), SimulationCoverage()
    for number in range(plan.runs):
        ways = portfolio[number % len(portfolio)]
        try:
            divergence = play(system, ways, run_seed(plan.seed, number), plan, memory, met).divergence
        except Spent:
            continue
        if divergence is not None:
            return {"events": met.events, "check": check_of(divergence)}
        if events is not None and met.events >= events:
            break
    return {"events": None, "check": None}


def check_of(divergence: Divergence) -> str:
    """Name the check that a divergence is from: its kind, and the broken invariant if there is one."""
    return divergence.sort.name.lower() + ("" if divergence.broken is None else f" {divergence.broken}")


@cache
def _judge() -> FreeJudge:
    return FreeJudge()
