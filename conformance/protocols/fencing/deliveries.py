"""What a producer tells its application, and what it still waits for, held against what it was given, sent and heard.

The model knows that a producer hears of an acknowledgement. A client may lose it on the way to the application, tell
of one that never came, or go on waiting for what is over: so the answers that reach a producer are followed to the
deliveries that the application holds, and its queue and its next deadline to what is left of them (KIP-98; Kafka's
``RecordAccumulator``, ``ProducerBatch`` and ``TransactionManager``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....impl.log.batch import read_batches
from ....impl.producer import Delivery, ProducerConfig
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import Envelope, MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse
from .producers import Payload
from .response_rules import WrongAnswer

_GOES_ON = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.name
"""What was sent before may come later: no end for an idempotent producer, as no retriable error is."""


@dataclass(frozen=True, slots=True)
class _Given:
    """A record that the producer has taken: when, and what the application has for it."""

    payload: Payload
    delivery: Delivery
    since: int


@dataclass(frozen=True, slots=True)
class _Asked:
    """A ProduceRequest that is not over: its records are ``first`` to ``last`` of those that were given."""

    first: int
    last: int
    leader: int
    expires: int


@dataclass(frozen=True, slots=True)
class Shown:
    """What a producer shows of itself: records that wait, their bytes, and when it wants to be woken."""

    pending: int
    buffered: int
    deadline: int | None


class Deliveries:
    """One producer of one partition."""

    def __init__(self, config: ProducerConfig) -> None:
        self._config = config
        self._given: list[_Given] = []
        self._told: list[tuple[str | None, int]] = []
        """By record: the error by its name, and the offset, as they were after the last event."""
        self._asked: dict[int, _Asked] = {}
        self._batches: dict[int, bytes] = {}
        """By the number of its first record: what was sent."""
        self._leader: tuple[int, int] | None = None
        """Leader and leader epoch, as the producer heard last."""
        self._asking: tuple[int, int, int] | None = None
        """Its request for metadata: the correlation id, whom it asks, and when it times out."""
        self.refused = -1
        """When it last heard of an error."""
        self._doubts = ""
        """Why it has to ask who leads before it sends anything; empty where it need not."""

    # -- what happens -----------------------------------------------------------------------------------------------

    def gave(self, payload: Payload, delivery: Delivery, now: int) -> None:
        """The producer has taken a record."""
        self._given.append(_Given(payload, delivery, now))
        self._told.append((None, delivery.offset))

    def sent(self, envelope: Envelope, now: int) -> tuple[int, tuple[Payload, ...]] | None:
        """A request leaves; gives the sequence number and the records in it, None where it has none. WrongAnswer."""
        body, expires = envelope.body, now + self._config.request_timeout_ms
        if isinstance(body, MetadataRequest):
            self._asking = envelope.correlation, envelope.destination, expires
            return None
        assert isinstance(body, ProduceRequest)
        if self._doubts:
            raise WrongAnswer(f"{self._doubts}, and a producer sends more before it has asked who leads")
        batch, *others = read_batches(body.records)
        payloads = tuple(record.value or b"" for record in batch.records())
        first, last = batch.base_sequence, batch.base_sequence + len(payloads) - 1
        who = batch.producer_id, batch.producer_epoch
        if others or body.acks != -1 or who != (self._config.producer_id, self._config.producer_epoch):
            raise WrongAnswer(f"a producer sends acks={body.acks}, producer id and epoch {who}, and is {self._config}")
        if payloads != tuple(each.payload for each in self._given[first : last + 1]):
            raise WrongAnswer(f"a producer sends {payloads} as sequence numbers {first} to {last}")
        if self._batches.setdefault(first, body.records) != body.records:
            raise WrongAnswer(f"a batch of sequence number {first} is sent again, and is another one")
        if any(error is not None for error, _ in self._told[first : last + 1]):
            raise WrongAnswer(f"a producer sends {payloads} again, and has told its application of them")
        if any(each.first == first for each in self._asked.values()):
            raise WrongAnswer(f"a producer sends {payloads} again, and still waits for the answer to them")
        if self._leader is None or envelope.destination != self._leader[0]:
            raise WrongAnswer(f"a producer sends to {envelope.destination}, and knows leader and epoch {self._leader}")
        waits = [first for first in self._batches if self._told[first][0] is None]
        if len(waits) > self._config.max_in_flight:
            raise WrongAnswer(f"{len(waits)} batches are under way, at most {self._config.max_in_flight} may be")
        self._asked[envelope.correlation] = _Asked(first, last, envelope.destination, expires)
        return first, payloads

    def woken(self, now: int) -> None:
        """Time has passed, and the producer was to do what is due. Raises WrongAnswer where it gives up nothing."""
        over = [number for number, each in self._asked.items() if each.expires <= now]
        for number in over:
            self._doubts = f"broker {self._asked.pop(number).leader} has not answered"
        if self._asking is not None and self._asking[2] <= now:
            self._asking = None
        oldest = self._oldest()
        if oldest is None or oldest.since + self._config.delivery_timeout_ms > now:
            self._same(())
            return
        self._failed(ErrorCode.REQUEST_TIMED_OUT.name)

    def heard(self, envelope: Envelope, now: int) -> None:
        """An answer has reached the producer. Raises WrongAnswer where it makes something else of it."""
        body = envelope.body
        if isinstance(body, MetadataResponse):
            if self._asking is not None and self._asking[:2] == (envelope.correlation, envelope.source):
                self._asking = None
                known = body.error is ErrorCode.NONE and body.leader >= 0
                if known and (self._leader is None or body.leader_epoch >= self._leader[1]):
                    self._leader, self._doubts = (body.leader, body.leader_epoch), ""
            self._same(())
            return
        assert isinstance(body, ProduceResponse)
        asked = self._asked.get(envelope.correlation)
        if asked is None or asked.leader != envelope.source:
            self._same(())
            return
        del self._asked[envelope.correlation]
        if body.error is ErrorCode.NONE:
            self._acknowledged(asked, body.base_offset)
            return
        self.refused = now
        if body.error.retriable:
            self._doubts = f"broker {envelope.source} has answered {body.error.name}"
        if body.error.retriable or body.error.name == _GOES_ON:
            self._same(())
        else:
            self._failed(body.error.name)

    # -- what is right ----------------------------------------------------------------------------------------------

    def _shown(self) -> list[tuple[str | None, int]]:
        return [
            (None if each.delivery.error is None else each.delivery.error.name, each.delivery.offset)
            for each in self._given
        ]

    def _oldest(self) -> _Given | None:
        """The oldest record of which the application was told nothing."""
        return next((each for each, (error, _) in zip(self._given, self._told, strict=True) if error is None), None)

    def _same(self, but: Sequence[int]) -> None:
        """Nothing else is told than before, but of some records. Raises WrongAnswer."""
        shown = self._shown()
        for number, (before, now) in enumerate(zip(self._told, shown, strict=True)):
            if number not in but and before != now:
                record = self._given[number].payload
                raise WrongAnswer(f"a producer told of {record!r} {before}, tells {now}, and heard nothing of it")
        self._told = shown

    def _acknowledged(self, asked: _Asked, base: int) -> None:
        numbers = range(asked.first, asked.last + 1)
        for number in numbers:
            each = self._given[number]
            wanted = ErrorCode.NONE.name, base + number - asked.first
            if self._shown()[number] != wanted:
                raise WrongAnswer(f"{each.payload!r} is acknowledged at {wanted[1]}, and the producer tells {each}")
        self._same(numbers)

    def _failed(self, error: str) -> None:
        """All that is not delivered is given up with this error. Raises WrongAnswer."""
        waits = [number for number, (told, _) in enumerate(self._told) if told is None]
        for number in waits:
            found = self._shown()[number][0]
            if found != error:
                given = self._given[number]
                raise WrongAnswer(f"{given.payload!r} is to be given up with {error}, and the producer tells {found}")
        self._same(waits)
        self._asked.clear()
        self._asking = None

    @property
    def failed(self) -> bool:
        """Whether anything was given up: its producer takes no more."""
        return any(error not in (None, ErrorCode.NONE.name) for error, _ in self._told)

    @property
    def delivered(self) -> list[tuple[Payload, int]]:
        """What the application was told to be in the log, and where."""
        return [
            (each.payload, offset)
            for each, (error, offset) in zip(self._given, self._told, strict=True)
            if error == ErrorCode.NONE.name
        ]

    @property
    def waiting(self) -> int:
        """Records of which the application was told nothing."""
        return sum(error is None for error, _ in self._told)

    def look(self, shown: Shown, now: int, *, woken: bool) -> None:
        """After an event: what is over is forgotten, and for what is left it wakes in time. Raises WrongAnswer.

        ``woken``: it was to do all that is due in this event.
        """
        waiting, config = self.waiting, self._config
        if shown.pending != waiting or (shown.buffered == 0) != (waiting == 0):
            raise WrongAnswer(f"{waiting} records wait, and a producer shows {shown}")
        if (shown.deadline is None) != (waiting == 0):
            raise WrongAnswer(f"{waiting} records wait, and a producer wants to be woken at {shown.deadline}")
        if shown.deadline is None:
            return
        # The longest that it may wait for anything: an answer, a pause, more records.
        longest = max(config.request_timeout_ms, config.retry_backoff_ms, config.linger_ms)
        if shown.deadline > now + longest or (woken and shown.deadline <= now):
            said = f"at {now} a producer wants to be woken at {shown.deadline}"
            raise WrongAnswer(f"{said}, and waits for nothing longer than {longest} ms, or was woken just now")
