"""Why ``kip-630-votes`` keeps its promises, for any number of replicas, offsets, epochs and chunks.

The proof of ``kip-630-safe`` but for elections: a vote that is granted is on its way until its candidate hears of it.
Whoever has granted it is in the candidate's epoch at once, in which there is nobody to fetch from. So until the epoch
is decided its log stays as good as it was when it voted, or is emptied by a crash; and when the vote is counted, all
that the other proof knows of a voter holds of it. A vote of a former candidacy tells nothing of the kind.
"""

from __future__ import annotations

from pathlib import Path

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ...prove.proof import Ghosts, Proof
from ..logs import EPOCH, OFFSET
from .proof import kip_630
from .proof_ghosts import constants_at, counted_votes
from .proof_hints import voted_for
from .proof_lemmas import is_for_a_better_log
from .state import snapshots

kip_630_votes = Proof(
    snapshots,
    variant="kip-630-votes",
    sizes=kip_630.sizes,
    runs=(constants_at(3, 0, 1, 2, 1, 0),),
    twins=("late-votes",),
    cores=Path(__file__).with_name("cores-kip-630-votes.json"),
)

_IN_ONE_STEP = {"grant_vote", "votes_are_for_newest", "votes_are_for_better_logs"}
"""What speaks of votes that are counted as they are granted."""

kip_630_votes.takes(
    kip_630, *(name for name in (*kip_630.ghosts, *kip_630.update_texts, *kip_630.lemmas) if name not in _IN_ONE_STEP)
)
kip_630_votes.takes_hints(kip_630)


@kip_630_votes.updates("hear_vote")
def _heard(k: Algebra, s: View, voter: Value, epoch: Value) -> Ghosts:  # noqa: ARG001 - as the action has it
    return counted_votes(k, s, s.candidate, k.with_member(s.votes, voter), s.newest_epoch)


def _voted(k: Algebra, s: View, replica: Value) -> Value:
    """The replica has voted for whoever stands now, whether that is counted or on its way."""
    voted = k.any(k.member(replica, s.votes), k.member(replica, s.granted[s.newest_epoch]))
    return k.all(s.candidate != k.NONE, voted)


@kip_630_votes.lemma(epoch=EPOCH, replica=REPLICA)
def granters_moved_on(k: Algebra, s: View, epoch: Value, replica: Value) -> Value:
    """Whoever has granted its vote for an epoch is in it or in a later one: nobody has for one yet to come."""
    return k.implies(k.member(replica, s.granted[epoch]), epoch <= s.leader_epoch[replica])


@kip_630_votes.lemma(replica=REPLICA)
def votes_are_for_newest(k: Algebra, s: View, replica: Value) -> Value:
    """Whoever voted for the candidate is in its epoch, in which there is nobody to fetch from."""
    return k.implies(_voted(k, s, replica), s.leader_epoch[replica] == s.newest_epoch)


@kip_630_votes.lemma(replica=REPLICA)
def votes_are_for_better_logs(k: Algebra, s: View, replica: Value) -> Value:
    """The candidate's log is at least as good as that of each of its voters; half a snapshot is as good as nothing."""
    return is_for_a_better_log(k, s, replica, _voted(k, s, replica))


kip_630_votes.hints("hear_vote", offset=OFFSET)(voted_for)
