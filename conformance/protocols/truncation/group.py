"""The other members of a running consumer's group, and other groups: they commit to the same coordinator.

The model knows the consumer's own commits of the partition that it reads. All others, of a given offset with metadata,
of another partition or another group, and such as must be refused, are held against a ledger (``commits.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from ....impl.consumer import Commit, Consumer, OffsetAndMetadata
from ....impl.offsets import GroupCoordinator
from ....impl.wire.messages import (
    FIRST_CLIENT,
    Envelope,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TopicPartition,
)
from ...adapters.cluster import PARTITION
from ...adapters.endpoints import Mailbox
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.power import PowerLost
from ...simulation.system import StepResult
from .client_requests import Asking
from .commits import MOST_METADATA, NOTHING, WRONG, Ledger, OfConsumer
from .producer import RunningProducer
from .system_partition import BESIDE, ELSEWHERE, GROUP, READER, TIMEOUT_MS, call

MEMBER: Final = FIRST_CLIENT - 3
"""Whoever else commits."""
_KEYS: Final[tuple[tuple[str, TopicPartition], ...]] = ((GROUP, ELSEWHERE), ("h", PARTITION), ("h", ELSEWHERE))
"""Groups and partitions that the model does not have."""
_OFFSETS: Final = (0, 3, 1 << 40)
"""What they commit."""
_UNHEARD: Final = 2
"""So many of a member's requests may be on their way."""
_WRONG: Final = tuple(WRONG)


class RunningGroup(RunningProducer):
    """A coordinator with several members and groups. The consumer that the model follows is still to be added."""

    _consumer: Consumer

    def _set_up(self, constants: Mapping[str, int]) -> range:
        nodes = super()._set_up(constants)
        self.network.attach(Mailbox(MEMBER, lambda _answer: None))
        self._ledger = Ledger((PARTITION, BESIDE, ELSEWHERE))
        self._commits = OfConsumer(TIMEOUT_MS)
        self._asking_leaders = Asking(TIMEOUT_MS)
        self._told_of: list[tuple[str, Envelope]] = []
        """What was sent and what has arrived in this event, in order."""
        self._stays = True
        """Whether nobody loses power in this event."""
        return nodes

    def step(self, event: Event) -> StepResult:
        """One event. Raises what a node does, and WrongAnswer for what coordinator and consumer say of commits."""
        self._told_of.clear()
        self._stays = event.crash is None
        happened = super().step(event)
        self._hold_producer([each for what, each in self._told_of if what == "sent"])
        self._hold_coordinator()
        self._hold_consumer(event)
        return happened

    def _start(self, node: int) -> None:
        super()._start(node)
        if node == self.coordinator and self._stays:
            # Before anything arrives at it.
            self._ledger.started(cast(GroupCoordinator, self._broker(node).coordinator).fetch)

    def peace(self, *, on: bool) -> None:
        """What is committed in peace is answered."""
        super().peace(on=on)
        if not on:
            self._commits.end_peace()

    def _notice(self, what: str, _moment: int, envelope: Envelope) -> None:
        """Told of every message that is sent, whether it can reach anybody or not."""
        if what in ("sent", "delivered"):
            self._told_of.append((what, envelope))

    # -- what is held against what was answered ---------------------------------------------------------------------

    def _hold_coordinator(self) -> None:
        node = self.coordinator
        fetch = cast(GroupCoordinator, self._broker(node).coordinator).fetch if node in self.nodes else None
        up = fetch is not None and node not in self.down
        looked = False
        for place, (what, request) in enumerate(self._told_of):
            body = request.body
            if what != "delivered" or request.destination != node:
                continue
            if isinstance(body, OffsetCommitRequest | OffsetFetchRequest):
                later = (each for said, each in self._told_of[place:] if said == "sent" and each.source == node)
                answer = next((each for each in later if _answers(each, request)), None)
                self._ledger.asked(body, None if answer is None else answer.body, stays=up)
                looked = True
        if fetch is not None and up and looked:
            self._ledger.holds(fetch)

    def _hold_consumer(self, event: Event) -> None:
        reads = self._consumer.assignment
        heard = [each.body for what, each in self._told_of if what == "delivered" and each.destination == READER]
        told_more = sum(isinstance(each, OffsetCommitResponse | OffsetFetchResponse) for each in heard) > 1
        for what, envelope in self._told_of:
            body = envelope.body
            from_there = envelope.destination == READER and envelope.source == self.coordinator
            if what == "delivered" and from_there and isinstance(body, OffsetCommitResponse):
                commit = self._commits.heard(envelope.correlation, body.error)
                if commit is not None and not body.error and not told_more and commit.partition in reads:
                    self._commits.knows(commit, self._consumer.committed(commit.partition))
        woken = event.name in ("poll", "wake")
        self._commits.look(self.clock.now(), woken=woken)
        self._asking_leaders.look(READER, self._told_of, self._waits_for, self.clock.now(), woken=woken)
        if event.what is EventKind.TIME and self.pace.peace and self.coordinator not in self.down | self.cut:
            self._commits.time_passes()

    def _waits_for(self, partition: TopicPartition) -> bool:
        return partition in self._consumer.assignment and self._consumer.state(partition).in_flight

    def _sends_commits(self, commits: Sequence[Commit]) -> None:
        """The consumer has just sent these."""
        sent = [
            each
            for what, each in self._told_of
            if what == "sent" and each.source == READER and isinstance(each.body, OffsetCommitRequest)
        ]
        for envelope, commit in zip(sent, commits, strict=True):
            self._commits.sent(envelope.correlation, commit, self.clock.now(), in_peace=self.pace.peace)

    # -- what members do --------------------------------------------------------------------------------------------

    def _of_members(self) -> Iterator[Event]:
        """What those do of whom the model knows nothing."""
        if not self.pace.members or not self.pace.is_time("member"):
            return
        for offset in _OFFSETS:
            yield call("commit_beside", offset=offset)
        yield call("commit_beside", offset=_OFFSETS[0], letters=MOST_METADATA + 1)
        if len(self.network.in_flight(source=MEMBER)) >= _UNHEARD:
            return
        for key in range(len(_KEYS)):
            for offset in _OFFSETS:
                yield call("member_commits", key=key, offset=offset)
            yield call("member_asks", key=key)
        if self.coordinator not in self.down:
            for key in range(len(_KEYS)):
                yield Event(EventKind.CALL, "delete_commit", self.coordinator, args=(("key", key),))
        for wrong in _WRONG:
            yield Event(EventKind.CALL, "member_errs", args=(("what", wrong),))

    def _operate(self, event: Event) -> Sequence[ModelStep]:
        match event.name:
            case "commit_beside":
                at = _position(int(event.arg("offset")))
                letters = int(dict(event.args).get("letters", 0))
                self._sends_commits(
                    self._consumer.commit({ELSEWHERE: replace(at, metadata="m" * letters) if letters else at})
                )
            case "member_commits":
                self._ask_coordinator(_commit_of(int(event.arg("key")), int(event.arg("offset"))))
            case "member_asks":
                self._ask_coordinator(OffsetFetchRequest(*_KEYS[int(event.arg("key"))]))
            case "delete_commit":
                self._delete_commit(_KEYS[int(event.arg("key"))])
            case "member_errs":
                self._ask_coordinator(WRONG[str(event.arg("what"))](_commit_of(0, _OFFSETS[1])))
            case _:
                return super()._operate(event)
        self.pace.happened("member")
        return ()

    def _delete_commit(self, key: tuple[str, TopicPartition]) -> None:
        """An operator's OffsetDelete, or a retention that is over: what is gone stays so, whoever starts next."""
        coordinator = cast(GroupCoordinator, self._broker(self.coordinator).coordinator)
        try:
            error = coordinator.delete(*key)
        except PowerLost:
            self._ledger.in_doubt(key, NOTHING)
            raise
        self._ledger.deleted(key, error, stays=not self._is_lost(self.coordinator))

    def _ask_coordinator(self, body: OffsetCommitRequest | OffsetFetchRequest) -> None:
        self._correlation += 1
        self.network.send(Envelope(MEMBER, self.coordinator, self._correlation, body, "User:client"))


def is_followed(envelope: Envelope, asked: Envelope | None) -> bool:
    """Whether the model has a word for a message: not for what is asked of other partitions, or by other members."""
    if MEMBER in (envelope.source, envelope.destination):
        return False
    request = envelope if asked is None else asked
    return getattr(request.body, "partition", PARTITION) == PARTITION


def _position(offset: int) -> OffsetAndMetadata:
    """Epochs and metadata go with the offset: what was mixed up shows."""
    epoch = offset % 5 - 1
    return OffsetAndMetadata(offset, epoch, epoch + 1, f"m{offset % 7}")


def _commit_of(key: int, offset: int) -> OffsetCommitRequest:
    at = _position(offset)
    return OffsetCommitRequest(*_KEYS[key], at.offset, at.leader_epoch, at.serving_epoch, at.metadata)


def _answers(sent: Envelope, request: Envelope) -> bool:
    return sent.destination == request.source and sent.correlation == request.correlation
