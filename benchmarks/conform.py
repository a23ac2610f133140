"""How fast systems are driven in lockstep: ``python benchmarks/conform.py [EXAMPLES] [SEED] [ADAPTER...]``.

Every built-in adapter, or those named, is held against its own variant at 3/2/2/2 (replicas/log size/records/leader
epoch) with every fault it can bring about, drawn by a seeded generator and by Hypothesis. Prints steps a second, what
the harness costs of that (processor time, all but the adapter's calls), and ratios within this run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from fencepost.conformance.harness import binding_of
from fencepost.conformance.lockstep.adapter import Adapter
from fencepost.conformance.lockstep.registry import BUILTIN, make_adapter
from fencepost.conformance.lockstep.runner import Conformance, Drawing, Plan, conform
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore.result import Verdict


class Timed:
    """An adapter that sums up the processor time of its calls."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self.seconds = 0.0

    def __getattr__(self, name: str) -> object:
        found = getattr(self._adapter, name)
        if name not in ("reset", "apply", "observe", "inject"):
            return found

        def call(*arguments: object) -> object:
            start = time.process_time()
            try:
                return found(*arguments)
            finally:
                self.seconds += time.process_time() - start

        return call


def run(adapter: Adapter, examples: int, seed: int, draw: Drawing) -> Conformance:
    """Hold an adapter against its variant; it must conform."""
    system = ground(PROTOCOLS[adapter.protocol].traced(adapter.variant), {})
    found = conform(adapter, system, binding_of(adapter.protocol, "--protocol"), Plan(examples, 50, seed, draw=draw))
    assert found.verdict is Verdict.HOLDS, found.failure and found.failure.disagreement
    return found


def main(examples: int, seed: int, names: Sequence[str]) -> None:
    """Print the figures."""
    print(f"{examples} examples of up to 50 steps, seed {seed}")
    rates: dict[str, float] = {}
    for name in names:
        for draw in ("random", "hypothesis"):
            adapter = make_adapter(name, None, None)
            timed = Timed(adapter)
            start = time.process_time()
            found = run(timed, examples, seed, draw)  # type: ignore[arg-type]
            harness = time.process_time() - start - timed.seconds
            adapter.close()
            steps = found.coverage.steps
            rates[f"{name} {draw}"] = steps / found.seconds
            what = f"{name} ({adapter.protocol} {adapter.variant}), {draw}"
            print(
                f"{what:<56}{steps / found.seconds:>9,.0f} steps/s{harness / steps * 1e6:>8.0f} us of the harness each"
            )
    best = max(rates.values())
    for name, rate in rates.items():
        print(f"fastest : {name:<40}{best / rate:>6.1f} x")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]) if given else 400, int(given[1]) if given[1:] else 1, given[2:] or list(BUILTIN))
