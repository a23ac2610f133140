"""Unclean elections whose loss no line shows."""

from __future__ import annotations

from ..checker import CheckResult
from ..contradiction import Contradiction
from ..elections import unclean_elections
from ..incarnations import Incarnations
from ..partition_timeline import PartitionTimeline


class UncleanElectionChecker:
    """Report each unclean election: it may lose committed records, and logs alone cannot exclude it."""

    name = "unclean_election"
    title = "no leader is elected from outside the ISR"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Name the elections; the losses that lines prove are violations of other checks."""
        elections = unclean_elections(timeline, Incarnations.of(timeline))
        found = [
            Contradiction(
                check=self.name,
                partition=timeline.partition,
                verdict="unknown",
                message=f"{each.text}; the lines do not show all that it lost of {timeline.partition}",
                evidence=(each.source,),
                cause=each.source,
            )
            for each in elections
        ]
        return CheckResult(len(found), tuple(found))
