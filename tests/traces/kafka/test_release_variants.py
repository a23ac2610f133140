"""The search in clusters that may run the truncation of a release before KIP-320."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fencepost.conformance.check.files import read_cluster
from fencepost.conformance.check.release_variants import earlier_variants, lossy_variants
from fencepost.conformance.check.search import Searches
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore import Verdict
from fencepost.model.protocols.fencing.lossy import lossy

from .clusters import Controller, records, write_cluster
from .encoder import CLUSTER

if TYPE_CHECKING:
    from pathlib import Path

FENCING = REGISTRY.of_brokers_logs

KEPT_BY_KIP_101 = {1: records((0, 2), (2, 1), hw=1), 2: records((0, 1), (1, 1), (2, 1), hw=1)}
"""Broker 2 led epoch 1 between two terms of broker 1, and asked for an epoch that broker 1 never had (KAFKA-6361)."""


def test_files_show_whether_the_release_may_be_before_kip_320(tmp_path: Path) -> None:
    logs = {1: records((0, 2)), 2: records((0, 2))}
    old = write_cluster(tmp_path / "old", logs, cluster_id=None)
    assert earlier_variants(read_cluster("", old), FENCING) == FENCING.earlier
    with_id = write_cluster(tmp_path / "2.4", logs)
    assert earlier_variants(read_cluster("", with_id), FENCING) == ()
    kraft = write_cluster(tmp_path / "kraft", {1: records((0, 2)), 2: records((0, 2))}, Controller(1, 2).topic(1, 2))
    assert earlier_variants(read_cluster("", kraft), FENCING) == ()


def test_causes_of_older_releases_are_for_older_releases() -> None:
    assert list(lossy_variants(lossy, FENCING, ())) == ["kip-320-unclean", "kip-320-lossy"]
    assert list(lossy_variants(lossy, FENCING, FENCING.earlier))[2:] == ["kip-279-unclean", "kip-101-unclean"]


@pytest.mark.parametrize(
    ("cluster_id", "verdict", "words"),
    [
        (None, Verdict.UNKNOWN, " of kip-101, and by no run of kip-320"),
        (CLUSTER, Verdict.VIOLATED, "no run of kip-320 ends in these logs"),
    ],
    ids=["0.11 to 2.0", "2.4 or later"],
)
def test_search_runs_the_variants_of_the_release(
    tmp_path: Path, cluster_id: str | None, verdict: Verdict, words: str
) -> None:
    cluster = read_cluster("", write_cluster(tmp_path, KEPT_BY_KIP_101, cluster_id=cluster_id))
    found = Searches(FENCING).reached(cluster, ("t", 0))
    assert (found.verdict, words in found.detail) == (verdict, True), found.detail
