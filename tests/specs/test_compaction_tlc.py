"""TLC on ``specs/Compaction.tla``: counts, counterexamples, and the graph itself, edge for edge."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.protocols.compaction import compaction

from .cfgs import cfg_of, whole_cfg
from .graphs import hold_graph, states_without
from .modules import camel, snake
from .tlc import Tlc, thorough

# replicas/log size/keys/timestamps/header values/repeated headers/leader epoch/changes/brokers' strategy/consumers
ELECTIONS = (2, 1, 1, 1, 0, 0, 1, 0, 0, 1)
TIMESTAMPS = (1, 2, 1, 2, 0, 0, 0, 0, 2, 1)
HEADERS = (1, 2, 1, 1, 1, 0, 0, 1, 0, 0)
CHANGES = (2, 1, 1, 1, 0, 0, 0, 2, 0, 1)
REPEATED = (1, 2, 1, 1, 1, 1, 0, 0, 3, 0)
FAILOVER = (2, 2, 1, 1, 0, 0, 1, 0, 0, 0)
CLEANED = (2, 2, 1, 1, 0, 0, 0, 0, 0, 0)
QUICK = (
    ("kip-280-safe", TIMESTAMPS),
    ("kip-280-safe", ELECTIONS),
    ("kip-280", TIMESTAMPS),
    ("empty-batch", TIMESTAMPS),
)
GRAPHS = (
    *QUICK,
    ("kip-280-safe", HEADERS),
    ("kip-280-safe", CHANGES),
    ("kip-280-safe", CLEANED),
    ("kip-280-safe", FAILOVER),
    ("empty-batch", CLEANED),
    ("kip-280-safe", (1, 2, 2, 1, 0, 0, 0, 0, 0, 1)),
    ("kip-280", CHANGES),
    ("kip-280", HEADERS),
    ("reads-again", TIMESTAMPS),
    ("removes-last", CLEANED),
    ("first-occurrence", REPEATED),
    ("anomalous-stays", REPEATED),
    ("trusts-header", HEADERS),
    ("ties-to-lower", TIMESTAMPS),
    ("cleans-uncommitted", TIMESTAMPS),
    ("cleans-active", TIMESTAMPS),
)
# The invariant that TLC finds violated first with the variant's configuration, and the length of its run.
BREACHES = {
    "kip-280": ("ConsumerAgrees", 7),
    "uncleaned-tail": ("DeletedStaysDeleted", 8),
    "forgets-deletes": ("ConsumerAgrees", 7),
    "reads-by-offset": ("ConsumerAgrees", 7),
    "ties-to-lower": ("WinnerIsKept", 8),
    "anomalous-stays": ("WinnerIsKept", 7),
    "trusts-header": ("HeaderIsLong", 3),
    "cleans-uncommitted": ("ActiveSegmentIsUncleaned", 4),
    "cleans-active": ("ActiveSegmentIsUncleaned", 4),
    "rolling-change": ("WinnerIsKept", 8),
}
SLOW_BREACHES = {
    "slow-readers": ("DeletedStaysDeleted", 14),
    "late-producers": ("DeletedStaysDeleted", 10),
    "reads-again": ("ConsumerAgrees", 17),
    "changes-uncleaned": ("WinnerIsKept", 11),
    "maps-dirty-part": ("SurvivorIsAlone", 10),
    "first-occurrence": ("WinnerIsKept", 7),
}
"""All but ``removes-last``, of which TLC would look at seven million states."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", [*BREACHES, *(pytest.param(variant, marks=thorough) for variant in SLOW_BREACHES)])
def test_the_cfgs_of_the_twins_break_as_the_explorer_says(tlc: Tlc, variant: str) -> None:
    run = tlc.run("Compaction", whole_cfg(compaction, variant))
    assert (run.violated, len(run.trace)) == (BREACHES | SLOW_BREACHES)[variant]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", ["kip-280-safe", "empty-batch"])
def test_what_is_safe_holds_at_small_constants(tlc: Tlc, variant: str) -> None:
    promises = [camel(name) for name in compaction.invariant_names]
    run = tlc.run("Compaction", cfg_of(compaction, variant, (2, 2, 1, 2, 0, 0, 0, 0, 2, 1), *promises))
    expected = {"kip-280-safe": (25697, 18), "empty-batch": (29449, 20)}
    assert (run.violated, run.distinct, run.depth) == (None, *expected[variant])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "constants"),
    [pytest.param(*each, marks=() if each in QUICK else thorough) for each in GRAPHS],
    ids=lambda each: each if isinstance(each, str) else "/".join(map(str, each)),
)
def test_the_graph_is_that_of_the_python_protocol(tlc: Tlc, variant: str, constants: tuple[int, ...]) -> None:
    """Same states and, by action name, the same edges: not only as many."""
    system = ground(compaction.traced(variant), dict(zip(compaction.constants, constants, strict=True)))
    _, states = hold_graph(tlc, system, cells_of, "TypeOk")
    if (variant, constants) == QUICK[0]:
        without = states_without(system, "remove_tombstone.cleaned_in_time")
        assert states != without, "the comparison would see a dropped guard"


def cells_of(system: System, tla: dict[str, Any]) -> dict[str, Any]:
    """The cells of a state of the module."""
    cells: dict[str, Any] = {f"epoch_start[{epoch}]": start for epoch, start in tla["quorum"].pop("epochStart").items()}
    cells |= {snake(name): value for name, value in tla["quorum"].items()}
    cells |= {"hw": tla["committed"]["hw"]}
    cells |= {f"committed[{offset}]": epoch for offset, epoch in tla["committed"]["epochs"].items()}
    for replica, log in tla["replicaLog"].items():
        cells |= {f"record_epoch[{replica}][{offset}]": epoch for offset, epoch in log.pop("records").items()}
        cells |= {f"{name}[{replica}]": value for name, value in log.items()}
    for epoch, written in tla["records"].items():
        for offset, record in written.items():
            cells |= {f"record_{snake(name)}[{epoch}][{offset}]": value for name, value in record.items()}
    configuration = tla["configuration"]
    cells |= {"topic_strategy": configuration["topic"], "changes": configuration["changes"]}
    cells |= {"since": configuration["since"], "position": tla["consumer"]["position"]}
    cells |= {f"broker_strategy[{replica}]": value for replica, value in configuration["brokers"].items()}
    cells |= {f"deleted_version[{key}]": value for key, value in configuration["deletedVersion"].items()}
    cells |= {f"table[{key}]": value for key, value in tla["consumer"]["table"].items()}
    return cells
