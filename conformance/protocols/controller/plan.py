"""At which constants ``controller`` is checked.

They are replicas/nodes/partitions/log size/controller epoch/bootstrapped/snapshots/removals.
"""

from __future__ import annotations

from typing import Final

from ...plan import Plan
from .large_constants import BEYOND

_DATA: Final = "2/1/1/3/0/1/0/1"
_SNAPSHOTS: Final = "1/2/1/1/1/1/1/1"
_THREE_NODES: Final = "1/3/1/1/1/1/1/1"

PLAN: Final = Plan(
    at=_SNAPSHOTS,
    # 3,257 obligations: ``fencepost prove controller`` asks them.
    proves=False,
    holds={"isr-changes": "2/1/2/2/0/1/0/1", "concurrent-snapshots": _SNAPSHOTS},
    # Each at the smallest constants at which it breaks.
    breaks={
        "kip-631": _THREE_NODES,
        "snapshot-lacks-fenced": _SNAPSHOTS,
        "two-snapshots": _THREE_NODES,
        "late-order": _SNAPSHOTS,
        "stale-broker-epoch": "2/1/1/5/0/1/0/0",
        "last-member-returns": "2/1/1/4/0/1/0/0",
        "snapshot-pending": "1/1/1/2/0/1/1/1",
        "elects-fenced": _DATA,
        "applies-pending": _SNAPSHOTS,
        "deposed-leader": _DATA,
        "removes-last": _DATA,
        "keeps-pending": _SNAPSHOTS,
        "answers-pending": "1/1/1/2/1/1/0/1",
    },
    rungs=(
        "1/1/1/2/0/1/1/1",
        "1/1/1/2/1/1/0/1",
        "2/1/2/3/0/0/0/1",
        "1/2/1/1/2/1/0/1",
        "2/1/2/2/0/1/0/1",
        _SNAPSHOTS,
        "1/2/2/1/1/1/0/0",
        "1/1/1/4/0/1/0/1",
        _DATA,
        "1/1/1/5/0/1/0/0",
        "2/1/1/4/0/1/0/0",
        "1/2/1/2/1/1/1/0",
        _THREE_NODES,
        "2/2/1/2/1/1/0/0",
    ),
    beyond=BEYOND,
    # Brokers, controllers, partitions: of ``impl_spec.py``.
    free=("3/3/2", "2/3/2", "3/3/1", "3/1/2"),
    # Of ``kip-631-safe``, and of brokers and controllers that make no snapshots.
    stepped="2/3/1/5/2/1/0/1",
    # ``fencepost conform --protocol controller`` does, in a minute or two.
    followed=False,
)
"""Of KIP-631."""
