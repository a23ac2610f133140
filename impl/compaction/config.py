"""The configurations of compaction, by Kafka's names and KIP-280's, checked when they are set.

A topic's come before the broker's, and these before the defaults. Times in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..log.config import LogConfig
from .strategy import Kind, Strategy

FOREVER = (1 << 63) - 1
_LONG = (1 << 63) - 1

STRATEGY = "compaction.strategy"
STRATEGY_HEADER = "compaction.strategy.header"
BROKER_STRATEGY = "log.cleaner.compaction.strategy"
BROKER_STRATEGY_HEADER = "log.cleaner.compaction.strategy.header"
REMOTE_STORAGE = "remote.storage.enable"


@dataclass(frozen=True, slots=True)
class CompactionConfig:
    """How a compacted topic is cleaned. Raises ``ValueError`` for what no cleaner can work with."""

    strategy: Strategy = field(default_factory=Strategy)
    """``compaction.strategy`` and ``compaction.strategy.header``."""
    min_cleanable_dirty_ratio: float = 0.5
    """``min.cleanable.dirty.ratio``: a log is cleaned once more than this part of its bytes is dirty."""
    segment_ms: int = 604_800_000
    """``segment.ms``: an active segment whose first record is older is closed, so that it can be cleaned."""
    min_compaction_lag_ms: int = 0
    """``min.compaction.lag.ms``: no record is cleaned that is younger."""
    max_compaction_lag_ms: int = FOREVER
    """``max.compaction.lag.ms``: a log with a dirty record that is older is cleaned whatever its ratio."""
    delete_retention_ms: int = 86_400_000
    """``delete.retention.ms``: so long a tombstone stays after the cleaning that first finds it."""

    def __post_init__(self) -> None:
        if not 0 <= self.min_cleanable_dirty_ratio <= 1:
            raise ValueError(f"min.cleanable.dirty.ratio {self.min_cleanable_dirty_ratio} is not between 0 and 1")
        for name, least in (("segment_ms", 1), ("max_compaction_lag_ms", 1), ("delete_retention_ms", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name.replace('_', '.')} {getattr(self, name)} is below {least}")
        if not 0 <= self.min_compaction_lag_ms <= self.max_compaction_lag_ms:
            what = f"min.compaction.lag.ms {self.min_compaction_lag_ms} is not between 0 and max.compaction.lag.ms"
            raise ValueError(f"{what} {self.max_compaction_lag_ms}")


@dataclass(frozen=True, slots=True)
class CleanerConfig:
    """A broker's cleaner. Raises ``ValueError`` for settings that it cannot run with."""

    dedupe_buffer_bytes: int = 128 << 20
    """``log.cleaner.dedupe.buffer.size``: the map's slots."""
    load_factor: float = 0.9
    """``log.cleaner.io.buffer.load.factor``: how much of them may be taken."""
    backoff_ms: int = 15_000
    """``log.cleaner.backoff.ms``: between a look that found nothing to clean and the next."""

    def __post_init__(self) -> None:
        if self.dedupe_buffer_bytes < 64 or not 0 < self.load_factor < 1 or self.backoff_ms < 1:
            raise ValueError("dedupe_buffer_bytes must be 64 or more, load_factor between 0 and 1, backoff_ms positive")


class InvalidConfig(ValueError):
    """A configuration that there is not, or a value that is none of its: one line, ``NAME: WHAT; HOW TO MEND IT``."""


def _among(*known: str) -> Callable[[str], str | None]:
    return lambda value: None if value in known else f"use {' or '.join(known)}"


def _number(least: int, most: int) -> Callable[[str], str | None]:
    def check(value: str) -> str | None:
        digits = value.isascii() and value.removeprefix("-").isdecimal() and len(value) < 21
        return None if digits and least <= int(value) <= most else f"use a number from {least} to {most}"

    return check


def _ratio(value: str) -> str | None:
    plain = value.isascii() and value.replace(".", "", 1).isdecimal()
    return None if plain and 0 <= float(value) <= 1 else "use a number from 0 to 1"


def _policy(value: str) -> str | None:
    words = [word.strip() for word in value.split(",")]
    known = set(words) <= {"compact", "delete"} and len(set(words)) == len(words)
    return None if known else "use compact, delete or both with a comma between"


def _name(value: str) -> str | None:
    """A header's: empty is the same as not set."""
    return None if len(value) <= 249 else "use a name of at most 249 characters"


_STRATEGIES = _among("offset", "timestamp", "header", "")
TOPIC: dict[str, Callable[[str], str | None]] = {
    "cleanup.policy": _policy,
    STRATEGY: _STRATEGIES,
    STRATEGY_HEADER: _name,
    "min.cleanable.dirty.ratio": _ratio,
    "segment.ms": _number(1, _LONG),
    "min.compaction.lag.ms": _number(0, _LONG),
    "max.compaction.lag.ms": _number(1, _LONG),
    "delete.retention.ms": _number(0, _LONG),
}
"""A topic's configurations; what they are checked by gives how a wrong value is to be mended, or ``None``."""
BROKER: dict[str, Callable[[str], str | None]] = {BROKER_STRATEGY: _STRATEGIES, BROKER_STRATEGY_HEADER: _name}
"""A broker's, which its topics take over where they have none of their own."""


def check(known: Mapping[str, Callable[[str], str | None]], values: Mapping[str, str]) -> None:
    """Raises ``InvalidConfig`` for the first of ``values``, by name, that is none of ``known`` or has a wrong value."""
    for name in sorted(values):
        if name not in known:
            raise InvalidConfig(f"{name!r:.80}: no configuration of compaction; use one of {', '.join(sorted(known))}")
        mend = known[name](values[name])
        if mend is not None:
            raise InvalidConfig(f"{name}: {values[name]!r:.60} is no value of it; {mend}")


def refuse_tiered(topic: str, *, tiered: bool) -> None:
    """Raises ``InvalidConfig`` for a topic that is to be compacted, and is tiered.

    In shipped Kafka's words: "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy
    being an empty list" (``LogConfig.validateRemoteStorageRequiresDeleteCleanupPolicy``).
    """
    if tiered:
        raise InvalidConfig(
            f"{topic}: cleanup.policy is compact, and {REMOTE_STORAGE} is true; remote log storage only supports "
            "topics with cleanup.policy=delete, so set one of the two"
        )


def strategy_of(topic: Mapping[str, str], broker: Mapping[str, str]) -> Strategy:
    """The strategy that holds for a topic: its own, else its broker's, else ``offset``; so too the header's name.

    An empty value is none (KIP-280: "also used when the configuration is either empty or not present"). Raises
    ``InvalidConfig`` where the strategy is ``header``, and no header is named.
    """
    kind = Kind(topic.get(STRATEGY) or broker.get(BROKER_STRATEGY) or "offset")
    header = topic.get(STRATEGY_HEADER) or broker.get(BROKER_STRATEGY_HEADER) or ""
    if kind is not Kind.HEADER:
        return Strategy(kind)
    if not header:
        name = STRATEGY if topic.get(STRATEGY) else BROKER_STRATEGY
        raise InvalidConfig(f"{name}: header, and no header is named; set {STRATEGY_HEADER} with it")
    return Strategy(kind, header)


def topic_config(
    topic: Mapping[str, str], broker: Mapping[str, str] | None = None, base: LogConfig | None = None
) -> tuple[LogConfig, CompactionConfig]:
    """A topic's settings from its configurations and its broker's. Raises ``InvalidConfig``.

    ``remote.storage.enable`` may be among the topic's: it is no setting of compaction, and does not go with one.
    """
    broker = broker or {}
    check({**TOPIC, REMOTE_STORAGE: _among("true", "false")}, topic)
    check(BROKER, broker)
    policy = ",".join(sorted(word.strip() for word in topic.get("cleanup.policy", "delete").split(",")))
    if "compact" in policy.split(","):
        refuse_tiered("topic", tiered=topic.get(REMOTE_STORAGE) == "true")
    numbers = {
        name.replace(".", "_"): float(value) if "ratio" in name else int(value)
        for name, value in topic.items()
        if name not in ("cleanup.policy", STRATEGY, STRATEGY_HEADER, REMOTE_STORAGE)
    }
    try:
        compaction = replace(CompactionConfig(strategy_of(topic, broker)), **numbers)  # type: ignore[arg-type]
    except InvalidConfig:
        raise
    except ValueError as error:
        raise InvalidConfig(f"topic: {error}; set them to values that go together") from None
    return replace(base or LogConfig(), cleanup_policy=policy), compaction
