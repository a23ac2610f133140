"""What the metadata log says of a topic's clean-up: policy, compaction strategy (KIP-280), whether it is tiered.

A topic's own configuration comes first, then what was set for one broker while it ran, then for all brokers. What is in
a broker's ``server.properties`` is in no data directory, so that the policy of a topic without any of these is not
known (Kafka's own default is ``delete``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .image import MetadataImage
    from .records import Record

POLICY, BROKER_POLICY = "cleanup.policy", "log.cleanup.policy"
STRATEGY, BROKER_STRATEGY = "compaction.strategy", "log.cleaner.compaction.strategy"
STRATEGY_HEADER, BROKER_STRATEGY_HEADER = "compaction.strategy.header", "log.cleaner.compaction.strategy.header"
REMOTE_STORAGE = "remote.storage.enable"
RETENTION, BROKER_RETENTION = "delete.retention.ms", "log.cleaner.delete.retention.ms"
UNTIL_CLEANED = {"segment.ms": "log.roll.ms", "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms"}
"""The settings that bound how late a record is cleaned, each with the broker's name of it."""
_DEFAULTS = {"segment.ms": 604_800_000, "max.compaction.lag.ms": (1 << 63) - 1, RETENTION: 86_400_000}

ABSENT = -(1 << 63) - 1
"""The rank of a record that has no header to go by: below every number."""
_HEADER_BYTES = 8


@dataclass(frozen=True, slots=True)
class CleanupPolicy:
    """The clean-up policy of a topic on one broker. ``value`` is ``None`` where no record tells."""

    value: str | None
    name: str = POLICY
    """The configuration that has it."""
    once_compacted: bool = False
    """Whether the topic's own was another before, ``compact`` among it."""
    since_creation: bool = False
    """Whether the topic has had this policy of its own from its creation on, by a log that has all of it."""

    @property
    def compacted(self) -> bool:
        """Whether the log is compacted, be it deleted from too."""
        return self.value is not None and "compact" in _words(self.value)

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


@dataclass(frozen=True, slots=True)
class Strategy:
    """How two records of a key are compared: by ``(rank, offset)``, the larger stays (KIP-280)."""

    kind: str = "offset"
    header: str = ""

    @property
    def ranked(self) -> bool:
        """Whether more than the offset counts."""
        return self.kind != "offset"

    def rank(self, record: Record, append_time: int | None) -> int:
        """The rank of a record; ``append_time`` is its batch's where that has one for all of its records."""
        if self.kind == "timestamp":
            return record.timestamp if append_time is None else append_time
        if self.kind == "header":
            name = self.header.encode()
            value = next((value for key, value in reversed(record.headers) if key == name), None)
            return ABSENT if value is None or len(value) != _HEADER_BYTES else int.from_bytes(value, "big", signed=True)
        return 0

    def __str__(self) -> str:
        return f"{self.kind} {self.header}".strip()


def cleanup_policy(image: MetadataImage | None, topic: str, node: int | None) -> CleanupPolicy:
    """The policy of a topic on a broker."""
    if image is None:
        return CleanupPolicy(None)
    once = any("compact" in _words(value) for value in image.past_configs.get((topic, POLICY), ()) if value)
    own = image.configs.get(topic, {}).get(POLICY)
    if own is not None:
        return CleanupPolicy(own, POLICY, once, _since_creation(image, topic, own))
    value = _of_broker(image, BROKER_POLICY, node)
    return CleanupPolicy(value, POLICY if value is None else BROKER_POLICY, once)


def _since_creation(image: MetadataImage, topic: str, own: str) -> bool:
    states = image.history(topic, 0)
    return (
        image.complete
        and bool(states)
        and states[0].offset >= image.loaded
        and image.created_configs.get(topic, {}).get(POLICY) == own
        and image.past_configs.get((topic, POLICY)) == {own}
    )


def strategy(image: MetadataImage, topic: str, node: int | None) -> Strategy | None:
    """The strategy of a topic on a broker; ``None`` for one that there is not, and where the topic's was another once.

    Shipped Kafka has none of these configurations, and goes by the offset.
    """
    own = image.configs.get(topic, {})
    kind = own.get(STRATEGY) or _of_broker(image, BROKER_STRATEGY, node) or "offset"
    header = own.get(STRATEGY_HEADER) or _of_broker(image, BROKER_STRATEGY_HEADER, node) or ""
    changed = any(len(image.past_configs.get((topic, name), ())) > 1 for name in (STRATEGY, STRATEGY_HEADER))
    if changed or kind not in ("offset", "timestamp", "header") or (kind == "header" and not header):
        return None
    return Strategy(kind, header if kind == "header" else "")


def late_cleaning(image: MetadataImage | None, topic: str, node: int | None) -> list[str]:
    """Return a warning for each setting that lets a tombstone go before the records that it beats are cleaned.

    With another strategy than ``offset`` a deleted key can then come back. By offset it cannot, as the tombstone is
    the later record.

    Source: KIP-280, "Recommendations".
    """
    if image is None or not cleanup_policy(image, topic, node).compacted:
        return []
    rule = strategy(image, topic, node)
    if rule is not None and not rule.ranked:
        return []
    retention, kept = _milliseconds(image, topic, node, RETENTION, BROKER_RETENTION)
    return [
        f"{told} is not below {kept}: a deleted key can come back"
        for value, told in (_milliseconds(image, topic, node, *names) for names in UNTIL_CLEANED.items())
        if value >= retention
    ]


def _milliseconds(image: MetadataImage, topic: str, node: int | None, name: str, of_broker: str) -> tuple[int, str]:
    """Return a time and its wording. Without a valid record it is Kafka's default."""
    value = image.configs.get(topic, {}).get(name) or _of_broker(image, of_broker, node)
    if value is None or not value.isdecimal():
        return _DEFAULTS[name], f"{name}={_DEFAULTS[name]} (Kafka's default; no record sets it)"
    return int(value), f"{name}={value}"


def tiered(image: MetadataImage | None, topic: str) -> bool:
    """Whether the topic has tiered storage (KIP-405)."""
    return image is not None and image.configs.get(topic, {}).get(REMOTE_STORAGE) == "true"


def _of_broker(image: MetadataImage, name: str, node: int | None) -> str | None:
    for broker in ([] if node is None else [str(node)]) + [""]:
        value = image.broker_configs.get(broker, {}).get(name)
        if value is not None:
            return value
    return None


def _words(policy: str) -> list[str]:
    return [word.strip() for word in policy.split(",")]
