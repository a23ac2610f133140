"""The defects that are planted in Apache Kafka's classes, by driver: which free runs find, and which longer ones do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from fencepost.conformance import kafka
from fencepost.conformance.kafka.process import BROKERS, CLEANERS, CONSUMER, CONTROLLERS, QUORUM, TIERED

FOLDER = Path(kafka.__file__).parent / "driver"
SOURCES = {
    BROKERS: "Defect.java",
    CONSUMER: "Planted.java",
    QUORUM: "QuorumDefect.java",
    CONTROLLERS: "ControllerDefect.java",
    CLEANERS: "CleanerDefect.java",
    TIERED: "TieringDefect.java",
}
"""By driver, the file that plants them."""
FOUND: Mapping[str, tuple[str, ...]] = {
    BROKERS: (
        *("KEEPS_DIVERGENCE", "NAMES_NO_EPOCH", "COMMITS_ALL", "ACKS_ONE", "ALTERS_ALONE"),
        *("FENCES_NOBODY", "JOINS_EARLY", "COUNTS_DIVERGENCE", "COMMITS_BEFORE_CUTTING", "FORGETS_LAST_EPOCH"),
    ),
    CONSUMER: (
        *("NEVER_VALIDATES", "TAKES_ANY_VALIDATION", "OVERLOOKS_TRUNCATION", "FORGETS_EPOCH", "TRUSTS_SEEKS"),
        *("GOES_BACK", "COMMITS_NO_EPOCH"),
    ),
    QUORUM: (
        *("FORGETS_VOTE", "TAKES_ANY_ANSWER", "KEEPS_LOG", "DELETES_LAST", "CUTS_TOO_LITTLE", "COMMITS_ALL"),
        *("NEVER_SYNCS", "NAMES_NO_EPOCH"),
    ),
    CONTROLLERS: (
        *("HEARS_FORMER_PROCESSES", "UNFENCES_EARLY", "TAKES_ANY_MEMBER", "TAKES_OLD_VERSIONS", "ANSWERS_PENDING"),
        *("FENCES_EARLY", "FENCES_NOBODY", "REGISTERS_TWO", "STOPS_EARLY"),
    ),
    CLEANERS: (
        *("KEEPS_FIRST", "TAKES_KEYS_FOR_ONE", "MAPS_PART", "EXPIRES_EARLY", "EXPIRES_NEVER", "CLEANS_UNCOMMITTED"),
        *("CLEANS_YOUNG", "CHECKPOINTS_ALL", "CHECKPOINTS_BEFORE", "CHECKPOINTS_NOTHING"),
    ),
    TIERED: ("UPLOADS_UNCOMMITTED", "LOSES_FIRST_EPOCH", "NEVER_CANCELS", "COUNTS_UNCOPIED", "JUMPS_WITH_DATA"),
}
"""The tests demand each of these of thirty or forty runs."""
LATER: Mapping[str, tuple[str, ...]] = {
    BROKERS: ("CUTS_BY_OFFSET",),
    CONSUMER: (),
    QUORUM: ("VALIDATES_NOTHING", "MIXES_SNAPSHOTS"),
    CONTROLLERS: (),
    CLEANERS: (),
    TIERED: (),
}
"""Those that take longer runs, or more of something: each is demanded by a plan of its own."""


def planted(drives: str) -> dict[str, str]:
    """By name, what a driver's defects change, as its source says."""
    text = (FOLDER / SOURCES[drives]).read_text(encoding="utf-8")
    body = text[text.index("    NONE,") : text.index(";\n", text.index("    NONE,"))]
    return {name: said for said, name in re.findall(r"/\*\* (.*?) \*/\s+([A-Z_]+)", body, re.S)}
