"""The support matrix: the table of releases as Markdown, for ``docs/reference/releases.md``.

python -m fencepost.traces.kafka.releases.support
"""

from __future__ import annotations

from .release import Release, releases

_COORDINATORS = {"zookeeper": "ZooKeeper", "kraft": "KRaft"}


def support_table() -> str:
    """One row for each release: what ``check``, ``record`` and ``ingest --kafka-log`` do with it."""
    lines = [
        "| Kafka | coordinator | release run | `check` | `record` | `ingest --kafka-log` |",
        "|---|---|---|---|---|---|",
    ]
    lines += ["| " + " | ".join(_cells(release)) + " |" for release in releases()]
    return "\n".join(lines) + "\n"


def _cells(release: Release) -> tuple[str, ...]:
    return (
        release.name.partition("-")[0],
        _COORDINATORS[release.coordinator],
        release.version,
        "yes",
        "without " + "; without ".join(release.record_lacks) if release.record_lacks else "complete",
        "up to an unclean election" if release.ingest else "no",
    )


if __name__ == "__main__":
    print(support_table(), end="")
