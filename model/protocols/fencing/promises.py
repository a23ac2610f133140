"""The invariants of ``fencing``, and the states that some run of it must reach."""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ..logs import OFFSET
from .state import RECORD, fencing, is_true_leader, keeps_committed, presumes_leadership, same_record


def _committed_on(k: Algebra, s: View, leader: Value, replicas: Value) -> Value:
    """Every record below the leader's high watermark is in the logs of these replicas."""
    return k.forall(
        REPLICA,
        lambda r: k.implies(
            k.member(r, replicas),
            k.forall(OFFSET, lambda o: k.implies(o < s.hw[leader], same_record(k, s, leader, r, o))),
        ),
    )


@fencing.always
def weak_isr(k: Algebra, s: View) -> Value:
    """A presumed leader's records below its high watermark are on every member of the ISR that it knows."""
    return k.forall(REPLICA, lambda r: k.implies(presumes_leadership(s, r), _committed_on(k, s, r, s.isr[r])))


@fencing.always
def strong_isr(k: Algebra, s: View) -> Value:
    """A presumed leader's records below its high watermark are on every member of the controller's ISR.

    The next leader has them, so no record that a consumer saw is lost.
    """
    return k.forall(REPLICA, lambda r: k.implies(presumes_leadership(s, r), _committed_on(k, s, r, s.quorum_isr)))


@fencing.always
def leader_in_isr(k: Algebra, s: View) -> Value:
    """While there is a leader, it is in the controller's ISR."""
    return k.any(s.quorum_leader == k.NONE, k.member(s.quorum_leader, s.quorum_isr))


@fencing.always_in(lambda rules: rules.running)
def acknowledged_is_kept(k: Algebra, s: View) -> Value:
    """An acknowledged record is at its offset in the log of every member of the controller's ISR.

    The next leader has it, as ``acks=all`` promises.
    """

    def kept(replica: Value, record: Value) -> Value:
        offset = s.acknowledged[record]
        return k.implies(0 <= offset, k.all(offset < s.leo[replica], s.record_id[replica, offset] == record))

    return k.forall(
        REPLICA,
        lambda r: k.implies(k.member(r, s.quorum_isr), k.forall(RECORD, lambda record: kept(r, record))),
    )


@fencing.always_in(lambda rules: rules.running)
def read_is_kept(k: Algebra, s: View) -> Value:
    """A record that a consumer read is at that offset in the log of every member of the controller's ISR."""

    def kept(replica: Value, offset: Value) -> Value:
        record = s.read[offset]
        return k.implies(0 <= record, k.all(offset < s.leo[replica], s.record_id[replica, offset] == record))

    return k.forall(
        REPLICA,
        lambda r: k.implies(k.member(r, s.quorum_isr), k.forall(OFFSET, lambda o: kept(r, o))),
    )


@fencing.always_in(lambda rules: rules.running)
def written_once(k: Algebra, s: View) -> Value:
    """No log holds a record twice, however often its idempotent producer sent it (KIP-98)."""

    def twice(replica: Value, one: Value, other: Value) -> Value:
        return k.all(one < other, other < s.leo[replica], s.record_id[replica, one] == s.record_id[replica, other])

    return k.forall(REPLICA, lambda r: k.forall(OFFSET, lambda a: k.forall(OFFSET, lambda b: k.negate(twice(r, a, b)))))


@fencing.implied_in(keeps_committed)
def clients_agree(k: Algebra, s: View) -> Value:
    """Consumers read an acknowledged record at its offset, and each record is at one offset.

    The logs of the controller's ISR have all acknowledged and read records (``acknowledged_is_kept``,
    ``read_is_kept``), each once (``written_once``).
    """

    def same(record: Value, offset: Value) -> Value:
        here = k.implies(s.acknowledged[record] == offset, k.any(s.read[offset] == -1, s.read[offset] == record))
        there = k.implies(
            s.read[offset] == record, k.any(s.acknowledged[record] == -1, s.acknowledged[record] == offset)
        )
        return k.all(here, there)

    def apart(one: Value, other: Value) -> Value:
        return k.implies(one < other, k.any(s.read[one] == -1, s.read[one] != s.read[other]))

    def elsewhere(one: Value, other: Value) -> Value:
        return k.implies(one < other, k.any(s.acknowledged[one] == -1, s.acknowledged[one] != s.acknowledged[other]))

    return k.all(
        k.forall(RECORD, lambda record: k.forall(OFFSET, lambda offset: same(record, offset))),
        k.forall(OFFSET, lambda one: k.forall(OFFSET, lambda other: apart(one, other))),
        k.forall(RECORD, lambda one: k.forall(RECORD, lambda other: elsewhere(one, other))),
    )


@fencing.sometimes()
def record_committed(k: Algebra, s: View) -> Value:
    """Some leader counts a record as committed."""
    return k.exists(REPLICA, lambda r: k.all(presumes_leadership(s, r), s.hw[r] > 0))


@fencing.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0)
def two_presumed_leaders(k: Algebra, s: View) -> Value:
    """Two replicas presume leadership at once (one is a zombie)."""
    return k.exists(
        REPLICA,
        lambda a: k.exists(REPLICA, lambda b: k.all(a != b, presumes_leadership(s, a), presumes_leadership(s, b))),
    )


@fencing.sometimes(lambda c: c["replicas"] > 1 and c["max_leader_epoch"] > 0 and c["max_records"] > 1)
def logs_diverge(k: Algebra, s: View) -> Value:
    """Two logs hold different records at one offset: there is something to truncate."""
    return k.exists(
        REPLICA,
        lambda a: k.exists(
            REPLICA,
            lambda b: k.all(0 < s.leo[a], 0 < s.leo[b], s.record_id[a, 0] != s.record_id[b, 0]),
        ),
    )


@fencing.sometimes(lambda c: c["replicas"] > 1)
def isr_shrunk(k: Algebra, s: View) -> Value:
    """The leader works on with an ISR that lacks a replica."""
    return k.exists(
        REPLICA,
        lambda r: k.all(is_true_leader(k, s, r), k.negate(k.forall(REPLICA, lambda m: k.member(m, s.quorum_isr)))),
    )
