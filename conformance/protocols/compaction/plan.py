"""At which constants ``compaction`` is checked.

They are replicas/log size/keys/timestamps/header values/repeated headers/leader epoch/changes/brokers' strategy/
consumers.
"""

from __future__ import annotations

from typing import Final

from ...plan import Plan
from .large_constants import BEYOND

_MAIN: Final = "2/2/1/2/0/0/1/0/2/1"
_SMALL: Final = "2/2/1/2/0/0/0/0/2/1"
_READ: Final = "1/2/1/2/0/0/0/0/2/1"
_SET: Final = "1/3/1/2/0/0/0/1/0/0"
_TWO_KEYS: Final = "1/3/2/2/0/0/0/0/2/0"
_UNCOMMITTED: Final = "1/2/1/1/0/0/0/0/0/0"

PLAN: Final = Plan(
    at=_MAIN,
    # Four hundred and fifty obligations: ``fencepost prove compaction`` asks them.
    proves=False,
    holds={"empty-batch": _MAIN},
    # Each at the smallest constants at which it breaks.
    breaks={
        "kip-280": _READ,
        "slow-readers": "2/3/2/1/0/0/0/0/0/0",
        "uncleaned-tail": "1/2/1/2/0/0/0/0/2/0",
        "late-producers": _TWO_KEYS,
        "reads-again": "2/2/1/1/0/0/1/0/0/1",
        "changes-uncleaned": "2/2/1/2/0/0/0/1/0/0",
        "rolling-change": _SET,
        "maps-dirty-part": _TWO_KEYS,
        "forgets-deletes": _READ,
        "reads-by-offset": _READ,
        "removes-last": "3/2/1/2/0/0/1/0/2/0",
        "ties-to-lower": "1/3/1/2/0/0/0/0/2/0",
        "first-occurrence": "1/3/1/1/2/1/0/0/3/0",
        "anomalous-stays": "1/3/1/1/1/0/0/0/3/0",
        "trusts-header": "1/3/1/1/1/0/0/1/0/0",
        "cleans-uncommitted": _UNCOMMITTED,
        "cleans-active": _UNCOMMITTED,
    },
    # Without any of these guards a replica or the consumer ends in another state.
    needed=(
        "remove_record.follows_leader",
        "remove_tombstone.cleaned_in_time",
        "leader_expand_isr.reached_high_watermark",
    ),
    engines={"kip-280-safe": _SMALL, "empty-batch": _SMALL, "kip-280": _SMALL},
    relations=("2/1/1/1/0/0/1/0/0/1", "1/2/1/2/0/0/0/0/2/0"),
    liveness="1/3/1/1/0/0/0/0/0/1",
    replayed=("forgets-deletes", _READ),
    rungs=(
        _READ,
        "1/2/1/2/0/0/0/1/2/1",
        "1/2/1/2/1/0/0/2/3/1",
        _SET,
        _TWO_KEYS,
        "1/3/1/1/1/0/0/1/0/0",
        "1/3/1/1/2/1/0/0/3/0",
        "2/2/1/1/0/0/1/0/0/1",
        "2/2/1/2/0/0/0/1/0/0",
        "2/2/1/2/0/0/0/3/0/0",
        "2/3/2/1/0/0/0/0/0/0",
        "3/1/1/1/0/0/2/0/0/0",
        _MAIN,
    ),
    beyond=BEYOND,
    # Brokers, log size, keys, timestamps, values of the header, leader epochs: of ``impl_spec.py``.
    free=("1/8/2/3/3/3", "2/6/2/2/2/5", "2/8/2/3/3/5", "3/6/2/2/2/6"),
    # ``fencepost conform --protocol compaction`` does, in a minute or two.
    followed=False,
    compared=(".tombstones:COMPARED",),
)
"""Of KIP-280."""
