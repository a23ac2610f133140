"""What clients are owed: an answer in time, the error that helps, no record after one that was given up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fencepost.conformance.mutants.patched import Patch
from fencepost.conformance.protocols.fencing.negative_requests import body_of, refused_produce
from fencepost.conformance.protocols.fencing.plan import PLAN as FENCING
from fencepost.conformance.protocols.fencing.system import RunningCluster
from fencepost.conformance.protocols.snapshots.negative_requests import WrongAnswer, check_again
from fencepost.conformance.protocols.snapshots.plan import PLAN as SNAPSHOTS
from fencepost.conformance.protocols.snapshots.system import FreeQuorum
from fencepost.conformance.protocols.tiering.liveness import Owed, Unanswered
from fencepost.conformance.protocols.tiering.nodes import PARTITION
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import FIRST_CLIENT, Envelope, FetchRequest, FetchResponse
from fencepost.impl.wire.quorum import DeleteRecordsResponse

from .freely import Freely

SYSTEMS: dict[str, tuple[Freely, Sequence[str]]] = {
    "fencing": (Freely("fencing", RunningCluster, RunningCluster.implemented), FENCING.free),
    "snapshots": (Freely("snapshots", FreeQuorum, FreeQuorum.implemented), SNAPSHOTS.free),
}
FAULTS = {
    "a producer goes on behind a record that it has given up": (
        "fencing",
        (
            Patch(
                "producer/batches.py",
                "        self.failed = error\n        over",
                "        self.failed = None if error.retriable else error\n        over",
            ),
        ),
        "has given a record up, and takes the next one",
        21,
    ),
    "a producer writes a transaction's marker": (
        "fencing",
        (
            Patch(
                "replica/leader.py", " or batch.producer_id < -1 or batch.is_control:", " or batch.producer_id < -1:"
            ),
            Patch("log/log.py", "if batch.magic != 2 or batch.is_control or deltas", "if batch.magic != 2 or deltas"),
        ),
        "a produce that nobody may take has changed the log",
        0,
    ),
    "who wants the log to begin beyond every snapshot is to ask again": (
        "snapshots",
        (
            Patch(
                "quorum/leader.py",
                "        if target > replica.snapshots.latest_end:\n",
                "        if not self.may_begin_at(target):\n            return ErrorCode.REQUEST_TIMED_OUT\n"
                "        if target > replica.snapshots.latest_end:\n",
            ),
        ),
        "is to ask again, and no snapshot reaches",
        0,
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", FAULTS)
def test_it_is_found(what: str) -> None:
    protocol, patches, word, seed = FAULTS[what]
    system, portfolio = SYSTEMS[protocol]
    found = system.first_divergence(portfolio, SimulationPlan(runs=60, seed=seed), *patches)
    assert found is not None and word in found.headline, found


def test_who_asks_for_what_is_remote_is_answered_in_time() -> None:
    leads: dict[int, object] = {0: object(), 1: object()}
    owed = Owed(lambda node, _partition: leads.get(node))
    owed.arrives(Envelope(FIRST_CLIENT, 0, 7, FetchRequest(-1, PARTITION, 0, 1, -1)), 100)
    owed.check_in_time(0, 520, 420)
    owed.check_in_time(1, 900, 420)
    with pytest.raises(Unanswered, match="has not answered the Fetch of a client for 421 ms"):
        owed.check_in_time(0, 521, 420)
    leads[0] = object()  # another leader epoch: who asked the former one gives up by itself
    owed.check_in_time(0, 900, 420)
    owed.arrives(Envelope(FIRST_CLIENT, 0, 8, FetchRequest(-1, PARTITION, 0, 1, -1)), 100)
    owed.was_sent(Envelope(0, FIRST_CLIENT, 8, FetchResponse(ErrorCode.NONE)))
    owed.check_in_time(0, 900, 420)


def test_to_ask_again_is_for_what_may_be_served_then() -> None:
    again, refused = (
        DeleteRecordsResponse(error, 1, 0, 0) for error in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.OFFSET_OUT_OF_RANGE)
    )
    check_again(again, 3, 3)
    check_again(refused, 4, 3)
    with pytest.raises(WrongAnswer, match="to begin at 4 is to ask again"):
        check_again(again, 4, 3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("crc", ErrorCode.CORRUPT_MESSAGE),
        ("acks", ErrorCode.INVALID_REQUIRED_ACKS),
        ("empty", ErrorCode.INVALID_REQUEST),
        *(
            (each, ErrorCode.INVALID_RECORD)
            for each in ("control", "twice", "old", "counted wrong", "half numbered", "below")
        ),
    ],
)
def test_what_a_producer_may_get_wrong_has_its_error(wrong: str, error: ErrorCode) -> None:
    _, body, _ = body_of(Event(EventKind.PROBE, "produce", args=(("to", 0), ("wrong", wrong))), PARTITION, 3)
    assert refused_produce(body) is error
