"""Why ``kip-630-safe`` keeps its promises, for any number of replicas, offsets, epochs and chunks.

The argument in short. A log is as far as it goes the history of the epoch of its last record, and histories with one
record match below it; so logs match. A record is chosen by a majority, of whom each keeps it: whoever leads later has
it in its history, since one of the majority voted for it and a vote goes to a log that is at least as good; so a
follower of that leader truncates below no chosen record, and starts over from a snapshot only where it has less than
what was chosen last. Whoever starts over is empty until its snapshot is whole, and counts for nothing until then. Below
an LBO there is a snapshot, made of what was committed. A response that comes late says what was in the history of its
epoch, and that only grows (``proof_late_lemmas.py``). ``proof_ghosts.py`` says what a history, a chosen record
and a blocked epoch are; ``proof_hints.py`` makes the proof whole.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ..logs import EPOCH, OFFSET
from .proof_ghosts import is_started, kip_630
from .state import epoch_at, has_snapshot, is_fetching, last_epoch, presumes_leadership

__all__ = ["kip_630"]


# Elections.


@kip_630.lemma()
def candidate_stands_in_newest(k: Algebra, s: View) -> Value:
    """Whoever stands is in the newest epoch, which has no leader yet: no log of it changes until it is decided."""
    undecided = k.all(
        0 <= s.newest_epoch, s.leader_epoch[s.candidate] == s.newest_epoch, k.negate(is_started(s, s.newest_epoch))
    )
    return k.implies(s.candidate != k.NONE, undecided)


@kip_630.lemma(replica=REPLICA)
def no_epoch_from_the_future(_k: Algebra, s: View, replica: Value) -> Value:
    """No replica is in an epoch for which nobody stood: the next epoch is new to all."""
    return s.leader_epoch[replica] <= s.newest_epoch


@kip_630.lemma(epoch=EPOCH)
def leader_was_elected(k: Algebra, s: View, epoch: Value) -> Value:
    """A leader was elected, and is in its epoch or a later one."""
    leader = s.epoch_leader[epoch]
    return k.implies(leader != k.NONE, k.all(is_started(s, epoch), epoch <= s.leader_epoch[leader]))


@kip_630.lemma(epoch=EPOCH)
def started_epochs_are_known(k: Algebra, s: View, epoch: Value) -> Value:
    """A started epoch is no newer than the newest: whoever stands next stands for one that is not started."""
    return k.implies(is_started(s, epoch), epoch <= s.newest_epoch)


@kip_630.lemma(epoch=EPOCH, replica=REPLICA)
def electors_moved_on(k: Algebra, s: View, epoch: Value, replica: Value) -> Value:
    """Whoever voted for an epoch is in it or in a later one: it acknowledges nothing more in an older one."""
    voted = k.all(is_started(s, epoch), k.member(replica, s.elected_by[epoch]))
    return k.implies(voted, epoch <= s.leader_epoch[replica])


@kip_630.lemma(replica=REPLICA)
def votes_are_for_newest(k: Algebra, s: View, replica: Value) -> Value:
    """Whoever voted for the candidate is in its epoch, in which there is nobody to fetch from."""
    voted = k.all(s.candidate != k.NONE, k.member(replica, s.votes))
    return k.implies(voted, s.leader_epoch[replica] == s.newest_epoch)


def is_for_a_better_log(k: Algebra, s: View, replica: Value, voted: Value) -> Value:
    """If the replica has voted for the candidate, that has a log which is at least as good as its own."""
    candidate = s.candidate
    last, own_last = s.tip[candidate], s.tip[replica]
    better = k.any(own_last < last, k.all(own_last == last, s.leo[replica] <= s.leo[candidate]))
    nothing = k.any(is_fetching(s, replica), s.leo[replica] == 0)
    return k.implies(k.all(voted, k.negate(nothing)), k.all(k.negate(is_fetching(s, candidate)), better))


@kip_630.lemma(replica=REPLICA)
def votes_are_for_better_logs(k: Algebra, s: View, replica: Value) -> Value:
    """The candidate's log is at least as good as that of each of its voters; half a snapshot is as good as nothing."""
    voted = k.all(s.candidate != k.NONE, k.member(replica, s.votes))
    return is_for_a_better_log(k, s, replica, voted)


# Histories.


@kip_630.lemma(replica=REPLICA)
def last_epoch_is_told(k: Algebra, s: View, replica: Value) -> Value:
    """A replica knows the epoch of its last record, from its log or from a snapshot that ends where the log begins."""
    return last_epoch(k, s, replica) == s.tip[replica]


@kip_630.lemma(replica=REPLICA)
def epoch_before_the_log_is_told(k: Algebra, s: View, replica: Value) -> Value:
    """Where nothing is committed behind its LBO, a replica knows the epoch of the record before that."""
    begin = s.lbo[replica]
    told = epoch_at(k, s, replica, begin - 1) == s.chosen[begin - 1]
    return k.any(begin == 0, begin < s.hw[replica], told)


@kip_630.lemma(replica=REPLICA, offset=OFFSET)
def log_is_of_its_last_epoch(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """By the epoch of its last record, which a snapshot may tell, all of a log is known, and what it has lost."""
    last, end = s.tip[replica], s.leo[replica]
    there = s.history[last, offset]
    known = k.all(
        0 <= last,
        last <= s.leader_epoch[replica],
        end <= s.history_end[last],
        s.history[last, end - 1] == last,
        k.implies(
            k.all(s.lbo[replica] <= offset, offset < end),
            k.all(s.record_epoch[replica, offset] == there, there <= last),
        ),
        k.implies(offset < s.lbo[replica], k.all(s.chosen[offset] == there, there <= last)),
    )
    return k.all(k.implies(end == 0, last == -1), k.implies(end != 0, known))


@kip_630.lemma(epoch=EPOCH, offset=OFFSET)
def history_of_histories(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """A record in a history is in the history of its own epoch too."""
    of = s.history[epoch, offset]
    own = k.all(0 <= of, of <= epoch, offset < s.history_end[of], s.history[of, offset] == of)
    return k.implies(offset < s.history_end[epoch], own)


@kip_630.lemma(epoch=EPOCH, lower=OFFSET, upper=OFFSET)
def histories_match(k: Algebra, s: View, epoch: Value, lower: Value, upper: Value) -> Value:
    """Two histories with one record are the same below it; and epochs never fall along a history."""
    of = s.history[epoch, upper]
    same = k.all(s.history[epoch, lower] == s.history[of, lower], s.history[epoch, lower] <= of)
    return k.implies(k.all(lower <= upper, upper < s.history_end[epoch]), same)


@kip_630.lemma(leader=REPLICA)
def leader_is_whole(k: Algebra, s: View, leader: Value) -> Value:
    """A presumed leader has all of its epoch's history, and fetches no snapshot."""
    end = s.history_end[s.leader_epoch[leader]]
    return k.implies(
        presumes_leadership(k, s, leader),
        k.all(0 <= s.leader_epoch[leader], s.leo[leader] == end, k.negate(is_fetching(s, leader))),
    )


@kip_630.lemma(leader=REPLICA, offset=OFFSET)
def leader_log_is_history(k: Algebra, s: View, leader: Value, offset: Value) -> Value:
    """A presumed leader's log is its epoch's history: what it writes is alone of its epoch at its offset."""
    there = s.history[s.leader_epoch[leader], offset]
    same = k.all(
        k.implies(s.lbo[leader] <= offset, s.record_epoch[leader, offset] == there),
        k.implies(offset < s.lbo[leader], s.chosen[offset] == there),
    )
    return k.implies(k.all(presumes_leadership(k, s, leader), offset < s.leo[leader]), same)


# What is chosen.


@kip_630.lemma()
def chosen_last_of_its_epoch(k: Algebra, s: View) -> Value:
    """The last chosen record is of the epoch that chose it, and a majority had it."""
    of = s.chosen_in
    right = k.all(0 <= of, is_started(s, of), s.chosen[s.chosen_end - 1] == of, k.majority(s.chosen_by, s.voters))
    return k.all(0 <= s.chosen_end, k.any(s.chosen_end == 0, right))


@kip_630.lemma(epoch=EPOCH, offset=OFFSET)
def later_histories_hold_the_chosen(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """From the epoch on that chose last, every history has all that is chosen."""
    same = k.implies(offset < s.chosen_end, s.history[epoch, offset] == s.chosen[offset])
    later = k.all(is_started(s, epoch), s.chosen_in <= epoch)
    return k.implies(later, k.all(s.chosen_end <= s.history_end[epoch], same))


@kip_630.lemma(replica=REPLICA, offset=OFFSET)
def choosers_keep_the_chosen(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The majority that chose last keeps what is chosen, is in no older epoch, and fetches no snapshot."""
    chose = k.all(0 < s.chosen_end, k.member(replica, s.chosen_by))
    kept = k.all(
        s.chosen_in <= s.leader_epoch[replica],
        s.chosen_in <= s.tip[replica],
        k.negate(is_fetching(s, replica)),
        s.chosen_end <= s.leo[replica],
        k.implies(s.lbo[replica] < s.chosen_end, s.record_epoch[replica, s.chosen_end - 1] == s.chosen_in),
        k.implies(
            k.all(s.lbo[replica] <= offset, offset < s.chosen_end), s.record_epoch[replica, offset] == s.chosen[offset]
        ),
    )
    return k.implies(chose, kept)


@kip_630.lemma(offset=OFFSET)
def committed_is_chosen(k: Algebra, s: View, offset: Value) -> Value:
    """What is committed is what was chosen."""
    known = s.committed[offset]
    return k.implies(known != -1, k.all(offset < s.chosen_end, known == s.chosen[offset]))


@kip_630.lemma(replica=REPLICA, offset=OFFSET)
def committed_below_hw(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """All below a high watermark is committed."""
    known = k.implies(offset < s.hw[replica], s.committed[offset] != -1)
    return k.all(s.hw[replica] <= s.chosen_end, known)


@kip_630.lemma(replica=REPLICA, offset=OFFSET)
def kept_below_hw(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """Below its high watermark a log is as chosen: what two of them have there is the same."""
    within = k.all(s.lbo[replica] <= offset, offset < s.hw[replica])
    return k.implies(within, s.record_epoch[replica, offset] == s.chosen[offset])


@kip_630.lemma(replica=REPLICA, epoch=EPOCH, offset=OFFSET)
def histories_hold_what_is_known(k: Algebra, s: View, replica: Value, epoch: Value, offset: Value) -> Value:
    """From a replica's epoch on, histories have all below its high watermark: it never truncates below that."""
    same = k.implies(offset < s.hw[replica], s.history[epoch, offset] == s.chosen[offset])
    later = k.all(is_started(s, epoch), s.leader_epoch[replica] <= epoch)
    return k.implies(later, k.all(s.hw[replica] <= s.history_end[epoch], same))


# Acknowledgements.


@kip_630.lemma(older=EPOCH, newer=EPOCH, offset=OFFSET)
def had_or_blocked(k: Algebra, s: View, older: Value, newer: Value, offset: Value) -> Value:
    """A later history has the record that an epoch wrote at an offset, or the epoch is blocked there."""
    has = k.all(offset < s.history_end[newer], s.history[newer, offset] == older)
    return k.implies(k.all(older < newer, is_started(s, newer)), k.any(has, s.blocked_by[older, offset] != -1))


@kip_630.lemma(leader=REPLICA, replica=REPLICA, offset=OFFSET)
def blocked_without_acknowledgement(k: Algebra, s: View, leader: Value, replica: Value, offset: Value) -> Value:
    """Where an epoch is blocked, no elector of the one that blocks it has acknowledged, and so no majority will."""
    epoch = s.leader_epoch[leader]
    by = s.blocked_by[epoch, offset]
    own = k.all(presumes_leadership(k, s, leader), by != -1, s.record_epoch[leader, offset] == epoch)
    return k.implies(
        k.all(own, k.member(replica, s.elected_by[by])), k.negate(k.member(replica, s.acknowledged[leader, offset]))
    )


@kip_630.lemma(epoch=EPOCH, offset=OFFSET)
def blocked_by_a_later_epoch(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """What blocks an epoch is a later one that a majority elected."""
    by = s.blocked_by[epoch, offset]
    elected = k.all(epoch < by, is_started(s, by), k.majority(s.elected_by[by], s.voters))
    return k.implies(by != -1, elected)


@kip_630.lemma(leader=REPLICA, replica=REPLICA, offset=OFFSET)
def acknowledged_is_held(k: Algebra, s: View, leader: Value, replica: Value, offset: Value) -> Value:
    """Whoever acknowledged a record of the leader's epoch has it, or it is chosen, or the epoch is blocked there."""
    epoch = s.leader_epoch[leader]
    acknowledged = k.all(presumes_leadership(k, s, leader), k.member(replica, s.acknowledged[leader, offset]))
    has = k.all(s.record_epoch[replica, offset] == epoch, k.negate(is_fetching(s, replica)))
    chosen = k.all(offset < s.chosen_end, s.chosen[offset] == epoch)
    kept = k.implies(s.record_epoch[leader, offset] == epoch, k.any(has, chosen, s.blocked_by[epoch, offset] != -1))
    return k.implies(acknowledged, k.all(epoch <= s.leader_epoch[replica], kept))


# Snapshots.


@kip_630.lemma(replica=REPLICA)
def latest_is_there(k: Algebra, s: View, replica: Value) -> Value:
    """The latest snapshot is a complete one below the high watermark; from LBO - 1 on, if the log begins later."""
    latest = s.latest[replica]
    there = k.any(latest == -1, k.all(0 <= latest, has_snapshot(k, s, replica, latest)))
    covers = k.any(s.lbo[replica] == 0, is_fetching(s, replica), s.lbo[replica] - 1 <= latest)
    return k.all(there, latest < s.hw[replica], covers)


@kip_630.lemma(replica=REPLICA, offset=OFFSET)
def latest_is_last(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """No complete snapshot is later."""
    return k.implies(has_snapshot(k, s, replica, offset), offset <= s.latest[replica])


@kip_630.lemma(replica=REPLICA)
def fetching_begins_anew(k: Algebra, s: View, replica: Value) -> Value:
    """Whoever fetches a snapshot has no other; its log begins right after it, and what it names is committed."""
    of, position, size = s.fetching[replica], s.position[replica], s.snapshot_size[replica, s.fetching[replica]]
    partly = k.all(
        position < size,
        size == s.file_size[s.leader_epoch[replica], of],
        s.snapshot_records[replica, of] == of + 1,
        is_started(s, s.leader_epoch[replica]),
    )
    fetched = k.all(
        s.lbo[replica] == of + 1,
        s.latest[replica] == -1,
        s.fetching_epoch[replica] == s.chosen[of],
        0 <= position,
        k.any(position == 0, partly),
    )
    rest = k.all(position == -1, s.fetching_epoch[replica] == -1)
    return k.all(k.implies(is_fetching(s, replica), fetched), k.implies(k.negate(is_fetching(s, replica)), rest))


@kip_630.lemma(leader=REPLICA, offset=OFFSET)
def leader_has_the_file(k: Algebra, s: View, leader: Value, offset: Value) -> Value:
    """What a presumed leader serves of a snapshot comes from one file for the whole of its epoch."""
    size = s.file_size[s.leader_epoch[leader], offset]
    has = has_snapshot(k, s, leader, offset)
    return k.implies(
        presumes_leadership(k, s, leader),
        k.all(k.implies(has, s.snapshot_size[leader, offset] == size), k.implies(0 < size, offset <= s.latest[leader])),
    )
