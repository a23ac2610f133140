"""A controller that takes a failed follower out of the ISR in the leader epoch that there is (K14).

In KIP-320's model the controller does so in a new leader epoch. Apache Kafka's, with KRaft, writes a record with a new
partition epoch alone, unasked, when it fences a follower's broker, or when that begins to shut down (KAFKA-15021). So
several ISRs of one leader epoch may be on their way to its leader, which hears of them in their order, one by one or
several at once. What it asks for meanwhile is void, as that goes by an ISR that is over.

The request of an epoch has the ISR of which its leader hears next, if it has not heard of it; ``later_isr`` those that
came of fencings since. What a leader has asked for is never among them: it is taken up only by the ISR that holds.
"""

from __future__ import annotations

from typing import Any

from ...core.algebra import EVERY, Algebra, Step, Value, View
from ...core.domains import REPLICA, REPLICA_SET, Index
from ...core.terms import Sort
from ..logs import EPOCH
from .state import Rules, fencing, presumes_leadership

FENCING = Index("fencing", Sort.INT, lambda c: c["replicas"])
"""The fencings of which a leader has not heard, in their order: there are fewer than replicas."""


def _fences(rules: Rules) -> bool:
    return rules.fences


fencing.variable(
    "later_isr",
    "the ISR after each fencing in an epoch of which its leader has not heard; empty where there is no such fencing",
    REPLICA_SET,
    per=(EPOCH, FENCING),
    present=_fences,
)


@fencing.action(replica=REPLICA, present=_fences)
def controller_fence_follower(k: Algebra, s: View, replica: Value) -> Step:
    """The controller takes a follower out of the ISR, unasked, in the leader epoch that there is."""
    epoch = s.quorum_leader_epoch
    yield "is_led", s.quorum_leader != k.NONE
    yield "not_leader_itself", replica != s.quorum_leader
    yield "in_quorum_isr", k.member(replica, s.quorum_isr)
    isr = k.without_member(s.quorum_isr, replica)
    free = k.first(FENCING, lambda n: s.later_isr[epoch, n] == k.EMPTY, 0)
    yield s.update(quorum_isr=isr, later_isr={(epoch, free): isr})


@fencing.action(leader=REPLICA, place=FENCING, present=_fences)
def leader_learn_later_isr(k: Algebra, s: View, leader: Value, place: Value) -> Step:
    """A presumed leader replays the record of a fencing, and of all that came before it in its leader epoch."""
    epoch = s.leader_epoch[leader]
    isr = s.later_isr[epoch, place]
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "was_fenced", isr != k.EMPTY
    ahead: dict[str, Any] = {"ahead": {leader: 0}} if k.rules.forgets else {}
    yield s.update(
        isr={leader: isr},
        maximal_isr={leader: isr},
        asked_isr={leader: isr},
        request_isr={epoch: isr},
        later_isr={(epoch, EVERY): lambda n: s.later_isr[epoch, n + place + 1]},
        **ahead,
    )
