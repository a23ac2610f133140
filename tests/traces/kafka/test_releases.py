"""Data directories that fourteen deployments of Apache Kafka wrote: the checks of their files reach the known truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fencepost.conformance.check.files import read_cluster
from fencepost.traces.kafka.checks import FilesReport
from fencepost.traces.kafka.releases.archive import STAGES, read_archive, write_archive
from fencepost.traces.kafka.releases.release import releases

ARCHIVES = Path(__file__).parent / "releases"
EXPECTED: dict[str, dict[str, Any]] = {
    row["release"]: row for row in json.loads((ARCHIVES / "expected.json").read_text(encoding="utf-8"))
}
OLD_FORMATS = ("0.11-zookeeper-formats", "2.8-zookeeper-formats", "2.8-kraft-preview")
UNCLEAN = "3-unclean-election"


def check(directories: list[Path]) -> FilesReport:
    return read_cluster("release", directories).report


def details(report: FilesReport) -> str:
    return " ".join(str(result) for result in report.checks)


def test_archives_are_of_the_releases_in_the_table() -> None:
    assert [(each.name, each.version) for each in releases()] == [
        (name, row["version"]) for name, row in EXPECTED.items()
    ]


@pytest.mark.parametrize("release", EXPECTED)
def test_release_stages_get_the_expected_verdict(release: str, tmp_path: Path) -> None:
    stages = read_archive(ARCHIVES / f"{release}.tar.gz", tmp_path)
    found = {stage: check(directories) for stage, directories in stages.items()}
    assert {stage: report.verdict for stage, report in found.items()} == EXPECTED[release]["verdicts"]
    assert not any(report.bad_input for report in found.values())


@pytest.mark.parametrize("release", EXPECTED)
def test_release_loss_names_the_lost_offsets(release: str, tmp_path: Path) -> None:
    directories = read_archive(ARCHIVES / f"{release}.tar.gz", tmp_path)[UNCLEAN]
    text = details(check(directories))
    lost = EXPECTED[release]["lost"]
    assert f"committed and lost: offsets {lost[0]} to {lost[-1]}" in text
    assert "broker 2 truncates to 6 and loses 3 records" in text


@pytest.mark.parametrize("release", EXPECTED)
def test_release_loss_is_not_claimed_without_the_old_leader(release: str, tmp_path: Path) -> None:
    """Only broker 2 has the lost records. KRaft's metadata log still shows the election, ZooKeeper leaves no trace."""
    directories = read_archive(ARCHIVES / f"{release}.tar.gz", tmp_path)[UNCLEAN]
    report = check([each for each in directories if each.name != "broker-2"])
    assert report.verdict == ("unknown" if release.endswith("-kraft") else "holds")
    assert "committed and lost" not in details(report)


@pytest.mark.parametrize("name", OLD_FORMATS)
def test_old_message_formats_leave_the_rest_its_verdict(name: str, tmp_path: Path) -> None:
    """Topics in message formats 0 and 1 are unread, one line a file; the topic in format 2 is checked."""
    for stage, directories in read_archive(ARCHIVES / f"{name}.tar.gz", tmp_path).items():
        report = check(directories)
        assert report.verdict == "unknown"
        rest = [each for each in report.checks if "format-2-0" in each.subject]
        assert len(rest) > 5 and {each.verdict for each in rest if not each.informative} == {"holds"}, stage
        lines = [str(problem) for problem in report.problems if "message format" in str(problem)]
        brokers = sum(each.name.startswith("broker") for each in directories)
        for number in (0, 1):
            of = [line for line in lines if f"/format-{number}-0/" in line]
            assert len(of) == brokers == 3 and all(f"in message format {number} " in line for line in of)


def test_preview_of_kraft_is_named_once_a_directory(tmp_path: Path) -> None:
    for directories in read_archive(ARCHIVES / "2.8-kraft-preview.tar.gz", tmp_path).values():
        lines = [str(problem) for problem in check(directories).problems if "KRaft preview" in str(problem)]
        assert len(lines) == len(directories) == 4 and all("@metadata-0" in line for line in lines)


def test_archive_of_the_same_files_has_the_same_bytes(tmp_path: Path) -> None:
    bundled = ARCHIVES / "3.9-kraft.tar.gz"
    stages = read_archive(bundled, tmp_path / "home")
    assert tuple(stages) == STAGES
    again = write_archive(tmp_path / "home", tmp_path / "again.tar.gz")
    assert again.read_bytes() == bundled.read_bytes()
