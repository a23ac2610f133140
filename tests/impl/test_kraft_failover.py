"""Controllers of KIP-631 that take over from one another, that others do not reach, and that shut down."""

from __future__ import annotations

from dataclasses import replace

from fencepost.impl.log import LogConfig, Record
from fencepost.impl.metadata import changes, encode
from fencepost.impl.wire.controller import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    Envelope,
)

from .kraft_cluster import T0, held, produce, settled, state, topics
from .kraft_rack import BROKERS, CONTROLLER, CONTROLLERS, QUORUM

# -- controllers ------------------------------------------------------------------------------------------------------


def test_whoever_is_not_active_says_so() -> None:
    rack = settled()
    active = rack.active
    assert active is not None
    for node in (*CONTROLLERS, *BROKERS):
        number = rack.client.ask(node, DeleteTopicsRequest("x"))
        rack.run(30)
        error = rack.client.answers[number].error
        there = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if node == active.address else ErrorCode.NOT_CONTROLLER
        assert error is there


def test_a_malformed_request_is_answered_and_a_stranger_is_refused() -> None:
    rack = settled()
    active = rack.active
    assert active is not None
    number = rack.client.ask(active.address, DeleteTopicsRequest(7))  # type: ignore[arg-type]
    rack.run(30)
    assert rack.client.answers[number].error is ErrorCode.INVALID_REQUEST
    end = active.quorum.replica.end
    active.receive(Envelope(rack.client.address, active.address, 10**6, CreateTopicsRequest("t"), "User:eve"))
    assert active.quorum.replica.end == end
    rack.client._asked[10**6] = None
    rack.run(30)
    assert rack.client.answers[10**6].error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_pending_changes_are_answered_late_and_gone_after_a_failover() -> None:
    rack = settled()
    topics(rack, "t")
    active = rack.active
    assert active is not None
    others = [each for each in CONTROLLERS if each != active.address]
    for other in others:
        rack.net.cut(active.address, other)
    for broker in BROKERS:
        rack.net.cut(active.address, broker)
    number = rack.client.ask(active.address, CreateTopicsRequest("lost"))
    again = rack.client.ask(active.address, CreateTopicsRequest("lost"))
    rack.run(100)
    assert active.active is not None and "lost" in active.active.image.names
    assert "lost" not in active.machine.image.names
    # Not even that it is there already is said before it is stable.
    assert number not in rack.client.answers and again not in rack.client.answers
    rack.until(lambda: any(rack.controllers[other].active is not None for other in others))
    other = rack.active
    assert other is not None and other is not active
    made = rack.client.ask(other.address, CreateTopicsRequest("kept"))
    rack.until(lambda: made in rack.client.answers)
    rack.net.heal()
    rack.until(lambda: active.active is None and rack.even())
    assert rack.client.answers[number].error is ErrorCode.NOT_CONTROLLER
    assert rack.client.answers[again].error is ErrorCode.NOT_CONTROLLER
    assert set(rack.ledger.image.names) == {"t", "kept"}
    active.quorum.fire(("election",))  # it is elected again, with the committed image
    rack.net.refresh()
    rack.until(lambda: active.active is not None)
    assert active.active is not None and set(active.active.image.names) == {"t", "kept"}
    topics(rack, "lost")


def test_a_resigned_controller_is_not_active_and_what_it_has_promised_holds() -> None:
    rack = settled()
    for number in range(4):
        topics(rack, f"t{number}")
        active = rack.active
        assert active is not None
        active.quorum.resign()
        rack.net.refresh()
        rack.run(5)
        assert active.active is None
        rack.until(lambda: rack.active is not None)
    assert set(rack.ledger.image.names) == {"t0", "t1", "t2", "t3"}
    rack.until(rack.even)


def test_a_new_active_controller_gives_every_broker_a_whole_session() -> None:
    rack = settled()
    active = rack.active
    assert active is not None
    rack.stop(1)
    rack.run(CONTROLLER.session_timeout_ms - 150)
    assert rack.unfenced(1)
    rack.stop(active.address)
    rack.until(lambda: rack.active is not None)
    at = rack.clock.now()
    rack.until(lambda: not rack.ledger.image.alive(1))
    assert rack.clock.now() - at >= CONTROLLER.session_timeout_ms - 50


def test_what_does_not_fit_into_one_batch() -> None:
    """A request is taken as a whole or not at all; the records that fence a broker may become stable part by part."""
    small = replace(QUORUM, log=LogConfig(segment_bytes=20_000, index_interval_bytes=500, max_message_bytes=700))
    rack = settled(quorum=small, controller=replace(CONTROLLER, fence_by_event=False))
    assert rack.ask(CreateTopicsRequest("t", 20, 3)).error is ErrorCode.INVALID_REQUEST
    assert not rack.ledger.image.topics
    topics(rack, *"abcdefghijkl", replicas=3)
    rack.stop(0)
    rack.until(lambda: not rack.ledger.image.alive(0))
    assert all(0 not in each.isr for each in rack.ledger.image.partitions.values())
    rack.until(rack.even)


def test_a_log_of_another_format_is_not_written_to() -> None:
    rack = settled()
    active = rack.active
    assert active is not None and active.active is not None
    record = changes.feature("metadata.format", 1)
    active.active.replay((record,))
    active.quorum.append([Record(encode(record), None, 0)])
    rack.net.refresh()
    rack.run(200)
    active.quorum.resign()
    rack.net.refresh()
    rack.run(2_000)
    assert rack.active is None
    leader = next(each for each in rack.controllers.values() if each.quorum.is_leader)
    assert leader.refusal == "metadata.format is at level 1, and this software writes the records of level 2"


# -- shutting down ----------------------------------------------------------------------------------------------------


def test_a_controlled_shutdown_loses_no_record_and_no_time() -> None:
    rack = settled()
    topics(rack, "t", partitions=3)
    produce(rack, [b"a"])
    leader = state(rack).leader
    broker = rack.brokers[leader]
    broker.lifecycle.want_shut_down = True
    rack.until(lambda: broker.lifecycle.may_shut_down)
    assert not rack.ledger.image.leads(leader) and not rack.ledger.image.alive(leader)
    others = [each for each in rack.brokers.values() if each is not broker]
    assert all(each.broker.partitions[T0].leader_epoch == state(rack).leader_epoch for each in others)
    broker.close()
    rack.stop(leader)
    produce(rack, [b"b"])
    rack.start(leader)
    rack.until(lambda: rack.unfenced() and leader in state(rack).isr)
    assert held(rack, leader) == [b"a", b"b"]


def test_closing_a_controller_makes_another_one_active() -> None:
    rack = settled()
    active = rack.active
    assert active is not None
    active.close()
    assert active.active is None and active.deadline() is None
    rack.stop(active.address)
    topics(rack, "t")
    rack.start(active.address)
    rack.until(rack.even)
