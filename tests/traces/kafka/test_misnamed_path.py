"""Hints for paths that are no data directories."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.kafka.broker import read_broker
from fencepost.traces.kafka.capture import broker_directories, bundled_corpus


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """A folder with the data directories of three brokers."""
    folder = tmp_path / "cluster"
    for broker in broker_directories(bundled_corpus(), "6-unclean-election"):
        shutil.copytree(broker, folder / broker.name)
    return folder


def refusal(path: Path) -> str:
    with pytest.raises(BadInput) as refused:
        read_broker(path)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_parent_folder_names_the_directories_below(parent: Path) -> None:
    three = " ".join(str(parent / f"broker-{number}") for number in (1, 2, 3))
    told = "not a Kafka data directory; name the data directories below it:"
    assert refusal(parent) == f"{parent}: {told} {three}"
    assert refusal(parent.parent) == f"{parent.parent}: {told} {three}"


def test_parent_of_many_directories_names_some(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"node {number}").mkdir()
        (tmp_path / f"node {number}" / "meta.properties").touch()
    told = refusal(tmp_path)
    assert f"'{tmp_path}/node 0'" in told and "node 5" in told and "node 6" not in told and told.endswith(" ...")


def test_partition_folder_names_its_parent(parent: Path) -> None:
    folder = parent / "broker-1" / "payments-0"
    told = f"it is the folder of a partition: name its parent, {parent / 'broker-1'}; fencepost timeline {folder} reads"
    assert told in refusal(folder)


@pytest.mark.parametrize("name", ["meta.properties", "payments-0/00000000000000000000.log"])
def test_file_of_a_directory_names_the_directory(parent: Path, name: str) -> None:
    file = parent / "broker-1" / name
    assert refusal(file) == f"{file}: not a directory; name the folder that it is in: {parent / 'broker-1'}"


@pytest.mark.parametrize(("name", "mode"), [("dump.tar.gz", "w:gz"), ("dump.tgz", "w:gz"), ("dump.tar", "w")])
def test_archive_is_to_be_unpacked(parent: Path, tmp_path: Path, name: str, mode: str) -> None:
    archive = tmp_path / name
    with tarfile.open(archive, mode) as out:  # type: ignore[call-overload]
        out.add(parent, "cluster")
    assert f"not a directory; unpack it first (tar -xf {archive}), and name the brokers'" in refusal(archive)


def test_server_log_is_for_the_timeline(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.touch()
    assert f"fencepost timeline {log} reads what brokers print" in refusal(log)


def test_other_paths_name_what_a_data_directory_holds(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").touch()
    for name in ("empty", "notes.txt"):
        assert refusal(tmp_path / name).endswith("it holds meta.properties and folders such as topic-0")
