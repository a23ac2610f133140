"""What the controller had decided: the metadata log (and the snapshot before it) replayed into an image."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .codecs import CodecError
from .history import HistoryWatch
from .metadata import (
    NEWEST,
    MetadataError,
    MetadataRecord,
    control_type,
    decode_leader_change,
    decode_metadata_record,
    is_newer,
    type_of,
)
from .metadata_page import decode_page_record, is_of_page, told_as_kafka, without
from .records import RecordError
from .rejection import Refusal, Rejection, describe_record
from .replay_rules import ReplayRules
from .statefiles import encode_uuid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from .batches import Batch, Limits
    from .history import Breach
    from .problems import ProblemLog

State = dict[str, object]
"""What an image decides, by what it is about (``orders-0``, ``broker 2``), to be held against another image's."""

MAX_DECISIONS = 1 << 21
"""Records of the controller that are kept of one log and its snapshot: ten times what 100 MB of a log hold."""

_NO_LEADER_CHANGE = -2
_TOPIC_RESOURCE = 2  # ConfigResource.Type.TOPIC
_BROKER_RESOURCE = 4  # ConfigResource.Type.BROKER


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What the controller decided about one partition. ``leader`` is -1 while there is none.

    ``offset`` is the metadata offset of the record that decided it (the last included one of a snapshot).
    """

    offset: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: int = 0
    """1 (RECOVERING) after an unclean election, until the new leader reports that it has recovered."""
    record_version: int = field(default=0, compare=False)
    """The version of the record that decided it."""
    eligible: tuple[int, ...] = field(default=(), compare=False)
    """Who may lead beside the ISR: the eligible leader replicas, and the last known ones (KIP-966)."""
    elr: tuple[int, ...] = field(default=(), compare=False)
    """The eligible leader replicas alone: electing one of them is clean (KIP-966)."""

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {
            "offset": self.offset,
            "replicas": list(self.replicas),
            "isr": list(self.isr),
            "leader": None if self.leader < 0 else self.leader,
            "leader_epoch": self.leader_epoch,
            "partition_epoch": self.partition_epoch,
            "leader_recovery_state": self.leader_recovery_state,
        }


@dataclass(slots=True)
class TopicState:
    """A topic: its partitions' states, oldest first, as far back as log and snapshot go."""

    name: str
    topic_id: UUID
    history: dict[int, list[PartitionState]] = field(default_factory=dict)

    def current(self, partition: int) -> PartitionState | None:
        """The newest state of a partition."""
        states = self.history.get(partition)
        return states[-1] if states else None


@dataclass(frozen=True, slots=True)
class BrokerState:
    """A registered broker. ``epoch`` is its broker epoch (the offset of its registration)."""

    broker_id: int
    epoch: int
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[str, ...] = field(default=(), compare=False)
    """The ids of its ``log.dirs`` that are online (KIP-858), as in their ``meta.properties``."""


@dataclass(slots=True)
class MetadataImage:
    """The image at ``end_offset`` of one node's metadata log. Its last records may not be committed yet."""

    end_offset: int = 0
    epoch: int = -1
    """Epoch of the last batch (or of the snapshot, where nothing follows it)."""
    topics: dict[str, TopicState] = field(default_factory=dict)
    brokers: dict[int, BrokerState] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """Configurations of topics, by topic name, that were set on the topic itself."""
    broker_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """Configurations of brokers that were set while they ran, by broker id; those of all brokers under ``""``."""
    past_configs: dict[tuple[str, str], set[str | None]] = field(default_factory=dict)
    """By topic and name, all values that a topic's configuration has had; ``None`` where it was taken away."""
    created_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """Configurations of topics as they were created, where the log has their creation."""
    others: dict[str, object] = field(default_factory=dict)
    """What else is decided, by what it is about: access control entries, quotas, credentials, tokens, producer ids,
    registered controllers. No promise here is about it, but that a snapshot has it as the log does."""
    removed: dict[UUID, int] = field(default_factory=dict)
    """By the id of a topic that was removed, the metadata offset of its removal."""
    new_disks: set[int] = field(default_factory=set)
    """Brokers that were registered with another directory than before (KIP-858): a disk may have been replaced."""
    quorum_leaders: list[tuple[int, int, int]] = field(default_factory=list)
    """``(offset, epoch, leader id)`` of each LeaderChange control record, in log order."""
    loaded: int = 0
    """The end of the snapshot that the image began with: what it decides has no offset of its own."""
    unfenced: dict[int, int] = field(default_factory=dict)
    """By broker id, the broker epoch in which it was last unfenced: it had then read the log up to that offset."""
    breaches: dict[str, Breach] = field(default_factory=dict)
    """By rule, the first breach on the way here (``history.py``)."""
    rejection: Rejection | None = None
    """The first record that Kafka's replay rejects; it is not applied."""
    complete: bool = True
    """False where damage, a missing snapshot or a rejected record keeps some of the history out."""

    @property
    def whole(self) -> bool:
        """Whether all of the history is in it: the log begins at 0, and was read."""
        return self.complete and not self.loaded

    @property
    def rejected_at(self) -> int | None:
        """The metadata offset of the log's record that Kafka surely rejects; ``None`` without one."""
        found = self.rejection
        return found.offset if found is not None and found.refusal.sure and not found.in_snapshot else None

    def partition(self, topic: str, partition: int) -> PartitionState | None:
        """The newest state of ``topic``-``partition``."""
        state = self.topics.get(topic)
        return state.current(partition) if state else None

    def history(self, topic: str, partition: int) -> Sequence[PartitionState]:
        """All states of ``topic``-``partition``, oldest first; empty for one that the image does not have."""
        state = self.topics.get(topic)
        return () if state is None else state.history.get(partition, ())

    def state(self) -> State:
        """What is decided now: the same of a log and of a snapshot of it. No offsets, and nothing of the quorum."""
        found: State = {f"feature {name}": level for name, level in self.features.items() if level}
        found |= self.others
        for broker in self.brokers.values():
            found[f"broker {broker.broker_id}"] = broker
        for topic in self.topics.values():
            found[f"topic {topic.name}"] = encode_uuid(topic.topic_id)
            for number, states in topic.history.items():
                found[f"{topic.name}-{number}"] = replace(states[-1], offset=-1)
        for topic_name, configs in self.configs.items():
            found |= {f"config {name} of {topic_name}": value for name, value in configs.items()}
        for broker_id, configs in self.broker_configs.items():
            who = f"broker {broker_id}" if broker_id else "all brokers"
            found |= {f"config {name} of {who}": value for name, value in configs.items()}
        return found

    def to_json(self) -> dict[str, Any]:
        """The image, with each partition's newest state."""
        return {
            "end_offset": self.end_offset,
            "epoch": self.epoch,
            "complete": self.complete,
            "features": dict(sorted(self.features.items())),
            "quorum_leaders": [
                {"offset": offset, "epoch": epoch, "leader": leader} for offset, epoch, leader in self.quorum_leaders
            ],
            "brokers": [
                {"id": b.broker_id, "epoch": b.epoch, "fenced": b.fenced}
                for b in sorted(self.brokers.values(), key=lambda b: b.broker_id)
            ],
            "topics": [
                {
                    "name": topic.name,
                    "id": encode_uuid(topic.topic_id),
                    "partitions": {str(p): states[-1].to_json() for p, states in sorted(topic.history.items())},
                }
                for topic in sorted(self.topics.values(), key=lambda t: t.name)
            ],
        }


def _eligible(before: tuple[int, ...], named: Sequence[Sequence[int] | None]) -> tuple[int, ...]:
    """Brokers of the two lists of a change; a list that the change leaves out is as before, in whole or in part."""
    if named[0] is None and named[1] is None:
        return before
    return tuple(dict.fromkeys(each for ids in named for each in (before if ids is None else ids)))


class _NeverNamed(MetadataError):
    """A record changes a topic or partition that the part of the history at hand does not create."""


class ImageBuilder:
    """Replays batches of the metadata log into an image as strictly as Kafka does (``ReplayRules``).

    It skips the first record that Kafka rejects, as brokers do, notes it in ``image.rejection``, and goes on without
    rules. It also does so once part of the history is missing: then a record may change a topic that was never seen.
    ``from_start``: nothing comes before the first batch.
    """

    def __init__(self, limits: Limits, *, from_start: bool = True) -> None:
        self.image = MetadataImage(complete=from_start)
        self._limits = limits
        self._rules: ReplayRules | None = None
        self._names: dict[UUID, str] = {}
        self._decisions = 0
        self._transaction: list[tuple[int, MetadataRecord]] | None = None
        self._watch = HistoryWatch(self.image)
        self._of_page: bool | None = None
        """Whether records are in the form of KIP-631's page (``metadata_page.py``); None before the first."""
        self._records_of_snapshot = 0
        self._told: Batch | None = None
        """The last batch of which it was said that a record in it is of another release."""
        self._log_dirs: dict[int, tuple[str, ...]] = {}
        """Of each broker as it was last registered, also of one that is registered no more."""

    @property
    def of_page(self) -> bool:
        """Whether the records are in the form of KIP-631's page."""
        return bool(self._of_page)

    def load_snapshot(self, batch: Batch, end_offset: int, epoch: int, problems: ProblemLog) -> None:
        """Replay a batch of a snapshot: its records stand for the log up to ``end_offset``, exclusive."""
        self._replay(batch, problems, end_offset - 1)
        self.image.end_offset, self.image.epoch = end_offset, epoch
        self.image.loaded = end_offset

    def replay(self, batch: Batch, problems: ProblemLog) -> None:
        """Replay a batch of the log. Batches at or below the image's offset are skipped."""
        if batch.last_offset < self.image.end_offset:
            return
        if batch.base_offset > self.image.end_offset:
            self.image.complete = False  # batches are missing: damage, or no snapshot reaches this far
        self._replay(batch, problems, None)
        self.image.end_offset, self.image.epoch = batch.last_offset + 1, batch.leader_epoch

    def _replay(self, batch: Batch, problems: ProblemLog, at: int | None) -> None:
        """Replay a batch; ``at`` is the offset that the records of a snapshot stand for."""
        try:
            for record in batch.records(self._limits):
                offset = record.offset if at is None else at
                if at is None and offset < self.image.end_offset:
                    continue
                if batch.control:
                    if control_type(record.key) == "LEADER_CHANGE" and record.value:
                        leader = decode_leader_change(record.value)
                        self.image.quorum_leaders.append((offset, batch.leader_epoch, leader))
                elif record.value is not None:
                    self._replay_value(offset, record.value, batch, problems, in_snapshot=at is not None)
                if at is not None:
                    self._records_of_snapshot += not batch.control
        except (MetadataError, RecordError, CodecError) as error:
            self.image.complete = False
            what = f"a metadata record in the batch at offset {batch.base_offset}: {error}"
            problems.add("bad-metadata", what, "copy the file from another controller", byte=batch.position)
        finally:
            self._watch.settle()

    def _replay_value(
        self, offset: int, value: bytes, batch: Batch, problems: ProblemLog, *, in_snapshot: bool
    ) -> None:
        """Replay one record, unless Kafka rejects it."""
        number = self._records_of_snapshot if in_snapshot else offset
        try:
            decoded = self._decoded(value)
        except MetadataError as error:
            if self.image.complete:
                refusal = Refusal(f"it does not decode: {error}")
                self._reject(Rejection(number, "a record", refusal, batch.position, in_snapshot))
            return
        if decoded is None or (not self._of_page and is_newer(decoded)):
            self._of_another_release(offset, value, decoded, batch, problems)
        if decoded is None or decoded.type == "NoOpRecord":
            return
        if self.image.complete:
            refusal_ = self._judge(decoded, in_snapshot=in_snapshot)
            if refusal_ is not None:
                self._reject(Rejection(number, describe_record(decoded), refusal_, batch.position, in_snapshot))
                if refusal_.sure:
                    return
        try:
            self._apply(offset, decoded)
        except _NeverNamed:
            self.image.complete = False

    def _judge(self, record: MetadataRecord, *, in_snapshot: bool) -> Refusal | None:
        if self._rules is None:
            self._rules = ReplayRules(of_kip_631=self.of_page)
        return self._rules.replay(record, in_snapshot=in_snapshot)

    def _reject(self, rejection: Rejection) -> None:
        """Note the first record that Kafka rejects; one that it surely rejects comes before one that it may reject."""
        known = self.image.rejection
        if known is None or (rejection.refusal.sure and not known.refusal.sure):
            self.image.rejection = rejection
        if rejection.refusal.sure:
            self.image.complete = False

    def _of_another_release(
        self, offset: int, value: bytes, decoded: MetadataRecord | None, batch: Batch, problems: ProblemLog
    ) -> None:
        """A record that our schemas do not have may have changed anything: no rule can be said to hold from then on.

        It is no fault of the file. Told once for a batch.
        """
        if self._told is not batch:
            what = type_of(value) if decoded is None else f"a {decoded.type} of version {decoded.version}"
            self._told = batch
            note = f"the record at offset {offset} is {what}, which Apache Kafka {NEWEST} has not: rules are left open"
            problems.add("unknown-record", note, "check it by a newer Fencepost", byte=batch.position, severity="note")
        self.image.complete = False

    def _decoded(self, value: bytes) -> MetadataRecord | None:
        """A record in the form that the first one has."""
        if self._of_page is None:
            self._of_page = is_of_page(value)
        if self._of_page:
            return told_as_kafka(decode_page_record(value), self.image)
        return decode_metadata_record(value)

    def _apply(self, offset: int, record: MetadataRecord) -> None:
        """Apply a record, or hold it until the metadata transaction (KIP-868) around it ends."""
        self._decisions += 1
        if self._decisions > MAX_DECISIONS:
            raise MetadataError(f"more than {MAX_DECISIONS:,} records of the controller: the rest is left out")
        if record.type == "BeginTransactionRecord":
            self._transaction = []
        elif record.type == "AbortTransactionRecord":
            self._transaction = None
        elif record.type == "EndTransactionRecord":
            held, self._transaction = self._transaction or [], None
            for held_offset, held_record in held:
                self._change(held_offset, held_record)
        elif self._transaction is not None:
            self._transaction.append((offset, record))
        else:
            self._change(offset, record)

    def _change(self, offset: int, record: MetadataRecord) -> None:
        fields = record.fields
        image = self.image
        match record.type:
            case "TopicRecord":
                topic = TopicState(fields["Name"] or "", fields["TopicId"])
                image.topics[topic.name] = topic
                self._names[topic.topic_id] = topic.name
            case "RemoveTopicRecord":
                image.removed[fields["TopicId"]] = offset
                name = self._names.pop(fields["TopicId"], None)
                if name is not None:
                    image.topics.pop(name, None)
                    self._watch.removed(name)
                    image.configs.pop(name, None)
                    for key in [key for key in image.past_configs if key[0] == name]:
                        del image.past_configs[key]
            case "PartitionRecord":
                self._partition(offset, record)
            case "PartitionChangeRecord":
                self._partition_change(offset, record)
            case "IsrChangeRecord":
                self._isr_change(offset, fields)
            case "ConfigRecord":
                self._config(fields)
            case "FeatureLevelRecord":
                image.features[fields["Name"] or ""] = fields["FeatureLevel"]
            case "RegisterBrokerRecord":
                self._register(offset, fields)
            case "UnregisterBrokerRecord":
                self._watch.changes(offset, fields["BrokerId"])
                image.brokers.pop(fields["BrokerId"], None)
            case "FenceBrokerRecord" | "UnfenceBrokerRecord":
                self._watch.changes(offset, fields["Id"])
                self._fence(fields["Id"], fenced=record.type == "FenceBrokerRecord")
                if self._of_page and record.type == "FenceBrokerRecord":
                    for name, number, state in list(without(image, fields["Id"])):
                        self._decided(image.topics[name], number, replace(state, offset=offset))
            case "ClearElrRecord":
                self._clear_elr(fields["TopicName"] or "")
            case "BrokerRegistrationChangeRecord":
                self._watch.changes(offset, fields["BrokerId"])
                if fields["Fenced"]:
                    self._fence(fields["BrokerId"], fenced=fields["Fenced"] > 0)
                broker = image.brokers.get(fields["BrokerId"])
                if broker and fields["InControlledShutdown"]:
                    broker = image.brokers[broker.broker_id] = replace(broker, in_controlled_shutdown=True)
                if broker and fields["LogDirs"]:
                    log_dirs = tuple(encode_uuid(each) for each in fields["LogDirs"])
                    image.brokers[broker.broker_id] = replace(broker, log_dirs=log_dirs)
            case _:
                self._other(record)

    def _other(self, record: MetadataRecord) -> None:
        """What an image holds beside topics, brokers and their settings: the last record of each, or none."""
        fields = record.fields
        match record.type:
            case "AccessControlEntryRecord" | "RemoveAccessControlEntryRecord":
                about = f"access control entry {encode_uuid(fields['Id'])}"
            case "UserScramCredentialRecord" | "RemoveUserScramCredentialRecord":
                about = f"credential {fields['Mechanism']} of {fields['Name']}"
            case "DelegationTokenRecord" | "RemoveDelegationTokenRecord":
                about = f"delegation token {fields['TokenId']}"
            case "RegisterControllerRecord" | "UnregisterControllerRecord":
                about = f"controller {fields['ControllerId']}"
            case "ClientQuotaRecord":
                entity = ", ".join(
                    sorted(f"{each['EntityType']} {each['EntityName']}" for each in fields["Entity"] or ())
                )
                about = f"quota {fields['Key']} of {entity}"
            case "ProducerIdsRecord":
                self.image.others["next producer id"] = fields["NextProducerId"]
                return
            case "ZkMigrationStateRecord":
                self.image.others.pop("ZooKeeper migration", None)
                if fields["ZkMigrationState"]:  # a snapshot may have it where it is none
                    self.image.others["ZooKeeper migration"] = fields["ZkMigrationState"]
                return
            case _:
                return
        if record.type.startswith(("Remove", "Unregister")) or fields.get("Remove"):
            self.image.others.pop(about, None)
        else:
            # What comes in a list is a set, or a map by its names: a snapshot has it in an order of its own.
            self.image.others[about] = {
                name: sorted(value, key=repr) if isinstance(value, list) else value
                for name, value in fields.items()
                if name not in ("Remove", "Entity")
            }

    def _clear_elr(self, topic: str) -> None:
        """Nobody but the ISR may lead any more (KIP-966): of one topic, or of all where no name is given."""
        for each in [self.image.topics[topic]] if topic in self.image.topics else self.image.topics.values():
            if topic and each.name != topic:
                continue
            for states in each.history.values():
                states[-1] = replace(states[-1], eligible=(), elr=())

    def _register(self, offset: int, fields: dict[str, Any]) -> None:
        broker_id, epoch, fenced = fields["BrokerId"], fields["BrokerEpoch"], fields["Fenced"]
        migrating = fields.get("IsMigratingZkBroker", False)
        log_dirs = tuple(encode_uuid(each) for each in fields["LogDirs"] or ())
        broker = BrokerState(broker_id, epoch, fenced, fields.get("InControlledShutdown", False), log_dirs)
        before = self._log_dirs.get(broker_id)
        if before and log_dirs and set(log_dirs) - set(before):
            self.image.new_disks.add(broker_id)
        self._log_dirs[broker_id] = log_dirs
        self.image.brokers[broker_id] = broker
        self._watch.registered(offset, broker, fields["IncarnationId"], migrating=migrating)
        if not fenced and not migrating:
            self.image.unfenced[broker_id] = epoch

    def _fence(self, broker_id: int, *, fenced: bool) -> None:
        broker = self.image.brokers.get(broker_id)
        if broker:
            self.image.brokers[broker_id] = replace(broker, fenced=fenced)
            if not fenced:
                self.image.unfenced[broker_id] = broker.epoch

    def _config(self, fields: dict[str, Any]) -> None:
        resource = fields["ResourceName"] or ""
        if fields["ResourceType"] == _TOPIC_RESOURCE:
            configs = self.image.configs.setdefault(resource, {})
            self.image.past_configs.setdefault((resource, fields["Name"] or ""), set()).add(fields["Value"])
        elif fields["ResourceType"] == _BROKER_RESOURCE:
            configs = self.image.broker_configs.setdefault(resource, {})
        else:
            return
        if fields["Value"] is None:
            configs.pop(fields["Name"], None)
        else:
            configs[fields["Name"]] = fields["Value"]

    def _topic(self, topic_id: UUID) -> TopicState:
        name = self._names.get(topic_id)
        if name is None or name not in self.image.topics:
            raise _NeverNamed(f"a partition of topic id {encode_uuid(topic_id)}, which no record has named")
        return self.image.topics[name]

    def _partition(self, offset: int, record: MetadataRecord) -> None:
        fields = record.fields
        state = PartitionState(
            offset,
            tuple(fields["Replicas"] or ()),
            tuple(fields["Isr"] or ()),
            fields["Leader"],
            fields["LeaderEpoch"],
            fields["PartitionEpoch"],
            fields["LeaderRecoveryState"],
            record.version,
            (*(fields["EligibleLeaderReplicas"] or ()), *(fields["LastKnownElr"] or ())),
            tuple(fields["EligibleLeaderReplicas"] or ()),
        )
        self._decided(self._topic(fields["TopicId"]), fields["PartitionId"], state)

    def _partition_change(self, offset: int, record: MetadataRecord) -> None:
        """``PartitionRegistration.merge``: naming a leader, even the same one, begins a new leader epoch."""
        fields = record.fields
        topic = self._topic(fields["TopicId"])
        old = topic.current(fields["PartitionId"])
        if old is None:
            raise _NeverNamed(f"a change of {topic.name}-{fields['PartitionId']}, which no record has made")
        elected = fields["Leader"] != _NO_LEADER_CHANGE
        recovery = fields["LeaderRecoveryState"]
        named = [fields[name] for name in ("EligibleLeaderReplicas", "LastKnownElr")]
        state = PartitionState(
            offset,
            old.replicas if fields["Replicas"] is None else tuple(fields["Replicas"]),
            old.isr if fields["Isr"] is None else tuple(fields["Isr"]),
            fields["Leader"] if elected else old.leader,
            old.leader_epoch + elected,
            old.partition_epoch + 1,
            old.leader_recovery_state if recovery < 0 else recovery,
            record.version,
            _eligible(old.eligible, named),
            old.elr if named[0] is None else tuple(named[0]),
        )
        self._decided(topic, fields["PartitionId"], state)

    def _isr_change(self, offset: int, fields: dict[str, Any]) -> None:
        """KIP-631's own: it says all of the partition's next state. Version 0 has no partition epoch."""
        topic = self._topic(fields["TopicId"])
        old = topic.current(fields["PartitionId"])
        if old is None:
            raise _NeverNamed(f"a change of {topic.name}-{fields['PartitionId']}, which no record has made")
        state = replace(
            old,
            offset=offset,
            isr=tuple(fields["Isr"] or ()),
            leader=fields["Leader"],
            leader_epoch=fields["LeaderEpoch"],
            partition_epoch=fields.get("PartitionEpoch", old.partition_epoch + 1),
        )
        self._decided(topic, fields["PartitionId"], state)

    def _decided(self, topic: TopicState, number: int, state: PartitionState) -> None:
        if not topic.history:
            # Kafka writes a new topic's configurations before its first partition.
            self.image.created_configs[topic.name] = dict(self.image.configs.get(topic.name, {}))
        history = topic.history.setdefault(number, [])
        self._watch.partition(topic.name, number, history[-1] if history else None, state)
        history.append(state)
