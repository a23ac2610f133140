"""The TK rows of DEVIATIONS.md: Apache Kafka's brokers with tiered storage do the one thing, the model the other.

Kafka's RemoteLogManager, its tasks run by the driver, and TierStateMachine within ReplicaFetcherThread. Kafka counts
leader epochs from 1. A row that a release closes turns its test red, and that says so (``kafka_dialect.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fencepost.conformance.kafka.process import TIERED, Jvm
from fencepost.model.protocols.tiering import tiering

from .kafka_dialect import Walk, shipped
from .kafka_jvm import one_jvm
from .kafka_tiers import EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LAST_TIERED, Tiers
from .test_kafka_driver import A, B, C

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all; each test starts its brokers afresh."""
    yield from one_jvm(drives=TIERED)


def uploaded(jvm: Jvm, *, from_tiered: bool = False) -> Tiers:
    """A has four records of epoch 1 and two of epoch 2; all but the last are in remote storage, and not on its disk."""
    tiers = Tiers(jvm, from_tiered=from_tiered)
    tiers.lead(A, [A], A)
    tiers.produce(A, 4)
    tiers.lead(A, [A], A)
    tiers.produce(A, 2)
    tiers.upload(A)
    assert tiers.starts(A) == (0, 5, 6) and tiers.epochs(A) == [(1, 0), (2, 4)] and tiers.records(A) == ["r6"]
    assert [(each["start"], each["end"]) for each in tiers.copies().values()] == [(n, n + 1) for n in range(5)]
    return tiers


def test_what_is_uploaded_is_told_of_and_a_follower_begins_behind_it(jvm: Jvm) -> None:
    """KIP-1023's sentinels, and KIP-405's bootstrap, in which a follower has the epochs of all that comes before."""
    tiers = uploaded(jvm)
    told = {each: tiers.listed(A, each) for each in (EARLIEST, EARLIEST_LOCAL, LAST_TIERED, EARLIEST_PENDING_UPLOAD)}
    assert told == {
        EARLIEST: ("NONE", 0, 1),
        EARLIEST_LOCAL: ("NONE", 5, 2),
        LAST_TIERED: ("NONE", 4, 2),
        EARLIEST_PENDING_UPLOAD: ("NONE", 5, 2),
    }
    tiers.learn(B)
    tiers.hear(B)
    refused, *_ = tiers.follow(B, A)
    assert refused["error"] == "OFFSET_MOVED_TO_TIERED_STORAGE"
    assert (tiers.starts(B), tiers.epochs(B), tiers.records(B)) == ((0, 5, 5), [(1, 0), (2, 4)], [])
    tiers.follow(B, A)
    assert (tiers.starts(B), tiers.epochs(B), tiers.records(B)) == ((0, 5, 6), [(1, 0), (2, 4)], ["r6"])


def half_built(jvm: Jvm) -> Tiers:
    """B has begun behind what is in remote storage, which failed as it asked for the epochs there."""
    tiers = uploaded(jvm)
    tiers.learn(B)
    tiers.store(B, fails=True)
    tiers.hear(B)
    tiers.follow(B, A)
    return tiers


def test_tk4_a_follower_cuts_its_log_before_it_has_read_the_epochs(jvm: Jvm) -> None:
    with shipped("TK4", "a follower's log begins behind what is in remote storage before its epochs are known"):
        tiers = half_built(jvm)
        assert (tiers.starts(B), tiers.epochs(B)) == ((0, 5, 5), [])
    # It tries again, as long as it is not told of anything else.
    tiers.store(B, fails=False)
    tiers.follow(B, A)
    assert (tiers.starts(B), tiers.epochs(B)) == ((0, 5, 5), [(1, 0), (2, 4)])
    text, kafka = (Walk(tiering, name, 2, 1, 0, 1, 0, 0, 0, 0) for name in ("kip-1023", "offsets-first"))
    assert kafka.has("crash_while_building") and not text.has("crash_while_building")


def test_tk4_another_leader_epoch_has_it_go_on_without_them(jvm: Jvm) -> None:
    """It joins the ISR; as a leader it deletes what is of epochs before the first that it knows."""
    with shipped("TK4", "who was interrupted goes on without the epochs, leads, and deletes what is in remote storage"):
        tiers = half_built(jvm)
        tiers.lead(A, [A], A, B)
        (fetched,) = tiers.follow(B, A)
        assert fetched["error"] == "NONE" and tiers.epochs(B) == [(2, 5)]
        tiers.follow(B, A)
        assert tiers.asks[-1]["isr"] == [A, B], "it has caught up"
        tiers.store(B, fails=False)
        tiers.lead(B, [A, B], A, B)
        tiers.ask("copy", node=B)
        assert tiers.starts(B) == (4, 5, 6), "what it knows begins there"
        tiers.ask("expire", node=B)
        states = [each["state"] for each in tiers.copies().values()]
        assert states == [*["DELETE_SEGMENT_FINISHED"] * 4, "COPY_SEGMENT_FINISHED"]
        assert tiers.listed(B, EARLIEST) == ("NONE", 4, -1), "the epoch of what is left it does not know"


def test_tk4_not_where_the_store_does_not_fail(jvm: Jvm) -> None:
    """The same, but for that: nothing is deleted."""
    tiers = uploaded(jvm)
    tiers.learn(B)
    tiers.hear(B)
    tiers.follow(B, A)
    tiers.lead(A, [A], A, B)
    for _ in range(2):
        tiers.follow(B, A)
    tiers.lead(B, [A, B], A, B)
    for what in ("copy", "expire"):
        tiers.ask(what, node=B)
    assert tiers.starts(B) == (0, 5, 6) and tiers.listed(B, EARLIEST) == ("NONE", 0, 1)
    assert {each["state"] for each in tiers.copies().values()} == {"COPY_SEGMENT_FINISHED"}


def reelected(jvm: Jvm) -> Tiers:
    """A has uploaded three records of epoch 1, then followed B, elected uncleanly, and has B's in their stead."""
    tiers = Tiers(jvm)
    tiers.lead(A, [A], A)
    tiers.produce(A, 4)
    tiers.ask("copy", node=A)
    tiers.lead(B, [B], A, B)
    tiers.produce(B, 4)
    for _ in range(6):
        tiers.follow(A, B)
    assert tiers.starts(A) == (0, 0, 4) and tiers.epochs(A) == [(2, 0)] and tiers.asks[-1]["isr"] == [A, B]
    return tiers


def test_tk1_what_is_known_of_remote_storage_outlives_the_log(jvm: Jvm) -> None:
    """What is committed, and in remote storage nowhere, is deleted on the disk of who follows, or leads again."""
    with shipped("TK1", "the highest offset in remote storage outlives a truncation, and local retention goes by it"):
        tiers = reelected(jvm)
        assert tiers.seen[A]["highestRemote"] == 2
        tiers.ask("retain", node=A)
        assert tiers.starts(A) == (0, 3, 4) and tiers.records(A) == ["r8"]
        assert all(each["epochs"][0][0] == 1 for each in tiers.copies().values()), "they are another log's"
        tiers.lead(A, [A, B], A, B)
        tiers.produce(A)
        for _ in range(3):
            tiers.follow(B, A)
        tiers.ask("copy", node=A)
        assert tiers.starts(A)[0] == 3, "and where the first remote segment of its lineage begins it begins"
        tiers.follow(B, A)
        assert tiers.starts(B) == (3, 3, 5), "so does the other's log: three records that both had are gone"


def test_tk1_not_where_another_process_has_followed(jvm: Jvm) -> None:
    """It knows of nothing, and nothing is deleted."""
    tiers = Tiers(jvm)
    tiers.lead(A, [A], A)
    tiers.produce(A, 4)
    tiers.ask("copy", node=A)
    tiers.ask("crash", node=A)
    tiers.lead(B, [B], B)
    tiers.produce(B, 4)
    tiers.ask("start", node=A, records=tiers.log)
    for _ in range(6):
        tiers.follow(A, B)
    tiers.ask("retain", node=A)
    assert tiers.starts(A) == (0, 0, 4) and tiers.seen[A]["highestRemote"] == -1


def test_tk3_what_is_not_uploaded_is_told_as_the_log_start(jvm: Jvm) -> None:
    """The leader compares for itself, where the text has it say that it does not know."""
    with shipped("TK3", "a leader who has uploaded nothing answers with its log start for the EPUO"):
        tiers = Tiers(jvm)
        tiers.lead(A, [A], A)
        tiers.produce(A, 3)
        told = [tiers.listed(A, EARLIEST_PENDING_UPLOAD)]
        tiers.ask("copy", node=A)
        told.append(tiers.listed(A, EARLIEST_PENDING_UPLOAD))
    assert told == [("NONE", 0, 1), ("NONE", 2, 1)]


def test_tk3_a_leader_that_has_not_looked_does_not_know_and_the_follower_waits(jvm: Jvm) -> None:
    """Where its log start and its local log start differ: as the text has it."""
    tiers = uploaded(jvm, from_tiered=True)
    tiers.ask("crash", node=A)
    tiers.lead(A, [A])
    tiers.ask("start", node=A, records=tiers.log)
    tiers.replayed[A] = len(tiers.log)
    tiers.learn(A, B)
    assert tiers.listed(A, EARLIEST_PENDING_UPLOAD) == ("NONE", -1, -1)
    tiers.hear(B)
    with shipped("TK3", "the follower asks for the local log start, which is not the log start, and tries again"):
        assert [each.get("offset") for each in tiers.follow(B, A)][-2:] == [-1, 5]
        assert tiers.starts(B) == (0, 0, 0)
    tiers.ask("copy", node=A)
    tiers.follow(B, A)
    assert tiers.starts(B) == (0, 5, 5) and tiers.epochs(B) == [(1, 0), (2, 4)]


def test_tk7_an_empty_follower_of_an_empty_log_asks_for_nothing(jvm: Jvm) -> None:
    """With the flag on: there is nothing to begin behind."""
    tiers = Tiers(jvm, from_tiered=True)
    tiers.lead(A, [A], A, B)
    with shipped("TK7", "an empty follower of an empty leader does not ask for the EPUO"):
        assert [each["kind"] for each in tiers.follow(B, A)] == ["fetched"]
    tiers = uploaded(jvm, from_tiered=True)
    tiers.produce(A, 2)
    tiers.ask("copy", node=A)
    tiers.learn(C)
    tiers.hear(C)
    kinds = [(each["kind"], each.get("offset")) for each in tiers.follow(C, A)]
    assert ("listed", 7) in kinds, "where there is something it begins at the EPUO, and not at the local log start, 5"
    assert tiers.starts(C) == (0, 7, 7) and tiers.epochs(C) == [(1, 0), (2, 4)]


def test_tk5_who_lags_behind_the_log_start_begins_there(jvm: Jvm) -> None:
    """B has the first record when A's log begins at the fifth, by retention in remote storage."""
    tiers = Tiers(jvm, retention_ms="1000")
    tiers.lead(A, [A], A, B)
    tiers.produce(A)
    tiers.follow(B, A)
    tiers.lead(A, [A], A)
    tiers.produce(A, 4)
    tiers.upload(A)
    tiers.ask("expire", node=A)
    assert (tiers.starts(A), tiers.starts(B)) == ((4, 4, 5), (0, 0, 1))
    tiers.hear(B)
    with shipped("TK5", "it is told where the log ends and begins, and cuts its own, which ends before that"):
        told = [(each["error"], each.get("offset")) for each in tiers.follow(B, A)]
        assert told == [("OFFSET_OUT_OF_RANGE", None), ("NONE", 5), ("NONE", 4)]
        assert (tiers.starts(B), tiers.epochs(B)) == ((4, 4, 4), [])
    tiers.follow(B, A)
    assert (tiers.starts(B), tiers.epochs(B)) == ((4, 4, 5), [(2, 4)])


def test_tk8_a_segment_of_another_lineage_counts_up_to_where_they_part(jvm: Jvm) -> None:
    """Two records a segment: A's second one begins with a record that B has, and goes on with one that it has not."""
    tiers = Tiers(jvm, internal_segment_bytes="150")
    tiers.lead(A, [A], A, B)
    tiers.produce(A, 3)
    for _ in range(4):
        tiers.follow(B, A)
    tiers.ask("altered", node=A, request=tiers.asks[-1]["id"], error="INELIGIBLE_REPLICA")  # B stays outside the ISR
    tiers.lead(A, [A], A)
    tiers.produce(A, 3)
    tiers.ask("copy", node=A)
    assert [each["epochs"] for each in tiers.copies().values()] == [[[1, 0]], [[1, 2], [2, 3]]]
    tiers.learn(B)
    tiers.lead(B, [B], B)
    assert tiers.starts(B) == (0, 0, 3) and tiers.epochs(B) == [(1, 0), (3, 3)]
    tiers.ask("copy", node=B)
    with shipped("TK8", "the highest offset is that up to which a segment is its lineage's"):
        assert tiers.seen[B]["highestRemote"] == 2 and tiers.listed(B, LAST_TIERED) == ("NONE", 2, 1)
    tiers.produce(B, 2)
    tiers.ask("copy", node=B)
    last = list(tiers.copies().values())[-1]
    assert (last["broker"], last["start"], last["end"], last["epochs"]) == (B, 2, 4, [[1, 2], [3, 3]]), (
        "it uploads its own"
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
def test_tk4_a_process_that_ends_leaves_the_same_where_its_high_watermark_was_stored(jvm: Jvm, *, stored: bool) -> None:
    """Who knows no epoch fetches from its high watermark on: from behind what is in remote storage, or from 0 again."""
    tiers = half_built(jvm)
    if stored:
        tiers.ask("checkpoint", node=B)
    tiers.store(B, fails=False)
    tiers.ask("crash", node=B)
    tiers.ask("start", node=B, records=tiers.log)
    tiers.learn(B)
    assert tiers.starts(B) == (0, 5, 5)
    errors = [each["error"] for each in tiers.follow(B, A)]
    if stored:
        with shipped("TK4", "a process that ends then goes on without the epochs, where its high watermark is stored"):
            assert errors == ["NONE"] and tiers.epochs(B) == [(2, 5)]
    else:
        assert errors[0] == "OFFSET_MOVED_TO_TIERED_STORAGE" and tiers.epochs(B) == [(1, 0), (2, 4)]
