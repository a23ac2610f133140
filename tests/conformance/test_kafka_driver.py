"""Apache Kafka's own brokers under the driver: what they do step by step, and two ways in which they lose a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from fencepost.conformance.kafka.process import DriverFailedError, Jvm

from .kafka_jvm import one_jvm

pytestmark = pytest.mark.kafka
A, B, C = range(3)


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all; each test starts its brokers afresh."""
    yield from one_jvm()


class Trio:
    """Three brokers, and a metadata log that each of them has replayed so far."""

    def __init__(self, jvm: Jvm, min_isr: int = 2, **more: Any) -> None:
        """``more``: what else the driver's reset is told."""
        self.jvm = jvm
        self.answer: Mapping[str, Any] = {}
        self.log: list[Mapping[str, Any]] = []
        self.replayed = [0, 0, 0]
        self.seen: dict[int, Any] = {}
        self.told: list[Any] = []
        self.asks: list[Any] = []
        self.ask("reset", nodes=3, minIsr=min_isr, **more)

    def ask(self, do: str, **more: Any) -> list[Any]:
        answer = self.answer = self.jvm.ask(do, **more)
        self.seen |= {int(node): seen for node, seen in answer["seen"].items()}
        self.told += [(each["error"], each["offset"]) for each in answer["sent"] if each["kind"] == "produced"]
        self.asks += [each for each in answer["sent"] if each["kind"] == "alter"]
        return list(answer["sent"])

    def decide(self, **record: Any) -> None:
        self.log.append(record)

    def replay(self, node: int, count: int = 1) -> None:
        start = self.replayed[node]
        self.replayed[node] = start + count
        assert start + count <= len(self.log)
        self.ask("metadata", node=node, records=self.log[start : start + count])

    def fetch(self, follower: int, leader: int) -> Any:
        """One fetch and its answer."""
        (asked,) = self.ask("fetch", node=follower)
        assert (asked["kind"], asked["to"]) == ("fetch", leader)
        answer = next(each for each in self.ask("serve", node=leader, id=asked["id"]) if each["kind"] == "fetched")
        self.ask("answer", node=follower, id=answer["id"])
        return answer

    def grant(self, leader: int, *, answered: bool) -> None:
        """The controller takes up what the leader has asked for by last."""
        asked = self.asks[-1]
        self.decide(isr=asked["isr"])
        if answered:
            more = {"leader": leader, "epoch": asked["epoch"], "isr": asked["isr"], "version": asked["version"] + 1}
            self.ask("altered", node=leader, request=asked["id"], error="NONE", **more)

    def records(self, node: int) -> list[str]:
        return [payload for _, _, payload in self.seen[node]["records"]]


def test_a_record_is_replicated_and_committed(jvm: Jvm) -> None:
    trio = Trio(jvm)
    trio.decide(leader=A)
    for node in (A, B, C):
        trio.replay(node)
    trio.ask("produce", node=A, request=-1, payload="r", acks=-1)
    assert trio.records(A) == ["r"] and trio.seen[A]["hw"] == 0
    for follower in (B, C, B):
        trio.fetch(follower, A)
    assert trio.records(B) == trio.records(C) == ["r"] and trio.told == []
    trio.fetch(C, A)
    assert trio.seen[A]["hw"] == 1 and trio.told == [("NONE", 0)]


def test_an_older_and_a_newer_leader_epoch_are_told_before_the_role(jvm: Jvm) -> None:
    """Epochs are compared first (K1, K2): also by whom leads nothing, who would say NOT_LEADER_OR_FOLLOWER."""
    trio = Trio(jvm)
    for leader in (A, B):
        trio.decide(leader=leader)
    trio.replay(C)
    assert trio.fetch(C, A)["error"] == "UNKNOWN_LEADER_EPOCH"
    trio.replay(A, 2)
    assert trio.fetch(C, A)["error"] == "FENCED_LEADER_EPOCH"
    # It waits to hear of a newer epoch, and asks for nothing.
    assert trio.ask("fetch", node=C) == [] if trio.seen[C]["fetcher"] == "idle" else trio.seen[C]["fetcher"] == "none"


def test_a_restarted_broker_has_its_log_and_the_stored_high_watermark(jvm: Jvm) -> None:
    trio = Trio(jvm)
    trio.decide(leader=A, isr=[A])
    trio.replay(A)
    for payload in ("r", "s"):
        trio.ask("produce", node=A, request=-1, payload=payload, acks=-1)
        if payload == "r":
            trio.ask("checkpoint", node=A)
    trio.ask("produce", node=A, request=-1, payload="t", acks=1)
    end, hw = trio.seen[A]["end"], trio.seen[A]["hw"]
    trio.ask("crash", node=A)
    trio.decide(leader=B)
    trio.ask("start", node=A, records=trio.log)
    assert trio.seen[A]["end"] == end and trio.seen[A]["hw"] <= hw


def test_k11_an_acknowledged_record_is_lost(jvm: Jvm) -> None:
    """A leader hears of two elections at once, counts what a follower has cut off since, and tells its producer so."""
    trio = Trio(jvm)
    trio.decide(leader=A)
    for node in (A, B, C):
        trio.replay(node)
    trio.ask("produce", node=A, request=-1, payload="r", acks=-1)
    trio.fetch(C, A)
    trio.fetch(C, A)
    assert trio.seen[A]["ends"] == {"1": -1, "2": 1} and trio.seen[A]["hw"] == 0
    trio.decide(leader=B)  # B is in the ISR, and lags
    trio.replay(B)
    trio.replay(C)
    assert trio.fetch(C, B)["diverging"] == [0, 0] or trio.records(C) == []
    while trio.records(C):
        trio.fetch(C, B)
    trio.decide(leader=A, isr=[A, C])  # B is gone
    trio.replay(A, 2)
    assert trio.seen[A]["epoch"] == 3 and trio.seen[A]["ends"]["2"] == 1
    assert trio.seen[A]["hw"] == 1 and trio.told == [("NONE", 0)]
    (read,) = trio.ask("read", node=A, request=-2, offset=0)
    assert [payload for _, _, payload in read["records"]] == ["r"]
    trio.decide(leader=C)  # a clean election: it is in the ISR
    trio.replay(C, 2)
    trio.replay(A)
    trio.fetch(A, C)
    assert trio.records(A) == trio.records(C) == []


def test_k11_not_where_each_election_is_heard_of_by_itself(jvm: Jvm) -> None:
    trio = Trio(jvm)
    trio.decide(leader=A)
    for node in (A, B, C):
        trio.replay(node)
    trio.ask("produce", node=A, request=-1, payload="r", acks=-1)
    trio.fetch(C, A)
    trio.fetch(C, A)
    trio.decide(leader=B)
    trio.decide(leader=A, isr=[A, C])
    trio.replay(A)
    assert [error for error, _ in trio.told] == ["NOT_LEADER_OR_FOLLOWER"]
    trio.replay(A)
    assert trio.seen[A]["hw"] == 0 and trio.seen[A]["ends"] == {"1": -1, "2": -1}


def isr_without_c(jvm: Jvm) -> Trio:
    """A leads, C was taken out of the ISR and is to be let in again: the leader has not replayed the first yet."""
    trio = Trio(jvm)
    trio.decide(leader=A)
    for node in (A, B, C):
        trio.replay(node)
    trio.ask("produce", node=A, request=-1, payload="r", acks=-1)
    trio.fetch(B, A)
    trio.fetch(B, A)
    trio.ask("shrink", node=A)
    assert trio.asks[-1]["isr"] == [A, B]
    trio.grant(A, answered=True)
    assert trio.told == [("NONE", 0)]
    trio.fetch(C, A)
    trio.fetch(C, A)
    assert trio.asks[-1]["isr"] == [A, B, C]
    trio.grant(A, answered=False)
    assert trio.seen[A]["isr"] == [A, B] and trio.seen[A]["maximal"] == [A, B, C]
    return trio


def test_k12_an_acknowledged_record_is_lost(jvm: Jvm) -> None:
    """A leader replays the record of an ISR that it knows, and forgets that it has asked for a larger one since."""
    trio = isr_without_c(jvm)
    trio.replay(A)
    assert trio.seen[A]["maximal"] == [A, B]
    trio.ask("produce", node=A, request=-2, payload="s", acks=-1)
    trio.fetch(B, A)
    trio.fetch(B, A)
    assert trio.told == [("NONE", 0), ("NONE", 1)] and trio.records(C) == ["r"]
    trio.decide(leader=C)  # a clean election: the controller has let it in
    trio.replay(C, 3)
    trio.replay(A, 2)
    assert [trio.fetch(A, C).get("diverging") for _ in range(2)] == [[1, 1], None]
    assert trio.records(A) == trio.records(C) == ["r"]


def test_k12_not_where_the_record_comes_before_the_leader_asks_again(jvm: Jvm) -> None:
    trio = isr_without_c(jvm)
    trio.ask("produce", node=A, request=-2, payload="s", acks=-1)
    trio.fetch(B, A)
    trio.fetch(B, A)
    assert trio.told == [("NONE", 0)]  # the high watermark waits for C
    trio.replay(A, 2)
    assert trio.seen[A]["isr"] == [A, B, C] and trio.told == [("NONE", 0)]


def test_what_kafka_throws_is_told(jvm: Jvm) -> None:
    trio = Trio(jvm)
    with pytest.raises(DriverFailedError, match="nobody knows how"):
        trio.ask("guess")
