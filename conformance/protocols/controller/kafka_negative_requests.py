"""What Apache Kafka's active controller must refuse whatever its state is, and with which code.

It is asked in a broker's name, and no honest one asks so at such a time. That nothing has changed by it is seen. They
are those of ``negative_requests.py`` that Kafka has a code for, by Kafka's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from .kafka_brokers import AlterPartition, BrokerHeartbeat, BrokerRegistration
from .kafka_log import Image, Partition

Probe = tuple[str, Mapping[str, Any], str]
"""What is asked, the request for the driver, and the code that it must be refused with."""
_NOBODY: Final = 90
"""The number of a broker that there is not."""
_LATER: Final = 1 << 20
"""More than a log has."""
_NO_TOPIC: Final = "AAAAAAAAAAAAAAAAAAAAZw"


def probes(image: Image) -> Iterator[Probe]:
    """All that there are in a state."""
    stale = "STALE_BROKER_EPOCH"
    nobody = BrokerHeartbeat(_NOBODY, 0, 0, fence=False, stop=False)
    yield "unregistered", nobody.asked, stale
    another = {**BrokerRegistration(0, _LATER).asked, "cluster": "another"}
    yield "another-cluster", another, "INCONSISTENT_CLUSTER_ID"
    yield "no-topic", {"kind": "delete", "topic": _NO_TOPIC}, "UNKNOWN_TOPIC_ID"
    yield "no-partition", {"kind": "elect", "name": "none", "unclean": False}, "UNKNOWN_TOPIC_OR_PARTITION"
    for broker, known in sorted(image.brokers.items()):
        # A process that wants nothing, is far, and is the one before.
        former = BrokerHeartbeat(broker, known.epoch - 1, _LATER, fence=False, stop=False)
        yield "old-process", former.asked, stale
    for number, (name, held) in enumerate(sorted(image.partitions.items())):
        yield "topic-again", {"kind": "create", "name": name, "replicas": [0]}, "TOPIC_ALREADY_EXISTS"
        if held.leader is not None:
            yield from _of_leader(image, number, held, held.leader)


def _of_leader(image: Image, number: int, held: Partition, leader: int) -> Iterator[Probe]:
    epochs = {each: known.epoch for each, known in image.brokers.items()}
    members = {each: epochs[each] for each in held.isr}

    def asks(
        members: Mapping[int, int] = members,
        *,
        broker: int = leader,
        own: int = epochs[leader],
        epoch: int = held.leader_epoch,
        version: int = held.partition_epoch,
    ) -> Mapping[str, Any]:
        return AlterPartition(broker, own, number, held.topic, epoch, version, tuple(members.items())).asked

    yield "old-leader", asks(own=epochs[leader] - 1), "STALE_BROKER_EPOCH"
    yield "new-epoch-of-leader", asks(epoch=held.leader_epoch + 1), "NOT_CONTROLLER"
    yield "new-version", asks(version=held.partition_epoch + 1), "NOT_CONTROLLER"
    if held.leader_epoch > 0:
        yield "old-epoch-of-leader", asks(epoch=held.leader_epoch - 1), "FENCED_LEADER_EPOCH"
    if held.partition_epoch > 0:
        yield "old-version", asks(version=held.partition_epoch - 1), "INVALID_UPDATE_VERSION"
    for other in sorted(epochs):
        if other == leader:
            continue
        yield "not-leader", asks(broker=other, own=epochs[other]), "INVALID_REQUEST"
        if image.alive(other):
            yield "without-leader", asks({other: epochs[other]}), "INVALID_REQUEST"
            yield "old-member", asks({**members, other: epochs[other] - 1}), "INELIGIBLE_REPLICA"
        else:
            yield "fenced-member", asks({**members, other: epochs[other]}), "INELIGIBLE_REPLICA"
