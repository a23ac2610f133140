"""Brokers and their controller running freely, held to ``kip-320-cluster``: clean runs, and planted faults found."""

from __future__ import annotations

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.harness import binding_of
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.fencing.plan import PLAN
from fencepost.conformance.protocols.fencing.system import RunningCluster
from fencepost.conformance.simulation.divergence import Divergence, Sort
from fencepost.conformance.simulation.runner import SimulationPlan, simulate
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.ground import ground
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.fencing import fencing

from .seeds import first_divergence

NAMES = ("replicas", "log_size", "max_records", "max_leader_epoch")


def ways_at(constants: str) -> Transitions:
    traced = fencing.traced(RunningCluster.implemented)
    return Transitions(
        ground(traced, dict(zip(NAMES, map(int, constants.split("/")), strict=True))),
        binding_of("fencing", "--protocol"),
    )


@pytest.fixture(scope="module")
def portfolio() -> list[Transitions]:
    return [ways_at(constants) for constants in ("2/4/6/12", "3/4/6/12", "3/2/2/2")]


def first_parting(portfolio: list[Transitions], parts: Parts, plan: SimulationPlan) -> Divergence | None:
    """How the first run of the plan parts that does."""
    return first_divergence(RunningCluster(parts), lambda number: portfolio[number % len(portfolio)], plan)


def test_the_model_follows_wherever_brokers_go(portfolio: list[Transitions]) -> None:
    system = RunningCluster()
    found = simulate(system, portfolio, SimulationPlan(runs=24, events=200, seed=1))
    assert (found.verdict, found.reason) == (Verdict.HOLDS, None), found.failure and found.failure.divergence
    assert found.met.events > 2000
    steps = {"follower_fetch", "leader_learn_isr", "restart_after_loss", "producer_hears", "consumer_reads"}
    assert steps <= set(found.met.steps)
    # Every variable is seen: nothing that the model says of a running cluster is taken on trust.
    assert {name.split("[")[0] for name in found.met.cells} == set(ways_at("2/1/1/0").system.traced.variables)


@pytest.mark.nightly
@pytest.mark.parametrize("constants", PLAN.free)
def test_the_model_follows_for_long(constants: str) -> None:
    found = simulate(RunningCluster(), [ways_at(constants)], SimulationPlan(runs=60, seed=2))
    assert (found.verdict, found.reason) == (Verdict.HOLDS, None), found.failure and found.failure.divergence


def test_on_real_files_too(portfolio: list[Transitions]) -> None:
    system = RunningCluster(disk=True)
    try:
        found = simulate(system, portfolio, SimulationPlan(runs=3, events=80, seed=3))
    finally:
        system.close()
    assert found.verdict is Verdict.HOLDS, found.failure and found.failure.divergence


FAULTS = {
    "a fenced leader forgets whom it has proposed": (
        Patch(
            "replica/isr.py",
            "            self.fenced = True\n",
            "            self.fenced = True\n            self.proposed = frozenset()\n            self._changed()\n",
        ),
        Sort.CELLS,
        "isr",
    ),
    "a leader counts the members alone": (
        Patch("replica/isr.py", "        return self.members | self.proposed\n", "        return self.members\n"),
        Sort.CELLS,
        "isr",
    ),
    "a follower acknowledges what it has not synced": (
        Patch(
            "replica/follower.py",
            "            if log.recovery_point < log.end:\n                log.flush()\n",
            "",
        ),
        Sort.CELLS,
        "remote_leo",
    ),
    "a leader counts its own records before they are synced": (
        Patch("replica/leader.py", "        if log.recovery_point < end:\n            log.flush()\n", ""),
        Sort.CELLS,
        "hw",
    ),
    "a produce is acknowledged one record too early": (
        Patch(
            "replica/leader.py",
            "self._partition.high_watermark <= last_offset:",
            "self._partition.high_watermark < last_offset:",
        ),
        None,  # by the acknowledgement, or by how long the produce waits
        "",
    ),
    "a repeated batch is appended again": (
        Patch(
            "replica/leader.py",
            "        return None if found is ErrorCode.NONE else found\n",
            "        return None\n",
        ),
        Sort.CONTRADICTED,
        "",
    ),
    "a leader epoch is not stored before it is acted in": (
        Patch(
            "replica/partition.py",
            "            self.runtime.directory.store_leader_epoch(*self.key, request.leader_epoch)\n",
            "            pass\n",
        ),
        None,  # by what is found on a copy of its disk, or by a restart
        "epoch",
    ),
    "a leader epoch cache is stored as it was before a recovery": (
        Patch(
            "log/epochs.py",
            "            self._entries = list(entries)\n            self._store(self._entries)\n",
            "            self._store(self._entries)\n            self._entries = list(entries)\n",
        ),
        Sort.CONTRADICTED,
        "are stored, and they are",
    ),
    "a broker whose disk has failed goes on": (
        Patch(
            "replica/broker.py",
            "            if partition is not None:\n                partition.go_offline(str(failure))\n",
            "",
        ),
        Sort.CONTRADICTED,
        "its disk has failed it, and goes on",
    ),
    "a broker that is shut down syncs nothing": (
        Patch("log/directory.py", "        try:\n            self.flush()\n", "        try:\n            pass\n"),
        Sort.CONTRADICTED,
        "after it was shut down in order",
    ),
    "a leader looks at its ISR once": (
        Patch(
            "replica/partition.py",
            "                self._set_isr_timer()\n                self.leader",
            "                self.leader",
        ),
        Sort.CONTRADICTED,
        "will never wake for isr",
    ),
    "brokers are told of the cluster when they start, and never again": (
        Patch(
            "zk_controller/controller.py",
            "        for broker in live:\n"
            "            self._outbox.post(RequestKey(Kind.METADATA, broker, partition))\n",
            "",
        ),
        Sort.NEVER,
        "would tell clients",
    ),
    "whoever is back is not told of the cluster": (
        Patch(
            "zk_controller/controller.py",
            "            yield RequestKey(Kind.METADATA, broker, partition)\n",
            "            pass\n",
        ),
        Sort.CONTRADICTED,
        "is back, and is not sent UpdateMetadata",
    ),
    "a partition may be made with a replica twice": (
        Patch("zk_controller/controller.py", "not replicas or len(set(replicas)) < len(replicas):", "not replicas:"),
        None,  # by what it is told, or by the checkpoint that it stores, which nobody can read
        "create one with a replica twice",
    ),
    "an older leader epoch is not fenced": (
        Patch("replica/fetch.py", "    if epoch != leader.epoch:\n", "    if epoch > leader.epoch:\n"),
        None,  # by what it leads to, or by the answer
        "",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(portfolio: list[Transitions], name: str) -> None:
    patch, sort, word = FAULTS[name]
    with patched(patch) as root:
        divergence = first_parting(portfolio, Parts.of(root), SimulationPlan())
    assert divergence is not None
    assert sort in (None, divergence.sort) and word in divergence.headline, divergence.headline


def test_a_follower_that_never_asks_again_is_found_in_the_end(portfolio: list[Transitions]) -> None:
    """No state tells of it: it may always ask later."""
    patch = Patch(
        "replica/follower.py",
        "        self._next_in(0 if body.records else self._runtime.config.replica_fetch_wait_ms)\n",
        '        self._runtime.timers.cancel(("fetch", self._partition.key))\n',
    )
    with patched(patch) as root:
        divergence = first_parting(portfolio, Parts.of(root), SimulationPlan(faults=False))
    # Its timer tells, and peace would.
    assert divergence is not None and "will never wake for" in divergence.headline, divergence
