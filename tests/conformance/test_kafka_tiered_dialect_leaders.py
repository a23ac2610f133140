"""The rows TK2, TK6 and TK9 to TK17 of DEVIATIONS.md, of leaders with tiered storage.

Kafka's RLMCopyTask, RLMExpirationTask, TopicConfigHandler, LocalLeaderEndPoint and TierStateMachine. The other rows are
in ``test_kafka_tiered_dialect.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fencepost.conformance.kafka.process import TIERED, Jvm
from fencepost.model.protocols.tiering import tiering

from .kafka_dialect import Walk, shipped
from .kafka_jvm import one_jvm
from .kafka_tiers import EARLIEST, EARLIEST_PENDING_UPLOAD, Tiers
from .test_kafka_driver import A, B, C
from .test_kafka_tiered_dialect import half_built

pytestmark = pytest.mark.kafka
FINISHED, DELETED = "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_FINISHED"


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all; each test starts its brokers afresh."""
    yield from one_jvm(drives=TIERED)


def remote(tiers: Tiers, state: str = FINISHED) -> list[int]:
    """Where segments begin that are in remote storage, or whose metadata are in another state."""
    return [each["start"] for each in tiers.copies().values() if each["state"] == state]


def replicated(jvm: Jvm, count: int, retention_ms: str = "-1") -> Tiers:
    """A leads, and B has all of its records, on its disk."""
    tiers = Tiers(jvm, retention_ms=retention_ms)
    tiers.lead(A, [A, B], A, B)
    tiers.produce(A, count)
    for _ in range(count + 1):
        tiers.follow(B, A)
    assert tiers.starts(A) == tiers.starts(B) == (0, 0, count)
    return tiers


def written(variant: str, count: int, *constants: int) -> Walk:
    """A leads, and B has all of its records, in the model; B has not heard that any of them is committed."""
    walk = Walk(tiering, variant, *constants)
    walk("elect_leader", replica=A)
    walk("find_highest_remote_offset", leader=A)
    for _ in range(count):
        walk("leader_write", leader=A)
    walk("become_follower", leader=A, follower=B)
    for _ in range(count):
        walk("follower_fetch", leader=A, follower=B)
    for _ in range(count):
        walk("leader_inc_high_watermark", leader=A)
    return walk


def uploads(walk: Walk, start: int, end: int) -> None:
    """A has a segment in remote storage."""
    walk("start_copy", leader=A, end=end)
    walk("copy_segment", leader=A, start=start)
    walk("finish_copy", leader=A, start=start)


# -- TK2: where a new leader's log begins ------------------------------------------------------------------------------


def test_tk2_a_new_leaders_log_begins_where_remote_storage_does(jvm: Jvm) -> None:
    """It has not heard of its predecessor's log start. Above its high watermark that is an error, and tried again."""
    with shipped("TK2", "a new leader's log start moves to the first offset of its lineage in remote storage"):
        # C stays behind, so that nothing is committed as far as B knows.
        tiers = Tiers(jvm, retention_bytes="250")
        tiers.lead(A, [A, B, C], A, B)
        tiers.produce(A, 5)
        for _ in range(6):
            tiers.follow(B, A)
        tiers.ask("shrink", node=A)
        tiers.grant(A, answered=True)
        assert (tiers.seen[A]["hw"], tiers.seen[B]["hw"]) == (5, 0)
        tiers.ask("copy", node=A)
        tiers.ask("expire", node=A)
        assert (remote(tiers), remote(tiers, DELETED)) == ([1, 2, 3], [0]) and tiers.starts(A) == (1, 1, 5)
        tiers.learn(B)
        tiers.lead(B, [A, B], B)
        for hw, starts, highest in ((0, (0, 0, 5), -1), (5, (1, 1, 5), 3)):
            if hw:
                tiers.hear(A)
                for _ in range(2):
                    tiers.follow(A, B)
            tiers.ask("copy", node=B)
            assert (tiers.seen[B]["hw"], tiers.starts(B), tiers.seen[B]["highestRemote"]) == (hw, starts, highest)
    refused = "log_start_is_committed"
    for variant, start in (("kip-1023", 0), ("highest-alone", 0), ("first-on-remote", 1), ("kip-1023-safe", 1)):
        walk = written(variant, 2, 2, 2, 1, 0, 0, 0, 0, 1)
        uploads(walk, 0, 1)
        uploads(walk, 1, 2)
        walk("increment_log_start", leader=A)
        walk("delete_segment", leader=A, epoch=0, start=0)
        walk("elect_leader", replica=B)
        assert walk.refused_by("find_highest_remote_offset", leader=B) == (refused if start else None)
        walk("become_follower", leader=B, follower=A)
        walk("leader_inc_high_watermark", leader=B)
        walk("find_highest_remote_offset", leader=B)
        assert (walk["log_start[1]"], walk["highest_remote[1]"]) == (start, 1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("gap", [True, False], ids=["a gap", "none"])
def test_tk2_it_claims_a_gap_in_remote_storage(jvm: Jvm, *, gap: bool) -> None:
    """Its predecessor's log start had moved past what was uploaded. Where all is uploaded nothing is lost."""
    with shipped("TK2", "a new leader claims what remote storage lacks, and deletes it on its disk"):
        tiers = replicated(jvm, 2)
        tiers.ask("copy", node=A)
        tiers.produce(A, 2)
        for _ in range(3):
            tiers.follow(B, A)
        if gap:
            tiers.ask("trim", node=A, offset=2)
            assert tiers.starts(A) == (2, 2, 4)
        tiers.ask("copy", node=A)
        tiers.learn(B)
        tiers.lead(B, [A, B], A, B)
        tiers.ask("copy", node=B)
        tiers.ask("retain", node=B)
        assert tiers.starts(B) == (0, 3, 4) and tiers.listed(B, EARLIEST) == ("NONE", 0, 1)
        assert remote(tiers) == ([0, 2] if gap else [0, 1, 2]), "one record each"
    for variant, start in (("first-on-remote", 0), ("kip-1023-safe", 2)) if gap else ():
        walk = written(variant, 3, 2, 3, 1, 0, 0, 0, 0, 1)
        uploads(walk, 0, 1)
        for _ in range(2):
            walk("increment_log_start", leader=A)
        uploads(walk, 2, 3)
        walk("elect_leader", replica=B)
        walk("become_follower", leader=B, follower=A)
        for _ in range(3):
            walk("leader_inc_high_watermark", leader=B)
        walk("find_highest_remote_offset", leader=B)
        assert (walk["log_start[1]"], walk["highest_remote[1]"]) == (start, 2)
        for _ in range(3 - start):
            walk("delete_local", leader=B)
        assert walk.broken == ([] if start else ["leader_can_serve"])


def test_tk2_it_lets_go_of_what_is_on_its_disk_alone(jvm: Jvm) -> None:
    """B has two of A's four records. C, which has none of them, has deleted two of three segments when B leads."""
    tiers = Tiers(jvm)
    tiers.lead(A, [A], A, B)
    tiers.produce(A, 4)
    for _ in range(2):
        tiers.follow(B, A)
    tiers.ask("copy", node=A)
    tiers.lead(C, [C], C)
    tiers.produce(C)
    tiers.learn(C)
    tiers.ask("work", node=C, what="expire")
    tiers.go(C, 6)
    assert (remote(tiers), remote(tiers, DELETED)) == ([2], [0, 1])
    tiers.learn(B)
    tiers.lead(B, [B], B)
    assert (tiers.starts(B), tiers.seen[B]["hw"]) == ((0, 0, 2), 2)
    with shipped("TK2", "a segment of an epoch of the log counts, though it begins where the lineages have parted"):
        tiers.ask("copy", node=B)
        assert tiers.starts(B) == (2, 2, 2) and tiers.listed(B, EARLIEST) == ("NONE", 2, 3)


# -- TK6: an epoch that is not known -----------------------------------------------------------------------------------


def within(tiers: Tiers, node: int, at: int, **epoch: int) -> Any:
    """What a broker says of its log within itself; and what another log asks that is told its local log start."""
    return tiers.jvm.ask("within", node=node, at=at, **epoch)


def test_tk6_within_a_broker_an_epoch_that_is_not_known_is_0(jvm: Jvm) -> None:
    """Others are told -1. Of this the model has nothing: it has no broker with two logs."""
    with shipped("TK6", "a broker that does not know an epoch says 0 within itself, and -1 to others"):
        tiers = half_built(jvm)
        tiers.lead(A, [A], A, B)
        for _ in range(2):
            tiers.follow(B, A)
        tiers.store(B, fails=False)
        tiers.lead(B, [A, B], A, B)
        tiers.ask("copy", node=B)
        assert tiers.starts(B) == (4, 5, 6) and tiers.epochs(B)[0] == (2, 5)
        assert tiers.listed(B, EARLIEST) == ("NONE", 4, -1)
        told = within(tiers, B, C)
        assert (told["earliest"], told["local"]) == ([4, 0], [5, 2]), "of its local log start it knows the epoch"


def test_tk6_0_is_taken_for_an_epoch_and_no_earlier_one_is_asked_for(jvm: Jvm) -> None:
    """Who is told the epoch asks for where the one before ends, and finds the segment."""
    with shipped("TK6", "a log that is told epoch 0 asks for no earlier one, and finds nothing in remote storage"):
        tiers = half_built(jvm)
        tiers.hear(C)
        tiers.learn(C)
        told = within(tiers, B, C)
        assert (told["local"], told["asked"]) == ([5, 0], []) and told["thrown"] == "RemoteStorageException"
        told = within(tiers, A, C, epoch=0)
        assert (told["asked"], told["thrown"]) == ([], "RemoteStorageException")
        told = within(tiers, A, C)
        assert (told["local"], told["asked"]) == ([5, 2], [1]) and "thrown" not in told
        tiers.ask("learn", node=C)
        assert tiers.starts(C) == (0, 5, 5) and tiers.epochs(C) == [(1, 0), (2, 4)]


# -- TK9: who is deposed while it deletes ------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("hears", [True, False], ids=["hears", "does not hear"])
def test_tk9_who_hears_of_another_leader_deletes_no_more(jvm: Jvm, *, hears: bool) -> None:
    """It had begun. Who does not hear deletes all that the new leader serves."""
    with shipped("TK9", "who is deposed, and hears of it while it deletes in remote storage, ends with that segment"):
        tiers = replicated(jvm, 5, retention_ms="1000")
        tiers.ask("copy", node=A)
        assert remote(tiers) == [0, 1, 2, 3]
        tiers.learn(B)
        tiers.lead(B, [A, B], B)
        tiers.ask("copy", node=B)
        tiers.ask("retain", node=B)
        assert tiers.starts(B) == (0, 4, 5) and tiers.seen[A]["leads"]
        if hears:
            tiers.ask("deposed", node=A, records=tiers.log[tiers.replayed[A] :])
        else:
            tiers.ask("expire", node=A)
        assert remote(tiers, DELETED) == ([0] if hears else [0, 1, 2, 3]) and tiers.seen[A]["leads"] is not hears
        assert tiers.starts(A)[0] == 4 and tiers.starts(B) == (0, 4, 5)
        tiers.ask("expire", node=A)
        assert remote(tiers) == ([1, 2, 3] if hears else []), "nor does it begin again"
    for variant in ("kip-1023", "deposed-deletes", "kip-1023-safe"):
        walk = written(variant, 1, 2, 1, 1, 1, 0, 0, 0, 1)
        uploads(walk, 0, 1)
        walk("elect_leader", replica=B)
        walk("leader_shrink_isr", leader=B, follower=A)
        walk("leader_inc_high_watermark", leader=B)
        walk("find_highest_remote_offset", leader=B)
        walk("delete_local", leader=B)
        walk("increment_log_start", leader=A)
        if hears:
            walk("become_follower", leader=B, follower=A)
            assert walk.refused_by("delete_segment", leader=A, epoch=0, start=0) == "presumes_leadership"
        elif variant == "kip-1023-safe":
            assert walk.refused_by("delete_segment", leader=A, epoch=0, start=0) == "epoch_is_newest"
        else:
            walk("delete_segment", leader=A, epoch=0, start=0)
            assert walk.broken == ["leader_can_serve"]


# -- TK10: tiering is switched off -------------------------------------------------------------------------------------


def three(jvm: Jvm) -> Tiers:
    """A has the last of four records on its disk, B all of them; C began at A's local log start. All are in the ISR."""
    tiers = replicated(jvm, 4)
    tiers.upload(A)
    tiers.learn(C)
    tiers.hear(C)
    for _ in range(2):
        tiers.follow(C, A)
    tiers.lead(A, [A, B, C], A, B, C)
    assert [tiers.starts(node) for node in (A, B, C)] == [(0, 3, 4), (0, 0, 4), (0, 3, 4)]
    return tiers


def switch(tiers: Tiers, *nodes: int, **topic: str) -> None:
    """Brokers hear of a topic's configuration."""
    for node in nodes:
        configs = {name.replace("_", "."): value for name, value in topic.items()}
        tiers.ask("configure", node=node, topic=configs)


OFF = {"remote_storage_enable": "false", "remote_log_delete_on_disable": "true"}


def test_tk10_the_log_start_moves_at_the_leader_alone(jvm: Jvm) -> None:
    """All hear of it; a follower's moves with its next fetch. The next leader's begins where it did."""
    tiers = three(jvm)
    switch(tiers, A, B, C, remote_log_delete_on_disable="true")
    assert [tiers.starts(node)[0] for node in (A, B, C)] == [0, 0, 0] and len(remote(tiers)) == 3, "it is on"
    with shipped("TK10", "where tiering is switched off the log start moves at the leader alone"):
        switch(tiers, A, B, C, **OFF)
        assert [tiers.starts(node)[0] for node in (A, B, C)] == [3, 0, 0] and remote(tiers) == []
        tiers.follow(C, A)
        assert [tiers.starts(node)[0] for node in (A, B, C)] == [3, 0, 3]
        tiers = three(jvm)
        switch(tiers, A, B, C, **OFF)
        tiers.lead(B, [A, B, C], A, B, C)
        for follower in (A, C):
            tiers.follow(follower, B)
        assert tiers.listed(B, EARLIEST) == ("NONE", 0, 1) and tiers.records(B)[0] == "r1"
        assert tiers.seen[C]["logStart"] == 0 and tiers.records(C) == ["r4"], "it claims what it has nowhere"
    for variant, starts in (("kip-1023", [1, 0, 0]), ("disabled-at-leader", [1, 0, 0]), ("kip-1023-safe", [1, 1, 1])):
        walk = Walk(tiering, variant, 3, 1, 1, 1, 0, 0, 1, 0)
        walk("elect_leader", replica=A)
        walk("find_highest_remote_offset", leader=A)
        for follower in (B, C):
            walk("leader_shrink_isr", leader=A, follower=follower)
        walk("leader_write", leader=A)
        walk("leader_inc_high_watermark", leader=A)
        uploads(walk, 0, 1)
        walk("become_follower", leader=A, follower=B)
        walk("follower_fetch", leader=A, follower=B)
        walk("delete_local", leader=A)
        walk("become_follower", leader=A, follower=C)
        walk("build_to_epuo", leader=A, follower=C, epoch=0)
        for follower in (B, C):
            walk("leader_expand_isr", leader=A, follower=follower)
        walk("disable_tiering", leader=A)
        assert [walk[f"log_start[{node}]"] for node in (A, B, C)] == starts
        walk("elect_leader", replica=B)
        assert walk.broken == ([] if variant == "kip-1023-safe" else ["isr_can_serve"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("given_up", [True, False], ids=["given up", "kept"])
def test_tk11_a_leader_counts_a_copy_that_its_successor_has_given_up(jvm: Jvm, *, given_up: bool) -> None:
    """A has not heard that B, which has nothing, was elected uncleanly; B deletes what is of epochs before its own."""
    tiers = Tiers(jvm)
    tiers.lead(A, [A], A)
    tiers.produce(A, 4)
    tiers.begin_copy(A, 2)
    tiers.lead(B, [B], B)
    tiers.produce(B, 1)
    tiers.learn(B)
    if given_up:
        tiers.ask("expire", node=B)
    states = [each["state"] for each in tiers.copies().values()]
    assert states == [DELETED if given_up else "COPY_SEGMENT_STARTED"]
    tiers.go(A)
    assert len(tiers.answer["stored"]) == (0 if given_up else 1)
    with shipped("TK11", "a leader counts its copy once it has written that it is finished, whatever comes of that"):
        assert remote(tiers) == [0] and tiers.seen[A]["highestRemote"] == 0
        tiers.ask("retain", node=A)
        assert tiers.starts(A) == (0, 1, 4), "it deletes on its disk what is in remote storage as far as it knows"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("written", [False, True], ids=["not written", "written"])
def test_tk12_a_process_that_starts_has_a_former_log_start_without_its_epochs(jvm: Jvm, *, written: bool) -> None:
    """Unless its checkpoint was written meanwhile."""
    tiers = Tiers(jvm)
    tiers.lead(A, [A], A)
    tiers.produce(A, 4)
    tiers.ask("trim", node=A, offset=2)
    assert tiers.starts(A)[0] == 2 and tiers.epochs(A) == [(1, 2)]
    if written:
        tiers.ask("checkpoint-starts", node=A)
    tiers.ask("crash", node=A)
    tiers.ask("start", node=A, records=tiers.log)
    with shipped(
        "TK12", "leader epochs are cut at once where the log start rises, and its checkpoint is written later"
    ):
        assert tiers.starts(A)[0] == (2 if written else 0) and tiers.epochs(A) == [(1, 2)]
    tiers.lead(A, [A], A)
    tiers.produce(A)
    with shipped("TK12", "what has no leader epoch is not uploaded, and so nothing is that comes after it"):
        for _ in range(3):
            tiers.ask("copy", node=A)
            tiers.learn(A)
        assert remote(tiers) == ([2, 3] if written else []) and tiers.starts(A)[2] == 5


def test_tk13_an_earliest_pending_upload_at_the_end_of_the_log_is_not_told(jvm: Jvm) -> None:
    """A has uploaded all that B has, whose active segment begins with the last of it; then B leads, and C is empty."""
    tiers = Tiers(jvm, from_tiered=True)
    tiers.lead(A, [A, B], A, B)
    tiers.produce(A, 3)
    for _ in range(4):
        tiers.follow(B, A)
    tiers.produce(A)
    tiers.ask("copy", node=A)
    assert remote(tiers) == [0, 1, 2]
    tiers.learn(B, C)
    tiers.lead(B, [B], B, C)
    tiers.upload(B)
    assert tiers.starts(B) == (0, 2, 3) and tiers.seen[B]["highestRemote"] == 2
    with shipped("TK13", "of an earliest pending upload offset at the end of its log a leader says -1"):
        assert tiers.listed(B, EARLIEST_PENDING_UPLOAD) == ("NONE", -1, -1)
        for _ in range(3):
            tiers.follow(C, B)
        assert tiers.starts(C) == (0, 0, 0), "it tries again, for ever"
    tiers.produce(B)
    assert tiers.listed(B, EARLIEST_PENDING_UPLOAD) == ("NONE", 3, 2)
    tiers.follow(C, B)
    assert tiers.starts(C) == (0, 3, 3), "as soon as there is a record it begins"


def test_tk14_what_is_of_no_lineage_stays_until_the_log_begins_later(jvm: Jvm) -> None:
    """B, elected uncleanly, has uploaded a record in A's stead, and then A leads again, uncleanly."""
    tiers = Tiers(jvm, retention_ms="1000")
    tiers.lead(A, [A], A)
    tiers.produce(A, 4)
    tiers.lead(B, [B], B)
    tiers.produce(B, 2)
    tiers.ask("copy", node=B)
    tiers.learn(A, B)
    tiers.lead(A, [A], A)
    tiers.upload(A)
    tiers.ask("expire", node=A)
    assert (tiers.starts(A), tiers.epochs(A)) == ((3, 3, 4), [(1, 3), (3, 4)])
    assert remote(tiers, DELETED) == [0, 1, 2]
    with shipped("TK14", "what is below a log start goes if an epoch of the log is in it, or all are before its first"):
        for _ in range(3):
            tiers.learn(A)
            tiers.ask("expire", node=A)
        assert remote(tiers) == [0], "it is of epoch 2, of which the log has nothing"
    tiers.produce(A, 2)
    tiers.upload(A)
    for _ in range(2):
        tiers.learn(A)
        tiers.ask("expire", node=A)
    assert (tiers.starts(A), tiers.epochs(A)) == ((5, 5, 6), [(3, 5)])
    assert remote(tiers) == [], "it is of an epoch before the log's first"


def test_tk15_a_copy_is_forgotten_when_another_one_begins_there(jvm: Jvm) -> None:
    """B has not read that A has uploaded both segments when it leads, and uploads them, too."""
    tiers = replicated(jvm, 3, retention_ms="1000")
    tiers.ask("copy", node=A)
    tiers.lead(B, [A, B], A, B)
    for _ in range(2):
        tiers.follow(A, B)
    tiers.ask("copy", node=B)
    assert remote(tiers) == [0, 1, 0, 1]
    tiers.learn(A, B)
    tiers.ask("retain", node=B)
    with shipped("TK15", "of an epoch whose copies go further, one is forgotten when another one begins where it does"):
        for _ in range(3):
            tiers.ask("expire", node=B)
            tiers.learn(A, B)
        assert tiers.starts(B) == (2, 2, 3)
        (left,) = [each for each in tiers.copies().values() if each["state"] == FINISHED]
        assert (left["start"], sorted(remote(tiers, DELETED))) == (0, [0, 1, 1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("flag", [True, False], ids=["from tiered", "not"])
def test_tk16_an_empty_follower_looks_for_what_comes_before_a_log_start(jvm: Jvm, *, flag: bool) -> None:
    """A's records were deleted by DeleteRecords before anything was uploaded; without the flag C begins there."""
    tiers = Tiers(jvm, from_tiered=flag)
    tiers.lead(A, [A], A, C)
    tiers.produce(A, 4)
    tiers.ask("trim", node=A, offset=3)
    tiers.ask("copy", node=A)
    assert tiers.starts(A) == (3, 3, 4) and tiers.listed(A, EARLIEST_PENDING_UPLOAD) == ("NONE", 3, 1)
    with shipped("TK16", "an empty follower wants a remote segment before the log start, and waits for an upload"):
        for _ in range(3):
            tiers.follow(C, A)
        assert tiers.starts(C) == ((0, 0, 0) if flag else (3, 3, 4))
    tiers.produce(A)
    tiers.ask("copy", node=A)
    tiers.learn(C)
    for _ in range(2):
        tiers.follow(C, A)
    assert tiers.starts(C) == ((3, 4, 5) if flag else (3, 3, 5))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("restarted", [False, True], ids=["runs on", "starts again"])
def test_tk17_a_local_log_start_stays_above_where_a_log_is_cut(jvm: Jvm, *, restarted: bool) -> None:
    """A has deleted the first record when C, which is empty, is elected uncleanly, and uploads nothing; B joins C."""
    tiers = Tiers(jvm)
    tiers.lead(A, [A, B], A, B)
    tiers.produce(A, 2)
    for _ in range(3):
        tiers.follow(B, A)
    tiers.ask("trim", node=A, offset=1)
    tiers.follow(B, A)
    assert tiers.starts(B) == (1, 1, 2)
    with shipped("TK17", "of a log that is cut below its log start the local log start stays where it was"):
        tiers.lead(C, [C], B, C)
        tiers.follow(B, C)
        assert tiers.starts(B) == (0, 1, 0), "it ends before it begins"
        if restarted:
            tiers.ask("crash", node=B)
            tiers.ask("start", node=B, records=tiers.log)
        tiers.produce(C, 2)
        for _ in range(3):
            tiers.follow(B, C)
        assert tiers.starts(C) == (0, 0, 2) and tiers.seen[C]["hw"] == 2, "both are committed"
        assert tiers.starts(B) == ((0, 0, 2) if restarted else (0, 1, 2))
        tiers.lead(B, [B, C], B, C)
        tiers.follow(C, B)
        tiers.ask("copy", node=B)
        tiers.follow(C, B)
        start = 0 if restarted else 1
        assert tiers.listed(B, EARLIEST) == ("NONE", start, 2)
        assert tiers.starts(B)[0] == tiers.starts(C)[0] == start, "a record is lost that was committed after all that"
