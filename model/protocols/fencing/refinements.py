"""What the variants of ``fencing`` are in terms of each other (``explore/refine.py``).

A leader of KIP-497 that has not heard the controller's answer yet is, in the variants where both change the ISR in one
step, one that has: its ISR there is that of the answer. What it has proposed is nothing there. So with the leader of a
running cluster: its ISR is that of the request, which has whatever the controller granted.

What kip-320-brokers keeps and never reads, and a running cluster does not keep: the ISR of who leads nothing, which a
follower takes over from the request, and that of a request whose leader has taken it up already.
"""

from __future__ import annotations

from typing import Final

from ...core.algebra import Algebra, Value, View
from ...explore.refine import StateMapping
from .state import presumes_leadership


def _isr(k: Algebra, s: View, replica: Value) -> Value:
    return k.ite(presumes_leadership(s, replica), s.altered_isr[s.leader_epoch[replica]], s.isr[replica])


def _granted_isr(k: Algebra, s: View, replica: Value) -> Value:
    return k.ite(presumes_leadership(s, replica), s.request_isr[s.leader_epoch[replica]], s.isr[replica])


def _leaders_isr(k: Algebra, s: View, replica: Value) -> Value:
    return k.ite(presumes_leadership(s, replica), s.isr[replica], k.EMPTY)


def _isr_to_take_up(k: Algebra, s: View, epoch: Value) -> Value:
    leader = s.request_leader[epoch]
    return k.ite(k.any(leader == k.NONE, epoch <= s.leader_epoch[leader]), k.EMPTY, s.request_isr[epoch])


_ANSWERED: Final[StateMapping] = {"isr": _isr}

REFINEMENTS: Final[dict[tuple[str, str], StateMapping]] = {
    (variant, "kip-320-brokers"): _ANSWERED
    for variant in ("kip-497", "kip-497-eager", "kip-497-forgets", "kip-497-fenced")
} | {("kip-320-cluster", "kip-320-brokers"): {"isr": _granted_isr}}
"""By variant and the one that it is held against. Any other pair is compared variable by variable."""

UNREAD: Final[dict[tuple[str, str], StateMapping]] = {
    ("kip-320-cluster", "kip-320-brokers"): {"isr": _leaders_isr, "request_isr": _isr_to_take_up},
}
"""By the same: what cells of the second are compared as, where no step of it reads what they hold."""
