"""Brokers with a compacted topic, producers that race, and a consumer that makes a state of what it reads.

Held to ``kip-280-brokers`` (``impl_spec.py``). Producers send records of few keys and versions in any order, and, in
some runs, what the topic must refuse. An operator sets another strategy while the topic lives. The consumer reads the
log from its start, by the table that is there for that (``impl/compaction/table.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any, Final

from ....impl.consumer.fetched import read_steps
from ....impl.log.batch import encode_batch
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONSUMER,
    FIRST_CLIENT,
    Envelope,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
)
from ....traces.format import Value
from ...adapters.carrier import error_name
from ...adapters.cluster import PARTITION
from ...adapters.endpoints import Mailbox
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent, RequestOutcome
from .cluster import CLEANER, LEADER, STRATEGIES, RunningBrokers, call
from .records import Sent, made

PRODUCER: Final = FIRST_CLIENT
READER: Final = FIRST_CLIENT - 1
_UNBORN: Final = 3
"""So many produces may be on their way."""
_OF_PRODUCERS: Final = frozenset({None, "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_RECORD"})
"""The codes for a producer that the model has a word for; others are of sequences and disks."""
_WEIGHTS: Final = {"produce": 4.0, "start_over": 0.2, "high-watermarks": 0.3, "recovery-points": 0.3}
"""How likely what is called so is, beside any other event of its class."""
_SLOWLY: Final = 0.2
_CLEANS: Final = 2.0
"""How likely a cleaner's timer fires, beside any other timer."""


class RunningCompaction(RunningBrokers):
    """Brokers with clients."""

    def _set_up(self, constants: Mapping[str, int]) -> range:
        nodes = super()._set_up(constants)
        self.network.attach(Mailbox(PRODUCER, lambda _answer: None))
        self.network.attach(Mailbox(READER, self._read))
        self._correlation = 0
        self._serial = 0
        self._batches: dict[bytes, tuple[Sent, ...]] = {}
        """By the bytes of a batch, its records."""
        self._appended: set[bytes] = set()
        """Numbered batches that some leader has taken, or answered as if it had."""
        self._acks = self.chance.choice((1, 1, -1))
        self._read_bytes = self.chance.choice((1, 200, 1 << 20))
        self._start_over()
        return nodes

    def _start_over(self) -> None:
        self._position = 0
        self._awaited = -1
        self._table = self._parts.table(self.compaction().strategy)

    # -- looking ----------------------------------------------------------------------------------------------------

    def _picture(self) -> dict[str, Value]:
        cells = super()._picture()
        cells["position"] = self._position
        for key in range(self.constants["keys"]):
            winner = self._table.winner(b"k%d" % key)
            cells[f"table[{key}]"] = -1 if winner is None else winner[1]
        return cells

    # -- what may happen --------------------------------------------------------------------------------------------

    def peace(self, *, on: bool) -> None:
        """While nothing goes wrong whoever has something to do is not kept waiting."""
        self.pace.peace = on

    def pending(self) -> Sequence[EnabledEvent]:
        """What may happen; time passes when everybody has what there is, where a run is punctual."""
        found = super().pending()
        if self.pace.punctual and not self.pace.peace and self._somebody_lags():
            found = [each for each in found if each.event.what is not EventKind.TIME] or found
        if self.pace.peace:
            urgent = {call("poll", to=node) for node in self.replicas}
            urgent |= {each for each in self._operations() if each.name in ("register", "resend")}
            return [replace(each, due=True) if each.event in urgent else each for each in found]
        return [_weighed(each, slow=self.pace.alone) for each in found]

    def _somebody_lags(self) -> bool:
        """Whether a tombstone has a delete horizon, and a replica or the consumer is not at the end of all."""
        waits = any(row.horizon is not None for rows in self._rows.values() for row in rows.values())
        ends = {int(str(self._cells[node][f"leo[{node}]"])) for node in self.replicas}
        joined = {self._cells[node][f"joined[{node}]"] for node in self.replicas}
        return waits and (len(ends) > 1 or len(joined) > 1 or self._position < max(ends) or bool(self.down))

    def _calls(self) -> Iterator[Event]:
        yield from self._writings()
        for node in self.replicas:
            if node not in self.down and self._leads(node) and (self.pace.peace or self._has_more(node)):
                yield call("poll", to=node)
        if self.pace.starts_over and self._position and not self.pace.peace:
            yield call("start_over")
        if self.pace.changes and not self.pace.peace and not self.bad:
            yield from (_set(strategy) for strategy in STRATEGIES if strategy != self.strategy)
        yield from self._operations()

    def _has_more(self, node: int) -> bool:
        """Whether a leader has committed what the consumer has not read."""
        return self._position < int(str(self._cells[node][f"own_hw[{node}]"]))

    def _leads(self, node: int) -> bool:
        replica = self.replica(node)
        return replica is not None and replica.role.value == LEADER

    def _writings(self) -> Iterator[Event]:
        if len(self.network.in_flight(source=PRODUCER)) >= _UNBORN:
            return
        for node in self.replicas:
            if node in self.down:
                continue
            if self._leads(node):
                room = self.constants["log_size"] - self.broker(node).partitions[PARTITION].log.end
                if room > 0:
                    yield from _produces(node, self.in_force, room, *self._sizes)
                if self.pace.probes:
                    yield from _probes(node, self.in_force, self._sizes[0], self._sizes[2])
            elif self.pace.probes:
                yield _produce(EventKind.PROBE, node, Sent(0, 0, 0, 0, 0), 1)

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return self.constants["keys"], self.constants["timestamps"], self.constants["header_values"]

    # -- what happens -----------------------------------------------------------------------------------------------

    def _call(self, event: Event) -> Sequence[ModelStep]:
        match event.name:
            case "produce":
                self._produce(event)
            case "poll":
                self._poll(int(event.arg("to")))
            case "start_over":
                self._start_over()
                return (("consumer_start_over", {}),)
            case "set_strategy":
                return self._set_strategy(str(event.arg("strategy")))
            case _:
                self._operate(event)
        return ()

    def _produce(self, event: Event) -> None:
        first = Sent(*(int(event.arg(name)) for name in Sent._fields))
        records = [first, *([_companion(first, self.constants["header_values"])] if event.arg("records") == 2 else [])]
        batch = []
        for sent in records:
            self._serial += 1
            batch.append(made(sent, self.constants, self._serial))
        producer, epoch, sequence = (self._serial, 0, 0) if self.pace.numbered else (-1, -1, -1)
        data = encode_batch(batch, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
        self._batches[data] = tuple(records)
        self._ask(PRODUCER, int(event.arg("to")), ProduceRequest(PARTITION, self._acks, data))

    def _poll(self, node: int) -> None:
        self._ask(READER, node, FetchRequest(CONSUMER, PARTITION, self._position, self._read_bytes))
        self._awaited = self._correlation

    def _ask(self, client: int, node: int, body: Any) -> None:
        self._correlation += 1
        self.network.send(Envelope(client, node, self._correlation, body, "User:client"))

    def _set_strategy(self, strategy: str) -> Sequence[ModelStep]:
        self.strategy = strategy
        config = self.compaction()
        for node in self.replicas:
            if node not in self.down:
                self.broker(node).configure(PARTITION.topic, config)
        self._start_over()
        return (("set_topic_strategy", {"strategy": STRATEGIES.index(strategy)}),)

    def _read(self, envelope: Envelope) -> None:
        """The consumer gets an answer."""
        body = envelope.body
        if envelope.correlation != self._awaited or not isinstance(body, FetchResponse):
            return
        self._awaited = -1
        if body.error is not ErrorCode.NONE:
            return
        for step in read_steps(PARTITION, body.records, self._position):
            if step.record is not None:
                self._table.apply(step.record)
            self._position = step.next_offset

    def _wrote(self, arrived: Envelope | None) -> Sequence[ModelStep]:
        if arrived is None or not isinstance(arrived.body, ProduceRequest):
            return ()
        node = arrived.destination
        return [("leader_write", {"replica": node, **each._asdict()}) for each in self._batches[arrived.body.records]]

    def _judged(self, request: Envelope, answer: Envelope) -> Iterable[RequestOutcome]:
        body: Any = answer.body
        error = error_name(body)
        if not isinstance(request.body, ProduceRequest) or error not in _OF_PRODUCERS:
            return ()
        data = request.body.records
        if self.pace.numbered and error is None:
            again = data in self._appended
            self._appended.add(data)
            if again:
                return ()
        records, keys = self._batches[data], self.constants["keys"]
        wrong = [each for each in records if each.key == keys or self._is_no_long(each)]
        return [
            RequestOutcome(
                ((("leader_write", {"replica": request.destination, **(wrong or records)[0]._asdict()})),), error
            )
        ]

    def _is_no_long(self, sent: Sent) -> bool:
        return self.in_force == "header" and sent.header > self.constants["header_values"]

    def _may_arrive(self, envelope: Envelope) -> bool:
        """Not what would go beyond the model's log size, and leader epochs. That is lost."""
        node = envelope.destination
        if isinstance(envelope.body, ProduceRequest) and node not in self.down:
            replica = self.replica(node)
            end = 0 if replica is None else replica.log.end
            return end + len(self._batches[envelope.body.records]) <= self.constants["log_size"]
        return super()._may_arrive(envelope)


def _weighed(pending: EnabledEvent, *, slow: bool) -> EnabledEvent:
    """How likely an event is; ``slow``: followers seldom ask."""
    event = pending.event
    if slow and event.name == "fetch":
        return pending.weighing(_SLOWLY)
    if event.what is EventKind.TIMER and event.name == CLEANER:
        return replace(pending, weight=_CLEANS, sort="clean")
    weight = _WEIGHTS.get(event.name, 1.0)
    return pending if weight == 1.0 else pending.weighing(weight)


@lru_cache(64)
def _set(strategy: str) -> Event:
    return Event(EventKind.OPERATE, "set_strategy", args=(("strategy", strategy),))


def _produce(what: EventKind, node: int, sent: Sent, records: int) -> Event:
    args = {**sent._asdict(), "records": records, "to": node}
    return Event(what, "produce", args=tuple(sorted(args.items())))


def _companion(sent: Sent, values: int) -> Sent:
    """The second record of a batch: of the same key, and of a version that is lower or the same."""
    header = max(sent.header - 1, 0) if sent.header <= values else sent.header
    return Sent(sent.key, 0, max(sent.timestamp - 1, 0), header, 0)


@lru_cache(256)
def _produces(node: int, strategy: str, room: int, keys: int, timestamps: int, values: int) -> tuple[Event, ...]:
    """What producers may send, of which the strategy makes a difference."""
    if strategy == "timestamp":
        kinds = [(timestamp, 0, 0) for timestamp in range(timestamps)]
    elif strategy == "header":
        kinds = [(0, header, 0) for header in range(values + 1)] + [(0, 1, values), (0, values, 1)]
    else:
        kinds = [(0, 0, 0), (timestamps - 1, values + 1, 0)]
    found = []
    for key, tombstone, kind in product(range(keys), range(2), kinds):
        sent = Sent(key, tombstone, *kind)
        found.append(_produce(EventKind.CALL, node, sent, 1))
        if room > 1 and not tombstone:
            found.append(_produce(EventKind.CALL, node, sent, 2))
    return tuple(found)


@lru_cache(256)
def _probes(node: int, strategy: str, keys: int, values: int) -> tuple[Event, ...]:
    """What a leader must refuse: no key; and under ``header`` a value that is no long, before a good one or alone."""
    found = [_produce(EventKind.PROBE, node, Sent(keys, 0, 0, 0, 0), 1)]
    if strategy == "header":
        found += [_produce(EventKind.PROBE, node, Sent(0, 0, 0, values + 1, earlier), 1) for earlier in (0, 1)]
    return tuple(found)
