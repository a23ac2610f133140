"""KIP-320 for consumers, who notice that a log was truncated: state, partition, actions, promises, proof, view."""

from ...core.registration import Registration

from . import partition, actions, serving, polling, validating, promises, reported, tla  # isort: skip  # noqa: F401 - what they register belongs to the protocol
from .state import truncation

__all__ = ["REGISTRATION", "truncation"]

REGISTRATION = Registration(
    __name__,
    truncation,
    proof=".proof:kip_320_mended",
    view=".view:TRUNCATION",
    harness="fencepost.conformance.protocols.truncation:HARNESS",
)
