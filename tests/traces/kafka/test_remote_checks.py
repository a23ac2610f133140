"""Checks of tiered partitions: of what a real cluster uploaded, and with a fault planted in a copy of it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.capture import bundled_corpus, load_manifest
from fencepost.traces.kafka.checks import FilesReport, check_brokers
from fencepost.traces.kafka.directories import read_brokers
from fencepost.traces.kafka.metadata import MetadataError
from fencepost.traces.kafka.remote_checks import BELOW, LINEAGE, NO_GAP, WELL_FORMED
from fencepost.traces.kafka.remote_metadata import SegmentState, decode_remote, segments_of

from .damaged import report, results, revalue, stage, violated
from .encoder import (
    TOPIC_ID,
    Partition,
    batch,
    checkpoint,
    config_record,
    log,
    metadata_partition,
    metadata_value,
    partition_change,
    partition_record,
    topic_record,
    uvarint,
    write_broker,
)

STAGES = [each["name"] for each in load_manifest(bundled_corpus("tiered"))["stages"]]
BROKERS = ("broker-1", "broker-2", "broker-3")
METADATA = "__remote_log_metadata-0"


@pytest.mark.parametrize("name", STAGES)
def test_what_kafka_uploaded_holds(name: str) -> None:
    found = report(bundled_corpus("tiered") / name)
    assert found.problems == () and found.verdict == "holds" and found.older == {}
    holders = 3 if name == "4-empty-follower" else 2
    assert len(results(found, LINEAGE)) == len(results(found, NO_GAP)) == holders
    assert len(results(found, WELL_FORMED)) == 2 and len(results(found, BELOW)) == 1
    assert all(each.verdict == "holds" for each in found.checks if each.check.startswith("remote_"))


def test_the_empty_follower_has_the_lineage_of_what_it_did_not_fetch() -> None:
    found = report(bundled_corpus("tiered") / "4-empty-follower")
    messages = {each.subject: each.message for each in results(found, NO_GAP)}
    assert messages == {
        "broker 1: archive-0": "offsets 40 to 159 are in remote segments",
        "broker 2: archive-0": "offsets 40 to 159 are in remote segments",
        "broker 3: archive-0": "offsets 40 to 219 are in remote segments",
    }
    assert {each.message for each in results(found, LINEAGE)} == {"180 offsets of 9 remote segments"}


def test_the_events_are_those_of_the_store() -> None:
    """Whatever is finished and not deleted has its objects, and nothing else has."""
    home = bundled_corpus("tiered") / "4-empty-follower"
    (store,) = (home / "remote" / "kafka-tiered-storage").iterdir()
    told = read_broker(home / "broker-2").remote[0]
    segments = segments_of(told.events)
    there = {each.copy.start for each in segments.values() if each.state is SegmentState.COPY_SEGMENT_FINISHED}
    assert there == {int(path.name[:20]) for path in store.glob("*.log")} == set(range(40, 220, 20))
    gone = {each.copy.start for each in segments.values() if each.state is SegmentState.DELETE_SEGMENT_FINISHED}
    assert gone == {0, 20}
    assert [
        (e.epoch, e.start_offset) for e in next(s for s in segments.values() if s.copy.start == 140).copy.epochs
    ] == [
        (0, 140),
        (1, 150),
    ]


class TestPlanted:
    """Each fault is planted in the fourth stage; one in the remote log metadata on all three brokers."""

    def home(self, tmp_path: Path) -> Path:
        return stage(tmp_path, "tiered", "4-empty-follower")

    def metadata(self, home: Path, change: object) -> None:
        for broker in BROKERS:
            revalue(home / broker / METADATA, change)  # type: ignore[arg-type]

    def offset_of(self, home: Path, start: int, state: SegmentState) -> int:
        """The offset of a segment's event."""
        events = read_broker(home / "broker-2").remote[0].events
        (begun,) = (each for each in events if each.started and each.start == start)
        return next(each.offset for each in events if each.id == begun.id and each.state is state)

    def test_a_follower_that_built_epochs_only_up_to_another_offset(self, tmp_path: Path) -> None:
        """Nothing else sees it: the entry is below its local log."""
        home = self.home(tmp_path)
        path = home / "broker-3" / "archive-0" / "leader-epoch-checkpoint"
        path.write_text(checkpoint(["0 40", "1 155"]))
        found = report(home)
        assert violated(found) == {LINEAGE, NO_GAP}
        (told,) = (each for each in results(found, LINEAGE) if each.verdict == "violated")
        assert told.subject == "broker 3: archive-0" and told.data == {"offset": 150} and told.where == str(path)
        assert "offsets 140 to 159, of broker 2, has leader epoch 1 at 150, the replica's cache 0" in told.message

    def test_a_segment_that_was_never_finished(self, tmp_path: Path) -> None:
        """As where the local log is deleted before the metadata is committed."""
        home = self.home(tmp_path)
        lost = self.offset_of(home, 80, SegmentState.COPY_SEGMENT_FINISHED)
        self.metadata(home, lambda offset, value: None if offset == lost else value)
        found = report(home)
        assert NO_GAP in violated(found)
        told = [each for each in results(found, NO_GAP) if each.verdict == "violated"]
        assert [each.subject for each in told] == [f"broker {n}: archive-0" for n in (1, 2, 3)]
        assert "offset 80 is below the local log start 160, and in no finished remote segment" in told[0].message

    def test_a_follower_that_began_behind_what_is_uploaded(self, tmp_path: Path) -> None:
        home = self.home(tmp_path)
        lost = self.offset_of(home, 200, SegmentState.COPY_SEGMENT_FINISHED)
        self.metadata(home, lambda offset, value: None if offset == lost else value)
        told = [each for each in results(report(home), NO_GAP) if each.verdict == "violated"]
        assert [each.subject for each in told] == ["broker 3: archive-0"]
        assert "offset 200 is below the local log start 220" in told[0].message

    def test_a_segment_of_another_lineage(self, tmp_path: Path) -> None:
        home = self.home(tmp_path)
        begun = self.offset_of(home, 140, SegmentState.COPY_SEGMENT_STARTED)
        here, there = struct.pack(">iq", 1, 150), struct.pack(">iq", 1, 146)
        self.metadata(home, lambda offset, value: value.replace(here, there) if offset == begun else value)
        told = [each for each in results(report(home), LINEAGE) if each.verdict == "violated"]
        assert [each.subject for each in told] == [f"broker {n}: archive-0" for n in (1, 2, 3)]
        assert "has leader epoch 1 at 146, the replica's cache 0" in told[0].message

    def test_an_upload_past_the_end_of_the_leaders_log(self, tmp_path: Path) -> None:
        home = self.home(tmp_path)
        begun = self.offset_of(home, 200, SegmentState.COPY_SEGMENT_STARTED)
        here, there = struct.pack(">qq", 200, 219), struct.pack(">qq", 200, 231)
        self.metadata(home, lambda offset, value: value.replace(here, there) if offset == begun else value)
        found = report(home)
        (told,) = results(found, BELOW)
        assert told.verdict == "violated"
        assert told.message == "the last remote offset is 231, the leader's high watermark 230, its LEO 230"

    def test_an_update_of_a_copy_that_never_began(self, tmp_path: Path) -> None:
        home = self.home(tmp_path)
        begun = self.offset_of(home, 60, SegmentState.COPY_SEGMENT_STARTED)
        self.metadata(home, lambda offset, value: None if offset == begun else value)
        found = report(home)
        assert WELL_FORMED in violated(found)
        (told,) = (each for each in results(found, WELL_FORMED) if each.verdict == "violated")
        assert "an update to COPY_SEGMENT_FINISHED of a copy that never began" in told.message

    def test_a_copy_whose_epochs_begin_behind_it(self, tmp_path: Path) -> None:
        home = self.home(tmp_path)
        begun = self.offset_of(home, 60, SegmentState.COPY_SEGMENT_STARTED)
        here, there = struct.pack(">iq", 0, 60), struct.pack(">iq", 0, 62)
        self.metadata(home, lambda offset, value: value.replace(here, there) if offset == begun else value)
        (told,) = (each for each in results(report(home), WELL_FORMED) if each.verdict == "violated")
        assert "a copy of offsets 60 to 79 with leader epochs 0 from 62" in told.message

    def test_remote_metadata_that_does_not_decode_leaves_all_open(self, tmp_path: Path) -> None:
        home = self.home(tmp_path)
        self.metadata(home, lambda offset, value: value[:-3] if offset == 4 else value)
        found = report(home)
        assert [each.kind for each in found.problems] == ["bad-remote-metadata"] * 3 and found.bad_input
        verdicts = {each.check: each.verdict for each in found.checks if each.check.startswith("remote_")}
        assert set(verdicts) == {WELL_FORMED, LINEAGE, NO_GAP, BELOW}
        assert {each.verdict for each in results(found, NO_GAP)} == {"unknown"}

    def test_with_no_remote_metadata_among_the_directories_nothing_is_said(self, tmp_path: Path) -> None:
        home = self.home(tmp_path)
        found = report(home, without=["broker-1", "broker-2", "broker-3"])
        assert results(found, NO_GAP) == []
        broker = home / "broker-3"
        for number in (0, 1):
            for path in (broker / f"__remote_log_metadata-{number}").iterdir():
                path.unlink()
            (broker / f"__remote_log_metadata-{number}").rmdir()
        alone = report(home, without=["broker-1", "broker-2"])
        (told,) = results(alone, NO_GAP)
        assert told.verdict == "unknown" and "no __remote_log_metadata among the directories" in told.message
        assert [each.informative for each in results(alone, LINEAGE)] == [True]


# -- what files do not decide ------------------------------------------------------------------------------------------


def remote_ids(segment: int) -> bytes:
    """A segment's id, as shipped Kafka nests it."""
    topic = uvarint(2) + b"t" + TOPIC_ID.bytes + struct.pack(">i", 0) + b"\x00"
    return topic + segment.to_bytes(16) + b"\x00"


def started(segment: int, start: int, end: int, *epochs: tuple[int, int]) -> bytes:
    """RemoteLogSegmentMetadataRecord of Kafka's storage module."""
    body = remote_ids(segment) + struct.pack(">qqiqq", start, end, 1, 0, 0) + uvarint(len(epochs) + 1)
    body += b"".join(struct.pack(">iq", *each) + b"\x00" for each in epochs) + struct.pack(">i", 100)
    return metadata_value(0, body + b"\x00\x00", {0: b"\x01"})


def update(segment: int, state: SegmentState) -> bytes:
    """RemoteLogSegmentMetadataUpdateRecord of Kafka's storage module."""
    return metadata_value(1, remote_ids(segment) + struct.pack(">iq", 1, 0) + b"\x00" + bytes([state]))


def check_two(tmp_path: Path, events: list[bytes], *changes: bytes, mark: int | None = None) -> FilesReport:
    """Brokers 1 and 2 with a tiered topic whose local log starts at 4, in epoch 1 from offset 2 on; LEO 8."""
    values = [
        topic_record("t"),
        partition_record([1, 2], [1, 2], 1, 1),
        config_record("t", "remote.storage.enable", "true"),
    ]
    write_broker(
        tmp_path / "100", 100, {"__cluster_metadata-0": metadata_partition([*values, *changes])}, directory="Aw"
    )
    mark = len(events) if mark is None else mark
    remote = Partition({0: batch(0, events)}, [(0, 0)], mark, topic_id=None)
    files = Partition({4: log(1, 1, 1, 1, start=4)}, [(0, 0), (1, 2)], 8, log_start=0)
    for node in (1, 2):
        write_broker(tmp_path / str(node), node, {"t-0": files, METADATA: remote}, directory=f"A{node}")
    return check_brokers(read_brokers(tmp_path / each for each in ("100", "1", "2")))


FINISHED = SegmentState.COPY_SEGMENT_FINISHED
WHOLE = [started(1, 0, 3, (0, 0), (1, 2)), update(1, FINISHED)]


def test_the_clean_case_by_hand(tmp_path: Path) -> None:
    found = check_two(tmp_path, WHOLE)
    assert found.problems == () and {each.verdict for each in found.checks if "remote" in each.check} == {"holds"}


def test_a_finished_copy_above_the_metadatas_high_watermark_may_be_committed_since(tmp_path: Path) -> None:
    (told, _) = results(check_two(tmp_path, WHOLE, mark=1), NO_GAP)
    assert told.verdict == "unknown" and "may be committed since" in told.message


def test_deleted_segments_at_the_log_start_are_a_checkpoint_that_lags(tmp_path: Path) -> None:
    two = [started(1, 0, 1, (0, 0)), update(1, FINISHED), started(2, 2, 3, (1, 2)), update(2, FINISHED)]
    (told, _) = results(check_two(tmp_path / "lag", [*two, update(1, SegmentState.DELETE_SEGMENT_STARTED)]), NO_GAP)
    assert (told.verdict, told.message) == (
        "holds",
        "offsets 2 to 3 are in remote segments, though its checkpoint says 0",
    )
    (told, _) = results(check_two(tmp_path / "gap", [*two, update(2, SegmentState.DELETE_SEGMENT_STARTED)]), NO_GAP)
    assert told.verdict == "violated" and "offset 2 is below the local log start 4" in told.message


def test_where_the_log_starts_no_checkpoint_tells(tmp_path: Path) -> None:
    """Kafka takes 0 where the file has no entry; with no file at all a gap is none for sure."""
    check_two(tmp_path, WHOLE[:1])
    nodes = [tmp_path / each for each in ("100", "1", "2")]
    for node in nodes[1:]:
        (node / "log-start-offset-checkpoint").write_text(checkpoint([]))
    (told, _) = results(check_brokers(read_brokers(nodes)), NO_GAP)
    assert told.verdict == "violated" and "offset 0 is below the local log start 4" in told.message
    for node in nodes[1:]:
        (node / "log-start-offset-checkpoint").unlink()
    (told, _) = results(check_brokers(read_brokers(nodes)), NO_GAP)
    assert told.verdict == "unknown" and "where the log starts no checkpoint tells" in told.message


def test_after_an_unclean_election_another_lineage_is_no_fault_for_sure(tmp_path: Path) -> None:
    other = [started(2, 0, 3, (0, 0)), update(2, FINISHED)]
    assert {each.verdict for each in results(check_two(tmp_path / "clean", [*WHOLE, *other]), LINEAGE)} == {"violated"}
    unclean = [partition_change(isr=[2], leader=2), partition_change(isr=[1], leader=1), partition_change(isr=[1, 2])]
    found = check_two(tmp_path / "unclean", [*WHOLE, *other], *unclean)
    (told, _) = results(found, LINEAGE)
    assert told.verdict == "unknown" and "it may be the deposed leader's" in told.message
    assert {each.verdict for each in results(found, NO_GAP)} == {"holds"}


def test_a_copy_that_is_finished_after_its_deletion_began_is_worth_knowing(tmp_path: Path) -> None:
    late = [started(2, 0, 3, (0, 0), (1, 2)), update(2, SegmentState.DELETE_SEGMENT_STARTED), update(2, FINISHED)]
    found = results(check_two(tmp_path, [*WHOLE, *late]), WELL_FORMED)
    assert [(each.verdict, each.informative) for each in found] == [("unknown", True), ("holds", False)]


@pytest.mark.parametrize("value", [b"", b"\x01", WHOLE[0] + b"\x00", metadata_value(7, b""), update(1, FINISHED)[:-1]])
def test_a_value_that_is_no_event_is_refused(value: bytes) -> None:
    with pytest.raises(MetadataError):
        decode_remote(value, 0)


def test_an_event_in_a_state_that_there_is_not() -> None:
    with pytest.raises(MetadataError, match="a segment in state 9"):
        decode_remote(metadata_value(1, remote_ids(1) + struct.pack(">iq", 1, 0) + b"\x00\x09"), 0)
