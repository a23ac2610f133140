"""KIP-631, the controller over the metadata log: state, images, quorum, brokers, partitions, snapshots, promises."""

from ...core.registration import Registration
from .state import controller

from . import quorum, brokers, partitions, snapshotting, promises, liveness, tla  # isort: skip  # noqa: F401 - what they register belongs to the protocol

__all__ = ["REGISTRATION", "controller"]

REGISTRATION = Registration(
    __name__,
    controller,
    proof=".proof:kip_631",
    more_proofs=(".proof_bootstrapped:kip_631_bootstrapped",),
    view=".view:CONTROLLERS",
    harness="fencepost.conformance.protocols.controller:HARNESS",
)
