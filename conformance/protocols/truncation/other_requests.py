"""A second partition that the running consumer reads, beside the one that the model follows.

What the two share is driven by it: the consumer's requests and their correlation ids, whom it asks for metadata, the
coordinator, the limit of a poll. It has one replica, at the coordinator's node. Little is demanded of it: that records
come in their order and without a gap, each as it was once in the log; that the position is behind the last one, and
moves else by what was answered; that requests name it; and that in peace the consumer comes to the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from ....impl.consumer import ConsumerRecord, OffsetAndMetadata, Outcome
from ....impl.consumer import PartitionState as Reading
from ....impl.log.batch import encode_batch
from ....impl.log.records import Record
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONTROLLER,
    EARLIEST,
    NO_OFFSET,
    Envelope,
    FetchRequest,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetCommitRequest,
    OffsetFetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from ...adapters.events import is_response
from ...adapters.stores import SegmentReader
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from .commits import WrongAnswer
from .group import MEMBER, RunningGroup
from .system_partition import BESIDE, OFFLINE, READER, Row, call, row_of

_Answer: TypeAlias = ListOffsetsResponse | OffsetFetchResponse | OffsetsForLeaderEpochResponse
"""What brings a new position."""
_MOST_RECORDS: Final = 40
_AT_ONCE: Final = 24
"""So many messages arrive at once in one event."""
_QUIET: Final = 12
"""So often time passes in peace before it is said that nothing moves: as often as for the partition of the model."""
_ASKS: Final = ("beginning", "end", "committed")


class RunningBeside(RunningGroup):
    """What a consumer of two partitions talks to, in some of the runs."""

    def _set_up(self, constants: Mapping[str, int]) -> range:
        nodes = super()._set_up(constants)
        self._beside = SegmentReader(BESIDE, row_of, torn=True)
        self._there: set[Row] = set()
        """What is, or was, in the second partition's log."""
        self._was: Reading | None = None
        """What the consumer knew of it last; None of one that has just begun."""
        self._near: OffsetAndMetadata | None = None
        """Near to what the application has last asked to go there."""
        self._asked: list[tuple[Envelope, Reading]] = []
        """What the consumer has sent for it in this event, and what it knew then."""
        self._rests = 0
        self._at_rest: tuple[object, ...] = ()
        """What it knew when time last passed in peace, and how often it has passed since that changed."""
        self._idle_beside = -1
        return nodes

    def _settle(self) -> None:
        super()._settle()
        if self.pace.beside:
            self._register_coordinator()
            self.controller.create_partition(BESIDE, [self.coordinator])
            self._let_arrive_beside()

    def _register_coordinator(self) -> None:
        self.controller.broker_started(self.coordinator, self._incarnations[self.coordinator])

    def _is_lost(self, node: int) -> bool:
        partition = self._broker(node).partitions.get(BESIDE) if node == self.coordinator else None
        return super()._is_lost(node) or (partition is not None and partition.role.value == OFFLINE)

    def _lose(self, address: int, event: Event) -> None:
        """A broker whose one disk has failed it stops, as Kafka's do: it counts as down, and may keep no commits."""
        if address == self.coordinator and not super()._is_lost(address):
            self._stop(address, self._crash_seed(event))
        else:
            super()._lose(address, event)

    # -- what may happen --------------------------------------------------------------------------------------------

    def _reads_beside(self) -> Reading:
        return self._consumer.state(BESIDE)

    def _has_to_poll_beside(self) -> bool:
        """Whether the next ``poll`` does anything for the second partition."""
        if not self.pace.beside:
            return False
        reading = self._reads_beside()
        waits = reading.in_flight or self._idle_beside == self.clock.now()
        return bool(reading.buffered) or not (waits or self._is_at_the_end(reading))

    def _is_at_the_end(self, reading: Reading) -> bool:
        partition = None if self.coordinator in self.down else self._broker(self.coordinator).partitions.get(BESIDE)
        settled = reading.asks_for is None and reading.outcome == Outcome.FETCHING and not reading.buffered
        at = reading.position
        return settled and at is not None and partition is not None and partition.high_watermark == at.offset

    def _of_beside(self) -> Iterator[Event]:
        """What producer and application do with the second partition."""
        if not self.pace.beside:
            return
        if self.coordinator not in self.down and len(self._there) < _MOST_RECORDS and self.pace.is_time("beside"):
            for records in (1, 2):
                yield call("produce_beside", records=records)
        if self.pace.is_time("leave"):
            for target in range(len(_ASKS)):
                yield call("ask_beside", target=target)
            for offset in dict.fromkeys((0, len(self._there) // 2)):
                yield call("seek_beside", offset=offset)
                yield call("commit_given", offset=offset)
            if self._reads_beside().position is not None:
                for ahead in (0, 2):
                    yield call("nearest_beside", ahead=ahead)
            yield call("reassign")

    def _operate(self, event: Event) -> Sequence[ModelStep]:
        consumer = self._consumer
        match event.name:
            case "produce_beside":
                self._write_beside(int(event.arg("records")))
                self.pace.happened("beside")
                return ()
            case "ask_beside":
                ask = (consumer.seek_to_beginning, consumer.seek_to_end, consumer.seek_to_committed)
                ask[int(event.arg("target"))](BESIDE)
            case "seek_beside":
                consumer.seek(BESIDE, int(event.arg("offset")))
            case "commit_given":
                given = self._parts.offset_and_metadata(int(event.arg("offset")), metadata="given")
                self._sends_commits(consumer.commit({BESIDE: given}))
            case "nearest_beside":
                at = self._reads_beside().position
                assert at is not None
                # As if it had been kept elsewhere: what is ahead was lost meanwhile.
                offset = at.offset + int(event.arg("ahead"))
                self._near = self._parts.offset_and_metadata(offset, at.leader_epoch, at.serving_epoch)
                consumer.seek_to_nearest(BESIDE, self._near)
            case "reassign":
                both = consumer.assignment
                consumer.assign([name for name in both if name != BESIDE])
                consumer.assign(both)
            case _:
                return super()._operate(event)
        self._was = self._reads_beside()
        self.pace.happened("leave")
        return ()

    def _write_beside(self, records: int) -> None:
        number = 1_000_000 + self._batches
        self._batches += records
        batch = [Record(f"beside {number + each}".encode(), timestamp=0) for each in range(records)]
        data = encode_batch(batch, producer_id=number, producer_epoch=0, base_sequence=0)
        self._correlation += 1
        body = ProduceRequest(BESIDE, 1, data)
        self.network.send(Envelope(MEMBER, self.coordinator, self._correlation, body, "User:client"))

    # -- what happens -----------------------------------------------------------------------------------------------

    def _took(self, event: Event) -> Sequence[ModelStep]:
        if self.pace.beside:
            node = self.coordinator
            if event.what is EventKind.START and event.node == node and node not in self.down:
                self._register_coordinator()
            self._let_arrive_beside()
            self._there.update(self._beside.read(self.store.files(node)))
        return super()._took(event)

    def _let_arrive_beside(self) -> None:
        for _ in range(_AT_ONCE):
            flight = next((each for each in self.network.in_flight() if self._is_quick(each.envelope)), None)
            if flight is None:
                return
            envelope = flight.envelope
            if not is_response(envelope):
                self._requested[envelope.source, envelope.correlation] = flight.number, envelope
            self.network.deliver(flight)

    def _is_quick(self, envelope: Envelope) -> bool:
        """Whether a message arrives at once: those of the controller always, that they crowd out none of the model's.

        Not at a node whose disk may fail it.
        """
        ends = {envelope.source, envelope.destination}
        if not ends.isdisjoint(self.down) or (self.coordinator in ends and self.coordinator in self.bad):
            return False
        if isinstance(envelope.body, UpdateMetadataRequest | UpdateMetadataResponse) and self.coordinator in ends:
            return True
        quick = self.pace.beside_at_once or not ends.isdisjoint({CONTROLLER, MEMBER})
        return quick and self._is_of_beside(envelope)

    def _is_of_beside(self, envelope: Envelope) -> bool:
        asked = self._requested.get((envelope.destination, envelope.correlation)) if is_response(envelope) else None
        request = envelope if asked is None else asked[1]
        return getattr(request.body, "partition", None) == BESIDE

    def _may_arrive(self, envelope: Envelope) -> bool:
        if self._is_of_beside(envelope):
            # The controller tells again whoever was down.
            told = isinstance(envelope.body, UpdateMetadataRequest)
            return not (told and envelope.destination in self.down)
        return super()._may_arrive(envelope)

    # -- what is demanded -------------------------------------------------------------------------------------------

    def _notice(self, what: str, moment: int, envelope: Envelope) -> None:
        super()._notice(what, moment, envelope)
        if what == "sent" and envelope.source == READER and self._is_of_beside(envelope):
            self._asked.append((envelope, self._reads_beside()))

    def _turns(self) -> list[tuple[int, int]]:
        """The numbers of the partitions, by their turns, and how many records wait for ``poll`` in each."""
        consumer = self._consumer
        return [(name.partition, consumer.state(name).buffered) for name in consumer.assignment]

    def _polled(self, limit: int, turns: Sequence[tuple[int, int]], given: Sequence[ConsumerRecord]) -> None:
        """``poll`` gave these, of both partitions, or has raised and gave nothing. Raises WrongAnswer."""
        if len(given) > limit:
            raise WrongAnswer(f"poll gives {len(given)} records, and at most {limit} were wanted")
        if not self.pace.beside:
            return
        check_turns(turns, given, [number for number, _ in self._turns()])
        before, after = self._was, self._reads_beside()
        if before is not None:
            check_poll(before, after, [each for each in given if each.partition == BESIDE.partition], self._there)
        if self._needs_help(after):
            if after.divergence is not None:
                self._consumer.seek(BESIDE, after.divergence)
            else:
                self._consumer.seek_to_beginning(BESIDE)
        self._was = self._reads_beside()
        if not self._was.in_flight:
            self._idle_beside = self.clock.now()

    def _needs_help(self, reading: Reading) -> bool:
        """Whether only the application can help: it does so at once."""
        if self._policy_name != "none" or reading.looking_up:
            return False
        return reading.position is None or reading.outcome in (Outcome.OFFSET_OUT_OF_RANGE, Outcome.DIVERGENCE_FOUND)

    @property
    def _policy_name(self) -> str:
        return self._consumer.config.reset_policy.value

    def _hold_consumer(self, event: Event) -> None:
        super()._hold_consumer(event)
        asked, self._asked = self._asked, []
        if not self.pace.beside:
            return
        for envelope, reading in asked:
            check_request(envelope, reading, given=event.name == "commit_given")
        now = self._reads_beside()
        if self._was is not None:
            check_move(self._was, now, self._answered_beside(), self._near)
        if event.what is EventKind.TIME and self.pace.peace and self.coordinator not in self.down | self.cut:
            same = self._was is not None and _shows(self._was) == self._at_rest
            self._rests = self._rests + 1 if same else 0
            self._at_rest = _shows(now)
            if self._rests >= _QUIET and not self._is_at_the_end(now):
                raise WrongAnswer(f"nothing goes wrong any more, and yet the second partition stays at {now}")
        self._was = now

    def _answered_beside(self) -> list[_Answer]:
        found: list[_Answer] = []
        for what, each in self._told_of:
            arrived = what == "delivered" and each.destination == READER and self._is_of_beside(each)
            body = each.body
            if (
                arrived
                and isinstance(body, ListOffsetsResponse | OffsetFetchResponse | OffsetsForLeaderEpochResponse)
                and body.error is ErrorCode.NONE
            ):
                found.append(body)
        return found

    def peace(self, *, on: bool) -> None:
        """In peace the consumer comes to the end."""
        super().peace(on=on)
        self._rests, self._at_rest = 0, ()


def check_poll(before: Reading, after: Reading, given: Sequence[ConsumerRecord], there: Collection[Row]) -> None:
    """Look at what ``poll`` gave of the partition. ``there``: what is, or was, in its log. Raises WrongAnswer."""
    at = before.position
    for number, record in enumerate(given):
        row = record.offset, record.leader_epoch, record.value or b""
        if at is None or before.looking_up or record.offset != at.offset + number:
            raise WrongAnswer(f"poll gives {row} as number {number}, and the position was {at}")
        if row not in there:
            raise WrongAnswer(f"poll gives {row}, which nobody wrote there")
    wanted = _triple(at)
    if given:
        wanted = given[-1].offset + 1, given[-1].leader_epoch, before.served_by
    elif before.outcome == Outcome.DIVERGENCE_FOUND and _triple(after.position) == _triple(before.divergence):
        return
    if _triple(after.position) != wanted:
        raise WrongAnswer(f"poll has given {len(given)} records, and moves the position from {at} to {after.position}")


def check_turns(before: Sequence[tuple[int, int]], given: Sequence[ConsumerRecord], after: Sequence[int]) -> None:
    """Nobody starves: who has records is served by turns, and whoever was served is last then. Raises WrongAnswer.

    ``before``: by their turns, the partitions and how many records wait in each; ``after``: the partitions.
    """
    served = list(dict.fromkeys(each.partition for each in given))
    waiting = [number for number, records in before if records]
    wanted = [number for number, _ in before if number not in served] + served
    if served != waiting[: len(served)] or list(after) != wanted:
        raise WrongAnswer(f"poll serves the partitions {served} of {before}, by their turns, and then they are {after}")


def check_move(
    before: Reading, after: Reading, answers: Sequence[_Answer], near: OffsetAndMetadata | None = None
) -> None:
    """Between polls the position moves by an answer, to what that says. Raises WrongAnswer.

    ``near``: what the application has asked last to go near to.
    """
    found = after.position
    if _triple(found) == _triple(before.position):
        return
    if found is None or not any(_brings(answer, found, near) for answer in answers):
        raise WrongAnswer(f"the position moves from {before.position} to {found}, and the answers were {answers}")


def _brings(answer: _Answer, found: OffsetAndMetadata, near: OffsetAndMetadata | None) -> bool:
    match answer:
        case ListOffsetsResponse():
            return _triple(found) == (answer.offset, answer.leader_epoch, answer.answering_epoch)
        case OffsetFetchResponse():
            same = _triple(found) == (answer.offset, answer.leader_epoch, answer.serving_epoch)
            return same and found.metadata == answer.metadata
        case OffsetsForLeaderEpochResponse():
            # To the nearest: not behind where the logs part, and never ahead of what was asked for (KIP-320).
            if near is None or answer.end_offset == NO_OFFSET:
                return near is not None and found.offset == near.offset
            return found.offset == min(answer.end_offset, near.offset)


def check_request(envelope: Envelope, reading: Reading, *, given: bool) -> None:
    """What a consumer asks of a partition names its position. Raises WrongAnswer.

    ``reading``: what it knew when it sent it; ``given``: the application gave what is committed.
    """
    body, at = envelope.body, reading.position
    least = -1 if at is None else at.least_epoch
    right = True
    match body:
        case FetchRequest():
            said = body.fetch_offset, body.last_fetched_epoch, body.current_leader_epoch
            wanted = None if at is None else (at.offset, at.leader_epoch, least)
            right = said == wanted and not reading.looking_up and not reading.buffered
        case OffsetsForLeaderEpochRequest() if not reading.looking_up:
            right = at is not None and (body.leader_epoch, body.current_leader_epoch) == (at.leader_epoch, least)
        case ListOffsetsRequest():
            target = "beginning" if body.timestamp == EARLIEST else "end"
            right = reading.asks_for is not None and reading.asks_for.value == target
        case OffsetCommitRequest() if not given:
            right = (body.offset, body.leader_epoch, body.serving_epoch) == _triple(at) and not reading.looking_up
    leads = isinstance(body, FetchRequest | OffsetsForLeaderEpochRequest | ListOffsetsRequest)
    if not right or (leads and envelope.destination != reading.leader):
        raise WrongAnswer(f"the consumer sends {body} to {envelope.destination}, and knows {reading}")


def _triple(at: OffsetAndMetadata | None) -> tuple[int, int, int] | None:
    return None if at is None else (at.offset, at.leader_epoch, at.serving_epoch)


def _shows(reading: Reading) -> tuple[object, ...]:
    """What of it shows that something moves."""
    return reading.position, reading.outcome, reading.asks_for, reading.leader, reading.leader_epoch, reading.buffered
