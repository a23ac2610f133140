"""The log that ``snapshots`` cuts: elections, appends and the high watermark."""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import REPLICA
from ..logs import EPOCH, OFFSET
from .state import enter_epoch, in_whole_exchanges, presumes_leadership, snapshots, vote_log


def counted(k: Algebra, s: View, candidate: Value, votes: Value, epoch: Value) -> dict[str, Value]:
    """The votes so far; with a majority of them the candidate leads."""
    won = k.majority(votes, s.voters)
    return {
        "candidate": k.ite(won, k.NONE, candidate),
        "votes": votes,
        "epoch_leader": {epoch: k.ite(won, candidate, k.NONE)},
    }


@snapshots.action(candidate=REPLICA, present=in_whole_exchanges)
def become_candidate(k: Algebra, s: View, candidate: Value) -> Step:
    """A voter stands for the next epoch and votes for itself."""
    yield "is_voter", k.member(candidate, s.voters)
    yield "not_leading", k.negate(presumes_leadership(k, s, candidate))
    yield "epoch_available", s.newest_epoch < k.c.max_leader_epoch
    epoch = s.newest_epoch + 1
    stands = {"stood": {epoch: candidate}} if k.rules.votes_travel else {}
    yield s.update(
        newest_epoch=epoch,
        **stands,
        **counted(k, s, candidate, k.only(candidate), epoch),
        **enter_epoch(k, s, candidate, epoch),
    )


def reaches_as_far(k: Algebra, s: View, candidate: Value, voter: Value) -> Value:
    """The candidate's log reaches as far as the voter's."""
    (last, end), (own_last, own_end) = vote_log(k, s, candidate), vote_log(k, s, voter)
    return k.any(own_last < last, k.all(own_last == last, own_end <= end))


@snapshots.action(voter=REPLICA, present=in_whole_exchanges)
def grant_vote(k: Algebra, s: View, voter: Value) -> Step:
    """A voter grants its vote to the candidate: KIP-595's rule, with KIP-630's word on incomplete snapshots."""
    epoch = s.newest_epoch
    free = s.leader_epoch[voter] < epoch
    if k.rules.as_nodes:
        # Who has refused is in the epoch, and may have another log after a crash.
        again = k.all(s.leader_epoch[voter] == epoch, k.negate(k.member(voter, s.votes)))
        if k.rules.votes_travel:
            again = k.all(again, k.negate(k.member(voter, s.granted[epoch])))
        free = k.any(free, again)
    yield "candidate_stands", s.candidate != k.NONE
    yield "is_voter", k.member(voter, s.voters)
    yield "epoch_newer", free
    yield "up_to_date", reaches_as_far(k, s, s.candidate, voter)
    if k.rules.votes_travel:
        granted = k.with_member(s.granted[epoch], voter)
        yield s.update(granted={epoch: granted}, **enter_epoch(k, s, voter, epoch))
        return
    yield s.update(
        **counted(k, s, s.candidate, k.with_member(s.votes, voter), epoch),
        **enter_epoch(k, s, voter, epoch),
    )


@snapshots.action(voter=REPLICA, present=lambda rules: rules.as_nodes and in_whole_exchanges(rules))
def refuse_vote(k: Algebra, s: View, voter: Value) -> Step:
    """A voter refuses its vote, and is in the candidate's epoch all the same (KIP-595)."""
    yield "candidate_stands", s.candidate != k.NONE
    yield "is_voter", k.member(voter, s.voters)
    yield "epoch_newer", s.leader_epoch[voter] < s.newest_epoch
    yield "out_of_date", k.negate(reaches_as_far(k, s, s.candidate, voter))
    yield s.update(**enter_epoch(k, s, voter, s.newest_epoch))


@snapshots.action(follower=REPLICA, epoch=EPOCH, present=in_whole_exchanges)
def become_follower(k: Algebra, s: View, follower: Value, epoch: Value) -> Step:
    """A replica hears of the leader of a newer epoch (BeginQuorumEpoch, or a response that names it)."""
    yield "leader_elected", s.epoch_leader[epoch] != k.NONE
    yield "epoch_newer", s.leader_epoch[follower] < epoch
    yield s.update(**enter_epoch(k, s, follower, epoch))


@snapshots.action(leader=REPLICA, present=in_whole_exchanges)
def leader_write(k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader appends a record in its own epoch."""
    end = s.leo[leader]
    yield "presumes_leadership", presumes_leadership(k, s, leader)
    yield "log_not_full", end < k.c.log_size
    yield s.update(leo={leader: end + 1}, record_epoch={(leader, end): s.leader_epoch[leader]})


@snapshots.action(leader=REPLICA, offset=OFFSET, present=in_whole_exchanges)
def leader_inc_high_watermark(k: Algebra, s: View, leader: Value, offset: Value) -> Step:
    """A presumed leader counts one more record as committed: a majority has its log up to a record of its own epoch."""
    hw = s.hw[leader]
    yield "presumes_leadership", presumes_leadership(k, s, leader)
    yield "above_high_watermark", hw <= offset
    yield "of_own_epoch", s.record_epoch[leader, offset] == s.leader_epoch[leader]
    yield "majority_acknowledges", k.majority(k.with_member(s.acknowledged[leader, offset], leader), s.voters)
    known = s.committed[hw]
    yield s.update(hw={leader: hw + 1}, committed={hw: k.ite(known == -1, s.record_epoch[leader, hw], known)})
