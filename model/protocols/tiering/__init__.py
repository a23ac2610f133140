"""KIP-1023, followers that begin at the last tiered offset: state, replication, remote log, bootstrap, promises."""

from ...core.registration import Registration
from .state import tiering

from . import replication, remote_log, bootstrap, promises, liveness, tla  # isort: skip  # noqa: F401 - what they register belongs to the protocol

__all__ = ["REGISTRATION", "tiering"]

REGISTRATION = Registration(
    __name__,
    tiering,
    proof=".proof:kip_1023",
    more_proofs=(".proof_stable:kip_1023_stable",),
    view=".view:TIERED",
    harness="fencepost.conformance.protocols.tiering:HARNESS",
)
