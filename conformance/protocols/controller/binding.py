"""The binding of ``controller``: what the active controller answers, by KIP-631 and the KIPs that AlterPartition is of.

Whoever is not active answers NOT_CONTROLLER. STALE_BROKER_EPOCH has a process that is not the one registered,
DUPLICATE_BROKER_REGISTRATION one whose number another live process has. Of AlterPartition (KIP-497, KIP-841, KIP-903):
an old leader epoch is FENCED_REPLICA (Kafka's FENCED_LEADER_EPOCH), an old partition epoch INVALID_UPDATE_VERSION, a
member that may not be one INELIGIBLE_REPLICA; who names a newer epoch than the controller has is told NOT_CONTROLLER,
as the controller is out of date then.
"""

from __future__ import annotations

from typing import Final

from ....model.core.algebra import Algebra, Value, View
from ....model.core.domains import REPLICA
from ....model.protocols.controller.impl_spec import exists, is_alive
from ....model.protocols.controller.impl_state import (
    AT_FIRST,
    NODE,
    OF_CONTROLLER,
    OF_LOG,
    PARTITION,
    PROGRESS,
    TOLD,
    Role,
    Run,
)
from ...lockstep.binding import (
    FENCED,
    NOTHING,
    ActionBinding,
    Binding,
    Effect,
    Exchange,
    Rule,
    environment,
    error,
    unasked,
)

NOT_CONTROLLER: Final = error("NOT_CONTROLLER")
STALE: Final = error("STALE_BROKER_EPOCH")

_ACTS: Final[dict[str, Rule]] = {"is_active": NOT_CONTROLLER, "leads_newest": NOT_CONTROLLER}
_BEATS: Final[dict[str, Rule]] = {**_ACTS, "broker_epoch_matches": STALE}
_ELECTED: Final[dict[str, Rule]] = dict.fromkeys(("elected_0_can_lead", "elected_1_can_lead"), NOTHING)
_CRASH = environment("it is what a restart is, and no action")


def _named(*guards: str) -> ActionBinding:
    """What the active controller does within itself, at an event at which it may."""
    return ActionBinding(dict.fromkeys(guards, unasked()), named=True)


def _inner(*guards: str) -> ActionBinding:
    return ActionBinding(dict.fromkeys(guards, unasked()))


def _asked(asker: str, guards: dict[str, Rule], *, promised: bool = False) -> ActionBinding:
    """What a broker asks the controller for."""
    return ActionBinding(guards, Exchange(asker, None, Effect.ASKED), promised=promised)


_OWN = ("is_active", "leads_newest")

# What must have come in the end.


def _somebody_is_active(k: Algebra, s: View, _well: Value) -> Value:
    """A controller is active, and all of its log is stable."""
    active = k.exists(NODE, lambda n: k.all(s.role[n] == Role.active, s.leads == n))
    return k.all(active, s.stable == s.end)


def _images_converge(k: Algebra, s: View, well: Value) -> Value:
    """Whoever runs has replayed all that is stable."""

    def has_all(broker: Value) -> Value:
        runs = k.all(k.member(broker, well), s.run[broker] == Run.running)
        return k.implies(runs, s.view_applied[broker] == s.stable)

    standby = k.forall(NODE, lambda n: k.any(s.role[n] == Role.down, s.node_applied[n] == s.stable))
    return k.all(standby, k.forall(REPLICA, has_all))


def _is_well(k: Algebra, s: View, well: Value, broker: Value) -> Value:
    return k.all(k.member(broker, well), s.run[broker] == Run.running, s.wants_stop[broker] == 0)


def _live_brokers_are_unfenced(k: Algebra, s: View, well: Value) -> Value:
    """A broker that runs, and does not want to stop, is unfenced."""
    return k.forall(REPLICA, lambda b: k.implies(_is_well(k, s, well, b), is_alive(k, s, b)))


def _whoever_is_gone_is_fenced(k: Algebra, s: View, _well: Value) -> Value:
    """A broker that does not run is fenced."""
    down = lambda b: k.all(s.run[b] == Run.down, k.member(b, s.unfenced))  # noqa: E731
    return k.negate(k.exists(REPLICA, down))


def _partitions_are_led(k: Algebra, s: View, well: Value) -> Value:
    """A partition with a live member in its ISR has a leader, and whoever is well is in the ISR of a leader that is."""

    def led(partition: Value) -> Value:
        leader, isr = s.leader[partition], s.isr[partition]
        anybody = k.exists(REPLICA, lambda b: k.all(k.member(b, isr), is_alive(k, s, b)))
        sound = k.exists(REPLICA, lambda b: k.all(b == leader, _is_well(k, s, well, b)))
        whole = k.forall(REPLICA, lambda b: k.implies(_is_well(k, s, well, b), k.member(b, isr)))
        right = k.all(k.implies(anybody, leader != k.NONE), k.implies(sound, whole))
        return k.implies(exists(s, partition), right)

    return k.forall(PARTITION, led)


CONTROLLER: Final = Binding(
    "controller",
    {
        "activate": _inner("is_standby", "leads_newest", "caught_up", "nothing_pending"),
        "leave_office": _inner("is_active"),
        "stop_controller": _inner("is_up"),
        "start_controller": _inner("is_down"),
        "append_other": _named(*_OWN),
        "register_broker": _asked(
            "broker",
            {**_ACTS, "is_new": NOTHING, "session_over": error("DUPLICATE_BROKER_REGISTRATION")},
            promised=True,
        ),
        "hear_registration": ActionBinding(
            dict.fromkeys(("is_registered", "of_this_process", "is_stable"), unasked()),
            Exchange("broker", None, Effect.ASKER),
        ),
        "restart": ActionBinding({"was_told": _CRASH}),
        "unfence_broker": _asked(
            "broker", {**_BEATS, "wants_to_work": NOTHING, "caught_up": NOTHING, "is_fenced": NOTHING}, promised=True
        ),
        "shut_down": _asked(
            "broker",
            {
                **_BEATS,
                "wants_to_stop": NOTHING,
                "is_unfenced": NOTHING,
                "is_new": NOTHING,
                "leads_nothing": NOTHING,
            },
        ),
        "fence_broker": _named(*_OWN, "is_unfenced", *_ELECTED),
        "fence_as_asked": _asked("broker", {**_BEATS, "is_unfenced": NOTHING, "wants_it": NOTHING, **_ELECTED}),
        "move_partition": _named(*_OWN, "is_unfenced", "changes", "elected_can_lead"),
        "elect_leader": _named(*_OWN, "exists", "another", "can_lead"),
        "create_topic": ActionBinding(
            {
                **_ACTS,
                "is_new": error("TOPIC_ALREADY_EXISTS"),
                "can_lead": error("INVALID_REPLICATION_FACTOR", "INVALID_REPLICA_ASSIGNMENT"),
                "replicas_registered": error("INVALID_REPLICA_ASSIGNMENT"),
            },
            named=True,
        ),
        "remove_topic": ActionBinding(
            {**_ACTS, "exists": error("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")}, named=True, promised=True
        ),
        "alter_partition": _asked(
            "leader",
            {
                **_ACTS,
                "broker_epoch_matches": STALE,
                "same_topic": error("UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION"),
                "not_newer": NOT_CONTROLLER,
                "leader_epoch_matches": error(FENCED),
                "is_leader": error("INVALID_REQUEST"),
                "partition_epoch_matches": error("INVALID_UPDATE_VERSION"),
                "leader_stays": error("INVALID_REQUEST"),
                "members_eligible": error("INELIGIBLE_REPLICA"),
            },
            promised=True,
        ),
    },
    restarts=frozenset({"restart"}),
    parties={"kip-631-cluster": dict.fromkeys(OF_CONTROLLER, lambda _: None)},
    inputs=frozenset({*OF_LOG, *TOLD, *PROGRESS, *AT_FIRST}),
    settles=(
        _somebody_is_active,
        _images_converge,
        _live_brokers_are_unfenced,
        _whoever_is_gone_is_fenced,
        _partitions_are_led,
    ),
    # One node after another makes a snapshot, each by a heartbeat or two of its own.
    quiet=16,
)
"""``fence_broker`` and the other steps without an asker are named by the events at which they may come."""
