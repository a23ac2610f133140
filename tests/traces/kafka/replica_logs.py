"""Replicas' logs as ``abstract()`` reads them, without files: from rows of records, or from a state of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from fencepost.model.core.ground import State, System
from fencepost.traces.kafka.partition import PartitionFiles, RecordColumns
from fencepost.traces.kafka.statefiles import EpochEntry

if TYPE_CHECKING:
    from fencepost.model.core.ground import Layout

Row = tuple[int, int, int]
"""A record: offset, leader epoch, payload."""


@dataclass(frozen=True)
class ReplicaLog:
    """The part of ``PartitionFiles`` that an abstraction reads."""

    records: RecordColumns
    log_start: int
    log_end: int
    high_watermark: int | None
    epoch_cache: tuple[EpochEntry, ...] | None = None


def replica_log(
    rows: Sequence[Row],
    high_watermark: int | None = None,
    *,
    start: int = 0,
    end: int | None = None,
    cache: Sequence[tuple[int, int]] | None = None,
) -> PartitionFiles:
    """A log of these records; its LEO is one after the last unless ``end`` says otherwise."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    records = RecordColumns(columns[:, 0], columns[:, 1].astype(np.int32), columns[:, 2].astype(np.uint64))
    last = int(columns[-1, 0]) + 1 if len(rows) else start
    entries = None if cache is None else tuple(EpochEntry(*each) for each in cache)
    return cast("PartitionFiles", ReplicaLog(records, start, last if end is None else end, high_watermark, entries))


def plain(
    text: str,
    high_watermark: int | None = None,
    *,
    start: int = 0,
    cache: Sequence[tuple[int, int]] | None = None,
) -> PartitionFiles:
    """A log written as ``a0 b0 c2``: record a in epoch 0, then b in epoch 0, then c in epoch 2.

    ``cache``: epochs and start offsets of its epoch cache.
    """
    rows = [(start + n, int(word[1:]), ord(word[0])) for n, word in enumerate(text.split())]
    return replica_log(rows, high_watermark, start=start, cache=cache)


def read(layout: Layout, state: State, name: str) -> int:
    """The value of one cell."""
    return state[layout.by_name[name]]


def logs_of(
    system: System, state: State, widths: Sequence[int], epochs: Sequence[int], start: int = 0
) -> Mapping[int, PartitionFiles]:
    """Logs that this state of the model stands for, by node id (from 11 on).

    Each offset ``o`` of the model becomes ``widths[o]`` real ones, all with the model's epoch ``e`` as ``epochs[e]``;
    the first is ``start``.
    """
    layout = system.layout
    bounds = [start + sum(widths[:o]) for o in range(len(widths) + 1)]
    logs = {}
    for r in range(system.constants["replicas"]):
        end = read(layout, state, f"leo[{r}]")
        rows = [
            (offset, epochs[read(layout, state, f"record_epoch[{r}][{o}]")], 1000 * record + offset)
            for o in range(end)
            for record in [read(layout, state, f"record_id[{r}][{o}]")]
            for offset in range(bounds[o], bounds[o + 1])
        ]
        mark = bounds[read(layout, state, f"hw[{r}]")]
        logs[11 + r] = replica_log(rows, mark, start=start, end=bounds[end])
    return logs
