"""How fast traces are read and replayed: ``python benchmarks/replay.py [TRACES] [SEED]``.

Random walks of kip-320 at 3/2/2/2 (replicas/log size/records/leader epoch) of up to 40 steps, every cell observed,
are written, read, and replayed by the compiled model and by the reference interpreter; then again with every third
event dropped and one unobserved step allowed in each gap. Prints events a second, and ratios within this run.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from fencepost.model.core.ground import ground
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.fencing import fencing
from fencepost.traces.format import Trace
from fencepost.traces.read import read_trace
from fencepost.traces.record import record
from fencepost.traces.replay import Budget, replay
from fencepost.traces.stepper import CompiledStepper, DirectStepper, Stepper, TakenStep
from fencepost.traces.write import write_trace

CONSTANTS = {"replicas": 3, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
STEPS = 40

T = TypeVar("T")


def walk(stepper: Stepper, chance: random.Random) -> list[TakenStep]:
    """A random walk of at most ``STEPS`` steps."""
    state, run = stepper.system.initial, []
    for _ in range(STEPS):
        steps = stepper.every(state)
        if not steps:
            break
        run.append(chance.choice(steps))
        state = run[-1].state
    return run


def timed(label: str, events: int, job: Callable[[], T]) -> tuple[T, float]:
    """Run a job over so many events and print how many it took a second."""
    start = time.perf_counter()
    done = job()
    rate = events / (time.perf_counter() - start)
    print(f"{label:<58}{rate:>12,.0f} events/s")
    return done, rate


def replay_all(traces: Sequence[Trace], stepper: Stepper, budget: Budget) -> None:
    """Replay every trace; each must hold."""
    for trace in traces:
        answer = replay(trace, stepper, budget=budget)
        assert answer.verdict is Verdict.HOLDS, answer.reason


def main(count: int, seed: int) -> None:
    """Print the figures."""
    chance = random.Random(seed)
    start = time.perf_counter()
    compiled = CompiledStepper(ground(fencing.traced(), CONSTANTS))
    print(f"kip-320 at 3/2/2/2, seed {seed}; compiled in {time.perf_counter() - start:.2f} s")
    direct = DirectStepper(fencing.traced(), CONSTANTS)
    traces = [record(compiled.system, walk(compiled, chance)) for _ in range(count)]
    events = sum(map(len, traces))
    gapped = [
        Trace(replace(t.header, complete=False), tuple(e for n, e in enumerate(t.events) if n % 3 != 1)) for t in traces
    ]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.jsonl" for number in range(count)]
        for path, trace in zip(paths, traces, strict=True):
            write_trace(path, trace)
        back, _ = timed(
            f"read and check {count} traces of {events:,} events", events, lambda: list(map(read_trace, paths))
        )
    assert back == traces
    none, one = Budget(), Budget(max_skipped=1)
    _, unconfirmed = timed(
        "replay, compiled model, no confirmation",
        events,
        lambda: [replay(trace, compiled, confirm=False) for trace in traces],
    )
    _, quick = timed("replay, compiled model", events, lambda: replay_all(traces, compiled, none))
    _, slow = timed("replay, reference interpreter", events, lambda: replay_all(traces, direct, none))
    left = sum(map(len, gapped))
    _, gaps = timed("replay with gaps, one unobserved step in each", left, lambda: replay_all(gapped, compiled, one))
    print(f"compiled : reference           {unconfirmed / slow:.1f} x; confirmed by the reference {quick / slow:.1f} x")
    print(f"without gaps : with gaps       {quick / gaps:.1f} x")


if __name__ == "__main__":
    main(*(int(each) for each in (sys.argv[1:] + ["200", "1"][len(sys.argv) - 1 :])))
