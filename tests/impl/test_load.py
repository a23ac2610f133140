"""Many records through three replicas with failovers, and what such a run must notice."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.conformance.mutants.patched import Patch, patched

from .load import KINDS, Load, value_of
from .rack import Parts


@pytest.mark.parametrize("seed", range(3))
def test_every_record_is_there_once_and_in_order(seed: int) -> None:
    load = Load(20_000, 8, seed)
    load.run()
    assert load.happened.total() == 8 and set(load.happened) == set(KINDS)
    assert load.rack.net.counts.reordered > 30 and load.rack.net.counts.duplicated > 10


def test_on_real_files(tmp_path: Path) -> None:
    load = Load(5_000, 5, 1, folder=str(tmp_path))
    load.run()
    load.close()
    files = sorted(tmp_path.rglob("orders-0/*.log"))
    assert sum(each.read_bytes().count(value_of(0, 0)) for each in files) == 3
    assert sum(each.stat().st_size for each in files) == load.log_bytes() > 3 * 5_000 * 50


PLANTED = {
    "a repeat is taken for new": Patch(
        "replica/producers.py",
        "if sent.first_sequence == first and sent.last_sequence == _last_sequence(batch):\n                return sent",
        "if sent.first_sequence == first and sent.last_sequence == _last_sequence(batch):\n"
        "                return ErrorCode.NONE",
    ),
    "a batch that comes too early is taken": Patch(
        "replica/producers.py", "        if ahead == 0:\n", "        if ahead < _SEQUENCES // 2:\n"
    ),
    "acknowledged by the leader alone": Patch(
        "replica/leader.py",
        "if request.acks == -1 and self._partition.high_watermark <= last_offset:",
        "if False:",
    ),
    "a batch that came too early counts as delivered": Patch(
        "producer/batches.py", "            batch.early = True\n", "            self._delivered(batch, 0)\n"
    ),
    "a follower keeps what its leader lacks": Patch(
        "replica/follower.py", "return min(end_here, end_offset), True", "return end_here, True"
    ),
    "the consumer skips a record": Patch(
        "consumer/partition.py",
        "self.position = OffsetAndMetadata(last.next_offset, last.epoch, self.served_by)",
        "self.position = OffsetAndMetadata(last.next_offset + (last.next_offset % 5 == 0), last.epoch, self.served_by)",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_defect_does_not_pass(name: str) -> None:
    with patched(PLANTED[name]) as copy:
        parts = Parts.of(copy.__name__)
        for seed in range(8):
            try:
                Load(6_000, 10, seed, parts=parts).run()
            except (AssertionError, parts.consumer.ConsumerError):
                return
    pytest.fail(f"eight runs did not notice that {name}")
