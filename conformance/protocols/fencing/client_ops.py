"""What clients of freely running brokers do: producers, a consumer, and somebody who asks what changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import Any, Final, cast

from ....impl.log.records import StoredRecord
from ....impl.replica.broker import Broker
from ....impl.replica.config import BrokerConfig
from ....impl.replica.partition import PartitionState
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    BROKER_PRINCIPAL,
    CONSUMER,
    CONTROLLER,
    EARLIEST,
    FIRST_CLIENT,
    AlterIsrRequest,
    DeleteRecordsRequest,
    Envelope,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ProduceResponse,
)
from ....impl.zk_controller import Controller
from ...adapters.endpoints import Mailbox
from ...adapters.events import fires
from ...adapters.stores import SegmentReader
from ...checks.timers import Timed, Wait, Waits, waits_of_broker
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent
from .application import GIVE, WAKE, Application
from .deleted_records import Deleted
from .min_insync_replicas import SETTINGS, Minimum
from .negative_requests import body_of, broker_probes, controller_probes, is_probe
from .operator_requests import OPERATOR, ask_operator, operator_probes
from .producers import Payload, Producers
from .response_rules import Row, WrongAnswer
from .system_controller import PARTITION, ControlledNodes
from .topic_deletion import CREATE_TOPIC, DELETE_TOPIC
from .workload import CONCERNED, Workload, unhurried

PRODUCER: Final = FIRST_CLIENT
READER: Final = FIRST_CLIENT - 1
PROBER: Final = FIRST_CLIENT - 2
DELETER: Final = FIRST_CLIENT - 4
_UNBORN: Final = 3
"""So many batches that are in no log yet may be on their way."""
_LARGEST_BATCH: Final = 3
_PROBED: Final = 0.5
"""In so many runs somebody asks what changes nothing."""
_CLIENT: Final = "User:client"
_MARKED: Final = frozenset({"AlterIsr", "AlterIsrResponse", WAKE.name})
"""What is due, and messages that are few beside all others, and as often lost."""
_OF_PRODUCERS: Final = frozenset({"Metadata", "MetadataResponse", "Produce", "ProduceResponse", "UpdateMetadata"})
_HEARD: Final = 5.0
"""How likely an application hears of something, beside any other message that arrives."""
_PASSES: Final = 15.0
"""How likely time passes where an application waits for nothing else: beside so many others hardly any would."""
_DRAWN_APART: Final = 0x5BD1E995


class ClientNodes(ControlledNodes):
    """Brokers with clients. What these were told is for the model to hold to."""

    _config: BrokerConfig
    _deleted: Deleted
    _minimum: Minimum

    def _set_up_clients(self, chance: Random, *, rich: bool) -> None:
        """``rich``: what producers send is compressed, and has keys and headers."""
        self.producers = Producers(chance, rich=rich)
        self._reader = SegmentReader(PARTITION, _row, torn=True)
        for client in (PRODUCER, READER, PROBER, DELETER):
            self.network.attach(Mailbox(client, self._told))
        self._probed = chance.random() < _PROBED
        self._application: Application | None = None
        self._pace = Workload(self.seed)
        self._correlation = 0
        self._first_batch = 0
        """The first that is made for the topic that is there; those before are sent again by nobody."""
        self._ids: dict[Payload, int] = {}
        """The records that are, or were, in some log."""
        self._records: dict[int, tuple[Row, ...]] = {}
        """By node: what is in its log, read past the node."""
        self._states: dict[int, PartitionState | None] = {}
        """While it is named what may happen next, what the replicas go by: nothing changes in between."""
        self._acknowledged: dict[int, int] = {}
        self._read: dict[int, int] = {}

    def _timed(self, node: int) -> Iterator[Timed]:
        if node != CONTROLLER:
            yield Timed(self._broker(node)._runtime.timers, _waits(self._config))

    def _broker(self, node: int) -> Broker:
        return cast(Broker, self.nodes[node])

    def _state(self, node: int) -> PartitionState | None:
        """What a replica goes by; None before its broker was told of the partition, and where it is a stray."""
        if node in self._states:
            return self._states[node]
        found = self._replica(node)
        return None if found is None or self._topics.is_stray(found.topic_id) else found

    def _replica(self, node: int) -> PartitionState | None:
        """The same, whichever topic it is of."""
        partition = self._broker(node).partitions.get(PARTITION)
        return None if partition is None else partition.state()

    def pending(self) -> Sequence[EnabledEvent]:
        """What may happen to nodes, the controller and clients."""
        self._states = {node: self._state(node) for node in self.replicas if node not in self.down}
        try:
            begun = {node: self._has_begun(node) for node in self._states}
            weight = self._pace.at(self._states, begun, self._under_way())
            found = super().pending()
        finally:
            self._states = {}
        if weight is not unhurried:
            found = [_weighed(each, weight(each.event)) if each.event.what in CONCERNED else each for each in found]
        if self._application is not None:
            found = [_heard(each) if each.event.name in _OF_PRODUCERS else each for each in found]
            if self._application.waits_for_time:
                found = [each.weighing(_PASSES) if each.event.what is EventKind.TIME else each for each in found]
        up = (node for node in self.replicas if node not in self.down)
        found = [*found, *(fires(SETTINGS, node, due=True) for node in self._minimum.unheard(up))]
        return [_marked(each) if each.event.name in _MARKED else each for each in found]

    def _fire(self, event: Event) -> None:
        node = event.node
        if event.name == SETTINGS and node is not None:
            self._broker(node).require_in_sync(PARTITION.topic, self._minimum.hears(node))
        else:
            super()._fire(event)

    def _under_way(self) -> set[int]:
        """The batches that are on their way, or are or were in some log."""
        bodies = (flight.envelope.body for flight in self.network.in_flight())
        sent = [body.records for body in bodies if isinstance(body, ProduceRequest)]
        found = {self.producers.of[records] for records in sent if records in self.producers.of}
        return found | {n for n, each in enumerate(self.producers.batches) if each.payloads[0] in self._ids}

    def _has_begun(self, node: int) -> bool:
        """Whether the last record of a log is of the leader epoch that its replica is in."""
        records, state = self._records.get(node), self._states[node]
        return bool(records and state is not None and records[-1][1] == state.leader_epoch)

    def _begin_application(self, nodes: Sequence[int], timeout_ms: int) -> None:
        """An application with a producer of its own begins: what it draws changes nothing that others draw."""
        chance = Random(self.seed ^ _DRAWN_APART)  # noqa: S311 - repeatable on purpose
        self._application = Application(
            self._parts, self.network, self.clock, PARTITION, nodes, chance, timeout_ms=timeout_ms
        )
        self._pace.applies = True

    def _calls(self) -> Iterator[Event]:
        up = [node for node in self.replicas if node not in self.down]
        if self._application is not None:
            yield from self._application.offers(self.constants["max_records"] - len(self._ids))
        yield from self._writes(up)
        if self._probed:
            yield from self._probes(up)
        for node in up:
            state = self._state(node)
            if state is not None and state.leader == node:
                yield _call("consume", to=node, offset=0)
                if state.high_watermark > 0:
                    yield _call("consume", to=node, offset=state.high_watermark - 1)
                if state.log_start > 0:
                    yield _call("consume", to=node, offset=state.log_start)
                    yield _call("list-offsets", to=node, timestamp=EARLIEST, epoch=state.leader_epoch)
                yield from self._deleted.calls(node, state)
        yield from self._operations(up)
        yield from self._minimum.calls()

    def _writes(self, up: Sequence[int]) -> Iterator[Event]:
        left = self.constants["max_records"] - len(self._ids)
        adopted = self.producers.adopted
        own = [
            (number, each)
            for number, each in enumerate(self.producers.batches)
            if number >= self._first_batch and number not in adopted
        ]
        unborn = sum(1 for _, batch in own if batch.payloads[0] not in self._ids)
        for node in up:
            state = self._state(node)
            leads = state is not None and state.leader == node
            if left > 0 and unborn < _UNBORN:
                yield _call("produce", to=node, acks=-1, records=1)
                if leads:
                    yield _call("produce", to=node, acks=1, records=1)
                    yield _call("produce", to=node, acks=0, records=1)
                    for records in range(2, min(left, _LARGEST_BATCH) + 1):
                        yield _call("produce", to=node, acks=-1, records=records)
            if leads:
                for number, _ in own:
                    yield _call("retry", to=node, batch=number)

    def _probes(self, up: Sequence[int]) -> Iterator[Event]:
        for node in up:
            state = self._state(node)
            if state is not None:
                yield from broker_probes(node, state, [each for each in self.replicas if each != node])
        yield from controller_probes(self.quorum)
        if self.controller is not None and self._topics.current is not None:
            yield from operator_probes()

    def _call(self, event: Event) -> Sequence[ModelStep]:
        if event in (DELETE_TOPIC, CREATE_TOPIC):
            self._change_topics(event)
            return ()
        if event in (GIVE, WAKE):
            assert self._application is not None
            self._application.does(event)
            return ()
        if event.name == OPERATOR:
            controller = cast(Controller, self.nodes[CONTROLLER])
            sent = self.network.counts.sent
            ask_operator(str(event.arg("what")), controller, PARTITION, self._parts.controller_error)
            if self.network.counts.sent > sent:
                raise WrongAnswer(f"whoever wants to {event.arg('what')} is refused, and brokers are told of it")
            return ()
        if is_probe(event):
            to, body, as_broker = body_of(event, PARTITION, len(self.replicas))
            if as_broker and isinstance(body, FetchRequest | AlterIsrRequest):
                # What is stale of this topic may be true of the next: brokers always name the one that they mean.
                body = replace(body, topic_id=self._topics.meant)
            self._ask(PROBER, to, body, BROKER_PRINCIPAL if as_broker else _CLIENT)
            return ()
        match event.name:
            case "produce":
                number = self.producers.batch(int(event.arg("records")))
                self._produce(number, int(event.arg("to")), int(event.arg("acks")))
            case "retry":
                self._produce(int(event.arg("batch")), int(event.arg("to")), -1)
            case "consume":
                body = FetchRequest(CONSUMER, PARTITION, int(event.arg("offset")), 1 << 20, topic_id=self._topics.asked)
                self._ask(READER, int(event.arg("to")), body)
            case "delete-records":
                self._ask(DELETER, int(event.arg("to")), DeleteRecordsRequest(PARTITION, int(event.arg("offset"))))
            case "min-isr":
                self._minimum.wanted = int(event.arg("replicas"))
            case "elect" if event.what is EventKind.CALL:
                self._operate("elect", int(event.arg("replica")))
            case "elect" | "operate":
                self._operate(str(event.arg("what")), int(event.arg("replica")))
        return ()

    def _produce(self, number: int, node: int, acks: int) -> None:
        data = self.producers.batches[number].data
        self._ask(PRODUCER, node, ProduceRequest(PARTITION, acks, data, self._topics.asked))

    def _ask(self, client: int, node: int, body: Any, principal: str = _CLIENT) -> None:
        self._correlation += 1
        self.network.send(Envelope(client, node, self._correlation, body, principal))

    def _garbles(self, envelope: Envelope) -> bool:
        """At brokers; what comes to clients here is read by nobody's code but ours."""
        return envelope.destination in self.replicas

    def _look_at_application(self, event: Event, sent: list[Envelope]) -> None:
        if self._application is not None:
            for payload, offset in self._application.look(event, self.arrived, sent, self.producers):
                self._acknowledge(payload, offset)

    def _waits_for_all(self) -> str | None:
        """What the application still waits for in peace, where its leader has room for all of it."""
        application, quorum = self._application, self.quorum
        leader = quorum.leader
        state = None if leader < 0 or leader in self.down else self._state(leader)
        if (
            self._deleted.has_deleted
            or application is None
            or state is None
            or (state.leader, state.leader_epoch) != (leader, quorum.leader_epoch)
        ):
            return None
        if any(map(self._is_unregistered, self.replicas)):
            return None  # there are not leader epochs enough for it to come back
        waiting = application.waiting
        room = min(self.constants["log_size"] - state.end, self.constants["max_records"] - len(self._ids))
        return application.unsettled() if waiting <= room else None

    def _acknowledge(self, payload: Payload, offset: int) -> None:
        # One that is acknowledged and in no log ever shows as one that nobody wrote.
        self._acknowledged[self._ids.setdefault(payload, len(self._ids))] = offset

    def _told(self, envelope: Envelope) -> None:
        """A client gets an answer."""
        body: Any = envelope.body
        request = self._requested[envelope.destination, envelope.correlation][1].body
        if body.error is not ErrorCode.NONE or self._topics.is_foreign(envelope):
            return
        if isinstance(body, ProduceResponse) and isinstance(request, ProduceRequest) and request.acks == -1:
            for number, payload in enumerate(self.producers.payloads(request)):
                self._acknowledge(payload, body.base_offset + number)
        elif isinstance(body, FetchResponse) and envelope.destination == READER:
            there = self._reader.decode(body.records)
            for offset, _, payload in (row for row in there if row[0] >= body.log_start_offset):
                self._read[offset] = self._ids.setdefault(payload, len(self._ids))


@lru_cache(64)
def _waits(config: BrokerConfig) -> Waits:
    """Of a broker, and of the deletions that wait at it."""
    return {**waits_of_broker(config), "delete": Wait({config.request_timeout_ms}, since=True)}


def _heard(pending: EnabledEvent) -> EnabledEvent:
    """An answer overtakes the one before it as often as not: in calm the later of two is the less likely."""
    overtakes = pending.event.number if pending.event.name == "ProduceResponse" else 0
    return pending.weighing(_HEARD * (1 + 3 * overtakes))


def _marked(pending: EnabledEvent) -> EnabledEvent:
    return replace(pending, due=True) if pending.event == WAKE else replace(pending, sort="isr")


def _weighed(pending: EnabledEvent, weight: float) -> EnabledEvent:
    return pending if weight == 1.0 else pending.weighing(weight)


@lru_cache(4_096)
def _call(name: str, **args: int) -> Event:
    return Event(EventKind.CALL, name, args=tuple(sorted(args.items())))


def _row(record: StoredRecord) -> tuple[int, int, Payload]:
    """Offset, leader epoch and content."""
    return record.offset, record.leader_epoch, record.value or b""
