"""Votes on their way: a voter grants its vote, and the candidate hears of it later, again, or never (KIP-595).

In the other variants both are one step. Here the voter enters the epoch and stores its vote as it grants it, and the
answer travels to whoever asked. A candidate counts a voter once, and only a vote of the candidacy that it is in: in a
newer epoch the voter may have voted for somebody else, and may hold what was committed since. One that counts a late
vote all the same (``late-votes``) leads without a majority, and a committed record is lost.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET
from ..logs import EPOCH
from .log import counted
from .state import Rules, snapshots


def _travel(rules: Rules) -> bool:
    return rules.votes_travel


snapshots.variable("stood", "who stood for an epoch", OPTIONAL_REPLICA, per=(EPOCH,), initially=-1, present=_travel)
snapshots.variable(
    "granted",
    "who has granted its vote for an epoch; the answers are on their way",
    REPLICA_SET,
    per=(EPOCH,),
    present=_travel,
)


@snapshots.action(voter=REPLICA, epoch=EPOCH, present=_travel)
def hear_vote(k: Algebra, s: View, voter: Value, epoch: Value) -> Step:
    """A candidate hears that a voter has granted its vote, and counts it; with a majority it leads."""
    yield "vote_granted", k.member(voter, s.granted[epoch])
    yield "candidate_stands", s.candidate != k.NONE
    yield "asked_by_candidate", s.stood[epoch] == s.candidate
    now = s.newest_epoch
    yield "of_this_candidacy", epoch <= now if k.rules.counts_late_votes else epoch == now
    yield "not_counted", k.negate(k.member(voter, s.votes))
    yield s.update(**counted(k, s, s.candidate, k.with_member(s.votes, voter), now))
