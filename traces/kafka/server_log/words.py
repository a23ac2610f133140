"""What a message of Kafka's loggers says of a partition, as the traces of ``ingest`` need it.

The messages are rows of ``patterns.py``; here their fields become entries.
"""

from __future__ import annotations

from ...timeline.event_kind import EventKind
from .entries import (
    Appends,
    Asks,
    Decides,
    Follows,
    Hears,
    Leads,
    Learns,
    Loads,
    Raises,
    Restarts,
    Said,
    Sets,
    Truncates,
)
from .pattern import Fields
from .patterns import match_message

K = EventKind
LOG_LOGGERS = frozenset({"UnifiedLog", "Log"})
"""Classes of the log, by release."""
CONTROLLER_LOGGER = "ReplicationControlManager"
ZOOKEEPER_LOGGERS = frozenset({"logger", "KafkaController"})
"""Classes that report what a controller with ZooKeeper writes; the first one reports about brokers too."""


def said_by(logger: str, message: str) -> tuple[str, Said] | None:
    """The partition, and what a broker reports about it; ``None`` for nothing.

    Args:
        logger: Last part of the logger's name.
        message: The text that Kafka logged.

    Raises:
        ValueError: A number is none of Kafka's, or the release does not log the leader of a follower.
    """
    for kind, fields in match_message(logger, message):
        said = _of_broker(logger, message, kind, fields)
        if said is not None:
            return str(fields["partition"]), said
    return None


def decided(message: str, altered: set[str]) -> tuple[str, Said] | None:
    """The partition, and what the controller decides about it; ``None`` for nothing.

    Args:
        message: The text that ``ReplicationControlManager`` logged.
        altered: Partitions whose leader has just altered the ISR. The line before a change says so; it is kept here.

    Raises:
        ValueError: A number is none of Kafka's, or a change names no partition epoch.
    """
    for kind, fields in match_message(CONTROLLER_LOGGER, message):
        name = str(fields.get("partition"))
        if kind is K.ISR_REQUESTED:
            altered.add(name)
            return None
        if kind not in (K.PARTITION_CREATED, K.PARTITION_CHANGED, K.UNCLEAN_ELECTION):
            return None
        if "partition_epoch" not in fields:
            raise ValueError(f"a change of {name} names no partition epoch")
        said = Decides(
            fields["partition_epoch"],
            fields.get("leader"),
            fields.get("leader_epoch"),
            fields.get("isr"),
            fields.get("replicas"),
            created=kind is K.PARTITION_CREATED,
            altered=name in altered,
            unclean=kind is K.UNCLEAN_ELECTION,
        )
        altered.discard(name)
        return name, said
    return None


def decided_with_zookeeper(logger: str, message: str) -> tuple[str, Decides] | None:
    """The partition, and what a controller with ZooKeeper writes about it; ``None`` for nothing.

    Such a controller logs the whole state after each write: elections and removals from the ISR at INFO, the ISRs that
    leaders ask for at DEBUG. A leader logs the latter at INFO, with their partition epoch.

    Raises:
        ValueError: A number is none of Kafka's.
    """
    for kind, fields in match_message(logger, message):
        if kind is K.ISR_UPDATED and "partition_epoch" in fields:
            asked = Decides(fields["partition_epoch"], isr=fields["isr"], altered=True)
            return str(fields["partition"]), asked
        whole = {"partition_epoch", "leader", "leader_epoch", "isr"} <= fields.keys()
        if kind is not K.PARTITION_CHANGED or not whole:
            return None
        created = "from NewPartition to OnlinePartition" in message
        said = Decides(
            fields["partition_epoch"],
            fields["leader"],
            fields["leader_epoch"],
            fields["isr"],
            fields["isr"] if created else None,
            created=created,
            altered="ISR for partition" in message,
            unclean="recovering" in fields,
        )
        return str(fields["partition"]), said
    return None


def _of_broker(logger: str, message: str, kind: EventKind, fields: Fields) -> Said | None:
    of_log = logger in LOG_LOGGERS
    match kind:
        case K.LOG_LOADED if logger == "Partition":
            return Loads(fields["high_watermark"])
        case K.LEADER_STARTED if "isr" in fields:
            return Leads(fields["leader_epoch"], fields["log_end"], fields["high_watermark"], fields["isr"])
        case K.FOLLOWER_STARTED:
            if "leader" not in fields:
                raise ValueError("a follower's line names no leader, as before Kafka 3.3")
            return Follows(fields["leader_epoch"], fields["log_end"], fields["high_watermark"], fields["leader"])
        case K.ROLE_SKIPPED if "become-leader" in message and "isr" in fields:
            return Learns(fields["isr"])
        case K.ISR_UPDATED:
            return Learns(fields["isr"])
        case K.ISR_REQUESTED if "isr" in fields:
            return Asks(fields["isr"])
        case K.HIGH_WATERMARK if logger == "Partition":
            return Raises(fields["high_watermark"])
        case K.HIGH_WATERMARK if of_log:
            return Sets(fields["high_watermark"])
        case K.FOLLOWER_FETCH:
            return Hears(fields["follower"], fields["offset"])
        case K.APPENDED:
            return Appends(fields["log_end"])
        case K.TRUNCATED if of_log:
            return Truncates(fields["offset"])
        case K.TRUNCATED_FULLY if of_log:
            return Restarts()
        case _:
            return None
