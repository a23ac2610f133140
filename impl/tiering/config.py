"""The settings of remote storage, with Kafka's names and, where nothing else is said, its defaults."""

from __future__ import annotations

from dataclasses import dataclass

from ..log.config import require_at_least

UNLIMITED = -1
"""Of a retention: records are kept for ever."""
AS_TOTAL = -2
"""Of a local retention: as long as the topic's whole retention says."""


@dataclass(frozen=True, slots=True)
class TieredTopic:
    """One topic with ``remote.storage.enable``. Times in milliseconds. Raises ``ValueError``."""

    retention_ms: int = 7 * 24 * 3600 * 1000
    """``retention.ms``: of all of the log."""
    retention_bytes: int = UNLIMITED
    """``retention.bytes``."""
    local_retention_ms: int = AS_TOTAL
    """``local.retention.ms``: records that are as old and in remote storage need not be on the broker's disk."""
    local_retention_bytes: int = AS_TOTAL
    """``local.retention.bytes``."""

    def __post_init__(self) -> None:
        require_at_least(UNLIMITED, self, "retention_ms", "retention_bytes")
        require_at_least(AS_TOTAL, self, "local_retention_ms", "local_retention_bytes")
        for local, total in (("local_retention_ms", "retention_ms"), ("local_retention_bytes", "retention_bytes")):
            here, whole = getattr(self, local), getattr(self, total)
            if whole >= 0 and (here > whole or here == UNLIMITED):
                raise ValueError(f"{local} {here} is more than {total} {whole}")

    @property
    def local_ms(self) -> int:
        """The local retention in force."""
        return self.retention_ms if self.local_retention_ms == AS_TOTAL else self.local_retention_ms

    @property
    def local_bytes(self) -> int:
        """The local retention in force."""
        return self.retention_bytes if self.local_retention_bytes == AS_TOTAL else self.local_retention_bytes


@dataclass(frozen=True, slots=True)
class TieringConfig:
    """The settings of a broker. Times in milliseconds. Raises ``ValueError``."""

    follower_fetch_last_tiered_offset_enable: bool = False
    """``follower.fetch.last.tiered.offset.enable`` (KIP-1023): an empty follower begins with the earliest offset that
    is not uploaded yet."""
    task_interval_ms: int = 30_000
    """``remote.log.manager.task.interval.ms``: between two looks for what is to be copied or deleted."""
    task_retry_backoff_ms: int = 500
    """``remote.log.manager.task.retry.backoff.ms``: after the store has failed; doubled each time, up to the next."""
    task_retry_backoff_max_ms: int = 30_000
    """``remote.log.manager.task.retry.backoff.max.ms``."""
    metadata_poll_ms: int = 20
    """Between two looks whether what was written to the metadata log is committed."""
    metadata_timeout_ms: int = 5_000
    """After which what was written to the metadata log and is not committed is written again."""
    read_retry_ms: int = 200
    """Between two tries to read an object for a consumer, who waits for ``request_timeout_ms`` at most."""

    def __post_init__(self) -> None:
        names = ("task_interval_ms", "task_retry_backoff_ms", "metadata_poll_ms", "metadata_timeout_ms")
        require_at_least(1, self, *names, "task_retry_backoff_max_ms", "read_retry_ms")
