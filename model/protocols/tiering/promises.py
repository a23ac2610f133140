"""What ``tiering`` promises in every state, and what some run of it must meet."""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ..logs import EPOCH, OFFSET
from .state import (
    NOT_LOOKED,
    Segment,
    follows,
    in_lineage,
    is_readable,
    is_tiered,
    last_stable,
    leads,
    leads_newest,
    tiering,
)


def _serves(k: Algebra, s: View, leader: Value) -> Value:
    """The controller's leader knows what it has on remote: its remote log manager has run, or there is no tiering."""
    return k.all(leads_newest(k, s, leader), k.any(s.tiered == 0, s.highest_remote[leader] != NOT_LOOKED))


@tiering.always
def offsets_in_order(k: Algebra, s: View) -> Value:
    """A log begins where its local part begins or before, and that not above the high watermark, nor this the LEO."""

    def right(replica: Value) -> Value:
        start, local = s.log_start[replica], s.local_start[replica]
        return k.all(start <= local, local <= s.hw[replica], s.hw[replica] <= s.leo[replica])

    return k.forall(REPLICA, right)


@tiering.always
def uploaded_is_stable(k: Algebra, s: View) -> Value:
    """What a leader uploads in its epoch is below its high watermark and its last stable offset (Ly >= Ry >= Rx)."""

    def below(leader: Value, start: Value) -> Value:
        epoch = s.leader_epoch[leader]
        end = s.segment_end[epoch, start]
        uploaded = s.segment_state[epoch, start] != Segment.none
        return k.implies(uploaded, k.all(start < end, end <= last_stable(k, s, leader)))

    return k.forall(REPLICA, lambda r: k.implies(leads(k, s, r), k.forall(OFFSET, lambda o: below(r, o))))


@tiering.always
def leader_can_serve(k: Algebra, s: View) -> Value:
    """Whoever leads has each offset from its log start to its LEO locally or in remote storage: there is no gap."""

    def served(leader: Value, offset: Value) -> Value:
        below = k.all(s.log_start[leader] <= offset, offset < s.local_start[leader])
        return k.implies(below, k.all(s.tiered == 1, is_tiered(k, s, leader, offset)))

    return k.forall(REPLICA, lambda r: k.implies(_serves(k, s, r), k.forall(OFFSET, lambda o: served(r, o))))


@tiering.always
def isr_can_serve(k: Algebra, s: View) -> Value:
    """Without tiering, what is committed and its leader serves each of the ISR has locally, or has let expire."""

    def has(leader: Value, member: Value, offset: Value) -> Value:
        committed = k.all(s.log_start[leader] <= offset, offset < s.hw[leader])
        local = k.all(s.local_start[member] <= offset, offset < s.leo[member])
        return k.implies(committed, k.any(local, offset < s.log_start[member]))

    def all_have(leader: Value) -> Value:
        def has_all(member: Value) -> Value:
            return k.implies(k.member(member, s.isr), k.forall(OFFSET, lambda o: has(leader, member, o)))

        return k.forall(REPLICA, has_all)

    return k.any(s.tiered == 1, k.forall(REPLICA, lambda r: k.implies(leads_newest(k, s, r), all_have(r))))


@tiering.always
def lineage_is_leaders(k: Algebra, s: View) -> Value:
    """A follower's leader epoch checkpoint is its leader's, over all that both claim, and has each record's epoch."""

    def same(leader: Value, follower: Value, offset: Value) -> Value:
        both = k.all(in_lineage(k, s, leader, offset), in_lineage(k, s, follower, offset))
        epoch = s.record_epoch[follower, offset]
        return k.implies(both, k.all(epoch != -1, epoch == s.record_epoch[leader, offset]))

    def all_same(leader: Value, follower: Value) -> Value:
        return k.implies(follows(k, s, leader, follower), k.forall(OFFSET, lambda o: same(leader, follower, o)))

    return k.forall(REPLICA, lambda a: k.forall(REPLICA, lambda b: all_same(a, b)))


@tiering.always
def only_empty_follower_jumps(k: Algebra, s: View) -> Value:
    """Who has begun at the EPUO was empty, and follower.fetch.last.tiered.offset.enable is set."""

    def right(replica: Value) -> Value:
        jumped = s.jumped_from[replica]
        return k.any(jumped == -1, k.all(jumped == 0, k.c.last_tiered_offset == 1))

    return k.forall(REPLICA, right)


@tiering.always
def built_is_uploaded(k: Algebra, s: View) -> Value:
    """Who has begun at the EPUO, and has no data yet, has built nothing past what its leader's lineage has on remote.

    What that leader deletes since lies below its log start.
    """

    def built(leader: Value, follower: Value, offset: Value) -> Value:
        last = offset + 1 == s.leo[follower]
        return k.any(k.negate(last), offset < s.log_start[leader], is_tiered(k, s, leader, offset))

    def right(leader: Value, follower: Value) -> Value:
        begun = k.all(s.jumped_from[follower] != -1, s.tiered == 1)
        return k.implies(begun, k.forall(OFFSET, lambda o: built(leader, follower, o)))

    def asked(leader: Value, follower: Value) -> Value:
        return k.implies(k.all(leads_newest(k, s, leader), follows(k, s, leader, follower)), right(leader, follower))

    return k.forall(REPLICA, lambda a: k.forall(REPLICA, lambda b: asked(a, b)))


@tiering.always
def segments_agree(k: Algebra, s: View) -> Value:
    """Without unclean elections no two segments disagree about a record."""

    def agree(one: Value, other: Value, offset: Value) -> Value:
        both = k.all(is_readable(k, s, one, offset), is_readable(k, s, other, offset))
        return k.implies(both, s.remote_epoch[one, offset] == s.remote_epoch[other, offset])

    def all_agree(one: Value, other: Value) -> Value:
        return k.forall(OFFSET, lambda o: agree(one, other, o))

    return k.any(k.c.unclean == 1, k.forall(EPOCH, lambda a: k.forall(EPOCH, lambda b: all_agree(a, b))))


@tiering.sometimes(lambda c: c["log_size"] > 1)
def gap_in_local(k: Algebra, s: View) -> Value:
    """A leader has deleted locally what it has uploaded, and its log start is still below."""
    return k.exists(REPLICA, lambda r: k.all(leads_newest(k, s, r), s.log_start[r] < s.local_start[r]))


@tiering.sometimes(lambda c: c["replicas"] > 1 and c["last_tiered_offset"] == 1)
def begun_at_epuo(k: Algebra, s: View) -> Value:
    """A follower has begun at the EPUO."""
    return k.exists(REPLICA, lambda r: s.jumped_from[r] != -1)


@tiering.sometimes(lambda c: c["replicas"] > 1 and c["last_tiered_offset"] == 1)
def joined_from_epuo(k: Algebra, s: View) -> Value:
    """A follower with no data locally, that has begun at the EPUO, is in the ISR."""
    return k.exists(REPLICA, lambda r: k.all(s.jumped_from[r] != -1, k.member(r, s.isr)))


@tiering.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0)
def leader_does_not_know(k: Algebra, s: View) -> Value:
    """A leader has not looked yet, and there are records of its own on remote that it has not locally."""

    def unknown(replica: Value) -> Value:
        below = k.all(s.log_start[replica] < s.local_start[replica], s.highest_remote[replica] == NOT_LOOKED)
        return k.all(leads_newest(k, s, replica), below)

    return k.exists(REPLICA, unknown)


def _diverges(c: dict[str, int]) -> bool:
    return c["replicas"] > 1 and c["max_leader_epoch"] > 0 and c["unclean"] == 1


@tiering.sometimes(lambda c: _diverges(dict(c)))
def remote_of_another_lineage(k: Algebra, s: View) -> Value:
    """A segment disagrees with the log of the controller's leader."""

    def other(replica: Value, epoch: Value, offset: Value) -> Value:
        there = k.all(is_readable(k, s, epoch, offset), in_lineage(k, s, replica, offset))
        differs = s.remote_epoch[epoch, offset] != s.record_epoch[replica, offset]
        return k.all(there, differs, s.remote_epoch[epoch, offset] != -1)

    def any_other(replica: Value) -> Value:
        return k.exists(EPOCH, lambda e: k.exists(OFFSET, lambda o: other(replica, e, o)))

    return k.exists(REPLICA, lambda r: k.all(leads_newest(k, s, r), any_other(r)))


@tiering.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0)
def two_presumed_leaders(k: Algebra, s: View) -> Value:
    """Two replicas presume that they lead: one is deposed, and has not heard of it."""
    return k.exists(REPLICA, lambda a: k.exists(REPLICA, lambda b: k.all(a != b, leads(k, s, a), leads(k, s, b))))


@tiering.sometimes(lambda c: c["switches"] == 1 and c["expires"] == 1 and c["log_size"] > 2)
def epuo_below_log_start(k: Algebra, s: View) -> Value:
    """The EPUO is below the log start, and tiering is enabled."""

    def below(replica: Value) -> Value:
        known = k.all(leads_newest(k, s, replica), s.highest_remote[replica] >= 0)
        return k.all(known, s.highest_remote[replica] + 1 < s.log_start[replica])

    return k.all(s.tiered == 1, k.exists(REPLICA, below))
