"""Damaged files of recorded clusters: their loss is unknown, and no damage looks like a broken invariant."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from fencepost.conformance.check.files import read_cluster
from fencepost.conformance.check.judge import file_answer
from fencepost.traces.report.answer import Answer

from .damaged import stage

SEED = 20261201
FLIPS = 60
NODE = "broker-2"
TOPIC = "mixed-compression-0"
LOG = "__cluster_metadata-0"
SNAPSHOT = f"{LOG}/00000000000000000061-0000000001.checkpoint"
READABLE = {
    "epoch_cache_matches_batches",
    "cached_epochs_had_leaders",
    "leader_epoch_in_cache",
    "log_start_hw_leo_ordered",
    "one_quorum_leader_per_epoch",
}
"""Checks that a flipped digit breaks rightly: the file is whole, and contradicts another file."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy cluster: three brokers and a controller."""
    return stage(tmp_path_factory.mktemp("damaged"), "failover", "4-old-leader-back")


def checked(cluster: Path) -> Answer:
    return file_answer(read_cluster("", sorted(cluster.iterdir())))


def replaced(old: str, new: str) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        assert old.encode() in data
        return data.replace(old.encode(), new.encode())

    return change


def flipped(byte: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:byte] + bytes([data[byte] ^ 1]) + data[byte + 1 :]


def half(data: bytes) -> bytes:
    return data[: len(data) // 2 + 1]


def other_leader(data: bytes) -> bytes:
    told = json.loads(data)
    return json.dumps(told | {"leaderId": told["leaderId"] + 1}).encode()


DAMAGE: list[tuple[str, Callable[[bytes], bytes], str]] = [
    (f"{TOPIC}/partition.metadata", half, "unknown"),
    (f"{TOPIC}/partition.metadata", replaced("version: 0", "version: 8"), "unknown"),
    (f"{TOPIC}/partition.metadata", flipped(25), "unknown"),
    (f"{LOG}/partition.metadata", replaced("AAAAQ", "AAIAQ"), "unknown"),
    ("meta.properties", half, "unknown"),
    ("meta.properties", replaced("cluster.id", "clustes.id"), "unknown"),
    ("meta.properties", replaced("version=1", "version=0"), "unknown"),
    ("meta.properties", replaced("node.id=2", "node.id=6"), "unknown"),
    (SNAPSHOT, half, "unknown"),
    (SNAPSHOT, flipped(1000), "unknown"),
    (SNAPSHOT, lambda _: b"", "unknown"),
    (f"{TOPIC}/leader-epoch-checkpoint", half, "unknown"),
    (f"{TOPIC}/leader-epoch-checkpoint", lambda _: b"", "unknown"),
    ("log-start-offset-checkpoint", half, "unknown"),
    ("log-start-offset-checkpoint", lambda _: b"", "unknown"),
    (f"{LOG}/quorum-state", half, "unknown"),
    (f"{LOG}/quorum-state", other_leader, "violated"),
]


def test_recorded_cluster_holds(cluster: Path) -> None:
    assert checked(cluster).verdict == "holds"


@pytest.mark.parametrize(("name", "damage", "verdict"), DAMAGE, ids=lambda each: each if isinstance(each, str) else "")
def test_damage_has_its_verdict(cluster: Path, name: str, damage: Callable[[bytes], bytes], verdict: str) -> None:
    path = cluster / NODE / name
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    try:
        found = checked(cluster)
    finally:
        path.write_bytes(whole)
    assert found.verdict == verdict
    told = " ".join(" ".join((each.subject, each.text, *each.details)) for each in found.findings)
    told += " ".join(found.skipped)
    assert Path(name).name in told


def test_flipped_bit_is_never_a_broken_invariant(cluster: Path) -> None:
    rng = random.Random(SEED)
    files = sorted(path for path in cluster.rglob("*") if path.is_file() and path.stat().st_size)
    for _ in range(FLIPS):
        path = rng.choice(files)
        whole = path.read_bytes()
        bit = rng.randrange(len(whole) * 8)
        path.write_bytes(whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :])
        read = read_cluster("", sorted(cluster.iterdir()))
        path.write_bytes(whole)
        report = read.report
        wrong = {each.check for each in report.checks if each.verdict == "violated" and not each.informative}
        name = f"{path.relative_to(cluster)}, bit {bit} (seed {SEED})"
        if path.suffix == ".log":
            assert report.verdict != "holds", name
        elif path.suffix == ".checkpoint":
            assert report.verdict == "unknown" and path in {each.path for each in report.problems}, name
        else:
            assert wrong <= READABLE, name


TIERED = [
    ("log-start-offset-checkpoint", lambda _: b""),
    ("log-start-offset-checkpoint", lambda data: data[:-4]),
    ("__remote_log_metadata-0/00000000000000000000.log", half),
]


@pytest.mark.parametrize(("name", "damage"), TIERED)
def test_damage_of_tiered_storage_is_unknown(tmp_path: Path, name: str, damage: Callable[[bytes], bytes]) -> None:
    home = stage(tmp_path, "tiered", "4-empty-follower")
    nodes = sorted(each for each in home.iterdir() if (each / "meta.properties").exists())
    assert file_answer(read_cluster("", nodes)).verdict == "holds"
    for node in nodes:
        path = node / name
        if path.exists():
            path.write_bytes(damage(path.read_bytes()))
    assert file_answer(read_cluster("", nodes)).verdict == "unknown"
