"""Clients delete records while brokers run freely: clean runs, and planted faults found."""

from __future__ import annotations

import re

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.fencing.deleted_records import DELETE
from fencepost.conformance.protocols.fencing.system import RunningCluster
from fencepost.conformance.simulation.events import EventKind
from fencepost.conformance.simulation.runner import SimulationPlan, simulate
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.explore.result import Verdict

from .test_simulation_fencing import first_parting, portfolio

__all__ = ["portfolio"]


def test_the_model_follows_where_records_are_deleted(portfolio: list[Transitions]) -> None:
    found = simulate(RunningCluster(), portfolio, SimulationPlan(runs=60, seed=6))
    assert (found.verdict, found.reason) == (Verdict.HOLDS, None), found.failure and found.failure.divergence
    assert found.kinds[EventKind.CALL, DELETE] > 20 and found.kinds[EventKind.DELIVER, "DeleteRecordsResponse"] > 10


FAULTS = {
    "what is above the high watermark is deleted": (
        Patch("replica/leader.py", "not 0 <= offset <= high_watermark:", "not 0 <= offset <= log.end:"),
        "a deletion up to",
    ),
    "a deletion is answered before the followers have done it": (
        Patch("replica/leader.py", "        if low_watermark < offset:\n", "        if low_watermark < 0:\n"),
        "the low watermark is",
    ),
    "a deletion that the followers have done goes on waiting": (
        Patch(
            "replica/leader.py",
            "            self._partition.deletions.reached(self.low_watermark())\n",
            "            pass\n",
        ),
        "a deletion waits for low watermark",
    ),
    "what waits at a leader is not told that it leads no more": (
        Patch("replica/partition.py", "            self.deletions.fail(error)\n", "            pass\n"),
        # Or its time-out asks for a partition that is deleted meanwhile.
        "a deletion goes on waiting at a replica that leads no more|timer due at 0: it raised KeyError",
    ),
    "a follower's log begins where it did": (
        Patch(
            "replica/follower.py",
            "            log.delete_before(min(body.log_start_offset, partition.high_watermark))\n",
            "            pass\n",
        ),
        "begins at",
    ),
    "a log start is not stored": (
        Patch(
            "log/log.py",
            "            self._store.store_log_start(offset)\n            self._log_start = offset\n",
            "            self._log_start = offset\n",
        ),
        "log start",
    ),
    "what lies below the log start is served": (
        Patch("replica/fetch.py", "not log.log_start <= offset <= log.end:", "not 0 <= offset <= log.end:"),
        "",
    ),
    "the earliest offset is 0 for ever": (
        Patch(
            "replica/fetch.py",
            "        offset = log.log_start\n    elif request",
            "        offset = 0\n    elif request",
        ),
        "timestamp -2",
    ),
    "the epochs of what is deleted are told of still": (
        Patch("log/log.py", "            self._epochs.truncate_from_start(offset)\n", ""),
        "epoch",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(portfolio: list[Transitions], name: str) -> None:
    patch, word = FAULTS[name]
    with patched(patch) as root:
        divergence = first_parting(portfolio, Parts.of(root), SimulationPlan())
    assert divergence is not None
    assert re.search(word, divergence.headline), divergence.headline


def test_who_has_not_dropped_what_is_deleted_does_not_join_the_isr(portfolio: list[Transitions]) -> None:
    """What it has there it could not compare with anything: it may never have been committed."""
    patch = Patch("replica/isr.py", "                and each.log_start >= log.log_start\n", "")
    with patched(patch) as root:
        divergence = first_parting(portfolio, Parts.of(root), SimulationPlan())
    assert divergence is not None and "a leader asks for replica" in divergence.headline, divergence
