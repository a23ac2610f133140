"""The K rows of DEVIATIONS.md, V2 and V5: Apache Kafka's classes do the one thing, the model of the text the other.

K11 and K12 have more to tell, and have tests of their own in ``test_kafka_driver.py``; here is what the variants say.
The Apache variant agrees with Kafka. Kafka counts leader epochs from 1 where the model does from 0. A row that a
release closes turns its test red, and that says so (``kafka_dialect.py``); changes planted in Kafka's classes show that
it would.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fencepost.conformance.kafka.process import Jvm
from fencepost.impl.offsets.schema import CommittedOffset, OffsetKey, decode_value, encode_key, encode_value
from fencepost.impl.wire.messages import NO_EPOCH, TopicPartition
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.truncation import truncation

from .kafka_dialect import RowClosed, Walk, shipped
from .kafka_jvm import one_jvm, planted
from .test_kafka_driver import A, B, C, Trio, isr_without_c

pytestmark = pytest.mark.kafka
TEXT, CLUSTER, APACHE = "kip-320", "kip-320-cluster", "kip-320-kafka"


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all; each test starts its brokers afresh."""
    yield from one_jvm()


def led(jvm: Jvm, **options: Any) -> Trio:
    """A leads in Kafka's epoch 1, and all have heard of it."""
    trio = Trio(jvm, **options)
    trio.decide(leader=A)
    for node in (A, B, C):
        trio.replay(node)
    return trio


def walk(variant: str, *constants: int) -> Walk:
    return Walk(fencing, variant, *(constants or (3, 2, 2, 2)))


def model_led(variant: str) -> Walk:
    """The same in the model: A leads in its epoch 0."""
    found = walk(variant)
    found("controller_elect_leader", new_leader=A)
    found("become_leader", leader=A, epoch=0)
    for follower in (B, C):
        if found.has("become_follower"):
            found("become_follower", leader=A, follower=follower, epoch=0)
        else:
            found("hear_of_leader", replica=follower, epoch=0)
    return found


def fields(jvm: Jvm, api: str, side: str = "request") -> dict[int, set[str]]:
    """By version, the paths of a message's fields."""
    return {int(version): set(paths) for version, paths in jvm.ask("fields", api=api)[side].items()}


def fenced(jvm: Jvm, *, ahead: bool) -> str:
    """What a leader answers to a follower that is an epoch behind, or ``ahead``."""
    trio = led(jvm)
    trio.decide(leader=A)
    trio.replay(C if ahead else A)
    return str(trio.fetch(C, A)["error"])


def model_fenced(variant: str, *, ahead: bool) -> str | None:
    """Which guard refuses such a fetch, of a record that is there."""
    found = model_led(variant)
    found("leader_write", leader=A)
    found("controller_elect_leader", new_leader=B)
    found("controller_elect_leader", new_leader=A)
    if not ahead:
        found("become_leader", leader=A, epoch=2)
    elif found.has("become_follower"):
        # The text has it ask the leader of its own epoch while it truncates; who is ahead of that one cannot follow it.
        return found.refused_by("become_follower", leader=A, follower=C, epoch=2)
    else:
        found("hear_of_leader", replica=C, epoch=2)
    return found.refused_by("follower_fetch", leader=A, follower=C)


def test_k1_the_error_of_an_older_epoch_has_another_name(jvm: Jvm) -> None:
    with shipped("K1", "it says FENCED_LEADER_EPOCH, code 74, to who is in an older epoch"):
        codes = jvm.ask("errors")["errors"]
        assert (codes.get("FENCED_LEADER_EPOCH"), codes.get("FENCED_REPLICA")) == (74, None)
        assert fenced(jvm, ahead=False) == "FENCED_LEADER_EPOCH"
    for variant in (TEXT, APACHE):
        assert model_fenced(variant, ahead=False) == "epoch_not_fenced"


def test_k2_the_error_of_a_newer_epoch_has_the_code_75(jvm: Jvm) -> None:
    with shipped("K2", "it says UNKNOWN_LEADER_EPOCH, code 75, to who is in a newer epoch"):
        assert jvm.ask("errors")["errors"].get("UNKNOWN_LEADER_EPOCH") == 75
        assert fenced(jvm, ahead=True) == "UNKNOWN_LEADER_EPOCH"
    assert model_fenced(TEXT, ahead=True) == "leader_epoch_matches"
    assert model_fenced(APACHE, ahead=True) == "epoch_not_fenced"


def test_k3_no_error_tells_of_a_truncation(jvm: Jvm) -> None:
    """That the consumer throws of itself is shown in ``test_kafka_reader.py``."""
    with shipped("K3", "none of its errors is LOG_TRUNCATION"):
        assert "LOG_TRUNCATION" not in jvm.ask("errors")["errors"]
    text, apache = (Walk(truncation, variant, 2, 2, 3, 2) for variant in (TEXT, APACHE))
    assert text.has("answer_log_truncation") and not apache.has("answer_log_truncation")
    assert apache.has("raise_truncation") and not text.has("raise_truncation")


def divergence(jvm: Jvm) -> Trio:
    """B follows a leader that has no record, and has one itself."""
    trio = led(jvm)
    trio.ask("produce", node=A, request=-1, payload="r", acks=-1)
    trio.fetch(B, A)
    trio.decide(leader=C)
    trio.replay(C)
    trio.replay(B)
    return trio


def test_k4_a_fetch_names_both_epochs_and_tells_where_logs_part(jvm: Jvm) -> None:
    with shipped("K4", "a fetch names the current and the last fetched epoch, and is told where the logs part"):
        asked, answered = fields(jvm, "FETCH"), fields(jvm, "FETCH", "response")
        current, last = "topics.partitions.current_leader_epoch", "topics.partitions.last_fetched_epoch"
        diverging = "responses.partitions.diverging_epoch"
        assert [min(v for v, names in asked.items() if name in names) for name in (current, last)] == [9, 12]
        assert min(version for version, names in answered.items() if diverging in names) == 12
        trio = divergence(jvm)
        (fetch,) = trio.ask("fetch", node=B)
        assert (fetch["epoch"], fetch["lastEpoch"], fetch["offset"]) == (2, 1, 1)
        answer = next(each for each in trio.ask("serve", node=C, id=fetch["id"]) if each["kind"] == "fetched")
        assert answer["diverging"] == [1, 0] and trio.records(B) == ["r"]
        trio.ask("answer", node=B, id=answer["id"])
        assert trio.records(B) == []
    # The text's follower has cut its log before it fetches; Kafka's follows with the log that it has.
    text, apache = walk(TEXT), walk(APACHE)
    for found in (text, apache):
        found("controller_elect_leader", new_leader=A)
        found("become_leader", leader=A, epoch=0)
        found("leader_write", leader=A)
        found("controller_elect_leader", new_leader=C)
        found("become_leader", leader=C, epoch=1)
    text("become_follower", leader=C, follower=A, epoch=1)
    apache("hear_of_leader", replica=A, epoch=1)
    assert (text["leo[0]"], apache["leo[0]"]) == (0, 1)
    assert apache.refused_by("follower_acknowledge", leader=C, follower=A) == "previous_epoch_matches"
    apache("truncate_partly", leader=C, follower=A, end=0)
    assert apache["leo[0]"] == 0


def test_k5_a_replica_joins_while_the_high_watermark_is_behind(jvm: Jvm) -> None:
    """B has a record of its predecessor's that is not committed yet: C joins once it has that too."""
    with shipped("K5", "a replica joins the ISR before the high watermark has reached the leader's epoch"):
        trio = led(jvm, min_isr=1)
        trio.decide(isr=[A, B])
        for node in (A, B, C):
            trio.replay(node)
        trio.ask("produce", node=A, request=-1, payload="r", acks=-1)
        trio.fetch(B, A)
        trio.decide(leader=B)
        for node in (B, C):
            trio.replay(node)
        trio.fetch(C, B)
        assert trio.asks == []
        trio.fetch(C, B)
        assert trio.records(C) == ["r"] and trio.seen[B]["hw"] == 0
        assert [each["isr"] for each in trio.asks] == [[A, B, C]]
    refusals = {}
    for variant in (CLUSTER, APACHE):
        found = walk(variant)
        found("controller_shrink_isr", replica=C)
        found("controller_elect_leader", new_leader=A)
        found("become_leader", leader=A, epoch=1)
        found("hear_of_leader", replica=B, epoch=1)
        found("leader_write", leader=A)
        if variant == CLUSTER:
            found("become_follower", leader=A, follower=B, epoch=1)
        found("follower_fetch", leader=A, follower=B)
        found("controller_elect_leader", new_leader=B)
        found("become_leader", leader=B, epoch=2)
        found("hear_of_leader", replica=C, epoch=2)
        if variant == CLUSTER:
            found("become_follower", leader=B, follower=C, epoch=2)
        found("follower_fetch", leader=B, follower=C)
        if variant == CLUSTER:
            found("flush", replica=C, end=1)
        found("follower_acknowledge", leader=B, follower=C)
        assert (found["hw[1]"], found["leo[2]"]) == (0, 1)
        refusals[variant] = found.refused_by("leader_ask_expand", leader=B, follower=C)
    assert refusals == {CLUSTER: "hw_reached_epoch", APACHE: None}


@pytest.mark.parametrize(
    ("what", "again"), [("fence", "unfence"), ("shut down", "register"), ("register", None)], ids=str
)
def test_k6_only_a_broker_in_good_standing_joins(jvm: Jvm, what: str, again: str | None) -> None:
    """Fenced, in controlled shutdown, or of another broker epoch than its fetch names; the model has no such marks."""
    with shipped("K6", f"a replica whose broker is told to {what} does not join the ISR"):
        trio = led(jvm, min_isr=1)
        trio.decide(isr=[A, B])
        other = 77
        trio.decide(broker=C, what=what, epoch=other if what == "register" else C + 1)
        for node in (A, B, C):
            trio.replay(node, 2)
        trio.fetch(C, A)
        trio.fetch(C, A)
        assert trio.asks == []
    # And once that is over it joins: nothing else has kept it out.
    trio.decide(broker=C, what=again or "register", epoch=C + 1)
    trio.replay(A)
    trio.fetch(C, A)
    assert [each["isr"] for each in trio.asks] == [[A, B, C]]
    # In the model the leader may ask as soon as C has caught up, and need not: either is a run of it.
    found = walk(APACHE)
    found("controller_shrink_isr", replica=C)
    found("controller_elect_leader", new_leader=A)
    found("become_leader", leader=A, epoch=1)
    found("hear_of_leader", replica=C, epoch=1)
    found("follower_acknowledge", leader=A, follower=C)
    assert found.refused_by("leader_ask_expand", leader=A, follower=C) is None


def test_k7_a_leader_asks_the_controller_and_waits_for_the_larger_isr(jvm: Jvm) -> None:
    with shipped("K7", "a leader asks by AlterPartition, and counts the larger ISR until it is answered"):
        trio = isr_without_c(jvm)
        assert (trio.seen[A]["isr"], trio.seen[A]["maximal"]) == ([A, B], [A, B, C])
        trio.ask("produce", node=A, request=-2, payload="s", acks=-1)
        trio.fetch(B, A)
        trio.fetch(B, A)
        assert trio.seen[A]["hw"] == 1
    text, apache = (walk(variant) for variant in (TEXT, APACHE))
    for found in (text, apache):
        found("controller_shrink_isr", replica=C)
        found("controller_elect_leader", new_leader=A)
        found("become_leader", leader=A, epoch=1)
        for follower in (B, C):
            if found is text:
                found("become_follower", leader=A, follower=follower, epoch=1)
            else:
                found("hear_of_leader", replica=follower, epoch=1)
                found("follower_acknowledge", leader=A, follower=follower)
    text("leader_expand_isr", leader=A, follower=C)
    assert text["quorum_isr"] == text["isr[0]"] == 0b111
    apache("leader_ask_expand", leader=A, follower=C)
    assert apache["quorum_isr"] == apache["isr[0]"] == 0b011 and apache["maximal_isr[0]"] == 0b111
    apache("leader_write", leader=A)
    apache("follower_fetch", leader=A, follower=B)
    apache("follower_acknowledge", leader=A, follower=B)
    assert apache.refused_by("leader_inc_high_watermark", leader=A) == "isr_acknowledges"


def test_k8_a_search_for_an_epochs_end_names_the_current_epoch(jvm: Jvm) -> None:
    with shipped("K8", "OffsetForLeaderEpoch has the current epoch from version 2 on, the oldest that there is"):
        asked = fields(jvm, "OFFSET_FOR_LEADER_EPOCH")
        assert min(asked) == 2
        assert all("topics.partitions.current_leader_epoch" in names for names in asked.values())
        assert [version for version, names in asked.items() if "replica_id" not in names] == [2]


def test_k9_of_several_records_the_last_is_taken_up_and_none_twice(jvm: Jvm) -> None:
    """The text's requests come in any order, and each may be the one that is taken up. Here the last has no leader."""
    with shipped("K9", "a broker takes up the last record that it replays, also where nobody leads"):
        trio = led(jvm)
        trio.decide(leader=B)
        trio.decide(leader=-1)
        trio.replay(A, 2)
        assert (trio.seen[A]["epoch"], trio.seen[A]["leads"], trio.seen[A]["leader"]) == (3, False, -1)
        assert trio.seen[A]["fetcher"] == "none"
    for variant, refusal in ((CLUSTER, "names_another"), (APACHE, None)):
        found = model_led(variant)
        found("controller_elect_leader", new_leader=B)
        found("controller_shrink_isr", replica=B)
        assert found["request_leader[2]"] == -1
        assert found.refused_by("hear_of_leader", replica=A, epoch=2) == refusal


def test_k10_a_broker_stores_no_leader_epoch(jvm: Jvm) -> None:
    """It leads again in its epoch if it is told so; a controller with KRaft fences who registers anew, and does not."""
    with shipped("K10", "a restarted broker knows no leader epoch, and leads again in the one that it led in"):
        trio = led(jvm)
        trio.ask("produce", node=A, request=-1, payload="r", acks=1)
        trio.ask("crash", node=A)
        trio.ask("start", node=A, records=None)
        assert not trio.seen[A]["hosted"]
        trio.ask("crash", node=A)
        trio.ask("start", node=A, records=trio.log)
        assert (trio.seen[A]["epoch"], trio.seen[A]["leads"], trio.records(A)) == (1, True, ["r"])
    resumes, apache = model_led("kip-320-resumes"), model_led(APACHE)
    for found in (resumes, apache):
        found("restart", replica=A, stored=0)
        assert found.refused_by("become_leader", leader=A, epoch=0) == "epoch_newer"
    assert resumes.refused_by("resume_leadership", leader=A) is None and not apache.has("resume_leadership")


@pytest.mark.parametrize(("stale", "refused"), [(True, False), (False, True)], ids=["kept", "forgotten"])
def test_k11_what_the_variants_say_of_ends_of_another_epoch(stale: bool, refused: bool) -> None:
    """What Kafka's classes do is in ``test_kafka_driver.py``: the leader counts them."""
    found = model_led(f"{APACHE}-stale-acks" if stale else APACHE)
    found("leader_write", leader=A)
    found("follower_fetch", leader=A, follower=C)
    found("follower_acknowledge", leader=A, follower=C)
    found("controller_elect_leader", new_leader=B)
    found("controller_fail_over", failed=B, new_leader=A)
    found("become_leader", leader=A, epoch=2)
    assert (found.refused_by("leader_inc_high_watermark", leader=A) == "isr_acknowledges") is refused
    assert found["remote_leo[0][2]"] == (1 if stale else -1)


def test_k12_what_the_variants_say_of_an_isr_that_is_replayed() -> None:
    """What Kafka's classes do is in ``test_kafka_driver.py``: the leader forgets what it has asked for."""
    assert walk(f"{APACHE}-forgets").has("leader_replay_isr") and not walk(APACHE).has("leader_replay_isr")


def test_k13_a_fenced_follower_waits_for_a_newer_epoch(jvm: Jvm) -> None:
    with shipped("K13", "who was fenced asks for nothing before it has heard of a newer epoch"):
        trio = led(jvm)
        trio.decide(leader=A)
        trio.replay(A)
        assert trio.fetch(C, A)["error"] == "FENCED_LEADER_EPOCH"
        for _ in range(3):
            assert trio.seen[C]["fetcher"] == "none" or trio.ask("fetch", node=C) == []
        trio.replay(C)
        assert trio.fetch(C, A)["error"] == "NONE"
    # In the model a refused step changes nothing: who waits and who asks again in vain are one.
    assert model_fenced(APACHE, ahead=False) == model_fenced(TEXT, ahead=False) == "epoch_not_fenced"


def test_v2_a_fetch_that_names_its_last_epoch_is_told_of_a_smaller_one(jvm: Jvm) -> None:
    """The hole H1 of the text: the leader has a record of an older epoch where the reader had one of a newer."""
    with shipped("V2", "a fetch diverges if the epoch found is smaller than the one asked, or ends below the offset"):
        trio = Trio(jvm, min_isr=1)
        trio.decide(leader=A, isr=[A])
        trio.replay(A)
        trio.ask("produce", node=A, request=-1, payload="x", acks=-1)
        for _ in range(2):
            trio.decide(leader=A)
        trio.replay(A, 2)
        assert (trio.seen[A]["epoch"], trio.seen[A]["hw"]) == (3, 1)
        (named,) = trio.ask("read", node=A, request=-2, offset=1, current=3, last=2)
        assert named["diverging"] == [1, 1]
        (unnamed,) = trio.ask("read", node=A, request=-3, offset=1, current=3)
        assert (unnamed["error"], "diverging" in unnamed) == ("NONE", False)


def test_v5_a_commit_is_read_in_schema_3_and_written_in_schema_4(jvm: Jvm) -> None:
    """What our mended consumer has behind the fields of schema 3 is in nobody's way; 4.4.0 writes none such itself."""
    key = encode_key(OffsetKey("g", TopicPartition("t", 0)))
    read = {}
    for serving in (NO_EPOCH, 9):
        value = encode_value(CommittedOffset(7, leader_epoch=4, serving_epoch=serving, metadata="m"))
        told = {name: base64.b64encode(data).decode() for name, data in (("key", key), ("value", value))}
        read[serving] = jvm.ask("committed", **told)
        assert base64.b64decode(read[serving]["key"]) == key
    with shipped("V5", "a coordinator reads schema 3, and does not look behind its fields; it writes schema 4"):
        assert all((each["offset"], each["epoch"], each["metadata"]) == (7, 4, "m") for each in read.values())
        assert {each["version"] for each in read.values()} == {4}
    for each in read.values():
        again = decode_value(base64.b64decode(each["value"]))
        assert (again.offset, again.leader_epoch, again.metadata, again.serving_epoch) == (7, 4, "m", NO_EPOCH)


@pytest.mark.parametrize(
    ("defect", "row", "test"),
    [
        ("FENCES_NOBODY", "K1", test_k1_the_error_of_an_older_epoch_has_another_name),
        ("FENCES_NOBODY", "K2", test_k2_the_error_of_a_newer_epoch_has_the_code_75),
        ("NAMES_NO_EPOCH", "K4", test_k4_a_fetch_names_both_epochs_and_tells_where_logs_part),
        ("ALTERS_ALONE", "K7", test_k7_a_leader_asks_the_controller_and_waits_for_the_larger_isr),
        ("FENCES_NOBODY", "K13", test_k13_a_fenced_follower_waits_for_a_newer_epoch),
    ],
    ids=["K1", "K2", "K4", "K7", "K13"],
)
def test_a_row_that_is_closed_is_told(jvm: Jvm, defect: str, row: str, test: Callable[[Jvm], None]) -> None:
    """Kafka's classes do something else by a change planted in them, as those of another release might."""
    with planted(jvm, defect), pytest.raises(RowClosed, match=rf"^{row} of specs/DEVIATIONS\.md: .*The row is closed"):
        test(jvm)
