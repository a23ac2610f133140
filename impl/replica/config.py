"""The settings of a broker, with Kafka's names and, where nothing else is said, its defaults. Times in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..compaction.config import CleanerConfig, CompactionConfig
from ..log.config import LogConfig, require_at_least


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Raises ``ValueError`` for settings that no broker can run with."""

    cluster_id: str = "Rj_brD27af2db7ETxjjJIw"
    log: LogConfig = field(default_factory=LogConfig)
    min_insync_replicas: int = 1
    """``min.insync.replicas``: acks=-1 is refused while the ISR is smaller; a topic may have another."""
    replica_lag_time_max_ms: int = 30_000
    """``replica.lag.time.max.ms``: a follower that has not been caught up for so long leaves the ISR."""
    isr_interval_ms: int = 15_000
    """Between two looks at the ISR; Kafka takes half of ``replica.lag.time.max.ms``."""
    replica_fetch_max_bytes: int = 1 << 20
    """``replica.fetch.max.bytes``: the most that a follower asks for at once; 1 makes each fetch one batch."""
    replica_fetch_wait_ms: int = 50
    """Between a fetch that found nothing and the next. (Kafka's leader holds such a fetch until there is something.)"""
    replica_fetch_backoff_ms: int = 1_000
    """``replica.fetch.backoff.ms``: between a fetch that was refused and the next."""
    request_timeout_ms: int = 30_000
    """``request.timeout.ms``: when a request between nodes counts as lost, and a produce with acks=-1 gives up."""
    fetch_max_bytes: int = 55 << 20
    """``fetch.max.bytes``: no fetch may ask for more."""
    produce_max_bytes: int = 100 << 20
    """``socket.request.max.bytes``: no produce may hold more."""
    high_watermark_interval_ms: int = 5_000
    """``replica.high.watermark.checkpoint.interval.ms``."""
    recovery_point_interval_ms: int = 60_000
    """``log.flush.offset.checkpoint.interval.ms``."""
    flush_each_append: bool = False
    """``log.flush.interval.messages=1``: sync at once what is appended, and not only before it is acknowledged."""

    compacted: Mapping[str, CompactionConfig] = field(default_factory=dict, hash=False)
    """The topics with ``cleanup.policy=compact``, and how each is cleaned."""
    cleaner: CleanerConfig = field(default_factory=CleanerConfig)
    """Of a broker that has any."""

    def __post_init__(self) -> None:
        sizes = ("min_insync_replicas", "replica_fetch_max_bytes", "fetch_max_bytes", "produce_max_bytes")
        times = ("isr_interval_ms", "high_watermark_interval_ms", "recovery_point_interval_ms", "request_timeout_ms")
        require_at_least(1, self, *sizes, *times)
        require_at_least(0, self, "replica_lag_time_max_ms", "replica_fetch_wait_ms", "replica_fetch_backoff_ms")
        if self.replica_fetch_max_bytes > self.fetch_max_bytes:
            raise ValueError(
                f"replica_fetch_max_bytes {self.replica_fetch_max_bytes} is above fetch_max_bytes "
                f"{self.fetch_max_bytes}: every leader would refuse the fetches"
            )
