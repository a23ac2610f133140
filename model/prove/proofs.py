"""The proofs that there are, by protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..core.errors import BadInput
from .fencing_lemmas import kip_320
from .proof import Proof
from .snapshots_hints import kip_630

PROOFS: Final[Mapping[str, Proof]] = {proof.protocol.name: proof for proof in (kip_320, kip_630)}
"""One proof for each protocol that has one."""


def proof_of(protocol: str) -> Proof:
    """The proof of a protocol. Raises BadInput where there is none."""
    if protocol not in PROOFS:
        raise BadInput(f"there is no proof of {protocol!r}", "PROTOCOL", f"choose one of {', '.join(PROOFS)}")
    return PROOFS[protocol]
