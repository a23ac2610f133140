"""Snapshots, at most one in the making: whom the active controller tells to make one, and when.

What a node does with snapshots it tells by its heartbeats, and the active controller keeps it in memory alone ("soft
state"): it is in no log, and gone when another node is elected. An order travels in the answer to a heartbeat. The text
says that the active controller tells no node "if it is aware that another node is also snapshotting": who has just been
elected is aware of nothing, and an order of its predecessor may still be on its way. So it waits here until all nodes
have told it, and a node takes no order of an epoch that is over.

To make one of its own the active controller gives up leadership first (``resign``), as in KIP-631: what it has in
memory is pending in part. KIP-630 rejects that. Its controller makes one while it works, and for that keeps the state
at the last stable offset beside (``concurrent-snapshots``); it needs no election for it, and one voter alone can do it.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Step, Value, View
from .image import Image, choose_image, hold, image_of, merge, prefix_image
from .quorum import acts
from .state import NODE, Heard, Resigns, Role, Rules, controller


def _works_on(rules: Rules) -> bool:
    """The active controller of the variant makes snapshots while it is active."""
    return rules.resigns is not Resigns.FIRST


@controller.action(node=NODE, active=NODE)
def heartbeat(k: Algebra, s: View, node: Value, active: Value) -> Step:
    """A node tells the active controller whether it makes a snapshot."""
    yield from acts(s, active)
    yield "another", node != active
    yield "epoch_matches", s.node_epoch[node] == s.node_epoch[active]
    yield "order_taken", s.order_epoch[node] != s.node_epoch[node]
    now = k.ite(s.making[node] == 1, Heard.busy, Heard.idle)
    yield "something_new", s.heard[node] != now
    yield s.update(heard={node: now})


def _none_makes_one(k: Algebra, s: View, active: Value) -> Value:
    """As far as the active controller has heard, no other node makes a snapshot."""

    def idle(node: Value) -> Value:
        said = s.heard[node] == Heard.idle if k.rules.hears_first else s.heard[node] != Heard.busy
        return k.any(node == active, said)

    return k.all(s.making[active] == 0, k.forall(NODE, idle))


@controller.action(active=NODE, node=NODE)
def order_snapshot(k: Algebra, s: View, active: Value, node: Value) -> Step:
    """The active controller tells a standby to make a snapshot; all others have caught up."""
    yield from acts(s, active)
    yield "snapshots_made", k.c.snapshots == 1
    yield "another", node != active
    yield "none_makes_one", _none_makes_one(k, s, active)
    yield "enough_records", k.max(s.snapshot_end[node], 0) < s.node_applied[node]
    yield (
        "none_has_fallen_behind",
        k.forall(NODE, lambda n: k.any(n == active, n == node, s.node_applied[n] == s.stable)),
    )
    yield s.update(order_epoch={node: s.node_epoch[active]}, heard={node: Heard.busy})


@controller.action(node=NODE)
def begin_snapshot(k: Algebra, s: View, node: Value) -> Step:
    """A standby takes the order, and begins."""
    yield "ordered", s.order_epoch[node] != -1
    yield "is_standby", s.role[node] == Role.standby
    if k.rules.of_own_epoch:
        yield "of_own_epoch", s.order_epoch[node] == s.node_epoch[node]
    yield "not_making_one", s.making[node] == 0
    yield s.update(making={node: 1}, order_epoch={node: -1})


@controller.action(node=NODE)
def drop_order(k: Algebra, s: View, node: Value) -> Step:
    """A node lets go of an order that it does not take: of an epoch that is over, or to whom is no standby."""
    yield "ordered", s.order_epoch[node] != -1
    outdated = s.order_epoch[node] < s.node_epoch[node] if k.rules.of_own_epoch else s.making[node] == 1
    yield "not_taken", k.any(outdated, s.role[node] != Role.standby)
    yield s.update(order_epoch={node: -1})


@controller.action(node=NODE, present=_works_on)
def begin_own_snapshot(k: Algebra, s: View, node: Value) -> Step:
    """The active controller begins a snapshot while it goes on."""
    yield from acts(s, node)
    yield "snapshots_made", k.c.snapshots == 1
    yield "none_makes_one", _none_makes_one(k, s, node)
    yield "enough_records", k.max(s.snapshot_end[node], 0) < s.stable
    yield s.update(making={node: 1})


def _content(k: Algebra, s: View, node: Value) -> tuple[Value, Image]:
    """What a node's snapshot includes, and the state that it has: all records that describe it, and no more."""
    applied, image = s.node_applied[node], image_of(s, "node", node)
    if k.rules.resigns is Resigns.NEVER:
        active = s.role[node] == Role.active
        stable = k.min(applied, s.stable)
        applied, image = k.ite(active, stable, applied), choose_image(k, active, prefix_image(k, s, stable), image)
    if not k.rules.says_fenced:
        # BrokerRecord has no field for it, and whoever is registered is fenced at first.
        image = Image(image.registered, k.EMPTY, k.EMPTY, image.partition)
    return applied, image


@controller.action(node=NODE)
def finish_snapshot(k: Algebra, s: View, node: Value) -> Step:
    """A node's snapshot is complete."""
    yield "makes_one", s.making[node] == 1
    if k.rules.resigns is Resigns.FIRST:
        yield "not_active", s.role[node] != Role.active
    end, image = _content(k, s, node)
    yield s.update(making={node: 0}, snapshot_end={node: end}, **merge(hold("snapshot", node, image)))
