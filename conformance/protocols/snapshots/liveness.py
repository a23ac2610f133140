"""What has come of a quorum's snapshots when nothing moves any more, and the model has no word for (KIP-630).

Whoever has applied more than the minimum of records behind its latest snapshot has made another ("When to Snapshot"); a
leader's log begins where its latest snapshot ends, as all that are live have replicated it ("When to Increase the Log
Begin Offset"), and a follower's there too, once a snapshot of its own reaches it; snapshots from before the LBO are
gone ("When to Delete Snapshots").
"""

from __future__ import annotations

from collections.abc import Mapping

from ....impl.quorum.node import QuorumNode


def not_come(there: Mapping[int, QuorumNode], minimum_records: int) -> str | None:
    """What has not come of it at nodes that are well, in words that follow "and yet"; None where all has."""
    leader = max((node for node in there.values() if node.is_leader), key=lambda node: node.epoch, default=None)
    for number, node in there.items():
        replica = node.replica
        begin, latest = replica.begin, replica.snapshots.latest_end
        if replica.fetching is not None:
            continue
        if replica.applied - latest > minimum_records:
            return f"node {number} has applied the records below {replica.applied}, and its snapshots end at {latest}"
        old = next((each for each in replica.snapshots.ids if each.end_offset < begin), None)
        if old is not None:
            return f"node {number} has a snapshot up to {old.end_offset}, and its log begins at {begin}"
        if leader is None:
            continue
        follows = node.leader_id == leader.address and node.epoch == leader.epoch
        wanted = latest if node is leader else leader.replica.begin if follows else begin
        if begin < wanted <= latest:
            return f"the log of node {number} begins at {begin}, and could begin at {wanted}"
    return None
