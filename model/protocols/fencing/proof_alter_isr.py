"""Why ``kip-497`` keeps its promises, for any number of replicas, offsets, records and leader epochs.

The proof of ``kip-320-brokers``, with one thing otherwise: the controller's ISR and the leader's are not one. The
*counted* ISR of an epoch is whom its leader counts on: who is in the ISR that it knows, or in a proposal of it. The
controller's ISR is within the counted one, and so is whoever it may take in by a request that is on its way, though the
leader that asked for it may be gone. An answer is news to its leader where it has another partition epoch than the
leader knows; whatever was asked for in the partition epoch before is void by then.
"""

from __future__ import annotations

from pathlib import Path

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ...prove.proof import Ghosts, Proof
from ..logs import EPOCH, OFFSET
from .alter_isr import PARTITION_EPOCH, isr_as_asked
from .proof import is_started
from .proof_brokers import below_the_epoch, kip_320_brokers
from .state import fencing, presumes_leadership

kip_497 = Proof(
    fencing,
    variant="kip-497",
    sizes=kip_320_brokers.sizes,
    twins=("kip-497-eager", "kip-497-forgets", "kip-497-fenced"),
    cores=Path(__file__).with_name("cores-kip-497.json"),
)

_IN_ONE_STEP = {"leader_shrink_isr", "leader_expand_isr", "leader_counts_its_isr"}
"""What speaks of an ISR that leader and controller change at once."""

kip_497.takes(
    kip_320_brokers,
    *(
        name
        for name in (*kip_320_brokers.ghosts, *kip_320_brokers.update_texts, *kip_320_brokers.lemmas)
        if name not in _IN_ONE_STEP
    ),
)
kip_497.takes_hints(kip_320_brokers)
kip_497.hints("leader_propose_expand", offset=OFFSET)(below_the_epoch)


@kip_497.updates("leader_propose_expand")
def _proposed(k: Algebra, s: View, leader: Value, follower: Value) -> Ghosts:
    epoch = s.leader_epoch[leader]
    isr = k.with_member(s.counted_isr[epoch], follower)
    return {"counted_isr": lambda e: k.ite(e == epoch, isr, s.counted_isr[e])}


@kip_497.updates("controller_alter_isr")
def _altered(k: Algebra, s: View, epoch: Value, partition_epoch: Value, one: Value, other: Value) -> Ghosts:
    isr = isr_as_asked(k, s, epoch, partition_epoch, one, other)
    return {"final_isr": lambda e: k.ite(e == epoch, isr, s.final_isr[e])}


@kip_497.updates("leader_take_isr")
def _taken(k: Algebra, s: View, leader: Value) -> Ghosts:
    epoch = s.leader_epoch[leader]
    return {"counted_isr": lambda e: k.ite(e == epoch, s.altered_isr[epoch], s.counted_isr[e])}


# The controller and its requests.


@kip_497.lemma()
def controller_has_its_leader(k: Algebra, s: View) -> Value:
    """The controller has the leader that its newest request names: no request for another ISR takes it out."""
    return k.implies(0 <= s.quorum_leader_epoch, s.quorum_leader == s.request_leader[s.quorum_leader_epoch])


@kip_497.lemma()
def nothing_altered_before_the_start(k: Algebra, s: View) -> Value:
    """Until its leader takes the controller's epoch up, the partition epoch is the first: both begin with the same."""
    now = s.quorum_leader_epoch
    return k.implies(k.all(0 <= now, k.negate(is_started(s, now))), s.quorum_partition_epoch == 0)


@kip_497.lemma(epoch=EPOCH, partition_epoch=PARTITION_EPOCH, member=REPLICA)
def asked_by_a_leader(k: Algebra, s: View, epoch: Value, partition_epoch: Value, member: Value) -> Value:
    """Only a leader asks for another ISR, and never that it be taken out itself."""
    asked_out = k.member(member, s.asked_out[epoch, partition_epoch])
    return k.all(
        k.implies(k.any(k.member(member, s.asked_in[epoch, partition_epoch]), asked_out), is_started(s, epoch)),
        k.implies(asked_out, member != s.request_leader[epoch]),
    )


# Proposals, requests and answers.


@kip_497.lemma(leader=REPLICA, member=REPLICA)
def leader_counts_proposals(k: Algebra, s: View, leader: Value, member: Value) -> Value:
    """A presumed leader counts on whom it knows to be in the ISR, and on whom it has proposed to take in or out."""
    counted = k.any(k.member(member, s.isr[leader]), k.member(member, s.proposed[leader]))
    return k.implies(presumes_leadership(s, leader), counted == k.member(member, s.counted_isr[s.leader_epoch[leader]]))


@kip_497.lemma(member=REPLICA)
def asked_is_counted(k: Algebra, s: View, member: Value) -> Value:
    """Whom the controller may yet take in is counted, though the leader that has asked for it may be gone."""
    epoch = s.quorum_leader_epoch
    return k.implies(
        k.all(0 <= epoch, k.member(member, s.asked_in[epoch, s.quorum_partition_epoch])),
        k.member(member, s.counted_isr[epoch]),
    )


@kip_497.lemma(leader=REPLICA, member=REPLICA)
def answer_tells_the_final_isr(k: Algebra, s: View, leader: Value, member: Value) -> Value:
    """The controller's last answer to a presumed leader tells its epoch's ISR as it was left, or is now."""
    epoch = s.leader_epoch[leader]
    return k.implies(
        presumes_leadership(s, leader),
        k.member(member, s.altered_isr[epoch]) == k.member(member, s.final_isr[epoch]),
    )


@kip_497.lemma(leader=REPLICA)
def answer_tells_the_partition_epoch(k: Algebra, s: View, leader: Value) -> Value:
    """And so it tells the partition epoch, in the controller's leader epoch: who has heard it asks in the right one."""
    epoch = s.leader_epoch[leader]
    return k.implies(
        presumes_leadership(s, leader),
        k.all(
            0 <= s.partition_epoch[leader],
            0 <= s.altered_partition_epoch[epoch],
            k.implies(epoch == s.quorum_leader_epoch, s.altered_partition_epoch[epoch] == s.quorum_partition_epoch),
        ),
    )


@kip_497.lemma(leader=REPLICA, partition_epoch=PARTITION_EPOCH, member=REPLICA)
def nothing_asked_before_the_answer(k: Algebra, s: View, leader: Value, partition_epoch: Value, member: Value) -> Value:
    """Before a leader has heard of a partition epoch it has asked for nothing in it, so the controller stays in it."""
    epoch = s.leader_epoch[leader]
    ins, outs = s.asked_in[epoch, partition_epoch], s.asked_out[epoch, partition_epoch]
    return k.implies(
        k.all(
            presumes_leadership(s, leader),
            s.altered_partition_epoch[epoch] != s.partition_epoch[leader],
            partition_epoch != s.partition_epoch[leader],
        ),
        k.negate(k.any(k.member(member, ins), k.member(member, outs))),
    )
