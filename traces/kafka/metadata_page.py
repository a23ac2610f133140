"""Records of the metadata log as the page of KIP-631 has them, which our controllers write (``impl/metadata``).

They have no frame version before type and version, numbers and fields of their own, and two that Apache Kafka has not:
IsrChangeRecord names the state that a partition is in from then on, and FenceBrokerRecord is an event. Whoever replays
it takes the broker out of each ISR, but as its last member, and out of each leadership, where the first live member of
the ISR leads instead (``specs/DEVIATIONS.md``, W1 to W11 and C2). All others are told here as Kafka's records that say
the same, so that one image is made of either form.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from .metadata import Field, MetadataError, MetadataRecord, Schema, decode_unframed, schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .image import MetadataImage, PartitionState

_KAFKA_FRAME = 1
_UNCLEAN = "unclean.leader.election.enable"
_ENDPOINT = (
    Field("Name", "string"),
    Field("Host", "string"),
    Field("Port", "uint16"),
    Field("SecurityProtocol", "int16"),
)
_KEY = [Field("PartitionId", "int32"), Field("TopicId", "uuid")]
_BROKER = [Field("Id", "int32"), Field("Epoch", "int64", since=1)]
_EPOCHS = [Field("Leader", "int32"), Field("LeaderEpoch", "int32"), Field("PartitionEpoch", "int32", since=1)]

SCHEMAS: dict[int, Schema] = {
    0: schema(
        "BrokerRecord",
        1,
        [
            Field("BrokerId", "int32"),
            Field("BrokerEpoch", "int64"),
            Field("EndPoints", "[]", items=_ENDPOINT),
            Field("Rack", "string", nullable=True),
            Field("IncarnationId", "uuid", since=1),
            Field("Fenced", "bool", since=1),
            Field("InControlledShutdown", "bool", since=1),
        ],
    ),
    1: schema("TopicRecord", 0, [Field("Name", "string"), Field("TopicId", "uuid"), Field("Deleting", "bool")]),
    2: schema(
        "PartitionRecord",
        1,
        [
            *_KEY,
            *(Field(name, "[]int32") for name in ("Replicas", "Isr", "RemovingReplicas", "AddingReplicas")),
            *_EPOCHS,
        ],
    ),
    3: schema(
        "ConfigRecord",
        1,
        [
            Field("ResourceType", "int8"),
            Field("ResourceName", "string"),
            Field("Name", "string"),
            Field("Value", "string", nullable=True),
        ],
    ),
    4: schema("IsrChangeRecord", 1, [*_KEY, Field("Isr", "[]int32"), *_EPOCHS]),
    5: schema("UnregisterBrokerRecord", 0, [Field("BrokerId", "int32"), Field("BrokerEpoch", "int64")]),
    7: schema("FenceBrokerRecord", 1, _BROKER),
    8: schema("UnfenceBrokerRecord", 1, _BROKER),
    9: schema("RemoveTopicRecord", 0, [Field("TopicId", "uuid")]),
    12: schema("FeatureLevelRecord", 0, [Field("Name", "string"), Field("FeatureLevel", "int16")]),
}
"""By type: the page's own from 0 to 4, and those that it or KIP-630 only names."""


def decode_page_record(value: bytes) -> MetadataRecord:
    """Decode a record's value. Raises ``MetadataError`` for one that does not fit, or of another type or version."""
    found = decode_unframed(value, 0, SCHEMAS)
    if found is None:
        raise MetadataError("a record of a type that is none of KIP-631's")
    newest = next(each.max_version for each in SCHEMAS.values() if each.name == found.type)
    if found.version > newest:
        raise MetadataError(f"a {found.type} of version {found.version}, the newest is {newest}")
    return found


def is_of_page(value: bytes) -> bool:
    """Whether the first record of a log, or of a snapshot, is in the page's form: a record of Kafka's begins with 1.

    So does the page's TopicRecord; but neither a log nor a snapshot begins with one.
    """
    if not value or value[0] == _KAFKA_FRAME:
        return False
    try:
        decode_page_record(value)
    except MetadataError:
        return False
    return True


def told_as_kafka(record: MetadataRecord, image: MetadataImage) -> MetadataRecord:
    """Kafka's record that says the same of this image; an IsrChangeRecord and a FenceBrokerRecord stay what they are.

    Version 0 of FenceBrokerRecord and UnfenceBrokerRecord names no epoch, and means whatever process is registered.
    """
    fields = record.fields
    match record.type:
        case "BrokerRecord":
            return _broker(record, image)
        case "PartitionRecord":
            more = {"PartitionEpoch": fields["LeaderEpoch"], "LeaderRecoveryState": 0}
            return _with(record, {**more, "EligibleLeaderReplicas": None, "LastKnownElr": None, **fields})
        case "FenceBrokerRecord" | "UnfenceBrokerRecord":
            known = image.brokers.get(fields["Id"])
            return _with(record, {"Epoch": -1 if known is None else known.epoch, **fields})
    return record


def _with(record: MetadataRecord, fields: dict[str, Any]) -> MetadataRecord:
    return MetadataRecord(record.type, record.version, fields)


def _broker(record: MetadataRecord, image: MetadataImage) -> MetadataRecord:
    """A registration; of a process that is registered, that it shuts down."""
    fields: dict[str, Any] = {
        "IncarnationId": UUID(int=0),
        "Fenced": True,
        "InControlledShutdown": False,
        "LogDirs": [],
        **record.fields,
    }
    known = image.brokers.get(fields["BrokerId"])
    if known is None or known.epoch != fields["BrokerEpoch"]:
        return MetadataRecord("RegisterBrokerRecord", record.version, fields)
    fenced = 0 if fields["Fenced"] == known.fenced else 1 if fields["Fenced"] else -1
    stops = int(fields["InControlledShutdown"])
    changed = {**fields, "Fenced": fenced, "InControlledShutdown": stops}
    return MetadataRecord("BrokerRegistrationChangeRecord", record.version, changed)


def without(image: MetadataImage, broker: int) -> Iterator[tuple[str, int, PartitionState]]:
    """What becomes of partitions when a broker is fenced, by topic and number: of each that changes its next state."""

    def alive(each: int) -> bool:
        known = image.brokers.get(each)
        return known is not None and not known.fenced and not known.in_controlled_shutdown

    for topic in image.topics.values():
        for number, states in topic.history.items():
            state = states[-1]
            isr = tuple(each for each in state.isr if each != broker) or state.isr
            leader = state.leader
            if leader == broker:
                live = [each for each in state.replicas if each != broker and alive(each)]
                leader = next((each for each in live if each in isr), -1)
                if leader < 0 and live and _is_unclean(image, topic.name):
                    leader, isr = live[0], (live[0],)
            if (leader, isr) != (state.leader, state.isr):
                begins = leader != state.leader
                yield (
                    topic.name,
                    number,
                    replace(
                        state,
                        leader=leader,
                        isr=isr,
                        leader_epoch=state.leader_epoch + begins,
                        partition_epoch=state.partition_epoch + 1,
                    ),
                )


def _is_unclean(image: MetadataImage, topic: str) -> bool:
    for configs in (image.configs.get(topic, {}), image.broker_configs.get("", {})):
        if _UNCLEAN in configs:
            return configs[_UNCLEAN].lower() == "true"
    return False
