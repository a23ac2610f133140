"""How fast systems are held against their models: ``python benchmarks/conform.py [RUNS] [SEED] [SYSTEM...]``.

Every built-in system of every protocol, or those named, is held against its own variant with every fault that it can
bring about. In lockstep at constants of the plan, or the default ones, drawn by a seeded generator and by Hypothesis:
steps a second. Running freely, at the constants of the protocol's plan: events a second, and after how many of them
more than one state of the model explained what was seen. Beside both, what the harness costs of that (processor time,
all but the system's calls), and ratios within this run. And free runs once more in a process for each core, by the
clock: beside one process, which is asked in the same way.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Sequence
from contextlib import closing
from typing import Any

from fencepost.conformance.harness import OVER_IMPL, binding_of, bound_protocols, held_to, plan_of, stepped_at
from fencepost.conformance.harness import in_lockstep as stepped_text
from fencepost.conformance.lockstep.registry import adapter_names, make_adapter
from fencepost.conformance.lockstep.runner import Conformance, Drawing, Plan, conform
from fencepost.conformance.plan import constants_of
from fencepost.conformance.processes import cores
from fencepost.conformance.simulation.answer import share_wide
from fencepost.conformance.simulation.pool import Stage, process_pool
from fencepost.conformance.simulation.registry import make_system, simulated_names
from fencepost.conformance.simulation.runner import SimulationPlan, SimulationResult, simulate
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore.result import Verdict

CALLS = ("reset", "apply", "inject", "pending", "happen", "observe")
EVENTS = 400


class Timed:
    """A system, or an adapter, that sums up the processor time of its calls."""

    def __init__(self, system: Any) -> None:
        self._system = system
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._system, name)
        if name not in CALLS:
            return found

        def call(*arguments: object) -> object:
            start = time.process_time()
            try:
                return found(*arguments)
            finally:
                self.seconds += time.process_time() - start

        return call


def in_lockstep(adapter: Any, examples: int, seed: int, draw: Drawing) -> Conformance:
    """Hold an adapter against its variant; it must conform."""
    text, binding = stepped_text(adapter.protocol)
    system = ground(text.traced(adapter.variant), stepped_at(adapter.protocol, {}))
    found = conform(adapter, system, binding, Plan(examples, 50, seed, draw=draw))
    assert found.verdict is Verdict.HOLDS, found.failure and found.failure.divergence
    return found


def portfolio_of(system: Any) -> list[Transitions]:
    """The steps of a system's variant at the constants of the protocol's plan."""
    protocol = held_to(system.protocol)
    traced, binding = protocol.traced(system.variant), binding_of(system.protocol, "--protocol")
    written = plan_of(PROTOCOLS[system.protocol]).free or ("",)
    return [Transitions(ground(traced, constants_of(protocol, each)), binding) for each in written]


def freely(system: Any, runs: int, seed: int) -> SimulationResult:
    """Run a system freely against its variant; it must be followed."""
    return followed(simulate(system, portfolio_of(system), SimulationPlan(runs, EVENTS, seed)))


def followed(found: SimulationResult) -> SimulationResult:
    """An answer, which must be that the model could follow."""
    assert found.verdict is Verdict.HOLDS, (found.failure and found.failure.divergence) or found.reason
    return found


def by_the_clock(name: str, protocol: str, runs: int, seed: int, jobs: int) -> float:
    """Events a second of free runs in so many processes."""
    system = make_system(name, protocol, None)
    plan = SimulationPlan(runs, EVENTS, seed)
    stage = Stage(lambda: make_system(name, protocol, None), portfolio_of(system), plan, None, 60.0)
    with closing(system), process_pool(stage, jobs) as hands:
        found = followed(simulate(system, stage.portfolio, plan, hands=hands))
    return found.met.events / found.seconds


def report(rates: dict[str, float], what: str, told: str, done: int, seconds: float, harness: float) -> None:
    """One line, and note the rate."""
    rates[what] = done / seconds
    print(f"{what:<58}{done / seconds:>9,.0f} {told}{harness / done * 1e6:>8.0f} us of the harness each", flush=True)


def main(runs: int, seed: int, wanted: Collection[str]) -> None:
    """Print the figures."""
    print(f"{runs} runs, of up to 50 steps in lockstep and {EVENTS} events freely, seed {seed}")
    rates: dict[str, float] = {}
    for protocol in bound_protocols():
        for name in _chosen(adapter_names(protocol), wanted):
            for draw in ("random", "hypothesis"):
                timed = Timed(make_adapter(name, protocol, None))
                start = time.process_time()
                done = in_lockstep(timed, runs, seed, draw)  # type: ignore[arg-type]
                harness = time.process_time() - start - timed.seconds
                what = f"{name} ({protocol} {timed.variant}), {draw}"
                report(rates, what, "steps/s ", done.coverage.steps, done.seconds, harness)
                timed.close()
        for name in _chosen(simulated_names(protocol), wanted):
            timed = Timed(make_system(name, protocol, None))
            start = time.process_time()
            found = freely(timed, runs, seed)
            harness = time.process_time() - start - timed.seconds
            what = f"{name} ({protocol} {timed.variant}), freely"
            report(rates, what, f"events/s, {share_wide(found):.1%} wide", found.met.events, found.seconds, harness)
            timed.close()
            if name in OVER_IMPL and cores() > 1:
                one, all_of_them = (by_the_clock(name, protocol, runs, seed, jobs) for jobs in (1, cores()))
                told = f"events/s by the clock, {all_of_them / one:.2f} x one process"
                print(f"  in {cores()} processes{'':<42}{all_of_them:>9,.0f} {told}", flush=True)
    best = max(rates.values())
    for what, rate in rates.items():
        print(f"fastest : {what:<58}{best / rate:>6.1f} x")


def _chosen(names: Sequence[str], wanted: Collection[str]) -> list[str]:
    """Those that were asked for; else all that take no cluster of processes, which measures those."""
    return [name for name in names if name in wanted or (not wanted and name != "kafka-cluster")]


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]) if given else 100, int(given[1]) if given[1:] else 1, given[2:])
