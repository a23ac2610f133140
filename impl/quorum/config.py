"""The settings of a quorum node, with Kafka's names or the text's. Times in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..log.config import LogConfig, require_at_least
from ..wire.errors import ErrorCode
from ..wire.messages import TopicPartition

CLUSTER_METADATA = TopicPartition("__cluster_metadata", 0)


@dataclass(frozen=True, slots=True)
class QuorumConfig:
    """Raises ``ValueError`` for settings that no node can run with."""

    voters: tuple[int, ...]
    """``controller.quorum.voters``: node ids. Any other node is an observer."""
    cluster_id: str = "Rj_brD27af2db7ETxjjJIw"
    partition: TopicPartition = CLUSTER_METADATA
    log: LogConfig = field(default_factory=LogConfig)
    snapshot_minimum_records: int = 1_000
    """``controller.snapshot.minimum.records``: with more records committed after the latest snapshot, take another."""
    max_replication_lag_ms: int = 60_000
    """``max.replication.lag.ms``: so long the LBO waits for live replicas that have not got there."""
    election_timeout_ms: int = 1_000
    """``controller.quorum.election.timeout.ms``; each try waits for up to twice as long, by chance."""
    fetch_timeout_ms: int = 2_000
    """``controller.quorum.fetch.timeout.ms``: a follower that hears nothing for so long looks for another leader.

    A replica that has not fetched for so long is not alive for the LBO.
    """
    request_timeout_ms: int = 500
    """When a request that is not answered is sent again."""
    fetch_wait_ms: int = 50
    """Between a fetch that found nothing and the next. (Kafka's leader holds such a fetch until there is something.)"""
    retry_backoff_ms: int = 50
    """``controller.quorum.retry.backoff.ms``: between a request that was refused and the next."""
    fetch_max_bytes: int = 8 << 20
    """The most records that a follower asks for at once, and that a leader gives; 1 makes each fetch one batch."""
    snapshot_max_bytes: int = 8 << 20
    """The most bytes of a snapshot that a follower asks for at once, and that a leader gives."""
    begin_offset_interval_ms: int = 500
    """Between two looks of a leader at whether its LBO can advance."""
    leader_change_record: bool = True
    """Whether a new leader appends its LeaderChange record: nothing of older epochs is committed before one of its."""

    def __post_init__(self) -> None:
        if not self.voters or len(set(self.voters)) < len(self.voters) or min(self.voters) < 0:
            raise ValueError(f"voters {self.voters} are not different node ids from 0 on")
        times = ("election_timeout_ms", "fetch_timeout_ms", "request_timeout_ms", "begin_offset_interval_ms")
        require_at_least(1, self, *times, "fetch_wait_ms", "retry_backoff_ms", "fetch_max_bytes", "snapshot_max_bytes")
        require_at_least(0, self, "snapshot_minimum_records", "max_replication_lag_ms")

    @property
    def majority(self) -> int:
        """How many voters are a majority."""
        return len(self.voters) // 2 + 1


class TopicSetting(NamedTuple):
    """A topic's setting as DescribeConfigs has it."""

    value: str
    read_only: bool


TOPIC_SETTINGS = {"cleanup.policy": TopicSetting("snapshot", read_only=True)}
"""KIP-630, "Topic configuration": "This configuration can only be read. Updates ... will not be allowed.\""""


def alter_topic_setting(name: str, value: str) -> ErrorCode:
    """Refuse to change a topic setting of the quorum's log: INVALID_CONFIG, and nothing is changed.

    NONE only where a setting is to be what it is.
    """
    known = TOPIC_SETTINGS.get(name)
    return ErrorCode.NONE if known is not None and known.value == value else ErrorCode.INVALID_CONFIG
