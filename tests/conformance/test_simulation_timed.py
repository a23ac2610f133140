"""Timers are held to the configuration: one that is set for another time is found, wherever nodes run freely."""

from __future__ import annotations

import pytest
from fencepost.conformance.checks.timers import (
    Mistimed,
    check_timer,
    waits_of_broker,
    waits_of_controller,
    waits_of_lifecycle,
    waits_of_quorum,
)
from fencepost.conformance.harness import find_harness, plan_of
from fencepost.conformance.mutants.patched import Patch
from fencepost.conformance.simulation.divergence import Sort
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.impl.kraft.config import ControllerConfig, LifecycleConfig
from fencepost.impl.quorum.config import QuorumConfig
from fencepost.impl.replica.config import BrokerConfig
from fencepost.impl.tiering import TieringConfig
from fencepost.impl.wire.messages import TopicPartition
from fencepost.model.core.registry import PROTOCOLS

from .freely import Freely

MISTIMED = {
    "a broker's heartbeat comes a millisecond early": (
        "controller",
        Patch(
            "kraft/lifecycle.py",
            "self._timers.set(HEARTBEAT, self._clock.now() + milliseconds)",
            "self._timers.set(HEARTBEAT, self._clock.now() + milliseconds - 1)",
        ),
        "timer heartbeat to run off",
    ),
    "a session is over a millisecond late": (
        "controller",
        Patch(
            "kraft/sessions.py",
            "            session.heard_at + self._timeout\n",
            "            session.heard_at + self._timeout + 1\n",
        ),
        "timer sessions to run off",
    ),
    "a follower of the quorum asks again a millisecond late": (
        "snapshots",
        Patch(
            "quorum/node.py",
            "self.timers.set(key, self.now() + milliseconds)",
            "self.timers.set(key, self.now() + milliseconds + 1)",
        ),
        "to run off",
    ),
    "a follower fetches a millisecond late": (
        "fencing",
        Patch(
            "replica/follower.py",
            "self._runtime.clock.now() + milliseconds)",
            "self._runtime.clock.now() + milliseconds + 1)",
        ),
        "timer fetch t-0 to run off",
    ),
    "a produce request is given up a millisecond late": (
        "fencing",
        Patch(
            "replica/purgatory.py",
            "+ self._runtime.config.request_timeout_ms",
            "+ self._runtime.config.request_timeout_ms + 1",
        ),
        "timer produce t-0 to run off",
    ),
    "the ISR is looked at as often as followers may lag": (
        "truncation",
        Patch("replica/partition.py", "runtime.config.isr_interval_ms", "runtime.config.replica_lag_time_max_ms"),
        "timer isr t-",
    ),
    "the cleaner pauses for half of its time": (
        "compaction",
        Patch(
            "replica/broker.py",
            "wait = self.config.cleaner.backoff_ms if",
            "wait = self.config.cleaner.backoff_ms // 2 if",
        ),
        "timer log-cleaner to run off",
    ),
    "a broker looks late for what it asked another one": (
        "tiering",
        Patch(
            "tiering/steps.py",
            "task.deadline = now + effect.milliseconds",
            "task.deadline = now + effect.milliseconds + 1",
        ),
        "timer remote t-0 to run off",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MISTIMED)
def test_a_timer_that_is_set_for_another_time_is_found(name: str) -> None:
    protocol, patch, words = MISTIMED[name]
    harness = find_harness(protocol)
    make = None if harness is None else harness.find_free_over()
    assert make is not None
    portfolio = plan_of(PROTOCOLS[protocol]).free
    found = Freely(protocol, make, make(None).variant).first_divergence(
        portfolio, SimulationPlan(runs=30, seed=5), patch
    )
    assert found is not None and found.sort is Sort.CONTRADICTED
    assert words in found.headline


WAITS = {
    "broker": waits_of_broker(BrokerConfig()),
    "tiered": waits_of_broker(BrokerConfig(), TieringConfig(), far=1 << 40),
    "quorum": waits_of_quorum(QuorumConfig((1, 2, 3))),
    "controller": waits_of_controller(ControllerConfig()),
    "lifecycle": waits_of_lifecycle(LifecycleConfig()),
}
PARTITION = TopicPartition("t", 0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("part", "key", "times"),
    [
        ("broker", ("fetch", PARTITION), (0, 50, 1_000, 30_000)),
        ("broker", ("isr", PARTITION), (15_000,)),
        ("broker", ("high-watermarks",), (5_000,)),
        ("broker", ("recovery-points",), (60_000,)),
        ("quorum", ("fetch",), (0, 50, 500)),
        ("quorum", ("begin-epoch",), (500,)),
        ("controller", ("heartbeat",), (2_000,)),
        ("lifecycle", ("heartbeat",), (0, 100, 1_000, 2_000)),
    ],
)
def test_a_timer_runs_off_after_a_time_that_is_configured(part: str, key: tuple[str], times: tuple[int, ...]) -> None:
    now = 7_000
    for each in times:
        check_timer(1, key, now + each, WAITS[part], now, {0, now})
        for wrong in (each - 1, each + 1):
            with pytest.raises(Mistimed, match=rf"^node 1 sets its timer {key[0]}.* to run off {wrong} ms from now"):
                check_timer(1, key, now + wrong, WAITS[part], now, {0, now})


def test_what_waits_since_something_happened_is_held_to_when_it_did() -> None:
    sessions = WAITS["controller"]
    check_timer(3, ("sessions",), 9_500, sessions, 2_000, {0, 500, 2_000})
    with pytest.raises(Mistimed, match="7501 ms from now, and its configuration allows 9000 ms after something that"):
        check_timer(3, ("sessions",), 9_501, sessions, 2_000, {0, 500, 2_000})
    # The same is no time for a timer that is set from now on.
    with pytest.raises(Mistimed):
        check_timer(3, ("heartbeat",), 2_500, sessions, 2_000, {0, 500, 2_000})


def test_a_candidate_waits_for_one_to_two_time_outs_and_a_successor_for_its_turn() -> None:
    quorum = WAITS["quorum"]
    for wait in (0, 1_000, 1_001, 1_999, 2_000):
        check_timer(2, ("election",), 100 + wait, quorum, 100, {100})
    for wait in (1, 999, 2_001, 3_000):
        with pytest.raises(Mistimed):
            check_timer(2, ("election",), 100 + wait, quorum, 100, {100})


def test_a_task_of_remote_storage_backs_off_twice_as_long_each_time() -> None:
    tiered = WAITS["tiered"]
    for wait in (0, 20, 200, 500, 1_000, 16_000, 30_000, 1 << 40):
        check_timer(0, ("remote", PARTITION), 100 + wait, tiered, 100, {100})
    with pytest.raises(Mistimed):
        check_timer(0, ("remote", PARTITION), 850, tiered, 100, {100})
    with pytest.raises(Mistimed, match="of which its configuration says nothing"):
        check_timer(0, ("remote", PARTITION), 100, WAITS["broker"], 100, {100})
