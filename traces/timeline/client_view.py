"""One partition's observations as its clients made them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from .contradiction import Contradiction
from .event_kind import EventKind
from .observation import Observation
from .partition_timeline import PartitionTimeline

K = EventKind
Verdict = Literal["violated", "unknown"]

MAX_FOUND = 20
"""Contradictions of one check on one partition."""


@dataclass(frozen=True)
class PollRun:
    """Records that one consumer read without a change of its assignment or position.

    ``start``: the observation that put the consumer at the beginning of the log, if one did.
    """

    polls: tuple[Observation, ...]
    start: Observation | None = None


class ClientView:
    """Sends, acknowledgements and reads of one partition."""

    def __init__(self, timeline: PartitionTimeline) -> None:
        self.timeline = timeline
        clients = [each for each in timeline.observations if each.client is not None]
        self.sends = [each for each in clients if each.kind is K.PRODUCE]
        self.acks = [each for each in self.sends if each.outcome == "ok" and each.offset is not None]
        self.polls = [each for each in clients if each.kind is K.POLL and each.outcome == "ok"]
        self.polls = [each for each in self.polls if each.offset is not None]

    @cached_property
    def sends_of(self) -> Mapping[str, Sequence[Observation]]:
        """Sends by value."""
        found: dict[str, list[Observation]] = defaultdict(list)
        for each in self.sends:
            if each.value is not None:
                found[each.value].append(each)
        return found

    @cached_property
    def runs(self) -> tuple[PollRun, ...]:
        """The runs of all consumers, each consumer's in its order."""
        found: list[PollRun] = []
        names = sorted({each.client for each in self.timeline.observations if each.client is not None})
        for name in names:
            polls: list[Observation] = []
            start: Observation | None = None
            for each in self.timeline.of_process(None, name):
                if each.kind is K.POLL and each.outcome == "ok" and each.offset is not None:
                    polls.append(each)
                elif each.kind in (K.ASSIGNED, K.SEEK):
                    if polls:
                        found.append(PollRun(tuple(polls), start))
                    polls = []
                    begins = each.offset == 0 and each.outcome != "unknown"
                    start = each if begins else None
            if polls:
                found.append(PollRun(tuple(polls), start))
        return tuple(found)

    @cached_property
    def created_again(self) -> Observation | None:
        """An observation that the topic was deleted, after which offsets start again."""
        return next((each for each in self.timeline.observations if each.kind is K.TOPIC_DELETED), None)

    @cached_property
    def log_start(self) -> int:
        """The largest log start offset that anything reports: retention may have deleted records below it."""
        return max((each.log_start for each in self.timeline.observations if each.log_start is not None), default=0)

    def contradiction(
        self,
        check: str,
        message: str,
        evidence: Sequence[Observation],
        *,
        unless: Sequence[str] = (),
        lost: tuple[int, int] | None = None,
    ) -> Contradiction:
        """Report evidence.

        Args:
            unless: Assumptions that the files do not prove; with one the verdict is unknown.
        """
        assumed = list(unless)
        if self.created_again is not None:
            assumed.append("the topic was not created again in between")
        verdict: Verdict = "unknown" if assumed else "violated"
        told = f"{message}; this holds if {' and '.join(assumed)}" if assumed else message
        return Contradiction(
            check=check,
            partition=self.timeline.partition,
            message=told,
            evidence=tuple(evidence),
            verdict=verdict,
            lost=lost,
        )


def acks_assumption(sends: Sequence[Observation]) -> tuple[str, ...]:
    """The assumption under which acknowledged records must be kept; none if the history states acks=all."""
    if all(each.acks == -1 for each in sends):
        return ()
    return ("the producer used acks=all, which the history does not say",)


def keeps(send: Observation) -> bool:
    """Whether an acknowledgement may promise that the record is kept: not with acks 0 or 1."""
    return send.acks in (None, -1)


def named(value: str | None) -> str:
    """A value in a message, cut off if it is long."""
    text = "an unknown value" if value is None else value
    return text if len(text) <= 40 else text[:37] + "..."
