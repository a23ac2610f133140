"""How likely events of running controllers and brokers are, so that runs come to where something is decided.

Most messages are fetches that bring nothing, and a cluster without an active controller decides nothing: an election
comes to its end, who is away comes back, and what brings records or asks the controller for something arrives rather.
While somebody is active it is asked, also for what it must refuse; what is pending is come between: whoever leads
resigns or fails rather while records are not stable, and others have them or not. In some runs nothing is the likelier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ....impl.wire.controller import (
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ReplicaRequest,
)
from ....impl.wire.messages import FetchResponse
from ....impl.wire.quorum import (
    BeginQuorumEpochRequest,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoteRequest,
    VoteResponse,
)
from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent
from .nodes import REPLICATE, STOP
from .produced import PRODUCE

if TYPE_CHECKING:
    from .system import FreeControllers

_HURRIED: Final = 6
"""In one of so many runs nothing is likelier."""
_RATHER: Final = 4.0
_BACK: Final = 3.0
"""How likely who is away comes back."""
_IDLE: Final = 0.15
"""How likely a fetch arrives that brings nothing, and says nothing new."""
_PROBED: Final = 12.0
"""How likely an active controller is asked for what it must refuse, that has something new in mind."""
_AGAIN: Final = 0.05
"""The same of one that has not."""
_AMID: Final = 3.0
"""How likely the active controller resigns or fails while something is pending."""
_STEADY: Final = 0.3
"""The same while nothing is."""
_PATIENT: Final = 0.3
_LEADING: Final = 2.0
"""How likely a broker is to stop that leads something."""

_ELECTING: Final = (VoteRequest, VoteResponse, BeginQuorumEpochRequest)
_ASKING: Final = (BrokerRegistrationRequest, BrokerRegistrationResponse, AlterPartitionRequest)


class Course(NamedTuple):
    """Who is the active controller of the newest epoch, whether anything of its log is not stable, and where that ends;
    who leads a partition, and who wants to stop."""

    active: int | None
    pending: bool
    end: int
    leading: frozenset[int] = frozenset()
    stopping: frozenset[int] = frozenset()


class Workload:
    """Of one run, by its seed."""

    def __init__(self, seed: int) -> None:
        self._waits = seed // 11 % _HURRIED != 0
        self._probed: dict[Event, int] = {}
        """By probe, the end of the log when it was made last."""

    def happened(self, event: Event, end: int) -> None:
        """Take note of an event. ``end``: that of the newest log."""
        if event.what is EventKind.PROBE:
            self._probed[event] = end

    def weighed(self, pending: Sequence[EnabledEvent], system: FreeControllers) -> Sequence[EnabledEvent]:
        """What is pending, with how likely it is."""
        if not self._waits:
            return pending
        bodies = {flight.number: flight.envelope.body for flight in system.network.in_flight()}
        leader = system.newest_leader
        active = None if leader is None or leader.active is None else leader.address
        end = -1 if leader is None else leader.quorum.replica.end
        image = None if leader is None or leader.active is None else leader.active.image
        leading = () if image is None else (state.leader for state in image.partitions.values())
        stops = (
            each for each in system.brokers if each in system.nodes and system.broker(each).lifecycle.want_shut_down
        )
        is_pending = leader is not None and leader.quorum.replica.high_watermark < end
        course = Course(active, is_pending, end, frozenset(leading), frozenset(stops))
        weight = self._led if active is not None else self._unled
        return [
            each
            if (by := weight(each, bodies, course)) == 1.0
            else EnabledEvent(each.event, each.message, each.due, by)
            for each in pending
        ]

    def _unled(self, pending: EnabledEvent, bodies: Mapping[int, Any], course: Course) -> float:
        event = pending.event
        match event.what:
            case EventKind.DELIVER if pending.message is not None:
                body = bodies.get(pending.message)
                return _RATHER if isinstance(body, _ELECTING) else _brings(body, course)
            case EventKind.TIME:
                return _RATHER if event.arg("ms") == 200 else _PATIENT
            case EventKind.START | EventKind.HEAL:
                return _BACK
            case EventKind.CRASH | EventKind.CUT | EventKind.DISK | EventKind.OPERATE | EventKind.PROBE:
                return _PATIENT
        return 1.0

    def _led(self, pending: EnabledEvent, bodies: Mapping[int, Any], course: Course) -> float:
        event = pending.event
        match event.what:
            case EventKind.DELIVER if pending.message is not None:
                return _brings(bodies.get(pending.message), course)
            case EventKind.START | EventKind.HEAL:
                return _BACK
            case EventKind.SYNC if event.name == REPLICATE:
                return _RATHER if course.pending else _PATIENT
            case EventKind.SYNC if event.name == PRODUCE:
                return _RATHER
            case EventKind.CRASH if event.name == STOP:
                return _RATHER
            case EventKind.PROBE:
                return _PROBED if self._probed.get(event) != course.end and event.node == course.active else _AGAIN
            case EventKind.OPERATE | EventKind.CRASH | EventKind.CUT if event.node == course.active:
                return _AMID if course.pending else _STEADY
            case EventKind.OPERATE:
                return _LEADING if event.node in course.leading else _STEADY
            case EventKind.TIMER if event.node in course.stopping:
                return _BACK
        return 1.0


def _brings(body: Any, course: Course) -> float:
    """How likely a message arrives."""
    if isinstance(body, QuorumFetchResponse):
        return _RATHER if body.records or body.snapshot is not None else _IDLE * 2
    if isinstance(body, QuorumFetchRequest):
        return _IDLE if body.fetch_offset == course.end and not course.pending else 1.0
    if isinstance(body, _ASKING):
        return _RATHER
    if isinstance(body, BrokerHeartbeatRequest):
        return 2.0
    if isinstance(body, ReplicaRequest | FetchResponse):
        return 0.5
    return 1.0
