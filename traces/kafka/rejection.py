"""A record of the metadata log that Kafka's replay rejects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from .statefiles import encode_uuid

if TYPE_CHECKING:
    from .metadata import MetadataRecord

_KEYS = {
    "Name": "name",
    "TopicName": "topic",
    "TopicId": "topic id",
    "PartitionId": "partition",
    "BrokerId": "broker",
    "ControllerId": "controller",
    "BrokerEpoch": "broker epoch",
    "Epoch": "broker epoch",
    "Mechanism": "mechanism",
    "TokenId": "token",
    "FeatureLevel": "level",
    "NextProducerId": "next producer id",
    "ResourceType": "resource type",
    "ResourceName": "resource",
}
"""The fields that identify a record, in the order in which they are shown."""


class Refusal(NamedTuple):
    """Why a node of Kafka throws on a record.

    ``brokers_too``: brokers throw as well as controllers. ``sure`` is false if another release may accept the record.
    """

    reason: str
    brokers_too: bool = True
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Rejection:
    """The first record of a log, or of a snapshot, that Kafka's replay rejects."""

    offset: int
    """Metadata offset; in a snapshot, the number of the record in it, from 0."""
    record: str
    """Type and key fields."""
    refusal: Refusal
    position: int
    """Byte of the batch in its file."""
    in_snapshot: bool = False

    def __str__(self) -> str:
        return f"{self.record}: {self.refusal.reason}"

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {
            "offset": self.offset,
            "record": self.record,
            "reason": self.refusal.reason,
            "brokers_reject": self.refusal.brokers_too,
            "sure": self.refusal.sure,
        }


def describe_record(record: MetadataRecord) -> str:
    """The type of a record and the fields that identify what it is about."""
    fields = dict(record.fields)
    number = fields.get("Id")
    if isinstance(number, UUID):  # an access control entry
        return f"{record.type} (id {encode_uuid(number)})"
    if number is not None:
        fields["BrokerId"] = number
    shown = [f"{words} {_text(fields[name])}" for name, words in _KEYS.items() if name in fields]
    return f"{record.type} ({', '.join(shown)})" if shown else record.type


def _text(value: object) -> str:
    return encode_uuid(value) if isinstance(value, UUID) else str(value)
