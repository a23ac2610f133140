"""Lemmas of the metadata log: prefixes and their images, controller epochs, snapshots in the making."""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ..logs import OFFSET
from .image import Image, PartitionState, Record, first_image, image_of, record_at, replay, succeeds
from .proof_ghosts import kip_631
from .state import NODE, PARTITION, Heard, Kind, Role


@kip_631.lemma()
def stable_is_in_log(k: Algebra, s: View) -> Value:
    """What is stable is in the newest leader's log, and that is the beginning of the log."""
    return k.all(s.stable <= s.leader_end, s.leader_end <= s.end)


@kip_631.lemma(offset=OFFSET)
def record_names_a_broker(k: Algebra, s: View, offset: Value) -> Value:
    """A record about a broker names one: of nobody it would say that it leads what has no leader."""
    kind = s.record_kind[offset]
    named = k.any(kind == Kind.register, kind == Kind.register_unclean, kind == Kind.fence)
    return k.implies(k.all(offset < s.end, named), s.record_broker[offset] != k.NONE)


@kip_631.lemma(before=OFFSET, offset=OFFSET)
def brokers_are_replayed(k: Algebra, s: View, before: Value, offset: Value) -> Value:
    """Who is registered, unfenced or in shutdown behind a record is what that record makes of it."""
    # Of two offsets: from one to the one before it, and on to the one before that, there is no end.
    was, now = image_of(s, "prefix", before), image_of(s, "prefix", offset)
    return k.implies(k.all(before + 1 == offset, offset < s.end), _brokers_become(k, was, now, record_at(k, s, offset)))


@kip_631.lemma()
def first_brokers_are_replayed(k: Algebra, s: View) -> Value:
    """The same of the first record, and of what there is before it."""
    became = _brokers_become(k, first_image(k, s), image_of(s, "prefix", 0), record_at(k, s, 0))
    return k.implies(0 < s.end, became)


def _brokers_become(k: Algebra, was: Image, now: Image, record: Record) -> Value:
    after = replay(k, was, record)
    registers = k.any(record.kind == Kind.register, record.kind == Kind.register_unclean)
    return k.all(
        now.registered == after.registered,
        now.unfenced == after.unfenced,
        now.shutting_down == after.shutting_down,
        k.implies(registers, k.negate(k.member(record.broker, was.unfenced))),
    )


@kip_631.lemma(offset=OFFSET, partition=PARTITION)
def partition_is_as_recorded(k: Algebra, s: View, offset: Value, partition: Value) -> Value:
    """A record about a partition says who leads it and who is in its ISR, whatever there was before."""
    now, record = at_offset(s, offset, partition), record_at(k, s, offset)
    here = k.all(offset < s.end, record.partition == partition)
    begins, ends = k.all(here, record.kind == Kind.create_topic), k.all(here, record.kind == Kind.remove_topic)
    names = k.any(begins, k.all(here, record.kind == Kind.isr_change))
    return k.all(
        k.implies(names, k.all(now.leader == record.leader, now.isr == record.isr)),
        k.implies(begins, k.all(now.leader_epoch == 0, now.partition_epoch == 0)),
        k.implies(ends, k.all(now.leader == k.NONE, now.isr == k.EMPTY)),
        k.implies(ends, k.all(now.leader_epoch == -1, now.partition_epoch == -1)),
    )


@kip_631.lemma(before=OFFSET, offset=OFFSET, partition=PARTITION)
def partition_is_replayed(k: Algebra, s: View, before: Value, offset: Value, partition: Value) -> Value:
    """A partition behind a record is what that record makes of it, and not what another one would."""
    was, now = at_offset(s, before, partition), at_offset(s, offset, partition)
    becomes = _partition_becomes(k, was, now, record_at(k, s, offset), partition)
    return k.implies(k.all(before + 1 == offset, offset < s.end), becomes)


@kip_631.lemma(partition=PARTITION)
def first_partition_is_replayed(k: Algebra, s: View, partition: Value) -> Value:
    """The same of the first record, and of what there is before it."""
    was = at_first(k, s)
    becomes = _partition_becomes(k, was, at_offset(s, 0, partition), record_at(k, s, 0), partition)
    return k.implies(0 < s.end, becomes)


def at_offset(s: View, offset: Value, partition: Value) -> PartitionState:
    """What the log up to a record comes to, of one partition."""
    here = offset, partition
    return PartitionState(
        s.prefix_leader[here],
        s.prefix_leader_epoch[here],
        s.prefix_partition_epoch[here],
        s.prefix_isr[here],
        s.prefix_doubted[here],
    )


def at_first(k: Algebra, s: View) -> PartitionState:
    """A partition before the first record; all are alike."""
    return first_image(k, s).partition(0)


def _same(k: Algebra, was: PartitionState, now: PartitionState) -> Value:
    return k.all(
        now.leader == was.leader,
        now.leader_epoch == was.leader_epoch,
        now.partition_epoch == was.partition_epoch,
        now.isr == was.isr,
    )


def _partition_becomes(k: Algebra, was: PartitionState, now: PartitionState, record: Record, partition: Value) -> Value:
    """What ``replay`` says, without asking of a value whether two sets are equal.

    Whoever registers is fenced: if it is in an ISR at all, it is the last member. And whoever is fenced stays in the
    ISR where it is the last member, and only there: else another one is left, as no ISR is empty.
    """
    broker, here = record.broker, record.partition == partition
    begins = k.all(record.kind == Kind.create_topic, here)
    ends = k.all(record.kind == Kind.remove_topic, here)
    changes = k.all(record.kind == Kind.isr_change, here)
    fences = record.kind == Kind.fence
    led = was.leader == broker
    succeeded = succeeds(k, was, broker, record.leader)
    leaves = k.all(k.member(broker, was.isr), k.negate(k.member(broker, now.isr)))
    stays = k.all(k.member(broker, now.isr))
    version = was.partition_epoch + 1
    doubts = record.kind == Kind.register_unclean
    return k.all(
        k.implies(changes, now.partition_epoch == version),
        k.implies(changes, now.leader_epoch == k.ite(now.leader == was.leader, was.leader_epoch, was.leader_epoch + 1)),
        k.implies(k.all(fences, succeeded), now.leader == record.leader),
        k.implies(k.all(fences, led, k.negate(succeeded)), now.leader == k.NONE),
        k.implies(k.all(fences, k.negate(led)), now.leader == was.leader),
        k.implies(fences, now.leader_epoch == k.ite(led, was.leader_epoch + 1, was.leader_epoch)),
        k.implies(fences, now.partition_epoch == k.ite(k.any(led, leaves), version, was.partition_epoch)),
        k.implies(
            fences,
            k.forall(REPLICA, lambda m: k.any(m == broker, k.member(m, now.isr) == k.member(m, was.isr))),
        ),
        k.implies(k.all(fences, stays), was.isr == k.only(broker)),
        k.implies(k.negate(k.any(begins, ends, changes, fences)), _same(k, was, now)),
        k.implies(k.negate(doubts), now.doubted == k.ite(k.any(begins, ends), 0, was.doubted)),
        k.implies(doubts, now.doubted == k.ite(k.member(broker, was.isr), 1, was.doubted)),
    )


@kip_631.lemma(offset=OFFSET, partition=PARTITION)
def versions_are_counted(k: Algebra, s: View, offset: Value, partition: Value) -> Value:
    """Each record makes at most one version of a partition, and a leader epoch is one: so there is room for them."""
    leader_epoch, version = s.prefix_leader_epoch[offset, partition], s.prefix_partition_epoch[offset, partition]
    return k.implies(offset < s.end, k.all(leader_epoch <= version, version <= offset + 1))


@kip_631.lemma(node=NODE)
def epoch_is_known(_k: Algebra, s: View, node: Value) -> Value:
    """No node is in a controller epoch without an election."""
    return s.node_epoch[node] <= s.newest_epoch


@kip_631.lemma(node=NODE)
def active_epoch_is_known(k: Algebra, s: View, node: Value) -> Value:
    """No node is active in a newer epoch than that in which one became active last."""
    return k.implies(s.role[node] == Role.active, s.node_epoch[node] <= s.active_epoch)


# Snapshots in the making.


@kip_631.lemma(node=NODE)
def order_is_of_known_epoch(k: Algebra, s: View, node: Value) -> Value:
    """A node is in the epoch of its order, or in a later one: the order came in answer to its own heartbeat."""
    return k.all(s.order_epoch[node] <= s.node_epoch[node], s.order_epoch[node] <= s.active_epoch)


@kip_631.lemma(node=NODE)
def leader_has_no_order_of_its_own(k: Algebra, s: View, node: Value) -> Value:
    """Whoever became active last has no order of its epoch: it gives them, and to others."""
    leads = k.all(s.role[node] == Role.active, s.node_epoch[node] == s.active_epoch)
    return k.implies(leads, s.order_epoch[node] != s.active_epoch)


@kip_631.lemma(node=NODE)
def idle_is_idle(k: Algebra, s: View, node: Value) -> Value:
    """Who was heard to be idle is in that epoch or a newer one, makes no snapshot, and may take no order."""
    free = k.all(s.making[node] == 0, s.order_epoch[node] != s.active_epoch, s.active_epoch <= s.node_epoch[node])
    return k.implies(s.heard[node] == Heard.idle, free)


def _is_busy(k: Algebra, s: View, node: Value) -> Value:
    ordered = k.all(s.order_epoch[node] != -1, s.order_epoch[node] == s.node_epoch[node])
    return k.any(s.making[node] == 1, ordered)


@kip_631.lemma(one=NODE, other=NODE)
def one_is_busy(k: Algebra, s: View, one: Value, other: Value) -> Value:
    """At most one node makes a snapshot, or may take an order to make one."""
    return k.implies(k.all(_is_busy(k, s, one), _is_busy(k, s, other)), one == other)


@kip_631.lemma(node=NODE, partition=PARTITION)
def known_isr_is_never_empty(k: Algebra, s: View, node: Value, partition: Value) -> Value:
    """Nor is an ISR empty in a node's memory: z3 finds there who is left."""
    there = s.node_leader_epoch[node, partition] != -1
    return k.implies(k.all(is_current(k, s, node), there), s.node_isr[node, partition] != k.EMPTY)


@kip_631.lemma(node=NODE, partition=PARTITION)
def snapshot_isr_is_never_empty(k: Algebra, s: View, node: Value, partition: Value) -> Value:
    """Nor in a snapshot, from which a node begins anew."""
    there = s.snapshot_leader_epoch[node, partition] != -1
    return k.implies(there, s.snapshot_isr[node, partition] != k.EMPTY)


def is_current(k: Algebra, s: View, node: Value) -> Value:
    """The node is not active in vain: its memory would say what never came to be."""
    return k.any(s.role[node] != Role.active, s.node_epoch[node] == s.active_epoch)


# The ISR before a record. A node's memory is of the offset that it has replayed up to, and the log is by records: from
# the ISR before a record at that offset z3 goes both ways.


@kip_631.lemma(before=OFFSET, offset=OFFSET, partition=PARTITION)
def isr_before_is_of_prefix(k: Algebra, s: View, before: Value, offset: Value, partition: Value) -> Value:
    """The ISR before a record is that behind the one before it."""
    same = s.isr_before[offset, partition] == s.prefix_isr[before, partition]
    return k.implies(k.all(before + 1 == offset, offset < s.end), same)


@kip_631.lemma(partition=PARTITION)
def isr_before_the_first(k: Algebra, s: View, partition: Value) -> Value:
    """Before the first record it is what the log begins with."""
    return k.any(s.end == 0, s.isr_before[0, partition] == at_first(k, s).isr)


@kip_631.lemma(offset=OFFSET, partition=PARTITION)
def fenced_broker_leaves_another(k: Algebra, s: View, offset: Value, partition: Value) -> Value:
    """A fenced broker is out of the ISR only where there is another one in it."""
    fenced, before = s.record_broker[offset], s.isr_before[offset, partition]
    left = k.all(k.member(fenced, before), k.negate(k.member(fenced, s.prefix_isr[offset, partition])))
    fences = k.all(offset < s.end, s.record_kind[offset] == Kind.fence, left)
    return k.implies(fences, k.exists(REPLICA, lambda m: k.all(m != fenced, k.member(m, before))))


@kip_631.lemma(node=NODE, partition=PARTITION)
def node_isr_is_that_before(k: Algebra, s: View, node: Value, partition: Value) -> Value:
    """What a standby has in memory of an ISR is what it was before the next record."""
    behind = k.all(s.role[node] != Role.active, s.node_applied[node] < s.end)
    return k.implies(behind, s.node_isr[node, partition] == s.isr_before[s.node_applied[node], partition])


@kip_631.lemma(broker=REPLICA, partition=PARTITION)
def view_isr_is_that_before(k: Algebra, s: View, broker: Value, partition: Value) -> Value:
    """The same of a broker's metadata."""
    same = s.view_isr[broker, partition] == s.isr_before[s.view_applied[broker], partition]
    return k.implies(s.view_applied[broker] < s.end, same)


# Terms that z3's E-matching does not come upon by itself. A hint says nothing.


@kip_631.hints("register_broker", "fence_broker", "replay_record", partition=PARTITION, member=REPLICA)
def _remembered(k: Algebra, s: View, partition: Value, member: Value, node: Value, **_: Value) -> list[Value]:
    """Whether whoever is asked about is in the ISR that the node knows."""
    return [k.member(member, s.node_isr[node, partition])]


@kip_631.hints("register_broker", "fence_broker", partition=PARTITION)
def _is_member(k: Algebra, s: View, node: Value, broker: Value, partition: Value, **_: Value) -> list[Value]:
    """Whether whoever the record is about is."""
    return [k.member(broker, s.node_isr[node, partition])]


@kip_631.hints("replay_record", partition=PARTITION, member=REPLICA)
def _replayed(k: Algebra, s: View, node: Value, partition: Value, member: Value) -> list[Value]:
    """Whether it is behind the record that is replayed."""
    return [k.member(member, s.prefix_isr[s.node_applied[node], partition])]


@kip_631.hints("replay_metadata", partition=PARTITION, member=REPLICA)
def _viewed(k: Algebra, s: View, broker: Value, partition: Value, member: Value) -> list[Value]:
    """The same of a broker's metadata."""
    behind = k.member(member, s.prefix_isr[s.view_applied[broker], partition])
    return [behind, k.member(member, s.view_isr[broker, partition])]


@kip_631.hints("replay_record", partition=PARTITION)
def _of_whom(k: Algebra, s: View, node: Value, partition: Value) -> list[Value]:
    """Whether whoever the record is about is in an ISR, before it and behind it."""
    at = s.node_applied[node]
    return [*_about_whom(k, s, at, partition), k.member(s.record_broker[at], s.node_isr[node, partition])]


@kip_631.hints("replay_record", partition=PARTITION)
def _led_by_whom(_k: Algebra, s: View, node: Value, partition: Value) -> list[Value]:
    """Whether whoever the record is about leads."""
    return [s.node_leader[node, partition] == s.record_broker[s.node_applied[node]]]


@kip_631.hints("replay_metadata", partition=PARTITION)
def _viewed_here(_k: Algebra, s: View, broker: Value, partition: Value) -> list[Value]:
    """Whether the record that a broker replays is about the partition, and whether it is about its leader."""
    at = s.view_applied[broker]
    return [
        s.record_partition[at] == partition,
        s.view_leader[broker, partition] == s.record_broker[at],
        s.prefix_leader[at - 1, partition],
        s.prefix_leader[at, partition],
    ]


@kip_631.hints("replay_metadata", partition=PARTITION)
def _viewed_of_whom(k: Algebra, s: View, broker: Value, partition: Value) -> list[Value]:
    """The same for a broker's metadata."""
    at = s.view_applied[broker]
    return [*_about_whom(k, s, at, partition), k.member(s.record_broker[at], s.view_isr[broker, partition])]


def _about_whom(k: Algebra, s: View, at: Value, partition: Value) -> list[Value]:
    isrs = (s.prefix_isr[at - 1, partition], s.prefix_isr[at, partition])
    return [k.member(s.record_broker[at], brokers) for brokers in (*isrs, s.prefix_unfenced[at - 1])]


@kip_631.hints("alter_partition", member=REPLICA)
def _known_to_both(k: Algebra, s: View, node: Value, leader: Value, partition: Value, member: Value) -> list[Value]:
    """Whether whoever is asked about is in the ISR that the leader knows, and in that of the controller."""
    return [k.member(member, s.node_isr[node, partition]), k.member(member, s.view_isr[leader, partition])]


@kip_631.hints("alter_partition")
def _leader_known_to_both(k: Algebra, s: View, node: Value, leader: Value, partition: Value) -> list[Value]:
    """Whether the leader is."""
    return [k.member(leader, s.node_isr[node, partition]), k.member(leader, s.view_isr[leader, partition])]
