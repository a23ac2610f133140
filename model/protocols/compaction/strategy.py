"""Which of two records of one key stays, and whose configuration says so (KIP-280, "Compaction Strategies").

A record's *version* is its timestamp, its header's value, or 0 where offsets alone decide. The larger version stays,
and of equal ones the higher offset. A record without the header has version -1, below every value, so that one which
has it stays, and of two which have it not the higher offset.

``order`` is the order as the text has it, by which promises are judged; ``cleaner_order`` is that of the variant's
cleaner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...core.algebra import EVERY, Algebra, Step, Value, View
from ...core.domains import REPLICA
from ..logs import OFFSET
from .state import Rules, Strategy, compaction, holds

Order: TypeAlias = Callable[[Value, Value, Value, Value], Value]
"""Whether a record beats another one, each by its epoch and offset."""


def strategy_of(k: Algebra, s: View, replica: Value) -> Value:
    """The strategy by which a replica's broker cleans: the topic's, or else its own."""
    return k.ite(s.topic_strategy == Strategy.unset, s.broker_strategy[replica], s.topic_strategy)


def is_long(k: Algebra, header: Value) -> Value:
    """The header is there and 8 bytes long: the largest value stands for one that is not."""
    return k.all(0 <= header, header < k.c.header_values)


def _version(k: Algebra, s: View, strategy: Value, header: Value, epoch: Value, offset: Value) -> Value:
    return k.ite(
        strategy == Strategy.timestamp,
        s.record_timestamp[epoch, offset],
        k.ite(strategy == Strategy.header, header, 0),
    )


def version(k: Algebra, s: View, strategy: Value, epoch: Value, offset: Value) -> Value:
    """The version of a record, by the text: of a repeated header the last value; none where that is no long."""
    header = s.record_header[epoch, offset]
    return _version(k, s, strategy, k.ite(is_long(k, header), header, -1), epoch, offset)


def _beats(k: Algebra, ties_to_higher: bool, of: Callable[[Value, Value], Value]) -> Order:
    def beats(epoch: Value, offset: Value, other_epoch: Value, other_offset: Value) -> Value:
        one, other = of(epoch, offset), of(other_epoch, other_offset)
        last = other_offset < offset if ties_to_higher else offset < other_offset
        return k.any(other < one, k.all(one == other, last))

    return beats


def order(k: Algebra, s: View, strategy: Value) -> Order:
    """The order of records under a strategy, by the text."""
    return _beats(k, True, lambda epoch, offset: version(k, s, strategy, epoch, offset))


def cleaner_order(k: Algebra, s: View, strategy: Value) -> Order:
    """The order of records under a strategy, by the variant's cleaner."""
    rules: Rules = k.rules

    def of(epoch: Value, offset: Value) -> Value:
        header = s.record_header[epoch, offset]
        if not rules.last_occurrence:
            earlier = s.record_earlier_header[epoch, offset]
            header = k.ite(earlier == -1, header, earlier)
        if rules.checks_header:
            header = k.ite(is_long(k, header), header, -1)
        if not rules.header_stays:
            header = k.ite(header == -1, k.c.header_values, header)
        return _version(k, s, strategy, header, epoch, offset)

    return _beats(k, rules.ties_to_higher, of)


def _are_alike(k: Algebra, s: View) -> Value:
    """Every replica has all that was written, has committed it, and has removed the same of it."""

    def alike(replica: Value, offset: Value) -> Value:
        return k.any(
            s.hw <= offset,
            s.record_epoch[replica, offset] == s.record_epoch[s.leader, offset],
        )

    return k.forall(REPLICA, lambda r: k.all(s.leo[r] == s.hw, k.forall(OFFSET, lambda o: alike(r, o))))


def _begins_anew(s: View) -> dict[str, Value]:
    """From here on another strategy counts; who reads must read again what there is."""
    return {
        "changes": s.changes + 1,
        "since": s.hw,
        "deleted_version": {EVERY: -1},
        "position": 0,
        "table": {EVERY: -1},
    }


@compaction.action(strategy=Strategy)
def set_topic_strategy(k: Algebra, s: View, strategy: Value) -> Step:
    """An operator sets ``compaction.strategy`` of the topic, or unsets it: its brokers' strategy is the default."""
    yield "has_leader", s.leader != k.NONE
    yield "change_available", s.changes < k.c.max_changes
    yield "differs", s.topic_strategy != strategy
    if k.rules.changes_when_alike:
        yield "logs_are_alike", _are_alike(k, s)
    if k.rules.changes_overridden:
        agree = k.forall(REPLICA, lambda r: s.broker_strategy[r] == s.broker_strategy[s.leader])
        yield "brokers_agree", k.any(strategy != Strategy.unset, agree)
    yield s.update(topic_strategy=strategy, **_begins_anew(s))


@compaction.action(replica=REPLICA, strategy=Strategy)
def set_broker_strategy(k: Algebra, s: View, replica: Value, strategy: Value) -> Step:
    """A broker is given another ``log.cleaner.compaction.strategy``, one broker after the other."""
    yield "change_available", s.changes < k.c.max_changes
    yield "differs", s.broker_strategy[replica] != strategy
    if k.rules.changes_overridden:
        yield "topic_overrides", s.topic_strategy != Strategy.unset
    yield s.update(broker_strategy={replica: strategy}, changes=s.changes + 1)


def removable(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The cleaner of a replica may touch the record at an offset: it is committed, and in no active segment."""
    conditions = [holds(k, s, replica, offset)]
    if k.rules.committed_only:
        conditions.append(offset < s.hw)
    if k.rules.inactive_only:
        conditions.append(offset < s.active[replica])
    return k.all(*conditions)
