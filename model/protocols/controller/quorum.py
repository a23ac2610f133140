"""The metadata quorum and its log: elections of controllers, appends, what is stable, and who replays what.

**What is taken for granted, and why.** ``snapshots`` has the quorum's log in full: votes, replication, truncation,
crashes. Here it is one log, which keeps these promises of that one (KIP-595, KIP-630). A committed record stays, at its
offset: ``stable`` only rises, and whoever is elected has all below it (``no_committed_record_lost``,
``committed_below_high_watermark``). An epoch has one leader, and every log is the beginning of the log of some epoch's
leader (``logs_match``). A leader writes the record that begins its epoch at once (KIP-595's LeaderChangeMessage, which
is none of the records here), and is active, and appends others, when that one is committed.

So the log here is that of the controller that became active last, up to the end that it has itself. A majority has the
record that began its epoch, so that nobody is elected without it, and whoever is elected later has some of that log,
and no record more as long as it is not active: ``kept``, any end that is not below ``stable``. What is behind its end
is not gone. Epoch 2's leader may lack what epoch 1's has appended; if the record that begins epoch 2 is not committed
either, then a third leader may be elected with all of it. And as long as nobody else is active, the controller of epoch
1 may be at work: it has not heard of epoch 2, and what it appends now may come back, too. All that is over when the
next one becomes active: then a majority has a record of its epoch, no log without that one is elected, and the log ends
where that one's does. What a controller appends after that never becomes stable: it is nothing here. Nor is it told
here in which epoch a record was counted: a deposed leader may count late what a majority had before the next election,
and what it counts is in the newest leader's log, too.

The active controller appends and has replayed at once; others replay what is stable. Whoever is elected commits the
rest of its log and replays it before it is active, as shipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...core.algebra import EVERY, Algebra, Step, Value, View
from ..logs import END_OFFSET
from .image import (
    NOTHING,
    Record,
    Writes,
    choose_image,
    first_image,
    hold,
    image_of,
    merge,
    record_at,
    replay,
    with_changes,
)
from .state import CONTROLLER_EPOCH, NODE, Heard, Resigns, Role, controller


def acts(s: View, node: Value) -> Iterator[tuple[str, Value]]:
    """Guards: the node is the active controller. Whoever is not answers NOT_CONTROLLER.

    One that is deposed and has not heard of it is active all the same, and in vain once another one is.
    """
    yield "is_active", s.role[node] == Role.active
    yield "none_active_since", s.node_epoch[node] == s.active_epoch


def append(k: Algebra, s: View, node: Value, record: Record, also: Mapping[str, dict[Value, Value]] = NOTHING) -> Step:
    """The active controller appends a record and replays it: the last guard, and the update. ``also``: other cells."""
    at = s.end
    image = image_of(s, "node", node)
    writes: Writes = {
        "record_kind": {at: record.kind},
        "record_broker": {at: record.broker},
        "record_partition": {at: record.partition},
        "record_leader": {at: record.leader},
        "record_isr": {at: record.isr},
        "node_applied": {node: at + 1},
    }
    if k.rules.by_changes:
        record, change = with_changes(k, image, record)
        writes["change_leader"] = {(at, EVERY): lambda p: change(p)[0]}
        writes["change_isr"] = {(at, EVERY): lambda p: change(p)[1]}
    after = replay(k, image, record)
    leader_end = k.ite(s.node_epoch[node] == s.newest_epoch, at + 1, s.leader_end)
    yield "log_not_full", at < k.c.log_size
    images = hold("node", node, after), hold("prefix", at, after)
    yield s.update(end=at + 1, leader_end=leader_end, **merge(writes, *images, also))


def reloaded(k: Algebra, s: View, node: Value, when: Value) -> Writes:
    """A node loads its latest snapshot, or begins with nothing, and replays the log behind it anew."""
    has = s.snapshot_end[node] != -1
    loaded = choose_image(k, has, image_of(s, "snapshot", node), first_image(k, s))
    kept = choose_image(k, when, loaded, image_of(s, "node", node))
    end = k.ite(when, k.max(s.snapshot_end[node], 0), s.node_applied[node])
    return merge(hold("node", node, kept), {"node_applied": {node: end}})


def left_office(k: Algebra, s: View, node: Value) -> Writes:
    """What changes in the memory of a node that may have been active: what was pending there is gone."""
    return reloaded(k, s, node, s.role[node] == Role.active) if k.rules.reloads else {}


@controller.action(node=NODE, kept=END_OFFSET)
def elect_controller(k: Algebra, s: View, node: Value, kept: Value) -> Step:
    """A node is elected for a new epoch with a log that ends at ``kept``, of that of who was active last."""
    yield "epoch_available", s.newest_epoch < k.c.max_controller_epoch
    yield "committed_is_kept", s.stable <= kept
    yield "within_log", kept <= s.end
    epoch = s.newest_epoch + 1
    own: Writes = {"node_epoch": {node: epoch}, "role": {node: Role.elected}}
    yield s.update(newest_epoch=epoch, leader_end=kept, **merge(own, left_office(k, s, node)))


@controller.action(node=NODE, epoch=CONTROLLER_EPOCH)
def hear_of_epoch(k: Algebra, s: View, node: Value, epoch: Value) -> Step:
    """A node hears that there is a newer epoch: it is a standby, with what it loads anew if it was active."""
    yield "epoch_newer", s.node_epoch[node] < epoch
    yield "epoch_elected", epoch <= s.newest_epoch
    own: Writes = {"node_epoch": {node: epoch}, "role": {node: Role.standby}}
    yield s.update(**merge(own, left_office(k, s, node)))


@controller.action(node=NODE, present=lambda rules: rules.resigns is Resigns.FIRST)
def resign(k: Algebra, s: View, node: Value) -> Step:
    """The active controller gives up leadership, so that it may make a snapshot ("Snapshot Implementation")."""
    yield from acts(s, node)
    yield "snapshots_made", k.c.snapshots == 1
    yield "enough_records", k.max(s.snapshot_end[node], 0) < s.stable
    own: Writes = {"role": {node: Role.standby}}
    yield s.update(**merge(own, left_office(k, s, node)))


@controller.action(node=NODE)
def activate(_k: Algebra, s: View, node: Value) -> Step:
    """Whoever is elected has replayed its whole log, all of it stable, and takes over: what it lacks is gone for good.

    What the former active controller knew by heartbeats alone, and whom it owed an answer, is gone with it. One that is
    deposed by now becomes active, too, where the record that begins its epoch was stable before: then the leader of the
    newest epoch has the same log.
    """
    yield "is_elected", s.role[node] == Role.elected
    yield "none_active_since", s.active_epoch < s.node_epoch[node]
    yield "caught_up", s.node_applied[node] == s.leader_end
    yield s.update(
        role={node: Role.active},
        active_epoch=s.node_epoch[node],
        end=s.node_applied[node],
        heard={EVERY: Heard.unknown},
        awaited={EVERY: -1},
    )


@controller.action(node=NODE)
def commit(_k: Algebra, s: View, node: Value) -> Step:
    """One more record is stable: a majority has it, and the leader of the newest epoch has it and counts it."""
    yield "leads", s.role[node] != Role.standby
    yield "epoch_is_newest", s.node_epoch[node] == s.newest_epoch
    yield "something_pending", s.stable < s.leader_end
    yield s.update(stable=s.stable + 1)


def replayable(k: Algebra, s: View, applied: Value) -> Value:
    """There is a record behind this end that a standby or a broker may replay."""
    return applied < (s.stable if k.rules.stable_only else s.end)


@controller.action(node=NODE)
def replay_record(k: Algebra, s: View, node: Value) -> Step:
    """A standby, or who was elected, replays the next stable record."""
    applied = s.node_applied[node]
    yield "not_active", s.role[node] != Role.active
    yield "record_stable", replayable(k, s, applied)
    after = replay(k, image_of(s, "node", node), record_at(k, s, applied))
    yield s.update(**merge(hold("node", node, after), {"node_applied": {node: applied + 1}}))
