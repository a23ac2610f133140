"""An application with a producer of its own: ``impl/producer`` beside the requests that are drawn one by one.

It runs where brokers are told metadata, as it asks them who leads. What it is told is a promise to it
(``deliveries.py``), and an acknowledgement counts for the model when the application hears of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from ....impl.log.records import Record
from ....impl.net.clock import SimulatedClock
from ....impl.net.simulated import SimulatedNetwork
from ....impl.producer import PartitionFailed
from ....impl.wire.messages import FIRST_CLIENT, Envelope, ProduceRequest, TopicPartition
from ...adapters.carrier import LIFE
from ...adapters.parts import Parts
from ...simulation.events import Event, EventKind
from .deliveries import Deliveries, Shown
from .producers import Payload, Producers, timestamp_of
from .response_rules import WrongAnswer

APPLICATION: Final = FIRST_CLIENT - 3
_PRODUCER_ID: Final = 1 << 20
_FIRST: Final = 1_000
"""Its records are numbered from here on, after those of all other producers."""
_TWO: Final = 150
"""A batch of so many bytes has room for two records, as large as they may get: it fits into the smallest segment."""
_AT_ONCE: Final = 0.7
_UNTOLD: Final = 4
"""It gives no more while so many records are not acknowledged."""
GIVE: Final = Event(EventKind.CALL, "give")
WAKE: Final = Event(EventKind.CALL, "wake")


class Application:
    """One application, and its producers: one that has failed is followed by one of the next epoch."""

    def __init__(
        self,
        parts: Parts,
        network: SimulatedNetwork,
        clock: SimulatedClock,
        partition: TopicPartition,
        brokers: Sequence[int],
        chance: Random,
        *,
        timeout_ms: int,
    ) -> None:
        self._parts, self._network, self._clock = parts, network, clock
        self._partition, self._brokers = partition, tuple(brokers)
        self._batch_bytes = chance.choice((1, 1, _TWO))
        self._linger_ms = chance.choice((0, 0, 30))
        self._in_flight = chance.choice((5, 5, 2, 1))
        self._at_once = chance.random() < _AT_ONCE
        """Whether it is woken as soon as it wants to be, as by a thread of its own, and by no event."""
        self._timeout_ms = timeout_ms
        self._delivery_ms = timeout_ms * chance.choice((4, 12))
        self._epoch = -1
        self._records = 0
        self._begin()

    def _begin(self) -> None:
        """A producer begins, in the place of the former one."""
        if self._epoch >= 0:
            self._network.detach(APPLICATION)
        self._epoch += 1
        config = self._parts.producer_config(
            brokers=self._brokers,
            producer_id=_PRODUCER_ID,
            producer_epoch=self._epoch,
            batch_bytes=self._batch_bytes,
            linger_ms=self._linger_ms,
            max_in_flight=self._in_flight,
            retry_backoff_ms=20,
            request_timeout_ms=self._timeout_ms,
            delivery_timeout_ms=self._delivery_ms,
            address=APPLICATION,
            first_correlation=self._epoch * LIFE,
        )
        self._producer = self._parts.producer(self._network, self._clock, config)
        self._network.attach(self._producer)
        self._held = Deliveries(config)

    # -- what it does -----------------------------------------------------------------------------------------------

    def offers(self, left: int) -> Iterator[Event]:
        """What it may do next; ``left``: the records for which there is room."""
        if left > 0 and self._held.waiting < _UNTOLD:
            yield GIVE
        if self._is_due():
            yield WAKE

    @property
    def waits_for_time(self) -> bool:
        """Whether nothing of its is on its way, and it goes on when time has passed."""
        mail = self._network.in_flight(source=APPLICATION) or self._network.in_flight(destination=APPLICATION)
        return not mail and self._producer.deadline() is not None and not self._is_due()

    def _is_due(self) -> bool:
        deadline = self._producer.deadline()
        return deadline is not None and deadline <= self._clock.now()

    def does(self, event: Event) -> None:
        """One of ``offers``."""
        if event == WAKE:
            self._producer.wake()
            return
        if self._held.failed:
            self._ends()
            self._begin()
        payload = f"{_FIRST + self._records}.0".encode()
        self._records += 1
        record = Record(payload, timestamp=timestamp_of(payload))
        self._held.gave(payload, self._producer.send(self._partition, record), self._clock.now())

    def _ends(self) -> None:
        """A producer that has given a record up takes no other, which would overtake it. Raises WrongAnswer."""
        try:
            self._producer.send(self._partition, Record(b"", timestamp=0))
        except Exception as error:
            # By its name, as a copy of ``impl`` has classes of its own.
            if type(error).__name__ != PartitionFailed.__name__:
                raise
        else:
            raise WrongAnswer("a producer has given a record up, and takes the next one")

    # -- looking ----------------------------------------------------------------------------------------------------

    def look(
        self, event: Event, arrived: Envelope | None, sent: list[Envelope], producers: Producers
    ) -> list[tuple[Payload, int]]:
        """Hold the producer to what has come of an event; what it was told to be in the log, and where.

        ``sent``: what has left in it, and leaves now, as the producer may be woken; ``producers``: of all batches,
        where those that are new are entered. Raises WrongAnswer.
        """
        if arrived is not None and arrived.destination == APPLICATION:
            self._held.heard(arrived, self._clock.now())
        self._hold(sent, producers, woken=event == WAKE)
        if self._at_once and self._is_due():
            seen = len(sent)
            self._producer.wake()
            self._hold(sent[seen:], producers, woken=True)
        return self._held.delivered

    def _hold(self, sent: Sequence[Envelope], producers: Producers, *, woken: bool) -> None:
        now, producer = self._clock.now(), self._producer
        if woken:
            self._held.woken(now)
        for envelope in sent:
            if envelope.source == APPLICATION:
                new = self._held.sent(envelope, now)
                if new is not None and isinstance(envelope.body, ProduceRequest):
                    producers.adopt(_PRODUCER_ID, self._epoch, *new, envelope.body.records)
        self._held.look(Shown(producer.pending, producer.buffered, producer.deadline()), now, woken=woken)

    @property
    def waiting(self) -> int:
        """Records of which it was told nothing."""
        return self._held.waiting

    def unsettled(self) -> str | None:
        """What it still waits for, though nobody has refused it anything for longer than it waits for an answer."""
        waiting, since = self.waiting, self._clock.now() - self._held.refused
        if waiting and (self._held.refused < 0 or since > 2 * self._timeout_ms):
            return f"a producer waits to be told of {waiting} records"
        return None
