"""Why ``kip-320`` keeps its promises, for any number of replicas, offsets, records and leader epochs.

The argument in short. The *history* of an epoch is the log of its leader: what that replica held when it started the
epoch, and what it wrote in it. The log of whoever leads or follows in an epoch is a prefix of its history, and a record
of the epoch, wherever it is, is the history's own: so whatever is written is alone of its epoch at its offset, and logs
match. A record is *committed* when a leader's high watermark first passes it. A leader that commits is in the newest
epoch that any leader has started, because every older one is sealed: some member of its final ISR has moved on to a
later epoch and acknowledges nothing more in it. From the newest started epoch on, final ISRs only shrink until a later
one is started, so whoever leads next has acknowledged the record.

The same lemmas prove ``kip-320-restarts``, in which replicas crash.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...core.algebra import Algebra, Value, View
from ...core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, integers
from ...prove.proof import Ghosts, Proof
from ..logs import EPOCH, OFFSET
from .state import fencing

_SIZES = (
    {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1},
    {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2},
    {"replicas": 3, "log_size": 2, "max_records": 2, "max_leader_epoch": 2},
)

kip_320 = Proof(fencing, variant="kip-320", sizes=_SIZES, cores=Path(__file__).with_name("cores-kip-320.json"))

_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_IDS = integers(-1, lambda c: c["max_records"] - 1)

kip_320.ghost("final_isr", "the ISR with which the controller left an epoch, or has it now", REPLICA_SET, per=(EPOCH,))
kip_320.ghost("newest_started", "the largest leader epoch that its leader has taken up", _EPOCHS, initially=-1)
kip_320.ghost(
    "moved_on",
    "of an epoch before that: a member of its final ISR that is in a later epoch",
    OPTIONAL_REPLICA,
    per=(EPOCH,),
    initially=-1,
)
kip_320.ghost(
    "history_end",
    "the LEO that an epoch's leader had last in the epoch; -1 while it has not taken the epoch up",
    integers(-1, lambda c: c["log_size"]),
    per=(EPOCH,),
    initially=-1,
)
kip_320.ghost("history_id", "the records of an epoch's leader", _IDS, per=(EPOCH, OFFSET), initially=-1)
kip_320.ghost("history_epoch", "their leader epochs", _EPOCHS, per=(EPOCH, OFFSET), initially=-1)
kip_320.ghost("committed_end", "the end of the committed records, exclusive", integers(0, lambda c: c["log_size"]))
kip_320.ghost("committed_id", "the committed record at an offset", _IDS, per=(OFFSET,), initially=-1)
kip_320.ghost("committed_epoch", "the leader epoch of that record", _EPOCHS, per=(OFFSET,), initially=-1)
kip_320.ghost("committed_in", "the leader epoch in which it was committed", _EPOCHS, per=(OFFSET,), initially=-1)


@kip_320.updates("controller_elect_leader")
def _elected(k: Algebra, s: View, new_leader: Value) -> Ghosts:  # noqa: ARG001 - as the action has it
    return {"final_isr": lambda epoch: k.ite(epoch == s.next_leader_epoch, s.quorum_isr, s.final_isr[epoch])}


def isr_without(k: Algebra, s: View, replica: Value) -> Value:
    """The ISR with which the controller begins an epoch when a replica has failed."""
    last_leader = k.all(s.quorum_leader == replica, s.quorum_isr == k.only(replica))
    return k.ite(last_leader, s.quorum_isr, k.without_member(s.quorum_isr, replica))


@kip_320.updates("controller_shrink_isr")
def _shrunk_by_controller(k: Algebra, s: View, replica: Value) -> Ghosts:
    isr = isr_without(k, s, replica)
    return {"final_isr": lambda epoch: k.ite(epoch == s.next_leader_epoch, isr, s.final_isr[epoch])}


def history_begun(k: Algebra, s: View, leader: Value, epoch: Value) -> Ghosts:
    """The log of whoever takes an epoch up becomes its history."""

    def history(of: str, row: str) -> Callable[[Value, Value], Value]:
        return lambda e, o: k.ite(e == epoch, getattr(s, of)[leader, o], getattr(s, row)[e, o])

    return {
        "history_end": lambda e: k.ite(e == epoch, s.leo[leader], s.history_end[e]),
        "history_id": history("record_id", "history_id"),
        "history_epoch": history("record_epoch", "history_epoch"),
    }


@kip_320.updates("become_leader")
def _started(k: Algebra, s: View, leader: Value, epoch: Value) -> Ghosts:
    """The leader, in all earlier final ISRs, has moved on from those epochs."""

    def moved_on(e: Value) -> Value:
        return k.ite(k.all(s.newest_started <= e, e < epoch), leader, s.moved_on[e])

    return {
        "newest_started": lambda: k.max(s.newest_started, epoch),
        "moved_on": moved_on,
        **history_begun(k, s, leader, epoch),
    }


@kip_320.updates("leader_write")
def _written(k: Algebra, s: View, leader: Value) -> Ghosts:
    epoch, end = s.leader_epoch[leader], s.leo[leader]

    def at(e: Value, o: Value) -> Value:
        return k.all(e == epoch, o == end)

    return {
        "history_end": lambda e: k.ite(e == epoch, end + 1, s.history_end[e]),
        "history_id": lambda e, o: k.ite(at(e, o), s.next_record_id, s.history_id[e, o]),
        "history_epoch": lambda e, o: k.ite(at(e, o), epoch, s.history_epoch[e, o]),
    }


@kip_320.updates("leader_inc_high_watermark")
def committed(k: Algebra, s: View, leader: Value) -> Ghosts:
    """The first leader whose high watermark passes an offset commits the record that it holds there."""
    hw = s.hw[leader]

    def first(row: str, value: Value) -> Callable[[Value], Value]:
        return lambda o: k.ite(k.all(o == hw, s.committed_end <= hw), value, getattr(s, row)[o])

    return {
        "committed_end": lambda: k.max(s.committed_end, hw + 1),
        "committed_id": first("committed_id", s.record_id[leader, hw]),
        "committed_epoch": first("committed_epoch", s.record_epoch[leader, hw]),
        "committed_in": first("committed_in", s.leader_epoch[leader]),
    }


def _isr_changed(k: Algebra, s: View, isr: Value) -> Ghosts:
    return {"final_isr": lambda epoch: k.ite(epoch == s.quorum_leader_epoch, isr, s.final_isr[epoch])}


@kip_320.updates("leader_shrink_isr")
def _shrunk(k: Algebra, s: View, leader: Value, follower: Value) -> Ghosts:
    return _isr_changed(k, s, k.without_member(s.isr[leader], follower))


@kip_320.updates("leader_expand_isr")
def _expanded(k: Algebra, s: View, leader: Value, follower: Value) -> Ghosts:
    return _isr_changed(k, s, k.with_member(s.isr[leader], follower))


def is_started(s: View, epoch: Value) -> Value:
    """The epoch's leader has taken it up."""
    return 0 <= s.history_end[epoch]


def has_committed(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The replica's log holds the committed record at the offset."""
    return k.all(
        offset < s.leo[replica],
        s.record_id[replica, offset] == s.committed_id[offset],
        s.record_epoch[replica, offset] == s.committed_epoch[offset],
    )


def as_history(k: Algebra, s: View, replica: Value, epoch: Value, offset: Value) -> Value:
    """The replica's record at the offset is that of the epoch's history."""
    return k.all(
        s.record_id[replica, offset] == s.history_id[epoch, offset],
        s.record_epoch[replica, offset] == s.history_epoch[epoch, offset],
    )


# What is promised, beside the invariants of the protocol itself.


@kip_320.lemma(promise=True, left=REPLICA, right=REPLICA, lower=OFFSET, upper=OFFSET)
def log_matching(k: Algebra, s: View, left: Value, right: Value, lower: Value, upper: Value) -> Value:
    """Two logs that hold records of one epoch at one offset hold the same records there and everywhere below."""
    return k.implies(
        k.all(
            lower <= upper,
            upper < s.leo[left],
            upper < s.leo[right],
            s.record_epoch[left, upper] == s.record_epoch[right, upper],
        ),
        k.all(
            s.record_id[left, lower] == s.record_id[right, lower],
            s.record_epoch[left, lower] == s.record_epoch[right, lower],
        ),
    )


@kip_320.lemma(promise=True, replica=REPLICA, offset=OFFSET)
def committed_never_lost(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """Whatever was committed is in the log of every member of the controller's ISR, of whom one leads next."""
    return k.implies(
        k.all(offset < s.committed_end, k.member(replica, s.quorum_isr)), has_committed(k, s, replica, offset)
    )


@kip_320.lemma(promise=True, replica=REPLICA, offset=OFFSET)
def consumers_agree(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """Below any replica's high watermark lies what was committed: no consumer ever sees anything else at an offset."""
    return k.implies(offset < s.hw[replica], k.all(offset < s.committed_end, has_committed(k, s, replica, offset)))


# The controller and its requests.


@kip_320.lemma()
def epochs_in_order(k: Algebra, s: View) -> Value:
    """The controller's leader epoch is the last that it gave out: whoever is in it is under the newest request."""
    return k.all(0 <= s.next_leader_epoch, s.quorum_leader_epoch + 1 == s.next_leader_epoch)


@kip_320.lemma(epoch=EPOCH)
def request_names_a_member(k: Algebra, s: View, epoch: Value) -> Value:
    """The leader that a request names is in its ISR: so it has what was committed before."""
    leader = s.request_leader[epoch]
    return k.implies(k.all(epoch < s.next_leader_epoch, leader != k.NONE), k.member(leader, s.request_isr[epoch]))


@kip_320.lemma(member=REPLICA)
def controller_has_the_final_isr(k: Algebra, s: View, member: Value) -> Value:
    """The controller's ISR is the newest epoch's, as it is now: what holds of final ISRs holds of it."""
    return k.implies(
        0 <= s.quorum_leader_epoch,
        k.member(member, s.quorum_isr) == k.member(member, s.final_isr[s.quorum_leader_epoch]),
    )


@kip_320.lemma(epoch=EPOCH, member=REPLICA)
def request_has_the_final_isr(k: Algebra, s: View, epoch: Value, member: Value) -> Value:
    """Until its leader takes an epoch up, its ISR is that of its request: the leader starts with the true one."""
    return k.implies(
        k.all(epoch < s.next_leader_epoch, k.negate(is_started(s, epoch))),
        k.member(member, s.request_isr[epoch]) == k.member(member, s.final_isr[epoch]),
    )


# Leaders and followers.


@kip_320.lemma(leader=REPLICA, member=REPLICA)
def leader_knows_the_final_isr(k: Algebra, s: View, leader: Value, member: Value) -> Value:
    """The ISR that a presumed leader knows is its epoch's final one: who acknowledges to it is whom the seal binds."""
    return k.implies(
        s.leader[leader] == leader,
        k.member(member, s.isr[leader]) == k.member(member, s.final_isr[s.leader_epoch[leader]]),
    )


@kip_320.lemma(replica=REPLICA)
def leader_as_requested(k: Algebra, s: View, replica: Value) -> Value:
    """Whoever follows a leader has it from the request of its epoch, and that epoch is started: one leader an epoch."""
    epoch = s.leader_epoch[replica]
    return k.implies(
        s.leader[replica] != k.NONE,
        k.all(0 <= epoch, s.leader[replica] == s.request_leader[epoch], is_started(s, epoch)),
    )


@kip_320.lemma()
def newest_started_was_given_out(_k: Algebra, s: View) -> Value:
    """The newest started epoch was given out: an epoch that is only now given out is newer, and needs no seal."""
    return s.newest_started < s.next_leader_epoch


@kip_320.lemma(epoch=EPOCH)
def started_by_the_leader(k: Algebra, s: View, epoch: Value) -> Value:
    """A started epoch was given out, and its leader is in it or in a later one: it never starts it again."""
    leader = s.request_leader[epoch]
    return k.implies(
        is_started(s, epoch),
        k.all(
            epoch < s.next_leader_epoch, leader != k.NONE, epoch <= s.leader_epoch[leader], epoch <= s.newest_started
        ),
    )


# Histories.


@kip_320.lemma(replica=REPLICA, offset=OFFSET)
def record_in_its_history(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """A record is that of its epoch's history: what a leader writes is alone of its epoch at its offset."""
    epoch = s.record_epoch[replica, offset]
    return k.implies(
        offset < s.leo[replica],
        k.all(
            0 <= epoch,
            offset < s.history_end[epoch],
            s.history_epoch[epoch, offset] == epoch,
            s.history_id[epoch, offset] == s.record_id[replica, offset],
        ),
    )


@kip_320.lemma(replica=REPLICA, offset=OFFSET)
def log_is_a_prefix(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The log of a leader or follower is a prefix of its epoch's history: what it fetches next fits."""
    epoch = s.leader_epoch[replica]
    return k.implies(
        s.leader[replica] != k.NONE,
        k.all(
            s.leo[replica] <= s.history_end[epoch],
            k.implies(offset < s.leo[replica], as_history(k, s, replica, epoch, offset)),
        ),
    )


@kip_320.lemma(leader=REPLICA)
def leader_has_the_whole_history(k: Algebra, s: View, leader: Value) -> Value:
    """A presumed leader has all of its epoch's history: what it writes comes after every record of the epoch."""
    return k.implies(s.leader[leader] == leader, s.leo[leader] == s.history_end[s.leader_epoch[leader]])


# Which epochs can still commit.


@kip_320.lemma(older=EPOCH, newer=EPOCH, member=REPLICA)
def final_isrs_shrink(k: Algebra, s: View, older: Value, newer: Value, member: Value) -> Value:
    """From the newest started epoch on, a later final ISR is within an earlier one: no leader of them added anyone."""
    return k.implies(
        k.all(
            s.newest_started <= older,
            older <= newer,
            newer < s.next_leader_epoch,
            k.member(member, s.final_isr[newer]),
        ),
        k.member(member, s.final_isr[older]),
    )


@kip_320.lemma(epoch=EPOCH)
def older_epochs_are_sealed(k: Algebra, s: View, epoch: Value) -> Value:
    """Before the newest started epoch, some member of each final ISR has moved on: such an epoch commits no more."""
    witness = s.moved_on[epoch]
    return k.implies(
        epoch < s.newest_started,
        k.all(witness != k.NONE, k.member(witness, s.final_isr[epoch]), epoch < s.leader_epoch[witness]),
    )


# Committed records.


@kip_320.lemma(replica=REPLICA)
def hw_within_log(k: Algebra, s: View, replica: Value) -> Value:
    """A high watermark is within its log and within what was committed: it commits the next record or an old one."""
    return k.all(s.hw[replica] <= s.leo[replica], s.hw[replica] <= s.committed_end)


@kip_320.lemma(offset=OFFSET)
def committed_in_a_started_epoch(k: Algebra, s: View, offset: Value) -> Value:
    """A record is committed in a started epoch that is not older than its own: later ISRs are bound by it."""
    epoch = s.committed_in[offset]
    return k.implies(
        offset < s.committed_end, k.all(0 <= epoch, is_started(s, epoch), s.committed_epoch[offset] <= epoch)
    )


@kip_320.lemma(epoch=EPOCH, offset=OFFSET)
def later_histories_hold_the_committed(k: Algebra, s: View, epoch: Value, offset: Value) -> Value:
    """A started epoch not older than a commit has the committed record in its history: its followers may truncate."""
    return k.implies(
        k.all(offset < s.committed_end, s.committed_in[offset] <= epoch, is_started(s, epoch)),
        k.all(
            offset < s.history_end[epoch],
            s.history_id[epoch, offset] == s.committed_id[offset],
            s.history_epoch[epoch, offset] == s.committed_epoch[offset],
        ),
    )


@kip_320.lemma(epoch=EPOCH, member=REPLICA, offset=OFFSET)
def later_isrs_hold_the_committed(k: Algebra, s: View, epoch: Value, member: Value, offset: Value) -> Value:
    """So has every member of such an epoch's final ISR, which is no longer in an epoch before the commit."""
    return k.implies(
        k.all(
            offset < s.committed_end,
            s.committed_in[offset] <= epoch,
            epoch < s.next_leader_epoch,
            k.member(member, s.final_isr[epoch]),
        ),
        k.all(has_committed(k, s, member, offset), s.committed_in[offset] <= s.leader_epoch[member]),
    )


@kip_320.lemma(replica=REPLICA, offset=OFFSET)
def hw_knows_no_later_commit(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """What lies below a replica's high watermark was committed in its epoch or before: its ISR has it."""
    return k.implies(offset < s.hw[replica], s.committed_in[offset] <= s.leader_epoch[replica])


@kip_320.lemma(leader=REPLICA, offset=OFFSET)
def leader_counts_its_own_commits(k: Algebra, s: View, leader: Value, offset: Value) -> Value:
    """A presumed leader's high watermark is above what its epoch committed: who reaches it may join the ISR."""
    return k.implies(
        k.all(
            s.leader[leader] == leader,
            offset < s.committed_end,
            s.committed_in[offset] == s.leader_epoch[leader],
        ),
        offset < s.hw[leader],
    )


# Terms that z3's E-matching does not come upon by itself.


@kip_320.hints(*fencing.actions, offset=OFFSET)
def when_committed(_k: Algebra, s: View, offset: Value, **_params: Value) -> list[Value]:
    """Which ISRs and histories hold a record depends on the epoch in which it was committed."""
    return [s.committed_in[offset]]


@kip_320.hints("leader_inc_high_watermark")
def _sealed_or_newest(_k: Algebra, s: View, leader: Value) -> list[Value]:
    """Had a later epoch been started, the witness of this one's seal would be in the ISR, and not acknowledge."""
    return [s.moved_on[s.leader_epoch[leader]], s.committed_in[s.hw[leader]]]
