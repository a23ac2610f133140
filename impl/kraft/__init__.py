"""The controller of KIP-631 over the quorum's log, and brokers that take their metadata from there."""

from .active import ActiveController
from .broker import MetadataBroker
from .config import ControllerConfig, LifecycleConfig
from .decision import Decision
from .node import ControllerNode, take_snapshot

__all__ = [
    "ActiveController",
    "ControllerConfig",
    "ControllerNode",
    "Decision",
    "LifecycleConfig",
    "MetadataBroker",
    "take_snapshot",
]
