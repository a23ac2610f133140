"""What Kafka's processes say to each other of a partition, as messages of ``kafka_controller.py``.

A node of the model is a broker by its place among the cluster's.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ....traces.kafka.cluster import BROKER_IDS
from ...kafka.cluster.proxied_cluster import decoded
from ...kafka.cluster.proxy import Waiting
from ...kafka.controller import AlterPartition, AlterPartitionAnswer, FetchAnswer


def broker_of(node: int) -> int:
    """The id of the broker that a node of the model is."""
    return BROKER_IDS[node]


def node_of(broker: int) -> int:
    """The node of the model that a broker is."""
    return BROKER_IDS.index(broker)


def number_of(end: int | None) -> int:
    """A party in an event's arguments; -1: the controller."""
    return -1 if end is None else end


def party_of(number: int) -> int | None:
    """The party that such a number names."""
    return None if number < 0 else number


def fetched(number: int, answer: Any) -> FetchAnswer:
    """What a leader answers: an answer of a session leaves out a partition of which there is nothing new."""
    error = answer.error_code.name.upper()
    for topic in answer.responses:
        for data in topic.partitions:
            code = data.error_code.name.upper()
            diverges = data.diverging_epoch is not None and data.diverging_epoch.epoch >= 0
            return FetchAnswer(number, code, diverges, int(bool(data.records)))
    return FetchAnswer(number, error, diverges=False, records=0)


def asking(waiting: Waiting) -> AlterPartition:
    """What a leader asks of the controller, by the request that waits."""
    data = decoded(waiting).topics[0].partitions[0]
    isr = frozenset(node_of(each.broker_id) for each in data.new_isr_with_epochs)
    return AlterPartition(waiting.header.correlation, int(data.leader_epoch), isr, int(data.partition_epoch))


def granted(number: int, answer: Any) -> AlterPartitionAnswer:
    """What the controller answers it."""
    if answer.error_code.name != "none" or not answer.topics:
        return AlterPartitionAnswer(number, answer.error_code.name.upper())
    data = answer.topics[0].partitions[0]
    isr = frozenset(node_of(each) for each in data.isr)
    error = data.error_code.name.upper()
    return AlterPartitionAnswer(
        number,
        error,
        node_of(data.leader_id) if data.leader_id > 0 else -1,
        data.leader_epoch,
        isr,
        data.partition_epoch,
    )


def records_of(data: bytes | None) -> list[tuple[int, str]]:
    """Offset and value of the records of a fetch's answer."""
    found: list[tuple[int, str]] = []
    reader, at = import_module("kio.records.readers").read_batch, 0
    while data and at < len(data):
        batch, size = reader(data, at)
        found += ((int(each.offset), (each.value or b"").decode("utf-8", "replace")) for each in batch.records)
        at += size
    return found
