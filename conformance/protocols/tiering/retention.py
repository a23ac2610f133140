"""How long a tiered topic keeps its records, in remote storage and on disks: drawn for a run."""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

FOR_EVER: Final = -1


class Retention(NamedTuple):
    """A topic's configurations, drawn for a run; -1: without a limit."""

    ms: int
    bytes: int
    local_ms: int
    local_bytes: int

    @classmethod
    def drawn(cls, total: int, local: int, seed: int) -> Retention:
        """By bytes as given, or by age instead, or both; some records are old when they are written."""
        chance = Random(f"retention {seed}")  # noqa: S311 - repeatable on purpose
        ms = FOR_EVER
        if total != FOR_EVER:
            by = chance.choice(("bytes", "bytes", "age", "both"))
            ms = FOR_EVER if by == "bytes" else chance.choice((1_000, 6_000))
            total = FOR_EVER if by == "age" else total
        if chance.random() < 0.25:
            return cls(ms, total, chance.choice((0, 1_000)), total)
        return cls(ms, total, ms, local)

    def configs(self) -> dict[str, int]:
        """As ``TieredTopic`` has them."""
        return {
            "retention_ms": self.ms,
            "retention_bytes": self.bytes,
            "local_retention_ms": self.local_ms,
            "local_retention_bytes": self.local_bytes,
        }
