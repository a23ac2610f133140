"""TLC on ``specs/Tiering.tla``: counts, counterexamples, and the graph itself, edge for edge."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.protocols.tiering import tiering

from .cfgs import cfg_of, whole_cfg
from .graphs import hold_graph, states_without
from .modules import camel, snake
from .tlc import Tlc, thorough

SAFE = "kip-1023-safe"
# replicas/log size/leader epoch/last tiered offset/unclean/transactions/switches/expires
ONE_RECORD = (2, 1, 1, 1, 1, 0, 0, 1)
ONE_EPOCH = (2, 2, 0, 1, 0, 0, 1, 1)
# Distinct states and depth.
GRAPHS = {
    (SAFE, ONE_RECORD): (4625, 22),
    (SAFE, ONE_EPOCH): (5073, 25),
    (SAFE, (2, 1, 1, 1, 1, 1, 1, 1)): (10288, 25),
    (SAFE, (2, 2, 1, 0, 0, 0, 0, 0)): (30549, 34),
    (SAFE, (2, 2, 1, 1, 0, 0, 0, 0)): (30885, 34),
    ("kip-1023", ONE_RECORD): (4991, 23),
    ("kip-1023", ONE_EPOCH): (5133, 24),
    ("offsets-first", ONE_RECORD): (4847, 22),
    ("keeps-highest", ONE_RECORD): (5653, 23),
    ("deposed-segment", ONE_RECORD): (4719, 22),
    ("deletes-uncommitted", ONE_RECORD): (5087, 22),
    ("epochs-to-local-start", ONE_EPOCH): (5089, 25),
    ("below-log-start", ONE_EPOCH): (5121, 25),
    ("up-to-gap", (2, 1, 1, 1, 1, 0, 0, 0)): (2555, 22),
    ("up-to-gap", (2, 2, 1, 1, 0, 0, 0, 0)): (42775, 34),
}
QUICK = ((SAFE, ONE_RECORD), (SAFE, ONE_EPOCH))
# The invariant that TLC finds violated first with the variant's configuration, and the length of its run.
BREACHES = {
    "jump-unknown": ("LineageIsLeaders", 12),
    "below-log-start": ("OffsetsInOrder", 14),
    "flag-ignored": ("OnlyEmptyFollowerJumps", 11),
    "jump-with-data": ("OnlyEmptyFollowerJumps", 15),
    "offsets-first": ("LineageIsLeaders", 11),
    "upload-past-stable": ("UploadedIsStable", 5),
    "upload-past-hw": ("UploadedIsStable", 4),
    "deposed-segment": ("LeaderCanServe", 13),
    "deletes-uncommitted": ("LeaderCanServe", 7),
    "disabled-under-isr": ("IsrCanServe", 15),
    "disabled-at-leader": ("IsrCanServe", 18),
}
SLOW_BREACHES = {
    "kip-1023": ("LeaderCanServe", 16),
    "epochs-to-local-start": ("LineageIsLeaders", 14),
    "keeps-uncompared": ("SegmentsAgree", 20),
    "short-checkpoint": ("LineageIsLeaders", 24),
    "keeps-highest": ("LeaderCanServe", 14),
    "highest-alone": ("LeaderCanServe", 16),
    "first-on-remote": ("LeaderCanServe", 22),
    "deposed-deletes": ("LeaderCanServe", 16),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", [*BREACHES, *(pytest.param(variant, marks=thorough) for variant in SLOW_BREACHES)])
def test_the_cfgs_of_the_twins_break_as_the_explorer_says(tlc: Tlc, variant: str) -> None:
    run = tlc.run("Tiering", whole_cfg(tiering, variant))
    assert (run.violated, len(run.trace)) == (BREACHES | SLOW_BREACHES)[variant]


@thorough
def test_the_cfg_of_the_safe_variant_holds(tlc: Tlc) -> None:
    run = tlc.run("Tiering", whole_cfg(tiering, SAFE))
    assert (run.violated, run.distinct, run.depth) == (None, 172489, 38)


def test_the_safe_variant_holds_at_small_constants(tlc: Tlc) -> None:
    promises = [camel(name) for name in tiering.invariant_names]
    run = tlc.run("Tiering", cfg_of(tiering, SAFE, ONE_RECORD, *promises))
    assert (run.violated, run.distinct, run.depth) == (None, *GRAPHS[SAFE, ONE_RECORD])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "constants"),
    [pytest.param(*each, marks=() if each in QUICK else thorough) for each in GRAPHS],
    ids=lambda each: each if isinstance(each, str) else "/".join(map(str, each)),
)
def test_the_graph_is_that_of_the_python_protocol(tlc: Tlc, variant: str, constants: tuple[int, ...]) -> None:
    """Same states and, by action name, the same edges: not only as many."""
    system = ground(tiering.traced(variant), dict(zip(tiering.constants, constants, strict=True)))
    run, states = hold_graph(tlc, system, cells_of)
    assert (run.distinct, run.depth) == GRAPHS[variant, constants]
    if constants == ONE_RECORD and variant == SAFE:
        without = states_without(system, "delete_local.is_uploaded")
        assert states != without, "the comparison would see a dropped guard"


def cells_of(system: System, tla: dict[str, Any]) -> dict[str, Any]:
    """The cells of a state of the module."""
    partition = tla["partition"]
    cells: dict[str, Any] = {f"epoch_leader[{e}]": leader for e, leader in partition.pop("epochLeader").items()}
    cells |= {snake(name): value for name, value in partition.items()}
    for replica, state in tla["replicaState"].items():
        cells |= {f"{snake(name)}[{replica}]": value for name, value in state.items()}
    for name, rows in (("record_epoch", tla["checkpoint"]), ("remote_epoch", tla["remoteEpoch"])):
        for first, row in rows.items():
            cells |= {f"{name}[{first}][{offset}]": value for offset, value in row.items()}
    for epoch, row in tla["segments"].items():
        for offset, segment in row.items():
            cells |= {f"segment_{name}[{epoch}][{offset}]": value for name, value in segment.items()}
    return cells
