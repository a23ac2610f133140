"""What is in a remote store, and the checks that hold it against the remote log metadata: Kafka's own, and planted."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import UUID

import fsspec
import pytest
from fencepost.impl.log.epochs import EpochEntry as OwnEntry
from fencepost.impl.tiering import RemoteStore as OwnStore
from fencepost.impl.tiering import segments as own
from fencepost.model.core.errors import BadInput
from fencepost.traces.kafka.capture import bundled_corpus, load_manifest
from fencepost.traces.kafka.remote_metadata import RemoteEvent, RemoteSegment, SegmentState
from fencepost.traces.kafka.remote_store import EPOCHS, LOG, read_store
from fencepost.traces.kafka.remote_store_checks import EPOCHS_STORED, LEFT_OVER, STORED, check_store
from fencepost.traces.kafka.statefiles import EpochEntry

from .damaged import report, results, stage, violated

STAGES = [each["name"] for each in load_manifest(bundled_corpus("tiered"))["stages"]]


@pytest.mark.parametrize("name", STAGES)
def test_what_kafka_stored_is_what_its_metadata_say(name: str) -> None:
    home = bundled_corpus("tiered") / name
    found = report(home, store=read_store(str(home / "remote")))
    assert found.verdict == "holds"
    (stored,), (epochs,) = results(found, STORED), results(found, EPOCHS_STORED)
    count = len(list((home / "remote").rglob("*.log")))
    assert stored.message == epochs.message == f"{count} remote segments" and count > 4
    assert results(found, LEFT_OVER) == [], "what DeleteRecords let go is gone"


def test_without_a_store_nothing_is_said_of_it() -> None:
    found = report(bundled_corpus("tiered") / STAGES[0])
    assert {each.check for each in found.checks} & {STORED, EPOCHS_STORED, LEFT_OVER} == set()


class TestPlanted:
    """Each fault is planted in the fourth stage's store; nothing in the directories tells of it."""

    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        return stage(tmp_path, "tiered", "4-empty-follower")

    def object(self, home: Path, start: int, part: str = "log") -> Path:
        (found,) = (home / "remote").rglob(f"{start:020d}-*.{part}")
        return found

    def told(self, home: Path, check: str) -> tuple[str, str]:
        found = report(home, store=read_store(str(home / "remote")))
        assert violated(found) == {check} and violated(report(home)) == set()
        (result,) = results(found, check)
        assert result.subject == "archive-0"
        return result.message, result.where

    def test_a_segment_that_is_gone(self, home: Path) -> None:
        self.object(home, 80).unlink()
        assert self.told(home, STORED) == (
            "the remote segment of offsets 80 to 99, of broker 1, is not in the store",
            str(home / "remote"),
        )

    def test_segments_that_are_all_gone(self, home: Path) -> None:
        shutil.rmtree(home / "remote")
        (home / "remote").mkdir()
        message, _ = self.told(home, STORED)
        assert message.startswith("the remote segment of offsets 40 to 59") and message.endswith("(and 8 more)")

    def test_a_segment_of_another_size(self, home: Path) -> None:
        path = self.object(home, 100)
        path.write_bytes(path.read_bytes()[:-1])
        message, where = self.told(home, STORED)
        assert "offsets 100 to 119, of broker 1, has a log of 1261 bytes in the store, not 1262" in message
        assert where == str(path)

    def test_a_segment_under_another_offset(self, home: Path) -> None:
        path = self.object(home, 100)
        path.rename(path.with_name(path.name.replace("0100-", "0101-")))
        message, _ = self.told(home, STORED)
        assert message == "the remote segment of offsets 100 to 119, of broker 1, is stored as one from offset 101 on"

    def test_a_segment_of_another_topic_of_that_name(self, home: Path) -> None:
        (folder,) = (home / "remote" / "kafka-tiered-storage").iterdir()
        folder.rename(folder.with_name("archive-0-AAAAAAAAAAAAAAAAAAAAAA"))
        assert "offsets 40 to 59" in self.told(home, STORED)[0]

    def test_epochs_that_a_follower_would_build_wrong(self, home: Path) -> None:
        """The segment with records of both epochs."""
        path = self.object(home, 140, "leader_epoch_checkpoint")
        text = path.read_text()
        assert "1 150" in text
        path.write_text(text.replace("1 150", "1 155"))
        message, where = self.told(home, EPOCHS_STORED)
        assert (
            "is stored with the leader epochs 0 from 140, 1 from 155, and its metadata say 0 from 140, 1 from 150"
            in (message)
        )
        assert where == str(path)

    @pytest.mark.parametrize("text", ["", "0\n2\n0 0\n", "1\n1\n0 0\n", "0\n1\n0\n", "0\n1\n\x00 0\n"])
    def test_epochs_that_cannot_be_read(self, home: Path, text: str) -> None:
        self.object(home, 140, "leader_epoch_checkpoint").write_text(text)
        assert "cannot be read" in self.told(home, EPOCHS_STORED)[0]

    def test_what_no_segment_has_is_told_and_breaks_nothing(self, home: Path) -> None:
        path = self.object(home, 100)
        path.with_name(path.name.replace("0100-", "0999-").replace(path.name[21:43], "A" * 22)).write_bytes(b"left")
        path.with_name("notes.txt").write_bytes(b"nobody's")
        found = report(home, store=read_store(str(home / "remote")))
        (result,) = results(found, LEFT_OVER)
        assert found.verdict == "holds" and result.informative
        assert result.message == "1 segment in the store that the metadata do not have, or have deleted"

    def test_where_the_metadata_are_not_complete_nothing_holds(self, home: Path) -> None:
        for broker in ("broker-1", "broker-2", "broker-3"):
            shutil.rmtree(home / broker / "__remote_log_metadata-1")
        found = report(home, store=read_store(str(home / "remote")))
        assert {each.verdict for each in (*results(found, STORED), *results(found, EPOCHS_STORED))} == {"unknown"}


# -- the other layout --------------------------------------------------------------------------------------------------

TOPIC, COPY = UUID(int=7), UUID(int=0x1234)


def segment(state: SegmentState = SegmentState.COPY_SEGMENT_FINISHED, *objects: tuple[str, int]) -> RemoteSegment:
    copy = RemoteEvent(0, "t-a", TOPIC, 3, COPY, 1, state, True, 5, 9, (EpochEntry(2, 5), EpochEntry(4, 8)), size=6)
    return RemoteSegment(copy, state, True, objects)


def stored(store: OwnStore) -> None:
    """The objects of one segment, as the implementation names them."""
    named = own.RemoteSegment("t-a", TOPIC, 3, COPY, 5, 9, 1, 0, 0, (OwnEntry(2, 5), OwnEntry(4, 8)), 6)
    for part, data in ((own.LOG, b"record"), (own.INDEX, b""), (own.EPOCHS, b"0\n3\n1 0\n2 4\n4 8\n")):
        store.put(named.object_name(part), [data])


def test_the_implementations_own_store(tmp_path: Path) -> None:
    stored(OwnStore.at(tmp_path))
    found = read_store(str(tmp_path))
    (only,) = found.segments.values()
    assert (only.topic, only.partition, only.topic_id, only.start) == ("t-a", 3, TOPIC, 5)
    assert {part: each.size for part, each in only.parts.items()} == {LOG: 6, "index": 0, EPOCHS: 16}
    assert found.epochs(COPY) == (EpochEntry(1, 0), EpochEntry(2, 4), EpochEntry(4, 8))
    parts = (("log", 6), ("index", 0), ("leader-epoch-checkpoint", 16))
    told = check_store(("t-a", 3), TOPIC, [segment(SegmentState.COPY_SEGMENT_FINISHED, *parts)], (), found, "")
    assert [(each.check, each.verdict) for each in told] == [(STORED, "holds"), (EPOCHS_STORED, "holds")]
    lacks = check_store(
        ("t-a", 3), TOPIC, [segment(SegmentState.COPY_SEGMENT_FINISHED, *parts, ("snapshot", 4))], (), found, ""
    )
    assert lacks[0].verdict == "violated" and "lacks its snapshot in the store" in lacks[0].message


def test_what_is_not_finished_or_not_committed_is_not_asked_for(tmp_path: Path) -> None:
    empty = read_store(str(tmp_path))
    for state in (SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED):
        assert {each.verdict for each in check_store(("t-a", 3), TOPIC, [segment(state)], (), empty, "")} == {"holds"}
    assert {each.verdict for each in check_store(("t-a", 3), TOPIC, [segment()], {COPY}, empty, "")} == {"holds"}
    assert check_store(("t-a", 3), TOPIC, [segment()], (), empty, "")[0].verdict == "violated"


def test_a_store_by_its_url() -> None:
    """fsspec's own file system in memory, by the way that every URL goes."""
    files = fsspec.filesystem("memory")
    files.pipe_file(f"/bucket/tiered/t-a-3-{TOPIC}/{5:020d}-{COPY}.log", b"record")
    found = read_store("memory://bucket/tiered")
    assert found.segments[COPY].parts[LOG].size == 6
    files.rm("/bucket", recursive=True)


@pytest.mark.parametrize("url", ["/nowhere/at/all", "nosuch://bucket", "memory://empty"])
def test_a_store_that_is_not_there_is_bad_input(url: str) -> None:
    with pytest.raises(BadInput, match="--remote"):
        read_store(url)
