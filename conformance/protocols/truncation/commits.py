"""What a group coordinator has answered, held against what it was asked: the commits that the model has no word for.

The model has one commit: the position that one consumer has in one partition. A coordinator keeps those of all groups
and partitions, whoever commits them, with their metadata. So there is a ledger: what was acknowledged last is what an
OffsetFetch gives, for each group and partition, and a start of the coordinator changes nothing but what nobody knew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

from ....impl.consumer import Commit, OffsetAndMetadata
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    NO_EPOCH,
    NO_OFFSET,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TopicPartition,
)
from ...lockstep.adapter import Contradiction

MOST_METADATA: Final = 4096
"""Kafka's ``offset.metadata.max.bytes``, in bytes of UTF-8."""

Key: TypeAlias = tuple[str, TopicPartition]
"""Group and partition."""
GroupRequest: TypeAlias = OffsetCommitRequest | OffsetFetchRequest


class WrongAnswer(Contradiction):
    """A node has answered, or keeps from answering, what it was not asked, or what its own state does not bear out."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit: the epochs are those of the record before the offset, and of the leader which served it."""

    offset: int
    leader_epoch: int
    serving_epoch: int
    metadata: str

    @classmethod
    def of(cls, body: OffsetCommitRequest | OffsetFetchResponse) -> Committed:
        """What a request commits, or an answer gives."""
        return cls(body.offset, body.leader_epoch, body.serving_epoch, body.metadata)


_T = TypeVar("_T")

NOTHING: Final = Committed(NO_OFFSET, NO_EPOCH, NO_EPOCH, "")


class Ledger:
    """What was acknowledged last, and what may be committed besides, as nobody knows. ``known``: the partitions."""

    def __init__(self, known: Collection[TopicPartition]) -> None:
        self._known = known
        self._sure: dict[Key, Committed] = {}
        self._doubtful: dict[Key, list[Committed]] = {}

    def asked(self, request: GroupRequest, answer: object, *, stays: bool) -> None:
        """A request has reached the coordinator. ``answer``: None for no answer; ``stays``: it is up after the event.

        Raises WrongAnswer.
        """
        if answer is None and stays:
            raise WrongAnswer(f"a coordinator that is up gives no answer to {request}")
        if isinstance(request, OffsetCommitRequest):
            self._commit(request, None if answer is None else _as(OffsetCommitResponse, answer).error, stays=stays)
        elif answer is not None:
            self._fetched(request, _as(OffsetFetchResponse, answer))

    def started(self, fetch: Callable[[OffsetFetchRequest], OffsetFetchResponse]) -> None:
        """The coordinator's next process has read its log; what it found is so from now on. Raises WrongAnswer."""
        for key in [*self._sure, *(key for key in self._doubtful if key not in self._sure)]:
            found = Committed.of(fetch(OffsetFetchRequest(*key)))
            sure = self._sure.get(key, NOTHING)
            if found not in (sure, *self._doubtful.get(key, ())):
                raise WrongAnswer(f"a coordinator starts with {_shown(found, key)}, and acknowledged {sure}")
            self._sure[key] = found
        self._doubtful.clear()

    def deleted(self, key: Key, error: ErrorCode, *, stays: bool) -> None:
        """A commit was taken away (OffsetDelete, or its retention is over); ``stays``: the coordinator goes on.

        Raises WrongAnswer.
        """
        if error is ErrorCode.NONE:
            self._sure[key] = NOTHING
        elif error is ErrorCode.KAFKA_STORAGE_ERROR and not stays:
            self.in_doubt(key, NOTHING)
        else:
            raise WrongAnswer(f"a commit of group {key[0]} in {key[1]} is to be deleted, and that fails: {error.name}")

    def in_doubt(self, key: Key, perhaps: Committed) -> None:
        """What the coordinator's next process may find: nobody was told whether it is committed."""
        self._doubtful.setdefault(key, []).append(perhaps)

    def holds(self, fetch: Callable[[OffsetFetchRequest], OffsetFetchResponse]) -> None:
        """Look at a coordinator that is up: what it would answer now. Raises WrongAnswer."""
        for key, sure in self._sure.items():
            found = Committed.of(fetch(OffsetFetchRequest(*key)))
            if found != sure:
                raise WrongAnswer(f"a coordinator has {_shown(found, key)}, and acknowledged {sure}")

    def _commit(self, request: OffsetCommitRequest, error: ErrorCode | None, *, stays: bool) -> None:
        wanted, key = self.wanted(request), (request.group, request.partition)
        failed = error in (None, ErrorCode.KAFKA_STORAGE_ERROR) and not stays
        if failed and wanted is ErrorCode.NONE:
            self.in_doubt(key, Committed.of(request))
        elif error is not None and error is not wanted:
            raise WrongAnswer(f"{request} is answered {error.name}, and is to be answered {wanted.name}")
        elif error is ErrorCode.NONE:
            self._sure[key] = Committed.of(request)

    def _fetched(self, request: OffsetFetchRequest, answer: OffsetFetchResponse) -> None:
        wanted = ErrorCode.NONE if request.group else ErrorCode.INVALID_GROUP_ID
        sure = self._sure.get((request.group, request.partition), NOTHING)
        if answer.error is not wanted or Committed.of(answer) != sure:
            raise WrongAnswer(f"{request} is answered {answer}, and the last that was acknowledged is {sure}")

    def wanted(self, request: OffsetCommitRequest) -> ErrorCode:
        """How a commit is answered where nothing fails (Kafka's ``OffsetMetadataManager``)."""
        if not request.group:
            return ErrorCode.INVALID_GROUP_ID
        if request.partition not in self._known:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if request.offset < 0 or min(request.leader_epoch, request.serving_epoch) < NO_EPOCH:
            return ErrorCode.INVALID_REQUEST
        too_long = len(request.metadata.encode()) > MOST_METADATA
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if too_long else ErrorCode.NONE


def _as(kind: type[_T], answer: object) -> _T:
    if not isinstance(answer, kind):
        raise WrongAnswer(f"{answer} is no {kind.__name__}")
    return answer


def _shown(found: Committed, key: Key) -> str:
    return f"{found} of group {key[0]} in {key[1]}"


WRONG: Final[Mapping[str, Callable[[OffsetCommitRequest], OffsetCommitRequest]]] = {
    "no group": lambda it: replace(it, group=""),
    "no partition": lambda it: replace(it, partition=TopicPartition("nowhere", 0)),
    "negative offset": lambda it: replace(it, offset=-2),
    "no epoch": lambda it: replace(it, leader_epoch=-2),
    "long metadata": lambda it: replace(it, metadata="é" * (MOST_METADATA // 2 + 1)),
}
"""What a commit is refused for, and how one becomes such."""

PATIENCE: Final = 2
"""So often time may pass in peace before a commit is answered: messages are quick beside it."""


class OfConsumer:
    """The commits that a consumer has sent, and what it tells its application of them."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout = timeout_ms
        self._waiting: dict[int, tuple[Commit, int]] = {}
        """By correlation id: the commit, and when it times out."""
        self._in_peace: list[tuple[Commit, int]] = []
        """What was committed in peace, and how often time has passed since."""

    def sent(self, correlation: int, commit: Commit, now: int, *, in_peace: bool) -> None:
        """A commit is on its way."""
        self._waiting[correlation] = commit, now + self._timeout
        if in_peace:
            self._in_peace.append((commit, 0))

    def forget(self) -> None:
        """The process ends."""
        self._waiting.clear()
        self._in_peace.clear()

    def heard(self, correlation: int, error: ErrorCode) -> Commit | None:
        """An answer has reached the consumer: of the commit, where it was waited for. Raises WrongAnswer."""
        commit, _ = self._waiting.pop(correlation, (None, 0))
        if commit is not None and (commit.error is None or commit.error.name != error.name or not commit.done):
            raise WrongAnswer(f"a commit is answered {error.name}, and the consumer says {commit}")
        return commit

    def knows(self, commit: Commit, known: OffsetAndMetadata | None) -> None:
        """Of the partition that is read, the application may ask what was committed. Raises WrongAnswer."""
        if known != commit.offset:
            raise WrongAnswer(f"{commit} is acknowledged, and the consumer knows of {known}")

    def look(self, now: int, *, woken: bool) -> None:
        """After an event; ``woken``: the consumer was to give up what has timed out in it. Raises WrongAnswer."""
        for correlation, (commit, expires) in list(self._waiting.items()):
            if commit.error is None:
                if woken and expires <= now:
                    raise WrongAnswer(f"the consumer waits on for {commit}, which has timed out")
                continue
            if commit.error.name != ErrorCode.REQUEST_TIMED_OUT.name or now < expires:
                raise WrongAnswer(f"the consumer says {commit}, and heard no answer")
            del self._waiting[correlation]

    def time_passes(self) -> None:
        """In peace, with the coordinator up: who has committed is answered, and not refused. Raises WrongAnswer."""
        left: list[tuple[Commit, int]] = []
        for commit, times in self._in_peace:
            if commit.error is not None and commit.error.name == ErrorCode.NONE.name:
                continue
            if times + 1 >= PATIENCE:
                raise WrongAnswer(f"nothing goes wrong any more, and yet the consumer says {commit}")
            left.append((commit, times + 1))
        self._in_peace = left

    def end_peace(self) -> None:
        """What goes wrong may be the answer now."""
        self._in_peace.clear()
