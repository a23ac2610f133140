"""What ``fencing`` promises in every state, and what some run of it must meet."""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ..logs import OFFSET
from .state import fencing, is_true_leader, presumes_leadership, same_record


def _committed_on(k: Algebra, s: View, leader: Value, replicas: Value) -> Value:
    """Every record below the leader's high watermark is in the logs of these replicas."""
    return k.forall(
        REPLICA,
        lambda r: k.implies(
            k.member(r, replicas),
            k.forall(OFFSET, lambda o: k.implies(o < s.hw[leader], same_record(k, s, leader, r, o))),
        ),
    )


@fencing.always
def weak_isr(k: Algebra, s: View) -> Value:
    """A presumed leader's records below its high watermark are on every member of the ISR that it knows."""
    return k.forall(REPLICA, lambda r: k.implies(presumes_leadership(s, r), _committed_on(k, s, r, s.isr[r])))


@fencing.always
def strong_isr(k: Algebra, s: View) -> Value:
    """A presumed leader's records below its high watermark are on every member of the controller's ISR.

    Whoever is elected next has them, so what a consumer saw is never lost.
    """
    return k.forall(REPLICA, lambda r: k.implies(presumes_leadership(s, r), _committed_on(k, s, r, s.quorum_isr)))


@fencing.always
def leader_in_isr(k: Algebra, s: View) -> Value:
    """While there is a leader, it is in the controller's ISR."""
    return k.any(s.quorum_leader == k.NONE, k.member(s.quorum_leader, s.quorum_isr))


@fencing.sometimes()
def record_committed(k: Algebra, s: View) -> Value:
    """Some leader counts a record as committed."""
    return k.exists(REPLICA, lambda r: k.all(presumes_leadership(s, r), s.hw[r] > 0))


@fencing.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0)
def two_presumed_leaders(k: Algebra, s: View) -> Value:
    """Two replicas presume leadership at once (one is a zombie)."""
    return k.exists(
        REPLICA,
        lambda a: k.exists(REPLICA, lambda b: k.all(a != b, presumes_leadership(s, a), presumes_leadership(s, b))),
    )


@fencing.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0 and c["max_records"] > 1)
def logs_diverge(k: Algebra, s: View) -> Value:
    """Two logs hold different records at one offset: there is something to truncate."""
    return k.exists(
        REPLICA,
        lambda a: k.exists(
            REPLICA,
            lambda b: k.all(0 < s.leo[a], 0 < s.leo[b], s.record_id[a, 0] != s.record_id[b, 0]),
        ),
    )


@fencing.sometimes(lambda c: c["replicas"] > 1)
def isr_shrunk(k: Algebra, s: View) -> Value:
    """The leader works on with an ISR that lacks a replica."""
    return k.exists(
        REPLICA,
        lambda r: k.all(is_true_leader(k, s, r), k.negate(k.forall(REPLICA, lambda m: k.member(m, s.quorum_isr)))),
    )
