"""A record that was sent once is at one offset."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..checker import CheckResult
from ..client_view import MAX_FOUND, ClientView, named
from ..contradiction import Contradiction
from ..observation import Observation
from ..partition_timeline import PartitionTimeline


class DuplicateChecker:
    """Compare the offsets of each value.

    A value that two sends wrote may be at two offsets, unless the history states that each is written once. A producer
    that is not idempotent may write a record twice; a history that does not say so is not taken for one, unless the
    outcome of the send is unknown.
    """

    name = "acknowledged_value_at_two_offsets"
    title = "every acknowledged record is at one offset"

    def check(self, timeline: PartitionTimeline) -> CheckResult:
        """Compare the offsets of each value."""
        view = ClientView(timeline)
        places: dict[str, list[Observation]] = defaultdict(list)
        for each in [*view.acks, *view.polls]:
            if each.value is not None:
                places[each.value].append(each)
        found: list[Contradiction] = []
        comparisons = 0
        for value, seen in places.items():
            first, *others = seen
            other = next((each for each in others if each.offset != first.offset), None)
            sends = view.sends_of.get(value, ())
            if not _compares(sends):
                continue
            comparisons += len(others)
            if other is None:
                continue
            unless: tuple[str, ...] = ()
            if len(sends) > 1 and not sends[0].unique_value:
                unless = ("the clients write each value once",)
            message = (
                f"the acknowledged value {named(value)} of {timeline.partition} is at offset {first.offset}"
                f" ({first.where}) and at offset {other.offset} ({other.where})"
            )
            found.append(view.contradiction(self.name, message, (first, other), unless=unless))
        return CheckResult(comparisons, tuple(found[:MAX_FOUND]))


def _compares(sends: Sequence[Observation]) -> bool:
    """Whether the sends of a value allow it at one offset only."""
    if not sends or any(each.idempotent is False for each in sends):
        return False
    certain = [each for each in sends if each.outcome == "ok"]
    uncertain = [each for each in sends if each.outcome == "unknown"]
    if uncertain and not all(each.idempotent for each in uncertain):
        return False
    return bool(certain or uncertain) and (len(sends) == 1 or len(certain) > 1)
