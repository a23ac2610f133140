"""What controllers and brokers that run by themselves are held to: what the active one decides, by the state at its
log's end.

``model/protocols/controller`` has the whole: a log that is short enough to be explored, and who has replayed how much
of it. A cluster that runs has a long one, and whoever holds an image of some prefix of it is compared with that prefix
itself (``metadata_log.py``). So what is left to say here is what a record may be: of the newest leader's log there is
the image that all of it comes to (``registered``, ``unfenced``, ... and what it has of each partition), and each record
is a step, with guards that refuse as the binding says.

**What is given** comes from the system as it is (``Binding.given``): what a request says, as its asker sent it last;
how far everyone is; and whatever the log of a controller comes to that has just been elected, which may lack what was
pending, or have again what a deposed one had appended. Steps and promises are held to it.

A broker epoch is the offset of its registration, a process of a broker is told by a number (``incarnation``), and so is
the topic of a partition (``topic``): a topic made anew under its name has another one. Every broker has a replica of
every partition. Times are none of it: a session may be over at any time.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import REPLICA
from .impl_state import NODE, PARTITION, PARTITIONS, Role, cluster

__all__ = ["cluster"]


# -- what the state says ---------------------------------------------------------------------------------------------


def is_alive(k: Algebra, s: View, broker: Value) -> Value:
    """The broker may lead, and be in an ISR (KIP-841)."""
    return k.member(broker, s.alive)


def exists(s: View, partition: Value) -> Value:
    """There is such a partition."""
    return s.topic[partition] != -1


def _acts(s: View, node: Value) -> Step:
    """Guards: the node is the active controller, of the newest epoch. Whoever is not answers NOT_CONTROLLER."""
    yield "is_active", s.role[node] == Role.active
    yield "leads_newest", s.leads == node


def _leads_nothing(k: Algebra, s: View, broker: Value) -> Value:
    return k.forall(PARTITION, lambda p: s.leader[p] != broker)


# -- the log ---------------------------------------------------------------------------------------------------------


@cluster.action(node=NODE)
def activate(_k: Algebra, s: View, node: Value) -> Step:
    """Whoever is elected has replayed its whole log, all of it stable, and takes over.

    What it appends at once may be stable already where that is seen.
    """
    yield "is_standby", s.role[node] == Role.standby
    yield "leads_newest", s.leads == node
    yield "caught_up", s.node_applied[node] == s.stable
    yield "nothing_pending", s.end <= s.stable
    yield s.update(role={node: Role.active})


@cluster.action(node=NODE)
def leave_office(_k: Algebra, s: View, node: Value) -> Step:
    """A controller is active no more: it has resigned, or heard of a newer epoch."""
    yield "is_active", s.role[node] == Role.active
    yield s.update(role={node: Role.standby})


@cluster.action(node=NODE)
def stop_controller(_k: Algebra, s: View, node: Value) -> Step:
    """A controller's process ends."""
    yield "is_up", s.role[node] != Role.down
    yield s.update(role={node: Role.down})


@cluster.action(node=NODE)
def start_controller(_k: Algebra, s: View, node: Value) -> Step:
    """The next one starts."""
    yield "is_down", s.role[node] == Role.down
    yield s.update(role={node: Role.standby})


@cluster.action(node=NODE)
def append_other(_k: Algebra, s: View, node: Value) -> Step:
    """A record of which nothing is said here: a topic without partitions yet, a config, the level of a feature."""
    yield from _acts(s, node)
    yield s.update(end=s.end + 1)


# -- brokers ---------------------------------------------------------------------------------------------------------


@cluster.action(node=NODE, broker=REPLICA)
def register_broker(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """A process that has started registers, and is fenced at first; the session of the one before it is over.

    One that is registered already is told its epoch again, whatever it is by now.
    """
    is_new = s.incarnation[broker] != s.as_incarnation[broker]
    yield from _acts(s, node)
    yield "is_new", is_new
    yield "session_over", k.implies(is_new, k.negate(k.member(broker, s.unfenced)))
    yield s.update(
        registered=k.with_member(s.registered, broker),
        shutting_down=k.without_member(s.shutting_down, broker),
        broker_epoch={broker: s.end},
        incarnation={broker: s.as_incarnation[broker]},
        shutdown_offset={broker: -1},
        end=s.end + 1,
    )


@cluster.action(broker=REPLICA)
def hear_registration(k: Algebra, s: View, broker: Value) -> Step:
    """A broker is told its broker epoch, once the registration is stable."""
    yield "is_registered", k.member(broker, s.registered)
    yield "of_this_process", s.incarnation[broker] == s.as_incarnation[broker]
    yield "is_stable", s.broker_epoch[broker] < s.stable
    yield s.update(own_epoch={broker: s.broker_epoch[broker]})


@cluster.action(replica=REPLICA)
def restart(_k: Algebra, s: View, replica: Value) -> Step:
    """Another process of a broker starts, and knows no broker epoch."""
    yield "was_told", s.own_epoch[replica] != -1
    yield s.update(own_epoch={replica: -1})


def _beats(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """Guards: a heartbeat of the process that is registered, at the active controller."""
    yield from _acts(s, node)
    known = s.beat_epoch[broker] == s.broker_epoch[broker]
    yield "broker_epoch_matches", k.all(k.member(broker, s.registered), known)


@cluster.action(node=NODE, broker=REPLICA)
def unfence_broker(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """The heartbeat of a broker that has replayed its own registration, and wants nothing else: it is unfenced.

    Whoever was fenced to stop stays so: a heartbeat that does not say that it wants to was sent before.
    """
    yield from _beats(k, s, node, broker)
    stays = k.negate(k.member(broker, s.shutting_down))
    yield "wants_to_work", k.all(s.wants_fence[broker] == 0, s.wants_stop[broker] == 0, stays)
    yield "caught_up", s.broker_epoch[broker] < s.beat_end[broker]
    yield "is_fenced", k.negate(k.member(broker, s.unfenced))
    yield s.update(
        unfenced=k.with_member(s.unfenced, broker),
        alive=k.with_member(s.alive, broker),
        end=s.end + 1,
    )


@cluster.action(node=NODE, broker=REPLICA)
def shut_down(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """A broker wants to stop: it leads nothing any more, and stays until all others know (controlled shutdown)."""
    yield from _beats(k, s, node, broker)
    yield "wants_to_stop", s.wants_stop[broker] == 1
    yield "is_unfenced", k.member(broker, s.unfenced)
    yield "is_new", k.negate(k.member(broker, s.shutting_down))
    yield "leads_nothing", _leads_nothing(k, s, broker)
    yield s.update(
        shutting_down=k.with_member(s.shutting_down, broker),
        alive=k.without_member(s.alive, broker),
        shutdown_offset={broker: s.end},
        end=s.end + 1,
    )


def _others_know(k: Algebra, s: View, broker: Value) -> Value:
    """Whoever may lead has replayed the record by which the broker shuts down."""

    def knows(other: Value) -> Value:
        return k.any(k.negate(is_alive(k, s, other)), s.shutdown_offset[broker] < s.has_told[other])

    return k.forall(REPLICA, knows)


def _fenced(k: Algebra, s: View, broker: Value, elected: tuple[Value, ...]) -> dict[str, Value]:
    """What the record changes by which a broker is fenced: it leaves each ISR, but as its last member, and leads
    nothing; ``elected`` leads in its place, by partition, where anybody can. Another leader, or none, begins a leader
    epoch, and nothing else does (as shipped)."""
    writes: dict[str, dict[Value, Value]] = {"leader": {}, "leader_epoch": {}, "partition_epoch": {}, "isr": {}}
    for p in PARTITIONS:
        changes, leader, isr = _without(k, s, broker, p, elected[p])
        writes["leader"][p] = k.ite(changes, leader, s.leader[p])
        begins = k.all(changes, leader != s.leader[p])
        writes["leader_epoch"][p] = k.ite(begins, s.leader_epoch[p] + 1, s.leader_epoch[p])
        writes["partition_epoch"][p] = k.ite(changes, s.partition_epoch[p] + 1, s.partition_epoch[p])
        writes["isr"][p] = k.ite(changes, isr, s.isr[p])
    gone = {"unfenced": k.without_member(s.unfenced, broker), "alive": k.without_member(s.alive, broker)}
    return {**gone, **writes, "end": s.end + 1}


def _can_lead(k: Algebra, s: View, broker: Value, partition: Value, other: Value) -> Value:
    """Another than the broker is a live member of the ISR."""
    return k.all(other != broker, k.member(other, s.isr[partition]), is_alive(k, s, other))


def _without(k: Algebra, s: View, broker: Value, partition: Value, elected: Value) -> tuple[Value, Value, Value]:
    """Whether a partition changes when a broker may be in no ISR, and its leader and ISR then."""
    isr = s.isr[partition]
    there, led = exists(s, partition), s.leader[partition] == broker
    leaves = k.all(k.member(broker, isr), isr != k.only(broker))
    anybody = k.exists(REPLICA, lambda b: _can_lead(k, s, broker, partition, b))
    leader = k.ite(led, k.ite(anybody, elected, k.NONE), s.leader[partition])
    return k.all(there, k.any(led, leaves)), leader, k.ite(leaves, k.without_member(isr, broker), isr)


def _elects(k: Algebra, s: View, broker: Value, partition: Value, elected: Value) -> Value:
    """Who is elected can lead, where the broker leads and anybody can."""
    led = s.leader[partition] == broker
    anybody = k.exists(REPLICA, lambda b: _can_lead(k, s, broker, partition, b))
    return k.implies(k.all(led, anybody), _can_lead(k, s, broker, partition, elected))


@cluster.action(node=NODE, broker=REPLICA, first=REPLICA, second=REPLICA)
def fence_broker(k: Algebra, s: View, node: Value, broker: Value, first: Value, second: Value) -> Step:
    """A broker's session is over: one record takes it out of every ISR and every leadership.

    ``first`` and ``second`` lead the first and the second partition in its place.
    """
    yield from _acts(s, node)
    yield "is_unfenced", k.member(broker, s.unfenced)
    for p, elected in zip(PARTITIONS, (first, second), strict=True):
        yield f"elected_{p}_can_lead", _elects(k, s, broker, p, elected)
    yield s.update(**_fenced(k, s, broker, (first, second)))


@cluster.action(node=NODE, broker=REPLICA, first=REPLICA, second=REPLICA)
def fence_as_asked(k: Algebra, s: View, node: Value, broker: Value, first: Value, second: Value) -> Step:
    """The heartbeat of a broker that wants to be fenced, or may stop: it leads nothing, or all others know of it."""
    yield from _beats(k, s, node, broker)
    yield "is_unfenced", k.member(broker, s.unfenced)
    leaves = k.all(k.member(broker, s.shutting_down), _others_know(k, s, broker))
    stops = k.all(s.wants_stop[broker] == 1, k.negate(k.member(broker, s.shutting_down)), _leads_nothing(k, s, broker))
    yield "wants_it", k.any(s.wants_fence[broker] == 1, stops, leaves)
    for p, elected in zip(PARTITIONS, (first, second), strict=True):
        yield f"elected_{p}_can_lead", _elects(k, s, broker, p, elected)
    yield s.update(**_fenced(k, s, broker, (first, second)))


@cluster.action(node=NODE, broker=REPLICA, partition=PARTITION, elected=REPLICA)
def move_partition(k: Algebra, s: View, node: Value, broker: Value, partition: Value, elected: Value) -> Step:
    """An IsrChange takes a broker out of a partition that is to be fenced, or shuts down, by the next records."""
    yield from _acts(s, node)
    yield "is_unfenced", k.member(broker, s.unfenced)
    changes, leader, isr = _without(k, s, broker, partition, elected)
    epoch = s.leader_epoch[partition]
    yield "changes", changes
    yield "elected_can_lead", _elects(k, s, broker, partition, elected)
    yield s.update(
        leader={partition: leader},
        leader_epoch={partition: k.ite(leader != s.leader[partition], epoch + 1, epoch)},
        partition_epoch={partition: s.partition_epoch[partition] + 1},
        isr={partition: isr},
        end=s.end + 1,
    )


# -- partitions ------------------------------------------------------------------------------------------------------


@cluster.action(node=NODE, partition=PARTITION, broker=REPLICA)
def elect_leader(k: Algebra, s: View, node: Value, partition: Value, broker: Value) -> Step:
    """Another live member of the ISR leads: nobody did, or it is preferred."""
    yield from _acts(s, node)
    yield "exists", exists(s, partition)
    yield "another", s.leader[partition] != broker
    yield "can_lead", k.all(k.member(broker, s.isr[partition]), is_alive(k, s, broker))
    yield s.update(
        leader={partition: broker},
        leader_epoch={partition: s.leader_epoch[partition] + 1},
        partition_epoch={partition: s.partition_epoch[partition] + 1},
        end=s.end + 1,
    )


@cluster.action(node=NODE, partition=PARTITION, broker=REPLICA)
def create_topic(k: Algebra, s: View, node: Value, partition: Value, broker: Value) -> Step:
    """A partition of a topic with an id that no other has had, led by a live broker; all live ones are its ISR."""
    yield from _acts(s, node)
    yield "is_new", k.negate(exists(s, partition))
    yield "can_lead", is_alive(k, s, broker)
    yield "replicas_registered", k.forall(REPLICA, lambda b: k.member(b, s.registered))
    yield s.update(
        topic={partition: s.topics},
        topics=s.topics + 1,
        leader={partition: broker},
        leader_epoch={partition: 0},
        partition_epoch={partition: 0},
        isr={partition: s.alive},
        end=s.end + 1,
    )


@cluster.action(node=NODE, partition=PARTITION)
def remove_topic(k: Algebra, s: View, node: Value, partition: Value) -> Step:
    """A topic is deleted, with its partition."""
    yield from _acts(s, node)
    yield "exists", exists(s, partition)
    yield s.update(
        topic={partition: -1},
        leader={partition: k.NONE},
        leader_epoch={partition: -1},
        partition_epoch={partition: -1},
        isr={partition: k.EMPTY},
        end=s.end + 1,
    )


def _is_eligible(k: Algebra, s: View, leader: Value, partition: Value, member: Value) -> Value:
    """Whoever is asked for is alive, and the very process that the leader means; one whose epoch it does not know may
    stay, and not join."""
    named = s.asks_member_epoch[leader, partition, member]
    unknown = k.all(named == -1, k.member(member, s.isr[partition]))
    return k.all(is_alive(k, s, member), k.any(unknown, k.all(named != -1, named == s.broker_epoch[member])))


@cluster.action(node=NODE, leader=REPLICA, partition=PARTITION)
def alter_partition(k: Algebra, s: View, node: Value, leader: Value, partition: Value) -> Step:
    """The controller takes up the ISR that a leader asks for (AlterPartition)."""
    isr = s.asks_isr[leader, partition]
    yield from _acts(s, node)
    own = s.asks_epoch[leader, partition] == s.broker_epoch[leader]
    yield "broker_epoch_matches", k.all(k.member(leader, s.registered), own)
    yield "same_topic", k.all(exists(s, partition), s.asks_topic[leader, partition] == s.topic[partition])
    epoch, version = s.asks_leader_epoch[leader, partition], s.asks_partition_epoch[leader, partition]
    yield "not_newer", k.all(epoch <= s.leader_epoch[partition], version <= s.partition_epoch[partition])
    yield "leader_epoch_matches", s.leader_epoch[partition] <= epoch
    yield "is_leader", s.leader[partition] == leader
    yield "partition_epoch_matches", s.partition_epoch[partition] <= version
    yield "leader_stays", k.member(leader, isr)

    def eligible(member: Value) -> Value:
        return k.implies(k.member(member, isr), _is_eligible(k, s, leader, partition, member))

    yield "members_eligible", k.forall(REPLICA, eligible)
    yield s.update(
        isr={partition: isr},
        partition_epoch={partition: s.partition_epoch[partition] + 1},
        end=s.end + 1,
    )


# -- promises --------------------------------------------------------------------------------------------------------


@cluster.always
def nobody_is_ahead(k: Algebra, s: View) -> Value:
    """Nobody has replayed, or put into a snapshot, what is not stable."""

    def within(node: Value) -> Value:
        return k.all(s.node_applied[node] <= s.stable, s.snapshot_end[node] <= s.stable)

    return k.all(k.forall(NODE, within), k.forall(REPLICA, lambda b: s.view_applied[b] <= s.stable))


@cluster.always
def fenced_broker_leads_nothing(k: Algebra, s: View) -> Value:
    """Whoever is fenced leads nothing, and is in no ISR of more than one."""

    def out(partition: Value, broker: Value) -> Value:
        isr = s.isr[partition]
        outside = k.any(k.negate(k.member(broker, isr)), isr == k.only(broker))
        return k.any(k.member(broker, s.unfenced), k.all(s.leader[partition] != broker, outside))

    return k.forall(PARTITION, lambda p: k.forall(REPLICA, lambda b: out(p, b)))


@cluster.always
def isr_is_never_empty(k: Algebra, s: View) -> Value:
    """A partition has a member in its ISR, and its leader is one."""

    def right(partition: Value) -> Value:
        leader, isr = s.leader[partition], s.isr[partition]
        led = k.any(leader == k.NONE, k.member(leader, isr))
        return k.any(k.negate(exists(s, partition)), k.all(isr != k.EMPTY, led))

    return k.forall(PARTITION, right)


@cluster.always
def unfenced_are_registered(k: Algebra, s: View) -> Value:
    """Whoever is unfenced, or shuts down, is registered."""

    def right(broker: Value) -> Value:
        known = k.all(k.member(broker, s.registered), s.broker_epoch[broker] < s.end)
        within = k.implies(k.member(broker, s.alive), k.member(broker, s.unfenced))
        return k.all(within, k.any(k.negate(k.member(broker, s.unfenced)), known))

    return k.forall(REPLICA, right)
