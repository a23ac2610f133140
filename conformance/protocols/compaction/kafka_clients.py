"""What clients ask of Apache Kafka's brokers with a compacted topic, which of it may come, and how likely it is."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, Final

from ....impl.net.clock import WALL_START
from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent
from .records import BEFORE_MS, STEP_MS, Row, Sent

CLEAN: Final = "clean"
"""The timer of a broker's cleaner."""
_WEIGHTS: Final = {
    "produce": 4.0,
    "poll": 1.5,
    "start_over": 0.2,
    "fetch": 4.0,
    "metadata": 4.0,
    "elect": 1.0,
    "session": 0.5,
    "isr": 0.3,
    "ask again": 0.2,
    "checkpoint": 0.15,
    "timeout": 0.1,
}
"""How likely what is called so is, beside any other event of its class."""
_SLOWLY: Final = 0.1
_RATHER: Final = 5.0


@dataclass(frozen=True)
class Produce:
    """A producer sends a batch with ``acks=1``; one with a number sends it again where it comes again."""

    records: tuple[Sent, ...]
    serial: int
    """Of its first record: the values are told by it."""
    numbered: bool


@dataclass(frozen=True)
class ProduceAnswer:
    """Whether the batch was appended."""

    error: str


@dataclass(frozen=True)
class Poll:
    """The consumer asks for what comes from an offset on."""

    position: int
    bytes: int


@dataclass(frozen=True)
class PollAnswer:
    """Batches of records, of which the last ends before ``next``; -1: there are none."""

    position: int
    error: str
    rows: tuple[Row, ...]
    next: int


def written(body: Produce, shift: int) -> dict[str, Any]:
    """The batch as the driver takes it; its clock is ahead of the model's time by ``shift`` milliseconds."""
    records = [
        [
            None if sent.key < 0 else f"k{sent.key}",
            None if sent.tombstone else str(body.serial + number),
            WALL_START - BEFORE_MS + STEP_MS * sent.timestamp + shift,
        ]
        for number, sent in enumerate(body.records)
    ]
    return {"records": records, "producer": body.serial if body.numbered else -1}


def row_of(told: list[Any], shift: int) -> Row:
    """A record as the driver tells of it, in the model's time and epochs."""
    offset, epoch, key, value, timestamp, horizon = told
    return Row(
        offset,
        epoch - 1,
        None if key is None else key.encode(),
        None if value is None else value.encode(),
        timestamp - shift,
        (),
        None if horizon < 0 else horizon - shift,
    )


def poll(node: int) -> Event:
    """The consumer asks a broker."""
    return Event(EventKind.CALL, "poll", args=(("to", node),))


START_OVER: Final = Event(EventKind.CALL, "start_over")


def asked_for(event: Event, keys: int) -> tuple[Sent, ...]:
    """The records of a batch that is produced in an event; a key of -1 is none."""
    key = int(event.arg("key"))
    first = Sent(key if key < keys else -1, int(event.arg("tombstone")), int(event.arg("timestamp")), 0, 0)
    if event.arg("records") == 1:
        return (first,)
    # The second one is of another key, where there is one: so a batch may lose a part of its records.
    return first, Sent((key + 1) % keys, 0, first.timestamp, 0, 0)


def _produce(what: EventKind, node: int, key: int, tombstone: int, timestamp: int, records: int) -> Event:
    args = {"key": key, "records": records, "timestamp": timestamp, "to": node, "tombstone": tombstone}
    return Event(what, "produce", args=tuple(args.items()))


@lru_cache(256)
def produces(node: int, room: int, keys: int, timestamps: int) -> tuple[Event, ...]:
    """What a producer may send to a leader; by its timestamps segments are closed, and records become old."""
    found = []
    for key, tombstone, timestamp in product(range(keys), range(2), (0, timestamps - 1)):
        found.append(_produce(EventKind.CALL, node, key, tombstone, timestamp, 1))
        if room > 1:
            found.append(_produce(EventKind.CALL, node, key, tombstone, timestamp, 2))
    return tuple(dict.fromkeys(found))


def probe(node: int, key: int) -> Event:
    """What must be refused: by whoever leads nothing, and where the key is none."""
    return _produce(EventKind.PROBE, node, key, 0, 0, 1)


def weighed(found: Iterable[EnabledEvent], *, slow: bool, dirty: Container[int | None]) -> Iterator[EnabledEvent]:
    """How likely events are. ``slow``: followers seldom ask. ``dirty``: at whom cleaning may remove something."""
    for each in found:
        event = each.event
        weight = _SLOWLY if slow and event.name == "fetch" else _WEIGHTS.get(event.name, 1.0)
        if event.node in dirty and (event.what is EventKind.CRASH or event.name == CLEAN):
            weight = _RATHER
        sort = "clean" if event.name == CLEAN else each.sort
        yield each if weight == 1.0 else replace(each, weight=weight, sort=sort)


def read(told: Mapping[str, Any], position: int, shift: int) -> PollAnswer:
    """What a broker has answered to the consumer: of a batch that begins before its position the rest."""
    rows = tuple(row for each in told["records"] if (row := row_of(each, shift)).offset >= position)
    return PollAnswer(position, told["error"], rows, told.get("next", -1))
