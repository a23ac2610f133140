"""An image: what a prefix of the metadata log comes to, and what one more record makes of it.

Whoever holds one replays records by ``replay`` and by nothing else: active controller, standby, broker, and whoever has
loaded a snapshot. An image has sets of brokers and, of each partition, what PartitionRecord has: so it is also what a
minimal snapshot says, one BrokerRecord or PartitionRecord for each. A broker's epoch is the offset of its registration,
which is in the log.

Three records change more than one thing. FenceBroker takes a broker out of every ISR and every leadership, and leaves
the last member of an ISR in it. Who leads then follows from record and image (KIP-630 counts nothing beside the
record): its ``successor`` does, where it is in the ISR, and else nobody, until an IsrChange names one. What order of
preference a successor comes from is left open, as brokers have no order here; so it is in the record. A batch of one
IsrChange for each partition (``by_changes``), in which the controller says what comes of it, makes the same image. A
registration of a broker that has lost its logs (``register_unclean``) casts doubt on the partitions of whose ISR it is
the last member.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Final

from ...core.algebra import EVERY, Algebra, Value, View
from ..logs import OFFSET
from .state import PARTITION, Kind

Writes = dict[str, dict[Value, Value]]
"""What an update writes: a mapping from index to value for each variable."""

NOTHING: Final[Mapping[str, dict[Value, Value]]] = {}

Change = Callable[[Value], tuple[Value, Value]]
"""Leader and ISR of each partition, in a batch that fences a broker; NONE and empty of one that does not change."""


@dataclass(frozen=True)
class PartitionState:
    """What an image has of one partition."""

    leader: Value
    leader_epoch: Value
    partition_epoch: Value
    isr: Value
    doubted: Value


@dataclass(frozen=True)
class Image:
    """``shutting_down`` are unfenced, and ``unfenced`` are registered; ``partition`` says what there is of each one."""

    registered: Value
    unfenced: Value
    shutting_down: Value
    partition: Callable[[Value], PartitionState]


@dataclass(frozen=True)
class Record:
    """A record, or the batch that fences a broker. ``leader``: of a partition, or the successor of a fenced broker."""

    kind: Value
    broker: Value
    partition: Value
    leader: Value
    isr: Value
    change: Change | None = None


def about_broker(k: Algebra, kind: Value, broker: Value) -> Record:
    """A record about a broker."""
    return Record(kind, broker, -1, k.NONE, k.EMPTY)


def about_fenced(k: Algebra, broker: Value, successor: Value) -> Record:
    """FenceBroker, and who leads where that broker led."""
    return Record(Kind.fence, broker, -1, successor, k.EMPTY)


def about_partition(k: Algebra, kind: Value, partition: Value, leader: Value, isr: Value) -> Record:
    """A record about a partition."""
    return Record(kind, k.NONE, partition, leader, isr)


_SETS = tuple(field.name for field in fields(Image) if field.name != "partition")
_OF_PARTITION = tuple(field.name for field in fields(PartitionState))
_VARIABLES = {
    holder: {name: f"{holder}_{name}" for name in (*_SETS, *_OF_PARTITION)}
    for holder in ("prefix", "node", "view", "snapshot")
}
"""By holder and field, the variable."""


def image_of(s: View, holder: str, who: Value) -> Image:
    """The image of a holder: ``prefix`` and an offset, ``node`` or ``snapshot`` and a node, ``view`` and a broker."""
    variables = _VARIABLES[holder]
    registered, unfenced, shutting_down = (getattr(s, variables[name])[who] for name in _SETS)

    def held(partition: Value) -> PartitionState:
        return PartitionState(*(getattr(s, variables[name])[who, partition] for name in _OF_PARTITION))

    return Image(registered, unfenced, shutting_down, held)


def hold(holder: str, who: Value, image: Image) -> Writes:
    """What changes where a holder takes up this image."""
    variables = _VARIABLES[holder]
    # Its fields are written one by one, and what a record makes of a partition is one thing.
    partition = cache(image.partition)

    def row(name: str) -> Callable[[Value], Value]:
        return lambda p: getattr(partition(p), name)

    writes: Writes = {variables[name]: {who: getattr(image, name)} for name in _SETS}
    return writes | {variables[name]: {(who, EVERY): row(name)} for name in _OF_PARTITION}


def choose_image(k: Algebra, condition: Value, then: Image, otherwise: Image) -> Image:
    """One of two images."""
    registered, unfenced, shutting_down = (
        k.ite(condition, getattr(then, name), getattr(otherwise, name)) for name in _SETS
    )

    def chosen(partition: Value) -> PartitionState:
        a, b = then.partition(partition), otherwise.partition(partition)
        return PartitionState(*(k.ite(condition, getattr(a, name), getattr(b, name)) for name in _OF_PARTITION))

    return Image(registered, unfenced, shutting_down, chosen)


def same_image(k: Algebra, one: Image, other: Image) -> Value:
    """Both say the same."""
    sets = [getattr(one, name) == getattr(other, name) for name in _SETS]

    def same(partition: Value) -> Value:
        a, b = one.partition(partition), other.partition(partition)
        return k.all(*(getattr(a, name) == getattr(b, name) for name in _OF_PARTITION))

    return k.all(*sets, k.forall(PARTITION, same))


def first_image(k: Algebra, s: View) -> Image:
    """What there is before the first record."""
    booted = k.c.bootstrapped == 1
    brokers = k.ite(booted, s.brokers, k.EMPTY)

    version = k.ite(booted, 0, -1)
    partition = PartitionState(k.NONE, version, version, brokers, 0)
    return Image(brokers, brokers, k.EMPTY, lambda _: partition)


def prefix_image(k: Algebra, s: View, end: Value) -> Image:
    """What the log comes to up to this end, exclusive."""
    return choose_image(k, end == 0, first_image(k, s), image_of(s, "prefix", end - 1))


def record_at(k: Algebra, s: View, offset: Value) -> Record:
    """The record at an offset."""

    def change(partition: Value) -> tuple[Value, Value]:
        return s.change_leader[offset, partition], s.change_isr[offset, partition]

    return Record(
        s.record_kind[offset],
        s.record_broker[offset],
        s.record_partition[offset],
        s.record_leader[offset],
        s.record_isr[offset],
        change if k.rules.by_changes else None,
    )


def succeeds(k: Algebra, state: PartitionState, broker: Value, successor: Value) -> Value:
    """Whether this broker leads a partition when the one that led it is fenced: another member of the ISR."""
    return k.all(state.leader == broker, successor != broker, k.member(successor, state.isr))


def _removed(k: Algebra, state: PartitionState, record: Record) -> tuple[Value, Value, Value]:
    """Whether a fenced broker's partition changes, and its leader and ISR without that broker."""
    broker, successor = record.broker, record.leader
    led = state.leader == broker
    leaves = k.member(broker, state.isr)
    if k.rules.keeps_last:
        leaves = k.all(leaves, state.isr != k.only(broker))
    isr = k.ite(leaves, k.without_member(state.isr, broker), state.isr)
    leader = k.ite(succeeds(k, state, broker, successor), successor, k.ite(led, k.NONE, state.leader))
    return k.any(led, leaves), leader, isr


def with_changes(k: Algebra, image: Image, record: Record) -> tuple[Record, Change]:
    """The batch that fences a broker: the IsrChange of each partition that changes; NONE and empty of the others."""

    def change(partition: Value) -> tuple[Value, Value]:
        changes, leader, isr = _removed(k, image.partition(partition), record)
        when = k.all(record.kind == Kind.fence, changes)
        return k.ite(when, leader, k.NONE), k.ite(when, isr, k.EMPTY)

    whole = Record(record.kind, record.broker, record.partition, record.leader, record.isr, change)
    return whole, change


def _changed(k: Algebra, state: PartitionState, when: Value, leader: Value, isr: Value) -> PartitionState:
    """A partition with another leader or ISR: a leader that changes begins a new leader epoch."""
    another = k.all(when, leader != state.leader)
    return PartitionState(
        k.ite(when, leader, state.leader),
        k.ite(another, state.leader_epoch + 1, state.leader_epoch),
        k.ite(when, state.partition_epoch + 1, state.partition_epoch),
        k.ite(when, isr, state.isr),
        state.doubted,
    )


def _replayed(k: Algebra, image: Image, record: Record, partition: Value) -> PartitionState:
    state = image.partition(partition)
    fences = record.kind == Kind.fence
    here = record.partition == partition
    if record.change is not None:
        leader, isr = record.change(partition)
        fenced = _changed(k, state, k.all(fences, isr != k.EMPTY), leader, isr)
    else:
        changes, leader, isr = _removed(k, state, record)
        fenced = _changed(k, state, k.all(fences, changes), leader, isr)
    after = _changed(k, fenced, k.all(record.kind == Kind.isr_change, here), record.leader, record.isr)
    begins, ends = k.all(record.kind == Kind.create_topic, here), k.all(record.kind == Kind.remove_topic, here)
    if k.rules.doubts_lost:
        last = k.all(record.kind == Kind.register_unclean, state.isr == k.only(record.broker))
        doubted = k.ite(k.any(begins, ends), 0, k.ite(last, 1, after.doubted))
    else:
        doubted = after.doubted
    return PartitionState(
        k.ite(begins, record.leader, k.ite(ends, k.NONE, after.leader)),
        k.ite(begins, 0, k.ite(ends, -1, after.leader_epoch)),
        k.ite(begins, 0, k.ite(ends, -1, after.partition_epoch)),
        k.ite(begins, record.isr, k.ite(ends, k.EMPTY, after.isr)),
        doubted,
    )


def replay(k: Algebra, image: Image, record: Record) -> Image:
    """What a record makes of an image."""
    broker = record.broker
    registers = k.any(record.kind == Kind.register, record.kind == Kind.register_unclean)
    out = k.any(registers, record.kind == Kind.fence)

    def moved(brokers: Value, joins: Value) -> Value:
        left = k.ite(out, k.without_member(brokers, broker), brokers)
        return k.ite(joins, k.with_member(brokers, broker), left)

    return Image(
        k.ite(registers, k.with_member(image.registered, broker), image.registered),
        moved(image.unfenced, record.kind == Kind.unfence),
        moved(image.shutting_down, record.kind == Kind.shut_down),
        lambda p: _replayed(k, image, record, p),
    )


def registers(k: Algebra, s: View, offset: Value, broker: Value) -> Value:
    """The record at an offset registers the broker."""
    kind = s.record_kind[offset]
    of_kind = k.any(kind == Kind.register, kind == Kind.register_unclean)
    return k.all(of_kind, s.record_broker[offset] == broker)


def broker_epoch(k: Algebra, s: View, end: Value, broker: Value) -> Value:
    """The epoch of a broker's latest registration below an end; -1: it was registered before the log begins."""
    return k.last(OFFSET, lambda o: k.all(o < end, registers(k, s, o, broker)), -1)


def merge(*writes: Mapping[str, dict[Value, Value]]) -> Writes:
    """All that any of them writes; no two write one variable."""
    return {name: cells for each in writes for name, cells in each.items()}
