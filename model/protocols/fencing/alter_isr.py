"""The ISR as leader and controller change it by messages (KIP-497, "Add inter-broker API to alter ISR").

In KIP-320's model the leader changes its own ISR and the controller's in one step. Here it is a request (Kafka's
AlterPartition, which the KIP calls AlterIsr) and an answer. Either may be late, repeated or lost, so that for a while
the leader does not know which ISR holds, and a member that it does not know of may be elected. So its high watermark
waits for the *maximal* ISR: the members that it knows, and whoever is in a proposal that the controller may take up, or
has.

The controller takes up what names its own leader epoch and its own partition epoch, which then rises: of several
proposals for one partition epoch one is taken up. The answer says what holds now, and the leader takes it by its
partition epoch; one that it knows already changes nothing. **A refusal ends no proposal.** That the controller is in a
newer leader epoch says that it takes up no more copies, not that it has taken up none: who was let in may lead by now.
Only a newer partition epoch or a newer leader epoch tells.

Partition epochs are counted from 0 in each leader epoch and kept modulo 2, as in an alternating-bit protocol. That is
exact: the controller moves on only by a request for the epoch that it is in, which its leader knows, so it is never
more than one ahead of its leader. A request that is two behind is void for good, and forgotten.

A leader finds changes one by one (``leader_propose_shrink``, ``leader_propose_expand``). Each request asks for some of
those that it has found in a partition epoch: one, as Kafka's; two; or none, which asks for the ISR as it is and makes
the others void. Not modelled: replicas that are marked offline (INELIGIBLE_REPLICA), and other reasons for a partition
epoch to rise.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import REPLICA, REPLICA_SET, Index, integers
from ...core.terms import Sort
from ..logs import EPOCH
from .actions import may_join_isr, may_leave_isr
from .state import AlterIsr, Rules, fencing, presumes_leadership, sent

PARTITION_EPOCH = Index("partition_epoch", Sort.INT, lambda _: 2)

_PARTITION_EPOCHS = integers(-1, lambda _: 1)


def _asks(rules: Rules) -> bool:
    """The variant has requests for another ISR."""
    return rules.alter_isr is not None


def _forgets(rules: Rules) -> bool:
    """A leader of the variant may forget what it has proposed."""
    return rules.alter_isr in (AlterIsr.UNTIL_LOST, AlterIsr.UNTIL_FENCED)


def _led(k: Algebra, s: View, epoch: Value) -> Value:
    """Somebody leads in this epoch, by its own belief: there is one to take up an answer."""
    leader = s.request_leader[epoch]
    return k.all(leader != k.NONE, presumes_leadership(s, leader), s.leader_epoch[leader] == epoch)


def _asked(_k: Algebra, s: View, epoch: Value, _partition_epoch: Value) -> Value:
    return sent(_k, s, epoch)


def _leads(_k: Algebra, s: View, replica: Value) -> Value:
    return presumes_leadership(s, replica)


fencing.variable(
    "quorum_partition_epoch", "the controller's partition epoch, modulo 2", integers(0, lambda _: 1), present=_asks
)
fencing.variable(
    "partition_epoch",
    "the partition epoch that a leader knows, modulo 2",
    _PARTITION_EPOCHS,
    per=(REPLICA,),
    initially=-1,
    live=_leads,
    present=_asks,
)
fencing.variable(
    "proposed",
    "whom a leader has proposed to take in or out in the partition epoch that it knows",
    REPLICA_SET,
    per=(REPLICA,),
    live=_leads,
    present=_asks,
)
fencing.variable(
    "asked_in",
    "whom requests of a leader epoch and a partition epoch ask to take into the ISR",
    REPLICA_SET,
    per=(EPOCH, PARTITION_EPOCH),
    live=_asked,
    present=_asks,
)
fencing.variable(
    "asked_out",
    "whom requests of a leader epoch and a partition epoch ask to take out of the ISR",
    REPLICA_SET,
    per=(EPOCH, PARTITION_EPOCH),
    live=_asked,
    present=_asks,
)
fencing.variable(
    "altered_isr",
    "the ISR in the controller's last answer in a leader epoch",
    REPLICA_SET,
    per=(EPOCH,),
    live=_led,
    present=_asks,
)
fencing.variable(
    "altered_partition_epoch",
    "the partition epoch in the controller's last answer in a leader epoch, modulo 2",
    _PARTITION_EPOCHS,
    per=(EPOCH,),
    initially=-1,
    live=_led,
    present=_asks,
)


def _not_proposed(k: Algebra, s: View, leader: Value, follower: Value) -> Value:
    return k.negate(k.member(follower, s.proposed[leader]))


@fencing.action(leader=REPLICA, follower=REPLICA, present=_asks)
def leader_propose_shrink(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A presumed leader asks the controller to take a follower that lags out of the ISR.

    Until it knows better, the follower counts as a member.
    """
    epoch, known = s.leader_epoch[leader], s.partition_epoch[leader]
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield from may_leave_isr(k, s, leader, follower)
    yield "not_proposed", _not_proposed(k, s, leader, follower)
    yield s.update(
        proposed={leader: k.with_member(s.proposed[leader], follower)},
        asked_out={(epoch, known): k.with_member(s.asked_out[epoch, known], follower)},
    )


@fencing.action(leader=REPLICA, follower=REPLICA, present=_asks)
def leader_propose_expand(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A presumed leader asks the controller to take a follower that has reached its high watermark into the ISR.

    From now on the follower counts as a member.
    """
    epoch, known = s.leader_epoch[leader], s.partition_epoch[leader]
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield from may_join_isr(k, s, leader, follower)
    yield "not_proposed", _not_proposed(k, s, leader, follower)
    yield s.update(
        proposed={leader: k.with_member(s.proposed[leader], follower)},
        asked_in={(epoch, known): k.with_member(s.asked_in[epoch, known], follower)},
    )


def isr_as_asked(k: Algebra, s: View, epoch: Value, partition_epoch: Value, one: Value, other: Value) -> Value:
    """The controller's ISR with what a request asks for one replica and another; where it asks nothing, as it is."""
    ins, outs = s.asked_in[epoch, partition_epoch], s.asked_out[epoch, partition_epoch]

    def changed(isr: Value, replica: Value) -> Value:
        left = k.ite(k.member(replica, outs), k.without_member(isr, replica), isr)
        return k.ite(k.member(replica, ins), k.with_member(isr, replica), left)

    return changed(changed(s.quorum_isr, one), other)


@fencing.action(epoch=EPOCH, partition_epoch=PARTITION_EPOCH, one=REPLICA, other=REPLICA, present=_asks)
def controller_alter_isr(k: Algebra, s: View, epoch: Value, partition_epoch: Value, one: Value, other: Value) -> Step:
    """The controller takes up a leader's request for another ISR.

    The request asks for one replica's change or for two; the leader itself, whose place never changes, stands for none.
    """
    ins, outs = s.asked_in[epoch, partition_epoch], s.asked_out[epoch, partition_epoch]
    leader = s.request_leader[epoch]

    def changes(replica: Value) -> Value:
        return k.any(k.member(replica, ins), k.member(replica, outs))

    yield "request_sent", k.any(ins != k.EMPTY, outs != k.EMPTY)
    yield "changes_asked", k.all(k.any(one == leader, changes(one)), k.any(other == leader, changes(other)))
    yield "leader_epoch_matches", epoch == s.quorum_leader_epoch
    yield "partition_epoch_matches", partition_epoch == s.quorum_partition_epoch
    isr = isr_as_asked(k, s, epoch, partition_epoch, one, other)
    following = 1 - s.quorum_partition_epoch
    yield s.update(
        quorum_isr=isr,
        quorum_partition_epoch=following,
        # What was asked for two partition epochs ago.
        asked_in={(epoch, following): k.EMPTY},
        asked_out={(epoch, following): k.EMPTY},
        altered_isr={epoch: isr},
        altered_partition_epoch={epoch: following},
    )


@fencing.action(leader=REPLICA, present=_asks)
def leader_take_isr(k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader hears the controller's answer, with a newer partition epoch than it knows.

    The answer to any request of its leader epoch will do, taken up or refused: it says what holds. Every proposal for
    the partition epoch before is void.
    """
    epoch = s.leader_epoch[leader]
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "partition_epoch_newer", s.altered_partition_epoch[epoch] != s.partition_epoch[leader]
    yield s.update(
        isr={leader: s.altered_isr[epoch]},
        partition_epoch={leader: s.altered_partition_epoch[epoch]},
        proposed={leader: k.EMPTY},
    )


@fencing.action(leader=REPLICA, present=_forgets)
def leader_forget_proposal(k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader goes back to the ISR that it knows: nobody has answered, or it was fenced. It is not safe."""
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "proposal_open", s.proposed[leader] != k.EMPTY
    if k.rules.alter_isr is AlterIsr.UNTIL_FENCED:
        yield "fenced", s.leader_epoch[leader] < s.quorum_leader_epoch
    yield s.update(proposed={leader: k.EMPTY})
