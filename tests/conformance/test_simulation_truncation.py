"""A running consumer, its coordinator and its brokers: thousands of clean events, and planted faults that are found."""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.truncation.binding import TRUNCATION
from fencepost.conformance.protocols.truncation.binding_client import CONSUMER
from fencepost.conformance.protocols.truncation.system import RunningConsumer
from fencepost.conformance.simulation.coverage import SimulationCoverage
from fencepost.conformance.simulation.coverage_feedback import CoverageFeedback
from fencepost.conformance.simulation.divergence import Divergence, Sort
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.machine import Machine
from fencepost.conformance.simulation.quiesce import ASKS, settle
from fencepost.conformance.simulation.runner import SimulationPlan, play, run_seed
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.ground import ground
from fencepost.model.protocols.truncation import truncation

from .seeds import first_divergence

EVENTS = 300
SEED = 6


@cache
def portfolio() -> tuple[Transitions, ...]:
    sizes = ((2, 7, 16, 6), (3, 6, 14, 6))
    traced = truncation.traced("kip-320-client")
    return tuple(
        Transitions(ground(traced, dict(zip(truncation.constants, size, strict=True))), TRUNCATION) for size in sizes
    )


def run(runs: int, met: SimulationCoverage, seed: int = SEED) -> Divergence | None:
    """So many runs, up to the first divergence, which nobody makes small."""
    system, memory, plan = RunningConsumer(), CoverageFeedback(), SimulationPlan(events=EVENTS)
    for number in range(runs):
        found = play(system, portfolio()[number % 2], run_seed(seed, number), plan, memory, met).divergence
        if found is not None:
            return found
    return None


def test_whose_cells_are_whose() -> None:
    ways = portfolio()[0]
    owners = {cell.variable.name: ways.owner[cell.number] for cell in ways.system.layout.cells if not cell.index}
    assert owners["position"] == owners["fetched_end"] == CONSUMER
    assert owners["committed"] == owners["acknowledged"] == 2  # the node after the two replicas'
    assert owners["quorum_leader_epoch"] is None
    assert {ways.owner[cell.number] for cell in ways.system.layout.cells if cell.variable.name == "leo"} == {0, 1}


def test_thousands_of_events_are_explained_and_what_matters_is_among_them() -> None:
    met = SimulationCoverage()
    assert run(20, met) is None
    assert met.events > 6_000
    for action in ("fetch_record", "take_record", "store_commit", "learn_commit", "refuse_truncated", "delete_records"):
        assert met.steps.get(action, 0) > 0, action


@pytest.mark.nightly
def test_more_seeds_are_explained_and_every_action_is_taken() -> None:
    met = SimulationCoverage()
    for seed in range(100, 104):
        assert run(60, met, seed) is None
    never = {action.name for action in portfolio()[0].system.traced.actions} - met.steps.keys()
    # Power that fails between the append and the answer is rare.
    assert never <= {"find_commit", "miss_commit", "refuse_commit"}


def test_in_peace_a_broker_is_back_whose_disk_would_not_take_its_first_replica() -> None:
    """It has nothing that is offline, so that it seemed well, and no controller sent it the partition again."""
    system = RunningConsumer()
    machine = Machine(portfolio()[1], system, 19)
    assert machine.start() is None
    for event in (
        Event(EventKind.DISK, "fails", 2),
        Event(EventKind.DELIVER, "LeaderAndIsr", 2),
        Event(EventKind.CALL, "produce", args=(("records", 1), ("to", 1))),
    ):
        assert machine.can(event)
        assert machine.perform(event) is None
        assert event.what is EventKind.DISK or 2 in system.down
    assert settle(machine, Event(EventKind.PEACE, args=(ASKS,))) is None
    observed = machine.history[-1].observed
    assert observed is not None and not system.down
    assert observed["leo[2]"] == observed["leo[1]"] > 0


def test_the_same_seed_gives_the_same_events() -> None:
    ways, plan = portfolio()[0], SimulationPlan(events=100)
    first, second = (
        play(RunningConsumer(), ways, 11, plan, CoverageFeedback(), SimulationCoverage()) for _ in range(2)
    )
    assert first.events == second.events and len(first.history) > 90
    assert [done.observed for done in first.history] == [done.observed for done in second.history]


FAULTS = {
    "a late answer is taken after a seek": (
        Patch(
            "consumer/consumer.py",
            "        elif partition is not None and partition.in_flight == envelope.correlation:\n            assert",
            "        elif partition is not None and partition.position is not None:\n            assert",
        ),
        None,
    ),
    "of two commits the one with the later time of day counts": (
        Patch(
            "offsets/coordinator.py",
            "            self._offsets[key] = committed\n",
            "            before = self._offsets.get(key, committed)\n"
            "            later = before.commit_timestamp > committed.commit_timestamp\n"
            "            self._offsets[key] = before if later else committed\n",
        ),
        Sort.CELLS,
    ),
    "a commit is acknowledged before it is durable": (
        Patch("offsets/coordinator.py", "            self._log.flush()\n", ""),
        Sort.CELLS,
    ),
    "the position's epoch is not updated": (
        Patch("consumer/partition.py", "(last.next_offset, last.epoch, self.served_by)", "(last.next_offset, -1, -1)"),
        Sort.CELLS,
    ),
    "what has arrived is committed before it is given": (
        Patch(
            "consumer/consumer.py",
            "OffsetAndMetadata(at.offset, at.leader_epoch, at.serving_epoch, metadata)",
            "OffsetAndMetadata(at.offset + len(there.buffer), at.leader_epoch, at.serving_epoch, metadata)",
        ),
        Sort.SAID,
    ),
    "a seek leaves what has arrived": (
        Patch(
            "consumer/partition.py",
            "        self.lookup = None\n        self.buffer.clear()\n",
            "        self.lookup = None\n",
        ),
        None,
    ),
    "records above the high watermark are served": (
        Patch(
            "replica/fetch.py",
            "        up_to = partition.high_watermark\n    if error",
            "        up_to = log.end\n    if error",
        ),
        Sort.CELLS,
    ),
    "an epoch is checked only where the metadata has a larger one": (
        Patch(
            "consumer/partition.py",
            "max_bytes, position.least_epoch, position.leader_epoch\n",
            "max_bytes, position.least_epoch,\n"
            "            position.leader_epoch if self.leader_epoch > position.leader_epoch else -1,\n",
        ),
        Sort.SAID,
    ),
    "the answer's high watermark is another": (
        Patch(
            "replica/fetch.py",
            "FetchResponse(ErrorCode.NONE, partition.high_watermark, log",
            "FetchResponse(ErrorCode.NONE, log.end + 1, log",
        ),
        Sort.SAID,
    ),
    "who no longer leads is asked for ever": (
        Patch(
            "consumer/partition.py",
            "        if response.error.retriable:\n            self._retry(now)\n",
            "        if response.error.retriable:\n            self.retry_at = now + self.config.retry_backoff_ms\n",
        ),
        Sort.NEVER,
    ),
    "the first broker alone is asked who leads": (
        Patch(
            "consumer/consumer.py", "                self._broker = (self._broker + 1) % len(self.config.brokers)\n", ""
        ),
        Sort.NEVER,
    ),
    "what has timed out is awaited for ever": (
        Patch(
            "consumer/partition.py",
            "        self.in_flight = None\n        self.last_error = ErrorCode.REQUEST_TIMED_OUT\n",
            "        self.last_error = ErrorCode.REQUEST_TIMED_OUT\n",
        ),
        None,
    ),
    "a divergence comes before what the application has asked for since": (
        Patch(
            "consumer/consumer.py",
            "            if partition.lookup is None:  # with the policy none, it was raised\n"
            "                partition.reset_to_divergence()\n",
            "            partition.reset_to_divergence()\n",
        ),
        Sort.CELLS,
    ),
    "a commit is given before it is stored": (
        Patch(
            "offsets/coordinator.py",
            "        try:\n            self._log.append_as_leader(",
            "        if committed is not None:\n            self._offsets[key] = committed\n"
            "        try:\n            self._log.append_as_leader(",
        ),
        None,
    ),
    "a truncation is not noticed": (
        Patch(
            "replica/fetch.py",
            "    found, end = log.end_offset_for(last_epoch)\n    if found == UNDEFINED_EPOCH:\n",
            "    found, end = log.end_offset_for(last_epoch)\n    if found >= UNDEFINED_EPOCH:\n",
        ),
        None,
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    patch, sort = FAULTS[fault]
    with patched(patch) as root:
        at, plan = portfolio(), SimulationPlan(events=EVENTS, seed=SEED)
        found = first_divergence(RunningConsumer(Parts.of(root)), lambda number: at[number % 2], plan)
    assert found is not None
    # What the model has no word for may show it first.
    assert sort is None or found.sort in (sort, Sort.CONTRADICTED)


def test_failures_come_by_turns_and_no_broker_fails_that_no_epoch_is_left_for() -> None:
    system = RunningConsumer()
    system.reset({"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}, 3)
    for seed in range(8):
        system.reset({"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}, seed)
        crashes = [each.event for each in system.pending() if each.event.what is EventKind.CRASH]
        assert all(event.node == 2 for event in crashes)
    assert Event(EventKind.CALL, "poll", args=(("records", 500),)) in [each.event for each in system.pending()]
