"""Dumps of log segments by real releases, partition folders, and both compared with client histories."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fencepost.traces.bundled.unpacked import unpacked_archive
from fencepost.traces.kafka.capture import bundled_corpus
from fencepost.traces.timeline.checkers import TimelineReport, check_timeline
from fencepost.traces.timeline.event_kind import EventKind
from fencepost.traces.timeline.observation import Observation
from fencepost.traces.timeline.sources import read_sources
from fencepost.traces.timeline.timeline import Timeline

K = EventKind
DUMPS = unpacked_archive(Path(__file__).with_name("dumps.tar.gz"))
CORPUS = bundled_corpus()
RECORDS = sorted(DUMPS.glob("*-records.txt"))
BATCHES = sorted(DUMPS.glob("*-batches.txt"))
HEADER = {"format": "fencepost-client-history", "version": 1, "acks": "all"}


def observed(*paths: Path) -> list[Observation]:
    read = read_sources(paths)
    assert not read.problems, [str(each) for each in read.problems]
    return list(read.observations)


def checked(*paths: Path) -> TimelineReport:
    return check_timeline(Timeline.of(observed(*paths)))


def content(seen: list[Observation]) -> Observation:
    (found,) = (each for each in seen if each.kind is K.LOG_CONTENT)
    return found


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_dump_with_records_of_each_release(path: Path) -> None:
    seen = observed(path)
    log = content(seen)
    assert (log.partition, log.node, log.log_start, log.log_end) == ("orders-0", 2, 0, 2)
    assert log.time == 1750036000214
    assert [(each.offset, each.value) for each in seen if each.kind is K.RECORD] == [
        (0, "47754f9b625f0520"),
        (1, "39d5976440b282f6"),
    ]
    if not path.name.startswith(("0.11", "1.1")):
        assert [each.leader_epoch for each in seen if each.kind is K.BATCH] == [0, 1]


@pytest.mark.parametrize("path", BATCHES, ids=lambda path: path.stem)
def test_dump_with_batches_of_each_release(path: Path) -> None:
    seen = observed(path)
    log = content(seen)
    assert (log.partition, log.node, log.log_start, log.log_end, log.leader_epoch) == ("orders-0", 2, 0, 2, 1)
    assert [(each.offset, each.log_end) for each in seen if each.kind is K.BATCH] == [(0, 1), (1, 2)]
    assert not any(each.kind is K.RECORD for each in seen)


def test_dump_of_the_metadata_log_reports_elections() -> None:
    seen = [each for each in observed(DUMPS / "4.4.0-metadata.txt") if each.partition == "orders-0"]
    assert [each.kind for each in seen if each.kind is not K.PARTITION_CHANGED] == [K.PARTITION_CREATED]
    assert (seen[0].leader, seen[0].leader_epoch, seen[0].isr) == (1, 0, frozenset({1, 2, 3}))
    elected = next(each for each in seen if each.kind is K.PARTITION_CHANGED and each.leader is not None)
    assert (elected.leader, elected.leader_epoch, elected.partition_epoch) == (2, 1, 1)


def metadata_dump(tmp_path: Path, *parts: tuple[str, list[tuple[int, str, dict[str, object]]]]) -> list[Observation]:
    """The observations of a-0 in a dump of the metadata log: by file name, offsets and records."""
    lines = []
    for name, records in parts:
        lines.append(f"Dumping broker-1/__cluster_metadata-0/{name}")
        for offset, kind, data in records:
            payload = json.dumps({"type": kind, "version": 0, "data": data})
            lines.append(f"| offset: {offset} CreateTime: 1 keySize: -1 valueSize: 9 payload: {payload}")
    path = tmp_path / "metadata.txt"
    path.write_text("\n".join(lines) + "\n")
    return [each for each in observed(path) if each.partition == "a-0"]


SEGMENT = "00000000000000000000.log"
TOPIC = ("TOPIC_RECORD", {"name": "a", "topicId": "A"})


def created(leader_epoch: int = 0) -> tuple[str, dict[str, object]]:
    data = {"partitionId": 0, "topicId": "A", "isr": [1, 2], "leader": 1}
    return "PARTITION_RECORD", {**data, "leaderEpoch": leader_epoch, "partitionEpoch": leader_epoch}


def led_by(leader: int) -> tuple[str, dict[str, object]]:
    return "PARTITION_CHANGE_RECORD", {"partitionId": 0, "topicId": "A", "leader": leader}


def test_dump_of_snapshot_and_log_replays_each_offset_once(tmp_path: Path) -> None:
    log = (SEGMENT, [(3, *TOPIC), (4, *created()), (5, *led_by(2)), (11, *led_by(1))])
    snapshot = ("00000000000000000010-0000000001.checkpoint", [(0, *TOPIC), (1, *created(leader_epoch=1))])
    for parts in ((snapshot, log), (log, snapshot), (log, log)):
        last = metadata_dump(tmp_path, *parts)[-1]
        assert (last.leader, last.leader_epoch) == (1, 2)


def test_dump_with_an_unread_record_names_no_later_epoch(tmp_path: Path) -> None:
    cut = ("PARTITION_CHANGE_RECORD", {"partitionId": "?", "topicId": "A"})
    seen = metadata_dump(tmp_path, (SEGMENT, [(0, *TOPIC), (1, *created()), (2, *cut), (3, *led_by(2))]))
    assert (seen[-1].leader, seen[-1].leader_epoch) == (2, None)


def test_segments_of_one_log_are_one_log(tmp_path: Path) -> None:
    text = (DUMPS / "4.4.0-records.txt").read_text()
    later = text.replace("00000000000000000000.log", "00000000000000000002.log").replace("starting offset: 0", "")
    for old, new in (("ffset: 0 ", "ffset: 2 "), ("ffset: 1 ", "ffset: 3 "), ("LeaderEpoch: 0", "LeaderEpoch: 1")):
        later = later.replace(old, new)
    path = tmp_path / "dump.txt"
    path.write_text(text + later)
    log = content(observed(path))
    assert (log.log_start, log.log_end) == (0, 4)


def test_value_with_a_line_feed_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_text((DUMPS / "4.4.0-records.txt").read_text().replace("39d5976440b282f6", "39d59\n76440b282f6"))
    assert [each.value for each in observed(path) if each.kind is K.RECORD] == ["47754f9b625f0520", None]


def test_dump_without_its_partition_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_text((DUMPS / "4.4.0-records.txt").read_text().replace("broker-2/orders-0/", ""))
    (problem,) = read_sources([path]).problems
    assert problem.where.endswith("dump.txt, line 1") and "does not name its partition" in problem.what


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_partition_folder_is_read(broker: int) -> None:
    seen = observed(CORPUS / "6-unclean-election" / f"broker-{broker}" / "orders-0")
    log = content(seen)
    assert (log.partition, log.node, log.topic_id) == ("orders-0", broker, "YgdchuJyTeKz7vgvW6rUNg")
    epochs = [(each.leader_epoch, each.offset) for each in seen if each.kind is K.EPOCH_START]
    assert epochs and epochs[0] == (0, 0)


def test_partition_folder_alone_names_no_broker(tmp_path: Path) -> None:
    shutil.copytree(CORPUS / "1-steady" / "broker-1" / "orders-0", tmp_path / "orders-0")
    read = read_sources([tmp_path / "orders-0"])
    assert content(list(read.observations)).node is None
    assert any("does not name its broker" in note for note in read.notes)


def test_damaged_partition_folder_is_a_problem(tmp_path: Path) -> None:
    folder = tmp_path / "broker-1" / "orders-0"
    shutil.copytree(CORPUS / "1-steady" / "broker-1" / "orders-0", folder)
    segment = folder / "00000000000000000000.log"
    segment.write_bytes(segment.read_bytes()[:20] + b"\xff" * 40 + segment.read_bytes()[60:])
    read = read_sources([folder])
    assert read.problems and not any(each.kind is K.LOG_CONTENT for each in read.observations)


# Client histories beside logs.


def history(tmp_path: Path, *operations: dict[str, object]) -> Path:
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (HEADER, *operations)))
    return path


def ok(value: str, offset: int, **more: object) -> dict[str, object]:
    body = {"client": "p", "op": "produce", "partition": "orders-0", "outcome": "ok", "value": value, "offset": offset}
    return body | more


FIRST, SECOND = "47754f9b625f0520", "39d5976440b282f6"
LEADER = {"metadata": DUMPS / "4.4.0-metadata.txt", "log": DUMPS / "4.4.0-records.txt"}


def before(tmp_path: Path) -> tuple[Path, Path]:
    """The leader's log, and a metadata log that ends while it leads."""
    text = LEADER["metadata"].read_text().splitlines(keepends=True)
    path = tmp_path / "metadata.txt"
    kept = [line for line in text if '"leader":3' not in line]
    path.write_text("".join(kept))
    return path, LEADER["log"]


def test_acknowledged_record_behind_the_leaders_log_is_lost(tmp_path: Path) -> None:
    logs = before(tmp_path)
    report = checked(*logs, history(tmp_path, ok(FIRST, 0), ok(SECOND, 1), ok("third", 2, time=1750036000000)))
    (found,) = report.contradictions
    assert (found.check, found.lost) == ("acknowledged_record_missing_in_log", (2, 2))
    assert found.evidence[0].line == 4 and found.evidence[1].file.endswith("4.4.0-records.txt")
    # The log has no later record that shows that it was copied after the acknowledgement.
    assert found.verdict == "unknown" and "copied with its last segment" in found.message


def test_lost_record_is_proven_by_a_later_leader_epoch(tmp_path: Path) -> None:
    logs = before(tmp_path)
    report = checked(*logs, history(tmp_path, ok("third", 2, leader_epoch=0)))
    assert report.verdict == "violated"


def test_record_time_does_not_prove_a_lost_record(tmp_path: Path) -> None:
    """A producer may set any CreateTime, so a log that was copied early may hold a record of a later day."""
    logs = before(tmp_path)
    (found,) = checked(*logs, history(tmp_path, ok("third", 2, time=1750035000000))).contradictions
    assert (found.lost, found.verdict) == ((2, 2), "unknown") and "copied with its last segment" in found.message


def test_leaders_log_with_another_value(tmp_path: Path) -> None:
    logs = before(tmp_path)
    report = checked(*logs, history(tmp_path, ok(FIRST, 0), ok("other", 1)))
    (found,) = report.contradictions
    assert (found.check, found.verdict) == ("acknowledged_record_missing_in_log", "violated")
    # Without a value that agrees, the dump may print another encoding.
    assert checked(*logs, history(tmp_path, ok("other", 1))).verdict == "unknown"


def test_leaders_log_with_all_records_holds(tmp_path: Path) -> None:
    report = checked(*before(tmp_path), history(tmp_path, ok(FIRST, 0), ok(SECOND, 1)))
    assert (report.verdict, report.comparisons["acknowledged_record_missing_in_log"]) == ("holds", 2)


def test_log_of_an_unknown_role_is_not_compared(tmp_path: Path) -> None:
    report = checked(LEADER["log"], history(tmp_path, ok("third", 2, leader_epoch=0)))
    assert (report.verdict, report.contradictions) == ("unknown", ())


def test_dumps_of_one_epoch_agree(tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text(LEADER["log"].read_text().replace("broker-2", "broker-3"))
    assert checked(LEADER["log"], path).verdict == "holds"
    path.write_text(path.read_text().replace(SECOND, "another"))
    report = checked(LEADER["log"], path)
    assert (report.verdict, report.contradictions[0].check) == ("violated", "two_values_at_one_offset")
    # A record of another epoch may be one that a truncation removes.
    path.write_text(path.read_text().replace("LeaderEpoch: 1", "LeaderEpoch: 2"))
    assert "two_values_at_one_offset" not in {each.check for each in checked(LEADER["log"], path).contradictions}


def test_dump_without_batches_says_nothing_of_the_log_end(tmp_path: Path) -> None:
    """It may be the output of ``grep``."""
    path = tmp_path / "dump.txt"
    path.write_text("\n".join(LEADER["log"].read_text().splitlines()[:2]) + "\n")
    assert not any(each.kind is K.LOG_CONTENT for each in read_sources([path]).observations)
