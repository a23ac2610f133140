"""What a controller of ``impl/kraft`` must refuse in any state: each of it is asked in free runs, and minded."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.conformance.mutants.patched import Patch
from fencepost.conformance.protocols.controller import negative_requests
from fencepost.conformance.protocols.controller.plan import PLAN
from fencepost.conformance.protocols.controller.system import FreeControllers
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.model.explore import Verdict

from .freely import Freely

CLUSTER = Freely("controller", FreeControllers)

PLANTED = {
    "no-partitions": Patch("kraft/topics.py", "if not 0 < body.partitions", "if not 0 <= body.partitions"),
    "no-replicas": Patch(
        "kraft/topics.py",
        "return ErrorCode.INVALID_REPLICATION_FACTOR",
        "return ErrorCode.INVALID_PARTITIONS",
    ),
    "somebody-leads": Patch("kraft/topics.py", "leads = partition.leader >= 0", "leads = partition.leader < 0"),
    "config-twice": Patch("kraft/configs.py", "len({each.name for each in told}) < len(told)", "False"),
    "unknown-config": Patch("kraft/configs.py", "if check is None or (", "if check is not None and ("),
}
"""By what is asked, a controller that does not refuse it, or with another code."""


def test_each_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = set[str]()
    ask = negative_requests._ask

    def noted(name: str, *args: Any) -> None:
        asked.add(name)
        ask(name, *args)

    monkeypatch.setattr(negative_requests, "_ask", noted)
    found = CLUSTER.run(PLAN.free, SimulationPlan(runs=40, seed=3))
    assert found.verdict is Verdict.HOLDS
    # Somebody who was to stop, and has ended before it did, is seldom there.
    assert {name for names in negative_requests._PROBES.values() for name in names} - asked <= {"was-to-stop"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PLANTED)
def test_who_does_not_refuse_it_is_found(name: str) -> None:
    found = CLUSTER.first_divergence(PLAN.free, SimulationPlan(runs=40, seed=3), PLANTED[name])
    assert found is not None and f"{name}: answered" in found.headline
