"""The partition that ``truncation`` consumes from: elections and replication."""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Update, Value, View
from ...core.domains import REPLICA
from ..logs import append_record
from .state import common_end, current_leader, is_stepwise, presumes_leadership, truncation


def _elect(k: Algebra, s: View, new_leader: Value, unclean: int) -> Update:
    epoch, old = s.quorum_leader_epoch + 1, current_leader(s)
    return s.update(
        quorum_leader_epoch=epoch,
        epoch_leader={epoch: new_leader},
        epoch_unclean={epoch: unclean},
        leader_epoch={new_leader: epoch},
        hw={new_leader: k.min(s.hw[old], common_end(k, s, new_leader, old))},
    )


def _holds_committed(k: Algebra, s: View, replica: Value) -> Value:
    """The replica holds every record below the current leader's high watermark (all do before the first election)."""
    return s.hw[current_leader(s)] <= common_end(k, s, replica, current_leader(s))


@truncation.action(new_leader=REPLICA, present=is_stepwise)
def elect_cleanly(k: Algebra, s: View, new_leader: Value) -> Step:
    """The controller makes a replica the leader that holds all committed records, as every member of the ISR does.

    It may be the leader that there is: the epoch changes with the ISR too.
    """
    yield "epoch_available", s.quorum_leader_epoch < k.c.max_leader_epoch
    yield "holds_committed", _holds_committed(k, s, new_leader)
    yield _elect(k, s, new_leader, 0)


@truncation.action(new_leader=REPLICA, present=is_stepwise)
def elect_uncleanly(k: Algebra, s: View, new_leader: Value) -> Step:
    """The controller makes a replica the leader that lacks committed records (unclean.leader.election.enable)."""
    yield "epoch_available", s.quorum_leader_epoch < k.c.max_leader_epoch
    yield "lacks_committed", k.negate(_holds_committed(k, s, new_leader))
    yield _elect(k, s, new_leader, 1)


@truncation.action(follower=REPLICA, present=is_stepwise)
def become_follower(k: Algebra, s: View, follower: Value) -> Step:
    """A replica takes up the current epoch and truncates its log to what it has in common with its leader."""
    yield "leader_elected", s.quorum_leader_epoch != -1
    yield "epoch_newer", s.leader_epoch[follower] < s.quorum_leader_epoch
    end = common_end(k, s, follower, current_leader(s))
    yield s.update(leader_epoch={follower: s.quorum_leader_epoch}, leo={follower: end}, hw={follower: 0})


@truncation.action(leader=REPLICA, present=is_stepwise)
def leader_write(k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader appends a producer's record in its own epoch."""
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield from append_record(k, s, leader)


@truncation.action(follower=REPLICA, present=is_stepwise)
def follower_fetch(_k: Algebra, s: View, follower: Value) -> Step:
    """A follower in the current epoch copies the next record."""
    leader, end = current_leader(s), s.leo[follower]
    yield "epoch_not_fenced", s.leader_epoch[follower] == s.quorum_leader_epoch
    yield "record_available", end < s.leo[leader]
    yield s.update(
        leo={follower: end + 1},
        record_id={(follower, end): s.record_id[leader, end]},
        record_epoch={(follower, end): s.record_epoch[leader, end]},
    )


@truncation.action(leader=REPLICA, present=is_stepwise)
def leader_inc_high_watermark(k: Algebra, s: View, leader: Value) -> Step:
    """A presumed leader counts one more record as committed, and so exposes it to consumers."""
    epoch = s.leader_epoch[leader]
    yield "presumes_leadership", presumes_leadership(s, leader)
    yield "record_above_hw", s.hw[leader] < s.leo[leader]
    yield "isr_acknowledges", k.any(epoch == s.quorum_leader_epoch, s.epoch_unclean[epoch + 1] == 1)
    yield s.update(hw={leader: s.hw[leader] + 1})
