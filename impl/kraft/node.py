"""The controller node: an ``Endpoint`` that holds a voter of the metadata log, and is the active controller at times.

Everyone else's requests are answered with NOT_CONTROLLER. What the active one answers, errors too, it answers when all
that its image held at the decision is stable: a change that a client has been told of, or refused because of, survives
every failover.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ..files.interface import Files
from ..log.errors import InvalidAppend
from ..log.records import Record
from ..metadata.codec import encode
from ..metadata.features import METADATA_FORMAT
from ..metadata.machine import MetadataMachine
from ..metadata.metrics import ControllerMetrics
from ..net.interface import Clock, Transport
from ..quorum.config import QuorumConfig
from ..quorum.node import NotLeader, QuorumNode
from ..replica.runtime import STORAGE_FAILURES, Requests
from ..replica.timers import Key, Timers
from ..wire.controller import ControllerHeartbeatRequest, ControllerHeartbeatResponse, ControllerRequest
from ..wire.errors import ErrorCode
from ..wire.messages import BROKER_PRINCIPAL, Envelope
from .active import FORMAT_LEVEL, ActiveController, refused
from .config import ControllerConfig
from .decision import Decision
from .validate import REQUESTS, RESPONSES, is_well_formed

HEARTBEAT: Key = ("heartbeat",)
"""A standby tells the active controller how far it is; the active one looks at its own snapshot."""
SESSIONS: Key = ("sessions",)
"""A broker's session may be over."""
NEVER = (1 << 62) - 1
"""``snapshot_minimum_records`` of a log whose snapshots somebody else decides on."""
_BATCH_OVERHEAD = 61
_RECORD_OVERHEAD = 40
"""Bytes around the value of a record, at most."""


class _Waiting(NamedTuple):
    end: int
    """The answer may be given when everything below is stable."""
    request: Envelope
    answer: Any


def take_snapshot(quorum: QuorumNode) -> bool:
    """Have the machine write what it has applied, if that is more than the latest snapshot; gives whether it did."""
    if quorum.failure is not None or not quorum.replica.wants_snapshot(0):
        return False
    try:
        quorum.replica.generate_snapshot()
    except STORAGE_FAILURES as error:
        quorum.go_offline(str(error))
        return False
    return True


class ControllerNode:
    """One process. To crash it, throw it away (and what its disk had not synced); to restart, make another.

    ``seed``, ``first_correlation`` and what is raised are as for ``QuorumNode``; the quorum's own
    ``snapshot_minimum_records`` is not gone by: the active controller decides whose turn it is.
    """

    def __init__(
        self,
        node_id: int,
        files: Files,
        transport: Transport,
        clock: Clock,
        quorum: QuorumConfig,
        config: ControllerConfig | None = None,
        *,
        seed: int = 0,
        first_correlation: int = 0,
    ) -> None:
        self.config = config or ControllerConfig()
        self.machine = MetadataMachine()
        quorum = replace(quorum, snapshot_minimum_records=NEVER)
        self.quorum = QuorumNode(
            node_id, files, transport, clock, self.machine, quorum, seed=seed, first_correlation=first_correlation
        )
        self.active: ActiveController | None = None
        """While it is the active controller."""
        self.timers = Timers()
        self.metrics = ControllerMetrics(clock)
        self._clock = clock
        self._requests = Requests(node_id, transport, first_correlation)
        self._heartbeat: int | None = None
        self._waiting: deque[_Waiting] = deque()
        self._yielded = False
        """Whether it has given up leadership since its latest snapshot, to take the next one."""
        self.timers.set(HEARTBEAT, clock.now() + self.config.heartbeat_interval_ms)

    # -- the endpoint -----------------------------------------------------------------------------------------------

    @property
    def address(self) -> int:
        """The node id."""
        return self.quorum.address

    def deadline(self) -> int | None:
        """When the first timer runs off."""
        return min((at for at in (self.quorum.deadline(), self.timers.deadline()) if at is not None), default=None)

    def wake(self) -> None:
        """Fire the timers that are due, each once."""
        self.quorum.wake()
        self._settle()
        for key in self.timers.due(self._clock.now()):
            self.fire(key)

    def fire(self, key: Key) -> None:
        """Do now what a timer is for, whether it is due or not. Raises ``KeyError`` for what is no timer of its own."""
        if key == HEARTBEAT:
            self._look_at_snapshots()
        elif key == SESSIONS:
            self._expire()
        else:
            raise KeyError(key)
        self._settle()

    def receive(self, envelope: Envelope) -> None:
        """A message has arrived. A malformed request gets an error, anything else that is malformed no answer."""
        body: Any = envelope.body
        if isinstance(body, REQUESTS):
            if self.quorum.failure is None:
                self._serve(envelope, body)
        elif isinstance(body, RESPONSES):
            if self.quorum.failure is None and is_well_formed(body):
                self._requests.answered(envelope)
        else:
            self.quorum.receive(envelope)
        self._settle()

    def close(self) -> None:
        """A clean shutdown: an active controller resigns. Raises ``OSError`` and ``LogOffline``."""
        self.quorum.resign()
        self._settle()
        self.quorum.close()
        for key in self.timers.keys():  # noqa: SIM118 - it is no dict
            self.timers.cancel(key)

    # -- being active -----------------------------------------------------------------------------------------------

    @property
    def refusal(self) -> str | None:
        """Why it may not be active though it leads: the log's format is not the one that it writes."""
        level = self.machine.image.features.get(METADATA_FORMAT, FORMAT_LEVEL)
        if level == FORMAT_LEVEL:
            return None
        return f"{METADATA_FORMAT} is at level {level}, and this software writes the records of level {FORMAT_LEVEL}"

    def _settle(self) -> None:
        """After each event: step down, answer what is stable, or become active."""
        quorum, active = self.quorum, self.active
        self.metrics.stable(quorum.replica.high_watermark)
        self.metrics.replayed(quorum.replica.applied if active is None else quorum.replica.end)
        self.metrics.snapshot(quorum.replica.snapshots.latest_end)
        if active is not None and not (quorum.failure is None and quorum.is_leader and quorum.epoch == active.epoch):
            self._step_down()
        self._answer_stable()
        if self.active is None and quorum.failure is None and quorum.is_leader:
            replica = quorum.replica
            # A leader's log ends with the record that begins its epoch: once that is stable, so is all before it.
            if replica.applied == replica.end and self.refusal is None:
                self._become_active()

    def _become_active(self) -> None:
        quorum = self.quorum
        active = self.active = ActiveController(
            self.config,
            self.machine.image,
            cluster_id=quorum.config.cluster_id,
            voters=quorum.config.voters,
            epoch=quorum.epoch,
            now=self._clock.now(),
        )
        self.metrics.elected(quorum.replica.end)
        self._submit(Decision(None, active.first_records()), None)
        self._set_sessions()

    def _step_down(self) -> None:
        """Fail what is not stable, and forget it: whether it becomes so is for the next leader to say."""
        self.active = None
        self.metrics.resigned()
        self.timers.cancel(SESSIONS)
        waiting, self._waiting = self._waiting, deque()
        if self.quorum.failure is None:
            for each in waiting:
                body: Any = each.request.body
                self._requests.respond(each.request, refused(body, ErrorCode.NOT_CONTROLLER))

    def _answer_stable(self) -> None:
        while self._waiting and self._waiting[0].end <= self.quorum.replica.applied:
            each = self._waiting.popleft()
            self._requests.respond(each.request, each.answer)

    # -- deciding ---------------------------------------------------------------------------------------------------

    def _serve(self, envelope: Envelope, body: ControllerRequest) -> None:
        self.metrics.request()
        if not is_well_formed(body):
            self._refuse(envelope, body, ErrorCode.INVALID_REQUEST)
        elif envelope.principal != BROKER_PRINCIPAL:
            self._refuse(envelope, body, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        elif self.active is None:
            self._refuse(envelope, body, ErrorCode.NOT_CONTROLLER)
        else:
            replica = self.quorum.replica
            decision = self.active.decide(body, end=replica.end, stable=replica.applied, now=self._clock.now())
            self._submit(decision, envelope)
            self._set_sessions()

    def _refuse(self, envelope: Envelope, body: Any, error: ErrorCode) -> None:
        # A malformed partition is not sent back: nobody could tell what it is.
        self._requests.respond(envelope, refused(body, error))

    def _submit(self, decision: Decision, request: Envelope | None) -> None:
        """Append what was decided; the answer waits until all that the image holds is stable."""
        active, quorum = self.active, self.quorum
        if active is None:
            return
        values = [encode(record) for record in decision.records]
        parts = list(_parts(values, quorum.replica.log.config.max_message_bytes))
        if decision.atomic and len(parts) > 1:
            if request is not None:
                body: Any = request.body
                self._requests.respond(request, refused(body, ErrorCode.INVALID_REQUEST))
            return
        active.replay(decision.records)
        now = quorum.wall()
        try:
            for part in parts:
                quorum.append([Record(value, None, now) for value in part])
        except (NotLeader, InvalidAppend, *STORAGE_FAILURES):
            # The image is ahead of the log: only another time of being active can mend that.
            if quorum.failure is None:
                quorum.resign()
            self._settle()
            if request is not None and quorum.failure is None:
                lost: Any = request.body
                self._requests.respond(request, refused(lost, ErrorCode.NOT_CONTROLLER))
            return
        if parts:
            self.metrics.appended(quorum.replica.end)
        if request is not None:
            self._waiting.append(_Waiting(quorum.replica.end, request, decision.answer))

    def _set_sessions(self) -> None:
        deadline = None if self.active is None else self.active.sessions.deadline(self.active.image)
        if deadline is None:
            self.timers.cancel(SESSIONS)
        else:
            self.timers.set(SESSIONS, deadline)

    def _expire(self) -> None:
        while self.active is not None and (decision := self.active.expire(self._clock.now())) is not None:
            self._submit(decision, None)
        self._set_sessions()

    # -- snapshots --------------------------------------------------------------------------------------------------

    def _look_at_snapshots(self) -> None:
        """A standby tells the active controller where its snapshot ends; the active one tells itself."""
        quorum, now = self.quorum, self._clock.now()
        self.timers.set(HEARTBEAT, now + self.config.heartbeat_interval_ms)
        if quorum.failure is not None:
            self.timers.cancel(HEARTBEAT)
            return
        replica = quorum.replica
        end = replica.snapshots.latest_end
        if self.active is not None:
            applied = replica.applied
            if self.active.turns.heard(self.address, metadata_end=applied, snapshot_end=end, stable=applied, now=now):
                self._snapshot_as_active()
        elif quorum.leader_id not in (-1, self.address):
            self._requests.forget(self._heartbeat)
            body = ControllerHeartbeatRequest(self.address, replica.applied - 1, end)
            self._heartbeat = self._requests.request(quorum.leader_id, body, self._heard_back)

    def _heard_back(self, body: object) -> None:
        if isinstance(body, ControllerHeartbeatResponse) and body.error is ErrorCode.NONE and body.should_snapshot:
            self._yielded = False
            take_snapshot(self.quorum)

    def _snapshot_as_active(self) -> None:
        """Give up leadership first, so that the cluster need not wait; if it comes back, take the snapshot even so.

        ("It will first try to give up the leadership of the Raft quorum.")
        """
        if len(self.quorum.config.voters) > 1 and not self._yielded:
            self._yielded = True
            self.quorum.resign()
        else:
            self._yielded = False
            take_snapshot(self.quorum)


def _parts(values: list[bytes], max_bytes: int) -> Iterator[list[bytes]]:
    """The values in as few batches as they fit into."""
    part: list[bytes] = []
    size = _BATCH_OVERHEAD
    for value in values:
        need = len(value) + _RECORD_OVERHEAD
        if part and size + need > max_bytes:
            yield part
            part, size = [], _BATCH_OVERHEAD
        part.append(value)
        size += need
    if part:
        yield part
