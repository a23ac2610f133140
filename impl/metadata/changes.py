"""The records that the controller writes, made from what they say. All are of the latest version of their type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from ..wire.controller import Endpoint
from .elections import PartitionImage
from .values import MetadataRecord, Struct

if TYPE_CHECKING:
    from .image import BrokerImage, PartitionKey

BROKER = "BrokerRecord"
UNREGISTER = "UnregisterBrokerRecord"
FENCE = "FenceBrokerRecord"
UNFENCE = "UnfenceBrokerRecord"
TOPIC = "TopicRecord"
REMOVE_TOPIC = "RemoveTopicRecord"
PARTITION = "PartitionRecord"
ISR = "IsrChangeRecord"
CONFIG = "ConfigRecord"
FEATURE = "FeatureLevelRecord"


def register(
    broker: int, epoch: int, incarnation: UUID, endpoints: Sequence[Endpoint], rack: str | None
) -> MetadataRecord:
    """A broker process has registered, and is fenced."""
    ends = tuple(
        Struct({"Name": each.name, "Host": each.host, "Port": each.port, "SecurityProtocol": each.security_protocol})
        for each in endpoints
    )
    fields = {"BrokerId": broker, "BrokerEpoch": epoch, "EndPoints": ends, "Rack": rack, "IncarnationId": incarnation}
    return MetadataRecord(BROKER, 1, {**fields, "Fenced": True, "InControlledShutdown": False})


def registration(broker: int, known: BrokerImage) -> MetadataRecord:
    """All that is known of a registered broker."""
    made = register(broker, known.epoch, known.incarnation, known.endpoints, known.rack)
    return made._replace(fields={**made.fields, "Fenced": known.fenced, "InControlledShutdown": known.shutting_down})


def unregister(broker: int, epoch: int) -> MetadataRecord:
    """A broker is no part of the cluster any more."""
    return MetadataRecord(UNREGISTER, 0, {"BrokerId": broker, "BrokerEpoch": epoch})


def fence(broker: int, epoch: int) -> MetadataRecord:
    """A broker is fenced, and leaves every ISR and leadership."""
    return MetadataRecord(FENCE, 1, {"Id": broker, "Epoch": epoch})


def unfence(broker: int, epoch: int) -> MetadataRecord:
    """A broker may lead and be in an ISR."""
    return MetadataRecord(UNFENCE, 1, {"Id": broker, "Epoch": epoch})


def topic(topic_id: UUID, name: str) -> MetadataRecord:
    """A topic, without partitions yet."""
    return MetadataRecord(TOPIC, 0, {"Name": name, "TopicId": topic_id, "Deleting": False})


def remove_topic(topic_id: UUID) -> MetadataRecord:
    """A topic is gone, with its partitions and configs."""
    return MetadataRecord(REMOVE_TOPIC, 0, {"TopicId": topic_id})


def partition(key: PartitionKey, made: PartitionImage) -> MetadataRecord:
    """A partition as it is."""
    fields = {
        "PartitionId": key.partition,
        "TopicId": key.topic,
        "Replicas": made.replicas,
        "Isr": made.isr,
        "RemovingReplicas": made.removing,
        "AddingReplicas": made.adding,
        "Leader": made.leader,
        "LeaderEpoch": made.leader_epoch,
        "PartitionEpoch": made.partition_epoch,
    }
    return MetadataRecord(PARTITION, 1, fields)


def isr(key: PartitionKey, after: PartitionImage) -> MetadataRecord:
    """A partition has another ISR, leader or leader epoch."""
    fields = {
        "PartitionId": key.partition,
        "TopicId": key.topic,
        "Isr": after.isr,
        "Leader": after.leader,
        "LeaderEpoch": after.leader_epoch,
        "PartitionEpoch": after.partition_epoch,
    }
    return MetadataRecord(ISR, 1, fields)


def config(resource_type: int, resource_name: str, name: str, value: str | None) -> MetadataRecord:
    """A config is set, or with ``None`` it is so no more."""
    fields = {"ResourceType": resource_type, "ResourceName": resource_name, "Name": name, "Value": value}
    return MetadataRecord(CONFIG, 1, fields)


def feature(name: str, level: int) -> MetadataRecord:
    """A feature is at this level in the whole cluster; 0 turns it off."""
    return MetadataRecord(FEATURE, 0, {"Name": name, "FeatureLevel": level})
