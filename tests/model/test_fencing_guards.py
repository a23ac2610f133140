"""Which guards of KIP-320 a promise needs at three replicas, and how soon it breaks without them.

The matrix of mutants (``tests/conformance/test_mutants_model.py``) accounts for every guard, at the smallest constants
at which one tells; here all are at 3/2/2/2, where the shortest run is sometimes shorter.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fencepost.model.core.ground import System
from fencepost.model.explore import Query, Verdict, explore

from .guards import run_without

At = Callable[..., System]

BREAKS = {
    "controller_elect_leader.in_quorum_isr": ("leader_in_isr", 2),
    # The epochs of the model run out: the bound is the model's, not Kafka's.
    "controller_elect_leader.epoch_available": ("type_ok", 4),
    "controller_shrink_isr.epoch_available": ("type_ok", 4),
    # The leader takes up the request that made it leader again, with the ISR of then.
    "become_leader.epoch_newer": ("weak_isr", 7),
    "become_follower.epoch_newer": ("weak_isr", 10),
    "become_follower.leader_epoch_matches": ("weak_isr", 14),
    # A replica that never led has no epoch to write in.
    "leader_write.presumes_leadership": ("type_ok", 1),
    "leader_write.record_available": ("type_ok", 7),
    "follower_fetch.epoch_not_fenced": ("weak_isr", 12),
    "follower_fetch.record_available": ("type_ok", 3),
    "leader_inc_high_watermark.isr_acknowledges": ("weak_isr", 4),
    "leader_shrink_isr.true_leader": ("leader_in_isr", 4),
    "leader_expand_isr.epoch_not_fenced": ("weak_isr", 14),
    "leader_expand_isr.reached_high_watermark": ("weak_isr", 8),
    # KAFKA-7128: the new leader does not know yet what its predecessor committed.
    "leader_expand_isr.hw_reached_epoch": ("strong_isr", 11),
    "leader_expand_isr.true_leader": ("strong_isr", 9),
}

# Where the log has room for all records, the guard says nothing.
ROOM = {"leader_write.log_not_full": ("2/1/2/2", "type_ok", 4)}


@pytest.mark.parametrize("guard", BREAKS)
def test_without_it_a_promise_breaks(at: At, guard: str) -> None:
    assert run_without(at("3/2/2/2"), at("3/2/2/2", "kip-320", guard), guard) == BREAKS[guard]


def test_a_log_that_is_full_takes_no_record(at: At) -> None:
    for guard, (constants, violated, length) in ROOM.items():
        answer = explore(Query.of(at(constants, "kip-320", guard)))
        assert (answer.verdict, answer.violated, len(answer.path or [])) == (Verdict.VIOLATED, violated, length)
        assert explore(Query.of(at("2/2/2/2", "kip-320", guard))).distinct == 5973
