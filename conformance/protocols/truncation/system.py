"""A consumer, its coordinator and the brokers that it reads from, running freely; held to ``kip-320-client``.

What the application was told is noted where it is told: records by ``poll``, divergences by what it raises,
acknowledgements by the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from ....impl.consumer import ConsumerRecord, OffsetAndMetadata, Outcome
from ....impl.consumer import PartitionState as Reading
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONSUMER,
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
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    Response,
)
from ....model.protocols.truncation.state import Asking
from ....traces.format import Value
from ...adapters.carrier import LIFE, error_name
from ...adapters.cluster import PARTITION, shown_leader
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.system import RequestOutcome, SenderClaim
from .group import is_followed
from .other_requests import RunningBeside
from .steps import steps_of_brokers
from .system_partition import BESIDE, GROUP, LEADER, NOBODY, READER, TIMEOUT_MS, call
from .workload import ASKS, JUMPS

_AWAITED: Final = {
    FetchRequest: "fetch",
    OffsetsForLeaderEpochRequest: "search",
    ListOffsetsRequest: "list",
    OffsetFetchRequest: "committed",
    MetadataRequest: "metadata",
}
_METADATA: Final = frozenset({"Metadata", "MetadataResponse"})
_OF_READER: Final = _METADATA | {"Fetch", "FetchResponse", "ListOffsets", "ListOffsetsResponse"}
_LEADS_ON: Final = frozenset({"poll", "produce", "seek_to_beginning", "seek_to_end"})
"""What gets a consumer a position of the leader that it knows."""
_RATHER, _SLOWLY = 6.0, 0.1
"""How likely it is what leads a consumer on, and what keeps it where it is, beside any other event of its class."""
_REFUSALS: Final = ("refuse_unknown_epoch", "refuse_truncated", "refuse_out_of_range")
_OF_PRODUCERS: Final = frozenset({None, "NOT_LEADER_OR_FOLLOWER"})
"""The codes for a producer that the model has a word for; others are of sequences, sizes, disks."""


class RunningConsumer(RunningBeside):
    """A consumer of ``impl`` and all that it talks to. Its process ends where its application restarts it."""

    # -- the start --------------------------------------------------------------------------------------------------

    def _set_up(self, constants: Mapping[str, int]) -> range:
        nodes = super()._set_up(constants)
        self._policy = self.chance.choice(list(self._parts.reset_policy))
        self._max_bytes = self.chance.choice((1, 1 << 20, 1 << 20))
        self.network.observer = self._notice
        self._can_commit = False
        self._readers = 0
        self._start_reader()
        return nodes

    def _start_reader(self) -> None:
        """A consumer's process begins, in the place of the former one."""
        if self._readers:
            self.network.detach(READER)
        # A client asks any of the brokers that it is told of.
        first = self._readers % len(self.brokers)
        brokers = [*self.brokers[first:], *self.brokers[:first]]
        if self.pace.gone:
            brokers.insert(self.chance.randint(0, 1), NOBODY)
        config = self._parts.consumer_config(
            tuple(brokers),
            group=GROUP,
            coordinator=self.coordinator,
            reset_policy=self._policy,
            max_bytes=self._max_bytes,
            address=READER,
            request_timeout_ms=TIMEOUT_MS,
            retry_backoff_ms=1,
            first_correlation=self._readers * LIFE,
        )
        self._readers += 1
        self._consumer = self._parts.consumer(self.network, self.clock, config)
        self.network.attach(self._consumer)
        # Which is first is first asked for.
        both = [PARTITION, BESIDE] if self._readers % 2 else [BESIDE, PARTITION]
        self._consumer.assign(both if self.pace.beside else [PARTITION])
        self._was = None
        self._commits.forget()
        self._asking_leaders.forget()
        self._awaited = "nothing"
        self._read: dict[int, ConsumerRecord] = {}
        self._told: OffsetAndMetadata | None = None
        self._idle_at = -1

    # -- looking ----------------------------------------------------------------------------------------------------

    @property
    def _reading(self) -> Reading:
        return self._consumer.state(PARTITION)

    def observe(self) -> Mapping[str, Value]:
        """Everything that the model has, but of nodes that are down."""
        return self.partition_cells() | self._reader_cells()

    def _reader_cells(self) -> dict[str, Value]:
        reading = self._reading
        position, found = reading.position, reading.divergence
        at = position or OffsetAndMetadata(0)
        diverged = reading.outcome == Outcome.DIVERGENCE_FOUND
        begin = reading.consumed_from if position is not None else 0
        end = at.offset + len(reading.fetched)
        cells: dict[str, Value] = {
            "metadata_leader": shown_leader(reading.leader),
            "metadata_epoch": reading.leader_epoch,
            "placed": int(position is not None),
            "position": at.offset,
            "last_epoch": at.leader_epoch,
            "seen_epoch": at.serving_epoch,
            "consumed_from": begin,
            "outcome": reading.outcome.name.lower(),
            "answered_epoch": reading.answered_epoch,
            "reported": NO_OFFSET if found is None else found.offset,
            "reported_epoch": NO_EPOCH if found is None else found.leader_epoch,
            "told": self._told.offset if self._told is not None and diverged else NO_OFFSET,
            "awaited": self._awaited if reading.in_flight else "nothing",
            "asking": self._asking(),
            "fetched_end": end,
            "fetched_seen": reading.served_by,
            "known": NO_OFFSET if reading.committed is None else reading.committed.offset,
        }
        fetched = {at.offset + number: record for number, record in enumerate(reading.fetched)}
        for offset in range(self.constants["log_size"]):
            read = self._read.get(offset) if begin <= offset < at.offset else None
            for name, record in (("consumed", read), ("fetched", fetched.get(offset))):
                cells[f"{name}_id[{offset}]"] = -1 if record is None else self._id(offset, record)
                cells[f"{name}_epoch[{offset}]"] = NO_EPOCH if record is None else record.leader_epoch
        return cells

    def _id(self, offset: int, record: ConsumerRecord) -> int:
        """The model's id of a record that the consumer has at an offset; one that nobody wrote has none."""
        row = record.offset, record.leader_epoch, record.value or b""
        return self.ids.get(row, -1) if record.offset == offset else -1

    def _asking(self) -> str:
        """Which new position the consumer asks for."""
        target = self._reading.asks_for
        return "nothing" if target is None else target.value

    # -- what the application does ----------------------------------------------------------------------------------

    def _calls(self) -> Iterator[Event]:
        yield from self._readings()
        yield from self._writings()
        yield from self._operations()
        yield from self._of_members()
        yield from self._of_beside()
        deadline = self._consumer.deadline()
        if deadline is not None and deadline <= self.clock.now():
            yield call("wake")

    def _readings(self) -> Iterator[Event]:
        reading = self._reading
        if self._has_to_poll(reading) or self._has_to_poll_beside() or self.pace.is_time("poll"):
            for records in (1, 2, 500) if reading.buffered > 1 or self.pace.beside else (500,):
                yield call("poll", records=records)
        if reading.position is not None and self._can_commit and self.pace.is_time("commit"):
            yield call("commit")
        if self._told is not None and reading.outcome == Outcome.DIVERGENCE_FOUND:
            yield call("seek_to_told")
        if reading.outcome == Outcome.DIVERGENCE_FOUND and not reading.looking_up:
            yield call("reset_to_divergence")
        doubt = self.pace.bold and reading.outcome == Outcome.DIVERGENCE_FOUND
        lost = self.pace.bold and (self.coordinator in self.down or self._is_deposed())
        stuck = self._is_stuck(reading)
        jumps = set(self.pace.jumps) if self.pace.is_time("jump") and self._is_served() else set[str]()
        if stuck:
            jumps |= {*self.pace.jumps, "seek", "seek_to_beginning"}
        if doubt or lost:
            # Of what was refused, or is in doubt, the application asks rather.
            jumps |= set(ASKS) if doubt else {"seek_to_committed", "restart"}
        led = self._led()
        if led is not None and reading.leader == led[1] != self._severed and not reading.looking_up:
            jumps |= {"seek_to_beginning", "seek_to_end"}
        if jumps:
            for name in JUMPS:
                if name in jumps and name != "seek":
                    yield call(name)
            if "seek" in jumps:
                for offset in range(self.constants["log_size"] + 1):
                    yield call("seek", offset=offset)

    def _is_deposed(self) -> bool:
        """Whether somebody who is cut off from the controller alone may lead on, and the consumer has read of another.

        Metadata may lead back to it.
        """
        at, severed = self._reading.position, self._severed
        if severed is None or at is None or self._leaders[-1][0] in (severed, NO_LEADER):
            return False
        return at.serving_epoch == len(self._leaders) - 1

    def _led(self) -> tuple[int, int] | None:
        """Where a zombie leads on: whom the consumer is to be led away from, and to whom; None where there is none.

        Whoever reads from the zombie is led to the new leader, and once that has given it a position it is led back:
        else a consumer seldom meets a broker in an older leader epoch than what it has read.
        """
        zombie, (leader, _) = self._severed, self._leaders[-1]
        if zombie is None or zombie in self.down or leader in (zombie, NO_LEADER):
            return None
        state, at = self._state(zombie), self._reading.position
        if state is None or state.role.value != LEADER:
            return None
        served = at is not None and at.serving_epoch > state.leader_epoch
        return (leader, zombie) if served else (zombie, leader)

    def _astray(self) -> Callable[[Event], float]:
        led = self._led()
        reading = self._reading
        if led is None:
            return super()._astray()
        away, there = led

        def weight(event: Event) -> float:
            match event.what:
                case EventKind.CALL if event.name in _LEADS_ON and reading.leader == there != self._severed:
                    return _RATHER
                case EventKind.TIME if reading.leader == away and reading.in_flight:
                    return _RATHER
                case EventKind.DELIVER if event.name in _OF_READER and None in (event.node, event.source):
                    node = event.node if event.source is None else event.source
                    # What it has asked for in vain it asks another for, once it has asked who leads.
                    slow = reading.leader == away if node == away else event.name in _METADATA and node != there
                    return _SLOWLY if slow else _RATHER
            return 1.0

        return weight

    def _has_to_poll(self, reading: Reading) -> bool:
        """Whether the next ``poll`` does anything: not while an answer is awaited, nor in a pause after an error.

        Nor is there anything to do where all that its leader has committed was read.
        """
        if reading.buffered:
            return True
        waits = reading.in_flight or self._idle_at == self.clock.now()
        return not waits and not (self._is_served() and self._has_read_it_all(reading))

    def _has_read_it_all(self, reading: Reading) -> bool:
        at, node = reading.position, reading.leader
        if at is None or reading.looking_up or node not in self.nodes or reading.outcome != Outcome.FETCHING:
            return False
        leads = self._state(node)
        return leads is not None and leads.role.value == LEADER and leads.high_watermark == at.offset

    def _is_served(self) -> bool:
        """Whether the consumer has its position from the present leader: one that has not may meet a truncation."""
        if not self.pace.patient or self.pace.is_time("patience"):
            return True
        at = self._reading.position
        return at is None or at.serving_epoch == len(self._leaders) - 1

    def _is_stuck(self, reading: Reading) -> bool:
        """Whether only the application can help, and was told nothing by which to go on."""
        stuck = self._policy.value == "none" and not reading.looking_up
        return stuck and (reading.position is None or reading.outcome == Outcome.OFFSET_OUT_OF_RANGE)

    def _waits_a_little(self) -> bool:
        reading = self._reading
        return not reading.in_flight and not reading.buffered and self._idle_at == self.clock.now()

    def _may_elect(self) -> bool:
        if not self.pace.patient or self.pace.is_time("patience") or self._leaders[-1][0] == NO_LEADER:
            return True
        reading = self._reading
        at = reading.position
        return at is not None and reading.consumed_from < at.offset and self._is_served()

    def _urgent(self) -> Iterator[Event]:
        yield from super()._urgent()
        reading = self._reading
        if self._is_stuck(reading):
            yield call("seek_to_beginning")
        elif self._told is not None and reading.outcome == Outcome.DIVERGENCE_FOUND:
            yield call("seek_to_told")
        yield call("wake")
        yield call("poll", records=500)

    def _call(self, event: Event) -> Sequence[ModelStep]:
        if event.name in JUMPS:
            return self._jump(event)
        match event.name:
            case "poll":
                return self._poll(int(event.arg("records")))
            case "commit":
                self._can_commit = False
                self._sends_commits(self._consumer.commit())
            case "seek_to_told":
                assert self._told is not None
                self._consumer.seek(PARTITION, self._told)
                return (("seek_to_told", {}),)
            case "reset_to_divergence":
                self._consumer.reset_to_divergence(PARTITION)
                return (("go_to_divergence", {}),)
            case "wake":
                self._consumer.wake()
            case _:
                return self._operate(event)
        return ()

    def _took(self, event: Event) -> Sequence[ModelStep]:
        steps = super()._took(event)
        if self._reading.outcome != Outcome.DIVERGENCE_FOUND:
            self._told = None  # of a truncation that is over
        return steps

    def _jump(self, event: Event) -> Sequence[ModelStep]:
        """The application leaves its position."""
        consumer = self._consumer
        match event.name:
            case "seek":
                offset = int(event.arg("offset"))
                consumer.seek(PARTITION, offset)
                return (("seek_to", {"offset": offset}),)
            case "seek_to_committed":
                consumer.seek_to_committed(PARTITION)
            case "seek_to_beginning":
                consumer.seek_to_beginning(PARTITION)
            case "seek_to_end":
                consumer.seek_to_end(PARTITION)
            case "restart":
                self._start_reader()
                return (("restart_consumer", {}),)
        return (("ask_for", {"target": Asking.names.index(event.name.removeprefix("seek_to_"))}),)

    def _poll(self, records: int) -> Sequence[ModelStep]:
        self._can_commit = True
        steps: list[ModelStep] = [("take_record", {}), ("send", {}), ("tell_divergence", {})]
        if self._policy.value != "none":
            target = Asking.beginning if self._policy.value == "earliest" else Asking.end
            steps = [*steps[:2], ("go_to_divergence", {}), ("reset_by_policy", {"target": target})]
        turns, given = self._turns(), list[ConsumerRecord]()
        try:
            given = self._consumer.poll(records)
        except self._parts.log_truncation_error as truncated:
            self._told = truncated.divergent_offsets.get(PARTITION)
        except self._parts.consumer_error:
            pass  # what was told besides is in the state
        self._read.update((each.offset, each) for each in given if each.partition == PARTITION.partition)
        self._polled(records, turns, given)
        if not self._reading.in_flight:
            self._idle_at = self.clock.now()
        return steps

    # -- what messages say ------------------------------------------------------------------------------------------

    def _notice(self, what: str, moment: int, envelope: Envelope) -> None:
        super()._notice(what, moment, envelope)
        if what == "sent" and envelope.source == READER and is_followed(envelope, None):
            self._awaited = _AWAITED.get(type(envelope.body), self._awaited)

    def _steps(self, envelope: Envelope, asked: Envelope | None) -> tuple[ModelStep, ...]:
        if not is_followed(envelope, asked):
            return ()
        steps = steps_of_brokers(envelope, asked)
        if steps is not None or asked is None:
            return steps or ()
        body, leader = envelope.body, {"leader": envelope.source}
        match body:
            case FetchResponse():
                names = ("fetch_record", "end_fetch") if body.error is ErrorCode.NONE else _REFUSALS
                return tuple((name, leader) for name in names)
            case OffsetsForLeaderEpochResponse():
                return (("learn_divergence", leader),)
            case ListOffsetsResponse():
                return ("learn_beginning", leader), ("learn_end", leader)
            case MetadataResponse() if body.error is ErrorCode.NONE:
                return (("learn_leader", {"epoch": body.leader_epoch}),)
            case OffsetCommitResponse() if body.error is ErrorCode.NONE:
                return (("hear_commit", {}),)
            case OffsetFetchResponse() if body.error is ErrorCode.NONE:
                return ("learn_commit", {}), ("learn_no_commit", {})
        return ()

    def _says(self, envelope: Envelope, asked: Envelope | None) -> tuple[SenderClaim, ...]:
        body = envelope.body
        if not is_followed(envelope, asked):
            return ()
        if envelope.source == READER:
            to_leader = SenderClaim(("metadata_leader",), shown_leader(envelope.destination))
            match body:
                case FetchRequest():
                    return (
                        to_leader,
                        SenderClaim(("position",), body.fetch_offset),
                        *_epochs(body, body.last_fetched_epoch),
                    )
                case OffsetsForLeaderEpochRequest():
                    return to_leader, *_epochs(body, body.leader_epoch)
                case ListOffsetsRequest():
                    return to_leader, SenderClaim(("asking",), "beginning" if body.timestamp == EARLIEST else "end")
                case OffsetCommitRequest():
                    return _all_of(("position", "last_epoch", "seen_epoch"), body)
        elif envelope.destination == READER and asked is not None:
            return self._says_of_leader(envelope.source, cast(Response, body), asked)
        return ()

    def _says_of_leader(self, node: int, body: Response, asked: Envelope) -> tuple[SenderClaim, ...]:
        """What an answer says of the leader, or of the coordinator, that gives it."""
        match body:
            case FetchResponse() if body.error is ErrorCode.NONE:
                return (
                    SenderClaim((f"leader_epoch[{node}]",), body.leader_epoch),
                    SenderClaim((f"hw[{node}]",), body.high_watermark),
                    SenderClaim((f"log_start[{node}]",), body.log_start_offset),
                )
            case FetchResponse() if body.leader_epoch != NO_EPOCH:
                return (SenderClaim((f"leader_epoch[{node}]",), body.leader_epoch),)
            case ListOffsetsResponse() if body.error is ErrorCode.NONE:
                earliest = isinstance(asked.body, ListOffsetsRequest) and asked.body.timestamp == EARLIEST
                bound = SenderClaim((f"{'log_start' if earliest else 'hw'}[{node}]",), body.offset)
                return bound, SenderClaim((f"leader_epoch[{node}]",), body.answering_epoch)
            case OffsetsForLeaderEpochResponse() if body.answering_epoch != NO_EPOCH:
                return (SenderClaim((f"leader_epoch[{node}]",), body.answering_epoch),)
            case OffsetFetchResponse() if body.error is ErrorCode.NONE:
                return _all_of(("committed", "committed_epoch", "committed_seen"), body)
        return ()

    def _judged(self, request: Envelope, answer: Envelope) -> Iterable[RequestOutcome]:
        body, error = request.body, error_name(cast(Response, answer.body))
        if not is_followed(request, None):
            return ()
        if isinstance(body, OffsetCommitRequest) and error is None:
            self.acknowledged = body.offset, body.leader_epoch, body.serving_epoch
            self._look(self.coordinator)
        if error == "UNKNOWN_TOPIC_OR_PARTITION" and PARTITION not in self._broker(request.destination).partitions:
            return ()  # it was not told of it yet
        leader = {"leader": request.destination}
        match body:
            case FetchRequest() if body.replica_id == CONSUMER:
                return (RequestOutcome((("fetch_record", leader),), error),)
            case OffsetsForLeaderEpochRequest() if body.replica_id == CONSUMER:
                return (RequestOutcome((("learn_divergence", leader),), error),)
            case ListOffsetsRequest():
                return (RequestOutcome((("learn_beginning", leader), ("learn_end", leader)), error),)
            case OffsetCommitRequest():
                return (RequestOutcome((("store_commit", {}),), error),)
            case OffsetFetchRequest():
                return (
                    RequestOutcome(
                        (("learn_commit", {}), ("learn_no_commit", {"target": Asking.names.index("nothing")})), error
                    ),
                )
            case ProduceRequest() if error in _OF_PRODUCERS:
                return (RequestOutcome((("leader_append", leader),), error),)
        return ()


def _epochs(body: FetchRequest | OffsetsForLeaderEpochRequest, last: int) -> tuple[SenderClaim, ...]:
    """A position's epochs: of its last record, and the latest that is known of its leaders."""
    return SenderClaim(("last_epoch",), last), SenderClaim(("last_epoch", "seen_epoch"), body.current_leader_epoch)


def _all_of(cells: tuple[str, str, str], body: OffsetCommitRequest | OffsetFetchResponse) -> tuple[SenderClaim, ...]:
    """A position that is committed, or was."""
    values = body.offset, body.leader_epoch, body.serving_epoch
    return tuple(SenderClaim((cell,), value) for cell, value in zip(cells, values, strict=True))
