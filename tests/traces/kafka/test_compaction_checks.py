"""Checks of compacted logs: of what a real cluster cleaned, a fault planted in a copy; and KIP-280's strategies."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from fencepost.conformance.check.files import Cluster
from fencepost.conformance.check.notes import cluster_notes, remarks
from fencepost.impl.compaction import Kind, LogCleaner, Strategy
from fencepost.impl.compaction.config import CompactionConfig
from fencepost.impl.files import DiskFiles
from fencepost.impl.log import DataDirectory, LogConfig, Record
from fencepost.traces.kafka import policies as rules
from fencepost.traces.kafka.batches import Limits
from fencepost.traces.kafka.capture import bundled_corpus, load_manifest
from fencepost.traces.kafka.checks import FilesReport, check_brokers
from fencepost.traces.kafka.compaction_checks import ONE_RECORD, WINNERS, WITHIN
from fencepost.traces.kafka.directories import read_brokers
from fencepost.traces.kafka.keyed import keyed_log

from .damaged import put_first, records_of, report, results, rewrite, set_checkpoint, stage, violated
from .encoder import (
    TOPIC_ID,
    Partition,
    batch,
    config_record,
    metadata_partition,
    partition_change,
    partition_record,
    topic_id_text,
    topic_record,
    write_broker,
)

CONTIGUOUS = "offsets_contiguous"
STAGES = [each["name"] for each in load_manifest(bundled_corpus("compacted"))["stages"]]
PRODUCED = [each for each in load_manifest(bundled_corpus("compacted"))["produced"] if each["topic"] == "accounts"]
CLEANER = "cleaner-offset-checkpoint"


@pytest.mark.parametrize("name", STAGES)
def test_what_kafka_cleaned_holds(name: str) -> None:
    found = report(bundled_corpus("compacted") / name)
    assert found.problems == () and found.verdict == "holds" and found.older == {}
    assert len(results(found, ONE_RECORD)) >= 6 and len(results(found, WITHIN)) == len(results(found, ONE_RECORD))
    compared = {each.subject: each.message for each in results(found, WINNERS)}
    assert compared.keys() >= {"accounts-0", "balances-0"}
    assert all(int(compared[each].split()[0]) >= 48 for each in ("accounts-0", "balances-0"))
    holes = [each for each in results(found, CONTIGUOUS, "accounts-0") if "allows" in each.message]
    assert len(holes) == 3 and all("cleanup.policy=compact allows" in each.message for each in holes)


class TestPlanted:
    """Each fault is planted in broker 2's accounts-0 of the third stage, clean below 492."""

    def home(self, tmp_path: Path) -> Path:
        return stage(tmp_path, "compacted", "3-failover")

    def accounts(self, home: Path) -> Path:
        return home / "broker-2" / "accounts-0"

    def test_a_key_twice_in_the_cleaned_part(self, tmp_path: Path) -> None:
        home = self.home(tmp_path)
        winner = records_of(self.accounts(home))[0]
        put_first(self.accounts(home), 3, winner.key, b"older")
        found = report(home)
        assert ONE_RECORD in violated(found) <= {ONE_RECORD, WINNERS}
        (told,) = (each for each in results(found, ONE_RECORD) if each.verdict == "violated")
        assert told.subject == "broker 2: accounts-0" and told.data == {"offset": winner.offset}
        assert f"offsets 3 and {winner.offset} have one key, below the cleaner's offset 492" in told.message

    def test_a_record_without_a_key_in_the_cleaned_part(self, tmp_path: Path) -> None:
        home = self.home(tmp_path)
        put_first(self.accounts(home), 3, None, b"none")
        found = report(home)
        assert violated(found) == {ONE_RECORD}
        assert "the record at offset 3 has no key" in results(found, ONE_RECORD, "2: accounts-0")[0].message

    def test_an_older_record_of_a_key_in_the_place_of_its_winner(self, tmp_path: Path) -> None:
        """As a cleaner does that compares the wrong way; broker 3 has the winner."""
        home = self.home(tmp_path)
        winner = next(each for each in records_of(self.accounts(home)) if each.value and each.offset < 492)
        older = next(each for each in PRODUCED if each["key"].encode() == winner.key and each["value"])
        rewrite(self.accounts(home), lambda records: [each for each in records if each.offset != winner.offset])
        put_first(self.accounts(home), older["offset"], winner.key, older["value"].encode())
        found = report(home)
        assert WINNERS in violated(found)
        (told,) = results(found, WINNERS, "accounts-0")
        assert f"broker 2, clean below 492, keeps offset {older['offset']} of its key" in told.message
        assert told.data == {"offset": winner.offset}

    def test_a_winner_that_is_gone(self, tmp_path: Path) -> None:
        home = self.home(tmp_path)
        winner = next(each for each in records_of(self.accounts(home)) if each.value and each.offset < 492)
        rewrite(self.accounts(home), lambda records: [each for each in records if each.offset != winner.offset])
        found = report(home)
        assert violated(found) == {WINNERS}
        assert "broker 2, clean below 492, has nothing of its key" in results(found, WINNERS, "accounts-0")[0].message

    def test_what_a_dead_broker_says_of_the_part_that_it_has_committed(self, tmp_path: Path) -> None:
        """Broker 1 alone is left beside broker 2: clean below 371, where broker 2 keeps a record of before."""
        home = self.home(tmp_path)
        mine = {each.key: each for each in records_of(home / "broker-1" / "accounts-0") if each.value}
        kept = {each.key for each in records_of(self.accounts(home))}
        key = next(key for key, each in mine.items() if key in kept and each.offset < 371)
        older = next(each for each in PRODUCED if each["key"].encode() == key and each["value"])
        rewrite(self.accounts(home), lambda records: [each for each in records if each.key != key])
        put_first(self.accounts(home), older["offset"], key, older["value"].encode())
        shutil.rmtree(home / "broker-3")
        (told,) = results(report(home), WINNERS, "accounts-0")
        assert told.verdict == "violated" and "broker 1 has offset" in told.message

    def test_a_cleaner_offset_above_the_log(self, tmp_path: Path) -> None:
        home = self.home(tmp_path)
        set_checkpoint(home / "broker-2", CLEANER, "accounts-0", 600)
        found = report(home)
        assert violated(found) == {WITHIN}
        (told,) = (each for each in results(found, WITHIN) if each.verdict == "violated")
        assert told.message == "clean below 600, and the LEO is 493" and told.where.endswith(CLEANER)

    def test_a_cleaner_offset_above_the_high_watermark_of_a_clean_shutdown(self, tmp_path: Path) -> None:
        home = self.home(tmp_path)
        set_checkpoint(home / "broker-2", "replication-offset-checkpoint", "accounts-0", 480)
        assert WITHIN not in violated(report(home)), "a checkpoint may lag"
        (home / "broker-2" / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
        (told,) = (each for each in results(report(home), WITHIN) if each.verdict == "violated")
        assert "above the high watermark 480 of a clean shutdown" in told.message

    def test_a_hole_above_every_cleaner_offset(self, tmp_path: Path) -> None:
        """A record of the dirty part is lost: no replica has cleaned so far."""
        home = self.home(tmp_path)
        for node in ("broker-1", "broker-2", "broker-3"):
            set_checkpoint(home / node, CLEANER, "accounts-0", 371)
        found = report(home)
        assert CONTIGUOUS in violated(found)
        told = results(found, CONTIGUOUS, "2: accounts-0")[0]
        assert "no replica has cleaned beyond 371" in told.message and told.data["offset"] >= 371
        assert CONTIGUOUS not in violated(report(home, without=["broker-1"])), "that one may have cleaned farther"

    def test_a_hole_where_nothing_is_compacted(self, tmp_path: Path) -> None:
        home = self.home(tmp_path)
        rewrite(home / "broker-2" / "journal-0", lambda records: [each for each in records if each.offset != 20])
        (told,) = (each for each in report(home).checks if each.verdict == "violated")
        assert (told.check, told.subject) == (CONTIGUOUS, "broker 2: journal-0")
        assert told.message.endswith("and cleanup.policy=delete since the topic was created")


# -- strategies, on logs that the project's own cleaner has cleaned ----------------------------------------------------

STRATEGIES = {"offset": Strategy(), "timestamp": Strategy(Kind.TIMESTAMP), "header": Strategy(Kind.HEADER, "version")}


def own_log(home: Path, node: int, records: list[Record], strategy: Strategy | None) -> None:
    """A data directory of the project's own, cleaned under a strategy if any."""
    config = LogConfig(segment_bytes=300, index_interval_bytes=100, cleanup_policy="compact")
    directory = DataDirectory(DiskFiles(home), node_id=node, cluster_id="c", topics={"t": config})
    log = directory.log("t", 0)
    for each in records:
        log.append_as_leader([each], 0)
    log.roll()
    directory.store_high_watermarks({("t", 0): log.end})
    if strategy is not None:
        settings = {"t": CompactionConfig(strategy, min_cleanable_dirty_ratio=0.0)}
        cleaner = LogCleaner(directory, settings, lambda: 10**13)
        while cleaner.run({("t", 0): log.end}):
            pass
    directory.close()
    (home / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id_text(TOPIC_ID)}")


def check_own(
    tmp_path: Path, *configs: bytes, records: list[Record], cleaned: dict[int, Strategy | None]
) -> FilesReport:
    values = [topic_record("t"), partition_record([1, 2], [1, 2], 1), *configs]
    write_broker(
        tmp_path / "100", 100, {"__cluster_metadata-0": metadata_partition(values)}, cluster="c", directory="Aw"
    )
    for node, strategy in cleaned.items():
        own_log(tmp_path / str(node), node, records, strategy)
    return check_brokers(read_brokers([tmp_path / "100", *(tmp_path / str(node) for node in cleaned)]))


def number(value: int) -> tuple[tuple[str, bytes], ...]:
    return (("version", struct.pack(">q", value)),)


RACE = [
    Record(b"late", b"a", 9_000, number(9)),
    Record(b"early", b"a", 1_000, number(1)),
    Record(b"other", b"b", 5_000, number(5)),
    Record(b"later", b"b", 6_000, number(6)),
]
"""Key a: the record that is written first has the higher timestamp and version."""


def configs(kind: str) -> list[bytes]:
    named = [
        config_record("t", "compaction.strategy", kind),
        config_record("t", "compaction.strategy.header", "version"),
    ]
    return [config_record("t", "cleanup.policy", "compact"), *named]


@pytest.mark.parametrize("kind", STRATEGIES)
def test_each_strategy_keeps_its_winner(tmp_path: Path, kind: str) -> None:
    found = check_own(tmp_path, *configs(kind), records=RACE, cleaned={1: STRATEGIES[kind], 2: None})
    assert {each.verdict for each in results(found, ONE_RECORD)} == {"holds"}
    (told,) = results(found, WINNERS)
    assert (told.verdict, told.message) == ("holds", "2 keys compared with another replica's")
    assert len(records_of(tmp_path / "1" / "t-0")) == 2 < len(records_of(tmp_path / "2" / "t-0"))


def test_a_cleaning_that_was_not_checkpointed_any_more_is_none_the_worse(tmp_path: Path) -> None:
    """A broker that died between the last swap and the checkpoint says too little."""
    found = check_own(tmp_path, *configs("offset"), records=[*RACE, *RACE], cleaned={1: STRATEGIES["offset"], 2: None})
    assert results(found, WINNERS)[0].verdict == "holds"
    set_checkpoint(tmp_path / "1", CLEANER, "t-0", 4)
    again = check_brokers(read_brokers(tmp_path / each for each in ("100", "1", "2")))
    assert [each.verdict for each in results(again, WINNERS)] == ["holds"]


@pytest.mark.parametrize(("kind", "wrong"), [("timestamp", "offset"), ("header", "offset"), ("offset", "timestamp")])
def test_a_replica_that_cleans_by_another_strategy_is_found(tmp_path: Path, kind: str, wrong: str) -> None:
    found = check_own(tmp_path, *configs(kind), records=RACE, cleaned={1: STRATEGIES[wrong], 2: None})
    (told,) = results(found, WINNERS)
    assert told.verdict == "violated" and f"which wins by {kind}" in told.message


def test_a_tombstone_that_may_be_gone_leaves_it_open(tmp_path: Path) -> None:
    """Both have cleaned: who kept what by which rule cannot be told any more."""
    cleaned: dict[int, Strategy | None] = {1: STRATEGIES["offset"], 2: STRATEGIES["timestamp"]}
    (told,) = results(check_own(tmp_path, *configs("timestamp"), records=RACE, cleaned=cleaned), WINNERS)
    assert told.verdict == "unknown" and "a tombstone that wins over it may have been there" in told.message


def test_the_brokers_own_strategy_and_policy_hold_where_the_topic_has_none(tmp_path: Path) -> None:
    told = [
        config_record("", "log.cleanup.policy", "compact", broker=True),
        config_record("1", "log.cleaner.compaction.strategy", "timestamp", broker=True),
    ]
    cleaned = {1: STRATEGIES["offset"], 2: None}
    found = check_own(tmp_path, *told, records=RACE, cleaned=cleaned)
    assert results(found, WINNERS)[0].verdict == "violated"
    assert "log.cleanup.policy=compact allows" in results(found, CONTIGUOUS, "1: t-0")[0].message


def test_a_strategy_that_was_changed_is_not_judged(tmp_path: Path) -> None:
    told = [*configs("offset"), config_record("t", "compaction.strategy", "timestamp")]
    cleaned = {1: STRATEGIES["offset"], 2: None}
    (found,) = results(check_own(tmp_path, *told, records=RACE, cleaned=cleaned), WINNERS)
    assert found.verdict == "unknown" and found.informative and "the strategy was changed" in found.message


@pytest.mark.parametrize(
    ("kind", "times", "late"),
    [
        ("timestamp", {"segment.ms": "10", "max.compaction.lag.ms": "20", "delete.retention.ms": "30"}, []),
        (
            "timestamp",
            {"segment.ms": "30", "max.compaction.lag.ms": "20", "delete.retention.ms": "30"},
            ["topic t: segment.ms=30 is not below delete.retention.ms=30: a deleted key can come back"],
        ),
        (
            "header",
            {"segment.ms": "10", "max.compaction.lag.ms": "40", "delete.retention.ms": "30"},
            ["topic t: max.compaction.lag.ms=40 is not below delete.retention.ms=30: a deleted key can come back"],
        ),
        (
            "timestamp",
            {"max.compaction.lag.ms": "20"},
            [
                (
                    "topic t: segment.ms=604800000 (Kafka's default; no record sets it) is not below "
                    "delete.retention.ms=86400000 (Kafka's default; no record sets it): a deleted key can come back"
                )
            ],
        ),
        ("offset", {"segment.ms": "40", "max.compaction.lag.ms": "40", "delete.retention.ms": "30"}, []),
    ],
)
def test_warns_where_a_tombstone_may_go_too_early(
    tmp_path: Path, kind: str, times: dict[str, str], late: list[str]
) -> None:
    settings = [config_record("t", name, value) for name, value in times.items()]
    found = check_own(tmp_path, *configs(kind), *settings, records=RACE, cleaned={1: None, 2: None})
    cluster = Cluster("", found)
    assert [line for line in remarks(cluster) if "come back" in line] == late
    assert [note.text for note in cluster_notes(cluster) if "come back" in note.text] == late


# -- what is not judged ------------------------------------------------------------------------------------------------


def two_brokers(tmp_path: Path, files: Partition, *values: bytes) -> FilesReport:
    told = [topic_record("t"), partition_record([1, 2], [1, 2], 1), *values]
    metadata = metadata_partition(told)
    write_broker(tmp_path / "100", 100, {"__cluster_metadata-0": metadata}, directory="Aw")
    for node in (1, 2):
        write_broker(tmp_path / str(node), node, {"t-0": files}, directory=f"A{node}")
    return check_brokers(read_brokers(tmp_path / each for each in ("100", "1", "2")))


TWICE = Partition({0: batch(0, [b"x", b"y", b"z"], keys=[b"k", b"k", b"l"])}, [(0, 0)], 3, cleaned=3)


def test_after_an_unclean_election_a_stale_checkpoint_may_be_the_reason(tmp_path: Path) -> None:
    compact = config_record("t", "cleanup.policy", "compact")
    unclean = [partition_change(isr=[1], leader=1), partition_change(isr=[2], leader=2)]
    assert violated(two_brokers(tmp_path / "clean", TWICE, compact)) == {ONE_RECORD}
    found = two_brokers(tmp_path / "unclean", TWICE, compact, *unclean)
    assert {each.verdict for each in results(found, ONE_RECORD)} == {"unknown"}
    assert "there was an unclean election" in results(found, ONE_RECORD)[0].message


def test_return_of_the_last_isr_member_is_judged(tmp_path: Path) -> None:
    empty = partition_change(isr=[], leader=-1, eligible=[1], version=2)
    returned = [partition_change(isr=[1], leader=1), empty, partition_change(isr=[1], leader=1)]
    found = two_brokers(tmp_path, TWICE, config_record("t", "cleanup.policy", "compact"), *returned)
    assert {each.verdict for each in results(found, ONE_RECORD)} == {"violated"}


def test_a_checkpoint_of_a_topic_that_is_not_compacted_says_nothing(tmp_path: Path) -> None:
    found = two_brokers(tmp_path, TWICE, config_record("t", "cleanup.policy", "delete"))
    assert results(found, ONE_RECORD) == [] and results(found, WITHIN) == []


def test_holes_of_a_time_when_the_topic_was_compacted(tmp_path: Path) -> None:
    holed = Partition({0: batch(0, [b"x", b"y"], deltas=[0, 3], keys=[b"k", b"l"])}, [(0, 0)], 4, cleaned=4)
    then = [config_record("t", "cleanup.policy", each) for each in ("compact", "delete")]
    cases = {"both": (holed, then, "holds"), "unknown": (holed, then[1:], "unknown")}
    plain = Partition(holed.segments, holed.cache, 4)
    cases["set later"] = plain, then[1:], "unknown"
    cases["compacted once"] = plain, then, "holds"
    beyond = Partition({0: batch(0, [b"x", b"y"], deltas=[0, 3])}, [(0, 0)], 4, cleaned=2)
    cases["beyond"] = beyond, then, "violated"
    for name, (files, values, expected) in cases.items():
        found = results(two_brokers(tmp_path / name, files, *values), CONTIGUOUS, "1: t-0")
        assert [each.verdict for each in found] == [expected], name


def test_records_of_a_transaction_count_by_its_marker(tmp_path: Path) -> None:
    """The aborted one is no record to the cleaner; whether one with no marker yet is nobody can say."""

    def transactional(base: int, key: bytes) -> bytes:
        return batch(base, [b"v"], keys=[key], attributes=0x10)

    def marker(base: int, kind: int) -> bytes:
        return batch(base, [b""], keys=[struct.pack(">hh", 0, kind)], attributes=0x30)

    log = transactional(0, b"k") + marker(1, 0) + transactional(2, b"l") + marker(3, 1) + transactional(4, b"m")
    files = Partition({0: log}, [(0, 0)], 5)
    write_broker(tmp_path / "1", 1, {"t-0": files})
    (broker,) = read_brokers([tmp_path / "1"])
    found = keyed_log(broker.partitions["t", 0], 5, rules.Strategy(), Limits())
    assert [each.offset for each in found.records] == [2] and found.readable
    assert len(found.undecided) == 1 and [each.offset for each in found.last().values()] == [2]
    early = keyed_log(broker.partitions["t", 0], 3, rules.Strategy(), Limits())
    assert [each.offset for each in early.records] == [2], "its marker is above"
