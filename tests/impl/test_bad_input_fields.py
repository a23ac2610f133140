"""Whatever the fields of a request hold, a node answers it: by an error that changes nothing, or sanely."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.net import SimulatedNetwork
from fencepost.impl.replica import Broker, Role, fetch
from fencepost.impl.replica.validate import CHECKS
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    BROKER_PRINCIPAL,
    CONSUMER,
    CONTROLLER,
    EARLIEST,
    LATEST,
    AlterIsrRequest,
    AlterIsrResponse,
    Envelope,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListOffsetsRequest,
    OfflineReplicasResponse,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    UpdateMetadataResponse,
)
from fencepost.impl.zk_controller import Controller
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from .brokers import TP, Asker, Cluster, contents, records
from .test_bad_input import (
    ALL,
    ANSWERS,
    ELSEWHERE,
    EPOCH,
    EVERYONE,
    GOOD,
    INVALID,
    LIMIT,
    NOWHERE,
    UNKNOWN,
    E,
    everything,
    world,
)

_NUMBERS = st.sampled_from(
    [-(1 << 63) - 1, -(1 << 31), -11, *range(-3, 8), 49, 50, 51, 60, LIMIT, LIMIT + 1]
    + [base + delta for base in (1 << 31, 1 << 63) for delta in (-1, 0, 1)]
)
_JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.lists(st.integers(), max_size=2),
    st.just(object()),
    st.sampled_from((ErrorCode.NONE, 1 << 200, (), (0,), frozenset(), {})),
)
_BROKERS = st.integers(-1, 6)
_PRODUCERS = st.fixed_dictionaries(
    {},
    optional={
        "producer_id": st.integers(-2, 9),
        "producer_epoch": st.integers(-1, 3),
        "base_sequence": st.integers(-1, 4),
        "leader_epoch": st.integers(-2, 7),
        "base_offset": st.integers(0, 4),
    },
)
_BATCH = st.builds(
    lambda count, producer: records(*[b"v"] * count, **producer),
    st.integers(1, 3),
    _PRODUCERS,
)
_DAMAGED = st.builds(
    lambda data, at, mask: data[: at % len(data)] + bytes([data[at % len(data)] ^ mask]) + data[at % len(data) + 1 :],
    _BATCH,
    st.integers(0, 200),
    st.integers(1, 255),
)
_USUAL: dict[str, st.SearchStrategy[Any]] = {
    "partition": st.sampled_from(
        (TP, TP, TP, TP, ELSEWHERE, NOWHERE, TP._replace(partition=-1), TP._replace(topic=""))
    ),
    "records": st.one_of(_BATCH, _DAMAGED, st.lists(_BATCH, max_size=3).map(b"".join), st.binary(max_size=80)),
    "acks": st.sampled_from((-1, 0, 1)),
    "isr": st.frozensets(_BROKERS, max_size=5),
    "offline": st.frozensets(_BROKERS, max_size=3),
    "new_isr": st.frozensets(_BROKERS, max_size=3),
    "replicas": st.one_of(st.just(EVERYONE), st.lists(_BROKERS, max_size=5).map(tuple)),
    "group": st.sampled_from(("g", "h", "", "\ud800")),
    "metadata": st.sampled_from(("", "m", "\ud800", "x" * 5000)),
    "timestamp": st.sampled_from((EARLIEST, LATEST, 0, 7, -7)),
}


@st.composite
def _requests(draw: st.DrawFn, kind: type) -> Any:
    """A good request with some of its fields changed: to what could be there, or to anything at all."""
    body: Any = draw(st.sampled_from([each for each in (*GOOD.values(), *MORE) if type(each) is kind]))
    changes = {}
    for each in fields(body):
        how = draw(st.integers(0, 19))
        if how == 0:
            changes[each.name] = draw(_JUNK)
        elif how < 7:
            changes[each.name] = draw(_USUAL.get(each.name, _NUMBERS))
    return replace(body, **changes)


MORE = (
    FetchRequest(1, TP, 2, 1000, EPOCH),
    FetchRequest(CONSUMER, TP, 2, 1000, EPOCH, EPOCH),
    OffsetsForLeaderEpochRequest(2, TP, EPOCH, EPOCH - 1),
    ListOffsetsRequest(TP, 0, EPOCH),
    ProduceRequest(TP, -1, records(b"y", producer_id=9, producer_epoch=2, base_sequence=1)),
    LeaderAndIsrRequest(1, TP, 1, EPOCH + 1, ALL, EVERYONE, frozenset(), 60),
    LeaderAndIsrRequest(1, TP, 0, EPOCH, frozenset({0, 1}), EVERYONE, frozenset(), 51),
    AlterIsrRequest(0, TP, 0, frozenset({0, 1}), 1),
)
"""Other good ones, of replicas, of consumers that know epochs, of the controller to a follower."""

_ANY_REQUEST = st.sampled_from(sorted(ANSWERS, key=lambda kind: kind.__name__)).flatmap(_requests)


def _check_sane(cluster: Cluster, node: int) -> None:
    for partition in cluster.brokers[node].partitions:
        state = cluster.brokers[node].state(partition)
        assert 0 <= state.log_start <= state.high_watermark <= state.end and state.synced <= state.end
        assert state.isr <= state.maximal_isr and state.isr <= set(state.replicas)
        assert (state.role is Role.LEADER) == (state.leader == node)


def _asked(kind: type) -> st.SearchStrategy[list[tuple[int, Any]]]:
    """Requests of this kind, and a few others before them, each to one of the brokers."""
    node = st.sampled_from((0, 0, 0, 1, 2, 3, 4))
    others = st.lists(st.tuples(node, _ANY_REQUEST), max_size=3)
    return st.builds(lambda first, then: first + then, others, st.lists(st.tuples(node, _requests(kind)), min_size=4))


def check_answers(asked: list[tuple[int, Any]]) -> None:
    """Every request is answered, errors change nothing, and what is changed is sane."""
    cluster = world()
    for node, body in asked:
        before = everything(cluster, node)
        waiting = sum(cluster.brokers[node].state(each).waiting for each in cluster.brokers[node].partitions)
        answer = cluster.ask(node, body)
        if answer is None:
            assert isinstance(body, ProduceRequest) and body.acks == -1
            now = sum(cluster.brokers[node].state(each).waiting for each in cluster.brokers[node].partitions)
            assert now == waiting + 1
            continue
        assert type(answer) is ANSWERS[type(body)] and isinstance(answer.error, ErrorCode)
        if answer.error is not E.NONE:
            assert everything(cluster, node) == before, f"{body}: {answer}"
        _check_sane(cluster, node)
        for key in cluster.brokers[node].timers():
            cluster.brokers[node].fire(key)
        _check_sane(cluster, node)


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.__name__)
def test_whatever_the_fields_hold_it_is_answered_and_errors_change_nothing(kind: type) -> None:
    """Fails for a field that is used before its type is looked at, and for an error that comes after the change."""
    given(_asked(kind))(check_answers)()


# -- the controller ---------------------------------------------------------------------------------------------------


class Controlled:
    """A controller with a partition on five brokers that says everything to one client."""

    def __init__(self) -> None:
        self.network = SimulatedNetwork()
        self.files = SimulatedFiles()
        self.controller = Controller(self.network, self.network.clock, self.files)
        self.client = Asker(0)
        self.network.attach(self.client)
        for broker in range(5):
            self.controller.broker_started(broker, 1)
        self.controller.create_partition(TP, EVERYONE)

    def ask(self, body: AlterIsrRequest) -> AlterIsrResponse:
        self.client.answers.clear()
        self.controller.receive(Envelope(0, CONTROLLER, 1, body, BROKER_PRINCIPAL))
        for flight in self.network.in_flight(destination=0):
            self.network.deliver(flight)
        (answer,) = [each.body for each in self.client.answers if isinstance(each.body, AlterIsrResponse)]
        return answer

    def everything(self) -> Any:
        return dict(self.controller.partitions), self.controller.deadline(), contents(self.files)

    def refused(self, body: AlterIsrRequest) -> ErrorCode:
        before = self.everything()
        answer = self.ask(body)
        assert answer.error is not E.NONE and self.everything() == before, body
        return answer.error


@given(st.lists(_requests(AlterIsrRequest), min_size=1, max_size=4))
def test_whatever_a_leader_asks_the_controller_it_is_answered_and_errors_change_nothing(asked: list[Any]) -> None:
    cluster = Controlled()
    for body in asked:
        before = cluster.everything()
        answer = cluster.ask(body)
        if answer.error is not E.NONE:
            assert cluster.everything() == before, body
        state = cluster.controller.partition(TP)
        assert state.leader in state.isr <= set(EVERYONE)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"partition": NOWHERE}, UNKNOWN),
        ({"partition": None}, INVALID),
        ({"broker": None}, INVALID),
        ({"broker": -2}, INVALID),
        ({"broker": -1}, E.FENCED_REPLICA),
        ({"new_isr": [0]}, INVALID),
        ({"new_isr": frozenset({0, 9})}, INVALID),
        ({"leader_epoch": -2}, INVALID),
        ({"leader_epoch": -1}, E.FENCED_REPLICA),
        ({"leader_epoch": 1}, E.UNKNOWN_LEADER_EPOCH),
        ({"partition_epoch": 7}, E.INVALID_UPDATE_VERSION),
        ({"partition_epoch": None}, INVALID),
    ],
)
def test_a_bad_alter_isr(changes: dict[str, Any], error: ErrorCode) -> None:
    cluster = Controlled()
    good = AlterIsrRequest(0, TP, 0, frozenset({0, 1}), cluster.controller.partition(TP).partition_epoch)
    assert cluster.refused(replace(good, **changes)) is error
    assert cluster.ask(good).error is E.NONE


@pytest.mark.parametrize("error", [None, "NONE", 7, object()])
def test_an_answer_without_an_error_code_counts_as_lost(error: Any) -> None:
    cluster = Controlled()
    before = cluster.everything()
    for correlation in range(1 << 32, (1 << 32) + 20):
        for kind in (LeaderAndIsrResponse, OfflineReplicasResponse, UpdateMetadataResponse):
            cluster.controller.receive(Envelope(0, CONTROLLER, correlation, kind(error), BROKER_PRINCIPAL))
    assert cluster.everything() == before and cluster.controller.stopped is None


# -- planted ----------------------------------------------------------------------------------------------------------


def _type_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(CHECKS, ListOffsetsRequest, lambda _body, _config: E.NONE)


def _controller_epoch_taken_before_the_checks(patch: pytest.MonkeyPatch) -> None:
    whole = Broker._controller

    def check(self: Broker, envelope: Envelope, body: Any) -> ErrorCode:
        if type(body.controller_epoch) is int:
            self.controller_epoch = max(self.controller_epoch, body.controller_epoch)
        return whole(self, envelope, body)

    patch.setattr(Broker, "_controller", check)


def _progress_noted_before_the_offset_is_checked(patch: pytest.MonkeyPatch) -> None:
    whole = fetch.answer_fetch

    def answer(partition: Any, body: FetchRequest) -> FetchResponse:
        leader = partition.leader
        if leader is not None and body.replica_id in leader.progress and body.current_leader_epoch == leader.epoch:
            leader.progress[body.replica_id].end = body.fetch_offset
        return whole(partition, body)

    patch.setattr("fencepost.impl.replica.broker.answer_fetch", answer)


@pytest.mark.parametrize(
    ("plant", "kind"),
    [
        (_type_not_looked_at, ListOffsetsRequest),
        (_controller_epoch_taken_before_the_checks, LeaderAndIsrRequest),
        (_progress_noted_before_the_offset_is_checked, FetchRequest),
    ],
)
def test_a_defect_is_found(plant: Any, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, TypeError)):
        settings(phases=[Phase.generate])(given(_asked(kind))(check_answers))()
