"""Brokers' logs as a state of the ``fencing`` model: a handful of offsets that stand for all of them.

Consecutive offsets at which every replica looks the same (the same epoch, present or absent, agreeing with the same
other replicas, on the same side of every high watermark) become one offset of the model, and the prefix that all
replicas share below the smallest high watermark becomes one more. A run of real replicas, looked at only where one
offset of each such block is concerned, is a run of the model: so where the model has no run, neither had they.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
class Abstraction:
    """What the model's final state must look like.

    ``nodes``: the broker of each replica of the model, in order; the last ``unseen`` replicas have no files here and
    may hold anything. ``high_watermarks`` count blocks; None where a broker has no checkpoint. ``epochs`` maps real
    leader epochs to those of the model: in the same order, larger gaps shortened to two.
    """

    nodes: tuple[int, ...]
    unseen: int
    blocks: tuple[Block, ...]
    high_watermarks: tuple[int | None, ...]
    epochs: Mapping[int, int]
    folded: int
    """How many offsets of the common prefix are left out altogether."""

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
        return self.replicas, epochs, tuple(b.identities for b in self.blocks), self.high_watermarks

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
        None if (mark := logs[node].high_watermark) is None else sum(block.last < mark for block in kept)
        for node in nodes
    )
    return Abstraction(
        nodes, max(0, replication - len(nodes)), tuple(kept), high_watermarks, _model_epochs(kept), folded
    )


def _hole(log: PartitionFiles, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these offsets the log lacks though it goes on behind them."""
    return (offsets < log.log_end) & ~np.isin(offsets, log.records.offset)


def _union(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """The offsets of both, each once, ascending."""
    return a if np.array_equal(a, b) else np.union1d(a, b)


def _model_epochs(blocks: list[Block]) -> dict[int, int]:
    real = sorted({epoch for block in blocks for epoch in block.epochs if epoch != ABSENT})
    mapped: dict[int, int] = {}
    for before, epoch in zip([None, *real], real, strict=False):
        # A gap of one is one election; any larger gap leaves room for an ISR shrink and an election in between.
        mapped[epoch] = min(epoch, 1) if before is None else mapped[before] + min(epoch - before, 2)
    return mapped
