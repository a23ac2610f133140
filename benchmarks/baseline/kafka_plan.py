"""How a defect planted in Apache Kafka's classes is searched for."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("kafka_defects.toml")


@dataclass(frozen=True)
class KafkaPlan:
    """Simulated runs of one variant.

    Args:
        protocol: Protocol whose system runs the classes.
        driver: Name of the Java driver.
        variant: Variant of the protocol to check against.
        constants: In the protocol's order, with slashes between.
        runs: Number of runs at most.
        seed: Random seed.
        events: Number of events of a run at most.
        defects: Names of the defects, each searched for alone.
        not_demanded: Invariants that Kafka as shipped breaks, and that this plan leaves out.
    """

    protocol: str
    driver: str
    variant: str
    constants: str
    runs: int
    seed: int
    defects: tuple[str, ...]
    events: int = 150
    not_demanded: tuple[str, ...] = ()


def read_plans() -> list[KafkaPlan]:
    """Read the plans in ``kafka_defects.toml``."""
    rows: list[dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))["plan"]
    return [KafkaPlan(**_with_tuples(row)) for row in rows]


def _with_tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
