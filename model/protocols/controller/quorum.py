"""The metadata quorum and its log: elections of controllers, appends, what is stable, and who replays what.

The quorum is one log, by the rules of ``metadata_log.py``, where it stands why. Whoever is elected has some of it; what
it lacks may come back with the next one's election, until it is active.

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
from .metadata_log import (
    CONTROLLER_EPOCH,
    activation,
    appended,
    commitment,
    election,
    has_room,
    may_activate,
    may_be_elected,
    may_commit,
    works,
)
from .state import NODE, Heard, Resigns, Role, controller


def acts(s: View, node: Value) -> Iterator[tuple[str, Value]]:
    """Guards: the node is the active controller. Whoever is not answers NOT_CONTROLLER.

    One that is deposed and has not heard of it is active all the same, and in vain once another one is.
    """
    yield "is_active", s.role[node] == Role.active
    yield from works(s, s.node_epoch[node])


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
    images = hold("node", node, after), hold("prefix", at, after)
    yield from has_room(k, s)
    yield s.update(**appended(k, s, s.node_epoch[node]), **merge(writes, *images, also))


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
    yield from may_be_elected(k, s, kept)
    own: Writes = {"node_epoch": {node: s.newest_epoch + 1}, "role": {node: Role.elected}}
    yield s.update(**election(s, kept), **merge(own, left_office(k, s, node)))


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
    epoch, applied = s.node_epoch[node], s.node_applied[node]
    yield from may_activate(s, epoch, applied)
    yield s.update(
        role={node: Role.active}, heard={EVERY: Heard.unknown}, awaited={EVERY: -1}, **activation(epoch, applied)
    )


@controller.action(node=NODE)
def commit(_k: Algebra, s: View, node: Value) -> Step:
    """One more record is stable: a majority has it, and the leader of the newest epoch has it and counts it."""
    yield "leads", s.role[node] != Role.standby
    yield "epoch_is_newest", s.node_epoch[node] == s.newest_epoch
    yield from may_commit(s)
    yield s.update(**commitment(s))


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
