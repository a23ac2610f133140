"""No broker truncates below its high watermark."""

from __future__ import annotations

from collections.abc import Collection

from ..checker import CheckResult
from ..clocks import is_before_on_node
from ..contradiction import Contradiction
from ..elections import UncleanElection, unclean_elections
from ..epoch_bounds import epoch_bounds
from ..event_kind import EventKind
from ..incarnations import Incarnations
from ..observation import METADATA_LOG, Observation
from ..partition_timeline import PartitionTimeline
from ..watermark_memory import WatermarkMemory

K = EventKind


class TruncationChecker:
    """Compare each truncation with the high watermarks that the same broker reported before.

    Records below a high watermark are committed, so a truncation below it loses committed records of this replica.
    """

    name = "truncation_below_high_watermark"
    title = "no broker truncates below its high watermark"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Walk through each broker's lines in their order."""
        incarnations = Incarnations.of(timeline)
        elections = unclean_elections(timeline, incarnations)
        comparisons = 0
        found: list[Contradiction] = []
        for node in timeline.nodes:
            own = [each for each in timeline.of_process(node) if each.partition]
            bounds = epoch_bounds(own)
            directories = {each.directory for each in own if each.directory is not None and each.kind in _OF_LOG}
            memory = WatermarkMemory()
            last: Observation | None = None
            incarnation = None
            for seen, bound in zip(own, bounds, strict=True):
                if incarnations[seen] != incarnation:
                    memory, incarnation = WatermarkMemory(), incarnations[seen]
                if seen.kind is K.TRUNCATED and seen.offset is not None and not _may_be_future(seen, directories):
                    known = watermark_before(seen, memory)
                    if known is not None:
                        comparisons += 1
                        watermark = known.high_watermark or 0
                        # Two loggers report one truncation: the log, and the fetcher that asked for it.
                        repeated = last is not None and last.offset == seen.offset and known is seen
                        if seen.offset < watermark and not repeated:
                            found.append(_contradiction(timeline.partition, seen, known, bound.lower, elections))
                        last = seen
                elif seen.kind is not K.TRUNCATION_DECIDED:
                    last = None
                memory.observe(seen)
        return CheckResult(comparisons, tuple(found))


_OF_LOG = frozenset(
    {K.COPY_CREATED, K.TRUNCATED, K.TRUNCATED_FULLY, K.TRUNCATION_NO_EFFECT, K.APPENDED, K.HIGH_WATERMARK, K.LOG_START}
)


def _may_be_future(seen: Observation, directories: Collection[str]) -> bool:
    """Whether the log may be the copy that moves to another directory: it has no high watermark of its own."""
    return seen.directory is not None and len(directories) > 1


def watermark_before(seen: Observation, memory: WatermarkMemory) -> Observation | None:
    """The line with the high watermark before a truncation: the line itself, or an earlier one of the broker."""
    if seen.high_watermark is not None and not memory.may_be_leaders:
        return seen
    known = memory.current
    if known is None:
        return None
    return known if is_before_on_node(known, seen) else None


def _contradiction(
    partition: str, seen: Observation, known: Observation, epoch: int | None, elections: list[UncleanElection]
) -> Contradiction:
    watermark = known.high_watermark or 0
    assert seen.offset is not None
    lost = (seen.offset, watermark - 1)
    cause = cause_of(elections, None, epoch)
    who = "node" if partition == METADATA_LOG else "broker"
    where = "" if known is seen else f" ({known.where})"
    return Contradiction(
        check=TruncationChecker.name,
        partition=partition,
        message=(
            f"{who} {seen.node} truncates {partition} to offset {seen.offset}, below its high watermark {watermark}"
            f"{where}: it removes the committed {records(lost)}{because(cause)}"
        ),
        evidence=(seen,) if known is seen else (known, seen),
        cause=None if cause is None else cause.source,
        lost=lost,
    )


def records(lost: tuple[int, int], verb: str = "") -> str:
    """``records 90 to 119``, with a verb ``records 90 to 119 are lost``."""
    first, last = lost
    one = first == last
    text = f"record {first}" if one else f"records {first} to {last}"
    return f"{text} {'is' if one else 'are'} {verb}" if verb else text


def cause_of(elections: list[UncleanElection], after: int | None, upto: int | None) -> UncleanElection | None:
    """The last unclean election after one leader epoch and not after another; ``None`` bounds nothing."""
    within = [
        each
        for each in elections
        if each.leader_epoch is None
        or ((after is None or each.leader_epoch > after) and (upto is None or each.leader_epoch <= upto))
    ]
    return max(within, key=lambda each: -1 if each.leader_epoch is None else each.leader_epoch, default=None)


def because(cause: UncleanElection | None) -> str:
    """The end of a message that names the cause."""
    return "" if cause is None else f"; the cause: {cause.text}"
