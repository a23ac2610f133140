"""Apache Kafka's own quorum nodes step by step: the five holes of KIP-630's text tried, and five faults of its own.

Rows of ``specs/DEVIATIONS.md``: A1 to A5 with what closes each, F20 to F24 with what each comes to.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fencepost.conformance.kafka.process import QUORUM, DriverFailedError, Jvm

from .kafka_jvm import one_jvm
from .kafka_quorum import Nodes, led

pytestmark = pytest.mark.kafka
A, B, C = range(3)


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all; each test starts its nodes afresh."""
    yield from one_jvm(drives=QUORUM)


def behind(jvm: Jvm, *, chunks: int) -> Nodes:
    """The same, and C, which has nothing, has begun to fetch A's snapshot of two records; A's log begins behind it."""
    nodes = led(jvm)
    nodes.snapshot(A, 2, chunks)
    nodes.clean(A, 2, 1)
    assert nodes.seen[A]["begin"] == 2 and nodes.log(A) == ["2 1 r1", "3 1 r2"]
    nodes.follow(C, A)
    assert nodes.fetch(C, A)["snapshot"] == [2, 1]
    assert nodes.seen[C]["fetching"] == [2, 1, 0]
    return nodes


def test_a_snapshot_is_fetched_in_chunks_and_the_log_begins_behind_it(jvm: Jvm) -> None:
    nodes = behind(jvm, chunks=3)
    sizes = [nodes.fetch_snapshot(C, A)["bytes"] for _ in range(3)]
    assert sizes[:2] == [1_000, 1_000] and 0 < sizes[2] < 1_000
    assert nodes.snapshots(C) == [(2, 1)] and nodes.seen[C]["begin"] == nodes.seen[C]["hw"] == 2
    nodes.fetch(C, A)
    assert nodes.log(C) == ["2 1 r1"] and nodes.seen[C]["lines"] == ["0 1 -", "1 1 r0", "2 1 r1"]


# -- the holes of the text ----------------------------------------------------------------------------------------


def test_a1_what_comes_behind_half_a_snapshot_is_not_fetched_and_does_not_count(jvm: Jvm) -> None:
    """Closed: who fetches a snapshot sends no Fetch, and its old log stays and is voted by until it is whole."""
    nodes = behind(jvm, chunks=2)
    nodes.fetch_snapshot(C, A)
    assert nodes.seen[C]["fetching"] == [2, 1, 1_000]
    for _ in range(3):
        nodes.ask("elapse", node=C, ms=0)
    asked = {each["kind"] for each in nodes.flight if each["from"] == C and "request" not in each}
    assert "FETCH_SNAPSHOT" in asked and nodes.seen[A]["counted"][str(C)] in (-1, 0)
    assert nodes.seen[C]["end"] == 0 and nodes.log(C) == []


def test_a2_a_fetch_at_the_log_start_is_held_against_the_snapshots_epoch(jvm: Jvm) -> None:
    """Closed: B has a record of epoch 1 at offset 0, all others one of epoch 2; A's log begins at 1."""
    nodes = Nodes(jvm)
    nodes.elect(B, C)
    assert nodes.log(B) == ["0 1 -"]
    nodes.lose()
    nodes.elect(A, C)
    nodes.follow(C, A)
    nodes.append(A, "r")
    while nodes.seen[C]["hw"] < 2:
        nodes.fetch(C, A)
    nodes.snapshot(A, 1)
    nodes.clean(A, 1, nodes.seen[A]["epoch"])
    nodes.follow(B, A)
    assert nodes.seen[A]["begin"] == nodes.seen[B]["end"] == 1
    answer = nodes.fetch(B, A)
    assert answer["snapshot"] == [1, nodes.seen[A]["epoch"]] and answer["batches"] == 0
    nodes.fetch_snapshot(B, A)
    assert nodes.log(B) == [] and nodes.seen[B]["begin"] == 1


def test_a3_a_log_is_good_at_boot_whatever_the_high_watermark(jvm: Jvm) -> None:
    """Closed: no high watermark is kept or asked for; a snapshot at the log start or later is enough."""
    nodes = behind(jvm, chunks=1)
    before = nodes.log(A)
    nodes.ask("crash", node=A)
    nodes.ask("start", node=A)
    assert nodes.log(A) == before and nodes.snapshots(A) == [(2, 1)]
    assert nodes.seen[A]["role"] == "resigned" and nodes.seen[A]["known"] == -1


def test_a4_half_a_snapshot_is_never_completed_by_another_leader(jvm: Jvm) -> None:
    """Closed: whoever hears of a newer epoch deletes what it has of a snapshot, and begins with the first byte."""
    nodes = behind(jvm, chunks=2)
    nodes.fetch_snapshot(C, A)
    assert nodes.seen[C]["fetching"] == [2, 1, 1_000]
    nodes.snapshot(B, 2, 3)
    nodes.clean(B, 2, 1)
    nodes.lose()
    nodes.wait(A)
    assert nodes.seen[A]["role"] == "resigned"  # as nobody has fetched for long
    nodes.elect(B, A)
    nodes.follow(C, B)
    assert "fetching" not in nodes.seen[C]
    assert nodes.fetch(C, B)["snapshot"] == [2, 1] and nodes.seen[C]["fetching"] == [2, 1, 0]
    assert [nodes.fetch_snapshot(C, B)["position"] for _ in range(3)] == [0, 1_000, 2_000]
    assert [lines for *_, lines in nodes.seen[C]["snapshots"]] == [["0 1 -", "1 1 r0"]]


def test_a5_an_answer_that_comes_twice_or_late_is_dropped(jvm: Jvm) -> None:
    """Closed: a response counts while its request is the one in hand, and never again."""
    nodes = led(jvm)
    nodes.follow(C, A)
    # (a) A snapshot id, kept back until C has another log.
    nodes.snapshot(A, 2)
    nodes.clean(A, 2, 1)
    asked = nodes.find("FETCH", C, A)
    nodes.deliver(asked)
    late = nodes.find("FETCH answer", A, C)
    assert late["snapshot"] == [2, 1]
    nodes.deliver(late, again=True)
    nodes.fetch_snapshot(C, A)
    while nodes.seen[C]["hw"] < 4:
        nodes.fetch(C, A)
    before = nodes.seen[C]
    nodes.deliver(late)
    assert {name: nodes.seen[C].get(name) for name in before if name != "waits"} == {
        name: value for name, value in before.items() if name != "waits"
    }
    # (b) A chunk, twice.
    nodes = behind(jvm, chunks=2)
    nodes.deliver(nodes.find("FETCH_SNAPSHOT", C, A))
    chunk = nodes.find("FETCH_SNAPSHOT answer", A, C)
    nodes.deliver(chunk, again=True)
    nodes.deliver(chunk)
    assert nodes.seen[C]["fetching"] == [2, 1, 1_000]


# -- what is wrong in what is shipped -----------------------------------------------------------------------------


def test_f20_the_log_start_is_in_no_file(jvm: Jvm) -> None:
    """After a restart a log begins where its first segment does: what was cleaned away is there again."""
    nodes = led(jvm, rolls=False)
    nodes.snapshot(A, 2)
    nodes.clean(A, 2, 1)
    assert nodes.log(A) == ["2 1 r1", "3 1 r2"]
    nodes.ask("crash", node=A)
    nodes.ask("start", node=A)
    assert nodes.seen[A]["begin"] == 0 and nodes.log(A) == ["0 1 -", "1 1 r0", "2 1 r1", "3 1 r2"]


def test_f21_a_snapshot_that_ends_later_in_an_older_epoch_ends_its_fetchers_process(jvm: Jvm) -> None:
    """And once it has started again it asks for the snapshot that it has, for ever."""
    nodes = Nodes(jvm)
    nodes.elect(A, C)
    nodes.append(A, "r0")
    nodes.append(A, "r1")
    nodes.lose()
    nodes.elect(B, C)  # C has nothing
    nodes.lose()
    nodes.elect(A, C)
    assert nodes.log(B) == ["0 2 -"] and nodes.log(A)[-1] == "3 3 -"
    nodes.follow(C, A)
    while nodes.seen[C]["hw"] < 4:
        nodes.fetch(C, A)
    nodes.snapshot(A, 3)
    nodes.clean(A, 3, 1)
    nodes.follow(B, A)
    assert nodes.fetch(B, A)["snapshot"] == [3, 1]
    with pytest.raises(DriverFailedError, match="Full log truncation expected but didn't happen"):
        nodes.fetch_snapshot(B, A)
    nodes.ask("crash", node=B)
    nodes.lose(B)
    nodes.ask("start", node=B)
    assert nodes.log(B) == ["0 2 -"] and nodes.snapshots(B) == [(3, 1)]
    for _ in range(5):
        assert nodes.fetch(B, A)["snapshot"] == [3, 1]
        assert "fetching" not in nodes.seen[B] and nodes.log(B) == ["0 2 -"]


def test_f22_who_stands_again_with_records_of_its_own_epoch_ends_its_process(jvm: Jvm) -> None:
    """A and B stand in epoch 1, and A is elected; B follows it, fetches, and restarts as the candidate that it was."""
    nodes = Nodes(jvm)
    for node in (A, B):
        for _ in range(9):
            if nodes.seen[node]["role"] == "candidate":
                break
            if nodes.has("VOTE", node, C):
                nodes.exchange("VOTE", node, C)
            else:
                nodes.wait(node)
    nodes.exchange("VOTE", A, C)
    nodes.follow(B, A)
    nodes.fetch(B, A)
    assert nodes.seen[B]["role"] == "follower" and nodes.seen[B]["voted"] == B and nodes.log(B) == ["0 1 -"]
    nodes.ask("crash", node=B)
    nodes.lose(B)
    nodes.ask("start", node=B)
    assert (nodes.seen[B]["role"], nodes.seen[B]["epoch"]) == ("candidate", 1)
    assert nodes.seen[C]["leader"] == -1  # it has voted for A, and has not heard that A leads
    with pytest.raises(DriverFailedError, match="Received unexpected invalid request error"):
        nodes.exchange("VOTE", B, C)


def test_f23_an_observer_that_cannot_fetch_never_waits(jvm: Jvm) -> None:
    """Its fetch timeout has run off, the next request is on its way, and it polls again at once, again and again."""
    nodes = Nodes(jvm, 3, 2)
    nodes.elect(A, B)
    nodes.wait(C)
    nodes.fetch(C, A)
    assert nodes.seen[C]["role"] == "follower" and nodes.seen[C]["waits"] > 0
    nodes.lose(C)
    nodes.wait(C)
    assert nodes.has("FETCH", C, A) or nodes.has("FETCH", C, B)
    for _ in range(10):
        assert nodes.ask("poll", node=C) == [] and nodes.seen[C]["waits"] == 0


def test_f24_an_error_of_fetch_snapshot_cannot_be_written(jvm: Jvm) -> None:
    """Whoever fetches a snapshot that is gone is told UNKNOWN_SERVER_ERROR, and asks for it again and again."""
    nodes = behind(jvm, chunks=2)
    nodes.fetch_snapshot(C, A)
    nodes.snapshot(A, 4)
    nodes.clean(A, 4, 1)
    assert nodes.snapshots(A) == [(4, 1)]
    for _ in range(3):
        answer = nodes.fetch_snapshot(C, A)
        assert answer["error"] == "UNKNOWN_SERVER_ERROR"  # and should be SNAPSHOT_NOT_FOUND
        assert nodes.seen[C]["fetching"] == [2, 1, 1_000]
    # A voter's fetch timeout runs off some time, and then it forgets the snapshot; an observer has no such way out.
    nodes.wait(C)
    assert nodes.seen[C]["role"] == "prospective" and "fetching" not in nodes.seen[C]


def test_f24_an_observer_asks_for_ever(jvm: Jvm) -> None:
    """While it backs off from its leader it asks the other voter; of all that it hears nothing says that it is gone."""
    nodes = Nodes(jvm, 3, 2)
    nodes.elect(A, B)
    nodes.follow(B, A)
    nodes.append(A, "r0")
    nodes.append(A, "r1")
    while nodes.seen[B]["hw"] < 3:
        nodes.fetch(B, A)
    nodes.snapshot(A, 2, 2)
    nodes.clean(A, 2, 1)
    nodes.wait(C)
    while "fetching" not in nodes.seen[C]:
        nodes.fetch(C, A)
    nodes.snapshot(A, 3)
    nodes.clean(A, 3, 1)
    nodes.lose(B)
    told = []
    for _ in range(60):
        asked = [each for each in nodes.flight if each["from"] == C and "request" not in each]
        if asked:
            answer = nodes.exchange(asked[-1]["kind"], C, asked[-1]["to"])
            told.append((answer["from"], answer["error"]))
        if not asked or answer["from"] == B:
            nodes.lose(C)
            nodes.ask("elapse", node=C, ms=0)
        assert nodes.seen[C]["role"] == "follower" and nodes.seen[C]["fetching"] == [2, 1, 0]
    assert told.count((A, "UNKNOWN_SERVER_ERROR")) > 10
    assert {error for _, error in told} == {"UNKNOWN_SERVER_ERROR", "NOT_LEADER_OR_FOLLOWER"}


def test_what_kafka_throws_is_told(jvm: Jvm) -> None:
    nodes = Nodes(jvm)
    with pytest.raises(DriverFailedError, match="nobody knows how"):
        nodes.ask("guess", node=A)
