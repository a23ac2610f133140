"""At which constants ``snapshots`` is checked.

They are replicas/observers/log size/leader epoch/chunks/minimum records/late responses/lag expires.
"""

from __future__ import annotations

from typing import Final

from ...plan import Plan
from .large_constants import BEYOND

_ONE_OFFSET: Final = "3/0/1/1/1/0/0/1"
_ONE_VOTER: Final = "2/1/2/0/1/0/0/1"

PLAN: Final = Plan(
    at="3/0/2/1/1/0/0/1",
    holds={"kip-630-nodes": _ONE_OFFSET, "kip-630-votes": _ONE_OFFSET, "kip-630-quorum": "2/0/2/1/1/0/0/1"},
    # Each at the smallest constants at which it breaks.
    breaks={
        "kip-630": _ONE_OFFSET,
        "lbo-past-snapshot": _ONE_VOTER,
        "lbo-misread": _ONE_OFFSET,
        "snapshot-past-hw": _ONE_VOTER,
        "delete-at-lbo": _ONE_VOTER,
        "vote-half-fetched": _ONE_OFFSET,
        "acknowledge-half-fetched": "3/0/2/1/1/0/0/1",
        "fetch-at-lbo": "3/0/2/1/1/0/0/1",
        "boot-by-hw": _ONE_OFFSET,
        "mixed-chunks": "3/0/1/1/2/0/0/1",
        "stale-responses": "2/1/2/0/1/0/1/1",
        "late-votes": "3/0/1/2/1/0/0/1",
    },
    relations=("2/1/1/0/1/0/1/1", "3/0/1/1/1/0/1/1"),
    unproved=("vote-half-fetched", "acknowledge-half-fetched"),
    # Each has a few of the constants larger than they must be.
    rungs=(
        "2/0/1/1/1/0/0/1",
        "2/0/2/1/1/0/0/1",
        "3/0/1/1/1/0/0/1",
        "3/1/1/1/1/0/0/1",
        "2/1/2/0/1/0/1/1",
        "2/1/2/1/2/0/0/1",
        "2/1/2/0/1/0/0/0",
        "3/0/1/1/1/0/0/0",
        "2/0/3/1/1/1/0/1",
        "3/0/1/2/1/0/0/1",
        "3/0/1/1/1/0/1/1",
        "3/0/1/2/1/1/1/0",
        "3/0/2/1/1/0/0/1",
        "2/1/2/1/2/0/1/1",
    ),
    # A sixth of the states of three replicas.
    symmetric=True,
    beyond=BEYOND,
    free=(
        "3/0/10/10/3/0/0/1",
        "2/1/12/4/4/0/0/1",
        "3/1/10/8/3/1/0/1",
        "5/0/5/8/2/0/0/1",
        "4/2/7/8/3/0/0/1",
    ),
)
"""Of KIP-630."""
