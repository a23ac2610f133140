"""One vote of each quorum node in each epoch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from ..checker import CheckResult
from ..contradiction import Contradiction
from ..event_kind import EventKind
from ..incarnations import Incarnations
from ..observation import Observation
from ..partition_timeline import PartitionTimeline

K = EventKind


class VoteChecker:
    """Compare the votes of each quorum node in one epoch."""

    name = "two_votes_in_one_epoch"
    title = "each quorum node votes once in an epoch"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Group the votes by node and epoch; a pre-vote binds nobody."""
        incarnations = Incarnations.of(timeline)
        votes: dict[tuple[object, int, int], dict[int, Observation]] = defaultdict(dict)
        comparisons = 0
        for seen in timeline.observations:
            vote = _vote_of(seen)
            if vote is None or seen.node is None or seen.leader_epoch is None:
                continue
            known = votes[incarnations[seen], seen.node, seen.leader_epoch]
            comparisons += bool(known)
            known.setdefault(vote, seen)
        found = [
            Contradiction(
                check=self.name,
                partition=timeline.partition,
                message=(
                    f"node {node} votes in epoch {epoch} for "
                    + " and for ".join(f"node {each} ({known[each].where})" for each in sorted(known))
                    + ("; a cluster that was formatted in between may do so" if _far_apart(known.values()) else "")
                ),
                evidence=tuple(known[each] for each in sorted(known)),
                verdict="unknown" if _far_apart(known.values()) else "violated",
            )
            for (_, node, epoch), known in sorted(votes.items(), key=lambda each: each[0][1:])
            if len(known) > 1
        ]
        return CheckResult(comparisons, tuple(found))


_AN_HOUR = 3_600_000


def _far_apart(votes: Collection[Observation]) -> bool:
    """Whether the cluster may have been formatted between the votes: its epochs begin again."""
    times = [each.time for each in votes if each.time is not None]
    return len(times) < len(votes) or max(times) - min(times) > _AN_HOUR


def _vote_of(seen: Observation) -> int | None:
    if seen.kind is K.QUORUM_ROLE:
        return seen.voted_for
    if seen.kind is K.VOTE and seen.outcome == "ok" and seen.role is None:
        return seen.leader
    return None
