"""After each event, everything that a node has answered in it is held against what is seen of the node.

What may be wrong is in ``response_rules.py`` and ``producers.py``; here is who was asked what, and what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from uuid import UUID

from ....impl.replica.partition import PartitionState
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    BROKER_PRINCIPAL,
    LEADER_DURING_DELETE,
    NO_TOPIC_ID,
    AlterIsrRequest,
    AlterIsrResponse,
    Envelope,
    FetchRequest,
    LeaderAndIsrRequest,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
    OfflineReplicasRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    ProduceResponse,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from ....impl.zk_controller import PartitionState as Quorum
from .negative_requests import refused_produce
from .producers import Producers, Waiting, check_produce, timestamp_of
from .response_rules import (
    Row,
    WrongAnswer,
    check_alter_isr,
    check_asked,
    check_epoch_end,
    check_fetch,
    check_list_offsets,
)

Known: TypeAlias = tuple[int, int, frozenset[int], frozenset[int], UUID]
"""What clients are told of the partition: leader, leader epoch, ISR, offline marks, and which topic it is of."""


def known_of(told: UpdateMetadataRequest) -> Known:
    """What a broker that is told this would tell clients."""
    return told.leader, told.leader_epoch, told.isr, told.offline, told.topic_id


class Held:
    """What is remembered of a run so that answers can be judged. ``decode``: the records of encoded batches."""

    def __init__(
        self,
        producers: Producers,
        decode: Callable[[bytes], Sequence[Row]],
        *,
        min_isr: Callable[[int], int],
        patience: int,
    ) -> None:
        """``min_isr``: how large an ISR a node takes acks=all to need; ``patience``: for how many ms one waits."""
        self._producers = producers
        self._decode = decode
        self._min_isr = min_isr
        self._waiting = Waiting(min_isr, patience)
        self._controllers: dict[int, int] = {}
        """By node: the latest controller epoch that its process has heard of."""
        self._metadata: dict[int, UpdateMetadataRequest] = {}
        """By node: what it was told last of the partition."""
        self._heard: dict[int, set[Known]] = {}
        """By node: all that its process was ever told of the partition."""
        self._marks: dict[int, tuple[int, int, int, frozenset[int]]] = {}
        """By node: the leader epoch in which it leads; the version of the marks that it goes by, and of those that it
        may have taken up, the same ones; and these marks."""

    def ended(self, node: int, *, process: bool) -> None:
        """A replica has given up, or with ``process`` all of its broker has: what it only remembered is gone."""
        self._waiting.forget(node)
        self._marks.pop(node, None)
        if process:
            self._controllers.pop(node, None)
            self._metadata.pop(node, None)
            self._heard.pop(node, None)

    def lost(self, node: int, arrived: Envelope | None, sent: Sequence[Envelope]) -> None:
        """A message has reached a broker whose replica has given up. Raises WrongAnswer."""
        answer: Any = next((each.body for each in reversed(sent) if arrived and _answers(each, arrived)), None)
        if arrived is not None and answer is not None:
            self._of_controller(node, arrived.body, answer, None)

    # -- brokers ----------------------------------------------------------------------------------------------------

    def broker(
        self,
        node: int,
        arrived: Envelope | None,
        sent: Sequence[Envelope],
        state: PartitionState | None,
        before: Sequence[Row],
        after: Sequence[Row],
        now: int,
        *,
        fired: bool,
    ) -> None:
        """Look at an event in which a broker did something, and stayed up. Raises WrongAnswer.

        ``sent``: what it has sent in it; ``before`` and ``after``: its log; ``fired``: its timers may have.
        """
        produced = [each for each in sent if isinstance(each.body, ProduceResponse)]
        for each in sent:
            if state is not None:
                check_asked(each.body, node, state)
            if isinstance(each.body, AlterIsrRequest) and state is not None:
                self._asks_for(each.body, state)
            if state is not None and getattr(each.body, "error", None) is ErrorCode.KAFKA_STORAGE_ERROR:
                raise WrongAnswer(f"broker {node} answers that its disk has failed it, and goes on")
        if arrived is not None:
            answer = next((each.body for each in reversed(sent) if _answers(each, arrived)), None)
            if _names_another(arrived.body, state):
                if after != before:
                    raise WrongAnswer("a request of another topic has changed the log")
                if answer is not None:
                    self._of_controller(node, arrived.body, answer, state)
            elif isinstance(arrived.body, ProduceRequest):
                waits = self._produced(node, arrived, answer, state, before, after, now)
                if not waits and answer is not None:
                    produced.remove(next(each for each in reversed(produced) if _answers(each, arrived)))
            elif answer is not None and not (arrived.source >= 0 and _fences(state, arrived.body) != _fenced(answer)):
                self._answered(node, arrived.body, answer, state, after)
        if state is not None:
            self._waiting.answered(node, state, produced, now, fired=fired)

    def _produced(
        self,
        node: int,
        arrived: Envelope,
        answer: Any,
        state: PartitionState | None,
        before: Sequence[Row],
        after: Sequence[Row],
        now: int,
    ) -> bool:
        """A produce has arrived; gives whether it waits for the high watermark now."""
        request: Any = arrived.body
        number = self._producers.of.get(request.records)
        leads = state is not None and state.leader == node
        if number is None or not leads:
            if after != before:
                raise WrongAnswer("a produce that nobody may take has changed the log")
            wanted = refused_produce(request)
            if number is None and leads and answer is not None and answer.error not in (wanted, *_SHORT):
                raise WrongAnswer(f"a produce that is to be refused with {wanted.name} gets {answer.error.name}")
            return False
        assert state is not None
        batch = self._producers.batches[number]
        judged = self._producers.judged(before, number, state.log_start)
        base = check_produce(request, answer, judged, state, before, after, batch.payloads, min_isr=self._min_isr(node))
        waits = request.acks == -1 and base >= 0 and state.high_watermark < base + len(batch.payloads)
        if waits:
            self._waiting.add(node, arrived, base, len(batch.payloads), now)
        return waits and answer is None

    def _answered(self, node: int, body: Any, answer: Any, state: PartitionState | None, rows: Sequence[Row]) -> None:
        match body:
            case FetchRequest():
                check_fetch(body, answer, node, state, rows, self._decode(answer.records))
            case OffsetsForLeaderEpochRequest():
                check_epoch_end(body, answer, node, state, rows)
            case ListOffsetsRequest():
                check_list_offsets(body, answer, node, state, rows, timestamp_of)
            case _:
                self._of_controller(node, body, answer, state)

    def _of_controller(self, node: int, body: Any, answer: Any, state: PartitionState | None) -> None:
        """What the controller says of the cluster, and what a broker tells clients of that."""
        if isinstance(body, MetadataRequest):
            self._told_of(node, answer)
        elif isinstance(body, _COMMANDS):
            self._commanded(node, body, answer.error, state)

    def _commanded(self, node: int, body: Any, error: ErrorCode, state: PartitionState | None) -> None:
        """A request of a controller: one of an older controller than the broker knows is stale (KAFKA-1120)."""
        known = self._controllers.get(node, -1)
        if (body.controller_epoch < known) != (error is ErrorCode.STALE_CONTROLLER_EPOCH):
            said = f"answered {error.name}, and the broker knows of controller epoch {known}"
            raise WrongAnswer(f"a request of controller epoch {body.controller_epoch} is {said}")
        if error is not ErrorCode.NONE:
            return
        self._controllers[node] = body.controller_epoch
        told = self._metadata.get(node)
        same = told is not None and told.topic_id == body.topic_id
        deleted = isinstance(body, UpdateMetadataRequest) and body.leader == LEADER_DURING_DELETE
        if deleted or isinstance(body, StopReplicaRequest):
            if same:
                del self._metadata[node]
        elif isinstance(body, UpdateMetadataRequest):
            self._heard.setdefault(node, set()).add(known_of(body))
            if told is None or not same or told.leader_epoch <= body.leader_epoch:
                self._metadata[node] = body
        elif state is not None and state.leader == node:
            self._marked(node, body, state)

    def _marked(self, node: int, body: LeaderAndIsrRequest | OfflineReplicasRequest, state: PartitionState) -> None:
        """A leader goes by the latest marks that it was told of in its leader epoch, whichever came last (KIP-320).

        A LeaderAndIsr whose ISR is known already may be passed over, as its marks come by themselves; where they are
        the same nobody sees whether it was, and older marks that come after it may be taken up or not.
        """
        if body.leader_epoch != state.leader_epoch:
            return
        epoch, version, perhaps, marks = self._marks.get(node, (-1, -1, -1, frozenset[int]()))
        first = epoch != state.leader_epoch
        if first:
            version = perhaps = -1
        if first or body.partition_epoch >= version:
            passed_over = not first and isinstance(body, LeaderAndIsrRequest) and state.offline == marks
            doubtful = body.partition_epoch < perhaps and state.offline == marks
            if passed_over:
                perhaps = max(perhaps, body.partition_epoch)
            elif not doubtful:
                version, marks = body.partition_epoch, body.offline
        self._marks[node] = state.leader_epoch, version, max(version, perhaps), marks
        if state.offline != marks:
            raise WrongAnswer(f"a leader that was told of the marks {sorted(marks)} goes by {sorted(state.offline)}")

    def _told_of(self, node: int, answer: MetadataResponse) -> None:
        told = self._metadata.get(node)
        if told is None:
            if answer.error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise WrongAnswer(f"a broker that was told of no partition answers with {answer}")
            return
        said = answer.leader, answer.leader_epoch, answer.isr, answer.offline, answer.topic_id
        if said != known_of(told):
            raise WrongAnswer(f"a broker that was told {told} answers with {answer}")

    def knows(self, node: int, metadata: UpdateMetadataRequest | None) -> None:
        """Look at what a broker would tell clients: the latest leader epoch that it was told of. Raises WrongAnswer."""
        told = self._metadata.get(node)
        if (metadata is None) != (told is None) or (metadata and told and metadata.topic_id != told.topic_id):
            raise WrongAnswer(f"a broker that was told {told} would tell clients {metadata}")
        if metadata is not None and told is not None and metadata.leader_epoch != told.leader_epoch:
            said = f"would tell clients of leader epoch {metadata.leader_epoch}"
            raise WrongAnswer(f"a broker that was told of leader epoch {told.leader_epoch} {said}")

    def was_told(self, node: int, known: Known) -> bool:
        """Whether a broker was told this, if perhaps before something older: of one leader epoch the last one counts.

        Kafka's controller has one request to a broker on its way, here they overtake each other.
        """
        return known in self._heard.get(node, ())

    def _asks_for(self, body: AlterIsrRequest, state: PartitionState) -> None:
        """A leader does not ask for whom it knows to be offline: a zombie would count for acks=all (KIP-320)."""
        joining = (body.new_isr - state.isr) & state.offline
        if joining:
            raise WrongAnswer(f"a leader asks for replica {min(joining)}, which it knows to be offline")

    # -- the controller ---------------------------------------------------------------------------------------------

    def controller(self, arrived: Envelope, sent: Sequence[Envelope], before: Quorum, after: Quorum) -> None:
        """Look at an AlterIsr that has reached a controller which stayed up. Raises WrongAnswer."""
        answer = next((each.body for each in sent if _answers(each, arrived)), None)
        if not isinstance(arrived.body, AlterIsrRequest) or not isinstance(answer, AlterIsrResponse):
            return
        if arrived.principal == BROKER_PRINCIPAL:
            asked, there = arrived.body.topic_id, before.topic_id
            if asked not in (NO_TOPIC_ID, there) or (there == NO_TOPIC_ID and before.leader_epoch < 0):
                _check_unknown(arrived.body, answer, before, after)
            else:
                check_alter_isr(arrived.body, answer, before, after)
        elif answer.error is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED or after != before:
            raise WrongAnswer(f"an AlterIsr of {arrived.principal} is answered with {answer.error.name}")


_COMMANDS = (LeaderAndIsrRequest, StopReplicaRequest, OfflineReplicasRequest, UpdateMetadataRequest)


def _names_another(body: Any, state: PartitionState | None) -> bool:
    """Whether a request names another topic than that of the replica: how it is refused ``topic_deletion.py`` holds."""
    asked = getattr(body, "topic_id", NO_TOPIC_ID)
    return state is not None and asked != NO_TOPIC_ID and state.topic_id not in (NO_TOPIC_ID, asked)


def _check_unknown(request: AlterIsrRequest, answer: AlterIsrResponse, before: Quorum, after: Quorum) -> None:
    """An AlterIsr of a topic that is deleted changes nothing of the one that has its name. Raises WrongAnswer."""
    named = request.topic_id != NO_TOPIC_ID
    wanted = ErrorCode.UNKNOWN_TOPIC_ID if named else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if answer.error is not wanted or after != before:
        told = f"answered with {answer.error.name}, and the partition is {after}"
        raise WrongAnswer(f"an AlterIsr of topic {request.topic_id}, which is not there, is {told}")


_SHORT = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR)


def _fences(state: PartitionState | None, body: Any) -> bool:
    """Whether a replica that is in the leader epoch of its request is in another one than this."""
    return state is not None and getattr(body, "current_leader_epoch", state.leader_epoch) != state.leader_epoch


def _fenced(answer: Any) -> bool:
    """Whether an answer says so. Whether it should is the model's to say, where a replica has asked."""
    return answer.error in (ErrorCode.FENCED_REPLICA, ErrorCode.UNKNOWN_LEADER_EPOCH)


def _answers(sent: Envelope, request: Envelope) -> bool:
    return sent.destination == request.source and sent.correlation == request.correlation
