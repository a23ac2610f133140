"""What ``snapshots`` promises in every state, and what some run of it must meet."""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA, Constants
from ..logs import EPOCH, OFFSET
from .state import SLOT, has_snapshot, in_log, is_fetching, latest_snapshot, presumes_leadership, snapshots


@snapshots.always
def snapshot_in_between(k: Algebra, s: View) -> Value:
    """Every log that does not begin at 0 has a snapshot between LBO - 1 and the high watermark, or is fetching one."""

    def between(replica: Value, offset: Value) -> Value:
        inside = k.all(s.lbo[replica] - 1 <= offset, offset < s.hw[replica])
        return k.all(has_snapshot(k, s, replica, offset), inside)

    def covered(replica: Value) -> Value:
        found = k.exists(OFFSET, lambda o: between(replica, o))
        return k.any(s.lbo[replica] == 0, is_fetching(s, replica), found)

    return k.forall(REPLICA, covered)


@snapshots.always
def offsets_in_order(k: Algebra, s: View) -> Value:
    """LBO <= high watermark <= LEO, on every replica."""
    return k.forall(REPLICA, lambda r: k.all(s.lbo[r] <= s.hw[r], s.hw[r] <= s.leo[r]))


@snapshots.always
def lbo_never_retreats(k: Algebra, s: View) -> Value:
    """An LBO only increases, but for a full reset: it is the largest one since the last."""
    if k.rules.running:
        # Every step of such a replica is seen; what could take its LBO back is a crash, if the log were not synced.
        return k.forall(REPLICA, lambda r: k.all(s.lbo[r] <= s.synced[r], s.synced[r] <= s.leo[r]))
    return k.forall(REPLICA, lambda r: s.lbo[r] == s.lbo_reached[r])


def _is_committed(s: View, offset: Value) -> Value:
    return s.committed[offset] != -1


def _holds(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The replica has the committed record, in its log or in its latest snapshot."""
    latest = latest_snapshot(k, s, replica)
    loaded = k.all(offset <= latest, offset < s.snapshot_records[replica, latest])
    logged = k.all(offset < s.leo[replica], s.record_epoch[replica, offset] == s.committed[offset])
    return k.ite(s.lbo[replica] <= offset, logged, loaded)


@snapshots.always
def no_committed_record_lost(k: Algebra, s: View) -> Value:
    """The leader of the newest epoch has every committed record, in its log or in its latest snapshot."""

    def kept_by(leader: Value) -> Value:
        return k.forall(OFFSET, lambda o: k.implies(_is_committed(s, o), _holds(k, s, leader, o)))

    if k.rules.running:
        # What a client was told is committed is the record that was committed there.
        told = k.forall(OFFSET, lambda o: k.any(s.told[o] == -1, s.told[o] == s.committed[o]))
        newest = k.last(EPOCH, lambda e: s.epoch_leader[e] != k.NONE, -1)

        def leads(replica: Value) -> Value:
            return k.all(presumes_leadership(k, s, replica), s.leader_epoch[replica] == newest)

        return k.all(told, k.forall(REPLICA, lambda r: k.implies(leads(r), kept_by(r))))
    leader = s.epoch_leader[s.newest_epoch]
    return k.implies(leader != k.NONE, kept_by(leader))


@snapshots.always
def snapshot_is_committed_prefix(k: Algebra, s: View) -> Value:
    """Every complete snapshot names a committed record, and has every record up to that one."""

    def right(replica: Value, offset: Value) -> Value:
        named = k.all(_is_committed(s, offset), s.snapshot_epoch[replica, offset] == s.committed[offset])
        return k.all(named, s.snapshot_records[replica, offset] == offset + 1)

    def all_right(replica: Value) -> Value:
        return k.forall(OFFSET, lambda o: k.implies(has_snapshot(k, s, replica, o), right(replica, o)))

    return k.forall(REPLICA, all_right)


def _same_record(k: Algebra, s: View, left: Value, right: Value, offset: Value) -> Value:
    both = k.all(in_log(k, s, left, offset), in_log(k, s, right, offset))
    return k.all(both, s.record_epoch[left, offset] == s.record_epoch[right, offset])


@snapshots.always
def logs_match(k: Algebra, s: View) -> Value:
    """Two logs that have the same record at an offset have the same records before it, as far as both reach back."""

    def same_below(left: Value, right: Value, end: Value) -> Value:
        def same(offset: Value) -> Value:
            both = k.all(in_log(k, s, left, offset), in_log(k, s, right, offset), offset < end)
            return k.implies(both, s.record_epoch[left, offset] == s.record_epoch[right, offset])

        return k.forall(OFFSET, same)

    def match(left: Value, right: Value) -> Value:
        return k.forall(OFFSET, lambda o: k.implies(_same_record(k, s, left, right, o), same_below(left, right, o)))

    return k.forall(REPLICA, lambda a: k.forall(REPLICA, lambda b: match(a, b)))


@snapshots.always
def committed_below_high_watermark(k: Algebra, s: View) -> Value:
    """Below its high watermark every log has what is committed."""

    def agrees(replica: Value, offset: Value) -> Value:
        below = k.all(in_log(k, s, replica, offset), offset < s.hw[replica])
        return k.implies(below, s.record_epoch[replica, offset] == s.committed[offset])

    return k.forall(REPLICA, lambda r: k.forall(OFFSET, lambda o: agrees(r, o)))


def _voters(c: Constants) -> int:
    return c["replicas"] - c["observers"]


def _snapshots_at_all(c: Constants) -> bool:
    return _voters(c) > 0 and c["minimum_records"] < c["log_size"]


def _falls_behind(c: Constants) -> bool:
    """A replica can be behind a leader's LBO: neither voter of two can, but for an observer."""
    return _snapshots_at_all(c) and c["lag_expires"] == 1 and (_voters(c) > 2 or c["observers"] > 0)


@snapshots.sometimes(lambda c: _voters(c) > 0)
def record_committed(k: Algebra, s: View) -> Value:
    """A record is committed."""
    return k.exists(OFFSET, lambda o: _is_committed(s, o))


@snapshots.sometimes(lambda c: _snapshots_at_all(c) and c["replicas"] > 1)
def follower_took_lbo(k: Algebra, s: View) -> Value:
    """A follower that has never been in another epoch has a log that does not begin at 0, and a snapshot before it."""
    return k.exists(
        REPLICA,
        lambda r: k.all(s.lbo[r] > 0, k.negate(presumes_leadership(k, s, r)), k.negate(is_fetching(s, r))),
    )


@snapshots.sometimes(lambda c: _falls_behind(c) and c["log_size"] > 1 + c["minimum_records"])
def log_behind_half_a_snapshot(k: Algebra, s: View) -> Value:
    """A replica has fetched records that come after a snapshot which it has not."""
    return k.exists(REPLICA, lambda r: k.all(is_fetching(s, r), s.lbo[r] < s.leo[r]))


@snapshots.sometimes(lambda c: _falls_behind(c) and c["max_chunks"] > 1)
def half_a_snapshot(k: Algebra, s: View) -> Value:
    """A replica has some chunks of a snapshot, and not all."""
    return k.exists(REPLICA, lambda r: s.position[r] > 0)


@snapshots.sometimes(lambda c: _snapshots_at_all(c) and c["log_size"] > 1)
def lbo_inside_snapshot(k: Algebra, s: View) -> Value:
    """The latest snapshot of a replica reaches past its LBO: no snapshot need end where its log begins."""
    return k.exists(REPLICA, lambda r: k.all(0 < s.lbo[r], s.lbo[r] <= latest_snapshot(k, s, r)))


@snapshots.sometimes(lambda c: _voters(c) > 0 and c["log_size"] > 1 and c["minimum_records"] == 0)
def two_snapshots(k: Algebra, s: View) -> Value:
    """A replica has two snapshots at once."""

    def older(replica: Value, offset: Value) -> Value:
        return k.all(has_snapshot(k, s, replica, offset), offset < latest_snapshot(k, s, replica))

    return k.exists(REPLICA, lambda r: k.exists(OFFSET, lambda o: older(r, o)))


@snapshots.sometimes(lambda c: _voters(c) > 2 and c["max_leader_epoch"] > 0)
def logs_diverge(k: Algebra, s: View) -> Value:
    """Two logs have different records at one offset: there is something to truncate."""

    def differ(left: Value, right: Value, offset: Value) -> Value:
        both = k.all(in_log(k, s, left, offset), in_log(k, s, right, offset))
        return k.all(both, s.record_epoch[left, offset] != s.record_epoch[right, offset])

    return k.exists(REPLICA, lambda a: k.exists(REPLICA, lambda b: k.exists(OFFSET, lambda o: differ(a, b, o))))


@snapshots.sometimes(lambda c: _voters(c) > 2 and c["max_leader_epoch"] > 0)
def two_presumed_leaders(k: Algebra, s: View) -> Value:
    """Two replicas presume leadership at once: one is deposed and has not heard of it."""

    def both_lead(left: Value, right: Value) -> Value:
        return k.all(left != right, presumes_leadership(k, s, left), presumes_leadership(k, s, right))

    return k.exists(REPLICA, lambda a: k.exists(REPLICA, lambda b: both_lead(a, b)))


@snapshots.sometimes(lambda c: c["late_responses"] > 0 and _voters(c) > 1 and c["max_leader_epoch"] > 0)
def response_from_older_epoch(k: Algebra, s: View) -> Value:
    """The network holds back a response for a replica that is in a newer epoch by now."""
    return k.exists(
        SLOT,
        lambda i: k.all(s.response_to[i] != k.NONE, s.response_epoch[i] < s.leader_epoch[s.response_to[i]]),
    )
