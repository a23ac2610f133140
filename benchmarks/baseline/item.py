"""One measurement of a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Item:
    """One measurement. ``key`` names it in its part; ``measure`` returns its value, which JSON can hold."""

    part: str
    key: str
    measure: Callable[[], Any]
