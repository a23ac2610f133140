"""What a record is that does not fit the image it is replayed on: one line, and nothing of it was applied."""

from __future__ import annotations


class ReplayError(Exception):
    """Base: a record about what is not there, or is otherwise. ``what`` names the record, ``why`` is the reason.

    A committed record never raises it unless the log, the snapshot or the code is wrong.
    """

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}; nothing of it was applied")
        self.what = what
        self.why = why


class UnknownBroker(ReplayError):
    """The broker is not registered."""


class StaleBroker(ReplayError):
    """The broker is registered with another epoch, or a registration goes back to an older one."""


class BrokerState(ReplayError):
    """The broker is fenced already, not fenced, or not fenced yet where it has to be."""


class UnknownTopic(ReplayError):
    """No topic has this id."""


class TopicExists(ReplayError):
    """A topic has this id or name already."""


class UnknownPartition(ReplayError):
    """The topic has no such partition, or not the one before it."""


class PartitionExists(ReplayError):
    """The topic has this partition already."""


class InvalidPartition(ReplayError):
    """Replicas, ISR, leader or epochs that no partition can have, or not after those that it has."""


class UnknownConfig(ReplayError):
    """A config that is not set is deleted."""


class UnknownRecord(ReplayError):
    """A record of a type that the image has no use for."""


class InvalidFeature(ReplayError):
    """A level below 0, or a feature that is off is turned off."""
