"""What Apache Kafka's brokers do besides: rows TK2, TK4, TK12 and TK17 of DEVIATIONS.md."""

from __future__ import annotations

from ...core.algebra import EVERY, Algebra, Step, Value, View
from ...core.domains import REPLICA
from ..logs import END_OFFSET
from .impl_spec import begin_log_at, in_copy, is_known_readable, is_read, is_same_record, target_of
from .impl_state import COPY, OFFSET, tiered


@tiered.action(leader=REPLICA, start=END_OFFSET, present=lambda rules: rules.of_kafka)
def find_log_start(k: Algebra, s: View, leader: Value, start: Value) -> Step:
    """A new leader's log begins where the first remote segment of its leader epochs does, or its local part (TK2)."""

    def is_there(copy: Value) -> Value:
        """As far as it has read the copy is there, and has a record of a leader epoch of its log, or the same one."""
        gone = is_read(k, s, leader, s.deleted_at[copy])
        first = s.copy_epoch[copy, s.copy_start[copy]]

        def known(offset: Value) -> Value:
            of_epoch = k.all(first != -1, s.record_epoch[leader, offset] == first)
            return k.any(of_epoch, k.all(in_copy(k, s, copy, offset), is_same_record(k, s, copy, leader, offset)))

        return k.all(is_read(k, s, leader, s.started_at[copy]), k.negate(gone), k.exists(OFFSET, known))

    begins = k.exists(COPY, lambda c: k.all(s.copy_start[c] == start, is_there(c)))
    yield "presumes_leadership", s.leads[leader] == 1
    yield "is_higher", s.log_start[leader] < start
    yield "below_last_stable", start <= s.hw[leader]
    yield "remote_begins_there", k.any(begins, start == s.local_start[leader])
    yield "is_first", k.negate(k.exists(COPY, lambda c: k.all(s.copy_start[c] < start, is_there(c))))
    yield begin_log_at(k, s, leader, start)


@tiered.action(replica=REPLICA, start=END_OFFSET, local=END_OFFSET, present=lambda rules: rules.of_kafka)
def recover_log_start(k: Algebra, s: View, replica: Value, start: Value, local: Value) -> Step:
    """A process that starts knows the log start of its checkpoint, which is written now and then (TK12).

    What lies between on its disk is local again.
    """
    yield "is_lower", start < s.log_start[replica]
    yield "as_it_is_on_disk", k.all(start <= local, local <= s.local_start[replica])
    yield s.update(log_start={replica: start}, local_start={replica: local})


@tiered.action(replica=REPLICA, end=END_OFFSET, present=lambda rules: rules.of_kafka)
def truncate_below_start(_k: Algebra, s: View, replica: Value, end: Value) -> Step:
    """A follower's log is cut below its log start, in its first segment: the local log start stays, above the end."""
    yield "follows", s.leads[replica] == 0
    yield "below_log_start", end < s.log_start[replica]
    yield s.update(leo={replica: end}, log_start={replica: end}, record_epoch={(replica, EVERY): lambda _: -1})


@tiered.action(follower=REPLICA, copy=COPY, present=lambda rules: rules.cuts_first)
def begin_without_epochs(k: Algebra, s: View, follower: Value, copy: Value) -> Step:
    """A follower has cut its log to begin behind a copy, and does not get the epochs that are with it (TK4)."""
    start, end = s.told_start[follower], s.copy_end[copy]
    target, known = target_of(k, s, follower)
    yield "begins_there", known
    yield "above_log_start", start < target
    yield "segment_is_readable", k.all(is_known_readable(k, s, follower, copy), in_copy(k, s, copy, target - 1))
    yield s.update(
        log_start={follower: start},
        local_start={follower: end},
        leo={follower: end},
        record_epoch={(follower, EVERY): lambda _: -1},
    )
