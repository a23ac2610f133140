"""What an operator is told when the controller refuses: one line, ``WHERE: WHAT; HOW TO MEND``; nothing was changed."""

from __future__ import annotations


class ControllerError(Exception):
    """Base of the controller's refusals. ``what``, ``where`` and ``mend`` are the parts of the line."""

    def __init__(self, what: str, where: str, mend: str) -> None:
        super().__init__(f"{where}: {what}; {mend}")
        self.what = what
        self.where = where
        self.mend = mend


class UnknownPartition(ControllerError):
    """There is no such partition (Kafka's UNKNOWN_TOPIC_OR_PARTITION)."""


class UnknownTopic(ControllerError):
    """There is no such topic (Kafka's UNKNOWN_TOPIC_OR_PARTITION)."""


class PartitionExists(ControllerError):
    """A partition of this name is there (Kafka's TOPIC_ALREADY_EXISTS)."""


class InvalidPartition(ControllerError):
    """No name of a topic, no number of a partition, or no list of replicas (INVALID_REPLICA_ASSIGNMENT)."""


class UnknownBroker(ControllerError):
    """No broker of this id has ever started."""


class StaleIncarnation(ControllerError):
    """A registration from before the broker's last start (KIP-380's STALE_BROKER_EPOCH)."""


class NotEligible(ControllerError):
    """The replica may not be elected (Kafka's ELIGIBLE_LEADERS_NOT_AVAILABLE)."""


class ElectionNotNeeded(ControllerError):
    """The replica leads already (Kafka's ELECTION_NOT_NEEDED)."""


class NotInIsr(ControllerError):
    """The replica can not be taken out: it is neither leader nor in the ISR."""


class ControllerStopped(ControllerError):
    """This controller acts no more: its store failed, or a broker knows a later controller."""
