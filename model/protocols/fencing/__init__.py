"""Kafka's ISR replication and KIP-320's fencing of replicas: state, actions, promises, liveness, proof, view."""

from ...core.registration import Registration

from . import actions, alter_isr, impl_spec, fenced, promises, liveness, tla  # isort: skip  # noqa: F401 - what they register belongs to the protocol
from .state import fencing

__all__ = ["REGISTRATION", "fencing"]

REGISTRATION = Registration(
    __name__,
    fencing,
    proof=".proof:kip_320",
    more_proofs=(".proof_brokers:kip_320_brokers", ".proof_alter_isr:kip_497"),
    view=".view:view",
    refinements=".refinements:REFINEMENTS",
    unread=".refinements:UNREAD",
    harness="fencepost.conformance.protocols.fencing:HARNESS",
    brokers_logs=True,
    lossy=".lossy:lossy",
    earlier=("kip-279", "kip-101"),
)
