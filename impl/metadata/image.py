"""The image: all metadata of a cluster, as the records of its log make it (``MetadataImage`` in Kafka).

A record is checked as a whole before anything of it is applied, so that what does not fit changes nothing. What is kept
for a broker, topic or partition is never changed but replaced, so that a fork shares it: going back from pending to
committed changes is to drop one fork and to take another, which costs one copy of the dicts' references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from ..wire.controller import Endpoint, ResourceType
from ..wire.messages import NO_LEADER
from . import changes
from .elections import PartitionImage, without
from .replay_errors import (
    BrokerState,
    InvalidFeature,
    InvalidPartition,
    PartitionExists,
    StaleBroker,
    TopicExists,
    UnknownBroker,
    UnknownConfig,
    UnknownPartition,
    UnknownRecord,
    UnknownTopic,
)
from .values import MetadataRecord

UNCLEAN_ELECTION = "unclean.leader.election.enable"
NO_INCARNATION = UUID(int=0)
"""That of a process that registered by a record of version 0."""
ALL_BROKERS = ""
"""The name of the resource of type BROKER whose configs hold for every broker, and for topics without their own."""


class BrokerImage(NamedTuple):
    """A registered broker. ``epoch``: the offset of its registration; a broker is fenced when it registers."""

    epoch: int
    incarnation: UUID
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    fenced: bool = True
    shutting_down: bool = False


class TopicImage(NamedTuple):
    """A topic with partitions 0 to ``partitions`` - 1."""

    name: str
    partitions: int = 0


class PartitionKey(NamedTuple):
    """A partition by the id of its topic: a topic that is deleted and made anew under its name is another one."""

    topic: UUID
    partition: int


class ResourceKey(NamedTuple):
    """What has configs."""

    type: int
    name: str


class Image:
    """Everything. The dicts are to be looked at; ``replay`` alone changes them."""

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerImage] = {}
        self.topics: dict[UUID, TopicImage] = {}
        self.names: dict[str, UUID] = {}
        self.partitions: dict[PartitionKey, PartitionImage] = {}
        self.configs: dict[ResourceKey, Mapping[str, str]] = {}
        self.features: dict[str, int] = {}
        """Levels by the features' names; one that is off is not here."""
        self.touched: set[PartitionKey] | None = None
        """Where it is a set, every partition that a record has made, changed or removed is put into it."""

    def fork(self) -> Image:
        """An image of its own with the same content."""
        made = Image()
        made.brokers = self.brokers.copy()
        made.topics = self.topics.copy()
        made.names = self.names.copy()
        made.partitions = self.partitions.copy()
        made.configs = self.configs.copy()
        made.features = self.features.copy()
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Image):
            return NotImplemented
        return (
            self.brokers == other.brokers
            and self.topics == other.topics
            and self.partitions == other.partitions
            and self.configs == other.configs
            and self.features == other.features
        )

    __hash__ = None  # type: ignore[assignment]

    # -- looking ----------------------------------------------------------------------------------------------------

    def alive(self, broker: int) -> bool:
        """Whether a broker may lead and be in an ISR: registered, not fenced, not shutting down (KIP-841)."""
        known = self.brokers.get(broker)
        return known is not None and not known.fenced and not known.shutting_down

    def leads(self, broker: int) -> bool:
        """Whether a broker leads a partition."""
        return any(each.leader == broker for each in self.partitions.values())

    def unclean(self, topic: UUID) -> bool:
        """Whether a replica outside of the ISR may be elected: the topic's config, else that of all brokers."""
        for resource in (
            ResourceKey(ResourceType.TOPIC, self.topics[topic].name),
            ResourceKey(ResourceType.BROKER, ALL_BROKERS),
        ):
            value = self.configs.get(resource, {}).get(UNCLEAN_ELECTION)
            if value is not None:
                return value == "true"
        return False

    def without(self, broker: int) -> dict[PartitionKey, PartitionImage]:
        """What becomes of the partitions that a broker leads, or in whose ISR it is, when it may be in neither."""
        changed = {}
        for key, partition in self.partitions.items():
            if broker in partition.isr or partition.leader == broker:
                after = without(partition, broker, self.alive, unclean=self.unclean(key.topic))
                if after is not partition:
                    changed[key] = after
        return changed

    # -- records ----------------------------------------------------------------------------------------------------

    def records(self) -> Iterator[MetadataRecord]:
        """The fewest records that describe it, in an order in which they can be replayed, and always the same one."""
        for name, level in sorted(self.features.items()):
            yield changes.feature(name, level)
        for broker, known in sorted(self.brokers.items()):
            yield changes.registration(broker, known)
        for topic, told in sorted(self.topics.items()):
            yield changes.topic(topic, told.name)
            for number in range(told.partitions):
                key = PartitionKey(topic, number)
                yield changes.partition(key, self.partitions[key])
        for resource, values in sorted(self.configs.items()):
            for name, value in sorted(values.items()):
                yield changes.config(resource.type, resource.name, name, value)

    def replay(self, record: MetadataRecord) -> None:
        """Apply a record. Raises ``ReplayError`` with nothing changed."""
        replayed = _REPLAYS.get(record.type)
        if replayed is None:
            raise UnknownRecord(f"a {record.type:.80}", "the image has no use for it")
        replayed(self, record.fields)

    def _touch(self, keys: Iterable[PartitionKey]) -> None:
        if self.touched is not None:
            self.touched.update(keys)

    # -- brokers ----------------------------------------------------------------------------------------------------

    def _broker(self, what: str, broker: int, epoch: int | None) -> BrokerImage:
        """The registered broker; version 0 of some records names no epoch, and means whatever process there is."""
        known = self.brokers.get(broker)
        if known is None:
            raise UnknownBroker(what, "no such broker is registered")
        if epoch not in (None, known.epoch):
            raise StaleBroker(what, f"it is registered with epoch {known.epoch}, the record has {epoch}")
        return known

    def _register(self, fields: Mapping[str, Any]) -> None:
        """A new process, which is fenced where there was one before; or of the same one that it shuts down."""
        broker, epoch = fields["BrokerId"], fields["BrokerEpoch"]
        what = f"registration of broker {broker}"
        ends = tuple(
            Endpoint(*(each.fields[name] for name in ("Name", "Host", "Port", "SecurityProtocol")))
            for each in fields["EndPoints"]
        )
        told = BrokerImage(
            epoch,
            fields.get("IncarnationId", NO_INCARNATION),
            ends,
            fields["Rack"],
            fields.get("Fenced", True),
            fields.get("InControlledShutdown", False),
        )
        known = self.brokers.get(broker)
        if known is not None and known.epoch > epoch:
            raise StaleBroker(what, f"epoch {epoch} after {known.epoch}")
        if known is not None and known.epoch == epoch:
            if told != known._replace(shutting_down=True):
                raise BrokerState(what, "a process may change nothing of its registration but that it shuts down")
        elif known is not None and not known.fenced:
            raise BrokerState(what, f"its former process, of epoch {known.epoch}, is not fenced")
        elif known is not None and not told.fenced:
            raise BrokerState(what, "a new process begins fenced")
        self.brokers[broker] = told

    def _unregister(self, fields: Mapping[str, Any]) -> None:
        broker = fields["BrokerId"]
        what = f"end of the registration of broker {broker}"
        if not self._broker(what, broker, fields["BrokerEpoch"]).fenced:
            raise BrokerState(what, "it is not fenced")
        del self.brokers[broker]

    def _fence(self, fields: Mapping[str, Any]) -> None:
        """One record for all of a broker's partitions: what becomes of each follows from the image (KIP-630)."""
        broker = fields["Id"]
        what = f"fencing of broker {broker}"
        known = self._broker(what, broker, fields.get("Epoch"))
        if known.fenced:
            raise BrokerState(what, "it is fenced")
        self.brokers[broker] = known._replace(fenced=True)
        changed = self.without(broker)
        self.partitions.update(changed)
        self._touch(changed)

    def _unfence(self, fields: Mapping[str, Any]) -> None:
        broker = fields["Id"]
        what = f"unfencing of broker {broker}"
        known = self._broker(what, broker, fields.get("Epoch"))
        if not known.fenced:
            raise BrokerState(what, "it is not fenced")
        self.brokers[broker] = known._replace(fenced=False)

    # -- topics -----------------------------------------------------------------------------------------------------

    def _topic(self, fields: Mapping[str, Any]) -> None:
        topic, name = fields["TopicId"], fields["Name"]
        if fields["Deleting"]:
            raise UnknownRecord(f"topic {name!r:.80}, which is being deleted", "RemoveTopicRecord deletes at once")
        if topic in self.topics or name in self.names:
            raise TopicExists(f"topic {name!r:.80}, {topic}", "one with this name or id is there")
        self.topics[topic] = TopicImage(name)
        self.names[name] = topic

    def _remove_topic(self, fields: Mapping[str, Any]) -> None:
        topic = fields["TopicId"]
        told = self.topics.get(topic)
        if told is None:
            raise UnknownTopic(f"end of topic {topic}", "no topic has this id")
        del self.topics[topic], self.names[told.name]
        keys = [PartitionKey(topic, number) for number in range(told.partitions)]
        for key in keys:
            del self.partitions[key]
        self._touch(keys)
        self.configs.pop(ResourceKey(ResourceType.TOPIC, told.name), None)

    def _partition(self, fields: Mapping[str, Any]) -> None:
        key = PartitionKey(fields["TopicId"], fields["PartitionId"])
        what = f"partition {key.partition} of topic {key.topic}"
        told = self.topics.get(key.topic)
        if told is None:
            raise UnknownTopic(what, "no topic has this id")
        if key in self.partitions:
            raise PartitionExists(what, "it is there")
        if key.partition != told.partitions:
            raise UnknownPartition(what, f"the topic has {told.partitions} partitions, and the next has that number")
        made = PartitionImage(
            tuple(fields["Replicas"]),
            tuple(fields["Isr"]),
            fields["Leader"],
            fields["LeaderEpoch"],
            # Version 0 has no partition epoch: there the leader epoch rises with each change of the ISR.
            fields.get("PartitionEpoch", fields["LeaderEpoch"]),
            tuple(fields["RemovingReplicas"]),
            tuple(fields["AddingReplicas"]),
        )
        _check(what, made)
        self.topics[key.topic] = told._replace(partitions=told.partitions + 1)
        self.partitions[key] = made
        self._touch((key,))

    def _isr(self, fields: Mapping[str, Any]) -> None:
        key = PartitionKey(fields["TopicId"], fields["PartitionId"])
        what = f"ISR of partition {key.partition} of topic {key.topic}"
        known = self.partitions.get(key)
        if known is None:
            raise UnknownPartition(what, "there is no such partition")
        epoch = fields["LeaderEpoch"]
        after = known._replace(
            isr=tuple(fields["Isr"]),
            leader=fields["Leader"],
            leader_epoch=epoch,
            partition_epoch=known.partition_epoch + 1,
        )
        if fields.get("PartitionEpoch", after.partition_epoch) != after.partition_epoch:
            raise InvalidPartition(what, f"partition epoch {fields['PartitionEpoch']} after {known.partition_epoch}")
        if epoch < known.leader_epoch:
            raise InvalidPartition(what, f"leader epoch {epoch} after {known.leader_epoch}")
        if epoch == known.leader_epoch and after.leader != known.leader:
            raise InvalidPartition(what, f"leader {after.leader} in the epoch of leader {known.leader}")
        _check(what, after)
        self.partitions[key] = after
        self._touch((key,))

    # -- configs ----------------------------------------------------------------------------------------------------

    def _config(self, fields: Mapping[str, Any]) -> None:
        resource = ResourceKey(fields["ResourceType"], fields["ResourceName"])
        name, value = fields["Name"], fields["Value"]
        what = f"config {name!r:.80} of {resource.name!r:.80}"
        if resource.type == ResourceType.TOPIC and resource.name not in self.names:
            raise UnknownTopic(what, "no topic has this name")
        values = self.configs.get(resource, {})
        if value is not None:
            self.configs[resource] = {**values, name: value}
            return
        if name not in values:
            raise UnknownConfig(what, "it is not set")
        left = {each: other for each, other in values.items() if each != name}
        if left:
            self.configs[resource] = left
        else:
            del self.configs[resource]

    def _feature(self, fields: Mapping[str, Any]) -> None:
        name, level = fields["Name"], fields["FeatureLevel"]
        if level < 0 or (level == 0 and name not in self.features):
            raise InvalidFeature(f"feature {name!r:.80}", f"level {level} after {self.features.get(name, 0)}")
        if level:
            self.features[name] = level
        else:
            del self.features[name]


def _check(what: str, partition: PartitionImage) -> None:
    replicas, isr, leader = partition.replicas, partition.isr, partition.leader
    if not replicas or len(set(replicas)) < len(replicas):
        raise InvalidPartition(what, f"replicas {replicas}")
    if not isr or len(set(isr)) < len(isr) or not set(isr) <= set(replicas):
        raise InvalidPartition(what, f"ISR {isr} of replicas {replicas}")
    if leader != NO_LEADER and leader not in isr:
        raise InvalidPartition(what, f"leader {leader} is not in the ISR {isr}")
    if partition.leader_epoch < 0 or partition.partition_epoch < 0:
        raise InvalidPartition(what, f"epochs {partition.leader_epoch} and {partition.partition_epoch}")


_REPLAYS: dict[str, Callable[[Image, Mapping[str, Any]], None]] = {
    changes.BROKER: Image._register,
    changes.UNREGISTER: Image._unregister,
    changes.FENCE: Image._fence,
    changes.UNFENCE: Image._unfence,
    changes.TOPIC: Image._topic,
    changes.REMOVE_TOPIC: Image._remove_topic,
    changes.PARTITION: Image._partition,
    changes.ISR: Image._isr,
    changes.CONFIG: Image._config,
    changes.FEATURE: Image._feature,
}
