"""What ``tiering`` promises in the end, and under which fairness.

Nothing obliges the controller to elect, and no retention is obliged to run: of the steps of the fair set none is about
failures, writes, deletions, or tiering switched on or off.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ...core.protocol import Fair, Form
from .state import leads_newest, tiering

tiering.assume_fair(
    "fair-cluster",
    (
        Fair("become_follower", per=("follower",)),
        Fair("follower_fetch", per=("follower",)),
        Fair("leader_inc_high_watermark"),
        Fair("leader_expand_isr", strong=True, per=("follower",)),
        Fair("find_highest_remote_offset", per=("leader",)),
        Fair("truncate_fully", per=("follower",)),
        Fair("build_to_local_start", per=("follower",)),
        Fair("build_to_epuo", per=("follower",)),
        Fair("start_at_local_start", per=("follower",)),
        Fair("start_at_log_start", per=("follower",)),
    ),
    "followers hear of their leader and fetch, its remote log manager runs, and it takes in who has caught up",
)


@tiering.eventually(Form.LEADS_TO, replica=REPLICA)
def empty_follower_joins(k: Algebra, s: View, replica: Value) -> tuple[Value, Value]:
    """An empty follower is in the ISR in the end, or leads, or is replaced once more, or tiering is switched off."""
    joined = k.any(k.member(replica, s.isr), leads_newest(k, s, replica))
    given_up = k.any(s.leader_epoch[replica] == -1, s.tiered == 0)
    return k.all(s.leo[replica] == 0, k.negate(given_up)), k.any(joined, given_up)
