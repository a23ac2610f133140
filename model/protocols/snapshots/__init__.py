"""KIP-630, the quorum's log with snapshots: state, log, fetch, late responses, actions, promises, proof, view."""

from ...core.registration import Registration

from . import log, votes, fetch, late, actions, impl_spec, promises, tla  # isort: skip  # noqa: F401 - what they register belongs to the protocol
from .state import snapshots

__all__ = ["REGISTRATION", "snapshots"]

REGISTRATION = Registration(
    __name__,
    snapshots,
    proof=".proof:kip_630",
    more_proofs=(".proof_votes:kip_630_votes",),
    view=".view:SNAPSHOTS",
    harness="fencepost.conformance.protocols.snapshots:HARNESS",
)
