"""The same promises where there are no transactions: nothing holds the last stable offset below the high watermark.

The lemmas are those of ``proof.py``. One more says that all is stable from the first, so that no transaction ever ends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...core.algebra import Algebra, Value, View
from ...core.domains import Constants
from ...prove.specialize import FixedProof, once_is_zero
from .proof import kip_1023
from .state import tiering

_FIXED: Final = {"transactions": 0}


def _at(*values: int) -> Constants:
    return dict(zip((name for name in tiering.constants if name not in _FIXED), values, strict=True))


kip_1023_stable = FixedProof(
    tiering,
    "kip-1023-safe",
    _FIXED,
    follows=tuple(sorted(kip_1023.follows)),
    sizes=(
        _at(2, 1, 1, 1, 1, 0, 1),
        _at(2, 2, 1, 1, 1, 1, 1),
        _at(3, 2, 2, 1, 1, 1, 1),
        _at(2, 1, 1, 0, 1, 1, 1),
        _at(2, 1, 2, 1, 0, 1, 1),
    ),
    cores=Path(__file__).with_name("cores-kip-1023-safe-stable.json"),
    never=("end_transaction",),
)
kip_1023_stable.takes(kip_1023, *kip_1023.ghosts, *kip_1023.update_texts)
kip_1023_stable.takes(kip_1023, *(name for name in kip_1023.lemmas if name != once_is_zero.__name__))
kip_1023_stable.takes_hints(kip_1023)


@kip_1023_stable.lemma()
def all_is_stable(k: Algebra, s: View) -> Value:
    """No transaction was ever open."""
    return s.stable == k.c.log_size
