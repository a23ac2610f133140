"""At which constants ``truncation`` is checked: replicas/log size/records/leader epoch."""

from __future__ import annotations

from typing import Final

from ...plan import Plan
from .binding_kafka import KAFKAS

_MAIN: Final = "2/2/3/2"

PLAN: Final = Plan(
    at=_MAIN,
    # A million states at one replica, one record and one leader epoch; the free runs go where it gets interesting.
    # What is shipped, or half of it, breaks at 2/2/3/2, too far for every check: tests/model/test_truncation_kafka.py
    # walks there.
    holds=dict.fromkeys(("kip-320-client", *KAFKAS), "1/1/1/0"),
    breaks=dict.fromkeys(("no-epoch", "kip-320", "epoch-ignored", "reset-earliest", "reset-latest"), _MAIN),
    # One for each rule in which variants differ: the KIP's text, who checks, and where a truncation leads.
    unproved=("kip-320", "epoch-ignored", "reset-earliest"),
    free=("2/2/3/2", "3/4/6/5", "2/7/16/6", "3/6/14/6"),
    # At 2/3/4/1 two logs can part in the middle; at 3/2/2/1 and 3/1/2/2 a third replica can answer.
    rungs=("2/1/1/1", "2/1/1/2", "2/1/2/2", "2/2/2/1", "3/1/1/1", "2/3/4/1", "3/2/2/1", "2/2/3/2", "3/1/2/2"),
)
"""Of KIP-320's consumers."""
