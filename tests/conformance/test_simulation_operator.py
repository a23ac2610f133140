"""What operators are refused by a real controller, and a controller that does it all the same."""

from __future__ import annotations

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.fencing.operator_requests import ask_operator, operator_probes
from fencepost.conformance.protocols.fencing.response_rules import WrongAnswer
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.net.clock import SimulatedClock
from fencepost.impl.net.simulated import SimulatedNetwork
from fencepost.impl.wire.messages import TopicPartition

TP = TopicPartition("t", 0)
WISHES = [str(event.arg("what")) for event in operator_probes()]


def ask(what: str, parts: Parts) -> None:
    clock = SimulatedClock()
    controller = parts.controller(SimulatedNetwork(1, clock=clock), clock, SimulatedFiles(1))
    for broker in (0, 1):
        controller.broker_started(broker, 1)
    controller.create_partition(TP, [0, 1])
    ask_operator(what, controller, TP, parts.controller_error)


@pytest.mark.parametrize("what", WISHES)
def test_a_controller_refuses_it(what: str) -> None:
    ask(what, Parts.of())


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("create one with a replica twice", "not replicas or len(set(replicas)) < len(replicas):", "not replicas:"),
        ("create it again", "        if partition in self._contents.partitions:\n", "        if not partition:\n"),
        ("register a life that is over", "incarnation < known.incarnation:", "incarnation < 0:"),
        ("create one at nobody", "        for broker in replicas:\n            self._registration(broker)\n", ""),
    ],
)
def test_one_that_does_it_is_found(what: str, old: str, new: str) -> None:
    with patched(Patch("zk_controller/controller.py", old, new)) as root, pytest.raises(WrongAnswer, match=what):
        ask(what, Parts.of(root))
