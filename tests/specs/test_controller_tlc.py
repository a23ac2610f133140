"""TLC on ``specs/Controller.tla``: counts, counterexamples, and the graph itself, edge for edge."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.protocols.controller import controller

from .cfgs import cfg_of, whole_cfg
from .graphs import hold_graph, states_without
from .modules import camel, snake
from .tlc import Tlc, thorough

# replicas/nodes/partitions/log size/controller epoch/bootstrapped/snapshots/removals
DATA = (2, 1, 1, 2, 0, 1, 0, 1)
FAILOVER = (1, 2, 1, 1, 1, 1, 1, 1)
THREE_EPOCHS = (1, 2, 1, 1, 2, 1, 0, 1)
"""What was pending may come back."""
ONE_EPOCH = (1, 2, 1, 1, 0, 1, 1, 1)
TWO_PARTITIONS = (2, 1, 2, 1, 0, 1, 0, 1)
# Distinct states and depth.
GRAPHS = {
    ("kip-631-safe", DATA): (3432, 17),
    ("kip-631-safe", (2, 1, 2, 2, 0, 1, 0, 1)): (9316, 20),
    ("kip-631-safe", (2, 1, 2, 3, 0, 0, 0, 1)): (1377, 21),
    ("kip-631-safe", ONE_EPOCH): (1134, 18),
    ("kip-631-safe", FAILOVER): (11136, 24),
    ("kip-631-safe", THREE_EPOCHS): (9998, 17),
    ("kip-631", FAILOVER): (25840, 25),
    ("isr-changes", TWO_PARTITIONS): (296, 12),
    ("isr-changes", (2, 1, 2, 2, 0, 1, 0, 1)): (9316, 20),
    ("concurrent-snapshots", FAILOVER): (11020, 24),
    ("applies-pending", FAILOVER): (32846, 24),
    ("keeps-pending", FAILOVER): (8590, 23),
    ("deposed-leader", (2, 1, 1, 3, 0, 1, 0, 1)): (41824, 23),
}
QUICK = (("kip-631-safe", DATA), ("kip-631-safe", ONE_EPOCH), ("isr-changes", TWO_PARTITIONS))
# The invariant that TLC finds violated first with the variant's configuration, and the length of its run.
BREACHES = {
    "snapshot-lacks-fenced": ("SnapshotIsSufficient", 10),
    "snapshot-pending": ("SnapshotIsSufficient", 7),
    "elects-fenced": ("FencedBrokerLeadsNothing", 5),
    "applies-pending": ("StateIsOfStablePrefix", 4),
    "deposed-leader": ("FencedBrokerLeadsNothing", 8),
    "removes-last": ("IsrIsNeverEmpty", 4),
    "keeps-pending": ("StateIsOfStablePrefix", 4),
    "answers-pending": ("BrokerEpochIsItsOwn", 8),
}
SLOW_BREACHES = {
    "kip-631": ("SnapshotIsSufficient", 9),
    "two-snapshots": ("OneSnapshotInTheMaking", 14),
    "late-order": ("OneSnapshotInTheMaking", 17),
    "last-member-returns": ("AcknowledgedIsKept", 16),
    "stale-broker-epoch": ("AcknowledgedIsKept", 21),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", [*BREACHES, *(pytest.param(variant, marks=thorough) for variant in SLOW_BREACHES)])
def test_the_cfgs_of_the_twins_break_as_the_explorer_says(tlc: Tlc, variant: str) -> None:
    run = tlc.run("Controller", whole_cfg(controller, variant))
    assert (run.violated, len(run.trace)) == (BREACHES | SLOW_BREACHES)[variant]


@pytest.mark.sampled(2)
@thorough
@pytest.mark.parametrize(
    ("variant", "expected"),
    [("kip-631-safe", (11136, 24)), ("isr-changes", (9316, 20)), ("concurrent-snapshots", (11020, 24))],
)
def test_the_cfgs_of_what_is_safe_hold(tlc: Tlc, variant: str, expected: tuple[int, int]) -> None:
    run = tlc.run("Controller", whole_cfg(controller, variant))
    assert (run.violated, run.distinct, run.depth) == (None, *expected)


def test_the_safe_variant_holds_at_small_constants(tlc: Tlc) -> None:
    promises = [camel(name) for name in controller.invariant_names]
    run = tlc.run("Controller", cfg_of(controller, "kip-631-safe", FAILOVER, *promises))
    assert (run.violated, run.distinct, run.depth) == (None, *GRAPHS["kip-631-safe", FAILOVER])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "constants"),
    [pytest.param(*each, marks=() if each in QUICK else thorough) for each in GRAPHS],
    ids=lambda each: each if isinstance(each, str) else "/".join(map(str, each)),
)
def test_the_graph_is_that_of_the_python_protocol(tlc: Tlc, variant: str, constants: tuple[int, ...]) -> None:
    """Same states and, by action name, the same edges: not only as many."""
    system = ground(controller.traced(variant), dict(zip(controller.constants, constants, strict=True)))
    run, states = hold_graph(tlc, system, cells_of)
    assert (run.distinct, run.depth) == GRAPHS[variant, constants]
    if constants == DATA:
        dropped = states_without(system, "fence_broker.is_unfenced")
        assert states != dropped, "the comparison would see a dropped guard"
        mutant = states_without(system, "unfence_broker.broker_epoch_matches")
        assert states == mutant, "no broker has another epoch yet where two records fit"


def cells_of(system: System, tla: dict[str, Any]) -> dict[str, Any]:
    """The cells of a state of the module."""
    cells: dict[str, Any] = {"newest_epoch": tla["newestEpoch"], "brokers": list(range(system.constants["replicas"]))}
    log = tla["metadataLog"]
    cells |= {snake(name): log[name] for name in ("activeEpoch", "end", "leaderEnd", "stable")}
    for offset, record in log["records"].items():
        for partition, change in record.pop("changes").items():
            cells |= {f"change_{name}[{offset}][{partition}]": value for name, value in change.items()}
        cells |= {f"record_{name}[{offset}]": value for name, value in record.items()}
    for holder in ("prefix", "node", "view", "snapshot"):
        for who, image in tla[f"{holder}Image"].items():
            for partition, state in image.pop("partitions").items():
                cells |= {f"{holder}_{snake(name)}[{who}][{partition}]": value for name, value in state.items()}
            cells |= {f"{holder}_{snake(name)}[{who}]": value for name, value in image.items()}
    names = {"epoch": "node_epoch", "applied": "node_applied"}
    for node, state in tla["nodeState"].items():
        cells |= {f"{names.get(name, snake(name))}[{node}]": value for name, value in state.items()}
    names = {"applied": "view_applied", "reached": "view_reached"}
    for broker, state in tla["brokerState"].items():
        cells |= {f"{names.get(name, snake(name))}[{broker}]": value for name, value in state.items()}
    for broker, logs in tla["replicaData"].items():
        for partition, state in logs.items():
            cells |= {f"{snake(name)}[{broker}][{partition}]": value for name, value in state.items()}
    for partition, state in tla["topics"].items():
        cells |= {f"{name}[{partition}]": value for name, value in state.items()}
    known = system.layout.by_name.keys()
    assert all(name.startswith("change_") for name in cells.keys() - known)
    return {name: value for name, value in cells.items() if name in known}
