"""What brokers with tiered storage that run by themselves promise in every state."""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from .impl_spec import in_copy, is_same_record
from .impl_state import COPY, NOT_LOOKED, OFFSET, tiered


@tiered.always
def offsets_in_order(k: Algebra, s: View) -> Value:
    """A log begins where its local part begins or before, and that not above the LEO, but in Kafka (TK17)."""

    def right(replica: Value) -> Value:
        below_end = k.any(k.rules.of_kafka, s.local_start[replica] <= s.leo[replica])
        return k.all(s.log_start[replica] <= s.local_start[replica], s.log_start[replica] <= s.leo[replica], below_end)

    return k.forall(REPLICA, right)


@tiered.always_in(lambda rules: not rules.keeps_highest)
def leader_can_serve(k: Algebra, s: View) -> Value:
    """Whoever leads has each offset from its log start to its LEO locally or in the store, or it is being deleted.

    Where the highest offset in remote storage outlives a log this is not kept (TK1).
    """

    def served(leader: Value, offset: Value) -> Value:
        def has(copy: Value) -> Value:
            there = k.any(s.stored[copy] == 1, s.deleting_at[copy] != -1)
            finished = k.all(s.finished_at[copy] != -1, there, in_copy(k, s, copy, offset))
            return k.all(finished, is_same_record(k, s, copy, leader, offset))

        below = k.all(s.log_start[leader] <= offset, offset < s.local_start[leader])
        return k.implies(below, k.exists(COPY, has))

    def serves(leader: Value) -> Value:
        newest = k.all(s.leads[leader] == 1, s.leader_epoch[leader] == s.newest_epoch)
        return k.all(newest, s.highest_remote[leader] != NOT_LOOKED)

    return k.forall(REPLICA, lambda r: k.implies(serves(r), k.forall(OFFSET, lambda o: served(r, o))))


@tiered.always
def lineage_is_leaders(k: Algebra, s: View) -> Value:
    """A follower's leader epoch checkpoint is its leader's, over all that both claim."""

    def same(leader: Value, follower: Value, offset: Value) -> Value:
        mine, theirs = s.record_epoch[follower, offset], s.record_epoch[leader, offset]
        return k.any(mine == -1, theirs == -1, mine == theirs)

    def follows(leader: Value, follower: Value) -> Value:
        role = k.all(s.leads[leader] == 1, s.leads[follower] == 0, s.settled[follower] == 1)
        return k.all(role, s.leader_epoch[leader] == s.leader_epoch[follower])

    def all_same(leader: Value, follower: Value) -> Value:
        return k.implies(follows(leader, follower), k.forall(OFFSET, lambda o: same(leader, follower, o)))

    return k.forall(REPLICA, lambda a: k.forall(REPLICA, lambda b: all_same(a, b)))


@tiered.always
def uploaded_is_stable(k: Algebra, s: View) -> Value:
    """What a leader uploads, and has begun to in its epoch, is below its high watermark."""

    def below(copy: Value) -> Value:
        def right(leader: Value) -> Value:
            own = k.all(s.copier[copy] == leader, s.leads[leader] == 1, s.copying[copy] == 1)
            begun = k.all(s.begun_in[copy] != -1, s.begun_in[copy] == s.leader_epoch[leader])
            return k.implies(k.all(own, begun), s.copy_end[copy] <= s.hw[leader])

        return k.forall(REPLICA, right)

    return k.forall(COPY, below)
