"""The steps of a quorum that runs by itself: elections with votes in flight, counting, crashes, what clients were told.

``fetch.py`` and ``actions.py`` have the steps that these nodes share with the other variants. An exchange is one step
here too; who follows a running system takes its halves apart, so every step reads what one side has sent and writes
what the other does with it. For that each replica has what is its own: its vote and whom it knows to lead, the votes
that a candidate has counted, how far a leader knows each voter's log, and how far its log is synced.

**What is on disk before it is told**: the epoch and the vote, before anything is done in it or with it; the log, before
a Fetch leaves, which acknowledges it, before a leader counts itself, and before a snapshot of it is written; a
snapshot, before it is gone by. All else a crash may take: records that are not synced, half a snapshot, who leads. The
LBO comes after the records of the same response, and may not come any more. A truncation is many writes, and so is a
full reset: where the power goes in the midst of one, a part of what was to go may be gone. Of a reset, snapshots may
be, or a part of the log that begins at 0, or all of it counts as empty.

**What clients were told** is ``told``: the leader to which a client has appended a record says that it is committed.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, integers
from ..logs import END_OFFSET, EPOCH, OFFSET
from .actions import is_valid
from .fetch import (
    Writes,
    append_records,
    brings_begin,
    divergence_response,
    finds_divergence,
    follows,
    is_found,
    larger_epoch_start,
    names_snapshot,
    records_response,
    reset_to_empty,
    serves_records,
    take_divergence,
)
from .log import reaches_as_far
from .state import Rules, enter_epoch, has_snapshot, is_fetching, latest_snapshot, presumes_leadership, snapshots


def _runs(rules: Rules) -> bool:
    return rules.running


def _counts(k: Algebra, s: View, leader: Value, replica: Value) -> Value:  # noqa: ARG001 - whoever it counts
    return presumes_leadership(k, s, leader)


snapshots.variable(
    "leader",
    "whom a replica knows to lead its epoch, itself too",
    OPTIONAL_REPLICA,
    per=(REPLICA,),
    initially=-1,
    present=_runs,
)
snapshots.variable(
    "voted", "who has a replica's vote in its epoch", OPTIONAL_REPLICA, per=(REPLICA,), initially=-1, present=_runs
)
snapshots.variable(
    "supporters",
    "the votes that a candidate has counted; none of who stands for nothing",
    REPLICA_SET,
    per=(REPLICA,),
    present=_runs,
)
snapshots.variable(
    "counted",
    "up to where a leader knows a voter to have its log; -1 where it does not know",
    integers(-1, lambda c: c["log_size"]),
    per=(REPLICA, REPLICA),
    initially=-1,
    live=_counts,
    unset=True,
    present=_runs,
)
snapshots.variable(
    "synced",
    "the end of what a replica's log is sure to keep",
    integers(0, lambda c: c["log_size"]),
    per=(REPLICA,),
    present=_runs,
)
snapshots.variable(
    "told",
    "the epoch of the record of which a client was told that it is committed at an offset",
    integers(-1, lambda c: c["max_leader_epoch"]),
    per=(OFFSET,),
    initially=-1,
    present=_runs,
)


# -- elections --------------------------------------------------------------------------------------------------------


def _stands(k: Algebra, s: View, candidate: Value) -> Value:
    return k.member(candidate, s.supporters[candidate])


@snapshots.action(replica=REPLICA, epoch=EPOCH, present=_runs)
def stand(k: Algebra, s: View, replica: Value, epoch: Value) -> Step:
    """A voter that hears of no leader stands for its next epoch, and votes for itself."""
    yield "is_voter", k.member(replica, s.voters)
    yield "not_leading", k.negate(presumes_leadership(k, s, replica))
    yield "epoch_next", epoch == s.leader_epoch[replica] + 1
    entered = enter_epoch(k, s, replica, epoch)
    yield s.update(**entered | {"voted": {replica: replica}, "supporters": {replica: k.only(replica)}})


@snapshots.action(replica=REPLICA, present=_runs)
def look_for_leader(k: Algebra, s: View, replica: Value) -> Step:
    """An observer that hears nothing from its leader asks others who leads."""
    yield "is_observer", k.negate(k.member(replica, s.voters))
    yield "knows_leader", s.leader[replica] != k.NONE
    yield s.update(leader={replica: k.NONE})


def _is_newer(s: View, other: Value, replica: Value) -> Value:
    return s.leader_epoch[replica] < s.leader_epoch[other]


def _enter(k: Algebra, s: View, replica: Value, other: Value, leader: Value) -> Writes:
    """What changes where a replica hears of another's epoch: a newer one it enters, in the same one it learns of it.

    It stands for nothing from then on; ``leader`` is whom it knows to lead.
    """
    newer = _is_newer(s, other, replica)
    entered = enter_epoch(k, s, replica, s.leader_epoch[other])
    fetched = entered["position"][replica], s.snapshot_size[replica, s.fetching[replica]]
    return {
        "leader_epoch": {replica: s.leader_epoch[other]},
        "voted": {replica: k.ite(newer, k.NONE, s.voted[replica])},
        "leader": {replica: leader},
        "supporters": {replica: k.EMPTY},
        "position": {replica: k.ite(newer, fetched[0], s.position[replica])},
        "snapshot_size": {(replica, s.fetching[replica]): k.ite(newer, 0, fetched[1])},
    }


def _asks_for_vote(k: Algebra, s: View, candidate: Value, voter: Value) -> Step:
    yield "not_candidate_itself", candidate != voter
    yield "candidate_stands", _stands(k, s, candidate)
    yield "is_voter", k.member(voter, s.voters)


@snapshots.action(candidate=REPLICA, voter=REPLICA, present=_runs)
def hear_of_candidate(k: Algebra, s: View, candidate: Value, voter: Value) -> Step:
    """A voter is in the candidate's epoch from then on, on disk too, whether it gives its vote or not (KIP-595)."""
    yield from _asks_for_vote(k, s, candidate, voter)
    yield "epoch_newer", _is_newer(s, candidate, voter)
    yield s.update(**enter_epoch(k, s, voter, s.leader_epoch[candidate]))


@snapshots.action(candidate=REPLICA, voter=REPLICA, present=_runs)
def give_vote(k: Algebra, s: View, candidate: Value, voter: Value) -> Step:
    """A voter gives its vote to the first candidate of its epoch that is as far as itself."""
    yield from _asks_for_vote(k, s, candidate, voter)
    yield "epoch_not_fenced", s.leader_epoch[voter] <= s.leader_epoch[candidate]
    yield "in_its_epoch", s.leader_epoch[voter] == s.leader_epoch[candidate]
    yield "vote_free", k.all(s.voted[voter] == k.NONE, s.leader[voter] == k.NONE)
    yield "up_to_date", reaches_as_far(k, s, candidate, voter)
    yield s.update(voted={voter: candidate})


@snapshots.action(candidate=REPLICA, voter=REPLICA, present=_runs)
def count_vote(k: Algebra, s: View, candidate: Value, voter: Value) -> Step:
    """A candidate hears that it has a vote, in the epoch for which it stands."""
    yield "not_candidate_itself", candidate != voter
    yield "candidate_stands", _stands(k, s, candidate)
    yield "is_voter", k.member(voter, s.voters)
    same_epoch = s.leader_epoch[voter] == s.leader_epoch[candidate]
    yield "vote_given", k.all(same_epoch, s.voted[voter] == candidate)
    yield s.update(supporters={candidate: k.with_member(s.supporters[candidate], voter)})


@snapshots.action(replica=REPLICA, present=_runs)
def take_office(k: Algebra, s: View, replica: Value) -> Step:
    """With a majority of votes a candidate leads; one whose snapshot is incomplete stood as if its log were empty."""
    fetching = is_fetching(s, replica)
    yield "candidate_stands", _stands(k, s, replica)
    yield "majority_voted", k.majority(s.supporters[replica], s.voters)
    empty = {
        name: {replica: k.ite(fetching, value, getattr(s, name)[replica])}
        for name, cell in reset_to_empty(k, replica).items()
        for value in cell.values()
    }
    yield s.update(
        leader={replica: replica},
        supporters={replica: k.EMPTY},
        epoch_leader={s.leader_epoch[replica]: replica},
        **empty,
    )


def _told_of(k: Algebra, s: View, replica: Value, teller: Value) -> Value:
    """The leader that a message names; who was one itself and hears of it has forgotten that it was."""
    return k.ite(s.leader[teller] == replica, k.NONE, s.leader[teller])


@snapshots.action(replica=REPLICA, teller=REPLICA, present=_runs)
def learn_leader(k: Algebra, s: View, replica: Value, teller: Value) -> Step:
    """A replica hears, with whatever it is answered, of a newer epoch, or of who leads its own."""
    newer, known = _is_newer(s, teller, replica), _told_of(k, s, replica, teller)
    same = s.leader_epoch[replica] == s.leader_epoch[teller]
    yield "not_told_by_itself", replica != teller
    yield "is_news", k.any(newer, k.all(same, known != k.NONE, s.leader[replica] == k.NONE))
    yield s.update(**_enter(k, s, replica, teller, known))


@snapshots.action(leader=REPLICA, follower=REPLICA, present=_runs)
def begin_epoch(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A leader tells a voter that it leads (BeginQuorumEpoch)."""
    newer = _is_newer(s, leader, follower)
    yield "not_leader_itself", leader != follower
    yield "presumes_leadership", presumes_leadership(k, s, leader)
    yield "is_voter", k.member(follower, s.voters)
    yield "epoch_not_fenced", s.leader_epoch[follower] <= s.leader_epoch[leader]
    yield "no_other_leader", k.any(newer, s.leader[follower] == k.NONE, s.leader[follower] == leader)
    yield s.update(**_enter(k, s, follower, leader, leader))


@snapshots.action(leader=REPLICA, present=_runs)
def resign(k: Algebra, s: View, leader: Value) -> Step:
    """A leader gives its epoch up."""
    yield "presumes_leadership", presumes_leadership(k, s, leader)
    yield s.update(leader={leader: k.NONE})


@snapshots.action(leader=REPLICA, follower=REPLICA, present=_runs)
def end_epoch(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A voter hears that an epoch was given up, by who led it (EndQuorumEpoch)."""
    newer = _is_newer(s, leader, follower)
    yield "not_leader_itself", leader != follower
    yield "was_elected", s.epoch_leader[s.leader_epoch[leader]] == leader
    yield "has_resigned", s.leader[leader] == k.NONE
    yield "is_voter", k.member(follower, s.voters)
    yield "epoch_not_fenced", s.leader_epoch[follower] <= s.leader_epoch[leader]
    yield "no_other_leader", k.any(newer, s.leader[follower] == k.NONE, s.leader[follower] == leader)
    yield s.update(**_enter(k, s, follower, leader, k.NONE))


# -- records ----------------------------------------------------------------------------------------------------------


@snapshots.action(leader=REPLICA, present=_runs)
def client_append(k: Algebra, s: View, leader: Value) -> Step:
    """A client appends a record at who presumes leadership; of a batch each one is a step."""
    end = s.leo[leader]
    yield "presumes_leadership", presumes_leadership(k, s, leader)
    yield "log_not_full", end < k.c.log_size
    yield s.update(leo={leader: end + 1}, record_epoch={(leader, end): s.leader_epoch[leader]})


@snapshots.action(replica=REPLICA, present=_runs)
def sync(k: Algebra, s: View, replica: Value) -> Step:  # noqa: ARG001 - an action has both
    """A replica syncs its log."""
    yield "not_synced", s.synced[replica] < s.leo[replica]
    yield s.update(synced={replica: s.leo[replica]})


@snapshots.action(leader=REPLICA, follower=REPLICA, present=_runs)
def count_fetch(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A leader counts a voter's fetch that it serves: the last one, be it an old one that comes late.

    It acknowledges everything before it, which has to be synced; of who lacks the snapshot before its log, nothing.
    """
    yield from serves_records(k, s, leader, follower)
    yield "is_voter", k.member(follower, s.voters)
    yield "synced", s.synced[follower] == s.leo[follower]
    yield s.update(counted={(leader, follower): k.ite(is_fetching(s, follower), -1, s.leo[follower])})


def _have(k: Algebra, s: View, leader: Value, offset: Value) -> Value:
    """A majority has the leader's log up to an offset, this included: the leader and up to two more voters."""

    def has(replica: Value) -> Value:
        return k.any(replica == leader, offset < s.counted[leader, replica])

    def are_enough(one: Value, other: Value) -> Value:
        return k.majority(k.with_member(k.with_member(k.only(leader), one), other), s.voters)

    return k.exists(REPLICA, lambda a: k.exists(REPLICA, lambda b: k.all(has(a), has(b), are_enough(a, b))))


@snapshots.action(leader=REPLICA, offset=OFFSET, present=_runs)
def raise_high_watermark(k: Algebra, s: View, leader: Value, offset: Value) -> Step:
    """A leader counts one more record as committed: a majority has synced its log up to a record of its own epoch.

    For up to five voters.
    """
    hw = s.hw[leader]
    yield "presumes_leadership", presumes_leadership(k, s, leader)
    yield "above_high_watermark", hw <= offset
    yield "of_own_epoch", s.record_epoch[leader, offset] == s.leader_epoch[leader]
    yield "synced", offset < s.synced[leader]
    yield "majority_has_it", _have(k, s, leader, offset)
    known = s.committed[hw]
    yield s.update(hw={leader: hw + 1}, committed={hw: k.ite(known == -1, s.record_epoch[leader, hw], known)})


@snapshots.action(leader=REPLICA, offset=OFFSET, present=_runs)
def tell_client(k: Algebra, s: View, leader: Value, offset: Value) -> Step:
    """A client hears from the leader to which it has appended a record that this is committed; of several, in order."""
    untold = k.all(s.told[offset - 1] == -1, s.record_epoch[leader, offset - 1] == s.leader_epoch[leader])
    yield "presumes_leadership", presumes_leadership(k, s, leader)
    yield "below_high_watermark", offset < s.hw[leader]
    yield "of_own_epoch", s.record_epoch[leader, offset] == s.leader_epoch[leader]
    yield "not_told", s.told[offset] == -1
    yield "in_order", k.negate(untold)
    yield s.update(told={offset: s.leader_epoch[leader]})


@snapshots.action(leader=REPLICA, follower=REPLICA, present=_runs)
def rediscover_at(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """FetchSnapshot fails: who is asked leads no more in that epoch, or has no such snapshot, or a shorter one."""
    offset = s.fetching[follower]
    gone = k.negate(presumes_leadership(k, s, leader))
    short = s.snapshot_size[leader, offset] < s.position[follower]
    yield "is_fetching", is_fetching(s, follower)
    yield "not_leader_itself", leader != follower
    yield "epoch_not_fenced", s.leader_epoch[follower] == s.leader_epoch[leader]
    yield "fetch_refused", k.any(gone, k.negate(is_found(k, s, leader, follower)), short)
    yield s.update(**reset_to_empty(k, follower))


# -- crashes ----------------------------------------------------------------------------------------------------------


def _forgotten(k: Algebra, replica: Value) -> Writes:
    """Who starts knows no leader, and stands for nothing."""
    return {"leader": {replica: k.NONE}, "supporters": {replica: k.EMPTY}}


@snapshots.action(replica=REPLICA, end=END_OFFSET, present=_runs)
def resume(k: Algebra, s: View, replica: Value, end: Value) -> Step:
    """A replica boots with the log that a crash has left: all that was synced, and any part of the rest."""
    yield "keeps_synced", s.synced[replica] <= end
    yield "was_written", end <= s.leo[replica]
    yield "log_valid", is_valid(k, s, replica, 0)
    hw = latest_snapshot(k, s, replica) + 1
    yield s.update(leo={replica: end}, synced={replica: end}, hw={replica: hw}, **_forgotten(k, replica))


@snapshots.action(replica=REPLICA, present=_runs)
def resume_empty(k: Algebra, s: View, replica: Value) -> Step:
    """A replica boots, and has to assume that its log is empty: the snapshot before it is missing."""
    yield "log_not_valid", k.negate(is_valid(k, s, replica, 0))
    yield s.update(**reset_to_empty(k, replica), **_forgotten(k, replica))


@snapshots.action(leader=REPLICA, follower=REPLICA, present=_runs)
def lose_begin(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """The power goes between a record that a follower has fetched and the LBO that came with it."""
    yield from serves_records(k, s, leader, follower)
    response = records_response(k, s, leader, follower)
    yield "brings_record", s.leo[follower] < s.leo[leader]
    yield "brings_begin", brings_begin(k, s, follower, response)
    yield s.update(**append_records(k, s, follower, response), **_forgotten(k, follower))


@snapshots.action(leader=REPLICA, follower=REPLICA, present=_runs)
def lose_tail(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """The power goes while a follower truncates to where its log and the leader's part: any part of it may be gone."""
    yield from finds_divergence(k, s, leader, follower)
    end = take_divergence(k, s, follower, divergence_response(k, s, leader, follower))["leo"][follower]
    yield "was_synced", end < s.synced[follower]
    yield s.update(synced={follower: end}, **_forgotten(k, follower))


@snapshots.action(leader=REPLICA, follower=REPLICA, end=OFFSET, present=_runs)
def truncate_batch(k: Algebra, s: View, leader: Value, follower: Value, end: Value) -> Step:
    """The logs part within a batch of the follower's, and all of that goes: a log is cut between two batches alone.

    So it is where the leader has no record of the batch's epoch: what both have of an epoch they have in the same
    batches. Where a batch begins nobody sees; its records are of one epoch.
    """
    yield from follows(k, s, leader, follower)
    epoch, last = s.record_epoch[follower, end], s.record_epoch[follower, s.leo[follower] - 1]

    def is_between(offset: Value) -> Value:
        there = s.record_epoch[leader, offset]
        return k.all(end <= offset, epoch < there, there <= last)

    yield "in_both_logs", k.all(s.lbo[follower] <= end, s.lbo[leader] <= end)
    # The logs part behind the leader's last record of an epoch up to the follower's last one.
    yield "below_divergence", k.exists(OFFSET, is_between)
    # Epochs only grow in a log: the record where the logs part is of this one, too.
    yield "within_batch", larger_epoch_start(k, s, leader, last) < larger_epoch_start(k, s, follower, epoch)
    # Logs that have the same record have the same ones before it.
    yield "keeps_what_matches", epoch != s.record_epoch[leader, end]
    hw, synced = s.hw[follower], s.synced[follower]
    yield s.update(leo={follower: end}, hw={follower: k.min(end, hw)}, synced={follower: k.min(end, synced)})


@snapshots.action(leader=REPLICA, follower=REPLICA, offset=OFFSET, present=_runs)
def lose_snapshot(k: Algebra, s: View, leader: Value, follower: Value, offset: Value) -> Step:
    """The power goes while a follower that is told to start over deletes its snapshots: one of them is gone.

    Its log still has one before it, or needs none; else what is left counts as empty, as that of who has started over.
    """
    lbo = s.lbo[follower]
    yield from names_snapshot(k, s, leader, follower)
    yield "is_complete", has_snapshot(k, s, follower, offset)
    yield (
        "log_stays_valid",
        k.any(
            lbo == 0,
            k.exists(OFFSET, lambda o: k.all(o != offset, has_snapshot(k, s, follower, o), lbo <= o + 1)),
        ),
    )
    yield s.update(snapshot_size={(follower, offset): 0}, **_forgotten(k, follower))


@snapshots.action(leader=REPLICA, follower=REPLICA, present=_runs)
def lose_log(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """The power goes while a follower that is told to start over cuts its log: any part of it may be gone.

    Its snapshots are deleted before, so that this is a log that begins at 0, or counts as empty.
    """
    yield from names_snapshot(k, s, leader, follower)
    yield "begins_at_0", s.lbo[follower] == 0
    yield "no_snapshot", latest_snapshot(k, s, follower) == -1
    yield "was_synced", 0 < s.synced[follower]
    yield s.update(synced={follower: 0}, **_forgotten(k, follower))
