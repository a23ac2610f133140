"""What a follower must truncate when a given replica leads it: the epoch exchange of KIP-101, KIP-279 and KIP-320.

The follower asks for the end offset of the last epoch it has; the leader answers with the largest epoch it knows that
is not above it, and where that epoch ends in its own log. If the follower knows that epoch it truncates to the smaller
of both ends and is done; else it truncates to the end of its own largest epoch below the answer, and asks again. This
is ``AbstractFetcherThread.getOffsetTruncationState`` and ``LeaderEpochFileCache.endOffsetFor`` in Kafka; a fetch
response with a diverging epoch (KIP-595) leads to the same offsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .divergence import first_difference, offset_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .partition import PartitionFiles
    from .statefiles import EpochEntry

UNDEFINED = -1


@dataclass(frozen=True, slots=True)
class Exchange:
    """One OffsetsForLeaderEpoch request and what the follower made of its answer."""

    requested_epoch: int
    leader_epoch: int
    """The epoch of the answer, -1 for undefined."""
    end_offset: int
    """The end offset of the answer, -1 for undefined."""
    truncate_to: int

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {
            "requested_epoch": self.requested_epoch,
            "leader_epoch": self.leader_epoch,
            "end_offset": self.end_offset,
            "truncate_to": self.truncate_to,
        }


@dataclass(frozen=True, slots=True)
class Truncation:
    """The truncation that the protocol prescribes for ``follower`` under ``leader`` (labels of brokers).

    ``rule`` is ``epochs``, ``high watermark`` (the follower has no epoch to ask for, or the leader's answer is
    undefined) or ``reset`` (the follower's log ends below the leader's log start: it starts over at ``offset``).
    """

    leader: str
    follower: str
    offset: int
    records_lost: int
    epochs_lost: tuple[tuple[int, int], ...]
    """``(epoch, records)`` of what the follower loses, ascending."""
    exchanges: tuple[Exchange, ...]
    rule: str
    agrees_after: bool | None
    """Whether what the follower keeps equals the leader's log; ``None`` where they share no offset then."""
    by_controller: bool
    """Whether ``leader`` is the one that the controller has elected, and not just one that could be."""
    committed_lost: tuple[tuple[int, int], ...] = ()
    """The lost offsets below the follower's own high watermark, as ranges ``(first, last)``."""

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {
            "leader": self.leader,
            "follower": self.follower,
            "offset": self.offset,
            "records_lost": self.records_lost,
            "epochs_lost": [{"epoch": epoch, "records": count} for epoch, count in self.epochs_lost],
            "exchanges": [exchange.to_json() for exchange in self.exchanges],
            "rule": self.rule,
            "agrees_after": self.agrees_after,
            "by_controller": self.by_controller,
            "committed_lost": [list(each) for each in self.committed_lost],
        }


class EpochCache:
    """A replica's (epoch, start offset) entries with Kafka's rules for asking and truncating."""

    def __init__(self, entries: Sequence[EpochEntry]) -> None:
        self._entries = [(entry.epoch, entry.start_offset) for entry in entries]

    @property
    def latest(self) -> int | None:
        """The largest epoch, ``None`` for an empty cache."""
        return self._entries[-1][0] if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Begin an epoch, dropping entries that are not below it in both epoch and offset."""
        if self.latest == epoch:
            return
        self._entries = [e for e in self._entries if e[0] < epoch and e[1] < start_offset]
        self._entries.append((epoch, start_offset))

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """``(epoch, end offset)`` that a leader answers for a requested epoch; both -1 for undefined."""
        if self.latest is None or epoch == UNDEFINED or epoch > self.latest:
            return UNDEFINED, UNDEFINED
        if epoch == self.latest:
            return epoch, log_end
        higher = next(entry for entry in self._entries if entry[0] > epoch)
        floor = [entry for entry in self._entries if entry[0] <= epoch]
        return (floor[-1][0] if floor else epoch), higher[1]

    def truncate_from_end(self, offset: int) -> None:
        """Drop the entries that begin at or above ``offset``."""
        self._entries = [entry for entry in self._entries if entry[1] < offset]


def effective_epochs(files: PartitionFiles) -> list[EpochEntry]:
    """The epoch cache as the broker would use it once it has loaded these files.

    The batches are the truth; the checkpoint adds what they cannot show: an epoch that began at the LEO with no
    record yet, and, in a compacted log, a start below the first batch that is left.
    """
    entries = {entry.epoch: entry for entry in files.epoch_starts()}
    cached = {entry.epoch: entry for entry in files.epoch_cache or ()}
    for epoch, entry in cached.items():
        known = entries.get(epoch)
        if known is None and entry.start_offset == files.log_end and epoch > max(entries, default=-1):
            entries[epoch] = entry
        elif known is not None and not files.damaged and files.log_start <= entry.start_offset < known.start_offset:
            # Only where nothing stands between: a start that another epoch's records contradict is no start.
            between = files.records.between(entry.start_offset, known.start_offset)
            if not len(between):
                entries[epoch] = entry
    return [entries[epoch] for epoch in sorted(entries)]


def prescribe(
    leader: PartitionFiles,
    follower: PartitionFiles,
    *,
    leader_label: str,
    follower_label: str,
    leader_epoch: int | None,
    by_controller: bool,
) -> Truncation:
    """The truncation of ``follower`` when ``leader`` leads at ``leader_epoch`` (``None``: at the next free epoch)."""
    leader_cache = EpochCache(effective_epochs(leader))
    follower_cache = EpochCache(effective_epochs(follower))
    highest = max(leader_cache.latest or 0, follower_cache.latest or 0)
    epoch = highest + 1 if leader_epoch is None else leader_epoch
    if epoch > (leader_cache.latest if leader_cache.latest is not None else -1):
        # A leader enters its epoch into its cache at its LEO before it serves anyone (Partition.makeLeader).
        leader_cache.assign(epoch, leader.log_end)
    if follower.log_end < leader.log_start:
        return _result(leader, follower, leader_label, follower_label, leader.log_start, [], "reset", by_controller)
    exchanges: list[Exchange] = []
    offset = follower.log_end
    rule = "epochs"
    # The requested epoch falls in each round, so the exchange ends.
    while True:
        requested = follower_cache.latest
        if requested is None:
            if follower.log_end > follower.log_start and not exchanges:
                offset, rule = _to_watermark(follower, offset)
            break
        answer, end = leader_cache.end_offset_for(requested, leader.log_end)
        if end == UNDEFINED:
            offset, rule = _to_watermark(follower, offset)
            exchanges.append(Exchange(requested, answer, end, offset))
            break
        own_epoch, own_end = follower_cache.end_offset_for(answer, offset)
        done = own_epoch in (answer, UNDEFINED)
        if own_epoch == UNDEFINED:
            offset = min(end, offset)
        elif done:
            offset = min(end, own_end, offset)
        else:
            offset = min(own_end, offset)
        exchanges.append(Exchange(requested, answer, end, offset))
        if done:
            break
        follower_cache.truncate_from_end(offset)
        if follower_cache.latest == requested:
            # Only a cache that is not monotone gets here; asking the same again would not end.
            break
    return _result(leader, follower, leader_label, follower_label, offset, exchanges, rule, by_controller)


def _to_watermark(follower: PartitionFiles, offset: int) -> tuple[int, str]:
    watermark = follower.log_start if follower.high_watermark is None else follower.high_watermark
    return min(offset, watermark), "high watermark"


def _result(
    leader: PartitionFiles,
    follower: PartitionFiles,
    leader_label: str,
    follower_label: str,
    offset: int,
    exchanges: list[Exchange],
    rule: str,
    by_controller: bool,
) -> Truncation:
    cut = 0 if rule == "reset" else offset
    lost = follower.records.between(max(cut, follower.log_start), follower.log_end)
    counts: dict[int, int] = {}
    for epoch in lost.leader_epoch.tolist():
        counts[epoch] = counts.get(epoch, 0) + 1
    low = max(leader.log_start, follower.log_start)
    high = min(leader.log_end, cut)
    agrees = None if low >= high else first_difference(leader, follower, low, high)[0] is None
    return Truncation(
        leader_label,
        follower_label,
        offset,
        len(lost),
        tuple(sorted(counts.items())),
        tuple(exchanges),
        rule,
        agrees,
        by_controller,
        offset_ranges(lost.offset[lost.offset < (follower.high_watermark or 0)]),
    )
