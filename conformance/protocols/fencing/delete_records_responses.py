"""What a leader answers to DeleteRecords, held against what is seen of it (KIP-107).

A deletion is done at once and answered when the logs of all live replicas begin no lower: the smallest of these offsets
is the low watermark. A leader knows it by its followers' fetches in its leader epoch, so it is known here by these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....impl.replica.partition import PartitionState
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONSUMER,
    NO_OFFSET,
    AlterIsrRequest,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    Envelope,
    FetchRequest,
    FetchResponse,
)
from .response_rules import WrongAnswer


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A deletion that is done and not answered yet."""

    request: Envelope
    required: int
    deadline: int


class Deletions:
    """What waits at each leader. ``patience``: for how many ms one waits."""

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._waiting: dict[int, list[_Waiting]] = {}
        self._starts: dict[int, tuple[int, dict[int, int]]] = {}
        """By leader: its leader epoch, and where its followers' logs begin, as their fetches in it have told."""
        self._done = -1, 0
        """The latest leader epoch in which a deletion was over, and the largest low watermark that was answered."""

    def anew(self) -> Deletions:
        """For another topic, of which nothing is deleted."""
        return Deletions(self._patience)

    def forget(self, node: int) -> None:
        """The replica has given up, or its process has ended: who waits there is told nothing."""
        self._waiting.pop(node, None)
        self._starts.pop(node, None)

    def look(
        self,
        node: int,
        arrived: Envelope | None,
        sent: Sequence[Envelope],
        before: PartitionState | None,
        state: PartitionState,
        now: int,
        *,
        fired: bool,
    ) -> None:
        """Look at an event at a broker that stayed up; ``before``: what it was like. Raises WrongAnswer.

        ``sent``: what it has sent in it; ``fired``: its timers may have.
        """
        answer: Any = next((each.body for each in sent if _answers(each, arrived)), None)
        hears = _is_heard(arrived, answer)
        low = self._low_watermark(node, arrived if hears else None, state)
        answered = [each for each in sent if isinstance(each.body, DeleteRecordsResponse)]
        if arrived is not None and isinstance(arrived.body, DeleteRecordsRequest):
            self._asked(node, arrived, answer, before, state, low, now)
            answered = [each for each in answered if not _answers(each, arrived)]
        for each in answered:
            self._answered(node, each, state, low, now)
        for waiting in self._waiting.get(node, []):
            if state.leader != node:
                raise WrongAnswer("a deletion goes on waiting at a replica that leads no more")
            if fired and waiting.deadline <= now:
                raise WrongAnswer("a deletion goes on waiting after its time is over")
            if hears and waiting.required <= low:
                raise WrongAnswer(f"a deletion waits for low watermark {waiting.required}, it is {low}")
        for each in sent:
            if isinstance(each.body, AlterIsrRequest) and state.leader == node:
                self._asks_for(node, each.body, state)
        epoch, done = self._done
        if state.leader == node and state.leader_epoch >= epoch and state.log_start < done:
            told = f"leader {node} of epoch {state.leader_epoch} begins at {state.log_start}"
            raise WrongAnswer(f"a client was told that all logs begin at {done} or later, and {told}")

    def _low_watermark(self, node: int, told: Envelope | None, state: PartitionState) -> int:
        """Where the first of the live replicas' logs begins, as a leader was told; 0 of who has told nothing."""
        epoch, starts = self._starts.get(node, (-1, {}))
        if state.leader != node or epoch != state.leader_epoch:
            starts = {}
        self._starts[node] = state.leader_epoch, starts
        if told is not None and isinstance(told.body, FetchRequest):
            starts[told.body.replica_id] = max(told.body.log_start_offset, 0)
        live = (each for each in state.replicas if each != node and each not in state.offline)
        return min([state.log_start, *(starts.get(each, 0) for each in live)])

    def _asked(
        self,
        node: int,
        arrived: Envelope,
        answer: DeleteRecordsResponse | None,
        before: PartitionState | None,
        state: PartitionState,
        low: int,
        now: int,
    ) -> None:
        """A deletion has arrived: it is refused, or done, and then over or waiting."""
        start = 0 if before is None else before.log_start
        asked: Any = arrived.body
        offset = state.high_watermark if asked.offset == NO_OFFSET else asked.offset
        wanted = ErrorCode.NONE
        if state.leader != node:
            wanted = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif not 0 <= offset <= state.high_watermark:
            wanted = ErrorCode.OFFSET_OUT_OF_RANGE
        begins = max(start, offset) if wanted is ErrorCode.NONE else start
        what = f"a deletion up to {asked.offset} at high watermark {state.high_watermark}"
        if state.log_start != begins:
            raise WrongAnswer(f"after {what} the log begins at {state.log_start}, and not at {begins}")
        if wanted is not ErrorCode.NONE:
            if answer is None or answer.error is not wanted:
                raise WrongAnswer(f"{what} is to be refused with {wanted.name}, and is answered with {answer}")
            return
        waits = low < offset
        if waits and answer is None:
            self._waiting.setdefault(node, []).append(_Waiting(arrived, offset, now + self._patience))
        elif waits or answer is None or (answer.error, answer.low_watermark) != (ErrorCode.NONE, low):
            raise WrongAnswer(f"{what} is answered with {answer}, and the low watermark is {low}")
        else:
            self._over(state, low)

    def _answered(self, node: int, answer: Envelope, state: PartitionState, low: int, now: int) -> None:
        """A deletion that has waited is answered."""
        waiting, body = self._waiting.get(node, []), answer.body
        assert isinstance(body, DeleteRecordsResponse)
        done = next((each for each in waiting if _answers(answer, each.request)), None)
        if done is None:
            raise WrongAnswer("a deletion is answered, and none has waited")
        waiting.remove(done)
        match body.error:
            case ErrorCode.NONE:
                right = done.required <= low and body.low_watermark == low
                self._over(state, low)
            case ErrorCode.REQUEST_TIMED_OUT:
                right = done.deadline <= now
            case ErrorCode.NOT_LEADER_OR_FOLLOWER:
                right = state.leader != node
            case error:
                right = error is ErrorCode.KAFKA_STORAGE_ERROR
        if not right:
            told = f"{body.error.name}, low watermark {body.low_watermark}"
            raise WrongAnswer(
                f"a deletion that waits for low watermark {done.required}, now {low}, is answered with {told}"
            )

    def _asks_for(self, node: int, body: AlterIsrRequest, state: PartitionState) -> None:
        """Who is to join begins no lower: what it has there it could compare with nothing (``Isr.wanted``)."""
        for replica in sorted(body.new_isr - state.isr):
            start = self._starts[node][1].get(replica, 0)
            if start < state.log_start:
                told = f"begins at {start}, and its own log at {state.log_start}"
                raise WrongAnswer(f"a leader asks for replica {replica}, whose log {told}")

    def _over(self, state: PartitionState, low: int) -> None:
        """A client is told the low watermark: whoever leads from now on begins no lower."""
        epoch, done = self._done
        self._done = max(epoch, state.leader_epoch), max(done, low)


def _is_heard(arrived: Envelope | None, answer: Any) -> bool:
    """Whether a leader hears from a follower in its own leader epoch where that one's log begins."""
    if arrived is None or not isinstance(arrived.body, FetchRequest) or arrived.body.replica_id == CONSUMER:
        return False
    return isinstance(answer, FetchResponse) and answer.error is ErrorCode.NONE


def _answers(sent: Envelope, request: Envelope | None) -> bool:
    return request is not None and sent.destination == request.source and sent.correlation == request.correlation


def begins_below(leader: int, states: Mapping[int, PartitionState | None]) -> str | None:
    """Whose log begins below its leader's in peace, in words; None where none does.

    One may begin above: where a leader was elected before it had deleted what the one before had.
    ``states``: of the replicas that are up.
    """
    leads = states.get(leader)
    for node, state in states.items():
        if leads is None or state is None or leads.leader != leader:
            continue
        follows = (state.leader, state.leader_epoch) == (leader, leads.leader_epoch)
        if follows and state.log_start < leads.log_start:
            return f"the log of {node} begins at {state.log_start}, and that of its leader at {leads.log_start}"
    return None
