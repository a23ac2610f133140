"""The settings of a log, with Kafka's defaults, and the check that the settings of nodes share."""

from __future__ import annotations

from dataclasses import dataclass

from .segment import RELATIVE_OFFSETS


def require_at_least(least: int, config: object, *names: str) -> None:
    """Raises ``ValueError`` for the first of these settings that is below ``least``."""
    for name in names:
        value = getattr(config, name)
        if value < least:
            raise ValueError(f"{name} {value} is below {least}")


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Sizes in bytes. Raises ``ValueError`` for sizes that no segment can have."""

    segment_bytes: int = 1 << 30
    """``segment.bytes``: a segment that would grow beyond this is closed, and a new one begun."""
    index_interval_bytes: int = 4096
    """``index.interval.bytes``: about so much log lies between two entries of the offset index."""
    max_message_bytes: int = 1_048_588
    """``max.message.bytes``: the largest batch that a leader takes."""
    cleanup_policy: str = "delete"
    """``cleanup.policy``: ``delete``, ``compact`` or both with a comma. Only a compacted log may lack offsets."""

    def __post_init__(self) -> None:
        if not 0 < self.segment_bytes < RELATIVE_OFFSETS:
            raise ValueError(f"segment_bytes {self.segment_bytes} is not between 1 and {RELATIVE_OFFSETS - 1}")
        if self.index_interval_bytes < 0 or self.max_message_bytes <= 0:
            raise ValueError("index_interval_bytes must not be negative, max_message_bytes must be positive")
        if not set(self.cleanup_policy.split(",")) <= {"compact", "delete"}:
            raise ValueError(f"cleanup_policy {self.cleanup_policy!r} is not delete, compact or compact,delete")

    @property
    def compacted(self) -> bool:
        """Whether the cleaner may take records out of the log: then a hole in its offsets is no damage."""
        return "compact" in self.cleanup_policy.split(",")
