"""Brokers, their controller, a producer and a consumer as a system that runs freely, held to ``kip-320-cluster``.

Everything is real but time, network and disks. Every producer is idempotent, and each batch has a producer of its own,
so that a repeat is known as one: a record is known by what is in it, and has the model's id from when it is first in
some log. What clients were told is observed where it arrives.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from ....impl.files.simulated import SimulatedFiles
from ....impl.log.batch import encode_batch
from ....impl.log.records import Record, StoredRecord
from ....impl.replica.broker import Broker
from ....impl.replica.partition import PartitionState
from ....impl.replica.timers import Key
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONSUMER,
    FIRST_CLIENT,
    NO_LEADER,
    AlterIsrRequest,
    AlterIsrResponse,
    Envelope,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
    TopicPartition,
)
from ....traces.format import Value
from ...adapters.carrier import error_name
from ...adapters.cluster import shown_leader, shown_set
from ...adapters.nodes import DUE, Mailbox, Node, RunningNodes
from ...adapters.stores import SegmentReader
from ...free.events import Event, What
from ...free.system import Judged, Pending
from ...lockstep.adapter import ModelStep

PARTITION: Final = TopicPartition("t", 0)
PRODUCER: Final = FIRST_CLIENT
READER: Final = FIRST_CLIENT - 1

RESEND: Final = "resend"
"""The controller's timer: it sends again what nobody has answered."""
_RETRY_MS: Final = 300
_SPARE: Final = 3
"""So many leader epochs are left to bring a leader about in the end."""
_LAG_MS: Final = 100
_UNBORN: Final = 3
"""So many batches that are in no log yet may be on their way."""
_LARGEST_BATCH: Final = 3
_TELLS_METADATA: Final = 0.2
"""In so many runs metadata reaches the brokers: they keep it for clients, and go by none of it."""
_NO_RECORD: Final = -1
_CODES: Final = {"NotEligible": "ELIGIBLE_LEADERS_NOT_AVAILABLE", "ElectionNotNeeded": None, "NotInIsr": None}
"""How the controller refuses an operator, as the binding has it."""
_UNJUDGED: Final = frozenset({ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.INELIGIBLE_REPLICA})
"""What an AlterIsr is refused with for what the model does not have: the version of the ISR, and offline marks."""

Payload = bytes


class RunningCluster(RunningNodes):
    """Brokers of ``impl`` with a controller that never fails."""

    protocol = "fencing"
    implemented = "kip-320-cluster"
    times = (1, 60, _LAG_MS + 1, _RETRY_MS + 1)

    # -- the start --------------------------------------------------------------------------------------------------

    def _set_up(self, constants: Mapping[str, int]) -> range:
        chance = random.Random(self.seed)  # noqa: S311 - repeatable on purpose
        self._config = self._parts.broker_config(
            log=self._parts.log_config(segment_bytes=chance.choice((100, 200, 1 << 20))),
            replica_lag_time_max_ms=_LAG_MS,
            isr_interval_ms=_LAG_MS // 2,
            replica_fetch_max_bytes=chance.choice((1, 150, 1 << 20)),
            # Longer than the clock is ever moved on at once: else, in peace, each answer would come too late.
            request_timeout_ms=4 * _LAG_MS,
            flush_each_append=chance.random() < 0.2,
        )
        self.controller = self._parts.controller(self.network, self.clock, SimulatedFiles(self.seed), retry=_RETRY_MS)
        self.network.attach(self.controller)
        for client in (PRODUCER, READER):
            self.network.attach(Mailbox(client, self._told))
        self.network.observer = self._notice
        self._incarnations = dict.fromkeys(range(constants["replicas"]), 0)
        self._correlation = 0
        self._batches: list[tuple[Payload, ...]] = []
        """What each batch of the producer holds, by its number."""
        self._payloads: dict[bytes, tuple[Payload, ...]] = {}
        """The same by the batch's bytes."""
        self._ids: dict[Payload, int] = {}
        """The records that are, or were, in some log."""
        self._records: dict[int, tuple[tuple[int, int, Payload], ...]] = {}
        self._reader = SegmentReader(PARTITION, _row, torn=True)
        self._asked_isr: dict[int, tuple[int, int, frozenset[int]]] = {}
        """By leader: the leader epoch and the partition epoch that it asked by last, and the ISR that it asked for."""
        self._requests: dict[int, tuple[int, frozenset[int]]] = {}
        """Leader and ISR of each leader epoch, as whoever is told of it now is told."""
        self._acknowledged: dict[int, int] = {}
        self._read: dict[int, int] = {}
        self._cells: dict[int, dict[str, Value]] = {}
        self._kept = dict.fromkeys(range(constants["replicas"]), (0, 0))
        """By node: the high watermark and the end of what was synced when a timer stored them last."""
        self._metadata = chance.random() < _TELLS_METADATA
        return range(constants["replicas"])

    def _begin(self, node: int, first_correlation: int) -> Node:
        self._incarnations[node] += 1
        return self._parts.broker(
            node,
            self.store.files(node),
            self.wire(),
            self.clock.at(node),
            self._config,
            first_correlation=first_correlation,
        )

    def _settle(self) -> None:
        for node in self.replicas:
            self.controller.broker_started(node, self._incarnations[node])
        self.controller.create_partition(PARTITION, list(self.replicas), elect=False)
        for node in self.replicas:
            self._look(node)

    # -- looking ----------------------------------------------------------------------------------------------------

    def _broker(self, node: int) -> Broker:
        return cast(Broker, self.nodes[node])

    def _state(self, node: int) -> PartitionState | None:
        """What a replica goes by; None before its broker was told of the partition."""
        partition = self._broker(node).partitions.get(PARTITION)
        return None if partition is None else partition.state()

    def _is_lost(self, node: int) -> bool:
        partition = self._broker(node).partitions.get(PARTITION)
        return partition is not None and partition.failure is not None

    def _look(self, node: int) -> None:
        """Read a node's log past the node, and take its cells anew."""
        self._records[node] = records = self._reader.read(self.store.files(node))
        for _, _, payload in records:
            if payload not in self._ids:
                self._ids[payload] = len(self._ids)
        if node in self.down:
            self._cells.pop(node, None)
        else:
            self._cells[node] = self._cells_of(node)

    def _cells_of(self, node: int) -> dict[str, Value]:
        constants, state = self.constants, self._state(node)
        cells: dict[str, Value] = {}
        leads = state is not None and state.role.value == "leader"
        follows = state is not None and state.role.value == "follower"
        members = state.isr if leads and state is not None else frozenset[int]()
        maximal = state.maximal_isr if leads and state is not None else frozenset[int]()
        cells[f"leo[{node}]"] = 0 if state is None else state.end
        cells[f"hw[{node}]"] = 0 if state is None else state.high_watermark
        cells[f"synced[{node}]"] = 0 if state is None else state.synced
        cells[f"leader_epoch[{node}]"] = -1 if state is None else state.leader_epoch
        cells[f"leader[{node}]"] = shown_leader(state.leader) if state is not None and (leads or follows) else None
        cells[f"isr[{node}]"] = shown_set(members)
        cells[f"maximal_isr[{node}]"] = shown_set(maximal)
        cells[f"asked_isr[{node}]"] = shown_set(self._asked(node, state) if state is not None and leads else members)
        told = dict(state.progress) if state is not None and leads else {}
        for follower in self.replicas:
            cells[f"remote_leo[{node}][{follower}]"] = told.get(follower, -1)
        records = {offset: (epoch, payload) for offset, epoch, payload in self._records[node]}
        for offset in range(constants["log_size"]):
            epoch, payload = records.get(offset, (-1, None))
            cells[f"record_id[{node}][{offset}]"] = _NO_RECORD if payload is None else self._ids[payload]
            cells[f"record_epoch[{node}][{offset}]"] = epoch
        return cells

    def _asked(self, node: int, state: PartitionState) -> frozenset[int]:
        """The ISR that a leader has asked for since it last learned of one; that one where it has asked for none."""
        epoch, version, isr = self._asked_isr.get(node, (-1, -1, state.isr))
        return isr if (epoch, version) == (state.leader_epoch, state.partition_epoch) else state.isr

    def observe(self) -> Mapping[str, Value]:
        """Everything that the model has, but of nodes that are down."""
        quorum = self.controller.partition(PARTITION)
        cells: dict[str, Value] = {
            "next_record_id": len(self._ids),
            "next_leader_epoch": quorum.leader_epoch + 1,
            "quorum_leader_epoch": quorum.leader_epoch,
            "quorum_leader": shown_leader(quorum.leader),
            "quorum_isr": shown_set(quorum.isr),
        }
        for epoch in range(self.constants["max_leader_epoch"] + 1):
            # An epoch that began and ended in one decision was told to nobody.
            if epoch in self._requests or epoch > quorum.leader_epoch:
                leader, isr = self._requests.get(epoch, (NO_LEADER, frozenset()))
                cells[f"request_leader[{epoch}]"] = shown_leader(leader)
                cells[f"request_isr[{epoch}]"] = shown_set(isr)
        for record in range(self.constants["max_records"]):
            cells[f"acknowledged[{record}]"] = self._acknowledged.get(record, -1)
        for offset in range(self.constants["log_size"]):
            cells[f"read[{offset}]"] = self._read.get(offset, _NO_RECORD)
        for node in self.replicas:
            cells |= self._cells.get(node, {})
        return cells

    def pending(self) -> Sequence[Pending]:
        """What may happen to nodes and clients, and what the controller sends again."""
        deadline = self.controller.deadline()
        due = deadline is not None and deadline <= self.clock.now()
        urgent = set(self._urgent([node for node in self.replicas if node not in self.down]))
        found = {each.event: each for each in super().pending()}
        found |= {event: Pending(event, due=True) for event in urgent}
        return [*found.values(), *([Pending(Event(What.TIMER, RESEND), due=True)] if due else [])]

    def _fire(self, event: Event) -> None:
        if event.name == RESEND:
            self.controller.wake()
        else:
            super()._fire(event)

    # -- what clients and operators do ------------------------------------------------------------------------------

    def _timers(self, node: int) -> Iterable[Key]:
        """Those that have something to do: others fire, too, when they are due."""
        broker, state = self._broker(node), self._state(node)
        kept = (-1, -1) if state is None else (state.high_watermark, state.synced)
        idle = {
            "produce": not self._is_due(broker),
            "high-watermarks": state is None or kept[0] == self._kept[node][0],
            "recovery-points": state is None or kept[1] == self._kept[node][1],
        }
        return [key for key in broker.timers() if not idle.get(key[0], False)]

    def _calls(self) -> Iterator[Event]:
        up = [node for node in self.replicas if node not in self.down]
        yield from self._writes(up)
        for node in up:
            state = self._state(node)
            if state is not None and state.leader == node:
                yield _call("consume", to=node, offset=0)
                if state.high_watermark > 0:
                    yield _call("consume", to=node, offset=state.high_watermark - 1)
        yield from self._operations(up)

    def _writes(self, up: Sequence[int]) -> Iterator[Event]:
        left = self.constants["max_records"] - len(self._ids)
        unborn = sum(1 for batch in self._batches if batch[0] not in self._ids)
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
                for number in range(len(self._batches)):
                    yield _call("retry", to=node, batch=number)

    def _operations(self, up: Sequence[int]) -> Iterator[Event]:
        """What operators may want, while there are leader epochs to spare."""
        quorum, left = self.controller.partition(PARTITION), self._epochs_left()
        yield from self._urgent(up)
        if left <= _SPARE:
            return
        for node in self.replicas:
            if quorum.leader == NO_LEADER and node in quorum.isr:
                yield _call("elect", replica=node)
            yield _operation("elect", node)
            yield _operation("shrink", node)
            if node not in quorum.offline:
                yield _operation("mark_offline", node)
            if node in up and not self._is_unregistered(node):
                yield _operation("register", node)
        yield _operation("prefer", quorum.replicas[0])

    def _urgent(self, up: Sequence[int]) -> Iterator[Event]:
        """What whoever watches the brokers does as soon as it can: tell of those that are there, and have one lead."""
        quorum, left = self.controller.partition(PARTITION), self._epochs_left()
        for node in up:
            # One that was restarted unnoticed fails first, and may lead again after.
            if self._is_unregistered(node):
                if left > 1:
                    yield _operation("register", node)
            elif node in quorum.offline and left > 0:
                yield _operation("mark_online", node)
        if quorum.leader == NO_LEADER and left > 0:
            able = [node for node in up if node in quorum.isr and node not in quorum.offline]
            yield from (_call("elect", replica=node) for node in able[:1])

    def _epochs_left(self) -> int:
        return self.constants["max_leader_epoch"] - self.controller.partition(PARTITION).leader_epoch

    def _is_unregistered(self, node: int) -> bool:
        return self.controller.brokers[node].incarnation < self._incarnations[node]

    def _call(self, event: Event) -> Sequence[ModelStep]:
        match event.name:
            case "produce":
                number = len(self._batches)
                payloads = tuple(f"{number}.{each}".encode() for each in range(int(event.arg("records"))))
                self._batches.append(payloads)
                self._produce(number, int(event.arg("to")), int(event.arg("acks")))
            case "retry":
                self._produce(int(event.arg("batch")), int(event.arg("to")), -1)
            case "consume":
                body = FetchRequest(CONSUMER, PARTITION, int(event.arg("offset")), 1 << 20)
                self._ask(READER, int(event.arg("to")), body)
            case "elect":
                self._operate("elect", int(event.arg("replica")))
            case "operate":
                self._operate(str(event.arg("what")), int(event.arg("replica")))
        return ()

    def _produce(self, number: int, node: int, acks: int) -> None:
        records = [Record(value, timestamp=0) for value in self._batches[number]]
        data = encode_batch(records, producer_id=number, producer_epoch=0, base_sequence=0)
        self._payloads[data] = self._batches[number]
        self._ask(PRODUCER, node, ProduceRequest(PARTITION, acks, data))

    def _ask(self, client: int, node: int, body: ProduceRequest | FetchRequest) -> None:
        self._correlation += 1
        self.network.send(Envelope(client, node, self._correlation, body, "User:client"))

    def _operate(self, what: str, replica: int) -> None:
        """An operator, or whatever watches brokers, speaks to the controller."""
        controller = self.controller
        steps: tuple[ModelStep, ...] = ()
        error: str | None = None
        try:
            match what:
                case "elect":
                    steps = (("controller_elect_leader", {"new_leader": replica}),)
                    controller.elect_leader(PARTITION, replica)
                case "shrink":
                    steps = (("controller_shrink_isr", {"replica": replica}),)
                    controller.shrink_isr(PARTITION, replica)
                case "mark_offline":
                    controller.mark_offline(replica)
                case "mark_online":
                    controller.mark_online(replica)
                case "register":
                    controller.broker_started(replica, self._incarnations[replica])
                case "prefer":
                    controller.elect_preferred(PARTITION)
        except self._parts.controller_error as refused:
            error = _CODES[type(refused).__name__]
        # That a replica is marked offline is nothing that the model knows of.
        if steps and not controller.partition(PARTITION).offline:
            self.decided.append(Judged(steps, error))

    def _told(self, envelope: Envelope) -> None:
        """A client gets an answer."""
        body: Any = envelope.body
        request = self._requested[envelope.destination, envelope.correlation][1].body
        if body.error is not ErrorCode.NONE:
            return
        if isinstance(body, ProduceResponse) and isinstance(request, ProduceRequest) and request.acks == -1:
            for number, payload in enumerate(self._payloads[request.records]):
                # One that is acknowledged and in no log ever shows as one that nobody wrote.
                record = self._ids.setdefault(payload, len(self._ids))
                self._acknowledged[record] = body.base_offset + number
        elif isinstance(body, FetchResponse):
            for offset, _, payload in self._reader.decode(body.records):
                self._read[offset] = self._ids.setdefault(payload, len(self._ids))

    # -- what messages say ------------------------------------------------------------------------------------------

    def _notice(self, what: str, _moment: int, envelope: Envelope) -> None:
        """Told of every message that is sent, whether it can reach anybody or not."""
        body = envelope.body
        if what == "sent" and isinstance(body, AlterIsrRequest):
            self._asked_isr[envelope.source] = body.leader_epoch, body.partition_epoch, body.new_isr

    def _steps(self, envelope: Envelope, asked: Envelope | None) -> tuple[ModelStep, ...]:
        source, destination = envelope.source, envelope.destination
        body: Any = envelope.body
        match body:
            case LeaderAndIsrRequest() if body.leader == destination:
                return (("become_leader", {"leader": destination, "epoch": body.leader_epoch}),)
            case LeaderAndIsrRequest() if body.leader != NO_LEADER:
                return (("hear_of_leader", {"replica": destination, "epoch": body.leader_epoch}),)
            case AlterIsrRequest():
                return (("controller_grant_isr", {"leader": source}),)
            case AlterIsrResponse():
                return (("leader_learn_isr", {"leader": destination}),)
            case FetchRequest() if body.replica_id != CONSUMER:
                return (("follower_acknowledge", {"leader": destination, "follower": source}),)
        if asked is None or body.error is not ErrorCode.NONE:
            return ()
        pair = {"leader": source, "follower": destination}
        match body:
            case OffsetsForLeaderEpochResponse():
                return (("become_follower", {**pair, "epoch": body.answering_epoch}), ("truncate_partly", pair))
            case FetchResponse() if destination != READER:
                hears = (("follower_hear_high_watermark", pair),)
                return (("follower_fetch", pair), *hears) if body.records else hears
            case FetchResponse():
                offsets = [offset for offset, _, _ in self._reader.decode(body.records)]
                return tuple(("consumer_reads", {"leader": source, "offset": offset}) for offset in offsets)
            case ProduceResponse() if isinstance(asked.body, ProduceRequest) and asked.body.acks == -1:
                count = len(self._payloads[asked.body.records])
                offsets = list(range(body.base_offset, body.base_offset + count))
                return tuple(("producer_hears", {"leader": source, "offset": offset}) for offset in offsets)
        return ()

    def _judged(self, request: Envelope, answer: Envelope) -> Iterable[Judged]:
        body: Any = request.body
        answered: Any = answer.body
        node, source = request.destination, request.source
        error = error_name(answered)
        match body:
            case LeaderAndIsrRequest() | FetchRequest() if request.source != READER:
                return (Judged(self._steps(request, None), error),)
            case AlterIsrRequest() if answered.error not in _UNJUDGED:
                return (Judged(self._steps(request, None), error),)
            case FetchRequest():
                offset = min(body.fetch_offset, self.constants["log_size"] - 1)
                return (Judged((("consumer_reads", {"leader": node, "offset": offset}),), error),)
            case OffsetsForLeaderEpochRequest():
                params = {"leader": node, "follower": source, "epoch": body.current_leader_epoch}
                return (Judged((("become_follower", params),), error),)
            case ProduceRequest():
                return (Judged((("leader_write", {"leader": node}),), error),)
        return ()

    def _took(self, event: Event) -> Sequence[ModelStep]:
        steps: list[ModelStep] = []
        known = set(self._ids)
        if event.node is not None:
            self._look(event.node)
        if event.node is not None and self.arrived is not None:
            body, node = self.arrived.body, event.node
            if isinstance(body, ProduceRequest):
                steps.append(("leader_write", {"leader": node}))
                again = [self._ids[payload] for payload in self._payloads[body.records] if payload in known]
                steps += (("leader_write_again", {"leader": node, "record": record}) for record in again)
            elif isinstance(body, LeaderAndIsrRequest) and body.leader == node:
                steps.append(("leader_learn_isr", {"leader": node}))
        if event.node is not None and event.what is What.TIMER and event.node not in self.down:
            state = self._state(event.node)
            if state is not None:
                hw, synced = self._kept[event.node]
                hw = state.high_watermark if event.name == "high-watermarks" else hw
                self._kept[event.node] = hw, state.synced if event.name == "recovery-points" else synced
        if event.what is What.TIMER and event.name in ("isr", DUE):
            asks = ("leader_ask_again", "leader_ask_shrink", "leader_ask_expand")
            steps += ((name, {"leader": cast(int, event.node)}) for name in asks)
        quorum = self.controller.partition(PARTITION)
        if quorum.leader_epoch >= 0:
            self._requests[quorum.leader_epoch] = quorum.leader, quorum.isr
        return steps

    def _may_arrive(self, envelope: Envelope) -> bool:
        """Not what would go beyond the model's records, log size and leader epochs."""
        body, node = envelope.body, envelope.destination
        if isinstance(body, ProduceRequest) and node not in self.down:
            payloads = self._payloads[body.records]
            state = self._state(node)
            unborn = sum(payload not in self._ids for payload in payloads)
            end = 0 if state is None else state.end
            return (
                len(self._ids) + unborn <= self.constants["max_records"]
                and end + len(payloads) <= self.constants["log_size"]
            )
        if isinstance(body, LeaderAndIsrResponse) and body.error is ErrorCode.KAFKA_STORAGE_ERROR:
            return self.controller.partition(PARTITION).leader_epoch < self.constants["max_leader_epoch"]
        return True

    def _room_for(self, name: str) -> int:
        return int(self._metadata) if name.startswith("UpdateMetadata") else super()._room_for(name)


def _operation(what: str, replica: int) -> Event:
    """All of them are one kind of call: the leader epochs that they use up are rare beside what happens in one."""
    return Event(What.OPERATE, "operate", args=(("replica", replica), ("what", what)))


def _call(name: str, **args: int) -> Event:
    return Event(What.CALL, name, args=tuple(sorted(args.items())))


def _row(record: StoredRecord) -> tuple[int, int, Payload]:
    """Offset, leader epoch and content."""
    return record.offset, record.leader_epoch, record.value or b""
