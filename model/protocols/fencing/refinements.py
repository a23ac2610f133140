"""What the variants of ``fencing`` are in terms of each other (``explore/refine.py``).

A leader of KIP-497 that has not heard the controller's answer yet is, in the variants where both change the ISR in one
step, one that has: its ISR there is that of the answer. What it has proposed is nothing there.
"""

from __future__ import annotations

from typing import Final

from ...core.algebra import Algebra, Value, View
from ...explore.refine import StateMapping
from .state import presumes_leadership


def _isr(k: Algebra, s: View, replica: Value) -> Value:
    return k.ite(presumes_leadership(s, replica), s.altered_isr[s.leader_epoch[replica]], s.isr[replica])


_ANSWERED: Final[StateMapping] = {"isr": _isr}

REFINEMENTS: Final[dict[tuple[str, str], StateMapping]] = {
    (variant, "kip-320-brokers"): _ANSWERED
    for variant in ("kip-497", "kip-497-eager", "kip-497-forgets", "kip-497-fenced")
}
"""By variant and the one that it is held against. Any other pair is compared variable by variable."""
