"""The rows F15 to F19 of DEVIATIONS.md, of roles: Apache Kafka's nodes do the one, the model of the text the other.

The Apache variant, ``kip-630-kafka``, agrees with Kafka; see ``test_kafka_quorum_dialect.py``, which has the rows about
snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fencepost.conformance.kafka.process import QUORUM, Jvm
from fencepost.model.protocols.snapshots.kafka_spec import VARIANT

from .kafka_dialect import RowClosed, shipped
from .kafka_jvm import one_jvm, planted
from .kafka_quorum import Nodes, led
from .kafka_quorum_model import (
    RUNNING,
    A,
    B,
    C,
    elect,
    follow,
    model_led,
    walk,
)

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all; each test starts its nodes afresh."""
    yield from one_jvm(drives=QUORUM)


def again(nodes: Nodes, node: int) -> tuple[str, int]:
    """A node's process ends and starts: its role, and whom it names as its leader."""
    nodes.ask("crash", node=node)
    nodes.lose(node)
    nodes.ask("start", node=node)
    return nodes.seen[node]["role"], nodes.seen[node]["leader"]


def test_f15_who_starts_is_what_its_state_file_says(jvm: Jvm) -> None:
    with shipped("F15", "who led has resigned, who stood stands again, who followed follows"):
        nodes = led(jvm)
        assert (again(nodes, A), again(nodes, B)) == (("resigned", A), ("follower", A))
        epoch = nodes.seen[A]["epoch"]
        while nodes.seen[A]["role"] == "resigned":
            nodes.ask("elapse", node=A, ms=0)
        assert nodes.seen[A]["epoch"] == epoch + 1
        assert nodes.seen[A]["role"] != "candidate" and nodes.seen[A]["voted"] == -1
        nodes = Nodes(jvm)
        stand(nodes, A, C)
        assert again(nodes, A) == ("candidate", -1) and nodes.seen[A]["voted"] == A
    for variant, stands, leader in ((RUNNING, 0, -1), (VARIANT, 1, A)):
        found = walk(variant)
        found("stand", replica=A, epoch=0)
        found("resume", replica=A, end=0)
        assert found["supporters[0]"] == stands
        found = model_led(variant)
        found("resume", replica=B, end=2)
        assert found["leader[1]"] == leader
    assert not walk(RUNNING).has("leave_epoch")
    found = model_led(VARIANT)
    found("resume", replica=A, end=2)
    found("leave_epoch", replica=A)
    assert (found["leader_epoch[0]"], found["supporters[0]"]) == (1, 0)


def stand(nodes: Nodes, node: int, voter: int) -> None:
    """A node asks a voter whether it would vote for it, and stands."""
    for _ in range(9):
        if nodes.seen[node]["role"] == "candidate":
            return
        if nodes.has("VOTE", node, voter):
            nodes.exchange("VOTE", node, voter)
        else:
            nodes.wait(node)
    raise LookupError(f"{node} does not stand")


def test_f16_who_hears_of_no_leader_asks_first(jvm: Jvm) -> None:
    with shipped("F16", "who hears of no leader asks whether it would be voted for, in its own epoch"):
        nodes = led(jvm)
        nodes.lose()
        nodes.wait(B)
        assert (nodes.seen[B]["role"], nodes.seen[B]["epoch"], nodes.seen[B]["voted"]) == ("prospective", 1, A)
        asked = nodes.find("VOTE", B, C)
        assert asked["pre"] and asked["epoch"] == 1 and nodes.seen[C]["epoch"] == 0
        nodes.deliver(asked)
        assert (nodes.seen[C]["epoch"], nodes.seen[C]["voted"], nodes.seen[C]["leader"]) == (1, -1, -1)
    # To ask is no step of the model; whoever is asked may hear of an epoch in which nobody stands.
    assert walk(VARIANT).has("hear_of_epoch") and not walk(RUNNING).has("hear_of_epoch")
    found = walk(VARIANT)
    elect(found, A, B, 0)
    found("hear_of_epoch", replica=C, teller=B)
    assert (found["leader_epoch[2]"], found["voted[2]"], found["leader[2]"]) == (0, -1, -1)
    text_ = walk(RUNNING)
    elect(text_, A, B, 0)
    assert text_.refused_by("hear_of_candidate", candidate=B, voter=C) == "candidate_stands"


def test_f17_a_new_leader_tells_no_high_watermark(jvm: Jvm) -> None:
    with shipped("F17", "a response has no high watermark until a record of the leader's own epoch is committed"):
        nodes = led(jvm)
        nodes.lose()
        nodes.wait(A)
        nodes.elect(B, A)
        assert nodes.seen[B]["hw"] == 4
        nodes.follow(C, B)
        assert nodes.fetch(C, B)["hw"] == -1
    told = {}
    for variant in (RUNNING, VARIANT):
        found = model_led(variant)
        elect(found, B, C, 1)
        if found[f"leader[{C}]"] != B:
            follow(found, C, B, 1)
        found("follower_fetch", leader=B, follower=C)
        told[variant] = (found["leo[2]"], found["hw[2]"])
    assert told == {RUNNING: (1, 1), VARIANT: (1, 0)}


def test_f18_a_candidate_stands_until_its_election_timeout(jvm: Jvm) -> None:
    with shipped("F18", "a candidate whose election timeout runs off stands no more, and its vote stays"):
        nodes = Nodes(jvm)
        stand(nodes, A, C)
        epoch = nodes.seen[A]["epoch"]
        nodes.wait(A)
        assert nodes.seen[A]["role"] == "prospective"
        assert (nodes.seen[A]["epoch"], nodes.seen[A]["voted"]) == (epoch, A)
    assert not walk(RUNNING).has("lose_election")
    found = walk(VARIANT)
    found("stand", replica=A, epoch=0)
    found("lose_election", replica=A)
    assert (found["supporters[0]"], found["voted[0]"], found["leader_epoch[0]"]) == (0, A, 0)


def test_f19_a_voter_follows_who_has_resigned(jvm: Jvm) -> None:
    with shipped("F19", "a voter follows who has resigned until its fetch timeout, which is short then"):
        nodes = led(jvm)
        nodes.follow(C, A)
        nodes.ask("resign", node=A)
        for node, role in ((B, "prospective"), (C, "follower")):  # B has more of the log, and need not wait at all
            nodes.deliver(nodes.find("END_QUORUM_EPOCH", A, node))
            assert (nodes.seen[node]["role"], nodes.seen[node]["leader"]) == (role, A)
        nodes.ask("elapse", node=C, ms=200)
        assert nodes.seen[C]["role"] == "prospective"
    leaders = {}
    for variant in (RUNNING, VARIANT):
        found = model_led(variant)
        found("resign", leader=A)
        found("end_epoch", leader=A, follower=B)
        leaders[variant] = found["leader[1]"]
    assert leaders == {RUNNING: -1, VARIANT: A}


def test_f15_that_is_closed_is_told(jvm: Jvm) -> None:
    """Kafka's classes do something else by a change planted in them, as those of another release might."""
    with (
        planted(jvm, "FORGETS_VOTE"),
        pytest.raises(RowClosed, match=r"^F15 of specs/DEVIATIONS\.md: .*The row is closed"),
    ):
        test_f15_who_starts_is_what_its_state_file_says(jvm)
