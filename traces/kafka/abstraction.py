"""Brokers' logs as a state of the ``fencing`` model: a handful of offsets that stand for all of them.

Consecutive offsets at which every replica looks the same (the same epoch, present or absent, agreeing with the same
other replicas, on the same side of every high watermark) become one offset of the model, and the prefix that all
replicas share below the smallest high watermark becomes one more. A run of real replicas, looked at only where one
offset of each such block is concerned, is a run of the model: so where the model has no run, neither had they.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .partition import PartitionFiles

ABSENT = -1


@dataclass(frozen=True)
class Block:
    """Offsets ``first .. last`` that look alike. Per replica: the record's real epoch and its identity, or ABSENT.

    Two replicas hold the same records in the block where their identities are equal.
    """

    first: int
    last: int
    epochs: tuple[int, ...]
    identities: tuple[int, ...]

    @property
    def common(self) -> bool:
        """Whether all replicas hold the same records."""
        return len(set(self.identities)) == 1 and self.identities[0] != ABSENT


@dataclass(frozen=True)
class NewestEpoch:
    """The newest leader epoch in a replica's epoch cache: the replica led no later one.

    ``empty``: the epoch began at the replica's LEO and has no record, so the replica itself led it. Only a leader
    enters an epoch before its first record (``Partition.makeLeader``).
    """

    epoch: int
    empty: bool


@dataclass(frozen=True)
class Abstraction:
    """What the model's final state must look like.

    ``nodes``: the broker of each replica of the model, in order; the last ``unseen`` replicas have no files here and
    may hold anything. ``high_watermarks`` count blocks; None where a broker has no checkpoint. ``epochs`` maps real
    leader epochs to those of the model: in the same order, larger gaps shortened to two. ``newest``: by replica, the
    newest epoch of its cache, as a real one; None where no cache tells.
    """

    nodes: tuple[int, ...]
    unseen: int
    blocks: tuple[Block, ...]
    high_watermarks: tuple[int | None, ...]
    epochs: Mapping[int, int]
    folded: int
    """How many offsets of the common prefix are left out altogether."""
    newest: tuple[NewestEpoch | None, ...] = ()
    merged: tuple[tuple[int, ...], ...] = ()
    """After ``merge_equal``: by replica, the brokers with its log."""

    @property
    def replicas(self) -> int:
        """The number of replicas."""
        return len(self.nodes) + self.unseen

    @property
    def records(self) -> int:
        """The number of distinct records in the blocks."""
        return sum(len(set(block.identities) - {ABSENT}) for block in self.blocks)

    @property
    def last_epoch(self) -> int:
        """The largest leader epoch of the model."""
        return max(self.epochs.values(), default=0)

    def constants(self, spare: int = 0, later: int = 0) -> dict[str, int]:
        """The model's constants, with ``spare`` records that no final log holds.

        ``later``: leader epochs after that of the last record, in which nothing was written that is left.
        """
        return {
            "replicas": self.replicas,
            "log_size": max(1, len(self.blocks)),
            "max_records": max(1, self.records + spare),
            "max_leader_epoch": self.last_epoch + later,
        }

    def end(self, replica: int) -> int:
        """The LEO of a replica, in blocks."""
        return sum(block.identities[replica] != ABSENT for block in self.blocks)

    @property
    def agreed(self) -> bool:
        """Whether the replicas hold the same records."""
        return all(block.common for block in self.blocks)

    @property
    def shape(self) -> tuple[object, ...]:
        """All that the model sees of it: equal shapes are reached by the same runs."""
        epochs = tuple(tuple(self.epochs.get(e, ABSENT) for e in block.epochs) for block in self.blocks)
        newest = tuple(n and (self.epochs[n.epoch], n.empty) for n in self.newest)
        return self.replicas, epochs, tuple(b.identities for b in self.blocks), self.high_watermarks, newest

    @property
    def holes(self) -> tuple[int, ...]:
        """Nodes whose log lacks offsets below its own end: no run of any variant leaves a hole."""
        found = []
        for replica, node in enumerate(self.nodes):
            present = [block.identities[replica] != ABSENT for block in self.blocks]
            if present != sorted(present, reverse=True):
                found.append(node)
        return tuple(found)


def abstract(logs: Mapping[int, PartitionFiles], replication: int, *, compacted: bool = False) -> Abstraction:
    """The abstraction of one partition's logs by node id, of a partition with that many replicas.

    Of a ``compacted`` one only those offsets are looked at that no replica has cleaned away: a run, looked at in some
    of its offsets alone, is a run.
    """
    nodes = tuple(sorted(logs))
    start = max(log.log_start for log in logs.values())
    # Logs of millions of records mostly agree: narrow columns, and a union only where offsets differ.
    offsets = reduce(_union, (log.records.between(start, log.log_end).offset for log in logs.values()))
    if compacted:
        offsets = offsets[~reduce(np.logical_or, (_hole(log, offsets) for log in logs.values()))]
    epochs = np.full((len(nodes), offsets.size), ABSENT, dtype=np.int32)
    identities = np.full((len(nodes), offsets.size), ABSENT, dtype=np.int16)
    hashes = np.zeros((len(nodes), offsets.size), dtype=np.uint64)
    for row, node in enumerate(nodes):
        records = logs[node].records.between(start, logs[node].log_end)
        if compacted:
            records = records.take(np.flatnonzero(np.isin(records.offset, offsets)))
        at = np.searchsorted(offsets, records.offset)
        epochs[row, at] = records.leader_epoch
        hashes[row, at] = records.payload_hash
        identities[row, at] = row
        for other in range(row):
            same = (epochs[other] == epochs[row]) & (hashes[other] == hashes[row]) & (identities[other] != ABSENT)
            same &= identities[row] == row
            identities[row, same] = identities[other, same]
    marks = sorted({log.high_watermark for log in logs.values() if log.high_watermark is not None})
    changed = np.zeros(max(0, offsets.size - 1), dtype=np.bool_)
    for column in (*epochs, *identities):
        changed |= column[1:] != column[:-1]
    crossed = np.searchsorted(offsets, np.array(marks, dtype=np.int64))
    changed[[mark - 1 for mark in crossed.tolist() if 0 < mark < offsets.size]] = True
    changes = np.flatnonzero(changed) + 1
    firsts = np.concatenate([[0], changes]) if offsets.size else np.empty(0, dtype=np.int64)
    lasts = np.concatenate([changes, [offsets.size]]) - 1 if offsets.size else firsts
    blocks = [
        Block(int(offsets[f]), int(offsets[e]), tuple(map(int, epochs[:, f])), tuple(map(int, identities[:, f])))
        for f, e in zip(firsts, lasts, strict=True)
    ]
    smallest = min((log.high_watermark or 0 for log in logs.values()), default=0)
    prefix = 0
    while prefix < len(blocks) and blocks[prefix].common and blocks[prefix].last < smallest:
        prefix += 1
    # One block of the shared prefix stays, or as many as leave two offsets to look at: no log may begin at nothing.
    kept = blocks[max(0, prefix - max(1, 2 - (len(blocks) - prefix))) :]
    folded = kept[0].first - start if kept else 0
    high_watermarks = tuple(
        None
        if (mark := logs[node].high_watermark) is None
        # A power loss leaves a checkpoint above the LEO, which the broker lowers when it starts.
        else sum(block.last < min(mark, logs[node].log_end) for block in kept)
        for node in nodes
    )
    newest = tuple(_newest(logs[node]) for node in nodes)
    return Abstraction(
        nodes,
        max(0, replication - len(nodes)),
        tuple(kept),
        high_watermarks,
        _model_epochs(kept, {each.epoch for each in newest if each is not None}),
        folded,
        newest,
    )


def merge_equal(target: Abstraction) -> Abstraction:
    """One replica for all that hold the same log; at most one of them may have led an epoch without a record.

    A run of the smaller system is one of the larger: the leader drops the other replicas from the ISR before they
    follow, and each of them copies the log from the same leader while the one that stays does. So where the smaller
    system has a run, the larger has one. It does not say that where the smaller has none, neither has the larger.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for replica in range(len(target.nodes)):
        groups.setdefault(tuple(block.identities[replica] for block in target.blocks), []).append(replica)
    kept: list[list[int]] = []
    for members in groups.values():
        leaders = [r for r in members if (newest := _of(target, r)) is not None and newest.empty]
        others = [r for r in members if r not in leaders]
        if not leaders:
            # Who led the newest epoch stays: the others led none that is later.
            leaders = [max(others, key=lambda r: -1 if (n := _of(target, r)) is None else n.epoch)]
            others.remove(leaders[0])
        kept += [[leaders[0], *others], *([r] for r in leaders[1:])]
    kept.sort()
    rows = [members[0] for members in kept]
    # The identity of a record is the first replica that has it: so the numbers of the replicas that stay.
    place = {replica: new for new, members in enumerate(kept) for replica in members}
    return replace(
        target,
        nodes=tuple(target.nodes[r] for r in rows),
        blocks=tuple(
            replace(
                block,
                epochs=tuple(block.epochs[r] for r in rows),
                identities=_renumbered(tuple(block.identities[r] for r in rows), place),
            )
            for block in target.blocks
        ),
        high_watermarks=tuple(
            max((mark for r in members if (mark := target.high_watermarks[r]) is not None), default=None)
            for members in kept
        ),
        newest=tuple(_of(target, r) for r in rows),
        merged=tuple(tuple(sorted(target.nodes[r] for r in members)) for members in kept),
    )


def _of(target: Abstraction, replica: int) -> NewestEpoch | None:
    return target.newest[replica] if target.newest else None


def _renumbered(identities: tuple[int, ...], place: Mapping[int, int]) -> tuple[int, ...]:
    """The same classes, each named by the first replica in it."""
    first: dict[int, int] = {}
    found = []
    for row, identity in enumerate(identities):
        found.append(ABSENT if identity == ABSENT else first.setdefault(place[identity], row))
    return tuple(found)


def _newest(log: PartitionFiles) -> NewestEpoch | None:
    """The newest epoch of a replica's cache; None without a cache, or with one that contradicts the log's end."""
    cached = max(log.epoch_cache or (), key=lambda entry: entry.epoch, default=None)
    if cached is None:
        return None
    last = int(log.records.leader_epoch[-1]) if len(log.records) else -1
    if cached.epoch == last:
        return NewestEpoch(cached.epoch, empty=False)
    if cached.epoch > last and cached.start_offset == log.log_end:
        return NewestEpoch(cached.epoch, empty=True)
    return None


def _hole(log: PartitionFiles, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these offsets the log lacks though it goes on behind them."""
    return (offsets < log.log_end) & ~np.isin(offsets, log.records.offset)


def _union(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """The offsets of both, each once, ascending."""
    return a if np.array_equal(a, b) else np.union1d(a, b)


def _model_epochs(blocks: list[Block], cached: set[int]) -> dict[int, int]:
    real = sorted({epoch for block in blocks for epoch in block.epochs if epoch != ABSENT} | cached)
    mapped: dict[int, int] = {}
    for before, epoch in zip([None, *real], real, strict=False):
        # A gap of one is one election; any larger gap leaves room for an ISR shrink and an election in between.
        mapped[epoch] = min(epoch, 1) if before is None else mapped[before] + min(epoch - before, 2)
    return mapped
