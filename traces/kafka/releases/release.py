"""The table of releases that Fencepost runs: ``table.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources

from ....model.core.errors import BadInput
from ..deployment import Deployment, KRaft, ZooKeeper
from ..maven import is_older


@dataclass(frozen=True)
class Release:
    """One row: a release with a coordinator, ``zookeeper`` or ``kraft``, and what Fencepost supports of it.

    ``record_lacks``: observations that ``fencepost record`` cannot make. ``ingest``: whether ``fencepost ingest`` reads
    its logs from the partition's creation on. The nightly test of releases checks both. ``supported``: whether it is in
    the matrix; the preview of KRaft is run for its data directories alone.
    """

    name: str
    version: str
    coordinator: str
    record_lacks: tuple[str, ...]
    ingest: bool
    supported: bool = True

    @property
    def deployment(self) -> Deployment:
        """How its cluster is formed; dynamic quorums since 4.0."""
        return ZooKeeper() if self.coordinator == "zookeeper" else KRaft(dynamic=not self.is_older("4.0.0"))

    @property
    def client(self) -> str:
        """The release of Kafka's client that talks to it: that of 3.9 for the brokers that 4.0's does not serve."""
        return "3.9.2" if self.is_older("4.0.0") else self.version

    @property
    def elects_on_request(self) -> bool:
        """Whether an administrator can request an unclean election (KIP-460), rather than only allow it."""
        return not self.is_older("2.4.0")

    def is_older(self, version: str) -> bool:
        """Whether it comes before `version`."""
        return is_older(self.version, version)


def releases() -> tuple[Release, ...]:
    """The supported rows of the table, in order."""
    return tuple(release for release in _rows() if release.supported)


def _rows() -> tuple[Release, ...]:
    text = (resources.files(__package__) / "table.json").read_text(encoding="utf-8")
    return tuple(Release(**{**row, "record_lacks": tuple(row["record_lacks"])}) for row in json.loads(text))


def release_named(name: str) -> Release:
    """The row with this name. Raises BadInput if there is none."""
    found = {release.name: release for release in _rows()}
    if name not in found:
        raise BadInput(f"{name!r} is not in the table of releases", "--release", f"name one of {', '.join(found)}")
    return found[name]
