"""What has come of snapshots when nothing moves any more, and the model has no word for (KIP-631, KIP-630).

"The currently active controller will monitor the offset of the latest snapshot made by all replicas, including itself":
each node tells it by heartbeats, and one after another is told to make one. So whoever is well, and has applied more
than the minimum of records behind its latest snapshot, has made another in the end. The minimum is that which holds
while members of the quorum have fallen behind, the larger one.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....impl.quorum.node import QuorumNode


def not_come(well: Mapping[int, QuorumNode], minimum_records: int) -> str | None:
    """What has not come of it, in words that follow "and yet"; None where all has. There is an active controller."""
    for number, node in well.items():
        replica = node.replica
        latest = replica.snapshots.latest_end
        if replica.fetching is None and replica.applied - latest > minimum_records:
            return f"node {number} has applied the records below {replica.applied}, and its snapshots end at {latest}"
    return None
