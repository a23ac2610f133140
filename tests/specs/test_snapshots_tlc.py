"""TLC on ``specs/Snapshots.tla``: counts, counterexamples, and the graph itself, edge for edge."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.protocols.snapshots import snapshots

from .cfgs import cfg_of, whole_cfg
from .graphs import hold_graph, states_without
from .modules import camel, snake
from .tlc import Tlc, thorough

# replicas/observers/log size/leader epoch/chunks/minimum records/late responses/lag expires
LATE = (2, 1, 2, 0, 1, 0, 1, 1)
VOTERS = (2, 0, 2, 1, 1, 0, 0, 1)
CHUNKED = (2, 1, 2, 1, 2, 0, 0, 1)
# Distinct states and depth.
GRAPHS = {
    ("kip-630", LATE): (10894, 22),
    ("stale-responses", LATE): (5768, 20),
    ("kip-630-safe", LATE): (5752, 20),
    ("kip-630-safe", VOTERS): (6102, 22),
    ("kip-630-safe", CHUNKED): (9759, 19),
    ("kip-630-safe", (3, 0, 1, 1, 1, 0, 0, 1)): (10308, 19),
    ("kip-630-nodes", (3, 0, 1, 1, 1, 0, 0, 1)): (10419, 19),
    ("kip-630-nodes", CHUNKED): (8590, 19),
    ("kip-630-votes", VOTERS): (9155, 24),
    ("late-votes", VOTERS): (11063, 24),
}
QUICK = (("kip-630", LATE), ("kip-630-safe", VOTERS), ("kip-630-safe", CHUNKED), ("kip-630-votes", VOTERS))
DEFAULTS = "3/0/2/1/1/0/0/1"
# Where an unsafe variant breaks at other constants than these.
SIZES = {
    "mixed-chunks": "3/0/2/1/2/0/0/1",
    "stale-responses": "2/1/2/0/1/0/1/1",
    "kip-630-votes": "3/0/1/1/1/0/0/1",
    "late-votes": "3/0/1/2/1/0/0/1",
}
# The invariant that TLC finds violated first there, and the length of its run.
BREACHES = {
    "lbo-past-snapshot": ("SnapshotInBetween", 7),
    "lbo-misread": ("NoCommittedRecordLost", 11),
    "snapshot-past-hw": ("SnapshotIsCommittedPrefix", 4),
    "delete-at-lbo": ("SnapshotInBetween", 9),
    "stale-responses": ("SnapshotIsCommittedPrefix", 14),
}
SLOW_BREACHES = {
    "kip-630": ("NoCommittedRecordLost", 11),
    "boot-by-hw": ("NoCommittedRecordLost", 11),
    "vote-half-fetched": ("NoCommittedRecordLost", 12),
    "acknowledge-half-fetched": ("NoCommittedRecordLost", 16),
    "fetch-at-lbo": ("LogsMatch", 16),
    "mixed-chunks": ("SnapshotIsCommittedPrefix", 16),
    "late-votes": ("NoCommittedRecordLost", 11),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", [*BREACHES, *(pytest.param(variant, marks=thorough) for variant in SLOW_BREACHES)])
def test_the_cfgs_of_the_twins_break_as_the_explorer_says(tlc: Tlc, variant: str) -> None:
    run = tlc.run("Snapshots", whole_cfg(snapshots, variant, SIZES.get(variant, DEFAULTS)))
    assert (run.violated, len(run.trace)) == (BREACHES | SLOW_BREACHES)[variant]


@thorough
def test_the_cfg_of_the_safe_variant_holds(tlc: Tlc) -> None:
    run = tlc.run("Snapshots", whole_cfg(snapshots, "kip-630-safe", DEFAULTS))
    assert (run.violated, run.distinct, run.depth) == (None, 479685, 32)


def test_the_safe_variant_holds_at_small_constants(tlc: Tlc) -> None:
    promises = [camel(name) for name in snapshots.invariant_names]
    run = tlc.run("Snapshots", cfg_of(snapshots, "kip-630-safe", VOTERS, *promises))
    assert (run.violated, run.distinct, run.depth) == (None, *GRAPHS["kip-630-safe", VOTERS])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "constants"),
    [pytest.param(*each, marks=() if each in QUICK else thorough) for each in GRAPHS],
    ids=lambda each: each if isinstance(each, str) else "/".join(map(str, each)),
)
def test_the_graph_is_that_of_the_python_protocol(tlc: Tlc, variant: str, constants: tuple[int, ...]) -> None:
    """Same states and, by action name, the same edges: not only as many."""
    system = ground(snapshots.traced(variant), dict(zip(snapshots.constants, constants, strict=True)))
    run, states = hold_graph(tlc, system, cells_of)
    assert (run.distinct, run.depth) == GRAPHS[variant, constants]
    if constants == VOTERS:
        without = states_without(system, "become_candidate.not_leading")
        assert states != without, "the comparison would see a dropped guard"


def cells_of(system: System, tla: dict[str, Any]) -> dict[str, Any]:
    """The cells of a state of the module."""
    cells: dict[str, Any] = {snake(name): value for name, value in tla["election"].items()}
    cells["voters"] = tla["voters"]
    cells |= indexed("epoch_leader", tla["epochLeader"])
    cells |= indexed("committed", tla["committed"])
    for replica, log in tla["replicaLog"].items():
        cells |= {f"lbo[{replica}]": log["lbo"], f"leo[{replica}]": log["leo"]}
        cells |= indexed(f"record_epoch[{replica}]", log["epochs"])
    for replica, known in tla["replicaState"].items():
        cells |= {f"{snake(name)}[{replica}]": value for name, value in known.items()}
    for replica, holders in tla["acknowledged"].items():
        cells |= indexed(f"acknowledged[{replica}]", holders)
    for replica, files in tla["snapshotFiles"].items():
        for offset, file in files.items():
            cells |= {f"snapshot_{name}[{replica}][{offset}]": value for name, value in file.items()}
    for replica, fetched in tla["fetchState"].items():
        cells[f"fetching[{replica}]"] = fetched["offset"]
        cells[f"fetching_epoch[{replica}]"] = fetched["epoch"]
        cells[f"position[{replica}]"] = fetched["position"]
    # A function without arguments is an empty sequence to TLC.
    for slot, response in tla["late"].items() if tla["late"] else ():
        cells |= {f"response_{snake(name)}[{slot}]": value for name, value in response.items()}
    if "granted" in system.traced.variables:
        for epoch, answers in tla["voteAnswers"].items():
            cells |= {f"{name}[{epoch}]": value for name, value in answers.items()}
    return cells


def indexed(name: str, function: dict[int, Any]) -> dict[str, Any]:
    """The cells of a variable with one more index."""
    return {f"{name}[{index}]": value for index, value in function.items()}
