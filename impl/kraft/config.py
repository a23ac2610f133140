"""The settings of controllers and of brokers that have one, with Kafka's names or the text's. Times in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

from ..log.config import require_at_least


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """Raises ``ValueError`` for settings that no controller can run with."""

    session_timeout_ms: int = 9_000
    """``broker.session.timeout.ms``: a broker that sends no heartbeat for so long is fenced, and who was to take a
    snapshot loses its turn."""
    fence_by_event: bool = True
    """Whether fencing a broker is one record, or an IsrChange for each of its partitions besides ("FenceBroker" and
    "IsrChange" in KIP-630, "Amount of Data Replicated"): the same states are seen either way."""
    heartbeat_interval_ms: int = 2_000
    """Between two heartbeats of a standby controller, and between two looks of the active one at its own snapshot."""
    request_timeout_ms: int = 1_000
    """When a standby's heartbeat that is not answered counts as lost."""
    snapshot_minimum_records: int = 1_000
    """``controller.snapshot.minimum.records``: with more of them stable after a node's snapshot it takes another."""
    degraded_snapshot_minimum_records: int = 10_000
    """The same while too many members of the quorum have fallen behind: "we will use a separate set of configurations
    for determining when to snapshot"."""
    max_lag_records: int = 1_000
    """A member that lacks more records than this of what is stable has fallen behind."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "session_timeout_ms", "heartbeat_interval_ms", "request_timeout_ms")
        require_at_least(0, self, "snapshot_minimum_records", "max_lag_records")
        if self.degraded_snapshot_minimum_records < self.snapshot_minimum_records:
            raise ValueError(
                f"degraded_snapshot_minimum_records {self.degraded_snapshot_minimum_records} is below "
                f"snapshot_minimum_records {self.snapshot_minimum_records}: snapshots would be more frequent"
            )


@dataclass(frozen=True, slots=True)
class LifecycleConfig:
    """How a broker keeps in touch with the controller. Raises ``ValueError`` likewise."""

    heartbeat_interval_ms: int = 2_000
    """``broker.heartbeat.interval.ms``."""
    request_timeout_ms: int = 1_000
    """When a request to the controller that is not answered is sent again."""
    retry_backoff_ms: int = 100
    """Between a request that was refused and the next."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "heartbeat_interval_ms", "request_timeout_ms", "retry_backoff_ms")
