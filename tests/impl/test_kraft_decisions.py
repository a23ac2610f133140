"""What the active controller decides of each request: the records, the answer, and each way to be refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from fencepost.impl.kraft.active import ActiveController, refused
from fencepost.impl.kraft.config import ControllerConfig, LifecycleConfig
from fencepost.impl.kraft.decision import Decision
from fencepost.impl.kraft.topics import topic_id
from fencepost.impl.kraft.validate import is_well_formed
from fencepost.impl.metadata import changes
from fencepost.impl.metadata.image import UNCLEAN_ELECTION, Image, PartitionKey
from fencepost.impl.wire.controller import (
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ConfigChange,
    ControllerHeartbeatRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    Endpoint,
    IncrementalAlterConfigsRequest,
    IsrMember,
    ResourceType,
)
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import TopicPartition

from .metadata_images import KEY, TOPIC, cluster, registered, state

E = ErrorCode
TP = TopicPartition("t", 0)
TIMEOUT = 100
CONFIG = ControllerConfig(session_timeout_ms=TIMEOUT)
ENDS = (Endpoint("PLAINTEXT", "b", 9092),)


class Desk:
    """An active controller at an image, whose decisions are taken up."""

    def __init__(self, image: Image, config: ControllerConfig = CONFIG, now: int = 0) -> None:
        self.active = ActiveController(config, image, cluster_id="c", voters=(100, 101, 102), epoch=3, now=now)
        self.end = 1_000

    @property
    def image(self) -> Image:
        return self.active.image

    def decide(self, body: Any, now: int = 0) -> Decision:
        assert is_well_formed(body), body
        before = self.image.fork()
        decision = self.active.decide(body, end=self.end, stable=self.end, now=now)
        assert self.image == before, "a decision leaves the image as it is"
        self.active.replay(decision.records)
        self.end += len(decision.records)
        return decision

    def error(self, body: Any, now: int = 0) -> ErrorCode:
        """Of a request that is refused: nothing is written."""
        decision = self.decide(body, now)
        assert decision.records == ()
        answer: Any = decision.answer
        error: ErrorCode = answer.error
        return error

    def answer(self, body: Any, now: int = 0) -> Any:
        answer: Any = self.decide(body, now).answer
        assert answer.error is E.NONE, answer
        return answer

    def beat(self, broker: int, now: int = 0, offset: int = 5_000, **wants: bool) -> Any:
        epoch = self.image.brokers[broker].epoch
        return self.answer(BrokerHeartbeatRequest(broker, epoch, offset, 0, **wants), now)


def registration(broker: int, incarnation: int, cluster_id: str = "c") -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(broker, cluster_id, UUID(int=incarnation), ENDS, "r1")


# -- registration and sessions ----------------------------------------------------------------------------------------


def test_a_registration_has_the_offset_of_its_record_for_its_epoch() -> None:
    desk = Desk(Image())
    assert desk.answer(registration(5, 1)).broker_epoch == 1_000
    known = desk.image.brokers[5]
    assert (known.epoch, known.incarnation, known.endpoints, known.rack) == (1_000, UUID(int=1), ENDS, "r1")
    assert known.fenced and not desk.image.alive(5)
    # The answer was lost: the same process has the same epoch, and nothing is written.
    again = desk.decide(registration(5, 1))
    assert again.records == () and again.answer is not None and again.answer.broker_epoch == 1_000  # type: ignore[union-attr]
    assert desk.answer(registration(5, 2)).broker_epoch == 1_001, "the former was not unfenced yet"


def test_a_registration_of_another_cluster_or_while_the_former_process_lives() -> None:
    desk = Desk(cluster(state()))
    assert desk.error(registration(5, 1, "d")) is E.INCONSISTENT_CLUSTER_ID
    assert desk.error(registration(0, 77), TIMEOUT - 1) is E.DUPLICATE_BROKER_REGISTRATION
    desk.beat(0, TIMEOUT - 1)
    assert desk.error(registration(0, 77), TIMEOUT + 1) is E.DUPLICATE_BROKER_REGISTRATION


@pytest.mark.parametrize("by_event", [True, False])
def test_a_former_process_leaves_its_isrs_when_the_next_registers(by_event: bool) -> None:
    desk = Desk(cluster(state(), state((1, 2), 1)), replace(CONFIG, fence_by_event=by_event))
    answer = desk.answer(registration(0, 77), TIMEOUT)
    assert answer.broker_epoch == desk.end - 1 == 1_000 + (1 if by_event else 2)
    assert desk.image.partitions[KEY] == state((1, 2), 1, (6, 10))
    assert desk.image.brokers[0].fenced and desk.image.brokers[0].incarnation == UUID(int=77)


def test_a_session_is_over_after_the_time_out_and_not_before() -> None:
    desk = Desk(cluster(state()), now=50)
    assert desk.active.sessions.deadline(desk.image) == 50 + TIMEOUT
    desk.beat(1, 60)
    desk.beat(2, 61)
    assert desk.active.expire(50 + TIMEOUT - 1) is None
    decision = desk.active.expire(50 + TIMEOUT)
    assert decision is not None and decision.records == (changes.fence(0, 10),)
    desk.active.replay(decision.records)
    assert desk.active.expire(50 + TIMEOUT) is None
    assert desk.active.sessions.deadline(desk.image) == 60 + TIMEOUT
    # The one that was heard of first comes first.
    late = desk.active.expire(500)
    assert late is not None and late.records == (changes.fence(1, 11),)


# -- heartbeats -------------------------------------------------------------------------------------------------------


def test_a_heartbeat_of_nobody_and_of_a_former_process() -> None:
    desk = Desk(cluster(state()))
    assert desk.error(BrokerHeartbeatRequest(9, 1, 1)) is E.STALE_BROKER_EPOCH
    assert desk.error(BrokerHeartbeatRequest(0, 9, 1)) is E.STALE_BROKER_EPOCH


def test_a_broker_is_unfenced_once_it_has_its_own_registration() -> None:
    image = cluster(state((0,), -1), state((0, 1), 1))
    image.replay(changes.fence(0, 10))
    image.replay(registered(0, 20))
    desk = Desk(image)
    early = desk.beat(0, offset=19)
    assert not early.is_caught_up and early.is_fenced
    unwilling = desk.beat(0, offset=20, want_fence=True)
    assert unwilling.is_caught_up and unwilling.is_fenced
    decision = desk.decide(BrokerHeartbeatRequest(0, 20, 20))
    assert decision.records[0] == changes.unfence(0, 20)
    # It leads again what nobody could lead without it, and joins no ISR by that.
    assert desk.image.partitions[KEY].leader == 0 and desk.image.partitions[KEY].leader_epoch == 6
    assert desk.image.partitions[PartitionKey(TOPIC, 1)].isr == (1,)
    assert not desk.beat(0).is_fenced


def test_a_broker_may_ask_to_be_fenced() -> None:
    desk = Desk(cluster(state()))
    assert desk.beat(0, want_fence=True).is_fenced
    assert desk.image.partitions[KEY] == state((1, 2), 1, (6, 10))


def test_a_controlled_shutdown_waits_until_the_others_know() -> None:
    desk = Desk(cluster(state(), state((0,), 0)))
    for broker in (1, 2):
        desk.beat(broker, offset=900)
    asked = desk.decide(BrokerHeartbeatRequest(0, 10, 5_000, 0, want_shut_down=True))
    assert [each.type for each in asked.records] == [changes.ISR, changes.ISR, changes.BROKER]
    first: Any = asked.answer
    assert not first.should_shut_down and not first.is_fenced
    assert desk.image.brokers[0].shutting_down and not desk.image.leads(0)
    assert [(each.isr, each.leader) for each in desk.image.partitions.values()] == [((1, 2), 1), ((0,), -1)]
    assert not desk.beat(0, want_shut_down=True).should_shut_down
    desk.beat(1, offset=desk.end - 1)
    assert not desk.beat(0, want_shut_down=True).should_shut_down
    desk.beat(2, offset=desk.end - 1)
    last = desk.beat(0, want_shut_down=True)
    assert last.should_shut_down and last.is_fenced and desk.image.brokers[0].fenced


def test_a_broker_that_leads_nothing_or_is_fenced_may_stop_at_once() -> None:
    desk = Desk(cluster(state((1, 2), 1)))
    assert desk.beat(0, want_shut_down=True).should_shut_down and desk.image.brokers[0].fenced
    assert desk.beat(0, want_shut_down=True).should_shut_down
    assert desk.beat(1, want_fence=True, want_shut_down=True).should_shut_down


def test_a_late_heartbeat_does_not_bring_back_who_was_fenced_to_stop() -> None:
    """It was sent before the broker wanted to stop. The next process of that broker works as any other."""
    desk = Desk(cluster(state(), state((0,), 0)))
    desk.beat(0, want_shut_down=True)
    for broker in (1, 2):
        desk.beat(broker, offset=desk.end - 1)
    assert desk.beat(0, want_shut_down=True).should_shut_down
    late = desk.decide(BrokerHeartbeatRequest(0, 10, 5_000, 0))
    assert late.records == () and late.answer is not None and late.answer.is_fenced  # type: ignore[union-attr]
    assert [each.leader for each in desk.image.partitions.values()] == [1, -1]
    epoch = desk.answer(registration(0, 7), TIMEOUT).broker_epoch
    assert not desk.answer(BrokerHeartbeatRequest(0, epoch, epoch, 0), TIMEOUT).is_fenced
    assert [each.leader for each in desk.image.partitions.values()] == [1, 0]


def test_a_new_active_controller_lets_a_shutdown_go_on() -> None:
    former = Desk(cluster(state()))
    former.beat(0, want_shut_down=True)
    desk = Desk(former.image)
    assert not desk.beat(0, want_shut_down=True).should_shut_down
    for broker in (1, 2):
        desk.beat(broker, offset=desk.end)
    assert desk.beat(0, want_shut_down=True).should_shut_down


def test_a_standby_must_be_a_voter() -> None:
    assert Desk(Image()).error(ControllerHeartbeatRequest(7, 1, 0)) is E.INCONSISTENT_VOTER_SET


# -- the ISR ----------------------------------------------------------------------------------------------------------


def alter(*members: tuple[int, int], **fields: Any) -> AlterPartitionRequest:
    """By the leader 0 of ``state()``, for members with these broker epochs."""
    isr = tuple(IsrMember(*each) for each in members)
    return replace(AlterPartitionRequest(0, 10, TOPIC, TP, 5, isr, 9), **fields)


def test_a_leader_shrinks_and_expands_its_isr() -> None:
    desk = Desk(cluster(state()))
    answer = desk.answer(alter((0, 10), (2, -1)))
    assert (answer.leader, answer.leader_epoch, answer.isr, answer.partition_epoch) == (0, 5, {0, 2}, 10)
    assert desk.image.partitions[KEY] == state((0, 2), 0, (5, 10))
    desk.answer(alter((0, 10), (1, 11), (2, 12), partition_epoch=10))
    assert desk.image.partitions[KEY] == state((0, 1, 2), 0, (5, 11))
    # The ISR that holds gets another partition epoch: what was proposed before is void.
    desk.answer(alter((0, 10), (1, 11), (2, 12), partition_epoch=11))
    assert desk.image.partitions[KEY] == state((0, 1, 2), 0, (5, 12))


REFUSED = {
    "of a former process": (alter((0, 10), broker_epoch=9), E.STALE_BROKER_EPOCH),
    "of no broker": (alter((0, 10), broker=8), E.STALE_BROKER_EPOCH),
    "of a topic that is gone": (alter((0, 10), topic_id=UUID(int=8)), E.UNKNOWN_TOPIC_ID),
    "of no partition": (alter((0, 10), partition=TP._replace(partition=3)), E.UNKNOWN_TOPIC_OR_PARTITION),
    "of a later leader epoch": (alter((0, 10), leader_epoch=6), E.NOT_CONTROLLER),
    "of a later partition epoch": (alter((0, 10), partition_epoch=10), E.NOT_CONTROLLER),
    "of an older leader epoch": (alter((0, 10), leader_epoch=4), E.FENCED_REPLICA),
    "of a follower": (alter((0, 10), (1, 11), broker=1, broker_epoch=11), E.INVALID_REQUEST),
    "of an older partition epoch": (alter((0, 10), partition_epoch=8), E.INVALID_UPDATE_VERSION),
    "with a stranger": (alter((0, 10), (3, 13)), E.INVALID_REQUEST),
    "with a member twice": (alter((0, 10), (0, 10)), E.INVALID_REQUEST),
    "without the leader": (alter((1, 11)), E.INVALID_REQUEST),
    "of nobody": (alter(), E.INVALID_REQUEST),
    "with a former process": (alter((0, 10), (1, 9)), E.INELIGIBLE_REPLICA),
    "with a later process": (alter((0, 10), (1, 12)), E.INELIGIBLE_REPLICA),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_isr_that_is_refused(name: str) -> None:
    body, error = REFUSED[name]
    desk = Desk(cluster(state()))
    assert desk.error(body) is error


@pytest.mark.parametrize("how", ["fenced", "shutting down", "unknown epoch"])
def test_who_may_not_join(how: str) -> None:
    desk = Desk(cluster(state((0, 2), 0)))
    epoch = 11
    if how == "fenced":
        desk.beat(1, want_fence=True)
    elif how == "shutting down":
        desk.image.replay(changes.registration(1, desk.image.brokers[1]._replace(shutting_down=True)))
    else:
        epoch = -1
    assert desk.error(alter((0, 10), (1, epoch), (2, 12))) is E.INELIGIBLE_REPLICA


# -- topics, elections, configs ---------------------------------------------------------------------------------------


def test_a_topic_is_placed_round_about_the_live_brokers() -> None:
    desk = Desk(cluster(state(), brokers=4))
    desk.beat(3, want_fence=True)
    made = desk.answer(CreateTopicsRequest("u", 4, 2, configs=(("min.insync.replicas", "2"),)))
    assert made.topic_id == topic_id("c", 3, 1_001) and desk.image.names["u"] == made.topic_id
    found = [desk.image.partitions[PartitionKey(made.topic_id, number)] for number in range(4)]
    assert {each.replicas for each in found} == {(0, 1), (1, 2), (2, 0)} and found[0] == found[3]
    assert all(each.isr == each.replicas and each.leader == each.replicas[0] for each in found)
    assert desk.image.configs[ResourceType.TOPIC, "u"] == {"min.insync.replicas": "2"}  # type: ignore[index]
    other = desk.answer(CreateTopicsRequest("v"))
    assert other.topic_id != made.topic_id


def test_a_topic_with_replicas_by_hand_begins_with_those_that_live() -> None:
    desk = Desk(cluster(state()))
    desk.beat(2, want_fence=True)
    made = desk.answer(CreateTopicsRequest("u", assignments=((2, 1), (0, 2))))
    found = [desk.image.partitions[PartitionKey(made.topic_id, number)] for number in range(2)]
    assert found == [state((1,), 1, (0, 0), (2, 1)), state((0,), 0, (0, 0), (0, 2))]


NO_TOPICS = {
    "no name": (CreateTopicsRequest("a b"), E.INVALID_TOPIC_EXCEPTION),
    "a name that is taken": (CreateTopicsRequest("t"), E.TOPIC_ALREADY_EXISTS),
    "no partitions": (CreateTopicsRequest("u", 0), E.INVALID_PARTITIONS),
    "too many partitions": (CreateTopicsRequest("u", 10_001), E.INVALID_PARTITIONS),
    "no replicas": (CreateTopicsRequest("u", 1, 0), E.INVALID_REPLICATION_FACTOR),
    "more replicas than live brokers": (CreateTopicsRequest("u", 1, 4), E.INVALID_REPLICATION_FACTOR),
    "replicas on no broker": (CreateTopicsRequest("u", assignments=((0, 9),)), E.INVALID_REPLICA_ASSIGNMENT),
    "a replica twice": (CreateTopicsRequest("u", assignments=((0, 0),)), E.INVALID_REPLICA_ASSIGNMENT),
    "a partition without replicas": (CreateTopicsRequest("u", assignments=((),)), E.INVALID_REPLICA_ASSIGNMENT),
    "unequal partitions": (CreateTopicsRequest("u", assignments=((0,), (0, 1))), E.INVALID_REPLICA_ASSIGNMENT),
    "no such config": (CreateTopicsRequest("u", configs=(("x", "y"),)), E.INVALID_CONFIG),
    "a config twice": (CreateTopicsRequest("u", configs=((UNCLEAN_ELECTION, "true"),) * 2), E.INVALID_REQUEST),
    "no such topic to delete": (DeleteTopicsRequest("u"), E.UNKNOWN_TOPIC_OR_PARTITION),
    "no such id to delete": (DeleteTopicsRequest(topic_id=UUID(int=8)), E.UNKNOWN_TOPIC_ID),
    "nothing to delete": (DeleteTopicsRequest(), E.INVALID_REQUEST),
    "name and id to delete": (DeleteTopicsRequest("t", TOPIC), E.INVALID_REQUEST),
    "no partition to elect for": (ElectLeadersRequest(TP._replace(partition=4)), E.UNKNOWN_TOPIC_OR_PARTITION),
    "no topic to elect for": (ElectLeadersRequest(TopicPartition("u", 0)), E.UNKNOWN_TOPIC_OR_PARTITION),
    "the preferred replica leads": (ElectLeadersRequest(TP), E.ELECTION_NOT_NEEDED),
    "somebody leads": (ElectLeadersRequest(TP, unclean=True), E.ELECTION_NOT_NEEDED),
}


@pytest.mark.parametrize("name", NO_TOPICS)
def test_a_topic_request_that_is_refused(name: str) -> None:
    body, error = NO_TOPICS[name]
    assert Desk(cluster(state())).error(body) is error


def test_all_replicas_of_a_new_partition_are_fenced() -> None:
    desk = Desk(cluster(state()))
    desk.beat(2, want_fence=True)
    assert desk.error(CreateTopicsRequest("u", assignments=((2,),))) is E.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize("by_id", [True, False])
def test_a_topic_goes_with_its_partitions_and_configs(by_id: bool) -> None:
    desk = Desk(cluster(state()))
    desk.answer(IncrementalAlterConfigsRequest(2, "t", (ConfigChange(UNCLEAN_ELECTION, "true"),)))
    desk.answer(DeleteTopicsRequest(topic_id=TOPIC) if by_id else DeleteTopicsRequest("t"))
    assert not desk.image.topics and not desk.image.partitions and not desk.image.configs
    desk.answer(CreateTopicsRequest("t"))


def test_elections_by_request() -> None:
    desk = Desk(cluster(state(leader=1), state((1,), -1), state((0,), -1, replicas=(0, 2))))
    desk.answer(ElectLeadersRequest(TP))
    assert desk.image.partitions[KEY] == state(leader=0, epochs=(6, 10))
    desk.beat(1, want_fence=True)
    other = TP._replace(partition=1)
    assert desk.error(ElectLeadersRequest(other)) is E.PREFERRED_LEADER_NOT_AVAILABLE
    desk.answer(ElectLeadersRequest(other, unclean=True))
    assert desk.image.partitions[PartitionKey(TOPIC, 1)].isr == (0,)
    for broker in (0, 2):
        desk.beat(broker, want_fence=True)
    third = ElectLeadersRequest(TP._replace(partition=2), unclean=True)
    assert desk.error(third) is E.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_configs_are_set_and_deleted_all_of_them_or_none() -> None:
    desk = Desk(cluster(state()))

    def told(*each: tuple[str, str | None], kind: int = 2, name: str = "t") -> IncrementalAlterConfigsRequest:
        return IncrementalAlterConfigsRequest(kind, name, tuple(ConfigChange(*one) for one in each))

    desk.answer(told((UNCLEAN_ELECTION, "true"), ("min.insync.replicas", "2")))
    assert desk.image.unclean(TOPIC)
    again = desk.decide(told((UNCLEAN_ELECTION, "true"), ("min.insync.replicas", None)))
    assert again.records == (changes.config(2, "t", "min.insync.replicas", None),)
    assert desk.decide(told(("min.insync.replicas", None))).records == ()
    assert desk.error(told((UNCLEAN_ELECTION, None), ("min.insync.replicas", "0"))) is E.INVALID_CONFIG
    assert desk.error(told((UNCLEAN_ELECTION, "yes"))) is E.INVALID_CONFIG
    assert desk.error(told((UNCLEAN_ELECTION, "true"), name="u")) is E.UNKNOWN_TOPIC_OR_PARTITION
    assert desk.error(told((UNCLEAN_ELECTION, "true"), kind=4, name="9")) is E.BROKER_ID_NOT_REGISTERED
    assert desk.error(told(("a", "b"), kind=3)) is E.INVALID_REQUEST
    desk.answer(told((UNCLEAN_ELECTION, None)))
    assert not desk.image.unclean(TOPIC)
    desk.answer(told((UNCLEAN_ELECTION, "true"), kind=4, name=""))
    assert desk.image.unclean(TOPIC)
    desk.answer(told(("min.insync.replicas", "1"), kind=4, name="0"))


# -- messages and settings --------------------------------------------------------------------------------------------

MALFORMED = (
    replace(registration(1, 1), broker=-1),
    replace(registration(1, 1), incarnation="x"),
    replace(registration(1, 1), endpoints=(Endpoint("a", "b", 70_000),)),
    replace(registration(1, 1), rack="\ud800"),
    replace(registration(1, 1), cluster_id="x" * 40_000),
    BrokerHeartbeatRequest(1, 1 << 63, 0),
    BrokerHeartbeatRequest(1, 1, 0, 0, 1),  # type: ignore[arg-type]
    alter((0, 10), topic_id=None),
    alter((0, 10), partition="t-0"),
    alter((-1, 10)),
    replace(CreateTopicsRequest("t"), name=None),
    CreateTopicsRequest("t", assignments=((-1,),)),
    CreateTopicsRequest("t", configs=(("a",),)),  # type: ignore[arg-type]
    IncrementalAlterConfigsRequest(2, "t", (("a", "b"),)),  # type: ignore[arg-type]
    DeleteTopicsRequest(topic_id="t"),  # type: ignore[arg-type]
)


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: type(body).__name__)
def test_a_malformed_request_is_told_from_a_well_formed_one(body: Any) -> None:
    assert not is_well_formed(body)
    assert refused(body, E.INVALID_REQUEST).error is E.INVALID_REQUEST


def test_settings_that_no_controller_can_run_with() -> None:
    for settings in ({"session_timeout_ms": 0}, {"max_lag_records": -1}, {"degraded_snapshot_minimum_records": 5}):
        with pytest.raises(ValueError, match="is below"):
            ControllerConfig(**settings)
    with pytest.raises(ValueError, match="retry_backoff_ms 0 is below 1"):
        LifecycleConfig(retry_backoff_ms=0)
