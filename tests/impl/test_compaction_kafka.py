"""The cleaner held against Apache Kafka's own, on the same files, batch by batch and record by record.

What differs is known. Of empty batches ours keeps the last five of each producer, as the log is all that producers are
known by here, and the last of the round. And a batch keeps its base timestamp, where Kafka counts from the first record
that stays: the records can be copied as they are.
"""

from __future__ import annotations

import importlib
import random
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fencepost.impl.compaction import Cleaner, CompactionConfig
from fencepost.impl.compaction.facts import LogFacts
from fencepost.impl.files import DiskFiles
from fencepost.impl.log import Batch, Codec, DataDirectory, LogConfig, Record, encode_batch, read_batches
from fencepost.impl.log.batch import DELETE_HORIZON

from .kafka_jvm import kafka_gateway

pytestmark = pytest.mark.kafka
LOG = LogConfig(segment_bytes=3000, index_interval_bytes=200, cleanup_policy="compact")
RETENTION = 1000
FIRST, SECOND = 100_000, 200_000
"""When the two cleanings are: the second one is past the delete horizon that the first one sets."""


@pytest.fixture(scope="module")
def gateway() -> Iterator[Any]:
    yield from kafka_gateway()


@pytest.fixture
def kafka(gateway: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module("compaction_kafka").Kafka(gateway)


def write(root: Path, seed: int, codecs: tuple[Codec, ...], *, batches: int = 120) -> tuple[int, int]:
    """A log of plain, idempotent and transactional producers; a bound amid it, between two segments, and its end."""
    chance = random.Random(seed)
    log = directory(root).log("t", 0)
    sequences = dict.fromkeys(range(4), 0)
    transactional, begun = (2, 3), set()
    epoch = offset = 0

    def append(records: list[Record], **more: Any) -> None:
        nonlocal offset
        codec = Codec.NONE if more.get("control") else chance.choice(codecs)
        log.append_as_follower(encode_batch(records, base_offset=offset, leader_epoch=epoch, codec=codec, **more))
        offset += len(records)

    def end(producer: int, kind: int) -> None:
        marker = Record(struct.pack(">hi", 0, 1), struct.pack(">hh", 0, kind), offset)
        append([marker], producer_id=producer, producer_epoch=0, control=True, transactional=True)
        begun.discard(producer)

    for _ in range(batches):
        epoch += chance.random() < 0.05
        producer = chance.randrange(-2, 4)
        if producer in begun and chance.random() < 0.4:
            end(producer, chance.randrange(2))
            continue
        records = [
            Record(None if chance.random() < 0.25 else b"%d" % (offset + n), b"k%d" % chance.randrange(15), offset + n)
            for n in range(chance.randint(1, 4))
        ]
        if producer < 0:
            append(records)
            continue
        begun |= {producer} & set(transactional)
        more = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequences[producer]}
        sequences[producer] += len(records)
        append(records, transactional=producer in transactional, **more)
    for producer in sorted(begun):
        end(producer, chance.randrange(2))
    log.flush()
    log.roll()
    bases = log.segment_bases
    log.close()
    return bases[len(bases) // 2], offset


def directory(root: Path) -> DataDirectory:
    return DataDirectory(DiskFiles(root), node_id=1, cluster_id="test", topics={"t": LOG})


def left(root: Path) -> list[Batch]:
    found: list[Batch] = []
    for path in sorted((root / "t-0").glob("*.log")):
        found += read_batches(path.read_bytes(), str(path))
    return found


def head(batch: Batch) -> Batch:
    """The batch's header, with the base timestamp only where that is the delete horizon.

    A marker's horizon is set once its transaction has no records. An empty batch of it, which only one of the two may
    have kept, is one to Kafka.
    """
    batch = batch._replace(data=b"")
    if batch.is_control:
        return batch._replace(attributes=batch.attributes & ~DELETE_HORIZON, base_timestamp=0)
    return batch if batch.delete_horizon is not None else batch._replace(base_timestamp=0)


@pytest.mark.parametrize("codecs", [(Codec.NONE,), tuple(Codec)], ids=["plain", "compressed"])
@pytest.mark.parametrize("seed", range(4))
def test_the_same_batches_are_left(kafka: Any, tmp_path: Path, seed: int, codecs: tuple[Codec, ...]) -> None:
    bound, end = write(tmp_path / "ours", seed, codecs)
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    config = CompactionConfig(delete_retention_ms=RETENTION)
    place = directory(tmp_path / "ours")
    log = place.log("t", 0)
    facts = LogFacts(log)
    facts.catch_up()
    settings = {"internal_segment_bytes": str(LOG.segment_bytes), "delete_retention_ms": str(RETENTION)}
    theirs = kafka.open(tmp_path / "theirs", clean=False, **settings)
    for first, last, now in ((0, bound, FIRST), (bound, end, SECOND)):
        done = Cleaner(1 << 16).clean(log, facts, config, first_dirty=first, bound=last, now=now)
        assert done.end == last == kafka.clean_at(theirs, first, last, now)
        here = [each for each in left(tmp_path / "ours") if each.record_count]
        there = [each for each in left(tmp_path / "theirs") if each.record_count]
        assert [head(each) for each in here] == [head(each) for each in there]
        assert [each.records() for each in here] == [each.records() for each in there]
    theirs.close()
    place.close()
