"""Brokers, consumer and quorum that come along do what the model does, faults included, in memory and on disk."""

from __future__ import annotations

import pytest
from fencepost.conformance.harness import find_harness, in_lockstep, over_impl, stepped_at
from fencepost.conformance.lockstep.faults import Kind
from fencepost.conformance.lockstep.runner import Conformance, Plan, conform
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS, REGISTRY
from fencepost.model.explore.result import Verdict

CONSTANTS = {
    "snapshots": {"max_chunks": 2},
    "compaction": {"max_changes": 2},
    "controller": {"max_controller_epoch": 1, "log_size": 4},
}
"""Where the defaults show too little: a snapshot of one chunk is never half fetched, nor a broker's strategy set.
Or more than there is time for by day."""

ON_DISK = {"controller": {"max_controller_epoch": 0, "log_size": 2}}
"""Where there are so many states that it takes longer to find places in them than to drive anybody."""

EXAMPLES = {"compaction": 225}
"""Where 75 runs seldom show all: that what a follower lacks is an empty batch comes once in a hundred."""

NEVER = {
    "controller": {
        *("resign", "load_snapshot", "order_snapshot", "begin_snapshot", "drop_order", "finish_snapshot"),
        "create_topic",
    },
    "tiering": {
        *("end_transaction", "increment_log_start", "disable_tiering", "enable_tiering", "copy_anew"),
        *("truncate_fully", "start_at_local_start", "start_at_log_start"),
    },
}
"""What cannot happen at the constants of a plan: no log start of a broker with tiered storage rises there, and no
controller makes a snapshot; topics are there at first."""

RARE = {"controller": {"propose_expand", "refuse_member"}}
"""What so few runs may not come to; each has a run of its own in a protocol's tests."""


def driven(protocol: str, examples: int, seed: int, *, disk: bool = False) -> Conformance:
    adapter = over_impl(protocol, None, disk=disk)
    text, binding = in_lockstep(protocol)
    constants = {**CONSTANTS.get(protocol, {}), **(ON_DISK.get(protocol, {}) if disk else {})}
    system = ground(text.traced(adapter.variant), stepped_at(protocol, constants))
    try:
        return conform(adapter, system, binding, Plan(examples, 50, seed))
    finally:
        adapter.close()


LOCKSTEP = sorted(name for name in REGISTRY if (harness := find_harness(name)) is not None and harness.over_impl)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("protocol", LOCKSTEP)
def test_they_conform_in_memory(protocol: str) -> None:
    found = driven(protocol, EXAMPLES.get(protocol, 75), 320)
    assert found.verdict is Verdict.HOLDS, found.failure and found.failure.divergence
    assert found.coverage.steps > 1_500
    drawn = {kind for kind, count in found.coverage.faults.items() if count}
    assert drawn == set(found.faults) >= {Kind.LOSE_REQUEST, Kind.DELAY_RESPONSE, Kind.DELIVER_LATE}
    # Every action of the model has happened, but for what a system does by itself and reports beside others.
    asked = {name for name, count in found.coverage.actions.items() if count.enabled}
    known = {action for action, _ in found.space.calls}
    never, rare = NEVER.get(protocol, set()), RARE.get(protocol, set())
    assert known - asked - never - rare <= {"leader_inc_high_watermark", *in_lockstep(protocol)[1].restarts}
    assert not asked & never


@pytest.mark.sampled(3)
@pytest.mark.parametrize("protocol", LOCKSTEP)
def test_they_conform_on_disk(protocol: str) -> None:
    found = driven(protocol, 6, 321, disk=True)
    assert found.verdict is Verdict.HOLDS, found.failure and found.failure.divergence


def test_the_same_seed_gives_the_same_run() -> None:
    first, again = (driven("fencing", 10, 7).coverage for _ in range(2))
    assert (first.steps, first.visits, first.met) == (again.steps, again.visits, again.met)


def test_a_protocol_that_is_not_implemented_is_refused() -> None:
    with pytest.raises(BadInput, match="does not implement 'paxos'"):
        over_impl("paxos", None, disk=False)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("constants", "option"),
    [({"lag_expires": 0}, "--lag-expires"), ({"late_responses": 1}, "--late-responses"), ({"observers": 3}, "--obs")],
)
def test_a_quorum_refuses_constants_with_which_it_cannot_be_driven(constants: dict[str, int], option: str) -> None:
    adapter = over_impl("snapshots", None, disk=False)
    with pytest.raises(BadInput, match=option):
        adapter.reset(PROTOCOLS["snapshots"].check_constants(constants), 0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("observers", [0, 1])
def test_a_smaller_quorum_and_one_with_an_observer_conform(observers: int) -> None:
    adapter = over_impl("snapshots", None, disk=False)
    constants = {"replicas": 2 + observers, "observers": observers, "minimum_records": 1 - observers}
    found = conform(
        adapter,
        ground(PROTOCOLS["snapshots"].traced(adapter.variant), constants),
        in_lockstep("snapshots")[1],
        Plan(30, 50, 1),
    )
    assert found.verdict is Verdict.HOLDS, found.failure and found.failure.divergence
