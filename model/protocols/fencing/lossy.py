"""KIP-320, KIP-279 and KIP-101 on clusters that lose records: by unclean elections (KIP-106) and by lost disks.

It is a protocol of its own beside ``fencing``: the same state and steps, and two more. It breaks the invariants by
design, so no plan and no proof is about it; ``fencepost check`` looks in it for the cause of a loss.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import REPLICA
from ...core.protocol import Protocol
from .actions import send_leader_and_isr
from .state import Rules, Truncation, fencing


@dataclass(frozen=True)
class LossyRules(Rules):
    """The rules of a variant that loses records. ``loses_logs``: disks come back empty, too."""

    loses_logs: bool = False


lossy = Protocol(fencing.name, fencing.source, constants=tuple(fencing.constants.values()))
lossy.variables = dict(fencing.variables)
lossy.indices = dict(fencing.indices)
lossy.actions = dict(fencing.actions)
lossy.invariants = dict(fencing.invariants)
for _name, _truncation in (("kip-101", Truncation.EPOCH_END), ("kip-279", Truncation.FIRST_MISMATCH)):
    lossy.variant(f"{_name}-unclean", LossyRules(_truncation), f"{_name} with unclean leader elections")
lossy.variant(
    "kip-320-lossy",
    LossyRules(Truncation.FIRST_MISMATCH, fenced=True, loses_logs=True),
    "kip-320-unclean with replicas that lose their log",
)
lossy.variant(
    "kip-320-unclean",
    LossyRules(Truncation.FIRST_MISMATCH, fenced=True),
    "kip-320 with unclean leader elections",
)


@lossy.action(new_leader=REPLICA)
def controller_elect_uncleanly(k: Algebra, s: View, new_leader: Value) -> Step:
    """The controller makes a replica outside the ISR the leader, and the whole ISR (KIP-106)."""
    yield "no_leader", s.quorum_leader == k.NONE
    yield "outside_quorum_isr", k.negate(k.member(new_leader, s.quorum_isr))
    yield "epoch_available", s.next_leader_epoch <= k.c.max_leader_epoch
    yield send_leader_and_isr(k, s, new_leader, k.only(new_leader))


@lossy.action(replica=REPLICA, present=lambda rules: rules.loses_logs)
def replica_lose_log(k: Algebra, s: View, replica: Value) -> Step:
    """A replica comes back with an empty disk. It knows no leader epoch, and the controller keeps it in the ISR."""
    yield "has_records", s.leo[replica] > 0
    yield s.update(
        leo={replica: 0},
        hw={replica: 0},
        leader_epoch={replica: -1},
        leader={replica: k.NONE},
        isr={replica: k.EMPTY},
    )
