"""Systems that run freely, as obligations: what comes along is followed, and a system without a needed guard is not."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Final

from ...model.core.ground import ground
from ...model.core.protocol import Protocol
from ...model.core.registration import Registration
from ...model.explore.result import OnProgress, Verdict
from ...traces.text import counted
from ..harness import Harness, binding_of, held_to, plan_of
from ..plan import constants_of
from ..simulation.candidate import Spent
from ..simulation.coverage import SimulationCoverage
from ..simulation.coverage_feedback import CoverageFeedback
from ..simulation.model_system import ModelSystem
from ..simulation.registry import make_system
from ..simulation.runner import SimulationPlan, play, run_seed
from ..simulation.system import SimulatedSystem
from ..simulation.transitions import Transitions
from .task import Outcome, Task

RUNS: Final = 8
"""So many runs of a system must be followed."""

UNTIL: Final = 40
"""Within so many runs a system without a guard must be found."""

SEED: Final = 320


def running_tasks(registration: Registration) -> list[Task]:
    """What ``impl/`` has of a protocol, and the model as a system without the first of the guards that are needed."""
    harness = registration.find_harness()
    if not isinstance(harness, Harness) or harness.binding is None:
        return []
    protocol, plan = registration.protocol, plan_of(registration.protocol)
    group = f"{protocol.name}: systems that run freely, and the model that follows"
    tasks = [
        Task(f"{name}, {RUNS} runs, seed {SEED}", group, partial(_followed, protocol, name, None))
        for name in (harness.free_names[:1] if harness.free is not None and plan.followed else ())
    ]
    # A text of their own, which other systems are held to, has other guards than those that the plan says are needed.
    for guard in plan.needed[:1] if held_to(protocol.name) is protocol else ():
        run = partial(_followed, protocol, "", guard)
        tasks.append(Task(f"a system without {guard}", group, run, Verdict.VIOLATED))
    return tasks


def _followed(protocol: Protocol, name: str, guard: str | None, _told: OnProgress) -> Outcome:
    system = make_system(name, protocol.name, None) if guard is None else ModelSystem(protocol.name, None, [guard])
    with closing(system):
        return _run(protocol, system, RUNS if guard is None else UNTIL)


def _run(protocol: Protocol, system: SimulatedSystem, runs: int) -> Outcome:
    """Runs up to the first divergence, which is told as it is: making it small is for ``fencepost conform``."""
    binding = binding_of(protocol.name, protocol.name)
    text = held_to(protocol.name)
    traced = text.traced(system.variant)
    portfolio = [
        Transitions(ground(traced, constants_of(text, each)), binding) for each in plan_of(protocol).free or ("",)
    ]
    memory, met, plan = CoverageFeedback(), SimulationCoverage(), SimulationPlan(runs, seed=SEED)
    for number in range(runs):
        try:
            ran = play(system, portfolio[number % len(portfolio)], run_seed(SEED, number), plan, memory, met)
        except Spent as spent:
            return Outcome(Verdict.UNKNOWN, str(spent), met.events, "events")
        if ran.divergence is not None:
            return Outcome(Verdict.VIOLATED, ran.divergence.headline, met.events, "events")
    if met.events <= runs:
        return Outcome(Verdict.UNKNOWN, "nothing ever happened", met.events, "events")
    return Outcome(Verdict.HOLDS, f"followed in {counted(runs, 'run')}", met.events, "events")
