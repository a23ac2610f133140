"""The brokers that a running consumer reads from: elections that take their time, retention, crashes.

Which records a partition keeps is the business of ``fencing``. Here a replica that is not told to lead may lose what it
likes from the end of its log, by truncation, and any replica by a crash; a leader's high watermark rises when it likes.
What a consumer is promised, it is promised with such brokers too. Logs match all the same: a follower copies records
from the leader of its epoch alone, and only where the two logs agree up to its end.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Update, Value, View
from ...core.domains import REPLICA
from ..logs import END_OFFSET, EPOCH, append_record
from .state import is_client, is_elected, truncation


def _elect(s: View, new_leader: Value, unclean: int) -> Update:
    epoch = s.quorum_leader_epoch + 1
    return s.update(quorum_leader_epoch=epoch, epoch_leader={epoch: new_leader}, epoch_unclean={epoch: unclean})


@truncation.action(new_leader=REPLICA, present=is_client)
def elect_member(k: Algebra, s: View, new_leader: Value) -> Step:
    """The controller elects a member of the ISR, which does not know it yet."""
    yield "epoch_available", s.quorum_leader_epoch < k.c.max_leader_epoch
    yield _elect(s, new_leader, 0)


@truncation.action(new_leader=REPLICA, present=is_client)
def elect_outsider(k: Algebra, s: View, new_leader: Value) -> Step:
    """The controller elects a replica outside of the ISR (unclean.leader.election.enable)."""
    yield "epoch_available", s.quorum_leader_epoch < k.c.max_leader_epoch
    yield _elect(s, new_leader, 1)


@truncation.action(present=is_client)
def elect_nobody(k: Algebra, s: View) -> Step:
    """The controller finds nobody to lead in a new epoch."""
    yield "epoch_available", s.quorum_leader_epoch < k.c.max_leader_epoch
    yield _elect(s, k.NONE, 0)


@truncation.action(replica=REPLICA, epoch=EPOCH, present=is_client)
def take_up(k: Algebra, s: View, replica: Value, epoch: Value) -> Step:
    """A replica hears of an epoch, and leads or follows in it."""
    leader = s.epoch_leader[epoch]
    yield "epoch_started", is_elected(k, s, epoch)
    yield "leader_elected", leader != k.NONE
    yield "epoch_newer", s.leader_epoch[replica] < epoch
    yield s.update(leader_epoch={replica: epoch}, leading={replica: k.ite(leader == replica, 1, 0)}, hw={replica: 0})


@truncation.action(leader=REPLICA, present=is_client)
def leader_append(k: Algebra, s: View, leader: Value) -> Step:
    """A leader appends a producer's record in its own epoch."""
    yield "leads", s.leading[leader] == 1
    yield from append_record(k, s, leader)


@truncation.action(follower=REPLICA, leader=REPLICA, present=is_client)
def follower_copy(k: Algebra, s: View, follower: Value, leader: Value) -> Step:
    """A follower copies the next record of its leader, with whose log its own agrees."""
    end = s.leo[follower]
    last = end - 1
    yield "leads", s.leading[leader] == 1
    yield "follows", s.leading[follower] == 0
    yield "same_epoch", s.leader_epoch[follower] == s.leader_epoch[leader]
    yield "record_there", k.all(s.log_start[leader] <= end, end < s.leo[leader])
    held = k.all(s.log_start[follower] <= last, s.log_start[leader] <= last)
    yield "logs_agree", k.implies(held, s.record_id[follower, last] == s.record_id[leader, last])
    yield s.update(
        leo={follower: end + 1},
        record_id={(follower, end): s.record_id[leader, end]},
        record_epoch={(follower, end): s.record_epoch[leader, end]},
    )


@truncation.action(replica=REPLICA, end=END_OFFSET, present=is_client)
def truncate_log(k: Algebra, s: View, replica: Value, end: Value) -> Step:
    """A follower cuts its log, as its leader has it or as far as batches go."""
    yield "follows", s.leading[replica] == 0
    yield "shorter", end < s.leo[replica]
    yield s.update(leo={replica: end}, log_start={replica: k.min(s.log_start[replica], end)})


@truncation.action(replica=REPLICA, start=END_OFFSET, present=is_client)
def begin_log_at(_k: Algebra, s: View, replica: Value, start: Value) -> Step:
    """A follower throws its log away and begins where its leader's log does."""
    yield "follows", s.leading[replica] == 0
    yield s.update(leo={replica: start}, log_start={replica: start})


@truncation.action(replica=REPLICA, offset=END_OFFSET, present=is_client)
def delete_records(k: Algebra, s: View, replica: Value, offset: Value) -> Step:
    """Retention: the log start moves up, at a leader to the high watermark at most."""
    yield "above_log_start", s.log_start[replica] < offset
    yield "committed", offset <= k.ite(s.leading[replica] == 1, s.hw[replica], s.leo[replica])
    yield s.update(log_start={replica: offset})


@truncation.action(leader=REPLICA, offset=END_OFFSET, present=is_client)
def raise_high_watermark(_k: Algebra, s: View, leader: Value, offset: Value) -> Step:
    """A leader counts records as committed, and so exposes them to consumers."""
    yield "leads", s.leading[leader] == 1
    yield "higher", s.hw[leader] < offset
    yield "in_log", offset <= s.leo[leader]
    yield s.update(hw={leader: offset})


@truncation.action(replica=REPLICA, end=END_OFFSET, present=is_client)
def replica_restarts(k: Algebra, s: View, replica: Value, end: Value) -> Step:
    """A replica crashes and comes back with what its disk had synced; it leads nothing until it is told to again."""
    yield "no_longer", end <= s.leo[replica]
    yield s.update(leo={replica: k.max(end, s.log_start[replica])}, leading={replica: 0}, hw={replica: 0})
