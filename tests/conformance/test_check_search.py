"""The search behind ``fencepost check`` on files of real releases: losses are ruled out, everything else is reached."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from fencepost.conformance.check.files import read_cluster
from fencepost.conformance.check.search import Searches, SearchLimits, search_tasks
from fencepost.conformance.check.task import carry_out
from fencepost.model.core.registry import REGISTRY
from fencepost.traces.report.obligation import Obligation

RELEASES = Path(__file__).parents[1] / "traces" / "kafka" / "releases"
STAGES = ["1-healthy", "2-clean-failover", "3-unclean-election", "4-all-back"]


@pytest.fixture(scope="module", params=["0.11-zookeeper", "2.4-zookeeper", "4.4-kraft"])
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    with tarfile.open(RELEASES / f"{request.param}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def searched(stage: Path) -> dict[str, Obligation]:
    """The searches of a stage by partition, those that an unclean election explains among them."""
    cluster = read_cluster("", sorted(path for path in stage.iterdir() if (path / "meta.properties").is_file()))
    searches = Searches(REGISTRY.of_brokers_logs, limits=SearchLimits(max_seconds=10_000))
    tasks = search_tasks(cluster, "search", searches)
    return {each.name: each for each in carry_out(tasks, lambda _task: lambda _at: None)}


@pytest.mark.parametrize("stage", STAGES)
def test_search_rules_out_a_loss_and_reaches_the_rest(release: Path, stage: str) -> None:
    found = searched(release / stage)
    lost = found.pop("payments-0: reachable", None) if stage == "3-unclean-election" else None
    assert found and {each.verdict for each in found.values()} == {"holds"}
    if stage == "3-unclean-election":
        assert lost is not None and lost.verdict == "violated"
        assert lost.detail.startswith("no run of kip-320 ends in these logs, by its proved invariants; a run of ")
        assert "controller_elect_uncleanly(new_leader=" in lost.detail
        assert lost.story is not None and lost.count < 1_000_000
