"""Data directories of brokers, folders of them, and archives as inputs of a timeline."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from fencepost.traces.kafka.capture import bundled_corpus
from fencepost.traces.timeline.checkers import check_timeline
from fencepost.traces.timeline.event_kind import EventKind
from fencepost.traces.timeline.source import SourceResult
from fencepost.traces.timeline.sources import read_sources
from fencepost.traces.timeline.timeline import Timeline

LOG = (
    "[2026-03-04 10:00:00,101] INFO [Broker id=7] Follower a-0 starts at leader epoch 2 from offset 31 with high"
    " watermark 30. Previous leader epoch was 1. (state.change.logger)\n"
    "[2026-03-04 10:00:01,007] WARN [ReplicaFetcher replicaId=7, leaderId=8, fetcherId=0] Truncating a-0 to offset 29"
    " below high watermark 30 (kafka.server.ReplicaFetcherThread)\n"
)


@pytest.fixture(scope="module")
def cluster() -> Path:
    """Data directories of a real cluster."""
    return bundled_corpus() / "6-unclean-election"


def contents(read: SourceResult) -> set[tuple[str, int | None]]:
    return {(each.partition, each.node) for each in read.observations if each.kind is EventKind.LOG_CONTENT}


def test_data_directory_is_read_by_its_partitions(cluster: Path) -> None:
    read = read_sources([cluster / "broker-2"])
    assert not read.problems
    assert {node for _, node in contents(read)} == {2} and len(contents(read)) > 1
    assert any(f"fencepost check {cluster / 'broker-2'}" in each for each in read.notes)


def test_folder_of_brokers_is_read(cluster: Path) -> None:
    read = read_sources([cluster])
    assert not read.problems
    assert {node for _, node in contents(read)} >= {1, 2, 3}


def test_archive_of_a_data_directory_is_read(cluster: Path, tmp_path: Path) -> None:
    path = tmp_path / "broker-2.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(cluster / "broker-2", arcname=".")
    read = read_sources([path])
    assert not read.problems
    assert contents(read) == contents(read_sources([cluster / "broker-2"]))
    assert all(each.file.startswith(str(path)) for each in read.observations)


@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz", "tgz", "tar.xz"])
def test_archive_of_logs_is_read(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"logs.{ending}"
    if ending == "zip":
        with zipfile.ZipFile(path, "w") as zipped:
            zipped.writestr("broker-7/server.log", LOG)
    else:
        with tarfile.open(path, f"w:{ending.rpartition('.')[2].replace('tgz', 'gz').replace('tar', '')}") as archive:
            member = tarfile.TarInfo("broker-7/server.log")
            member.size = len(LOG)
            archive.addfile(member, io.BytesIO(LOG.encode()))
    read = read_sources([path])
    (found,) = check_timeline(Timeline.of(read.observations)).contradictions
    assert (found.verdict, found.lost) == ("violated", (29, 29))
    assert found.evidence[0].file == f"{path}/broker-7/server.log"


def test_damaged_archive_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr("server.log", LOG)
    path.write_bytes(path.read_bytes()[:-40])
    (problem,) = read_sources([path]).problems
    assert "the archive cannot be unpacked" in str(problem) and str(path) in str(problem)
