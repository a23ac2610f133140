"""The epoch exchange: the cases of KIP-101, KIP-279 and KIP-320, and random logs that Kafka's rules must mend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from fencepost.traces.kafka.partition import PartitionFiles, read_partition
from fencepost.traces.kafka.statefiles import EpochEntry
from fencepost.traces.kafka.truncation import EpochCache, Truncation, effective_epochs, prescribe
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from .encoder import Partition, cache_of, log, write_broker

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def replica(
    root: Path, *epochs: int, hw: int = 0, start: int = 0, tag: str = "r", cache: list[tuple[int, int]] | None = None
) -> PartitionFiles:
    cache = cache_of(epochs, start) if cache is None else cache
    files = Partition({start: log(*epochs, start=start, tag=tag)}, cache, hw)
    path = write_broker(root / f"b{len(list(root.iterdir()))}", 1, {"t-0": files})
    return read_partition(path / "t-0", "t", 0, high_watermark=hw)


def under(leader: PartitionFiles, follower: PartitionFiles, epoch: int | None = None) -> Truncation:
    return prescribe(leader, follower, leader_label="L", follower_label="F", leader_epoch=epoch, by_controller=False)


def test_prefix_loses_nothing(tmp_path: Path) -> None:
    leader, follower = replica(tmp_path, 0, 0, 1, 1), replica(tmp_path, 0, 0, 1)
    found = under(leader, follower)
    assert (found.offset, found.records_lost, found.rule, found.agrees_after) == (3, 0, "epochs", True)


def test_longer_follower_of_the_same_epoch(tmp_path: Path) -> None:
    leader, follower = replica(tmp_path, 0, 0), replica(tmp_path, 0, 0, 0, 0)
    found = under(leader, follower)
    assert (found.offset, found.records_lost, found.epochs_lost) == (2, 2, ((0, 2),))
    assert [(e.requested_epoch, e.leader_epoch, e.end_offset) for e in found.exchanges] == [(0, 0, 2)]


def test_follower_epoch_that_the_leader_does_not_know(tmp_path: Path) -> None:
    leader, follower = replica(tmp_path, 0, 0, 2, 2), replica(tmp_path, 0, 0, 0, 1, 1)
    found = under(leader, follower)
    assert (found.offset, found.records_lost, found.epochs_lost) == (2, 3, ((0, 1), (1, 2)))
    assert [(e.requested_epoch, e.leader_epoch, e.end_offset, e.truncate_to) for e in found.exchanges] == [(1, 0, 2, 2)]
    assert found.agrees_after is True


def test_two_rounds_of_kip_279(tmp_path: Path) -> None:
    # Fast leader changes: the leader answers an epoch that the follower has never had.
    leader = replica(tmp_path, 0, 2, 2, 2)
    follower = replica(tmp_path, 0, 1, 1, 3, 3)
    found = under(leader, follower)
    assert [(e.requested_epoch, e.leader_epoch, e.end_offset, e.truncate_to) for e in found.exchanges] == [
        (3, 2, 4, 3),
        (1, 0, 1, 1),
    ]
    assert (found.offset, found.records_lost, found.agrees_after) == (1, 4, True)


def test_follower_with_no_common_epoch_below_goes_on_asking(tmp_path: Path) -> None:
    leader = replica(tmp_path, 1, 1, 4)
    follower = replica(tmp_path, 2, 2, 2, 3)
    found = under(leader, follower)
    assert found.offset == 0 and found.records_lost == 4


def test_leader_with_an_epoch_and_no_record(tmp_path: Path) -> None:
    # Without its own epoch at the LEO the leader could not answer for an epoch above its last record's.
    leader = replica(tmp_path, 0, cache=[(0, 0), (2, 1)])
    follower = replica(tmp_path, 0, 1)
    found = under(leader, follower, epoch=2)
    assert (found.offset, found.records_lost, found.rule) == (1, 1, "epochs")
    assert [entry.epoch for entry in effective_epochs(leader)] == [0, 2]


def test_follower_with_no_epoch_truncates_to_its_high_watermark(tmp_path: Path) -> None:
    leader, follower = replica(tmp_path, 0, 0), replica(tmp_path, -1, -1, -1, hw=1, cache=[])
    found = under(leader, follower)
    assert (found.offset, found.rule) == (1, "high watermark")


def test_follower_below_the_log_start_starts_over(tmp_path: Path) -> None:
    leader, follower = replica(tmp_path, 1, 1, start=10), replica(tmp_path, 0, 0)
    found = under(leader, follower)
    assert (found.offset, found.rule, found.records_lost, found.agrees_after) == (10, "reset", 2, None)


def test_epoch_written_by_two_leaders_cannot_be_mended(tmp_path: Path) -> None:
    leader, follower = replica(tmp_path, 0, 1, 1), replica(tmp_path, 0, 1, 1, tag="other")
    found = under(leader, follower)
    assert found.agrees_after is False


def test_stale_and_false_cache_entries_are_not_used(tmp_path: Path) -> None:
    files = replica(tmp_path, 0, 0, 1, cache=[(0, 0), (1, 1), (7, 9)])
    assert effective_epochs(files) == [EpochEntry(0, 0), EpochEntry(1, 2)]


def test_end_offsets_as_leader_epoch_file_cache_gives_them() -> None:
    cache = EpochCache([EpochEntry(1, 4), EpochEntry(3, 6), EpochEntry(4, 9)])
    answers = {epoch: cache.end_offset_for(epoch, 12) for epoch in (-1, 0, 1, 2, 3, 4, 5)}
    assert answers == {-1: (-1, -1), 0: (0, 4), 1: (1, 6), 2: (1, 6), 3: (3, 9), 4: (4, 12), 5: (-1, -1)}
    assert EpochCache([]).end_offset_for(0, 5) == (-1, -1)


@seed(20260601)
@settings(max_examples=120, deadline=None)
@given(shared=st.lists(st.integers(0, 2), max_size=4), data=st.data())
def test_exchange_ends_at_the_divergence_whenever_each_epoch_has_one_leader(
    tmp_path_factory: pytest.TempPathFactory, shared: list[int], data: st.DataObject
) -> None:
    """Logs as kip-320 makes them: a common prefix, then epochs that belong to one replica only.

    Under the other one as leader the follower keeps exactly the common prefix.
    """
    prefix = sorted(shared)
    own = data.draw(st.permutations(range(3, 9)))
    cut = data.draw(st.integers(0, 6))
    tails = [
        sorted(np.repeat(part, data.draw(st.lists(st.integers(1, 3), min_size=len(part), max_size=len(part)))).tolist())
        for part in (own[:cut], own[cut:])
    ]
    root = tmp_path_factory.mktemp("pair")
    a, b = (replica(root, *prefix, *tail) for tail in tails)
    for leader, follower in ((a, b), (b, a)):
        found = under(leader, follower)
        assert found.agrees_after in (True, None)
        assert found.offset == len(prefix)
        assert found.records_lost == follower.log_end - len(prefix)
