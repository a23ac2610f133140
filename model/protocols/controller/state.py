"""The state and the rules of ``controller``: a metadata log, who has replayed how much of it, and partitions' data.

**The log** is that of the metadata quorum, ``end``, ``leader_end`` and ``stable`` are exclusive ends: below ``stable``
everything is committed, which the text calls the last stable offset. It is the log of the controller that became active
last. Whoever is elected after that one has it up to ``leader_end``; the rest may come back with another one's election,
until that leader is active. What ``snapshots`` promises of the quorum is taken for granted here, and how it does is
said in ``metadata_log.py``. An offset is that of a batch: all its records are replayed at once, or none.

**An image** is the state that a prefix of the log comes to (``image.py``). There are four kinds of holders: the prefix
that ends with each record (``prefix_*``, which the active controller keeps as long as it is not stable, and no other
step reads), the controllers' memory (``node_*``), the brokers' metadata caches (``view_*``), and snapshots
(``snapshot_*``).

**Brokers** are the replicas of every partition. A broker epoch is the offset of the registration's record, as shipped;
-1 is that of who was registered before the log begins. **A partition** has one record at each broker at most, which is
told by its leader epoch: the producer sends it until it is acknowledged. A topic has one partition, and a topic id that
is drawn once: whoever creates a topic of an old name has another partition here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ...core.algebra import Algebra, Value, View
from ...core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, Constants, Index, all_replicas, integers
from ...core.enumeration import enumeration
from ...core.protocol import ConstantSpec, Protocol
from ...core.terms import Sort
from ..logs import OFFSET

NODE = Index("node", Sort.INT, lambda c: c["nodes"])
"""The controllers: the voters of the metadata quorum."""
PARTITION = Index("partition", Sort.INT, lambda c: c["partitions"])

Kind = enumeration(
    "kind",
    "register",
    "register_unclean",
    "unfence",
    "shut_down",
    "fence",
    "create_topic",
    "remove_topic",
    "isr_change",
)
"""What a record of the metadata log is."""
Role = enumeration("role", "standby", "elected", "active")
"""What a controller takes itself for. Whoever is elected is active once it has replayed its log."""
Run = enumeration("run", "stopped", "running", "stopping", "lost")
"""How a broker is: ``stopped`` in order, or ``lost``, with all that its logs had."""
Heard = enumeration("heard", "unknown", "idle", "busy")
"""What the active controller has heard of a node's snapshots, by its heartbeats: soft state."""

controller = Protocol(
    "controller",
    "KIP-631",
    constants=(
        ConstantSpec("replicas", 2, 1, "the number of brokers; each has a replica of every partition"),
        ConstantSpec("nodes", 2, 1, "the number of controllers"),
        ConstantSpec("partitions", 1, 1, "the number of partitions"),
        ConstantSpec("log_size", 2, 1, "the number of offsets in the metadata log"),
        ConstantSpec("max_controller_epoch", 2, 0, "the largest controller epoch"),
        ConstantSpec("bootstrapped", 1, 0, "1 where brokers and topics are there at first, 0 where none is"),
        ConstantSpec("snapshots", 0, 0, "1 where controllers make snapshots, 0 where they make none"),
        ConstantSpec("removals", 1, 0, "1 where brokers are shut down and topics removed, 0 where neither happens"),
    ),
)


class Resigns(Enum):
    """How the active controller makes a snapshot of its own."""

    FIRST = "it gives up leadership, and makes it as a standby (KIP-631)"
    NEVER = "of the state at the last stable offset, beside its work (KIP-630)"
    PENDING = "of what it has in memory"


@dataclass(frozen=True)
class Rules:
    """In what a variant differs; the defaults are those of the safe one.

    ``resigns``: how the active controller makes a snapshot. ``says_fenced``: a snapshot says who is fenced.
    ``hears_first``: a new active controller waits until it has heard from all. ``of_own_epoch``: a node takes no order
    to make a snapshot from an older controller epoch. ``checks_broker_epoch``: whoever is proposed is unfenced, as far
    as its leader knows, and whoever joins is still what it was then. ``doubts_lost``: the last member of an ISR that
    comes back without its logs is not elected. ``elects_unfenced``: whoever is elected is unfenced. ``stable_only``:
    standbys and brokers replay stable records only. ``checks_leader``: an ISR is proposed by its leader, in its leader
    epoch. ``keeps_last``: the last member of an ISR stays in it. ``reloads``: who was active, and is no more, loads its
    state anew. ``answers_stable``: a registration is answered when it is stable. ``by_changes``: a fenced broker is
    taken out of the ISRs by one IsrChange for each partition, in one batch, and not by FenceBroker.
    """

    resigns: Resigns = Resigns.FIRST
    says_fenced: bool = True
    hears_first: bool = True
    of_own_epoch: bool = True
    checks_broker_epoch: bool = True
    doubts_lost: bool = True
    elects_unfenced: bool = True
    stable_only: bool = True
    checks_leader: bool = True
    keeps_last: bool = True
    reloads: bool = True
    answers_stable: bool = True
    by_changes: bool = False


AS_WRITTEN = Rules(
    says_fenced=False, hears_first=False, of_own_epoch=False, checks_broker_epoch=False, doubts_lost=False
)
"""The text's own rules, where it has one, and none where it says nothing."""

controller.variant("kip-631", AS_WRITTEN, "the KIP's text as it is written")
controller.variant("snapshot-lacks-fenced", Rules(says_fenced=False), "no snapshot says who is fenced: hole 1 alone")
controller.variant("two-snapshots", Rules(hears_first=False), "a new active controller knows of none: hole 2 alone")
controller.variant("late-order", Rules(of_own_epoch=False), "an old order to make a snapshot is taken: hole 3 alone")
controller.variant(
    "stale-broker-epoch", Rules(checks_broker_epoch=False), "an ISR takes in who has restarted since: hole 4 alone"
)
controller.variant(
    "last-member-returns", Rules(doubts_lost=False), "the last member leads again, its logs lost: hole 5 alone"
)
controller.variant("snapshot-pending", Rules(resigns=Resigns.PENDING), "a snapshot of what is pending")
controller.variant("elects-fenced", Rules(elects_unfenced=False), "a fenced broker is elected")
controller.variant("applies-pending", Rules(stable_only=False), "standbys and brokers replay what is pending")
controller.variant("deposed-leader", Rules(checks_leader=False), "an ISR is taken from a leader that is deposed")
controller.variant("removes-last", Rules(keeps_last=False), "the last member is taken out of the ISR")
controller.variant("keeps-pending", Rules(reloads=False), "a deposed controller keeps what was pending")
controller.variant("answers-pending", Rules(answers_stable=False), "a registration is answered before it is stable")
controller.variant(
    "isr-changes", Rules(by_changes=True), "kip-631-safe with an IsrChange for each partition in place of FenceBroker"
)
controller.variant(
    "concurrent-snapshots", Rules(resigns=Resigns.NEVER), "kip-631-safe with an active controller that snapshots too"
)
controller.variant("kip-631-safe", Rules(), "the KIP less its holes")

_EPOCHS = integers(-1, lambda c: c["max_controller_epoch"])
_ENDS = integers(0, lambda c: c["log_size"])
_OPTIONAL_OFFSETS = integers(-1, lambda c: c["log_size"] - 1)
_VERSIONS = integers(-1, lambda c: c["log_size"])


def _bootstrapped(constants: Constants) -> int:
    return all_replicas(constants) if constants["bootstrapped"] == 1 else 0


def _version(constants: Constants) -> int:
    return 0 if constants["bootstrapped"] == 1 else -1


def in_log(_k: Algebra, s: View, offset: Value) -> Value:
    """There is a record at this offset."""
    return offset < s.end


def _in_log_of(_k: Algebra, s: View, offset: Value, _partition: Value) -> Value:
    return offset < s.end


def has_snapshot(_k: Algebra, s: View, node: Value) -> Value:
    """The node has made a snapshot."""
    return s.snapshot_end[node] != -1


def _has_snapshot_of(_k: Algebra, s: View, node: Value, _partition: Value) -> Value:
    return s.snapshot_end[node] != -1


# The metadata log.
controller.variable("brokers", "the brokers", REPLICA_SET, initially=all_replicas)
controller.variable("end", "the end of the metadata log, exclusive", _ENDS)
controller.variable("leader_end", "the end of what the newest controller epoch's leader has of the log", _ENDS)
controller.variable("stable", "the last stable offset, as an exclusive end", _ENDS)
controller.variable("record_kind", "what the record at an offset is", Kind, per=(OFFSET,), initially=-1, live=in_log)
controller.variable(
    "record_broker", "the broker that it is about", OPTIONAL_REPLICA, per=(OFFSET,), initially=-1, live=in_log
)
controller.variable(
    "record_partition",
    "the partition that it is about; -1: none, or all",
    integers(-1, lambda c: c["partitions"] - 1),
    per=(OFFSET,),
    initially=-1,
    live=in_log,
    unset=True,
)
controller.variable(
    "record_leader",
    "the leader, or the successor of a fenced broker, that it names",
    OPTIONAL_REPLICA,
    per=(OFFSET,),
    initially=-1,
    live=in_log,
)
controller.variable("record_isr", "the ISR that it names", REPLICA_SET, per=(OFFSET,), live=in_log)
controller.variable(
    "change_leader",
    "the leader in the IsrChange of a partition, in a batch that fences a broker",
    OPTIONAL_REPLICA,
    per=(OFFSET, PARTITION),
    initially=-1,
    live=_in_log_of,
    present=lambda rules: rules.by_changes,
)
controller.variable(
    "change_isr",
    "the ISR in it; empty where the batch has none of that partition",
    REPLICA_SET,
    per=(OFFSET, PARTITION),
    live=_in_log_of,
    present=lambda rules: rules.by_changes,
)
controller.variable(
    "created",
    "1 where the topic's id has been drawn",
    integers(0, lambda _: 1),
    per=(PARTITION,),
    initially=lambda c: c["bootstrapped"],
)

# Images, by holder.
for _holder, _whose, _index in (
    ("prefix", "in the log up to an offset", OFFSET),
    ("node", "in a controller's memory", NODE),
    ("view", "in a broker's metadata cache", REPLICA),
    ("snapshot", "in a node's latest snapshot", NODE),
):
    _booted = _holder in ("node", "view")
    _live = {"prefix": in_log, "snapshot": has_snapshot}.get(_holder)
    _live_of = {"prefix": _in_log_of, "snapshot": _has_snapshot_of}.get(_holder)
    for _name, _what in (
        ("registered", "who is registered"),
        ("unfenced", "who is unfenced"),
        ("shutting_down", "who is in controlled shutdown"),
    ):
        controller.variable(
            f"{_holder}_{_name}",
            f"{_what}, {_whose}",
            REPLICA_SET,
            per=(_index,),
            initially=_bootstrapped if _booted and _name != "shutting_down" else 0,
            live=_live,
        )
    controller.variable(
        f"{_holder}_leader",
        f"a partition's leader, {_whose}",
        OPTIONAL_REPLICA,
        per=(_index, PARTITION),
        initially=-1,
        live=_live_of,
    )
    for _name in ("leader_epoch", "partition_epoch"):
        controller.variable(
            f"{_holder}_{_name}",
            f"a partition's {_name.replace('_', ' ')}, {_whose}; -1: there is no such partition",
            _VERSIONS,
            per=(_index, PARTITION),
            initially=_version if _booted else -1,
            live=_live_of,
            unset=True,
        )
    controller.variable(
        f"{_holder}_isr",
        f"a partition's ISR, {_whose}",
        REPLICA_SET,
        per=(_index, PARTITION),
        initially=_bootstrapped if _booted else 0,
        live=_live_of,
    )
    controller.variable(
        f"{_holder}_doubted",
        f"1 where the last member of a partition's ISR has come back without its logs, {_whose}",
        integers(0, lambda _: 1),
        per=(_index, PARTITION),
        live=_live_of,
        dead=0,
        unset=True,
    )

# Controllers.
controller.variable("newest_epoch", "the newest controller epoch", _EPOCHS, initially=-1)
controller.variable(
    "active_epoch", "the newest controller epoch in which a controller became active", _EPOCHS, initially=-1
)
controller.variable("node_epoch", "the controller epoch that a node is in", _EPOCHS, per=(NODE,), initially=-1)
controller.variable("role", "what a node takes itself for", Role, per=(NODE,))
controller.variable("node_applied", "the end of what a node has replayed", _ENDS, per=(NODE,))
controller.variable(
    "snapshot_end",
    "the end of what a node's latest snapshot includes; -1: there is none",
    integers(-1, lambda c: c["log_size"]),
    per=(NODE,),
    initially=-1,
)
controller.variable("making", "1 where a node is making a snapshot", integers(0, lambda _: 1), per=(NODE,))
controller.variable(
    "order_epoch",
    "the controller epoch of an order to make a snapshot that is on its way to a node; -1: there is none",
    _EPOCHS,
    per=(NODE,),
    initially=-1,
)
controller.variable("heard", "what the active controller has heard of a node's snapshots", Heard, per=(NODE,))

# Brokers.
controller.variable("run", "how a broker is", Run, per=(REPLICA,), initially=lambda c: c["bootstrapped"])
controller.variable(
    "own_epoch", "the broker epoch that a broker was told", _OPTIONAL_OFFSETS, per=(REPLICA,), initially=-1
)
controller.variable(
    "awaited",
    "the offset of the registration of which a broker awaits the answer; -1: none",
    _OPTIONAL_OFFSETS,
    per=(REPLICA,),
    initially=-1,
)
controller.variable("view_applied", "the end of what a broker has replayed", _ENDS, per=(REPLICA,))
controller.variable("view_reached", "the largest end that it had replayed before", _ENDS, per=(REPLICA,))


def is_up(k: Algebra, s: View, broker: Value) -> Value:
    """The broker runs, and is registered as far as it knows."""
    return k.any(s.run[broker] == Run.running, s.run[broker] == Run.stopping)


def takes_part(k: Algebra, s: View, broker: Value) -> Value:
    """The broker leads and follows by its metadata, which has its own registration."""
    return k.all(is_up(k, s, broker), s.own_epoch[broker] < s.view_applied[broker])


def presumes_leadership(k: Algebra, s: View, broker: Value, partition: Value) -> Value:
    """The broker leads the partition by its own metadata. It need not be so any more."""
    return k.all(takes_part(k, s, broker), s.view_leader[broker, partition] == broker)


# Partitions' data, by broker.
controller.variable(
    "data",
    "the leader epoch of a partition's record at a broker; -1: it has none",
    _VERSIONS,
    per=(REPLICA, PARTITION),
    initially=-1,
)
controller.variable(
    "proposed",
    "whom a leader has asked the controller to take into the ISR, or out of it",
    OPTIONAL_REPLICA,
    per=(REPLICA, PARTITION),
    initially=-1,
    live=presumes_leadership,
)
controller.variable(
    "proposed_epoch",
    "the broker epoch of who is to join",
    _OPTIONAL_OFFSETS,
    per=(REPLICA, PARTITION),
    initially=-1,
    live=presumes_leadership,
    unset=True,
)
controller.variable(
    "acknowledged",
    "the leader epoch of the record that the producer was told all of the ISR have; -1: it was not told so",
    _VERSIONS,
    per=(PARTITION,),
    initially=-1,
)
