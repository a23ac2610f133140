"""Segments go to remote storage and are read from there; the leader's disk keeps what it must."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from fencepost.impl.compaction.config import CompactionConfig, InvalidConfig
from fencepost.impl.files import DiskFiles
from fencepost.impl.tiering import METADATA, SegmentState, TieredTopic
from fencepost.impl.tiering.segments import PARTS
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LAST_TIERED,
    LATEST,
    MAX_TIMESTAMP,
    FetchRequest,
    ListOffsetsRequest,
)

from .brokers import TP
from .tiering_rack import CONFIG, TieredRack, value_of, values_of


def tiered(records: int = 20, **settings: object) -> TieredRack:
    """A rack whose leader, 0, has written, copied and deleted all that it may."""
    rack = TieredRack(3, **settings)  # type: ignore[arg-type]
    rack.begin()
    rack.write(0, records, timestamp=rack.network.clock.wall())
    rack.run()
    return rack


def test_sealed_segments_are_copied_and_go_from_the_leaders_disk() -> None:
    rack = tiered()
    log = rack.log(0)
    found = rack.segments()
    assert [each.start_offset for each in found] == [0, *(each.end_offset + 1 for each in found[:-1])]
    assert found[-1].end_offset + 1 == log.segment_bases[-1] == log.local_start < log.end == 20
    assert log.log_start == 0
    names = {name.rpartition("/")[2] for name in rack.objects()}
    assert names == {f"{each.start_offset:020d}-{each.id}.{part}" for each in found for part in PARTS}


def test_a_consumer_reads_every_record_once_and_in_order() -> None:
    rack = tiered(30)
    assert rack.log(0).local_start > 20
    for max_bytes in (1, 150, 1 << 16):
        assert values_of(rack.consume(0, 0, max_bytes)) == list(range(30))
    assert values_of(rack.consume(0, 7)) == list(range(7, 30))


def test_a_follower_is_told_that_its_offset_has_moved() -> None:
    rack = tiered()
    answer = rack.ask(0, FetchRequest(1, TP, 0, 1, current_leader_epoch=0))
    assert (answer.error, answer.log_start_offset) == (ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE, 0)
    assert int(answer.error) == 109
    below = rack.log(0)
    below.delete_before(3)
    assert rack.ask(0, FetchRequest(1, TP, 2, 1, current_leader_epoch=0)).error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert rack.fetch(0, 2).error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert rack.fetch(0, 3).error is ErrorCode.NONE


def test_the_sentinels_of_list_offsets() -> None:
    rack = tiered()
    local = rack.log(0).local_start
    assert rack.list_offsets(0, LATEST) == (20, 0)
    assert rack.list_offsets(0, EARLIEST) == (0, -1)
    assert rack.list_offsets(0, EARLIEST_LOCAL) == (local, 0)
    assert rack.list_offsets(0, LAST_TIERED) == (local - 1, 0)
    assert rack.list_offsets(0, EARLIEST_PENDING_UPLOAD) == (local, 0)
    newer = rack.ask(0, ListOffsetsRequest(TP, EARLIEST_LOCAL, current_leader_epoch=1))
    assert newer.error is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert rack.ask(1, ListOffsetsRequest(TP, EARLIEST_LOCAL)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_pending_offset_is_not_known_before_anything_is_uploaded() -> None:
    rack = TieredRack(3)
    rack.begin()
    rack.write(0, 2)
    assert rack.list_offsets(0, LAST_TIERED) == (-1, -1)
    assert rack.list_offsets(0, EARLIEST_PENDING_UPLOAD) == (-1, -1)


def test_offsets_are_found_by_timestamp_in_remote_segments_and_in_local_ones() -> None:
    rack = TieredRack(3)
    rack.begin()
    now = rack.network.clock.wall()
    times = [now + 10 * n for n in range(20)]
    times[4], times[18] = now + 1000, now + 900
    for time in times:
        assert rack.produce(0, b"x" * 40, timestamp=time).error is ErrorCode.NONE
    rack.run()
    local = rack.log(0).local_start
    assert 10 < local <= 18
    for offset, time in enumerate(times):
        first = next(n for n, each in enumerate(times) if each >= time)
        assert rack.list_offsets(0, time)[0] == first, offset
    assert rack.list_offsets(0, MAX_TIMESTAMP) == (4, 0)
    assert rack.list_offsets(0, now + 1001) == (-1, -1)


def test_local_segments_stay_as_long_as_the_local_retention_says() -> None:
    rack = tiered(20, topic=TieredTopic(local_retention_bytes=700))
    log = rack.log(0)
    assert rack.segments()[-1].end_offset + 1 == log.segment_bases[-1]
    assert 0 < log.local_start < log.segment_bases[-1] and 700 <= log.size < 1000
    rack = tiered(20, topic=TieredTopic(local_retention_ms=2_000))
    assert rack.log(0).local_start == 0
    rack.run(2_500)
    assert rack.log(0).local_start == rack.log(0).segment_bases[-1]


def test_remote_segments_are_deleted_by_size_and_by_time() -> None:
    rack = tiered(30, topic=TieredTopic(retention_bytes=1500, local_retention_bytes=0))
    rack.run()
    log, found = rack.log(0), rack.segments()
    assert 0 < log.log_start == found[0].start_offset < log.local_start
    kept = log.size + sum(each.size for each in found)
    assert 1500 <= kept < 1500 + found[0].size
    assert len(rack.objects()) == len(PARTS) * len(found)
    assert values_of(rack.consume(0, log.log_start)) == list(range(log.log_start, 30))

    rack = tiered(30, topic=TieredTopic(retention_ms=2_000, local_retention_bytes=0, local_retention_ms=2_000))
    assert rack.log(0).log_start == 0
    rack.run(3_000)
    log = rack.log(0)
    assert log.log_start == log.local_start == log.segment_bases[-1] and not rack.segments() and not rack.objects()
    assert rack.list_offsets(0, LAST_TIERED) == (log.local_start - 1, -1), "what was uploaded stays known"


def test_what_is_in_remote_storage_and_on_the_disk_counts_once() -> None:
    """No more goes by size than what is over it, though all that is uploaded is still on the leader's disk."""
    rack = tiered(30, topic=TieredTopic())
    rack.run()
    log = rack.log(0)
    assert log.log_start == log.local_start == 0 and len(rack.segments()) > 3
    rack.remote(0).config_of_topic = TieredTopic(retention_bytes=1500)
    next(rack.remote(0).expiry.run())  # before any segment goes by the local retention
    assert 0 < log.log_start == log.local_start
    assert 1500 <= log.size < 1500 + log.sealed[0].size


def test_nothing_at_or_above_the_high_watermark_and_no_active_segment_is_copied() -> None:
    rack = TieredRack(3)
    rack.begin()
    rack.stop(2)
    for offset in range(20):
        rack.produce(0, value_of(offset), acks=1)
        rack.network.cut(0, 1)  # nobody acknowledges; after replica.lag.time.max.ms the ISR would be smaller
    rack.run(200)
    assert rack.state(0).high_watermark == 0 and len(rack.log(0).sealed) > 2
    assert not rack.segments() and not rack.objects()
    rack.network.heal()
    rack.run(1_000)
    assert rack.segments()[-1].end_offset + 1 == rack.log(0).segment_bases[-1]


def test_each_step_of_a_copy_is_seen_in_the_metadata_log_before_the_next() -> None:
    rack = TieredRack(1, latency=(40, 40))
    rack.begin()
    rack.write(0, 9)
    seen: list[tuple[int, int]] = []

    def look() -> bool:
        states = [each.state for each in rack.remote(0).segments()]
        step = len([s for s in states if s is SegmentState.COPY_SEGMENT_STARTED]), len(rack.objects())
        if not seen or seen[-1] != step:
            seen.append(step)
            if not rack.segments():  # what has been begun is no reason to delete anything
                rack.remote(0).expiry.delete_local()
                assert rack.log(0).local_start == 0
        return bool(rack.segments())

    rack.until(look)
    assert seen[:3] == [(0, 0), (1, 0), (1, len(PARTS))] and seen[3] == (0, len(PARTS))
    assert rack.list_offsets(0, LAST_TIERED)[0] == rack.segments()[0].end_offset


def test_a_copy_that_somebody_deletes_first_is_not_finished_and_begins_anew() -> None:
    """A deposed leader that has not heard of the new one takes its copy for one that came to no end."""
    rack = tiered(4)
    remote, segments = rack.remote(0), rack.remote(0).segments()
    (first, *_) = rack.segments()
    deleting = SegmentState.DELETE_SEGMENT_STARTED
    assert remote.is_finished(first.id) is True
    assert segments.updated(first.id, deleting)
    assert remote.is_finished(first.id) is True, "it was finished before"
    again = replace(first, id=UUID(int=7), state=SegmentState.COPY_SEGMENT_STARTED, objects=())
    assert segments.started(again)
    assert remote.is_finished(again.id) is None
    assert segments.updated(again.id, deleting, unfinished=True)
    assert not segments.updated(again.id, SegmentState.COPY_SEGMENT_FINISHED, first.objects)
    assert remote.is_finished(again.id) is False


def test_a_new_leader_begins_behind_what_the_last_one_has_deleted() -> None:
    """It had not heard of its log start, and could serve none of that (KAFKA-15351)."""
    rack = tiered(20)
    (first, second, *_) = rack.segments()
    for epoch, leader in ((1, 1), (2, 0)):  # whoever has led has little left on its disk
        rack.elect(leader, epoch)
        rack.run()
    assert rack.log(1).local_start > second.start_offset
    rack.network.isolate(1)
    rack.log(0).delete_before(second.start_offset)
    rack.until(lambda: first.id not in {each.id for each in rack.remote(2).segments()})
    assert rack.log(1).log_start == 0 < second.start_offset == rack.log(0).log_start
    rack.network.heal(1)
    rack.elect(1, 3)
    rack.run(1_000)
    assert rack.log(1).log_start == second.start_offset
    assert values_of(rack.consume(1, second.start_offset)) == list(range(second.start_offset, 20))


def test_the_metrics_count_what_was_done() -> None:
    rack = tiered()
    rack.consume(0, 0)
    text = rack.managers[0].metrics.text()
    rates = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if not line.startswith("#")}
    prefix = "kafka_server_BrokerTopicMetrics_"
    for name in ("RemoteCopyBytesPerSec", "RemoteCopyRequestsPerSec", "RemoteFetchBytesPerSec"):
        assert rates[prefix + name] > 0
    assert rates[prefix + "RemoteCopyErrorsPerSec"] == rates[prefix + "RemoteCopyLagBytes"] == 0


def test_a_topic_that_is_not_tiered_any_more_begins_with_its_local_records() -> None:
    rack = tiered()
    local = rack.log(0).local_start
    rack.stop(0)
    rack.tiered_topics.clear()
    rack.start(0)
    assert (rack.log(0).log_start, rack.log(0).local_start) == (local, local)
    rack.tell(0, METADATA)
    rack.elect(0, 1)
    rack.run()
    assert values_of(rack.consume(0, local)) == list(range(local, 20))
    assert rack.list_offsets(0, LAST_TIERED) == rack.list_offsets(0, EARLIEST_PENDING_UPLOAD) == (-1, -1)


def test_a_tiered_topic_is_not_compacted_too(tmp_path: Path) -> None:
    """Neither from the start, where no file is touched, nor when it is set; tiering goes on as it was."""
    config = replace(CONFIG, compacted={TP.topic: CompactionConfig()})
    with pytest.raises(
        InvalidConfig, match=r"orders: cleanup\.policy is compact, and remote\.storage\.enable is true; "
    ):
        TieredRack(1, config=config, disk=lambda node: DiskFiles(tmp_path / str(node)))
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
    rack = TieredRack(1)
    rack.begin()
    with pytest.raises(InvalidConfig, match=r"only supports topics with cleanup\.policy=delete"):
        rack.brokers[0].configure(TP.topic, CompactionConfig())
    assert not rack.log(0).config.compacted and rack.brokers[0].cleaner is None
    rack.brokers[0].configure("others", CompactionConfig())
    rack.brokers[0].configure(TP.topic, None)
    rack.write(0, 30)
    rack.tiered(0, 1)
    assert rack.log(0).local_start > 0
