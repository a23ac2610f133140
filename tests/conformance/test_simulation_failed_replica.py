"""What the controller makes of a broker that cannot use its log: held to KIP-112, planted faults are found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.fencing.plan import PLAN
from fencepost.conformance.protocols.fencing.response_rules import WrongAnswer
from fencepost.conformance.protocols.fencing.system_controller import check_failed
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.impl.wire.messages import NO_LEADER
from fencepost.impl.zk_controller import PartitionState

from .test_simulation_fencing import first_parting, ways_at

_FILE = "zk_controller/controller.py"
_FAILS = "            self._commit({key.partition: state.fail(key.broker, unclean=self.unclean)})\n"
FAULTS = {
    "it is asked again, though it has answered": (
        Patch(
            _FILE,
            "        self._outbox.forget(key)\n        state = self._contents.partitions[key.partition]\n",
            "        state = self._contents.partitions[key.partition]\n",
        ),
        "is answered, and sent again",
    ),
    "nothing comes of it": (Patch(_FILE, _FAILS, "            pass\n"), "has failed, and the partition is"),
    "only a leader is replaced": (
        Patch(_FILE, _FAILS, _FAILS.replace(")})", ") if state.leader == key.broker else state})")),
        "has failed, and the partition is",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    patch, words = FAULTS[name]
    with patched(patch) as root:
        found = first_parting(list(map(ways_at, PLAN.free)), Parts.of(root), SimulationPlan())
    assert found is not None
    assert words in found.headline


LED = PartitionState((0, 1, 2), 1, 4, frozenset({0, 1, 2}), 7, frozenset())
"""Replicas, leader, leader epoch, ISR, partition epoch, who is offline."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("before", "replica", "after"),
    [
        # A follower leaves the ISR, in a new leader epoch; who is out of it already is marked.
        (LED, 2, replace(LED, leader_epoch=5, isr=frozenset({0, 1}), offline=frozenset({2}))),
        (replace(LED, isr=frozenset({0, 1})), 2, replace(LED, isr=frozenset({0, 1}), offline=frozenset({2}))),
        # The first member that is not offline leads in a leader's place.
        (LED, 1, replace(LED, leader=0, leader_epoch=5, isr=frozenset({0, 2}), offline=frozenset({1}))),
        (
            replace(LED, offline=frozenset({0})),
            1,
            replace(LED, leader=2, leader_epoch=5, isr=frozenset({2}), offline=frozenset({0, 1})),
        ),
        # The last member stays in the ISR, and nobody leads.
        (
            replace(LED, isr=frozenset({1})),
            1,
            replace(LED, leader=NO_LEADER, leader_epoch=5, isr=frozenset({1}), offline=frozenset({1})),
        ),
    ],
)
def test_what_comes_of_a_failed_replica(before: PartitionState, replica: int, after: PartitionState) -> None:
    check_failed(before, after, replica)
    for wrong in (
        replace(after, leader=after.leader + 1),
        replace(after, leader_epoch=after.leader_epoch + 1),
        replace(after, isr=after.isr ^ {replica}),
        replace(after, offline=after.offline - {replica}),
        before,
    ):
        with pytest.raises(WrongAnswer, match=f"replica {replica} has failed, and the partition is"):
            check_failed(before, wrong, replica)
