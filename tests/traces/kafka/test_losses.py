"""Committed records that an elected leader lacks: what is lost, what may be, and what was deleted or compacted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from fencepost.traces.kafka.checks import OF_ONE_TOPIC, FilesReport, check_brokers
from fencepost.traces.kafka.directories import read_brokers
from fencepost.traces.kafka.loss_words import loss_words
from fencepost.traces.kafka.losses import NAME, key_words, time_words

from .encoder import (
    Partition,
    batch,
    log,
    metadata_partition,
    partition,
    partition_change,
    partition_record,
    raw_batch,
    record,
    topic_record,
    write_broker,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fencepost.traces.kafka.verdicts import CheckResult

METADATA = "__cluster_metadata-0"
UNCLEAN = [
    topic_record("t"),
    partition_record([1, 2], [1, 2], 1),
    partition_change(isr=[1]),
    partition_change(leader=2, isr=[2]),
]
"""Broker 1 leads alone at epoch 0; broker 2, which is not in the ISR, leads at epoch 1."""


def report(
    tmp_path: Path,
    *replicas: Partition,
    decided: Sequence[bytes] = UNCLEAN,
    told: Sequence[int] = (1, 2),
    clean: bool = False,
) -> FilesReport:
    """Brokers 1, 2, …, each with one replica of t-0, and those in ``told`` with a metadata log."""
    place = tmp_path / f"case{len(list(tmp_path.iterdir()))}"
    roots = []
    for node, files in enumerate(replicas, start=1):
        held = {"t-0": files}
        if node in told:
            held[METADATA] = metadata_partition(decided)
        roots.append(write_broker(place / f"b{node}", node, held, clean=clean))
    found = check_brokers(read_brokers(roots))
    json.dumps(found.to_json(), allow_nan=False)
    return found


def kept(found: FilesReport) -> CheckResult:
    (result,) = (each for each in found.checks if each.check == NAME)
    return result


def test_an_unclean_election_loses_what_was_committed(tmp_path: Path) -> None:
    found = report(tmp_path, partition(0, 0, 0, 0, hw=3), partition(0, 1, hw=1))
    result = kept(found)
    assert (result.verdict, result.informative, found.verdict) == ("violated", False, "violated")
    assert result.message == (
        "broker 2 was elected uncleanly in leader epoch 1 (metadata offset 4); the last ISR was [1]; "
        "broker 1 truncates to 1 and loses 3 records; committed and lost: offsets 1 to 2"
    )
    assert result.data["records_lost"] == 2 and result.data["records_truncated"] == 3
    segment = tmp_path / "case0" / "b1" / "t-0" / f"{0:020d}.log"
    assert result.where == f"{segment}, byte {len(log(0))}"
    assert [each["offset"] for each in result.data["records"]] == [1, 2]
    assert result.data["records"][1]["where"] == f"{segment}, byte {len(log(0, 0))}"


def test_a_lost_record_is_told_by_key_timestamp_and_byte(tmp_path: Path) -> None:
    keys = [b"order-7", None, b"\xff\x00"]
    ours = Partition({0: batch(0, [b"a", b"b", b"c"], keys=keys, codec=4)}, [(0, 0)], 3)
    result = kept(report(tmp_path, ours, Partition({0: batch(0, [b"x"], epoch=1)}, [(1, 0)], 1)))
    assert [each["key"] for each in result.data["records"]] == ["order-7", None, "\ufffd\x00"]
    assert result.data["records"][2]["key_hex"] == "ff00"
    assert [each["timestamp"] for each in result.data["records"]] == [1_700_000_000_000 + n for n in range(3)]
    told = result.data["told"]
    assert told[0].startswith("offset 0, key 'order-7', timestamp 1700000000000 (2023-11-14T22:13:20.000Z), /")
    assert ", key null, " in told[1] and ", key 0xff00, " in told[2] and told[2].endswith(".log, byte 0")
    assert result.message.endswith("committed and lost: offsets 0 to 2")


def test_a_leader_that_has_not_written_yet(tmp_path: Path) -> None:
    """Its epoch cache has its epoch at its LEO: what it lacked then it lacks for ever."""
    leader = Partition({0: log(0)}, [(0, 0), (1, 1)], 1)
    assert kept(report(tmp_path, partition(0, 0, 0, hw=2), leader)).verdict == "violated"
    # With no sign of its epoch, it may have fetched the rest between the copy and the election.
    result = kept(report(tmp_path, partition(0, 0, 0, hw=2), partition(0)))
    assert result.verdict == "unknown" and "do not show that its epoch 1 has begun" in result.message


def test_clean_elections_lose_nothing(tmp_path: Path) -> None:
    for replicas in (
        (partition(0, 0, hw=1), partition(0, 1, hw=1)),
        (partition(0, 0, hw=2), partition(0, 0, 1, hw=3)),
        (partition(0, 0, 1, hw=2), partition(0, 0, 1, 1, hw=4)),
    ):
        result = kept(report(tmp_path, *replicas))
        assert (result.verdict, result.informative) == ("holds", False)


def test_what_the_leader_itself_wrote_is_no_loss_that_can_be_told(tmp_path: Path) -> None:
    """Files copied one broker after the other: the follower's copy is newer than the leader's."""
    result = kept(report(tmp_path, partition(0, 1, 1, hw=3), partition(0, 1, hw=2)))
    assert result.verdict == "unknown" and "the leader itself wrote them: its copy is older" in result.message


def test_a_later_leader_may_have_committed_what_a_broker_without_a_metadata_log_has(tmp_path: Path) -> None:
    replicas = partition(0, 0, hw=2), partition(0, 1, hw=1)
    result = kept(report(tmp_path, *replicas, told=(2,)))
    assert result.verdict == "unknown" and "broker 1 has no metadata log here" in result.message


def test_what_was_deleted_or_compacted_is_not_lost(tmp_path: Path) -> None:
    started = Partition({3: log(1, start=3)}, [(1, 3)], 4)
    assert kept(report(tmp_path, partition(0, 0, 0, hw=3), started)).verdict == "holds"
    ours = Partition({0: batch(0, [b"a", b"b", b"c"])}, [(0, 0)], 3)
    compacted = Partition({0: batch(0, [b"c"], deltas=[2]) + batch(3, [b"d"], epoch=1)}, [(0, 0), (1, 3)], 4)
    assert kept(report(tmp_path, ours, compacted)).verdict == "holds"
    wrong = Partition({0: batch(0, [b"X"], deltas=[2]) + batch(3, [b"d"], epoch=1)}, [(0, 0), (1, 3)], 4)
    assert kept(report(tmp_path, ours, wrong)).verdict == "violated"


def test_damage_makes_it_unknown(tmp_path: Path) -> None:
    data = bytearray(log(0, 1, 1))
    data[len(log(0)) + 40] ^= 1
    damaged = Partition({0: bytes(data)}, [(0, 0), (1, 1)], 1)
    for ours in (partition(0, 0, hw=2), partition(0, hw=1)):
        result = kept(report(tmp_path, ours, damaged))
        assert (result.verdict, result.informative) == ("unknown", False)
        assert "could not be read" in result.message


def test_nothing_is_said_where_nobody_can_know(tmp_path: Path) -> None:
    nobody = [*UNCLEAN, partition_change(leader=-1)]
    assert kept(report(tmp_path, partition(0, 0), partition(0), decided=nobody)).verdict == "holds"
    absent = [topic_record("t"), partition_record([1, 2, 3], [3], 3)]
    result = kept(report(tmp_path, partition(0, 0), partition(0), decided=absent))
    assert (result.verdict, result.informative) == (
        "unknown",
        True,
    ) and "broker 3, the leader, is not here" in result.message
    ours = partition(0, 0)
    ours.high_watermark = None
    result = kept(report(tmp_path, ours, partition(0, 1, hw=1)))
    assert (result.verdict, result.informative) == ("unknown", True)


@pytest.mark.parametrize(
    ("key", "words"),
    [(None, "null"), (b"", "''"), (b"a b", "'a b'"), (b"\x1b[31m", "0x1b5b33316d"), (b"x" * 99, "'" + "x" * 59 + "…")],
)
def test_keys_in_words(key: bytes | None, words: str) -> None:
    assert key_words(key) == words


def test_times_in_words() -> None:
    assert time_words(0) == "0 (1970-01-01T00:00:00.000Z)" and time_words(-1).startswith("-1 (1969-12-31T23:59:59.999Z")
    assert time_words(1 << 62) == str(1 << 62) and time_words(None) == "unknown"


# -- without a controller log -----------------------------------------------------------------------------------------


def without_log(tmp_path: Path, *replicas: Partition) -> FilesReport:
    """Brokers 1, 2, …, each with one replica of t-0 and none with a metadata log."""
    return report(tmp_path, *replicas, told=())


def losses(found: FilesReport) -> list[tuple[str, str]]:
    return [(c.verdict, c.message) for c in found.checks if c.check == NAME]


def test_new_leader_without_records_proves_the_loss(tmp_path: Path) -> None:
    """Broker 3 leads epoch 6 from offset 2 and has written nothing."""
    leader = Partition({0: log(5, 5)}, [(5, 0), (6, 2)], 2)
    found = without_log(tmp_path, partition(*[5] * 10, hw=10), partition(*[5] * 5, hw=4), leader)
    because = "leader epoch 6 starts at 2 on broker 3; committed and lost"
    assert losses(found) == [
        ("violated", f"broker 1 truncates to 2 and loses 8 records: {because}: offsets 2 to 9"),
        ("violated", f"broker 2 truncates to 2 and loses 3 records: {because}: offsets 2 to 3"),
    ]
    cuts = [(t.leader, t.follower, t.offset, t.committed_lost) for t in found.comparisons[0].truncations]
    assert cuts == [("broker 3", "broker 1", 2, ((2, 9),)), ("broker 3", "broker 2", 2, ((2, 3),))]


def test_loss_of_several_replicas_names_them_once(tmp_path: Path) -> None:
    leader = Partition({0: log(5, 5)}, [(5, 0), (6, 2)], 2)
    logs = [partition(*[5] * 6, hw=6), partition(*[5] * 6, hw=6), leader, partition(5, 5, 5, hw=3)]
    found = without_log(tmp_path, *logs)
    violated = [each.data for each in found.checks if each.check == NAME and each.verdict == "violated"]
    assert [(each["follower"], each["within"]) for each in violated] == [
        ("broker 1", None),
        ("broker 2", "broker 1"),
        ("broker 4", "broker 1"),
    ]
    assert loss_words(violated[0], violated[1:]) == (
        "brokers 1 and 2 truncate to 2 and lose 4 records each: leader epoch 6 starts at 2 on broker 3; "
        "committed and lost: offsets 2 to 5; broker 4 has offset 2 of them"
    )


def test_different_losses_are_not_one(tmp_path: Path) -> None:
    """Each of two followers has another record of its own at offset 1."""
    leader = Partition({0: log(5)}, [(5, 0), (7, 1)], 1)
    other = Partition({0: log(5) + log(6, start=1)}, [(5, 0), (6, 1)], 2)
    found = without_log(tmp_path, partition(5, 5, hw=2), leader, other)
    lost = [each.data for each in found.checks if each.check == NAME and each.verdict == "violated"]
    assert [(each["follower"], each["within"]) for each in lost] == [("broker 1", None), ("broker 3", None)]


def test_leader_with_an_empty_disk_proves_the_loss(tmp_path: Path) -> None:
    empty = Partition({0: b""}, [(7, 0)], 0)
    ((verdict, message),) = losses(without_log(tmp_path, partition(5, 5, 6, hw=2), empty))
    assert verdict == "violated" and message.endswith("committed and lost: offsets 0 to 1")
    written = Partition({0: log(7, 7)}, [(7, 0)], 2)
    ((verdict, message),) = losses(without_log(tmp_path, partition(5, 5, 6), written))
    assert verdict == "violated" and message.endswith("committed and lost: offsets 0 to 2")


def test_leader_with_an_empty_disk_and_a_metadata_log(tmp_path: Path) -> None:
    decided = [topic_record("t"), partition_record([1, 2], [1, 2], 1), partition_change(leader=2)]
    empty = Partition({0: b""}, [(1, 0)], 0)
    found = report(tmp_path, partition(0, 0, 0, hw=2), empty, decided=decided)
    because = "leader epoch 1 starts at 0 on broker 2; committed and lost: offsets 0 to 1"
    assert losses(found) == [("violated", f"broker 1 truncates to 0 and loses 3 records: {because}")]
    (cut,) = next(each.truncations for each in found.comparisons if each.topic == "t")
    assert (cut.leader, cut.offset, cut.records_lost, cut.by_controller) == ("broker 2", 0, 3, True)


def test_leader_without_its_epoch_proves_the_loss_once_it_acted(tmp_path: Path) -> None:
    """Broker 2 leads epoch 1 and has taken broker 1 into the ISR, which only a leader does."""
    decided = [
        topic_record("t"),
        partition_record([1, 2], [1, 2], 1),
        partition_change(leader=2, isr=[2]),
    ]
    replicas = partition(0, 0, hw=2), partition(0)
    assert [verdict for verdict, _ in losses(report(tmp_path, *replicas, decided=decided))] == ["unknown"]
    acted = [*decided, partition_change(isr=[2, 1])]
    ((verdict, message),) = losses(report(tmp_path, *replicas, decided=acted))
    assert verdict == "violated" and "broker 2 has led a later epoch without them" in message


@pytest.mark.parametrize(
    "leader",
    [Partition({0: log(0), 1: b"\x00" * 60 + b"?" * 60}, [(0, 0)], 1), partition(0, hw=2)],
    ids=["unread end", "power loss"],
)
def test_leader_that_lost_its_end_proves_no_loss(tmp_path: Path, leader: Partition) -> None:
    """Broker 2 led epoch 1, and its log may have reached further when it began."""
    decided = [
        topic_record("t"),
        partition_record([1, 2], [1, 2], 1),
        partition_change(leader=2, isr=[2]),
        partition_change(isr=[2, 1]),
    ]
    found = report(tmp_path, partition(0, 0, hw=2), leader, decided=decided)
    assert {verdict for verdict, _ in losses(found)} == {"unknown"}


def test_later_leader_elsewhere_leaves_the_loss_unknown(tmp_path: Path) -> None:
    """Broker 3 led epoch 2, has no directory here, and may have kept the records."""
    decided = [
        topic_record("t"),
        partition_record([1, 2, 3], [1, 2, 3], 1),
        partition_change(leader=2),
        partition_change(leader=3),
    ]
    replicas = partition(0, 0, 0, hw=3), Partition({0: log(0)}, [(0, 0), (1, 1)], 1)
    ((verdict, message),) = losses(report(tmp_path, *replicas, decided=decided))
    assert verdict == "unknown" and "broker 3 has led a later epoch and may have kept them" in message


@pytest.mark.parametrize(
    "replicas",
    [
        (partition(5, 5, 5, hw=2), Partition({0: log(5, 5)}, [(5, 0), (6, 2)], 2)),
        (partition(5, 5, hw=2), partition(5, 5, 6, 6, hw=2)),
        (partition(5, 5, 5, hw=3), partition(5, 5, hw=2)),
        (partition(5, 5, hw=2), Partition({4: log(6, start=4)}, [(6, 4)], 5)),
        (partition(5, 5, 5, 7, hw=3), Partition({0: log(5, 5)}, [(5, 0), (6, 2)], 2)),
    ],
    ids=["above the high watermark", "behind", "same epoch", "deleted by retention", "the longer log is newer"],
)
def test_lawful_truncations_lose_nothing(tmp_path: Path, replicas: tuple[Partition, ...]) -> None:
    found = without_log(tmp_path, *replicas)
    assert [verdict for verdict, _ in losses(found)] == ["holds"] and found.verdict == "holds"


def test_leftover_of_a_deleted_topic_is_no_proof(tmp_path: Path) -> None:
    """Before 2.8 topics have no ids: an old folder of an earlier topic of that name has the larger epoch."""
    data = raw_batch(0, record(0, None, b"old"), 1, epoch=9, base_timestamp=1_600_000_000_000)
    old = Partition({0: data}, [(9, 0)], 1, topic_id=None)
    new = partition(0, 0, 0, tag="new")
    new.topic_id = None
    found = without_log(tmp_path, new, old)
    (result,) = (each for each in found.checks if each.check == OF_ONE_TOPIC)
    assert (result.verdict, result.subject, found.verdict) == ("unknown", "broker 2: t-0", "unknown")
    assert "shares no record with that of broker 1; without topic ids it may be of an older topic" in result.message
    assert losses(found) == []


def test_records_below_the_log_start_are_deleted(tmp_path: Path) -> None:
    old = partition(0, 0, 0, hw=3)
    old.log_start = 3
    assert [verdict for verdict, _ in losses(without_log(tmp_path, old, partition(0, 1, hw=1)))] == ["holds"]
    old.log_start = 2
    ((_, message),) = losses(without_log(tmp_path, old, partition(0, 1, hw=1)))
    assert message.endswith("committed and lost: offset 2")


def test_records_that_every_replica_has_cut_off_are_lost(tmp_path: Path) -> None:
    decided = [topic_record("t"), partition_record([1, 2], [1, 2], 1)]
    found = report(tmp_path, partition(0, 0, hw=4), partition(0, hw=1), decided=decided, clean=True)
    (result,) = (c for c in found.checks if c.check == NAME and c.verdict == "violated")
    assert result.message == ("broker 1 had committed up to 4, and every log ends at 2 or before; lost: offsets 2 to 3")
    whole = report(tmp_path, partition(0, 0, hw=4), partition(0, 0, 0, 0, hw=4), decided=decided)
    assert all(c.verdict != "violated" for c in whole.checks), "a power loss at one replica alone"


def test_logs_copied_before_their_checkpoints_are_no_loss(tmp_path: Path) -> None:
    decided = [topic_record("t"), partition_record([1, 2], [1, 2], 1)]
    found = kept(report(tmp_path, partition(0, 0, hw=4), partition(0, hw=1), decided=decided))
    assert found.verdict == "unknown"
    assert found.message.endswith("; no loss if broker 1 ran while its log was copied before its checkpoints")
