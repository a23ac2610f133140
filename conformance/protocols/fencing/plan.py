"""At which constants ``fencing`` is checked: replicas/log size/records/leader epoch."""

from __future__ import annotations

from typing import Final

from ...plan import Plan

_MAIN: Final = "3/2/2/2"
_SMALL: Final = "2/2/2/2"
_TINY: Final = "2/1/1/1"
_LEAST: Final = "2/1/1/0"
"""With requests for another ISR in flight there are forty times as many states as without."""
_CRASHES: Final = "3/1/1/1"
"""With crashes there are ten times as many states: what must break does so at these constants too."""
_CLUSTER: Final = "2/2/2/1"
"""With the steps of a running cluster there are a hundred times as many."""
_ELECTED_AGAIN: Final = "3/1/1/2"
"""A leader of two epochs, with another between, tells two variants with remote LEOs apart."""

PLAN: Final = Plan(
    at=_MAIN,
    holds={
        "kip-320-restarts": _CRASHES,
        "kip-320-brokers": _ELECTED_AGAIN,
        "kip-497": _TINY,
        "kip-320-cluster": _CLUSTER,
        "kip-320-kafka-fences": _CLUSTER,
        "kip-320-kafka": _CLUSTER,
    },
    breaks={
        "truncate-to-hw": _MAIN,
        "kip-101": _MAIN,
        "kip-279": _MAIN,
        "kip-320-first-try": _MAIN,
        "kip-320-resumes": _CRASHES,
        "kip-320-forgets": _CRASHES,
        "kip-320-stale-acks": _ELECTED_AGAIN,
        "kip-497-eager": _TINY,
        "kip-497-forgets": _TINY,
        "kip-497-fenced": _TINY,
        "kip-320-kafka-stale-acks": _ELECTED_AGAIN,
        "kip-320-kafka-forgets": _CRASHES,
        "kip-320-kafka-shipped": _CRASHES,
        "kip-320-kafka-shipped-fences": _CRASHES,
    },
    # Without any of these guards a committed record is lost at three replicas.
    needed=(
        "follower_fetch.epoch_not_fenced",
        "become_follower.leader_epoch_matches",
        "leader_inc_high_watermark.isr_acknowledges",
        "leader_expand_isr.hw_reached_epoch",
        "leader_expand_isr.true_leader",
    ),
    engines={
        "truncate-to-hw": _SMALL,
        "kip-101": _SMALL,
        "kip-279": _SMALL,
        "kip-320-first-try": _SMALL,
        "kip-320-resumes": _TINY,
        "kip-320-forgets": _TINY,
        "kip-320-restarts": _TINY,
        "kip-320-stale-acks": _TINY,
        "kip-320-brokers": _TINY,
        "kip-497-eager": _LEAST,
        "kip-497-forgets": _LEAST,
        "kip-497-fenced": _LEAST,
        "kip-497": _LEAST,
        "kip-320-cluster": _TINY,
        "kip-320-kafka-shipped": _TINY,
        "kip-320-kafka-stale-acks": _TINY,
        "kip-320-kafka-forgets": _TINY,
        "kip-320-kafka-shipped-fences": _LEAST,
        "kip-320-kafka-fences": _LEAST,
        "kip-320-kafka": _TINY,
        "kip-320": _SMALL,
    },
    relations=(_TINY, _MAIN),
    liveness=_SMALL,
    fails=frozenset({("final_leader_commits_record", "kip")}),
    replayed=("truncate-to-hw", _SMALL),
    unproved=("kip-279",),
    # At 2/1/2/2 the log has no room for all records.
    # Each decision of the controller takes a leader epoch, and a run is over when they are used up.
    free=("2/4/6/12", "3/4/6/12", "3/6/10/8", "4/4/6/10"),
    rungs=("2/1/1/1", "2/1/2/2", "2/2/2/2", "3/1/1/1", "3/2/2/2"),
)
"""Of KIP-320's replicas."""
