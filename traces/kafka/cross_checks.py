"""Checks between the replicas of one partition: agreement, divergence, and the truncation that must mend it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ..text import counted
from .committed import committed_below, differ_in_committed
from .divergence import Difference, EpochSpan, by_epoch, first_difference
from .epoch_conflicts import latest_epoch
from .truncation import Truncation, prescribe
from .verdicts import CheckResult

if TYPE_CHECKING:
    from .image import PartitionState
    from .partition import PartitionFiles

Replica = tuple[str, int | None, "PartitionFiles"]
"""A replica of a partition: its broker's label, its node id, its files."""


AGREEMENT = "replicas_agree_below_high_watermark"


@dataclass(frozen=True, slots=True)
class Divergence:
    """Two replicas whose logs differ at an offset that both cover."""

    a: str
    b: str
    difference: Difference
    epochs: tuple[EpochSpan, ...]
    """Both logs from the difference on, by leader epoch."""
    committed: bool | None
    """Whether it is in a record that is surely committed; ``None`` where neither high watermark nor snapshot tells."""

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {
            "a": self.a,
            "b": self.b,
            "difference": self.difference.to_json(),
            "epochs": [span.to_json() for span in self.epochs],
            "committed": self.committed,
        }


@dataclass(frozen=True, slots=True)
class PartitionComparison:
    """All replicas of one partition held against each other."""

    topic: str
    partition: int
    replicas: tuple[str, ...]
    committed_below: int | None
    """The smallest high watermark of the replicas (the metadata log: the smallest end of their newest snapshots)."""
    divergences: tuple[Divergence, ...]
    truncations: tuple[Truncation, ...]
    """The truncations to come that lose records or mend a divergence, each towards the newer leader epoch.

    Under the elected leader if its log is here, else under the log with the newest epoch. Both ways round for a
    diverging pair whose newest epochs are equal.
    """

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "replicas": list(self.replicas),
            "committed_below": self.committed_below,
            "divergences": [divergence.to_json() for divergence in self.divergences],
            "truncations": [truncation.to_json() for truncation in self.truncations],
        }


def compare_replicas(
    replicas: list[Replica], state: PartitionState | None
) -> tuple[PartitionComparison, list[CheckResult]]:
    """Hold the replicas of one partition against each other; ``state`` is what the controller says of it."""
    files = replicas[0][2]
    labels = tuple(label for label, _, _ in replicas)
    bound = committed_below([replica for _, _, replica in replicas])
    divergences: list[Divergence] = []
    examined: list[Truncation] = []
    unsure: list[str] = []
    for (a_label, a_id, a), (b_label, b_id, b) in combinations(replicas, 2):
        high = max(a.log_end, b.log_end)
        found, sure = first_difference(a, b, 0, high)
        if found is None:
            unsure += [] if sure else [f"{a_label} and {b_label}"]
            continue
        committed = differ_in_committed(a, b, found, bound)
        divergences.append(Divergence(a_label, b_label, found, by_epoch(a, b, found.offset), committed))
        examined.append(_truncate(a, b, a_label, b_label, a_id, state))
        examined.append(_truncate(b, a, b_label, a_label, b_id, state))
    comparison = PartitionComparison(
        files.topic, files.partition, labels, bound, tuple(divergences), _coming(replicas, state, examined)
    )
    by_label = {label: replica for label, _, replica in replicas}
    results = [
        _agreement(comparison, by_label, unsure),
        *_restoration(comparison, examined, by_label),
    ]
    return comparison, results


def _coming(
    replicas: list[Replica], state: PartitionState | None, examined: list[Truncation]
) -> tuple[Truncation, ...]:
    """The truncations to come: what each follower cuts off under the leader that it will follow."""
    newest = {label: latest_epoch(files) for label, _, files in replicas}
    elected = next((each for each in replicas if state is not None and each[1] == state.leader), None)
    leader = elected or max(replicas, key=lambda each: (newest[each[0]], each[2].log_end))
    diverging = {(each.leader, each.follower) for each in examined}
    found: list[Truncation] = []
    for follower in replicas:
        behind = newest[follower[0]] < newest[leader[0]]
        if follower is leader or not (behind or elected) or not _is_assigned(follower, state):
            continue
        each = _truncate(leader[2], follower[2], leader[0], follower[0], leader[1], state)
        # A follower that has more records of the leader's own epoch is a newer copy.
        if (leader[0], follower[0]) in diverging or (behind and each.records_lost):
            found.append(each)
    if elected is None:
        found += [each for each in examined if newest[each.leader] == newest[each.follower]]
    return tuple(found)


def _is_assigned(replica: Replica, state: PartitionState | None) -> bool:
    """Whether a broker is a replica still: one that is none any more deletes its folder and truncates nothing."""
    return state is None or replica[1] is None or replica[1] in state.replicas


def _truncate(
    leader: PartitionFiles,
    follower: PartitionFiles,
    leader_label: str,
    follower_label: str,
    leader_id: int | None,
    state: PartitionState | None,
) -> Truncation:
    elected = state is not None and leader_id is not None and state.leader == leader_id
    return prescribe(
        leader,
        follower,
        leader_label=leader_label,
        follower_label=follower_label,
        leader_epoch=state.leader_epoch if elected and state else None,
        by_controller=elected,
    )


def _agreement(comparison: PartitionComparison, files: dict[str, PartitionFiles], unsure: list[str]) -> CheckResult:
    """Below the smallest high watermark all replicas hold the same (offset, leader epoch, payload hash)."""
    name = AGREEMENT
    subject = f"{comparison.topic}-{comparison.partition}"
    bound = comparison.committed_below
    data: dict[str, Any] = {"committed_below": bound, "replicas": list(comparison.replicas)}
    for divergence in comparison.divergences:
        if divergence.committed:
            below = bound is not None and divergence.difference.offset < bound
            bar = f"the smallest high watermark {bound}" if below else "the end of a snapshot"
            message = f"{_words(divergence)}, below {bar}"
            where = files[divergence.a].where(divergence.difference.offset)
            return CheckResult(name, "violated", subject, message, where, data=data)
    damaged = [label for label, replica in files.items() if replica.damaged]
    if damaged:
        return CheckResult(name, "unknown", subject, f"part of {damaged[0]}'s log could not be read", data=data)
    undecided = next((each for each in comparison.divergences if each.committed is None), None)
    if undecided:
        message = f"{_words(undecided)}, and no high watermark is known for all replicas"
        return CheckResult(name, "unknown", subject, message, data=data)
    if unsure:
        message = f"{unsure[0]} agree on every offset that both hold; compaction removed others"
        return CheckResult(name, "holds", subject, message, data=data)
    scope = f"below {bound}" if bound is not None else "over all offsets they share"
    if bound is None and comparison.divergences:
        scope = "on what a snapshot has committed"
    return CheckResult(name, "holds", subject, f"{len(files)} replicas agree {scope}", data=data)


def _words(divergence: Divergence) -> str:
    difference = divergence.difference
    place = f"{divergence.a} and {divergence.b} differ at offset {difference.offset}"
    if difference.kind == "epoch":
        return f"{place}: leader epoch {difference.epochs[0]} against {difference.epochs[1]}"
    return f"{place}: another payload under the same leader epoch {difference.epochs[0]}"


def _restoration(
    comparison: PartitionComparison, examined: list[Truncation], files: dict[str, PartitionFiles]
) -> list[CheckResult]:
    """What KIP-279 and KIP-320 promise of truncation: agreement afterwards, and no committed record lost."""
    if not comparison.divergences:
        return []
    subject = f"{comparison.topic}-{comparison.partition}"
    results: list[CheckResult] = []
    broken = [t for t in examined if t.agrees_after is False]
    name = "truncation_restores_agreement"
    if broken:
        first = broken[0]
        message = f"{_sentence(first)}, and still differs from it: an epoch has records of two leaders"
        where = files[first.follower].where(first.offset)
        results.append(CheckResult(name, "violated", subject, message, where, data=first.to_json()))
    else:
        elected = [t for t in comparison.truncations if t.by_controller] or list(comparison.truncations)
        message = "; ".join(_sentence(t) for t in elected)
        results.append(CheckResult(name, "holds", subject, message))
    results.append(_committed_kept(comparison, examined, subject))
    return results


def _sentence(truncation: Truncation) -> str:
    what = "starts over at" if truncation.rule == "reset" else "truncates to"
    condition = "under" if truncation.by_controller else "were it under"
    return (
        f"{truncation.follower} {condition} {truncation.leader} {what} {truncation.offset} "
        f"by {truncation.rule}, losing {counted(truncation.records_lost, 'record')}"
    )


def _committed_kept(comparison: PartitionComparison, examined: list[Truncation], subject: str) -> CheckResult:
    """No truncation goes below the smallest high watermark."""
    name = "truncation_keeps_committed"
    bound = comparison.committed_below
    if bound is None:
        return CheckResult(name, "unknown", subject, "no high watermark is known for all replicas")
    for truncation in examined:
        if truncation.rule != "reset" and truncation.offset < bound and truncation.records_lost:
            message = f"{_sentence(truncation)}, below the smallest high watermark {bound}"
            return CheckResult(name, "violated", subject, message, data=truncation.to_json())
    return CheckResult(name, "holds", subject, f"no truncation goes below {bound}")
