"""Leader epoch caches against each other and against the controller's elections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.traces.kafka.checks import check_brokers
from fencepost.traces.kafka.directories import read_brokers
from fencepost.traces.kafka.epoch_cache_checks import AGREE, ELECTED, OWN_EPOCH

from .encoder import (
    Partition,
    log,
    metadata_partition,
    partition,
    partition_change,
    partition_record,
    topic_record,
    write_broker,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fencepost.traces.kafka.verdicts import CheckResult

ELECTIONS = [
    topic_record("t"),
    partition_record([1, 2], [1, 2], 1),
    partition_change(leader=-1),
    partition_change(leader=2, isr=[2]),
    partition_change(isr=[2, 1]),
]
"""Broker 1 leads epoch 0, no broker epoch 1, broker 2 epoch 2, in which it takes broker 1 into the ISR."""


def results(tmp_path: Path, *replicas: Partition, decided: Sequence[bytes] | None = ELECTIONS) -> list[CheckResult]:
    place = tmp_path / f"case{len(list(tmp_path.iterdir()))}"
    roots = []
    for node, files in enumerate(replicas, start=1):
        held = {"t-0": files} | ({} if decided is None else {"__cluster_metadata-0": metadata_partition(decided)})
        roots.append(write_broker(place / f"b{node}", node, held))
    return list(check_brokers(read_brokers(roots)).checks)


def only(found: list[CheckResult], name: str) -> CheckResult:
    (result,) = (each for each in found if each.check == name)
    return result


def test_clean_caches_hold(tmp_path: Path) -> None:
    found = results(tmp_path, partition(0, 0, 2), partition(0, 0, 2))
    assert [only(found, name).verdict for name in (AGREE, ELECTED, OWN_EPOCH)] == ["holds"] * 3


def test_leader_without_records_holds(tmp_path: Path) -> None:
    leader = Partition({0: log(0, 0)}, [(0, 0), (2, 2)], 2)
    found = results(tmp_path, partition(0, 0), leader)
    assert only(found, OWN_EPOCH).verdict == "holds"


def test_leader_without_its_own_epoch_is_violated(tmp_path: Path) -> None:
    result = only(results(tmp_path, partition(0, 0), partition(0, 0)), OWN_EPOCH)
    assert (result.verdict, result.informative) == ("violated", False)
    assert result.message == "broker 2 leads in epoch 2, and its epoch cache ends with epoch 0"


def test_stuck_follower_is_named_with_the_reason(tmp_path: Path) -> None:
    ahead = Partition({0: log(0, 0)}, [(0, 0), (1, 2)], 2)
    found = results(tmp_path, ahead, partition(0, 0))
    assert only(found, OWN_EPOCH).message == (
        "broker 2 leads in epoch 2, and its epoch cache ends with epoch 0; broker 1, whose last epoch is 1, is stuck: "
        "the leader answers each fetch with OFFSET_OUT_OF_RANGE"
    )
    assert only(found, ELECTED).message == (
        "the cache of broker 1 has leader epoch 1 from offset 2, but the controller elected no leader in it"
    )


def test_leader_that_may_not_have_begun_is_unknown(tmp_path: Path) -> None:
    result = only(results(tmp_path, partition(0), partition(0), decided=ELECTIONS[:-1]), OWN_EPOCH)
    assert (result.verdict, result.informative) == ("unknown", True)


def test_epoch_above_the_controllers_is_violated(tmp_path: Path) -> None:
    ahead = Partition({0: log(0, 2)}, [(0, 0), (2, 1), (5, 2)], 2)
    result = only(results(tmp_path, partition(0, 2), ahead), ELECTED)
    assert result.verdict == "violated" and "the controller's newest is 2 (metadata offset 5)" in result.message


def test_epoch_with_two_starts_is_violated(tmp_path: Path) -> None:
    early = Partition({0: log(0)}, [(0, 0), (2, 1)], 1)
    result = only(results(tmp_path, partition(0, 0, 2), early, decided=None), AGREE)
    assert result.verdict == "violated"
    assert result.message == "leader epoch 2 starts at 2 in the cache of broker 1 and at 1 in that of broker 2"


def test_caches_without_a_common_entry_have_no_result(tmp_path: Path) -> None:
    one, other = partition(0, 0, 2), Partition({2: log(2, start=2)}, [(2, 2)], 2)
    assert not [each for each in results(tmp_path, one, other, decided=None) if each.check == AGREE]
    empty = Partition({0: b""}, [], 0)
    assert not [each for each in results(tmp_path, empty, empty) if each.check == ELECTED]


def test_deleted_starts_are_not_compared(tmp_path: Path) -> None:
    trimmed = Partition({2: log(0, 2, start=2)}, [(0, 2), (2, 3)], 4)
    assert only(results(tmp_path, partition(0, 0, 0, 2), trimmed, decided=None), AGREE).verdict == "holds"
