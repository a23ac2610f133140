"""KIP-280, log compaction by offset, timestamp or header: state, strategies, replication, cleaning, consumer, promises, view."""

from ...core.registration import Registration
from .state import compaction

from . import strategy, replication, cleaning, consumer, promises  # isort: skip  # noqa: F401 - what they register belongs to the protocol

__all__ = ["REGISTRATION", "compaction"]

REGISTRATION = Registration(
    __name__,
    compaction,
    view=".view:VIEW",
    harness="fencepost.conformance.protocols.compaction:HARNESS",
)
