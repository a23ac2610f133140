"""High watermark and ISR: who counts, who joins, who leaves, and what an answer of the controller changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    CONTROLLER,
    AlterIsrRequest,
    AlterIsrResponse,
    Envelope,
    FetchRequest,
    OfflineReplicasRequest,
)

from .brokers import TP, Cluster

LAG = 100


def acknowledge(cluster: Cluster, replica: int, offset: int, epoch: int = 0) -> ErrorCode:
    """A fetch that says that the replica has everything below ``offset``."""
    error: ErrorCode = cluster.ask(0, FetchRequest(replica, TP, offset, 1, epoch)).error
    return error


def led(isr: tuple[int, ...] = (0, 1, 2), epoch: int = 0) -> Cluster:
    """Replica 0 leads and has three records, acknowledged by nobody."""
    cluster = Cluster()
    cluster.tell(0, cluster.request(0, epoch, isr))
    for value in b"abc":
        cluster.produce(0, bytes([value]))
    return cluster


def look(cluster: Cluster) -> AlterIsrRequest | None:
    """Let the leader look at its ISR; what it asks of the controller."""
    cluster.brokers[0].fire(("isr", TP))
    found = cluster.network.in_flight(source=0, destination=CONTROLLER)
    if not found:
        return None
    body: Any = found[-1].envelope.body
    return body


def mark(cluster: Cluster, offline: set[int], partition_epoch: int, epoch: int = 0) -> ErrorCode:
    """The controller's marks."""
    body = OfflineReplicasRequest(1, TP, frozenset(offline), epoch, partition_epoch)
    error: ErrorCode = cluster.ask(0, body).error
    return error


def answer(cluster: Cluster, error: ErrorCode = ErrorCode.NONE, **fields: Any) -> None:
    """The controller's answer to what the leader has just asked."""
    flight = cluster.network.in_flight(source=0, destination=CONTROLLER)[-1]
    cluster.network.drop(flight)
    body: Any = flight.envelope.body
    taken: dict[str, Any] = {
        "leader": 0,
        "leader_epoch": body.leader_epoch,
        "isr": body.new_isr,
        "partition_epoch": body.partition_epoch + 1,
    }
    if error is not ErrorCode.NONE:
        taken = {**taken, "isr": cluster.state(0).isr, "partition_epoch": body.partition_epoch}
    response = AlterIsrResponse(error, TP, **{**taken, **fields})
    cluster.brokers[0].receive(Envelope(CONTROLLER, 0, flight.envelope.correlation, response))


def test_who_has_not_dropped_what_it_could_not_compare_does_not_join() -> None:
    """Below the leader's log start nothing says whether a follower's records were ever committed (TH1)."""
    cluster = Cluster(2)
    cluster.tell(1, cluster.request(1, 0, [0, 1]))
    cluster.produce(1, b"x")
    cluster.produce(1, b"y")
    assert cluster.state(1).high_watermark == 0
    cluster.tell(0, cluster.request(0, 1, [0]))
    cluster.produce(0, b"a")
    cluster.produce(0, b"b")
    assert cluster.state(0).high_watermark == 2
    cluster.brokers[0].partitions[TP].log.delete_before(2)
    cluster.tell(1, cluster.request(0, 1, [0]))
    cluster.truncate(1)
    assert cluster.values(1) == b"xy"
    cluster.brokers[1].fire(("fetch", TP))
    cluster.network.deliver(cluster.sent(1))
    assert cluster.state(0).progress == ((1, 2),) and look(cluster) is None
    # With the answer it hears where its leader's log begins, and its next fetch says that its own begins there, too.
    cluster.network.deliver(cluster.sent(0))
    assert cluster.state(1).log_start == 2
    cluster.exchange(1)
    asked = look(cluster)
    assert asked is not None and asked.new_isr == {0, 1}


# -- the high watermark -----------------------------------------------------------------------------------------------


def test_it_is_what_every_member_has_acknowledged() -> None:
    cluster = led()
    seen = []
    for replica, offset in ((1, 3), (2, 1), (2, 2), (1, 3), (2, 3)):
        assert acknowledge(cluster, replica, offset) is ErrorCode.NONE
        seen.append(cluster.state(0).high_watermark)
    assert seen == [0, 1, 2, 2, 3]


def test_who_is_outside_of_the_isr_does_not_count() -> None:
    cluster = led((0, 1))
    acknowledge(cluster, 2, 3)
    assert cluster.state(0).high_watermark == 0
    acknowledge(cluster, 1, 2)
    assert cluster.state(0).high_watermark == 2


def test_it_never_falls() -> None:
    cluster = led((0, 1))
    acknowledge(cluster, 1, 3)
    acknowledge(cluster, 1, 1)  # a fetch that was long on its way
    assert cluster.state(0).high_watermark == 3 and cluster.state(0).progress[0] == (1, 1)
    cluster.tell(0, cluster.request(0, 1, [0, 1, 2]))
    assert cluster.state(0).high_watermark == 3


def test_progress_of_another_epoch_does_not_count() -> None:
    """KIP-320, "Replica Handling": leader and follower must be in the same epoch for the replication to be right."""
    cluster = led((0, 1), epoch=1)
    assert acknowledge(cluster, 1, 3, epoch=0) is ErrorCode.FENCED_REPLICA
    assert acknowledge(cluster, 1, 3, epoch=2) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert cluster.state(0).high_watermark == 0
    assert acknowledge(cluster, 1, 3, epoch=1) is ErrorCode.NONE
    assert cluster.state(0).high_watermark == 3
    cluster.produce(0, b"d")
    cluster.tell(0, cluster.request(0, 2, [0, 1]))
    assert cluster.state(0).progress == ((1, -1), (2, -1)) and cluster.state(0).high_watermark == 3


def test_the_leader_counts_itself_only_for_what_it_has_synced() -> None:
    cluster = Cluster()
    cluster.tell(0, cluster.request(0, 0, [0, 1]))
    cluster.produce(0, b"a", acks=0)
    assert cluster.state(0).synced == 0
    failures = []

    def hook(operation: str, path: str) -> None:
        failures.append((operation, path, cluster.state(0).high_watermark))

    cluster.disks[0].hook = hook
    acknowledge(cluster, 1, 1)
    assert ("fsync", "orders-0/00000000000000000000.log", 0) in failures
    assert cluster.state(0).synced == 1 and cluster.state(0).high_watermark == 1


def test_a_follower_syncs_before_it_acknowledges() -> None:
    cluster = led((0, 1))
    cluster.tell(1, cluster.request(0, 0))
    cluster.truncate(1)
    cluster.exchange(1)
    assert (cluster.state(1).end, cluster.state(1).synced) == (1, 0)
    cluster.brokers[1].fire(("fetch", TP))
    assert (cluster.state(1).end, cluster.state(1).synced) == (1, 1)


def test_a_leader_alone_needs_nobody() -> None:
    cluster = Cluster()
    cluster.tell(0, cluster.request(0, 0, [0]))
    assert cluster.produce(0, b"a", acks=-1).error is ErrorCode.NONE
    assert cluster.state(0).high_watermark == cluster.state(0).synced == 1
    cluster.produce(0, b"b", acks=0)
    assert cluster.state(0).high_watermark == cluster.state(0).synced == 2


# -- leaving ----------------------------------------------------------------------------------------------------------


def test_who_lags_for_too_long_leaves() -> None:
    cluster = led()
    acknowledge(cluster, 1, 3)
    acknowledge(cluster, 2, 2)
    cluster.network.clock.advance(LAG - 1)
    assert look(cluster) is None
    cluster.network.clock.advance(1)
    assert look(cluster) == AlterIsrRequest(0, TP, 0, frozenset({0, 1}), 0)
    state = cluster.state(0)
    assert state.isr == {0, 1, 2} and state.high_watermark == 2, "until the answer, the old ISR counts"
    answer(cluster)
    state = cluster.state(0)
    assert (state.isr, state.partition_epoch, state.high_watermark) == (frozenset({0, 1}), 1, 3)


def test_who_is_at_the_end_stays_however_long_ago_it_fetched() -> None:
    cluster = led()
    acknowledge(cluster, 1, 3)
    acknowledge(cluster, 2, 3)
    cluster.network.clock.advance(10 * LAG)
    assert look(cluster) is None


def test_who_keeps_up_with_a_growing_log_stays() -> None:
    """It is never at the end, but always where the end was at its last fetch."""
    cluster = led((0, 1))
    for _ in range(7):
        end = cluster.state(0).end
        cluster.produce(0, b"x")
        cluster.network.clock.advance(LAG // 2)
        acknowledge(cluster, 1, end)
        assert look(cluster) is None, end
    cluster.network.clock.advance(LAG)
    found = look(cluster)
    assert found is not None and found.new_isr == {0}


def test_who_fetches_in_another_epoch_leaves() -> None:
    cluster = led((0, 1), epoch=1)
    for _ in range(4):
        acknowledge(cluster, 1, 3, epoch=0)
        cluster.network.clock.advance(LAG // 2)
    found = look(cluster)
    assert found is not None and found.new_isr == {0}


# -- joining ----------------------------------------------------------------------------------------------------------


def test_who_reaches_the_high_watermark_joins() -> None:
    cluster = led((0, 1))
    acknowledge(cluster, 1, 2)
    acknowledge(cluster, 2, 1)
    assert look(cluster) is None
    acknowledge(cluster, 2, 2)
    assert look(cluster) == AlterIsrRequest(0, TP, 0, frozenset({0, 1, 2}), 0)
    assert cluster.state(0).maximal_isr == {0, 1, 2} and cluster.state(0).isr == {0, 1}
    acknowledge(cluster, 1, 3)
    assert cluster.state(0).high_watermark == 2, "it may be in the ISR by now"
    answer(cluster)
    assert cluster.state(0).isr == {0, 1, 2} and cluster.state(0).partition_epoch == 1
    acknowledge(cluster, 2, 3)
    assert cluster.state(0).high_watermark == 3


def test_nobody_joins_before_the_high_watermark_has_reached_the_epoch() -> None:
    """KAFKA-7128: until then the leader does not know what its predecessor has committed."""
    cluster = led((0, 1))
    cluster.elect(0, 1, [0, 1])
    acknowledge(cluster, 2, 3, epoch=1)
    acknowledge(cluster, 1, 2, epoch=1)
    assert cluster.state(0).high_watermark == 2 and look(cluster) is None
    acknowledge(cluster, 1, 3, epoch=1)
    found = look(cluster)
    assert found is not None and found.new_isr == {0, 1, 2}


def test_who_is_marked_offline_does_not_join() -> None:
    """KIP-320, "Leader Fetch Handling"."""
    cluster = Cluster()
    cluster.tell(0, cluster.request(0, 0, [0], offline=frozenset({1})))
    acknowledge(cluster, 1, 0)
    acknowledge(cluster, 2, 0)
    assert mark(cluster, {1, 2}, 1) is ErrorCode.NONE
    assert look(cluster) is None
    assert mark(cluster, {1}, 2) is ErrorCode.NONE
    found = look(cluster)
    assert found is not None and found.new_isr == {0, 2}


def test_marks_that_were_overtaken_do_not_undo_later_ones() -> None:
    cluster = led((0,), epoch=1)
    assert mark(cluster, {1}, 12, epoch=1) is ErrorCode.NONE
    assert mark(cluster, {2}, 11, epoch=1) is ErrorCode.NONE
    assert mark(cluster, {2}, 19, epoch=0) is ErrorCode.NONE, "of an epoch that is over"
    assert cluster.state(0).offline == {1}
    assert cluster.tell(0, cluster.request(0, 1, [0], partition_epoch=11)) is ErrorCode.NONE
    assert cluster.state(0).offline == {1}
    assert mark(cluster, {2}, 22, epoch=2) is ErrorCode.UNKNOWN_LEADER_EPOCH, "it is to be told again"
    cluster.tell(0, cluster.request(0, 2, [0], offline=frozenset({1, 2})))
    assert cluster.state(0).offline == {1, 2}


def test_marks_that_come_with_an_isr_that_is_known_already_count() -> None:
    """The answer to an AlterIsr told of it, and says nothing of marks: who is back online would never join again."""
    cluster = Cluster()
    cluster.tell(0, cluster.request(0, 0, [0], offline=frozenset({2})))
    acknowledge(cluster, 1, 0)
    acknowledge(cluster, 2, 0)
    found = look(cluster)
    assert found is not None and found.new_isr == {0, 1}
    answer(cluster, isr=found.new_isr, partition_epoch=2)
    assert look(cluster) is None
    assert cluster.tell(0, cluster.request(0, 0, [0, 1], partition_epoch=2)) is ErrorCode.NONE
    found = look(cluster)
    assert found is not None and found.new_isr == {0, 1, 2}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"offline": None}, ErrorCode.INVALID_REQUEST),
        ({"controller_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"controller_epoch": 0}, ErrorCode.STALE_CONTROLLER_EPOCH),
        ({"leader_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"partition_epoch": None}, ErrorCode.INVALID_REQUEST),
        ({"partition": TP._replace(partition=9)}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": TP._replace(topic="/")}, ErrorCode.INVALID_REQUEST),
    ],
    ids=str,
)
def test_bad_marks_change_nothing(changes: dict[str, Any], error: ErrorCode) -> None:
    cluster = led((0,))
    before = cluster.snapshot(0)
    assert cluster.ask(0, replace(OfflineReplicasRequest(1, TP, frozenset({1}), 0, 5), **changes)).error is error
    assert cluster.snapshot(0) == before


def test_who_has_stopped_fetching_does_not_join() -> None:
    cluster = led((0,))
    acknowledge(cluster, 1, 3)
    cluster.network.clock.advance(LAG + 1)
    assert look(cluster) is None
    acknowledge(cluster, 1, 3)
    assert look(cluster) is not None


def test_one_leaves_and_another_joins_in_one_request() -> None:
    cluster = led((0, 1))
    cluster.network.clock.advance(LAG)
    acknowledge(cluster, 2, 1)
    found = look(cluster)
    assert found is not None and found.new_isr == {0, 2}
    assert cluster.state(0).maximal_isr == {0, 1, 2}


# -- the controller's answers -----------------------------------------------------------------------------------------


def test_one_request_at_a_time_and_again_when_it_is_lost() -> None:
    cluster = led((0,))
    acknowledge(cluster, 1, 3)
    assert look(cluster) is not None
    acknowledge(cluster, 2, 3)
    assert look(cluster) is not None
    first = cluster.network.in_flight(source=0, destination=CONTROLLER)
    assert len(first) == 1
    cluster.network.drop(first[0])
    assert look(cluster) is None
    cluster.network.clock.advance(cluster.config.request_timeout_ms)
    acknowledge(cluster, 1, 3)
    acknowledge(cluster, 2, 3)
    found = look(cluster)
    assert found is not None and found.new_isr == {0, 1, 2}


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.INVALID_REQUEST,
    ],
)
def test_a_refusal_leaves_the_isr_and_frees_nobody(error: ErrorCode) -> None:
    """A copy of the refused request may still be taken up, so whoever was to join goes on counting."""
    cluster = led((0,))
    acknowledge(cluster, 1, 3)
    look(cluster)
    answer(cluster, error)
    state = cluster.state(0)
    assert state.isr == {0} and state.partition_epoch == 0 and state.maximal_isr == {0, 1}
    cluster.produce(0, b"d")
    assert cluster.state(0).high_watermark == 3
    assert look(cluster) is not None
    assert cluster.tell(0, cluster.request(0, 1, [0])) is ErrorCode.NONE
    assert cluster.state(0).high_watermark == 4


def test_a_fenced_leader_proposes_nothing_until_it_is_told_who_leads() -> None:
    """Nor does it forget its proposal: the controller may have taken it up, and have whoever was proposed lead by now.

    A record that replica 1 lacks would be acknowledged otherwise, and cut off by it in epoch 1.
    """
    cluster = led((0,))
    acknowledge(cluster, 1, 3)
    look(cluster)
    cluster.produce(0, b"d")
    assert cluster.state(0).high_watermark == 3
    answer(cluster, ErrorCode.FENCED_REPLICA)
    state = cluster.state(0)
    assert (state.isr, state.maximal_isr, state.high_watermark) == ({0}, {0, 1}, 3)
    acknowledge(cluster, 1, 4)
    assert cluster.state(0).high_watermark == 4
    assert look(cluster) is None
    assert cluster.tell(0, cluster.request(0, 1, [0])) is ErrorCode.NONE
    acknowledge(cluster, 1, 4, epoch=1)
    assert look(cluster) is not None


def test_an_open_proposal_is_closed_by_asking_for_the_isr_that_holds() -> None:
    cluster = led((0,))
    acknowledge(cluster, 1, 3)
    look(cluster)
    answer(cluster, ErrorCode.INELIGIBLE_REPLICA)
    cluster.produce(0, b"d")
    cluster.ask(0, OfflineReplicasRequest(1, TP, frozenset({1}), 0, 1))
    assert look(cluster) == AlterIsrRequest(0, TP, 0, frozenset({0}), 0)
    assert cluster.state(0).high_watermark == 3
    answer(cluster)
    assert cluster.state(0).high_watermark == 4 and cluster.state(0).maximal_isr == {0}
    assert look(cluster) is None


def test_who_was_left_out_by_a_lost_proposal_is_asked_for_again() -> None:
    """The controller may have taken it up: then the leader alone would believe that the ISR is whole."""
    cluster = led((0, 1))
    cluster.network.clock.advance(LAG)
    found = look(cluster)
    assert found is not None and found.new_isr == {0}
    cluster.network.drop(cluster.network.in_flight(source=0, destination=CONTROLLER)[0])
    acknowledge(cluster, 1, 3)
    cluster.network.clock.advance(cluster.config.request_timeout_ms)
    acknowledge(cluster, 1, 3)
    assert look(cluster) == AlterIsrRequest(0, TP, 0, frozenset({0, 1}), 0)
    answer(cluster)
    assert look(cluster) is None


def test_a_refusal_that_tells_of_a_later_isr_is_taken_up() -> None:
    """The answer to the request before was lost, and the controller has taken it up."""
    cluster = led((0,))
    acknowledge(cluster, 1, 3)
    look(cluster)
    answer(cluster, ErrorCode.INVALID_UPDATE_VERSION, isr=frozenset({0, 1}), partition_epoch=1)
    assert cluster.state(0).isr == {0, 1} and cluster.state(0).partition_epoch == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"leader_epoch": 1},
        {"leader": 2},
        {"partition_epoch": 0},
        {"isr": [0, 1]},
        {"isr": None},
        {"partition_epoch": None},
    ],
    ids=str,
)
def test_an_answer_that_is_not_of_this_leadership_is_not_taken_up(fields: dict[str, Any]) -> None:
    cluster = led((0,))
    acknowledge(cluster, 1, 3)
    look(cluster)
    answer(cluster, **fields)
    state = cluster.state(0)
    assert state.isr == {0} and state.partition_epoch == 0 and state.maximal_isr == {0, 1}


def test_a_late_answer_is_ignored() -> None:
    cluster = led((0,))
    acknowledge(cluster, 1, 3)
    look(cluster)
    flight = cluster.network.in_flight(source=0, destination=CONTROLLER)[-1]
    body = AlterIsrResponse(ErrorCode.NONE, TP, 0, 0, frozenset({0, 1}), 1)
    cluster.tell(0, cluster.request(0, 1, [0]))
    before = cluster.snapshot(0)
    cluster.brokers[0].receive(Envelope(CONTROLLER, 0, flight.envelope.correlation, body))
    assert cluster.snapshot(0) == before
