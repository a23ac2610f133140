"""Partitions: topics, elections of partition leaders, the ISR that a leader proposes, and the data that hangs on it.

A leader knows what its metadata say. It proposes one change of the ISR at a time (AlterPartition, the text's AlterIsr),
and counts on whoever is in the ISR, or may be: until its metadata have a newer partition epoch, or it is told that who
was to join may not (INELIGIBLE_REPLICA), after which there is no copy of its request. The controller takes up what
names its own leader epoch and partition epoch, and the broker epoch of who is to join (KIP-903); a leader proposes who
is unfenced by its metadata (KIP-841). The answer to what it
takes up is the metadata itself, when they are stable.

The data plane is as small as may be. A producer sends its record until it is acknowledged; a follower in its leader's
epoch has what the leader has, and no more; acks=all is all of the maximal ISR at the moment.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import REPLICA
from .brokers import names_own_epoch
from .image import about_partition, broker_epoch
from .quorum import acts, append
from .state import NODE, PARTITION, Kind, controller, presumes_leadership, takes_part


@controller.action(node=NODE, partition=PARTITION, leader=REPLICA)
def create_topic(k: Algebra, s: View, node: Value, partition: Value, leader: Value) -> Step:
    """CreateTopics: a partition under a new topic id, led by an unfenced broker; all unfenced ones are its ISR."""
    yield from acts(s, node)
    yield "id_is_new", s.created[partition] == 0
    yield "leader_unfenced", k.member(leader, s.node_unfenced[node])
    yield "none_shuts_down", s.node_shutting_down[node] == k.EMPTY
    record = about_partition(k, Kind.create_topic, partition, leader, s.node_unfenced[node])
    yield from append(k, s, node, record, {"created": {partition: 1}})


@controller.action(node=NODE, partition=PARTITION)
def remove_topic(k: Algebra, s: View, node: Value, partition: Value) -> Step:
    """DeleteTopics."""
    yield from acts(s, node)
    yield "removals_asked", k.c.removals == 1
    yield "exists", s.node_leader_epoch[node, partition] != -1
    yield from append(k, s, node, about_partition(k, Kind.remove_topic, partition, k.NONE, k.EMPTY))


@controller.action(node=NODE, partition=PARTITION, leader=REPLICA)
def elect_leader(k: Algebra, s: View, node: Value, partition: Value, leader: Value) -> Step:
    """The controller makes a member of the ISR the leader, where there is none or that one is to stop."""
    now = s.node_leader[node, partition]
    yield from acts(s, node)
    yield "exists", s.node_leader_epoch[node, partition] != -1
    yield "none_leads", k.any(now == k.NONE, k.member(now, s.node_shutting_down[node]))
    yield "in_isr", k.member(leader, s.node_isr[node, partition])
    if k.rules.elects_unfenced:
        yield "is_unfenced", k.member(leader, s.node_unfenced[node])
    yield "stays", k.negate(k.member(leader, s.node_shutting_down[node]))
    if k.rules.doubts_lost:
        yield "not_doubted", s.node_doubted[node, partition] == 0
    isr = s.node_isr[node, partition]
    yield from append(k, s, node, about_partition(k, Kind.isr_change, partition, leader, isr))


# What a leader asks for.


def _has_leaders_data(k: Algebra, s: View, leader: Value, follower: Value, partition: Value) -> Value:
    """The follower follows in the leader's own epoch, and has what it has: its last fetch has said so."""
    follows = k.all(takes_part(k, s, follower), s.view_leader[follower, partition] == leader)
    same_epoch = s.view_leader_epoch[follower, partition] == s.view_leader_epoch[leader, partition]
    return k.all(follows, same_epoch, s.data[follower, partition] == s.data[leader, partition])


@controller.action(leader=REPLICA, member=REPLICA, partition=PARTITION)
def propose_expand(k: Algebra, s: View, leader: Value, member: Value, partition: Value) -> Step:
    """A leader asks to take a follower that has caught up, and is unfenced, into the ISR."""
    yield "presumes_leadership", presumes_leadership(k, s, leader, partition)
    yield "nothing_proposed", s.proposed[leader, partition] == k.NONE
    yield "outside_isr", k.negate(k.member(member, s.view_isr[leader, partition]))
    yield "caught_up", _has_leaders_data(k, s, leader, member, partition)
    if k.rules.checks_broker_epoch:
        yield "known_unfenced", k.member(member, s.view_unfenced[leader])
    yield s.update(proposed={(leader, partition): member}, proposed_epoch={(leader, partition): s.own_epoch[member]})


@controller.action(leader=REPLICA, member=REPLICA, partition=PARTITION)
def propose_shrink(k: Algebra, s: View, leader: Value, member: Value, partition: Value) -> Step:
    """A leader asks to take a follower that has not caught up in time out of the ISR."""
    yield "presumes_leadership", presumes_leadership(k, s, leader, partition)
    yield "nothing_proposed", s.proposed[leader, partition] == k.NONE
    yield "in_isr", k.member(member, s.view_isr[leader, partition])
    yield "not_leader_itself", member != leader
    yield s.update(proposed={(leader, partition): member}, proposed_epoch={(leader, partition): -1})


def _of_leader(k: Algebra, s: View, node: Value, leader: Value, partition: Value) -> Step:
    """Guards: there is a request, and it is from the leader that the controller knows, of the state that it knows."""
    yield from acts(s, node)
    yield "proposed", s.proposed[leader, partition] != k.NONE
    yield "exists", s.node_leader_epoch[node, partition] != -1
    if k.rules.checks_leader:
        yield "is_leader", s.node_leader[node, partition] == leader
        yield "leader_epoch_matches", s.view_leader_epoch[leader, partition] == s.node_leader_epoch[node, partition]
        yield (
            "partition_epoch_matches",
            s.view_partition_epoch[leader, partition] == s.node_partition_epoch[node, partition],
        )
        yield "broker_epoch_matches", names_own_epoch(k, s, node, leader)


def _joins(k: Algebra, s: View, leader: Value, partition: Value) -> Value:
    return k.negate(k.member(s.proposed[leader, partition], s.view_isr[leader, partition]))


def _is_eligible(k: Algebra, s: View, node: Value, leader: Value, partition: Value) -> Value:
    """Who is to join is unfenced, stays, and is what it was when it was proposed."""
    member = s.proposed[leader, partition]
    stays = k.negate(k.member(member, s.node_shutting_down[node]))
    eligible = k.all(k.member(member, s.node_unfenced[node]), stays)
    if k.rules.checks_broker_epoch:
        known = broker_epoch(k, s, s.node_applied[node], member)
        eligible = k.all(eligible, s.proposed_epoch[leader, partition] == known)
    return eligible


@controller.action(node=NODE, leader=REPLICA, partition=PARTITION)
def alter_partition(k: Algebra, s: View, node: Value, leader: Value, partition: Value) -> Step:
    """The controller takes up the ISR that a leader proposes (AlterPartition)."""
    member, isr = s.proposed[leader, partition], s.view_isr[leader, partition]
    joins = _joins(k, s, leader, partition)
    yield from _of_leader(k, s, node, leader, partition)
    yield "is_eligible", k.implies(joins, _is_eligible(k, s, node, leader, partition))
    asked = k.ite(joins, k.with_member(isr, member), k.without_member(isr, member))
    yield from append(k, s, node, about_partition(k, Kind.isr_change, partition, leader, asked))


@controller.action(node=NODE, leader=REPLICA, partition=PARTITION)
def refuse_member(k: Algebra, s: View, node: Value, leader: Value, partition: Value) -> Step:
    """The controller refuses who is to join (INELIGIBLE_REPLICA), and the leader goes back to the ISR that it knows."""
    yield from _of_leader(k, s, node, leader, partition)
    yield "joins", _joins(k, s, leader, partition)
    yield "not_eligible", k.negate(_is_eligible(k, s, node, leader, partition))
    yield s.update(proposed={(leader, partition): k.NONE}, proposed_epoch={(leader, partition): -1})


# Data.


@controller.action(leader=REPLICA, partition=PARTITION)
def leader_write(k: Algebra, s: View, leader: Value, partition: Value) -> Step:
    """A presumed leader appends the producer's record, which nobody has acknowledged."""
    epoch = s.view_leader_epoch[leader, partition]
    yield "presumes_leadership", presumes_leadership(k, s, leader, partition)
    yield "not_acknowledged", s.acknowledged[partition] == -1
    yield "not_written", s.data[leader, partition] != epoch
    yield s.update(data={(leader, partition): epoch})


@controller.action(leader=REPLICA, follower=REPLICA, partition=PARTITION)
def follower_fetch(k: Algebra, s: View, leader: Value, follower: Value, partition: Value) -> Step:
    """A follower in its leader's epoch makes its log the leader's: it fetches, or truncates."""
    yield "presumes_leadership", presumes_leadership(k, s, leader, partition)
    yield "takes_part", takes_part(k, s, follower)
    yield "follows_leader", s.view_leader[follower, partition] == leader
    same_epoch = s.view_leader_epoch[follower, partition] == s.view_leader_epoch[leader, partition]
    yield "epoch_not_fenced", same_epoch
    yield "differs", s.data[follower, partition] != s.data[leader, partition]
    yield s.update(data={(follower, partition): s.data[leader, partition]})


@controller.action(leader=REPLICA, partition=PARTITION)
def acknowledge(k: Algebra, s: View, leader: Value, partition: Value) -> Step:
    """A presumed leader tells the producer that all of the maximal ISR have its record (acks=all)."""

    def counted(member: Value) -> Value:
        return k.any(k.member(member, s.view_isr[leader, partition]), member == s.proposed[leader, partition])

    def has(member: Value) -> Value:
        return k.any(member == leader, _has_leaders_data(k, s, leader, member, partition))

    yield "presumes_leadership", presumes_leadership(k, s, leader, partition)
    yield "written", s.data[leader, partition] == s.view_leader_epoch[leader, partition]
    yield "not_acknowledged", s.acknowledged[partition] == -1
    yield "isr_has_it", k.forall(REPLICA, lambda m: k.implies(counted(m), has(m)))
    yield s.update(acknowledged={partition: s.data[leader, partition]})
