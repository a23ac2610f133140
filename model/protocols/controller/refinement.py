"""How the model's state is seen as one of ``impl_spec.py``, by which that text is held against ``kip-631-safe``.

The model has the log, who has replayed how much of it, and one request of each leader. The running text has the image
that the newest leader's whole log comes to. A record before the first one registers whoever is there at first, so that
offsets are one more then. A process of a broker is told by the offset at which it registers, or would. What a request
says is what is so when it is sent; what its sender wants, and whether it is a process that has registered and was not
answered, is tried both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...core.algebra import Algebra, Value, View
from ...explore.simulate import CellMap, Changes, Relation
from ..logs import OFFSET
from .image import broker_epoch, prefix_image
from .impl_state import OF_LOG, Role
from .impl_state import Run as RunningRun
from .state import NODE, PARTITION, Kind, Run
from .state import Role as ModelRole

PROCESSES: Final = ("leave_office", "stop_controller", "start_controller", "restart", "append_other")
"""What the model has no step for: a controller that stops is one that nobody hears of, and configs are no records."""


def _is_away(k: Algebra, s: View, broker: Value) -> Value:
    return k.any(s.run[broker] == Run.stopped, s.run[broker] == Run.lost)


def _of_log(k: Algebra, s: View) -> CellMap:
    """What the log of the newest epoch's leader comes to."""
    end, shift = s.leader_end, k.c.bootstrapped
    image = prefix_image(k, s, end)
    states = {p: image.partition(p) for p in range(k.c.partitions)}

    def epoch(broker: Value) -> Value:
        return k.ite(k.member(broker, image.registered), broker_epoch(k, s, end, broker) + shift, -1)

    def shut_down_at(broker: Value) -> Value:
        def is_it(o: Value) -> Value:
            return k.all(o < end, s.record_kind[o] == Kind.shut_down, s.record_broker[o] == broker)

        return k.ite(k.member(broker, image.shutting_down), k.last(OFFSET, is_it, -1) + shift, -1)

    def leads(node: Value) -> Value:
        return k.all(s.role[node] != ModelRole.standby, s.node_epoch[node] == s.newest_epoch)

    return {
        "newest_epoch": lambda: s.newest_epoch,
        "leads": lambda: k.last(NODE, leads, -1),
        "end": lambda: end + shift,
        "stable": lambda: s.stable + shift,
        "registered": lambda: image.registered,
        "unfenced": lambda: image.unfenced,
        "shutting_down": lambda: image.shutting_down,
        "alive": lambda: image.unfenced & ~image.shutting_down,
        "broker_epoch": epoch,
        "incarnation": epoch,
        "shutdown_offset": shut_down_at,
        "topics": lambda: k.last(PARTITION, lambda p: s.created[p] == 1, -1) + 1,
        "topic": lambda p: _topic(k, p, states[p].leader_epoch),
        "leader": lambda p: states[p].leader,
        "leader_epoch": lambda p: states[p].leader_epoch,
        "partition_epoch": lambda p: states[p].partition_epoch,
        "isr": lambda p: states[p].isr,
    }


def _topic(k: Algebra, partition: Value, leader_epoch: Value) -> Value:
    """The id of the only topic that a partition of the model ever has."""
    return k.ite(leader_epoch == -1, -1, partition)


def _of_controllers(k: Algebra, s: View) -> CellMap:
    shift = k.c.bootstrapped
    return {
        "role": lambda n: k.ite(s.role[n] == ModelRole.active, Role.active, Role.standby),
        "node_epoch": lambda n: s.node_epoch[n],
        "node_end": lambda n: k.max(s.node_applied[n], s.stable) + shift,
        # In the model whoever is active has replayed what is pending; here its state machine is that of what is stable.
        "node_applied": lambda n: k.min(s.node_applied[n], s.stable) + shift,
        "snapshot_end": lambda n: k.max(s.snapshot_end[n], 0) + shift,
    }


def _of_brokers(k: Algebra, s: View) -> CellMap:
    shift = k.c.bootstrapped

    def away(broker: Value) -> Value:
        return _is_away(k, s, broker)

    def process(broker: Value) -> Value:
        starts = k.ite(s.awaited[broker] != -1, s.awaited[broker], s.leader_end)
        return k.ite(away(broker), starts, s.own_epoch[broker]) + shift

    def own(broker: Value) -> Value:
        return k.ite(away(broker), -1, s.own_epoch[broker] + shift)

    return {
        "run": lambda b: k.ite(away(b), RunningRun.down, RunningRun.running),
        "own_epoch": own,
        "view_end": lambda b: s.view_applied[b] + shift,
        "view_applied": lambda b: s.view_applied[b] + shift,
        "has_told": lambda b: k.ite(away(b), 0, s.view_applied[b] + shift),
        "as_incarnation": process,
        "beat_epoch": own,
        "beat_end": lambda b: s.view_applied[b] + shift,
        "wants_fence": lambda _b: 0,
        "wants_stop": lambda b: k.ite(s.run[b] == Run.stopping, 1, 0),
    }


def _of_requests(k: Algebra, s: View) -> CellMap:
    """The ISR that a leader has asked for, and whom it means."""
    shift = k.c.bootstrapped

    def joins(b: Value, p: Value) -> Value:
        return k.negate(k.member(s.proposed[b, p], s.view_isr[b, p]))

    def asked(b: Value, p: Value, value: Value) -> Value:
        return k.ite(s.proposed[b, p] != k.NONE, value, -1)

    def isr(b: Value, p: Value) -> Value:
        member, known = s.proposed[b, p], s.view_isr[b, p]
        changed = k.ite(joins(b, p), k.with_member(known, member), k.without_member(known, member))
        return k.ite(member != k.NONE, changed, k.EMPTY)

    def member_epoch(b: Value, p: Value, member: Value) -> Value:
        return k.ite(k.all(joins(b, p), s.proposed[b, p] == member), s.proposed_epoch[b, p] + shift, -1)

    return {
        "asks_epoch": lambda b, p: asked(b, p, s.own_epoch[b] + shift),
        "asks_topic": lambda b, p: asked(b, p, _topic(k, p, s.view_leader_epoch[b, p])),
        "asks_leader_epoch": lambda b, p: asked(b, p, s.view_leader_epoch[b, p]),
        "asks_partition_epoch": lambda b, p: asked(b, p, s.view_partition_epoch[b, p]),
        "asks_isr": isr,
        "asks_member_epoch": member_epoch,
    }


def cells(k: Algebra, s: View) -> CellMap:
    """Every variable of the running text, of a state of the model."""
    return {**_of_log(k, s), **_of_controllers(k, s), **_of_brokers(k, s), **_of_requests(k, s)}


def _views(k: Algebra, s: View) -> Sequence[Changes]:
    found: list[Changes] = []
    image = prefix_image(k, s, s.leader_end)
    epoch = _of_log(k, s)["broker_epoch"]
    for broker in range(k.c.replicas):
        away = bool(_is_away(k, s, broker))
        if away and s.awaited[broker] == -1 and k.member(broker, image.registered):
            found.append({f"as_incarnation[{broker}]": int(epoch(broker))})
        if not away:
            found += [{f"wants_fence[{broker}]": 1}, {f"wants_stop[{broker}]": 1}]
            if not k.member(broker, image.unfenced):
                stays = k.with_member(image.shutting_down, broker)
                found.append({f"wants_stop[{broker}]": 1, "shutting_down": int(stays)})
    return found


RELATION: Final = Relation(
    cells,
    _views,
    # Of who is fenced it is no matter whether it shuts down, and the alive are those who do not.
    compared={*OF_LOG, "role", "own_epoch"} - {"newest_epoch", "leads", "shutting_down", "shutdown_offset"},
    but=PROCESSES,
    grows="end",
    is_full=lambda k, s: s.end == k.c.log_size,
)
