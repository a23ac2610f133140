"""Apache Kafka's consumer, which reads from brokers of ours that run freely; held to ``kip-320-kafka``.

The consumer is the KafkaConsumer of the classic protocol with one partition assigned by hand, in a JVM
(``conformance/kafka/``): its application's calls, its timers and what reaches its sockets are drawn. The brokers, the
controller and the coordinator are those that our own consumer has, with disks that fail and ways that are cut; what a
consumer is answered is as Apache Kafka's brokers answer it (``kafka_reader.py``).

A connection keeps the order of what is asked on it, and breaks where a message of it is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    EARLIEST,
    NO_EPOCH,
    NO_LEADER,
    NO_OFFSET,
    Envelope,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    Response,
)
from ....model.core.errors import BadInput
from ....model.protocols.truncation.state import Rules, truncation
from ....traces.format import Value
from ...adapters.carrier import error_name
from ...adapters.cluster import shown_leader
from ...adapters.endpoints import Node
from ...kafka.process import CONSUMER as DRIVES
from ...kafka.process import Jvm, OfKafka
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent, RequestOutcome, SenderClaim, StepResult
from .kafka_reader import KafkaReader, ShippedBroker
from .steps import steps_of_brokers
from .system_partition import LEADER, READER, TIMEOUT_MS, RunningPartition, call

_ASKS: Final = {"earliest": "beginning", "latest": "end", "nothing": "nothing"}
_JUMPS: Final = ("seek", "seek_kept", "beginning", "end", "restart")
_ELECTS: Final = frozenset({"elect", "elect_unclean"})
_TARGETS: Final = {"beginning": 2, "end": 3}
_HELPLESS: Final = frozenset({"OffsetOutOfRangeException", "NoOffsetForPartitionException"})
"""What ``poll`` raises where only its application can help."""
_OF_PRODUCERS: Final = frozenset({None, "NOT_LEADER_OR_FOLLOWER"})
"""The codes for a producer that the model has a word for."""
_FENCED: Final = frozenset({"FENCED_REPLICA", "UNKNOWN_LEADER_EPOCH"})
_AGES: Final = (50, 2 * TIMEOUT_MS)
"""How old metadata may become (``metadata.max.age.ms``): less than a request may take, or more."""
_SELDOM, _SOON = 0.05, 6.0
"""How likely it is that a request is given up while its answer lingers, and that an election comes meanwhile."""
_LINGERS: Final = 60
"""For so many events records may linger on their way."""
_Found = tuple[int, int, int]
"""Of a truncation: the offset and the epoch to go on from, and the leader epoch in which they were found."""


class KafkaConsumers(OfKafka, RunningPartition):
    """A consumer of Apache Kafka, and what it talks to. Its process ends where its application restarts it."""

    implemented = "kip-320-kafka"

    def __init__(
        self, protocol: str | None = None, variant: str | None = None, make: Callable[[], Jvm] | None = None
    ) -> None:
        held = [name for name, each in truncation.variants.items() if cast("Rules", each.rules).shipped]
        wanted = variant or self.implemented
        if (protocol or self.protocol) != self.protocol or wanted not in held:
            raise BadInput(f"it is not held to {protocol} {wanted}", "--impl kafka", f"name one of {', '.join(held)}")
        super().__init__(variant=wanted)
        self.name = "kafka"
        self._make = make or (lambda: Jvm(self.release, drives=DRIVES))
        self._jvm: Jvm | None = None
        self._begins = False

    # -- the start --------------------------------------------------------------------------------------------------

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new nodes, a new consumer; the JVM stays."""
        self._begins = True
        try:
            return super().reset(constants, seed)
        finally:
            self._begins = False

    def close(self) -> None:
        """Give the files back, and end the JVM."""
        super().close()
        if self._jvm is not None and not self._begins:
            self._jvm.close()
            self._jvm = None

    def _set_up(self, constants: Mapping[str, int]) -> range:
        nodes = super()._set_up(constants)
        self._max_bytes = self.chance.choice((1, 1 << 20, 1 << 20))
        self._events = 0
        self._since: dict[int, int] = {}
        """Since when records are on their way."""
        self._age = self.chance.choice(_AGES)
        self._lingers = self.chance.random() < 0.35
        """Whether records take so long to arrive that the consumer may have heard of another leader by then."""
        self._readers = 0
        self._lost: set[int] = set()
        """The nodes that cannot be reached, as the consumer's sockets have it."""
        self._start_reader()
        return nodes

    def _begin(self, node: int, first_correlation: int) -> Node:
        if node == self.coordinator:
            return super()._begin(node, first_correlation)
        self._incarnations[node] += 1
        files, clock = self.store.files(node), self.clock.at(node)
        return ShippedBroker(node, files, self.wire(), clock, self._config, first_correlation=first_correlation)

    def _start_reader(self) -> None:
        """A consumer's process begins, in the place of the former one."""
        if self._jvm is None:
            self._jvm = self._make()
        if self._readers:
            self.network.detach(READER)
        first = self._readers % len(self.brokers)
        self._readers += 1
        self._kafka = KafkaReader(
            self._jvm,
            self.network,
            self._readers,
            len(self.brokers),
            [*self.brokers[first:], *self.brokers[:first]],
            policy="none",
            bytes=self._max_bytes,
            age=self._age,
            seed=self.seed * 100 + self._readers,
        )
        self.network.attach(self._kafka)
        self._lost = set()
        self._read: dict[int, tuple[int, int, bytes]] = {}
        self._from = 0
        self._found: _Found | None = None
        self._told = NO_OFFSET
        self._seen: Mapping[str, Any] = {}
        self._idle_at = -1
        self._stuck = False
        self._hear(jumps=True)

    # -- looking ----------------------------------------------------------------------------------------------------

    def _hear(self, *, jumps: bool = False) -> None:
        """Take up what the consumer has shown and said since; ``jumps``: its application has just moved it."""
        for told in self._kafka.hear():
            before, self._seen = self._seen, told["seen"]
            records = told.get("records", ())
            self._read.update((offset, (offset, epoch, value.encode())) for offset, epoch, value in records)
            was, now = before.get("position"), self._seen.get("position")
            if now is None:
                self._from = 0
            elif was is None or jumps or now["offset"] != (records[-1][0] + 1 if records else was["offset"]):
                self._from = now["offset"]
            if jumps or now is None or not self._seen["validates"]:
                self._found, self._told = None, NO_OFFSET
            if "truncated" in self._seen and "truncated" not in before and now is not None:
                at = self._seen["truncated"]
                self._found, self._told = (at["offset"], at["epoch"], now["epoch"]), NO_OFFSET
            raised = told.get("raised", {}).get("name")
            if raised == "LOG_TRUNCATION" and self._found is not None:
                self._told = self._found[0]
            # Nobody says where to go on from where the leader is of an older epoch than the position's (V7).
            if raised in _HELPLESS or (raised == "LOG_TRUNCATION" and self._told == NO_OFFSET):
                self._stuck = True

    def observe(self) -> Mapping[str, Value]:
        """Everything that the model has, but of nodes that are down."""
        return self.partition_cells() | self._reader_cells()

    def _reader_cells(self) -> dict[str, Value]:
        seen = self._seen
        metadata, at = seen["metadata"], seen.get("position")
        offset = 0 if at is None else at["offset"]
        found = self._found or (NO_OFFSET, NO_EPOCH, NO_EPOCH)
        cells: dict[str, Value] = {
            "metadata_leader": shown_leader(metadata["leader"]),
            "metadata_epoch": metadata["epoch"],
            "topic_known": int(seen["knows"]),
            "placed": int(at is not None),
            "position": offset,
            "last_epoch": NO_EPOCH if at is None else at["last"],
            "seen_epoch": NO_EPOCH,
            "current_epoch": NO_EPOCH if at is None or at["leader"] == NO_LEADER else at["epoch"],
            "validating": int(seen["validates"]),
            "consumed_from": self._from,
            "outcome": "fetching" if self._found is None else "divergence_found",
            "reported": found[0],
            "reported_epoch": found[1],
            "answered_epoch": found[2],
            "told": self._told,
            "asking": "committed" if seen["begins"] else _ASKS[seen["asks"]],
        }
        for number in range(self.constants["log_size"]):
            read = self._read.get(number) if self._from <= number < offset else None
            cells[f"consumed_id[{number}]"] = -1 if read is None else self.ids.get(read, -1)
            cells[f"consumed_epoch[{number}]"] = NO_EPOCH if read is None else read[1]
        return cells

    # -- what may happen --------------------------------------------------------------------------------------------

    def pending(self) -> Sequence[EnabledEvent]:
        """What may happen; of a connection's messages the first alone may move."""
        found = [each for each in super().pending() if each.message is None or self._may_move(each.message)]
        late = self._lingering() if self._lingers and not self.pace.peace else None
        return found if late is None else [_while_it_lingers(each) for each in found if each.message != late]

    def _lingering(self) -> int | None:
        """The message with records of the leader that the consumer reads from, which is not to arrive yet.

        It is, once the consumer has gone over to another leader epoch, or has waited for long enough.
        """
        at = self._seen.get("position")
        for flight in self.network.in_flight(destination=READER) if at is not None else ():
            body = flight.envelope.body
            if isinstance(body, FetchResponse) and body.records and at is not None:
                since = self._since.setdefault(flight.number, self._events)
                over = at["epoch"] > body.leader_epoch and not self._seen["validates"]
                if not over and self._events - since < _LINGERS:
                    return flight.number
        return None

    def _may_move(self, number: int) -> bool:
        flight = next(each for each in self.network.in_flight() if each.number == number)
        envelope = flight.envelope
        if READER not in (envelope.source, envelope.destination):
            return True
        return self._kafka.is_next(envelope.correlation)

    def _is_prompt(self, envelope: Envelope) -> bool:
        return super()._is_prompt(envelope) and (
            READER not in (envelope.source, envelope.destination) or self._kafka.is_next(envelope.correlation)
        )

    def _waits(self) -> bool:
        """Whether the consumer waits for the answer to anything but metadata."""
        return any(not isinstance(each.envelope.body, MetadataRequest) for each in self._kafka.open.values())

    def _calls(self) -> Iterator[Event]:
        yield from self._readings()
        yield from self._writings()
        yield from self._operations()

    def _readings(self) -> Iterator[Event]:
        at = self._seen.get("position")
        if self._has_to_poll() or self.pace.is_time("poll"):
            yield call("poll")
        waits = any(isinstance(each.envelope.body, OffsetCommitRequest) for each in self._kafka.open.values())
        settled = at is not None and not self._seen["validates"] and self._seen["coordinated"] and not waits
        if settled and self.coordinator not in self.down and self.pace.is_time("commit"):
            yield call("commit")
        if self._told != NO_OFFSET and self._found is not None:
            yield call("seek_to_told")
        jumps = self._stuck or (self.pace.is_time("jump") and self._is_served())
        if jumps:
            for name in _JUMPS[2:]:
                yield call(name)
        # Whoever is bold leaves its position just while that is in doubt.
        doubts = self._seen["validates"] and self.pace.bold
        for offset in range(self.constants["log_size"] + 1) if jumps or doubts else ():
            if jumps:
                yield call("seek", offset=offset)
            if self._epoch_before(offset) is not None:
                yield call("seek_kept", offset=offset)

    def _epoch_before(self, offset: int) -> int | None:
        """The epoch of the record before an offset, where the application has read it: a position that it may keep."""
        read = self._read.get(offset - 1)
        return None if read is None else read[1]

    def _has_to_poll(self) -> bool:
        if self._waits() or self._idle_at == self.clock.now():
            return False
        return not (self._is_served() and self._has_read_it_all())

    def _has_read_it_all(self) -> bool:
        at = self._seen.get("position")
        if at is None or self._seen["validates"] or at["leader"] not in self.nodes:
            return False
        leads = self._state(at["leader"])
        return leads is not None and leads.role.value == LEADER and leads.high_watermark == at["offset"]

    def _is_served(self) -> bool:
        """Whether the consumer knows the present leader epoch, and has validated its position in it."""
        if not self.pace.patient or self.pace.is_time("patience"):
            return True
        at = self._seen.get("position")
        return at is None or (at["epoch"] == len(self._leaders) - 1 and not self._seen["validates"])

    def _waits_a_little(self) -> bool:
        return not self._waits() and self._idle_at == self.clock.now()

    def _may_elect(self) -> bool:
        if not self.pace.patient or self.pace.is_time("patience") or self._leaders[-1][0] == NO_LEADER:
            return True
        if self._lingers and self._lingering() is not None:
            return True
        at = self._seen.get("position")
        return at is not None and self._from < at["offset"] and self._is_served()

    def _urgent(self) -> Iterator[Event]:
        yield from super()._urgent()
        if self._told != NO_OFFSET:
            yield call("seek_to_told")
        elif self._stuck:
            yield call("beginning")
        yield call("poll")

    # -- what happens -----------------------------------------------------------------------------------------------

    def _call(self, event: Event) -> Sequence[ModelStep]:
        reader = self._kafka
        match event.name:
            case "poll":
                sent = reader.ask("poll")["sent"]
                self._hear()
                if not sent:
                    self._idle_at = self.clock.now()
                return ("follow_metadata", {}), ("raise_truncation", {})
            case "commit":
                reader.ask("commit")
                self._hear()
                return ()
            case "seek_to_told" | "seek" | "seek_kept" | "beginning" | "end" | "restart":
                return self._jump(event)
        return self._operate(event)

    def _jump(self, event: Event) -> Sequence[ModelStep]:
        """The application leaves its position."""
        reader, self._stuck = self._kafka, False
        steps: Sequence[ModelStep]
        match event.name:
            case "seek_to_told":
                assert self._found is not None
                offset, epoch, _ = self._found
                reader.ask("seek", offset=offset, epoch=epoch)
                named = ("seek_position", {"offset": offset, "epoch": epoch})
                steps = (("seek_offset", {"offset": offset}) if epoch == NO_EPOCH else named,)
            case "seek_kept":
                offset = int(event.arg("offset"))
                kept = self._epoch_before(offset)
                reader.ask("seek", offset=offset, epoch=kept)
                steps = (("seek_position", {"offset": offset, "epoch": cast(int, kept)}),)
            case "seek":
                offset = int(event.arg("offset"))
                reader.ask("seek", offset=offset)
                steps = (("seek_offset", {"offset": offset}),)
            case "restart":
                self._start_reader()
                steps = (("restart_process", {}),)
            case _:
                reader.ask(event.name)
                steps = (("request_reset", {"target": _TARGETS[event.name]}),)
        self._hear(jumps=True)
        return steps

    def _took(self, event: Event) -> Sequence[ModelStep]:
        self._events += 1
        if event.what is EventKind.TIME:
            self._kafka.ask("time", ms=int(event.arg("ms")))
        steps = list(super()._took(event))
        if event.name in _JUMPS:
            self.pace.happened("jump")
        self._break_connections()
        self._hear()
        if self.arrived is not None and isinstance(self.arrived.body, OffsetFetchResponse):
            steps += [("follow_metadata", {}), ("raise_truncation", {})]
        return steps

    def _break_connections(self) -> None:
        """Where a message is lost, or a node is out of reach, the connection breaks."""
        gone = (self.down | self.cut) & {*self.brokers, self.coordinator}
        for node in sorted(gone - self._lost):
            self._kafka.ask("lose", node=node, down=True)
        for node in sorted(self._lost - gone):
            self._kafka.ask("reach", node=node)
        self._lost = gone
        moving = {each.envelope.correlation for each in self.network.in_flight()}
        dead = {each.envelope.destination for number, each in self._kafka.open.items() if number not in moving}
        for node in sorted(dead):
            self._kafka.ask("lose", node=node, down=False)

    # -- what messages say ------------------------------------------------------------------------------------------

    def _steps(self, envelope: Envelope, asked: Envelope | None) -> tuple[ModelStep, ...]:
        steps = steps_of_brokers(envelope, asked)
        if steps is not None or asked is None:
            return steps or ()
        body, leader = envelope.body, {"leader": envelope.source}
        match body:
            case FetchResponse() if body.error is ErrorCode.NONE:
                late = (("read_late_record", leader),) if self._takes_late else ()
                return ("read_record", leader), *late
            case OffsetsForLeaderEpochResponse() if body.error is ErrorCode.NONE:
                return ("complete_validation", leader), ("find_truncation", leader)
            case ListOffsetsResponse() if body.error is ErrorCode.NONE:
                return (("reset_position", leader),)
            case MetadataResponse() if body.leader_epoch != NO_EPOCH:
                return (("update_metadata", {"epoch": body.leader_epoch}),)
            case MetadataResponse():
                return (("lose_metadata", {}),)
            case OffsetFetchResponse() if body.error is ErrorCode.NONE:
                return (("begin_at_commit", {}),)
        return ()

    @property
    def _takes_late(self) -> bool:
        return bool(cast("Rules", truncation.variants[self.variant].rules).late)

    def _says(self, envelope: Envelope, asked: Envelope | None) -> tuple[SenderClaim, ...]:  # noqa: ARG002 - see ``SenderClaim``
        body = envelope.body
        if envelope.source == READER:
            match body:
                case FetchRequest():
                    return SenderClaim(("position",), body.fetch_offset), *_current(body)
                case OffsetsForLeaderEpochRequest():
                    return SenderClaim(("last_epoch",), body.leader_epoch), *_current(body)
                case ListOffsetsRequest():
                    return (SenderClaim(("asking",), "beginning" if body.timestamp == EARLIEST else "end"),)
                case OffsetCommitRequest():
                    return SenderClaim(("position",), body.offset), SenderClaim(("last_epoch",), body.leader_epoch)
        return ()

    def _judged(self, request: Envelope, answer: Envelope) -> Iterable[RequestOutcome]:
        body, error = request.body, error_name(cast(Response, answer.body))
        if isinstance(body, OffsetCommitRequest) and error is None:
            self.acknowledged = body.offset, body.leader_epoch, body.serving_epoch
            self._look(self.coordinator)
        unknown = "UNKNOWN_TOPIC_OR_PARTITION", "KAFKA_STORAGE_ERROR"
        if error in unknown and request.destination != self.coordinator:
            return ()  # it was not told of it yet, or has lost it
        leader = {"leader": request.destination}
        match body:
            case FetchRequest() if request.source == READER:
                return (RequestOutcome((("read_record", leader),), error),)
            case OffsetsForLeaderEpochRequest() if request.source == READER:
                return (RequestOutcome((("complete_validation", leader), ("find_truncation", leader)), error),)
            case ListOffsetsRequest() if error not in _FENCED:
                return (RequestOutcome((("reset_position", leader),), error),)
            case OffsetCommitRequest():
                return (RequestOutcome((("store_commit", {}),), error),)
            case OffsetFetchRequest():
                return (RequestOutcome((("begin_at_commit", {}),), error),)
            case ProduceRequest() if error in _OF_PRODUCERS:
                return (RequestOutcome((("leader_append", leader),), error),)
        return ()


def _while_it_lingers(each: EnabledEvent) -> EnabledEvent:
    """Who waits for too long gives up, and who leaves does not want what comes."""
    gives_up = each.event.what is EventKind.TIME and int(each.event.arg("ms")) >= TIMEOUT_MS
    leaves = each.event.name in (*_JUMPS, "commit") or each.event.what in (EventKind.CRASH, EventKind.DISK)
    if gives_up or leaves:
        return each.weighing(_SELDOM)
    return each.weighing(_SOON) if each.event.name in _ELECTS else each


def _current(body: FetchRequest | OffsetsForLeaderEpochRequest) -> tuple[SenderClaim, ...]:
    return (SenderClaim(("current_epoch",), body.current_leader_epoch),)
