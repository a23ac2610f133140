"""Why ``kip-320-brokers`` keeps its promises, for any number of replicas, offsets, records and leader epochs.

What ``proof.py`` says of histories, of requests and of what is committed holds here, too. But a leader goes by what its
followers have told it, and they may have moved on since: an older epoch may still commit when a newer one has started.
So older epochs are not sealed as a whole. A record of an epoch is *blocked* where a later epoch was started without it:
whoever started that had not acknowledged the record and never will, and as it is in the final ISR of the older epoch,
the record is not committed there. Where a record is not blocked, each later history has it, and so has each member of a
later ISR that is not in the final ISR of the epoch.

A newer epoch may commit a record before an older one does. ``committed_in`` is then the older one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...core.algebra import Algebra, Value, View
from ...core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET
from ...prove.proof import Ghosts, Proof
from ..logs import EPOCH, OFFSET
from .proof import as_history, committed, has_committed, history_begun, is_started, isr_without, kip_320, when_committed
from .state import fencing, presumes_leadership

kip_320_brokers = Proof(
    fencing,
    variant="kip-320-brokers",
    sizes=kip_320.sizes,
    twins=("kip-320-stale-acks",),
    cores=Path(__file__).with_name("cores-kip-320-brokers.json"),
)

kip_320_brokers.takes(
    kip_320,
    "final_isr",
    "history_end",
    "history_id",
    "history_epoch",
    "committed_end",
    "committed_id",
    "committed_epoch",
    "committed_in",
    "leader_write",
)
kip_320_brokers.ghost("counted_isr", "whom an epoch's leader counts on, or would", REPLICA_SET, per=(EPOCH,))
kip_320_brokers.ghost(
    "blocked_by",
    "a member of an epoch's final ISR that began to lead in a later one without this one's record",
    OPTIONAL_REPLICA,
    per=(EPOCH, OFFSET),
    initially=-1,
)


def _new_epoch(k: Algebra, s: View, isr: Value) -> Ghosts:
    """The controller begins an epoch, with an ISR that nobody has changed yet."""

    def row(name: str) -> Callable[[Value], Value]:
        return lambda epoch: k.ite(epoch == s.next_leader_epoch, isr, getattr(s, name)[epoch])

    return {"final_isr": row("final_isr"), "counted_isr": row("counted_isr")}


@kip_320_brokers.updates("controller_elect_leader")
def _elected(k: Algebra, s: View, new_leader: Value) -> Ghosts:  # noqa: ARG001 - as the action has it
    return _new_epoch(k, s, s.quorum_isr)


@kip_320_brokers.updates("controller_shrink_isr")
def _shrunk_by_controller(k: Algebra, s: View, replica: Value) -> Ghosts:
    return _new_epoch(k, s, isr_without(k, s, replica))


@kip_320_brokers.updates("become_leader")
def _started(k: Algebra, s: View, leader: Value, epoch: Value) -> Ghosts:
    """The leader's log becomes the history, and what it lacks of earlier ones is blocked."""

    def blocked(e: Value, o: Value) -> Value:
        free = k.all(e < epoch, s.blocked_by[e, o] == k.NONE)
        return k.ite(k.all(free, k.negate(_holds(k, s, leader, e, o))), leader, s.blocked_by[e, o])

    return {**history_begun(k, s, leader, epoch), "blocked_by": blocked}


@kip_320_brokers.updates("leader_inc_high_watermark")
def _committed(k: Algebra, s: View, leader: Value) -> Ghosts:
    """As in the other proof, but an older epoch may commit what a newer one has committed before."""
    hw, epoch = s.hw[leader], s.leader_epoch[leader]

    def oldest(o: Value) -> Value:
        return k.ite(k.all(o == hw, k.any(s.committed_end <= hw, epoch < s.committed_in[o])), epoch, s.committed_in[o])

    return {**committed(k, s, leader), "committed_in": oldest}


def _isr_changed(k: Algebra, s: View, isr: Value) -> Ghosts:
    """Leader and controller have another ISR, in one step."""
    now = s.quorum_leader_epoch
    return {
        "final_isr": lambda epoch: k.ite(epoch == now, isr, s.final_isr[epoch]),
        "counted_isr": lambda epoch: k.ite(epoch == now, isr, s.counted_isr[epoch]),
    }


@kip_320_brokers.updates("leader_shrink_isr")
def _shrunk(k: Algebra, s: View, leader: Value, follower: Value) -> Ghosts:
    return _isr_changed(k, s, k.without_member(s.isr[leader], follower))


@kip_320_brokers.updates("leader_expand_isr")
def _expanded(k: Algebra, s: View, leader: Value, follower: Value) -> Ghosts:
    return _isr_changed(k, s, k.with_member(s.isr[leader], follower))


def _holds(k: Algebra, s: View, replica: Value, epoch: Value, offset: Value) -> Value:
    """The replica's log holds the record that the epoch's history has at the offset."""
    return k.all(offset < s.history_end[epoch], offset < s.leo[replica], as_history(k, s, replica, epoch, offset))


def _is_blocked(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    return s.blocked_by[epoch, offset] != k.NONE


kip_320_brokers.takes(
    kip_320,
    "log_matching",
    "committed_never_lost",
    "consumers_agree",
    "epochs_in_order",
    "request_names_a_member",
    "controller_has_the_final_isr",
    "record_in_its_history",
    "leader_has_the_whole_history",
    "hw_within_log",
    "committed_in_a_started_epoch",
    "later_histories_hold_the_committed",
    "hw_knows_no_later_commit",
    "leader_counts_its_own_commits",
)


# The controller and its requests.


@kip_320_brokers.lemma(epoch=EPOCH, member=REPLICA)
def request_has_the_isr(k: Algebra, s: View, epoch: Value, member: Value) -> Value:
    """Until its leader takes an epoch up, its ISR is that of its request, and so is whom its leader will count on."""
    requested = k.member(member, s.request_isr[epoch])
    return k.implies(
        k.all(epoch < s.next_leader_epoch, k.negate(is_started(s, epoch))),
        k.all(requested == k.member(member, s.final_isr[epoch]), requested == k.member(member, s.counted_isr[epoch])),
    )


# Leaders and followers.


@kip_320_brokers.lemma(replica=REPLICA)
def leader_as_requested(k: Algebra, s: View, replica: Value) -> Value:
    """Whoever follows a leader has it from the request of its epoch: one leader an epoch."""
    epoch = s.leader_epoch[replica]
    return k.implies(s.leader[replica] != k.NONE, k.all(0 <= epoch, s.leader[replica] == s.request_leader[epoch]))


@kip_320_brokers.lemma(epoch=EPOCH)
def started_by_the_leader(k: Algebra, s: View, epoch: Value) -> Value:
    """A started epoch was given out, and its leader is in it or in a later one: it never starts it again."""
    leader = s.request_leader[epoch]
    return k.implies(
        is_started(s, epoch),
        k.all(epoch < s.next_leader_epoch, leader != k.NONE, epoch <= s.leader_epoch[leader]),
    )


@kip_320_brokers.lemma(replica=REPLICA, offset=OFFSET)
def log_is_a_prefix(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """A log is a prefix of the history of its replica's epoch, after a crash too; without an epoch it is empty."""
    epoch = s.leader_epoch[replica]
    return k.all(
        k.implies(epoch < 0, s.leo[replica] == 0),
        k.implies(
            0 <= epoch,
            k.all(
                is_started(s, epoch),
                s.leo[replica] <= s.history_end[epoch],
                k.implies(offset < s.leo[replica], as_history(k, s, replica, epoch, offset)),
            ),
        ),
    )


@kip_320_brokers.lemma(epoch=EPOCH, lower=OFFSET, upper=OFFSET)
def histories_rise(k: Algebra, s: View, epoch: Value, lower: Value, upper: Value) -> Value:
    """In a history epochs rise with the offset up to its own: before the first record of it lies all that is older."""
    low, high = s.history_epoch[epoch, lower], s.history_epoch[epoch, upper]
    within = upper < s.history_end[epoch]
    # The epoch's own bound is told of one offset: of a second one that is in no term no instance is found.
    return k.all(k.implies(within, high <= epoch), k.implies(k.all(lower <= upper, within), low <= high))


# Whom a leader counts on.


@kip_320_brokers.lemma(leader=REPLICA, member=REPLICA)
def leader_counts_its_isr(k: Algebra, s: View, leader: Value, member: Value) -> Value:
    """A presumed leader counts on the ISR that it knows: who is in it has acknowledged what it commits."""
    return k.implies(
        presumes_leadership(s, leader),
        k.member(member, s.isr[leader]) == k.member(member, s.counted_isr[s.leader_epoch[leader]]),
    )


@kip_320_brokers.lemma(epoch=EPOCH, member=REPLICA)
def final_isr_is_counted(k: Algebra, s: View, epoch: Value, member: Value) -> Value:
    """The controller's ISR is within the one that is counted: who may be elected has acknowledged what is committed."""
    return k.implies(
        k.all(epoch < s.next_leader_epoch, k.member(member, s.final_isr[epoch])),
        k.member(member, s.counted_isr[epoch]),
    )


# Acknowledgements, and what later epochs have.


@kip_320_brokers.lemma(leader=REPLICA, follower=REPLICA, offset=OFFSET)
def acknowledged_is_held(k: Algebra, s: View, leader: Value, follower: Value, offset: Value) -> Value:
    """Whoever acknowledged a record to a presumed leader has it and was in the epoch, or the record is blocked."""
    epoch = s.leader_epoch[leader]
    return k.implies(
        k.all(presumes_leadership(s, leader), leader != follower, offset < s.remote_leo[leader, follower]),
        k.all(
            offset < s.leo[leader],
            epoch <= s.leader_epoch[follower],
            k.any(_is_blocked(k, s, epoch, offset), _holds(k, s, follower, epoch, offset)),
        ),
    )


@kip_320_brokers.lemma(epoch=EPOCH, offset=OFFSET)
def blocked_by_a_member(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """Whoever blocks a record is in the final ISR of its epoch, and has moved on from it."""
    by = s.blocked_by[epoch, offset]
    return k.implies(by != k.NONE, k.all(k.member(by, s.final_isr[epoch]), epoch < s.leader_epoch[by]))


@kip_320_brokers.lemma(leader=REPLICA, offset=OFFSET)
def blocked_without_acknowledgement(k: Algebra, s: View, leader: Value, offset: Value) -> Value:
    """And has not acknowledged it, so that the record will not be committed in that epoch."""
    by = s.blocked_by[s.leader_epoch[leader], offset]
    return k.implies(k.all(presumes_leadership(s, leader), by != k.NONE), s.remote_leo[leader, by] <= offset)


@kip_320_brokers.lemma(older=EPOCH, newer=EPOCH, offset=OFFSET)
def had_or_blocked(k: Algebra, s: View, older: Value, newer: Value, offset: Value) -> Value:
    """A later history has an epoch's record, or the record is blocked."""
    has = k.all(
        offset < s.history_end[older],
        offset < s.history_end[newer],
        s.history_id[older, offset] == s.history_id[newer, offset],
        s.history_epoch[older, offset] == s.history_epoch[newer, offset],
    )
    return k.implies(k.all(older < newer, is_started(s, newer)), k.any(has, _is_blocked(k, s, older, offset)))


@kip_320_brokers.lemma(older=EPOCH, newer=EPOCH, member=REPLICA, offset=OFFSET)
def later_members_have_it(k: Algebra, s: View, older: Value, newer: Value, member: Value, offset: Value) -> Value:
    """A member of a later ISR was in the epoch's final ISR, or has the epoch's record, or that is blocked."""
    return k.implies(
        k.all(older < newer, newer < s.next_leader_epoch, k.member(member, s.counted_isr[newer])),
        k.any(
            _is_blocked(k, s, older, offset),
            k.member(member, s.final_isr[older]),
            k.all(_holds(k, s, member, older, offset), older <= s.leader_epoch[member]),
        ),
    )


# Committed records.


@kip_320_brokers.lemma(epoch=EPOCH, member=REPLICA, offset=OFFSET)
def later_isrs_hold_the_committed(k: Algebra, s: View, epoch: Value, member: Value, offset: Value) -> Value:
    """Whoever is counted in an epoch not older than a commit holds what was committed, and is in no epoch before it."""
    return k.implies(
        k.all(
            offset < s.committed_end,
            s.committed_in[offset] <= epoch,
            epoch < s.next_leader_epoch,
            k.member(member, s.counted_isr[epoch]),
        ),
        k.all(has_committed(k, s, member, offset), s.committed_in[offset] <= s.leader_epoch[member]),
    )


# Terms that z3's E-matching does not come upon by itself.

kip_320_brokers.hints(*fencing.actions, offset=OFFSET)(when_committed)


@kip_320_brokers.hints("leader_inc_high_watermark")
def _not_blocked(_k: Algebra, s: View, leader: Value) -> list[Value]:
    """Were the record blocked, whoever blocks it would be counted, and not have acknowledged it."""
    epoch, hw = s.leader_epoch[leader], s.hw[leader]
    later = s.committed_in[hw]
    return [
        s.blocked_by[epoch, hw],
        s.remote_leo[leader, s.blocked_by[epoch, hw]],
        later,
        s.history_end[later],
        s.history_id[later, hw],
        s.history_epoch[later, hw],
    ]


@kip_320_brokers.hints("leader_inc_high_watermark", member=REPLICA)
def _acknowledged(_k: Algebra, s: View, leader: Value, member: Value) -> list[Value]:
    """Who is counted has acknowledged the record, and so has it."""
    epoch, hw = s.leader_epoch[leader], s.hw[leader]
    return [
        s.remote_leo[leader, member],
        s.leader_epoch[member],
        s.leo[member],
        s.record_id[member, hw],
        s.record_epoch[member, hw],
        s.history_id[epoch, hw],
        s.history_epoch[epoch, hw],
    ]


@kip_320_brokers.hints("leader_expand_isr", offset=OFFSET)
def below_the_epoch(_k: Algebra, s: View, leader: Value, follower: Value, offset: Value) -> list[Value]:
    """What is older than a leader's epoch lies below its high watermark, once that has reached the epoch."""
    epoch, hw = s.leader_epoch[leader], s.hw[leader]
    return [
        s.history_epoch[epoch, hw],
        s.history_epoch[epoch, offset],
        s.record_epoch[leader, hw],
        s.record_epoch[follower, offset],
    ]
