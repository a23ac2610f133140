"""At which constants ``tiering`` is checked.

They are replicas/log size/leader epoch/last tiered offset/unclean/transactions/switches/expires.
"""

from __future__ import annotations

from typing import Final

from ...plan import Plan

PLAN: Final = Plan(at="2/2/1/1/1/0/0/1", proves=False)
"""Of KIP-1023."""
