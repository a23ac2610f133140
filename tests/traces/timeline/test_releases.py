"""Logs of real clusters of each release: one loss after an unclean election, and nothing else."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from fencepost.traces.timeline.checkers import check_timeline
from fencepost.traces.timeline.event_kind import EventKind
from fencepost.traces.timeline.sources import read_sources
from fencepost.traces.timeline.timeline import Timeline

ARCHIVE = Path(__file__).parent / "releases.tar.gz"
RELEASES = (
    "0.11-zookeeper",
    "1.1-zookeeper",
    "2.4-zookeeper",
    "2.8-zookeeper",
    "3.3-zookeeper",
    "3.6-zookeeper",
    "3.9-zookeeper",
    "3.3-kraft",
    "3.7-kraft",
    "3.9-kraft",
    "4.0-kraft",
    "4.1-kraft",
    "4.2-kraft",
    "4.4-kraft",
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("releases")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "releases"


def test_archive_has_every_release(logs: Path) -> None:
    assert sorted(each.name for each in logs.iterdir()) == sorted(RELEASES)


@pytest.mark.parametrize("release", RELEASES)
def test_release_reports_its_one_loss(logs: Path, release: str) -> None:
    read = read_sources([logs / release])
    assert not read.problems
    report = check_timeline(Timeline.of(read.observations))
    (loss,) = [each for each in report.contradictions if each.verdict == "violated"]
    assert (loss.partition, loss.lost) == ("payments-0", (6, 8))
    # Kafka 1.1 logs no line that names the election at INFO.
    assert (loss.cause is None) is (release == "1.1-zookeeper")


@pytest.mark.parametrize("release", RELEASES)
def test_release_holds_without_the_unclean_election(logs: Path, release: str) -> None:
    """The same files up to the election: a clean failover, and no contradiction."""
    observations = read_sources([logs / release]).observations
    cut = min(
        each.time or 0
        for each in observations
        if each.partition == "payments-0"
        and (each.kind is EventKind.UNCLEAN_ELECTION or (each.kind is EventKind.LEADER_STARTED and each.node == 3))
    )
    before = [each for each in observations if each.time is not None and each.time < cut]
    assert check_timeline(Timeline.of(before)).verdict == "holds"


@pytest.mark.parametrize("release", RELEASES)
def test_release_order_of_files_does_not_matter(logs: Path, release: str) -> None:
    files = sorted(each for each in (logs / release).rglob("*") if each.is_file())
    one = Timeline.of(read_sources(files).observations)
    two = Timeline.of(read_sources([*reversed(files), files[0]]).observations)
    assert [each.observations for each in one.partitions] == [each.observations for each in two.partitions]
