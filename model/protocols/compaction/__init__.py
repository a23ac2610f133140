"""KIP-280, log compaction by offset, timestamp or header: its state, steps, promises and view."""

from ...core.registration import Registration
from .state import compaction

from . import strategy, replication, cleaning, consumer, promises, liveness, tla  # isort: skip  # noqa: F401 - what they register belongs to the protocol

__all__ = ["REGISTRATION", "compaction"]

REGISTRATION = Registration(
    __name__,
    compaction,
    proof=".proof:kip_280",
    view=".view:VIEW",
    harness="fencepost.conformance.protocols.compaction:HARNESS",
)
