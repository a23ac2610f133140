"""The binding of ``controller`` itself: what controllers and brokers answer that are driven step for step beside it.

Brokers ask by real requests, and each of a controller's answers is judged when it is decided. What a controller or a
broker does by itself (replaying, sessions that are over, a look at the ISR) is given the time to come. Elections of
controllers are those of a real quorum, in which not every log that the model's rules allow can win.
"""

from __future__ import annotations

from typing import Final

from ....model.protocols.controller.state import Heard, Run
from ...lockstep.binding import (
    BOUND,
    FENCED,
    ITSELF,
    NOT_LEADER,
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

_NONE: Final = -1
_NOT_CONTROLLER: Final = error("NOT_CONTROLLER")
_STALE: Final = error("STALE_BROKER_EPOCH")
_UNKNOWN: Final = error("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")
_IN_VAIN: Final = environment("what a controller appends when another one is active is never stable")
_IS_UP: Final = environment("the broker's process runs, or does not, or does not want that")
_NO_REQUEST: Final = environment("there is no such request")
_NOBODY_LEADS: Final = environment("by its own metadata nobody leads, and whoever asks for the leader is told so")
_OPERATOR: Final = environment("an operator asks for another leader where there is one: the model has none")

_ACTS: Final[dict[str, Rule]] = {"is_active": _NOT_CONTROLLER, "none_active_since": _IN_VAIN}
_DECIDES: Final[dict[str, Rule]] = {"is_active": unasked("NOT_CONTROLLER"), "none_active_since": _IN_VAIN}
_APPENDS: Final[dict[str, Rule]] = {**_ACTS, "log_not_full": BOUND}


def _always(_sight: Sight) -> bool:
    return True


def _partitions(sight: Sight) -> range:
    return range(sight.system.constants["partitions"])


def _room(sight: Sight) -> int:
    return sight.system.constants["log_size"] - sight.cell("end")


def _has(members: int, broker: int) -> bool:
    return bool(members >> broker & 1)


def _is_up(sight: Sight, broker: int) -> bool:
    return sight.cell("run", broker) in (Run.running, Run.stopping)


def _takes_part(sight: Sight, broker: int) -> bool:
    return _is_up(sight, broker) and sight.cell("own_epoch", broker) < sight.cell("view_applied", broker)


def _none_leads(sight: Sight) -> bool:
    """The newest epoch's controller does not know yet what is stable, and tells nobody."""
    return sight.cell("active_epoch") < sight.cell("newest_epoch")


def _is_deposed(sight: Sight) -> bool:
    """Nobody counts for a controller whose epoch is over."""
    return sight.cell("node_epoch", sight["node"]) < sight.cell("newest_epoch")


def _is_doubted(sight: Sight) -> bool:
    """The last member of an ISR that has lost its logs stays away: it is for an operator to say what is lost."""
    broker = sight["broker"]
    alone = (sight.cell("node_isr", sight["node"], p) == 1 << broker for p in _partitions(sight))
    return sight.cell("run", broker) == Run.lost and any(alone)


def _lacks_room(sight: Sight) -> bool:
    """In one batch a broker is unfenced and leads what nobody led."""
    return _room(sight) < 1 + sight.system.constants["partitions"]


def _leads(sight: Sight) -> bool:
    """Who leads is moved, and out of the ISR, before it is marked: the model has no such record. Who does not lead is
    fenced at once, which is two records of the model."""
    node, broker = sight["node"], sight["broker"]
    return _room(sight) < 2 or any(sight.cell("node_leader", node, p) == broker for p in _partitions(sight))


def _is_led_by_choice(sight: Sight) -> bool:
    """Where more than one may lead, the controller goes by the order of preference."""
    node, partition, leader = sight["node"], sight["partition"], sight["leader"]
    others = sight.cell("node_isr", node, partition) & sight.cell("node_unfenced", node) & ~(1 << leader)
    return others != 0


def _lacks_brokers(sight: Sight) -> bool:
    """A partition has a replica at each broker, all of which are registered."""
    return sight.cell("node_registered", sight["node"]) != (1 << sight.system.constants["replicas"]) - 1


def _may_be_caught_up(sight: Sight) -> bool:
    """Nobody is taken out of the ISR who has all that its leader has, or had when it was last heard of."""
    leader, member, partition = sight["leader"], sight["member"], sight["partition"]
    same = sight.cell("data", leader, partition) == sight.cell("data", member, partition)
    epochs = (sight.cell("view_leader_epoch", each, partition) for each in (leader, member))
    known = sight.cell("own_epoch", member) < sight.cell("view_applied", leader)
    return same or not known or len({*epochs}) == 2 or not _takes_part(sight, member)


def _id_is_drawn(sight: Sight) -> Answer:
    there = sight.cell("node_leader_epoch", sight["node"], sight["partition"]) != _NONE
    return error("TOPIC_ALREADY_EXISTS") if there else BOUND


def _not_fenced(sight: Sight) -> Answer:
    """A leader names another leader epoch, or partition epoch, than the controller has."""
    return _versions(sight, "leader_epoch", FENCED)


def _not_outdated(sight: Sight) -> Answer:
    return _versions(sight, "partition_epoch", "INVALID_UPDATE_VERSION")


def _versions(sight: Sight, name: str, older: str) -> Answer:
    asks = sight.cell(f"view_{name}", sight["leader"], sight["partition"])
    known = sight.cell(f"node_{name}", sight["node"], sight["partition"])
    return error(older) if asks < known else error("NOT_CONTROLLER")


def _writes(sight: Sight) -> Answer:
    """A producer asks who does not lead, as far as that one knows."""
    leader = sight["leader"]
    if not _is_up(sight, leader):
        return _IS_UP
    if not _takes_part(sight, leader) or sight.cell("view_leader", leader, sight["partition"]) != _NONE:
        return error(NOT_LEADER)
    return _NOBODY_LEADS


def _presumes(sight: Sight) -> Answer:
    leader = sight["leader"]
    nobody = sight.cell("view_leader", leader, sight["partition"]) == _NONE
    return _NOBODY_LEADS if _takes_part(sight, leader) and nobody else unasked()


def _has_told(sight: Sight) -> Answer:
    """A standby says again that it makes no snapshot."""
    return NOTHING if sight.cell("heard", sight["node"]) == Heard.idle else unasked()


def _inner(*guards: str, **others: Rule) -> dict[str, Rule]:
    return {**dict.fromkeys(guards, unasked()), **others}


def _not_driven(*guards: str) -> ActionBinding:
    """Nobody makes a snapshot."""
    return ActionBinding(dict.fromkeys(guards, BOUND))


def _asked(asker: str | None) -> Exchange:
    return Exchange(asker, None, Effect.ASKED)


_OF_LEADER: Final[dict[str, Rule]] = {
    **_APPENDS,
    "proposed": _NO_REQUEST,
    "exists": _UNKNOWN,
    "is_leader": error("INVALID_REQUEST"),
    "leader_epoch_matches": _not_fenced,
    "partition_epoch_matches": _not_outdated,
    "broker_epoch_matches": _STALE,
}
_SNAPSHOTS: Final = ("is_active", "none_active_since", "snapshots_made", "enough_records")

STEPPED: Final = Binding(
    "controller",
    {
        "elect_controller": ActionBinding(
            {"epoch_available": BOUND, **_inner("committed_is_kept", "within_log")}, waits=_always
        ),
        "hear_of_epoch": ActionBinding({"epoch_newer": unasked(FENCED), "epoch_elected": BOUND}),
        "resign": _not_driven(*_SNAPSHOTS),
        "activate": ActionBinding(_inner("is_elected", "none_active_since", "caught_up"), waits=_is_deposed),
        "commit": ActionBinding(_inner("leads", "epoch_is_newest", "something_pending")),
        "replay_record": ActionBinding(_inner("not_active", "record_stable"), waits=_none_leads),
        "register_broker": ActionBinding(
            {
                **_APPENDS,
                "starts": _IS_UP,
                "not_awaited": NOTHING,
                "session_over": error("DUPLICATE_BROKER_REGISTRATION"),
            },
            _asked("broker"),
            waits=_is_doubted,
        ),
        "hear_registration": ActionBinding(_inner("awaits_answer", "registration_stable")),
        "unfence_broker": ActionBinding(
            {
                **_APPENDS,
                "runs": _IS_UP,
                "broker_epoch_matches": _STALE,
                "caught_up": NOTHING,
                "is_fenced": NOTHING,
            },
            _asked("broker"),
            waits=_lacks_room,
        ),
        "fence_broker": ActionBinding({**_DECIDES, **_inner("is_unfenced", "may_succeed"), "log_not_full": BOUND}),
        "request_shutdown": ActionBinding(
            {
                **_DECIDES,
                "log_not_full": BOUND,
                "removals_asked": BOUND,
                "runs": _IS_UP,
                "broker_epoch_matches": unasked("STALE_BROKER_EPOCH"),
                "is_unfenced": unasked(),
            },
            waits=_leads,
        ),
        "stop_broker": ActionBinding({**_DECIDES, **_inner("is_fenced", "nothing_pending"), "wants_to_stop": _IS_UP}),
        "crash_broker": ActionBinding({"runs": _IS_UP}),
        "replay_metadata": ActionBinding({"runs": _IS_UP, "record_stable": unasked()}, waits=_none_leads),
        "load_snapshot": _not_driven("runs", "is_behind"),
        "create_topic": ActionBinding(
            {
                **_APPENDS,
                "id_is_new": _id_is_drawn,
                "leader_unfenced": unasked("INVALID_REPLICATION_FACTOR", "INVALID_REPLICA_ASSIGNMENT"),
                "none_shuts_down": BOUND,
            },
            _asked(None),
            waits=_lacks_brokers,
        ),
        "remove_topic": ActionBinding({**_APPENDS, "removals_asked": BOUND, "exists": _UNKNOWN}, _asked(None)),
        "elect_leader": ActionBinding(
            {
                **_DECIDES,
                "log_not_full": BOUND,
                "exists": unasked("UNKNOWN_TOPIC_OR_PARTITION"),
                "none_leads": _OPERATOR,
                **dict.fromkeys(
                    ("in_isr", "is_unfenced", "stays", "not_doubted"), unasked("PREFERRED_LEADER_NOT_AVAILABLE")
                ),
            },
            waits=_is_led_by_choice,
        ),
        "propose_expand": ActionBinding(
            _inner("nothing_proposed", "outside_isr", "caught_up", "known_unfenced", presumes_leadership=_presumes)
        ),
        "propose_shrink": ActionBinding(
            _inner("nothing_proposed", "in_isr", presumes_leadership=_presumes, not_leader_itself=ITSELF),
            waits=_may_be_caught_up,
        ),
        "alter_partition": ActionBinding({**_OF_LEADER, "is_eligible": error("INELIGIBLE_REPLICA")}, _asked("leader")),
        # A leader that is refused holds on to whom it has named until the partition epoch has moved on.
        "refuse_member": ActionBinding(
            {name: unasked() for name in (*_OF_LEADER, "joins", "not_eligible") if name != "log_not_full"},
            waits=_always,
        ),
        "leader_write": ActionBinding(
            {"presumes_leadership": _writes, "not_acknowledged": BOUND, "not_written": BOUND}
        ),
        "follower_fetch": ActionBinding(
            _inner("takes_part", "follows_leader", "epoch_not_fenced", "differs", presumes_leadership=_presumes)
        ),
        "acknowledge": ActionBinding(
            _inner("written", "not_acknowledged", "isr_has_it", presumes_leadership=_presumes)
        ),
        "heartbeat": ActionBinding(
            {
                **_ACTS,
                "another": ITSELF,
                "epoch_matches": unasked(),
                "order_taken": BOUND,
                "something_new": _has_told,
            }
        ),
        "order_snapshot": _not_driven(*_SNAPSHOTS, "another", "none_makes_one", "none_has_fallen_behind"),
        "begin_snapshot": _not_driven("ordered", "is_standby", "not_making_one", "of_own_epoch"),
        "drop_order": _not_driven("ordered", "not_taken"),
        "begin_own_snapshot": _not_driven(*_SNAPSHOTS, "none_makes_one"),
        "finish_snapshot": _not_driven("makes_one", "not_active"),
    },
    # Else no run is planned as far as where an ISR is asked for: what lags behind comes by chance.
    prompt=frozenset({"activate", "commit", "replay_record", "hear_registration", "replay_metadata", "heartbeat"}),
)
"""For ``kip-631-safe`` and ``isr-changes``, where no snapshots are made."""
