"""What ``poll`` raises: one line that says what, where and what the application can do."""

from __future__ import annotations

from collections.abc import Mapping

from ..wire.errors import ErrorCode
from ..wire.messages import TopicPartition
from .position import OffsetAndMetadata


class ConsumerError(Exception):
    """Base of all errors of a consumer. ``str()`` is one line, ``WHERE: WHAT; MEND``."""

    def __init__(self, where: str, what: str, mend: str) -> None:
        super().__init__(f"{where}: {what}; {mend}")


class NotAssignedError(ConsumerError):
    """A call names a partition that the consumer does not read (``IllegalStateException`` in Kafka)."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(str(partition), "not assigned to this consumer", "assign it first")


class NoOffsetForPartitionError(ConsumerError):
    """No committed offset, and the reset policy ``none`` (``NoOffsetForPartitionException``)."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(str(partition), "no committed offset, and the reset policy is none", "seek to an offset")
        self.partition = partition


class OffsetOutOfRangeError(ConsumerError):
    """Fetch offsets that the leader's log does not have, with the policy ``none`` (``OffsetOutOfRangeException``).

    ``partitions`` are the fetch offsets. Raised by each ``poll`` until the application seeks.
    """

    def __init__(self, partitions: Mapping[TopicPartition, int], what: str = "out of range") -> None:
        where = ", ".join(f"{partition} at {offset}" for partition, offset in partitions.items())
        super().__init__(where, what, "seek to an offset that is in the log")
        self.partitions = dict(partitions)


class LogTruncationError(OffsetOutOfRangeError):
    """The log no longer holds what was read, with the policy ``none`` (``LogTruncationException``; KIP-320).

    ``divergent_offsets`` say where to go on from, with the epochs to name there: ``seek`` to them. A partition is
    missing where the leader knows no epochs (an old message format).
    """

    def __init__(
        self, partitions: Mapping[TopicPartition, int], divergent_offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        found = ", ".join(f"{partition} diverges at {there.offset}" for partition, there in divergent_offsets.items())
        super().__init__(partitions, f"the log was truncated: {found or 'where is not known'}")
        self.divergent_offsets = dict(divergent_offsets)


class CorruptRecordError(ConsumerError):
    """A fetch brought bytes that are no records, or the leader has found its log corrupt. No record of it is served.

    ``offset`` is the position, which stays; the next ``poll`` fetches there again.
    """

    def __init__(self, partition: TopicPartition, offset: int, what: str) -> None:
        super().__init__(f"{partition} at {offset}", what, "poll again, or seek past the records")
        self.partition = partition
        self.offset = offset


class BrokerError(ConsumerError):
    """An error code that no retry mends, such as TOPIC_AUTHORIZATION_FAILED. The position stays."""

    def __init__(self, partition: TopicPartition, code: ErrorCode, request: str) -> None:
        super().__init__(str(partition), f"{request} was answered {code.name}", "mend the cause, then poll again")
        self.partition = partition
        self.code = code
