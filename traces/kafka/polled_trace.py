"""What was polled of a partition, or of a quorum, as a trace of the model: looks alone; steps between them are missing.

Only some offsets are watched, as in ``abstraction.py``: an end, or a high watermark, is the number of those below it. A
run of real replicas that is looked at so is a run of the model. Nobody had these offsets when the first look was taken,
and nobody is in a leader epoch before the least one of then: that is the model's first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...model.core.errors import BadInput
from ...model.core.protocol import TracedProtocol
from ...model.core.registry import REGISTRY
from ..format import Trace, TraceEvent, TraceHeader, Value
from ..run_report import Json
from .negotiation import EPOCH_ENDS
from .polled import Look, Polled
from .server_log.quorum import MAX_VOTERS, quorum_constants

MAX_EPOCHS: Final = 60
"""What came in later leader epochs is left out."""
_SPARE: Final = 1
"""So many records more than were seen may have been written at the offsets that are watched, and cut again unseen."""


@dataclass(frozen=True)
class Abstracted:
    """A trace, and what was left out of it, in words; None: nothing."""

    trace: Trace
    watched: tuple[int, ...]
    ends: str | None = None


def began_at(polled: Polled) -> tuple[int, int]:
    """Where what happened later begins: the largest end, and the least leader epoch, of the brokers' first looks."""
    ends: dict[int, int] = {}
    epochs: dict[int, int] = {}
    for look in polled.looks:
        for end in (look.end, look.high_watermark):
            if end is not None:
                ends.setdefault(look.broker, end)
        if look.epoch is not None:
            epochs.setdefault(look.broker, look.epoch)
    return max(ends.values(), default=0), min(epochs.values(), default=0)


def watched_of(polled: Polled, most: int = 1) -> tuple[int, ...]:
    """The offsets to watch, of those that nobody had in the beginning: first those at which logs have parted.

    There replicas had records of different leader epochs, or one had a record and had it no more. Else the last ones
    that were committed. The model begins without any record; so does what is watched.
    """
    first, _ = began_at(polled)
    epochs: dict[int, set[int]] = {}
    had: dict[int, int] = {}
    parted: set[int] = set()
    for look in polled.looks:
        for (epoch, start), end in _spans(look):
            for offset in {start, end - 1} if end > start else set():
                epochs.setdefault(offset, set()).add(epoch)
        if look.end is not None:
            if look.end < had.get(look.broker, 0):
                parted.add(look.end)
            had[look.broker] = look.end
    parted |= {offset for offset, seen in epochs.items() if len(seen) > 1}
    committed = max([first, *(look.high_watermark or 0 for look in polled.looks)])
    wanted = [*sorted(parted), *range(committed - 1, max(first, committed - most) - 1, -1), first]
    return tuple(sorted(list(dict.fromkeys(offset for offset in wanted if offset >= first))[:most]))


def abstracted(polled: Polled, variant: str, most: int = 1) -> Abstracted:
    """The trace of a partition. Raises BadInput where nothing was seen of it."""
    found = _seen(polled, most)
    constants = {
        "replicas": len(polled.replicas),
        "log_size": len(found.watched),
        "max_records": len(found.records) + _SPARE,
        "max_leader_epoch": max(1, found.last_epoch),
    }
    return found.under(TraceHeader(REGISTRY.of_brokers_logs.name, variant, constants, complete=False))


def abstracted_quorum(polled: Polled, traced: TracedProtocol, most: int = 1) -> Abstracted:
    """The trace of the metadata log, of a variant for what Kafka's quorum does.

    Raises BadInput where nothing was seen of it, and for more voters than are told of.
    """
    if len(polled.replicas) > MAX_VOTERS:
        raise BadInput(
            f"it has {len(polled.replicas)} voters", polled.topic, f"a quorum of {MAX_VOTERS} at most is told"
        )
    found = _seen(polled, most)
    constants = quorum_constants(len(polled.replicas), len(found.watched), max(0, found.last_epoch))
    return found.under(TraceHeader(traced.protocol.name, traced.variant.name, constants, complete=False))


@dataclass(frozen=True)
class _Seen:
    """Looks as events, and what a header says of them. Leader epochs are those of the model."""

    events: tuple[TraceEvent, ...]
    watched: tuple[int, ...]
    records: frozenset[tuple[int, int]]
    last_epoch: int
    source: Mapping[str, Json]
    ends: str | None
    partial: str | None

    def under(self, header: TraceHeader) -> Abstracted:
        """The trace, with a header that says where it is from."""
        header = replace(header, source=self.source, partial=self.partial)
        return Abstracted(Trace(header, self.events), self.watched, self.ends)


def _seen(polled: Polled, most: int) -> _Seen:
    if not polled.looks:
        where = f"{polled.topic}-{polled.partition}"
        raise BadInput("nothing was seen of it", where, "name a topic whose brokers run, or poll for longer")
    watched = watched_of(polled, most)
    base = began_at(polled)[1]
    place = {broker: number for number, broker in enumerate(polled.replicas)}
    looks = [look for look in polled.looks if _epoch(look) - base <= MAX_EPOCHS]
    ends = None
    if len(looks) < len(polled.looks):
        ends = f"what came after leader epoch {base + MAX_EPOCHS} is left out"
        first = next(number for number, look in enumerate(polled.looks) if _epoch(look) - base > MAX_EPOCHS)
        looks = polled.looks[:first]
    events: list[TraceEvent] = []
    records: set[tuple[int, int]] = set()
    shown: dict[str, Value] = {}
    for look in looks:
        cells = dict(_cells(look, place, watched, base, records))
        # An offset that is not watched has moved, and the like.
        if not cells.items() <= shown.items():
            shown |= cells
            of: dict[str, Json] = {"at": round(look.at, 3), "broker": look.broker, "asked": look.of}
            events.append(TraceEvent(len(events) + 1, None, {}, cells, of))
    source: dict[str, Json] = {
        "partition": f"{polled.topic}-{polled.partition}",
        "brokers": {str(number): broker for broker, number in place.items()},
        "offsets": {str(number): offset for number, offset in enumerate(watched)},
        "first leader epoch": base,
        "polls": polled.polls,
        "failures": polled.failures,
        **({"missing": list(polled.missing.lines)} if polled.missing.lines else {}),
    }
    last = max((_epoch(look) - base for look in looks), default=0)
    if polled.missing.has(EPOCH_ENDS):
        # Nobody names leader epochs, so elections without a record go unseen: one at most for each end that fell.
        last += 1 + _falls(looks)
    partial = "; ".join([*polled.missing.lines, *([] if ends is None else [ends])]) or None
    return _Seen(tuple(events), watched, frozenset(records), last, source, ends, partial)


def _falls(looks: Sequence[Look]) -> int:
    """How often a broker's log end or high watermark was lower than before."""
    known: dict[tuple[int, str], int] = {}
    falls = 0
    for look in looks:
        for name, now in (("end", look.end), ("high watermark", look.high_watermark)):
            if now is not None:
                falls += now < known.get((look.broker, name), 0)
                known[look.broker, name] = now
    return falls


def _epoch(look: Look) -> int:
    return max([0 if look.epoch is None else look.epoch, *(epoch for epoch, _ in look.starts)])


def _spans(look: Look) -> Iterator[tuple[tuple[int, int], int]]:
    """Leader epochs with where they begin, and their ends; that of the last one where the log's end is known."""
    for (epoch, start), (_, end) in zip(look.starts, look.starts[1:], strict=False):
        yield (epoch, start), end
    if look.starts and look.end is not None:
        yield look.starts[-1], look.end


def _cells(
    look: Look, place: Mapping[int, int], watched: Sequence[int], base: int, records: set[tuple[int, int]]
) -> Iterator[tuple[str, Value]]:
    """What a look shows of the model's cells; takes note of the records that it shows, by offset and epoch.

    A broker that has started again may be in an older leader epoch than it was for an instant: nothing is said of it.
    """
    replica = place[look.broker]
    if look.epoch is not None and look.epoch >= base:
        yield f"leader_epoch[{replica}]", look.epoch - base
        leader = look.broker if look.leads else look.follows
        if leader is not None and leader in place:
            yield f"leader[{replica}]", place[leader]
        if look.voted is not None and look.voted in place:
            yield f"voted[{replica}]", place[look.voted]
        for other, end in look.counted:
            yield f"counted[{replica}][{place[other]}]", _below(watched, end)
    if look.end is not None:
        yield f"leo[{replica}]", _below(watched, look.end)
    if look.high_watermark is not None:
        yield f"hw[{replica}]", _below(watched, look.high_watermark)
    shown: Mapping[int, int] = {
        number: epoch
        for number, offset in enumerate(watched)
        for (epoch, start), end in _spans(look)
        if start <= offset < end and epoch >= base
    }
    for number, epoch in shown.items():
        records.add((watched[number], epoch))
        yield f"record_epoch[{replica}][{number}]", epoch - base


def _below(watched: Sequence[int], end: int) -> int:
    return sum(offset < end for offset in watched)
