"""What is known of a partition's producers at an offset whose records before are in remote storage.

A segment has it as of its end. Where none ends just there, the records say what has come since the last one that does:
what another leader has written behind them, in the same segment, is of other producers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..log.batch import Batch
from ..log.epochs import EpochEntry
from ..replica.producers import Producers
from . import parts
from .errors import CorruptRemoteSegment
from .segments import INDEX, PRODUCERS, RemoteSegment
from .steps import Call, Steps

if TYPE_CHECKING:
    from .remote import RemotePartition

_READ_BYTES = 1 << 20


class Unread(Exception):
    """This broker has not read yet which segment has a record."""


def producers_before(remote: RemotePartition, epochs: Sequence[EpochEntry], log_start: int, offset: int) -> Steps:
    """What ``Producers.snapshot`` would give at ``offset``, of a log with these leader epochs from ``log_start`` on.

    Of what is deleted nothing is known. Raises ``Unread``, and what reading the store raises.
    """
    store, known = remote.store, Producers()
    behind: list[tuple[RemoteSegment, int, int]] = []
    at = offset
    while at > log_start:
        epoch = max((entry.epoch for entry in epochs if entry.start_offset < at), default=-1)
        segments = remote.segments()
        segment = segments.ending_at(epoch, at - 1) or segments.find(epoch, at - 1)
        if segment is None and segments.gone_at(epoch, at - 1) is not None:
            break
        if segment is None:
            raise Unread
        if segment.end_offset == at - 1:
            data: bytes = yield Call(partial(parts.read_part, store, segment, PRODUCERS))
            try:
                known.know(data)
            except ValueError as error:
                raise CorruptRemoteSegment(str(error), segment.object_name(PRODUCERS)) from None
            break
        behind.append((segment, max(segment.start_offset, log_start), at))
        at = behind[-1][1]
    for segment, at, end in reversed(behind):
        index: bytes = yield Call(partial(parts.read_part, store, segment, INDEX))
        while at < end:
            batches: list[Batch] = yield Call(partial(parts.read_records, store, segment, index, at, _READ_BYTES, end))
            if not batches:
                break
            known.follow(batches)
            at = batches[-1].next_offset
    return known.snapshot()
