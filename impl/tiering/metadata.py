"""The remote log metadata: an ordinary partition, replicated by every broker that has tiered topics (KIP-405).

What counts is what is committed there. A broker reads its own replica up to the high watermark, and writes by a produce
with acks=-1 to whoever leads. What it has written counts for it, too, only once it has read it: another's record may
have come before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from ..log.batch import encode_batch
from ..log.records import Record
from ..metadata.errors import CorruptRecord
from ..wire.messages import ProduceRequest, TopicPartition
from .config import TieringConfig
from .errors import CorruptRemoteMetadata
from .records import apply
from .segments import RemoteSegments
from .steps import Ask, Pause, Steps

if TYPE_CHECKING:
    from ..replica.partition import Partition

METADATA = TopicPartition("__remote_log_metadata", 0)
"""Kafka spreads it over 50 partitions (``remote.log.metadata.topic.num.partitions``)."""
_READ_BYTES = 1 << 20


class RemoteLogMetadata:
    """What this broker knows of all remote segments."""

    def __init__(self, config: TieringConfig) -> None:
        self._config = config
        self.partition: Partition | None = None
        """This broker's replica, once it is opened."""
        self._position = 0
        self._epoch_before = -1
        self._segments: dict[tuple[TopicPartition, UUID], RemoteSegments] = {}

    def segments(self, partition: TopicPartition, topic_id: UUID) -> RemoteSegments:
        """The remote segments of a partition as of now. Raises ``CorruptRemoteMetadata``, and like ``Log.read``."""
        self._catch_up()
        return self._segments.setdefault((partition, topic_id), RemoteSegments())

    @property
    def position(self) -> int:
        """The offset up to which the metadata log has been read: when somebody asks, and no further than he may."""
        return self._position

    def _catch_up(self) -> None:
        here = self.partition
        if here is None or here.failure is not None:
            return
        log = here.log
        if log.end < self._position or (self._position and log.epoch_for(self._position - 1) != self._epoch_before):
            # An unclean election: what was read is not what was decided.
            self._position, self._epoch_before = log.log_start, -1
            for each in self._segments.values():
                each.clear()
        while self._position < here.high_watermark:
            batches = log.read(self._position, _READ_BYTES, here.high_watermark)
            if not batches:
                return  # the high watermark lies inside of a batch
            for batch in batches:
                for record in () if batch.is_control else batch.records():
                    try:
                        apply(record.value or b"", self._segments)
                    except (CorruptRecord, ValueError) as error:
                        raise CorruptRemoteMetadata(str(error), log.folder, record.offset) from error
                self._position = batch.next_offset
            self._epoch_before = log.epoch_for(self._position - 1)

    def commit(self, value: bytes, decided: Callable[[], bool | None], now: Callable[[], int]) -> Steps:
        """Write a record, and write it again, until ``decided`` says what has come of it; gives what it says.

        It says ``None`` as long as what this broker has read of the log says nothing of it.
        """
        while True:
            leader = self._leader()
            if leader is not None:
                batch = encode_batch([Record(value, timestamp=now())])
                yield Ask(leader, ProduceRequest(METADATA, -1, batch))
            for _ in range(max(1, self._config.metadata_timeout_ms // self._config.metadata_poll_ms)):
                self._catch_up()
                found = decided()
                if found is not None:
                    return found
                yield Pause(self._config.metadata_poll_ms)

    def _leader(self) -> int | None:
        here = self.partition
        return None if here is None or here.request is None else here.request.leader
