"""docs/releases.md has the support matrix of the table of releases, and the requests that the recorder sends."""

from __future__ import annotations

from pathlib import Path

from fencepost.traces.kafka.negotiation import EPOCH_ENDS, FETCH, LATEST, METADATA, QUORUM
from fencepost.traces.kafka.releases.release import releases
from fencepost.traces.kafka.releases.support import support_table

TEXT = (Path(__file__).parents[2] / "docs" / "releases.md").read_text(encoding="utf-8")


def test_page_has_the_support_matrix() -> None:
    assert support_table() in TEXT
    assert support_table().count("\n") == len(releases()) + 2 == 16


def test_page_has_every_request_of_the_recorder() -> None:
    for api in (METADATA, EPOCH_ENDS, LATEST, FETCH, QUORUM):
        assert f"| {api.name} | {api.versions[0]} to {api.versions[-1]} | {api.since} |" in TEXT
    for api in (EPOCH_ENDS, LATEST, FETCH):
        assert f" | {api.observation} |" in TEXT


def test_missing_observations_of_the_table_have_names() -> None:
    known = {api.observation for api in (EPOCH_ENDS, LATEST, FETCH)}
    assert {each for release in releases() for each in release.record_lacks} <= known
