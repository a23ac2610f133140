"""What a controller must refuse whatever its state is, and with which code: asked in somebody's name.

No honest broker sends such requests at such a time, so there is no state of an asker to hold the answer against. That
nothing has changed by them is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from ....impl.metadata.image import ALL_BROKERS
from ....impl.wire.controller import (
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ConfigChange,
    ControllerRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    IsrMember,
    ResourceType,
)
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import BROKER_PRINCIPAL, Envelope, TopicPartition
from ...adapters.carrier import CLIENT
from ...lockstep.adapter import Contradiction
from ...simulation.events import Event, EventKind
from .observation import NAMES

if TYPE_CHECKING:
    from .system import FreeControllers

_NOBODY = 90
"""The number of a broker that there is not."""
_SNAPSHOT: Final = 1 << 20
"""The end of the latest snapshot of whoever is to make none."""
_NO_TOPIC = UUID(int=7)
_CONFIG: Final = "min.insync.replicas"


_NO_CONFIGS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "unknown-config": (("none", "1"),),
    "no-number": ((_CONFIG, "0"),),
    "no-policy": (("cleanup.policy", "compact,none"),),
    "no-strategy": (("compaction.strategy", "random"),),
    "no-ratio": (("min.cleanable.dirty.ratio", "1.5"),),
    "no-time": (("segment.ms", "0"),),
    "no-header": (("cleanup.policy", "compact"), ("compaction.strategy", "header")),
    "lags-apart": (("min.compaction.lag.ms", "2"), ("max.compaction.lag.ms", "1")),
}
"""Configurations of a topic that nobody can make it with (KIP-280, and Kafka's ``LogConfig``)."""


class WrongAnswer(Contradiction):
    """A controller has answered what it must refuse otherwise than with the protocol's code."""


_PROBES: Final = {
    "not-active": ("not-active",),
    "refused-broker": ("unregistered", "another-cluster", "old-process", "alive-elsewhere", "was-to-stop"),
    "refused-client": (
        "no-topic",
        "no-partition",
        "no-broker-config",
        "no-topic-config",
        "config-twice",
        *_NO_CONFIGS,
        "no-header-of-brokers",
        "topic-name",
        "topic-again",
        "no-partitions",
        "no-replicas",
        "many-replicas",
        "replica-twice",
        "preferred-fenced",
        "preferred-leads",
        "somebody-leads",
    ),
    "refused-leader": (
        "old-epoch-of-leader",
        "old-version",
        "new-version",
        "new-epoch-of-leader",
        "not-leader",
        "old-leader",
        "without-leader",
        "old-member",
        "fenced-member",
    ),
}
"""By event, what is asked in it, one after the other: whoever has to refuse one has to refuse all."""


def probes(system: FreeControllers, number: int) -> Iterator[Event]:
    """What may be asked of a controller now."""
    active = system.controller(number).active
    if active is None:
        yield Event(EventKind.PROBE, "not-active", number)
        return
    yield Event(EventKind.PROBE, "refused-broker", number)
    yield Event(EventKind.PROBE, "refused-client", number)
    if active.image.partitions:
        yield Event(EventKind.PROBE, "refused-leader", number)


def probe(event: Event, system: FreeControllers) -> None:
    """Ask all of them that there are now. Raises ``WrongAnswer``."""
    assert event.node is not None
    node: Any = system.controller(event.node)
    for name in _PROBES[event.name]:
        asked = _request(name, system, node.active)
        if asked is not None:
            _ask(name, system, node, *asked)


def _ask(name: str, system: FreeControllers, node: Any, body: ControllerRequest, wanted: ErrorCode) -> None:
    system.probed -= 1
    envelope = Envelope(CLIENT, node.address, system.probed, body, BROKER_PRINCIPAL)
    end = node.quorum.replica.end
    system.answers.arrives(node, body, system.clock.now())
    node.receive(envelope)
    error = _answer(system, node, envelope)
    if error is not wanted:
        told = "nothing" if error is None else error.name
        raise WrongAnswer(f"{name}: answered {told}, and not {wanted.name}")
    if node.quorum.replica.end != end:
        raise WrongAnswer(f"{name}: it is refused, and the log has {node.quorum.replica.end - end} records more")


def _answer(system: FreeControllers, node: Any, envelope: Envelope) -> ErrorCode | None:
    for each in reversed(node._waiting):  # nobody is told of it yet
        if each.request is envelope:
            return ErrorCode(each.answer.error)
    for flight in system.network.in_flight(source=node.address, destination=CLIENT):
        if flight.envelope.correlation == envelope.correlation:
            return ErrorCode(flight.envelope.body.error)  # type: ignore[union-attr]
    return None


def _request(name: str, system: FreeControllers, active: Any) -> tuple[ControllerRequest, ErrorCode] | None:
    """A request and the code that it must be refused with; None where there is nobody to ask in the name of."""
    cluster = system.broker_cluster
    if active is None:
        return DeleteTopicsRequest(NAMES[0]), ErrorCode.NOT_CONTROLLER
    image = active.image
    match name:
        case "unregistered":
            return BrokerHeartbeatRequest(_NOBODY, 0, 0), ErrorCode.STALE_BROKER_EPOCH
        case "another-cluster":
            return BrokerRegistrationRequest(0, cluster + "?", UUID(int=1)), ErrorCode.INCONSISTENT_CLUSTER_ID
        case "no-topic":
            return DeleteTopicsRequest(None, _NO_TOPIC), ErrorCode.UNKNOWN_TOPIC_ID
        case "no-partition":
            return ElectLeadersRequest(TopicPartition("none", 0)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        case "no-broker-config":
            body = IncrementalAlterConfigsRequest(ResourceType.BROKER, str(_NOBODY), ())
            return body, ErrorCode.BROKER_ID_NOT_REGISTERED
    return _of_topic(name, image) or _of_broker(name, system, active)


def _of_topic(name: str, image: Any) -> tuple[ControllerRequest, ErrorCode] | None:
    """About a topic that there is not, and is not made."""
    alive = sorted(filter(image.alive, image.brokers))
    match name:
        case "no-topic-config":
            body = IncrementalAlterConfigsRequest(ResourceType.TOPIC, "none", ())
            return body, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        case "config-twice":
            twice = (ConfigChange(_CONFIG, "1"), ConfigChange(_CONFIG, "2"))
            return IncrementalAlterConfigsRequest(ResourceType.TOPIC, "none", twice), ErrorCode.INVALID_REQUEST
        case "no-header-of-brokers":
            strategy = (ConfigChange("log.cleaner.compaction.strategy", "header"),)
            body = IncrementalAlterConfigsRequest(ResourceType.BROKER, ALL_BROKERS, strategy)
            return body, ErrorCode.INVALID_CONFIG
        case _ if name in _NO_CONFIGS:
            return CreateTopicsRequest("none", configs=_NO_CONFIGS[name]), ErrorCode.INVALID_CONFIG
        case "topic-name":
            return CreateTopicsRequest("no/ne"), ErrorCode.INVALID_TOPIC_EXCEPTION
        case "no-partitions":
            return CreateTopicsRequest("none", partitions=0), ErrorCode.INVALID_PARTITIONS
        case "no-replicas":
            return CreateTopicsRequest("none", replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR
        case "many-replicas":
            factor = len(alive) + 1
            return CreateTopicsRequest("none", replication_factor=factor), ErrorCode.INVALID_REPLICATION_FACTOR
        case "replica-twice" if alive:
            twice_there = ((alive[0], alive[0]),)
            return CreateTopicsRequest("none", assignments=twice_there), ErrorCode.INVALID_REPLICA_ASSIGNMENT
    return None


def _of_broker(name: str, system: FreeControllers, active: Any) -> tuple[ControllerRequest, ErrorCode] | None:
    """In a broker's name, or about a partition."""
    cluster, image = system.broker_cluster, active.image
    alive = next((broker for broker in sorted(image.brokers) if image.alive(broker)), None)
    if name == "old-process" and alive is not None:
        old = BrokerHeartbeatRequest(alive, image.brokers[alive].epoch - 1, system.log.end)
        return old, ErrorCode.STALE_BROKER_EPOCH
    if name == "alive-elsewhere" and alive is not None:
        known = image.brokers[alive]
        if not active.sessions.is_live(alive, known.epoch, system.clock.now()):
            return None
        return BrokerRegistrationRequest(alive, cluster, UUID(int=1)), ErrorCode.DUPLICATE_BROKER_REGISTRATION
    if name == "was-to-stop":
        # It was sent before its broker wanted to stop, and has no say any more.
        return next(
            (
                (BrokerHeartbeatRequest(broker, known.epoch, system.log.end, _SNAPSHOT), ErrorCode.NONE)
                for broker, known in sorted(image.brokers.items())
                if known.fenced and known.shutting_down
            ),
            None,
        )
    return _of_partition(name, image)


def _of_partition(name: str, image: Any) -> tuple[ControllerRequest, ErrorCode] | None:
    if not image.partitions:
        return None
    if name in ("preferred-fenced", "preferred-leads", "somebody-leads"):
        for key, state in sorted(image.partitions.items()):
            first = state.replicas[0]
            where = TopicPartition(image.topics[key.topic].name, key.partition)
            if name == "somebody-leads":
                if state.leader >= 0:
                    return ElectLeadersRequest(where, unclean=True), ErrorCode.ELECTION_NOT_NEEDED
            elif name == "preferred-leads":
                if first == state.leader:
                    return ElectLeadersRequest(where), ErrorCode.ELECTION_NOT_NEEDED
            elif first != state.leader and (first not in state.isr or not image.alive(first)):
                return ElectLeadersRequest(where), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        return None
    led = [(key, state) for key, state in sorted(image.partitions.items()) if state.leader >= 0]
    if name == "topic-again":
        return CreateTopicsRequest(sorted(image.names)[0]), ErrorCode.TOPIC_ALREADY_EXISTS
    if not led:
        return None
    key, state = led[0]
    where = TopicPartition(image.topics[key.topic].name, key.partition)
    isr = tuple(IsrMember(each, image.brokers[each].epoch) for each in state.isr)
    epoch, version, leader = state.leader_epoch, state.partition_epoch, state.leader

    def asks(
        broker: int = leader,
        broker_epoch: int | None = None,
        leader_epoch: int = epoch,
        members: tuple[IsrMember, ...] = isr,
        partition_epoch: int = version,
    ) -> AlterPartitionRequest:
        own = image.brokers[broker].epoch if broker_epoch is None else broker_epoch
        return AlterPartitionRequest(broker, own, key.topic, where, leader_epoch, members, partition_epoch)

    others = [each for each in state.replicas if each != leader and each in image.brokers]
    fenced = [each for each in others if not image.alive(each)]
    joins = [each for each in others if image.alive(each)]
    match name:
        case "old-epoch-of-leader" if epoch > 0:
            return asks(leader_epoch=epoch - 1), ErrorCode.FENCED_REPLICA
        case "old-version" if version > 0:
            return asks(partition_epoch=version - 1), ErrorCode.INVALID_UPDATE_VERSION
        case "new-epoch-of-leader":
            return asks(leader_epoch=epoch + 1), ErrorCode.NOT_CONTROLLER
        case "new-version":
            return asks(partition_epoch=version + 1), ErrorCode.NOT_CONTROLLER
        case "not-leader" if others:
            return asks(broker=others[0]), ErrorCode.INVALID_REQUEST
        case "old-leader":
            return asks(broker_epoch=image.brokers[leader].epoch - 1), ErrorCode.STALE_BROKER_EPOCH
        case "without-leader" if joins:
            member = IsrMember(joins[0], image.brokers[joins[0]].epoch)
            return asks(members=(member,)), ErrorCode.INVALID_REQUEST
        case "old-member" if joins:
            member = IsrMember(joins[0], image.brokers[joins[0]].epoch - 1)
            members = (*(each for each in isr if each.broker != joins[0]), member)
            return asks(members=members), ErrorCode.INELIGIBLE_REPLICA
        case "fenced-member" if fenced:
            member = IsrMember(fenced[0], image.brokers[fenced[0]].epoch)
            members = (*(each for each in isr if each.broker != fenced[0]), member)
            return asks(members=members), ErrorCode.INELIGIBLE_REPLICA
    return None
