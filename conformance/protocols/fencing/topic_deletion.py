"""The topic is deleted while brokers run freely, and made anew under its name (KIP-516).

To the model a deleted topic is the end: what is made anew under its name begins in the model's initial state, with
leader epochs from 0 on, and what clients are told of it is told of it alone (``StepResult.anew``). Whatever was sent
before, or is sent by a broker that has a replica of the former topic still, stands for no step of it. Such a replica is
a *stray*, and is shown as none; until it is gone its broker takes part in nothing. So a late message that is taken for
one of the new topic shows as something that nobody did.

Besides, each request that names another topic than the replica is of must be refused, and change nothing of it; and a
replica becomes one of another topic only by way of none: first it is stopped, and then made anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final
from uuid import UUID

from ....impl.replica.partition import PartitionState
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    NO_TOPIC_ID,
    Envelope,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    TopicPartition,
    UpdateMetadataRequest,
)
from ....impl.zk_controller import PartitionState as Quorum
from ...adapters.events import is_response, kind_of
from ...simulation.events import Event, EventKind
from .response_rules import WrongAnswer

DELETE_TOPIC: Final = Event(EventKind.OPERATE, "delete-topic")
CREATE_TOPIC: Final = Event(EventKind.OPERATE, "create-topic")
_DELETES: Final = 0.2
"""In so many runs the topic is deleted, and made anew."""
_NAMES_IDS: Final = 0.5
"""In so many of these clients name the topic by its id, as from Fetch 13 and Produce 13 on; else by its name alone."""
_DRAWN_APART: Final = 0x510E527F
_ANSWERED: Final = frozenset({ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.STALE_CONTROLLER_EPOCH})
"""How whoever has a replica of another topic answers."""


class Topics:
    """Of one run. What is drawn here changes nothing that others draw."""

    def __init__(self, partition: TopicPartition, seed: int) -> None:
        chance = Random(seed ^ _DRAWN_APART)  # noqa: S311 - repeatable on purpose
        self._partition = partition
        self._chance = chance
        self.deletes = chance.random() < _DELETES
        self._names = chance.random() < _NAMES_IDS
        self._known: set[UUID] = set()
        self.current: UUID | None = None
        """The id of the topic that is there; None where none is."""
        self._foreign: dict[int, Envelope] = {}
        """By what they are: messages that say nothing of the topic that is there."""

    def new_id(self) -> UUID:
        """The id of the next topic."""
        return UUID(int=self._chance.getrandbits(128), version=4)

    @property
    def asked(self) -> UUID:
        """What a client names."""
        return self.meant if self._names else NO_TOPIC_ID

    @property
    def meant(self) -> UUID:
        """What a broker names, where there may be another."""
        return self.current if self.deletes and self.current is not None else NO_TOPIC_ID

    # -- what operators do ------------------------------------------------------------------------------------------

    def calls(self, quorum: Quorum, *, all_registered: bool) -> Iterator[Event]:
        """That the topic is deleted: while every broker is there, as all of them are to be members of the next ISR."""
        if self.deletes and all_registered and quorum.leader_epoch >= 0 and not quorum.offline:
            yield DELETE_TOPIC

    def becomes(self, partitions: Mapping[TopicPartition, Quorum]) -> bool:
        """Look at what the controller has; gives whether the topic is gone. Raises WrongAnswer."""
        there = partitions.get(self._partition)
        found = None if there is None else there.topic_id
        if found == self.current:
            return False
        if self.current is not None and found is not None:
            raise WrongAnswer(f"topic {self.current} has become {found}, and nobody has deleted it")
        was, self.current = self.current, found
        if found is not None:
            if found in self._known or found == NO_TOPIC_ID:
                raise WrongAnswer(f"the topic id {found} is none, or another topic has had it")
            self._known.add(found)
        return was is not None

    # -- whose message is whose -------------------------------------------------------------------------------------

    def is_stray(self, here: UUID) -> bool:
        """Whether a replica of this topic is not one of that which is there."""
        return here not in (NO_TOPIC_ID, self.current)

    def sent(self, envelope: Envelope, here: UUID) -> None:
        """A broker sends a message; ``here``: the topic of its replica."""
        if self.is_stray(here):
            self._foreign[id(envelope)] = envelope

    def gone(self, in_flight: Sequence[Envelope]) -> None:
        """The topic is deleted: what brokers and controller have sent is of it; what clients ask by its name is not."""
        for each in in_flight:
            if is_response(each) or each.source >= 0:
                self._foreign[id(each)] = each

    def is_foreign(self, envelope: Envelope) -> bool:
        """Whether a message says nothing of the topic that is there."""
        named = getattr(envelope.body, "topic_id", NO_TOPIC_ID)
        return id(envelope) in self._foreign or self.is_stray(named)

    # -- looking ----------------------------------------------------------------------------------------------------

    def look(
        self,
        node: int,
        arrived: Envelope | None,
        sent: Sequence[Envelope],
        before: PartitionState | None,
        after: PartitionState | None,
    ) -> None:
        """Look at an event at a broker that stayed up. Raises WrongAnswer.

        ``before`` and ``after``: what its replica was and is like, whichever topic it is of; None where there is none.
        """
        was = NO_TOPIC_ID if before is None else before.topic_id
        now = NO_TOPIC_ID if after is None else after.topic_id
        body: Any = None if arrived is None or arrived.destination != node or is_response(arrived) else arrived.body
        if was != now:
            stopped = isinstance(body, StopReplicaRequest) and body.topic_id == was and now == NO_TOPIC_ID
            made = isinstance(body, LeaderAndIsrRequest) and body.topic_id == now and was == NO_TOPIC_ID
            if not stopped and not made:
                raise WrongAnswer(f"broker {node} had a replica of topic {was}, and has one of {now}")
        asked = getattr(body, "topic_id", NO_TOPIC_ID)
        if arrived is None or NO_TOPIC_ID in (asked, was) or isinstance(body, UpdateMetadataRequest):
            return
        answers: list[Any] = [each.body for each in sent if _answers(each, arrived)]
        errors = {each.error for each in answers if each.error is not ErrorCode.KAFKA_STORAGE_ERROR}
        if asked == was:
            if ErrorCode.INCONSISTENT_TOPIC_ID in errors:
                raise WrongAnswer(f"broker {node} refuses {kind_of(arrived)} of the very topic that its replica is of")
            return
        if not answers or not errors <= _ANSWERED:
            told = ", ".join(sorted(each.name for each in errors)) or "nothing"
            raise WrongAnswer(f"{kind_of(arrived)} of topic {asked} finds a replica of {was}, and is answered {told}")
        if before != after:
            raise WrongAnswer(f"{kind_of(arrived)} of topic {asked} changes a replica of {was} to {after}")


def request_name(envelope: Envelope) -> str:
    """What a request of the controller's is known by: there is one of each to a broker, and more of deleted topics."""
    body: Any = envelope.body
    deleted = isinstance(body, StopReplicaRequest) or (isinstance(body, UpdateMetadataRequest) and body.leader < -1)
    return f"{kind_of(envelope)} {body.topic_id}" if deleted else kind_of(envelope)


def stop_name(topic_id: UUID) -> str:
    """``request_name`` of a StopReplica."""
    return f"StopReplica {topic_id}"


def is_of_topic(name: str) -> bool:
    """Whether a request of this name is over where the topic is deleted."""
    return " " not in name


def _answers(sent: Envelope, request: Envelope) -> bool:
    return sent.destination == request.source and sent.correlation == request.correlation
