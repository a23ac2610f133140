"""Which records of the metadata log Apache Kafka 4.4.0 replays, and which ones its controllers or brokers throw on.

The rules are those of the ``replay`` methods of Kafka's controller (``ReplicationControlManager``,
``ClusterControlManager``, ``FeatureControlManager``, ``ProducerIdControlManager``, ``AclControlManager``,
``ScramControlManager``, ``ConfigurationControlManager``, ``OffsetControlManager``) and of every node's
``MetadataLoader`` (``MetadataDelta`` and the deltas below it). A test replays generated logs through both of them and
through these rules. ``specs/DEVIATIONS.md`` lists the differences.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from .journal import Journal
from .membership import MembershipIndex, index_of, names_twice
from .rejection import Refusal
from .statefiles import encode_uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .metadata import MetadataRecord

    Fields = dict[str, Any]

FEATURES = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "metadata.version": (7, 33),
    "share.version": (0, 2),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
"""The levels that Kafka 4.4.0 supports (``QuorumFeatures.defaultSupportedFeatureMap``)."""

_METADATA_VERSION = "metadata.version"
_UNSTABLE_METADATA_VERSION = 34
"""Brokers know this level, controllers do not (``MetadataVersion.fromFeatureLevel``)."""
_DISABLED = (0, 0)
_BROKER_RESOURCE = 4
_PROTOCOLS = range(4)
_JAVA_INT = re.compile(r"[+-]?\d{1,4000}")
_NO_LEADER_CHANGE = -2
_NO_CHANGE = -1
_MIGRATING = UUID(int=0)
_ALL_MIGRATING = -1
_KNOWN_CODES = {"ResourceType": 7, "PatternType": 4, "Operation": 15, "PermissionType": 3}
"""The greatest code of each enum in an access control entry; Kafka reads every other code as UNKNOWN, 0."""
_SCRAM_MECHANISMS = 2
_ONLY_CONTROLLERS = False


class _Partition(NamedTuple):
    replicas: int
    directories: int
    """How many directories it names; -1 if all of them are still to be assigned."""
    isr: Sequence[int]
    leader: int
    eligible: Sequence[int]


class _Topic(NamedTuple):
    name: str
    partitions: dict[int, _Partition]


class _Broker(NamedTuple):
    epoch: int
    directories: tuple[UUID, ...]


class ReplayRules:
    """Follows as much of a controller's state as decides whether the next record is rejected.

    Records are applied at once, also within a metadata transaction, as Kafka's controllers do. A rejected record
    changes nothing. ``of_kip_631``: the log is in the form of KIP-631's page, which knows no feature levels of Kafka's.
    """

    def __init__(self, *, of_kip_631: bool = False) -> None:
        self._in_snapshot = False
        self._of_kip_631 = of_kip_631
        self._journal = Journal()
        self._names: dict[str, UUID] = {}
        self._topics: dict[UUID, _Topic] = {}
        self._brokers: dict[int, _Broker] = {}
        self._owners: dict[UUID, int] = {}
        self._controllers: dict[int, bool] = {}
        self._supported: dict[str, tuple[int, int]] = {}
        """By feature, the lowest and the highest level that a registered node has named."""
        self._any_node = False
        self._entries: dict[UUID, tuple[object, ...]] = {}
        self._entry_set: dict[tuple[object, ...], bool] = {}
        self._credentials: dict[tuple[str, int], bool] = {}
        self._producer_ids: dict[str, int] = {}
        self._isrs: dict[UUID, MembershipIndex] = {}
        self._eligible: dict[UUID, MembershipIndex] = {}
        self._rules: dict[str, Callable[[Fields], Refusal | None]] = {
            "TopicRecord": self._topic,
            "RemoveTopicRecord": self._remove_topic,
            "PartitionRecord": self._partition,
            "PartitionChangeRecord": self._partition_change,
            "IsrChangeRecord": self._isr_change,
            "ClearElrRecord": self._clear_elr,
            "RegisterBrokerRecord": self._register_broker,
            "UnregisterBrokerRecord": self._unregister_broker,
            "FenceBrokerRecord": self._fence,
            "UnfenceBrokerRecord": self._fence,
            "BrokerRegistrationChangeRecord": self._registration_change,
            "RegisterControllerRecord": self._register_controller,
            "UnregisterControllerRecord": self._unregister_controller,
            "ConfigRecord": self._config,
            "FeatureLevelRecord": self._feature,
            "ProducerIdsRecord": self._producer_id_block,
            "AccessControlEntryRecord": self._access_control_entry,
            "RemoveAccessControlEntryRecord": self._remove_access_control_entry,
            "UserScramCredentialRecord": self._credential,
            "RemoveUserScramCredentialRecord": self._remove_credential,
            "DelegationTokenRecord": self._delegation_token,
            "BeginTransactionRecord": self._begin,
            "EndTransactionRecord": self._end,
            "AbortTransactionRecord": self._abort,
        }

    def replay(self, record: MetadataRecord, *, in_snapshot: bool = False) -> Refusal | None:
        """Apply a record of the log or of a snapshot, or return why Kafka rejects it."""
        self._in_snapshot = in_snapshot
        rule = self._rules.get(record.type)
        return None if rule is None else rule(record.fields)

    # -- transactions ---------------------------------------------------------------------------------------------

    def _begin(self, _: Fields) -> Refusal | None:
        if self._in_snapshot:
            return Refusal("a snapshot holds no transactions")
        if self._journal.is_open:
            return Refusal("the transaction before it has not ended")
        self._journal.begin()
        return None

    def _end(self, _: Fields) -> Refusal | None:
        if not self._journal.is_open:
            return self._no_transaction()
        self._journal.end()
        return None

    def _abort(self, _: Fields) -> Refusal | None:
        if not self._journal.is_open:
            return self._no_transaction()
        self._journal.abort()
        return None

    def _no_transaction(self) -> Refusal:
        return Refusal("a snapshot holds no transactions" if self._in_snapshot else "no transaction has begun")

    # -- topics and partitions ------------------------------------------------------------------------------------

    def _topic(self, fields: Fields) -> Refusal | None:
        name, topic_id = fields["Name"], fields["TopicId"]
        known = self._names.get(name)
        if known is not None:
            which = "this id" if known == topic_id else f"id {encode_uuid(known)}"
            return Refusal(f"topic {name} already exists with {which}", _ONLY_CONTROLLERS)
        self._journal.put(self._names, name, topic_id)
        self._journal.put(self._topics, topic_id, _Topic(name, {}))
        return None

    def _remove_topic(self, fields: Fields) -> Refusal | None:
        topic_id = fields["TopicId"]
        topic = self._topics.get(topic_id)
        if topic is None:
            return Refusal("no topic has this id")
        self._journal.discard(self._topics, topic_id)
        self._journal.discard(self._names, topic.name)
        for state in topic.partitions.values():
            if topic_id in self._isrs:
                self._isrs[topic_id].forget((*state.isr, -1))
            if topic_id in self._eligible:
                self._eligible[topic_id].forget(state.eligible)
        return None

    def _partition(self, fields: Fields) -> Refusal | None:
        topic = self._topics.get(fields["TopicId"])
        if topic is None:
            return Refusal("no topic has this id")
        replicas, directories = len(fields["Replicas"] or ()), fields.get("Directories") or ()
        if directories and len(directories) != replicas:
            return Refusal(_lengths(len(directories), replicas))
        if fields["LeaderRecoveryState"] not in (0, 1):
            return Refusal(_unknown_recovery(fields["LeaderRecoveryState"]))
        after = _Partition(
            replicas,
            _count(directories),
            fields["Isr"] or (),
            fields["Leader"],
            fields["EligibleLeaderReplicas"] or (),
        )
        number = fields["PartitionId"]
        return self._placed(fields["TopicId"], topic, number, topic.partitions.get(number), after)

    def _partition_change(self, fields: Fields) -> Refusal | None:
        found = self._known_partition(fields)
        if isinstance(found, Refusal):
            return found
        topic, before = found
        replicas, directories, old_isr, old_leader, old_eligible = before
        if fields["Replicas"] is not None or fields["Directories"] is not None:
            changed = _assigned(fields, replicas, directories)
            if isinstance(changed, str):
                return Refusal(changed)
            replicas, directories = changed
        if fields["LeaderRecoveryState"] not in (_NO_CHANGE, 0, 1):
            return Refusal(_unknown_recovery(fields["LeaderRecoveryState"]))
        isr, leader, eligible = fields["Isr"], fields["Leader"], fields["EligibleLeaderReplicas"]
        after = _Partition(
            replicas,
            directories,
            old_isr if isr is None else isr,
            old_leader if leader == _NO_LEADER_CHANGE else leader,
            old_eligible if eligible is None else eligible,
        )
        return self._placed(fields["TopicId"], topic, fields["PartitionId"], before, after)

    def _isr_change(self, fields: Fields) -> Refusal | None:
        found = self._known_partition(fields)
        return found if isinstance(found, Refusal) else None

    def _known_partition(self, fields: Fields) -> tuple[_Topic, _Partition] | Refusal:
        topic = self._topics.get(fields["TopicId"])
        if topic is None:
            return Refusal("no topic has this id")
        before = topic.partitions.get(fields["PartitionId"])
        if before is None:
            return Refusal(f"topic {topic.name} has no such partition")
        return topic, before

    def _placed(
        self, topic_id: UUID, topic: _Topic, number: int, before: _Partition | None, after: _Partition
    ) -> Refusal | None:
        """Give a partition its next state."""
        if names_twice(after.isr) or names_twice(after.eligible) or self._isrs or self._eligible:
            wrong = self._index(topic_id, topic, number, before, after)
            if wrong:
                return Refusal(wrong, _ONLY_CONTROLLERS)
        self._journal.put(topic.partitions, number, after)
        return None

    def _index(self, topic_id: UUID, topic: _Topic, number: int, before: _Partition | None, after: _Partition) -> str:
        """Follow the controller's indexes of a topic whose lists name a broker twice, or have done so before."""
        if topic_id not in self._isrs and names_twice(after.isr):
            leaders = {each: state.leader for each, state in topic.partitions.items()}
            members = {each: state.isr for each, state in topic.partitions.items()}
            self._journal.put(self._isrs, topic_id, index_of(self._journal, members, leaders))
        if topic_id not in self._eligible and names_twice(after.eligible):
            members = {each: state.eligible for each, state in topic.partitions.items()}
            self._journal.put(self._eligible, topic_id, index_of(self._journal, members, None))
        wrong = ""
        if topic_id in self._isrs:
            old, was = (before.isr, before.leader) if before else ((), None)
            wrong = self._isrs[topic_id].update(number, old, after.isr, was, after.leader)
        if topic_id in self._eligible and not wrong:
            old = before.eligible if before else ()
            wrong = self._eligible[topic_id].update(number, old, after.eligible, None, None)
        return wrong

    def _clear_elr(self, fields: Fields) -> Refusal | None:
        name = fields["TopicName"]
        if not name:
            topics = list(self._topics.values())
        elif name not in self._names:
            return Refusal("no topic has this name")
        elif self._names[name] not in self._topics:
            return Refusal("the topic of this name was removed under another name", _ONLY_CONTROLLERS)
        else:
            topics = [self._topics[self._names[name]]]
        for topic in topics:
            for number, state in list(topic.partitions.items()):
                if state.eligible:
                    self._journal.put(topic.partitions, number, state._replace(eligible=()))
        return None

    # -- brokers and controllers ----------------------------------------------------------------------------------

    def _register_broker(self, fields: Fields) -> Refusal | None:
        wrong = self._endpoints(fields, _ONLY_CONTROLLERS)
        if wrong:
            return wrong
        broker, directories = fields["BrokerId"], tuple(fields["LogDirs"] or ())
        before = self._brokers.get(broker)
        clash = self._assign(broker, before.directories if before else (), directories)
        if clash:
            return clash
        self._journal.put(self._brokers, broker, _Broker(fields["BrokerEpoch"], directories))
        self._supports(fields)
        return None

    def _unregister_broker(self, fields: Fields) -> Refusal | None:
        broker = fields["BrokerId"]
        wrong = self._not_registered(broker, fields["BrokerEpoch"])
        if wrong:
            return Refusal(wrong, _ONLY_CONTROLLERS)
        clash = self._assign(broker, self._brokers[broker].directories, ())
        if clash:
            return clash
        self._journal.discard(self._brokers, broker)
        return None

    def _fence(self, fields: Fields) -> Refusal | None:
        return self._change_broker(fields["Id"], fields["Epoch"], ())

    def _registration_change(self, fields: Fields) -> Refusal | None:
        if fields["Fenced"] not in (-1, 0, 1):
            return Refusal(f"{fields['Fenced']} is no value of Fenced")
        if fields["InControlledShutdown"] not in (0, 1):
            return Refusal(f"{fields['InControlledShutdown']} is no value of InControlledShutdown")
        return self._change_broker(fields["BrokerId"], fields["BrokerEpoch"], tuple(fields["LogDirs"] or ()))

    def _change_broker(self, broker: int, epoch: int, directories: tuple[UUID, ...]) -> Refusal | None:
        wrong = self._not_registered(broker, epoch)
        if wrong:
            return Refusal(wrong)
        before = self._brokers[broker]
        after = directories or before.directories
        clash = self._assign(broker, before.directories, after)
        if clash:
            return clash
        if directories:
            self._journal.put(self._brokers, broker, before._replace(directories=directories))
        return None

    def _not_registered(self, broker: int, epoch: int) -> str:
        known = self._brokers.get(broker)
        if known is None:
            return f"broker {broker} is not registered"
        return "" if known.epoch == epoch else f"broker {broker} is registered with broker epoch {known.epoch}"

    def _assign(self, broker: int, before: Sequence[UUID], after: Sequence[UUID]) -> Refusal | None:
        """Give a broker other log directories (``ClusterControlManager.updateDirectories``)."""
        if not before and not after:
            return None
        if len(set(before)) != len(before):
            return Refusal(f"broker {broker} was registered with one log directory twice", _ONLY_CONTROLLERS)
        for each in after:
            owner = self._owners.get(each, broker)
            if owner != broker:
                return Refusal(f"log directory {encode_uuid(each)} belongs to broker {owner}", _ONLY_CONTROLLERS)
        if before != after:
            for each in before:
                self._journal.discard(self._owners, each)
            for each in after:
                self._journal.put(self._owners, each, broker)
        return None

    def _endpoints(self, fields: Fields, brokers_too: bool) -> Refusal | None:
        for each in fields["EndPoints"] or ():
            if each["SecurityProtocol"] not in _PROTOCOLS:
                return Refusal(f"{each['SecurityProtocol']} is no security protocol", brokers_too)
        if not brokers_too and any(not each["Name"] for each in fields["EndPoints"] or ()):
            return Refusal("a listener has no name")
        return None

    def _register_controller(self, fields: Fields) -> Refusal | None:
        wrong = self._endpoints(fields, True)
        if wrong:
            return wrong
        self._journal.put(self._controllers, fields["ControllerId"], True)
        self._supports(fields)
        return None

    def _unregister_controller(self, fields: Fields) -> Refusal | None:
        if fields["ControllerId"] not in self._controllers:
            return Refusal(f"controller {fields['ControllerId']} is not registered", _ONLY_CONTROLLERS)
        self._journal.discard(self._controllers, fields["ControllerId"])
        return None

    # -- features and configurations ------------------------------------------------------------------------------

    def _supports(self, fields: Fields) -> None:
        """Note the levels that a registered node supports, whatever becomes of the transaction around it."""
        for each in fields.get("Features") or ():
            low, high = each["MinSupportedVersion"], each["MaxSupportedVersion"]
            known = self._supported.get(each["Name"], (low, high))
            self._supported[each["Name"]] = min(low, known[0]), max(high, known[1])
            self._any_node = True

    def _feature(self, fields: Fields) -> Refusal | None:
        """A level that Kafka 4.4.0 lacks may be another release's, unless nodes have registered and none has it."""
        if self._of_kip_631:
            return None
        name, level = fields["Name"], fields["FeatureLevel"]
        low, high = FEATURES.get(name, _DISABLED)
        if low <= level <= high:
            return None
        lowest, highest = self._supported.get(name, _DISABLED)
        sure = self._any_node and not lowest <= level <= highest
        known = f"levels {low} to {high}" if name in FEATURES else "no such feature"
        brokers_too = name == _METADATA_VERSION and not low <= level <= _UNSTABLE_METADATA_VERSION
        return Refusal(f"Kafka 4.4 supports {known}", brokers_too, sure)

    def _config(self, fields: Fields) -> Refusal | None:
        name = fields["ResourceName"]
        if fields["ResourceType"] == _BROKER_RESOURCE and name and not _is_java_int(name):
            return Refusal(f"{name} is no broker id", _ONLY_CONTROLLERS)
        return None

    # -- the rest -------------------------------------------------------------------------------------------------

    def _producer_id_block(self, fields: Fields) -> Refusal | None:
        known = self._producer_ids.get("next")
        if known is not None and fields["NextProducerId"] <= known:
            return Refusal(f"producer ids below {known} are given out already", _ONLY_CONTROLLERS)
        self._journal.put(self._producer_ids, "next", fields["NextProducerId"])
        return None

    def _access_control_entry(self, fields: Fields) -> Refusal | None:
        entry = (
            *(fields[name] if 0 <= fields[name] <= most else 0 for name, most in _KNOWN_CODES.items()),
            *(fields[name] for name in ("ResourceName", "Principal", "Host")),
        )
        self._journal.put(self._entries, fields["Id"], entry)
        self._journal.put(self._entry_set, entry, True)
        return None

    def _remove_access_control_entry(self, fields: Fields) -> Refusal | None:
        entry = self._entries.get(fields["Id"])
        if entry is None:
            return Refusal("no access control entry has this id")
        if entry not in self._entry_set:
            return Refusal("an equal entry with another id was removed before", _ONLY_CONTROLLERS)
        self._journal.discard(self._entries, fields["Id"])
        self._journal.discard(self._entry_set, entry)
        return None

    def _credential(self, fields: Fields) -> Refusal | None:
        self._journal.put(self._credentials, _credential_key(fields), True)
        return None

    def _remove_credential(self, fields: Fields) -> Refusal | None:
        key = _credential_key(fields)
        if key not in self._credentials:
            return Refusal("the user has no such credential", _ONLY_CONTROLLERS)
        self._journal.discard(self._credentials, key)
        return None

    def _delegation_token(self, fields: Fields) -> Refusal | None:
        for each in (*(fields["Renewers"] or ()), fields["Owner"], fields["Requester"]):
            if ":" not in each:
                return Refusal(f'"{each}" is no principal of the form TYPE:NAME')
        return None


def _credential_key(fields: Fields) -> tuple[str, int]:
    mechanism = fields["Mechanism"]
    return fields["Name"], mechanism if 0 <= mechanism <= _SCRAM_MECHANISMS else 0


def _assigned(fields: Fields, replicas: int, directories: int) -> tuple[int, int] | str:
    """The numbers of replicas and directories after a change, or why Kafka rejects them."""
    given, named = fields["Replicas"], fields["Directories"]
    if given is not None:
        replicas = len(given)
    if named is not None:
        if given is not None and named and len(named) != replicas:
            return _lengths(len(named), replicas)
        directories = _count(named)
    return _lengths(directories, replicas) if 0 < directories != replicas else (replicas, directories)


def _count(directories: Sequence[UUID]) -> int:
    return _ALL_MIGRATING if all(each == _MIGRATING for each in directories) else len(directories)


def _is_java_int(text: str) -> bool:
    return _JAVA_INT.fullmatch(text) is not None and -(1 << 31) <= int(text) < 1 << 31


def _lengths(directories: int, replicas: int) -> str:
    return f"it has {directories} directories for {replicas} replicas"


def _unknown_recovery(value: int) -> str:
    return f"{value} is no leader recovery state"
