"""TLC on ``specs/Truncation.tla``: counts, counterexamples, and the graph itself, edge for edge."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.protocols.truncation import truncation

from .cfgs import cfg_of, whole_cfg
from .graphs import hold_graph, states_without
from .modules import camel, snake
from .tlc import Tlc, thorough

VARIANTS = tuple(name for name, each in truncation.variants.items() if not each.rules.client)
# Distinct states and depth at 2/1/1/2 (replicas/log size/records/leader epoch).
GRAPHS = {
    "no-epoch": (4562, 15),
    "kip-320": (5846, 17),
    "epoch-ignored": (9210, 21),
    "reset-earliest": (11970, 23),
    "reset-latest": (10746, 23),
    "kip-320-mended": (10794, 24),
}
# The first promise to break at 2/2/3/2, with the steps of the shortest run.
BREACHES = {
    "no-epoch": ("OutOfRangeOnlyUnchecked", 8),
    "kip-320": ("TruncationIsTrue", 9),
    "epoch-ignored": ("OutOfRangeOnlyUnchecked", 8),
    "reset-earliest": ("ReportedDivergence", 10),
    "reset-latest": ("ReportedDivergence", 11),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", list(BREACHES))
def test_the_cfgs_of_the_twins_break_as_the_explorer_says(tlc: Tlc, variant: str) -> None:
    run = tlc.run("Truncation", whole_cfg(truncation, variant))
    assert (run.violated, len(run.trace)) == BREACHES[variant]


@thorough
def test_the_cfg_of_the_mended_variant_holds(tlc: Tlc) -> None:
    run = tlc.run("Truncation", whole_cfg(truncation, "kip-320-mended"))
    assert (run.violated, run.distinct, run.depth) == (None, 856370, 30)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("promise", "constants", "steps"),
    [
        pytest.param("NoSilentGap", (2, 2, 3, 2), 13, marks=thorough),
        pytest.param("ReportedDivergence", (3, 1, 2, 2), 11, marks=thorough),
        ("TruncationIsTrue", (2, 1, 1, 2), 9),
    ],
)
def test_the_holes_of_the_kip(tlc: Tlc, promise: str, constants: tuple[int, ...], steps: int) -> None:
    run = tlc.run("Truncation", cfg_of(truncation, "kip-320", constants, promise))
    assert (run.violated, len(run.trace)) == (promise, steps)


def test_the_mended_variant_holds_at_small_constants(tlc: Tlc) -> None:
    promises = [camel(name) for name in ("type_ok", *truncation.traced().invariants)]
    run = tlc.run("Truncation", cfg_of(truncation, "kip-320-mended", (2, 2, 2, 1), *promises))
    assert (run.violated, run.distinct, run.depth) == (None, 23170, 22)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(v, marks=thorough if v in ("epoch-ignored", "reset-earliest", "reset-latest") else ())
        for v in VARIANTS
    ],
)
def test_the_graph_is_that_of_the_python_protocol(tlc: Tlc, variant: str) -> None:
    """Same states and, by action name, the same edges at 2/1/1/2: not only as many."""
    constants = (2, 1, 1, 2)
    system = ground(truncation.traced(variant), dict(zip(truncation.constants, constants, strict=True)))
    run, states = hold_graph(tlc, system, cells_of)
    assert (run.distinct, run.depth) == GRAPHS[variant]
    without = states_without(system, "refresh_metadata.epoch_started")
    assert states != without, "the comparison would see a dropped guard"


def cells_of(system: System, tla: dict[str, Any]) -> dict[str, Any]:
    """The cells of a state of the module."""
    cells: dict[str, Any] = {
        "next_record_id": tla["nextRecordId"],
        "metadata_leader": tla["metadataLeader"],
        "quorum_leader_epoch": len(tla["elections"]) - 1,
    }
    for epoch, election in enumerate(tla["elections"]):
        cells[f"epoch_leader[{epoch}]"] = election["leader"]
        cells[f"epoch_unclean[{epoch}]"] = election["unclean"]
    for replica, log in tla["replicaLog"].items():
        cells[f"leo[{replica}]"] = len(log)
        for offset, record in enumerate(log):
            cells[f"record_id[{replica}][{offset}]"] = record["id"]
            cells[f"record_epoch[{replica}][{offset}]"] = record["epoch"]
    for replica, known in tla["replicaState"].items():
        cells[f"hw[{replica}]"] = known["hw"]
        cells[f"leader_epoch[{replica}]"] = known["leaderEpoch"]
    consumer = tla["consumer"]
    for name in ("position", "lastEpoch", "seenEpoch", "consumedFrom"):
        cells[snake(name)] = consumer[name]
    for place, record in enumerate(consumer["consumed"]):
        cells[f"consumed_id[{consumer['consumedFrom'] + place}]"] = record
    for name, value in tla["answer"].items():
        cells[snake(name)] = value
    commit = tla["committed"]
    cells |= {"committed": commit["offset"], "committed_epoch": commit["epoch"], "committed_seen": commit["seen"]}
    unset = {cell.name: 0 if cell.variable.name == "epoch_unclean" else -1 for cell in system.layout.cells}
    return unset | cells
