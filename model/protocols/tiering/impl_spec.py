"""What brokers with tiered storage that run by themselves are held to: the rules of KIP-405 and KIP-1023, step by step.

``model/protocols/tiering`` is what is explored and proved. There a follower learns, reads and begins in one step, and
all leaders know the remote log as it is. Brokers ask their leader first for one offset and then for another, and go by
the metadata log as far as they have read it. So here is what each has been told (``told_epuo``, ...), up to where it
has read (``has_read``), and of each copy where the metadata log says what. A copy is told by its id: a leader whose
upload has failed begins another of the same segment.

**What is given** comes from the system as it is (``Binding.given``): who is elected, the ISR, high watermarks, of which
``fencing`` has the rules; what was told; and what is committed in the metadata log, which is a partition like any
other. Records are held to those that were written (``held.py``).
"""

from __future__ import annotations

from ...core.algebra import EVERY, Algebra, Step, Update, Value, View
from ...core.domains import REPLICA
from ..logs import END_OFFSET
from .impl_state import COPY, EPOCH, NOT_LOOKED, OFFSET, Begins, tiered

__all__ = ["tiered"]


# -- what the state says ---------------------------------------------------------------------------------------------


def in_copy(k: Algebra, s: View, copy: Value, offset: Value) -> Value:
    """The copy has the record at this offset."""
    return k.all(s.copy_start[copy] <= offset, offset < s.copy_end[copy])


def is_same_record(k: Algebra, s: View, copy: Value, replica: Value, offset: Value) -> Value:
    """A copy says the same of an offset as the replica's log."""
    return k.all(s.record_epoch[replica, offset] != -1, s.copy_epoch[copy, offset] == s.record_epoch[replica, offset])


def is_read(k: Algebra, s: View, replica: Value, at: Value) -> Value:
    """The broker may have read what is there in the metadata log."""
    return k.all(at != -1, at < s.has_read[replica])


def is_known_finished(k: Algebra, s: View, replica: Value, copy: Value) -> Value:
    """The copy was finished once, as far as the broker has read."""
    return is_read(k, s, replica, s.finished_at[copy])


def is_known_readable(k: Algebra, s: View, replica: Value, copy: Value) -> Value:
    """The copy is finished and nobody deletes it, as far as the broker has read."""
    return k.all(is_known_finished(k, s, replica, copy), k.negate(is_read(k, s, replica, s.deleting_at[copy])))


def has_no_data(s: View, replica: Value) -> Value:
    """The replica has nothing, locally or in remote storage."""
    return s.log_start[replica] == s.leo[replica]


def begins_at_epuo(k: Algebra, s: View, replica: Value) -> Value:
    """The check of ReplicaFetcher: an empty follower, with the feature enabled. Kafka's has never had a record."""
    return k.all(s.flag[replica] == 1, s.leo[replica] == 0 if k.rules.of_kafka else has_no_data(s, replica))


def _forgets(k: Algebra, replica: Value) -> dict[str, dict[Value, int]]:
    """What a role makes of what is known of remote storage: nothing, as nobody has looked; Kafka's log keeps it."""
    return {} if k.rules.keeps_highest else {"highest_remote": {replica: NOT_LOOKED}}


# -- roles and records -----------------------------------------------------------------------------------------------


@tiered.action(replica=REPLICA, epoch=EPOCH)
def begin_to_lead(k: Algebra, s: View, replica: Value, epoch: Value) -> Step:
    """A broker is told that it leads: its remote log manager has not looked yet."""
    yield "epoch_is_known", epoch <= s.newest_epoch
    yield "epoch_not_older", s.leader_epoch[replica] <= epoch
    yield s.update(
        leader_epoch={replica: epoch},
        leads={replica: 1},
        settled={replica: 0},
        begins={replica: Begins.nowhere},
        **_forgets(k, replica),
    )


@tiered.action(replica=REPLICA, epoch=EPOCH)
def become_follower(k: Algebra, s: View, replica: Value, epoch: Value) -> Step:
    """A broker is told that another leads."""
    yield "epoch_is_known", epoch <= s.newest_epoch
    yield "epoch_not_older", s.leader_epoch[replica] <= epoch
    yield s.update(
        leader_epoch={replica: epoch},
        leads={replica: 0},
        settled={replica: 0},
        begins={replica: Begins.nowhere},
        **_forgets(k, replica),
    )


@tiered.action(replica=REPLICA)
def settle(_k: Algebra, s: View, replica: Value) -> Step:
    """A follower has cut off what its leader lacks."""
    yield "follows", s.leads[replica] == 0
    yield s.update(settled={replica: 1})


@tiered.action(replica=REPLICA)
def give_up_role(_k: Algebra, s: View, replica: Value) -> Step:
    """A follower is to ask anew where to cut."""
    yield s.update(settled={replica: 0})


@tiered.action(replica=REPLICA)
def restart(_k: Algebra, s: View, replica: Value) -> Step:
    """Another process of a broker has no role yet."""
    yield s.update(
        leads={replica: 0},
        settled={replica: 0},
        highest_remote={replica: NOT_LOOKED},
        begins={replica: Begins.nowhere},
        deletes={(replica, EVERY): lambda _: 0},
    )


@tiered.action(replica=REPLICA)
def replace_replica(k: Algebra, s: View, replica: Value) -> Step:
    """A replica outside the ISR loses its disk: it is empty."""
    yield "outside_isr", k.negate(k.member(replica, s.isr))
    yield s.update(
        leader_epoch={replica: -1},
        log_start={replica: 0},
        local_start={replica: 0},
        leo={replica: 0},
        record_epoch={(replica, EVERY): lambda _: -1},
    )


@tiered.action(replica=REPLICA, epoch=EPOCH, end=END_OFFSET)
def append(k: Algebra, s: View, replica: Value, epoch: Value, end: Value) -> Step:
    """A leader takes records of producers in its epoch, or a follower the next ones of its leader's, of one epoch."""
    first = s.leo[replica]
    yield "has_records", first < end
    yield "epoch_is_its_own", k.any(s.leads[replica] == 0, epoch == s.leader_epoch[replica])
    yield "epoch_not_newer", epoch <= s.leader_epoch[replica]

    def written(offset: Value) -> Value:
        return k.ite(k.all(first <= offset, offset < end), epoch, s.record_epoch[replica, offset])

    yield s.update(
        leo={replica: end},
        record_epoch={(replica, EVERY): written},
    )


def _cut_from_start(k: Algebra, s: View, replica: Value, start: Value) -> dict[tuple[Value, object], object]:
    """The checkpoint of a log that begins at an offset."""
    return {(replica, EVERY): lambda o: k.ite(o < start, -1, s.record_epoch[replica, o])}


@tiered.action(replica=REPLICA, end=END_OFFSET)
def truncate(k: Algebra, s: View, replica: Value, end: Value) -> Step:
    """A follower cuts off what its leader lacks. Below its local log start nothing local is left; what is remote and
    not cut stays, but in Kafka, where the log is empty then and begins there."""
    yield "follows", s.leads[replica] == 0
    yield "below_end", end < s.leo[replica]
    emptied = k.all(k.rules.of_kafka, end < s.local_start[replica])
    yield s.update(
        leo={replica: end},
        local_start={replica: k.min(s.local_start[replica], end)},
        log_start={replica: k.ite(emptied, end, k.min(s.log_start[replica], end))},
        record_epoch={
            (replica, EVERY): lambda o: k.ite(k.all(o < end, k.negate(emptied)), s.record_epoch[replica, o], -1)
        },
    )


@tiered.action(replica=REPLICA, start=END_OFFSET)
def follow_log_start(k: Algebra, s: View, replica: Value, start: Value) -> Step:
    """A follower raises its log start to what its leader says that it is, but not above the high watermark."""
    yield "follows", s.leads[replica] == 0
    yield "is_higher", s.log_start[replica] < start
    yield "as_it_was_told", k.all(start <= s.told_start[replica], start <= s.hw[replica])
    yield s.update(
        log_start={replica: start},
        local_start={replica: k.max(s.local_start[replica], start)},
        record_epoch=_cut_from_start(k, s, replica, start),
    )


# -- what a leader uploads and deletes -------------------------------------------------------------------------------


def _is_found(k: Algebra, s: View, leader: Value, offset: Value) -> Value:
    """A record of the leader's lineage was copied, as far as it has read. Below its log start it goes on.

    In Kafka it does below the first leader epoch that it knows (TK12).
    """

    def found(copy: Value) -> Value:
        below = k.any(offset < s.log_start[leader], k.all(k.rules.of_kafka, s.record_epoch[leader, offset] == -1))
        first = k.all(below, s.copy_epoch[copy, offset] == s.first_epoch[leader])
        same = k.any(is_same_record(k, s, copy, leader, offset), first)
        here = k.all(in_copy(k, s, copy, offset), same)
        if k.rules.of_kafka:
            # The last record of an epoch counts where any later one of it was copied (TK8).
            here = k.any(here, k.exists(OFFSET, lambda o: is_later(copy, o)))
        return k.all(is_known_finished(k, s, leader, copy), here)

    def is_later(copy: Value, other: Value) -> Value:
        epoch = s.record_epoch[leader, offset]
        return k.all(offset <= other, in_copy(k, s, copy, other), epoch != -1, s.copy_epoch[copy, other] == epoch)

    return k.exists(COPY, found)


@tiered.action(leader=REPLICA)
def find_highest_remote_offset(k: Algebra, s: View, leader: Value) -> Step:
    """The leader looks for the highest offset of its lineage in remote storage."""
    found = k.last(OFFSET, lambda o: k.all(o < s.leo[leader], _is_found(k, s, leader, o)), -1)
    yield "presumes_leadership", s.leads[leader] == 1
    yield s.update(highest_remote={leader: k.max(s.highest_remote[leader], found)})


@tiered.action(leader=REPLICA, copy=COPY)
def start_copy(k: Algebra, s: View, leader: Value, copy: Value) -> Step:
    """The first step of an upload: a leader asks to write that it copies the next segment."""
    start, end = s.copy_start[copy], s.copy_end[copy]

    def same(offset: Value) -> Value:
        there = k.all(start <= offset, offset < end, s.log_start[leader] <= offset)
        return k.implies(there, is_same_record(k, s, copy, leader, offset))

    def another(other: Value) -> Value:
        under_way = k.all(s.copying[other] == 1, s.begun_in[other] != -1, s.is_done[other] == 0)
        return k.all(other != copy, s.copier[other] == leader, under_way)

    yield "presumes_leadership", k.all(s.leads[leader] == 1, s.copier[copy] == leader)
    yield "has_looked", s.highest_remote[leader] != NOT_LOOKED
    yield "is_new", s.begun_in[copy] == -1
    yield "has_records", start < end
    yield "below_last_stable", end <= s.hw[leader]
    upto = k.max(s.highest_remote[leader] + 1, s.local_start[leader])
    # Where the highest offset outlives what it was found for, the task that copies knows better (TK1).
    yield "is_next", k.all(start <= upto, k.any(k.rules.keeps_highest, s.highest_remote[leader] + 1 < end))
    # Its records may have been deleted since it was looked at.
    yield "is_local", k.any(s.local_start[leader] < end, end <= s.log_start[leader])
    yield "is_of_lineage", k.forall(OFFSET, same)
    yield "one_at_a_time", k.negate(k.exists(COPY, another))
    yield s.update(begun_in={copy: s.leader_epoch[leader]})


@tiered.action(copy=COPY)
def copy_segment(_k: Algebra, s: View, copy: Value) -> Step:
    """The second step: all of it is in the store. Who was deposed meanwhile may come to it late."""
    yield "copy_started", s.started_at[copy] != -1
    yield s.update(stored={copy: 1})


@tiered.action(leader=REPLICA, copy=COPY)
def finish_copy(k: Algebra, s: View, leader: Value, copy: Value) -> Step:
    """The third step: a leader asks to write that the copy is finished, in the leader epoch in which it has begun it.

    Kafka's goes on in a later one where it has not heard of anybody else's in between.
    """
    yield "presumes_leadership", k.all(s.leads[leader] == 1, s.copier[copy] == leader)
    yield "begun_in_epoch", k.any(k.rules.of_kafka, s.begun_in[copy] == s.leader_epoch[leader])
    yield "copy_started", is_read(k, s, leader, s.started_at[copy])
    yield "copied", s.stored[copy] == 1
    yield s.update(is_done={copy: 1})


@tiered.action(leader=REPLICA, copy=COPY)
def note_copied(k: Algebra, s: View, leader: Value, copy: Value) -> Step:
    """The metadata log says that the leader's own copy is finished: its last offset is in remote storage.

    Kafka's goes by what it has written itself, whether that counts or not (TK11).
    """
    last = s.copy_end[copy] - 1
    yield "presumes_leadership", k.all(s.leads[leader] == 1, s.copier[copy] == leader)
    finished = is_known_finished(k, s, leader, copy)
    yield "copy_finished", k.any(finished, k.all(k.rules.counts_given_up, s.is_done[copy] == 1))
    yield "is_of_lineage", k.any(last < s.log_start[leader], is_same_record(k, s, copy, leader, last))
    yield s.update(highest_remote={leader: k.max(s.highest_remote[leader], last)})


@tiered.action(leader=REPLICA, end=END_OFFSET)
def delete_local(k: Algebra, s: View, leader: Value, end: Value) -> Step:
    """Local retention: a leader deletes on its disk what is in remote storage; in Kafka a follower does so, too.

    Whose log keeps the highest offset that it ever knew goes by that alone (TK1).
    """
    first = s.local_start[leader]

    def uploaded(offset: Value) -> Value:
        def has(copy: Value) -> Value:
            there = k.all(is_known_readable(k, s, leader, copy), in_copy(k, s, copy, offset))
            return k.all(there, is_same_record(k, s, copy, leader, offset))

        return k.implies(k.all(first <= offset, offset < end), k.exists(COPY, has))

    if not k.rules.of_kafka:
        yield "presumes_leadership", s.leads[leader] == 1
        yield "has_looked", s.highest_remote[leader] != NOT_LOOKED
    yield "is_higher", first < end
    yield "below_last_stable", end <= s.hw[leader]
    if k.rules.keeps_highest:
        yield "is_uploaded", end <= s.highest_remote[leader] + 1
    else:
        yield "is_uploaded", k.forall(OFFSET, uploaded)
    yield s.update(local_start={leader: end})


def begin_log_at(k: Algebra, s: View, leader: Value, start: Value) -> Update:
    """The log begins there from now on."""
    return s.update(
        log_start={leader: start},
        local_start={leader: k.max(s.local_start[leader], start)},
        record_epoch=_cut_from_start(k, s, leader, start),
    )


@tiered.action(leader=REPLICA, copy=COPY)
def expire(k: Algebra, s: View, leader: Value, copy: Value) -> Step:
    """Retention lets the first remote segment of a leader's log go, or another leader has begun to delete it."""
    start = s.log_start[leader]
    gone = is_read(k, s, leader, s.deleting_at[copy])

    def differs(offset: Value) -> Value:
        there = k.all(start <= offset, in_copy(k, s, copy, offset))
        return k.all(there, k.negate(is_same_record(k, s, copy, leader, offset)))

    end = k.min(k.first(OFFSET, differs, s.copy_end[copy]), s.hw[leader])
    yield "presumes_leadership", s.leads[leader] == 1
    yield "is_first", k.all(in_copy(k, s, copy, start), is_same_record(k, s, copy, leader, start))
    yield "copy_finished", is_known_finished(k, s, leader, copy)
    yield "retention_expires", k.any(gone, s.retention == 1)
    yield "is_higher", start < end
    yield begin_log_at(k, s, leader, end)


@tiered.action(leader=REPLICA, start=END_OFFSET)
def delete_records(k: Algebra, s: View, leader: Value, start: Value) -> Step:
    """A client has records deleted (DeleteRecords)."""
    yield "presumes_leadership", s.leads[leader] == 1
    yield "is_higher", s.log_start[leader] < start
    yield "below_last_stable", start <= s.hw[leader]
    yield begin_log_at(k, s, leader, start)


@tiered.action(leader=REPLICA, copy=COPY)
def start_deletion(k: Algebra, s: View, leader: Value, copy: Value) -> Step:
    """A leader asks to write that it deletes a copy, which is below its log start, or of epochs before its log's."""
    first = s.first_epoch[leader]
    below = s.copy_end[copy] <= s.log_start[leader]
    older = k.forall(OFFSET, lambda o: k.implies(in_copy(k, s, copy, o), s.copy_epoch[copy, o] < first))
    yield "presumes_leadership", s.leads[leader] == 1
    yield "copy_finished", is_known_finished(k, s, leader, copy)
    yield "of_no_use", k.any(below, older)
    yield s.update(deletes={(leader, copy): 1})


@tiered.action(leader=REPLICA, copy=COPY)
def give_up_copy(k: Algebra, s: View, leader: Value, copy: Value) -> Step:
    """A leader asks to write that it deletes a copy that came to no end, unless the log says that it is finished."""
    yield "presumes_leadership", s.leads[leader] == 1
    yield "copy_started", is_read(k, s, leader, s.started_at[copy])
    yield "nobody_copies", k.any(s.copier[copy] != leader, s.copying[copy] == 0)
    yield s.update(deletes={(leader, copy): 1})


@tiered.action(copy=COPY)
def remove_objects(_k: Algebra, s: View, copy: Value) -> Step:
    """Objects of a copy go, once the metadata log says that it is being deleted."""
    yield "deletion_started", s.deleting_at[copy] != -1
    yield s.update(stored={copy: 0})


# -- followers whose fetch offset is not on their leader -------------------------------------------------------------


@tiered.action(follower=REPLICA)
def ask_epuo(k: Algebra, s: View, follower: Value) -> Step:
    """A follower asks for the earliest pending upload offset, to begin there."""
    yield "follows", s.leads[follower] == 0
    yield "begins_at_epuo", begins_at_epuo(k, s, follower)
    yield s.update(begins={follower: Begins.at_epuo})


@tiered.action(follower=REPLICA)
def ask_local_start(k: Algebra, s: View, follower: Value) -> Step:
    """A follower asks for the local log start, to begin there."""
    yield "follows", s.leads[follower] == 0
    yield "old_behaviour", k.negate(begins_at_epuo(k, s, follower))
    yield s.update(begins={follower: Begins.at_local_start})


@tiered.action(follower=REPLICA)
def stop_building(_k: Algebra, s: View, follower: Value) -> Step:
    """It is not about to begin anywhere any more."""
    yield s.update(begins={follower: Begins.nowhere})


def _start_at(s: View, follower: Value, offset: Value) -> Update:
    return s.update(
        log_start={follower: offset},
        local_start={follower: offset},
        leo={follower: offset},
        record_epoch={(follower, EVERY): lambda _: -1},
    )


@tiered.action(follower=REPLICA)
def truncate_fully(k: Algebra, s: View, follower: Value) -> Step:
    """Case 2.1: the fetch offset is below the leader's log start, and the follower begins there."""
    start, end = s.told_start[follower], s.leo[follower]
    yield "follows", s.leads[follower] == 0
    yield "was_told", start != -1
    yield "not_on_leader", k.any(end < start, k.all(has_no_data(s, follower), start != end))
    yield "old_behaviour", k.any(k.negate(begins_at_epuo(k, s, follower)), start < end)
    yield _start_at(s, follower, start)


@tiered.action(follower=REPLICA)
def start_at_local_start(_k: Algebra, s: View, follower: Value) -> Step:
    """The EPUO is unknown and nothing is uploaded: log start and local log start are one."""
    yield "begins_there", s.begins[follower] == Begins.at_epuo
    yield "epuo_is_unknown", s.told_epuo[follower] == -1
    yield "nothing_uploaded", s.told_start[follower] == s.told_local[follower]
    yield _start_at(s, follower, s.told_local[follower])


def target_of(k: Algebra, s: View, follower: Value) -> tuple[Value, Value]:
    """Where a follower is about to begin, and whether that is known: the EPUO, or the local log start."""
    at_epuo = k.all(s.begins[follower] == Begins.at_epuo, s.told_epuo[follower] != -1)
    target = k.ite(at_epuo, s.told_epuo[follower], s.told_local[follower])
    return target, k.any(at_epuo, s.begins[follower] == Begins.at_local_start)


@tiered.action(follower=REPLICA)
def start_at_log_start(k: Algebra, s: View, follower: Value) -> Step:
    """Nothing valid is in remote storage below the offset to begin at, and the follower copies all that is local."""
    target, known = target_of(k, s, follower)
    yield "begins_there", known
    yield "not_above_log_start", target <= s.told_start[follower]
    yield _start_at(s, follower, s.told_start[follower])


def _built(k: Algebra, s: View, follower: Value, copy: Value, target: Value) -> Step:
    """Guards and update: the follower has built all that comes before the target from what a copy says.

    Kafka's begins behind the copy that has the last record before the target.
    """
    start = s.told_start[follower]
    behind = s.copy_end[copy] if k.rules.of_kafka else target

    def known(offset: Value) -> Value:
        return k.implies(k.all(start <= offset, offset < target), s.copy_epoch[copy, offset] != -1)

    yield "above_log_start", start < target
    yield "segment_is_readable", k.all(is_known_readable(k, s, follower, copy), in_copy(k, s, copy, target - 1))
    if not k.rules.cuts_first:
        yield "checkpoint_is_whole", k.forall(OFFSET, known)
    yield s.update(
        log_start={follower: start},
        local_start={follower: behind},
        leo={follower: behind},
        record_epoch={
            (follower, EVERY): lambda o: k.ite(k.all(start <= o, o < behind), s.copy_epoch[copy, o], -1),
        },
    )


@tiered.action(follower=REPLICA, copy=COPY)
def build_to_epuo(k: Algebra, s: View, follower: Value, copy: Value) -> Step:
    """An empty follower builds over [log start, EPUO), and begins at the EPUO."""
    yield "begins_there", s.begins[follower] == Begins.at_epuo
    yield "epuo_is_known", s.told_epuo[follower] != -1
    yield from _built(k, s, follower, copy, s.told_epuo[follower])


@tiered.action(follower=REPLICA, copy=COPY)
def build_to_local_start(k: Algebra, s: View, follower: Value, copy: Value) -> Step:
    """Case 2.2: a follower builds up to the leader's local log start."""
    yield "begins_there", s.begins[follower] == Begins.at_local_start
    yield from _built(k, s, follower, copy, s.told_local[follower])


from . import impl_invariants, kafka_spec  # isort: skip  # noqa: E402,F401 - what they register belongs to the text
