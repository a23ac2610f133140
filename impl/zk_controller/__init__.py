"""The controller: who leads each partition, in which leader epoch, with which ISR."""

from .controller import Controller
from .errors import (
    ControllerError,
    ControllerStopped,
    ElectionNotNeeded,
    InvalidPartition,
    NotEligible,
    NotInIsr,
    PartitionExists,
    StaleIncarnation,
    UnknownBroker,
    UnknownPartition,
    UnknownTopic,
)
from .partition import PartitionState
from .store import CHECKPOINT, Registration

__all__ = [
    "CHECKPOINT",
    "Controller",
    "ControllerError",
    "ControllerStopped",
    "ElectionNotNeeded",
    "InvalidPartition",
    "NotEligible",
    "NotInIsr",
    "PartitionExists",
    "PartitionState",
    "Registration",
    "StaleIncarnation",
    "UnknownBroker",
    "UnknownPartition",
    "UnknownTopic",
]
