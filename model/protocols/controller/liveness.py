"""What ``controller`` promises in the end, and under which fairness.

Nothing obliges the cluster to elect a controller, and the log has an end: a promise ends where nobody leads the newest
controller epoch, or where the log is full. Of the steps of the fair set none is about failures, producers or topics.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ...core.protocol import Fair, Form
from ..logs import OFFSET
from .image import prefix_image
from .state import NODE, PARTITION, Role, Run, controller, is_up

controller.assume_fair(
    "fair-cluster",
    (
        Fair("activate"),
        Fair("commit"),
        Fair("replay_record", per=("node",)),
        Fair("replay_metadata", per=("broker",)),
        Fair("unfence_broker", strong=True, per=("broker",)),
        Fair("alter_partition", strong=True, per=("leader", "partition")),
        Fair("refuse_member", strong=True, per=("leader", "partition")),
    ),
    "whoever leads commits, everyone replays what is stable, and the active controller answers heartbeats and leaders",
)


def _is_over(k: Algebra, s: View) -> Value:
    """There is no room for a record, or no controller for one."""
    leads = k.exists(NODE, lambda n: k.all(s.role[n] != Role.standby, s.node_epoch[n] == s.newest_epoch))
    return k.any(s.end == k.c.log_size, k.negate(leads))


@controller.eventually(Form.LEADS_TO, broker=REPLICA)
def live_broker_is_unfenced(k: Algebra, s: View, broker: Value) -> tuple[Value, Value]:
    """A broker that runs is unfenced in the end, or it does not run any more."""
    unfenced = k.member(broker, prefix_image(k, s, s.end).unfenced)
    return s.run[broker] == Run.running, k.any(unfenced, s.run[broker] != Run.running, _is_over(k, s))


@controller.eventually(Form.LEADS_TO, broker=REPLICA, offset=OFFSET)
def view_converges(k: Algebra, s: View, broker: Value, offset: Value) -> tuple[Value, Value]:
    """A broker that runs has each stable record in its metadata in the end."""
    runs = is_up(k, s, broker)
    return k.all(runs, offset < s.stable), k.any(offset < s.view_applied[broker], k.negate(is_up(k, s, broker)))


@controller.eventually(Form.LEADS_TO, leader=REPLICA, partition=PARTITION)
def proposal_is_decided(k: Algebra, s: View, leader: Value, partition: Value) -> tuple[Value, Value]:
    """An ISR that a leader proposes is taken up or refused in the end, and the leader hears of it."""
    open_ = s.proposed[leader, partition] != k.NONE
    return open_, k.any(s.proposed[leader, partition] == k.NONE, _is_over(k, s))
