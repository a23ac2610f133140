"""At which constants ``compaction`` is checked."""

from __future__ import annotations

from typing import Final

from ...plan import Plan

PLAN: Final = Plan(proves=False)
"""Of KIP-280."""
