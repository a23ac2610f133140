"""The binding of ``compaction``: what brokers answer whose topic is compacted.

A record that no cleaner could keep is INVALID_RECORD: one with no key (as in Kafka's ``LogValidator``), and under the
strategy ``header`` one whose value "must be of type long - 8 bytes" and is not (DEVIATIONS, P4).
"""

from __future__ import annotations

from typing import Final

from ....model.core.algebra import Algebra, Value, View
from ....model.core.domains import REPLICA
from ....model.protocols.compaction.impl_state import AS_THEY_COME
from ....model.protocols.compaction.state import holds, key_at
from ....model.protocols.logs import OFFSET
from ...lockstep.binding import (
    BOUND,
    ITSELF,
    NOT_LEADER,
    NOTHING,
    ActionBinding,
    Binding,
    Effect,
    Exchange,
    environment,
    error,
    unasked,
)

_NOT_LEADER: Final = error(NOT_LEADER, "UNKNOWN_TOPIC_OR_PARTITION")
_INVALID: Final = error("INVALID_RECORD")
_CRASH: Final = environment("it is what a restart is, and no action")


def _inner(*guards: str) -> ActionBinding:
    return ActionBinding(dict.fromkeys(guards, unasked()))


def _fetched(asker: str | None, *guards: str) -> ActionBinding:
    """What the answer to a fetch brings."""
    rules = dict.fromkeys(guards, NOTHING)
    rules |= {"leads": _NOT_LEADER}
    if asker is not None:
        rules |= {"same_epoch": ITSELF}
    return ActionBinding(rules, Exchange(asker, "leader", Effect.ASKER))


def _is_led(k: Algebra, s: View, well: Value) -> Value:
    """Whoever is elected is well, and leads: after a crash it waits for a leader epoch, of which there are few."""
    leads = k.all(s.joined[s.leader] == s.leader_epoch, s.leads[s.leader] == 1)
    return k.all(s.leader != k.NONE, k.member(s.leader, well), leads)


def _catch_up(k: Algebra, s: View, well: Value) -> Value:
    """Whoever is well and follows the leader has a log that ends where the leader's does, whatever was removed."""

    def has_all(replica: Value) -> Value:
        # A broker that began anew when no leader epoch was left is told of no leader.
        follows = k.all(k.member(replica, well), s.joined[replica] == s.leader_epoch)
        return k.implies(follows, s.leo[replica] == s.leo[s.leader])

    return k.implies(_is_led(k, s, well), k.forall(REPLICA, has_all))


def _is_read_to_its_end(k: Algebra, s: View, well: Value) -> Value:
    """The consumer comes to the end of what its leader has committed."""
    return k.implies(_is_led(k, s, well), s.own_hw[s.leader] <= s.position)


def _is_cleaned(k: Algebra, s: View, well: Value) -> Value:
    """Where all that can be cleaned is due, no record stays for which there is another of its key; and it is stored
    how far the log is clean."""

    def end(replica: Value) -> Value:
        sealed = k.ite(s.rolls == 1, s.leo[replica], s.active[replica])
        return k.min(s.own_hw[replica], sealed)

    def twice(replica: Value, one: Value, other: Value) -> Value:
        both = k.all(holds(k, s, replica, one), holds(k, s, replica, other))
        return k.all(one < other, other < end(replica), both, key_at(s, replica, one) == key_at(s, replica, other))

    def dirty(replica: Value, offset: Value) -> Value:
        return k.all(s.checkpoint[replica] <= offset, offset < end(replica), holds(k, s, replica, offset))

    def clean(replica: Value) -> Value:
        left = k.exists(OFFSET, lambda a: k.exists(OFFSET, lambda b: twice(replica, a, b)))
        stored = end(replica) <= s.checkpoint[replica]
        due = [k.member(replica, well), s.joined[replica] != -1]
        if k.rules.whole_segments:
            # Amid a segment nobody can see where the one begins that has to wait.
            due.append(s.active[replica] <= s.own_hw[replica])
            # A log is no dirtier for a part of which nothing is left: a process that ended before it said so.
            stored = k.negate(k.exists(OFFSET, lambda o: dirty(replica, o)))
        return k.implies(k.all(*due), k.all(k.negate(left), stored))

    return k.implies(s.eager == 1, k.forall(REPLICA, clean))


COMPACTION: Final = Binding(
    "compaction",
    {
        "clean": _inner(
            "knows_leader",
            "cleanable",
            "beaten_or_expired",
            "nothing_comes_back",
            "marked_once",
            "committed",
            "inactive",
        ),
        "leader_write": ActionBinding(
            {"leads": _NOT_LEADER, "log_not_full": BOUND, "has_key": _INVALID, "header_is_long": _INVALID}, named=True
        ),
        "follower_fetch": _fetched("follower", "record_there", "not_fetched", "is_next"),
        "follower_skip": _fetched("follower", "goes_on", "in_log", "no_record_left"),
        "restart": ActionBinding({"was_known": _CRASH}),
        "set_topic_strategy": ActionBinding({"differs": unasked()}, named=True),
        "consumer_fetch": _fetched(None, "record_there", "committed", "not_read", "is_next"),
        "consumer_skip": _fetched(None, "goes_on", "committed", "no_record_left"),
        "consumer_start_over": ActionBinding({}, named=True),
    },
    restarts=frozenset({"restart"}),
    inputs=AS_THEY_COME,
    settles=(_catch_up, _is_read_to_its_end, _is_cleaned),
    asks=frozenset({"produce"}),
    restless=frozenset({"cleaned_at", "goes", "marks"}),
)
