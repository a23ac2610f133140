"""What controllers answer is held to the log, and what a broker does to the metadata that it has taken up.

An answer waits until all is stable that its controller had in mind when it decided: whoever gets it may go by it. A
change that a client was told of is in the committed log then. At most one node makes a snapshot at a time, as far as
the active controller knows, no broker is fenced whose session is not over, and one that stops in order is kept waiting
no longer than the others need to hear of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, TypeAlias

from ....impl.kraft.broker import MetadataBroker
from ....impl.kraft.node import ControllerNode
from ....impl.metadata import changes
from ....impl.metadata.codec import encode
from ....impl.metadata.image import PartitionKey
from ....impl.metadata.values import MetadataRecord
from ....impl.wire.controller import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    ControllerHeartbeatRequest,
    ControllerHeartbeatResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
)
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import Envelope, TopicPartition
from .metadata_log import MetadataLog, WrongState


class _Decided(NamedTuple):
    """``end`` and ``epoch``: of the log, and of the record before it, when it was decided."""

    request: Envelope
    error: ErrorCode
    end: int
    epoch: int


_UNKNOWN: Final = -1
"""The partition epoch in an answer to who asks for the ISR of what it may not know."""
_LONG_AGO: Final = -(1 << 40)
_Term: TypeAlias = tuple[int, int]
"""One time of being active: the controller, and the epoch of the quorum."""


class Answers:
    """What has been decided and answered in one run."""

    def __init__(self, log: MetadataLog, session_ms: int) -> None:
        self._log = log
        self._session_ms = session_ms
        self._decided: dict[tuple[int, int, int], list[_Decided]] = {}
        """By controller, asker and correlation id: a request may come twice."""
        self._excused: set[tuple[int, int, int]] = set()
        """What need not be answered any more."""
        self._sent: list[Envelope] = []
        self._owed: list[tuple[Envelope, _Decided]] = []
        """What somebody has said that went down with it, which is not known to be committed yet."""
        self._turns: dict[_Term, tuple[int, int]] = {}
        """Whose turn it is to make a snapshot, and where its latest one ended."""
        self._told: dict[tuple[_Term, int], tuple[int, int]] = {}
        """By term and node: where its latest snapshot ended, and when it said so."""
        self._lives: dict[tuple[_Term, int], tuple[int, int]] = {}
        """By term and broker: the epoch of its process, and when that was heard of last."""
        self._began: dict[_Term, int] = {}
        """When each began."""
        self._heard: dict[tuple[_Term, int, int], int] = {}
        """By term, broker and broker epoch, the last record that the process has said to have replayed."""
        self._kept: dict[tuple[_Term, int, int], int] = {}
        """By the same, the last record of the log when a process that stops was first told to wait for the others."""

    def forget(self) -> None:
        """What was before the run is not looked at."""
        self._decided.clear()
        self._excused.clear()
        self._sent.clear()
        self._owed.clear()
        self._began = dict.fromkeys(self._began, _LONG_AGO)

    def sent(self, envelope: Envelope) -> None:
        """An answer has left."""
        self._sent.append(envelope)

    def error_of(self, node: ControllerNode, request: Envelope, now: int) -> ErrorCode | None:
        """What a controller has decided of a request that has reached it just now; None: it has decided nothing."""
        answers = [each.answer for each in reversed(node._waiting) if each.request is request]  # told to nobody yet
        way = node.address, request.source, request.correlation
        answers += [
            each.body for each in reversed(self._sent) if (each.source, each.destination, each.correlation) == way
        ]
        if not answers:
            return None
        error = ErrorCode(answers[0].error)
        replica = node.quorum.replica
        if node.active is not None:
            before = replica.epoch_at(replica.end - 1)
            self._decided.setdefault(way, []).append(_Decided(request, error, replica.end, before))
            told: Any = answers[0]
            if isinstance(told, BrokerHeartbeatResponse) and error is ErrorCode.NONE:
                self._check_kept(node, request.body, told)
            if isinstance(told, BrokerHeartbeatResponse | ControllerHeartbeatResponse) and told.should_snapshot:
                asked: Any = request.body
                self._check_turn((node.address, node.active.epoch), request.source, asked.snapshot_offset, now)
        return error

    def arrives(self, node: ControllerNode, body: object, now: int) -> None:
        """A broker's or a standby's request has reached an active controller."""
        active = node.active
        if active is None:
            return
        term = node.address, active.epoch
        own = True
        if isinstance(body, BrokerHeartbeatRequest | BrokerRegistrationRequest):
            known = active.image.brokers.get(body.broker)
            if isinstance(body, BrokerHeartbeatRequest):
                own = known is not None and known.epoch == body.broker_epoch
            else:
                own = known is not None and known.incarnation == body.incarnation
            if known is not None and own:
                self._lives[term, body.broker] = known.epoch, now
                if isinstance(body, BrokerHeartbeatRequest):
                    key = term, body.broker, known.epoch
                    self._heard[key] = max(self._heard.get(key, _UNKNOWN), body.metadata_offset)
        if own and isinstance(body, BrokerHeartbeatRequest | ControllerHeartbeatRequest):
            # Of a process that is not registered any more nothing is taken, and nobody is heard of by it.
            number = body.broker if isinstance(body, BrokerHeartbeatRequest) else body.node
            before, turn = self._told.get((term, number)), self._turns.get(term)
            is_back = before is not None and now - before[1] >= self._session_ms
            if is_back and turn is not None and turn[0] == number:
                # Nobody had heard of it for a session: whoever was may have seen that its turn is over.
                del self._turns[term]
            self._told[term, number] = body.snapshot_offset, now

    def fenced(self, node: ControllerNode, before: Any, now: int) -> None:
        """What an active controller has fenced by itself had not been heard of for a whole session.

        ``before``: the image of its log before that. Raises ``WrongState``.
        """
        active = node.active
        term = node.address, -1 if active is None else active.epoch
        for broker, known in before.brokers.items() if active is not None else ():
            after = active.image.brokers.get(broker) if active is not None else None
            if known.fenced or after is None or not after.fenced:
                continue
            epoch, at = self._lives.get((term, broker), (known.epoch, _LONG_AGO))
            heard = max(at if epoch == known.epoch else _LONG_AGO, self._began.get(term, _LONG_AGO))
            if now - heard < self._session_ms:
                raise WrongState(f"broker {broker} is fenced, and was heard of {now - heard} ms ago")

    def active_now(self, node: ControllerNode, now: int) -> None:
        """A controller is active: a term of its begins, if it is a new one."""
        if node.active is not None:
            self._began.setdefault((node.address, node.active.epoch), now)

    def _check_turn(self, term: _Term, number: int, end: int, now: int) -> None:
        """A node whose latest snapshot has this end is told to make one: whoever was before has made it, or is gone."""
        turn = self._turns.get(term)
        if turn is not None and turn[0] != number:
            made, at = self._told.get((term, turn[0]), (0, now))
            if made <= turn[1] and now - at < self._session_ms:
                raise WrongState(f"it is the turn of node {number} to make a snapshot, and still that of {turn[0]}")
        if turn is None or turn[0] != number or turn[1] < end:
            self._turns[term] = number, end

    def _check_kept(self, node: ControllerNode, body: Any, told: BrokerHeartbeatResponse) -> None:
        """A broker in controlled shutdown may stop once all that are active have replayed what it was told to wait for:
        the log does not stand still meanwhile."""
        active = node.active
        known = None if active is None else active.image.brokers.get(body.broker)
        if active is None or known is None or known.fenced or not known.shutting_down or told.should_shut_down:
            return
        term, image = (node.address, active.epoch), active.image
        key = term, body.broker, known.epoch
        if key not in self._kept:
            self._kept[key] = node.quorum.replica.end - 1
            return
        others = {each: state.epoch for each, state in image.brokers.items() if image.alive(each)}
        if all(self._heard.get((term, each, epoch), _UNKNOWN) >= self._kept[key] for each, epoch in others.items()):
            where = f"record {self._kept[key]}, the last one when it was first told so"
            raise WrongState(f"broker {body.broker} may not stop yet, though brokers {sorted(others)} have {where}")

    def check(self, down: Collection[int] = ()) -> None:
        """Look at what was answered in an event. Raises ``WrongState``.

        ``down``: whoever does not run. What such a one has said it alone may have known to be committed, and then that
        is seen when somebody else does.
        """
        told = [each for each in self._owed if each[1].end <= self._log.end]
        self._owed = [each for each in self._owed if each[1].end > self._log.end]
        for envelope in self._sent:
            key = envelope.source, envelope.destination, envelope.correlation
            waiting = self._decided.get(key)
            found = waiting.pop(0) if waiting else None
            if found is None or envelope.body.error is ErrorCode.NOT_CONTROLLER:  # type: ignore[union-attr]
                continue
            later = found.end > self._log.end and envelope.source in down
            (self._owed if later else told).append((envelope, found))
        self._sent.clear()
        for envelope, found in told:
            if not self._log.is_committed(found.epoch, found.end):
                why = f"what it is of is not committed: {self._log.end} records are, it was decided at {found.end}"
                raise WrongState(f"{type(envelope.body).__name__} of node {envelope.source}: {why}")
            self._check_told(found.request.body, envelope.body)
            self._check_altered(found.request.body, envelope.body, found.end)

    def check_waiting(self, nodes: Mapping[int, ControllerNode], away: AbstractSet[int]) -> None:
        """Whoever waits for an answer gets one, also where who has decided it resigns. Raises ``WrongState``.

        ``nodes``: the controllers that run. ``away``: whoever does not run, or is cut off: what such a one sends, or is
        sent, is lost, and what it has asked for before nobody owes it any more.
        """
        for key, decided in list(self._decided.items()):
            number, asker, correlation = key
            node = nodes.get(number)
            if node is None or not decided:
                del self._decided[key]
                self._excused.discard(key)
                continue
            if node.quorum.failure is not None or not away.isdisjoint((number, asker)):
                # It is answered all the same, if it is, and a repeat that is decided later is answered later.
                self._excused.add(key)
            if key in self._excused:
                continue
            waiting = (each.request for each in node._waiting if each.request is not None)
            ways = [(each.source, each.correlation) for each in waiting]
            if ways.count((asker, correlation)) < len(decided):
                what = type(decided[0].request.body).__name__
                raise WrongState(f"node {number} has decided {what} of {asker}, and will never answer it")

    def _check_altered(self, request: Any, answer: Any, end: int) -> None:
        """A leader that asks for an ISR is told what there is, whether it has got it or not (KIP-497)."""
        if not (isinstance(request, AlterPartitionRequest) and isinstance(answer, AlterPartitionResponse)):
            return
        partition = self._log.prefix(end).image.partitions.get(
            PartitionKey(request.topic_id, request.partition.partition)
        )
        if partition is None or answer.partition_epoch == _UNKNOWN:
            return
        has = partition.leader, partition.leader_epoch, frozenset(partition.isr), partition.partition_epoch
        told = answer.leader, answer.leader_epoch, answer.isr, answer.partition_epoch
        if told != has:
            names = "leader, leader epoch, ISR and partition epoch"
            raise WrongState(f"the {names} of {request.partition} are {has}, and who asks for an ISR is told {told}")

    def _check_told(self, request: Any, answer: Any) -> None:
        if answer.error is not ErrorCode.NONE:
            return
        wanted: list[MetadataRecord] = []
        if isinstance(request, CreateTopicsRequest) and isinstance(answer, CreateTopicsResponse):
            if answer.topic_id is None:
                raise WrongState("a topic was made, and its maker is not told its id")
            wanted = [changes.topic(answer.topic_id, request.name)]
        elif isinstance(request, DeleteTopicsRequest) and request.topic_id is not None:
            wanted = [changes.remove_topic(request.topic_id)]
        elif isinstance(request, IncrementalAlterConfigsRequest):
            wanted = [changes.config(request.resource_type, request.resource_name, *each) for each in request.changes]
        values = {entry.value for entry in self._log.entries} if wanted else set()
        for record in wanted:
            if encode(record) not in values:
                raise WrongState(f"{record} was acknowledged, and is not committed")


def _check_metadata(where: str, told: Mapping[TopicPartition, Any], image: Any) -> None:
    """What a broker tells clients of each partition is what the image says, of no partition more. ``WrongState``."""
    known = {
        TopicPartition(image.topics[key.topic].name, key.partition): each for key, each in image.partitions.items()
    }
    if told.keys() != known.keys():
        raise WrongState(f"{where} tells clients of {sorted(map(str, told))}, and there are {sorted(map(str, known))}")
    for partition, state in known.items():
        says = told[partition]
        offline = frozenset(each for each in state.replicas if not image.alive(each))
        has = says.leader, says.leader_epoch, says.isr, says.replicas, says.offline
        if has != (state.leader, state.leader_epoch, frozenset(state.isr), state.replicas, offline):
            raise WrongState(f"{where} tells clients of {partition}: {says}, and it is {state}, offline {set(offline)}")


def check_broker(node: MetadataBroker, log: MetadataLog) -> None:
    """The broker inside has the replicas that the metadata give it, of these topics, and no others; each is led, or
    follows, as they say, and clients are told so. Raises ``WrongState``."""
    publisher = node.publisher
    if publisher.published == 0 or publisher.failure is not None or node.quorum.failure is not None:
        return
    image = log.prefix(publisher.published).image
    mine = {
        TopicPartition(image.topics[key.topic].name, key.partition): (key.topic, state)
        for key, state in image.partitions.items()
        if node.address in state.replicas
    }
    there = node.broker.partitions
    where = f"broker {node.address}, which has taken up {publisher.published} records,"
    _check_metadata(where, node.broker.metadata, image)
    if set(there) != set(mine):
        raise WrongState(f"{where} has the replicas {sorted(map(str, there))}, and not {sorted(map(str, mine))}")
    for partition, (topic, state) in mine.items():
        has = there[partition]
        if has.failure is None and has.topic_id != topic:
            raise WrongState(f"{where} has {partition} of topic {has.topic_id}, and not {topic}")
        if state.leader < 0 or has.failure is not None:
            continue  # who led leads on by itself, until somebody else does: its epoch is fenced
        if has.leader_epoch != state.leader_epoch:
            raise WrongState(f"{where} has {partition} in leader epoch {has.leader_epoch}, not {state.leader_epoch}")
        if (has.leader is not None) != (state.leader == node.address):
            leads = "leads" if has.leader is not None else "does not lead"
            raise WrongState(f"{where} {leads} {partition}, whose leader is {state.leader}")
