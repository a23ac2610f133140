"""What a fetch response brings, step by step: each step moves the position, and most give a record."""

from __future__ import annotations

from typing import NamedTuple

from ..log import CorruptBatch, read_batches
from ..wire.messages import NO_EPOCH, TopicPartition
from .position import ConsumerRecord


class Step(NamedTuple):
    """The position moves to ``next_offset``, and ``epoch`` is that of the record before it.

    ``record`` is ``None`` for offsets that hold nothing for a consumer: control batches, and what was compacted.
    """

    record: ConsumerRecord | None
    next_offset: int
    epoch: int


def read_steps(partition: TopicPartition, data: bytes, position: int) -> list[Step]:
    """The steps from ``position`` on. The first batch may begin below it.

    All batches are read before any is served. Raises ``CorruptBatch`` for a wrong CRC, for bytes that are no batch and
    records that do not parse, and for batches whose offsets do not rise.
    """
    steps: list[Step] = []
    end = -1
    for batch in read_batches(data, f"fetch of {partition} at {position}"):
        if batch.base_offset < end or batch.leader_epoch < NO_EPOCH:
            what = f"a batch at offset {batch.base_offset} of epoch {batch.leader_epoch}, after offset {end - 1}"
            raise CorruptBatch(what)
        end = batch.next_offset
        if end <= position:
            continue
        if not batch.is_control:
            steps += [
                Step(
                    ConsumerRecord(
                        partition.topic,
                        partition.partition,
                        record.offset,
                        record.leader_epoch,
                        record.timestamp,
                        record.key,
                        record.value,
                        record.headers,
                    ),
                    record.offset + 1,
                    record.leader_epoch,
                )
                for record in batch.records()
                if record.offset >= position
            ]
        if not steps or steps[-1].next_offset < end:
            steps.append(Step(None, end, batch.leader_epoch))
    return steps
