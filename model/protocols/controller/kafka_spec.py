"""``kip-631-kafka``: what Apache Kafka's active controller decides, as a variant of the text that clusters are held to.

It is ``kip-631-cluster`` in other steps wherever Kafka differs (``specs/DEVIATIONS.md``, rows O). **A registration**
has the epoch at which its batch begins, behind the records that take the former process out of every ISR; the same
process may register again, which changes nothing, but it has to replay that record too before it is unfenced. **A
session** is over by the clock: nobody is fenced, or registers in another's place, before. **A broker is fenced by the
records of one batch**, a PartitionChangeRecord for each partition first. **A controlled shutdown** begins with the
record that says so, where the broker leads anything; that it goes on is known to the controller in whose time it began,
and to no other. **Whoever is unfenced** may have been fenced to stop. **A member** whose broker epoch its leader does
not know may join. **Nobody needs to be in the ISR** that an operator has elected uncleanly.

Everything else is the running text's own, variable by variable and action by action.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import wraps
from typing import Final

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import REPLICA, REPLICA_SET, integers
from ...core.protocol import ActionSpec, ActionText, Protocol
from .impl_spec import exists, is_alive
from .impl_state import LARGEST, NODE, PARTITION, Role, Rules, cluster

VARIANT: Final = "kip-631-kafka"


@dataclass(frozen=True)
class Shipped(Rules):
    """The rules of what is shipped: they are what the actions below say."""


def is_shipped(rules: object) -> bool:
    """Whether a variant tells of Apache Kafka."""
    return isinstance(rules, Shipped)


text = Protocol(cluster.name, cluster.source, constants=tuple(cluster.constants.values()))
"""The running text's variant, and that of what is shipped."""

text.indices |= cluster.indices
text.variables |= cluster.variables
_NOT_SHIPPED: Final = {"fence_broker", "fence_as_asked"}
"""What Kafka has another step for: one that changes no partition."""
for _name, _action in cluster.actions.items():
    text.actions[_name] = (
        replace(_action, present=lambda rules: not is_shipped(rules)) if _name in _NOT_SHIPPED else _action
    )
text.invariants |= cluster.invariants
text.witnesses |= cluster.witnesses

text.variable(
    "registered_at",
    "the offset of the record by which the registered process has registered last",
    integers(-1, lambda _: LARGEST),
    per=(REPLICA,),
    initially=-1,
    present=is_shipped,
)
text.variable(
    "recovering",
    "1 where a leader that was elected uncleanly has not said that it has recovered",
    integers(0, lambda _: 1),
    per=(PARTITION,),
    present=is_shipped,
)
text.variable("stopping", "whose controlled shutdown the active controller has begun", REPLICA_SET, present=is_shipped)
text.variable(
    "session",
    "1 where the active controller has heard of the registered process within the time of a session",
    integers(0, lambda _: 1),
    per=(REPLICA,),
    present=is_shipped,
)
text.variable(
    "before", "the end of the newest log as this event began", integers(0, lambda _: LARGEST), present=is_shipped
)
text.variable("led", "who led a partition as this event began", REPLICA_SET, present=is_shipped)
text.variable(
    "told_epoch",
    "the broker epoch in the last answer to the registration of a broker's process",
    integers(-1, lambda _: LARGEST),
    per=(REPLICA,),
    initially=-1,
    present=is_shipped,
)
OF_SHIPPED: Final = ("registered_at", "recovering", "stopping")
"""What else an election may change."""
GIVEN: Final = ("session", "before", "led", "told_epoch")
"""What the harness knows of the time, of the moment before, and of an answer."""


def _instead(own: ActionText) -> ActionText:
    """Kafka's text of an action, under the name that it has."""
    spec: ActionSpec = cluster.actions[own.__name__]

    @wraps(spec.text)
    def either(k: Algebra, s: View, *params: Value, **named: Value) -> Step:
        yield from (own if is_shipped(k.rules) else spec.text)(k, s, *params, **named)

    text.actions[own.__name__] = replace(spec, text=either)
    return own


def _acts(s: View, node: Value) -> Step:
    yield "is_active", s.role[node] == Role.active
    yield "leads_newest", s.leads == node


def _beats(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    yield from _acts(s, node)
    known = s.beat_epoch[broker] == s.broker_epoch[broker]
    yield "broker_epoch_matches", k.all(k.member(broker, s.registered), known)


def _is_moved(k: Algebra, s: View, broker: Value) -> Value:
    """Nothing is left of it but where it is the last member of an ISR: records of this batch have seen to that."""

    def right(partition: Value) -> Value:
        isr = s.isr[partition]
        leaves = k.all(k.member(broker, isr), isr != k.only(broker))
        return k.negate(k.all(exists(s, partition), k.any(s.leader[partition] == broker, leaves)))

    return k.forall(PARTITION, right)


@_instead
def activate(k: Algebra, s: View, node: Value) -> Step:
    """Whoever is elected has replayed its whole log; of controlled shutdowns it knows what the log says alone."""
    yield "is_standby", s.role[node] == Role.standby
    yield "leads_newest", s.leads == node
    yield "caught_up", s.node_applied[node] == s.stable
    yield "nothing_pending", s.end <= s.stable
    yield s.update(role={node: Role.active}, stopping=k.EMPTY)


# -- brokers ---------------------------------------------------------------------------------------------------------


@_instead
def register_broker(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """A process that has started registers; of the one before it, be it fenced or not, nothing was heard for long."""
    yield from _acts(s, node)
    is_new = s.incarnation[broker] != s.as_incarnation[broker]
    yield "is_new", is_new
    yield "session_over", k.implies(k.all(is_new, k.member(broker, s.registered)), s.session[broker] == 0)
    yield "is_moved", _is_moved(k, s, broker)
    yield s.update(
        registered=k.with_member(s.registered, broker),
        unfenced=k.without_member(s.unfenced, broker),
        alive=k.without_member(s.alive, broker),
        shutting_down=k.without_member(s.shutting_down, broker),
        stopping=k.without_member(s.stopping, broker),
        broker_epoch={broker: s.before},
        incarnation={broker: s.as_incarnation[broker]},
        registered_at={broker: s.end},
        shutdown_offset={broker: -1},
        end=s.end + 1,
    )


@_instead
def hear_registration(_k: Algebra, s: View, broker: Value) -> Step:
    """A broker is told the epoch of a registration of its process, also where a late one of another came behind it."""
    yield "is_stable", s.told_epoch[broker] < s.stable
    yield s.update(own_epoch={broker: s.told_epoch[broker]})


@text.action(node=NODE, broker=REPLICA, present=is_shipped)
def register_again(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """The registration of the process that is registered: a record more, which says what is so."""
    yield from _acts(s, node)
    same = s.incarnation[broker] == s.as_incarnation[broker]
    yield "is_same", k.all(k.member(broker, s.registered), same)
    yield s.update(registered_at={broker: s.end}, stopping=k.without_member(s.stopping, broker), end=s.end + 1)


@_instead
def unfence_broker(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """The heartbeat of a broker that has replayed its last registration; one that was fenced to stop stops still."""
    yield from _beats(k, s, node, broker)
    yield "wants_to_work", k.all(s.wants_fence[broker] == 0, s.wants_stop[broker] == 0)
    yield "caught_up", s.registered_at[broker] < s.beat_end[broker]
    yield "is_fenced", k.negate(k.member(broker, s.unfenced))
    stops = k.member(broker, s.shutting_down)
    yield s.update(
        unfenced=k.with_member(s.unfenced, broker),
        alive=k.ite(stops, s.alive, k.with_member(s.alive, broker)),
        end=s.end + 1,
    )


@_instead
def shut_down(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """A broker that leads something wants to stop; what it leads is moved by the records behind this one."""
    yield from _beats(k, s, node, broker)
    yield "wants_to_stop", k.all(s.wants_stop[broker] == 1, s.wants_fence[broker] == 0)
    yield "is_unfenced", k.member(broker, s.unfenced)
    yield "is_new", k.negate(k.member(broker, s.stopping))
    yield "leads_something", k.member(broker, s.led)
    known = k.member(broker, s.shutting_down)
    yield s.update(
        shutting_down=k.with_member(s.shutting_down, broker),
        alive=k.without_member(s.alive, broker),
        stopping=k.with_member(s.stopping, broker),
        shutdown_offset={broker: k.ite(known, s.shutdown_offset[broker], s.end)},
        end=k.ite(known, s.end, s.end + 1),
    )


def _others_know(k: Algebra, s: View, broker: Value) -> Value:
    """Whoever may lead has replayed the record by which the broker shuts down."""

    def knows(other: Value) -> Value:
        return k.any(k.negate(is_alive(k, s, other)), s.shutdown_offset[broker] < s.has_told[other])

    return k.forall(REPLICA, knows)


def _fenced(k: Algebra, s: View, broker: Value) -> dict[str, Value]:
    return {
        "unfenced": k.without_member(s.unfenced, broker),
        "alive": k.without_member(s.alive, broker),
        "stopping": k.without_member(s.stopping, broker),
        "end": s.end + 1,
    }


@text.action(node=NODE, broker=REPLICA, present=is_shipped)
def fence_stale(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """A broker's session is over; records of the same batch have taken it out of everything.

    Who is fenced already has a session too, as long as it is heard of, and is fenced once more when that is over.
    """
    yield from _acts(s, node)
    yield "is_registered", k.member(broker, s.registered)
    yield "session_over", s.session[broker] == 0
    yield "is_moved", _is_moved(k, s, broker)
    yield s.update(**_fenced(k, s, broker))


@text.action(node=NODE, broker=REPLICA, present=is_shipped)
def fence_at_heartbeat(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """The heartbeat of a broker that wants to be fenced, or may stop; who is fenced may, and is fenced once more."""
    yield from _beats(k, s, node, broker)
    begun, unfenced = k.member(broker, s.stopping), k.member(broker, s.unfenced)
    leads = k.member(broker, s.led)
    stops = k.all(s.wants_stop[broker] == 1, k.negate(leads))
    asks = k.any(stops, k.all(s.wants_fence[broker] == 1, unfenced))
    leaves = k.all(k.negate(leads), _others_know(k, s, broker))
    yield "wants_it", k.ite(begun, leaves, asks)
    yield "is_moved", _is_moved(k, s, broker)
    yield s.update(**_fenced(k, s, broker))


# -- partitions ------------------------------------------------------------------------------------------------------


@text.action(node=NODE, partition=PARTITION, broker=REPLICA, present=is_shipped)
def elect_returning(k: Algebra, s: View, node: Value, partition: Value, broker: Value) -> Step:
    """Whoever is unfenced leads what nobody does, also where it was fenced to stop."""
    yield from _acts(s, node)
    yield "exists", exists(s, partition)
    yield "nobody_leads", s.leader[partition] == k.NONE
    yield "is_back", k.all(k.member(broker, s.unfenced), k.member(broker, s.shutting_down))
    yield "is_member", k.member(broker, s.isr[partition])
    yield s.update(
        leader={partition: broker},
        leader_epoch={partition: s.leader_epoch[partition] + 1},
        partition_epoch={partition: s.partition_epoch[partition] + 1},
        end=s.end + 1,
    )


@text.action(node=NODE, partition=PARTITION, broker=REPLICA, present=is_shipped)
def elect_uncleanly(k: Algebra, s: View, node: Value, partition: Value, broker: Value) -> Step:
    """An operator has somebody lead who is not in the ISR, where nobody in it is alive; it is the ISR then."""
    yield from _acts(s, node)
    yield "exists", exists(s, partition)
    yield "nobody_leads", s.leader[partition] == k.NONE
    able = k.exists(REPLICA, lambda b: k.all(k.member(b, s.isr[partition]), is_alive(k, s, b)))
    yield "nobody_can", k.negate(able)
    yield "is_alive", is_alive(k, s, broker)
    yield s.update(
        leader={partition: broker},
        leader_epoch={partition: s.leader_epoch[partition] + 1},
        partition_epoch={partition: s.partition_epoch[partition] + 1},
        isr={partition: k.only(broker)},
        recovering={partition: 1},
        end=s.end + 1,
    )


@_instead
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
        recovering={partition: 0},
        end=s.end + 1,
    )


@_instead
def alter_partition(k: Algebra, s: View, node: Value, leader: Value, partition: Value) -> Step:
    """The controller takes up the ISR that a leader asks for; one that holds already changes nothing."""
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
        named = s.asks_member_epoch[leader, partition, member]
        known = k.any(named == -1, named == s.broker_epoch[member])
        return k.implies(k.member(member, isr), k.all(is_alive(k, s, member), known))

    yield "members_eligible", k.forall(REPLICA, eligible)
    yield "changes", k.any(isr != s.isr[partition], s.recovering[partition] == 1)
    yield s.update(
        isr={partition: isr},
        partition_epoch={partition: s.partition_epoch[partition] + 1},
        recovering={partition: 0},
        end=s.end + 1,
    )


# The text's own is last, as it is there.
_OWN: Final = cluster.default_variant
text.variants |= {name: each for name, each in cluster.variants.items() if name != _OWN}
text.variant(VARIANT, Shipped(), "what Apache Kafka's controllers do, as of 4.4.0")
text.variants[_OWN] = cluster.variants[_OWN]
