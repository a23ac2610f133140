"""``fencepost spec``: the files of a variant's TLA+ module, and the configuration that TLC checks it with."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Fencepost

TINY = ("--replicas", 2, "--log-size", 1, "--max-records", 1, "--max-leader-epoch", 1)
CFG = """\
\\* kip-320: Kafka 2.1: fetch and truncation fenced by epoch
\\* Run TLC with -deadlock: a run may end.
SPECIFICATION Spec
CONSTANTS
    Replicas = {0, 1}
    LogSize = 1
    MaxRecords = 1
    MaxLeaderEpoch = 1
    Truncation = "first-mismatch"
    Fenced = TRUE
    Validated = FALSE
    AfterRestart = "none"
INVARIANTS
    TypeOk
    WeakIsr
    StrongIsr
    LeaderInIsr
"""


def test_spec_prints_the_configuration_of_tlc(fencepost: Fencepost) -> None:
    said = fencepost("spec", "fencing", "--variant", "kip-320", *TINY, "--cfg")
    assert (said.code, said.out) == (0, CFG)


def test_spec_has_the_constants_of_check_by_default(fencepost: Fencepost) -> None:
    said = fencepost("spec", "fencing", "--replicas", 2, "--json").json
    sizes = {"Replicas": "{0, 1}", "LogSize": "2", "MaxRecords": "2", "MaxLeaderEpoch": "2"}
    assert {name: said["constants"][name] for name in sizes} == sizes
    said = fencepost("spec", "fencing", "--variant", "kip-497", "--json").json
    assert (said["constants"]["LogSize"], said["constants"]["MaxLeaderEpoch"]) == ("1", "1")


def test_spec_with_a_fairness_checks_liveness(fencepost: Fencepost) -> None:
    said = fencepost("spec", "fencing", "--fairness", "fair-fetches", "--json").json
    assert (said["specification"], said["invariants"]) == ("FairFetchSpec", [])
    assert said["properties"] == ["FinalLeaderAdoptsEpoch", "FinalLeaderCommitsRecord"]


def test_spec_finds_variants_of_running_systems(fencepost: Fencepost) -> None:
    said = fencepost("spec", "snapshots", "--variant", "kip-630-kafka", "--json").json
    assert said["module"] == "KafkaQuorum" and "LateResponses" not in said["constants"]
    assert [Path(file).name for file in said["files"]] == ["KafkaQuorum.tla", "QuorumNodes.tla"]


def test_spec_prints_the_files_of_the_module(fencepost: Fencepost) -> None:
    said = fencepost("spec", "truncation", "--variant", "kip-320-client")
    assert said.code == 0
    assert [Path(line).name for line in said.out.splitlines()] == ["Kip320Client.tla", "ClientPartition.tla"]
    assert all(Path(line).is_file() for line in said.out.splitlines())


def test_spec_writes_a_folder_for_tlc(fencepost: Fencepost, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "tlc"
    said = fencepost("spec", "snapshots", "--variant", "kip-630-quorum", "--out", folder)
    names = ["Kip630Quorum.tla", "QuorumNodes.tla", "Kip630Quorum.cfg"]
    assert said.code == 0 and said.out.splitlines() == [str(folder / name) for name in names]
    assert sorted(each.name for each in folder.iterdir()) == sorted(names)
    printed = fencepost("spec", "snapshots", "--variant", "kip-630-quorum", "--cfg").out
    assert (folder / "Kip630Quorum.cfg").read_text() == printed
    assert "MODULE QuorumNodes" in (folder / "QuorumNodes.tla").read_text()


BAD = [
    (("fencing", "--variant", "kip-0"), "--variant: fencing has no variant 'kip-0'; choose one of "),
    (("fencing", "--invariant", "no_gap"), "--invariant: fencing (kip-320) has no invariant 'no_gap'; choose one of "),
    (("fencing", "--fairness", "none"), "has no specification with the fairness 'none'; choose one of kip, "),
    (("compaction", "--fairness", "kip"), "--fairness: Compaction has no specification with the fairness 'kip'"),
    (("fencing", "--fairness", "kip", "--invariant", "weak_isr"), "--invariant: TLC checks liveness alone"),
    (("fencing", "--replicas", 0), "--replicas: replicas is 0"),
    (("fencing", "--records", 3), "--records"),
    (("fencing", "--cfg", "--json"), "--cfg: --json prints the configuration too"),
    (("paxos",), "PROTOCOL"),
]


@pytest.mark.parametrize(("options", "told"), BAD, ids=[" ".join(map(str, options)) for options, _ in BAD])
def test_spec_rejects_bad_options(
    fencepost: Fencepost, options: tuple[object, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in fencepost("spec", *options, "--out", "new").complaint
    assert list(tmp_path.iterdir()) == []


def test_spec_rejects_a_protocol_without_a_module(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fencepost("new", "toy").code == 0
    told = fencepost("spec", "toy/toy.py:toy", "--variant", "hasty", "--cfg").complaint
    assert told == "PROTOCOL: toy (hasty) has no TLA+ module; choose another protocol"
