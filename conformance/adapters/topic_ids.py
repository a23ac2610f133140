"""Ids of topics, drawn from a seed: what a controller sends is the same whenever a run is repeated."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final
from uuid import UUID

_DRAWN_APART: Final = 0x3C6EF372


def topic_ids(seed: int) -> Callable[[], UUID]:
    """What makes the next id (``Uuid.randomUuid`` in Kafka). It draws from nothing that others draw from."""
    chance = Random(seed ^ _DRAWN_APART)  # noqa: S311 - repeatable on purpose
    return lambda: UUID(int=chance.getrandbits(128), version=4)
