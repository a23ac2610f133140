"""Apache Kafka's own log cleaner step by step: what the driver has it do, and what the rows L of DEVIATIONS.md say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from fencepost.conformance.kafka.process import CLEANERS, Jvm

from .kafka_jvm import one_jvm

pytestmark = pytest.mark.kafka
A, B = range(2)
RETENTION = 1000
OWN, SHARED = "100", "260"
"""``segment.bytes``: each batch has a segment of its own, or three of one record share one."""


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    """One JVM for all; each test starts its brokers afresh."""
    yield from one_jvm(drives=CLEANERS)


class Pair:
    """Two brokers, of which the first leads and is the whole ISR."""

    def __init__(self, jvm: Jvm, segment: str = OWN, fetched: int = 100, **topic: str) -> None:
        self.jvm = jvm
        self.seen: dict[int, Any] = {}
        self.number = 0
        policy = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "internal.segment.bytes": segment}
        settings = {**policy, "delete.retention.ms": str(RETENTION), **topic}
        self.base = int(self.do("reset", nodes=2, minIsr=1, topic=settings, memory=4096, fetched=fetched)["now"])
        self.hear(leader=A, isr=[A])

    def do(self, what: str, **more: Any) -> Mapping[str, Any]:
        answer = self.jvm.ask(what, **more)
        self.seen |= {int(name): seen for name, seen in answer["seen"].items()}
        return answer

    def hear(self, **record: Any) -> None:
        for node in (A, B):
            self.do("metadata", node=node, records=[record])

    def write(self, key: str | None, value: str | None, timestamp: int = 0) -> str:
        """A producer sends one record; gives the error code."""
        self.number -= 1
        records = [[key, value, self.base + timestamp]]
        sent = self.do("produce", node=A, request=self.number, acks=1, records=records, producer=-1)["sent"]
        return next(str(each["error"]) for each in sent if each["kind"] == "produced")

    def fetch(self) -> None:
        """The follower fetches from the leader, and takes what it is answered."""
        asked = next(each for each in self.do("fetch", node=B)["sent"] if each["kind"] == "fetch")
        answered = next(each for each in self.do("serve", node=A, id=asked["id"])["sent"] if each["kind"] == "fetched")
        self.do("answer", node=B, id=answered["id"])

    def clean(self, amid: int = -1) -> int:
        """A round of the leader's cleaner; gives when it was."""
        return int(self.do("clean", node=A, amid=amid)["now"])

    @property
    def left(self) -> list[tuple[int, str, str | None]]:
        """What the leader's log has: offset, key and value."""
        return [(offset, key, value) for offset, _, key, value, _, _ in self.seen[A]["records"]]

    @property
    def horizons(self) -> list[int]:
        return [each[5] for each in self.seen[A]["records"] if each[3] is None]

    @property
    def checkpoint(self) -> int:
        return int(self.seen[A]["checkpoint"])


def test_the_last_record_of_a_key_stays(jvm: Jvm) -> None:
    """Of what is in no active segment; the rest is as it was, and nothing is done twice."""
    pair = Pair(jvm)
    for number, key in enumerate(["a", "b", "a", "a"]):
        assert pair.write(key, str(number)) == "NONE"
    pair.clean()
    assert pair.left == [(1, "b", "1"), (2, "a", "2"), (3, "a", "3")] and pair.checkpoint == 3
    pair.clean()
    assert [offset for offset, _, _ in pair.left] == [1, 2, 3] and pair.checkpoint == 3


def test_a_record_without_a_key_is_refused(jvm: Jvm) -> None:
    pair = Pair(jvm)
    assert pair.write(None, "0") == "INVALID_RECORD" and pair.seen[A]["end"] == 0


def batches(pair: Pair, offset: int) -> tuple[int, list[int]]:
    """Where the batch ends that a consumer reads at an offset, and the offsets of its records."""
    read = pair.do("read", node=A, request=-99, offset=offset, bytes=1)["sent"][0]
    return read["next"], [each[0] for each in read["records"]]


def test_l1_the_last_batch_stays_without_its_records_where_it_ends_at_the_high_watermark(jvm: Jvm) -> None:
    """A tombstone's time is over. Else its batch goes, too, though it is the last one of a round."""
    pair = Pair(jvm)
    pair.write("a", None)
    pair.hear(isr=[A, B])
    pair.write("b", "1")
    pair.do("checkpoint", node=A)
    pair.clean(amid=3)
    # The round was not written down: the next process does it again, and the tombstone's time is over.
    pair.do("crash", node=A)
    pair.do("start", node=A, records=[{"leader": A, "isr": [A, B]}])
    assert pair.checkpoint == 0 and pair.seen[A]["hw"] == 1 and pair.horizons
    pair.do("elapse", ms=2 * RETENTION)
    pair.clean()
    assert pair.left == [(1, "b", "1")] and pair.checkpoint == 1
    assert batches(pair, 0) == (1, [])
    pair = Pair(jvm)
    pair.write("a", None)
    pair.write("b", "1")
    pair.clean()
    pair.write("c", "2")
    pair.do("elapse", ms=2 * RETENTION)
    pair.clean()
    assert pair.left == [(1, "b", "1"), (2, "c", "2")] and batches(pair, 0) == (2, [1])


def test_l2_there_is_no_strategy_but_offset(jvm: Jvm) -> None:
    """A topic's ``compaction.strategy`` says nothing to it."""
    pair = Pair(jvm, **{"compaction.strategy": "timestamp"})
    pair.write("a", "0", timestamp=10)
    pair.write("a", "1", timestamp=5)
    pair.write("b", "2", timestamp=10)
    pair.clean()
    assert pair.left == [(1, "a", "1"), (2, "b", "2")]


def test_l3_a_delete_horizon_counts_from_the_first_cleaning(jvm: Jvm) -> None:
    """At a replica by itself, and a later cleaning does not move it."""
    pair = Pair(jvm)
    pair.write("a", None)
    pair.write("b", "1")
    pair.do("elapse", ms=5 * RETENTION)
    first = pair.clean()
    assert pair.horizons == [first + RETENTION]
    pair.write("b", "2")
    pair.do("elapse", ms=RETENTION // 2)
    pair.clean()
    assert pair.horizons == [first + RETENTION] and pair.checkpoint == 2


def test_l4_who_knows_no_leader_cleans(jvm: Jvm) -> None:
    """Up to the high watermark that it has."""
    pair = Pair(jvm)
    for number in range(3):
        pair.write("a", str(number))
    pair.hear(leader=-1, isr=[A])
    assert not pair.seen[A]["leads"] and pair.seen[A]["leader"] == -1 and pair.seen[A]["hw"] == 3
    pair.clean()
    assert [offset for offset, _, _ in pair.left] == [1, 2] and pair.checkpoint == 2


def test_l5_a_round_ends_where_a_segment_does(jvm: Jvm) -> None:
    """What is beaten below the high watermark waits until all of its segment is committed."""
    pair = Pair(jvm, SHARED)
    pair.write("a", "0")
    pair.write("a", "1")
    pair.hear(isr=[A, B])
    pair.write("b", "2")
    pair.write("b", "3")
    assert (pair.seen[A]["hw"], pair.seen[A]["active"]) == (2, 3)
    pair.clean()
    assert len(pair.left) == 4 and pair.checkpoint == 0
    pair.hear(isr=[A])
    assert pair.seen[A]["hw"] == 4
    pair.clean()
    assert [offset for offset, _, _ in pair.left] == [1, 2, 3] and pair.checkpoint == 3


def test_l6_nobody_closes_an_active_segment_but_who_appends(jvm: Jvm) -> None:
    """However old it is: what it has is cleaned when the next record comes."""
    pair = Pair(jvm, SHARED, **{"segment.ms": "1", "max.compaction.lag.ms": "1"})
    pair.write("a", "0", timestamp=0)
    pair.write("a", "1", timestamp=0)
    pair.do("elapse", ms=100_000)
    pair.clean()
    assert len(pair.left) == 2 and pair.seen[A]["active"] == 0
    pair.write("b", "2", timestamp=10)
    assert pair.seen[A]["active"] == 2
    pair.clean()
    assert [offset for offset, _, _ in pair.left] == [1, 2]


def grown(jvm: Jvm, fetched: int) -> Pair:
    """Two tombstones in one segment of the leader, which is as large as it may be and is cleaned then."""
    pair = Pair(jvm, "140", fetched, **{"delete.retention.ms": str(1 << 30)})
    for key in ("a", "b", "c"):
        pair.write(key, None)
    assert pair.seen[A]["active"] == 2
    pair.clean()
    assert [offset for offset, _, _ in pair.left] == [0, 1, 2] and min(pair.horizons[:2]) > 0
    return pair


def test_l7_a_segment_grows_as_it_is_cleaned_and_a_follower_gives_the_partition_up(jvm: Jvm) -> None:
    """A tombstone's batch has its delete horizon for a base, from which its timestamp is far: that takes more bytes.

    Two of them, which had room in a segment, have none any more; a follower that fetches both refuses them, and fetches
    no more in this leader epoch. One that fetches no more than a segment may have goes on.
    """
    pair = grown(jvm, 1 << 20)
    pair.fetch()
    assert pair.seen[B]["end"] == 0
    assert not pair.do("fetch", node=B)["sent"], "it has given the partition up"
    pair = grown(jvm, 100)
    for end in (1, 2, 3):
        pair.fetch()
        assert pair.seen[B]["end"] == end


def test_l8_what_nobody_has_left_over_is_not_dirty(jvm: Jvm) -> None:
    """A process ends amid two rounds, each before it has written its checkpoint; nothing is left of what was dirty."""
    pair = Pair(jvm)
    pair.write("a", None)
    pair.write("b", "1")
    pair.do("checkpoint", node=A)
    for amid in (3, 2):
        pair.clean(amid)
        pair.do("crash", node=A)
        pair.do("start", node=A, records=[{"leader": A, "isr": [A]}])
        pair.do("elapse", ms=2 * RETENTION)
    assert pair.left == [(1, "b", "1")] and (pair.seen[A]["hw"], pair.seen[A]["active"]) == (2, 1)
    pair.clean()
    assert pair.checkpoint == 0, "it has not been through a log that is clean"
    pair.write("b", "2")
    pair.clean()
    assert pair.checkpoint == 2


@pytest.mark.parametrize("amid", range(12))
def test_a_process_that_ends_amid_a_round_leaves_what_a_reader_needs(jvm: Jvm, amid: int) -> None:
    """Whatever the files are like by then: the next process has each key's last record, and goes on cleaning."""
    pair = Pair(jvm)
    for number, key in enumerate(["a", "b", "a", "b", "c"]):
        pair.write(key, str(number))
    pair.do("checkpoint", node=A)
    pair.clean(amid)
    pair.do("crash", node=A)
    pair.do("start", node=A, records=[{"leader": A, "isr": [A]}])
    found = {key: value for _, key, value in pair.left}
    assert found == {"a": "2", "b": "3", "c": "4"} and pair.seen[A]["end"] == 5
    pair.clean()
    assert pair.left == [(2, "a", "2"), (3, "b", "3"), (4, "c", "4")] and pair.checkpoint == 4
