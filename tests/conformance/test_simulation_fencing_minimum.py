"""``min.insync.replicas`` is changed while brokers run freely: clean runs, and planted faults found."""

from __future__ import annotations

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.fencing.min_insync_replicas import MINIMUM, SETTINGS
from fencepost.conformance.protocols.fencing.system import RunningCluster
from fencepost.conformance.simulation.events import EventKind
from fencepost.conformance.simulation.runner import SimulationPlan, simulate
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.explore.result import Verdict

from .test_simulation_fencing import first_parting, portfolio

__all__ = ["portfolio"]


def test_the_minimum_is_changed_and_heard_of(portfolio: list[Transitions]) -> None:
    found = simulate(RunningCluster(), portfolio, SimulationPlan(runs=30, seed=5))
    assert (found.verdict, found.reason) == (Verdict.HOLDS, None), found.failure and found.failure.divergence
    assert found.kinds[EventKind.OPERATE, MINIMUM] > 10 and found.kinds[EventKind.TIMER, SETTINGS] > 20


FAULTS = {
    "a topic's own minimum is passed over": Patch(
        "replica/runtime.py",
        "        return self.min_insync.get(topic, self.config.min_insync_replicas)\n",
        "        return self.config.min_insync_replicas\n",
    ),
    "a minimum is raised, and never lowered": Patch(
        "replica/broker.py",
        "        self._runtime.min_insync[topic] = replicas\n",
        "        self._runtime.min_insync[topic] = max(replicas, self._runtime.min_insync.get(topic, 1))\n",
    ),
    "a leader goes by the minimum of when it was elected": Patch(
        "replica/leader.py",
        ">= self._runtime.min_insync_replicas(self._partition.key.topic)\n",
        '>= self.__dict__.setdefault("n", self._runtime.min_insync_replicas(self._partition.key.topic))\n',
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(portfolio: list[Transitions], name: str) -> None:
    with patched(FAULTS[name]) as root:
        divergence = first_parting(portfolio, Parts.of(root), SimulationPlan())
    assert divergence is not None
    assert "a produce" in divergence.headline or "a batch" in divergence.headline, divergence.headline


def test_what_waits_is_held_to_the_minimum_too(portfolio: list[Transitions]) -> None:
    """A record that all have, in an ISR that has become too small, is not acknowledged."""
    patch = Patch(
        "replica/leader.py",
        "            error = ErrorCode.NONE if self._is_enough() else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND\n",
        "            error = ErrorCode.NONE\n",
    )
    with patched(patch) as root:
        divergence = first_parting(portfolio, Parts.of(root), SimulationPlan())
    assert divergence is not None and "a produce that waits" in divergence.headline, divergence
