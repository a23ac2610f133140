"""What freely running producers send, and what they must hear (KIP-98): batches with sequence numbers, and what waits.

A batch is known by its number. Of each the producer, its epoch and the sequence number are fixed when it is first sent,
so that it is the same batch whenever, and to whichever leader, it is sent again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

from ....impl.log.batch import encode_batch
from ....impl.log.codecs import Codec
from ....impl.log.records import Record
from ....impl.replica.partition import PartitionState
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import Envelope, ProduceRequest, ProduceResponse
from .response_rules import Row, WrongAnswer

REMEMBERED: Final = 5
"""So many batches of each producer a repeat is known by (``ProducerStateEntry.NUM_BATCHES_TO_RETAIN``)."""
_RENEWED: Final = 4
"""A producer that is renewed begins a new epoch after so many batches."""

Payload = bytes
Judgement: TypeAlias = ErrorCode | int | None
"""What becomes of a batch: refused, a repeat of the one at this offset, or (None) appended."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch: its producer and that one's epoch, the sequence number of its first record, its records, its bytes."""

    producer: int
    epoch: int
    first: int
    payloads: tuple[Payload, ...]
    data: bytes

    @property
    def last(self) -> int:
        """The sequence number of its last record."""
        return self.first + len(self.payloads) - 1


def timestamp_of(payload: Payload) -> int:
    """A record's timestamp: by the number of its batch, and of the record in it."""
    number, each = payload.split(b".")
    return 10 * int(number) + int(each)


class Producers:
    """All producers of a run. ``rich``: records have keys, headers and timestamps, and batches are compressed."""

    def __init__(self, chance: Random, *, rich: bool) -> None:
        self.batches: list[Batch] = []
        self.of: dict[bytes, int] = {}
        """The number of a batch by its bytes."""
        self.adopted: set[int] = set()
        """The numbers of the batches that somebody else has made, who also sends them again."""
        self._in: dict[Payload, int] = {}
        self._rich = rich
        # Most often each batch has a producer of its own, and none of them waits for another.
        self._producers = chance.choice((1 << 10, 1 << 10, 2, 1))
        self._renews = chance.random() < 0.3
        self._next: dict[int, tuple[int, int, int]] = {}
        """By producer: its epoch, its next sequence number, how many batches it has sent in that epoch."""

    def begin_anew(self) -> None:
        """The topic is another one: it knows none of these producers, which number their batches from 0 on there."""
        self._next = {producer: (epoch + 1, 0, 0) for producer, (epoch, _, _) in self._next.items()}

    def batch(self, records: int) -> int:
        """Make the next batch, and give its number."""
        number = len(self.batches)
        producer = number % self._producers
        epoch, first, sent = self._next.get(producer, (0, 0, 0))
        if self._renews and sent == _RENEWED:
            epoch, first, sent = epoch + 1, 0, 0
        payloads = tuple(f"{number}.{each}".encode() for each in range(records))
        data = encode_batch(
            [self._record(payload, number) for payload in payloads],
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=first,
            codec=tuple(Codec)[number % len(Codec)] if self._rich else Codec.NONE,
        )
        self._next[producer] = epoch, first + records, sent + 1
        self.batches.append(Batch(producer, epoch, first, payloads, data))
        self.of[data] = number
        self._in.update(dict.fromkeys(payloads, number))
        return number

    def _record(self, payload: Payload, number: int) -> Record:
        if not self._rich:
            return Record(payload, timestamp=timestamp_of(payload))
        headers = (("trace", payload), ("none", None)) if number % 2 else ()
        return Record(payload, key=b"k" * 70 if number % 3 else None, timestamp=timestamp_of(payload), headers=headers)

    def adopt(self, producer: int, epoch: int, first: int, payloads: tuple[Payload, ...], data: bytes) -> None:
        """Enter a batch that somebody else has made, unless it is known."""
        if data not in self.of:
            number = self.of[data] = len(self.batches)
            self.batches.append(Batch(producer, epoch, first, payloads, data))
            self._in.update(dict.fromkeys(payloads, number))
            self.adopted.add(number)

    def payloads(self, request: ProduceRequest) -> tuple[Payload, ...]:
        """What a request holds; nothing of what no producer has sent."""
        number = self.of.get(request.records)
        return () if number is None else self.batches[number].payloads

    # -- what is right ----------------------------------------------------------------------------------------------

    def _sent(self, rows: Sequence[Row], producer: int) -> tuple[int, deque[tuple[Batch, int]]]:
        """The last batches of a producer in a log, with their offsets, in the producer's latest epoch there."""
        epoch, found = -1, deque[tuple[Batch, int]](maxlen=REMEMBERED)
        for offset, _, payload in rows:
            batch = self.batches[self._in[payload]]
            if batch.producer == producer and batch.payloads[0] == payload:
                if batch.epoch != epoch:
                    epoch = batch.epoch
                    found.clear()
                found.append((batch, offset))
        return epoch, found

    def judged(self, rows: Sequence[Row], number: int, start: int = 0) -> tuple[Judgement, ...]:
        """What a leader with this log makes of a batch: the offset of which it is a repeat, an error, or None: append.

        Below ``start`` the log is deleted. A leader that began with less of it knows less of its producers, and one
        that has read it before it was deleted knows more: each of these answers is right.
        """
        parts = (rows[first:] for first in range(start + 1))
        return tuple(dict.fromkeys(self._judged(part, number, deleted=start > 0) for part in parts))

    def _judged(self, rows: Sequence[Row], number: int, *, deleted: bool) -> Judgement:
        """By these records alone.

        Among the last five batches a repeat is known; what is older than the next is a duplicate, what is later comes
        out of order; a new epoch begins with sequence number 0, and fences the ones before.
        """
        batch = self.batches[number]
        epoch, sent = self._sent(rows, batch.producer)
        if epoch < 0 and deleted:
            return None  # the batches before may have been deleted
        if epoch < 0 or batch.epoch > epoch:
            return None if batch.first == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if batch.epoch < epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        for known, offset in sent:
            if known is batch:
                return offset
        following = sent[-1][0].last + 1
        if batch.first == following:
            return None
        behind = batch.first < following
        return ErrorCode.DUPLICATE_SEQUENCE_NUMBER if behind else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A produce with ``acks=all`` that is not answered yet: ``required`` is the high watermark that it waits for."""

    request: Envelope
    base: int
    required: int
    deadline: int


class Waiting:
    """What waits for the high watermark at each leader (``DelayedProduce`` in Kafka)."""

    def __init__(self, min_isr: Callable[[int], int], patience: int) -> None:
        self._min_isr = min_isr
        self._patience = patience
        self._waiting: dict[int, list[_Waiting]] = {}

    def forget(self, node: int) -> None:
        """The process has ended: who waits there is told nothing."""
        self._waiting.pop(node, None)

    def add(self, node: int, request: Envelope, base: int, count: int, now: int) -> None:
        """One that was not answered at once."""
        self._waiting.setdefault(node, []).append(_Waiting(request, base, base + count, now + self._patience))

    def answered(self, node: int, state: PartitionState, answers: Iterable[Envelope], now: int, *, fired: bool) -> None:
        """Take what a node has answered in an event; raises WrongAnswer for what it may not, or should have.

        ``fired``: its timer has, by which it gives up what has waited for too long.
        """
        waiting = self._waiting.get(node, [])
        for answer in answers:
            body = answer.body
            assert isinstance(body, ProduceResponse)
            asked = answer.destination, answer.correlation
            done = next((each for each in waiting if (each.request.source, each.request.correlation) == asked), None)
            if done is not None:
                waiting.remove(done)
                self._check(done, body, node, state, now)
        for each in waiting:
            if state.leader != node:
                raise WrongAnswer("a produce goes on waiting at a replica that leads no more")
            if each.required <= state.high_watermark:
                raise WrongAnswer(f"a produce waits for high watermark {each.required}, it is {state.high_watermark}")
            if fired and each.deadline <= now:
                raise WrongAnswer("a produce goes on waiting after its time is over")

    def _check(self, done: _Waiting, body: ProduceResponse, node: int, state: PartitionState, now: int) -> None:
        enough = len(state.isr) >= self._min_isr(node)
        match body.error:
            case ErrorCode.NONE:
                right = done.required <= state.high_watermark and body.base_offset == done.base and enough
            case ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
                right = done.required <= state.high_watermark and not enough
            case ErrorCode.REQUEST_TIMED_OUT:
                right = done.deadline <= now and state.high_watermark < done.required
            case ErrorCode.NOT_LEADER_OR_FOLLOWER:
                right = state.leader != node
            case error:
                right = error is ErrorCode.KAFKA_STORAGE_ERROR
        if not right:
            said = f"{body.error.name} at offset {body.base_offset}"
            raise WrongAnswer(f"a produce that waits for high watermark {done.required} is answered with {said}")


def check_produce(
    request: ProduceRequest,
    answer: ProduceResponse | None,
    judged: Sequence[Judgement],
    state: PartitionState,
    before: Sequence[Row],
    after: Sequence[Row],
    payloads: Sequence[Payload],
    *,
    min_isr: int,
) -> int:
    """Hold a leader's answer to a produce against its log before and after; gives where the batch is, -1 for nowhere.

    ``judged``: what ``Producers.judged`` says; ``answer``: None where it waits. Raises WrongAnswer.
    """
    appended = after[len(before) :] if after[: len(before)] == before else None
    wanted = next((each for each in judged if _is_so(each, answer, appended)), judged[0])
    if request.acks == -1 and len(state.isr) < min_isr:
        wanted = ErrorCode.NOT_ENOUGH_REPLICAS
    if isinstance(wanted, ErrorCode):
        if answer is None or answer.error is not wanted or appended:
            said = "not answered" if answer is None else f"answered with {answer.error.name}"
            raise WrongAnswer(f"a produce that is to be refused with {wanted.name} is {said}")
        return -1
    base = len(before) if wanted is None else wanted
    last = base + len(payloads) - 1
    written = [(base + each, state.leader_epoch, payload) for each, payload in enumerate(payloads)]
    if appended is None or (list(appended) != written if wanted is None else appended):
        raise WrongAnswer(f"of a batch that belongs at offset {base}, the log has {appended}")
    if answer is None:
        if request.acks != -1:
            raise WrongAnswer(f"a produce with acks={request.acks} is not answered")
        return base
    if (answer.error, answer.base_offset) != (ErrorCode.NONE, base):
        raise WrongAnswer(f"a batch at offset {base} is answered with {answer.error.name}, offset {answer.base_offset}")
    if request.acks == 1 and state.synced <= last:
        raise WrongAnswer(
            f"a produce with acks=1 is answered at offset {last}, and synced is what is below {state.synced}"
        )
    return base


def _is_so(judgement: Judgement, answer: ProduceResponse | None, appended: Sequence[Row] | None) -> bool:
    """Whether this is what has become of a batch, as far as it shows without its content."""
    if isinstance(judgement, ErrorCode):
        return answer is not None and answer.error is judgement
    return (answer is None or answer.error is ErrorCode.NONE) and (judgement is None) == bool(appended)
