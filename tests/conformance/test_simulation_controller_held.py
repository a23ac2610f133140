"""What controllers and leaders tell is held to what they know: planted faults are found, and sound answers pass."""

from __future__ import annotations

import pytest
from fencepost.conformance.mutants.patched import Patch
from fencepost.conformance.protocols.controller.members import Members
from fencepost.conformance.protocols.controller.metadata_log import WrongState
from fencepost.conformance.protocols.controller.plan import PLAN
from fencepost.conformance.protocols.controller.system import FreeControllers
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.conformance.simulation.shrink import repeat
from fencepost.impl.wire.controller import AlterPartitionRequest, IsrMember, ReplicaRequest
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    BROKER_PRINCIPAL,
    NO_TOPIC_ID,
    Envelope,
    FetchRequest,
    FetchResponse,
    OffsetsForLeaderEpochRequest,
    TopicPartition,
)

from .freely import Freely

CLUSTER = Freely("controller", FreeControllers)
LATER = Event(EventKind.TIME, args=(("ms", 200),))
FIRST = TopicPartition("first", 0)


def test_a_broker_that_stops_as_late_as_the_log_grows_is_found() -> None:
    """It waits for what the others lacked when it was first told to, and for no more."""
    anew = Patch(
        "kraft/heartbeats.py", " and session.shutdown_offset == UNKNOWN:\n        session", ":\n        session"
    )
    found = CLUSTER.first_divergence(PLAN.free, SimulationPlan(runs=60), anew)
    assert found is not None and "may not stop yet, though brokers" in found.headline


def test_a_repeat_is_answered_after_what_was_asked_first() -> None:
    """Who has asked twice crashes in between: what was decided first is answered first, though it is owed no more."""
    events = [
        *[LATER] * 3,
        Event(EventKind.PEACE),
        Event(EventKind.CALL, "create-topic", 2, args=(("partition", 1), ("first", 1))),
        Event(EventKind.TIMER, "due", 3),
        Event(EventKind.REPEAT, "ControllerHeartbeat", 2, 3),
        Event(EventKind.CALL, "delete-topic", 2, args=(("partition", 1),)),
        Event(EventKind.CRASH, "", 3, args=(("seed", 2),)),
        Event(EventKind.PEACE),
    ]
    system = FreeControllers()
    assert repeat(system, CLUSTER.ways(PLAN.free[1]), 1388034, events).divergence is None
    system.close()


def test_what_a_topic_forbids_all_brokers_may_allow() -> None:
    """``unclean.leader.election.enable``: that of the topic comes first."""
    either = Patch(
        "metadata/image.py",
        "            if value is not None:\n                return value",
        '            if value == "true":\n                return value',
    )
    assert CLUSTER.first_divergence(PLAN.free, SimulationPlan(runs=30, seed=5), either) is not None


def sent(body: object, by: int, to: int, number: int = 1) -> Envelope:
    return Envelope(by, to, number, body, BROKER_PRINCIPAL)  # type: ignore[arg-type]


def proposed(epoch: int) -> Envelope:
    isr = (IsrMember(0, 10), IsrMember(1, epoch))
    return sent(AlterPartitionRequest(0, 10, NO_TOPIC_ID, FIRST, 3, isr, 7), 0, 3, 9)


def fetched(members: Members, epoch: int, error: ErrorCode = ErrorCode.NONE) -> None:
    members.sent(sent(ReplicaRequest(epoch, FetchRequest(1, FIRST, 0, 100, 3)), 1, 0, epoch))
    members.sent(sent(FetchResponse(error), 0, 1, epoch))


def test_a_leader_names_the_process_whose_fetch_it_has_served() -> None:
    members = Members()
    fetched(members, 11)
    members.event()
    members.sent(proposed(11))
    members.sent(proposed(-1))  # it has forgotten it, and asks for whichever process there is
    # The next process asks, and is refused: it has nothing that counts.
    members.sent(sent(ReplicaRequest(20, OffsetsForLeaderEpochRequest(1, FIRST, 3, 2)), 1, 0, 20))
    fetched(members, 20, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    with pytest.raises(WrongState, match="names the process of epoch 20 of broker 1"):
        members.sent(proposed(20))
    fetched(members, 20)
    members.sent(proposed(20))
    members.sent(proposed(11))  # in the midst of that fetch
    members.event()
    with pytest.raises(WrongState, match="names the process of epoch 11"):
        members.sent(proposed(11))
    other = Members()
    with pytest.raises(WrongState, match="has served fetches of none"):
        other.sent(proposed(11))
