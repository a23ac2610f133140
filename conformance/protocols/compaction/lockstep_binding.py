"""The binding of ``compaction`` itself: what brokers answer that are driven step for step beside it.

Whoever cleans has a leader and knows its high watermark, and one pass of a cleaner is several steps of the model: each
record that goes, how far the log is clean then, each tombstone. What a broker can see of its own log it must refuse by
itself; that replicas, the consumer and producers have had the time that ``delete.retention.ms`` is for is the
environment's affair, as is when an operator sets a strategy.
"""

from __future__ import annotations

from typing import Final

from ....model.protocols.compaction.state import Strategy
from ...lockstep.binding import (
    BOUND,
    FENCED,
    ITSELF,
    NOTHING,
    ActionBinding,
    Answer,
    Binding,
    Effect,
    Exchange,
    Rule,
    Sight,
    environment,
    error,
    unasked,
)

_NO_LEADER: Final = environment("there was no election")
_STRANGER: Final = environment("a controller elects whom it has in the ISR, and a cleaner waits for its leader")
_OPERATOR: Final = environment("an operator does so where all logs are alike, or where it changes nothing")
_IN_TIME: Final = environment("it is what delete.retention.ms is for")
_NONE: Final = -1


def leader(sight: Sight) -> int:
    """Who leads."""
    return sight.cell("leader")


def _fetches_before(sight: Sight) -> Answer:
    """A replica that does not follow the newest leader fetches."""
    if leader(sight) == _NONE:
        return _NO_LEADER
    return ITSELF if leader(sight) == sight["replica"] else error(FENCED)


def _strategy(sight: Sight, replica: int) -> int:
    topic = sight.cell("topic_strategy")
    return sight.cell("broker_strategy", replica) if topic == Strategy.unset else topic


def _order(sight: Sight, replica: int, offset: int) -> tuple[int, int]:
    """By what a replica's cleaner compares a record that is there."""
    strategy, epoch = _strategy(sight, replica), sight.cell("record_epoch", replica, offset)
    if strategy == Strategy.timestamp:
        return sight.cell("record_timestamp", epoch, offset), offset
    header = sight.cell("record_header", epoch, offset)
    known = strategy == Strategy.header and header < sight.system.constants["header_values"]
    return (header if known else -1), offset


def _held(sight: Sight, replica: int) -> dict[int, tuple[int, int]]:
    """What a replica has: by offset the leader epoch and the key."""
    found = {}
    for offset in range(sight.cell("leo", replica)):
        epoch = sight.cell("record_epoch", replica, offset)
        if epoch != _NONE:
            found[offset] = epoch, sight.cell("record_key", epoch, offset)
    return found


def _beats_others(sight: Sight) -> Answer:
    """A cleaner keeps a tombstone that beats something in its own log. What is still to be fetched it cannot see."""
    replica, offset = sight["replica"], sight["offset"]
    held = _held(sight, replica)
    if offset not in held:
        return unasked()
    mine = _order(sight, replica, offset)
    beaten = (
        other != offset and key == held[offset][1] and _order(sight, replica, other) < mine
        for other, (_, key) in held.items()
    )
    return unasked() if any(beaten) else _IN_TIME


def _nothing_new(sight: Sight) -> bool:
    """A log is cleaned again when there is something new in it, and what else goes by the same clock keeps time from
    going on: a tombstone waits for that, as in Kafka."""
    replica = sight["replica"]
    clean = sight.cell("checkpoint", replica)
    if min(sight.cell("hw"), sight.cell("active", replica)) <= clean:
        return True
    held = _held(sight, replica)
    others = (o for o in held if o != sight["offset"] and sight.cell("record_tombstone", held[o][0], o) == 1)
    return any(o < sight.cell("hw") for o in others)


def _begins_below(sight: Sight) -> bool:
    """A new leader lets nobody in before it has committed something in its own epoch (KAFKA-7128)."""
    return sight.cell("hw") < sight.cell("epoch_start", sight.cell("leader_epoch"))


def _unless_led(sight: Sight) -> Answer:
    """A leader has nobody to let in; nobody does where there is none."""
    return _NO_LEADER if leader(sight) == _NONE else unasked()


def _reads_nothing(sight: Sight) -> Answer:
    """The consumer asks the leader for more."""
    return _NO_LEADER if leader(sight) == _NONE else NOTHING


def _within(*guards: str, **others: Rule) -> dict[str, Rule]:
    return {**dict.fromkeys(guards, unasked()), **others}


_OF_LEADER: Final = Exchange("replica", leader, Effect.ASKER)
_ALTER_ISR: Final = Exchange(leader, None, Effect.ASKED)

STEPPED: Final = Binding(
    "compaction",
    {
        "elect_leader": ActionBinding(
            {
                "in_isr": error("ELIGIBLE_LEADERS_NOT_AVAILABLE"),
                "not_leader_yet": NOTHING,
                "follows_leader": _STRANGER,
                "epoch_available": BOUND,
            }
        ),
        "become_follower": ActionBinding({"has_leader": _NO_LEADER, "epoch_newer": unasked(FENCED)}, _OF_LEADER),
        "leader_write": ActionBinding(
            {
                "has_leader": _NO_LEADER,
                "log_not_full": BOUND,
                "headers_used": BOUND,
                "repeats_a_header": BOUND,
                "header_is_long": error("INVALID_RECORD"),
                "arrives_in_time": _IN_TIME,
            },
            Exchange(None, leader, Effect.ASKED),
        ),
        "follower_fetch": ActionBinding(
            {"follows_leader": _fetches_before, "record_there": NOTHING, "not_fetched": NOTHING, "is_next": NOTHING},
            _OF_LEADER,
        ),
        "follower_fetch_empty_batch": ActionBinding(
            {"follows_leader": _fetches_before, "not_fetched": NOTHING, "no_record_left": NOTHING}, _OF_LEADER
        ),
        "leader_inc_high_watermark": ActionBinding(
            {"has_leader": _NO_LEADER, **_within("record_above_hw", "isr_has_it")}
        ),
        "leader_shrink_isr": ActionBinding(
            {"has_leader": _NO_LEADER, "not_leader_itself": ITSELF, **_within("in_isr", "not_caught_up")}, _ALTER_ISR
        ),
        "leader_expand_isr": ActionBinding(
            dict.fromkeys(("outside_isr", "follows_leader", "reached_high_watermark"), _unless_led),
            _ALTER_ISR,
            waits=_begins_below,
        ),
        "roll_segment": ActionBinding(_within("segment_not_empty")),
        "remove_record": ActionBinding(
            _within("cleanable", "winner_cleanable", "is_beaten", "not_last", follows_leader=_STRANGER)
        ),
        "finish_cleaning": ActionBinding(
            _within("cleans_more", "in_log", "committed", "inactive", "nothing_left", follows_leader=_STRANGER)
        ),
        "remove_tombstone": ActionBinding(
            _within(
                "is_tombstone",
                "cleaned_before",
                "not_last",
                follows_leader=_STRANGER,
                readers_in_time=_IN_TIME,
                cleaned_in_time=_beats_others,
            ),
            waits=_nothing_new,
        ),
        "set_topic_strategy": ActionBinding(
            {
                "has_leader": _NO_LEADER,
                "change_available": BOUND,
                "differs": NOTHING,
                "logs_are_alike": _OPERATOR,
                "brokers_agree": _OPERATOR,
            }
        ),
        "set_broker_strategy": ActionBinding(
            {"change_available": BOUND, "differs": NOTHING, "topic_overrides": _OPERATOR}
        ),
        "consumer_fetch": ActionBinding(
            {
                "consumer_reads": BOUND,
                "record_there": _reads_nothing,
                "committed": NOTHING,
                "not_read": NOTHING,
                "is_next": NOTHING,
            },
            Exchange(None, leader, Effect.ASKER),
        ),
        "consumer_start_over": ActionBinding({"has_read": NOTHING}),
    },
)
"""For ``empty-batch``, which is what the cleaner of ``impl/`` does with a log's last record."""
