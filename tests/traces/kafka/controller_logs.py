"""Random metadata logs: records of all types that fit one after another, with one odd record among them or none.

An odd record is one that no controller writes. Kafka rejects most of them, and replays some; which ones is Kafka's
word, in ``test_replay_kafka.py``. The state here is kept apart from the package's, so that a mistake in one of them
shows.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from .encoder import encode

FEATURES = {
    "metadata.version": (7, 33),
    "group.version": (0, 1),
    "transaction.version": (0, 2),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 2),
    "kraft.version": (0, 1),
}
_MOST_STEPS = 40


@dataclass(frozen=True)
class ControllerLog:
    """A log as batches of record values; the first is the control batch of an election, which has none."""

    batches: list[list[bytes]]
    snapshot: list[bytes] | None = None
    """Records of a snapshot that the log goes on from, at ``start``."""
    start: int = 0
    fault: str = ""
    """The kind of the odd record; empty without one."""

    @property
    def values(self) -> list[tuple[int, bytes]]:
        """Each record of the log with its offset."""
        found, offset = [], self.start
        for each in self.batches:
            found += list(enumerate(each, start=offset))
            offset += max(1, len(each))
        return found


@dataclass
class Partition:
    """A partition: what a later change must fit."""

    replicas: list[int]
    isr: list[int]
    leader: int
    assigned: bool


@dataclass
class Cluster:
    """The decisions of the log so far."""

    brokers: dict[int, int] = field(default_factory=dict)
    directories: dict[int, list[UUID]] = field(default_factory=dict)
    controllers: set[int] = field(default_factory=set)
    topics: dict[str, UUID] = field(default_factory=dict)
    partitions: dict[UUID, dict[int, Partition]] = field(default_factory=dict)
    entries: dict[UUID, dict[str, Any]] = field(default_factory=dict)
    credentials: set[tuple[str, int]] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)
    next_producer_id: int = 0


class Writer:
    """Writes one log; ``chance`` decides everything."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.state = Cluster()
        self.before_transaction: Cluster | None = None
        self._epoch = 0
        self.fault = ""
        self.after_fault: list[bytes] = []
        """Records that follow the odd one at once: by them some faults show."""

    # -- helpers --------------------------------------------------------------------------------------------------

    def uuid(self) -> UUID:
        return UUID(int=self.chance.getrandbits(120) + 1000)

    def next_epoch(self) -> int:
        self._epoch += self.chance.randint(1, 5)
        return self._epoch

    def pick(self, items: Any) -> Any:
        return self.chance.choice(sorted(items))

    def endpoint(self, protocol: int | None = None, name: str = "PLAINTEXT") -> dict[str, Any]:
        chosen = self.chance.randint(0, 3) if protocol is None else protocol
        return {"Name": name, "Host": "localhost", "Port": 9092, "SecurityProtocol": chosen}

    def supported(self) -> list[dict[str, Any]]:
        return [
            {"Name": name, "MinSupportedVersion": low, "MaxSupportedVersion": high}
            for name, (low, high) in FEATURES.items()
        ]

    def register(self, broker: int, epoch: int, directories: list[UUID], **more: Any) -> bytes:
        version = self.chance.randint(3, 4)
        fields: dict[str, Any] = {
            "BrokerId": broker,
            "BrokerEpoch": epoch,
            "IncarnationId": self.uuid(),
            "EndPoints": [self.endpoint()],
            "Features": self.supported(),
            "Rack": self.chance.choice([None, "r1"]),
            "Fenced": True,
            "LogDirs": directories,
        }
        return encode("RegisterBrokerRecord", version, **{**fields, **more})

    def partition_record(self, topic: UUID, number: int, **more: Any) -> bytes:
        version = self.chance.randint(0, 2)
        fields: dict[str, Any] = {"PartitionId": number, "TopicId": topic}
        return encode("PartitionRecord", more.pop("version", version), **{**fields, **more})

    def change(self, topic: UUID, number: int, **more: Any) -> bytes:
        version = self.chance.randint(0, 2)
        fields: dict[str, Any] = {"PartitionId": number, "TopicId": topic}
        return encode("PartitionChangeRecord", more.pop("version", version), **{**fields, **more})

    def any_partition(self) -> tuple[UUID, int, Partition] | None:
        found = [(topic, number) for topic, there in self.state.partitions.items() for number in there]
        if not found:
            return None
        topic, number = self.chance.choice(found)
        return topic, number, self.state.partitions[topic][number]

    # -- records that fit -----------------------------------------------------------------------------------------

    def start(self) -> list[bytes]:
        """The beginning of every cluster: a metadata version, and brokers."""
        records = [encode("FeatureLevelRecord", Name="metadata.version", FeatureLevel=self.chance.randint(7, 33))]
        for _ in range(3):
            records += self.broker()
        return records

    def fitting(self) -> list[bytes]:
        """The next record, or records, of a random type."""
        made: Callable[[], list[bytes]] = self.chance.choice(
            [
                self.broker, self.broker, self.broker_change, self.broker_change, self.controller, self.topic,
                self.topic, self.topic, self.partition_change, self.partition_change, self.partition_change,
                self.remove_topic,
                self.config, self.feature, self.quota, self.producer_ids, self.entry, self.credential, self.token,
                self.other, self.clear_elr,
            ]
        )  # fmt: skip
        return made()

    def broker(self) -> list[bytes]:
        state, broker = self.state, self.chance.randint(0, 5)
        if broker in state.brokers and self.chance.random() < 0.3:
            record = encode("UnregisterBrokerRecord", BrokerId=broker, BrokerEpoch=state.brokers.pop(broker))
            del state.directories[broker]
            return [record]
        if broker in state.brokers and self.chance.random() < 0.5:
            directories = state.directories[broker]
        else:
            directories = [self.uuid() for _ in range(self.chance.randint(0, 2))]
        epoch = self.next_epoch()
        state.brokers[broker], state.directories[broker] = epoch, directories
        return [self.register(broker, epoch, directories)]

    def broker_change(self) -> list[bytes]:
        if not self.state.brokers:
            return []
        broker = self.pick(self.state.brokers)
        epoch = self.state.brokers[broker]
        if self.chance.random() < 0.5:
            return [encode(self.chance.choice(["FenceBrokerRecord", "UnfenceBrokerRecord"]), Id=broker, Epoch=epoch)]
        fields: dict[str, Any] = {"Fenced": self.chance.randint(-1, 1)}
        version = self.chance.randint(0, 3)
        if version >= 1:
            fields["InControlledShutdown"] = self.chance.randint(0, 1)
        if version >= 2 and self.chance.random() < 0.5:
            fields["LogDirs"] = self.state.directories[broker] = [self.uuid()]
        return [
            encode("BrokerRegistrationChangeRecord", version, BrokerId=broker, BrokerEpoch=epoch, **fields)
        ]  # fmt: skip

    def controller(self) -> list[bytes]:
        controllers = self.state.controllers
        if controllers and self.chance.random() < 0.4:
            gone = self.pick(controllers)
            controllers.remove(gone)
            return [encode("UnregisterControllerRecord", ControllerId=gone)]
        controller = self.chance.randint(100, 103)
        controllers.add(controller)
        return [self.register_controller(controller, [self.endpoint(name="CONTROLLER")])]

    def register_controller(self, controller: int, endpoints: list[dict[str, Any]]) -> bytes:
        more = {"EndPoints": endpoints, "Features": self.supported(), "IncarnationId": self.uuid()}
        return encode("RegisterControllerRecord", ControllerId=controller, **more)

    def topic(self) -> list[bytes]:
        state = self.state
        if len(state.topics) > 6:
            return self.remove_topic()
        name = f"{self.chance.choice('abc')}{self.chance.choice('._')}{self.chance.randint(0, 99)}"
        if name in state.topics:
            return []
        topic = state.topics[name] = self.uuid()
        there = state.partitions[topic] = {}
        records = [encode("TopicRecord", Name=name, TopicId=topic)]
        for number in range(self.chance.randint(0, 3)):
            replicas = self.chance.sample(range(6), self.chance.randint(1, 4))
            version = self.chance.randint(0, 2)
            assigned = version >= 1 and self.chance.random() < 0.5
            made = there[number] = Partition(replicas, replicas[:], replicas[0], assigned)
            fields: dict[str, Any] = {"Replicas": replicas, "Isr": replicas, "Leader": made.leader}
            if assigned:
                fields["Directories"] = [self.uuid() for _ in replicas]
            records.append(self.partition_record(topic, number, version=version, LeaderEpoch=0, **fields))
        return records

    def partition_change(self) -> list[bytes]:
        found = self.any_partition()
        if found is None:
            return []
        topic, number, there = found
        version, fields = self.chance.randint(0, 2), {}
        if self.chance.random() < 0.6:
            there.isr = self.chance.sample(there.replicas, self.chance.randint(1, len(there.replicas)))
            fields["Isr"] = there.isr
        if self.chance.random() < 0.5:
            there.leader = self.chance.choice([-1, *there.isr])
            fields["Leader"] = there.leader
        if self.chance.random() < 0.3:
            fields["LeaderRecoveryState"] = self.chance.randint(0, 1)
        if version == 2 and self.chance.random() < 0.5:
            fields["EligibleLeaderReplicas"] = [each for each in there.replicas if each not in there.isr]
        if self.chance.random() < 0.2:  # a reassignment
            replicas = self.chance.sample(range(6), self.chance.randint(1, 4))
            if version >= 1 and self.chance.random() < 0.7:
                fields["Directories"] = [self.uuid() for _ in replicas]
                there.assigned = True
            if not there.assigned or "Directories" in fields:
                there.replicas, there.isr, there.leader = replicas, replicas[:], replicas[0]
                fields |= {"Replicas": replicas, "Isr": replicas, "Leader": replicas[0], "AddingReplicas": replicas[:1]}
        return [self.change(topic, number, version=version, **fields)]

    def remove_topic(self) -> list[bytes]:
        if not self.state.topics:
            return []
        topic = self.state.topics.pop(self.pick(self.state.topics))
        del self.state.partitions[topic]
        return [encode("RemoveTopicRecord", TopicId=topic)]

    def clear_elr(self) -> list[bytes]:
        if self.fault == "topic id under another name":
            return []  # what brokers then do depends on how batches reach them
        return [encode("ClearElrRecord", TopicName=self.chance.choice(["", *sorted(self.state.topics)]))]

    def config(self) -> list[bytes]:
        kind, resource, name = self.chance.choice(
            [
                (2, self.pick(self.state.topics or ["t"]), "retention.ms"),
                (2, "any", "min.insync.replicas"),
                (4, "", "log.retention.ms"),
                (4, str(self.chance.randint(0, 9)), "min.insync.replicas"),
                (16, "metrics", "interval.ms"),
                (32, "group", "consumer.session.timeout.ms"),
            ]
        )
        value = self.chance.choice([None, "1", "2"])
        return [encode("ConfigRecord", ResourceType=kind, ResourceName=resource, Name=name, Value=value)]

    def feature(self) -> list[bytes]:
        name = self.pick(FEATURES)
        return [encode("FeatureLevelRecord", Name=name, FeatureLevel=self.chance.randint(*FEATURES[name]))]

    def quota(self) -> list[bytes]:
        entity = [{"EntityType": "user", "EntityName": self.chance.choice([None, "u"])}]
        remove = self.chance.random() < 0.3
        return [encode("ClientQuotaRecord", Entity=entity, Key="request_percentage", Value=1.5, Remove=remove)]

    def producer_ids(self) -> list[bytes]:
        self.state.next_producer_id += self.chance.randint(1, 1000)
        return [self.producer_block(self.state.next_producer_id)]

    def producer_block(self, next_id: int) -> bytes:
        return encode("ProducerIdsRecord", BrokerId=1, BrokerEpoch=1, NextProducerId=next_id)

    def entry(self) -> list[bytes]:
        entries = self.state.entries
        if entries and self.chance.random() < 0.4:
            gone = self.pick(entries)
            del entries[gone]
            return [encode("RemoveAccessControlEntryRecord", Id=gone)]
        made = self.uuid()
        entries[made] = {
            "ResourceType": self.chance.randint(2, 7), "ResourceName": f"r{len(entries)}-{made}", "PatternType": 3,
            "Principal": "User:u", "Host": "*", "Operation": self.chance.randint(2, 15), "PermissionType": 3,
        }  # fmt: skip
        return [encode("AccessControlEntryRecord", Id=made, **entries[made])]

    def credential(self) -> list[bytes]:
        known = self.state.credentials
        if known and self.chance.random() < 0.4:
            gone = self.pick(known)
            known.remove(gone)
            return [encode("RemoveUserScramCredentialRecord", Name=gone[0], Mechanism=gone[1])]
        name, mechanism = f"u{self.chance.randint(0, 3)}", self.chance.randint(1, 2)
        known.add((name, mechanism))
        more = {"Salt": b"s", "StoredKey": b"k", "ServerKey": b"v", "Iterations": 4096}
        return [encode("UserScramCredentialRecord", Name=name, Mechanism=mechanism, **more)]

    def token(self) -> list[bytes]:
        tokens = self.state.tokens
        if tokens and self.chance.random() < 0.4:
            gone = self.pick(tokens)
            tokens.remove(gone)
            return [encode("RemoveDelegationTokenRecord", TokenId=gone)]
        token = f"t{self.chance.randint(0, 9)}"
        tokens.add(token)
        return [self.delegation_token(token, "User:a", ["User:b"])]

    def delegation_token(self, token: str, owner: str, renewers: list[str]) -> bytes:
        return encode("DelegationTokenRecord", TokenId=token, Owner=owner, Requester="User:c", Renewers=renewers)

    def other(self) -> list[bytes]:
        if self.chance.random() < 0.5:
            return [encode("NoOpRecord")]
        return [encode("ZkMigrationStateRecord", ZkMigrationState=self.chance.randint(0, 4))]

    # -- odd records ----------------------------------------------------------------------------------------------

    def odd(self) -> list[bytes] | None:
        """One odd record, with those that must stand before it; ``None`` if the state gives no occasion for it."""
        self.fault = self.chance.choice(sorted(ODD))
        return ODD[self.fault](self)


def _topic_again(w: Writer, topic_id: UUID | None = None) -> list[bytes] | None:
    if not w.state.topics:
        return None
    name = w.pick(w.state.topics)
    return [encode("TopicRecord", Name=name, TopicId=topic_id or w.state.topics[name])]


def _id_again(w: Writer) -> list[bytes] | None:
    if not w.state.topics:
        return None
    topic = w.state.topics[w.pick(w.state.topics)]
    w.after_fault = [w.partition_record(topic, 0, Replicas=[1, 2], Isr=[1, 2], Leader=1)]
    return [encode("TopicRecord", Name="another.name", TopicId=topic)]


def _of_partition(
    make: Callable[[Writer, UUID, int, Partition], list[bytes]],
) -> Callable[[Writer], list[bytes] | None]:
    def odd(w: Writer) -> list[bytes] | None:
        found = w.any_partition()
        return None if found is None else make(w, *found)

    return odd


def _change(**fields: Any) -> Callable[[Writer], list[bytes] | None]:
    return _of_partition(lambda w, topic, number, _: [w.change(topic, number, version=2, **fields)])


def _other_count(w: Writer, topic: UUID, number: int, there: Partition) -> list[bytes]:
    replicas = [*there.replicas, 9]
    directories = [w.uuid() for _ in there.replicas]
    before = w.change(topic, number, version=1, Directories=directories)
    return [before, w.change(topic, number, Replicas=replicas)]


def _named_twice(w: Writer, topic: UUID, number: int, there: Partition) -> list[bytes]:
    broker = there.replicas[0]
    isr = [broker, broker, *there.replicas[1:]]
    first = w.change(topic, number, Isr=isr, Leader=w.chance.choice([-1, *isr]))
    isrs = [w.chance.sample(there.replicas, w.chance.randint(0, len(there.replicas))) for _ in range(4)]
    w.after_fault = [w.change(topic, number, Isr=each) for each in isrs]
    return [first]


def _nobody_in_isr(w: Writer, topic: UUID, number: int, there: Partition) -> list[bytes]:
    w.after_fault = [w.change(topic, number, Isr=there.replicas), w.change(topic, number, Leader=there.replicas[0])]
    return [w.change(topic, number, Isr=[-1, *there.replicas], Leader=-1)]


def _eligible_twice(w: Writer, topic: UUID, number: int, there: Partition) -> list[bytes]:
    lists = [[7], [], [7], []]
    w.after_fault = [w.change(topic, number, version=2, EligibleLeaderReplicas=each) for each in lists]
    return [w.change(topic, number, version=2, EligibleLeaderReplicas=[7, 7])]


def _of_broker(make: Callable[[Writer, int, int], list[bytes] | None]) -> Callable[[Writer], list[bytes] | None]:
    def odd(w: Writer) -> list[bytes] | None:
        if not w.state.brokers:
            return None
        broker = w.pick(w.state.brokers)
        return make(w, broker, w.state.brokers[broker])

    return odd


def _broker_record(name: str, *, unknown: bool, **fields: Any) -> Callable[[Writer], list[bytes] | None]:
    """A record about a broker that is not registered, or that names another epoch than its registration."""

    def make(w: Writer, broker: int, epoch: int) -> list[bytes]:
        wrong = (99, epoch) if unknown else (broker, epoch + w.chance.choice([-1, 1, 7]))
        keys = ("Id", "Epoch") if name.endswith("fenceBrokerRecord") or name.startswith("Fence") else _BROKER_KEYS
        return [encode(name, **dict(zip(keys, wrong, strict=True)), **fields)]

    return _of_broker(make)


_BROKER_KEYS = ("BrokerId", "BrokerEpoch")


def _registration_change(**fields: Any) -> Callable[[Writer], list[bytes] | None]:
    def make(w: Writer, broker: int, epoch: int) -> list[bytes]:
        return [encode("BrokerRegistrationChangeRecord", 3, BrokerId=broker, BrokerEpoch=epoch, **fields)]

    return _of_broker(make)


def _anothers_directory(w: Writer, *, change: bool) -> list[bytes] | None:
    owners = [each for each, there in w.state.directories.items() if there]
    if not owners:
        return None
    owner = w.pick(owners)
    others = [each for each in range(6) if each != owner and (each in w.state.brokers or not change)]
    if not others:
        return None
    directories, broker = [w.uuid(), w.state.directories[owner][0]], w.chance.choice(others)
    if not change:
        return [w.register(broker, w.next_epoch(), directories)]
    epoch = w.state.brokers[broker]
    return [
        encode("BrokerRegistrationChangeRecord", 2, BrokerId=broker, BrokerEpoch=epoch, LogDirs=directories)
    ]  # fmt: skip


def _directory_twice(w: Writer) -> list[bytes]:
    directory, epoch = w.uuid(), w.next_epoch()
    w.after_fault = [encode("UnfenceBrokerRecord", Id=8, Epoch=epoch)]
    return [w.register(8, epoch, [directory, directory])]


def _entry_twice(w: Writer, *, overwritten: bool) -> list[bytes]:
    one, other = w.uuid(), w.uuid()
    fields = {"ResourceName": "r", "Principal": "User:u", "Host": "*"}
    codes = [
        {"ResourceType": 2, "Operation": 2},
        {"ResourceType": 3, "Operation": 99},
        {"ResourceType": 3, "Operation": 0},
    ]
    first, second = w.chance.sample(codes, 2) if overwritten else (codes[1], codes[w.chance.randint(1, 2)])
    ids = (one, one) if overwritten else (one, other)
    made = [
        encode("AccessControlEntryRecord", Id=each, **fields, **code)
        for each, code in zip(ids, (first, second), strict=True)
    ]
    w.after_fault = [encode("RemoveAccessControlEntryRecord", Id=each) for each in ids]
    return made


def _in_transaction(w: Writer, name: str, *, inside: bool) -> list[bytes] | None:
    return [encode(name)] if inside is (w.before_transaction is not None) else None


def _level(name: str, *levels: int) -> Callable[[Writer], list[bytes]]:
    return lambda w: [encode("FeatureLevelRecord", Name=name, FeatureLevel=w.chance.choice(levels))]


def _one(name: str, **fields: Any) -> Callable[[Writer], list[bytes]]:
    return lambda _: [encode(name, **fields)]


_UNKNOWN = UUID(int=5)

ODD: dict[str, Callable[[Writer], list[bytes] | None]] = {
    "topic twice, same id": _topic_again,
    "topic twice, other id": lambda w: _topic_again(w, w.uuid()),
    "topic id under another name": _id_again,
    "topic without a name": _one("TopicRecord", Name="", TopicId=_UNKNOWN),
    "partition of unknown topic": lambda w: [w.partition_record(w.uuid(), 0, Replicas=[1], Isr=[1], Leader=1)],
    "partition twice": _of_partition(
        lambda w, topic, number, _: [w.partition_record(topic, number, Replicas=[1], Isr=[1], Leader=1)]
    ),
    "partition epochs fall": _of_partition(
        lambda w, topic, number, _: [
            w.partition_record(topic, number, Replicas=[1], Isr=[1], Leader=1, LeaderEpoch=-5, PartitionEpoch=-9)
        ]
    ),
    "partition with too few directories": _of_partition(
        lambda w, topic, _, __: [
            w.partition_record(topic, 9, version=1, Replicas=[1, 2], Isr=[1], Leader=1, Directories=[w.uuid()])
        ]
    ),
    "partition with unknown recovery state": _of_partition(
        lambda w, topic, _, __: [w.partition_record(topic, 9, Replicas=[1], Isr=[1], Leader=1, LeaderRecoveryState=2)]
    ),
    "partition led by no replica": _of_partition(
        lambda w, topic, _, __: [w.partition_record(topic, 9, Replicas=[1], Isr=[1], Leader=4)]
    ),
    "partition of no replicas": _of_partition(lambda w, topic, _, __: [w.partition_record(topic, 9, Leader=-1)]),
    "change of unknown topic": lambda w: [w.change(w.uuid(), 0, Leader=1)],
    "change of unknown partition": _of_partition(lambda w, topic, _, __: [w.change(topic, 77, Leader=1)]),
    "change with too few directories": _of_partition(
        lambda w, topic, number, _: [w.change(topic, number, version=1, Replicas=[1, 2], Directories=[w.uuid()])]
    ),
    "change with too many directories": _of_partition(
        lambda w, topic, number, there: [
            w.change(topic, number, version=1, Directories=[w.uuid()] * (len(there.replicas) + 1))
        ]
    ),
    "change with migrating directories": _of_partition(
        lambda w, topic, number, there: [
            w.change(topic, number, version=1, Directories=[UUID(int=0)] * (len(there.replicas) + 1))
        ]
    ),
    "change of the number of replicas": _of_partition(_other_count),
    "change with unknown recovery state": _change(LeaderRecoveryState=3),
    "change to a leader that is no replica": _change(Leader=55),
    "change to an ISR of no replicas": _change(Isr=[55, 56]),
    "ISR names a broker twice": _of_partition(_named_twice),
    "ISR names nobody": _of_partition(_nobody_in_isr),
    "eligible replicas name a broker twice": _of_partition(_eligible_twice),
    "removal of unknown topic": _one("RemoveTopicRecord", TopicId=_UNKNOWN),
    "eligible replicas of unknown topic": _one("ClearElrRecord", TopicName="unknown"),
    "unregister unknown broker": _broker_record("UnregisterBrokerRecord", unknown=True),
    "unregister in another epoch": _broker_record("UnregisterBrokerRecord", unknown=False),
    "fence unknown broker": _broker_record("FenceBrokerRecord", unknown=True),
    "fence in another epoch": _broker_record("FenceBrokerRecord", unknown=False),
    "unfence unknown broker": _broker_record("UnfenceBrokerRecord", unknown=True),
    "unfence in another epoch": _broker_record("UnfenceBrokerRecord", unknown=False),
    "change unknown broker": _broker_record("BrokerRegistrationChangeRecord", unknown=True, Fenced=1),
    "change in another epoch": _broker_record("BrokerRegistrationChangeRecord", unknown=False, Fenced=1),
    "unknown fencing": _registration_change(Fenced=2),
    "unknown controlled shutdown": _registration_change(InControlledShutdown=-1),
    "registration in a lower epoch": _of_broker(lambda w, broker, _: [w.register(broker, -1, [])]),
    "registration with another's directory": lambda w: _anothers_directory(w, change=False),
    "change to another's directory": lambda w: _anothers_directory(w, change=True),
    "registration with a directory twice": _directory_twice,
    "broker with unknown protocol": lambda w: [w.register(8, w.next_epoch(), [], EndPoints=[w.endpoint(4)])],
    "broker listener without a name": lambda w: [w.register(8, w.next_epoch(), [], EndPoints=[w.endpoint(name="")])],
    "controller with unknown protocol": lambda w: [w.register_controller(109, [w.endpoint(-1)])],
    "controller listener without a name": lambda w: [w.register_controller(109, [w.endpoint(name="")])],
    "unregister unknown controller": _one("UnregisterControllerRecord", ControllerId=99),
    "unknown feature": _level("unknown.version", 1, -1),
    "unknown feature turned off": _level("unknown.version", 0),
    "feature level too high": _level("group.version", 2, 99),
    "feature level too low": _level("transaction.version", -1),
    "KRaft version too high": _level("kraft.version", 2, -1),
    "metadata version too high": _level("metadata.version", 34, 35, 99),
    "metadata version too low": _level("metadata.version", 0, 1, 6, -3),
    "producer ids again": lambda w: [w.producer_block(5), w.producer_block(5)] if not w.state.next_producer_id else [
        w.producer_block(w.state.next_producer_id)
    ],
    "producer ids go back": lambda w: [
        w.producer_block(w.state.next_producer_id + 9), w.producer_block(w.state.next_producer_id + 8)
    ],
    "removal of unknown entry": _one("RemoveAccessControlEntryRecord", Id=_UNKNOWN),
    "entry under two ids": lambda w: _entry_twice(w, overwritten=False),
    "entry id with another entry": lambda w: _entry_twice(w, overwritten=True),
    "removal of unknown credential": _one("RemoveUserScramCredentialRecord", Name="unknown", Mechanism=1),
    "removal of unknown mechanism": lambda w: [
        encode("UserScramCredentialRecord", Name="x", Mechanism=7),
        encode("RemoveUserScramCredentialRecord", Name="x", Mechanism=-3),
        encode("RemoveUserScramCredentialRecord", Name="x", Mechanism=7),
    ],
    "token of a malformed owner": lambda w: [w.delegation_token("x", "nobody", [])],
    "token of a malformed renewer": lambda w: [w.delegation_token("x", "User:a", ["User:b", ""])],
    "token of an odd principal": lambda w: [w.delegation_token("x", ":", ["a::b"])],
    "removal of unknown token": _one("RemoveDelegationTokenRecord", TokenId="unknown"),
    "removal of unknown quota": _one("ClientQuotaRecord", Entity=[], Key="unknown", Value=1.0, Remove=True),
    "broker config of no broker": lambda w: [
        encode(
            "ConfigRecord", ResourceType=4, Name="any.name", Value=w.chance.choice([None, "1"]),
            ResourceName=w.chance.choice(["one", "1.5", " 1", "99999999999", "1_0", "-"]),
        )
    ],
    "broker config of an odd id": lambda w: [
        encode("ConfigRecord", ResourceType=4, Name="a", Value="1", ResourceName=w.chance.choice(["-5", "+7", "007"]))
    ],
    "config of unknown type": _one("ConfigRecord", ResourceType=99, ResourceName="x", Name="y", Value="z"),
    "config that is not set": _one("ConfigRecord", ResourceType=2, ResourceName="x", Name="retention.ms"),
    "transaction in a transaction": lambda w: _in_transaction(w, "BeginTransactionRecord", inside=True),
    "end without a transaction": lambda w: _in_transaction(w, "EndTransactionRecord", inside=False),
    "abort without a transaction": lambda w: _in_transaction(w, "AbortTransactionRecord", inside=False),
}  # fmt: skip


def controller_log(seed: int) -> ControllerLog:
    """The log of a seed. Half of the logs have an odd record; a sixth begins with a snapshot."""
    chance = random.Random(seed)
    writer = Writer(chance)
    is_snapshot = chance.random() < 1 / 6
    wants_fault = chance.random() < 0.5
    at = chance.randint(0, _MOST_STEPS) if wants_fault else -1
    records: list[bytes] = writer.start()
    batches: list[list[bytes]] = [[]]
    pending = 0
    kind = ""
    for step in range(_MOST_STEPS + 1):
        if wants_fault and step >= at and not kind:
            found = writer.odd()
            if found is not None:
                kind = writer.fault
                records += found + writer.after_fault
                if is_snapshot or kind.endswith("a transaction"):
                    continue
        if not is_snapshot:
            pending = _transactions(writer, records, batches, pending)
        records += writer.fitting()
        if not is_snapshot and chance.random() < 0.3:
            batches.append(records)
            records = []
    if is_snapshot:
        if wants_fault and chance.random() < 0.1:
            kind = "transaction in a snapshot"
            name = chance.choice(["BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"])
            records.insert(chance.randint(1, len(records)), encode(name))
        return ControllerLog([[], [encode("NoOpRecord")]], records, 1000, kind)
    batches.append(records)
    return ControllerLog([batches[0], *(each for each in batches[1:] if each)], None, 0, kind)


def _transactions(writer: Writer, records: list[bytes], batches: list[list[bytes]], pending: int) -> int:
    """Begin a transaction, or end the open one; return how many steps it goes on."""
    chance = writer.chance
    if writer.before_transaction is None:
        if chance.random() < 0.06:
            writer.before_transaction = copy.deepcopy(writer.state)
            records.append(encode("BeginTransactionRecord"))
            return chance.randint(0, 6)
        return 0
    if pending:
        return pending - 1
    if chance.random() < 0.5:
        records.append(encode("EndTransactionRecord"))
    else:
        writer.state = writer.before_transaction
        records.append(encode("AbortTransactionRecord"))
        batches.append(records[:])  # a loader that goes on in the same batch keeps the aborted changes
        records.clear()
    writer.before_transaction = None
    return 0


def controller_logs(seed: int, count: int) -> Iterator[ControllerLog]:
    """So many logs."""
    for each in range(count):
        yield controller_log(seed * 1_000_003 + each)
