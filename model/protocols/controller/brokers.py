"""Brokers: registration and heartbeats, fencing, controlled shutdown, crashes, and the metadata that they replay.

A broker registers when it starts, is told its broker epoch when that is stable, replays the log up to its own
registration, and is unfenced by a heartbeat that names that epoch. It is fenced when its session is over, whether it
is there or not. A broker that crashes comes back with what it knew of the metadata, and without any data: the worst
that a crash may do. It says so as it registers, because its broker epoch is not in the file that an orderly stop leaves
(as shipped since KIP-966).
"""

from __future__ import annotations

from ...core.algebra import EVERY, Algebra, Step, Value, View
from ...core.domains import REPLICA
from .image import (
    Image,
    Writes,
    about_broker,
    about_fenced,
    broker_epoch,
    hold,
    image_of,
    merge,
    record_at,
    replay,
    succeeds,
)
from .quorum import acts, append, replayable
from .state import NODE, PARTITION, Kind, Run, controller, is_up


@controller.action(node=NODE, broker=REPLICA)
def register_broker(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """A broker that starts registers; the session of what it was before is over (BrokerRegistration)."""
    lost = s.run[broker] == Run.lost
    yield from acts(s, node)
    yield "starts", k.any(s.run[broker] == Run.stopped, lost)
    yield "not_awaited", s.awaited[broker] == -1
    yield "session_over", k.negate(k.member(broker, s.node_unfenced[node]))
    kind = k.ite(lost, Kind.register_unclean, Kind.register)
    yield from append(k, s, node, about_broker(k, kind, broker), {"awaited": {broker: s.end}})


@controller.action(broker=REPLICA)
def hear_registration(k: Algebra, s: View, broker: Value) -> Step:
    """A broker is told its broker epoch, and runs."""
    awaited = s.awaited[broker]
    yield "awaits_answer", awaited != -1
    if k.rules.answers_stable:
        yield "registration_stable", awaited < s.stable
    yield s.update(run={broker: Run.running}, own_epoch={broker: awaited}, awaited={broker: -1})


def names_own_epoch(k: Algebra, s: View, node: Value, broker: Value) -> Value:
    """The broker epoch of a request is that of the registration (STALE_BROKER_EPOCH else)."""
    known = s.own_epoch[broker] == broker_epoch(k, s, s.node_applied[node], broker)
    return k.all(k.member(broker, s.node_registered[node]), known)


@controller.action(node=NODE, broker=REPLICA)
def unfence_broker(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """The heartbeat of a broker that has replayed its own registration: it is unfenced."""
    yield from acts(s, node)
    yield "runs", s.run[broker] == Run.running
    yield "broker_epoch_matches", names_own_epoch(k, s, node, broker)
    yield "caught_up", s.own_epoch[broker] < s.view_applied[broker]
    yield "is_fenced", k.negate(k.member(broker, s.node_unfenced[node]))
    yield from append(k, s, node, about_broker(k, Kind.unfence, broker))


def _may_succeed(k: Algebra, s: View, node: Value, broker: Value, successor: Value) -> Value:
    """Whether somebody who is unfenced and stays leads some partition of a broker's when that is fenced."""
    alive = k.all(k.member(successor, s.node_unfenced[node]), k.negate(k.member(successor, s.node_shutting_down[node])))
    known = image_of(s, "node", node).partition
    return k.all(alive, k.exists(PARTITION, lambda p: succeeds(k, known(p), broker, successor)))


@controller.action(node=NODE, broker=REPLICA, successor=REPLICA)
def fence_broker(k: Algebra, s: View, node: Value, broker: Value, successor: Value) -> Step:
    """No heartbeat has come in time: the broker is out of every ISR, and its successor leads where it led.

    With itself as its successor nobody leads there: nobody else may.
    """
    nobody = k.negate(k.exists(REPLICA, lambda b: _may_succeed(k, s, node, broker, b)))
    yield from acts(s, node)
    yield "is_unfenced", k.member(broker, s.node_unfenced[node])
    yield "may_succeed", k.any(_may_succeed(k, s, node, broker, successor), k.all(successor == broker, nobody))
    leader = k.ite(successor == broker, k.NONE, successor)
    yield from append(k, s, node, about_fenced(k, broker, leader))


@controller.action(node=NODE, broker=REPLICA)
def request_shutdown(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """A heartbeat says that the broker wants to stop: it leads nothing new from now on (controlled shutdown)."""
    yield from acts(s, node)
    yield "removals_asked", k.c.removals == 1
    yield "runs", s.run[broker] == Run.running
    yield "broker_epoch_matches", names_own_epoch(k, s, node, broker)
    yield "is_unfenced", k.member(broker, s.node_unfenced[node])
    record = about_broker(k, Kind.shut_down, broker)
    yield from append(k, s, node, record, {"run": {broker: Run.stopping}})


@controller.action(node=NODE, broker=REPLICA)
def stop_broker(k: Algebra, s: View, node: Value, broker: Value) -> Step:
    """A heartbeat is answered with ShouldShutDown: the broker is fenced for good, and stops with its logs in order."""
    yield from acts(s, node)
    yield "wants_to_stop", s.run[broker] == Run.stopping
    yield "is_fenced", k.negate(k.member(broker, s.node_unfenced[node]))
    yield "nothing_pending", s.stable == s.end
    yield s.update(run={broker: Run.stopped})


@controller.action(broker=REPLICA)
def crash_broker(k: Algebra, s: View, broker: Value) -> Step:
    """A broker loses power, and with it what was not synced of its partitions: all."""
    yield "runs", is_up(k, s, broker)
    yield s.update(run={broker: Run.lost}, data={(broker, EVERY): -1})


def _took_up(k: Algebra, s: View, broker: Value, end: Value, image: Image) -> Writes:
    """A broker has other metadata: of a partition that is removed the data goes, and a proposal that is overtaken."""

    def removed(partition: Value) -> Value:
        return image.partition(partition).leader_epoch == -1

    def unchanged(partition: Value) -> Value:
        known, now = s.view_partition_epoch[broker, partition], image.partition(partition).partition_epoch
        return now == known

    row = broker, EVERY
    moved: Writes = {
        "view_applied": {broker: end},
        "view_reached": {broker: k.max(s.view_reached[broker], end)},
        "data": {row: lambda p: k.ite(removed(p), -1, s.data[broker, p])},
        "proposed": {row: lambda p: k.ite(unchanged(p), s.proposed[broker, p], k.NONE)},
        "proposed_epoch": {row: lambda p: k.ite(unchanged(p), s.proposed_epoch[broker, p], -1)},
    }
    return merge(hold("view", broker, image), moved)


@controller.action(broker=REPLICA)
def replay_metadata(k: Algebra, s: View, broker: Value) -> Step:
    """A broker replays the next stable record."""
    applied = s.view_applied[broker]
    yield "runs", is_up(k, s, broker)
    yield "record_stable", replayable(k, s, applied)
    after = replay(k, image_of(s, "view", broker), record_at(k, s, applied))
    yield s.update(**_took_up(k, s, broker, applied + 1, after))


@controller.action(broker=REPLICA, node=NODE)
def load_snapshot(k: Algebra, s: View, broker: Value, node: Value) -> Step:
    """A broker that has fallen behind a node's log loads that node's snapshot instead (KIP-630)."""
    end = s.snapshot_end[node]
    yield "runs", is_up(k, s, broker)
    yield "is_behind", s.view_applied[broker] < end
    yield s.update(**_took_up(k, s, broker, end, image_of(s, "snapshot", node)))
