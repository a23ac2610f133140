"""What was deleted from the front of the logs (DeleteRecords), beside a model whose logs all begin at 0.

The model has no log start, and need not: whether a record is kept says nothing of which record it is. What is deleted
is committed, so at each offset that a leader has ever deleted there is one record for good. Below its own log start a
replica is shown with these, as if it still had them, and the model goes on comparing logs from 0 on.

Three things would be lost so, and are held here beside the model: a log start never falls; none but a leader that is
asked to raises one, and none above its high watermark; nothing is read below it (``response_rules.py``).

And of what a follower does below its leader's log start the model has no step:

- It cannot be told there where its log parts from its leader's, whose epochs are deleted. So it may follow with records
  that are none of its leader's, *strays*, and drops them when it is first answered; nobody counts it before, as its log
  begins too low (``Isr.wanted``). To the model it is one that does not know yet where to cut its log: it is shown
  without a leader, and what it acknowledges is not shown.
- It begins anew where its leader's log does, and a loss of power in the midst of that leaves what neither log was. What
  it has then the model takes as it comes (``Binding.inputs``).
- Its high watermark is never below its own log start, though a new leader's may be. It is not shown until it is next
  looked at, and then given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, Final

from ....impl.files.interface import Files
from ....impl.log.checkpoints import LOG_STARTS, read_offsets
from ....impl.replica.partition import PartitionState
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    NO_OFFSET,
    DeleteRecordsRequest,
    Envelope,
    FetchRequest,
    FetchResponse,
    OffsetsForLeaderEpochResponse,
    TopicPartition,
)
from ....traces.format import Value
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from .binding import GIVEN
from .response_rules import Row, WrongAnswer

DELETE: Final = "delete-records"
"""The name of a client's call."""
_DELETES: Final = 0.2
"""In so many runs a client deletes."""
_DRAWN_APART: Final = 0x1F83D9AB


class Deleted:
    """Of one run. What is drawn here changes nothing that others draw."""

    def __init__(self, partition: TopicPartition, seed: int) -> None:
        self._partition = partition
        self.deletes = Random(seed ^ _DRAWN_APART).random() < _DELETES  # noqa: S311 - repeatable on purpose
        self.begin_anew()

    def begin_anew(self) -> None:
        """Nothing was deleted yet: the run begins, or another topic has the name of one that is gone."""
        self._history: list[tuple[int, bytes]] = []
        """By offset: leader epoch and content of each record that a leader has deleted."""
        self._gone: set[bytes] = set()
        self._starts: dict[int, int] = {}
        """By node: where its log began when it was last looked at."""
        self._torn: set[int] = set()
        """Who went down while its log may have begun anew."""
        self._unsure: set[int] = set()
        """Who went down while its log start was changed: it has the one before, or the one after."""
        self._strays: dict[int, tuple[int, int]] = {}
        """Who follows with strays: the leader epoch in which it does, and below what offset they are."""
        self._of_strays: set[tuple[int, int]] = set()
        """The fetches of these, by sender and correlation id."""
        self._answered_from: dict[tuple[int, int], int] = {}
        """By asker and correlation id: where the log began of whoever answered where a leader epoch ends."""
        self._told: dict[int, dict[int, int]] = {}
        """By leader: what it shows of its followers' ends."""
        self._clamped: set[int] = set()
        """Whose high watermark is its log start, as its leader's is lower."""
        self._unsynced: set[int] = set()
        """Who has begun anew in this event with a batch that holds its log start, and has not synced that yet."""
        self._fresh: set[int] = set()
        """Those of them who have become so in this event."""

    # -- what clients do --------------------------------------------------------------------------------------------

    def calls(self, node: int, state: PartitionState) -> Iterator[Event]:
        """What may be deleted next at a leader: one record, all that may be, and more than may be."""
        if self.deletes:
            yield _call(node, state.high_watermark + 1)
            if state.log_start < state.high_watermark:
                for offset in dict.fromkeys((state.log_start + 1, state.high_watermark, NO_OFFSET)):
                    yield _call(node, offset)

    def is_gone(self, payloads: Sequence[bytes]) -> bool:
        """Whether a leader has deleted any of these: a log that has forgotten them would take them for new ones."""
        return not self._gone.isdisjoint(payloads)

    @property
    def has_deleted(self) -> bool:
        """Whether anything was."""
        return bool(self._history)

    # -- messages ---------------------------------------------------------------------------------------------------

    def sent(self, envelope: Envelope, state: PartitionState | None) -> None:
        """A broker sends a message; ``state``: what it is like."""
        if not self.deletes or state is None:
            return
        body = envelope.body
        if isinstance(body, OffsetsForLeaderEpochResponse):
            self._answered_from[envelope.destination, envelope.correlation] = state.log_start
        elif isinstance(body, FetchRequest) and envelope.source in self._strays:
            self._of_strays.add((envelope.source, envelope.correlation))

    # -- looking ----------------------------------------------------------------------------------------------------

    def rows(
        self,
        node: int,
        files: Files,
        physical: tuple[Row, ...],
        known: tuple[Row, ...],
        arrived: Envelope | None,
        before: PartitionState | None,
        state: PartitionState | None,
    ) -> tuple[Row, ...]:
        """What a replica has, with what was deleted before its log start.

        ``physical``: what is in its segments; ``known``: what this gave for it last; ``before`` and ``state``: what it
        was like before this event and is now, None where it is down. Raises WrongAnswer for a log start that fell, or
        rose where nobody had it rise.
        """
        if not self.deletes:
            return physical
        down = state is None
        start = read_offsets(files, LOG_STARTS, "").get(self._partition, 0) if state is None else state.log_start
        was = self._starts.get(node, 0)
        body: Any = None if arrived is None or arrived.destination != node else arrived.body
        if start > was:
            self._rose(node, start, known, body)
        falls = start < was and state is not None and node not in self._unsure
        if falls and state is not None and not _begins_anew(body, before, state, physical):
            raise WrongAnswer(f"the log of {node} began at {was}, and begins at {start} now")
        if state is not None:
            self._unsure.discard(node)
        elif isinstance(body, FetchResponse | DeleteRecordsRequest):
            self._unsure.add(node)
            if isinstance(body, FetchResponse) and before is not None and _may_begin_anew(body, before):
                self._torn.add(node)
        if not down or node not in self._unsure:
            self._starts[node] = start
        deleted = tuple((offset, *self._history[offset]) for offset in range(start))
        return (*deleted, *(row for row in physical if row[0] >= start))

    def _rose(self, node: int, start: int, known: Sequence[Row], body: Any) -> None:
        """A log start has risen: by what a leader was asked to delete, or to where some leader's is."""
        if start <= len(self._history):
            return
        if not isinstance(body, DeleteRecordsRequest):
            raise WrongAnswer(f"the log of {node} begins at {start}, and no leader has deleted anything there")
        there = {row[0]: row[1:] for row in known}
        for offset in range(len(self._history), start):
            if offset not in there:
                raise WrongAnswer(f"the log of {node} begins at {start}, and had nothing at {offset}")
            self._history.append(there[offset])
            self._gone.add(there[offset][1])

    def took(
        self,
        node: int,
        arrived: Envelope | None,
        before: PartitionState | None,
        state: PartitionState | None,
        rows: Sequence[Row],
    ) -> None:
        """Take note of what has become of a replica in an event; ``rows``: what ``rows`` gave for it."""
        if not self.deletes:
            return
        body: Any = None if arrived is None or arrived.destination != node else arrived.body
        if state is None:
            self._strays.pop(node, None)
            self._told.pop(node, None)
            return
        follows = state.role.value == "follower"
        if follows and arrived is not None and isinstance(body, OffsetsForLeaderEpochResponse):
            begins = self._answered_from.get((node, arrived.correlation), 0)
            if before is not None and before.role.value == "truncating":
                self._strays[node] = state.leader_epoch, begins
        epoch, below = self._strays.get(node, (-1, 0))
        if not follows or epoch != state.leader_epoch or not self._differs(rows, below):
            self._strays.pop(node, None)
        heard = isinstance(body, FetchResponse) and body.error is ErrorCode.NONE and follows
        if heard and before is not None and body.high_watermark < before.log_start == state.high_watermark:
            self._clamped.add(node)
            self._fresh.add(node)
        if heard and before is not None and body.log_start_offset > 0 and state.synced < before.synced:
            self._unsynced.add(node)

    def _differs(self, rows: Sequence[Row], below: int) -> bool:
        """Whether a log has other records than the deleted ones."""
        end = min(below, len(self._history))
        return any(row[0] < end and row[1:] != self._history[row[0]] for row in rows)

    # -- what is shown ----------------------------------------------------------------------------------------------

    def told(self, node: int, arrived: Envelope | None, state: PartitionState) -> Mapping[int, int]:
        """What a leader was told of its followers' ends, but by such as have strays."""
        progress = dict(state.progress)
        if not self.deletes:
            return progress
        shown, known = dict(progress), self._told.get(node, {})
        body: Any = None if arrived is None or arrived.destination != node else arrived.body
        for follower, end in progress.items():
            if end < 0:
                continue
            if isinstance(body, FetchRequest) and arrived is not None and arrived.source == follower:
                said = body.current_leader_epoch, body.fetch_offset
                is_served = said == (state.leader_epoch, end) and end >= state.log_start
                if is_served and (follower, arrived.correlation) not in self._of_strays:
                    continue
            shown[follower] = known.get(follower, end)
        self._told[node] = shown
        return shown

    def shown(self, node: int, cells: dict[str, Value]) -> dict[str, Value]:
        """The cells of a replica as they are shown, but for what is not."""
        if node in self._strays:
            cells[f"leader[{node}]"] = None
        if node in self._clamped:
            del cells[f"hw[{node}]"]
        return cells

    def steps(self, pair: Mapping[str, int], answer: FetchResponse) -> tuple[ModelStep, ...]:
        """What an answer from a leader that has deleted something may be to a follower.

        It may drop its strays, and so become a follower only now; and it may begin anew, as if it had fetched all that
        is deleted.
        """
        hears = ("follower_fetch", pair), ("follower_hear_high_watermark", pair)
        if answer.error is ErrorCode.NONE or answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            return (("become_follower", {**pair, "epoch": answer.leader_epoch}), *hears)
        return ()

    def given(
        self, node: int | None, cells: Mapping[int, dict[str, Value]], high_watermark: Callable[[int], int]
    ) -> frozenset[str]:
        """The cells that the model takes as they come after an event at this node.

        ``cells``: those of the nodes that are up, by node, to which what was not shown before is added;
        ``high_watermark``: that of one of these.
        """
        given: set[str] = set()
        if node is not None and node in self._torn and node in cells:
            self._torn.discard(node)
            given = {name for name in cells[node] if name.partition("[")[0] in GIVEN}
        for each in sorted(self._clamped - self._fresh):
            if each in cells:
                self._clamped.discard(each)
                cells[each][f"hw[{each}]"] = high_watermark(each)
                given.add(f"hw[{each}]")
        given.update(f"synced[{each}]" for each in self._unsynced if each in cells)
        self._fresh.clear()
        self._unsynced.clear()
        return frozenset(given)


def begins_above(request: object, answer: object) -> bool:
    """Whether a fetch is refused as the log begins above its offset: of that the model says nothing."""
    if not isinstance(request, FetchRequest) or not isinstance(answer, FetchResponse):
        return False
    return answer.error is ErrorCode.OFFSET_OUT_OF_RANGE and request.fetch_offset < answer.log_start_offset


def _may_begin_anew(body: FetchResponse, before: PartitionState) -> bool:
    """Whether a follower may throw its log away for this answer, and begin where its leader's does."""
    is_empty = 0 < before.log_start == before.end
    return is_empty or body.error is ErrorCode.OFFSET_OUT_OF_RANGE or body.log_start_offset > before.log_start


def _begins_anew(body: Any, before: PartitionState | None, state: PartitionState, physical: Sequence[Row]) -> bool:
    """Whether a log start may have fallen: to that of a batch which is copied, or cut off, as a whole (KAFKA-6975).

    A log that has no record may also begin where its leader's does, wherever that is.
    """
    match body:
        case FetchResponse() if body.records:
            return bool(physical) and physical[0][0] == state.log_start
        case FetchResponse():
            return before is not None and before.log_start == before.end
        case OffsetsForLeaderEpochResponse():
            return state.log_start == state.end
    return False


@lru_cache(1 << 12)
def _call(node: int, offset: int) -> Event:
    return Event(EventKind.CALL, DELETE, args=(("offset", offset), ("to", node)))
