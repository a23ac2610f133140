"""``benchmarks/replication_volume.py``: KIP-630's sums, and what our records come to, in a small cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fencepost.impl.log.batch import read_batches
from fencepost.traces.kafka.capture import bundled_corpus
from fencepost.traces.kafka.metadata import decode_metadata_record

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "replication_volume.py"
HOSTED = 1_000 * 10 * 3 // 100
"""Partitions that each of 100 brokers has a replica of, of 1,000 topics with 10 partitions."""


def run(*arguments: str) -> str:
    command = [sys.executable, str(PROGRAM), "--topics", "1000", "--batch", "100", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    counted: dict[str, Any] = json.loads(run("--as-json"))
    return counted


def test_the_texts_sums(found: dict[str, Any]) -> None:
    """4 + 16 + 8 + 4 + 4 + 2 + 2, and 4 + 2 + 2. The text's 30,000 partitions are a hundred times as many."""
    text = found["text"]
    assert (text["IsrChange"], text["FenceBroker"], text["partitions"]) == (40, 8, HOSTED)
    assert text["IsrChange, one broker"] == 40 * HOSTED
    # 1.14 MB, and 113.29 MB cut off, not rounded: of 2**20 bytes. 0.77 KB of 2**10.
    assert f"{40 * 30_000 / (1 << 20):.2f}" == "1.14"
    assert f"{40 * 30_000 * 99 / (1 << 20):.4f}" == "113.2965"
    assert f"{text['FenceBroker, all others'] / (1 << 10):.2f}" == "0.77"


def test_our_records(found: dict[str, Any]) -> None:
    """Type and version take a byte each where the text counts two, and what is saved goes to the length of the ISR and
    the number of tagged fields, which it does not count: 40 bytes. Without an ISR one is left over: 7 bytes."""
    changes, fence, newer_changes, newer_fence = found["measured"]
    assert (changes["records"], changes["values"]) == (HOSTED, 40 * HOSTED)
    assert (fence["records"], fence["values"]) == (1, 7)
    # Four bytes of the partition's epoch, eight of the broker's.
    assert (newer_changes["values"], newer_fence["values"]) == (44 * HOSTED, 15)
    # A batch has a header of 61 bytes; a record 7 of lengths, deltas, a null key and no headers, and one more where its
    # offset's delta takes two: from 64 on.
    assert fence["one a batch"] == fence["one batch"] == 61 + 7 + 7
    assert changes["one a batch"] == HOSTED * (61 + 7 + 40)
    assert changes["100 a batch"] == 3 * (61 + 100 * 47 + 36)
    assert changes["one batch"] == 61 + HOSTED * 47 + HOSTED - 64


def test_what_shipped_kafka_writes(found: dict[str, Any]) -> None:
    """The sizes are those of what a real controller wrote when it fenced broker 1 of three, in the recorded cluster."""
    path = bundled_corpus() / "7-all-back" / "controller-100" / "__cluster_metadata-0" / f"{0:020d}.log"
    values = [
        record.value
        for batch in read_batches(path.read_bytes())
        if not batch.is_control
        for record in batch.records()
        if 55 <= record.offset <= 59 and record.value is not None
    ]
    names = [decoded.type for value in values if (decoded := decode_metadata_record(value))]
    assert names == ["PartitionChangeRecord"] * 4 + ["BrokerRegistrationChangeRecord"]
    shipped = found["shipped"]
    change, leader = shipped["PartitionChange"], shipped["PartitionChange with a leader"]
    assert [len(value) for value in values] == [change, change, leader, leader, shipped["BrokerRegistrationChange"]]
    # A third of the partitions were led by the broker.
    assert shipped["values"] == 200 * change + 100 * leader + shipped["BrokerRegistrationChange"]
    assert shipped["records"] == HOSTED + 1


def test_what_is_printed() -> None:
    lines = run().splitlines()
    assert lines[1] == "one broker goes: 300 of its partitions have another ISR, 99 brokers are told"
    assert "  IsrChange   4 + 16 + 8 + 4 + 4 + 2 + 2 = 40 bytes" in lines
    assert lines[-1].startswith("Every snapshot has all 10,000 partitions anyway")
