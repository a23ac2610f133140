"""From the batches and records of one replica's log to observations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from .event_kind import EventKind
from .observation import Observation

K = EventKind
_NODE: Final = re.compile(r"(?:broker|node|kafka|server|controller)s?[-_.]?(\d{1,9})(?![\d.])", re.IGNORECASE)
_PARTITION: Final = re.compile(r"([A-Za-z0-9._-]{1,249})-(\d{1,9})(?:\.[0-9a-f]{32}-(?:delete|future|stray))?")


def node_of_path(path: str) -> int | None:
    """Return the id in the last part of a path that names a broker: 2 for ``/var/broker-2/orders-0``."""
    parts = [part for part in re.split(r"[/\\\\]", path) if part]
    for part in reversed(parts):
        match = _NODE.search(part)
        if match is not None:
            return int(match[1])
    return None


def partition_of_folder(name: str) -> str | None:
    """Return ``orders-0`` for the folder ``orders-0`` or ``orders-0.HASH-delete``; None if it is no partition's."""
    match = _PARTITION.fullmatch(name)
    return None if match is None else f"{match[1]}-{int(match[2])}"


@dataclass
class LogBuilder:
    """One replica's log, as it is read.

    Args:
        template: An observation with the partition, file and node of the log.
        log_start: First offset of the log, if the source states it.
    """

    template: Observation
    log_start: int | None = None
    log_end: int | None = None
    time: int | None = None
    leader_epoch: int | None = None
    high_watermark: int | None = None
    line: int = 0
    observations: list[Observation] = field(default_factory=list)

    def add_batch(self, base: int, last: int, epoch: int | None, time: int | None, line: int) -> None:
        """Add a batch. Neighbours of one leader epoch without a hole between them become one observation."""
        self.line = self.line or line
        self.log_start = base if self.log_start is None else min(self.log_start, base)
        self.log_end = max(self.log_end or 0, last + 1)
        if time is not None and time >= 0:
            self.time = max(self.time or 0, time)
        known = None if epoch is None or epoch < 0 else epoch
        if known is not None:
            self.leader_epoch = max(self.leader_epoch or 0, known)
        before = self._last_batch
        if before is not None:
            at = self.observations[before]
            if at.log_end == base and at.leader_epoch == known:
                self.observations[before] = replace(at, log_end=last + 1)
                return
        self._last_batch = len(self.observations)
        self._put(K.BATCH, line, offset=base, log_end=last + 1, leader_epoch=known)

    _last_batch: int | None = None

    def add_record(self, offset: int, value: str | None, epoch: int | None, line: int) -> None:
        """Add a record with its value."""
        known = None if epoch is None or epoch < 0 else epoch
        self._put(K.RECORD, line, offset=offset, value=value, leader_epoch=known)

    def forget_value(self) -> None:
        """Make the value of the last record unknown."""
        self.observations[-1] = replace(self.observations[-1], value=None)

    def add_epoch(self, epoch: int, start: int) -> None:
        """Add an entry of ``leader-epoch-checkpoint``."""
        self._put(K.EPOCH_START, 0, leader_epoch=epoch, offset=start)

    def _put(self, kind: EventKind, line: int, **fields: object) -> None:
        sequence = self.template.sequence + len(self.observations)
        self.observations.append(replace(self.template, kind=kind, line=line, sequence=sequence, **fields))  # type: ignore[arg-type]

    def finish(self) -> Iterator[Observation]:
        """All observations, the content of the log last; a log without a batch has no content to compare."""
        yield from self.observations
        if self.log_end is None:
            return
        yield replace(
            self.template,
            kind=K.LOG_CONTENT,
            line=self.line,
            sequence=self.template.sequence + len(self.observations),
            log_start=self.log_start or 0,
            log_end=max(self.log_end or 0, self.log_start or 0),
            high_watermark=self.high_watermark,
            leader_epoch=self.leader_epoch,
            time=self.time,
            zoned=True,
        )
