"""The truncations that brokers' files prescribe, each with a word on whether its records were committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...traces.kafka.cross_checks import PartitionComparison
from ...traces.kafka.losses import NAME as LOSSES
from ...traces.kafka.partition import PartitionFiles
from ...traces.kafka.truncation import Truncation, effective_epochs
from ...traces.text import counted
from .files import Cluster


@dataclass(frozen=True)
class PrescribedTruncation:
    """A truncation that loses records of one replica. ``high_watermark``: the follower's own."""

    subject: str
    truncation: Truncation
    high_watermark: int | None
    loss_reported: bool
    """Whether a check reports these records as lost, so that a line of its own would repeat the fact."""

    @property
    def text(self) -> str:
        """``broker 1 as follower of broker 3 truncates to 2 and loses 8 records, all above ...``."""
        cut = self.truncation
        verb = "starts over at" if cut.rule == "reset" else "truncates to"
        condition = "" if cut.agrees_after is not False else ", and the logs still differ after it"
        lost = f"{cut.follower} as follower of {cut.leader} {verb} {cut.offset} and loses "
        return f"{lost}{counted(cut.records_lost, 'record')}{condition}; {self._committed}"

    @property
    def _committed(self) -> str:
        if self.high_watermark is None:
            return f"{self.truncation.follower} has no high watermark, so whether they were committed is unknown"
        if self.truncation.rule != "reset" and self.truncation.offset >= self.high_watermark:
            return f"none is below its high watermark {self.high_watermark}, so none is known to be committed"
        return f"those below its high watermark {self.high_watermark} were committed"


def prescribed_truncations(cluster: Cluster) -> list[PrescribedTruncation]:
    """Return the truncations that lose records, under the elected leader or else towards the newer leader epoch."""
    reported = {
        (result.subject, result.data.get("follower"))
        for result in cluster.report.checks
        if result.check == LOSSES and result.verdict != "holds" and not result.informative
    }
    found = []
    for comparison in cluster.report.comparisons:
        key = comparison.topic, comparison.partition
        files = {broker.label: broker.partitions[key] for broker in cluster.report.brokers if key in broker.partitions}
        subject = f"{comparison.topic}-{comparison.partition}"
        for cut in _due(comparison, files):
            if cut.records_lost:
                mark = files[cut.follower].high_watermark
                found.append(PrescribedTruncation(subject, cut, mark, (subject, cut.follower) in reported))
    return found


def _due(comparison: PartitionComparison, files: Mapping[str, PartitionFiles]) -> Sequence[Truncation]:
    """Those under the elected leader; without one, those whose leader does not have the older leader epoch."""
    elected = [each for each in comparison.truncations if each.by_controller]
    if elected:
        return elected
    newest = {label: max((e.epoch for e in effective_epochs(each)), default=-1) for label, each in files.items()}
    return [each for each in comparison.truncations if newest[each.leader] >= newest[each.follower]]
